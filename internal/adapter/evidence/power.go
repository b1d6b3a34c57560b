// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"tamga/sig/budget"
	"tamga/sig/power"
)

// maxPowers is how many answers a PowerRegistry remembers.
const maxPowers = 10_000

// failedFresh is how long a failure of a register is remembered, so that a register that does not answer is not asked for each document.
const failedFresh = 30 * time.Second

// PowerRegistry asks a register of powers of attorney for their status. It answers a GET with a JSON object:
//
//	{"status": "REVOKED", "revoked_at": "2025-03-01T12:00:00+03:00"}
//
// status is ACTIVE, EXPIRED, REVOKED, REJECTED, CREATED or PROCESSING. A power that is created or processed is not in the
// register yet, and its status is not known. revoked_at may be absent: then the power counts as withdrawn at all times.
type PowerRegistry struct {
	Source *Source
	// Address has {number} and may have {inn} of the first principal.
	Address string
	Timeout time.Duration
	Fresh   time.Duration // how long an answer is used

	mu    sync.Mutex
	known map[string]remembered
}

type remembered struct {
	status power.Status
	err    error
	until  time.Time
}

// Status implements power.Statuses.
func (r *PowerRegistry) Status(ctx context.Context, p *power.Power) (power.Status, error) {
	address := r.addressOf(p)
	now := r.Source.Now()
	r.mu.Lock()
	was, found := r.known[address]
	r.mu.Unlock()
	if found && now.Before(was.until) {
		return was.status, was.err
	}
	budget.Leave(ctx)
	status, err := r.ask(ctx, address)
	if ctx.Err() != nil {
		return power.Status{}, ctx.Err() // of the caller, not of the register
	}
	fresh := r.Fresh
	if err != nil {
		fresh = min(fresh, failedFresh)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.known) >= maxPowers || r.known == nil {
		r.known = map[string]remembered{}
	}
	r.known[address] = remembered{status, err, now.Add(fresh)}
	return status, err
}

// addressOf returns the address to ask about a power. What is put into it cannot change the other parts of the address.
func (r *PowerRegistry) addressOf(p *power.Power) string {
	escaped := func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
	return strings.NewReplacer("{number}", escaped(p.Number), "{inn}", escaped(p.Principals[0].INN)).Replace(r.Address)
}

func (r *PowerRegistry) ask(ctx context.Context, address string) (power.Status, error) {
	u, err := r.Source.guard.ParseRegistered(address)
	if err != nil {
		return power.Status{}, fmt.Errorf("the register of powers of attorney: %w", err)
	}
	text, err := r.Source.fetch(ctx, order{kind: powerKind, url: u, timeout: r.Timeout})
	if err != nil {
		return power.Status{}, fmt.Errorf("the register of powers of attorney at %s: %w", u.Host, err)
	}
	status, err := readPowerStatus(text)
	if err != nil {
		return power.Status{}, fmt.Errorf("the register of powers of attorney at %s: %w", u.Host, err)
	}
	status.Source = "the register at " + u.Host
	return status, nil
}

// readPowerStatus reads an answer of a register.
func readPowerStatus(text []byte) (s power.Status, err error) {
	var answer struct {
		Status    string     `json:"status"`
		RevokedAt *time.Time `json:"revoked_at"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return s, errors.New("its answer is no JSON object with a status")
	}
	switch strings.ToUpper(answer.Status) {
	case "ACTIVE", "EXPIRED": // the days are in the power itself
		s.State = power.StateInForce
	case "REVOKED":
		s.State = power.StateWithdrawn
		if answer.RevokedAt != nil {
			s.At = *answer.RevokedAt
		}
	case "REJECTED":
		s.State = power.StateWithdrawn
	case "CREATED", "PROCESSING":
		return s, fmt.Errorf("the power is not registered yet (%s)", strings.ToUpper(answer.Status))
	default:
		return s, fmt.Errorf("it answers the unknown status %.40q", answer.Status)
	}
	return s, nil
}
