// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"runtime"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/signing"
	"tamga/internal/web/rest/limit"
	"tamga/internal/web/svsapi"
	"tamga/sig/budget"
)

// The limits of verification without a token. With the bounds of one document (budget.Stranger) and
// a heap of three times the live memory, one verification takes less than 64 MiB and all together
// take less than 256 MiB.
const (
	verificationShare   = 4  // one of so many processors
	verificationsMost   = 4  // at the same time
	verificationsQueued = 64 // from all addresses
	verificationsOfOne  = 8  // queued from one address
)

// stranger returns the bounds of a document from a caller without a token. A verification of more
// than a few milliseconds pauses in between, so that signatures go first even on two processors.
func stranger() budget.Limits {
	l := budget.Stranger()
	l.Rest = func() { time.Sleep(2 * time.Millisecond) }
	return l
}

// verification returns the web interface behind svs_url. It takes documents in the same way as the
// signing interface.
func (r *Rooms) verification(signer *signing.Service) (*verifier, error) {
	c := &r.Config.Verification
	served := Formats(r.Config)
	v := &signing.Verification{
		Formats: served, Now: r.DB.Now, Limits: stranger(),
		Trust: func(ctx context.Context) (t signing.Trust, err error) {
			states, err := r.Authority.States(ctx) // one statement for all of it
			if err != nil {
				return t, err
			}
			if t.Roots, t.Intermediates, err = r.anchors.at(ctx, states); err != nil {
				return t, err
			}
			t.CRLs, err = r.Authority.CRLsAt(ctx, states)
			return t, err
		},
	}
	if c.Fetch {
		v.Evidence = r.network
	}
	calls := limit.New(c.CallsPerSecond, c.CallsAtOnce, 10_000, time.Now)
	turns := limit.NewTurns(limit.TurnRules{
		Running: min(max(runtime.GOMAXPROCS(0)/verificationShare, 1), verificationsMost),
		Waiting: verificationsQueued, WaitingOfOne: verificationsOfOne, Wait: c.Wait,
	})
	take := func(ctx context.Context, _ audit.Principal) (*signing.Intake, error) {
		return signer.NewIntake(ctx, nil)
	}
	rules := svsapi.Rules{Admit: calls.Admit, Turn: turns.Take, Deadline: c.Deadline, Limit: int64(c.Request), Types: served.Names()}
	return &verifier{api: svsapi.New(v, take, rules), verification: v, take: take, admit: calls.Admit, limit: rules.Limit}, nil
}
