package document

import (
	"context"
	"errors"
	"fmt"
)

// portion is how many records a sweep takes at a time.
const portion = 200

// Sweep removes the bytes and then the records of what has ended: deleted documents,
// temporary ones whose time is over, and uploads that never came to their end.
// Several processes may sweep at once.
func (s *Service) Sweep(ctx context.Context) error {
	for {
		now := s.Now()
		gone, err := s.Store.ClaimGone(ctx, now, now.Add(-grace), portion)
		if err != nil {
			return err
		}
		if err := s.erase(ctx, gone...); err != nil {
			return err
		}
		if len(gone) < portion {
			return nil
		}
	}
}

// patience is how many failures end a portion: a place that does not answer takes its
// time for each.
const patience = 3

// erase removes bytes and forgets their records. What cannot be removed stays on record
// and does not keep the others.
func (s *Service) erase(ctx context.Context, gone ...Gone) error {
	var ids []string
	var errs []error
	for _, g := range gone {
		if err := s.Bytes.Remove(ctx, g.Bytes); err != nil {
			errs = append(errs, fmt.Errorf("document: removing the bytes of document %s: %w", g.ID, err))
			if len(errs) == patience {
				break
			}
			continue
		}
		ids = append(ids, g.ID)
	}
	if len(ids) > 0 {
		errs = append(errs, s.Store.ForgetDocuments(ctx, ids))
	}
	return errors.Join(errs...)
}
