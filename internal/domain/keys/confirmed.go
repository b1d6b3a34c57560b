// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/vault"
)

// Confirmations keeps the confirmations of operations; *confirm.Service satisfies it.
type Confirmations interface {
	CanConfirm(ctx context.Context, userID string) error
	Create(ctx context.Context, who audit.Principal, o confirm.Order) (confirm.Record, error)
	CarryOut(ctx context.Context, who audit.Principal, id string, w confirm.Work) error
}

// Confirming has what acts need that their user confirms first.
type Confirming struct {
	Records Confirmations // uses the same database as Options.Store
	Life    time.Duration // of a record until it is confirmed
}

// deedVersion is the version of the formats of deedPlan and deedResult.
const deedVersion = 1

// deedPlan is a deed as its record stores it, without secrets.
type deedPlan struct {
	Version int          `json:"v"`
	Form    confirm.Form `json:"form"`
	Deed    *Deed        `json:"deed"`
}

// deedResult is the result of a confirmed deed as its record stores it.
type deedResult struct {
	Version int          `json:"v"`
	Form    confirm.Form `json:"form"`
	Kind    Kind         `json:"kind"`
	Number  string       `json:"number,omitempty"` // of the certificate or request that it was about
	Answer  []byte       `json:"answer,omitempty"`
}

// Perform does a deed. If the deed needs a confirmation, it creates an operation instead,
// which CarryOut carries out, and returns its record. Then result is nil. Faults: those of
// the method that the kind names, and those of Propose.
func (s *Service) Perform(ctx context.Context, a Act, d *Deed) (result any, waiting *confirm.Record, err error) {
	k, err := d.row()
	if err != nil {
		return nil, nil, err
	}
	needed, err := s.needed(ctx, a, k.action)
	if err != nil {
		return nil, nil, err
	}
	if needed && a.Form == confirm.FormOperation {
		waiting, err = s.propose(ctx, a, d, k)
		return nil, waiting, err
	}
	if needed {
		return nil, nil, unconfirmed(k.action)
	}
	a.decided = k.action
	result, err = k.do(ctx, s, a, d)
	return result, nil, err
}

// Propose creates an operation that its user must confirm, whatever the policy says. It
// checks everything that can be checked before. The PIN costs an attempt if it is wrong.
//
// Faults: those of the method that the kind names, and those of confirm.Service.Create.
func (s *Service) Propose(ctx context.Context, a Act, d *Deed) (*confirm.Record, error) {
	k, err := d.row()
	if err != nil {
		return nil, err
	}
	if _, err := s.needed(ctx, a, k.action); err != nil {
		return nil, err
	}
	return s.propose(ctx, a, d, k)
}

func (s *Service) propose(ctx context.Context, a Act, d *Deed, k kind) (*confirm.Record, error) {
	if s.Confirming == nil {
		return nil, unconfirmed(k.action)
	}
	if err := s.Confirming.Records.CanConfirm(ctx, a.Who.UserID); err != nil {
		return nil, err
	}
	d.Protected = d.Secrets.New != ""
	if k.sets {
		if err := s.checkNewPIN(d.Secrets.New); err != nil {
			return nil, err
		}
	}
	if d.Kind == ToExport {
		if err := checkFilePassword(d.Secrets.Password); err != nil {
			return nil, err
		}
	}
	if len(d.Secrets.PIN) > vault.MaxPIN {
		return nil, wrongPIN()
	}
	fields, c, err := d.fields(ctx, s, a.Who)
	if err != nil {
		return nil, err
	}
	if c != nil && (k.needs || d.Secrets.PIN != "") {
		if err := s.open(ctx, c, d.Secrets.PIN, s.opens); err != nil {
			return nil, err
		}
	}
	o := confirm.Order{Purpose: confirm.ForOperation, Fields: fields, Life: s.Confirming.Life}
	if o.Plan, err = json.Marshal(deedPlan{Version: deedVersion, Form: a.Form, Deed: d}); err != nil {
		return nil, err
	}
	o.Bytes = int64(len(d.Data))
	if d.Secrets != (DeedSecrets{}) {
		if o.Secret, err = json.Marshal(d.Secrets); err != nil {
			return nil, err
		}
		defer clear(o.Secret)
	}
	r, err := s.Confirming.Records.Create(ctx, a.Who, o)
	if err != nil {
		return nil, err
	}
	return &r, nil
}

// ConfirmedDeed carries out a deed that its user has confirmed.
type ConfirmedDeed struct {
	ID    string // of the confirmation
	Form  confirm.Form
	Kinds []Kind // that the request carries out
	// Number is that of the certificate or request in the address of the request, "" if the
	// address has none.
	Number string
	// PIN is used instead of DeedSecrets.PIN of the creation. "": that one.
	PIN string
	// Render returns the answer to store. It may run several times.
	Render func(r *confirm.Record, result any) ([]byte, error)
}

