// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"regexp"
	"strings"

	"tamga/internal/setting"
)

// origin is where a configuration is from.
type origin struct {
	file string
	text []byte
	set  []string // of the command line, which override the file
}

var (
	settingName   = regexp.MustCompile(`^[a-z_]+(\.[A-Za-z0-9_-]+|\[[0-9]+\])*`)
	masterKeyName = regexp.MustCompile(`^master key ([^ :]+):`)
)

// Locate puts the file before the faults that begin with the name of a setting, and the line if the file has the
// setting. Faults of settings that the command line sets stay as they are.
func (c *Config) Locate(faults []error) []error {
	if c.origin.file == "" {
		return faults
	}
	located := make([]error, len(faults))
	for i, f := range faults {
		located[i] = f
		name := settingName.FindString(f.Error())
		if key := masterKeyName.FindStringSubmatch(f.Error()); key != nil {
			name = "master_keys.files." + key[1]
		}
		if name == "" || c.origin.overrides(name) {
			continue
		}
		line := setting.Line(c.origin.text, name)
		if line == 0 && name == "public_url" { // derived from listen
			line = setting.Line(c.origin.text, "listen")
		}
		switch {
		case line > 0:
			located[i] = fmt.Errorf("%s: line %d: %w", c.origin.file, line, f)
		case strings.HasPrefix(f.Error(), name+":"):
			located[i] = fmt.Errorf("%s: %w", c.origin.file, f)
		}
	}
	return located
}

// overrides reports whether the command line sets a setting, or a part of it.
func (o *origin) overrides(name string) bool {
	for _, s := range o.set {
		given, _, _ := strings.Cut(s, "=")
		if rest, below := strings.CutPrefix(name, given); below && (rest == "" || rest[0] == '.' || rest[0] == '[') || strings.HasPrefix(given, name+".") {
			return true
		}
	}
	return false
}
