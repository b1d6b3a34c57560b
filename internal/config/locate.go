// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
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
	yamlLine      = regexp.MustCompile(`line [0-9]+:`)
	masterKeyName = regexp.MustCompile(`^master key ([^ :]+):`)
)

// Fault is a fault of a configuration and its place.
type Fault struct {
	File string // "" if the fault is not of the file
	Line int    // 0 if it is not known
	Key  string // name of the setting, such as clients[1].id; "" if the fault is of no setting
	Text string // what is wrong
	said bool   // Text has the line
	err  error  // what Text is of; may be nil
}

// Error returns the place and the text.
func (f *Fault) Error() string {
	text := f.Text
	if f.Line > 0 && !f.said {
		text = fmt.Sprintf("line %d: %s", f.Line, text)
	}
	if f.File != "" {
		text = f.File + ": " + text
	}
	return text
}

// Unwrap returns what the fault was made of.
func (f *Fault) Unwrap() error { return f.err }

// FaultOf returns an error of Load, Validate or Locate as a Fault.
func FaultOf(err error) *Fault {
	var f *Fault
	if errors.As(err, &f) && f.Error() == err.Error() {
		return f
	}
	return &Fault{Key: keyOf(err.Error()), Text: err.Error(), err: err}
}

// keyOf returns the name of the setting that the text of a fault begins with, or "".
func keyOf(text string) string {
	if key := masterKeyName.FindStringSubmatch(text); key != nil {
		return "master_keys.files." + key[1]
	}
	if set, ok := strings.CutPrefix(text, "--set "); ok {
		name, _, _ := strings.Cut(set, "=")
		return settingName.FindString(name)
	}
	name := settingName.FindString(text)
	if !strings.HasPrefix(text[len(name):], ":") || name == "yaml" {
		return ""
	}
	return name
}

// lineOf returns the line that a text of the YAML library names, or 0.
func lineOf(text string) int {
	n, _ := strconv.Atoi(strings.Trim(yamlLine.FindString(text), "line :"))
	return n
}

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
		if line > 0 || strings.HasPrefix(f.Error(), name+":") {
			located[i] = &Fault{File: c.origin.file, Line: line, Key: name, Text: f.Error(), err: f}
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
