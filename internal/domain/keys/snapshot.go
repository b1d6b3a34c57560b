// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"context"

	"tamga/internal/domain/authority"
	"tamga/pki/x509gost"
)

// Snapshot has all records of this package and of the built-in authority that a signature
// with the default certificate of a user reads, as of one moment. The caller decides how
// old it may be; see package signing. Other certificates are read from the store when
// needed.
type Snapshot struct {
	Default     *CertificateRecord // nil: the user has none
	Key         KeyRecord          // of Default
	Authorities []authority.State
	// PINMark changes with everything after which a PIN must be tried again: the token, the
	// policies. It becomes vault.Key.Mark. "": each use tries the PIN. The store leaves it empty.
	PINMark string

	// Other is the key of the last certificate that was read and is not Default: both are read together.
	// The store leaves it nil.
	Other *KeyRecord
}

// defaultRecord returns the default certificate of a user from the snapshot, or from the
// store if there is no snapshot.
func (s *Service) defaultRecord(ctx context.Context, snap *Snapshot, userID string) (CertificateRecord, bool, error) {
	switch {
	case snap == nil:
		return s.Store.DefaultCertificate(ctx, userID)
	case snap.Default == nil:
		return CertificateRecord{}, false, nil
	}
	return *snap.Default, true, nil
}

// numberedRecord returns a certificate by number: the default one from the snapshot,
// others from the store.
func (s *Service) numberedRecord(ctx context.Context, snap *Snapshot, id int64) (CertificateRecord, bool, error) {
	if snap != nil && snap.Default != nil && snap.Default.ID == id {
		return *snap.Default, true, nil
	}
	r, key, found, err := s.Store.Certificate(ctx, id)
	if snap != nil && err == nil && found {
		snap.Other = &key
	}
	return r, found, err
}

// keyRecord returns a key by id: the one of a certificate of the snapshot, others from the store.
func (s *Service) keyRecord(ctx context.Context, snap *Snapshot, id string) (KeyRecord, bool, error) {
	switch {
	case snap == nil:
	case snap.Default != nil && snap.Key.ID == id:
		return snap.Key, true, nil
	case snap.Other != nil && snap.Other.ID == id:
		return *snap.Other, true, nil
	}
	return s.Store.Key(ctx, id)
}

// lists returns the revocation lists of the built-in authority.
func (s *Service) lists(ctx context.Context, snap *Snapshot) ([]*x509gost.RevocationList, error) {
	if snap == nil {
		return s.Authority.CRLs(ctx)
	}
	return s.Authority.CRLsAt(ctx, snap.Authorities)
}
