// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
)

// people are operators who register users and change them: name, lock, unlock, delete. They
// have a code sent to an address of each. A user belongs to one client. After a change whose outcome is unknown the client leaves the
// user alone, because the change may still happen.
type people struct {
	mu    sync.Mutex
	users []*person
	now   map[int]*person // of each client
}

// person is a user as acknowledged.
type person struct {
	id, login, name string
	locked, deleted bool
	changes         int
	open            bool // the outcome of the last change is unknown
}

func newPeople() *people { return &people{now: map[int]*person{}} }

func (d *people) step(c *caller) {
	d.mu.Lock()
	p := d.now[c.number]
	d.mu.Unlock()
	if p == nil || p.open || p.deleted || p.changes == 8 {
		d.register(c)
		return
	}
	p.changes++
	id := c.next()
	r := request{id: id, method: "POST", path: "/STS/ums/user/" + p.id}
	var done func()
	switch n := p.changes % 4; {
	case n == 1:
		name := "Имя " + id
		r.body = text(map[string]any{"PropertyType": 0, "Value": name})
		done = func() { p.name = name }
	case p.changes == 2 && !p.locked:
		r.path += "/emails/" + p.login + "@example.org/requireconfirm" // sends a message
		done = func() {}
	case n == 3 && c.count%16 == 7:
		r.method = "DELETE"
		done = func() { p.deleted = true }
	default:
		locked := !p.locked
		r.path += "/lockout?lock=" + map[bool]string{true: "True", false: "False"}[locked]
		done = func() { p.locked = locked }
	}
	// One in four clients is served by two processes in turns. The others stay at theirs, so
	// that a broken process does not hold up clients of the survivors.
	node := c.node
	if c.number%4 == 3 && c.count%2 == 0 {
		node = c.other()
	}
	status, body := c.sendTo(node, r)
	switch {
	case status == 200:
		done()
	case unknown(status):
		p.open = true
	default:
		p.open = true
		c.wrong("%s: %s %s was answered %d %.300s", id, r.method, r.path, status, body)
	}
}

func (d *people) register(c *caller) {
	id := c.next()
	p := &person{login: id}
	status, body := c.send(request{id: id, method: "POST", path: "/STS/ums/user", body: text(map[string]any{
		"Login": p.login, "Email": id + "@example.org", "PhoneNumber": fmt.Sprintf("79%02d%02d%05d", c.session.number%100, c.number%100, c.count%100_000),
	})})
	if unknown(status) {
		return
	}
	if err := json.Unmarshal(body, &p.id); status != 200 || err != nil {
		c.wrong("%s: a registration was answered %d %.300s", id, status, body)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.users = append(d.users, p)
	d.now[c.number] = p
}

func (d *people) check(ctx context.Context, v *verification) {
	have, err := v.column(ctx, "SELECT id, login || '/' || display_name || '/' || locked FROM users")
	if err != nil {
		v.wrong("%v", err)
		return
	}
	if n, err := v.cluster.count(ctx, "SELECT count(*) FROM outbox WHERE state = 'dead'"); err != nil || n > 0 {
		v.wrong("%d messages were given up, %v", n, err)
	}
	for _, p := range d.users {
		if p.open {
			continue
		}
		name := p.name
		if name == "" {
			name = p.login
		}
		switch got, there := have[p.id]; {
		case p.deleted && there:
			v.wrong("the user %s was deleted and is there", p.login)
		case p.deleted:
		case !there:
			v.wrong("the user %s is lost", p.login)
		case got != fmt.Sprintf("%s/%s/%t", p.login, name, p.locked) && got != fmt.Sprintf("%s/%s/%t", p.login, p.name, p.locked):
			v.wrong("the user %s is %q, acknowledged was the name %q, locked %t", p.login, got, name, p.locked)
		}
	}
}
