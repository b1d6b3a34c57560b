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

	"tamga/internal/domain/fault"
	"tamga/internal/domain/vault"
)

// Answers keep what was answered to requests that carry an Idempotency-Key, so that a
// repetition is answered the same and nothing is signed twice for it: by whichever
// process, and after a crash. A request is leased while it is under way; the lease of
// a process that died ends by itself, and what that process had made has not left it.
type Answers struct {
	Store AnswerStore
	Blobs Blobs  // for answers that are not small
	Spool Spool  // on their way there
	Vault Sealer // for small ones
	Now   func() time.Time
	Rand  io.Reader
	Rules AnswerRules
	// Failed is told what goes wrong beside a request.
	Failed func(err error)

	mu        sync.Mutex
	owed      []owed // releases that failed, the oldest first
	releasing bool   // a goroutine works them off
}

// owed is a lease that nobody holds any more.
type owed struct {
	id    AnswerID
	lease string
	until time.Time // it ends by itself then
}

const (
	releaseTime  = 2 * time.Second // of one attempt at a release
	releasePause = 250 * time.Millisecond
	// mostOwed bounds the releases that wait for the database. What is beyond ends by
	// itself.
	mostOwed = 10_000
)

// AnswerRules bound what is kept. A zero field means its default.
type AnswerRules struct {
	Life   time.Duration // of an answer; default 24 h
	Lease  time.Duration // of a process that died; default 1 min
	Octets int64         // of the answers of one caller that are not small; default 4 GiB
	// Anonymous is the life of an answer to a caller without a token: strangers are not
	// to fill the database. Default 1 h.
	Anonymous time.Duration
}

func (r AnswerRules) withDefaults() AnswerRules {
	r.Life, r.Lease = cmp.Or(r.Life, 24*time.Hour), cmp.Or(r.Lease, time.Minute)
	r.Octets, r.Anonymous = cmp.Or(r.Octets, 4<<30), cmp.Or(r.Anonymous, time.Hour)
	return r
}

// life is how long an answer is kept for a caller.
func (r AnswerRules) life(caller string) time.Duration {
	if caller == "" {
		return min(r.Life, r.Anonymous)
	}
	return r.Life
}

// smallAnswer is up to which size an answer is sealed and kept in its row, in octets.
const smallAnswer = 32 << 10

// AnswerID names an answer: a key is the caller's own, and only its digest is kept.
type AnswerID struct {
	Caller string // "" is whoever has no token
	Name   string // SHA-256 of the key, in hexadecimal
}

// AnswerRecord is an answer as it is stored.
type AnswerRecord struct {
	Request     []byte // digest of what was asked
	LeasedUntil time.Time
	Head        []byte // the kit's own form
	Body        []byte // sealed
	Blob        string // name in Blobs of a body that is not small; "" is none
	DoneAt      time.Time
	ExpiresAt   time.Time
}

// AnswerStore keeps answers. Each method is one atomic step, whatever other processes
// do at the same time, and becomes part of a transaction it is called in.
type AnswerStore interface {
	// ClaimAnswer leases a name that is new or expired, or whose lease is over and that
	// was claimed for the same request. It reports false for all others.
	ClaimAnswer(ctx context.Context, id AnswerID, request []byte, lease string, now, until, expires time.Time) (claimed bool, err error)
	// FindAnswer reads an answer, one that is under way and an expired one too.
	FindAnswer(ctx context.Context, id AnswerID) (a *AnswerRecord, found bool, err error)
	// ExtendAnswer makes a lease longer. It reports false when it is lost.
	ExtendAnswer(ctx context.Context, id AnswerID, lease string, until time.Time) (held bool, err error)
	// RecordAnswer writes an answer down. It reports false when the lease is lost.
	RecordAnswer(ctx context.Context, id AnswerID, lease string, a *AnswerRecord, octets int64) (held bool, err error)
	// ReleaseAnswer forgets a request that came to nothing.
	ReleaseAnswer(ctx context.Context, id AnswerID, lease string) error
	// AnswerOctets is how much a caller's answers take that are not small.
	AnswerOctets(ctx context.Context, caller string) (int64, error)
	// SweepAnswers deletes what has expired.
	SweepAnswers(ctx context.Context, now time.Time) error
}

