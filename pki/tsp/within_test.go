// SPDX-License-Identifier: Apache-2.0

package tsp_test

import (
	"errors"
	"testing"

	"tamga/pki/suite"
	"tamga/pki/tsp"
)

// TestTokenCharged: the memory for a token is charged, and a caller without memory gets its own error.
func TestTokenCharged(t *testing.T) {
	ca, tsa := newAuthority(t, suite.GOST2012x256)
	token := create(t, info(suite.Streebog256), tsa, tsa, ca)
	var held int64
	if _, err := tsp.ParseTokenWithin(token, func(n int64) error { held += n; return nil }); err != nil || held < 300 {
		t.Errorf("%d bytes were charged, %v", held, err)
	}
	full := errors.New("full")
	if _, err := tsp.ParseTokenWithin(token, func(int64) error { return full }); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
}
