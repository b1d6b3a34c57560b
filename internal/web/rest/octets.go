package rest

import (
	"io"
	"reflect"
)

// Octets is a body taken as it is, whatever its Content-Type says. It is held in
// memory: a route that has one should set a small limit with [Route.AtMost].
type Octets []byte

func bindOctets(in *input, v reflect.Value) error {
	b, err := io.ReadAll(in.body)
	if err != nil {
		return err
	}
	v.SetBytes(b)
	return nil
}
