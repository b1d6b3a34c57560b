// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash"
	"strings"
	"time"

	"github.com/google/uuid"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
)

// Limits of the documents of one request that are kept in memory before Bytes is used.
// Most documents are small, and all small ones of a request are stored by one call.
const (
	memoryLimit = 128 << 10 // bytes of one document
	roomLimit   = 4 << 20   // bytes of all documents of a request together
)

// step is how many bytes a large upload reserves in the quotas at a time.
const step = 16 << 20

var (
	errIntakeState = errors.New("document: wrong order of calls: write an intake, finish it, then keep it")
	// errLost means that the process stopped for longer than the lease.
	errLost = fault.New(fault.Unavailable, "the upload took too long: send the document again")
)

// room is the state that the documents of one request share.
type room struct {
	s      *Service
	ctx    context.Context // of the request: io.Writer has no parameter for it
	userID string
	digest Digest
	memory int64 // bytes that may still be kept in memory
}

// Intake receives one document. It hashes the bytes written to it and moves them to Bytes
// when they are too many for memory. [Service.Keep] makes it a document. Closed before
// that, it leaves nothing behind. It must be used by one goroutine at a time.
type Intake struct {
	room     *room
	id       string
	hash     hash.Hash
	sum      []byte
	size     int64
	memory   []byte
	to       Writer // nil while the document is in memory
	upload   Upload // its record in the store; none without an ID
	private  bool   // see Description.Private; it may be empty
	content  []byte // packed, for the row of the document; nil: it is not small
	extended time.Time

	finished, settled bool // settled: kept or given up
	err               error
}

// NewIntake begins a document of who.
func (s *Service) NewIntake(ctx context.Context, who audit.Principal) (*Intake, error) {
	if who.UserID == "" {
		return nil, errors.New("document: an upload needs a user")
	}
	d, err := s.Digest(ctx, who.UserID)
	if err != nil {
		return nil, err
	}
	return (&room{s: s, ctx: ctx, userID: who.UserID, digest: d, memory: roomLimit}).intake()
}

func (r *room) intake() (*Intake, error) {
	// Documents of one time have adjacent keys (RFC 9562, 5.7): indexes change few pages. Who may read a
	// document does not depend on whether its identifier can be guessed.
	id, err := uuid.NewV7FromReader(r.s.Rand)
	if err != nil {
		return nil, fmt.Errorf("document: naming a document: %w", err)
	}
	return &Intake{room: r, id: id.String(), hash: r.digest.New()}, nil
}

// Sibling returns an intake for another document of the same request.
func (in *Intake) Sibling() (*Intake, error) { return in.room.intake() }

// Size returns the number of bytes so far.
func (in *Intake) Size() int64 { return in.size }

// Write implements io.Writer. Faults: invalid_object_state when a quota is used up,
// temporarily_unavailable when Bytes is full.
func (in *Intake) Write(p []byte) (int, error) {
	if in.err == nil && (in.finished || in.settled) {
		in.err = errIntakeState
	}
	if in.err != nil {
		return 0, in.err
	}
	if in.err = in.write(p); in.err != nil {
		return 0, in.err
	}
	in.hash.Write(p)
	in.size += int64(len(p))
	return len(p), nil
}

func (in *Intake) write(p []byte) error {
	n := int64(len(p))
	if in.to == nil {
		if in.size+n <= memoryLimit && n <= in.room.memory {
			in.memory = append(in.memory, p...)
			in.room.memory -= n
			return nil
		}
		if err := in.begin(n); err != nil {
			return err
		}
	}
	if err := in.extend(in.size + n); err != nil {
		return err
	}
	_, err := in.to.Write(p)
	return noRoom(err)
}

// begin moves the document from memory to Bytes. It reserves as extend does, so that most uploads
// are reserved by one change of the store.
func (in *Intake) begin(more int64) error {
	s := in.room.s
	now := s.Now()
	var u Upload
	var added bool
	var err error
	need := in.size + more
	for _, counted := range []int64{max(need, step), need} {
		u = in.describe(counted)
		if added, err = s.Uploads.AddUploads(in.room.ctx, []Upload{u}, now, now.Add(leaseTime), s.quotas()); err != nil {
			return err
		}
		if added {
			break
		}
	}
	if !added {
		return quotaFault()
	}
	in.upload, in.extended = u, now
	if in.to, err = s.Bytes.Create(in.room.ctx, u.Bytes); err != nil {
		return noRoom(err)
	}
	kept := in.memory
	in.memory = nil
	in.room.memory += int64(len(kept))
	_, err = in.to.Write(kept)
	return noRoom(err)
}

