// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"context"
	"sync"
)

// recordsMost is how many records are kept. A record takes some 300 bytes.
const recordsMost = 4096

// records keeps what Store.Issued has returned, by serial number, with the state that the issuer
// had before. A transaction that revokes a certificate or lifts a hold also stores the next list of
// the issuer, in every process. So a record is still right as long as the issuer has this state.
type records struct {
	mu   sync.Mutex
	kept map[string]record
}

type record struct {
	issuer State
	issued Issued
}

func (r *records) at(issuer State, serial []byte) (Issued, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, has := r.kept[string(serial)]
	if !has || !found.issuer.equal(issuer) {
		return Issued{}, false
	}
	return found.issued, true
}

func (r *records) keep(issuer State, i Issued) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept == nil || len(r.kept) >= recordsMost {
		r.kept = map[string]record{}
	}
	r.kept[string(i.Serial)] = record{issuer, i}
}

// equal reports whether both states are of the same revocation list. When a transaction of ours rolls
// back and another process commits, two different lists have the same number. So the times are
// compared too.
func (st State) equal(other State) bool {
	return st.Name == other.Name && st.CRLNumber == other.CRLNumber && st.CRLAt.Equal(other.CRLAt)
}

// issued is Store.Issued for a certificate of an authority whose state the caller has just read. It
// must not be called inside a transaction that revokes certificates. A serial number that was not
// found is looked up each time: it may be issued without a new list.
func (s *Service) issued(ctx context.Context, issuer State, serial []byte) (Issued, bool, error) {
	if i, kept := s.records.at(issuer, serial); kept {
		return i, true, nil
	}
	i, found, err := s.store.Issued(ctx, serial)
	if err == nil && found && i.Authority == issuer.Name {
		s.records.keep(issuer, i)
	}
	return i, found, err
}

// stateOf returns the state of an authority. It is the zero State if the authority is not among
// states.
func stateOf(states []State, name string) State {
	for _, st := range states {
		if st.Name == name {
			return st
		}
	}
	return State{}
}
