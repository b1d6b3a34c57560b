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

// Snapshot is what a signature by a user depends on, as one statement of the database read it
// when the request came in. It is an argument: nothing else keeps it, so a write cannot leave an
// outdated one behind. What was committed before a request came in, by any process, counts in
// that request.
//
// What a request itself writes before it signs does not change what is in its snapshot: audit
// entries, leases and counters are not part of it. The one exception is the attempt at a PIN,
// after which package keys reads the key again.
type Snapshot struct {
	UserID            string
	At                time.Time // before anything of it was read
	Access, Operation policy.Set
	Keys              keys.Snapshot
}

// Snapshots read them; package store does so in one statement.
type Snapshots interface {
	// Snapshot reads one of a user at now. A user who does not exist has nothing.
	Snapshot(ctx context.Context, userID string, now time.Time) (*Snapshot, error)
}

// snapshotLife is how old a snapshot may be when something is decided by it. A request takes
// longer where its document comes in slowly or takes long to hash, and is decided by another
// snapshot then.
const snapshotLife = 100 * time.Millisecond

// current returns snap while it may be used for who, otherwise another one that is read now.
// This is the one place where the age of a snapshot counts.
func (s *Service) current(ctx context.Context, who audit.Principal, snap *Snapshot) (*Snapshot, error) {
	now := s.Now()
	if snap != nil && snap.UserID == who.UserID && now.Sub(snap.At) < snapshotLife {
		return snap, nil
	}
	return s.Snapshots.Snapshot(ctx, who.UserID, now)
}

// permit returns nil when the user of snap may do a at once. Faults: access_denied, and
// wrong_operation for what would need a confirmation.
func (s *Service) permit(snap *Snapshot, a policy.Action) error {
	if err := s.Policy.PermitBy(snap.Access, a); err != nil {
		return err
	}
	if s.Confirmation != nil && s.Confirmation.NeedsConfirmationBy(snap.Operation, a) {
		return unconfirmed("the policy of the user asks for a confirmation of " + a.String())
	}
	return nil
}

// permitCaller is the access policy alone, for acts without a key of ours. A caller without a
// token has no policy.
func (s *Service) permitCaller(ctx context.Context, who audit.Principal, snap *Snapshot, a policy.Action) error {
	if who.UserID == "" {
		return nil
	}
	snap, err := s.current(ctx, who, snap)
	if err != nil {
		return err
	}
	return s.Policy.PermitBy(snap.Access, a)
}

// unconfirmed refuses what nobody here can confirm.
func unconfirmed(why string) error {
	return fault.New(fault.WrongOperation, why+", and this release has no confirmations: nothing was signed")
}

// values has the key of by sign digests. Preparing may have taken long, so everything is decided
// once more where the snapshot has become too old: no key is used on what is older than
// snapshotLife. The authority of an outside certificate is not asked a second time.
func (s *Service) values(ctx context.Context, by *signer, pin string, digests []suite.Digest) ([][]byte, error) {
	snap, err := s.current(ctx, by.who, by.snapshot)
	if err != nil {
		return nil, err
	}
	if snap != by.snapshot {
		if err := s.permit(snap, by.action); err != nil {
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
	return s.Keys.SignIn(ctx, &snap.Keys, by.certificate, pin, digests)
}
