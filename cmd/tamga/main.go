// Command tamga is the Tamga signing service and its tools in one program: serve
// answers requests, sign and verify work from the command line, the others administer.
//
// The sub-commands are listed in internal/program.
package main

import (
	"os"

	"tamga/internal/program"
)

// version is set by the release build: -ldflags "-X main.version=1.2.3".
var version = "devel"

func main() { os.Exit(program.Main(version)) }
