// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"tamga/internal/adapter/blob"
	"tamga/internal/adapter/store"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/document"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lease"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/signing"
	"tamga/sig"
)

// errDead is the error of every call of a process that has died.
var errDead = errors.New("the process is dead")

// life is the life of a process. It ends after a number of calls to the outside, in the
// middle of a call: before the call was made, or after it.
type life struct {
	left int // remaining calls; below 0: unlimited
	late bool
	dead bool
	// unanswered: the database keeps what units change, but the process does not learn it.
	unanswered bool
	// at is called before and after each call for a document, with a name of the moment, in a process that is killed
	// there; nil in others. The statements of such a process have a hook of their own.
	at func(point string)
}

// answer is what the process learns of a unit.
func (l *life) answer(err error) error {
	if err == nil && l.unanswered {
		return &fault.Outage{Message: "may or may not have been made", Err: io.ErrUnexpectedEOF}
	}
	return err
}

// pointed calls at, if there is one.
func (l *life) pointed(point string) {
	if l.at != nil {
		l.at(point)
	}
}

// through makes a call to the outside.
func through[T any](l *life, call func() (T, error)) (T, error) {
	var none T
	if l.dead {
		return none, errDead
	}
	if l.left == 0 {
		if l.dead = true; l.late {
			call()
		}
		return none, errDead
	}
	l.left--
	v, err := call()
	if l.dead {
		return none, errDead
	}
	return v, err
}

func only(err error) (struct{}, error) { return struct{}{}, err }

// mortal are the stores of a process that may die.
type mortal struct {
	*life
	operations store.Operations
	answers    store.Answers
	blobs      *blob.Prepared
	documents  operation.DocumentStore
}

// mortalOperations makes the calls of package operation ones that a process may die in.
type mortalOperations struct {
	store.Operations
	life *life
}

func (m mortalOperations) Atomic(ctx context.Context, set lock.Set, fn func(context.Context) error) error {
	_, err := through(m.life, func() (struct{}, error) { return only(m.Operations.Atomic(ctx, set, fn)) })
	return m.life.answer(err)
}

func (m mortalOperations) AddOperation(ctx context.Context, r *operation.Stored, q operation.Quota) (bool, error) {
	return through(m.life, func() (bool, error) { return m.Operations.AddOperation(ctx, r, q) })
}

func (m mortalOperations) FindOperation(ctx context.Context, id string) (r *operation.Stored, found bool, err error) {
	r, err = through(m.life, func() (r *operation.Stored, err error) {
		r, found, err = m.Operations.FindOperation(ctx, id)
		return r, err
	})
	return r, found, err
}

func (m mortalOperations) OpenOperations(ctx context.Context, userID, clientID string, now time.Time, limit int) ([]*operation.Stored, error) {
	return through(m.life, func() ([]*operation.Stored, error) {
		return m.Operations.OpenOperations(ctx, userID, clientID, now, limit)
	})
}

func (m mortalOperations) ClaimOperation(ctx context.Context, id string, l lease.Lease, now time.Time) (r *operation.Stored, found bool, err error) {
	r, err = through(m.life, func() (r *operation.Stored, err error) {
		r, found, err = m.Operations.ClaimOperation(ctx, id, l, now)
		return r, err
	})
	return r, found, err
}

func (m mortalOperations) ClaimNext(ctx context.Context, asked bool, l lease.Lease, now time.Time) (r *operation.Stored, found bool, err error) {
	r, err = through(m.life, func() (r *operation.Stored, err error) {
		r, found, err = m.Operations.ClaimNext(ctx, asked, l, now)
		return r, err
	})
	return r, found, err
}

func (m mortalOperations) ReleaseOperation(ctx context.Context, id, token string) error {
	_, err := through(m.life, func() (struct{}, error) { return only(m.Operations.ReleaseOperation(ctx, id, token)) })
	return err
}

func (m mortalOperations) PostponeOperation(ctx context.Context, id, token string, due time.Time, given bool, why *fault.Error) error {
	_, err := through(m.life, func() (struct{}, error) {
		return only(m.Operations.PostponeOperation(ctx, id, token, due, given, why))
	})
	return err
}

func (m mortalOperations) SpendOperation(ctx context.Context, r *operation.Stored, token string) (bool, error) {
	return through(m.life, func() (bool, error) { return m.Operations.SpendOperation(ctx, r, token) })
}

func (m mortalOperations) CancelOperation(ctx context.Context, id, userID string, now, keep time.Time) (bool, error) {
	return through(m.life, func() (bool, error) { return m.Operations.CancelOperation(ctx, id, userID, now, keep) })
}

func (m mortalOperations) ExpireOperations(ctx context.Context, now, keep time.Time, limit int) ([]*operation.Stored, error) {
	return through(m.life, func() ([]*operation.Stored, error) {
		return m.Operations.ExpireOperations(ctx, now, keep, limit)
	})
}

func (m mortalOperations) SweepOperations(ctx context.Context, now time.Time) error {
	_, err := through(m.life, func() (struct{}, error) { return only(m.Operations.SweepOperations(ctx, now)) })
	return err
}

// signs returns the operations of a process that signs, and what it uses for documents.
func (m mortal) signs(t *testing.T, settings operation.Settings, deps operation.Deps, signer *signing.Service, pins signing.PINs, callbacks operation.Callbacks) (*signing.Operations, operation.DocumentDeps) {
	t.Helper()
	kept := mortalOperations{m.operations, m.life}
	deps.Store, deps.Lists, deps.Audit = kept, kept, store.Audit{DB: m.operations.DB}
	service, err := operation.New(settings, deps)
	if err != nil {
		t.Fatal(err)
	}
	o := &signing.Operations{Service: service, Signer: signer, PINs: pins}
	if err := service.Add(o.Kinds()...); err != nil {
		t.Fatal(err)
	}
	docs := operation.DocumentDeps{Documents: mortalDocuments{m}, Blobs: signer.Blobs, Scratch: func() operation.Scratch { return signer.NewScratch() }, Callbacks: callbacks}
	service.Use(docs)
	return o, docs
}

