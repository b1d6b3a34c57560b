// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/signing"
	"tamga/internal/web/rest"
)

// starter answers every document with its content in reverse, or with a fault.
type starter struct{ seen *signing.OperationOrder }

func (s *starter) Parameter(string) signing.Parameter { return signing.Parameter{} }

func (s *starter) Ordered(who audit.Principal, o *signing.OperationOrder, _ operation.Confirming) (*operation.Order, error) {
	s.seen = o
	return &operation.Order{Owner: who}, nil
}

func (s *starter) Start(_ context.Context, ordered *operation.Order) (*operation.Operation, any, error) {
	o := s.seen
	op := &operation.Operation{ID: "00000000-0000-4000-8000-000000000001", Owner: ordered.Owner, State: operation.Completed, CompleteBefore: time.Unix(1_700_000_000, 0)}
	for _, in := range o.Inputs {
		p := operation.Document{OriginalRef: in.RefID, OriginalName: in.Name, Related: in.RelatedRefID}
		switch f, failed := fault.As(in.Err); {
		case failed:
			p.Fault = f
		case in.Content != nil:
			text, err := io.ReadAll(io.NewSectionReader(in.Content, 0, in.Content.Size()))
			if err != nil {
				return nil, nil, err
			}
			p.Name, p.Content = "name", bytes.NewReader(reversed(text))
		default:
			p.Name, p.RefID = "name", in.RefID
		}
		op.Documents = append(op.Documents, p)
	}
	if o.Keep != nil { // reads the contents a first time, as the real one does
		if _, err := o.Keep(context.Background(), op); err != nil {
			return nil, nil, err
		}
	}
	return op, nil, nil
}

func (*starter) Find(context.Context, audit.Principal, string) (*operation.Operation, error) {
	return nil, fault.New(fault.NotFound, "none")
}

func (*starter) Active(context.Context, audit.Principal) ([]*operation.Operation, error) {
	return nil, nil
}

func (*starter) CarryOut(context.Context, audit.Principal, *operation.Claim) (*operation.Operation, any, error) {
	return nil, nil, fault.New(fault.InvalidTransaction, "not confirmed")
}

func (*starter) Cancel(context.Context, audit.Principal, string) error {
	return fault.New(fault.NotFound, "none")
}

// v2Door serves v2 over a starter.
func v2Door(t testing.TB) (http.Handler, *starter) {
	t.Helper()
	s := &starter{}
	service := &signing.Service{Keys: noKeys{}, Spool: &spool{}, Now: time.Now}
	mux := http.NewServeMux()
	identify := func(_ context.Context, token string) (audit.Principal, error) {
		return audit.Principal{UserID: token, Login: "login"}, nil
	}
	rest.MountAPI(mux, "", &rest.Gate{
		Identify: identify,
		IdentifyConfirmed: func(ctx context.Context, token string) (context.Context, audit.Principal, error) {
			who, err := identify(ctx, token)
			return ctx, who, err
		},
		Audit: discardAudit{}, Log: slog.New(slog.DiscardHandler),
	}, (&Operating{Operations: s, Signatures: s, Realm: "realm"}).routes(func(ctx context.Context, who audit.Principal) (*signing.Intake, error) {
		return service.NewIntake(ctx, snapshotFor(who))
	}))
	return mux, s
}

type discardAudit struct{}

func (discardAudit) Record(context.Context, audit.Entry) error { return nil }

func (discardAudit) Begin(context.Context, audit.Entry) func(context.Context) error {
	return func(context.Context) error { return nil }
}

func v2Send(h http.Handler, body string) (int, []byte) {
	r := httptest.NewRequest("POST", "/api/v2/signature", strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer 2")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.Bytes()
}

// Whatever letter case, kind of value and order of keys a client has.
func TestV2Leniency(t *testing.T) {
	h, s := v2Door(t)
	for _, body := range []string{
		`{"BinaryData":[{"RefId":"r","ContentInfo":"i","RelatedRefId":"o"}],"Signature":{"Type":5,"Parameters":{"IsDetached":true},"CertificateId":7,"PinCode":"p","ProcessingTemplateId":3},"isAsync":true,"Callback":"u","ForceConfirmation":"False"}`,
		`{"processingTemplateId":"3","callback":" u ","IsAsync":"True","signature":{"pinCode":"p","certificateId":"7","parameters":{"IsDetached":"true"},"type":"5"},"binaryData":[{"relatedRefId":"o","contentInfo":"i","refId":" r ","Content":""}],"forceConfirmation":false,"unknown":[{}]}`,
	} {
		if status, text := v2Send(h, body); status != 200 {
			t.Fatalf("%d %s", status, text)
		}
		o := s.seen
		in := o.Inputs[0]
		if o.Type != "5" || !strings.EqualFold(o.Params["IsDetached"], "true") || o.Certificate != "7" || o.PIN != "p" || o.Template != "3" || !o.Async || o.ForceConfirmation ||
			o.Callback != "u" || in.RefID != "r" || in.Name != "i" || in.RelatedRefID != "o" || in.Content != nil {
			t.Errorf("%+v", o)
		}
	}
}

// FuzzV2 sends any text: never a panic, and every success is JSON of the shape.
func FuzzV2(f *testing.F) {
	for _, seed := range []string{
		`{}`, ``, `{"Signature":{"PinCode":"1"}}`, `{"BinaryData":[{"Content":"YWJj","ContentInfo":"\u0000<\"\\"}],"Signature":{"Type":"CMS"}}`,
		`{"BinaryData":[{"RefId":null},{"Content":"%"},{"RefId":1,"RelatedRefId":true}],"ProcessingTemplateId":1.5,"IsAsync":0}`,
		`{"BinaryData":[{"Content":{}}],"Signature":{"Type":[]}}`, `{"BinaryData":{},"Signature":[]}`, `[[[[`, `{"BinaryData":[{"Content":"YWJj"},{"Content":"YQ=="}],"signature":{"type":"x","parameters":{"OriginalDocument":"YQ==","a":1,"A":2}}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		h, s := v2Door(t)
		s.seen = nil
		status, text := v2Send(h, body)
		switch {
		case status >= 400 && status < 500 && s.seen == nil:
		case status != 200:
			t.Fatalf("%d %s", status, text)
		}
		var answer struct {
			Operation *struct {
				Result *struct{ ProcessedDocuments []struct{ Content *[]byte } }
			}
		}
		if err := json.Unmarshal(text, &answer); err != nil {
			t.Fatalf("%d %s: %v", status, text, err)
		}
		if status != 200 {
			return
		}
		if answer.Operation == nil || answer.Operation.Result == nil || len(answer.Operation.Result.ProcessedDocuments) != len(s.seen.Inputs) {
			t.Fatalf("%s", text)
		}
	})
}
