// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lease"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/user"
)

// founding is a kind of operations that found a group.
type founding struct {
	d      *desk
	groups store.Users
	mu     sync.Mutex
	done   int
	before func() error // called in Do; nil: nothing
	// again is called when a plan that is stored is described; nil: nothing.
	again func(p *groupPlan) error
}

type groupPlan struct {
	Name string `json:"name"`
}

func (f *founding) kind(version int) operation.Kind {
	fields := func(p groupPlan) (what.Fields, error) {
		arguments, err := what.Arguments(map[string]string{"name": p.Name})
		return what.Fields{Action: policy.ChangePin.String(), Arguments: arguments}, err
	}
	return operation.Kind{
		Name: "found", Version: version, Purpose: confirm.ForOperation,
		Check: func(_ context.Context, o *operation.Order) (bool, error) {
			o.Action = policy.ChangePin
			return f.d.force, nil
		},
		Describe: func(_ context.Context, o *operation.Order) (what.Fields, error) {
			var p groupPlan
			if err := o.ReadPlan(&p); err != nil {
				return what.Fields{}, err
			}
			f.mu.Lock()
			again := f.again
			f.mu.Unlock()
			if again != nil && o.Stored() {
				if err := again(&p); err != nil {
					return what.Fields{}, err
				}
			}
			return fields(p)
		},
		Do: func(ctx context.Context, r *operation.Run) error {
			var p groupPlan
			var secret string
			if err := errors.Join(r.Plan(&p), r.Secret(&secret)); err != nil {
				return err
			}
			f.mu.Lock()
			before := f.before
			f.mu.Unlock()
			if before != nil {
				if err := before(); err != nil {
					return err
				}
			}
			return r.Spend(ctx, func(ctx context.Context) (any, error) {
				f.mu.Lock()
				f.done++
				f.mu.Unlock()
				return p.Name + " " + secret, f.groups.AddGroup(ctx, user.Group{Name: p.Name})
			})
		},
	}
}

func (d *desk) acts(k operation.Kind) *operation.Service {
	return d.actsOn(store.Operations{DB: d.records.DB}, 15*time.Second, k)
}

// actsOn returns operations of another process, whose tokens of leases are its own.
func (d *desk) actsOn(rows operation.Store, life time.Duration, k operation.Kind) *operation.Service {
	s, err := operation.New(operation.Settings{Life: time.Hour, Lease: life, Keep: time.Hour}, operation.Deps{
		Store: rows, Confirmations: d.confirm, Vault: d.ring, Now: d.clock, Rand: d.random(11),
	}, k)
	d.must(err)
	s.Render(operation.FormOperation, map[string]operation.Renderer{
		"found": func(o *operation.Operation, result any) ([]byte, error) {
			return []byte(fmt.Sprint(o.State, " ", result)), nil
		},
	})
	return s
}

// row returns an operation as it is stored.
func (d *desk) row(id string) *operation.Stored {
	d.t.Helper()
	r, found, err := store.Operations{DB: d.records.DB}.FindOperation(d.t.Context(), id)
	if d.must(err); !found {
		d.t.Fatal("the operation is not stored")
	}
	return r
}

// confirms has the user confirm an operation.
func (d *desk) confirms(id string) {
	d.t.Helper()
	p, err := d.confirm.Challenge(d.t.Context(), d.who, confirm.Ask{ID: id})
	d.must(err)
	p, err = d.confirm.Answer(d.t.Context(), d.who, p.Record.RefID, "123456")
	if d.must(err); p.Record.State != confirm.Confirmed {
		d.t.Fatalf("the record is %s", p.Record.State)
	}
}

func found(d *desk, s *operation.Service, name string) string {
	d.t.Helper()
	waiting, _, err := s.Start(d.t.Context(), &operation.Order{
		Kind: "found", Form: operation.FormOperation, Owner: d.who, Confirming: operation.Waits, Forced: true, Plan: groupPlan{name}, Secret: "quiet",
	})
	d.must(err)
	return waiting.ID
}

func claim(id string) *operation.Claim {
	return &operation.Claim{ID: id, Form: operation.FormOperation, Kinds: []string{"found"}}
}

// foreignSecret returns operations with another secret than theirs.
type foreignSecret struct {
	operation.Store
	secret []byte
}

func (s foreignSecret) ClaimOperation(ctx context.Context, id string, l lease.Lease, now time.Time) (*operation.Stored, bool, error) {
	r, found, err := s.Store.ClaimOperation(ctx, id, l, now)
	if found {
		r.Secret = s.secret
	}
	return r, found, err
}

