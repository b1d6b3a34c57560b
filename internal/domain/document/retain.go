// SPDX-License-Identifier: Apache-2.0

package document

import (
	"context"
	"errors"
	"io"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
)

// retained is the fault of a document that its owner may not remove yet.
func retained(i *Info) error {
	return fault.Newf(fault.InvalidObjectState, "the document has a retention until %s and cannot be removed before; end the retention first, or ask an operator to",
		i.KeptLast().UTC().Format(time.DateOnly))
}

// keepUntil returns until when a document that becomes permanent at a time is kept by the policy of its owner; zero: it is not.
func (s *Service) keepUntil(who audit.Principal, now time.Time) (until time.Time) {
	if s.KeepFor != nil {
		if life := s.KeepFor(who); life > 0 {
			until = now.Add(life).UTC().Truncate(time.Millisecond)
		}
	}
	return until
}

// Retain keeps a document of who until a time: its owner cannot remove it before, and it does not expire. The zero time ends
// that. It joins the transaction of ctx. The fault is object_not_found.
func (s *Service) Retain(ctx context.Context, who audit.Principal, id string, until time.Time) error {
	id, ok := identifier(id)
	if !ok {
		return notFound()
	}
	done, err := s.Retention.RetainDocument(ctx, who.UserID, id, until, s.Now())
	if err == nil && !done {
		err = notFound()
	}
	return err
}

// Replacement is new content of a document, which is durable and not to be seen yet.
type Replacement struct {
	s      *Service
	in     *Intake
	id     string
	record Record
}

// most is a quota that is not reached. Content that is renewed for a need, and not for a wish of the owner's, counts in the
// quotas and is never refused by them: the document would be lost.
var most = Quotas{Quota{1 << 60, 1 << 60}, Quota{1 << 60, 1 << 60}}

// Replace stores new content for a document of who and makes it durable. Record makes it the content of the document. Without
// it, the content is swept. With needed, it counts in the quotas and is not refused by them. The caller closes the replacement.
func (s *Service) Replace(ctx context.Context, who audit.Principal, id string, src io.WriterTo, needed bool) (*Replacement, error) {
	old, err := s.find(ctx, who, id)
	if err != nil {
		return nil, err
	}
	replacing := *s
	replacing.replacing, replacing.boundless = true, needed
	in, err := replacing.NewIntake(ctx, who)
	if err != nil {
		return nil, err
	}
	in.private = s.Bytes.IsSealed(old.Bytes) // a private document stays one
	r := &Replacement{s: &replacing, in: in, id: old.ID}
	if _, err = src.WriteTo(in); err == nil {
		err = in.Finish()
	}
	if err == nil {
		var records []Record
		if records, err = r.s.settle(ctx, who, []New{{Content: in}}, s.Rules.InRow); err == nil {
			r.record = records[0]
			return r, nil
		}
	}
	return nil, errors.Join(err, in.Close())
}

// Size returns the length of the new content in bytes.
func (r *Replacement) Size() int64 { return r.record.Size }

// Record makes the new content the content of the document, within leaseTime of Replace and in the transaction of ctx. Before
// it commits, the document has the old content, and after that the new one. The old one stays as an expired document, so
// that reads that have begun can end. The fault is object_not_found.
func (r *Replacement) Record(ctx context.Context) error {
	now := r.s.Now()
	r.record.Expires = now
	if err := r.s.record(ctx, []Record{r.record}); err != nil {
		return err
	}
	done, err := r.s.Retention.ReplaceContent(ctx, r.record.UserID, r.id, r.record.ID, now)
	if err == nil && !done {
		err = fault.Rollback(notFound())
	}
	return err
}

// Close gives the new content up, unless the transaction of Record has committed.
func (r *Replacement) Close() error { return r.in.Close() }
