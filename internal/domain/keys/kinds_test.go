// SPDX-License-Identifier: Apache-2.0

package keys_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/lease"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/vault"
)

// rows keeps what an operation on keys gives to its stores, and returns another plan of it. It cannot
// spend one.
type rows struct {
	operation.Store
	operation.Confirmations
	fields what.Fields
	row    *operation.Stored
	plan   []byte
	form   operation.Form
	leases int // that are not released
}

func (r *rows) CanConfirm(context.Context, string) error { return nil }

func (r *rows) Create(_ context.Context, _ audit.Principal, d confirm.Draft) (confirm.Record, error) {
	r.fields = d.Fields
	return confirm.Record{ID: "record", Action: d.Fields.Action}, nil
}

func (r *rows) Ready(context.Context, audit.Principal, string) (confirm.Record, bool, error) {
	sum, err := r.fields.Sum()
	return confirm.Record{ID: "record", What: sum}, false, err
}

func (r *rows) Atomic(ctx context.Context, _ lock.Set, fn func(context.Context) error) error {
	return fn(ctx)
}
func (r *rows) AddOperation(_ context.Context, o *operation.Stored, _ operation.Quota) (bool, error) {
	r.row = o
	return true, nil
}
func (r *rows) FindOperation(context.Context, string) (*operation.Stored, bool, error) {
	return nil, false, nil // not carried out before
}
func (r *rows) ClaimOperation(context.Context, string, lease.Lease, time.Time) (*operation.Stored, bool, error) {
	r.leases++
	row := *r.row
	row.State, row.Plan, row.Form = operation.Confirmed, r.plan, r.form
	return &row, true, nil
}
func (r *rows) ReleaseOperation(context.Context, string, string) error { r.leases--; return nil }

// errNone is no error of the product.
var errNone = fmt.Errorf("none")

// errSame means that the fields are the same as at the creation.
var errSame = fmt.Errorf("the fields are the same")

// plainly seals nothing.
type plainly struct{}

func (plainly) Seal(_ vault.Place, text []byte) ([]byte, error) { return slices.Clone(text), nil }
func (plainly) Open(_ vault.Place, text []byte) ([]byte, error) { return text, nil }

