package signapi

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/signing"
	"tamga/internal/web/rest"
)

// signRequest is the signing request of the specification.
type signRequest struct {
	Body struct {
		Content   rest.Blob
		Name      rest.Unread // allowed and ignored
		Documents rest.Unread // the batch form
		Signature *signature
	}
}

type signature struct {
	Type          rest.Text // a name or a number
	Parameters    map[string]rest.Blob
	CertificateID rest.Text `json:"CertificateId"`
	PinCode       rest.Text
}

// types are the names behind the numbers of Signature.Type. A name is passed on
// as it is: the signer knows which ones it serves.
var types = map[rest.Text]string{
	"0": "XMLDSig",
	"1": "GOST3410",
	"2": "CAdES",
	"3": "PDF",
	"4": "MSOffice",
	"5": "CMS",
}

// original is the one parameter that is a document.
const original = "OriginalDocument"

func (a *API) sign(ctx context.Context, r signRequest) (rest.Stream, error) {
	body := &r.Body
	switch {
	case body.Documents.Present && !body.Documents.Empty:
		return rest.Stream{}, fault.New(fault.InvalidParameters, "Documents: batches are not supported by this release: send each document as Content of a request of its own")
	case body.Content.Empty():
		return rest.Stream{}, fault.New(fault.ContentRequired, "Content is missing or empty: send the document, hash or message as Base64")
	case body.Signature == nil:
		return rest.Stream{}, fault.New(fault.InvalidSignatureParams, "Signature is missing: say at least its Type")
	}
	s := body.Signature
	order := &signing.Order{
		Type:        string(s.Type),
		Certificate: string(s.CertificateID),
		PIN:         string(s.PinCode),
	}
	if name, ok := types[s.Type]; ok {
		order.Type = name
	}
	rest.Concerning(ctx, certificateObject(order.Certificate))
	var err error
	if order.Content, err = intake(body.Content); err != nil {
		return rest.Stream{}, err
	}
	if err := readParameters(order, s.Parameters); err != nil {
		return rest.Stream{}, err
	}
	result, err := a.signer.Sign(ctx, rest.Caller(ctx), order)
	if err != nil {
		return rest.Stream{}, err
	}
	return rest.Stream{Content: result}, nil
}

// intake opens a document of the request as what the surface gives room in.
func intake(b rest.Blob) (*signing.Intake, error) {
	sink, err := b.Open()
	if err != nil {
		return nil, err
	}
	in, ok := sink.(*signing.Intake)
	if !ok {
		return nil, fmt.Errorf("signapi: the surface gives documents as %T, not as *signing.Intake", sink)
	}
	return in, nil
}

// readParameters takes Signature.Parameters apart. Clients write keys in several
// letter cases and one with a space behind it, so a key may not occur twice up to
// these differences: which of the two would count?
func readParameters(order *signing.Order, parameters map[string]rest.Blob) error {
	order.Params = make(map[string]string, len(parameters))
	seen := make(map[string]bool, len(parameters))
	for _, key := range slices.Sorted(maps.Keys(parameters)) {
		value := parameters[key]
		if value.Absent() {
			continue
		}
		name := strings.TrimSpace(key)
		if folded := strings.ToLower(name); seen[folded] {
			return fault.Newf(fault.InvalidSignatureParams, "Signature.Parameters: %.64q is given twice, in different spellings", name)
		} else {
			seen[folded] = true
		}
		if strings.EqualFold(name, original) {
			// An empty one is sent along by some clients and means nothing.
			if value.Empty() {
				continue
			}
			in, err := intake(value)
			if err != nil {
				return err
			}
			order.Original = in
			continue
		}
		text, err := value.Text()
		if err != nil {
			if f, ok := fault.As(err); ok {
				return fault.New(fault.InvalidSignatureParams, f.Message)
			}
			return err
		}
		order.Params[name] = text
	}
	return nil
}

// certificateObject is the certificate as the journal names it. A client may
// send any text; only what can be a number is written down.
func certificateObject(identifier string) string {
	identifier = strings.TrimSpace(identifier)
	if identifier == "" || identifier == "0" {
		return "default certificate"
	}
	if len(identifier) > 19 || strings.Trim(identifier, "0123456789") != "" {
		return ""
	}
	return "certificate " + identifier
}
