// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"errors"
	"testing"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/operation"
)

// A document that is gone when the container is prepared is refused with its own fault.
func TestContainerOfGoneDocument(t *testing.T) {
	gone := fault.New(fault.NotFound, "the document is gone")
	for name, c := range map[string]struct {
		item Item
		want string
	}{
		"gone":  {Item{Err: gone}, fault.NotFound},
		"empty": {Item{}, fault.ContentRequired},
	} {
		job, err := (&Service{}).containerJob(&request{}, &signer{}, make([]operation.Document, 1), []Item{c.item})
		var f *fault.Error
		if job != nil || !errors.As(err, &f) || f.Code != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
