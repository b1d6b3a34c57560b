package document

import (
	"context"
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

// erase removes bytes and forgets their records.
func (s *Service) erase(ctx context.Context, gone ...Gone) error {
	var ids []string
	for _, g := range gone {
		if err := s.Bytes.Remove(ctx, g.Bytes); err != nil {
			return fmt.Errorf("document: removing the bytes of document %s: %w", g.ID, err)
		}
		ids = append(ids, g.ID)
	}
	if len(ids) == 0 {
		return nil
	}
	return s.Store.ForgetDocuments(ctx, ids)
}