// TestKindsOfOperations: an operation is carried out once, by any caller and however often it is called, and its end leaves no
// secret behind.
func TestKindsOfOperations(t *testing.T) {
	for _, engine := range engines(t) {
		t.Run(engine.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, engine.migrated(t))
			ctx := t.Context()
			f := &founding{d: d, groups: store.Users{DB: d.records.DB}}
			s := d.acts(f.kind(1))

			// At once: no row.
			op, result, err := s.Start(ctx, &operation.Order{Kind: "found", Form: operation.FormOperation, Owner: d.who, Plan: groupPlan{"at once"}, Secret: "x"})
			if d.must(err); result != "at once x" || op != nil {
				t.Errorf("at once: %v, %v", result, op)
			}
			_, _, err = s.Start(ctx, &operation.Order{Kind: "found", Form: operation.FormOperation, Owner: d.who, Plan: groupPlan{"refused"}, Forced: true, Confirming: operation.Refuses})
			d.is("an order that cannot wait", err, fault.MethodNotConfirmed)

			// Several callers at once get one answer.
			id := found(d, s, "together")
			_, _, err = s.CarryOut(ctx, d.who, claim(id))
			d.is("before it is confirmed", err, fault.InvalidTransaction)
			if secret := d.row(id).Secret; len(secret) == 0 || bytes.Contains(secret, []byte("quiet")) {
				t.Errorf("the secret is stored as %q", secret)
			}
			d.confirms(id)
			entered, leave := make(chan struct{}, 8), make(chan struct{})
			f.before = func() error { entered <- struct{}{}; <-leave; return nil }
			const callers = 8
			answers := make(chan string, callers)
			for range callers {
				go func() {
					op, _, err := s.CarryOut(ctx, d.who, claim(id))
					if err != nil {
						answers <- err.Error()
						return
					}
					answers <- string(op.Answer)
				}()
			}
			<-entered
			close(leave)
			for range callers {
				if got := <-answers; got != "Completed together quiet" {
					t.Errorf("a caller got %q", got)
				}
			}
			f.before = nil
			if f.done != 2 || len(entered) != 0 {
				t.Errorf("%d changes, %d more attempts", f.done, len(entered))
			}
			if r := d.row(id); len(r.Plan)+len(r.Secret) > 0 || bytes.Contains(r.Answer, []byte("quiet")) {
				t.Errorf("after the end: %q, %q, %q", r.Plan, r.Secret, r.Answer)
			}
			other := *claim(id)
			other.Kinds = []string{"other"}
			_, _, err = s.CarryOut(ctx, d.who, &other)
			d.is("by a request of another kind", err, fault.InvalidOperation)
			other = *claim(id)
			other.Form = operation.FormPage
			_, _, err = s.CarryOut(ctx, d.who, &other)
			d.is("by another form", err, fault.InvalidOperation)
			_, _, err = s.CarryOut(ctx, audit.Principal{UserID: "another"}, claim(id))
			d.is("by another user", err, fault.InvalidTransaction)

			// A failure leaves it confirmed.
			id = found(d, s, "later")
			d.confirms(id)
			f.before = func() error { return fault.New(fault.InvalidPIN, "wrong") }
			_, _, err = s.CarryOut(ctx, d.who, claim(id))
			d.is("with a failure", err, fault.InvalidPIN)
			f.before = nil
			_, result, err = s.CarryOut(ctx, d.who, claim(id))
			if d.must(err); result != "later quiet" {
				t.Errorf("after a failure: %v", result)
			}

			// The secret of another operation is not read in place of its own.
			id = found(d, s, "foreign")
			d.confirms(id)
			foreign := foreignSecret{store.Operations{DB: d.records.DB}, d.row(found(d, s, "its owner")).Secret}
			_, _, err = d.actsOn(foreign, 15*time.Second, f.kind(1)).CarryOut(ctx, d.who, claim(id))
			if _, is := fault.As(err); err == nil || is || d.row(id).State != operation.Confirmed {
				t.Errorf("with the secret of another operation: %v, want an internal error", err)
			}

			// A change that fails leaves nothing behind.
			id = found(d, s, "later")
			d.confirms(id)
			for range 2 { // the lease has ended
				if _, _, err = s.CarryOut(ctx, d.who, claim(id)); !errors.Is(err, user.ErrDuplicate) || d.row(id).State != operation.Confirmed {
					t.Errorf("a change that fails: %v, %s", err, d.row(id).State)
				}
			}

			// A process that was frozen for longer than its lease has no result of its own.
			id = found(d, s, "frozen")
			d.confirms(id)
			frozen := true
			f.before = func() error {
				if !frozen {
					return nil
				}
				frozen = false
				d.pass(20 * time.Second)
				op, _, err := d.acts(f.kind(1)).CarryOut(ctx, d.who, claim(id))
				if err != nil || string(op.Answer) != "Completed frozen quiet" {
					t.Errorf("the second process: %v", err)
				}
				return nil
			}
			op, result, err = s.CarryOut(ctx, d.who, claim(id))
			if d.must(err); string(op.Answer) != "Completed frozen quiet" || result != nil {
				t.Errorf("the frozen process: %s, %v", op.Answer, result)
			}
			f.before = nil

			// An end by the confirmation ends the operation.
			for state, end := range map[string]func(id string){
				"Declined":  func(id string) { _, err := d.confirm.Decline(ctx, d.who, id); d.must(err) },
				"Cancelled": func(id string) { _, err := d.confirm.Cancel(ctx, d.who, id); d.must(err) },
				"Expired":   func(string) { d.pass(2 * time.Hour); d.must(d.confirm.Sweep(ctx)) },
			} {
				id := found(d, s, state)
				end(id)
				if r := d.row(id); string(r.State) != state || len(r.Plan)+len(r.Secret) > 0 || r.KeepUntil.IsZero() {
					t.Errorf("%s: the operation is %s", state, r.State)
				}
			}
			first, second := found(d, s, "first"), found(d, s, "second")
			d.confirms(first)
			d.must(d.confirm.CancelAll(ctx, d.who, d.who.UserID, "the password was changed"))
			if got := d.row(first).State + d.row(second).State; got != "CancelledCancelled" {
				t.Errorf("after a change of the account: %s", got)
			}

			// An operation of a newer release is not carried out, and stays.
			id = found(d, d.acts(f.kind(2)), "newer")
			d.confirms(id)
			if _, _, err := s.CarryOut(ctx, d.who, claim(id)); err == nil || !strings.Contains(err.Error(), "version 2") {
				t.Errorf("a plan of another version: %v", err)
			}
			later := f.kind(1)
			later.Name = "later"
			claimed := claim(id)
			if _, _, err := d.acts(later).CarryOut(ctx, d.who, claimed); err == nil || !strings.Contains(err.Error(), "does not know") {
				t.Errorf("a kind that is not known: %v", err)
			}
			if got := d.row(id).State; got != operation.Confirmed {
				t.Errorf("the operation of a newer release is %s", got)
			}
		})
	}
}

