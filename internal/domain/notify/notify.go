// Package notify owns what the service tells people: the catalogue of events,
// the texts, the outbox in which a message waits, and the loop that hands it to
// a Notifier.
//
// A message is put into the outbox by the transaction that has a reason for it,
// so it is sent if and only if that transaction commits. It is delivered at
// least once: a process that dies between a delivery and its record leaves the
// message to the next one. The text is sealed while it waits and gone once it is
// delivered; no text, code or password appears in an error.
package notify

import (
	"context"
	"errors"
	"time"

	"tamga/internal/domain/vault"
)

// Channel is a way to reach a person. The values are the names of notifiers on
// the wire.
type Channel string

// The channels that users choose from, and the one that systems listen on.
const (
	Email   Channel = "Email"
	SMS     Channel = "SMS"
	Push    Channel = "Push"
	Webhook Channel = "Webhook"
)

// Message is what a Notifier delivers. Subject and Text hold no control
// characters but line feeds in Text.
type Message struct {
	ID      string // GUID; the same at every attempt, so that a receiver can tell a repetition
	Channel Channel
	To      string    // address, phone number as digits with the country code and without a plus, or identifier of a Subscription
	Subject string    // one line; empty for SMS
	Text    string    // plain text, lines end in a line feed
	Picture []byte    // GIF that belongs to the text; nil in most messages, and but for e-mail
	Notice  *Notice   // of the channel Webhook, which has neither subject nor text; nil in other messages
	Created time.Time // when it was ordered
}

// Notice is an event as systems that listen are told of it.
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
	// Send returns nil when the message is in the hands of the next system. An
	// error that [Permanent] made says that no repetition will help; any other
	// error is tried again later. The text of the error is kept and shown to
	// administrators, so it holds nothing of the message's text.
	Send(ctx context.Context, m Message) error
}

// Permanent marks err as a refusal that will not change: an address that does not
// exist, a text that is not taken. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

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
	Data     map[string]string // what the template names; control characters become spaces
	Picture  []byte            // GIF that goes with an e-mail, up to 32 KiB; nil: none
	UserID   string            // whom it concerns
	Actor    string            // user id of who caused it, for the budgets; empty: the service itself
	Expires  time.Time         // when it is of no use any more; zero: Settings.Life from now
}

// Event is something that happened to a user.
type Event struct {
	Type   EventType
	UserID string // empty where there is no user (yet): then systems that listen are told alone
	Actor  string // user id of who caused it; empty: the service itself
	Detail string // one short sentence without secrets; may be empty
}

// Preferences say which events a user wants to hear of, and how.
type Preferences interface {
	// Channels returns the channels for one type of event.
	Channels(ctx context.Context, userID string, event EventType) ([]Channel, error)
}

// Policies are the notification policies of users; [policy.Service] satisfies it.
type Policies interface {
	NotifiersOf(ctx context.Context, userID, event string) ([]string, error)
}

// ByPolicy are Preferences by the notification policies of users.
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

// StandardDefaults tell a user by every channel when the password was changed by
// somebody and when the account is deleted, and nothing else.
func StandardDefaults() map[string][]string {
	return map[string][]string{
		string(UserPasswordChanged): {string(Email), string(SMS)},
		string(UserPasswordReset):   {string(Email), string(SMS)},
		string(UserDeleted):         {string(Email), string(SMS)},
	}
}

// Listeners are systems that want to hear of events. [Subscriptions] satisfies it.
type Listeners interface {
	// Listening names the recipients of the channel Webhook for a type of event.
	Listening(ctx context.Context, event EventType) ([]string, error)
}

// Recipients know where the notifications of a user go. The room contact
// satisfies it.
type Recipients interface {
	// NotificationAddresses returns the user's confirmed contacts of a channel
	// that have the notification role.
	NotificationAddresses(ctx context.Context, userID string, channel Channel) ([]string, error)
	// ConfirmedAddresses returns all of the user's confirmed contacts of a channel,
	// whatever their roles.
	ConfirmedAddresses(ctx context.Context, userID string, channel Channel) ([]string, error)
}

// Sealer seals what waits in the outbox. *vault.Ring satisfies it.
type Sealer interface {
	Seal(p vault.Place, plaintext []byte) ([]byte, error)
	Open(p vault.Place, sealed []byte) ([]byte, error)
}
