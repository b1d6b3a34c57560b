// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"io"
	"reflect"
)

// Bytes is a body as it is, with any Content-Type. It is held in memory, so its route
// should set a small limit with [Route.AtMost].
type Bytes []byte

func bindWhole(in *input, v reflect.Value) error {
	b, err := io.ReadAll(in.body)
	if err != nil {
		return err
	}
	v.SetBytes(b)
	return nil
}
