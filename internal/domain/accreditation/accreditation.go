// SPDX-License-Identifier: Apache-2.0

// Package accreditation keeps the list of accredited certification authorities, by which verifications say what is a
// qualified signature. Begin with [Service.Import] and [Service.List].
package accreditation

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"tamga/internal/domain/fault"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/trustlist"
)

const (
	// fresh is how long a process uses the list that it has without looking for a newer one.
	fresh = time.Minute
	// mostStored limits the stored list after decompression.
	mostStored = 64 << 20
)

// Stored is the list in the database.
type Stored struct {
	Version    int64
	Date       time.Time
	ImportedAt time.Time
	CheckedAt  time.Time // when its source last had no newer one
	Content    []byte
}

// Store stores one list.
type Store interface {
	// TrustListInfo returns the stored list without its content, and false without a list.
	TrustListInfo(ctx context.Context) (Stored, bool, error)
	TrustList(ctx context.Context) (Stored, bool, error)
	// PutTrustList replaces the list. Unless older is true it replaces none of a later version or date, and returns false.
	PutTrustList(ctx context.Context, s Stored, older bool) (bool, error)
	// TrustListChecked notes that the list of a version is still the newest.
	TrustListChecked(ctx context.Context, version int64, at time.Time) error
}

// Source fetches the list from its address.
type Source func(ctx context.Context) (document io.ReadSeeker, done func(), err error)

// Service keeps the list of an installation. The fields are set once.
type Service struct {
	Store Store
	// Signers are the certificates of which one has signed each list.
	Signers []*x509gost.Certificate
	Now     func() time.Time
	// Source is nil if the list is only imported.
	Source Source
	Every  time.Duration // between two fetches
	Failed func(error)   // looking for a newer list failed; may be nil

	mu      sync.Mutex
	list    *trustlist.List // nil: none
	of      Stored          // without Content
	looked  bool            // the database was asked once
	lookAt  time.Time       // when to look for a newer one
	fetchAt time.Time       // by this process
}

// Result says what an import did.
type Result struct {
	Version      int64
	Date         time.Time
	Authorities  int
	Accredited   int // now
	Certificates int // of their keys
	Unread       int // certificates that could not be read
	Changed      bool
}

// Import verifies a list and replaces the stored one. A list whose version or date is earlier is refused, unless older is
// true. The stored list stays if the new one is refused.
func (s *Service) Import(ctx context.Context, document io.ReadSeeker, older bool) (Result, error) {
	if len(s.Signers) == 0 {
		return Result{}, fault.New(fault.InvalidParameters, "trust_list.signer_files names no certificate: a list is accepted only if one of them has signed it")
	}
	list, err := trustlist.Read(ctx, document, s.Signers...)
	if err != nil {
		if ctx.Err() != nil {
			return Result{}, ctx.Err()
		}
		return Result{}, fault.New(fault.InvalidContent, err.Error()).With(err)
	}
	now := s.Now()
	r := Result{Version: list.Version, Date: list.Date, Authorities: len(list.Authorities), Unread: list.Unread}
	for i := range list.Authorities {
		if status, _ := list.Authorities[i].StatusAt(now); status.Accredited() {
			r.Accredited++
		}
		for _, k := range list.Authorities[i].Keys {
			r.Certificates += len(k.Issuers)
		}
	}
	info, found, err := s.Store.TrustListInfo(ctx)
	if err != nil {
		return Result{}, err
	}
	content, err := pack(list)
	if err != nil {
		return Result{}, err
	}
	if found && info.Version == list.Version && info.Date.Equal(list.Date) {
		stored, _, err := s.Store.TrustList(ctx)
		if err != nil {
			return Result{}, err
		}
		if bytes.Equal(stored.Content, content) {
			return r, s.Store.TrustListChecked(ctx, list.Version, now)
		}
	}
	put, err := s.Store.PutTrustList(ctx, Stored{Version: list.Version, Date: list.Date, ImportedAt: now, CheckedAt: now, Content: content}, older)
	switch {
	case err != nil:
		return Result{}, err
	case !put:
		return Result{}, fault.Newf(fault.InvalidContent, "the list has version %d of %s, the stored one version %d of %s: an older list is imported only if this is wanted",
			list.Version, trustlist.Day(list.Date), info.Version, trustlist.Day(info.Date))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lookAt = time.Time{}
	r.Changed = true
	return r, nil
}

// pack returns a list as it is stored.
func pack(list *trustlist.List) ([]byte, error) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if err := json.NewEncoder(z).Encode(list); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	if _, err := unpack(out.Bytes()); err != nil { // it may be too long
		return nil, err
	}
	return out.Bytes(), nil
}

