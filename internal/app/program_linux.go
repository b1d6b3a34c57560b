// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// releaseProgram gives the pages of the program file that the start used back to the system: most
// of its code and tables run once, and the kernel maps 64 KiB around each place that is used. A
// page that is needed again is mapped from the cache of the system, which takes a microsecond.
func releaseProgram() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	mappings, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer mappings.Close()
	lines := bufio.NewScanner(mappings)
	var from, to uintptr // of a mapping of the program that is not writable
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) >= 5 && strings.Contains(fields[0], "-"):
			from, to = 0, 0
			if strings.HasPrefix(fields[1], "r-") && strings.HasSuffix(lines.Text(), " "+program) {
				from, to = addresses(fields[0])
			}
		case from < to && len(fields) == 3 && fields[0] == "Anonymous:" && fields[1] == "0":
			// No page differs from the file, as it would after relocation. The error is
			// ignored: the pages stay then.
			syscall.Syscall(syscall.SYS_MADVISE, from, to-from, syscall.MADV_DONTNEED)
		}
	}
}

// addresses reads the range of a mapping, such as 00400000-01a30000. It returns 0, 0 if it is
// malformed.
func addresses(text string) (from, to uintptr) {
	a, b, _ := strings.Cut(text, "-")
	f, err := strconv.ParseUint(a, 16, strconv.IntSize)
	if err != nil {
		return 0, 0
	}
	t, err := strconv.ParseUint(b, 16, strconv.IntSize)
	if err != nil {
		return 0, 0
	}
	return uintptr(f), uintptr(t)
}
