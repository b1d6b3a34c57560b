// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"runtime"
	"sync"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/signing"
	"tamga/internal/web/rest/limit"
	"tamga/internal/web/svsapi"
	"tamga/sig/budget"
)

// The limits of verification without a token. The memory of one document (budget.Anonymous) comes
// from the part of the pool that callers without a token share.
const (
	verificationShare   = 4  // one of so many processors
	verificationsMost   = 4  // at the same time
	verificationsQueued = 64 // from all addresses
	verificationsOfOne  = 8  // queued from one address
)

// verificationsAtOnce returns how many verifications run at the same time.
func verificationsAtOnce() int {
	return min(max(runtime.GOMAXPROCS(0)/verificationShare, 1), verificationsMost)
}

// places are where documents of callers without a token are worked on, so that signatures go first
// even on two processors, however many such documents there are.
var places = sync.OnceValue(func() *budget.Places { return budget.NewPlaces(verificationsAtOnce()) })

// anonymous returns the bounds of a verification for a caller without a token.
func anonymous() budget.Limits {
	l := budget.Anonymous()
	l.Places = places()
	return l
}

// anonymousDocument returns the bounds of a document of size bytes that a caller without a token
// prepares, completes or enhances.
func anonymousDocument(size int64) budget.Limits {
	l := budget.Ordinary(size)
	l.Anonymous, l.Places = true, places()
	return l
}

// verification returns the web interface behind svs_url. It takes documents in the same way as the
// signing interface.
func (s *Services) verification(signer *signing.Service) (*verifier, error) {
	c := &s.Config.Verification
	served := signer.Formats // with the logo, for the marks of cards
	v := &signing.Verification{
		Formats: served, Now: s.DB.Now, Limits: anonymous(), Ends: signer.Powers.Ends, LivingStamps: signer.Powers.LivingStamps,
		Qualify: s.TrustList.Qualify, Trust: s.trust,
	}
	powers := *signer.Powers
	if c.Fetch {
		v.Evidence = s.network
	} else {
		// Callers without a token send powers of any authority, with any number: nothing is fetched, and no register is asked.
		powers.Evidence = nil
		powers.Statuses = withoutRegisters(powers.Statuses)
	}
	v.Powers = &powers
	calls := limit.New(c.CallsPerSecond, c.CallsAtOnce, 10_000, time.Now)
	turns := limit.NewTurns(limit.TurnRules{
		Running: verificationsAtOnce(),
		Waiting: verificationsQueued, WaitingOfOne: verificationsOfOne, Wait: c.Wait,
	})
	take := func(ctx context.Context, _ audit.Principal) (*signing.Intake, error) {
		return signer.NewIntake(ctx, nil)
	}
	admit := func(remote string) error {
		if err := calls.Admit(remote); err != nil {
			return err
		}
		return turns.Room(remote)
	}
	rules := svsapi.Rules{Admit: admit, Turn: turns.Take, Deadline: c.Deadline, Limit: int64(c.Request), Types: served.Names()}
	return &verifier{api: svsapi.New(v, take, rules), verification: v, take: take, admit: calls.Admit, limit: rules.Limit}, nil
}
