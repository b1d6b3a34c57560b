// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/operation"
	"tamga/internal/testsize"
)

// contender is a process that ends an operation in its way.
type contender struct {
	*stage
	name string
	ends operation.State // of the operation if act succeeds; "": success says nothing
	act  func(s *stage) (string, error)
	at   atomic.Pointer[func(point string)]
}

// ahead is how much faster the clock of the process that sweeps is: the time of all operations is over.
const ahead = 30 * time.Minute

// races are operations with those who want to end them.
var races = []struct {
	name  string
	begin func(s *stage)
	of    []string // names of contenders
}{
	{"that waits for its user", later((*stage).challenged), []string{"approval", "refusal", "cancellation", "account", "expiry", "loop"}},
	{"that is confirmed", (*stage).confirmed, []string{"request", "another request", "cancellation", "account", "expiry"}},
	{"that is confirmed and carries itself out", later((*stage).confirmed), []string{"loop", "another loop", "request", "cancellation", "expiry"}},
	{"for later", (*stage).accepted, []string{"loop", "another loop", "cancellation", "expiry"}},
}

func (s *stage) looked() (string, error) {
	op, err := s.o.Confirmed(s.t.Context(), s.who, confirmedOrder(s.ID))
	if err != nil {
		return "", err
	}
	if op.State != operation.Completed { // the loop carries it out
		return "", errors.Join(errUnderWay, op.Close())
	}
	return s.look(op), nil
}

var errUnderWay = errors.New("the operation is under way")

// approved confirms an operation, and asks for its result as a client does.
func (s *stage) approved() (string, error) {
	if _, err := s.answer(); err != nil {
		return "", err
	}
	return s.looked()
}

// TestOperationRaces has processes approve, refuse, cancel, expire and carry out an operation at the same time. One end wins,
// its state is that of the confirmation, and no result leaves after another end. In each round one of the processes
// comes first: the others begin when it is at a certain statement.
func TestOperationRaces(t *testing.T) {
	for _, engine := range engines(t) {
		for _, race := range races {
			t.Run(engine.name+"/"+race.name, func(t *testing.T) {
				t.Parallel()
				url, dir := engine.reused(t), t.TempDir()
				none := &transition{}
				k := &killer{engine: engine, url: url, dir: dir}
				var err error
				k.pool, err = sql.Open(engine.driver, engine.source(url))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { k.pool.Close() })
				k.stage = newStage(t, storetest.Open(t, url), dir, 0, none, func(string) {})
				var all []*contender
				for i, name := range race.of {
					c := map[string]*contender{
						"approval":        {act: (*stage).approved, ends: operation.Completed},
						"refusal":         {act: (*stage).decline, ends: operation.Declined},
						"cancellation":    {act: (*stage).cancel, ends: operation.Cancelled},
						"account":         {act: (*stage).cancelAll},
						"expiry":          {act: (*stage).sweep},
						"request":         {act: (*stage).looked, ends: operation.Completed},
						"another request": {act: (*stage).looked, ends: operation.Completed},
						"loop":            {act: (*stage).next},
						"another loop":    {act: (*stage).next},
					}[name]
					c.name = name
					at := func(point string) {
						if do := c.at.Load(); do != nil {
							(*do)(point)
						}
					}
					db := storetest.Open(t, url)
					store.OnStatements(db, at)
					c.stage = newStage(t, db, dir, uint32(i+1), none, at)
					if name == "expiry" {
						c.pass(ahead)
					}
					all = append(all, c)
				}
				rounds := 2 * len(all)
				if testsize.Of() == testsize.Full {
					rounds = 12 * len(all)
				}
				ends := map[operation.State]int{}
				for n := range rounds {
					ends[k.race(n, race.begin, all)]++
				}
				t.Logf("%d rounds: %v", rounds, ends)
				if len(ends) < 2 {
					t.Errorf("one way to end always wins: %v", ends)
				}
				k.over()
			})
		}
	}
}

// race makes a round, and returns how the operation has ended.
func (k *killer) race(n int, begin func(s *stage), all []*contender) operation.State {
	k.t.Helper()
	k.processes++
	k.scene = scene{User: fmt.Sprintf("00000000-0000-4000-8000-%012d", k.processes)}
	k.start()
	k.Ref = k.stored("two")
	begin(k.stage)
	first, point := all[n%len(all)], (n/len(all)*13+12)%40
	gate := make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	var passed atomic.Int64
	at := func(string) {
		if passed.Add(1) > int64(point) {
			open()
		}
	}
	first.at.Store(&at)
	answers, errs := make([]string, len(all)), make([]error, len(all))
	var running sync.WaitGroup
	for i, c := range all {
		c.scene = k.scene
		c.start()
		running.Go(func() {
			if c == first {
				defer open()
			} else {
				<-gate
			}
			answers[i], errs[i] = c.act(c.stage)
		})
	}
	running.Wait()
	first.at.Store(nil)
	if r := k.row(k.ID); r.State.Active() { // a loop was too early
		_, err := k.o.Next(k.t.Context())
		k.must(err)
	}
	state := k.row(k.ID).State
	label := fmt.Sprintf("round %d, %s first, others at point %d", n, first.name, point)
	result := ""
	for i, c := range all {
		_, refused := fault.As(errs[i])
		switch {
		case errs[i] != nil && !refused && !errors.Is(errs[i], errUnderWay), fault.Is(errs[i], fault.Unavailable):
			k.t.Errorf("%s: %s: %v", label, c.name, errs[i])
		case errs[i] == nil && c.ends != "" && c.ends != state:
			k.t.Errorf("%s: the %s has succeeded, but the operation is %s", label, c.name, state)
		case c.ends == operation.Completed && errs[i] == nil:
			if result != "" && result != answers[i] {
				k.t.Errorf("%s: two results leave:\n%s\n%s", label, result, answers[i])
			}
			result = answers[i]
		}
	}
	alone := value[int64](k, "SELECT COUNT(*) FROM audit WHERE operation LIKE 'Execute%' AND phase = 'done' AND object = 'operation "+k.ID+"'")
	k.transition = &transition{loop: alone == 1}
	k.check(label, state, "")
	k.counts(label, "ends in the audit log", value[int64](k, "SELECT COUNT(*) FROM confirmations WHERE id = '"+k.ID+"'"),
		"SELECT COUNT(*) FROM audit WHERE operation = 'Confirmation' AND object = '%s' AND (detail LIKE 'Completed %%' OR detail LIKE 'Error %%' OR detail LIKE 'Declined %%' OR detail LIKE 'Cancelled %%' OR detail LIKE 'Expired %%')", k.ID)
	return state
}
