// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/vault"
)

// Pending is an authorization request that waits for its user to sign in.
type Pending struct {
	ClientID     string
	RedirectURI  string
	ResponseType string
	Scope        string
	Resource     string
	State        string
	Nonce        string
	Challenge    string

	// For a user who was sent to another identity provider.
	Provider         string `json:",omitempty"`
	ProviderNonce    string `json:",omitempty"`
	ProviderVerifier string `json:",omitempty"`
	// Held is the sign-in that waits for its second step; see Hold.
	Held *held `json:",omitempty"`
	// visit is the handle of the visit at a PostingProvider, "" for none; see OpenExternal.
	visit string
}

// Hold returns the request with a sign-in that waits for its second step.
func (p Pending) Hold(f FirstStep) Pending {
	p.Held = f.held()
	return p
}

// FirstStep returns the sign-in of Hold. The fault is access_denied for a request without
// one.
func (p Pending) FirstStep() (FirstStep, error) {
	if p.Held == nil || p.Held.Record == "" {
		return FirstStep{}, ticketRefused()
	}
	return p.Held.step(), nil
}

// Step is where a ticket may be used. A ticket of one step is invalid at every other step.
type Step string

// The steps of a sign-in by browser.
const (
	StepLogin    Step = "login"    // the form of our own page
	StepExternal Step = "external" // the way back from another identity provider
	StepSecond   Step = "second"   // the second step, in our own pages
)

const (
	ticketLife    = 10 * time.Minute
	maxTicket     = 16 << 10 // bytes
	browserLength = 16       // bytes of the random value in the cookie
)

// Sealer seals secrets; *vault.Ring satisfies it.
type Sealer = notify.Sealer

// sealedTicket is the content of a ticket.
type sealedTicket struct {
	Pending
	ExpiresAt int64 // Unix seconds
}

// NewBrowser returns a random value for a cookie that a browser keeps while its user signs
// in: 32 characters 0-9 and a-f.
func (s *Service) NewBrowser() (string, error) {
	var random [browserLength]byte
	if _, err := io.ReadFull(s.rand, random[:]); err != nil {
		return "", fmt.Errorf("signin: making a cookie: %w", err)
	}
	return hex.EncodeToString(random[:]), nil
}

func ticketPlace(browser string, step Step) vault.Place {
	sum := sha256.Sum256([]byte(browser))
	return vault.Place{Purpose: "authorization request", Table: "browser", Row: hex.EncodeToString(sum[:]), Column: string(step)}
}

// SealTicket makes a ticket of a request. Only this service can read it. It is valid only
// for the browser with the cookie, at one step and for ten minutes. Tickets prevent other
// sites from signing a user in or from choosing where the browser goes afterwards.
func (s *Service) SealTicket(p Pending, browser string, step Step) (string, error) {
	plain, err := json.Marshal(sealedTicket{p, s.now().Add(ticketLife).Unix()})
	if err != nil {
		return "", fmt.Errorf("signin: making a ticket: %w", err)
	}
	sealed, err := s.vault.Seal(ticketPlace(browser, step), plain)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(sealed), nil
}

func ticketRefused() *fault.Error {
	return fault.New(fault.AccessDenied, "this sign-in has ended or was begun elsewhere: go back to the application and begin again")
}

// OpenTicket reads a ticket. The fault is access_denied.
func (s *Service) OpenTicket(ticket, browser string, step Step) (Pending, error) {
	refused := ticketRefused()
	if len(browser) != 2*browserLength || len(ticket) > maxTicket {
		return Pending{}, refused
	}
	sealed, err := base64.RawURLEncoding.DecodeString(ticket)
	if err != nil {
		return Pending{}, refused
	}
	plain, err := s.vault.Open(ticketPlace(browser, step), sealed)
	if err != nil {
		return Pending{}, refused.With(err)
	}
	var t sealedTicket
	if err := json.Unmarshal(plain, &t); err != nil {
		return Pending{}, refused.With(err)
	}
	if s.now().Unix() >= t.ExpiresAt {
		return Pending{}, refused
	}
	return t.Pending, nil
}
