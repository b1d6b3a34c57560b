// SPDX-License-Identifier: Apache-2.0

package deviceapi_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/device"
	"tamga/internal/domain/device/message"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/signin"
	"tamga/pki/suite"
)

// approvers are the devices of the world, for package confirm.
type approvers struct{ *device.Approvals }

func (a approvers) Approvers(ctx context.Context, userID string) (list []confirm.Approver, err error) {
	devices, err := a.Approvals.Approvers(ctx, userID)
	for _, d := range devices {
		list = append(list, confirm.Approver{Kid: d.Kid, Name: d.Name, Describes: d.Describes})
	}
	return list, err
}

func (a approvers) OpenDecision(ctx context.Context, signed []byte) (confirm.Decision, error) {
	v, err := a.Approvals.OpenDecision(ctx, signed)
	return confirm.Decision(v), err
}

func (a approvers) Offline(ctx context.Context, userID, kid string, o confirm.OfflineOrder) (qr, code string, err error) {
	return a.Approvals.Offline(ctx, userID, kid, device.OfflineOrder(o))
}

func (w *world) user() audit.Principal { return audit.Principal{UserID: w.userID, ClientID: "client"} }

// active returns a verified device of the user, who may confirm with it.
func (w *world) active(s *suite.Suite) *gadget {
	w.t.Helper()
	must(w.t, store.Tokens{DB: w.db}.SetMethod(w.t.Context(), w.userID, signin.StoredMethod{Name: "mydss", Level: 2}))
	g := w.gadget(s)
	_, a, _ := g.send(message.Register, message.Registration{Device: message.About{Name: "Phone"}})
	g.kid = a.Kid
	w.mydss("POST", "/mydss/assign", `{"Kid":"`+g.kid+`"}`, 200)
	text, _ := w.mydss("POST", "/mydss/verify/get", `{"Kid":"`+g.kid+`"}`, 200)["QrCodeData"].(string)
	q, err := message.ParseQR(text)
	must(w.t, err)
	v := q.(message.Verification).Data
	nonce, err := message.ReadSecret(v.Nonce)
	must(w.t, err)
	seed, err := base64.RawURLEncoding.DecodeString(v.Seed)
	must(w.t, err)
	if status, a, text := g.send(message.Verify, message.VerificationAnswer{Proof: message.VerificationProof(nonce, seed, g.kid, g.spki)}); status != 200 || a.State != "Active" {
		w.t.Fatalf("verified: %d %s", status, text)
	}
	return g
}

// fields returns what is confirmed in these tests.
func fields(documents int) what.Fields {
	f := what.Fields{Action: "SignDocuments", Certificate: make(what.Hex, 32), PublicKey: make(what.Hex, 32), SignatureType: "CAdES"}
	for i := range documents {
		f.Documents = append(f.Documents, what.Document{Name: fmt.Sprintf("договор %d.pdf", i), Size: int64(i), Digest: make(what.Hex, 32)})
	}
	return f
}

// asked creates an operation and asks a device to confirm it.
func (w *world) asked(g *gadget, documents int, titles bool) confirm.Record {
	w.t.Helper()
	r, err := w.confirm.Create(w.t.Context(), w.user(), confirm.Draft{Purpose: confirm.ForOperation, Fields: fields(documents)})
	must(w.t, err)
	p, err := w.confirm.Challenge(w.t.Context(), w.user(), confirm.Ask{ID: r.ID, Method: "mydss", Address: g.kid, Titles: titles})
	must(w.t, err)
	return p.Record
}

// state returns the state of a record.
func (w *world) state(r confirm.Record) confirm.Record {
	w.t.Helper()
	r, err := w.confirm.Find(w.t.Context(), w.user(), r.ID)
	must(w.t, err)
	return r
}

