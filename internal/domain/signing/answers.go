// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lease"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/vault"
)

// Answers stores the answers to requests with an Idempotency-Key. A repetition gets the
// same answer, and nothing is signed twice for it, whichever process gets it and even
// after a crash. A request is leased while it runs. The lease of a process that died
// expires, and nothing that this process made has left it.
type Answers struct {
	Store AnswerStore
	Blobs Blobs            // for answers that are not small
	Spool Spool            // for answers while they are received
	Vault operation.Sealer // for small answers
	Now   func() time.Time
	Rand  io.Reader
	Rules AnswerRules
	// Failed is called with errors in the background.
	Failed func(err error)

	mu        sync.Mutex
	pending   []pendingRelease // releases that failed, the oldest first
	releasing bool             // a goroutine retries them
}

// pendingRelease is a lease that no request holds any more.
type pendingRelease struct {
	id    AnswerID
	lease string
	until time.Time // the lease expires then
}

const (
	releaseTime  = 2 * time.Second // of one attempt at a release
	releasePause = 250 * time.Millisecond
	// mostPending bounds the releases that wait for the database. Leases beyond the bound
	// expire.
	mostPending = 10_000
)

// AnswerRules bound the stored answers. A zero field means its default.
type AnswerRules struct {
	Life  time.Duration // of an answer; default 24 h
	Lease time.Duration // of a process that died; default 1 min
	Bytes int64         // bytes of the answers of one caller that are not small; default 4 GiB
	// Anonymous is the Life of an answer to a caller without a token. It is shorter, so
	// that unknown callers cannot fill the database. Default 1 h.
	Anonymous time.Duration
}

func (r AnswerRules) withDefaults() AnswerRules {
	r.Life, r.Lease = cmp.Or(r.Life, 24*time.Hour), cmp.Or(r.Lease, time.Minute)
	r.Bytes, r.Anonymous = cmp.Or(r.Bytes, 4<<30), cmp.Or(r.Anonymous, time.Hour)
	return r
}

// life returns how long an answer is stored for a caller.
func (r AnswerRules) life(caller string) time.Duration {
	if caller == "" {
		return min(r.Life, r.Anonymous)
	}
	return r.Life
}

// smallAnswer is the largest size of an answer that is sealed and stored in its row, in
// bytes.
const smallAnswer = 32 << 10

// AnswerID identifies an answer. A key belongs to its caller, and only its digest is
// stored.
type AnswerID struct {
	Caller string // empty for callers without a token
	Name   string // SHA-256 of the key, in hexadecimal
}

// AnswerRecord is an answer as it is stored.
type AnswerRecord struct {
	Request     []byte // digest of the request
	LeasedUntil time.Time
	Head        []byte // in the format of package rest
	Body        []byte // sealed
	Blob        string // name in Blobs of a body that is not small; empty: none
	DoneAt      time.Time
	ExpiresAt   time.Time
}

// AnswerStore stores answers. Each method is one atomic step, whatever other processes do
// at the same time, and becomes part of the transaction in which it is called.
type AnswerStore interface {
	// ClaimAnswer leases a name that is new or expired, or whose lease has expired and
	// that was claimed for the same request. It reports false for all others.
	ClaimAnswer(ctx context.Context, id AnswerID, request []byte, lease string, now, until, expires time.Time) (claimed bool, err error)
	// FindAnswer returns an answer, even if its request is running or it has expired.
	FindAnswer(ctx context.Context, id AnswerID) (a *AnswerRecord, found bool, err error)
	// ExtendAnswer extends a lease. It reports false if the lease is lost.
	ExtendAnswer(ctx context.Context, id AnswerID, lease string, until time.Time) (held bool, err error)
	// RecordAnswer stores an answer and, in the same step, the audit entry of the outcome,
	// if it is not nil. It reports false and stores nothing if the lease is lost.
	RecordAnswer(ctx context.Context, id AnswerID, lease string, a *AnswerRecord, size int64, outcome *audit.Entry) (held bool, err error)
	// ReleaseAnswer deletes a request without an answer.
	ReleaseAnswer(ctx context.Context, id AnswerID, lease string) error
	// AnswerBytes returns the size in bytes of a caller's answers that are not small.
	AnswerBytes(ctx context.Context, caller string) (int64, error)
	// SweepAnswers deletes expired answers.
	SweepAnswers(ctx context.Context, now time.Time) error
}

// KeyedRequest is a leased request with an Idempotency-Key. Either there is an answer already, or
// the request must be carried out and then kept or released.
type KeyedRequest struct {
	answers *Answers
	id      AnswerID
	lease   lease.Lease
	head    []byte
	body    Result
	done    bool
	close   []func() error
	ended   sync.Once
	stop    func()
}

