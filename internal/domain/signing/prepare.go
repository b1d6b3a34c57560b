// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/policy"
	"tamga/sig"
)

// PrepareOrder is the first of two steps. The caller closes Document and Original.
type PrepareOrder struct {
	Type        string
	Params      map[string]string // without OriginalDocument
	Document    *Intake
	Name        string    // of Document in a container
	Files       []File    // as in SignOrder
	Original    *Intake   // OriginalDocument; nil if there is none
	Certificate []byte    // the signer's: DER, PEM, or a PKCS #7 container
	From        string    // address of a caller without a token, for its quota
	Snapshot    *Snapshot // as in SignOrder

	// Keep, if not nil, is called before the object is stored, and returns what is stored in the same step.
	Keep func(ctx context.Context, p *Prepared) (audit.Beside, error)
}

// Prepared is what the client needs to sign with its own key.
type Prepared struct {
	ID   string // for Complete
	Hash []byte // to be signed with the key of the certificate
}

// OfAddress begins the name of a caller without a token.
const OfAddress = "address:"

// roomPause is the Retry-After of a full quota: objects are completed at any time.
const roomPause = 30 * time.Second

// errNoTwoSteps is an error in the wiring of the program.
var errNoTwoSteps = errors.New("signing: two steps were not wired")

// Prepare returns what a client must sign with its own key, and stores everything that
// Complete needs, durably and for every process of the service. The certificate may
// belong to anyone: it is not verified, and the signature proves only that the client has
// its key. Faults are those of Sign, and too_many_requests if the quotas of prepared
// objects are used up.
func (s *Service) Prepare(ctx context.Context, who audit.Principal, o *PrepareOrder) (*Prepared, error) {
	if s.Prepared == nil || s.Blobs == nil || s.Rand == nil {
		return nil, errNoTwoSteps
	}
	if o.Document.isEmpty() {
		return nil, fault.New(fault.ContentRequired, "Document is missing or empty: send the document, hash or message as Base64")
	}
	if err := s.checkFiles(o.Files); err != nil {
		return nil, err
	}
	t, err := s.request(ctx, o.Type, o.Params)
	if err != nil {
		return nil, err
	}
	if err := s.permitCaller(ctx, who, o.Snapshot, policy.SignDocument); err != nil {
		return nil, err
	}
	now := s.Now()
	cert, chain, err := s.readCertificate(o.Certificate, now)
	if err != nil {
		return nil, err
	}
	if err := s.Powers.mandated(ctx, who.UserID, t.params, cert); err != nil {
		return nil, err
	}
	job := &sig.Job{
		Document: o.Document, Name: o.Name, Digests: o.Document.digests(), Files: filesOf(o.Files, true),
		Certificate: cert, Chain: chain,
		Params: t.params, Request: t.read, TSPAddress: t.address, Time: now, Zone: s.Zone, Evidence: s.Evidence,
	}
	if !o.Original.isEmpty() {
		job.Original, job.OriginalDigests = o.Original, o.Original.digests()
	}
	prepared, err := t.format.Prepare(s.bounded(ctx, who.UserID == "", job), job)
	if err != nil {
		return nil, translate(err)
	}
	return s.keep(ctx, callerOf(who, o.From), t, o, job, prepared)
}

// ofUser begins the callers that have a token.
const ofUser = "user:"

// callerOf returns PreparedRecord.Caller: the user, or the address of a caller without a
// token.
func callerOf(who audit.Principal, from string) string {
	if who.UserID != "" {
		return ofUser + who.UserID
	}
	return OfAddress + from
}

// keep stores a prepared object durably: first the documents that the completion needs, then
// the row that names them, so that a row never names a missing document. Documents without a
// row are swept when they expire.
func (s *Service) keep(ctx context.Context, caller string, t *request, o *PrepareOrder, job *sig.Job, prepared *sig.Prepared) (answer *Prepared, err error) {
	rules := s.TwoStep.withDefaults()
	record := &PreparedRecord{
		Caller: caller, Type: t.name,
		CreatedAt: job.Time, ExpiresAt: job.Time.Add(rules.Life),
	}
	if record.ID, err = newID(s.Rand); err != nil {
		return nil, err
	}
	files := make([]string, 0, len(job.Files)) // names in Blobs
	defer func() {
		// After an outage the row may have been kept, so its documents stay until they expire.
		if _, is := fault.AsOutage(err); err != nil && !is {
			err = errors.Join(err, s.forget(ctx, record.documents(files)))
		}
	}()
	// A completion may begin at the last moment, and clocks differ a little.
	needed := record.ExpiresAt.Add(slowest + time.Minute)
	if !prepared.Detached {
		record.Bytes += job.Size()
		if record.Document, err = s.Blobs.KeepBlob(ctx, job.Document, needed); err != nil {
			return nil, err
		}
	}
	if job.Original != nil {
		record.Bytes += job.Original.Size()
		if record.Original, err = s.Blobs.KeepBlob(ctx, job.Original, needed); err != nil {
			return nil, err
		}
	}
	for _, f := range job.Files {
		name, err := s.Blobs.KeepBlob(ctx, f.Document, needed)
		if err != nil {
			return nil, err
		}
		files = append(files, name)
	}
	if record.Job, err = s.storeJob(job, t, o.Params, prepared, files); err != nil {
		return nil, err
	}
	record.Bytes += int64(len(record.Job))
	answer = &Prepared{ID: record.ID, Hash: prepared.Digest.Sum}
	var kept audit.Beside
	if o.Keep != nil {
		if kept, err = o.Keep(ctx, answer); err != nil {
			return nil, err
		}
	}
	added, err := s.Prepared.AddPrepared(ctx, record, rules.All, rules.Caller, kept)
	if err != nil {
		return nil, err
	}
	if !added {
		return nil, fault.New(fault.TooManyRequests, "too many objects or too many bytes are prepared already: complete them, or wait until they expire").Until(roomPause)
	}
	return answer, nil
}

// forget removes stored documents, even if the client is gone.
func (s *Service) forget(ctx context.Context, names []string) error {
	ctx = context.WithoutCancel(ctx)
	var errs []error
	for _, name := range names {
		errs = append(errs, s.Blobs.RemoveBlob(ctx, name))
	}
	return errors.Join(errs...)
}

// newID returns a random GUID that cannot be guessed: 122 random bits.
func newID(rand io.Reader) (string, error) {
	id, err := uuid.NewRandomFromReader(rand)
	if err != nil {
		return "", fmt.Errorf("signing: naming a prepared object: %w", err)
	}
	return id.String(), nil
}
