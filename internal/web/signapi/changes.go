// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/operation"
	"tamga/internal/web/rest"
)

// changing is a request that changes keys, certificates or requests.
type changing interface {
	// plan returns what the request asks for, and its ForceConfirmation.
	plan(m *Management) (*keys.Plan, rest.Text, error)
	// confirmed reads a request with a confirmed token. number is that of the certificate or
	// of the request in the address. It reports whether the body has nothing but a PIN.
	confirmed() (number, pin string, bare bool)
}

// bare reports whether a body is empty.
func bare(body any) bool { return reflect.ValueOf(body).IsZero() }

// change is a row of the table of changes. Each has one route of v1 and one of v2.
type change[Req changing, Res any] struct {
	method, path, name string
	kinds              []keys.Kind // that the request carries out after a confirmation
	void               bool        // v1 answers nothing
	show               func(result any) Res
}

// changeRow is a row of the table of changes.
type changeRow interface {
	routes(m *Management) []rest.Route
	renderers(m *Management, of map[operation.Form]map[string]operation.Renderer)
}

// routes returns the two routes. v1 answers the result, v2 an operation: finished, or
// Created if the user must confirm it first.
func (c change[Req, Res]) routes(m *Management) []rest.Route {
	v1 := rest.Handle(c.method+" "+c.path, c.name, rest.SignedIn, func(ctx context.Context, r Req) (any, error) {
		return c.v1(ctx, m, r)
	})
	v2 := rest.Handle(c.method+" /v2"+c.path, c.name+"V2", rest.SignedIn, func(ctx context.Context, r Req) (any, error) {
		return c.v2(ctx, m, r)
	})
	if c.void {
		v1 = v1.Answering(rest.None{})
	} else {
		v1 = v1.Answering(*new(Res))
	}
	return []rest.Route{v1.Confirmed(), v2.Answering(answerOf[Res]{}).Confirmed()}
}

func (c change[Req, Res]) v1(ctx context.Context, m *Management, r Req) (any, error) {
	if rest.Caller(ctx).Confirmation != "" {
		answer, err := c.carryOut(ctx, m, r, operation.FormTransaction)
		if err != nil || !c.void {
			return answer, err
		}
		return rest.None{}, nil
	}
	result, _, err := m.perform(ctx, r, operation.FormTransaction, operation.Refuses)
	switch {
	case err != nil:
		return nil, err
	case c.void:
		return rest.None{}, nil
	}
	return c.show(result), nil
}

func (c change[Req, Res]) v2(ctx context.Context, m *Management, r Req) (any, error) {
	who := rest.Caller(ctx)
	if who.Confirmation != "" {
		return c.carryOut(ctx, m, r, operation.FormOperation)
	}
	result, waiting, err := m.perform(ctx, r, operation.FormOperation, operation.Waits)
	if err != nil {
		return nil, err
	}
	if waiting != nil {
		o := newOperation(waiting.ID, who, m.Realm, waiting.ConfirmBefore, nil, nil)
		o.Status = operationCreated
		return operationAnswer{o}, nil
	}
	return m.finished(ctx, c.show(result))
}

// perform does what a request asks for, or creates an operation that waits for its confirmation.
func (m *Management) perform(ctx context.Context, r changing, form operation.Form, confirming operation.Confirming) (result any, waiting *operation.Operation, err error) {
	p, force, err := r.plan(m)
	if err != nil {
		return nil, nil, err
	}
	concerning(ctx, p, "")
	o := p.Ordered(rest.Caller(ctx), form, confirming)
	if o.Forced, err = truth("ForceConfirmation", force, false); err != nil {
		return nil, nil, err
	}
	waiting, result, err = m.Operations.Start(ctx, o)
	if waiting != nil {
		concerning(ctx, p, waiting.ID)
	}
	return result, waiting, err
}

// concerning names in the audit entry what an act is about.
func concerning(ctx context.Context, p *keys.Plan, id string) {
	object := certificateObject(p.Certificate)
	switch {
	case p.Request != "":
		object = requestObject(p.Request)
	case p.Order.Renew != "":
		object = certificateObject(p.Order.Renew)
	case p.Certificate == "":
		object = ""
	}
	if id != "" && object != "" {
		object = ", " + object
	}
	if id != "" {
		object = "operation " + id + object
	}
	if object != "" {
		rest.Concerning(ctx, object)
	}
}

// carryOut carries out what the token of the caller was issued for, and answers what is stored of it.
func (c change[Req, Res]) carryOut(ctx context.Context, m *Management, r Req, form operation.Form) (rest.JSON, error) {
	number, pin, only := r.confirmed()
	if !only {
		return rest.JSON{}, onlyOwnPIN()
	}
	who := rest.Caller(ctx)
	rest.Concerning(ctx, "operation "+who.Confirmation)
	op, _, err := m.Operations.CarryOut(ctx, who, &operation.Claim{ID: who.Confirmation, Form: form, Kinds: c.kindNames(), About: number, PIN: pin})
	if err != nil {
		return rest.JSON{}, err
	}
	return rest.JSON{Content: bytes.NewReader(op.Answer)}, nil
}

func (c change[Req, Res]) kindNames() (names []string) {
	for _, k := range c.kinds {
		names = append(names, string(k))
	}
	return names
}

// renderers adds how the answers of v1 and v2 are made that are stored.
func (c change[Req, Res]) renderers(m *Management, of map[operation.Form]map[string]operation.Renderer) {
	for _, name := range c.kindNames() {
		of[operation.FormTransaction][name] = func(_ *operation.Operation, result any) ([]byte, error) {
			if c.void {
				return nil, nil
			}
			return text(c.show(result))
		}
		of[operation.FormOperation][name] = func(o *operation.Operation, result any) ([]byte, error) {
			return text(operationAnswer{newOperation(o.ID, o.Owner, m.Realm, o.CompleteBefore, c.show(result), nil)})
		}
	}
}

func onlyOwnPIN() error {
	return fault.New(fault.InvalidOperation, "the access token is that of a confirmed operation: send {} or the PIN of the key, everything else was confirmed before")
}

// text returns the JSON of an answer.
func text(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// showCertificate and showRequest are the forms of the results of acts.
func showCertificate(result any) certificate {
	c, ok := result.(*keys.Certificate)
	if !ok {
		panic(fmt.Sprintf("signapi: the result of an act is %T, want a certificate", result))
	}
	return describe(c)
}

func showRequest(result any) requestAnswer {
	q, ok := result.(*keys.Request)
	if !ok {
		panic(fmt.Sprintf("signapi: the result of an act is %T, want a request", result))
	}
	return describeRequest(q)
}
