// SPDX-License-Identifier: Apache-2.0

// Package notify sends messages to people and systems: the catalogue of events, the
// texts, the outbox of waiting messages, and the loop that passes them to a Notifier.
// Begin with Service.Emit for an event and Service.Order for a message to one address.
// Service.Run delivers. The package does not speak to mail or SMS servers: Notifiers do.
//
// The transaction that causes a message puts it into the outbox, so it is sent if and
// only if that transaction commits. Delivery is at least once: when a process dies
// between a delivery and its record, another process delivers the message again. The text
// is sealed while it waits and deleted after delivery. Errors contain no text, code or
// password.
package notify

import (
	"context"
	"errors"
	"io"
	"time"

	"tamga/internal/domain/vault"
)

// Message is what a Notifier delivers. Subject and Text contain no control characters
// except line feeds in Text.
type Message struct {
	ID      string // GUID; the same at every attempt, so that a receiver recognizes a repetition
	Channel Channel
	To      string    // address, phone number as digits with the country code and without a plus, or identifier of a Subscription
	Subject string    // one line; empty for SMS
	Text    string    // plain text, lines end in a line feed; of the channel Callback the body of the request
	Picture []byte    // GIF that belongs to the text; nil in most messages, and in all that are not e-mail
	Notice  *Notice   // of the channel Webhook, which has neither subject nor text; nil in other messages
	Body    Body      // of a Call with a Form, in place of the text; nil in other messages
	Created time.Time // when it was ordered
	Expires time.Time // when it becomes useless
	Link    string    // path of the page that it is about, for a channel that can open it; "" in most messages
}

// Body is the body of a request that may be too long for memory. It can be written more than once.
type Body interface {
	io.WriterTo
	io.Closer
	Size() int64 // in bytes
}

// Bodies open bodies of one form when they are sent.
type Bodies interface {
	// OpenBody opens the body of the message with an identifier. The caller closes it. An error from
	// [Permanent] gives the message up.
	OpenBody(ctx context.Context, id string) (Body, error)
}

// Notice is an event in the form that listening systems get.
type Notice struct {
	Type     EventType
	Category string
	UserID   string // "" where there is no user (yet)
	Actor    string // user id of who caused it; "": the service itself
	Detail   string
}

// Notifier delivers messages of one channel. It is safe for concurrent use.
type Notifier interface {
	Channel() Channel
	// Send returns nil when the next system has accepted the message. An error from
	// [Permanent] means that a retry cannot help. Any other error is retried later. The
	// text of the error is stored and shown to administrators, so it must not quote the
	// message.
	Send(ctx context.Context, m Message) error
}

// Prober is a Notifier that reports whether the next system takes messages, without a message. It signs in there if
// a message would.
type Prober interface {
	Notifier
	Probe(ctx context.Context) error
}

// Permanent marks err as a refusal that will not change: an address that does not exist,
// a text that is not accepted. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// After marks err with how long the next system wants to be left alone (Retry-After of RFC 9110). After(nil, d)
// is nil.
func After(err error, d time.Duration) error {
	if err == nil || d <= 0 {
		return err
	}
	return &laterError{err, d}
}

type laterError struct {
	error
	after time.Duration
}

func (e *laterError) Unwrap() error { return e.error }

// WaitOf returns the time of After, 0 for an error without one.
func WaitOf(err error) time.Duration {
	if l, ok := errors.AsType[*laterError](err); ok {
		return l.after
	}
	return 0
}

// IsPermanent reports whether Permanent made err or a cause of it.
func IsPermanent(err error) bool {
	var p *permanentError
	return errors.As(err, &p)
}

// Direct is one message ordered for an address: a code, a password.
type Direct struct {
	Channel  Channel
	To       string            // in the normal form of its contact
	Template string            // one of the Template constants
	Lang     string            // "ru" or "en"; empty: the language of the installation
	Data     map[string]string // values that the template names; control characters become spaces
	Picture  []byte            // GIF that goes with an e-mail, up to 32 KiB; nil: none
	UserID   string            // the user it is about
	Actor    string            // user id of who caused it, for the budgets; empty: the service itself
	Expires  time.Time         // when it becomes useless; zero: Settings.Life from now
	Link     string            // path of the page that it is about; "" for none

	// security is the type of an event of security, whose notices have budgets of their own: other
	// messages must not use them up, nor they those of codes. "" for other messages.
	security EventType
	// zone is the time zone of the user if it is known already; nil: order asks for it.
	zone *time.Location
}

