// SPDX-License-Identifier: Apache-2.0

//go:build unix

package vault

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// lockedMemory returns memory outside of the heap that is never swapped out. free gives it back.
// It fails if the limit of locked memory (RLIMIT_MEMLOCK) has no room.
func lockedMemory(size int) (memory []byte, free func([]byte), err error) {
	memory, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, nil, fmt.Errorf("vault: reserving %d bytes: %w", size, err)
	}
	if err := unix.Mlock(memory); err != nil {
		unix.Munmap(memory)
		return nil, nil, fmt.Errorf("vault: locking %d bytes of memory: %w; raise the limit of locked memory (ulimit -l, LimitMEMLOCK of systemd)", size, err)
	}
	if err := excludeFromDumps(memory); err != nil {
		unix.Munmap(memory)
		return nil, nil, err
	}
	return memory, func(memory []byte) { unix.Munmap(memory) }, nil
}
