// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/google/uuid"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/vault"
)

// Settings of the service.
type Settings struct {
	Language     string        // of messages without one: "ru" or "en"
	Life         time.Duration // of a message without Expires; it is retried until then at most
	Attempts     int           // of a message before it is given up
	FirstPause   time.Duration // before the second attempt; each further pause is twice as long, less up to a half at random
	LongestPause time.Duration
	SendTime     time.Duration // one attempt
	Lease        time.Duration // of a message under way; longer than SendTime
	Workers      int           // attempts of one channel at a time in one process
	Poll         time.Duration // how often the outbox is read when nothing woke the loop
	Keep         time.Duration // how long done messages are listed
	Budgets      map[Channel]Budget
}

// DefaultSettings are our own choice.
func DefaultSettings() Settings {
	budgets := map[Channel]Budget{}
	for _, info := range Channels() {
		if info.Budget != (Budget{}) {
			budgets[info.Channel] = info.Budget
		}
	}
	return Settings{
		Language:     "ru",
		Life:         24 * time.Hour,
		Attempts:     10,
		FirstPause:   5 * time.Second,
		LongestPause: 15 * time.Minute,
		SendTime:     25 * time.Second,
		Lease:        35 * time.Second,
		Workers:      4,
		Poll:         time.Second,
		Keep:         30 * 24 * time.Hour,
		Budgets:      budgets,
	}
}

// check reports all problems at once.
func (s Settings) check() error {
	var faults []error
	must := func(ok bool, text string) {
		if !ok {
			faults = append(faults, errors.New("notify: settings: "+text))
		}
	}
	must(languages[s.Language], "language: want ru or en")
	must(s.Life >= time.Minute, "life: want at least 1m")
	must(s.Attempts >= 1, "attempts: want at least 1")
	must(s.FirstPause >= time.Millisecond && s.LongestPause >= s.FirstPause, "pauses: want the longest not below the first")
	must(s.SendTime >= time.Second && s.Lease > s.SendTime, "send time and lease: want at least 1s, and the lease longer")
	must(s.Workers >= 1, "workers: want at least 1")
	must(s.Poll >= 10*time.Millisecond, "poll: want at least 10ms")
	must(s.Keep >= 0, "keep: want 0s or more")
	for channel, b := range s.Budgets {
		must(b.Recipient >= 0 && b.Actor >= 0 && b.Prefix >= 0 && b.Total >= 0, "budgets of "+string(channel)+": want 0 or more")
	}
	return errors.Join(faults...)
}

// Deps are what a Service works with.
type Deps struct {
	Store       Store
	Vault       Sealer
	Templates   *Templates
	Notifiers   []Notifier // one for each channel, in the order that clients see; clients do not see channels to systems
	Preferences Preferences
	Recipients  Recipients
	Zones       Zones     // nil: messages have the zone of the installation
	Listeners   Listeners // nil: no listeners
	Now         func() time.Time
	Rand        io.Reader // of identifiers and pauses; safe for concurrent use

	// Delivered is called for each attempt with its channel and "sent", "retried", "dead"
	// or "expired". failed is why the next system did not take a message that is tried again. Failed is called with
	// errors of the loop. Both may be nil.
	Delivered func(channel Channel, outcome string, failed error)
	Failed    func(err error)
}

// Service accepts and delivers messages.
type Service struct {
	settings  Settings
	deps      Deps
	notifiers map[Channel]Notifier
	wake      map[Channel]chan struct{}
	bodies    map[string]Bodies // by form
}

// New checks the settings.
func New(s Settings, d Deps) (*Service, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	n := &Service{settings: s, deps: d, notifiers: map[Channel]Notifier{}, wake: map[Channel]chan struct{}{}, bodies: map[string]Bodies{}}
	for _, notifier := range d.Notifiers {
		channel := notifier.Channel()
		if n.notifiers[channel] != nil {
			return nil, fmt.Errorf("notify: two notifiers for %s: want one", channel)
		}
		n.notifiers[channel] = notifier
		n.wake[channel] = make(chan struct{}, 1)
	}
	if n.deps.Delivered == nil {
		n.deps.Delivered = func(Channel, string, error) {}
	}
	if n.deps.Failed == nil {
		n.deps.Failed = func(error) {}
	}
	return n, nil
}

// OpenBodies sets what opens the bodies of one form of [Call]. It is called before Run.
func (s *Service) OpenBodies(form string, b Bodies) { s.bodies[form] = b }

// Available lists the channels that users may choose from: those that have a
// notifier, in the order of Deps.
func (s *Service) Available() []Channel {
	channels := []Channel{}
	for _, n := range s.deps.Notifiers {
		if n.Channel().Info().To != ToSystems {
			channels = append(channels, n.Channel())
		}
	}
	return channels
}