// Begin leases a request. caller is "" for a request without a token. request is a digest
// of everything that defines the request. wait means that another request with this key
// is running. The fault is idempotency_key_reused if the key was used with another
// request.
func (a *Answers) Begin(ctx context.Context, caller, key string, request []byte) (k *KeyedRequest, wait bool, err error) {
	sum := sha256.Sum256([]byte(key))
	rules := a.Rules.withDefaults()
	k = &KeyedRequest{answers: a, id: AnswerID{caller, hex.EncodeToString(sum[:])}, stop: func() {}}
	if k.lease, err = a.leases().New(); err != nil {
		return nil, false, err
	}
	now := a.Now()
	claimed, err := a.Store.ClaimAnswer(ctx, k.id, request, k.lease.Token, now, k.lease.Until, now.Add(rules.life(caller)))
	if err != nil {
		a.releaseLater(k.id, k.lease.Token) // it may have been claimed: the answer of the database was lost
		return nil, false, err
	}
	if claimed {
		_, k.stop = a.leases().Keep(context.WithoutCancel(ctx), k.lease, k.extend)
		return k, false, nil
	}
	have, found, err := a.Store.FindAnswer(ctx, k.id)
	switch {
	case err != nil:
		return nil, false, err
	case !found:
		return nil, true, nil // it was released just now
	case subtle.ConstantTimeCompare(have.Request, request) != 1:
		return nil, false, fault.New(fault.KeyReused, "this Idempotency-Key was used with another request before: use a new one for each request, and repeat a request unchanged")
	case have.DoneAt.IsZero():
		return nil, true, nil
	}
	k.done, k.head = true, have.Head
	switch {
	case have.Blob != "":
		blob, err := a.Blobs.OpenBlob(ctx, have.Blob)
		if err != nil {
			return nil, false, err
		}
		k.close = append(k.close, blob.Close)
		k.body = operation.NewSection(blob, 0, blob.Size())
	case len(have.Body) > 0:
		plain, err := a.Vault.Open(k.place(), have.Body)
		if err != nil {
			return nil, false, err
		}
		k.body = memory(plain)
	}
	return k, false, nil
}

// place is the place that a small answer is sealed to.
func (k *KeyedRequest) place() vault.Place {
	return vault.Place{Purpose: "kept answer", Table: "answers", Row: k.id.Caller + "/" + k.id.Name, Column: "body"}
}

// leases are the leases of requests. One that is lost is noticed when the answer is recorded.
func (a *Answers) leases() lease.Rules {
	return lease.Rules{Life: a.Rules.withDefaults().Lease, Now: a.Now, Rand: a.Rand, Failed: a.Failed}
}

func (k *KeyedRequest) extend(ctx context.Context, l lease.Lease) (bool, error) {
	return k.answers.Store.ExtendAnswer(ctx, k.id, l.Token, l.Until)
}

// Kept returns the stored answer. It reports false if there is none yet.
func (k *KeyedRequest) Kept() (head []byte, body interface {
	Size() int64
	io.WriterTo
}, ok bool) {
	return k.head, k.body, k.done
}

// Keep stores an answer durably. The answer is valid, and the lease ends, only after
// record was called, inside a transaction or by itself. Until then there is no answer.
// record stores the audit entry of the outcome in the same step, if it is not nil. record
// returns an error if another process got the lease meanwhile. Then the answer must not be
// sent. body may be nil.
func (k *KeyedRequest) Keep(ctx context.Context, head []byte, body interface {
	Size() int64
	io.WriterTo
}) (record func(ctx context.Context, outcome *audit.Entry) error, err error) {
	a := k.answers
	rules := a.Rules.withDefaults()
	now := a.Now()
	r := &AnswerRecord{Head: head, DoneAt: now, ExpiresAt: now.Add(rules.life(k.id.Caller))}
	var size int64
	switch {
	case body == nil || body.Size() == 0:
	case body.Size() <= smallAnswer:
		var plain memoryWriter
		if _, err := body.WriteTo(&plain); err != nil {
			return nil, err
		}
		if r.Body, err = a.Vault.Seal(k.place(), plain); err != nil {
			return nil, err
		}
	default:
		size = body.Size()
		held, err := a.Store.AnswerBytes(ctx, k.id.Caller)
		if err != nil {
			return nil, err
		}
		if held+size > rules.Bytes {
			return nil, fault.New(fault.TooManyRequests, "the stored answers to your requests are too large in total: send large requests without Idempotency-Key, or later")
		}
		if r.Blob, err = k.keepLarge(ctx, body, r.ExpiresAt); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context, outcome *audit.Entry) error {
		held, err := a.Store.RecordAnswer(ctx, k.id, k.lease.Token, r, size, outcome)
		if err == nil && !held {
			err = errTurnLost
		}
		return err
	}, nil
}

