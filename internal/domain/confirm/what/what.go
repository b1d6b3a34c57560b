// SPDX-License-Identifier: Apache-2.0

// Package what makes the digest of what a user confirms: action, certificate, key, type
// and parameters of a signature, and each document. Begin with Fields and Fields.Sum.
// docs/confirmation.md has the encoding byte by byte.
//
// The package also renders the text that the user sees (Fields.Shown) from the same
// fields. It stores nothing. Its types cannot carry PINs and passwords: see NewValues.
package what

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"tamga/gost/streebog"
)

// Domain is the first field of the encoding.
const Domain = "tamga confirmation"

// Versions of the encoding, its second field. A change of the encoding needs another version.
const (
	OneWay      = 1 // all documents are signed in one way, or none is
	SeveralWays = 2 // Fields.Ways says how
	Latest      = SeveralWays
)

// Size is the length of a digest in bytes.
const Size = streebog.Size256

// Digest is the Streebog-256 digest of Fields.
type Digest [Size]byte

// String returns the digest in hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Group returns the first four bytes in hexadecimal. People compare them.
func (d Digest) Group() string { return hex.EncodeToString(d[:4]) }

// CheckNumber returns the check number that people compare, "" for a sign-in. All sign-ins of a user
// to an application would have the same one, those of a thief of the password, too.
func CheckNumber(action string, d Digest) string {
	if action == SignIn {
		return ""
	}
	return d.Group()
}

// Actions that are not actions of policies. The others have the names of package policy.
const (
	SignIn = "SignIn" // the second step of a sign-in
	Free   = "Free"   // a scope text of the client; the argument "scope" has it
	// ChangeAccount is a change of what the user signs in or confirms with, which an operator
	// asked for and a delay holds.
	ChangeAccount = "ChangeAccount"
)

// Hex is bytes whose JSON form is hexadecimal.
type Hex []byte

// MarshalText returns the hexadecimal form.
func (h Hex) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(h)), nil }

// UnmarshalText is the inverse of MarshalText.
func (h *Hex) UnmarshalText(text []byte) (err error) {
	*h, err = hex.DecodeString(string(text))
	return err
}

// Fields are what a user confirms. A field that does not apply is empty.
type Fields struct {
	Action        string     `json:"action"`                   // name of one action of policies, SignIn or Free
	Certificate   Hex        `json:"certificate,omitempty"`    // Streebog-256 of the certificate
	PublicKey     Hex        `json:"public_key,omitempty"`     // Streebog-256 of its SubjectPublicKeyInfo
	SignatureType string     `json:"signature_type,omitempty"` // name of the interface, such as CAdES
	Parameters    Values     `json:"parameters,omitzero"`      // of the signature
	Ways          []Way      `json:"ways,omitempty"`           // instead of SignatureType and Parameters, if there are several
	Arguments     Values     `json:"arguments,omitzero"`       // of an action without documents
	Documents     []Document `json:"documents,omitempty"`      // in the order of signing
}

// Way is how some of the documents are signed.
type Way struct {
	SignatureType string `json:"signature_type"`
	Parameters    Values `json:"parameters,omitzero"`
}

// Version returns the version of the encoding of f.
func (f *Fields) Version() int {
	if len(f.Ways) == 0 {
		return OneWay
	}
	return SeveralWays
}

// InWays returns how the documents are signed, with the indexes of the documents of each way. One way has
// SignatureType and Parameters. The fields must be valid.
func (f *Fields) InWays() (ways []Way, documents [][]int) {
	if ways = f.Ways; len(ways) == 0 {
		ways = []Way{{f.SignatureType, f.Parameters}}
	}
	documents = make([][]int, len(ways))
	for i := range f.Documents {
		way := f.Documents[i].Way
		documents[way] = append(documents[way], i)
	}
	return ways, documents
}

// Document is one document to sign.
type Document struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	Digest Hex    `json:"digest"` // Streebog-256 of the document, or Hash itself
	// Hash names the algorithm of a hash that the client sent instead of the document. Then
	// Digest is that hash and the service has not seen the document. "": the document is known.
	Hash     string    `json:"hash,omitempty"`
	Original *Original `json:"original,omitempty"` // of a signed message without its content
	Way      int       `json:"way,omitempty"`      // index in Fields.Ways
}

// Original is the content of a signed message that is signed again.
type Original struct {
	Size   int64 `json:"size"`
	Digest Hex   `json:"digest"` // Streebog-256
}

// Limits of Fields. Names and types are counted in bytes.
const (
	MaxDocuments = 10_000
	MaxWays      = 32
	MaxName      = 1024
	maxWord      = 64
)