// Turn is a request with an Idempotency-Key that got its turn: either there is an
// answer already, or it is to be carried out and then kept or released.
type Turn struct {
	answers *Answers
	id      AnswerID
	lease   string
	head    []byte
	body    Result
	done    bool
	close   []func() error
	ended   sync.Once
	stop    func()
}

// Begin gives a request its turn. caller is "" for one without a token; request is a digest of all that makes it what it is.
// wait says that another one with this key is under way. The fault is
// idempotency_key_reused for a key that came with another request.
func (a *Answers) Begin(ctx context.Context, caller, key string, request []byte) (t *Turn, wait bool, err error) {
	sum := sha256.Sum256([]byte(key))
	rules := a.Rules.withDefaults()
	t = &Turn{answers: a, id: AnswerID{caller, hex.EncodeToString(sum[:])}, stop: func() {}}
	if t.lease, err = newID(a.Rand); err != nil {
		return nil, false, err
	}
	now := a.Now()
	claimed, err := a.Store.ClaimAnswer(ctx, t.id, request, t.lease, now, now.Add(rules.Lease), now.Add(rules.life(caller)))
	if err != nil {
		a.releaseLater(t.id, t.lease) // it may have been claimed: the answer of the database was lost
		return nil, false, err
	}
	if claimed {
		t.stop = extending(context.WithoutCancel(ctx), rules.Lease/3, t.extend)
		return t, false, nil
	}
	have, found, err := a.Store.FindAnswer(ctx, t.id)
	switch {
	case err != nil:
		return nil, false, err
	case !found:
		return nil, true, nil // released in this moment
	case subtle.ConstantTimeCompare(have.Request, request) != 1:
		return nil, false, fault.New(fault.KeyReused, "this Idempotency-Key came with another request before: use a new one for each request, and repeat a request unchanged")
	case have.DoneAt.IsZero():
		return nil, true, nil
	}
	t.done, t.head = true, have.Head
	switch {
	case have.Blob != "":
		blob, err := a.Blobs.OpenBlob(ctx, have.Blob)
		if err != nil {
			return nil, false, err
		}
		t.close = append(t.close, blob.Close)
		t.body = newSection(blob, 0, blob.Size())
	case len(have.Body) > 0:
		plain, err := a.Vault.Open(t.place(), have.Body)
		if err != nil {
			return nil, false, err
		}
		t.body = memory(plain)
	}
	return t, false, nil
}

// place is where a small answer is sealed to.
func (t *Turn) place() vault.Place {
	return vault.Place{Purpose: "kept answer", Table: "answers", Row: t.id.Caller + "/" + t.id.Name, Column: "body"}
}

func (t *Turn) extend(ctx context.Context) {
	a := t.answers
	_, err := a.Store.ExtendAnswer(ctx, t.id, t.lease, a.Now().Add(a.Rules.withDefaults().Lease))
	if err != nil && ctx.Err() == nil && a.Failed != nil {
		a.Failed(err) // a lease that is lost is noticed when the answer is recorded
	}
}

// Kept gives the answer there is; it reports false when there is none yet.
func (t *Turn) Kept() (head []byte, body interface {
	Size() int64
	io.WriterTo
}, ok bool) {
	return t.head, t.body, t.done
}

// Keep makes an answer durable. It counts, and the turn is over, when record was
// called, inside a transaction or by itself; until then it is as if there were none.
// record reports an error when the turn went to another process meanwhile: the answer
// must not leave then. body may be nil.
func (t *Turn) Keep(ctx context.Context, head []byte, body interface {
	Size() int64
	io.WriterTo
}) (record func(ctx context.Context) error, err error) {
	a := t.answers
	rules := a.Rules.withDefaults()
	now := a.Now()
	r := &AnswerRecord{Head: head, DoneAt: now, ExpiresAt: now.Add(rules.life(t.id.Caller))}
	var octets int64
	switch {
	case body == nil || body.Size() == 0:
	case body.Size() <= smallAnswer:
		var plain memoryWriter
		if _, err := body.WriteTo(&plain); err != nil {
			return nil, err
		}
		if r.Body, err = a.Vault.Seal(t.place(), plain); err != nil {
			return nil, err
		}
	default:
		octets = body.Size()
		held, err := a.Store.AnswerOctets(ctx, t.id.Caller)
		if err != nil {
			return nil, err
		}
		if held+octets > rules.Octets {
			return nil, fault.New(fault.TooManyRequests, "the answers that are kept for repetitions of your requests take too much: send large requests without Idempotency-Key, or later")
		}
		if r.Blob, err = t.keepLarge(ctx, body, r.ExpiresAt); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context) error {
		held, err := a.Store.RecordAnswer(ctx, t.id, t.lease, r, octets)
		if err == nil && !held {
			err = errTurnLost
		}
		return err
	}, nil
}