// errTurnLost ends a request that did not extend its lease in time, so that another
// process has started it again. The result of this process is discarded.
var errTurnLost = &fault.Outage{
	Message: "the request took so long that it was begun anew: repeat it with the same Idempotency-Key to get its answer",
	Err:     errors.New("signing: the lease of an Idempotency-Key is lost"),
}

// keepLarge copies an answer to Blobs. A copy that no record names expires there.
func (k *KeyedRequest) keepLarge(ctx context.Context, body Result, expires time.Time) (string, error) {
	in := newIntake(k.answers.Spool, nil)
	defer in.Close()
	if _, err := body.WriteTo(in); err != nil {
		return "", fmt.Errorf("signing: keeping an answer: %w", err)
	}
	if err := in.Finish(); err != nil {
		return "", err
	}
	return k.answers.Blobs.KeepBlob(ctx, in, expires.Add(slowest))
}

// Release ends the lease without an answer, so that a repetition is carried out. After an
// answer was recorded it does nothing. If it fails, it is tried again until the lease has
// expired: after a short outage of the database a client must not wait for the rest of a
// lease.
//
// The lease itself is long. A holder that is frozen or cut off keeps its lease for as long
// as it may reasonably come back, and clocks of processes may differ. The lease is not
// what prevents a second signature: RecordAnswer writes only if the holder still has the
// lease, in the transaction that makes the result valid. A release names its lease too,
// so it ends no other lease. If the outcome of the holder's commit is unknown, the release
// waits for the row that this commit has locked, and then finds an answer recorded or
// not.
func (k *KeyedRequest) Release(ctx context.Context) error {
	if k.done {
		return nil
	}
	k.ended.Do(k.stop)
	ctx, cancel := context.WithTimeout(ctx, releaseTime)
	defer cancel()
	err := k.answers.Store.ReleaseAnswer(ctx, k.id, k.lease.Token)
	if err != nil {
		k.answers.releaseLater(k.id, k.lease.Token)
	}
	return err
}

// releaseLater releases a lease without a holder as soon as the store can.
func (a *Answers) releaseLater(id AnswerID, lease string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.pending) >= mostPending {
		return
	}
	a.pending = append(a.pending, pendingRelease{id, lease, a.Now().Add(a.Rules.withDefaults().Lease)})
	if !a.releasing {
		a.releasing = true
		go a.release()
	}
}

// release retries the pending releases.
func (a *Answers) release() {
	for pause := releasePause; ; pause = min(2*pause, 8*releasePause) {
		time.Sleep(pause)
		for {
			o, some := a.nextPending()
			if !some {
				return
			}
			ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
			err := a.Store.ReleaseAnswer(ctx, o.id, o.lease)
			cancel()
			if err != nil {
				break
			}
			a.mu.Lock()
			a.pending = a.pending[1:]
			a.mu.Unlock()
			pause = releasePause
		}
	}
}

// nextPending returns the oldest release whose lease has not expired. It reports false if
// there is none, and then the goroutine ends.
func (a *Answers) nextPending() (pendingRelease, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.pending) > 0 && !a.Now().Before(a.pending[0].until) {
		a.pending = a.pending[1:]
	}
	if len(a.pending) == 0 {
		a.pending, a.releasing = nil, false
		return pendingRelease{}, false
	}
	return a.pending[0], true
}

// Close stops the extension of the lease. After that a kept body cannot be read any more.
func (k *KeyedRequest) Close() error {
	k.ended.Do(k.stop)
	var errs []error
	for _, c := range k.close {
		errs = append(errs, c())
	}
	k.close = nil
	return errors.Join(errs...)
}

// Sweep deletes expired answers.
func (a *Answers) Sweep(ctx context.Context) error { return a.Store.SweepAnswers(ctx, a.Now()) }

// memory is a short body.
type memory []byte

// Size returns the length in bytes.
func (m memory) Size() int64 { return int64(len(m)) }

// WriteTo implements [io.WriterTo].
func (m memory) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(m)
	return int64(n), err
}

// memoryWriter collects a short body.
type memoryWriter []byte

func (m *memoryWriter) Write(p []byte) (int, error) {
	*m = append(*m, p...)
	return len(p), nil
}
