// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/policy"
)

func TestActionNames(t *testing.T) {
	// The bits are those of the specification: DSSActions in the order of its schema.
	for i, name := range []string{"Issue", "SignDocument", "SignDocuments", "DecryptDocument", "CreateRequest", "ChangePin",
		"RenewCertificate", "RevokeCertificate", "HoldCertificate", "UnholdCertificate", "DeleteCertificate", "PrivateKeyAccess"} {
		a := policy.Action(1) << i
		if a.String() != name || policy.Actions()[i] != a {
			t.Errorf("bit %d is %s, want %s", i, a, name)
		}
		for _, text := range []string{name, strings.ToLower(name)} {
			if got, err := policy.ParseAction(text); err != nil || got != a {
				t.Errorf("ParseAction(%q) = %v, %v", text, got, err)
			}
		}
	}
	if got := (policy.SignDocument | policy.Issue).String(); got != "Issue,SignDocument" {
		t.Errorf("a set is written %q", got)
	}
	if got := policy.Action(1 << 20).String(); got != "1048576" {
		t.Errorf("an unknown bit is written %q", got)
	}
	for text, want := range map[string]policy.Action{"2": policy.SignDocument, "6": policy.SignDocument | policy.SignDocuments, "4095": policy.All} {
		if got, err := policy.ParseAction(text); err != nil || got != want {
			t.Errorf("ParseAction(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "-1", "4096", "4294967298", "Sign", "Issue,SignDocument", "1e1", "0x2"} {
		if got, err := policy.ParseAction(text); !fault.Is(err, fault.InvalidParameters) {
			t.Errorf("ParseAction(%q) = %v, %v; want %s", text, got, err, fault.InvalidParameters)
		}
	}
}

// denials is a Store of users of one group and of time-stamp services.
type denials struct {
	set      map[string]*policy.Setting
	services []policy.TSPService
	err      error
}

func (d *denials) TSPServices(context.Context) ([]policy.TSPService, error) {
	return d.services, d.err
}

func (d *denials) AddTSPService(_ context.Context, t policy.TSPService, normal string) (bool, error) {
	if have, _ := policy.NormalAddress(t.URL); have != normal {
		return false, errors.New("the normal address is another one")
	}
	d.services = append(d.services, t)
	return true, d.err
}

func (d *denials) RemoveTSPService(_ context.Context, name string) (bool, error) {
	before := len(d.services)
	d.services = slices.DeleteFunc(d.services, func(t policy.TSPService) bool { return t.Name == name })
	return len(d.services) < before, d.err
}

func (d *denials) Atomic(ctx context.Context, _ lock.Set, fn func(ctx context.Context) error) error {
	return fn(ctx)
}

func (d *denials) Settings(_ context.Context, userID string, k policy.Kind) (own, group *policy.Setting, err error) {
	return d.set["user "+userID+string(k)], d.set["group"+string(k)], d.err
}

func (d *denials) SetOwn(_ context.Context, userID string, k policy.Kind, p *policy.Setting) error {
	return d.keep("user "+userID+string(k), p)
}

func (d *denials) GroupKinds(context.Context, []string) (map[string][]policy.Kind, error) {
	return nil, nil
}

func (d *denials) GroupSetting(_ context.Context, _ string, k policy.Kind) (*policy.Setting, error) {
	return d.set["group"+string(k)], d.err
}

func (d *denials) SetGroup(_ context.Context, _ string, k policy.Kind, p *policy.Setting) error {
	return d.keep("group"+string(k), p)
}

func (d *denials) keep(key string, p *policy.Setting) error {
	if d.set == nil {
		d.set = map[string]*policy.Setting{}
	}
	d.set[key] = p
	return d.err
}

func TestPermit(t *testing.T) {
	store := &denials{}
	s := policy.Service{Store: store}
	for _, c := range []struct {
		denied, asked policy.Action
		allowed       bool
	}{
		{0, policy.All, true},
		{policy.SignDocument, policy.SignDocument, false},
		{policy.SignDocuments, policy.SignDocument, true},
		{policy.SignDocument, policy.SignDocuments, false}, // a batch of one would be a way round
		{policy.SignDocument, policy.SignDocument | policy.Issue, false},
		{policy.All, policy.Issue, false},
	} {
		if err := store.SetOwn(t.Context(), "u", policy.Access, &policy.Setting{Actions: c.denied}); err != nil {
			t.Fatal(err)
		}
		err := s.Permit(t.Context(), "u", c.asked)
		if (err == nil) != c.allowed || err != nil && !fault.Is(err, fault.AccessDenied) {
			t.Errorf("denied %v, asked %v: %v, want allowed %v", c.denied, c.asked, err, c.allowed)
		}
	}
	store.err = errors.New("no connection")
	if err := s.Permit(t.Context(), "u", policy.Issue); err == nil || fault.Is(err, fault.AccessDenied) {
		t.Errorf("a store that fails: %v, want its error", err)
	}
}

func TestPermitType(t *testing.T) {
	s := policy.Service{Rules: policy.Rules{AllowedSignatureTypes: []string{"CAdES", "GOST3410"}}}
	hashes := s
	hashes.Rules.AllowHashSigning = true
	for _, c := range []struct {
		service policy.Service
		name    string
		hash    bool
		allowed bool
	}{
		{s, "CAdES", false, true},
		{s, "cades", false, true},
		{s, "CAdES", true, false},
		{hashes, "CAdES", true, true},
		{hashes, "PDF", false, false},
		{hashes, "", false, false},
		{policy.Service{}, "CAdES", false, false},
	} {
		err := c.service.PermitType(c.name, c.hash)
		if (err == nil) != c.allowed || err != nil && !fault.Is(err, fault.AccessDenied) {
			t.Errorf("%q, hash %v: %v, want allowed %v", c.name, c.hash, err, c.allowed)
		}
	}
}