// errTurnLost ends a request that took so long without a sign of life that another
// process has begun it anew. What this process made is discarded.
var errTurnLost = &fault.Outage{
	Message: "the request took so long that it was begun anew: repeat it with the same Idempotency-Key to get its answer",
	Err:     errors.New("signing: the lease of an Idempotency-Key is lost"),
}

// keepLarge copies an answer to Blobs. What no record comes to name expires there.
func (t *Turn) keepLarge(ctx context.Context, body Result, expires time.Time) (string, error) {
	in := newIntake(t.answers.Spool, nil)
	defer in.Close()
	if _, err := body.WriteTo(in); err != nil {
		return "", fmt.Errorf("signing: keeping an answer: %w", err)
	}
	if err := in.Finish(); err != nil {
		return "", err
	}
	return t.answers.Blobs.KeepBlob(ctx, in, expires.Add(leaseTime))
}

// Release ends a turn that came to nothing, so that a repetition is carried out. After
// an answer was recorded it does nothing. If it fails, it is tried again until the lease
// has ended by itself: a short outage of the database must not keep a client waiting for
// the rest of a lease.
//
// The lease itself stays long. A holder that is frozen or cut off keeps its turn for as
// long as it may reasonably come back, and clocks of processes may differ. That nothing
// is signed twice does not rest on the lease: RecordAnswer writes only where the lease is
// still the holder's, in the transaction that makes the result count. A release names its
// lease too, so it ends no other turn. Where the outcome of the holder's commit is
// unknown the release waits for the row that this commit has locked, and finds an answer
// recorded or not.
func (t *Turn) Release(ctx context.Context) error {
	if t.done {
		return nil
	}
	t.ended.Do(t.stop)
	ctx, cancel := context.WithTimeout(ctx, releaseTime)
	defer cancel()
	err := t.answers.Store.ReleaseAnswer(ctx, t.id, t.lease)
	if err != nil {
		t.answers.releaseLater(t.id, t.lease)
	}
	return err
}

// releaseLater releases a lease that nobody holds as soon as the store can.
func (a *Answers) releaseLater(id AnswerID, lease string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.owed) >= mostOwed {
		return
	}
	a.owed = append(a.owed, owed{id, lease, a.Now().Add(a.Rules.withDefaults().Lease)})
	if !a.releasing {
		a.releasing = true
		go a.release()
	}
}

// release works off what is owed.
func (a *Answers) release() {
	for pause := releasePause; ; pause = min(2*pause, 8*releasePause) {
		time.Sleep(pause)
		for {
			o, some := a.nextOwed()
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
			a.owed = a.owed[1:]
			a.mu.Unlock()
			pause = releasePause
		}
	}
}

// nextOwed returns the oldest release that is not over by itself. It reports false when
// there is none, and then nobody works them off.
func (a *Answers) nextOwed() (owed, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.owed) > 0 && !a.Now().Before(a.owed[0].until) {
		a.owed = a.owed[1:]
	}
	if len(a.owed) == 0 {
		a.owed, a.releasing = nil, false
		return owed{}, false
	}
	return a.owed[0], true
}

// Close ends the turn of a request; a body that was kept cannot be read any more.
func (t *Turn) Close() error {
	t.ended.Do(t.stop)
	return closeAll(&t.close)
}

// Sweep deletes answers whose time is over.
func (a *Answers) Sweep(ctx context.Context) error { return a.Store.SweepAnswers(ctx, a.Now()) }

// memory is a short body.
type memory []byte

// Size is the length in octets.
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
