// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/web/rest/limit"
)

// Bounds of a [Gatherer].
const (
	gatherWindow    = 10 * time.Minute // then the rest of a count is written
	gatherEvery     = time.Second      // how often Run writes
	gatherMost      = 1000             // counts at a time
	gatherAddresses = 16               // addresses counted for one login
)

// severalAddresses is the remote address of an entry that counts several addresses.
const severalAddresses = "several addresses"

// Gatherer writes refusals that anonymous callers can cause at will to the audit log, and what they
// get without a token at will ([Route.Counted]). It writes one entry for many of them with the same
// operation, outcome, client, user and address (IPv6: the /64). Each count is written when it
// reaches 1, 10, 100 and so on, and the rest of it ten minutes after its first refusal. So an
// attack leaves a bounded number of entries, and the audit log shows within a second that it began.
// Refusals of a user from many addresses are counted together, and so are those beyond the memory
// limit.
//
// Nothing is written while a caller waits, so the time of an answer does not reveal if a
// login exists.
type Gatherer struct {
	log audit.Log
	now func() time.Time

	writing sync.Mutex // serializes write

	mu    sync.Mutex
	known map[gatherKey]*gathered
	users map[string]int // number of counts by user
}

type gatherKey struct{ operation, outcome, client, user, remote string }

type gathered struct {
	entry   audit.Entry // of the newest refusal
	since   time.Time
	count   int
	written int // part of count that was written
}

// NewGatherer returns a gatherer that writes to log. [Gatherer.Run] must run.
func NewGatherer(log audit.Log, now func() time.Time) *Gatherer {
	return &Gatherer{log: log, now: now, known: map[gatherKey]*gathered{}, users: map[string]int{}}
}

// add counts a refusal.
func (g *Gatherer) add(e audit.Entry) {
	key := gatherKey{e.Operation, e.Outcome, e.Principal.ClientID, e.Object, limit.Network(e.Remote)}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known[key] == nil && key.user != "" && g.users[key.user] >= gatherAddresses {
		key.remote = severalAddresses
	}
	if g.known[key] == nil && len(g.known) >= gatherMost {
		key = gatherKey{operation: e.Operation, outcome: e.Outcome, remote: severalAddresses}
		e.Object, e.Principal = "", audit.Principal{}
	}
	if key.remote == severalAddresses {
		e.Remote = severalAddresses
	}
	c := g.known[key]
	if c == nil {
		c = &gathered{since: g.now()}
		g.known[key] = c
		g.users[key.user]++
	}
	c.count++
	c.entry = e
}

// due is a count that must be written.
type due struct {
	key   gatherKey
	entry audit.Entry
	count int
	over  bool
}

// due returns the counts that must be written. all: every count with unwritten refusals.
func (g *Gatherer) due(all bool) (list []due) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	for key, c := range g.known {
		over := all || now.Sub(c.since) >= gatherWindow
		if !over && c.written > 0 && c.count < 10*c.written {
			continue
		}
		if c.count == c.written { // nothing new in its window
			g.forget(key)
			continue
		}
		e := c.entry
		if c.count > 1 {
			since := c.since.UTC().Format(time.RFC3339)
			switch {
			case e.Outcome != audit.OK:
				e.Detail = fmt.Sprintf("refused %d times since %s", c.count, since)
			case e.Detail != "":
				e.Detail = fmt.Sprintf("%d times since %s, the last one: %s", c.count, since, e.Detail)
			default:
				e.Detail = fmt.Sprintf("%d times since %s", c.count, since)
			}
		}
		list = append(list, due{key, e, c.count, over})
	}
	return list
}

// settle notes that d was written.
func (g *Gatherer) settle(d due) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.known[d.key]
	c.written = d.count
	if d.over && c.count == d.count {
		g.forget(d.key)
	}
}

func (g *Gatherer) forget(key gatherKey) {
	delete(g.known, key)
	if g.users[key.user]--; g.users[key.user] == 0 {
		delete(g.users, key.user)
	}
}

// Flush writes all counts. It is for the end of the process.
func (g *Gatherer) Flush(ctx context.Context) error { return g.write(ctx, true) }

// Run writes due counts until ctx ends. Errors go to report. A count that could not be
// written is tried again.
func (g *Gatherer) Run(ctx context.Context, report func(error)) {
	tick := time.NewTicker(gatherEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := g.write(ctx, false); err != nil {
				report(err)
			}
		}
	}
}

func (g *Gatherer) write(ctx context.Context, all bool) error {
	g.writing.Lock()
	defer g.writing.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recording)
	defer cancel()
	list := g.due(all)
	waits := make([]func(context.Context) error, len(list))
	for i, d := range list {
		waits[i] = g.log.Begin(ctx, d.entry)
	}
	var errs []error
	for i, d := range list {
		if err := waits[i](ctx); err != nil {
			errs = append(errs, err)
			continue
		}
		g.settle(d)
	}
	return errors.Join(errs...)
}
