// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Scenario is a load with a fault, and what must hold.
type Scenario struct {
	Name    string
	Options Options
	Load    Load
	Fault   *Fault        // nil: the load alone
	Hold    time.Duration // how long the fault lasts
	// Holds are the bounds beside the one that always holds: nothing that was acknowledged is
	// lost, nothing is signed twice, counters are right.
	Holds Bounds
}

// Bounds are what a scenario may cost. Zero durations have no bound.
type Bounds struct {
	// Gap bounds the time in which the survivors answered no signature, or carried out no
	// change of people. It does not include the time that the database itself was away.
	Gap time.Duration
	// NoFailures: every request is answered, and not by 503.
	NoFailures bool
	// NoLockWaits: no session waited for a lock for longer than slowLock, no deadlock.
	NoLockWaits bool
}

// mixed is a few clients of every kind.
var mixed = Load{Plain: 3, Sign: 3, PIN: 1, TwoStep: 3, V2: 2, People: 4, Documents: 2, Fresh: 4}

// confirmedToo is mixed with users who confirm.
var confirmedToo = func() Load { l := mixed; l.Confirm = 2; return l }()

// Scenarios are all scenarios.
var Scenarios = []Scenario{
	{Name: "mixed", Options: Options{Processes: 3, Bucket: true, Signers: 4, Guarded: 1, Confirmers: 2}, Load: confirmedToo, Holds: Bounds{NoFailures: true, NoLockWaits: true}},
	{Name: "freeze", Options: Options{Processes: 3, Signers: 4, Guarded: 1}, Load: mixed, Fault: &FreezeProcess, Hold: 6 * time.Second, Holds: Bounds{Gap: 3 * time.Second}},
	{Name: "kill", Options: Options{Processes: 3, Signers: 4, Guarded: 1}, Load: mixed, Fault: &KillProcess, Hold: time.Second, Holds: Bounds{Gap: time.Second}},
	{Name: "confirm-kill", Options: Options{Processes: 3, Signers: 4, Confirmers: 8}, Load: Load{Plain: 3, People: 3, Confirm: 8}, Fault: &KillProcess, Hold: time.Second, Holds: Bounds{Gap: time.Second}},
	{Name: "failover", Options: Options{Processes: 3, Signers: 4, Guarded: 1, Standby: true}, Load: mixed, Fault: &FailOver, Hold: 2 * time.Second, Holds: Bounds{Gap: time.Second}},
	{Name: "database-freeze", Options: Options{Processes: 3, Signers: 4, Guarded: 1}, Load: mixed, Fault: &FreezeDatabase, Hold: 4 * time.Second, Holds: Bounds{Gap: 3 * time.Second}},
	{Name: "database-kill", Options: Options{Processes: 3, Signers: 4, Guarded: 1}, Load: mixed, Fault: &KillDatabase, Hold: time.Second, Holds: Bounds{Gap: 3 * time.Second}},
	{Name: "bucket-freeze", Options: Options{Processes: 3, Signers: 4, Guarded: 1, Bucket: true}, Load: mixed, Fault: &FreezeBucket, Hold: 4 * time.Second, Holds: Bounds{Gap: 3 * time.Second}},
	{Name: "disk", Options: Options{Processes: 3, Signers: 4, Guarded: 1, SmallDisk: true}, Load: mixed, Fault: &FillDisk, Hold: 2 * time.Second, Holds: Bounds{Gap: 5 * time.Second}},
	{Name: "clock", Options: Options{Processes: 3, Signers: 4, Guarded: 1}, Load: mixed, Fault: &SkewClock, Hold: 4 * time.Second, Holds: Bounds{Gap: 3 * time.Second}},
	{Name: "restart", Options: Options{Processes: 3, Signers: 4, Guarded: 1, Balancer: true}, Load: mixed, Fault: &RestartProcesses, Hold: time.Second, Holds: Bounds{NoFailures: true}},
	{Name: "upgrade", Options: Options{Processes: 3, Signers: 4, Guarded: 1, Balancer: true, Older: true}, Load: mixed, Fault: &Upgrade, Hold: time.Second, Holds: Bounds{NoFailures: true}},
}

// Result is what came of a scenario.
type Result struct {
	Scenario         string
	Rounds           int
	Took             time.Duration
	Answered, Failed int           // requests
	Gap              time.Duration // the longest of all rounds
	Away             time.Duration // of it, how long the database was away at most
	Waits            waits
	Wrong            []string // violations of what always holds
	WrongKinds       []string // how often each kind of them was found
	Beyond           []string // bounds of the scenario that were exceeded
	Others           []string // answers other than 200
	Log              string   // errors that the program did not expect, if Wrong has something
}

