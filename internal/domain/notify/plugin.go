// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"crypto/x509"
	"time"
)

// Plugin is a notifier that an installation may have, with its settings. A pointer to the struct
// of the settings implements it. The comments and tags of the fields are as package
// internal/setting reads them, and they are set before Check, Configured and Open are called.
type Plugin interface {
	// Section returns the name of the settings in the configuration file, below messages.
	Section() string
	// Channel returns the channel of the notifier.
	Channel() Channel
	// Configured reports whether the installation has this notifier.
	Configured() bool
	// Check returns the faults that tags cannot say. Each text begins with the name of a setting,
	// such as "from: want the address of the sender".
	Check() []error
	// Open returns the notifier. It connects to nothing.
	Open(e Environment) (Notifier, error)
}

// Uncaptured is implemented by a Plugin with recipients whose messages are sent although those of others are captured.
type Uncaptured interface {
	// OnlyUncaptured reports whether it is configured for such recipients alone.
	OnlyUncaptured() bool
}

// Environment is what the program gives to the notifiers it opens. The name of a setting is for
// errors.
type Environment struct {
	Title  string                                     // what the service calls itself in messages
	URL    string                                     // public address of the service, without a slash at the end
	Now    func() time.Time                           // the clock
	Secret func(file, setting string) (string, error) // reads a secret of one line; "" for no file
	File   func(file, setting string) ([]byte, error) // reads a secret of several lines
	Roots  func(file string) (*x509.CertPool, error)  // reads authorities (PEM); nil for no file: those of the system
	Gone   func(ctx context.Context, to string) error // takes note that nothing will ever arrive at a recipient again
	// Browser returns where a recipient that is a browser gets messages. found is false for one that was removed.
	Browser func(ctx context.Context, to string) (b Browser, found bool, err error)
}

// Browser is where a browser gets messages (RFC 8030), and the keys for which they are encrypted (RFC 8291).
type Browser struct {
	Address        string
	Public, Secret []byte
}
