// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"cmp"
	"context"
	"crypto"
	"errors"
	"fmt"
	"slices"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/vault"
	"tamga/pki/suite"
)

// Placement chooses the holder of a new key by its suite and by the group of its user. A stored key stays
// where it is, whatever the rules say later.
type Placement struct {
	// Rules are asked in their order. The first one that fits decides.
	Rules []PlacementRule
	// Otherwise is the holder of keys that no rule fits; "" means vault.SoftwareName.
	Otherwise string
	// Groups reads the groups of users. Only rules with groups need it.
	Groups Groups
}

// PlacementRule sends new keys to a holder.
type PlacementRule struct {
	Holder string   // name of the holder
	Suites []string // names of suites; empty: all
	Groups []string // names of groups of users; empty: all
}

// Groups reads the groups of users.
type Groups interface {
	// GroupOf reads the name of the group that a user belongs to.
	GroupOf(ctx context.Context, userID string) (string, error)
}

// check returns an error for a holder that the installation does not have and for a suite that does not
// exist. Groups may be made later.
func (p *Placement) check(holders []string) error {
	p.Otherwise = cmp.Or(p.Otherwise, vault.SoftwareName)
	if !slices.Contains(holders, p.Otherwise) {
		return fmt.Errorf("keys: new keys go to the holder %q, which the installation does not have", p.Otherwise)
	}
	for _, r := range p.Rules {
		if !slices.Contains(holders, r.Holder) {
			return fmt.Errorf("keys: a rule sends new keys to the holder %q, which the installation does not have", r.Holder)
		}
		for _, name := range r.Suites {
			if _, ok := suite.ByName(name); !ok {
				return fmt.Errorf("keys: a rule about new keys names the suite %q, which does not exist", name)
			}
		}
		if len(r.Groups) > 0 && p.Groups == nil {
			return errors.New("keys: rules about groups need the groups of users")
		}
	}
	return nil
}

// holder returns the name of the holder for a new key of a user.
func (p *Placement) holder(ctx context.Context, userID string, su *suite.Suite) (string, error) {
	group, known := "", false
	for _, r := range p.Rules {
		if len(r.Suites) > 0 && !slices.Contains(r.Suites, su.Name) {
			continue
		}
		if len(r.Groups) > 0 && !known {
			var err error
			if group, err = p.Groups.GroupOf(ctx, userID); err != nil {
				return "", err
			}
			known = true
		}
		if len(r.Groups) == 0 || slices.Contains(r.Groups, group) {
			return r.Holder, nil
		}
	}
	return p.Otherwise, nil
}

// newKey makes a key for a user in the holder that the placement says. The key is not stored yet; see
// discard.
func (s *Service) newKey(ctx context.Context, userID string, su *suite.Suite, pin []byte, make maker) (id string, k vault.Key, public crypto.PublicKey, err error) {
	holder, err := s.Placement.holder(ctx, userID, su)
	if err != nil {
		return "", k, nil, err
	}
	if id, err = s.newKeyID(); err != nil {
		return "", k, nil, err
	}
	audit.UsedHolder(ctx, holder)
	k, public, err = make(ctx, holder, vaultID(id), su, pin)
	return id, k, public, err
}

// discard has the holder destroy a key that was not stored because of err, and returns err. After an outage
// the transaction may have been committed, and after the end of ctx, too. Then the key stays: a key that no
// row names does no harm, a row whose key is destroyed does.
func (s *Service) discard(ctx context.Context, k vault.Key, err error) error {
	if _, outage := fault.AsOutage(err); outage || ctx.Err() != nil {
		return err
	}
	return errors.Join(err, s.Holders.Delete(ctx, k))
}

// deletedBatch is how many deleted keys are read at once.
const deletedBatch = 100

// DestroyDeleted has the holders destroy the keys whose rows were deleted. A holder that fails keeps its
// keys for the next call, and the others go on. Call it about once a minute, in any number of processes.
func (s *Service) DestroyDeleted(ctx context.Context) error {
	failed := map[string]error{}
	for after := ""; ; {
		list, err := s.DeletionStore.DeletedKeys(ctx, after, deletedBatch)
		if err != nil || len(list) == 0 {
			return errors.Join(append(errorsOf(failed), err)...)
		}
		for _, r := range list {
			after = r.ID
			if failed[r.Holder] != nil {
				continue
			}
			if err := s.destroy(ctx, r); err != nil {
				failed[r.Holder] = fmt.Errorf("keys: destroying deleted keys of the holder %q: %w", r.Holder, err)
			}
		}
	}
}

func errorsOf(failed map[string]error) (list []error) {
	for _, err := range failed {
		list = append(list, err)
	}
	slices.SortFunc(list, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return list
}

// destroyTime bounds how long the caller of a deletion waits for the holder of the key.
const destroyTime = 2 * time.Second

// destroyUnused has the holder destroy a key at once if its row was deleted. DestroyDeleted tries again
// what fails here. Nothing of a key of the software holder is outside of its row.
func (s *Service) destroyUnused(ctx context.Context, r KeyRecord) {
	if r.Holder == vault.SoftwareName || s.DeletionStore == nil {
		return
	}
	audit.UsedHolder(ctx, r.Holder)
	ctx, cancel := context.WithTimeout(ctx, destroyTime)
	defer cancel()
	if _, used, err := s.Store.Key(ctx, r.ID); err == nil && !used {
		_ = s.destroy(ctx, r)
	}
}

// destroy has the holder of a deleted key destroy it, and forgets it.
func (s *Service) destroy(ctx context.Context, r KeyRecord) error {
	su, ok := suite.ByName(r.Suite)
	if !ok {
		return fmt.Errorf("a key of suite %q, which this program does not know", r.Suite)
	}
	if err := s.Holders.Delete(ctx, vault.Key{ID: vaultID(r.ID), Holder: r.Holder, Suite: su, Sealed: r.Sealed, HasPIN: r.HasPIN}); err != nil {
		return err
	}
	return s.DeletionStore.ForgetKey(ctx, r.ID)
}
