// SPDX-License-Identifier: Apache-2.0

package confirm

import (
	"context"
	"slices"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/fault"
)

// Waiting is a record that waits for the decision of a device.
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

// ListForDevice returns records of a user that wait for the decision of a device, the oldest
// first, without those that it cannot describe. describes is Approver.Describes. next is the value of
// after for the next page; "" after the last page. A page may be empty although next is set.
func (s *Service) ListForDevice(ctx context.Context, userID, kid string, describes int, after string) (list []Waiting, next string, err error) {
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
		if w.Content.describable(describes) == nil {
			list = append(list, w)
		}
	}
	if len(open) == MaxPage {
		next = open[MaxPage-1].ID
	}
	return list, next, nil
}

// FindForDevice returns one record of a user that waits for the decision of a device. The
// faults are those of Service, and invalid_transaction if it waits for none of this device, or if the
// device cannot describe it. describes is Approver.Describes.
func (s *Service) FindForDevice(ctx context.Context, userID, kid string, describes int, id string) (Waiting, error) {
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
	w, err := s.waiting(ctx, &r)
	if err == nil {
		err = w.Content.describable(describes)
	}
	return w, err
}

// describable returns the fault of a device that cannot show what is confirmed.
func (c *Content) describable(describes int) error {
	if c.Fields.Version() <= max(describes, what.OneWay) {
		return nil
	}
	return fault.New(fault.InvalidTransaction, "the documents of the operation are signed in several ways, which this device cannot show: update its app, or confirm by another method")
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