// read reads all documents of an operation and returns the digest of what was read.
func (g *gadget) read(id string) (message.Waiting, what.Digest) {
	g.w.t.Helper()
	var all message.Waiting
	var f what.Fields
	for from := 0; ; {
		status, a, text := g.send(message.Operation, message.OperationRequest{ID: id, From: from})
		if status != 200 || len(a.Operations) != 1 {
			g.w.t.Fatalf("%d %s", status, text)
		}
		o := a.Operations[0]
		if from == 0 {
			all = o
			must(g.w.t, json.Unmarshal(o.Fields, &f))
		}
		for _, d := range o.Documents {
			if d.Index != len(f.Documents) {
				g.w.t.Fatalf("document %d has the index %d", len(f.Documents), d.Index)
			}
			one := what.Document{Name: d.Name, Size: d.Size, Hash: d.Hash, Way: d.Way}
			must(g.w.t, one.Digest.UnmarshalText([]byte(d.Digest)))
			f.Documents = append(f.Documents, one)
		}
		if from = o.More; from == 0 {
			sum, err := f.Sum()
			must(g.w.t, err)
			return all, sum
		}
	}
}

// TestApproval: a device lists an operation, computes the digest of what it has shown, and
// approves some of the documents.
func TestApproval(t *testing.T) {
	for _, s := range []*suite.Suite{suite.GOST2012x256, suite.ECDSAP256} {
		w := newWorld(t)
		g := w.active(s)
		r := w.asked(g, 250, true)
		_, a, text := g.send(message.Poll, message.PollRequest{})
		if len(a.Operations) != 1 {
			t.Fatal(text)
		}
		o := a.Operations[0]
		if o.ID != r.ID || o.What != r.What.String() || o.Action != "SignDocuments" || o.Count != 250 || len(o.Documents) != 20 || o.More != 20 ||
			!o.Number || o.Fields != nil || !strings.Contains(o.Shown["ru"], "договор 0.pdf") || o.Shown["en"] == "" ||
			o.Documents[3].Name != "договор 3.pdf" || o.Documents[3].Index != 3 || o.Documents[3].Size != 3 || len(o.Documents[3].Digest) != 64 {
			t.Errorf("the poll lists %+v", o)
		}
		if strings.Contains(text, `"`+r.Number+`"`) {
			t.Error("the device is told the number")
		}
		_, sum := g.read(r.ID)
		if sum != r.What {
			t.Errorf("the device computed %s, want %s", sum, r.What)
		}
		decision := message.Decision{ID: r.ID, What: sum.String(), Declined: []int{249, 3}, Number: r.Number}
		status, a, text := g.send(message.Confirm, decision)
		want := &message.Result{ID: r.ID, State: "Confirmed", Declined: []int{3, 249}}
		if d := cmp.Diff(want, a.Result); status != 200 || d != "" {
			t.Fatalf("%d %s %s", status, text, d)
		}
		stored := w.state(r)
		documents := stored.DocumentStates()
		if documents[3] != confirm.Refused || documents[249] != confirm.Refused || documents[4] != confirm.Approved {
			t.Errorf("the documents are %v", documents)
		}
		// The answer was lost: the same decision in another message.
		if status, a, _ = g.send(message.Confirm, decision); status != 200 || a.Result.State != "Confirmed" {
			t.Errorf("repeated: %d %+v", status, a.Result)
		}
		if _, a, _ = g.send(message.Poll, struct{}{}); len(a.Operations) != 0 {
			t.Error("a confirmed operation is listed")
		}
		c, err := w.confirm.Content(t.Context(), w.user(), r.ID)
		must(t, err)
		var kept message.Signed
		must(t, json.Unmarshal(c.Approval, &kept))
		if m, err := message.Parse(kept); err != nil || !m.Verify(g.spki) {
			t.Errorf("the approval that is kept does not verify: %v", err)
		}
		if !slices.ContainsFunc(w.entries, func(e audit.Entry) bool {
			return e.Operation == "ConfirmOnDevice" && e.Object == g.kid && e.Principal.UserID == w.userID
		}) {
			t.Error("the approval is not in the audit log")
		}

		r = w.asked(g, 1, false)
		if status, a, text := g.send(message.Decline, message.Decision{ID: r.ID, What: r.What.String()}); status != 200 || a.Result.State != "Declined" {
			t.Errorf("declined: %d %s", status, text)
		}
	}
}

