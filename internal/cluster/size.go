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
			`INSERT INTO users (id, login, login_folded, display_name, group_name, operator, locked, created_at)
				SELECT md5('user' || n)::uuid::text, 'Made' || n, 'made' || n, 'Made' || n, 'Default', false, false, 1700000000000 + n
				FROM generate_series($1::bigint, $2::bigint - 1) n`,
			`INSERT INTO contacts (user_id, type, normal, value, confirmed, main, created_at)
				SELECT md5('user' || n)::uuid::text, 'email', 'made' || n || '@example.net', 'made' || n || '@example.net', false, true, 1700000000000 + n
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

// size compares point operations in a database of few users with one of many.
func size(ctx context.Context, p *Programs, m Measuring) (Measured, error) {
	c, err := Start(ctx, Options{Programs: p, Processes: 1})
	if err != nil {
		return Measured{}, err
	}
	defer c.Close()
	var medians [2][]time.Duration
	for i, users := range []int{fewUsers, m.Users} {
		begun := time.Now()
		if err := c.addUsers(ctx, i*fewUsers, users); err != nil {
			return Measured{}, err
		}
		m.Log("users: %d in the database after %v", users, time.Since(begun).Round(time.Second))
		if medians[i], err = c.points(ctx, users, fmt.Sprint(i), m.Turn); err != nil {
			return Measured{}, err
		}
	}
	worst, note := 0.0, ""
	for i, name := range pointOperations {
		ratio := float64(medians[1][i]) / float64(medians[0][i])
		worst = max(worst, ratio)
		note += fmt.Sprintf("%s %.2f; ", name, ratio)
		m.Log("users: %s %v, then %v", name, medians[0][i], medians[1][i])
	}
	return Measured{fmt.Sprintf("%.2f", worst), worst <= 1.3, note + fmt.Sprintf("%d users", m.Users)}, nil
}

// points times each point operation, one request at a time, in turns.
func (c *Cluster) points(ctx context.Context, users int, name string, d time.Duration) ([]time.Duration, error) {
	s := newSession(c)
	client := &http.Client{}
	signer := &caller{session: s, kind: "point" + name, who: c.people.signers[0], http: client}
	operator := &caller{session: s, kind: "point" + name, who: c.people.operator, http: client}
	took := make([][]time.Duration, len(pointOperations))
	for begun := time.Now(); time.Since(begun) < time.Duration(len(pointOperations))*d; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		// Users all over the tables.
		number := (operator.count * 7919) % users
		var id string
		if err := c.db.QueryRowContext(ctx, "SELECT id FROM users WHERE login_folded = $1", fmt.Sprintf("made%d", number)).Scan(&id); err != nil {
			return nil, err
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
				return nil, err
			}
			if status != 200 || !json.Valid(body) && len(body) > 0 {
				return nil, fmt.Errorf("%s was answered %d %.300s", pointOperations[i], status, body)
			}
			took[i] = append(took[i], time.Since(start))
		}
	}
	medians := make([]time.Duration, len(took))
	for i, list := range took {
		slices.Sort(list)
		medians[i] = list[len(list)/2]
	}
	return medians, nil
}
