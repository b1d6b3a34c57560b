// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/operation"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// TwoStep holds the rules of prepared objects. A zero field means its default.
type TwoStep struct {
	Life   time.Duration // between presign and postsign; default 900 s
	Lease  time.Duration // of a completion whose process died; default 15 s
	All    Quota         // of the installation; default 100 000 objects, 16 GiB
	Caller Quota         // of one caller; default 10 000 objects, 4 GiB
}

// Quota bounds the objects that are prepared and not yet completed or expired.
type Quota struct {
	Objects int64
	Bytes   int64 // bytes of documents and states together
}

// Share is the part of the quota of the installation that callers without a token have together: half. Callers with
// a token keep the rest, however many addresses call without one.
func (q Quota) Share() Quota { return Quota{(q.Objects + 1) / 2, (q.Bytes + 1) / 2} }

func (r TwoStep) withDefaults() TwoStep {
	set := func(v *int64, value int64) {
		if *v == 0 {
			*v = value
		}
	}
	r.Life, r.Lease = cmp.Or(r.Life, 900*time.Second), cmp.Or(r.Lease, 15*time.Second)
	set(&r.All.Objects, 100_000)
	set(&r.All.Bytes, 16<<30)
	set(&r.Caller.Objects, 10_000)
	set(&r.Caller.Bytes, 4<<30)
	return r
}

const (
	// wrongValues is how many wrong values discard a prepared object.
	wrongValues = 5
	// slowest is how long stored documents outlive the time at which the last request that
	// reads them may begin. It is long enough for the time stamps and revocation data of
	// the highest level.
	slowest = 3 * time.Minute
)

// PreparedRecord is a prepared object as it is stored.
type PreparedRecord struct {
	ID        string // GUID; clients know it as CacheObjectId
	Caller    string // the caller whose quota it uses, and who may complete it if it is a user; never empty
	Type      string // name of the format
	Job       []byte // data for Complete; in the format of this package
	Document  string // name in Blobs; empty: the completion needs no document
	Original  string // name in Blobs; empty: none
	Bytes     int64  // bytes that count in the quotas
	CreatedAt time.Time
	ExpiresAt time.Time
	Failures  int       // wrong values so far
	SpentAt   time.Time // zero until it is completed
}

// PreparedStore stores prepared objects. Each method is one atomic step, whatever other
// processes do at the same time.
type PreparedStore interface {
	// AddPrepared stores p if it fits into both quotas, of the installation and of the
	// caller, and for a caller without a token ([OfAddress]) into the share of all those
	// ([Quota.Share]). Otherwise it reports false, stores nothing and does nothing beside.
	AddPrepared(ctx context.Context, p *PreparedRecord, all, caller Quota, beside audit.Beside) (added bool, err error)
	// FindPrepared returns an object, including spent and expired ones. It reports false
	// if there is none with this id.
	FindPrepared(ctx context.Context, id string) (p *PreparedRecord, found bool, err error)
	// ClaimPrepared leases an object for one completion until a time. It reports false if
	// another completion has it, if it is spent or expired, or had too many wrong values.
	ClaimPrepared(ctx context.Context, id, lease string, now, until time.Time, wrong int) (claimed bool, err error)
	// FailPrepared counts a wrong value and returns how many there were. It reports false, and counts
	// nothing, if a completion has the object, if it is spent or expired, or had too many wrong values.
	FailPrepared(ctx context.Context, id string, now time.Time, wrong int) (failures int, counted bool, err error)
	// ExtendPrepared extends a lease. It reports false if the lease is lost or the object is
	// spent.
	ExtendPrepared(ctx context.Context, id, lease string, until time.Time) (held bool, err error)
	// ReleasePrepared ends a lease without spending the object.
	ReleasePrepared(ctx context.Context, id, lease string) error
	// SpendPrepared marks the object as completed, deletes its job and removes it from the quotas.
	// It reports false, and does nothing beside, if the holder has lost the lease. Without a lease
	// ("") it reports false where ClaimPrepared would.
	SpendPrepared(ctx context.Context, id, lease string, now time.Time, wrong int, beside audit.Beside) (spent bool, err error)
	// SweepPrepared deletes expired objects.
	SweepPrepared(ctx context.Context, now time.Time) error
}

// Blobs stores documents durably under names that every process of the service knows.
type Blobs interface {
	operation.Blobs
	// SweepBlobs deletes expired documents.
	SweepBlobs(ctx context.Context, now time.Time) error
}

// Blob is a stored document, open for reading.
type Blob = operation.Blob

