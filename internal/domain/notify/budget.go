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
	for _, scope := range []struct {
		name, key string
		limit     int
		counts    bool
	}{
		{address, strings.ToLower(d.To), b.Recipient, true},
		{"caller", d.Actor, b.Actor, d.Actor != ""},
		{"range of numbers", prefix, b.Prefix, prefix != ""},
		{"installation", "", b.Total, true},
	} {
		if scope.limit == 0 || !scope.counts {
			continue
		}
		ok, err := s.spendOne(ctx, d.UserID, string(d.Channel)+" "+scope.name+" "+scope.key, now, scope.limit)
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
	if limit < shares*shares {
		return s.deps.Store.SpendBudget(ctx, key, now, budgetWindow, limit)
	}
	first := fnv.New32a()
	io.WriteString(first, userID)
	for i := range shares {
		share := (int(first.Sum32()%shares) + i) % shares
		size := limit / shares
		if share < limit%shares {
			size++
		}
		ok, err := s.deps.Store.SpendBudget(ctx, fmt.Sprintf("%s #%d", key, share), now, budgetWindow, size)
		if ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}