// TestOperationEndsMeanwhile has another call end an operation while it is carried out, at each step that
// may fail because of that. A failure beside an operation that is still confirmed stays, and ends the lease.
func TestOperationEndsMeanwhile(t *testing.T) {
	lost := fault.New(fault.Lost, "the documents are gone")
	failure := errors.New("a failure")
	const cancelled, differs, answered = "the operation was cancelled", "differ from what was confirmed", "the answer of the other call"
	for _, engine := range engines(t) {
		t.Run(engine.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, engine.migrated(t))
			ctx := t.Context()
			f := &founding{d: d, groups: store.Users{DB: d.records.DB}}
			s := d.acts(f.kind(1))
			for n, row := range []struct {
				name, step string
				end        string // how the operation ends; "" if it does not
				failure    error  // nil: the step gives other fields
				code, want string // the code of the fault, "" for no fault, and a part of its text
			}{
				{"cancelled, then no documents", "describe", "cancel", lost, fault.InvalidTransaction, cancelled},
				{"cancelled, then other fields", "describe", "cancel", nil, fault.InvalidTransaction, cancelled},
				{"cancelled, then a failure", "describe", "cancel", failure, fault.InvalidTransaction, cancelled},
				{"carried out, then no documents", "describe", "complete", lost, "", answered},
				{"carried out, then other fields", "describe", "complete", nil, "", answered},
				{"carried out, then a failure", "describe", "complete", failure, "", answered},
				{"cancelled meanwhile", "do", "cancel", lost, fault.InvalidTransaction, cancelled},
				{"cancelled meanwhile, a failure", "do", "cancel", failure, fault.InvalidTransaction, cancelled},
				{"carried out meanwhile, then no documents", "do", "complete", lost, "", answered},
				{"carried out meanwhile, then no answer", "do", "complete", &fault.Outage{Message: "unknown", Err: failure}, "", failure.Error()},
				{"no documents", "describe", "", lost, fault.Lost, lost.Message},
				{"other fields", "describe", "", nil, fault.InvalidTransaction, differs},
				{"a failure", "describe", "", failure, "", failure.Error()},
				{"a failure meanwhile", "do", "", failure, "", failure.Error()},
			} {
				name := fmt.Sprint("group ", n)
				id := found(d, s, name)
				d.confirms(id)
				attempts, done := 0, f.done
				ends := func() {
					f.again = nil // the other call fails in nothing
					f.before = func() error { attempts++; return nil }
					switch row.end {
					case "cancel":
						_, err := d.confirm.Cancel(ctx, d.who, id)
						d.must(err)
					case "complete":
						d.pass(20 * time.Second) // the lease ends
						op, _, err := d.acts(f.kind(1)).CarryOut(ctx, d.who, claim(id))
						d.must(err)
						if want := "Completed " + name + " quiet"; string(op.Answer) != want {
							t.Errorf("%s: the other call got %q, want %q", row.name, op.Answer, want)
						}
					}
				}
				f.before = func() error { attempts++; return nil }
				switch row.step {
				case "describe":
					f.again = func(p *groupPlan) error {
						ends()
						p.Name += " changed"
						return row.failure
					}
				case "do":
					f.before = func() error {
						ends()
						return row.failure
					}
				}
				op, result, err := s.CarryOut(ctx, d.who, claim(id))
				switch refused, is := fault.As(err); {
				case row.want == answered:
					if err != nil || string(op.Answer) != "Completed "+name+" quiet" || result != nil {
						t.Errorf("%s: %+v, %v, %v, want %s", row.name, op, result, err, answered)
					}
				case err == nil || !strings.Contains(err.Error(), row.want):
					t.Errorf("%s: %v, want %q", row.name, err, row.want)
				case row.code == "" && !errors.Is(err, failure), row.code != "" && (!is || refused.Code != row.code):
					t.Errorf("%s: %v, want the fault %q", row.name, err, row.code)
				}
				want := 0
				if row.end == "complete" {
					want = 1
				}
				if attempts != want || f.done-done != want {
					t.Errorf("%s: %d more attempts and %d changes, want %d", row.name, attempts, f.done-done, want)
				}
				f.again, f.before = nil, nil
				if row.end == "" {
					if got := d.row(id).State; got != operation.Confirmed {
						t.Errorf("%s: the operation is %s", row.name, got)
					}
					_, result, err := s.CarryOut(ctx, d.who, claim(id)) // the lease has ended
					if d.must(err); result != name+" quiet" {
						t.Errorf("%s: after the failure: %v", row.name, result)
					}
				}
			}
		})
	}
}

