// SPDX-License-Identifier: Apache-2.0

// Command packaging makes the parts of a release that need more than the compiler: the software bill of
// materials, the licences of the modules in a program, the container image, and the signature of the sums. release.sh calls
// it.
//
// Begin with main. Each output depends on its inputs alone, so that a release can be made twice with the
// same bytes. The command builds no program and uses no network.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

const usage = `usage:
  packaging sbom VERSION PROGRAM [DIRECTORY...]
                                          bill of materials (CycloneDX 1.6, JSON); each DIRECTORY has an npm package
                                          whose files are in the program
  packaging licences PROGRAM... [DIRECTORY...]
                                          licences of all modules and npm packages in the programs
  packaging image VERSION COMMIT SECONDS FILE ARCHITECTURE=PROGRAM...
                                          image (OCI layout in a tar file); SECONDS is the time of the commit
  packaging sign KEY FILE COMMENT         FILE.minisig, with a key of minisign. TAMGA_RELEASE_PASSWORD has its password, or it is
                                          asked for; COMMENT is signed too
  packaging verify KEY FILE               checks FILE.minisig with a public key of minisign
`

func main() {
	flag.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	flag.Parse()
	err := run(flag.Args(), os.Stdout)
	if errors.Is(err, errUsage) {
		flag.Usage()
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "packaging:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("wrong arguments")

func run(args []string, stdout io.Writer) error {
	switch {
	case len(args) >= 3 && args[0] == "sbom":
		return writeSBOM(stdout, args[1], args[2], args[3:])
	case len(args) >= 2 && args[0] == "licences":
		return writeLicences(stdout, args[1:])
	case len(args) >= 6 && args[0] == "image":
		var seconds int64
		if _, err := fmt.Sscanf(args[3], "%d", &seconds); err != nil {
			return errUsage
		}
		return writeImage(args[4], image{Version: args[1], Commit: args[2], Created: time.Unix(seconds, 0).UTC()}, args[5:])
	case len(args) == 4 && args[0] == "sign":
		return sign(args[1], args[2], args[3])
	case len(args) == 3 && args[0] == "verify":
		return verify(args[1], args[2])
	}
	return errUsage
}
