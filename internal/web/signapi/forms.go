// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/uuid"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/encryption"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/signing"
	"tamga/internal/web/rest"
)

// Operations are ordered here in three forms, v1 (operation.FormTransaction), v2
// (operation.FormOperation) and uploads (operation.FormUpload):
//
//	               ordered by              read by                        answered by
//	signatures v1  POST /documents         sign: no operation             Stream, or newBatchAnswer for a batch
//	           v1  POST /transactions      proposeSignature               the identifier
//	           v2  POST /v2/signature      start                          Operating.render, also for callbacks
//	       upload  POST /tamga/operations  upload                         Operating.render, also for callbacks
//	acts       v1  the row of acts         act.plan                       row.answer, stored with the operation
//	           v1  POST /transactions      transaction.read, act.plan      the identifier
//	           v2  the row, below /v2      act.plan                       row.answer, stored with the operation
//	decryption v1  POST /documents/decrypt decryptOne                     Stream
//	           v1  POST /transactions      proposeDecryption              the identifier
//	           v2  POST /v2/decryption     decryptMany                    Operating.render, also for callbacks
//	       upload  POST /tamga/decryption  decryptMany                    Operating.render, also for callbacks
//	encryption v1  POST /documents/encrypt encryptOne                     Stream
//	           v2  POST /v2/encryption     encryptMany                    Operating.render
//
// With a confirmed token, the routes of v1 and v2 carry out what was confirmed, and the body may have nothing
// but a PIN: signConfirmed (v1), start and upload read it for signatures, decryptOne and decryptMany for decryption,
// act.confirmed for acts. What is read
// goes to Operating.begin (at once, or proposed) or to Operating.carryOut, whatever it is.

// signs are the kinds of operations that the routes of signatures carry out, and decrypts those of decryption.
var (
	signs    = []string{signing.KindSign, signing.KindSeveral}
	decrypts = []string{encryption.KindDecrypt}
)

// row is a row of acts. Its operations have one route of v1 and one of v2.
type row struct {
	pattern, name string // of v1
	read          func(pattern, name string, do func(context.Context, act) (any, error)) rest.Route
	kinds         []keys.Kind                        // that a request carries out after a confirmation
	show          func(result *keys.Certificate) any // of acts on certificates and keys; nil: the result is a request
	v1, v2        any                                // what is answered, by its type; v2 may be nil: no route
}

// acts are the acts on keys, certificates and requests.
var acts = []row{
	{"POST /certificates", "InstallCertificate", reads[installing], []keys.Kind{keys.ToInstall}, showCertificate, certificate{}, answerOf[certificate]{}},
	{"DELETE /certificates/{id}", "DeleteCertificate", reads[deleting], []keys.Kind{keys.ToDelete}, showCertificate, rest.None{}, answerOf[certificate]{}},
	{"POST /certificates/{id}/pin", "ChangePin", reads[changingPIN], []keys.Kind{keys.ToChangePIN}, showCertificate, rest.None{}, answerOf[certificate]{}},
	{"POST /certificates/{id}/status", "ChangeCertificateStatus", reads[settingStatus], []keys.Kind{keys.ToSetStatus}, showCertificate, rest.None{}, answerOf[certificate]{}},
	{"POST /requests", "CreateRequest", reads[requesting], []keys.Kind{keys.ToRequest, keys.ToRequestRevocation}, nil, requestAnswer{}, answerOf[requestAnswer]{}},
	{"DELETE /requests/{id}", "DeleteRequest", reads[deletingRequest], []keys.Kind{keys.ToDeleteRequest}, nil, rest.None{}, answerOf[requestAnswer]{}},
	{"POST /keys/generate", "GenerateKey", generates, []keys.Kind{keys.ToGenerate}, showKey, keyAnswer{}, nil},
}

// transaction is an OperationCode of v1. read makes the request of the row of acts that orders the same; it
// is nil for signatures, decryption, and for actions that cannot be transactions.
type transaction struct {
	action policy.Action
	read   func(p parameterList) (act, error)
}

