// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// fewUsers is the smaller database of the figure "users".
const fewUsers = 100_000

// addUsers adds users by SQL, up to a number. Each has an entry in every table that a
// registration writes.
func (c *Cluster) addUsers(ctx context.Context, from, to int) error {
	for ; from < to; from += fewUsers {
		last := min(from+fewUsers, to)
		for _, statement := range []string{
			`INSERT INTO users (id, login, login_folded, display_name, group_name, operator, locked, lock_at, unapproved, created_at)
				SELECT md5('user' || n)::uuid::text, 'Made' || n, 'made' || n, 'Made' || n, 'Default', false, false, 0, false, 1700000000000 + n
				FROM generate_series($1::bigint, $2::bigint - 1) n`,
			`INSERT INTO contacts (user_id, type, normal, value, confirmed, is_primary, notification, secondary_auth, created_at)
				SELECT md5('user' || n)::uuid::text, 'Email', 'made' || n || '@example.net', 'made' || n || '@example.net', false, true, false, false, 1700000000000 + n
				FROM generate_series($1::bigint, $2::bigint - 1) n`,
		} {
			if err := c.exec(ctx, statement, from, last); err != nil {
				return err
			}
		}
	}
	return c.exec(ctx, "VACUUM ANALYZE")
}

// pointOperations are operations that concern one user.
var pointOperations = []string{"signature", "user by id", "user by login", "registration", "name", "lock"}

// size compares point operations in a database of few users with one of many. Both databases
// run all the time and get requests in turns.
func size(ctx context.Context, p *Programs, m Measuring) (Measured, error) {
	var clusters [2]*Cluster
	var took [2][][]time.Duration
	for i, users := range []int{fewUsers, m.Users} {
		c, err := Start(ctx, Options{Programs: p, Processes: 1})
		if err != nil {
			return Measured{}, err
		}
		defer c.Close()
		begun := time.Now()
		if err := c.addUsers(ctx, 0, users); err != nil {
			return Measured{}, err
		}
		m.Log("users: %d in the database after %v", users, time.Since(begun).Round(time.Second))
		clusters[i], took[i] = c, make([][]time.Duration, len(pointOperations))
	}
	for range 10 * m.Turns {
		for i, users := range []int{fewUsers, m.Users} {
			if err := clusters[i].points(ctx, users, m.Turn/10, took[i]); err != nil {
				return Measured{}, err
			}
		}
	}
	worst, note := 0.0, ""
	for i, name := range pointOperations {
		few, many := quick(took[0][i]), quick(took[1][i])
		ratio := float64(many) / float64(few)
		worst = max(worst, ratio)
		note += fmt.Sprintf("%s %.2f; ", name, ratio)
		m.Log("users: %s %v and %v", name, few, many)
	}
	return Measured{fmt.Sprintf("%.2f", worst), worst <= 1.3, note + fmt.Sprintf("%d users", m.Users)}, nil
}

// quick is the time that the fastest tenth of the requests took at most. It depends less on
// other work on the machine than the median does.
func quick(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/10]
}

// points times each point operation again and again, one request at a time, and adds to took.
func (c *Cluster) points(ctx context.Context, users int, d time.Duration, took [][]time.Duration) error {
	s := newSession(c)
	client := &http.Client{}
	defer client.CloseIdleConnections()
	signer := &caller{session: s, kind: "point", who: c.people.signers[0], http: client}
	operator := &caller{session: s, kind: "point", number: 1, who: c.people.operator, http: client}
	for begun := time.Now(); time.Since(begun) < d; {
		// Users all over the tables.
		number := ((s.number*1000 + operator.count) * 7919) % users
		var id string
		if err := c.db.QueryRowContext(ctx, "SELECT id FROM users WHERE login_folded = $1", fmt.Sprintf("made%d", number)).Scan(&id); err != nil {
			return err
		}
		login := operator.next()
		ofUser := request{id: login, method: "GET", path: "/STS/ums/user/" + id}
		change := ofUser
		change.method, change.body = "POST", text(map[string]any{"PropertyType": 0, "Value": "Name " + login})
		lock := ofUser
		lock.method, lock.path = "POST", lock.path+"/lockout?lock=True"
		for i, step := range []struct {
			by *caller
			r  request
		}{
			{signer, signRequest(signer)},
			{operator, ofUser},
			{operator, request{id: login, method: "GET", path: fmt.Sprintf("/STS/ums/user?type=Login&value=made%d", number)}},
			{operator, request{id: login, method: "POST", path: "/STS/ums/user", body: text(map[string]any{"Login": login, "Email": login + "@example.org"})}},
			{operator, change},
			{operator, lock},
		} {
			start := time.Now()
			status, body, err := step.by.try(ctx, 0, step.r)
			if err != nil {
				return err
			}
			if status != 200 || !json.Valid(body) && len(body) > 0 {
				return fmt.Errorf("%s was answered %d %.300s", pointOperations[i], status, body)
			}
			took[i] = append(took[i], time.Since(start))
		}
	}
	return nil
}