// CarryOut carries out a deed that its user has confirmed, and stores the answer with the
// spending of the record in one transaction. A repetition gets the same answer. A wrong PIN
// and an outage leave the record Confirmed.
//
// Faults: those of confirm.Service.CarryOut and of the method that the kind names;
// invalid_operation for a deed of another form or about another certificate.
func (s *Service) CarryOut(ctx context.Context, who audit.Principal, o *ConfirmedDeed) (answer []byte, err error) {
	if s.Confirming == nil {
		return nil, errNoConfirming
	}
	var d *Deed
	err = s.Confirming.Records.CarryOut(ctx, who, o.ID, confirm.Work{
		Mine: func(action string) bool {
			a, err := policy.ParseAction(action)
			return err == nil && slices.ContainsFunc(o.Kinds, func(k Kind) bool { return k.may(a) })
		},
		Describe: func(ctx context.Context, _ *confirm.Record, text []byte) (what.Fields, error) {
			var p deedPlan
			if err := json.Unmarshal(text, &p); err != nil || p.Deed == nil {
				return what.Fields{}, errors.Join(errors.New("keys: the plan of a confirmed operation cannot be read"), err)
			}
			if p.Version != deedVersion {
				return what.Fields{}, fmt.Errorf("keys: the plan of a confirmed operation has version %d, this release knows %d", p.Version, deedVersion)
			}
			d = p.Deed
			f, _, err := d.fields(ctx, s, who)
			if err != nil {
				return f, err
			}
			return f, o.fits(p.Form, d.Kind, number(&f), d.Certificate)
		},
		Do: func(ctx context.Context, e *confirm.Execution) error {
			var err error
			answer, err = s.carryOut(ctx, who, o, d, e)
			return err
		},
		Again: func(_ context.Context, e *confirm.Execution) error {
			var r deedResult
			if err := json.Unmarshal(e.Content.Result, &r); err != nil {
				return fmt.Errorf("keys: the result of operation %s: %w", e.Record.ID, err)
			}
			if r.Version != deedVersion {
				return fmt.Errorf("keys: the result of operation %s has version %d, this release knows %d", e.Record.ID, r.Version, deedVersion)
			}
			answer = r.Answer
			return o.fits(r.Form, r.Kind, r.Number, "")
		},
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// may reports whether a deed of a kind may have an action.
func (k Kind) may(a policy.Action) bool {
	switch k {
	case ToRequest:
		return a == policy.CreateRequest || a == policy.RenewCertificate
	case ToSetStatus:
		return a == policy.RevokeCertificate || a == policy.HoldCertificate || a == policy.UnholdCertificate
	}
	return kinds[k].action == a
}

// fits refuses a deed that another request carries out. asked is the number of the
// certificate as the client sent it at creation, maybe 0.
func (o *ConfirmedDeed) fits(form confirm.Form, kind Kind, number, asked string) error {
	other := o.Number != "" && strings.TrimSpace(o.Number) != number && (asked == "" || !IsDefault(o.Number) || !IsDefault(asked))
	if form != o.Form || !slices.Contains(o.Kinds, kind) || other {
		return confirm.OtherOperation()
	}
	return nil
}

// carryOut does a deed whose record is leased.
func (s *Service) carryOut(ctx context.Context, who audit.Principal, o *ConfirmedDeed, d *Deed, e *confirm.Execution) (answer []byte, err error) {
	if len(e.Content.Secret) > 0 {
		if err := json.Unmarshal(e.Content.Secret, &d.Secrets); err != nil {
			return nil, errors.New("keys: the secrets of a confirmed operation cannot be read")
		}
		clear(e.Content.Secret)
	}
	k, err := d.row()
	if err != nil {
		return nil, err
	}
	about := number(&e.Content.Fields)
	switch {
	case o.PIN == "":
	case about != "":
		d.Secrets.PIN = o.PIN
	case o.PIN != d.Secrets.New:
		return nil, fault.New(fault.InvalidOperation, "the PIN of the new key was given when the operation was created: leave it out")
	}
	// The default certificate may be another one by now.
	if d.Certificate != "" {
		d.Certificate = about
	}
	if d.Order.Renew != "" {
		d.Order.Renew = about
	}
	a := Act{Who: who, Form: o.Form, decided: k.action}
	a.spend = func(ctx context.Context, do func(ctx context.Context) (any, error)) error {
		locked := func(ctx context.Context, fn func(ctx context.Context) error) error {
			return s.Store.Atomic(ctx, lock.User(who.UserID), fn)
		}
		return e.SpendWith(ctx, locked, func(ctx context.Context) ([]byte, error) {
			made, err := do(ctx)
			if err != nil {
				return nil, err
			}
			if answer, err = o.Render(&e.Record, made); err != nil {
				return nil, err
			}
			return json.Marshal(deedResult{Version: deedVersion, Form: o.Form, Kind: d.Kind, Number: about, Answer: answer})
		})
	}
	if _, err := k.do(ctx, s, a, d); err != nil {
		return nil, err
	}
	if !e.Done {
		return nil, fmt.Errorf("keys: operation %s was carried out and its record is not spent", e.Record.ID)
	}
	return answer, nil
}

// change runs the changes of an act in one transaction that locks the user whose keys
// change. fn returns the result of the act. After a confirmation, the same transaction
// spends the record with the result.
func (s *Service) change(ctx context.Context, a Act, userID string, fn func(ctx context.Context) (any, error)) error {
	if a.spend != nil {
		return a.spend(ctx, fn)
	}
	return s.Store.Atomic(ctx, lock.User(userID), func(ctx context.Context) error {
		_, err := fn(ctx)
		return err
	})
}