// extensions tells when a lease was extended.
type extensions struct {
	operation.Store
	held chan bool
}

func (r extensions) ExtendOperation(ctx context.Context, id string, l lease.Lease) (bool, error) {
	held, err := r.Store.ExtendOperation(ctx, id, l)
	select {
	case r.held <- held:
	case <-ctx.Done():
	}
	return held, err
}

// TestOperationLeaseIsExtended carries an operation out for longer than its lease.
func TestOperationLeaseIsExtended(t *testing.T) {
	for _, engine := range engines(t) {
		t.Run(engine.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, engine.migrated(t))
			ctx := t.Context()
			f := &founding{d: d, groups: store.Users{DB: d.records.DB}}
			extended := extensions{store.Operations{DB: d.records.DB}, make(chan bool)}
			s := d.actsOn(extended, 30*time.Millisecond, f.kind(1))
			id := found(d, s, "slow")
			d.confirms(id)
			f.before = func() error {
				d.pass(time.Minute)
				// The first extension may have begun before the minute.
				for range 2 {
					if !<-extended.held {
						t.Error("the lease is lost")
					}
				}
				l := lease.Lease{Token: "another", Until: d.clock().Add(time.Minute)}
				_, leased, err := extended.ClaimOperation(ctx, id, l, d.clock())
				if d.must(err); leased {
					t.Error("after a minute another process has the operation")
				}
				return nil
			}
			_, result, err := s.CarryOut(ctx, d.who, claim(id))
			if d.must(err); result != "slow quiet" || f.done != 1 || d.row(id).State != operation.Completed {
				t.Errorf("%v, %d changes, the operation is %s", result, f.done, d.row(id).State)
			}
		})
	}
}
