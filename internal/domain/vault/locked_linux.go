// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// excludeFromDumps keeps memory out of core dumps.
func excludeFromDumps(memory []byte) error {
	if err := unix.Madvise(memory, unix.MADV_DONTDUMP); err != nil {
		return fmt.Errorf("vault: keeping memory out of core dumps: %w", err)
	}
	return nil
}