// An operation that is signed in several ways is only for a device that has said that it can show it.
func TestSeveralWays(t *testing.T) {
	w := newWorld(t)
	g := w.active(suite.ECDSAP256)
	f := fields(3)
	f.SignatureType = ""
	f.Ways = []what.Way{{SignatureType: "CAdES"}, {SignatureType: "PDF"}}
	f.Documents[1].Way, f.Documents[2].Way = 1, 1
	order := confirm.Draft{Purpose: confirm.ForOperation, Fields: f}
	poll := func(describes, listed int) {
		t.Helper()
		status, a, text := g.send(message.Poll, message.PollRequest{Describes: describes})
		if status != 200 || len(a.Operations) != listed {
			t.Errorf("poll of a device that describes version %d: %d %s", describes, status, text)
		}
	}
	refused := func(what, code string, status int, text string) {
		t.Helper()
		if status != 400 || !strings.Contains(text, `"`+code+`"`) {
			t.Errorf("%s: %d %s, want %s", what, status, text, code)
		}
	}

	if _, err := w.confirm.Create(t.Context(), w.user(), order); !fault.Is(err, fault.MethodNotConfirmed) || !strings.Contains(err.Error(), "update the app") {
		t.Errorf("created for a user with an old device alone: %v", err)
	}
	for _, version := range []int{-1, 100} {
		status, _, text := g.send(message.Poll, message.PollRequest{Describes: version})
		refused("an impossible version", "invalid_parameters", status, text)
	}
	poll(2, 0)
	r, err := w.confirm.Create(t.Context(), w.user(), order)
	must(t, err)
	poll(1, 0)
	if _, err := w.confirm.Challenge(t.Context(), w.user(), confirm.Ask{ID: r.ID, Method: "mydss", Address: g.kid}); !fault.Is(err, fault.MethodNotConfirmed) {
		t.Errorf("an old device was asked: %v", err)
	}
	poll(2, 0)
	_, err = w.confirm.Challenge(t.Context(), w.user(), confirm.Ask{ID: r.ID, Method: "mydss", Address: g.kid})
	must(t, err)
	poll(2, 1)
	o, sum := g.read(r.ID)
	if sum != r.What || len(o.Documents) != 3 || o.Documents[2].Way != 1 || !strings.Contains(string(o.Fields), `"ways":[{"signature_type":"CAdES"`) {
		t.Errorf("the device computed %s of %+v, want %s", sum, o, r.What)
	}

	// An older program on the same device.
	poll(0, 0)
	status, _, text := g.send(message.Operation, message.OperationRequest{ID: r.ID})
	refused("read by an old device", "invalid_transaction", status, text)
	status, _, text = g.send(message.Read, message.DocumentRequest{ID: r.ID})
	refused("a document read by an old device", "invalid_transaction", status, text)
	decision := message.Decision{ID: r.ID, What: sum.String()}
	for _, kind := range []string{message.Confirm, message.Decline} {
		status, _, text = g.send(kind, decision)
		refused(kind+" of an old device", "invalid_transaction", status, text)
	}
	if got := w.state(r).State; got != confirm.Challenged {
		t.Errorf("the operation is %s", got)
	}
	poll(2, 1)
	if status, a, text := g.send(message.Confirm, decision); status != 200 || a.Result.State != "Confirmed" {
		t.Errorf("approved: %d %s", status, text)
	}
}

