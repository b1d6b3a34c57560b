package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set by the release build: -ldflags "-X main.version=1.2.3".
var version = "devel"

type versionCommand struct{}

func (versionCommand) Run(c *console) error {
	revision := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = " " + s.Value
			}
		}
	}
	_, err := fmt.Fprintf(c.stdout, "tamga %s%s %s %s/%s\n", version, revision, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