// mortalOutbox makes the calls that add, claim and end a message ones that a process may die in.
type mortalOutbox struct {
	store.Outbox
	life *life
}

func (m mortalOutbox) AddMessage(ctx context.Context, r notify.Record) error {
	_, err := through(m.life, func() (struct{}, error) { return only(m.Outbox.AddMessage(ctx, r)) })
	return err
}

func (m mortalOutbox) ClaimMessages(ctx context.Context, channel notify.Channel, lease string, now, until time.Time, limit int) ([]notify.Record, error) {
	return through(m.life, func() ([]notify.Record, error) {
		return m.Outbox.ClaimMessages(ctx, channel, lease, now, until, limit)
	})
}

func (m mortalOutbox) FinishMessage(ctx context.Context, id, lease string, e notify.Ending) (bool, error) {
	return through(m.life, func() (bool, error) { return m.Outbox.FinishMessage(ctx, id, lease, e) })
}

type mortalAnswers struct{ mortal }

func (m mortalAnswers) ClaimAnswer(ctx context.Context, id signing.AnswerID, request []byte, lease string, now, until, expires time.Time) (bool, error) {
	return through(m.life, func() (bool, error) { return m.answers.ClaimAnswer(ctx, id, request, lease, now, until, expires) })
}

func (m mortalAnswers) FindAnswer(ctx context.Context, id signing.AnswerID) (a *signing.AnswerRecord, found bool, err error) {
	a, err = through(m.life, func() (a *signing.AnswerRecord, err error) {
		a, found, err = m.answers.FindAnswer(ctx, id)
		return a, err
	})
	return a, found, err
}

func (m mortalAnswers) ExtendAnswer(ctx context.Context, id signing.AnswerID, lease string, until time.Time) (bool, error) {
	return m.answers.ExtendAnswer(ctx, id, lease, until)
}

func (m mortalAnswers) RecordAnswer(ctx context.Context, id signing.AnswerID, lease string, a *signing.AnswerRecord, size int64, outcome *audit.Entry) (bool, error) {
	return through(m.life, func() (bool, error) { return m.answers.RecordAnswer(ctx, id, lease, a, size, outcome) })
}

func (m mortalAnswers) ReleaseAnswer(ctx context.Context, id signing.AnswerID, lease string) error {
	_, err := through(m.life, func() (struct{}, error) { return only(m.answers.ReleaseAnswer(ctx, id, lease)) })
	return err
}

func (m mortalAnswers) AnswerBytes(ctx context.Context, caller string) (int64, error) {
	return m.answers.AnswerBytes(ctx, caller)
}

func (m mortalAnswers) SweepAnswers(ctx context.Context, now time.Time) error {
	return m.answers.SweepAnswers(ctx, now)
}

type mortalBlobs struct{ mortal }

func (m mortalBlobs) KeepBlob(ctx context.Context, d sig.Document, expires time.Time) (string, error) {
	m.life.pointed("before keeping a blob")
	defer m.life.pointed("after keeping a blob")
	return through(m.life, func() (string, error) { return m.blobs.KeepBlob(ctx, d, expires) })
}

func (m mortalBlobs) OpenBlob(ctx context.Context, name string) (signing.Blob, error) {
	m.life.pointed("before opening a blob")
	defer m.life.pointed("after opening a blob")
	return through(m.life, func() (signing.Blob, error) { return m.blobs.OpenBlob(ctx, name) })
}

func (m mortalBlobs) RemoveBlob(ctx context.Context, name string) error {
	m.life.pointed("before removing a blob")
	defer m.life.pointed("after removing a blob")
	_, err := through(m.life, func() (struct{}, error) { return only(m.blobs.RemoveBlob(ctx, name)) })
	return err
}

func (m mortalBlobs) SweepBlobs(ctx context.Context, now time.Time) error {
	return m.blobs.SweepBlobs(ctx, now)
}

type mortalDocuments struct{ mortal }

func (m mortalDocuments) Find(ctx context.Context, who audit.Principal, ids []string) (operation.Found, error) {
	found, err := through(m.life, func() (operation.Found, error) { return m.documents.Find(ctx, who, ids) })
	return mortalFound{m.mortal, found}, err
}

type mortalFound struct {
	mortal
	found operation.Found
}

func (m mortalFound) Open(ctx context.Context, id string) (b signing.Blob, d document.Info, err error) {
	b, err = through(m.life, func() (b signing.Blob, err error) {
		b, d, err = m.found.Open(ctx, id)
		return b, err
	})
	return b, d, err
}

func (m mortalDocuments) NewBatch(who audit.Principal) operation.Batch {
	return &mortalBatch{m.mortal, m.documents.NewBatch(who)}
}

type mortalBatch struct {
	mortal
	batch operation.Batch
}

func (m *mortalBatch) Save(ctx context.Context, d document.Description, src io.WriterTo) (string, error) {
	m.life.pointed("before storing a document")
	defer m.life.pointed("after storing a document")
	return through(m.life, func() (string, error) { return m.batch.Save(ctx, d, src) })
}

func (m *mortalBatch) Record(ctx context.Context) error {
	_, err := through(m.life, func() (struct{}, error) { return only(m.batch.Record(ctx)) })
	return err
}
