package signing

import (
	"context"
	"errors"
	"maps"
	"slices"
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
	if needsTimeStamp(r) {
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

// formatNamed finds the format for a Signature.Type, letter case ignored; nil: there
// is none of that name.
func formatNamed(formats map[string]sig.Format, signatureType string) (name string, f sig.Format) {
	for name, f := range formats {
		if strings.EqualFold(name, signatureType) {
			return name, f
		}
	}
	return "", nil
}

// format finds the format for an order.
func (s *Service) format(signatureType string) (string, sig.Format, error) {
	if name, f := formatNamed(s.Formats, signatureType); f != nil {
		return name, f, nil
	}
	return "", nil, fault.Newf(fault.InvalidSignatureParams, "Signature.Type %q is not served here: use one of %s",
		abbreviate(signatureType), strings.Join(slices.Sorted(maps.Keys(s.Formats)), ", "))
}

// types are the names behind the numbers of Signature.Type.
var types = map[string]string{
	"0": "XMLDSig",
	"1": "GOST3410",
	"2": "CAdES",
	"3": "PDF",
	"4": "MSOffice",
	"5": "CMS",
}

// TypeName is the name of a type of signature that may be given by its number. A
// name comes back as it is: Formats say which ones are served.
func TypeName(text string) string {
	if name, ok := types[text]; ok {
		return name
	}
	return text
}

// secrets are parameters that are used and never kept: not between two steps, not in
// the journal. A second step that needs one gets it from the client again.
var secrets = []string{"PDFPassword"}

// apart divides parameters into those that may be kept and the secrets.
func apart(params map[string]string) (kept, secret map[string]string) {
	kept, secret = make(map[string]string, len(params)), map[string]string{}
	for key, value := range params {
		if slices.ContainsFunc(secrets, func(s string) bool { return strings.EqualFold(s, strings.TrimSpace(key)) }) {
			secret[key] = value
		} else {
			kept[key] = value
		}
	}
	return kept, secret
}

// stamped are the values of parameters that ask for a time stamp, by name and by
// number. Their formats know more of them; this much has to be known before one
// of them opens a connection.
var stamped = map[string][]string{
	"CADESType": {"T", "2", "XLT1", "1"},
	"XAdESType": {"T", "2"},
	"PDFFormat": {"CAdEST", "0", "CAdES", "1"},
}

func needsTimeStamp(r *sig.ParamReader) bool {
	for key, values := range stamped {
		asked := r.String(key)
		if slices.ContainsFunc(values, func(v string) bool { return strings.EqualFold(v, asked) }) {
			return true
		}
	}
	return false
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
