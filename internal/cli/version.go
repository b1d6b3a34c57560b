// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Version is the sub-command version.
type Version struct{}

// Run prints the version, the revision, the Go version and the platform.
func (Version) Run(c *Console) error {
	revision := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = " " + s.Value
			}
		}
	}
	_, err := fmt.Fprintf(c.Stdout, "tamga %s%s %s %s/%s\n", c.Program.Version, revision, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
