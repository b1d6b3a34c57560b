// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lease"
	"tamga/internal/domain/vault"
)

// pinPlace is the place that the PIN of a waiting operation is sealed to.
func pinPlace(id string) vault.Place {
	return vault.Place{Purpose: "operation pin", Table: "operations", Row: id, Column: "pin"}
}

// secretsPlace is the place that the secret parameters of a waiting operation are sealed
// to.
func secretsPlace(id string) vault.Place {
	return vault.Place{Purpose: "operation parameters", Table: "operations", Row: id, Column: "plan"}
}

// sealSecrets seals the secret parameters of a plan.
func (s *Operations) sealSecrets(id string, p *plan, secrets map[string]string) error {
	if len(secrets) == 0 {
		return nil
	}
	text, err := json.Marshal(secrets)
	if err != nil {
		return err
	}
	defer clear(text)
	p.Secrets, err = s.Vault.Seal(secretsPlace(id), text)
	return err
}

// openSecrets adds the secret parameters of a plan to the others again.
func (s *Operations) openSecrets(id string, p *plan) error {
	if len(p.Secrets) == 0 {
		return nil
	}
	text, err := s.Vault.Open(secretsPlace(id), p.Secrets)
	if err != nil {
		return err
	}
	defer clear(text)
	var secrets map[string]string
	if err := json.Unmarshal(text, &secrets); err != nil {
		return fmt.Errorf("signing: the secret parameters of an operation: %w", err)
	}
	if p.Params == nil {
		p.Params = make(map[string]string, len(secrets))
	}
	maps.Copy(p.Params, secrets)
	return nil
}

// enqueue accepts an operation that is carried out later. It stores the documents first,
// so that a row never names a missing document. PIN and secret parameters are sealed.
func (s *Operations) enqueue(ctx context.Context, op *Operation, p *plan, o *OperationOrder, secrets map[string]string) (err error) {
	if len(o.PIN) > vault.MaxPIN {
		return fault.Newf(fault.InvalidPIN, "the PIN is too long: at most %d bytes", vault.MaxPIN)
	}
	contents := &bundle{}
	p.Inline = make([]*extent, len(o.Inputs))
	for i := range o.Inputs {
		if in := o.Inputs[i].Content; !in.isEmpty() && op.Documents[i].Fault == nil {
			p.Inline[i] = &extent{contents.add(in), in.Size()}
		}
	}
	if !o.Original.isEmpty() {
		p.Original = &extent{contents.add(o.Original), o.Original.Size()}
	}
	record, err := newRecord(op)
	if err != nil {
		return err
	}
	if err := s.sealSecrets(op.ID, p, secrets); err != nil {
		return err
	}
	if record.Plan, err = json.Marshal(p); err != nil {
		return err
	}
	if o.PIN != "" {
		secret := []byte(o.PIN)
		defer clear(secret)
		if record.PIN, err = s.Vault.Seal(pinPlace(op.ID), secret); err != nil {
			return err
		}
	}
	if record.Bytes = contents.Size(); record.Bytes > 0 {
		// Work may begin at the last moment and continues as long as it is leased.
		if record.Contents, err = s.Signer.Blobs.KeepBlob(ctx, contents, op.CompleteBefore.Add(time.Hour)); err != nil {
			return err
		}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.unnamed(ctx, record.Contents, err))
		}
	}()
	kept := func(context.Context) error { return nil }
	if o.Keep != nil {
		if kept, err = o.Keep(ctx, op); err != nil {
			return err
		}
	}
	err = s.Store.Atomic(ctx, func(ctx context.Context) error {
		added, err := s.Store.AddOperation(ctx, record, s.Settings.Waiting)
		if err != nil {
			return err
		}
		if !added {
			return fault.Rollback(full())
		}
		return fault.Rollback(kept(ctx))
	})
	if err == nil {
		poke(s.queued)
	}
	return err
}

// full is the fault of an operation that exceeds the quota of its user.
func full() error {
	return fault.New(fault.TooManyRequests, "too many of your operations are waiting, or their documents are too large in total: wait until some of them have ended")
}

// Run carries out accepted operations until ctx ends. Any number of processes may run with
// the same database.
func (s *Operations) Run(ctx context.Context) {
	var working sync.WaitGroup
	for range s.Settings.Workers {
		working.Go(func() { s.loop(ctx, s.queued, s.ExecuteNext) })
	}
	if s.Confirming != nil {
		for range s.Settings.Workers {
			working.Go(func() { s.loop(ctx, s.Confirming.Records.Automatic(), s.CarryOutNext) })
		}
	}
	working.Wait()
}

