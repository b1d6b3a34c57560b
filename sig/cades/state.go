// SPDX-License-Identifier: Apache-2.0

package cades

import (
	"cmp"

	"tamga/sig"
)

// stateForm is the form of state. Version 1 was for plain signatures only and had no fields
// from Kind on.
var stateForm = sig.StateForm{What: "a signed message", First: 1, JSON: 2, Version: 3}

// state is all that Finish needs in addition to the job's document and certificate.
type state struct {
	sig.StateHeader
	Attributes []byte `json:"attributes"` // signed attributes as they were digested, tag 0x31
	Digest     []byte `json:"digest"`     // of what is signed, by the suite's hash
	Hash       bool   `json:"hash"`       // the document of the job is that digest itself
	Detached   bool   `json:"detached"`   // the message does not contain the document
	Chain      bool   `json:"chain"`      // issuers' certificates are included

	Kind     string   `json:"kind,omitempty"`     // empty means kindSign
	Message  []byte   `json:"message,omitempty"`  // fingerprint of the message to extend
	Position position `json:"position,omitempty"` // of the signature to countersign
	Level    string   `json:"level,omitempty"`    // CADESType; empty means BES
	Address  string   `json:"address,omitempty"`  // of the time-stamp service
}

// Fields implements sig.State.
func (s *state) Fields(f *sig.Fields) {
	f.Flags(&s.Hash, &s.Detached, &s.Chain)
	sig.Number(f, &s.Size)
	f.Bytes(&s.Attributes)
	f.Bytes(&s.Digest)
	f.Bytes(&s.Certificate)
	f.Bytes(&s.Message)
	f.Text(&s.Kind, kindSign, kindCosign, kindCountersign)
	f.Text(&s.Level, typeBES, typeT, typeXLT1, typeA)
	f.Text(&s.Address)
	sig.List(f, (*[]int)(&s.Position), f.Count)
}

// marshal writes the state in the form of stateForm.Version.
func (s *state) marshal() []byte {
	return sig.MarshalState(s, 128+len(s.Attributes)+len(s.Digest)+len(s.Certificate)+len(s.Message)+len(s.Address))
}

// parseState reads the state of a job in any version.
func parseState(job *sig.Job, b []byte) (*state, error) {
	st := new(state)
	if err := sig.OpenState(stateForm, job, b, st); err != nil {
		return nil, err
	}
	if st.Version == 1 {
		st.Kind, st.Level = kindSign, typeBES
	}
	st.Level = cmp.Or(st.Level, typeBES)
	if _, ok := levelOf(st.Level); !ok {
		return nil, &sig.ErrState{Text: "damaged"}
	}
	return st, nil
}
