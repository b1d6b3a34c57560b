// SPDX-License-Identifier: Apache-2.0

// Command tamga is the Tamga signing service and its tools in one program. serve runs the service, sign
// and verify make and verify signatures from the command line, and the other sub-commands administer an
// installation.
//
// The table of sub-commands is in internal/cli/program.
package main

import (
	"os"

	"tamga/internal/cli/program"
)

// version is set by the release build: -ldflags "-X main.version=1.2.3".
var version = "devel"

func main() { os.Exit(program.Main(version)) }
