// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
)

// Version is the sub-command version.
type Version struct {
	JSON bool `help:"Print JSON instead of text."`
}

// Run prints the version, the commit and its date, the Go version and the platform.
func (v Version) Run(c *Console) error {
	b := thisBuild(c.Program.Version)
	if v.JSON {
		out := json.NewEncoder(c.Stdout)
		out.SetIndent("", "  ")
		return out.Encode(b)
	}
	_, err := fmt.Fprintln(c.Stdout, b)
	return err
}

// VersionText returns the line that the sub-command version prints for a version of the program.
func VersionText(version string) string { return thisBuild(version).String() }

// build is what is known about the build of the running program.
type build struct {
	Version    string `json:"version"`
	Commit     string `json:"commit,omitempty"`
	CommitDate string `json:"commit_date,omitempty"` // RFC 3339
	Modified   bool   `json:"modified"`              // the source differed from the commit
	Go         string `json:"go"`
	Platform   string `json:"platform"`
}

func thisBuild(version string) build {
	b := build{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.CommitDate = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// String returns the build in one line.
func (b build) String() string {
	text := "tamga " + b.Version
	if b.Commit != "" {
		text += " " + b.Commit
	}
	if b.CommitDate != "" {
		text += " " + b.CommitDate
	}
	if b.Modified {
		text += " modified"
	}
	return text + " " + b.Go + " " + b.Platform
}
