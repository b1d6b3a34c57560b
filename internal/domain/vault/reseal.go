// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Column is a column of a table with sealed records.
type Column struct {
	Table, Column string
	// Place returns the place of a record by what the store reads as Sealed.Row.
	Place func(row string) Place
}

// Name returns the name of a column for people.
func (c Column) Name() string { return c.Table + "." + c.Column }

// SealedRecord is a sealed record as stored.
type SealedRecord struct {
	ID     string // of the row, unique in its table
	Row    string // argument of Column.Place
	Sealed []byte
}

// Records reads and replaces sealed records of all tables. Of private keys it sees those of SoftHolder
// alone: other holders do not use the ring.
type Records interface {
	// Columns returns all columns with sealed records.
	Columns() []Column
	// CountUnder counts the records that begin with head.
	CountUnder(ctx context.Context, c Column, head []byte) (int64, error)
	// OneUnderNone returns a record that begins with none of the heads.
	OneUnderNone(ctx context.Context, c Column, heads [][]byte) (SealedRecord, bool, error)
	// OneUnder returns a record that begins with head.
	OneUnder(ctx context.Context, c Column, head []byte) (SealedRecord, bool, error)
	// NotUnder returns records that do not begin with head, by ID from after on.
	NotUnder(ctx context.Context, c Column, head []byte, after string, limit int) ([]SealedRecord, error)
	// Swap replaces a record that is still the same. It reports whether it was.
	Swap(ctx context.Context, c Column, r SealedRecord, sealed []byte) (bool, error)
}

// Usage is how many records of a column are sealed under a master key.
type Usage struct {
	KeyID  string
	Column string
	Count  int64
}

// UsageOf counts the records under each master key, those that are not in the ring included.
func UsageOf(ctx context.Context, r *Ring, records Records) (list []Usage, err error) {
	for _, c := range records.Columns() {
		var heads [][]byte
		ids := r.IDs()
		for i := 0; ; i++ {
			if i == len(ids) {
				other, found, err := records.OneUnderNone(ctx, c, heads)
				if err != nil {
					return nil, err
				}
				if !found {
					break
				}
				id, err := KeyID(other.Sealed)
				if err != nil {
					return nil, fmt.Errorf("%s, row %q: %w", c.Name(), other.ID, err)
				}
				ids = append(ids, id)
			}
			head := sealHead(ids[i])
			heads = append(heads, head)
			n, err := records.CountUnder(ctx, c, head)
			if err != nil {
				return nil, err
			}
			if n > 0 {
				list = append(list, Usage{ids[i], c.Name(), n})
			}
		}
	}
	return list, nil
}

// Probe opens one record under a master key. It returns ErrWrongKey if that fails, and reports
// whether there is any record.
func Probe(ctx context.Context, r *Ring, id string, records Records) (found bool, err error) {
	for _, c := range records.Columns() {
		one, found, err := records.OneUnder(ctx, c, sealHead(id))
		if err != nil {
			return false, err
		}
		if !found {
			continue
		}
		plain, err := r.Open(c.Place(one.Row), one.Sealed)
		clear(plain)
		if errors.Is(err, ErrSealed) {
			return true, fmt.Errorf("%w: %q does not open %s, row %q", ErrWrongKey, id, c.Name(), one.ID)
		}
		return true, err
	}
	return false, nil
}

// Resealing moves sealed records to the active master key. Records may be read and changed
// meanwhile. A stopped run is continued by the next one, which finds what is left.
type Resealing struct {
	Ring    *Ring
	Records Records
	// Batch is how many records are read at once, Workers how many are replaced at once.
	Batch, Workers int
	// Progress is called after each batch with a column and how many of its records were moved.
	Progress func(column string, moved int64)
}

// Resealed is the result of a run.
type Resealed struct {
	Moved int64
	// Failed are records that do not open: damaged ones, and those under a master key that is
	// not in the ring. At most maxFailures are kept; FailedCount counts all.
	Failed      []error
	FailedCount int64
}

const maxFailures = 20

// Fail adds a record that does not open.
func (r *Resealed) Fail(err error) {
	if r.FailedCount++; len(r.Failed) < maxFailures {
		r.Failed = append(r.Failed, err)
	}
}

// Run moves all records. ctx may end at any time; the error is then that of ctx.
func (s *Resealing) Run(ctx context.Context) (Resealed, error) {
	var total Resealed
	for _, c := range s.Records.Columns() {
		// A record that was changed by another caller is seen again in the next pass.
		for again := true; again; {
			var pass Resealed // records that failed are seen again in each pass
			var err error
			again, err = s.pass(ctx, c, &pass)
			total.Moved += pass.Moved
			if !again || err != nil {
				total.FailedCount += pass.FailedCount
				total.Failed = append(total.Failed, pass.Failed[:min(len(pass.Failed), maxFailures-len(total.Failed))]...)
			}
			if err != nil {
				return total, fmt.Errorf("%s: %w", c.Name(), err)
			}
		}
	}
	return total, nil
}

// pass goes through a column once. It reports whether records were changed by others meanwhile.
func (s *Resealing) pass(ctx context.Context, c Column, total *Resealed) (again bool, err error) {
	head := sealHead(s.Ring.Active())
	for after := ""; ; {
		list, err := s.Records.NotUnder(ctx, c, head, after, s.Batch)
		if err != nil || len(list) == 0 {
			return again, err
		}
		after = list[len(list)-1].ID
		moved, missed, err := s.batch(ctx, c, list, total)
		total.Moved += moved
		if err != nil {
			return again, err
		}
		again = again || missed
		if s.Progress != nil {
			s.Progress(c.Name(), moved)
		}
	}
}

type recordError struct {
	column, id string
	err        error
}

func (e *recordError) Error() string { return fmt.Sprintf("%s, row %q: %s", e.column, e.id, e.err) }
func (e *recordError) Unwrap() error { return e.err }

// batch replaces the records of a list, several at a time. missed reports whether others changed one of
// them.
func (s *Resealing) batch(ctx context.Context, c Column, list []SealedRecord, total *Resealed) (moved int64, missed bool, err error) {
	var mu sync.Mutex
	var workers sync.WaitGroup
	work := make(chan SealedRecord)
	for range s.Workers {
		workers.Go(func() {
			for r := range work {
				sealed, openErr := s.Ring.Reseal(c.Place(r.Row), r.Sealed)
				var swapped bool
				var swapErr error
				if openErr == nil {
					swapped, swapErr = s.Records.Swap(ctx, c, r, sealed)
				}
				mu.Lock()
				switch {
				case openErr != nil:
					total.FailedCount++
					if len(total.Failed) < maxFailures {
						total.Failed = append(total.Failed, &recordError{c.Name(), r.ID, openErr})
					}
				case swapErr != nil:
					err = swapErr
				case swapped:
					moved++
				default:
					missed = true
				}
				mu.Unlock()
			}
		})
	}
	for _, r := range list {
		if ctx.Err() != nil {
			break
		}
		work <- r
	}
	close(work)
	workers.Wait()
	if err == nil {
		err = ctx.Err()
	}
	return moved, missed, err
}