// Sweep deletes expired prepared objects and documents.
func (s *Service) Sweep(ctx context.Context) error {
	if s.Prepared == nil || s.Blobs == nil {
		return nil
	}
	now := s.Now()
	return errors.Join(s.Prepared.SweepPrepared(ctx, now), s.Blobs.SweepBlobs(ctx, now))
}

// jobVersion is the version of the format of storedJob. Complete must read every version
// that was ever written, because another release may have prepared the object.
const jobVersion = 1

// storedJob is the content of PreparedRecord.Job.
type storedJob struct {
	Version     int               `json:"v"`
	Params      map[string]string `json:"params"`  // as the client sent them, without secrets
	Address     string            `json:"address"` // of the time-stamp service to use; empty if none is needed
	Certificate []byte            `json:"certificate"`
	Chain       [][]byte          `json:"chain"`
	Digest      []byte            `json:"digest"`    // what the client signs
	Documents   []storedDigest    `json:"documents"` // digests of the document, computed while it was received
	State       []byte            `json:"state"`
	Time        time.Time         `json:"time"`
	Name        string            `json:"name,omitempty"`  // of the document in a container
	Files       []storedFile      `json:"files,omitempty"` // the other documents of a container
}

// storedFile is a document of sig.Job.Files.
type storedFile struct {
	Name    string         `json:"name"`
	Blob    string         `json:"blob"` // name in Blobs
	Digests []storedDigest `json:"digests,omitempty"`
}

// files returns the names in Blobs of the other documents of a container.
func (j *storedJob) files() (names []string) {
	for _, f := range j.Files {
		names = append(names, f.Blob)
	}
	return names
}

// documents returns the names in Blobs of all documents of an object. files are those in its job.
func (p *PreparedRecord) documents(files []string) []string {
	return slices.DeleteFunc(append([]string{p.Document, p.Original}, files...), func(name string) bool { return name == "" })
}

type storedDigest struct {
	Hash string `json:"hash"` // suite.Hash.Name
	Sum  []byte `json:"sum"`
}

// storeDigests returns the stored form of digests.
func storeDigests(digests []suite.Digest) (stored []storedDigest) {
	for _, d := range digests {
		stored = append(stored, storedDigest{d.Hash.Name, d.Sum})
	}
	return stored
}

// readDigests is the inverse of storeDigests. It leaves out digests of hashes that are not known.
func readDigests(stored []storedDigest) (digests []suite.Digest) {
	for _, d := range stored {
		if h, ok := suite.HashByName(d.Hash); ok {
			digests = append(digests, suite.Digest{Hash: h, Sum: d.Sum})
		}
	}
	return digests
}

// storeJob returns the stored form of a job. params came from the client, files are the names of its Files
// in Blobs.
func (s *Service) storeJob(job *sig.Job, t *request, params map[string]string, prepared *sig.Prepared, files []string) ([]byte, error) {
	kept, _ := s.separate(params)
	j := storedJob{
		Version: jobVersion, Params: kept, Address: t.address,
		Certificate: job.Certificate.Raw, Digest: prepared.Digest.Sum, State: prepared.State, Time: job.Time,
		Documents: storeDigests(job.Digests), Name: job.Name,
	}
	for _, c := range job.Chain {
		j.Chain = append(j.Chain, c.Raw)
	}
	for i, f := range job.Files {
		j.Files = append(j.Files, storedFile{Name: f.Name, Blob: files[i], Digests: storeDigests(f.Digests)})
	}
	return json.Marshal(j)
}

// readJob is the inverse of storeJob, without the documents in Blobs.
func readJob(text []byte) (*storedJob, *sig.Job, error) {
	var j storedJob
	if err := json.Unmarshal(text, &j); err != nil {
		return nil, nil, fmt.Errorf("signing: a prepared object: %w", err)
	}
	if j.Version != jobVersion {
		return nil, nil, fmt.Errorf("signing: a prepared object of version %d, this release knows %d", j.Version, jobVersion)
	}
	job := &sig.Job{Params: j.Params, TSPAddress: j.Address, Time: j.Time, Name: j.Name, Digests: readDigests(j.Documents)}
	var err error
	if job.Certificate, err = x509gost.ParseShared(j.Certificate); err != nil {
		return nil, nil, fmt.Errorf("signing: a prepared object: %w", err)
	}
	for _, der := range j.Chain {
		c, err := x509gost.ParseShared(der)
		if err != nil {
			return nil, nil, fmt.Errorf("signing: a prepared object: %w", err)
		}
		job.Chain = append(job.Chain, c)
	}
	for _, f := range j.Files {
		job.Files = append(job.Files, sig.File{Name: f.Name, Digests: readDigests(f.Digests)})
	}
	return &j, job, nil
}
