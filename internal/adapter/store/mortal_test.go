// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"errors"
	"io"
	"time"

	"tamga/internal/adapter/blob"
	"tamga/internal/adapter/store"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/document"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
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
}

// answer is what the process learns of a unit.
func (l *life) answer(err error) error {
	if err == nil && l.unanswered {
		return &fault.Outage{Message: "may or may not have been made", Err: io.ErrUnexpectedEOF}
	}
	return err
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
	documents  signing.DocumentStore
}

type mortalOperations struct{ mortal }

func (m mortalOperations) Atomic(ctx context.Context, fn func(context.Context) error) error {
	_, err := through(m.life, func() (struct{}, error) { return only(m.operations.Atomic(ctx, fn)) })
	return m.answer(err)
}

func (m mortalOperations) AddOperation(ctx context.Context, r *signing.OperationRecord, q signing.Quota) (bool, error) {
	return through(m.life, func() (bool, error) { return m.operations.AddOperation(ctx, r, q) })
}

func (m mortalOperations) FindOperation(ctx context.Context, id string) (r *signing.OperationRecord, found bool, err error) {
	r, err = through(m.life, func() (r *signing.OperationRecord, err error) {
		r, found, err = m.operations.FindOperation(ctx, id)
		return r, err
	})
	return r, found, err
}

func (m mortalOperations) ActiveOperations(ctx context.Context, userID string, now time.Time, limit int) ([]*signing.OperationRecord, error) {
	return through(m.life, func() ([]*signing.OperationRecord, error) {
		return m.operations.ActiveOperations(ctx, userID, now, limit)
	})
}

func (m mortalOperations) ClaimOperation(ctx context.Context, lease string, now, until time.Time) (r *signing.OperationRecord, found bool, err error) {
	r, err = through(m.life, func() (r *signing.OperationRecord, err error) {
		r, found, err = m.operations.ClaimOperation(ctx, lease, now, until)
		return r, err
	})
	return r, found, err
}

func (m mortalOperations) ExtendOperation(ctx context.Context, id, lease string, until time.Time) (bool, error) {
	return m.operations.ExtendOperation(ctx, id, lease, until)
}

func (m mortalOperations) ReleaseOperation(ctx context.Context, id, lease string, due time.Time, given bool) error {
	_, err := through(m.life, func() (struct{}, error) { return only(m.operations.ReleaseOperation(ctx, id, lease, due, given)) })
	return err
}

func (m mortalOperations) FinishOperation(ctx context.Context, r *signing.OperationRecord, lease string) (bool, error) {
	return through(m.life, func() (bool, error) { return m.operations.FinishOperation(ctx, r, lease) })
}

func (m mortalOperations) CancelOperation(ctx context.Context, id, userID string, now, keep time.Time) (bool, error) {
	return through(m.life, func() (bool, error) { return m.operations.CancelOperation(ctx, id, userID, now, keep) })
}

func (m mortalOperations) ExpireOperations(ctx context.Context, now, keep time.Time, limit int) ([]*signing.OperationRecord, error) {
	return through(m.life, func() ([]*signing.OperationRecord, error) {
		return m.operations.ExpireOperations(ctx, now, keep, limit)
	})
}

func (m mortalOperations) SweepOperations(ctx context.Context, now time.Time) error {
	_, err := through(m.life, func() (struct{}, error) { return only(m.operations.SweepOperations(ctx, now)) })
	return err
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
	return through(m.life, func() (string, error) { return m.blobs.KeepBlob(ctx, d, expires) })
}

func (m mortalBlobs) OpenBlob(ctx context.Context, name string) (signing.Blob, error) {
	return through(m.life, func() (signing.Blob, error) { return m.blobs.OpenBlob(ctx, name) })
}

func (m mortalBlobs) RemoveBlob(ctx context.Context, name string) error {
	_, err := through(m.life, func() (struct{}, error) { return only(m.blobs.RemoveBlob(ctx, name)) })
	return err
}

func (m mortalBlobs) SweepBlobs(ctx context.Context, now time.Time) error {
	return m.blobs.SweepBlobs(ctx, now)
}

type mortalDocuments struct{ mortal }

func (m mortalDocuments) Open(ctx context.Context, who audit.Principal, id string) (b signing.Blob, d document.Info, err error) {
	b, err = through(m.life, func() (b signing.Blob, err error) {
		b, d, err = m.documents.Open(ctx, who, id)
		return b, err
	})
	return b, d, err
}

func (m mortalDocuments) Save(ctx context.Context, who audit.Principal, d document.Description, r signing.Result) (string, func(context.Context) error, error) {
	var inner func(context.Context) error
	id, err := through(m.life, func() (id string, err error) {
		id, inner, err = m.documents.Save(ctx, who, d, r)
		return id, err
	})
	return id, func(ctx context.Context) error {
		_, err := through(m.life, func() (struct{}, error) { return only(inner(ctx)) })
		return err
	}, err
}
