// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package lite

import (
	"errors"
	"time"
)

// Watch is for systems where files can be mapped into memory.
type Watch struct{}

// OpenWatch returns an error.
func OpenWatch(string, time.Duration) (*Watch, error) {
	return &Watch{}, errors.New("sqlite: commits cannot be watched on this system")
}

// State returns no state.
func (*Watch) State() (State, bool) { return State{}, false }

// Close does nothing.
func (*Watch) Close() error { return nil }