// TestDecisionRefused: wrong, late, replayed, foreign and reordered answers, each with one
// error. The operation stays as it was unless the row says otherwise.
func TestDecisionRefused(t *testing.T) {
	approve := func(w *world, g *gadget, r confirm.Record, change func(v *message.Decision)) (int, string) {
		v := message.Decision{ID: r.ID, What: r.What.String(), Number: r.Number}
		if change != nil {
			change(&v)
		}
		status, _, text := g.send(message.Confirm, v)
		return status, text
	}
	with := func(change func(v *message.Decision)) func(*world, *gadget, confirm.Record) (int, string) {
		return func(w *world, g *gadget, r confirm.Record) (int, string) { return approve(w, g, r, change) }
	}
	for _, c := range []struct {
		name   string
		send   func(w *world, g *gadget, r confirm.Record) (int, string)
		status int
		code   string
		state  confirm.State
	}{
		{"another digest", with(func(v *message.Decision) { v.What = strings.Repeat("00", 32) }), 400, "invalid_transaction", confirm.Challenged},
		{"no digest", with(func(v *message.Decision) { v.What = "" }), 400, "invalid_transaction", confirm.Challenged},
		{"an unknown operation", with(func(v *message.Decision) { v.ID = "x" }), 400, "invalid_transaction", confirm.Challenged},
		{"an index out of range", with(func(v *message.Decision) { v.Declined = []int{3} }), 400, "invalid_parameters", confirm.Challenged},
		{"a negative index", with(func(v *message.Decision) { v.Declined = []int{-1} }), 400, "invalid_parameters", confirm.Challenged},
		{"a wrong number", with(func(v *message.Decision) { v.Number = v.Number[1:] + "x" }), 400, "authentication_declined", confirm.Declined},
		{"no number", with(func(v *message.Decision) { v.Number = "" }), 400, "authentication_declined", confirm.Declined},
		{"every document declined", with(func(v *message.Decision) { v.Declined = []int{0, 1, 2} }), 200, "", confirm.Declined},
		{"late", func(w *world, g *gadget, r confirm.Record) (int, string) {
			w.later = time.Hour
			defer func() { w.later = 0 }()
			return approve(w, g, r, nil)
		}, 400, "transaction_expired", confirm.Challenged},
		{"replayed", func(w *world, g *gadget, r confirm.Record) (int, string) {
			m := g.say(message.Confirm, message.Decision{ID: r.ID, What: r.What.String(), Number: r.Number})
			w.post(message.Confirm, m)
			status, _, text := w.post(message.Confirm, m)
			return status, text
		}, 400, "invalid_object_state", confirm.Confirmed},
		{"reordered", func(w *world, g *gadget, r confirm.Record) (int, string) {
			m := g.say(message.Confirm, message.Decision{ID: r.ID, What: r.What.String(), Number: r.Number})
			g.send(message.Poll, struct{}{})
			status, _, text := w.post(message.Confirm, m)
			return status, text
		}, 400, "invalid_object_state", confirm.Challenged},
		{"a refusal at the address of approvals", func(w *world, g *gadget, r confirm.Record) (int, string) {
			status, _, text := w.post(message.Confirm, g.say(message.Decline, message.Decision{ID: r.ID, What: r.What.String()}))
			return status, text
		}, 400, "invalid_parameters", confirm.Challenged},
		{"an approval at the address of refusals", func(w *world, g *gadget, r confirm.Record) (int, string) {
			status, _, text := w.post(message.Decline, g.say(message.Confirm, message.Decision{ID: r.ID, What: r.What.String()}))
			return status, text
		}, 400, "invalid_parameters", confirm.Challenged},
		{"an approval after a refusal", func(w *world, g *gadget, r confirm.Record) (int, string) {
			g.send(message.Decline, message.Decision{ID: r.ID, What: r.What.String()})
			return approve(w, g, r, nil)
		}, 400, "authentication_declined", confirm.Declined},
		{"a refusal after an approval", func(w *world, g *gadget, r confirm.Record) (int, string) {
			approve(w, g, r, nil)
			status, _, text := g.send(message.Decline, message.Decision{ID: r.ID, What: r.What.String()})
			return status, text
		}, 400, "invalid_transaction", confirm.Confirmed},
		{"a device that was not asked", func(w *world, _ *gadget, r confirm.Record) (int, string) {
			second := w.gadget(suite.ECDSAP256)
			_, a, _ := second.send(message.Register, message.Registration{})
			second.kid = a.Kid
			w.mydss("POST", "/mydss/assign", `{"Kid":"`+second.kid+`"}`, 200)
			return approve(w, second, r, nil)
		}, 403, "access_denied", confirm.Challenged},
		{"a blocked device", func(w *world, g *gadget, r confirm.Record) (int, string) {
			w.mydss("POST", "/mydss/lockout", `{"Kid":"`+g.kid+`","Lock":true}`, 200)
			return approve(w, g, r, nil)
		}, 403, "access_denied", confirm.Cancelled},
		{"a device that was blocked for a time", func(w *world, g *gadget, r confirm.Record) (int, string) {
			w.mydss("POST", "/mydss/lockout", `{"Kid":"`+g.kid+`","Lock":true}`, 200)
			w.mydss("POST", "/mydss/lockout", `{"Kid":"`+g.kid+`","Lock":false}`, 200)
			return approve(w, g, r, nil)
		}, 400, "invalid_transaction", confirm.Cancelled},
		{"a device that was replaced", func(w *world, g *gadget, r confirm.Record) (int, string) {
			w.mydss("POST", "/mydss/delete", `{"Kid":"`+g.kid+`"}`, 200)
			return approve(w, w.active(suite.ECDSAP256), r, nil)
		}, 400, "invalid_transaction", confirm.Cancelled},
		{"a device that was deleted after its approval", func(w *world, g *gadget, r confirm.Record) (int, string) {
			approve(w, g, r, nil)
			w.mydss("POST", "/mydss/delete", `{"Kid":"`+g.kid+`"}`, 200)
			return approve(w, g, r, nil)
		}, 401, "invalid_token", confirm.Cancelled},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			g := w.active(suite.ECDSAP256)
			r := w.asked(g, 3, true)
			status, text := c.send(w, g, r)
			var fault struct {
				Error string `json:"error"`
			}
			must(t, json.Unmarshal([]byte(text), &fault))
			if status != c.status || fault.Error != c.code {
				t.Errorf("%d %s, want %d %s", status, text, c.status, c.code)
			}
			if got := w.state(r).State; got != c.state {
				t.Errorf("the operation is %s, want %s", got, c.state)
			}
		})
	}
}

