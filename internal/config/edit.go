// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// ErrEdit reports that a file has a form that AddMasterKey does not change.
var ErrEdit = errors.New("config: master_keys is written in a form that the program does not change; change it by hand")

// AddMasterKey returns the text of a configuration with one more master key, which is the active one.
// Everything else of the text stays as it is, comments included.
func AddMasterKey(text []byte, id, file string) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil || len(document.Content) == 0 {
		return nil, ErrEdit
	}
	active := at(document.Content[0], "master_keys", "active")
	files := at(document.Content[0], "master_keys", "files")
	if active == nil || active.Kind != yaml.ScalarNode || strings.Contains(active.Value, "\n") || active.Anchor != "" ||
		files == nil || files.Kind != yaml.MappingNode || len(files.Content) == 0 || files.Anchor != "" {
		return nil, ErrEdit
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	line := func(n *yaml.Node) []byte { return lines[n.Line-1] }
	// cut returns the parts of a line before a node and from it on.
	cut := func(n *yaml.Node) (before, rest []byte) {
		l := line(n)
		i := 0
		for range n.Column - 1 { // columns count characters
			_, size := utf8.DecodeRune(l[i:])
			i += size
		}
		return l[:i:i], l[i:]
	}
	before, rest := cut(active)
	written := written(active)
	if !bytes.HasPrefix(rest, []byte(written)) {
		return nil, ErrEdit
	}
	entry := strconv.Quote(id) + ": " + strconv.Quote(file)
	activeLine, filesLine := active.Line-1, files.Line-1
	replaced := string(before) + strconv.Quote(id) + string(rest[len(written):])
	if files.Style&yaml.FlowStyle != 0 {
		// The mapping may be on the line of active, before or after it.
		b, r := cut(files)
		if !bytes.HasPrefix(r, []byte("{")) {
			return nil, ErrEdit
		}
		insert := entry + ", "
		if filesLine != activeLine {
			lines[activeLine] = []byte(replaced)
			lines[filesLine] = []byte(string(b) + "{" + insert + string(r[1:]))
		} else if files.Column > active.Column {
			shift := len(replaced) - len(line(active))
			at := len(b) + 1 + shift
			lines[activeLine] = []byte(replaced[:at] + insert + replaced[at:])
		} else {
			lines[activeLine] = []byte(replaced[:len(b)+1] + insert + replaced[len(b)+1:])
		}
	} else {
		b, _ := cut(files.Content[0])
		if len(bytes.TrimSpace(b)) > 0 {
			return nil, ErrEdit
		}
		lines[activeLine] = []byte(replaced)
		first := files.Content[0].Line - 1
		lines[first] = []byte(string(b) + entry + "\n" + string(lines[first]))
	}
	made := bytes.Join(lines, nil)
	var check struct {
		MasterKeys struct {
			Active string            `yaml:"active"`
			Files  map[string]string `yaml:"files"`
		} `yaml:"master_keys"`
	}
	if err := yaml.Unmarshal(made, &check); err != nil || check.MasterKeys.Active != id ||
		check.MasterKeys.Files[id] != file || len(check.MasterKeys.Files) != len(files.Content)/2+1 {
		return nil, fmt.Errorf("%w: %q would not be the active one", ErrEdit, id)
	}
	return made, nil
}

// written returns a scalar as it is written in a file.
func written(n *yaml.Node) string {
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0:
		return strconv.Quote(n.Value)
	case n.Style&yaml.SingleQuotedStyle != 0:
		return "'" + strings.ReplaceAll(n.Value, "'", "''") + "'"
	}
	return n.Value
}

// at returns the value at a path of names, or nil.
func at(n *yaml.Node, path ...string) *yaml.Node {
	for _, name := range path {
		if n == nil || n.Kind != yaml.MappingNode {
			return nil
		}
		var next *yaml.Node
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == name {
				next = n.Content[i+1]
			}
		}
		n = next
	}
	return n
}
