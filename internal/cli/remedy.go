// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"

	"tamga/internal/config"
)

// remedies are what to do about faults of a configuration, by a part of their texts. The first one that
// fits counts.
var remedies = []struct {
	part   string
	remedy Sentence
}{
	{"unknown setting; did you mean", Say("correct the name, as the question proposes")},
	{"unknown setting", Say("remove it, or find the right name in docs/config.md")},
	{"chmod 600", Say("run the chmod that the message names")},
	{"not 64 hexadecimal digits", Say("put the right file back; for a new installation make a key with: openssl rand -hex 32")},
	{"master key", Say("put the file back from your copy; for a new installation run: tamga init")},
	{"master_keys", Say("make a master key and name it: tamga init makes both for a new installation")},
	{"permission denied", Say("run the command as the user of the service, or give that user access")},
	{"cannot write", Say("give the directory to the user of the service")},
	{"is not a directory", Say("name a directory, or remove the file that is in its place")},
	{"no such file", Say("correct the path, or put the file there; relative paths begin at the directory of the configuration")},
	{"do not belong together", Say("name the certificate and its own key; the chain begins with the certificate of the server")},
	{"public_url", Say("set public_url to the address that people use")},
	{"yaml:", Say("correct the form of the file at this line: indentation with spaces, a space after each colon")},
}

// remedyOf returns what to do about a fault of the configuration.
func remedyOf(text string) Sentence {
	for _, r := range remedies {
		if strings.Contains(text, r.part) {
			return r.remedy
		}
	}
	return Say("correct the setting; docs/config.md describes it")
}

// Broken is the state of a finding that is a fault.
const Broken Word = "fault"

// FaultFinding returns a fault of a configuration as a finding, with its place and what to do.
func FaultFinding(check Word, err error) Finding {
	f := config.FaultOf(err)
	return Finding{Check: check, State: Broken, Text: Say("%s", FaultText(f.Text)), Remedy: remedyOf(f.Text), File: f.File, Line: f.Line, Key: f.Key}
}

// Place returns the file and the line of a finding before its text, or "".
func (c *Console) Place(f Finding) string {
	place := ""
	if f.File != "" {
		place = f.File + ": "
	}
	if f.Line > 0 && !strings.HasPrefix(f.Text.String(), "yaml: line ") {
		place += c.Text("line %d: ", f.Line)
	}
	return place
}
