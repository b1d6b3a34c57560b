// SPDX-License-Identifier: Apache-2.0

package keys_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/policy"
	"tamga/internal/judge"
	"tamga/pki/chain"
	"tamga/pki/pfx"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// rules is a policy that tests set; it records events.
type rules struct {
	denied, confirmed policy.Action
	events            []notify.EventType
	broken            error // of Emit
}

func (r *rules) Permit(_ context.Context, _ string, a policy.Action) error {
	if r.denied&a != 0 {
		return fault.New(fault.AccessDenied, "denied")
	}
	return nil
}
func (r *rules) NeedsConfirmation(_ context.Context, _ string, a policy.Action) (bool, error) {
	return r.confirmed&a != 0, nil
}
func (r *rules) Emit(_ context.Context, e notify.Event) error {
	r.events = append(r.events, e.Type)
	return r.broken
}
func (r *rules) ProfileOf(_ context.Context, userID string) (map[string]string, error) {
	return map[string]string{"2.5.4.3": "Мария", "1.2.643.3.131.1.1": "007700000000"}, nil
}

// manage is a process whose users manage their keys.
func manage(t *testing.T, change ...func(*keys.Options)) (*process, *rules) {
	t.Helper()
	p, r := start(t), &rules{}
	o := p.Options
	o.Policy, o.Events, o.Profiles = r, r, r
	o.Enrolment = keys.Enrolment{}
	for _, c := range change {
		c(&o)
	}
	var err error
	if p.Service, err = keys.New(o); err != nil {
		t.Fatal(err)
	}
	return p, r
}

func as(userID string) keys.Act { return keys.Act{Who: audit.Principal{UserID: userID}} }

func number(c *keys.Certificate) string { return strconv.FormatInt(c.ID, 10) }

// Every change checks the access policy and the need for a confirmation, and does nothing
// if one of them refuses. A certificate of another user is not found.
func TestGuards(t *testing.T) {
	p, r := manage(t)
	ctx := t.Context()
	c := p.issue(t, keys.IssueOrder{PIN: pin, Default: true})
	id := number(c)
	acts := []struct {
		name   string
		action policy.Action
		do     func(a keys.Act) error
	}{
		{"ChangePIN", policy.ChangePin, func(a keys.Act) error { return p.ChangePIN(ctx, a, id, pin, "867530") }},
		{"Delete", policy.DeleteCertificate, func(a keys.Act) error { _, err := p.Delete(ctx, a, id, false); return err }},
		{"revoke", policy.RevokeCertificate, func(a keys.Act) error {
			_, err := p.SetStatus(ctx, a, id, keys.StatusOrder{Status: keys.Revoked})
			return err
		}},
		{"hold", policy.HoldCertificate, func(a keys.Act) error {
			_, err := p.SetStatus(ctx, a, id, keys.StatusOrder{Status: keys.Hold})
			return err
		}},
		{"unhold", policy.UnholdCertificate, func(a keys.Act) error {
			_, err := p.SetStatus(ctx, a, id, keys.StatusOrder{Status: keys.Active})
			return err
		}},
		{"renew", policy.RenewCertificate, func(a keys.Act) error {
			_, err := p.CreateRequest(ctx, a, keys.CertificateOrder{Renew: id, RenewPIN: pin})
			return err
		}},
		{"revoke by request", policy.RevokeCertificate, func(a keys.Act) error {
			_, err := p.RequestRevocation(ctx, a, id, keys.StatusOrder{})
			return err
		}},
	}
	for _, x := range acts {
		if err := x.do(as(bob)); !fault.Is(err, fault.CertificateNotFound) {
			t.Errorf("%s of another user's certificate: %v", x.name, err)
		}
		r.denied = x.action
		if err := x.do(as(alice)); !fault.Is(err, fault.AccessDenied) {
			t.Errorf("%s denied: %v", x.name, err)
		}
		r.denied = 0
		o := p.Options
		o.Confirmation = r
		r.confirmed = x.action
		old := p.Service
		p.Service, _ = keys.New(o)
		if err := x.do(as(alice)); !fault.Is(err, fault.MethodNotConfirmed) {
			t.Errorf("%s to be confirmed: %v", x.name, err)
		}
		p.Service = old
		if err := x.do(keys.Act{}); err == nil {
			t.Errorf("%s without a user", x.name)
		}
	}
	for _, order := range []func(a keys.Act) error{
		func(a keys.Act) error { _, err := p.CreateRequest(ctx, a, keys.CertificateOrder{}); return err },
		func(a keys.Act) error { _, err := p.Generate(ctx, a, 11849, "", ""); return err },
		func(a keys.Act) error { _, err := p.Install(ctx, a, c.X509.Raw); return err },
		func(a keys.Act) error { _, err := p.DeleteRequest(ctx, a, "1"); return err },
	} {
		r.denied = policy.CreateRequest
		if err := order(as(alice)); !fault.Is(err, fault.AccessDenied) {
			t.Errorf("a request denied: %v", err)
		}
		r.denied = 0
	}
	now, err := p.Find(ctx, alice, id)
	if err != nil || now.Status != keys.Active || len(r.events) != 1 { // of its issue
		t.Fatalf("%+v, %v, %v", now, err, r.events)
	}
	if got := p.try(ctx, now, pin); got != "ok" {
		t.Errorf("the PIN afterwards: %s", got)
	}
}

