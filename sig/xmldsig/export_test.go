// SPDX-License-Identifier: Apache-2.0

package xmldsig

import (
	"encoding/json"
	"testing"

	"tamga/sig"
)

// OutsideState returns a prepared state whose last section ends after the document.
func OutsideState(prepared []byte) ([]byte, error) {
	var st state
	if err := sig.OpenState(stateForm, new(sig.Job), prepared, &st); err != nil {
		return nil, err
	}
	st.Pieces[len(st.Pieces)-1].To = st.Size + 1
	return sig.MarshalState(&st, 0), nil
}

// JSONState returns a prepared state as version 1 had it.
func JSONState(prepared []byte) ([]byte, error) {
	var st state
	if err := sig.OpenState(stateForm, new(sig.Job), prepared, &st); err != nil {
		return nil, err
	}
	st.Version = 1
	return json.Marshal(st)
}

// SetPieces sets the size of the pieces of VerifyRegister during a test.
func SetPieces(t testing.TB, size int) {
	before := pieceSize
	t.Cleanup(func() { pieceSize = before })
	pieceSize = size
}
