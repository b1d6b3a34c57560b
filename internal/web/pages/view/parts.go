// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"runtime/debug"

	"golang.org/x/sync/errgroup"
)

// partsAtOnce is the number of parts of one page that are read at the same time. Each has a
// connection to the database while its question is under way.
const partsAtOnce = 4

// Concurrently reads parts of a page at the same time, since each waits for answers of the database.
// It returns the first error. Parts share the context of the request, so they may not set what the
// audit entry of the request says.
func Concurrently(parts ...func() error) error {
	var g errgroup.Group
	g.SetLimit(partsAtOnce)
	for _, part := range parts {
		g.Go(func() (err error) {
			defer func() { // a panic of another goroutine would end the process
				if p := recover(); p != nil {
					err = fmt.Errorf("pages: a part panicked: %v\n%s", p, debug.Stack())
				}
			}()
			return part()
		})
	}
	return g.Wait()
}