// Check reports the first field that is invalid. Texts must be UTF-8, since JSON holds
// nothing else.
func (f *Fields) Check() error {
	switch {
	case f.Action == "" || len(f.Action) > maxWord:
		return fmt.Errorf("what: action: want 1 to %d bytes", maxWord)
	case len(f.Certificate) != 0 && len(f.Certificate) != Size:
		return fmt.Errorf("what: certificate: want a digest of %d bytes or none", Size)
	case len(f.PublicKey) != 0 && len(f.PublicKey) != Size:
		return fmt.Errorf("what: public key: want a digest of %d bytes or none", Size)
	case len(f.SignatureType) > maxWord:
		return fmt.Errorf("what: signature type: want at most %d bytes", maxWord)
	case len(f.Documents) > MaxDocuments:
		return fmt.Errorf("what: %d documents: want at most %d", len(f.Documents), MaxDocuments)
	}
	if !utf8.ValidString(f.Action) || !utf8.ValidString(f.SignatureType) {
		return errors.New("what: action and signature type: want UTF-8")
	}
	if err := f.checkWays(); err != nil {
		return err
	}
	for i, d := range f.Documents {
		switch {
		case len(d.Name) > MaxName || !utf8.ValidString(d.Name) || !utf8.ValidString(d.Hash):
			return fmt.Errorf("what: document %d: name and hash: want UTF-8, a name of at most %d bytes", i, MaxName)
		case d.Size < 0 || d.Original != nil && d.Original.Size < 0:
			return fmt.Errorf("what: document %d: size: want 0 or more", i)
		case d.Hash == "" && len(d.Digest) != Size, d.Hash != "" && (len(d.Digest) == 0 || len(d.Digest) > 64 || len(d.Hash) > maxWord):
			return fmt.Errorf("what: document %d: digest: want %d bytes, or 1 to 64 of a hash of the client", i, Size)
		case d.Original != nil && len(d.Original.Digest) != Size:
			return fmt.Errorf("what: document %d: original: want a digest of %d bytes", i, Size)
		}
	}
	return nil
}

// checkWays checks Ways, and that the documents name them. Their parameters have the limit of one way together.
func (f *Fields) checkWays() error {
	used, values := make([]bool, max(len(f.Ways), 1)), 0
	for i := range f.Documents {
		way := f.Documents[i].Way
		if way < 0 || way >= len(used) {
			return fmt.Errorf("what: document %d: way %d: want an index of %d ways", i, way, len(f.Ways))
		}
		used[way] = true
	}
	switch {
	case len(f.Ways) == 0:
		return nil
	case len(f.Ways) == 1 || len(f.Ways) > MaxWays:
		return fmt.Errorf("what: %d ways: want none, or 2 to %d", len(f.Ways), MaxWays)
	case f.SignatureType != "" || !f.Parameters.IsZero():
		return errors.New("what: several ways have the signature types and parameters, so the fields have none beside them")
	}
	for i := range f.Ways {
		w := &f.Ways[i]
		if values += len(w.Parameters.list); !used[i] {
			return fmt.Errorf("what: way %d: no document is signed in this way", i)
		}
		if w.SignatureType == "" || len(w.SignatureType) > maxWord || !utf8.ValidString(w.SignatureType) {
			return fmt.Errorf("what: way %d: signature type: want UTF-8 of 1 to %d bytes", i, maxWord)
		}
	}
	if values > MaxValues {
		return fmt.Errorf("what: %d parameters of %d ways: want at most %d", values, len(f.Ways), MaxValues)
	}
	return nil
}

// Sum returns the digest of valid fields.
func (f *Fields) Sum() (Digest, error) {
	text, err := f.Encode()
	if err != nil {
		return Digest{}, err
	}
	return streebog.Sum256(text), nil
}

// Encode returns the bytes that Sum digests.
func (f *Fields) Encode() ([]byte, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	var e encoder
	e.text(Domain)
	e.bytes([]byte{byte(f.Version())})
	e.text(f.Action)
	e.bytes(f.Certificate)
	e.bytes(f.PublicKey)
	if len(f.Ways) == 0 {
		e.text(f.SignatureType)
		e.values(f.Parameters)
	} else {
		e.number(len(f.Ways))
		for _, w := range f.Ways {
			e.text(w.SignatureType)
			e.values(w.Parameters)
		}
	}
	e.values(f.Arguments)
	e.number(len(f.Documents))
	for i, d := range f.Documents {
		e.number(i)
		if len(f.Ways) > 0 {
			e.number(d.Way)
		}
		e.text(d.Name)
		e.size(d.Size)
		e.bytes(d.Digest)
		e.text(d.Hash)
		if d.Original == nil {
			e.bytes(nil)
			e.bytes(nil)
			continue
		}
		e.size(d.Original.Size)
		e.bytes(d.Original.Digest)
	}
	return e.Bytes(), nil
}

// encoder writes fields, each preceded by its length in four bytes, so that different
// fields never give the same bytes.
type encoder struct{ bytes.Buffer }

func (e *encoder) bytes(b []byte) {
	var length [4]byte
	binary.BigEndian.PutUint32(length[:], uint32(len(b)))
	e.Write(length[:])
	e.Write(b)
}

