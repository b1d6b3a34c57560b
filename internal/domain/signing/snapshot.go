// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"strconv"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/policy"
	"tamga/pki/suite"
)

// Snapshot is the state that a signature by a user depends on, read by one statement of
// the database when the request came in. It is an argument and is not cached anywhere, so
// a write cannot leave an outdated one behind. Changes that any process committed before
// a request came in apply to that request.
//
// Writes of the request itself before it signs do not change the content of its snapshot:
// audit entries, leases and counters are not part of it. The only exception is the PIN
// attempt, after which package keys reads the key again.
type Snapshot struct {
	UserID            string
	At                time.Time // before anything of it was read
	Access, Operation policy.Set
	Keys              keys.Snapshot
}

// Snapshots reads snapshots. Package store does so in one statement.
type Snapshots interface {
	// Snapshot returns the snapshot of a user at now. The snapshot of an unknown user is
	// empty.
	Snapshot(ctx context.Context, userID string, now time.Time) (*Snapshot, error)
}

// snapshotLife is the largest age of a snapshot when a decision is based on it. If the
// document is received slowly or takes long to hash, a new snapshot is read.
const snapshotLife = 100 * time.Millisecond

// Current returns snap if it may be used for who, otherwise a new one. This is the only
// place where the age of a snapshot matters.
func (s *Service) Current(ctx context.Context, who audit.Principal, snap *Snapshot) (*Snapshot, error) {
	now := s.Now()
	if snap != nil && snap.UserID == who.UserID && now.Sub(snap.At) < snapshotLife {
		return snap, nil
	}
	return s.Snapshots.Snapshot(ctx, who.UserID, now)
}

// permit returns nil if the user of snap may do a at once. Faults: access_denied, and
// authn_method_not_confirmed if a needs a confirmation.
func (s *Service) permit(snap *Snapshot, a policy.Action) error {
	if err := s.Policy.PermitBy(snap.Access, a); err != nil {
		return err
	}
	if s.needsConfirmation(snap, a) {
		return unconfirmed("the policy of the user asks for a confirmation of " + a.String())
	}
	return nil
}

func (s *Service) needsConfirmation(snap *Snapshot, a policy.Action) bool {
	return s.Confirmation != nil && s.Confirmation.NeedsConfirmationBy(snap.Operation, a)
}

// permitCaller checks only the access policy, for actions without a key of ours. A caller
// without a token has no policy.
func (s *Service) permitCaller(ctx context.Context, who audit.Principal, snap *Snapshot, a policy.Action) error {
	if who.UserID == "" {
		return nil
	}
	snap, err := s.Current(ctx, who, snap)
	if err != nil {
		return err
	}
	return s.Policy.PermitBy(snap.Access, a)
}

// unconfirmed is the fault of an action that needs a confirmation.
func unconfirmed(why string) error {
	return fault.New(fault.MethodNotConfirmed, why+": create a transaction with POST /api/transactions, or an operation with POST /api/v2/signature, have the user confirm it, and carry it out with the confirmed token; nothing was signed")
}

// values signs digests with the key of by. Preparing may have taken long, so all
// decisions are repeated if the snapshot is too old: no key is used on a state older than
// snapshotLife. The authority of an outside certificate is not asked a second time.
func (s *Service) values(ctx context.Context, by *signer, pin string, digests []suite.Digest) ([][]byte, error) {
	snap, err := s.Current(ctx, by.who, by.snapshot)
	if err != nil {
		return nil, err
	}
	if snap != by.snapshot {
		permit := s.permit
		if by.confirmed {
			permit = func(snap *Snapshot, a policy.Action) error { return s.Policy.PermitBy(snap.Access, a) }
		}
		if err := permit(snap, by.action); err != nil {
			return nil, err
		}
		c, err := s.Keys.ResolveIn(ctx, &snap.Keys, by.who.UserID, strconv.FormatInt(by.certificate.ID, 10))
		if err != nil {
			return nil, err
		}
		if !c.Outside {
			if _, err := s.Keys.JudgeIn(ctx, &snap.Keys, c, s.Now()); err != nil {
				return nil, err
			}
		}
	}
	return s.Keys.SignIn(ctx, snap.KeysOf(by.who), by.certificate, pin, digests)
}

// KeysOf returns the part of the snapshot for package keys, with the mark of who.
func (snap *Snapshot) KeysOf(who audit.Principal) *keys.Snapshot {
	at := snap.Keys
	at.PINMark = pinMark(who, snap)
	return &at
}

// pinMark returns the circumstances under which a right PIN is recognized: the token, so that its
// end counts, and what the policies say of the user. "" for a caller without a token.
func pinMark(who audit.Principal, snap *Snapshot) string {
	if who.TokenID == "" {
		return ""
	}
	mark := []byte(who.TokenID)
	for _, set := range []*policy.Setting{snap.Access.Own, snap.Access.Group, snap.Operation.Own, snap.Operation.Group} {
		if mark = append(mark, '/'); set != nil {
			mark = strconv.AppendUint(mark, uint64(set.Actions), 16)
		}
	}
	return string(mark)
}
