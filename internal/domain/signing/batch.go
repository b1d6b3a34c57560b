// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/policy"
	"tamga/pki/suite"
	"tamga/sig"
)

// BatchOrder asks for one signature over each of many documents, all with one key.
type BatchOrder struct {
	Type        string
	Params      map[string]string
	Certificate string // as in SignOrder
	PIN         string
	Items       []Item
	Snapshot    *Snapshot // as in SignOrder
}

// Item is one document of a batch. The caller closes its documents.
type Item struct {
	Content  *Intake
	Original *Intake // nil if there is none
	Name     string  // of Content in a container
	Err      error   // a fault of this item: it becomes the outcome, and the other items continue

	// Instead of Content and Original: documents that were stored before.
	stored, storedOriginal source
}

// content returns the document of the item, or nil if there is none.
func (it *Item) content() source { return sourceOf(it.Content, it.stored) }

// original returns the document that the message of the item signs, or nil if there is
// none.
func (it *Item) original() source { return sourceOf(it.Original, it.storedOriginal) }

// Outcome is the outcome of one item: a Result or a fault.
type Outcome struct {
	Result Result
	Err    *fault.Error

	value value // of the signature in Result
}

// defaultBatchItems is the default of the largest number of documents of a batch.
const defaultBatchItems = 10_000

func (s *Service) batchItems() int { return cmp.Or(s.BatchItems, defaultBatchItems) }

// parallel bounds how many items of a batch are processed at the same time. It may exceed
// the number of processors, because higher levels wait for other services.
const parallel = 8

// sideBySide is how many documents of a batch are hashed together, and values checked together.
const sideBySide = 64

// SignMany signs the items of a batch in their order. An error in one item is its outcome
// and does not affect the others. An error of SignMany ends the batch: a fault of the
// order (type, certificate, PIN, policy), a fault that [operation.Refusal] returns for the whole
// request, a cancelled ctx, and internal errors. The key is used once for all items, so a
// batch costs one PIN attempt.
func (s *Service) SignMany(ctx context.Context, who audit.Principal, o *BatchOrder) ([]Outcome, error) {
	outcomes, err := s.signMany(ctx, who, o, policy.SignDocuments)
	if err != nil {
		return nil, err
	}
	faults := make([]*fault.Error, len(outcomes))
	for i := range outcomes {
		faults[i] = outcomes[i].Err
	}
	if f := operation.Refusal(faults); f != nil {
		return nil, f
	}
	return outcomes, nil
}

// signMany is SignMany for a caller who may do action, without [operation.Refusal].
func (s *Service) signMany(ctx context.Context, who audit.Principal, o *BatchOrder, action policy.Action) ([]Outcome, error) {
	if len(o.Items) == 0 {
		return nil, fault.New(fault.ContentRequired, "Documents is empty: send the documents to sign")
	}
	if most := s.batchItems(); len(o.Items) > most {
		return nil, fault.Newf(fault.InvalidParameters, "Documents holds %d documents: send at most %d in one request", len(o.Items), most)
	}
	t, err := s.request(ctx, o.Type, o.Params)
	if err != nil {
		return nil, err
	}
	if t.one {
		return nil, fault.New(fault.InvalidSignatureParams, "Container is one, but Documents are signed one by one: send the documents of a container as Files")
	}
	by, err := s.signer(ctx, who, o.Snapshot, action, o.Certificate)
	if err != nil {
		return nil, err
	}
	return s.signItems(ctx, t, by, o.PIN, o.Items)
}

// signItems signs items with one key in one way.
func (s *Service) signItems(ctx context.Context, t *request, by *signer, pin string, items []Item) ([]Outcome, error) {
	if err := s.Powers.mandated(ctx, by.who.UserID, t.params, by.certificate.X509); err != nil {
		return nil, err
	}
	outcomes := make([]Outcome, len(items))
	works, err := s.prepareMany(ctx, t, by, items, outcomes)
	if err != nil {
		return nil, err
	}
	var signed []int // the items without a fault so far
	var digests []suite.Digest
	for i := range works {
		if outcomes[i].Err == nil {
			signed, digests = append(signed, i), append(digests, works[i].digest)
		}
	}
	if len(signed) == 0 {
		return outcomes, nil
	}
	values, err := s.values(ctx, by, pin, digests)
	if err != nil {
		return nil, err
	}
	if err := by.checkMany(ctx, digests, values); err != nil {
		return nil, err
	}
	err = each(ctx, len(signed), func(ctx context.Context, n int) error {
		i := signed[n]
		w := &works[i]
		job, v := w.job, value{w.digest, values[n]}
		result, err := t.format.Finish(ctx, job, w.state, values[n])
		*w = work{}
		var room *sig.ErrRoom
		if errors.As(err, &room) { // as in Sign
			job.Room = room.Need
			result, v, err = s.make(ctx, t.format, job, by, pin)
		}
		if err != nil {
			return outcomes[i].fail(ctx, translate(err))
		}
		outcomes[i].Result, outcomes[i].value = result, v
		s.made(t.name, by.certificate.X509.Suite)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return outcomes, nil
}

// work is an item that is being processed.
type work struct {
	job    *sig.Job
	digest suite.Digest
	state  []byte
}

// prepareMany prepares each item without a fault.
func (s *Service) prepareMany(ctx context.Context, t *request, by *signer, items []Item, outcomes []Outcome) ([]work, error) {
	works := make([]work, len(items))
	groups := (len(items) + sideBySide - 1) / sideBySide
	if _, parts := t.format.(sig.PartSigner); parts {
		groups = 0
	}
	err := each(ctx, groups, func(_ context.Context, group int) error {
		var signed []*Intake
		for _, item := range items[group*sideBySide : min(len(items), (group+1)*sideBySide)] {
			if item.Original.isEmpty() {
				signed = append(signed, item.Content)
			} else {
				signed = append(signed, item.Original)
			}
		}
		digestTogether(signed)
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = each(ctx, len(items), func(ctx context.Context, i int) error {
		item, w := &items[i], &works[i]
		switch {
		case item.Err != nil:
			return outcomes[i].fail(ctx, item.Err)
		case item.content() == nil:
			return outcomes[i].fail(ctx, fault.Newf(fault.ContentRequired, "Documents[%d].Content is missing or empty", i))
		}
		w.job = s.job(t, by, item.content(), item.original())
		w.job.Name = item.Name
		prepared, err := t.format.Prepare(ctx, w.job)
		if err != nil {
			return outcomes[i].fail(ctx, translate(err))
		}
		w.digest, w.state = prepared.Digest, prepared.State
		return nil
	})
	return works, err
}

// fail makes a fault the outcome of an item. Any other error ends the batch.
func (o *Outcome) fail(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f, ok := fault.As(err)
	if !ok {
		return err
	}
	o.Err = f
	return nil
}

// each calls do for 0 to n-1, several at the same time, until one fails or ctx ends. Each of
// its goroutines makes many calls, because the stack of a new goroutine grows step by step
// and is copied every time.
func each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	g, inner := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(n, parallel) {
		g.Go(func() error {
			for inner.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					break
				}
				if err := do(inner, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return ctx.Err() // if no call noticed the end, some calls were skipped
}
