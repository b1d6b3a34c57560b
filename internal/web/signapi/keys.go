// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"context"
	"net/http"
	"strings"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/web/rest"
)

// keyAnswer is the answer of the calls on keys. A refusal has the same form, with IsError.
// The certificate is there under both pairs of names that clients read.
type keyAnswer struct {
	IsError           bool
	ErrorDescription  *string // the code
	CertID            *int64  `json:"CertId,omitempty"`
	ID                *int64  `json:",omitempty"`
	Base64Certificate []byte  `json:",omitempty"`
	CertificateBase64 []byte  `json:",omitempty"`
}

// keyRefusal answers 200 with the code of a fault, as the interface family does for calls
// on keys.
type keyRefusal struct{ cause *fault.Error }

// Error returns the text for the log.
func (r keyRefusal) Error() string { return r.cause.Error() }

// Unwrap returns the fault.
func (r keyRefusal) Unwrap() error { return r.cause }

// Outcome implements [rest.Refusal].
func (r keyRefusal) Outcome() string { return r.cause.Code }

// Answer implements [rest.Refusal].
func (r keyRefusal) Answer() (int, http.Header, any) {
	return http.StatusOK, nil, keyAnswer{IsError: true, ErrorDescription: &r.cause.Code}
}

// keyFailure turns a fault into the form of the calls on keys. Faults about the right to
// call at all keep their usual form.
func keyFailure(err error) error {
	f, ok := fault.As(err)
	if !ok || f.Code == fault.AccessDenied || f.Code == fault.Unauthorized {
		return err
	}
	return keyRefusal{f}
}

// generating is a request to make a key with its certificate.
type generating struct {
	Body struct {
		AlgID                  rest.Text `json:"AlgId" api:"integer"`
		ParametersOid, PinCode rest.Text
		ForceConfirmation      rest.Text `api:"boolean"`
	}
}

func (r generating) plan(*Management) (*keys.Plan, rest.Text, error) {
	algorithm, err := number("AlgId", r.Body.AlgID)
	if err != nil {
		return nil, "", fault.New(fault.AlgorithmNotSupported, "AlgId: want a number")
	}
	return &keys.Plan{
		Kind: keys.ToGenerate, Algorithm: algorithm, Set: strings.TrimSpace(string(r.Body.ParametersOid)),
		Secrets: keys.Secrets{New: string(r.Body.PinCode)},
	}, r.Body.ForceConfirmation, nil
}

func (r generating) confirmed() claim { return claimed("", &r.Body, &r.Body.PinCode) }

// generates is reads for generating, with the refusals of the calls on keys.
func generates(pattern, name string, do func(context.Context, act) (any, error)) rest.Route {
	return reads[generating](pattern, name, func(ctx context.Context, r act) (any, error) {
		answer, err := do(ctx, r)
		if err != nil {
			return nil, keyFailure(err)
		}
		return answer, nil
	})
}

func showKey(c *keys.Certificate) any {
	made := describe(c)
	return keyAnswer{CertID: &made.ID, ID: &made.ID, Base64Certificate: made.CertificateBase64, CertificateBase64: made.CertificateBase64}
}

func (m *Management) setParameter(ctx context.Context, r struct {
	ID   string `path:"id"`
	Body struct{ Param, Data rest.Text }
}) (keyAnswer, error) {
	rest.Concerning(ctx, certificateObject(r.ID))
	err := m.Parameters.Set(ctx, keys.Act{Who: rest.Caller(ctx)}, r.ID, string(r.Body.Param), string(r.Body.Data))
	if err != nil {
		return keyAnswer{}, keyFailure(err)
	}
	return keyAnswer{}, nil
}

func (m *Management) parameter(ctx context.Context, r struct {
	ID    string `path:"id"`
	Param string `query:"param"`
}) (string, error) {
	rest.Concerning(ctx, certificateObject(r.ID))
	value, err := m.Parameters.Get(ctx, rest.Caller(ctx), r.ID, r.Param)
	if err != nil {
		return "", keyFailure(err)
	}
	return value, nil
}
