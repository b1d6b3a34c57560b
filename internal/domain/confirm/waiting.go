// SPDX-License-Identifier: Apache-2.0

package confirm

import (
	"context"
	"slices"

	"tamga/internal/domain/audit"
)

// Waiting is a record that waits for the verdict of a device.
type Waiting struct {
	Record  Record
	Content Content // Fields and Shown alone
}

// Limits of one page of ListForDevice. The second one bounds the work: the digest of each
// record is computed again.
const (
	devicePage      = 10
	deviceDocuments = 1000
)

// ListForDevice returns records of a user that wait for the verdict of a device, the oldest
// first. next is the value of after for the next page; "" after the last page. A page may be
// empty although next is set.
func (s *Service) ListForDevice(ctx context.Context, userID, kid, after string) (list []Waiting, next string, err error) {
	open, err := s.Open(ctx, userID, after, MaxPage)
	if err != nil {
		return nil, "", err
	}
	documents := 0
	for i := range open {
		r := &open[i]
		if !r.asks(kid) {
			continue
		}
		if documents += r.Documents; len(list) == devicePage || len(list) > 0 && documents > deviceDocuments {
			return list, open[i-1].ID, nil
		}
		w, err := s.waiting(ctx, r)
		if err != nil {
			return nil, "", err
		}
		list = append(list, w)
	}
	if len(open) == MaxPage {
		next = open[MaxPage-1].ID
	}
	return list, next, nil
}

// FindForDevice returns one record of a user that waits for the verdict of a device. The
// faults are those of Service, and invalid_transaction if it waits for none of this device.
func (s *Service) FindForDevice(ctx context.Context, userID, kid, id string) (Waiting, error) {
	r, err := s.Find(ctx, audit.Principal{UserID: userID}, id)
	if err != nil {
		return Waiting{}, err
	}
	if r.Address != kid { // the device learns nothing about other records
		return Waiting{}, missing()
	}
	if err := r.ended(s.now()); err != nil {
		return Waiting{}, err
	}
	if !r.asks(kid) {
		return Waiting{}, missing()
	}
	return s.waiting(ctx, &r)
}

// asks reports whether the challenge under way is one of a device.
func (r *Record) asks(kid string) bool {
	i := slices.IndexFunc(rows, func(row Row) bool { return row.Name == r.Method })
	return r.State == Challenged && i >= 0 && rows[i].Device && r.Address == kid
}

func (s *Service) waiting(ctx context.Context, r *Record) (Waiting, error) {
	c, err := s.content(ctx, r)
	return Waiting{Record: *r, Content: Content{Fields: c.Fields, Shown: c.Shown}}, err
}