// Run starts a cluster, runs the load for at least a time and the fault a number of times in
// it, and checks everything afterwards. It logs how far it is. An error means that the harness itself failed.
func (s *Scenario) Run(ctx context.Context, p *Programs, least time.Duration, rounds int, log func(format string, args ...any)) (r Result, err error) {
	begun := time.Now()
	o := s.Options
	o.Programs = p
	c, err := Start(ctx, o)
	if err != nil {
		return r, fmt.Errorf("%s: %w", s.Name, err)
	}
	defer c.Close()
	r = Result{Scenario: s.Name, Rounds: rounds}
	logs := position{}
	if _, err := c.lockWaits(logs); err != nil { // what the preparations waited for
		return r, err
	}
	session := newSession(c)
	loaded, stop := context.WithCancel(ctx)
	var load sync.WaitGroup
	load.Go(func() { session.drive(loaded, s.Load) })
	var blocking holders
	if s.Holds.NoLockWaits {
		load.Go(func() { blocking.look(loaded, c) })
	}
	err = s.repeat(ctx, c, session, least, &r, log)
	stop()
	load.Wait()
	if err == nil && o.Older { // the last round may have gone back
		_, err = c.roll(ctx, 0, func(n *node) { n.program = p.Current })
	}
	if err == nil {
		err = session.verify(ctx)
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w%s", s.Name, err, c.tails())
	}
	r.WrongKinds = session.wrongKinds()
	if r.Wrong = session.problems; len(r.Wrong) > 0 {
		r.Log = c.lines(unexpected, 20)
	}
	r.Others = session.others()
	r.Answered, r.Failed = session.tally()
	if r.Waits, err = c.lockWaits(logs); err != nil {
		return r, err
	}
	blocking.name(r.Waits.List)
	r.Took = time.Since(begun)
	s.judge(&r)
	return r, nil
}

// settled is how long a load runs before a fault and after it: a session that lost its
// connection must have found a new one.
const settled = 2 * time.Second

// repeat does the fault again and again and measures the gaps.
func (s *Scenario) repeat(ctx context.Context, c *Cluster, session *session, least time.Duration, r *Result, log func(format string, args ...any)) error {
	if s.Fault == nil {
		r.Rounds = 0
		from := time.Now()
		err := wait(ctx, least)
		r.Gap = session.longestGap(from, time.Now())
		return err
	}
	for round := range r.Rounds {
		if err := wait(ctx, settled); err != nil {
			return err
		}
		d, err := s.Fault.Do(ctx, c, round, s.Hold)
		if err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		if err := wait(ctx, settled); err != nil {
			return err
		}
		// It is over when a signature was answered that began after the fault.
		for end := time.Now().Add(longest); session.succeeded("plain", d.To.Add(100*time.Millisecond), time.Now()) == 0; {
			if time.Now().After(end) {
				return errors.New("no signature was answered for a minute after the fault")
			}
			if err := wait(ctx, 50*time.Millisecond); err != nil {
				return err
			}
		}
		gap := session.longestGap(d.From, time.Now(), d.Nodes...)
		if len(d.Nodes) == 0 && !s.Holds.NoFailures {
			r.Away = max(r.Away, d.To.Sub(d.From))
		}
		r.Gap = max(r.Gap, gap)
		if done := round + 1; done%10 == 0 || done == r.Rounds {
			log("%s: %d of %d rounds, %s, longest gap %v", s.Name, done, r.Rounds, session.progress(), r.Gap.Round(time.Millisecond))
		}
	}
	return nil
}

// judge compares a result with the bounds.
func (s *Scenario) judge(r *Result) {
	beyond := func(format string, args ...any) { r.Beyond = append(r.Beyond, fmt.Sprintf(format, args...)) }
	if b := s.Holds.Gap; b > 0 && r.Gap-r.Away > b {
		beyond("no signature for %v, of which the database was away for %v: want at most %v more", r.Gap.Round(time.Millisecond), r.Away.Round(time.Millisecond), b)
	}
	if s.Holds.NoFailures && r.Failed > 0 {
		beyond("%d of %d requests failed: want none", r.Failed, r.Answered+r.Failed)
	}
	if w := r.Waits; s.Holds.NoLockWaits && len(w.List)+w.Deadlocks > 0 {
		beyond("%d sessions waited for a lock for longer than %v, %d deadlocks: want none", len(w.List), slowLock, w.Deadlocks)
	}
}

// Describe says in a line what a scenario does.
func (s *Scenario) Describe() string {
	what := "load without a fault"
	if s.Fault != nil {
		what = s.Fault.Name
	}
	return fmt.Sprintf("%s, %d processes", what, s.Options.Processes)
}

// Prepare builds the programs that a scenario needs besides the present one.
func (s *Scenario) Prepare(ctx context.Context, p *Programs) error {
	if s.Options.Older && p.Older == "" {
		return p.BuildOlder(ctx)
	}
	if s.Fault == &SkewClock && p.Skewed == "" {
		return p.BuildSkewed(ctx)
	}
	return nil
}
