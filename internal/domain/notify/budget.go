// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
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
	// noticesOfAddress is how many times the budget of an address its notices of security have: an
	// operator who works on an account changes many things.
	noticesOfAddress = 10
	prefixDigits     = 6 // country code and the number range of a telephone operator
	// loose is the least limit that orders made in one moment may exceed. Many users share
	// such a limit, and their changes must not wait for each other until they commit.
	loose = 256
)

// spend counts a message under each key that has a budget.
func (s *Service) spend(ctx context.Context, d Direct, now time.Time) error {
	b := s.settings.Budgets[d.Channel]
	prefix := ""
	if d.Channel.Info().To == ToNumbers && len(d.To) > prefixDigits {
		prefix = d.To[:prefixDigits]
	}
	var of, about string
	times := 1
	if d.security != "" {
		// Notices of security count under keys of their own, so that nothing else uses them up. For
		// an address each type counts separately, and what its user caused separately from what others did: a
		// thief of the account must not stop what an operator does about it.
		of, about, times = " of notices", string(d.security)+" ", noticesOfAddress
		if d.Actor == d.UserID {
			about = "own " + about
		}
	}
	var names []string
	var budgets []BudgetLimit
	for _, c := range []struct {
		name, key string
		limit     int
		counts    bool
	}{
		{"address" + of, about + strings.ToLower(d.To), b.Recipient * times, true},
		{"caller" + of, d.Actor, b.Actor, d.Actor != ""},
		{"range of numbers" + of, prefix, b.Prefix, prefix != ""},
		{"installation" + of, "", b.Total, true},
	} {
		if c.limit == 0 || !c.counts {
			continue
		}
		key := string(d.Channel) + " " + c.name + " " + c.key
		names, budgets = append(names, c.name), append(budgets, BudgetLimit{key, c.limit, c.limit >= loose})
	}
	if len(budgets) == 0 {
		return nil
	}
	if ok, err := s.deps.Store.SpendBudgets(ctx, budgets, now, budgetWindow); ok || err != nil {
		return err
	}
	for i, one := range budgets {
		ok, err := s.deps.Store.SpendBudgets(ctx, budgets[i:i+1], now, budgetWindow)
		if err != nil {
			return err
		}
		if !ok {
			return fault.Newf(fault.TooManyRequests, "too many messages for this %s within an hour, the limit is %d: try again later", names[i], one.Limit)
		}
	}
	return nil
}
