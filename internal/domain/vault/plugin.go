// SPDX-License-Identifier: Apache-2.0

package vault

import "io"

// Plugin is a holder of private keys that an installation may choose, with its settings.
type Plugin interface {
	// Name returns the value of the setting keys.holder that chooses this holder. Its own settings
	// are keys.NAME in the configuration file.
	Name() string
	// Settings returns a pointer to the struct of the settings, or nil if there are none. The
	// comments and tags of its fields are as package internal/setting reads them, and they are set
	// before Check and Open are called.
	Settings() any
	// Check returns the faults that tags cannot say. Each text begins with the name of a setting.
	Check() []error
	// Open returns the holder.
	Open(e Environment) (Holder, error)
}

// Environment is what the program gives to the holder it opens.
type Environment struct {
	Ring   *Ring                                      // the master keys
	Rand   io.Reader                                  // secure and safe for concurrent use
	PIN    SoftOptions                                // cost of a PIN (settings argon2)
	Path   func(path string) string                   // resolves a path of the configuration
	Secret func(file, setting string) (string, error) // reads a secret of one line, such as a PIN of a device
}

// Software is the Plugin of SoftHolder. It has no settings of its own.
type Software struct{}

// Name implements Plugin.
func (Software) Name() string { return "software" }

// Settings implements Plugin.
func (Software) Settings() any { return nil }

// Check implements Plugin.
func (Software) Check() []error { return nil }

// Open implements Plugin.
func (Software) Open(e Environment) (Holder, error) { return NewSoftHolder(e.Ring, e.Rand, e.PIN) }
