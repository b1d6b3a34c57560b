// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Load is the number of clients of each kind.
type Load struct {
	Plain     int // v1, without Idempotency-Key: what a signature costs
	Sign      int // v1, with and without Idempotency-Key
	PIN       int // v1 with a key that has a PIN
	TwoStep   int // presign, the client's own key, postsign
	V2        int // signatures of stored documents
	People    int // an operator registers, changes and locks users
	Documents int // upload, read, delete
	Fresh     int // change the rights of users and sign for them, see fresh
	Confirm   int // begin operations, confirm them and have them carried out; each is another user

	Pause time.Duration // of each client after an operation; 0: the clients take all that the cluster can
}

// driver is what clients of one kind do, and what they remember.
type driver interface {
	// step carries out one operation.
	step(c *caller)
	// check compares everything that was acknowledged with the database and the bucket.
	check(ctx context.Context, v *verification)
}

// session is a load on a cluster and what came of it.
type session struct {
	cluster *Cluster
	number  int // of the sessions of the cluster: names of operations are never used again
	drivers []driver

	mu       sync.Mutex
	calls    []call
	problems []string
	kinds    map[string]int // how often each kind of problem was found, by the format of its text
	answers  map[string]int // answers other than 200, and how often
}

// call is a request with its outcome.
type call struct {
	kind   string
	node   int
	at     time.Time // of the answer
	took   time.Duration
	status int // 0: no answer
}

func newSession(c *Cluster) *session {
	c.sessions++
	return &session{cluster: c, number: c.sessions, answers: map[string]int{}, kinds: map[string]int{}}
}

// drive runs clients until ctx ends and all their requests are answered. Clients of a kind
// are spread over the nodes, or use HAProxy.
func (s *session) drive(ctx context.Context, l Load) {
	kinds := []struct {
		name    string
		clients int
		who     func(i int) account
		driver  driver
	}{
		{"plain", l.Plain, s.signer, &signing{plain: true}},
		{"sign", l.Sign, s.signer, &signing{}},
		{"pin", l.PIN, func(int) account { return s.cluster.people.pin }, &signing{}},
		{"two", l.TwoStep, s.signer, newTwoStep()},
		{"v2", l.V2, s.signer, newOperations()},
		{"people", l.People, func(int) account { return s.cluster.people.operator }, newPeople()},
		{"documents", l.Documents, s.signer, newDocuments()},
		{"fresh", l.Fresh, func(int) account { return account{} }, newFresh(s.cluster.people.guarded)},
		{"confirm", l.Confirm, func(int) account { return account{} }, &confirming{users: s.cluster.people.confirmers}},
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 256, MaxIdleConns: 1024}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var all sync.WaitGroup
	for _, k := range kinds {
		if k.clients == 0 {
			continue
		}
		s.drivers = append(s.drivers, k.driver)
		for i := range k.clients {
			c := &caller{session: s, number: i, kind: k.name, node: i % len(s.cluster.nodes), who: k.who(i), http: client}
			if s.cluster.Balancer {
				c.node = balanced
			}
			all.Go(func() {
				for ctx.Err() == nil {
					k.driver.step(c)
					if l.Pause > 0 {
						wait(ctx, l.Pause) // ctx says the same afterwards
					}
				}
			})
		}
	}
	all.Wait()
}

func (s *session) signer(i int) account {
	list := s.cluster.people.signers
	return list[i%len(list)]
}

func (s *session) record(c call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, c)
}

// said counts an answer other than 200.
func (s *session) said(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.answers) < 200 || s.answers[text] > 0 {
		s.answers[text]++
	}
}

// wrong records something that must never happen.
func (s *session) wrong(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
	s.kinds[format]++
}

// gap is the longest time between two moments in which no request of a kind succeeded at
// the nodes that were not broken.
func (s *session) gap(kind string, from, to time.Time, broken ...int) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	times := []time.Time{from, to}
	for _, c := range s.calls {
		if c.kind == kind && c.status == http.StatusOK && !slices.Contains(broken, c.node) && c.at.After(from) && c.at.Before(to) {
			times = append(times, c.at)
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	var longest time.Duration
	for i, at := range times[1:] {
		longest = max(longest, at.Sub(times[i]))
	}
	return longest
}

// longestGap is the longest gap of signatures and of changes of people. These clients send
// requests only to their own node.
func (s *session) longestGap(from, to time.Time, broken ...int) time.Duration {
	return max(s.gap("plain", from, to, broken...), s.gap("people", from, to, broken...))
}

// tally counts answers by status.
func (s *session) tally() (answered, failed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if c.status == http.StatusOK {
			answered++
		} else {
			failed++
		}
	}
	return answered, failed
}

// succeeded counts successes of a kind between two moments.
func (s *session) succeeded(kind string, from, to time.Time) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if c.kind == kind && c.status == http.StatusOK && c.at.After(from) && !c.at.After(to) {
			n++
		}
	}
	return n
}

// others lists the answers other than 200, the most frequent first.
func (s *session) others() (lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return mostFrequent(s.answers)
}

// mostFrequent lists texts and how often each was counted, the most frequent first.
func mostFrequent(counts map[string]int) (lines []string) {
	texts := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	for _, t := range texts {
		lines = append(lines, fmt.Sprintf("%d x %s", counts[t], t))
	}
	return lines
}

// wrongKinds lists the kinds of problems, the most frequent first.
func (s *session) wrongKinds() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return mostFrequent(s.kinds)
}

// progress says how far a run is.
func (s *session) progress() string {
	answered, failed := s.tally()
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("%d answered, %d failed, %d wrong", answered, failed, len(s.problems))
}
