// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"tamga/internal/domain/fault"
	"tamga/pki/chain"
	"tamga/sig"
	"tamga/sig/budget"
)

// request is the type and the parameters of an order after the check by the policy of the
// installation.
type request struct {
	name    string // of the type, as the specification writes it
	format  sig.Format
	params  sig.Params   // as received
	read    *sig.Request // the same, read
	address string       // of the time-stamp service to use; empty if none is needed
	one     bool         // all documents become files of one container (Container=one)
}

// containers are the values of the parameter Container: a signature of its own for each document, or one container of all.
var containers = []sig.Choice{{Name: "each"}, {Name: "one"}}

// request finds the format of a type and checks type and parameters with the policy.
func (s *Service) request(ctx context.Context, signatureType string, params map[string]string) (*request, error) {
	name, format, err := s.format(signatureType)
	if err != nil {
		return nil, err
	}
	t := &request{name: name, format: format, params: params, read: format.Read(params)}
	if err := t.read.Err(); err != nil {
		return nil, translate(err)
	}
	r := sig.Params(params).Reader()
	if t.one = r.Enum("Container", containers, "each") == "one"; t.one && !t.read.Several {
		r.Fault("Container", "is one, but a signature of this type and these parameters covers one document; Type ASiC with ASiCType=E expected")
	}
	if err := r.Err(); err != nil {
		return nil, translate(err)
	}
	if err := s.Policy.PermitType(name, t.read.OverHash); err != nil {
		return nil, err
	}
	// The policy decides about the address, even a missing one. Formats refuse a missing
	// one too, for programs without a policy.
	if s.Formats.Stamped(t.read.Reader()) {
		by := t.read.Stamping
		if t.address, err = s.Policy.TSPAddress(ctx, by.Address, by.Given); err != nil {
			return nil, wrongAddress(err)
		}
	}
	return t, nil
}

// with returns the request with other parameters, such as secrets that are not stored.
func (t request) with(params sig.Params) *request {
	t.params, t.read = params, t.format.Read(params)
	return &t
}

// decided returns the parameters with the address of the time-stamp service to use. It is what a user
// confirms and what is stored.
func (t *request) decided() sig.Params {
	if t.address == "" {
		return t.params
	}
	return t.params.With("TSPAddress", t.address)
}

// wrongAddress turns every refusal of an address into a wrong parameter, because the
// specification has no other code for it.
func wrongAddress(err error) error {
	if f, ok := fault.As(err); ok {
		return fault.New(fault.InvalidSignatureParams, f.Message).With(err)
	}
	return err
}

// format returns the format for an order.
func (s *Service) format(signatureType string) (string, sig.Described, error) {
	if name, f := s.Formats.Named(signatureType); f != nil {
		return name, f, nil
	}
	return "", nil, fault.Newf(fault.InvalidSignatureParams, "Signature.Type %q is not served here: use one of %s",
		abbreviate(signatureType), strings.Join(s.Formats.Names(), ", "))
}

// typeName returns the documented name of a type of signature, or the text itself if the
// type is not served.
func (s *Service) typeName(text string) string {
	if name, f := s.Formats.Named(text); f != nil {
		return name
	}
	return text
}

// Form is a way to sign a file that is offered to people.
type Form = sig.Form

// MarkForm is a form of a visible mark.
type MarkForm = sig.MarkForm

// Level is how long a signature can be proven to be valid.
type Level = sig.Level

// The levels.
const (
	LevelBasic    = sig.LevelBasic
	LevelTime     = sig.LevelTime
	LevelLongTerm = sig.LevelLongTerm
	LevelArchive  = sig.LevelArchive
)

// Forms returns the ways to sign that the served formats offer to people.
func (s *Service) Forms() []Form { return s.Formats.Forms() }

// FormOf returns the form of some for a file by the end of its name, nil if there is none.
func FormOf(forms []Form, name string) *Form {
	extension := strings.TrimPrefix(strings.ToLower(path.Ext(name)), ".")
	for i := range forms {
		if slices.Contains(forms[i].Extensions, extension) {
			return &forms[i]
		}
	}
	if i := slices.IndexFunc(forms, func(f Form) bool { return f.Any }); i >= 0 {
		return &forms[i]
	}
	return nil
}

// Parameter is the form of a parameter in a request.
type Parameter struct {
	// Object means that the value may be a JSON object.
	Object bool
	// Long is the largest size of the value in bytes as decoded Base64, if it may be
	// longer than ordinary texts; otherwise 0.
	Long int64
}

// Parameter returns the form of a parameter by its name in any letter case. The zero
// Parameter is a short text.
func (s *Service) Parameter(name string) Parameter {
	if strings.EqualFold(strings.TrimSpace(name), paramPower) {
		return Parameter{Long: maxPower}
	}
	p := s.Formats.Param(name)
	return Parameter{Object: p.Kind == sig.Object, Long: p.Long}
}

// separate divides parameters into those that may be stored and the secrets. Secrets are
// used and never stored: not between two steps, not in the audit log. If a second step
// needs one, the client must send it again.
func (s *Service) separate(params map[string]string) (kept, secret map[string]string) {
	kept, secret = make(map[string]string, len(params)), map[string]string{}
	for key, value := range params {
		if s.Formats.Param(key).Secret {
			secret[key] = value
		} else {
			kept[key] = value
		}
	}
	return kept, secret
}

// busyFor is when a document that found no memory may be sent again.
const busyFor = 5 * time.Second

// translate converts the sentinel errors of the signature formats into faults. No other
// function does.
func translate(err error) error {
	var params *sig.ErrParams
	var document *sig.ErrDocument
	var evidence *sig.ErrEvidence
	var room *sig.ErrRoom
	switch {
	case errors.As(err, &params):
		return fault.New(fault.InvalidSignatureParams, params.Error()).With(err)
	case errors.As(err, &document) && document.OtherKind:
		// The specification uses this code if a document does not fit the type.
		return fault.New(fault.Failed, document.Error()).With(err)
	case errors.As(err, &document):
		return fault.New(fault.InvalidContent, document.Error()).With(err)
	case errors.As(err, &evidence):
		// The specification has one code for errors that the client did not cause.
		return fault.New(fault.Failed, evidence.What+": "+evidence.Text).With(err)
	case errors.As(err, &room):
		// One step increases the space and signs again, so this is the second of two
		// steps.
		return fault.New(fault.Failed, "the time stamp and the certificates around it are larger than the room kept for them in the document; prepare it again").With(err)
	case errors.Is(err, budget.ErrBusy):
		return fault.New(fault.Unavailable, err.Error()).Until(busyFor).With(err)
	case errors.Is(err, chain.ErrRevoked):
		return fault.New(fault.InvalidCertificate, err.Error()).With(err)
	}
	return err
}

// OtherKind reports whether err refuses a document that does not fit the type of the signature. The
// specification has one code for this and for what the client did not cause.
func OtherKind(err error) bool {
	document, is := errors.AsType[*sig.ErrDocument](err)
	return is && document.OtherKind
}

// abbreviate truncates a client's text for an error message.
func abbreviate(s string) string {
	const most = 40
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "..."
	}
	return s
}