func TestChangePIN(t *testing.T) {
	p, r := manage(t)
	ctx := t.Context()
	c := p.issue(t, keys.IssueOrder{PIN: pin})
	id := number(c)
	for _, wrong := range []string{"", "1235"} {
		if err := p.ChangePIN(ctx, as(alice), id, wrong, "867530"); !fault.Is(err, fault.InvalidPIN) {
			t.Errorf("old PIN %q: %v", wrong, err)
		}
	}
	if err := p.ChangePIN(ctx, as(alice), id, pin, strings.Repeat("1", 257)); !fault.Is(err, fault.InvalidPIN) {
		t.Errorf("a PIN without end: %v", err)
	}
	if err := p.ChangePIN(ctx, as(alice), id, pin, "867530"); err != nil {
		t.Fatal(err)
	}
	if a, b := p.try(ctx, c, pin), p.try(ctx, c, "867530"); a != "wrong" || b != "ok" {
		t.Errorf("the old PIN %s, the new one %s", a, b)
	}
	if err := p.ChangePIN(ctx, as(alice), id, "867530", ""); err != nil {
		t.Fatal(err)
	}
	now, err := p.Find(ctx, alice, id)
	if err != nil || now.HasPIN {
		t.Fatalf("%+v, %v", now, err)
	}
	if _, err := p.Sign(ctx, now, "", digests(suite.GOST2012x256, "x")); err != nil {
		t.Error(err)
	}
	if err := p.ChangePIN(ctx, as(alice), id, "anything", pin); err != nil {
		t.Fatal(err)
	}
	if r.events[len(r.events)-1] != notify.CertificatePinChanged {
		t.Error(r.events)
	}
	// An act whose event fails is not done.
	r.broken = errors.New("the outbox is full")
	if err := p.ChangePIN(ctx, as(alice), id, pin, "997531"); !errors.Is(err, r.broken) {
		t.Error(err)
	}
	r.broken = nil
	if got := p.try(ctx, c, pin); got != "ok" {
		t.Errorf("after a failure: %s", got)
	}
	// Guesses are counted here too.
	for range keys.DefaultPINAttempts {
		if err := p.ChangePIN(ctx, as(alice), id, "0000", "867530"); !fault.Is(err, fault.InvalidPIN) {
			t.Fatal(err)
		}
	}
	if got := p.try(ctx, c, pin); got != "blocked" {
		t.Error(got)
	}
}

func TestCheckPIN(t *testing.T) {
	p, _ := manage(t)
	ctx := t.Context()
	who := audit.Principal{UserID: alice}
	c := p.issue(t, keys.IssueOrder{PIN: pin})
	if ok, reason, err := p.CheckPIN(ctx, who, number(c), pin, true); !ok || reason != "" || err != nil {
		t.Errorf("the right PIN: %t %q %v", ok, reason, err)
	}
	for left := keys.DefaultPINAttempts - 1; left >= 0; left-- {
		ok, reason, err := p.CheckPIN(ctx, who, number(c), "1", true)
		if ok || err != nil || !strings.Contains(reason, "left: "+strconv.Itoa(left)) {
			t.Fatalf("a wrong one: %t %q %v", ok, reason, err)
		}
	}
	if ok, reason, err := p.CheckPIN(ctx, who, number(c), pin, false); ok || err != nil || !strings.Contains(reason, "blocked") || strings.Contains(reason, "left") {
		t.Errorf("blocked: %t %q %v", ok, reason, err)
	}
	if _, _, err := p.CheckPIN(ctx, audit.Principal{UserID: bob}, number(c), pin, true); !fault.Is(err, fault.CertificateNotFound) {
		t.Error(err)
	}
	open := p.issue(t, keys.IssueOrder{})
	if ok, _, err := p.CheckPIN(ctx, who, number(open), "habit", true); !ok || err != nil {
		t.Errorf("a key without a PIN: %t %v", ok, err)
	}
}

func TestPINModes(t *testing.T) {
	for mode, good := range map[keys.PINMode]map[string]bool{
		keys.PINRequired: {"": false, pin: true}, keys.PINForbid: {"": true, pin: false}, keys.PINAllow: {"": true, pin: true},
	} {
		p, _ := manage(t, func(o *keys.Options) { o.PINMode = mode })
		ctx := t.Context()
		c := p.issue(t, keys.IssueOrder{PIN: "old pin"}) // from before the mode was set
		for secret, allowed := range good {
			want := func(what string, err error) {
				t.Helper()
				if (err == nil) != allowed || err != nil && !fault.Is(err, fault.InvalidPIN) {
					t.Errorf("%s, %s with PIN %q: %v", mode, what, secret, err)
				}
			}
			q, err := p.CreateRequest(ctx, as(alice), keys.CertificateOrder{PIN: secret})
			want("a request", err)
			if err == nil {
				made, err := p.Find(ctx, alice, strconv.FormatInt(q.CertificateID, 10))
				if err != nil || made.HasPIN != (secret != "") {
					t.Errorf("%s: %+v, %v", mode, made, err)
				}
			}
			_, err = p.Generate(ctx, as(alice), 11849, "", secret)
			want("generation", err)
			err = p.ChangePIN(ctx, as(alice), number(c), "old pin", secret)
			want("a change", err)
			if err == nil {
				if _, err := p.Find(ctx, alice, number(c)); err != nil {
					t.Error(err)
				}
				c = p.issue(t, keys.IssueOrder{PIN: "old pin"})
			}
		}
	}
}

