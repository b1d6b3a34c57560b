// SPDX-License-Identifier: Apache-2.0

package ooxml

import (
	"encoding/json"

	"tamga/sig"
)

// Change is an entry that a prepared state adds or replaces.
type Change = change

// EditState changes a prepared state.
func EditState(prepared []byte, edit func(part *string, changes *[]Change)) ([]byte, error) {
	var st state
	if err := sig.OpenState(stateForm, new(sig.Job), prepared, &st); err != nil {
		return nil, err
	}
	edit(&st.Part, &st.Changes)
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