// acts returns operations kept by rows.
func acts(t *testing.T, kinds []operation.Kind, kept *rows) *operation.Service {
	t.Helper()
	s, err := operation.New(operation.Settings{Lease: time.Minute}, operation.Deps{Store: kept, Confirmations: kept, Vault: plainly{}, Now: time.Now, Rand: rand.Reader}, kinds...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPlanChanged changes each field of each stored plan. Either the fields that the user
// confirmed change too, or the operation is refused. A new field of a plan is tried as well.
func TestPlanChanged(t *testing.T) {
	t.Parallel()
	var kept rows
	p, _ := manage(t)
	ctx := t.Context()
	undone := p.OperationKinds() // carrying one out does nothing
	for i := range undone {
		undone[i].Do = func(context.Context, *operation.Run) error { return errSame }
	}
	compared, acts := acts(t, undone, &kept), acts(t, p.OperationKinds(), &kept)
	who := as(alice).Who
	start := func(d *keys.Plan, c operation.Confirming) error {
		_, _, err := acts.Start(ctx, d.Ordered(who, operation.FormOperation, c))
		return err
	}
	guarded := p.issue(t, keys.IssueOrder{PIN: pin, Default: true})
	held := p.issue(t, keys.IssueOrder{})
	id := number(guarded)
	if _, err := p.SetStatus(ctx, as(alice), number(held), keys.StatusOrder{Status: keys.Hold}); err != nil {
		t.Fatal(err)
	}
	order := keys.CertificateOrder{Authority: keys.BuiltIn, Suite: "ecdsa-p256", Name: map[string]string{"CN": "Anna"}, Template: "1.2.3", Usages: []string{"1.3.6.1.5.5.7.3.2"}, Life: 3600e9, Encryption: new(bool)}
	*order.Encryption = true
	opens := p.issue(t, keys.IssueOrder{Encryption: order.Encryption})
	renewal := order
	renewal.Renew = id
	for _, d := range []keys.Plan{
		{Kind: keys.ToRequest, Order: order, Secrets: keys.Secrets{New: "867530"}},
		{Kind: keys.ToRequest, Order: renewal, Secrets: keys.Secrets{PIN: pin}},
		{Kind: keys.ToRequestRevocation, Certificate: id, Status: keys.StatusOrder{Reason: 1, Comment: "lost"}},
		{Kind: keys.ToGenerate, Algorithm: 11849, Set: "1.2.643.7.1.2.1.1.1"},
		{Kind: keys.ToDelete, Certificate: id},
		{Kind: keys.ToDelete, Certificate: number(opens), DestroyKey: true},
		{Kind: keys.ToChangePIN, Certificate: id, Secrets: keys.Secrets{PIN: pin, New: "867530"}},
		{Kind: keys.ToSetStatus, Certificate: id, Status: keys.StatusOrder{Status: keys.Revoked, Reason: 4, Comment: "new one"}, Shown: map[string]string{"documentinfo": "x"}},
		{Kind: keys.ToSetStatus, Certificate: number(held), Status: keys.StatusOrder{Status: keys.Active, Comment: "back"}},
	} {
		name := fmt.Sprintf("%s %s", d.Kind, d.Order.Renew)
		if err := start(&d, operation.Always); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text := fmt.Sprintf("%s %v", kept.row.Plan, kept.fields)
		if shown, err := kept.fields.Shown(); err != nil || strings.Contains(fmt.Sprint(text, shown), "867530") || strings.Contains(fmt.Sprint(text, shown, d), pin) {
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
			_, _, err = compared.CarryOut(ctx, who, &operation.Claim{ID: "record", Form: operation.FormOperation, Kinds: []string{string(d.Kind)}})
			if f, refused := fault.As(err); !errors.Is(err, cmp.Or(want, errNone)) && !(want == nil && refused && f.Code != fault.Failed) {
				t.Errorf("%s, %s: %v", name, changed, err)
			}
			if kept.leases != 0 {
				t.Errorf("%s, %s: %d leases are not released", name, changed, kept.leases)
			}
		}
		plan := func() map[string]any {
			var m map[string]any
			if err := json.Unmarshal(kept.row.Plan, &m); err != nil {
				t.Fatal(err)
			}
			return m
		}
		kept.form = operation.FormOperation
		try("nothing", plan(), errSame)
		kept.form = operation.FormTransaction
		try("the form", plan(), nil)
		kept.form = operation.FormOperation
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
				at := m["plan"].(map[string]any)
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
		walk(nil, reflect.TypeFor[keys.Plan]())
		if tried < 3 {
			t.Errorf("%s: %d changes tried", name, tried)
		}
	}

	// An act that cannot be done is refused before the user is asked.
	for name, refused := range map[string]struct {
		d    keys.Plan
		code string
	}{
		"unhold":       {keys.Plan{Kind: keys.ToSetStatus, Certificate: id, Status: keys.StatusOrder{Status: keys.Active}}, fault.CertificateStatus},
		"hold twice":   {keys.Plan{Kind: keys.ToSetStatus, Certificate: number(held), Status: keys.StatusOrder{Status: keys.Hold}}, fault.CertificateStatus},
		"no request":   {keys.Plan{Kind: keys.ToDeleteRequest, Request: "7"}, fault.RequestNotFound},
		"wrong PIN":    {keys.Plan{Kind: keys.ToChangePIN, Certificate: id, Secrets: keys.Secrets{PIN: "wrong", New: "867530"}}, fault.InvalidPIN},
		"no PIN":       {keys.Plan{Kind: keys.ToRequest, Order: renewal}, fault.InvalidPIN},
		"weak PIN":     {keys.Plan{Kind: keys.ToRequest, Order: order, Secrets: keys.Secrets{New: "1"}}, fault.InvalidPIN},
		"kept key":     {keys.Plan{Kind: keys.ToDelete, Certificate: number(opens)}, fault.InvalidParameters},
		"not one's":    {keys.Plan{Kind: keys.ToDelete, Certificate: "99"}, fault.CertificateNotFound},
		"no algorithm": {keys.Plan{Kind: keys.ToGenerate, Algorithm: 1}, fault.AlgorithmNotSupported},
		"nothing":      {keys.Plan{Kind: keys.ToInstall, Data: []byte("x")}, fault.CertificateFormat},
	} {
		if err := start(&refused.d, operation.Always); !fault.Is(err, refused.code) {
			t.Errorf("%s: %v, want %s", name, err, refused.code)
		}
	}
	if err := start(&keys.Plan{Kind: "other"}, operation.Always); err == nil {
		t.Error("an unknown kind")
	}
	// The form without operations refuses what needs a confirmation, and does nothing.
	forced := (&keys.Plan{Kind: keys.ToDelete, Certificate: id}).Ordered(who, operation.FormTransaction, operation.Refuses)
	forced.Forced = true
	if _, _, err := acts.Start(ctx, forced); !fault.Is(err, fault.MethodNotConfirmed) {
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
