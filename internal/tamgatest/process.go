// SPDX-License-Identifier: Apache-2.0

package tamgatest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ProcessorTime returns the processor time of a server in a process of its own, that of the kernel
// on its behalf included, in steps of 10 ms.
func (s *Server) ProcessorTime() time.Duration {
	s.T.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.Process().Pid))
	if err != nil {
		s.T.Skipf("processor time cannot be read here: %v", err)
	}
	_, rest, _ := strings.Cut(string(data), ") ") // the name may hold spaces
	fields := strings.Fields(rest)
	var ticks int64
	for _, f := range fields[11:13] { // utime and stime, fields 14 and 15
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			s.T.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
