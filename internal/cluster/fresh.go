// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// fresh are clients who sign for a few users at all processes, while one client for each
// user changes what the user may: a lock, an access policy, a password. A change counts
// for every request that begins after it was answered, at whatever process.
type fresh struct {
	users []*guarded

	mu               sync.Mutex
	changes, refused int
}

// guarded is a user whose rights change.
type guarded struct {
	account
	password string
	rounds   int // of changes

	mu    sync.Mutex
	token string
	may   bool // sign with token
	turn  int  // of the changes: odd while one is under way
}

// right is what a user may at one moment.
type right struct {
	token string
	may   bool
	turn  int
}

func newFresh(users []account) *fresh {
	d := &fresh{}
	for _, a := range users {
		d.users = append(d.users, &guarded{account: a, password: passwordOfSigners, token: a.token, may: true})
	}
	return d
}

func (g *guarded) now() right {
	g.mu.Lock()
	defer g.mu.Unlock()
	return right{g.token, g.may, g.turn}
}

// begin is called before a change is sent.
func (g *guarded) begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.turn%2 == 0 {
		g.turn++
	}
}

// end is called after a change was answered.
func (g *guarded) end(may bool, token string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.turn++
	g.may, g.token = may, token
}

func (d *fresh) step(c *caller) {
	g := d.users[c.number%len(d.users)]
	if c.number < len(d.users) {
		d.change(c, g)
	} else {
		d.sign(c, g, c.number+c.count)
	}
}

// place is a process, one of all in turns, or HAProxy.
func (c *caller) place(n int) int {
	if c.node == balanced {
		return balanced
	}
	return n % len(c.cluster.nodes)
}

// sign asks for a signature and judges the answer by what the user was allowed all the time.
func (d *fresh) sign(c *caller, g *guarded, node int) {
	before := g.now()
	who := *c
	who.who.token = before.token
	r := signRequest(c)
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	begun := time.Now()
	status, body, err := who.try(ctx, c.place(node), r)
	if before.turn%2 == 1 || g.now() != before {
		return
	}
	switch {
	case status == 0 || unknown(status):
		c.record(call{kind: c.kind, node: c.place(node), at: time.Now(), took: time.Since(begun), status: status})
		c.said(fmt.Sprintf("%s to %d: %d %.200s %v", c.kind, node, status, body, err))
		pause(20 * time.Millisecond)
		return
	case before.may != (status == http.StatusOK):
		c.wrong("%s: %s may sign: %t, a request that began later was answered %d %.200s at %d", r.id, g.login, before.may, status, body, node)
	case !before.may:
		d.mu.Lock()
		d.refused++
		d.mu.Unlock()
	}
	c.record(call{kind: c.kind, node: c.place(node), at: time.Now(), took: time.Since(begun), status: http.StatusOK})
}

// everywhere signs at all processes at once.
func (d *fresh) everywhere(c *caller, g *guarded) {
	var all sync.WaitGroup
	for i := range c.cluster.nodes {
		one := *c
		one.kind = fmt.Sprintf("%s-at-%d", c.kind, i) // names of its own
		all.Go(func() { d.sign(&one, g, i) })
	}
	all.Wait()
}

// change takes a right away and gives it back.
func (d *fresh) change(c *caller, g *guarded) {
	g.rounds++
	path := "/STS/ums/user/" + g.id
	switch g.rounds % 3 {
	case 0:
		d.order(c, g, path+"/lockout?lock=True", "")
		g.end(false, g.token)
		d.everywhere(c, g)
		d.order(c, g, path+"/lockout?lock=False", "")
		g.end(true, d.signIn(c, g)) // a lock ends tokens
	case 1:
		d.order(c, g, path+"/accesspolicy", "[2]") // denies SignDocument
		g.end(false, g.token)
		d.everywhere(c, g)
		d.order(c, g, path+"/accesspolicy", "[]")
		g.end(true, g.token)
	case 2:
		var password string
		if body := d.order(c, g, path+"/password", ""); json.Unmarshal(body, &password) != nil || password == "" {
			c.wrong("a new password was answered %.200s", body)
		}
		g.end(false, g.token) // a new password ends tokens
		for i := range c.cluster.nodes {
			if status, _, err := c.cluster.grant(context.Background(), c.place(i), g.login, g.password); err == nil && status == http.StatusOK {
				c.wrong("%s signed in at %d by a password that was replaced before", g.login, i)
			}
		}
		d.everywhere(c, g)
		g.password = password
		g.begin()
		g.end(true, d.signIn(c, g))
	}
	d.everywhere(c, g)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changes++
}

// order sends a change of the operator until it is answered, and returns the answer. Each
// attempt is made at another process. All changes may be repeated.
func (d *fresh) order(c *caller, g *guarded, path, body string) []byte {
	g.begin()
	operator := *c
	operator.who = c.cluster.people.operator
	for end := time.Now().Add(2 * longest); ; {
		c.count++ // the next attempt is made at another process
		r := request{id: c.next(), method: "POST", path: path, body: []byte(body)}
		status, answer := operator.sendTo(c.place(c.count), r)
		if status == http.StatusOK {
			return answer
		}
		if !unknown(status) || time.Now().After(end) {
			c.wrong("%s: %s was answered %d %.200s", r.id, path, status, answer)
			return nil
		}
	}
}

// signIn gets a token from one process after the other.
func (d *fresh) signIn(c *caller, g *guarded) string {
	for end := time.Now().Add(2 * longest); ; {
		c.count++
		status, token, err := c.cluster.grant(context.Background(), c.place(c.count), g.login, g.password)
		if err == nil && status == http.StatusOK {
			return token
		}
		if err == nil && !unknown(status) && status != http.StatusTooManyRequests || time.Now().After(end) {
			c.wrong("%s signs in by a password that was answered: %d %v", g.login, status, err)
			return ""
		}
		pause(20 * time.Millisecond)
	}
}

func (d *fresh) check(_ context.Context, v *verification) {
	if d.changes == 0 || d.refused == 0 {
		v.wrong("%d changes of rights and %d refusals: they show nothing", d.changes, d.refused)
	}
}
