// SPDX-License-Identifier: Apache-2.0

package device

import (
	"context"
	"crypto/ecdh"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/reach"
	"tamga/internal/domain/vault"
)

// Browser is a browser that shows notifications to its user (Web Push, RFC 8030). It has a push
// address as a device has, but it is none: it confirms nothing and is no second step.
type Browser struct {
	ID        string // digest of its push address
	UserID    string
	Name      string // as its user knows it
	CreatedAt time.Time
	Push      Push
	keys      sealedBrowserKeys
}

// OSTypeBrowser is Push.OSType of browsers, by our own choice.
const OSTypeBrowser = 4

// Limits of browsers.
const (
	maxBrowsers       = 10   // of one user
	maxBrowserAddress = 2048 // bytes
	browserKeySize    = 65   // bytes; RFC 8291, 3.1
	browserSecretSize = 16   // bytes; RFC 8291, 3.2
)

// BrowserOrder is what a browser says of itself: its subscription, as the Push API has it.
type BrowserOrder struct {
	Address string // of the push service
	Public  []byte // point of P-256, uncompressed
	Secret  []byte // auth
	Name    string
}

// BrowserRecord is a browser as it is stored. Sealed has everything else, and a copy of the user.
type BrowserRecord struct {
	ID        string
	UserID    string
	CreatedAt time.Time
	Sealed    []byte
}

// BrowserStore keeps browsers.
type BrowserStore interface {
	reach.Transactions
	// PutBrowser adds a browser. It replaces one with the same identifier, also that of another
	// user: a browser shows notifications to one user.
	PutBrowser(ctx context.Context, r BrowserRecord) error
	Browser(ctx context.Context, id string) (r BrowserRecord, found bool, err error)
	Browsers(ctx context.Context, userID string) ([]BrowserRecord, error) // the oldest first
	// ChangeBrowser replaces the sealed record before by after. It reports false when the stored
	// record is not before.
	ChangeBrowser(ctx context.Context, id string, before, after []byte) (bool, error)
	DeleteBrowser(ctx context.Context, userID, id string) (bool, error)
}

// sealedBrowser is the content of the sealed record of a browser.
type sealedBrowser struct {
	UserID string     `json:"user_id"`
	Name   string     `json:"name"`
	Push   sealedPush `json:"push"`
	sealedBrowserKeys
}

// sealedBrowserKeys are the keys of a subscription. The secret is one.
type sealedBrowserKeys struct {
	Public []byte `json:"public"`
	Secret []byte `json:"secret"`
}

func browserPlace(id string) vault.Place {
	return vault.Place{Purpose: "browser", Table: "browsers", Row: id, Column: "sealed"}
}

// browsers reads the stored browsers.
type browsers struct {
	store  BrowserStore
	sealed records // only its seal and open are used
}

func (s browsers) record(b Browser) (BrowserRecord, error) {
	sealed, err := s.sealed.seal(browserPlace(b.ID), sealedBrowser{b.UserID, b.Name, sealedPush(b.Push), b.keys})
	return BrowserRecord{b.ID, b.UserID, b.CreatedAt, sealed}, err
}

func (s browsers) read(r BrowserRecord) (Browser, error) {
	var c sealedBrowser
	if err := s.sealed.open(browserPlace(r.ID), r.Sealed, &c); err != nil {
		return Browser{}, err
	}
	if c.UserID != r.UserID || browserID(c.Push.Address) != r.ID {
		return Browser{}, fmt.Errorf("%w: %s", errMoved, r.ID)
	}
	return Browser{ID: r.ID, UserID: r.UserID, Name: c.Name, CreatedAt: r.CreatedAt, Push: Push(c.Push), keys: c.sealedBrowserKeys}, nil
}

