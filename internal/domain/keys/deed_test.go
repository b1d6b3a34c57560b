// SPDX-License-Identifier: Apache-2.0

package keys_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
)

// records keeps what a confirmed act gives to package confirm, and describes plans again as
// that package does. It never carries anything out.
type records struct {
	order confirm.Order
	plan  []byte
}

func (r *records) CanConfirm(context.Context, string) error { return nil }

func (r *records) Create(_ context.Context, _ audit.Principal, o confirm.Order) (confirm.Record, error) {
	r.order = o
	return confirm.Record{ID: "record", Action: o.Fields.Action}, nil
}

// errSame means that the fields are those of the creation.
var errSame = fmt.Errorf("the fields are the same")

func (r *records) CarryOut(ctx context.Context, _ audit.Principal, _ string, w confirm.Work) error {
	if !w.Mine(r.order.Fields.Action) {
		return confirm.OtherOperation()
	}
	fields, err := w.Describe(ctx, &confirm.Record{}, r.plan)
	if err != nil {
		return err
	}
	before, err1 := r.order.Fields.Sum()
	after, err2 := fields.Sum()
	if err1 != nil || err2 != nil || before == after {
		return errSame
	}
	return fault.New(fault.InvalidTransaction, "differs")
}

// TestDeedChanged changes each field of each stored deed. Either the fields that the user
// confirmed change too, or the deed is refused. A new field of a deed is tried as well.
func TestDeedChanged(t *testing.T) {
	t.Parallel()
	var kept records
	p, _ := manage(t, func(o *keys.Options) { o.Confirming = &keys.Confirming{Records: &kept} })
	ctx := t.Context()
	guarded := p.issue(t, keys.IssueOrder{PIN: pin, Default: true})
	held := p.issue(t, keys.IssueOrder{})
	id := number(guarded)
	if _, err := p.SetStatus(ctx, as(alice), number(held), keys.StatusOrder{Status: keys.Hold}); err != nil {
		t.Fatal(err)
	}
	order := keys.Order{Authority: keys.BuiltIn, Suite: "ecdsa-p256", Name: map[string]string{"CN": "Anna"}, Template: "1.2.3", Usages: []string{"1.3.6.1.5.5.7.3.2"}, Life: 3600e9}
	renewal := order
	renewal.Renew = id
	for _, d := range []keys.Deed{
		{Kind: keys.ToRequest, Order: order, Secrets: keys.DeedSecrets{New: "867530"}},
		{Kind: keys.ToRequest, Order: renewal, Secrets: keys.DeedSecrets{PIN: pin}},
		{Kind: keys.ToRequestRevocation, Certificate: id, Status: keys.StatusOrder{Reason: 1, Comment: "lost"}},
		{Kind: keys.ToGenerate, Algorithm: 11849, Set: "1.2.643.7.1.2.1.1.1"},
		{Kind: keys.ToDelete, Certificate: id},
		{Kind: keys.ToChangePIN, Certificate: id, Secrets: keys.DeedSecrets{PIN: pin, New: "867530"}},
		{Kind: keys.ToSetStatus, Certificate: id, Status: keys.StatusOrder{Status: keys.Revoked, Reason: 4, Comment: "new one"}, Shown: map[string]string{"documentinfo": "x"}},
		{Kind: keys.ToSetStatus, Certificate: number(held), Status: keys.StatusOrder{Status: keys.Active, Comment: "back"}},
	} {
		name := fmt.Sprintf("%s %s", d.Kind, d.Order.Renew)
		a := as(alice)
		a.Form = confirm.FormOperation
		if _, err := p.Propose(ctx, a, &d); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text := fmt.Sprintf("%s %v", kept.order.Plan, kept.order.Fields)
		if shown, err := kept.order.Fields.Shown(); err != nil || strings.Contains(fmt.Sprint(text, shown), "867530") || strings.Contains(fmt.Sprint(text, shown, d), pin) {
			t.Errorf("%s: a PIN is in the plan or in what is shown: %v", name, err)
		}
		tried := 0
		try := func(changed string, plan any, want error) {
			t.Helper()
			tried++
			var err error
			if kept.plan, err = json.Marshal(plan); err != nil {
				t.Fatal(err)
			}
			_, err = p.CarryOut(ctx, a.Who, &keys.ConfirmedDeed{ID: "record", Form: a.Form, Kinds: []keys.Kind{d.Kind}})
			if f, refused := fault.As(err); err != want && !(want == nil && refused && f.Code != fault.Failed) {
				t.Errorf("%s, %s: %v", name, changed, err)
			}
		}
		plan := func() map[string]any {
			var m map[string]any
			if err := json.Unmarshal(kept.order.Plan, &m); err != nil {
				t.Fatal(err)
			}
			return m
		}
		try("nothing", plan(), errSame)
		other := plan()
		other["form"] = confirm.FormTransaction
		try("the form", other, nil)
		var walk func(path []string, v reflect.Type)
		walk = func(path []string, v reflect.Type) {
			for i := range v.NumField() {
				f := v.Field(i)
				tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				if tag == "-" || f.Name == "Kind" {
					continue
				}
				if tag == "" {
					tag = f.Name
				}
				here := append(slices.Clone(path), tag)
				if f.Type.Kind() == reflect.Struct {
					walk(here, f.Type)
					continue
				}
				m := plan()
				at := m["deed"].(map[string]any)
				for _, step := range here[:len(here)-1] {
					next, _ := at[step].(map[string]any)
					if at = next; at == nil {
						break
					}
				}
				old, set := at[tag]
				if !set || at == nil || reflect.ValueOf(old).IsZero() || tag == "DER" {
					continue // the kind does not have it
				}
				at[tag] = changed(old, tag)
				try(strings.Join(here, "."), m, nil)
			}
		}
		walk(nil, reflect.TypeFor[keys.Deed]())
		if tried < 3 {
			t.Errorf("%s: %d changes tried", name, tried)
		}
	}

	// A deed of another kind is not carried out, whatever the plan says, and what cannot be
	// done is refused before the user is asked.
	for name, refused := range map[string]struct {
		d    keys.Deed
		code string
	}{
		"unhold":       {keys.Deed{Kind: keys.ToSetStatus, Certificate: id, Status: keys.StatusOrder{Status: keys.Active}}, fault.CertificateStatus},
		"hold twice":   {keys.Deed{Kind: keys.ToSetStatus, Certificate: number(held), Status: keys.StatusOrder{Status: keys.Hold}}, fault.CertificateStatus},
		"no request":   {keys.Deed{Kind: keys.ToDeleteRequest, Request: "7"}, fault.RequestNotFound},
		"wrong PIN":    {keys.Deed{Kind: keys.ToChangePIN, Certificate: id, Secrets: keys.DeedSecrets{PIN: "wrong", New: "867530"}}, fault.InvalidPIN},
		"no PIN":       {keys.Deed{Kind: keys.ToRequest, Order: renewal}, fault.InvalidPIN},
		"weak PIN":     {keys.Deed{Kind: keys.ToRequest, Order: order, Secrets: keys.DeedSecrets{New: "1"}}, fault.InvalidPIN},
		"not one's":    {keys.Deed{Kind: keys.ToDelete, Certificate: "99"}, fault.CertificateNotFound},
		"no algorithm": {keys.Deed{Kind: keys.ToGenerate, Algorithm: 1}, fault.AlgorithmNotSupported},
		"nothing":      {keys.Deed{Kind: keys.ToInstall, Data: []byte("x")}, fault.CertificateFormat},
	} {
		if _, err := p.Propose(ctx, as(alice), &refused.d); !fault.Is(err, refused.code) {
			t.Errorf("%s: %v, want %s", name, err, refused.code)
		}
	}
	if _, err := p.Propose(ctx, as(alice), &keys.Deed{Kind: "other"}); err == nil {
		t.Error("an unknown kind")
	}
	// The form without operations refuses what needs a confirmation, and does nothing.
	forced := as(alice)
	forced.ForceConfirmation = true
	if _, _, err := p.Perform(ctx, forced, &keys.Deed{Kind: keys.ToDelete, Certificate: id}); !fault.Is(err, fault.MethodNotConfirmed) {
		t.Errorf("without a transaction: %v", err)
	}
	if _, err := p.Find(ctx, alice, id); err != nil {
		t.Error(err)
	}
}

// changed returns another value of the same JSON type.
func changed(v any, name string) any {
	switch v := v.(type) {
	case bool:
		return !v
	case float64:
		if name == "Life" {
			return v + 1e9
		}
		return v + 1
	case string:
		return v + "1"
	case []any:
		return []any{"1.3.6.1.5.5.7.3.4"}
	case map[string]any:
		return map[string]any{"CN": "Boris"}
	}
	return nil
}
