package signing

import (
	"context"
	"errors"
	"maps"
	"strings"

	"tamga/internal/domain/fault"
	"tamga/pki/chain"
	"tamga/sig"
)

// terms are the type and the parameters of an order once the policy of the
// installation has looked at them.
type terms struct {
	name    string // of the type, as the specification writes it
	format  sig.Format
	params  sig.Params
	address string // TSPAddress in params, where the policy decided it; else ""
}

// tspAddress is the parameter with the address of a time-stamp service.
const tspAddress = "TSPAddress"

// terms finds the format of a type and asks the policy about type and parameters.
// The parameters it returns hold the address of the time-stamp service to use.
func (s *Service) terms(ctx context.Context, signatureType string, params map[string]string) (*terms, error) {
	name, format, err := s.format(signatureType)
	if err != nil {
		return nil, err
	}
	t := &terms{name: name, format: format, params: params}
	r := t.params.Reader()
	overHash := r.Bool("Hash", false) // policy needs it before a format reads them all
	if err := r.Err(); err != nil {
		return nil, translate(err)
	}
	if err := s.Policy.PermitType(name, overHash); err != nil {
		return nil, err
	}
	// The policy decides about the address, a missing one included. Formats refuse a missing one
	// too, for programs that have no policy.
	if s.Formats.Stamped(r) {
		address, err := s.Policy.TSPAddress(ctx, r.String(tspAddress), r.Has(tspAddress))
		if err != nil {
			return nil, wrongAddress(err)
		}
		t.stampBy(address)
	}
	return t, nil
}

// stampBy puts the address to use in the place of the one that was asked for.
func (t *terms) stampBy(address string) {
	t.params = maps.Clone(t.params)
	for key := range t.params {
		if strings.EqualFold(strings.TrimSpace(key), tspAddress) {
			delete(t.params, key)
		}
	}
	t.params[tspAddress], t.address = address, address
}

// wrongAddress makes every refusal of an address a wrong parameter: the
// specification knows no other code for it.
func wrongAddress(err error) error {
	if f, ok := fault.As(err); ok {
		return fault.New(fault.InvalidSignatureParams, f.Message).With(err)
	}
	return err
}

// format finds the format for an order.
func (s *Service) format(signatureType string) (string, sig.Described, error) {
	if name, f := s.Formats.Named(signatureType); f != nil {
		return name, f, nil
	}
	return "", nil, fault.Newf(fault.InvalidSignatureParams, "Signature.Type %q is not served here: use one of %s",
		abbreviate(signatureType), strings.Join(s.Formats.Names(), ", "))
}

// typeName returns the documented name of a type of signature, or the text itself when
// the type is not served.
func (s *Service) typeName(text string) string {
	if name, f := s.Formats.Named(text); f != nil {
		return name
	}
	return text
}

// Parameter is the form of a parameter in a request.
type Parameter struct {
	// Object reports that the value may be a JSON object.
	Object bool
	// Long is how many bytes the value may have as decoded Base64, where it may be longer
	// than ordinary texts; 0 otherwise.
	Long int64
}

// Parameter returns the form of a parameter by its name in any letter case. The zero
// Parameter is a short text.
func (s *Service) Parameter(name string) Parameter {
	p := s.Formats.Param(name)
	return Parameter{Object: p.Kind == sig.Object, Long: p.Long}
}

// apart divides parameters into those that may be kept and the secrets, which are used
// and never kept: not between two steps, not in the audit log. A second step that needs
// one gets it from the client again.
func (s *Service) apart(params map[string]string) (kept, secret map[string]string) {
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

// translate turns the sentinels of the signature formats into faults. It is the
// only place that does.
func translate(err error) error {
	var params *sig.ErrParams
	var document *sig.ErrDocument
	var evidence *sig.ErrEvidence
	var room *sig.ErrRoom
	switch {
	case errors.As(err, &params):
		return fault.New(fault.InvalidSignatureParams, params.Error()).With(err)
	case errors.As(err, &document) && document.OtherKind:
		// The specification answers a document that does not fit the type so.
		return fault.New(fault.Failed, document.Error()).With(err)
	case errors.As(err, &document):
		return fault.New(fault.InvalidContent, document.Error()).With(err)
	case errors.As(err, &evidence):
		// The specification has one code for what is no fault of the client.
		return fault.New(fault.Failed, evidence.What+": "+evidence.Text).With(err)
	case errors.As(err, &room):
		// One step makes room and signs again, so this is the second of two.
		return fault.New(fault.Failed, "the time stamp and the certificates around it are larger than the room kept for them in the document; prepare it again").With(err)
	case errors.Is(err, chain.ErrRevoked):
		return fault.New(fault.InvalidCertificate, err.Error()).With(err)
	}
	return err
}

// abbreviate keeps a client's text in an error message short.
func abbreviate(s string) string {
	const most = 40
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "..."
	}
	return s
}
