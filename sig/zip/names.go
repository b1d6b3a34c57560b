// SPDX-License-Identifier: Apache-2.0

package zip

import (
	"strings"
	"unicode/utf8"
)

// checkName refuses names that lead out of the archive or that programs read differently (4.4.17.1).
func checkName(name string) error {
	refuse := func(why string) error { return damaged(name, "the entry name %s %s", quote(name), why) }
	switch {
	case name == "":
		return refuse("is empty")
	case !utf8.ValidString(name):
		return refuse("is not UTF-8")
	case strings.HasPrefix(name, "/"):
		return refuse("begins with a slash")
	}
	for i := range len(name) {
		if c := name[i]; c < ' ' || c == 0x7F {
			return refuse("has a control character in it")
		} else if c == '\\' {
			return refuse("has a backslash in it")
		}
	}
	for segment := range strings.SplitSeq(strings.TrimSuffix(name, "/"), "/") {
		switch segment {
		case "":
			return refuse("has an empty segment")
		case ".", "..":
			return refuse("has a segment of dots")
		}
	}
	return nil
}