func unpack(content []byte) (*trustlist.List, error) {
	z, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("the stored list of authorities: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(z, mostStored+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the stored list of authorities: %w", err)
	case len(text) > mostStored:
		return nil, fmt.Errorf("the stored list of authorities has more than %d bytes", mostStored)
	}
	return trustlist.Load(text)
}

// List returns the stored list, nil without one. A newer one is seen within a minute. Only the first call of a process
// lets others wait; later ones use the list before while one looks, and if the database does not answer.
func (s *Service) List(ctx context.Context) (*trustlist.List, error) {
	now := s.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Before(s.lookAt) {
		return s.list, nil
	}
	list, of := s.list, s.of
	var err error
	if s.looked {
		s.lookAt = now.Add(fresh)
		s.mu.Unlock()
		list, of, err = s.look(ctx, list, of)
		s.mu.Lock()
	} else {
		list, of, err = s.look(ctx, list, of)
	}
	switch {
	case err == nil:
		s.list, s.of, s.lookAt, s.looked = list, of, now.Add(fresh), true
	case !s.looked:
		return nil, err
	case s.Failed != nil: // the list before stays in use, and the next look is in a minute
		s.Failed(err)
	}
	return s.list, nil
}

// look returns the stored list. list and of are what was found before.
func (s *Service) look(ctx context.Context, list *trustlist.List, of Stored) (*trustlist.List, Stored, error) {
	info, found, err := s.Store.TrustListInfo(ctx)
	switch {
	case err != nil || !found:
		return nil, Stored{}, err
	case list != nil && info.Version == of.Version && info.ImportedAt.Equal(of.ImportedAt):
		return list, info, nil
	}
	stored, found, err := s.Store.TrustList(ctx)
	if err != nil || !found {
		return nil, Stored{}, err
	}
	list, err = unpack(stored.Content)
	stored.Content = nil
	return list, stored, err
}

// Info describes the stored list. found is false without a list.
func (s *Service) Info(ctx context.Context) (info Stored, found bool, err error) {
	return s.Store.TrustListInfo(ctx)
}

// Qualify sets the quality of the signatures of a report that were checked for a time, if there is a list.
func (s *Service) Qualify(ctx context.Context, r *sig.Report, checked time.Time) error {
	list, err := s.List(ctx)
	if err != nil || list == nil {
		return err
	}
	list.Qualify(r, checked)
	return nil
}

// Refresh fetches the list if it is time to, for all processes. The stored list stays if the new one is refused.
func (s *Service) Refresh(ctx context.Context) error {
	now := s.Now()
	if s.Source == nil || now.Before(s.fetchAt) {
		return nil
	}
	info, found, err := s.Store.TrustListInfo(ctx)
	if err != nil {
		return err
	}
	if due := info.CheckedAt.Add(s.Every); found && now.Before(due) {
		s.fetchAt = due
		return nil
	}
	s.fetchAt = now.Add(min(s.Every, time.Hour)) // after a failure
	document, done, err := s.Source(ctx)
	if err != nil {
		return err
	}
	defer done()
	_, err = s.Import(ctx, document, false)
	if _, refused := fault.As(err); refused {
		return fmt.Errorf("the list of authorities that was fetched is refused, the stored one stays: %w", err)
	}
	return err
}