var transactions = map[int64]transaction{
	1:    {policy.Issue, nil},
	2:    {policy.SignDocument, nil},
	4:    {policy.SignDocuments, nil},
	8:    {policy.DecryptDocument, nil},
	16:   {policy.CreateRequest, parameterList.creation},
	32:   {policy.ChangePin, parameterList.newPIN},
	64:   {policy.RenewCertificate, parameterList.renewal},
	128:  {policy.RevokeCertificate, parameterList.revocation},
	256:  {policy.HoldCertificate, func(p parameterList) (act, error) { return p.status("HOLD"), nil }},
	512:  {policy.UnholdCertificate, func(p parameterList) (act, error) { return p.status("ACTIVE"), nil }},
	1024: {policy.DeleteCertificate, parameterList.deletion},
	2048: {policy.PrivateKeyAccess, nil},
}

// signs reports whether the action is a signature.
func (t transaction) signs() bool {
	return t.action == policy.SignDocument || t.action == policy.SignDocuments
}

// act is a request that changes keys, certificates or requests.
type act interface {
	// plan returns what the request asks for, and its ForceConfirmation.
	plan(m *Management) (*keys.Plan, rest.Text, error)
	// confirmed reads a request with a confirmed token.
	confirmed() claim
}

// claim is what a request with a confirmed token says.
type claim struct {
	about string // number of the certificate or of the request in the address; "": none
	pin   string
	more  bool // something else
}

// claimed reads a body that may have nothing but a PIN. pin is its field; nil: it has none.
func claimed(about string, body any, pin *rest.Text) claim {
	c := claim{about: about}
	if pin != nil {
		c.pin, *pin = string(*pin), ""
	}
	c.more = !reflect.ValueOf(body).Elem().IsZero()
	return c
}

// reads returns a route of an act.
func reads[Req act](pattern, name string, do func(context.Context, act) (any, error)) rest.Route {
	return rest.Handle(pattern, name, rest.SignedIn, func(ctx context.Context, r Req) (any, error) { return do(ctx, r) })
}

// versions returns the routes of a row. handle makes that of a form.
func (w *row) versions(handle func(pattern, name string, f operation.Form) rest.Route) []rest.Route {
	routes := []rest.Route{handle(w.pattern, w.name, operation.FormTransaction).Answering(w.v1)}
	if w.v2 != nil {
		routes = append(routes, handle(strings.Replace(w.pattern, " ", " /v2", 1), w.name+"V2", operation.FormOperation).Answering(w.v2))
	}
	return routes
}

// actRoutes returns the routes of all rows.
func (a *API) actRoutes() (routes []rest.Route) {
	for i := range acts {
		w := &acts[i]
		routes = append(routes, w.versions(func(pattern, name string, f operation.Form) rest.Route {
			return w.read(pattern, name, func(ctx context.Context, r act) (any, error) { return a.act(ctx, w, f, r) }).Confirmed()
		})...)
	}
	return routes
}

// answer is the answer of a form to an act that is done: its result, and in v2 the operation around it.
func (w *row) answer(f operation.Form, realm string, op *operation.Operation, result any) any {
	if _, void := w.v1.(rest.None); void && f == operation.FormTransaction {
		return rest.None{}
	}
	var shown any
	switch made := result.(type) {
	case *keys.Certificate:
		shown = w.show(made)
	case *keys.Request:
		shown = describeRequest(made)
	default:
		panic(fmt.Sprintf("signapi: the result of an act is %T, want a certificate or a request", result))
	}
	if f == operation.FormTransaction {
		return shown
	}
	return operationAnswer{newOperation(op.ID, op.Owner, realm, op.CompleteBefore, shown, nil)}
}

// Renderers returns how the answers to acts are made that are stored.
func (o *Operating) Renderers() map[operation.Form]map[string]operation.Renderer {
	all := map[operation.Form]map[string]operation.Renderer{operation.FormTransaction: {}, operation.FormOperation: {}}
	for f, of := range all {
		for i := range acts {
			for _, kind := range acts[i].kinds {
				of[string(kind)] = func(op *operation.Operation, result any) ([]byte, error) {
					return text(acts[i].answer(f, o.Realm, op, result))
				}
			}
		}
	}
	return all
}

