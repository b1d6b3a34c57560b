package keys

import (
	"context"

	"tamga/internal/domain/authority"
	"tamga/pki/x509gost"
)

// Snapshot is what a signature with the default certificate of a user reads of this room and
// of the built-in authority, all of one moment. The caller decides how old it may be, see
// package signing. Another certificate than the default one is read when it is asked for.
type Snapshot struct {
	Default     *CertificateRecord // nil: the user has none
	Key         KeyRecord          // of Default
	Authorities []authority.Standing
}

// defaultRecord finds the default certificate of a user in the snapshot, or in the store
// without one.
func (s *Service) defaultRecord(ctx context.Context, snap *Snapshot, userID string) (CertificateRecord, bool, error) {
	switch {
	case snap == nil:
		return s.Store.DefaultCertificate(ctx, userID)
	case snap.Default == nil:
		return CertificateRecord{}, false, nil
	}
	return *snap.Default, true, nil
}

// numberedRecord finds a certificate by number: the default one in the snapshot, another one
// in the store.
func (s *Service) numberedRecord(ctx context.Context, snap *Snapshot, id int64) (CertificateRecord, bool, error) {
	if snap != nil && snap.Default != nil && snap.Default.ID == id {
		return *snap.Default, true, nil
	}
	return s.Store.Certificate(ctx, id)
}

// keyRecord finds the key of this id: that of the default certificate in the snapshot, another
// one in the store.
func (s *Service) keyRecord(ctx context.Context, snap *Snapshot, id string) (KeyRecord, bool, error) {
	if snap != nil && snap.Default != nil && snap.Key.ID == id {
		return snap.Key, true, nil
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
