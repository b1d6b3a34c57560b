// SPDX-License-Identifier: Apache-2.0

package cades

import (
	"encoding/binary"
	"errors"
	"math"

	"golang.org/x/crypto/cryptobyte"

	"tamga/sig"
)

// stateForm is the form of state. Versions 1 and 2 were JSON. Version 1 was for plain
// signatures only and had no fields from Kind on. Version 3 is binary and big-endian: the
// byte 3, a byte of flags, the size in eight bytes, and the other fields, each after its
// length in four bytes. The reason is speed: the state is read and written for every
// signature, and JSON took a tenth of the time of a signature.
var stateForm = sig.StateForm{What: "a signed message", First: 1, Version: 3}

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
	Level    string   `json:"level,omitempty"`    // empty means levelBES
	Address  string   `json:"address,omitempty"`  // of the time-stamp service
}

// marshal writes the state in the form of stateForm.Version.
func (s *state) marshal() []byte {
	var flags byte
	for i, set := range []bool{s.Hash, s.Detached, s.Chain} {
		if set {
			flags |= 1 << i
		}
	}
	b := make([]byte, 0, 128+len(s.Attributes)+len(s.Digest)+len(s.Certificate)+len(s.Message)+len(s.Address))
	b = binary.BigEndian.AppendUint64(append(b, byte(stateForm.Version), flags), uint64(s.Size))
	for _, field := range [][]byte{s.Attributes, s.Digest, s.Certificate, s.Message} {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(field))), field...)
	}
	for _, field := range []string{s.Kind, s.Level, s.Address} {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(field))), field...)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(s.Position)))
	for _, n := range s.Position {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	return b
}

var errUnreadable = &sig.ErrState{Text: "cannot be read"}

// parseState reads a state of any version.
func parseState(b []byte) (*state, error) {
	st := new(state)
	switch {
	case len(b) > 0 && b[0] == '{':
		if err := sig.OpenState(stateForm, b, st); err != nil {
			return nil, err
		}
		switch st.Version {
		case 1:
			st.Kind, st.Level = kindSign, levelBES
		case 3:
			return nil, errUnreadable // version 3 is not JSON
		}
		return st, nil
	case len(b) > 0:
		if err := stateForm.Check(int(b[0])); err != nil {
			return nil, err
		}
	}
	if err := st.unmarshal(b); err != nil {
		return nil, errUnreadable
	}
	return st, nil
}

// word returns a text without allocating memory if it is one of the usual ones.
func word(b []byte) string {
	for _, w := range [...]string{kindSign, levelBES, kindCosign, kindCountersign, levelT, levelXLT1} {
		if string(b) == w {
			return w
		}
	}
	return string(b)
}

// unmarshal is the inverse of marshal.
func (s *state) unmarshal(b []byte) error {
	in := cryptobyte.String(b)
	var version, flags uint8
	var size uint64
	if !in.ReadUint8(&version) || int(version) != stateForm.Version || !in.ReadUint8(&flags) || flags > 7 || !in.ReadUint64(&size) || size > math.MaxInt64 {
		return errors.New("malformed")
	}
	s.Version, s.Size = int(version), int64(size)
	s.Hash, s.Detached, s.Chain = flags&1 != 0, flags&2 != 0, flags&4 != 0
	var kind, level, address []byte
	for _, field := range []*[]byte{&s.Attributes, &s.Digest, &s.Certificate, &s.Message, &kind, &level, &address} {
		var n uint32
		if !in.ReadUint32(&n) || uint64(n) > uint64(len(in)) || !in.ReadBytes(field, int(n)) {
			return errors.New("malformed")
		}
	}
	s.Kind, s.Level, s.Address = word(kind), word(level), string(address)
	var n uint32
	if !in.ReadUint32(&n) || uint64(n)*4 != uint64(len(in)) {
		return errors.New("malformed")
	}
	for range n {
		var place uint32
		if !in.ReadUint32(&place) || place > math.MaxInt32 {
			return errors.New("malformed")
		}
		s.Position = append(s.Position, int(place))
	}
	return nil
}