// Order puts one message for an address into the outbox, in the transaction of ctx if
// there is one. Faults: wrong_operation when the channel has no notifier,
// too_many_requests when a budget is used up. A fault of Order stores no message, but it
// commits the transaction (see fault.Commits): a caller with earlier writes must use
// fault.Rollback.
func (s *Service) Order(ctx context.Context, d Direct) error {
	return s.order(ctx, d, d.Template)
}

// Emit sends an event to listening systems, and to its user by the user's preferences, in
// the transaction of ctx if there is one. A recipient whose budget is used up is skipped: a
// notice is no reason to refuse the operation. A notice of security is: then the fault is
// too_many_requests, and it rolls back.
func (s *Service) Emit(ctx context.Context, e Event) error {
	info, ok := EventByType(e.Type)
	if !ok {
		return fmt.Errorf("notify: event %q is not in the catalogue", e.Type)
	}
	if e.Factor != "" {
		e.Detail = string(e.Factor)
	}
	if info.security() { // all of its notices, or none
		return s.deps.Store.Atomic(ctx, func(ctx context.Context) error { return s.emit(ctx, e, info) })
	}
	return s.emit(ctx, e, info)
}

func (s *Service) emit(ctx context.Context, e Event, info EventInfo) error {
	if err := s.tellSystems(ctx, e, info); err != nil || e.UserID == "" || e.New {
		return err
	}
	if info.toContacts() {
		return s.olderContacts(ctx, e, info)
	}
	channels, err := s.deps.Preferences.Channels(ctx, e.UserID, e.Type)
	if err != nil {
		return err
	}
	told, err := s.tellUser(ctx, e, info, channels, s.deps.Recipients.NotificationAddresses)
	if err == nil && told == 0 && info.last() {
		_, err = s.tellUser(ctx, e, info, channels, s.deps.Recipients.ConfirmedAddresses)
	}
	return err
}

// Call puts a request into the outbox, in the transaction of ctx if there is one. A process
// without a notifier for the channel Callback leaves it to one that has it.
func (s *Service) Call(ctx context.Context, c Call) error {
	if c.Form != "" && c.ID == "" {
		return errors.New("notify: a request with a form has no identifier")
	}
	return s.put(ctx, c.ID, Direct{Channel: Callback, To: c.To, UserID: c.UserID, Actor: c.Actor, Expires: c.Expires}, c.About, content{Text: c.Body, Form: c.Form})
}

