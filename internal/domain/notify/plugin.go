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

// Environment is what the program gives to the notifiers it opens. The name of a setting is for
// errors.
type Environment struct {
	Title  string                                     // what the service calls itself in messages
	Now    func() time.Time                           // the clock
	Secret func(file, setting string) (string, error) // reads a secret of one line; "" for no file
	File   func(file, setting string) ([]byte, error) // reads a secret of several lines
	Roots  func(file string) (*x509.CertPool, error)  // reads authorities (PEM); nil for no file: those of the system
	Gone   func(ctx context.Context, to string) error // takes note that nothing will ever arrive at a recipient again
}
