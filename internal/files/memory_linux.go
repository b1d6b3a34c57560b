// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// AllowCoreDumps is the variable of the environment that leaves memory readable for
// debugging.
const AllowCoreDumps = "TAMGA_ALLOW_CORE_DUMPS"

// KeepMemoryPrivate keeps what the process has in memory out of core dumps and away from
// debuggers of the same user. Whatever reads a secret calls it first.
var KeepMemoryPrivate = sync.OnceValue(func() error {
	if os.Getenv(AllowCoreDumps) == "1" {
		return nil
	}
	return PrivateMemory()
})

// PrivateMemory does the work of KeepMemoryPrivate regardless of AllowCoreDumps.
func PrivateMemory() error {
	var errs []error
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		errs = append(errs, fmt.Errorf("switching core dumps off: %w", err))
	}
	// A pipe in core_pattern gets a dump whatever the limit, but not of such a process.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		errs = append(errs, fmt.Errorf("making the process not dumpable: %w", err))
	}
	return errors.Join(errs...)
}