func TestFriendlyName(t *testing.T) {
	p, _ := manage(t)
	ctx := t.Context()
	a, b, theirs := p.issue(t, keys.IssueOrder{}), p.issue(t, keys.IssueOrder{}), p.issue(t, keys.IssueOrder{UserID: bob})
	set := func(who string, c *keys.Certificate, name string) error {
		_, err := p.SetFriendlyName(ctx, as(who), number(c), name)
		return err
	}
	for what, err := range map[string]error{
		"a name": set(alice, a, strings.Repeat("я", 255)), "the same again": set(alice, a, strings.Repeat("я", 255)),
		"another": set(alice, a, "Первый"), "another user's name": set(bob, theirs, "Первый"), "none": set(alice, b, ""),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	_ = set(alice, a, "Первый")
	if err := set(alice, b, "первый"); !fault.Is(err, fault.DuplicateFriendlyName) {
		t.Error(err)
	}
	if err := set(alice, a, strings.Repeat("я", 256)); !fault.Is(err, fault.FriendlyNameLength) {
		t.Error(err)
	}
	if err := set(bob, a, "x"); !fault.Is(err, fault.CertificateNotFound) {
		t.Error(err)
	}
	if c, err := p.Find(ctx, alice, number(a)); err != nil || c.FriendlyName != "Первый" {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestDelete(t *testing.T) {
	p, r := manage(t)
	ctx := t.Context()
	c := p.issue(t, keys.IssueOrder{Default: true})
	if _, err := p.Delete(ctx, as(alice), number(c), false); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Find(ctx, alice, number(c)); !fault.Is(err, fault.CertificateNotFound) {
		t.Error(err)
	}
	if _, err := p.Resolve(ctx, alice, "0"); !fault.Is(err, fault.InvalidCertificate) {
		t.Errorf("the default certificate: %v", err)
	}
	if _, err := p.Sign(ctx, c, "", digests(suite.GOST2012x256, "x")); err == nil {
		t.Error("the key of a deleted certificate signs")
	}
	if next := p.issue(t, keys.IssueOrder{}); next.ID == c.ID {
		t.Error("a number was given twice")
	}
	if _, found, err := p.Store.Key(ctx, c.KeyID); found || err != nil {
		t.Errorf("the key is still there: %v", err)
	}
	if r.events[1] != notify.CertificateDeleted {
		t.Error(r.events)
	}
}

func TestSetStatus(t *testing.T) {
	p, r := manage(t)
	ctx := t.Context()
	c := p.issue(t, keys.IssueOrder{PIN: pin})
	set := func(o keys.StatusOrder) (keys.Status, string) {
		t.Helper()
		made, err := p.SetStatus(ctx, as(alice), number(c), o)
		if f, ok := fault.As(err); ok {
			return 0, f.Code
		} else if err != nil {
			t.Fatal(err)
		}
		return made.Status, ""
	}
	usable := func() bool {
		found, err := p.Find(ctx, alice, number(c))
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Judge(ctx, found, p.clock.now())
		return err == nil
	}
	for _, step := range []struct {
		order  keys.StatusOrder
		status keys.Status
		code   string
		usable bool
	}{
		{keys.StatusOrder{Status: keys.Active}, 0, fault.CertificateStatus, true},
		{keys.StatusOrder{Status: keys.Hold, PIN: "1"}, 0, fault.InvalidPIN, true},
		{keys.StatusOrder{Status: keys.Hold, PIN: pin}, keys.Hold, "", false},
		{keys.StatusOrder{Status: keys.Hold}, 0, fault.CertificateStatus, false},
		{keys.StatusOrder{Status: keys.Active}, keys.Active, "", true},
		{keys.StatusOrder{Status: keys.Hold}, keys.Hold, "", false},
		{keys.StatusOrder{Status: keys.Revoked, Reason: 7}, 0, fault.InvalidParameters, false},
		{keys.StatusOrder{Status: keys.Revoked, Reason: 1}, keys.Revoked, "", false},
		{keys.StatusOrder{Status: keys.Active}, 0, fault.CertificateStatus, false},
		{keys.StatusOrder{Status: keys.Revoked}, 0, fault.CertificateStatus, false},
		{keys.StatusOrder{Status: keys.NotValid}, 0, fault.InvalidParameters, false},
	} {
		p.clock.advance(time.Second)
		status, code := set(step.order)
		if status != step.status || code != step.code || usable() != step.usable {
			t.Errorf("%+v: %v %q, usable %t", step.order, status, code, usable())
		}
	}
	want := []notify.EventType{notify.CertificateIssued, notify.CertificateHeld, notify.CertificateUnheld, notify.CertificateHeld, notify.CertificateRevoked}
	if len(r.events) != len(want) {
		t.Errorf("%v, want %v", r.events, want)
	}
}

// OpenSSL with gost-engine verifies every request, and every certificate against its
// authority.
func TestRequestsAtOnce(t *testing.T) {
	tool := judge.OpenSSL(t)
	p, r := manage(t)
	ctx := t.Context()
	for i, su := range suite.All() {
		q, err := p.CreateRequest(ctx, as(alice), keys.CertificateOrder{
			Suite: su.Name, PIN: pin, Life: 24 * time.Hour, Template: "1.2.643.2.2.46.0.8", Usages: []string{"1.3.6.1.5.5.7.3.2", "1.2.643.2.2.34.6"},
			Name: map[string]string{"2.5.4.3": "Иван", "O": "ООО \"Ромашка\"", "4": "007812345678"},
		})
		if err != nil {
			t.Fatalf("%s: %v", su.Name, err)
		}
		if q.Status != keys.Accepted || q.CertificateID == 0 || !strings.Contains(q.Subject, "CN=Иван") {
			t.Errorf("%s: %+v", su.Name, q)
		}
		tool.Write("r.der", q.DER)
		if _, err := tool.Run("req", "-inform", "DER", "-in", "r.der", "-verify", "-noout"); err != nil {
			t.Errorf("%s: %v", su.Name, err)
		}
		c, err := p.Find(ctx, alice, strconv.FormatInt(q.CertificateID, 10))
		if err != nil {
			t.Fatal(err)
		}
		if c.Default != (i == 0) || !c.HasPIN || c.X509.Suite != su || c.X509.NotAfter.After(p.clock.now().Add(25*time.Hour)) {
			t.Errorf("%s: %+v", su.Name, c)
		}
		verify(t, tool, p, c)
		text, err := tool.Run("x509", "-in", "c.pem", "-noout", "-text")
		if err != nil || !strings.Contains(text, "1.2.643.2.2.34.6") || !strings.Contains(text, "1.3.6.1.4.1.311.21.7") {
			t.Errorf("%s: usages and template are missing: %v", su.Name, err)
		}
	}
	if r.events[0] != notify.CertificatesRequested || r.events[1] != notify.CertificateIssued {
		t.Error(r.events)
	}
}

// verify has OpenSSL verify a certificate of the built-in authority.
func verify(t *testing.T, tool *judge.Tool, p *process, c *keys.Certificate) {
	t.Helper()
	var roots, issuing bytes.Buffer
	for _, list := range []struct {
		from func(context.Context) ([]*x509gost.Certificate, error)
		to   *bytes.Buffer
	}{{p.authority.Roots, &roots}, {p.authority.Issuing, &issuing}} {
		certificates, err := list.from(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range certificates {
			_ = pem.Encode(list.to, &pem.Block{Type: "CERTIFICATE", Bytes: one.Raw})
		}
	}
	tool.Write("roots.pem", roots.Bytes())
	tool.Write("issuing.pem", issuing.Bytes())
	tool.Write("c.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.X509.Raw}))
	at := strconv.FormatInt(p.clock.now().Unix(), 10)
	if _, err := tool.Run("verify", "-attime", at, "-CAfile", "roots.pem", "-untrusted", "issuing.pem", "c.pem"); err != nil {
		t.Errorf("%s: %v", c.X509.Suite.Name, err)
	}
}

func TestRequestRefuses(t *testing.T) {
	p, _ := manage(t)
	for what, c := range map[string]struct {
		order keys.CertificateOrder
		code  string
	}{
		"no such authority":  {keys.CertificateOrder{Authority: 9}, fault.InvalidEnroll},
		"an unknown part":    {keys.CertificateOrder{Name: map[string]string{"1.2.3": "x"}}, fault.InvalidSubject},
		"a part twice":       {keys.CertificateOrder{Name: map[string]string{"CN": "x", "2.5.4.3": "y"}}, fault.InvalidSubject},
		"a part without end": {keys.CertificateOrder{Name: map[string]string{"CN": strings.Repeat("x", 257)}}, fault.InvalidSubject},
		"a short INN":        {keys.CertificateOrder{Name: map[string]string{"INN": "77"}}, fault.InvalidSubject},
		"a NUL":              {keys.CertificateOrder{Name: map[string]string{"CN": "Мария\x00Иван"}}, fault.InvalidSubject},
		"a line break":       {keys.CertificateOrder{Name: map[string]string{"O": "Рога\nи копыта"}}, fault.InvalidSubject},
		"another direction":  {keys.CertificateOrder{Name: map[string]string{"CN": "Мария\u202eнавИ"}}, fault.InvalidSubject},
		"an isolate":         {keys.CertificateOrder{Name: map[string]string{"CN": "\u2067Мария"}}, fault.InvalidSubject},
		"a space of no size": {keys.CertificateOrder{Name: map[string]string{"CN": "Ма\u200bрия"}}, fault.InvalidSubject},
		"a server's usage":   {keys.CertificateOrder{Usages: []string{"1.3.6.1.5.5.7.3.1"}}, fault.InvalidParameters},
		"a stamper's usage":  {keys.CertificateOrder{Usages: []string{"1.3.6.1.5.5.7.3.8"}}, fault.InvalidParameters},
		"no usage":           {keys.CertificateOrder{Usages: []string{"x"}}, fault.InvalidParameters},
		"no template":        {keys.CertificateOrder{Template: "x"}, fault.InvalidParameters},
		"no such provider":   {keys.CertificateOrder{Suite: "dsa"}, fault.ProviderNotFound},
		"a life without end": {keys.CertificateOrder{Life: 200 * 365 * 24 * time.Hour}, fault.InvalidParameters},
		"a negative life":    {keys.CertificateOrder{Life: -time.Hour}, fault.InvalidParameters},
		"nothing to renew":   {keys.CertificateOrder{Renew: "99"}, fault.CertificateNotFound},
		"a PIN without end":  {keys.CertificateOrder{PIN: strings.Repeat("1", 257)}, fault.InvalidPIN},
	} {
		if _, err := p.CreateRequest(t.Context(), as(alice), c.order); !fault.Is(err, c.code) {
			t.Errorf("%s: %v, want %s", what, err, c.code)
		}
	}
	if list, err := p.List(t.Context(), alice); err != nil || len(list) != 0 {
		t.Errorf("%d certificates, %v", len(list), err)
	}
	fixed, _ := manage(t, func(o *keys.Options) { o.Enrolment.FixedNames = true })
	if _, err := fixed.CreateRequest(t.Context(), as(alice), keys.CertificateOrder{Name: map[string]string{"CN": "Иван"}}); !fault.Is(err, fault.InvalidSubject) {
		t.Errorf("another name: %v", err)
	}
	q, err := fixed.CreateRequest(t.Context(), as(alice), keys.CertificateOrder{Name: map[string]string{"CN": "мария"}})
	if err != nil || !strings.Contains(q.Subject, "INN=007700000000") || !strings.Contains(q.Subject, "CN=Мария") {
		t.Errorf("the own name, as it is registered: %+v, %v", q, err)
	}
}

// Where names are fixed, no way to a certificate leads around the registered name: a renewal of a
// certificate in another name, also one of another authority, gets the registered one.
func TestFixedNamesOfRenewals(t *testing.T) {
	p, _ := manage(t, func(o *keys.Options) { o.Enrolment.FixedNames = true })
	subject, err := x509gost.BuildName([]x509gost.Attribute{{OID: x509gost.OIDCommonName, Value: "Alice"}})
	if err != nil {
		t.Fatal(err)
	}
	old := p.issue(t, keys.IssueOrder{Default: true, Subject: subject})
	q, err := p.CreateRequest(t.Context(), as(alice), keys.CertificateOrder{Renew: number(old)})
	if err != nil {
		t.Fatal(err)
	}
	next, err := p.Find(t.Context(), alice, strconv.FormatInt(q.CertificateID, 10))
	if err != nil || !strings.Contains(next.X509.Subject.String(), "CN=Мария") || strings.Contains(next.X509.Subject.String(), "Alice") {
		t.Errorf("%v, %v", next, err)
	}
}

// Differences names each part that is not the registered one, and nothing else.
func TestDifferences(t *testing.T) {
	p, _ := manage(t, operated)
	for _, c := range []struct {
		order keys.CertificateOrder
		want  []keys.Difference
	}{
		{keys.CertificateOrder{}, nil},
		{keys.CertificateOrder{Name: map[string]string{"CN": "Мария"}}, nil},
		{keys.CertificateOrder{Name: map[string]string{"CN": "Иван", "O": "Рога", "INN": "007700000000"}}, []keys.Difference{
			{Name: "CN", Asked: "Иван", Registered: "Мария"}, {Name: "O", Asked: "Рога"}}},
		{keys.CertificateOrder{Name: map[string]string{"CN": "мария"}}, []keys.Difference{{Name: "CN", Asked: "мария", Registered: "Мария"}}},
	} {
		q, err := p.CreateRequest(t.Context(), as(alice), c.order)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.DiffersOf(t.Context(), q); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v: %+v, %v, want %+v", c.order.Name, got, err, c.want)
		}
		if _, err := p.Reject(t.Context(), q.ID, ""); err != nil {
			t.Fatal(err)
		}
	}
	// Parts that the record has and the name has not, a part twice, and one that the policy does not know.
	name, err := x509gost.BuildName([]x509gost.Attribute{
		{OID: x509gost.OIDCommonName, Value: "Мария"}, {OID: x509gost.OIDCommonName, Value: "Иван"}, {OID: x509gost.OIDDomainComponent, Value: "example"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []keys.Difference{{Name: "CN", Asked: "Иван", Registered: "Мария"}, {Name: "DC", Asked: "example"}, {Name: "INN", Registered: "007700000000"}}
	if got, err := p.Differences(t.Context(), alice, name); err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}

func TestRenew(t *testing.T) {
	p, _ := manage(t)
	ctx := t.Context()
	old := p.issue(t, keys.IssueOrder{Suite: suite.GOST2012x512, PIN: pin, Default: true})
	if _, err := p.CreateRequest(ctx, as(alice), keys.CertificateOrder{Renew: number(old), RenewPIN: "1"}); !fault.Is(err, fault.InvalidPIN) {
		t.Errorf("a wrong PIN: %v", err)
	}
	q, err := p.CreateRequest(ctx, as(alice), keys.CertificateOrder{Renew: number(old), RenewPIN: pin, PIN: "867530"})
	if err != nil || q.Renews != old.ID {
		t.Fatalf("%+v, %v", q, err)
	}
	next, err := p.Find(ctx, alice, strconv.FormatInt(q.CertificateID, 10))
	if err != nil || next.X509.Suite != suite.GOST2012x512 || !next.X509.Subject.Equal(old.X509.Subject) || next.KeyID == old.KeyID || next.Default {
		t.Errorf("%+v, %v", next, err)
	}
	if err := p.Revoke(ctx, old.ID, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := p.CreateRequest(ctx, as(alice), keys.CertificateOrder{Renew: number(old), RenewPIN: pin}); !fault.Is(err, fault.InvalidCertificate) {
		t.Errorf("a revoked one: %v", err)
	}
}

func operated(o *keys.Options) {
	o.Enrolment.Authorities = []keys.Authority{{ID: keys.BuiltIn, Name: "УЦ", Operator: true}}
}

func TestOperator(t *testing.T) {
	p, r := manage(t, operated)
	ctx := t.Context()
	q, err := p.CreateRequest(ctx, as(alice), keys.CertificateOrder{})
	if err != nil || q.Status != keys.Pending || q.CertificateID != 0 {
		t.Fatalf("%+v, %v", q, err)
	}
	if _, err := p.CreateRequest(ctx, as(alice), keys.CertificateOrder{}); !fault.Is(err, fault.PendingRequests) {
		t.Errorf("a second one: %v", err)
	}
	if _, err := p.Generate(ctx, as(alice), 11849, "", ""); !fault.Is(err, fault.WrongOperation) {
		t.Errorf("past the operator: %v", err)
	}
	if _, err := p.Request(ctx, audit.Principal{UserID: bob}, strconv.FormatInt(q.ID, 10)); !fault.Is(err, fault.RequestNotFound) {
		t.Errorf("another user's request: %v", err)
	}
	if _, err := p.DeleteRequest(ctx, as(bob), strconv.FormatInt(q.ID, 10)); !fault.Is(err, fault.RequestNotFound) {
		t.Errorf("another user's request deleted: %v", err)
	}
	if _, err := p.Install(ctx, as(alice), p.issue(t, keys.IssueOrder{}).X509.Raw); !fault.Is(err, fault.RequestNotFound) {
		t.Errorf("past the operator by installing: %v", err)
	}
	if list, err := p.Waiting(ctx); err != nil || len(list) != 1 {
		t.Fatalf("%d wait, %v", len(list), err)
	}
	approved, err := p.Approve(ctx, q.ID)
	if err != nil || approved.Status != keys.Accepted {
		t.Fatalf("%+v, %v", approved, err)
	}
	if _, err := p.Approve(ctx, q.ID); !fault.Is(err, fault.RequestStatus) {
		t.Errorf("twice: %v", err)
	}
	if _, err := p.Reject(ctx, q.ID, ""); !fault.Is(err, fault.RequestStatus) {
		t.Errorf("rejected after all: %v", err)
	}
	if _, err := p.Approve(ctx, 99); !fault.Is(err, fault.RequestNotFound) {
		t.Errorf("unknown: %v", err)
	}
	// A rejected one, and one that its user deletes, leave no key.
	for _, end := range []func(id int64) error{
		func(id int64) error { _, err := p.Reject(ctx, id, ""); return err },
		func(id int64) error { _, err := p.DeleteRequest(ctx, as(alice), strconv.FormatInt(id, 10)); return err },
	} {
		q, err := p.CreateRequest(ctx, as(alice), keys.CertificateOrder{})
		if err != nil {
			t.Fatal(err)
		}
		if err := end(q.ID); err != nil {
			t.Fatal(err)
		}
		if _, found, err := p.Store.Key(ctx, q.KeyID); found || err != nil {
			t.Errorf("its key is there: %v", err)
		}
	}
	// A revocation request waits too.
	id := strconv.FormatInt(approved.CertificateID, 10)
	q, err = p.RequestRevocation(ctx, as(alice), id, keys.StatusOrder{Reason: 1, Comment: "потерян"})
	if err != nil || q.Status != keys.Pending {
		t.Fatalf("%+v, %v", q, err)
	}
	if _, err := p.RequestRevocation(ctx, as(alice), id, keys.StatusOrder{}); !fault.Is(err, fault.PendingRequests) {
		t.Errorf("twice: %v", err)
	}
	if c, _ := p.Find(ctx, alice, id); c.Status != keys.Active {
		t.Error("revoked before it was approved")
	}
	if _, err := p.Approve(ctx, q.ID); err != nil {
		t.Fatal(err)
	}
	if c, _ := p.Find(ctx, alice, id); c.Status != keys.Revoked || c.Reason != 1 {
		t.Errorf("%+v", c)
	}
	if last := r.events[len(r.events)-1]; last != notify.CertificateRevoked {
		t.Error(r.events)
	}
}

// TestRequestsTogether: of many concurrent requests in several processes one waits.
func TestRequestsTogether(t *testing.T) {
	p, _ := manage(t, operated)
	made := make(chan error, 8)
	for range cap(made) {
		go func() { _, err := p.CreateRequest(t.Context(), as(alice), keys.CertificateOrder{}); made <- err }()
	}
	count := 0
	for range cap(made) {
		if err := <-made; err == nil {
			count++
		} else if !fault.Is(err, fault.PendingRequests) {
			t.Error(err)
		}
	}
	if count != 1 {
		t.Errorf("%d requests wait", count)
	}
}

// elsewhere is an outside authority: OpenSSL with gost-engine.
type elsewhere struct {
	*judge.Tool
	t    *testing.T
	root *x509gost.Certificate
	crl  []byte
	err  error

	asked int // how often
}

func newElsewhere(t *testing.T) *elsewhere {
	t.Helper()
	e := &elsewhere{Tool: judge.OpenSSL(t), t: t}
	if _, err := e.Run("req", "-x509", "-newkey", "gost2012_256", "-pkeyopt", "paramset:A", "-nodes", "-keyout", "ca.key", "-out", "ca.pem",
		"-subj", "/CN=Elsewhere", "-days", "3650", "-addext", "basicConstraints=critical,CA:true", "-addext", "keyUsage=critical,keyCertSign,cRLSign"); err != nil {
		t.Fatal(err)
	}
	list, err := x509gost.ParseCertificates(e.Read("ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	e.root = list[0]
	e.Write("ca.cnf", []byte("[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\ncrlnumber=number\ndefault_md=md_gost12_256\n"))
	e.Write("index.txt", nil)
	e.Write("number", []byte("01\n"))
	e.list()
	return e
}

// list makes the current revocation list.
func (e *elsewhere) list() {
	e.t.Helper()
	if _, err := e.Run("ca", "-config", "ca.cnf", "-gencrl", "-keyfile", "ca.key", "-cert", "ca.pem", "-crldays", "3650", "-out", "crl.pem"); err != nil {
		e.t.Fatal(err)
	}
	block, _ := pem.Decode(e.Read("crl.pem"))
	e.crl = block.Bytes
}

// certify issues a certificate for a request, as PEM.
func (e *elsewhere) certify(request []byte) []byte {
	e.t.Helper()
	e.Write("r.der", request)
	e.Write("ext.cnf", []byte("keyUsage=digitalSignature,nonRepudiation\nauthorityKeyIdentifier=keyid\n"))
	if _, err := e.Run("x509", "-req", "-inform", "DER", "-in", "r.der", "-CA", "ca.pem", "-CAkey", "ca.key", "-set_serial", "5", "-days", "365", "-extfile", "ext.cnf", "-out", "issued.pem"); err != nil {
		e.t.Fatal(err)
	}
	return e.Read("issued.pem")
}

func (e *elsewhere) Revocation(context.Context, *x509gost.Certificate, *x509gost.Certificate) (answer, list []byte, err error) {
	e.asked++
	return nil, e.crl, e.err
}

func TestOutside(t *testing.T) {
	e := newElsewhere(t)
	p, _ := manage(t, func(o *keys.Options) {
		o.Enrolment.Authorities = []keys.Authority{
			{ID: keys.BuiltIn, Name: "УЦ"}, {ID: 2, Name: "Elsewhere", Outside: true, Roots: []*x509gost.Certificate{e.root}},
		}
		o.Evidence = e
	})
	ctx := t.Context()
	// The list of OpenSSL has the time of the machine.
	list, err := x509gost.ParseRevocationList(e.crl)
	if err != nil {
		t.Fatal(err)
	}
	p.clock.advance(list.ThisUpdate.Add(time.Minute).Sub(p.clock.now()))
	if err := p.authority.Maintain(ctx); err != nil {
		t.Fatal(err)
	}
	q, err := p.CreateRequest(ctx, as(alice), keys.CertificateOrder{Authority: 2, PIN: pin})
	if err != nil || q.Status != keys.Pending {
		t.Fatalf("%+v, %v", q, err)
	}
	if _, err := p.Approve(ctx, q.ID); !fault.Is(err, fault.WrongOperation) {
		t.Errorf("approved here: %v", err)
	}
	issued := e.certify(q.DER)
	block, _ := pem.Decode(issued)
	for what, c := range map[string]struct {
		who  string
		data []byte
		code string
	}{
		"another user":   {bob, issued, fault.RequestNotFound},
		"another key":    {alice, e.root.Raw, fault.InvalidCertificate},
		"no certificate": {alice, []byte("x"), fault.CertificateFormat},
		"cut off":        {alice, block.Bytes[:100], fault.CertificateFormat},
		"forged":         {alice, append(bytes.Clone(block.Bytes[:len(block.Bytes)-1]), block.Bytes[len(block.Bytes)-1]^1), fault.InvalidCertificate},
	} {
		if _, err := p.Install(ctx, as(c.who), c.data); !fault.Is(err, c.code) {
			t.Errorf("%s: %v, want %s", what, err, c.code)
		}
	}
	// BER in Base64, which an authority may send too.
	ber := append([]byte{0x30, 0x80}, block.Bytes[4:]...)
	ber = append(ber, 0, 0)
	c, err := p.Install(ctx, as(alice), []byte(base64.StdEncoding.EncodeToString(ber)))
	if err != nil || !c.Outside || !c.Default || !bytes.Equal(c.X509.Raw, block.Bytes) {
		t.Fatalf("%+v, %v", c, err)
	}
	if _, err := p.Install(ctx, as(alice), issued); !fault.Is(err, fault.RequestNotFound) {
		t.Errorf("twice: %v", err)
	}
	if _, err := p.Judge(ctx, c, p.clock.now()); err != nil {
		t.Errorf("judged: %v", err)
	}
	values, err := p.Sign(ctx, c, pin, digests(suite.GOST2012x256, "x"))
	if err != nil || c.Verify(digests(suite.GOST2012x256, "x")[0], values[0]) != nil {
		t.Errorf("signing: %v", err)
	}
	if _, err := p.SetStatus(ctx, as(alice), number(c), keys.StatusOrder{Status: keys.Revoked}); !fault.Is(err, fault.WrongOperation) {
		t.Errorf("revoked here: %v", err)
	}
	if err := p.Revoke(ctx, c.ID, 0); !fault.Is(err, fault.WrongOperation) {
		t.Errorf("revoked here by an operator: %v", err)
	}
	shown := func(want keys.Status, reason int) {
		t.Helper()
		list, err := p.List(ctx, alice)
		if err != nil || len(list) != 1 || list[0].Status != want || list[0].Reason != reason || list[0].RevokedAt.IsZero() != (want == keys.Active) {
			t.Errorf("%+v, %v, want %s and the reason %d", list, err, want, reason)
		}
	}
	refresh := func() {
		t.Helper()
		if err := p.Refresh(ctx); err != nil {
			t.Error(err)
		}
	}
	refresh()
	shown(keys.Active, 0)
	at := p.clock.now()
	// Without evidence it cannot be used, nor after a revocation by its authority.
	e.err = errors.New("down")
	if _, err := p.Judge(ctx, c, p.clock.now()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("its authority is down: %v", err)
	}
	e.err = chain.ErrRevoked
	if _, err := p.Judge(ctx, c, p.clock.now()); !fault.Is(err, fault.InvalidCertificate) {
		t.Errorf("told to be revoked: %v", err)
	}
	// Lists show the last known status without asking the authority.
	asked := e.asked
	shown(keys.Revoked, 0)
	if e.asked != asked {
		t.Error("a list asks the authority")
	}
	e.err = nil
	if _, err := p.Judge(ctx, c, p.clock.now()); err != nil {
		t.Errorf("judged again: %v", err)
	}
	c, err = p.Find(ctx, alice, number(c))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Judge(ctx, c, p.clock.now()); err != nil {
		t.Errorf("what was said before keeps it from being used: %v", err)
	}
	shown(keys.Active, 0)
	revoke := func(reason string) {
		t.Helper()
		e.Write("index.txt", nil)
		if _, err := e.Run("ca", "-config", "ca.cnf", "-keyfile", "ca.key", "-cert", "ca.pem", "-revoke", "issued.pem", "-crl_reason", reason); err != nil {
			t.Fatal(err)
		}
		e.list()
	}
	revoke("certificateHold")
	refresh()
	shown(keys.Active, 0) // not due
	p.clock.advance(keys.DefaultStatusAge)
	refresh()
	shown(keys.Hold, 6)
	e.Write("index.txt", nil)
	e.list()
	p.clock.advance(keys.DefaultStatusAge)
	e.err = errors.New("down")
	if err := p.Refresh(ctx); err == nil {
		t.Error("an authority that is down is no error")
	}
	shown(keys.Hold, 6)
	e.err = nil
	refresh()
	shown(keys.Hold, 6) // asked when due
	p.clock.advance(keys.DefaultStatusAge)
	refresh()
	shown(keys.Active, 0)
	revoke("keyCompromise")
	p.clock.advance(keys.DefaultStatusAge)
	refresh()
	shown(keys.Revoked, 1)
	asked = e.asked
	p.clock.advance(keys.DefaultStatusAge)
	refresh()
	if e.asked != asked {
		t.Error("an authority is asked about what it revoked for good")
	}
	p.clock.advance(at.Sub(p.clock.now()))
	if _, err := p.Judge(ctx, c, p.clock.now().Add(time.Hour)); !fault.Is(err, fault.InvalidCertificate) {
		t.Errorf("on the list: %v", err)
	}
	o := p.Options
	o.Evidence = nil
	silent, err := keys.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := silent.Judge(ctx, c, p.clock.now()); !fault.Is(err, fault.InvalidCertificate) {
		t.Errorf("no status: %v", err)
	}
}

func TestGenerate(t *testing.T) {
	p, _ := manage(t)
	ctx := t.Context()
	for _, c := range []struct {
		algorithm  int64
		parameters string
		suite      *suite.Suite
		code       string
	}{
		{11811, "", suite.GOST2001, ""},
		{11849, "", suite.GOST2012x256, ""},
		{11849, "1.2.643.2.2.36.0", suite.GOST2012x256, ""},
		{11837, "1.2.643.7.1.2.1.2.3", suite.GOST2012x512, ""},
		{9216, "", suite.RSASHA256, ""},
		{1, "", nil, fault.AlgorithmNotSupported},
		{11849, "1.2.643.7.1.2.1.2.1", nil, fault.ParameterNotSupported},
		{11849, "1.2.643.2.2.35.0", nil, fault.ParameterNotSupported}, // for tests only
		{41984, "1.2.643.2.2.35.1", nil, fault.ParameterNotSupported},
		{11849, "x", nil, fault.ParameterNotSupported},
	} {
		made, err := p.Generate(ctx, as(alice), c.algorithm, c.parameters, pin)
		if c.code != "" {
			if !fault.Is(err, c.code) {
				t.Errorf("%d %s: %v, want %s", c.algorithm, c.parameters, err, c.code)
			}
			continue
		}
		if err != nil || made.X509.Suite != c.suite || !made.HasPIN {
			t.Errorf("%d %s: %+v, %v", c.algorithm, c.parameters, made, err)
			continue
		}
		ds := digests(c.suite, "x")
		values, err := p.Sign(ctx, made, pin, ds)
		if err != nil || made.Verify(ds[0], values[0]) != nil {
			t.Errorf("%d: signing: %v", c.algorithm, err)
		}
	}
}

func TestParameters(t *testing.T) {
	p, _ := manage(t)
	ctx := t.Context()
	who := audit.Principal{UserID: alice}
	c := p.issue(t, keys.IssueOrder{})
	parameters := keys.Parameters{Keys: p.Service, Store: store.Keys{DB: p.db}}
	set := func(a keys.Act, name, value string) error { return parameters.Set(ctx, a, number(c), name, value) }
	for i := range 100 {
		if err := set(as(alice), strconv.Itoa(i), "v"); err != nil {
			t.Fatal(err)
		}
	}
	for what, c := range map[string]struct {
		err  error
		code string
	}{
		"no name":            {set(as(alice), "", "v"), fault.ParamIsNull},
		"no value":           {set(as(alice), "n", ""), fault.ValueIsNull},
		"one too many":       {set(as(alice), "n", "v"), fault.InvalidObjectState},
		"too long":           {set(as(alice), "1", strings.Repeat("v", 5000)), fault.InvalidParameters},
		"another user's key": {set(as(bob), "1", "v"), fault.CertNotFound},
	} {
		if !fault.Is(c.err, c.code) {
			t.Errorf("%s: %v", what, c.err)
		}
	}
	if err := set(as(alice), "7", "другое"); err != nil {
		t.Error(err)
	}
	if value, err := parameters.Get(ctx, who, number(c), "7"); err != nil || value != "другое" {
		t.Errorf("%q, %v", value, err)
	}
	if value, err := parameters.Get(ctx, who, number(c), "never"); err != nil || value != "" {
		t.Errorf("%q, %v", value, err)
	}
}

func TestTransfer(t *testing.T) {
	p, r := manage(t, func(o *keys.Options) { o.Exportable = true })
	ctx := t.Context()
	c := p.issue(t, keys.IssueOrder{PIN: pin, FriendlyName: "Мой ключ"})
	order := keys.ExportOrder{ID: c.ID, PIN: pin, Password: "пароль", Options: pfx.Options{Iterations: 10}}
	file, err := p.Export(ctx, order)
	if err != nil {
		t.Fatal(err)
	}
	b, err := pfx.Parse(file, "пароль")
	if err != nil || len(b.Others) != 2 || b.Name != "Мой ключ" {
		t.Fatalf("%+v, %v", b, err)
	}
	for what, c := range map[string]struct {
		change func(o *keys.ExportOrder)
		code   string
	}{
		"a wrong PIN":         {func(o *keys.ExportOrder) { o.PIN = "1" }, fault.InvalidPIN},
		"no password":         {func(o *keys.ExportOrder) { o.Password = "" }, fault.InvalidParameters},
		"no such certificate": {func(o *keys.ExportOrder) { o.ID = 99 }, fault.CertificateNotFound},
	} {
		bad := order
		c.change(&bad)
		if _, err := p.Export(ctx, bad); !fault.Is(err, c.code) {
			t.Errorf("%s: %v", what, err)
		}
	}
	own := &keys.Plan{Kind: keys.ToExport, Certificate: number(c), Secrets: keys.Secrets{PIN: pin, Password: "пароль файла"}}
	if _, _, err := acts(t, p.OperationKinds(), &rows{}).Start(ctx, own.Ordered(as(alice).Who, operation.FormPage, operation.Waits)); !fault.Is(err, fault.MethodNotConfirmed) {
		t.Errorf("an export by the user without a confirmation: %v", err)
	}
	if may, err := p.MayExport(ctx, alice); may || err != nil {
		t.Errorf("administrators may export, so users may: %t, %v", may, err)
	}
	if may, err := p.MayRequest(ctx, alice); !may || err != nil {
		t.Errorf("a request that the policy allows: %t, %v", may, err)
	}
	r.denied = policy.CreateRequest
	if may, err := p.MayRequest(ctx, alice); may || err != nil {
		t.Errorf("a request that the policy denies: %t, %v", may, err)
	}
	r.denied = policy.PrivateKeyAccess
	if _, err := p.Export(ctx, order); !fault.Is(err, fault.AccessDenied) {
		t.Errorf("denied: %v", err)
	}
	r.denied = 0
	o := p.Options
	o.Exportable = false
	closed, _ := keys.New(o)
	if _, err := closed.Export(ctx, order); !fault.Is(err, fault.WrongOperation) {
		t.Errorf("where keys do not leave: %v", err)
	}

	in := keys.ImportOrder{UserID: alice, File: file, Password: "пароль", PIN: "867530"}
	if _, err := p.Import(ctx, in); !fault.Is(err, fault.InvalidObjectState) {
		t.Errorf("what is there already: %v", err)
	}
	if _, err := p.Delete(ctx, as(alice), number(c), false); err != nil {
		t.Fatal(err)
	}
	back, err := p.Import(ctx, in)
	if err != nil || back.Outside || !back.HasPIN || back.FriendlyName != "Мой ключ" {
		t.Fatalf("%+v, %v", back, err)
	}
	ds := digests(suite.GOST2012x256, "x")
	values, err := p.Sign(ctx, back, "867530", ds)
	if err != nil || c.X509.Verify(ds[0], values[0]) != nil {
		t.Errorf("the key that came back: %v", err)
	}
	if _, err := p.Judge(ctx, back, p.clock.now()); err != nil {
		t.Error(err)
	}
	in.Password = "x"
	if _, err := p.Import(ctx, in); !fault.Is(err, fault.InvalidParameters) {
		t.Errorf("a wrong password: %v", err)
	}
	in.Password, in.File = "пароль", []byte("x")
	if _, err := p.Import(ctx, in); !fault.Is(err, fault.InvalidParameters) {
		t.Errorf("no file: %v", err)
	}
	// A certificate of an unknown authority.
	other := startWith(t, 9)
	theirs := other.issue(t, keys.IssueOrder{})
	so := other.Options
	so.Exportable = true
	exporting, _ := keys.New(so)
	in.File, err = exporting.Export(ctx, keys.ExportOrder{ID: theirs.ID, Password: "пароль", Options: pfx.Options{Iterations: 10}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Import(ctx, in); !fault.Is(err, fault.InvalidCertificate) {
		t.Errorf("an unknown authority: %v", err)
	}
}
