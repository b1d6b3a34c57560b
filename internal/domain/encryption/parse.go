// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"context"
	"errors"
	"slices"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/signing"
	"tamga/pki/cms"
)

// Parsed says which certificates open a message.
type Parsed struct {
	RefID        string  // of a stored message
	Name         string  // of its file
	Certificates []int64 // of the caller: first the one that is taken if the client names none
	Fault        *fault.Error
}

// Parse finds out which certificates of who open messages. It uses no key. A message that cannot be read has
// a fault of its own. Faults: content_required, invalid_parameters.
func (s *Service) Parse(ctx context.Context, who audit.Principal, snap *signing.Snapshot, t Type, messages []Input) ([]Parsed, error) {
	if err := checkInputs(messages); err != nil {
		return nil, err
	}
	list := make([]Parsed, len(messages))
	order := &operation.Order{Kind: kindParse, Form: operation.FormTransaction, Owner: who, Confirming: operation.Refuses, Inputs: inputs(messages), Plan: parsePlan{t, list}}
	if snap != nil {
		order.Fresh = snap
	}
	op, _, err := s.Operations.Start(ctx, order)
	if err != nil {
		return nil, err
	}
	for i := range list {
		d := &op.Documents[i]
		list[i].RefID, list[i].Name, list[i].Fault = d.OriginalRef, d.OriginalName, d.Fault
	}
	return list, op.Close()
}

// parsePlan is the plan of an order, which is carried out at once.
type parsePlan struct {
	kind Type
	list []Parsed
}

// parseKind is a kind that only reads the documents of its order.
func (s *Service) parseKind() operation.Kind {
	return operation.Kind{Name: kindParse, Version: 1, Purpose: confirm.ForOperation, Check: free, Do: s.parseAll}
}

// parseAll implements operation.Kind.Do.
func (s *Service) parseAll(ctx context.Context, run *operation.Run) error {
	p := run.Order().Plan.(parsePlan)
	own, err := s.ownOf(ctx, run)
	if err != nil {
		return err
	}
	err = run.Order().Each(ctx, func(from int, in []operation.Opened) error {
		for i := range in {
			ids, err := s.parseOne(ctx, p.kind, own, &in[i])
			if f, refused := fault.As(err); refused {
				run.Refuse(from+i, f)
			} else if err != nil {
				return err
			}
			p.list[from+i].Certificates = ids
		}
		return nil
	})
	if err != nil {
		return err
	}
	return run.Spend(ctx, nil)
}

func (s *Service) parseOne(ctx context.Context, t Type, own *ownCertificates, in *operation.Opened) (ids []int64, err error) {
	switch {
	case in.Err != nil:
		return nil, in.Err
	case in.Document == nil || in.Document.Size() == 0:
		return nil, noDocument()
	}
	e, err := t.parse(ctx, &source{Document: in.Document}, s.Scratch)
	if err != nil {
		return nil, err
	}
	defer e.close()
	found, _, err := own.opening(ctx, e)
	for _, c := range found {
		ids = append(ids, c.ID)
	}
	return ids, err
}

// ownCertificates are the certificates of a user who decrypts.
type ownCertificates struct {
	keys   Keys
	snap   *keys.Snapshot
	userID string
	asked  map[int64]error // why a certificate does not decrypt, nil if it does

	// By serial number, by key identifier and by DER.
	bySerial, byKey, byDER map[string][]*keys.Certificate
}

// ownOf returns the certificates of the owner of an operation.
func (s *Service) ownOf(ctx context.Context, run *operation.Run) (*ownCertificates, error) {
	o := run.Order()
	snap, err := s.snapshot(ctx, o)
	if err != nil {
		return nil, err
	}
	return s.certificates(ctx, snap.KeysOf(o.Owner), o.Owner.UserID)
}

func (s *Service) certificates(ctx context.Context, snap *keys.Snapshot, userID string) (*ownCertificates, error) {
	list, err := s.Keys.List(ctx, userID)
	if err != nil {
		return nil, err
	}
	own := &ownCertificates{
		keys: s.Keys, snap: snap, userID: userID, asked: map[int64]error{},
		bySerial: map[string][]*keys.Certificate{}, byKey: map[string][]*keys.Certificate{}, byDER: map[string][]*keys.Certificate{},
	}
	for _, c := range list {
		serial := string(trimmed(c.X509.SerialNumber))
		own.bySerial[serial] = append(own.bySerial[serial], c)
		own.byDER[string(c.X509.Raw)] = append(own.byDER[string(c.X509.Raw)], c)
		if id := string(c.X509.SubjectKeyID); id != "" {
			own.byKey[id] = append(own.byKey[id], c)
		}
	}
	return own, nil
}

// snapshot returns a snapshot of the owner of an order, which later steps use, too.
func (s *Service) snapshot(ctx context.Context, o *operation.Order) (*signing.Snapshot, error) {
	snap, _ := o.Fresh.(*signing.Snapshot)
	snap, err := s.Snapshots.Current(ctx, o.Owner, snap)
	if err == nil {
		o.Fresh = snap
	}
	return snap, err
}

// opening returns the certificates that open a message: the default one first, the others in the order of the
// message. why is the reason why a certificate that the message names does not open it, if there are none.
func (o *ownCertificates) opening(ctx context.Context, e message) (found []*keys.Certificate, why error, err error) {
	seen := map[int64]bool{}
	for r := range e.recipients() {
		var candidates []*keys.Certificate
		switch {
		case r.certificate != nil:
			candidates = o.byDER[string(r.certificate)]
		case r.keyID != nil:
			candidates = o.byKey[string(r.keyID)]
		default:
			candidates = o.bySerial[string(trimmed(r.serial))]
		}
		for _, c := range candidates {
			if seen[c.ID] || !r.names(c.X509) {
				continue
			}
			seen[c.ID] = true
			reason := o.opens(ctx, e, c)
			if reason == nil {
				found = append(found, c)
			} else if _, refused := fault.As(reason); !refused {
				return nil, nil, reason
			} else if why == nil {
				why = reason
			}
		}
	}
	slices.SortStableFunc(found, func(a, b *keys.Certificate) int {
		switch {
		case a.Default && !b.Default:
			return -1
		case b.Default && !a.Default:
			return 1
		}
		return 0
	})
	return found, why, nil
}

// opens returns why a certificate of the user does not open a message, nil if it does as far as can be seen without
// its key.
func (o *ownCertificates) opens(ctx context.Context, e message, c *keys.Certificate) error {
	if err := e.recipient(c.X509); errors.Is(err, cms.ErrNotRecipient) {
		return notRecipient(c)
	} else if err != nil {
		return invalidMessage(err)
	}
	why, known := o.asked[c.ID]
	if !known {
		why = o.keys.Decrypts(ctx, o.snap, o.userID, c)
		o.asked[c.ID] = why
	}
	return why
}

// notRecipient is the fault of a certificate that the message does not name.
func notRecipient(c *keys.Certificate) error {
	return fault.Newf(fault.InvalidCertificate, "certificate %d is not among the recipients of the message", c.ID)
}

// trimmed returns an INTEGER without zeros before it, which some programs write.
func trimmed(n []byte) []byte {
	for len(n) > 0 && n[0] == 0 {
		n = n[1:]
	}
	return n
}