// loop calls next until there is nothing to do, and again from time to time.
func (s *Operations) loop(ctx context.Context, wake <-chan struct{}, next func(context.Context) (bool, error)) {
	for ctx.Err() == nil {
		worked, err := next(ctx)
		if err != nil && ctx.Err() == nil {
			s.Failed(err)
		}
		if worked {
			continue
		}
		timer := time.NewTimer(s.Settings.Poll)
		select {
		case <-ctx.Done():
		case <-wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// ExecuteNext makes one attempt at the operation that has been due for the longest time.
// It reports false if no operation is due.
func (s *Operations) ExecuteNext(ctx context.Context) (worked bool, err error) {
	l, err := s.leases().New()
	if err != nil {
		return false, err
	}
	now := s.Signer.Now()
	record, found, err := s.Store.ClaimOperation(ctx, l.Token, now, l.Until)
	if err != nil || !found {
		return false, err
	}
	err = s.leases().Hold(ctx, l, func(ctx context.Context, l lease.Lease) (bool, error) {
		return s.Store.ExtendOperation(ctx, record.ID, l.Token, l.Until)
	}, func(ctx context.Context) error { return s.execute(ctx, record, l.Token) })
	switch {
	case err == nil:
	case errors.Is(err, lease.ErrLost):
		err = nil // cancelled, or taken over by another process after this one was frozen
	case ctx.Err() != nil:
		// This process is stopping: another one continues at once.
		return true, s.Store.ReleaseOperation(context.WithoutCancel(ctx), record.ID, l.Token, now, true)
	default:
		err = errors.Join(fmt.Errorf("signing: operation %s, attempt %d: %w", record.ID, record.Attempts, err),
			s.Store.ReleaseOperation(ctx, record.ID, l.Token, s.Signer.Now().Add(s.pause(record.Attempts)), false))
	}
	return true, err
}

// pause returns how long to wait after attempt n.
func (s *Operations) pause(n int) time.Duration {
	if shift := n - 1; shift < 20 && s.Settings.Pause<<shift < longestPause {
		return s.Settings.Pause << shift
	}
	return longestPause
}

// longestPause is the longest pause between two attempts.
const longestPause = 15 * time.Minute

// leases are the leases of operations.
func (s *Operations) leases() lease.Rules {
	return lease.Rules{Life: s.Settings.Lease, Now: s.Signer.Now, Rand: s.Signer.Rand, Failed: s.Failed}
}

// execute makes one attempt at a leased operation. An error means that it may be tried
// again.
func (s *Operations) execute(ctx context.Context, record *OperationRecord, token string) error {
	op, _, err := readRecord(record)
	if err != nil {
		return err
	}
	defer op.Close()
	if err := s.writeEntry(ctx, op, audit.Attempt, ""); err != nil {
		return err
	}
	r := &run{Operations: s, op: op}
	err = s.attempt(ctx, r, record)
	if err != nil && ctx.Err() == nil {
		// A cancellation deletes what the attempt reads, which is no fault of the storage.
		if held, e := s.Store.ExtendOperation(ctx, record.ID, token, s.Signer.Now().Add(s.Settings.Lease)); e == nil && !held {
			return lease.ErrLost
		}
	}
	f, refused := fault.As(err)
	switch {
	case err == nil:
		return r.finish(ctx, token, nil)
	case ctx.Err() != nil:
		return err
	case refused && !passing[f.Code]:
		s.report(f)
	case record.Attempts < s.Settings.Attempts:
		return err
	default:
		s.Failed(fmt.Errorf("signing: operation %s is given up after %d attempts: %w", op.ID, record.Attempts, err))
		f = fault.New(fault.Failed, "the operation could not be carried out")
	}
	// The whole operation failed: no document has a result, even if some were signed.
	for i := range op.Documents {
		d := &op.Documents[i]
		op.Documents[i] = Processed{ID: d.ID, OriginalRef: d.OriginalRef, OriginalName: d.OriginalName, Related: d.Related, Fault: f}
	}
	r.records, r.failed, r.wrong = nil, f, len(op.Documents)
	return r.finish(ctx, token, nil)
}

// passing lists the faults that may be over soon.
var passing = map[string]bool{fault.Unavailable: true, fault.TooManyRequests: true}

// attempt signs the documents of a leased operation. It checks the rights of the user
// now, whatever they were when the operation was accepted.
func (s *Operations) attempt(ctx context.Context, r *run, record *OperationRecord) error {
	if record.Attempts > s.Settings.Attempts {
		return fault.New(fault.Failed, "the operation was begun several times and never ended")
	}
	if s.OwnerCheck != nil {
		if err := s.OwnerCheck.MayAct(ctx, r.op.Owner); err != nil {
			return err
		}
	}
	r.another = record.Attempts < s.Settings.Attempts
	var err error
	if r.plan, err = readPlan(record.Plan); err != nil {
		return err
	}
	if err := s.openSecrets(record.ID, r.plan); err != nil {
		return err
	}
	if len(record.PIN) > 0 {
		secret, err := s.Vault.Open(pinPlace(record.ID), record.PIN)
		if err != nil {
			return err
		}
		r.pin = string(secret)
		clear(secret)
	}
	if record.Contents != "" {
		blob, err := openKept(ctx, s.Signer.Blobs, record.Contents)
		if err != nil {
			return err
		}
		r.op.open = append(r.op.open, blob.Close)
		part := func(e *extent) source {
			if e == nil {
				return nil
			}
			return kept{Document: newSection(blob, e.At, e.Size)}
		}
		r.original = part(r.plan.Original)
		r.inline = func(i int) source { return part(r.plan.Inline[i]) }
	}
	return r.do(ctx)
}

// writeEntry writes the audit entry of an operation that is carried out without a request.
func (s *Operations) writeEntry(ctx context.Context, op *Operation, phase, outcome string) error {
	e := audit.Entry{
		At: s.Signer.Now(), RequestID: op.ID, Operation: "Execute" + op.Action.String(), Phase: phase, Outcome: outcome,
		Object: "operation " + op.ID, Principal: op.Owner,
	}
	if phase == audit.Done {
		e.Detail = fmt.Sprintf("%d documents", len(op.Documents))
	}
	return s.Audit.Record(ctx, e)
}

// outcomeOf returns the outcome of an operation for the audit log.
func outcomeOf(op *Operation) string {
	if op.Fault != nil {
		return op.Fault.Code
	}
	return audit.OK
}