// TestTwoDecisions: of an approval and a refusal at once, one counts.
func TestTwoDecisions(t *testing.T) {
	w := newWorld(t)
	g := w.active(suite.ECDSAP256)
	for range 5 {
		r := w.asked(g, 2, false)
		signed := func(kind string) []byte {
			text, err := json.Marshal(g.say(kind, message.Decision{ID: r.ID, What: r.What.String()}))
			must(t, err)
			return text
		}
		messages := [][]byte{signed(message.Confirm), signed(message.Decline)}
		results := make([]confirm.Record, 2)
		errs := make([]error, 2)
		var both sync.WaitGroup
		for i := range messages {
			both.Go(func() { results[i], errs[i] = w.confirm.Approve(context.WithoutCancel(t.Context()), messages[i]) })
		}
		both.Wait()
		won := -1
		for i, err := range errs {
			if err == nil && won >= 0 {
				t.Fatalf("both count: %v, %v", results[0].State, results[1].State)
			}
			if err == nil {
				won = i
			}
		}
		if won < 0 || w.state(r).State != []confirm.State{confirm.Confirmed, confirm.Declined}[won] {
			t.Errorf("%v, and the operation is %s", errs, w.state(r).State)
		}
	}
}

// TestPages: a long list arrives in pages, without operations of other devices and users.
func TestPages(t *testing.T) {
	w := newWorld(t)
	g := w.active(suite.ECDSAP256)
	other := w.active(suite.ECDSAP256)
	var want []string
	for i := range 25 {
		want = append(want, w.asked(g, 1+i, false).ID)
		w.asked(other, 1, false)
	}
	large := w.asked(g, 2000, false)
	want = append(want, large.ID, w.asked(g, 1, false).ID)
	var got []string
	pages := 0
	for after := ""; ; pages++ {
		status, a, text := g.send(message.Poll, message.PollRequest{After: after})
		if status != 200 || len(a.Operations) > 10 || len(text) > 1<<20 {
			t.Fatalf("%d, %d operations, %d bytes", status, len(a.Operations), len(text))
		}
		for _, o := range a.Operations {
			got = append(got, o.ID)
		}
		if after = a.Next; after == "" {
			break
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" || pages < 3 {
		t.Errorf("%d pages: %s", pages, d)
	}
	if _, sum := g.read(large.ID); sum != large.What {
		t.Error("the documents of a large operation differ")
	}
	for name, ask := range map[string]struct {
		by      *gadget
		request message.OperationRequest
		code    string
	}{
		"another device": {other, message.OperationRequest{ID: large.ID}, "invalid_transaction"},
		"past the end":   {g, message.OperationRequest{ID: large.ID, From: 2000}, "invalid_parameters"},
		"before":         {g, message.OperationRequest{ID: large.ID, From: -1}, "invalid_parameters"},
	} {
		if status, _, text := ask.by.send(message.Operation, ask.request); status != 400 || !strings.Contains(text, ask.code) {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if _, a, _ := g.send(message.Poll, message.PollRequest{After: "x"}); len(a.Operations) != 0 || a.Next != "" {
		t.Errorf("after an unknown operation: %+v", a)
	}
}

// TestDocuments: the device that is asked reads the documents of an operation while it waits.
func TestDocuments(t *testing.T) {
	w := newWorld(t)
	g, other := w.active(suite.ECDSAP256), w.active(suite.GOST2012x256)
	f := fields(readable + 2)
	f.Documents[1].Original = &what.Original{Size: readable, Digest: make(what.Hex, 32)}
	f.Documents[2].Original = &what.Original{Size: readable + 1, Digest: make(what.Hex, 32)}
	f.Documents[3].Hash = "SHA-256"
	ask := func(purpose confirm.Purpose) confirm.Record {
		r, err := w.confirm.Create(t.Context(), w.user(), confirm.Draft{Purpose: purpose, Fields: f})
		must(t, err)
		_, err = w.confirm.Challenge(t.Context(), w.user(), confirm.Ask{ID: r.ID, Method: "mydss", Address: g.kid})
		must(t, err)
		return r
	}
	r := ask(confirm.ForOperation)
	all, _ := g.read(r.ID)
	const path = "/v1/document"
	documents := all.Documents
	if documents[0].Path != path || documents[1].Path != path || documents[1].Original.Path != path || documents[2].Original.Path != "" || documents[3].Path != "" {
		t.Errorf("the paths are %+v", documents[:4])
	}
	if last := len(f.Documents) - 1; documents[last-1].Path != path || documents[last].Path != "" {
		t.Errorf("a document of %d bytes has the path %q", f.Documents[last].Size, documents[last].Path)
	}
	for _, original := range []bool{false, true} {
		status, text := w.bytes(g.say(message.Read, message.DocumentRequest{ID: r.ID, Index: 1, Original: original}))
		if want := fmt.Sprintf("%s %s 1 %t", w.userID, r.ID, original); status != 200 || text != want {
			t.Errorf("%d %q, want %q", status, text, want)
		}
	}
	replayed := g.say(message.Read, message.DocumentRequest{ID: r.ID})
	w.bytes(replayed)
	free := ask(confirm.ForText)
	if all, _ := g.read(free.ID); all.Documents[0].Path != "" {
		t.Error("a text has documents to read")
	}
	for _, c := range []struct {
		name string
		m    message.Signed
		code string
	}{
		{"a document that is too large", g.say(message.Read, message.DocumentRequest{ID: r.ID, Index: readable + 1}), "invalid_parameters"},
		{"an original too large", g.say(message.Read, message.DocumentRequest{ID: r.ID, Index: 2, Original: true}), "invalid_parameters"},
		{"no such document", g.say(message.Read, message.DocumentRequest{ID: r.ID, Index: readable + 2}), "invalid_parameters"},
		{"a negative index", g.say(message.Read, message.DocumentRequest{ID: r.ID, Index: -1}), "invalid_parameters"},
		{"another device", other.say(message.Read, message.DocumentRequest{ID: r.ID}), "invalid_transaction"},
		{"an unknown operation", g.say(message.Read, message.DocumentRequest{ID: "x"}), "invalid_transaction"},
		{"a malformed request", g.say(message.Read, []int{1}), "invalid_parameters"},
		{"another type", g.say(message.Operation, message.OperationRequest{ID: r.ID}), "invalid_parameters"},
		{"a replayed message", replayed, "invalid_object_state"},
	} {
		if status, text := w.bytes(c.m); status != 400 || !strings.Contains(text, c.code) {
			t.Errorf("%s: %d %s, want %s", c.name, status, text, c.code)
		}
	}
	if status, _, _ := g.send(message.Decline, message.Decision{ID: r.ID, What: r.What.String()}); status != 200 {
		t.Fatal(status)
	}
	if status, text := w.bytes(g.say(message.Read, message.DocumentRequest{ID: r.ID})); status != 400 || !strings.Contains(text, "authentication_declined") {
		t.Errorf("after the end: %d %s", status, text)
	}
	w.mydss("POST", "/mydss/lockout", `{"Kid":"`+g.kid+`","Lock":true}`, 200)
	if status, text := w.bytes(g.say(message.Read, message.DocumentRequest{ID: r.ID})); status != 403 {
		t.Errorf("a blocked device: %d %s", status, text)
	}
	w.Close() // waits for the end of the requests
	if w.opened != 3 || w.closed != 3 {
		t.Errorf("%d documents were opened and %d closed, want 3", w.opened, w.closed)
	}
}

// bytes asks for a document.
func (w *world) bytes(m message.Signed) (int, string) {
	w.t.Helper()
	body, err := json.Marshal(m)
	must(w.t, err)
	response, err := http.Post(w.URL+"/DssApiGateway/v1/document", "application/json", bytes.NewReader(body))
	must(w.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(w.t, err)
	return response.StatusCode, string(text)
}

// TestDelivery: a decision that was signed before counts until the operation ends, once, and
// only from the device that was asked.
func TestDelivery(t *testing.T) {
	w := newWorld(t)
	g, other := w.active(suite.GOST2012x256), w.active(suite.ECDSAP256)
	approval := func(r confirm.Record, change func(v *message.Decision)) message.Delivery {
		v := message.Decision{ID: r.ID, What: r.What.String(), Number: r.Number}
		if change != nil {
			change(&v)
		}
		return message.Delivery{Message: g.say(message.Approval, v)}
	}
	sent := func(name string, g *gadget, d message.Delivery, status int, want string) {
		t.Helper()
		got, a, text := g.send(message.Deliver, d)
		if got != status || status == 200 && (a.Result == nil || a.Result.State != want) || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, want %d %s", name, got, text, status, want)
		}
	}
	r := w.asked(g, 3, true)
	early := approval(r, func(v *message.Decision) { v.Declined = []int{1} })
	w.later = 1199 * time.Second
	sent("just in time", g, early, 200, "Confirmed")
	if stored := w.state(r); !slices.Equal(stored.Declined, []int{1}) {
		t.Errorf("declined: %v", stored.Declined)
	}
	sent("delivered again", g, early, 200, "Confirmed")
	sent("a different decision", g, approval(r, nil), 400, "invalid_transaction")
	sent("a refusal after it", g, message.Delivery{Message: g.say(message.Refusal, message.Decision{ID: r.ID, What: r.What.String()})}, 400, "invalid_transaction")
	w.later = 0

	r = w.asked(g, 1, true)
	early = approval(r, nil)
	w.later = 1200 * time.Second
	sent("too late", g, early, 400, "transaction_expired")
	w.later = 0
	sent("another digest", g, approval(r, func(v *message.Decision) { v.What = strings.Repeat("00", 32) }), 400, "invalid_transaction")
	sent("another device", other, early, 400, "invalid_parameters")
	if status, _, text := w.post(message.Confirm, early.Message); status != 400 || !strings.Contains(text, "invalid_parameters") {
		t.Errorf("an approval that is not delivered: %d %s", status, text)
	}
	sent("a wrong number", g, approval(r, func(v *message.Decision) { v.Number = "" }), 400, "authentication_declined")
	sent("after the refusal", g, early, 400, "authentication_declined")

	r = w.asked(g, 1, false)
	early = approval(r, nil)
	w.mydss("POST", "/mydss/lockout", `{"Kid":"`+g.kid+`","Lock":true}`, 200)
	sent("a blocked device", g, early, 403, "access_denied")
	w.mydss("POST", "/mydss/lockout", `{"Kid":"`+g.kid+`","Lock":false}`, 200)
	sent("after the block", g, early, 400, "invalid_transaction")
	w.mydss("POST", "/mydss/delete", `{"Kid":"`+g.kid+`"}`, 200)
	sent("a device that was removed", g, early, 401, "invalid_token")
}

// TestTwoDeliveries: of an approval and a refusal that were signed before and arrive at once,
// one counts.
func TestTwoDeliveries(t *testing.T) {
	w := newWorld(t)
	g := w.active(suite.ECDSAP256)
	r := w.asked(g, 2, false)
	v := message.Decision{ID: r.ID, What: r.What.String()}
	var messages [2][]byte
	for i, kind := range []string{message.Approval, message.Refusal} {
		text, err := json.Marshal(g.say(message.Deliver, message.Delivery{Message: g.say(kind, v)}))
		must(t, err)
		messages[i] = text
	}
	var errs [2]error
	var both sync.WaitGroup
	for i := range messages {
		both.Go(func() { _, errs[i] = w.confirm.Approve(context.WithoutCancel(t.Context()), messages[i]) })
	}
	both.Wait()
	if (errs[0] == nil) == (errs[1] == nil) {
		t.Fatalf("%v", errs)
	}
	want := confirm.Confirmed
	if errs[0] != nil {
		want = confirm.Declined
	}
	if got := w.state(r).State; got != want {
		t.Errorf("the operation is %s, want %s", got, want)
	}
}