func (e *encoder) text(s string)   { e.bytes([]byte(s)) }
func (e *encoder) number(n int)    { e.bytes(binary.BigEndian.AppendUint32(nil, uint32(n))) }
func (e *encoder) size(size int64) { e.bytes(binary.BigEndian.AppendUint64(nil, uint64(size))) }

func (e *encoder) values(v Values) {
	e.number(len(v.list))
	for _, one := range v.list {
		e.text(one.Name)
		if one.Digest != nil {
			e.bytes([]byte{formDigest})
			e.bytes(one.Digest)
			continue
		}
		e.bytes([]byte{formValue})
		e.text(one.Value)
	}
}

// Forms of a value.
const (
	formValue  = 0
	formDigest = 1
)

// Limits of Values. A longer value is replaced by its digest, so that stored fields stay
// small although some parameters are pictures.
const (
	MaxValues    = 256
	MaxValue     = 1024
	maxValueName = 128
)

// Values are named values without secrets. They can only be made by NewValues and from
// the JSON of Values.
type Values struct{ list []Value }

// Value is a member of Values.
type Value struct {
	Name   string `json:"name"`            // in lower case
	Value  string `json:"value,omitempty"` // "" if Digest is set
	Digest Hex    `json:"digest,omitempty"`
}

// ErrSecret means that values have a name that only secrets have.
var ErrSecret = errors.New("what: the values contain a secret, which is never confirmed: store it sealed beside the record")

// IsSecretName reports whether a name is one that only secrets have.
func IsSecretName(name string) bool {
	name = strings.ToLower(name)
	for _, word := range []string{"pincode", "password", "passphrase", "secret"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return strings.HasSuffix(name, "pin") // of "NewPin", and not of "Stamping"
}

// lower returns a name with the letters A to Z in lower case.
func lower(name string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, name)
}

// NewValues copies a map of values, ordered by their names in lower case. The error is
// ErrSecret for a name that secret or IsSecretName reports. secret is the rule of the
// caller, such as the secret parameters of a format, and must not be nil. Other errors:
// names that differ only in letter case, too many values.
func NewValues(values map[string]string, secret func(name string) bool) (Values, error) {
	if secret == nil {
		return Values{}, errors.New("what: values without a rule for secrets")
	}
	list := make([]Value, 0, len(values))
	for name, value := range values {
		if !utf8.ValidString(name) {
			return Values{}, errors.New("what: the name of a value is not UTF-8")
		}
		name = strings.TrimSpace(name)
		if secret(name) || IsSecretName(name) {
			return Values{}, ErrSecret
		}
		one := Value{Name: lower(name), Value: value}
		if len(value) > MaxValue || !utf8.ValidString(value) { // JSON holds only UTF-8
			sum := streebog.Sum256([]byte(value))
			one.Value, one.Digest = "", sum[:]
		}
		list = append(list, one)
	}
	return sorted(list)
}

// Arguments is NewValues for values that the program itself names.
func Arguments(values map[string]string) (Values, error) {
	return NewValues(values, func(string) bool { return false })
}

// List returns the values in their order.
func (v Values) List() []Value { return v.list }

// IsZero reports whether there are no values.
func (v Values) IsZero() bool { return len(v.list) == 0 }

// MarshalJSON implements json.Marshaler.
func (v Values) MarshalJSON() ([]byte, error) { return json.Marshal(v.list) }

// UnmarshalJSON implements json.Unmarshaler. It refuses what NewValues refuses.
func (v *Values) UnmarshalJSON(text []byte) error {
	var list []Value
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	for _, one := range list {
		switch {
		case IsSecretName(one.Name):
			return ErrSecret
		case one.Name != lower(one.Name):
			return fmt.Errorf("what: value %.64q: want a name in lower case", one.Name)
		case len(one.Value) > MaxValue, one.Digest != nil && (len(one.Digest) != Size || one.Value != ""):
			return fmt.Errorf("what: value %.64q: want a value of at most %d bytes or a digest of %d", one.Name, MaxValue, Size)
		}
	}
	var err error
	*v, err = sorted(list)
	return err
}

// sorted returns the values in the order of their names.
func sorted(list []Value) (Values, error) {
	if len(list) > MaxValues {
		return Values{}, fmt.Errorf("what: %d values: want at most %d", len(list), MaxValues)
	}
	slices.SortFunc(list, func(a, b Value) int { return strings.Compare(a.Name, b.Name) })
	for i, one := range list {
		switch {
		case one.Name == "" || len(one.Name) > maxValueName:
			return Values{}, fmt.Errorf("what: the name of a value: want 1 to %d bytes", maxValueName)
		case i > 0 && list[i-1].Name == one.Name:
			return Values{}, fmt.Errorf("what: value %.64q is given twice", one.Name)
		}
	}
	return Values{list}, nil
}
