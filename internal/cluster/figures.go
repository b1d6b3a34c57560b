// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Figure is a measurement of the whole service.
type Figure struct {
	Name    string
	Title   string
	Reach   string // what is wanted
	Measure func(ctx context.Context, p *Programs, m Measuring) (Measured, error)
}

// Measuring says how long to measure.
type Measuring struct {
	Turn  time.Duration // of one side of a comparison
	Turns int           // of each side
	Users int           // of the larger database
	Log   func(format string, args ...any)
}

// Measured is a figure.
type Measured struct {
	Value  string
	Within bool // it is as wanted
	Note   string
}

// farAway is the round trip to the database in figures about latency.
const farAway = 5 * time.Millisecond

// Figures are all measurements.
var Figures = []Figure{
	{"cost", "processor time of PostgreSQL for a signature, one process, no TLS", "150 µs", cost},
	{"signatures", "signatures for the same processor time of Tamga, three processes to one", "0.9", compare{
		load: Load{Plain: 48}, kind: "plain", processors: 3, perTime: true, least: 0.9,
	}.measure},
	{"people", "changes of people a second, three processes to one, database 5 ms away", "2.5", compare{
		load: Load{People: 48}, kind: "people", delay: farAway, least: 2.5,
	}.measure},
	{"two-step", "signatures in two steps a second, three processes to one, database 5 ms away", "2.5", compare{
		load: Load{TwoStep: 48}, kind: "two", delay: farAway, least: 2.5,
	}.measure},
	{"confirm", "requests of confirmations by different users a second, three processes to one, database 5 ms away", "1.0, no lock wait", compare{
		load: Load{Confirm: 24}, kind: "confirm", delay: farAway, least: 1, noWaits: true,
	}.measure},
	{"users", "point operations with 10 million users to 100,000", "1.3", size},
}

// turn is what one turn of a load came to.
type turn struct {
	done            int // requests that succeeded
	took            time.Duration
	database, tamga time.Duration // processor time
}

func (t turn) rate() float64 { return float64(t.done) / t.took.Seconds() }

// turn runs a load for a time, after a start that does not count.
func (c *Cluster) turn(ctx context.Context, l Load, kind string, d time.Duration) (t turn, err error) {
	s := newSession(c)
	loaded, stop := context.WithCancel(ctx)
	var load sync.WaitGroup
	load.Go(func() { s.drive(loaded, l) })
	err = wait(ctx, time.Second)
	begun := time.Now()
	database, tamga := c.spent()
	if err == nil {
		err = wait(ctx, d)
	}
	end := time.Now()
	t.database, t.tamga = c.spent()
	t.database, t.tamga = t.database-database, t.tamga-tamga
	t.took, t.done = end.Sub(begun), s.succeeded(kind, begun, end)
	stop()
	load.Wait()
	if _, failed := s.tally(); err == nil && (failed > 0 || len(s.problems) > 0) {
		err = fmt.Errorf("%d requests failed: %.1000q %s", failed, strings.Join(s.others(), "; "), strings.Join(s.problems, "; ")+c.tails())
	}
	return t, err
}

// spent is the processor time of PostgreSQL and of the processes of the program so far.
func (c *Cluster) spent() (database, tamga time.Duration) {
	for _, n := range c.nodes {
		tamga += processorTime(n.pid())
	}
	return processorTime(c.primary.pid()), tamga
}

// cost measures one process.
func cost(ctx context.Context, p *Programs, m Measuring) (Measured, error) {
	c, err := Start(ctx, Options{Programs: p, Processes: 1, Signers: 4})
	if err != nil {
		return Measured{}, err
	}
	defer c.Close()
	var database, tamga, rates []float64
	for range m.Turns {
		t, err := c.turn(ctx, Load{Plain: 32}, "plain", m.Turn)
		if err != nil {
			return Measured{}, err
		}
		n := float64(t.done)
		database = append(database, float64(t.database.Microseconds())/n)
		tamga = append(tamga, float64(t.tamga.Microseconds())/n)
		rates = append(rates, t.rate())
		m.Log("cost: %.0f µs of PostgreSQL, %.0f µs of Tamga, %.0f signatures a second", database[len(database)-1], tamga[len(tamga)-1], t.rate())
	}
	value := median(database)
	return Measured{fmt.Sprintf("%.0f µs", value), value <= 150, fmt.Sprintf("Tamga itself %.0f µs; %.0f signatures a second with 32 clients", median(tamga), median(rates))}, nil
}

// compare is a load on three processes and on one. Both clusters run all the time and are
// loaded in turns, so that other work on the machine affects both.
type compare struct {
	load       Load
	kind       string
	delay      time.Duration
	processors int  // GOMAXPROCS of the single process; each of three has a third
	perTime    bool // compare requests for the same processor time of Tamga, not a second
	least      float64
	noWaits    bool // no session of the three processes waits for a lock for longer than slowLock
}

func (x compare) measure(ctx context.Context, p *Programs, m Measuring) (Measured, error) {
	o := Options{Programs: p, Processes: 1, Signers: 4, Confirmers: x.load.Confirm, Delay: x.delay, Processors: x.processors}
	one, err := Start(ctx, o)
	if err != nil {
		return Measured{}, err
	}
	defer one.Close()
	o.Processes, o.Processors = 3, x.processors/3
	three, err := Start(ctx, o)
	if err != nil {
		return Measured{}, err
	}
	defer three.Close()
	var ratios, perTime, ones, threes []float64
	logs := position{}
	if _, err := three.lockWaits(logs); err != nil { // what the preparations waited for
		return Measured{}, err
	}
	for range m.Turns {
		a, err := one.turn(ctx, x.load, x.kind, m.Turn)
		if err != nil {
			return Measured{}, fmt.Errorf("one process: %w", err)
		}
		b, err := three.turn(ctx, x.load, x.kind, m.Turn)
		if err != nil {
			return Measured{}, fmt.Errorf("three processes: %w", err)
		}
		ones, threes = append(ones, a.rate()), append(threes, b.rate())
		ratios = append(ratios, b.rate()/a.rate())
		perTime = append(perTime, float64(b.done)/b.tamga.Seconds()/(float64(a.done)/a.tamga.Seconds()))
		m.Log("%s: one process %.0f a second (Tamga %v, PostgreSQL %v), three %.0f (%v, %v)", x.kind, a.rate(), a.tamga, a.database, b.rate(), b.tamga, b.database)
	}
	value, note := median(ratios), fmt.Sprintf("%.0f a second to %.0f; for the same processor time of Tamga %.2f", median(threes), median(ones), median(perTime))
	if x.perTime {
		value, note = median(perTime), fmt.Sprintf("%.0f a second to %.0f, %.2f times", median(threes), median(ones), value)
	}
	within := value >= x.least
	if x.noWaits {
		waits, err := three.lockWaits(logs)
		if err != nil {
			return Measured{}, err
		}
		for _, w := range waits.List {
			m.Log("%s: %s waited %v for a lock on %s: %s", x.kind, w.Waiter, w.Took, w.Table, w.Statement)
		}
		note += fmt.Sprintf("; %d waits for a lock above %v, %d deadlocks", len(waits.List), slowLock, waits.Deadlocks)
		within = within && len(waits.List)+waits.Deadlocks == 0
	}
	return Measured{fmt.Sprintf("%.2f", value), within, note}, nil
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}