// TestWebhook sends a message of the type [WebhookTest] to a listening system at once, past the outbox.
// failed says why the system has not taken it. The fault is wrong_operation when there is no notifier.
func (s *Service) TestWebhook(ctx context.Context, id, actor string) (failed, err error) {
	notifier := s.notifiers[Webhook]
	if notifier == nil {
		return nil, fault.New(fault.WrongOperation, "this process sends no messages to systems")
	}
	message, err := uuid.NewRandomFromReader(s.deps.Rand)
	if err != nil {
		return nil, fmt.Errorf("notify: making an identifier: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.settings.SendTime)
	defer cancel()
	return notifier.Send(ctx, Message{
		ID: message.String(), Channel: Webhook, To: id, Created: s.now(), Notice: &Notice{Type: WebhookTest, Category: "Webhook", Actor: actor},
	}), nil
}

// WebhookTest is the type of messages by which operators try a webhook. It is no event: there
// are no subscriptions to it.
const WebhookTest EventType = "WebhookTest"

// tellUser orders a message for each address of the user in the channels and returns the
// number of addresses.
func (s *Service) tellUser(ctx context.Context, e Event, info EventInfo, channels []Channel, addressesOf func(ctx context.Context, userID string, channel Channel) ([]string, error)) (n int, err error) {
	var zone *time.Location // of all messages, asked for once
	for _, channel := range channels {
		if s.notifiers[channel] == nil {
			continue
		}
		addresses, err := addressesOf(ctx, e.UserID, channel)
		if err != nil {
			return n, err
		}
		for _, to := range addresses {
			n++
			d := Direct{Channel: channel, To: to, Lang: s.settings.Language, UserID: e.UserID, Actor: e.Actor}
			if info.security() {
				d.security = e.Type
			}
			d.Template, d.Data = s.notice(e, info, d.Lang)
			if zone == nil {
				if zone, err = s.zoneOf(ctx, d); err != nil {
					return n, err
				}
			}
			d.zone = zone
			err := s.order(ctx, d, string(e.Type))
			switch {
			case err != nil && !fault.Is(err, fault.TooManyRequests):
				return n, err
			case err != nil && info.security():
				return n, fault.Rollback(err)
			}
		}
	}
	return n, nil
}

// notice returns the template of the message about an event, and its values.
func (s *Service) notice(e Event, info EventInfo, lang string) (template string, data map[string]string) {
	data = map[string]string{"Description": info.Description[lang], "Detail": e.detailIn(lang), "Time": s.now().Format(TimeLayout)}
	if !e.When.IsZero() {
		data[valueWhen] = e.When.UTC().Format(TimeLayout)
	}
	if e.Factor == "" {
		return TemplateEvent, data
	}
	data["Factor"] = factorNames[e.Factor][lang]
	return TemplateFactor, data
}

// objects are the words of details before a number.
var objects = map[string]string{"certificate ": "Сертификат № ", "request ": "Запрос № "}

// detailIn returns the detail of an event for a message in a language.
func (e *Event) detailIn(lang string) string {
	detail, because := e.Detail, ", reason: "
	if lang == "ru" {
		because = ". Причина: "
		for object, word := range objects {
			if number, is := strings.CutPrefix(detail, object); is {
				detail = word + number
			}
		}
	}
	if e.Reason != "" {
		detail += because + e.Reason
	}
	return detail
}

// tellSystems orders a message for each system that listens to the event.
func (s *Service) tellSystems(ctx context.Context, e Event, info EventInfo) error {
	if s.deps.Listeners == nil || s.notifiers[Webhook] == nil {
		return nil
	}
	recipients, err := s.deps.Listeners.Listening(ctx, e.Type)
	if err != nil {
		return err
	}
	if !e.When.IsZero() {
		e.Detail += ", " + e.When.UTC().Format(TimeLayout)
	}
	notice := &Notice{Type: e.Type, Category: info.Category, UserID: e.UserID, Actor: e.Actor, Detail: OneLine(e.Detail)}
	for _, to := range recipients {
		err := s.put(ctx, "", Direct{Channel: Webhook, To: to, UserID: e.UserID, Actor: e.Actor}, string(e.Type), content{Notice: notice})
		if err != nil && !fault.Is(err, fault.TooManyRequests) {
			return err
		}
	}
	return nil
}

// order renders one message and puts it into the outbox.
func (s *Service) order(ctx context.Context, d Direct, about string) error {
	if s.notifiers[d.Channel] == nil {
		return fault.Newf(fault.WrongOperation, "notifications by %s are not configured: ask the administrator", d.Channel)
	}
	if d.Lang == "" {
		d.Lang = s.settings.Language
	}
	if d.zone == nil {
		var err error
		if d.zone, err = s.zoneOf(ctx, d); err != nil {
			return err
		}
	}
	text, err := s.deps.Templates.render(d.Template, d.Lang, d.Channel, d.zone, d.Data)
	if err != nil {
		return err
	}
	text.Link = d.Link
	if text.Picture = d.Picture; len(d.Picture) > maxPicture {
		return fmt.Errorf("notify: a picture of %d bytes: want at most %d", len(d.Picture), maxPicture)
	}
	return s.put(ctx, "", d, about, text)
}

// zoneOf returns the time zone of the user of a message that has a time, otherwise the one of the installation.
func (s *Service) zoneOf(ctx context.Context, d Direct) (*time.Location, error) {
	own := cmp.Or(s.deps.Templates.Zone, time.UTC)
	if s.deps.Zones == nil || d.UserID == "" {
		return own, nil
	}
	for _, value := range d.Data {
		if _, err := time.Parse(TimeLayout, value); err == nil {
			name, err := s.deps.Zones.TimeZone(ctx, d.UserID)
			return Zone(name, own), err
		}
	}
	return own, nil
}

// put counts, seals and stores one message. One with an identifier of the caller's is separate.
func (s *Service) put(ctx context.Context, id string, d Direct, about string, text content) error {
	separate := id != ""
	if !separate {
		random, err := uuid.NewRandomFromReader(s.deps.Rand)
		if err != nil {
			return fmt.Errorf("notify: making an identifier: %w", err)
		}
		id = random.String()
	}
	now := s.now()
	r := Record{
		ID: id, Channel: d.Channel, To: d.To, Separate: separate, Subject: about, UserID: d.UserID, Actor: d.Actor,
		State: Pending, CreatedAt: now, DueAt: now, ExpiresAt: d.Expires,
	}
	if r.ExpiresAt.IsZero() {
		r.ExpiresAt = now.Add(s.settings.Life)
	}
	plain, err := json.Marshal(text)
	if err != nil {
		return err
	}
	defer clear(plain)
	if r.Sealed, err = s.deps.Vault.Seal(place(r.ID), plain); err != nil {
		return err
	}
	err = s.deps.Store.Atomic(ctx, func(ctx context.Context) error {
		if err := s.spend(ctx, d, now); err != nil {
			return err
		}
		return s.deps.Store.AddMessage(ctx, r)
	})
	if err != nil {
		return err
	}
	select {
	case s.wake[d.Channel] <- struct{}{}:
	default: // the loop is woken already
	}
	return nil
}

// maxPicture limits pictures, in bytes: they are sealed with the text.
const maxPicture = 32 << 10

// place returns where the text of a message is stored.
func place(id string) vault.Place {
	return vault.Place{Purpose: "message", Table: "outbox", Row: id, Column: "sealed"}
}

// now returns the time with the precision of stores.
func (s *Service) now() time.Time { return s.deps.Now().UTC().Truncate(time.Millisecond) }