// of returns the browsers of a user, the oldest first.
func (s browsers) of(ctx context.Context, userID string) ([]Browser, error) {
	records, err := s.store.Browsers(ctx, userID)
	if err != nil {
		return nil, err
	}
	list := make([]Browser, len(records))
	for i, r := range records {
		if list[i], err = s.read(r); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// target is the recipient of messages to a browser. The outbox keeps it in the clear, so it names only the
// push service: the address and the keys are read when a message is sent.
func (b *Browser) target() (string, error) {
	service := ""
	if u, err := url.Parse(b.Push.Address); err == nil {
		service = u.Scheme + "://" + u.Host
	}
	text, err := json.Marshal(PushTarget{Address: service, OSType: b.Push.OSType, SystemID: b.Push.SystemID, Browser: b.ID})
	return string(text), err
}

// browserID identifies a browser by its push address.
func browserID(address string) string {
	sum := sha256.Sum256([]byte(address))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// BrowserDeps are what Browsers works with.
type BrowserDeps struct {
	Store    BrowserStore
	Vault    notify.Sealer
	Reach    reach.Checker
	Messages Messages
	// Check refuses an address that no request may reach. The fault is invalid_parameters.
	Check func(address string) error
	// Admit may refuse another message of trial of a user. nil: all are admitted.
	Admit func(userID string) error
	Now   func() time.Time
}

// Browsers manages the browsers that show notifications. Methods with the argument who fail with
// user_not_found for users out of reach.
type Browsers struct {
	browsers
	deps    BrowserDeps
	changes reach.Changes
}

// NewBrowsers returns a Browsers.
func NewBrowsers(d BrowserDeps) *Browsers {
	return &Browsers{browsers{d.Store, records{vault: d.Vault}}, d, reach.Changes{Store: d.Store, Reach: d.Reach, Events: d.Messages}}
}

func (s *Browsers) now() time.Time { return s.deps.Now().UTC().Truncate(time.Millisecond) }

// List returns the browsers of a user, the oldest first.
func (s *Browsers) List(ctx context.Context, who audit.Principal, userID string) ([]Browser, error) {
	if err := s.deps.Reach.Reach(ctx, who, userID); err != nil {
		return nil, err
	}
	return s.of(ctx, userID)
}

// Add takes the subscription of a browser of the caller, or takes it again. A browser that an operator had
// removed from the contacts is there again. Faults: invalid_parameters for an address or keys that are not
// valid; wrong_operation for a user who has too many.
func (s *Browsers) Add(ctx context.Context, who audit.Principal, o BrowserOrder) error {
	switch {
	case o.Address == "":
		return fault.New(fault.InvalidParameters, "endpoint: missing, want endpoint of the PushSubscription of the browser, such as https://push.example/send/1")
	case len(o.Address) > maxBrowserAddress:
		return fault.Newf(fault.InvalidParameters, "endpoint: has %d bytes, want at most %d: endpoint of the PushSubscription of the browser", len(o.Address), maxBrowserAddress)
	case !printable(o.Address):
		return fault.New(fault.InvalidParameters, "endpoint: has control characters, want endpoint of the PushSubscription of the browser, as it is")
	}
	if err := s.deps.Check(o.Address); err != nil {
		return err
	}
	if n := len(o.Public); n != browserKeySize {
		return fault.Newf(fault.InvalidParameters, "p256dh: has %d bytes, want %d: getKey('p256dh') of the PushSubscription of the browser, in Base64url", n, browserKeySize)
	}
	if _, err := ecdh.P256().NewPublicKey(o.Public); err != nil {
		return fault.New(fault.InvalidParameters, "p256dh: is no uncompressed point of the curve P-256, want getKey('p256dh') of the PushSubscription of the browser, in Base64url").With(err)
	}
	if n := len(o.Secret); n != browserSecretSize {
		return fault.Newf(fault.InvalidParameters, "auth: has %d bytes, want %d: getKey('auth') of the PushSubscription of the browser, in Base64url", n, browserSecretSize)
	}
	name := notify.OneLine(o.Name)
	if name == "" || len([]rune(name)) > maxName {
		return fault.Newf(fault.InvalidParameters, "name: want 1 to %d characters that can be printed", maxName)
	}
	return s.changes.Run(ctx, who, who.UserID, func(ctx context.Context) error {
		have, err := s.of(ctx, who.UserID)
		if err != nil {
			return err
		}
		b := Browser{
			ID: browserID(o.Address), UserID: who.UserID, Name: name, CreatedAt: s.now(),
			Push: Push{Address: o.Address, OSType: OSTypeBrowser, Listed: true, Notification: true},
			keys: sealedBrowserKeys{o.Public, o.Secret},
		}
		if i := slices.IndexFunc(have, func(known Browser) bool { return known.ID == b.ID }); i >= 0 {
			b.CreatedAt = have[i].CreatedAt
		} else if len(have) >= maxBrowsers {
			return fault.Newf(fault.WrongOperation, "%d browsers show your notifications, and no more are allowed: remove one first", maxBrowsers)
		}
		r, err := s.record(b)
		if err != nil {
			return err
		}
		return s.deps.Store.PutBrowser(ctx, r)
	})
}

// Remove ends the notifications of a browser. The fault is key_not_found.
func (s *Browsers) Remove(ctx context.Context, who audit.Principal, userID, id string) error {
	return s.changes.Run(ctx, who, userID, func(ctx context.Context) error {
		removed, err := s.deps.Store.DeleteBrowser(ctx, userID, id)
		if err == nil && !removed {
			err = noBrowser()
		}
		return err
	})
}

func noBrowser() error {
	return fault.New(fault.KeyNotFound, "the user has no such browser")
}

// Try sends a message of trial to a browser of the caller. Faults: key_not_found; too_many_requests.
func (s *Browsers) Try(ctx context.Context, who audit.Principal, id string) error {
	if s.deps.Admit != nil {
		if err := s.deps.Admit(who.UserID); err != nil {
			return err
		}
	}
	list, err := s.List(ctx, who, who.UserID)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(b Browser) bool { return b.ID == id })
	if i < 0 {
		return noBrowser()
	}
	return s.tell(ctx, &list[i], notify.Direct{Template: notify.TemplateBrowserTrial, Expires: s.now().Add(wakeLife)})
}

// Tell says to the browsers of a user that a confirmation waits, until a time, in the transaction of ctx. The
// message has only its identifier.
func (s *Browsers) Tell(ctx context.Context, userID, id string, until time.Time) error {
	if !slices.Contains(s.deps.Messages.Available(), notify.Push) {
		return nil
	}
	list, err := s.of(ctx, userID)
	if err != nil {
		return err
	}
	for i := range list {
		if !list[i].Push.Listed {
			continue
		}
		err := s.tell(ctx, &list[i], notify.Direct{Template: notify.TemplateBrowserWake, Link: "/confirm/" + id, Expires: until})
		if err != nil && !fault.Is(err, fault.TooManyRequests) {
			return err
		}
	}
	return nil
}

func (s *Browsers) tell(ctx context.Context, b *Browser, d notify.Direct) error {
	to, err := b.target()
	if err != nil {
		return err
	}
	d.Channel, d.To, d.UserID, d.Actor = notify.Push, to, b.UserID, b.UserID
	return s.deps.Messages.Order(ctx, d)
}

// Subscription returns where a message to the recipient of a browser goes. found is false for a browser that
// has been removed.
func (s *Addresses) Subscription(ctx context.Context, t PushTarget) (o BrowserOrder, found bool, err error) {
	r, found, err := s.browsers.store.Browser(ctx, t.Browser)
	if err != nil || !found {
		return BrowserOrder{}, false, err
	}
	b, err := s.browsers.read(r)
	return BrowserOrder{Address: b.Push.Address, Public: b.keys.Public, Secret: b.keys.Secret, Name: b.Name}, err == nil, err
}

// contact describes the push address of a browser as those of devices are. It is active as long as it exists.
func (b *Browser) contact(now time.Time) Device {
	return Device{
		UserID: b.UserID, Name: b.Name, Type: "browser", Verified: true, CreatedAt: b.CreatedAt, NotBefore: b.CreatedAt, NotAfter: now.Add(time.Hour), Push: &b.Push,
	}
}