// Event is something that happened to a user.
type Event struct {
	Type   EventType
	UserID string    // empty where there is no user (yet): then only listening systems are told
	Actor  string    // user id of who caused it; empty: the service itself
	Detail string    // one short sentence without secrets; may be empty
	Reason string    // in the words of an operator, for messages to the user; may be empty
	When   time.Time // that belongs to the detail; zero: none
	Factor Factor    // of UserFactorChanged, which has it as its detail
	New    bool      // the user was added a moment ago and has no address yet: only listening systems are told
	Except string    // of UserFactorChanged: the value of a contact that is not told, since it is the new one
}

// Call is a request to an address that a client named, such as the callback of a
// confirmation.
type Call struct {
	// ID is a GUID that receivers know the request by. Its message waits for no other one to the same
	// address. Empty: a random identifier, in the order of the address.
	ID     string
	To     string // the address, which was checked when the client named it
	About  string // for administrators: what it reports
	UserID string // the user it is about
	Actor  string // user id of who caused it; empty: the service itself
	Body   string // JSON
	// Form names the [Bodies] that open the body by ID when it is sent, in place of Body; see
	// Service.OpenBodies.
	Form    string
	Expires time.Time // when it becomes useless; zero: Settings.Life from now
}

// Preferences are the events that a user wants to be notified of, and the channels.
type Preferences interface {
	// Channels returns the channels for one type of event.
	Channels(ctx context.Context, userID string, event EventType) ([]Channel, error)
}

// Policies are the notification policies of users; [policy.Service] satisfies it.
type Policies interface {
	NotifiersOf(ctx context.Context, userID, event string) ([]string, error)
}

// ByPolicy implements Preferences by the notification policies of users.
type ByPolicy struct{ Policies }

// Channels implements Preferences.
func (p ByPolicy) Channels(ctx context.Context, userID string, event EventType) ([]Channel, error) {
	names, err := p.NotifiersOf(ctx, userID, string(event))
	channels := make([]Channel, len(names))
	for i, n := range names {
		channels[i] = Channel(n)
	}
	return channels, err
}

// StandardDefaults returns the policy that notifies users by e-mail and SMS when their
// password is changed or reset and when their account is deleted, and of nothing else.
func StandardDefaults() map[string][]string {
	return map[string][]string{
		string(UserPasswordChanged): {string(Email), string(SMS)},
		string(UserPasswordReset):   {string(Email), string(SMS)},
		string(UserDeleted):         {string(Email), string(SMS)},
	}
}

// Listeners are systems that subscribe to events. [Subscriptions] satisfies it.
type Listeners interface {
	// Listening returns the recipients of the channel Webhook for a type of event.
	Listening(ctx context.Context, event EventType) ([]string, error)
}

// Recipients finds the addresses of a user. Package contact satisfies it.
type Recipients interface {
	// NotificationAddresses returns the user's confirmed contacts of a channel
	// that have the notification role.
	NotificationAddresses(ctx context.Context, userID string, channel Channel) ([]string, error)
	// ConfirmedAddresses returns all of the user's confirmed contacts of a channel,
	// whatever their roles.
	ConfirmedAddresses(ctx context.Context, userID string, channel Channel) ([]string, error)
}

// Zones has the time zones of users. Package user satisfies it.
type Zones interface {
	// TimeZone returns the name of the zone that a user has chosen, "" for none.
	TimeZone(ctx context.Context, userID string) (string, error)
}

// Sealer seals the texts in the outbox. *vault.Ring satisfies it.
type Sealer interface {
	Seal(p vault.Place, plaintext []byte) ([]byte, error)
	Open(p vault.Place, sealed []byte) ([]byte, error)
}
