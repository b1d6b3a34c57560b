// SPDX-License-Identifier: Apache-2.0

package asic

import (
	"context"

	"tamga/sig"
)

// Read implements sig.Format.
func (*Format) Read(p sig.Params) *sig.Request {
	q := p.Request()
	return q
}

// Prepare implements sig.Format.
func (f *Format) Prepare(ctx context.Context, job *sig.Job) (*sig.Prepared, error) {
	return nil, unfit(nil, "cannot be signed as a container yet")
}

// Finish implements sig.Format.
func (f *Format) Finish(ctx context.Context, job *sig.Job, state, signature []byte) (sig.Result, error) {
	return nil, unfit(nil, "cannot be signed as a container yet")
}
