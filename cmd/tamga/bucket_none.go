//go:build !bucket

package main

import (
	"context"
	"errors"

	"tamga/internal/adapter/blob"
)

// bucket refuses: this program was built without.
func (h *house) bucket(context.Context) (blob.Place, error) {
	return nil, errors.New("bucket.endpoint: this program was built without buckets")
}