// text returns the JSON of an answer, nothing for rest.None.
func text(v any) ([]byte, error) {
	if v == (rest.None{}) {
		return nil, nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// act carries out what the token of the caller was issued for, or does what a request orders. v2 answers a
// waiting operation if the user must confirm it first, v1 refuses.
func (a *API) act(ctx context.Context, w *row, f operation.Form, r act) (any, error) {
	if rest.Caller(ctx).Confirmation != "" {
		c := r.confirmed()
		if c.more {
			return nil, fault.New(fault.InvalidOperation, "the access token is that of a confirmed operation: send {} or the PIN of the key, everything else was confirmed before")
		}
		var kinds []string
		for _, k := range w.kinds {
			kinds = append(kinds, string(k))
		}
		op, err := a.deps.Operations.carryOut(ctx, f, kinds, c, nil)
		switch {
		case err != nil:
			return nil, err
		case len(op.Answer) == 0:
			return rest.None{}, nil
		}
		return rest.JSON{Content: bytes.NewReader(op.Answer)}, nil
	}
	confirming := operation.Waits
	if f == operation.FormTransaction {
		confirming = operation.Refuses
	}
	waiting, result, err := a.order(ctx, r, f, confirming, nil)
	switch {
	case err != nil:
		return nil, err
	case waiting != nil:
		return a.deps.Operations.answer(waiting)
	}
	return a.done(ctx, w, f, result), nil
}

// done is the answer to an act that was done at once.
func (a *API) done(ctx context.Context, w *row, f operation.Form, result any) any {
	m := a.deps.Management
	return w.answer(f, a.deps.Operations.Realm, &operation.Operation{ID: uuid.NewString(), Owner: rest.Caller(ctx), CompleteBefore: m.Now().Add(m.Life)}, result)
}

// order orders an act. shown are further arguments that the user sees.
func (a *API) order(ctx context.Context, r act, f operation.Form, c operation.Confirming, shown map[string]string) (*operation.Operation, any, error) {
	p, force, err := r.plan(a.deps.Management)
	if err != nil {
		return nil, nil, err
	}
	p.Shown = shown
	object := objectOf(p)
	rest.Concerning(ctx, object)
	o := p.Ordered(rest.Caller(ctx), f, c)
	if o.Forced, err = truth("ForceConfirmation", force, false); err != nil {
		return nil, nil, err
	}
	return a.deps.Operations.begin(ctx, o, object)
}

// objectOf names in the audit entry what an act is about.
func objectOf(p *keys.Plan) string {
	switch {
	case p.Request != "":
		return requestObject(p.Request)
	case p.Order.Renew != "":
		return certificateObject(p.Order.Renew)
	case p.Certificate != "":
		return certificateObject(p.Certificate)
	}
	return ""
}

// operationObject returns an operation and what it is about for an audit entry. An operation that is not stored
// has no identifier.
func operationObject(id string, about ...string) string {
	var parts []string
	if id != "" {
		parts = append(parts, "operation "+id)
	}
	for _, one := range about {
		if one != "" {
			parts = append(parts, one)
		}
	}
	return strings.Join(parts, ", ")
}

// begin does what is ordered at once, or creates the operation that waits. object is what it is about, for
// the audit entry.
func (o *Operating) begin(ctx context.Context, order *operation.Order, object string) (*operation.Operation, any, error) {
	op, result, err := o.Operations.Start(ctx, order)
	if err != nil || op == nil {
		return nil, result, err
	}
	rest.Concerning(ctx, operationObject(op.ID, object, op.Note))
	rest.Afterwards(ctx, op)
	return op, result, nil
}

// carryOut carries out the operation that the token of the caller was issued for.
func (o *Operating) carryOut(ctx context.Context, f operation.Form, kinds []string, c claim, keep operation.Keep) (*operation.Operation, error) {
	who := rest.Caller(ctx)
	rest.Concerning(ctx, operationObject(who.Confirmation))
	order := &operation.Claim{
		ID: who.Confirmation, Form: f, Kinds: kinds, About: c.about, PIN: c.pin, Keep: keep,
		Noted: func(text string) { rest.Concerning(ctx, operationObject(who.Confirmation, text)) },
	}
	if snap := snapshotOf(ctx); snap != nil {
		order.Fresh = snap
	}
	op, _, err := o.Operations.CarryOut(ctx, who, order)
	if err != nil {
		return nil, err
	}
	rest.Afterwards(ctx, op)
	return op, nil
}

// Operations starts what users order and carries it out; *operation.Service satisfies it.
type Operations interface {
	Start(ctx context.Context, o *operation.Order) (*operation.Operation, any, error)
	CarryOut(ctx context.Context, who audit.Principal, c *operation.Claim) (*operation.Operation, any, error)
	Find(ctx context.Context, who audit.Principal, id string) (*operation.Operation, error)
	Active(ctx context.Context, who audit.Principal) ([]*operation.Operation, error)
	Cancel(ctx context.Context, who audit.Principal, id string) error
}
