// SPDX-License-Identifier: Apache-2.0

package power

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// State is the state of a power in a register.
type State int

// The states of a power.
const (
	StateUnknown   State = iota // the source does not know the power
	StateInForce                // registered, and not withdrawn
	StateWithdrawn              // withdrawn or refused by the register
)

// Status is what a source says of a power.
type Status struct {
	State State
	// At is when it was withdrawn, zero if the source does not say: then it counts as withdrawn at all times.
	At time.Time
	// Source names the source for people.
	Source string
}

// Statuses is a source of statuses, such as a register.
type Statuses interface {
	// Status returns the status of a power. An error means that it is not known now.
	Status(ctx context.Context, p *Power) (Status, error)
}

// Withdrawn is a list of withdrawn powers: times by number in lower case. A zero time means withdrawn at all times.
type Withdrawn map[string]time.Time

// maxWithdrawn limits a list of withdrawn powers, in lines.
const maxWithdrawn = 1_000_000

// ReadWithdrawn reads a list with a number in each line, and behind it a time in RFC 3339 or a date, from whose beginning in
// Moscow the power is withdrawn. Empty lines and those that begin with # are left out.
func ReadWithdrawn(r io.Reader) (Withdrawn, error) {
	list := Withdrawn{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(strings.TrimPrefix(lines.Text(), "\ufeff"))
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) > 2 || len(fields[0]) > maxNumber || n > maxWithdrawn {
			return nil, fmt.Errorf("list of withdrawn powers: line %d: a number, and a time or nothing behind it expected", n)
		}
		var at time.Time
		if len(fields) == 2 {
			var err error
			if at, err = time.Parse(time.RFC3339, fields[1]); err != nil {
				if at, err = time.ParseInLocation(time.DateOnly, fields[1], moscow); err != nil {
					return nil, fmt.Errorf("list of withdrawn powers: line %d: %q is no time; want 2025-12-31 or 2025-12-31T15:04:05+03:00", n, clip(fields[1]))
				}
			}
		}
		number := strings.ToLower(fields[0])
		if before, twice := list[number]; twice && earlier(before, at) {
			at = before // the earlier time counts
		}
		list[number] = at
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("list of withdrawn powers: %w", err)
	}
	return list, nil
}

// Status implements Statuses. A power that is not in the list is unknown, because only a register knows all.
func (w Withdrawn) Status(_ context.Context, p *Power) (Status, error) {
	at, found := w[p.Number]
	if !found {
		return Status{}, nil
	}
	return Status{StateWithdrawn, at, "the list of withdrawn powers"}, nil
}
