// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"strings"
	"time"

	"tamga/internal/domain/fault"
)

// Budget is the rate limit of one channel: messages within an hour that begins with the
// first one; 0 is no limit. It keeps a stolen token or a looping client from flooding
// people and from running up the bill of an SMS gateway.
type Budget struct {
	Recipient int // to one address
	Actor     int // caused by one operator or user
	Prefix    int // to numbers with the same first six digits; channels to phone numbers only
	Total     int // of the installation
}

const (
	budgetWindow = time.Hour
	prefixDigits = 6 // country code and the number range of a telephone operator
)

// spend counts a message under each key that has a budget.
func (s *Service) spend(ctx context.Context, d Direct, now time.Time) error {
	b := s.settings.Budgets[d.Channel]
	prefix := ""
	if d.Channel.Info().To == ToNumbers && len(d.To) > prefixDigits {
		prefix = d.To[:prefixDigits]
	}
	address := "address"
	if d.always {
		address = "address of notices"
	}
	type scope struct {
		name, key string
		limit     int
		counts    bool
	}
	var scopes []scope
	var budgets []BudgetLimit
	for _, c := range []scope{
		{address, strings.ToLower(d.To), b.Recipient, true},
		{"caller", d.Actor, b.Actor, d.Actor != ""},
		{"range of numbers", prefix, b.Prefix, prefix != ""},
		{"installation", "", b.Total, true},
	} {
		if c.limit == 0 || !c.counts {
			continue
		}
		c.key = string(d.Channel) + " " + c.name + " " + c.key
		first := BudgetLimit{c.key, c.limit}
		if divided(c.limit) {
			first = share(c.key, c.limit, firstShare(d.UserID))
		}
		scopes, budgets = append(scopes, c), append(budgets, first)
	}
	if len(budgets) == 0 {
		return nil
	}
	if ok, err := s.deps.Store.SpendBudgets(ctx, budgets, now, budgetWindow); ok || err != nil {
		return err
	}
	// One of them has no room, at least not in its first share.
	for _, scope := range scopes {
		ok, err := s.spendOne(ctx, d.UserID, scope.key, now, scope.limit)
		if err != nil {
			return err
		}
		if !ok {
			return fault.Newf(fault.TooManyRequests, "too many messages for this %s within an hour, the limit is %d: try again later", scope.name, scope.limit)
		}
	}
	return nil
}

// shares is the number of counters that a large budget is divided into, so that
// concurrent orders do not all wait for one row.
const shares = 16

// spendOne counts a message under one key. A divided budget is used up when all of its
// shares are. The user selects the first share, so that all messages of a change of one
// user count in one share: changes that took several shares in different orders would
// wait for each other.
func (s *Service) spendOne(ctx context.Context, userID, key string, now time.Time, limit int) (bool, error) {
	if !divided(limit) {
		return s.deps.Store.SpendBudget(ctx, key, now, budgetWindow, limit)
	}
	first := firstShare(userID)
	for i := range shares {
		one := share(key, limit, (first+i)%shares)
		ok, err := s.deps.Store.SpendBudget(ctx, one.Key, now, budgetWindow, one.Limit)
		if ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// divided reports whether a budget is divided into shares.
func divided(limit int) bool { return limit >= shares*shares }

// firstShare returns the share that messages of a user count in as long as it has room.
func firstShare(userID string) int {
	h := fnv.New32a()
	io.WriteString(h, userID)
	return int(h.Sum32() % shares)
}

// share returns the counter of one share of a budget.
func share(key string, limit, n int) BudgetLimit {
	size := limit / shares
	if n < limit%shares {
		size++
	}
	return BudgetLimit{fmt.Sprintf("%s #%d", key, n), size}
}