func (in *Intake) describe(total int64) Upload {
	return Upload{ID: in.id, UserID: in.room.userID, Bytes: in.name(), Counted: total}
}

// extend reserves that many bytes in the quotas for the upload and keeps the lease fresh.
// It reserves in large steps, or just what is needed when a quota is nearly used up.
func (in *Intake) extend(total int64) error {
	s := in.room.s
	now := s.Now()
	need := total - in.upload.Counted
	if need <= 0 && now.Sub(in.extended) < extendAfter {
		return nil
	}
	need = max(need, 0)
	for _, more := range []int64{max(need, step), need} {
		if need == 0 {
			more = 0
		}
		answer, err := s.Uploads.ExtendUpload(in.room.ctx, in.upload, more, now.Add(leaseTime), s.quotas())
		switch {
		case err != nil:
			return err
		case answer == Lost:
			return errLost
		case answer == Done:
			in.upload.Counted += more
			in.extended = now
			return nil
		}
	}
	return quotaFault()
}

func quotaFault() error {
	return fault.New(fault.InvalidObjectState, "the quota of stored documents is used up, in which open operations count too: delete some, or send smaller ones")
}

// noRoom turns ErrNoRoom into a fault.
func noRoom(err error) error {
	if errors.Is(err, ErrNoRoom) {
		return fault.New(fault.Unavailable, "the document store is full: try again later").With(err)
	}
	return err
}

// Finish ends writing. A document that was moved to Bytes is durable then.
func (in *Intake) Finish() error {
	if in.err == nil && (in.finished || in.settled) {
		in.err = errIntakeState
	}
	if in.err != nil {
		return in.err
	}
	in.finished = true
	in.sum = in.hash.Sum(nil)
	if in.to != nil {
		in.err = noRoom(in.to.Commit())
	}
	return in.err
}

// Became reports whether the intake was kept as the document i. The hash of i then belongs to
// exactly the bytes that were received.
func (in *Intake) Became(i *Info) bool {
	return in.id == i.ID && in.room.userID == i.UserID && in.finished && in.err == nil &&
		in.size == i.Size && in.room.digest.Name == i.HashName && bytes.Equal(in.sum, i.Hash)
}

// free gives the memory of the document back.
func (in *Intake) free() {
	in.room.memory += int64(len(in.memory))
	in.memory = nil
}

// Close gives up a document that was not kept. It may be called more than once.
func (in *Intake) Close() error {
	if in.settled {
		return nil
	}
	in.settled = true
	in.free()
	if in.to != nil {
		in.to.Abort()
	}
	if in.upload.ID == "" {
		return nil
	}
	// The client may have disconnected; the remains must not wait for the sweep.
	ctx := context.WithoutCancel(in.room.ctx)
	ended, err := in.room.s.Uploads.EndUpload(ctx, in.id)
	if err != nil || !ended {
		return err
	}
	_, err = in.room.s.erase(ctx, Gone{ID: in.id, Bytes: in.upload.Bytes})
	return err
}

// name returns the name in Bytes.
func (in *Intake) name() string {
	if in.private {
		return in.room.s.Bytes.SealedName(in.id)
	}
	return in.room.s.Bytes.Name(in.id)
}

// record returns the document that the intake becomes.
func (in *Intake) record(d Description, now time.Time) Record {
	s := in.room.s
	r := Record{
		Info: Info{
			ID: in.id, UserID: in.room.userID, Name: d.Name, Type: d.Type, Parent: strings.ToLower(d.Parent), Extra: d.Extra,
			Size: in.size, Hash: in.sum, HashName: in.room.digest.Name, Uploaded: now, Accessed: now,
		},
		Bytes: in.name(), Content: in.content,
	}
	if d.Temporary {
		r.Expires = now.Add(s.Rules.withDefaults().TemporaryLife)
	}
	return r
}
