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
// and abandoned uploads. Several processes may sweep at once. While a backup runs, bytes stay
// for a later sweep.
func (s *Service) Sweep(ctx context.Context) error {
	for {
		now := s.Now()
		gone, err := s.Store.ClaimGone(ctx, now, now.Add(-grace), portion)
		if err != nil {
			return err
		}
		erased, err := s.erase(ctx, gone...)
		if err != nil {
			return err
		}
		if len(gone) < portion || !erased {
			return nil
		}
	}
}

func (s *Service) held(ctx context.Context) (bool, error) {
	if s.Held == nil {
		return false, nil
	}
	return s.Held(ctx)
}

// patience is how many failures end a portion, since a storage that does not answer
// delays each of them.
const patience = 3

// erase removes bytes and their records, which have ended. A record whose bytes cannot be removed
// stays and does not hold up the others. erase reports false, and removes nothing, while a backup
// runs. A backup that begins after this check has a snapshot in which the records have ended.
func (s *Service) erase(ctx context.Context, gone ...Gone) (bool, error) {
	if held, err := s.held(ctx); err != nil || held {
		return false, err
	}
	var ids []string
	var errs []error
	for _, g := range gone {
		if g.Bytes == "" {
			ids = append(ids, g.ID)
			continue
		}
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
	return true, errors.Join(errs...)
}
