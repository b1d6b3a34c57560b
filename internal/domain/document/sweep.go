// SPDX-License-Identifier: Apache-2.0

package document

import (
	"context"
	"errors"
	"fmt"
)

// portion is how many records a sweep takes at a time.
const portion = 200

// Sweep removes the bytes and then the records of deleted documents, expired documents
// and abandoned uploads. Several processes may sweep at once.
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

// patience is how many failures end a portion, since a storage that does not answer
// delays each of them.
const patience = 3

// erase removes bytes and their records. A record whose bytes cannot be removed stays and
// does not hold up the others.
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
