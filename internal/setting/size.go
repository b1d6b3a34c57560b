// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"fmt"
	"strconv"
	"strings"
)

// Size is a number of bytes, written as 1048576, 1MiB or 2GiB.
type Size int64

var sizeUnits = []struct {
	name string
	size Size
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// UnmarshalText reads a size with or without a unit.
func (s *Size) UnmarshalText(text []byte) error {
	number, unit := string(text), Size(1)
	for _, u := range sizeUnits {
		if n, ok := strings.CutSuffix(number, u.name); ok {
			number, unit = strings.TrimSpace(n), u.size
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || Size(n) > (1<<62)/unit {
		return fmt.Errorf("%q is not a size: want bytes or a number with KiB, MiB or GiB", text)
	}
	*s = Size(n) * unit
	return nil
}

// MarshalText writes a size with the largest unit that keeps it whole.
func (s Size) MarshalText() ([]byte, error) {
	for _, u := range sizeUnits {
		if s > 0 && s%u.size == 0 {
			return fmt.Appendf(nil, "%d%s", int64(s/u.size), u.name), nil
		}
	}
	return strconv.AppendInt(nil, int64(s), 10), nil
}
