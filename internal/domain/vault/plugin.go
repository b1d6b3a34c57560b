// SPDX-License-Identifier: Apache-2.0

package vault

import "io"

// Plugin is a holder of private keys that an installation may choose, with its settings. Its keys are in
// the memory or in the database of this program, or in a service of its own that the holder reaches: code
// that is not ours, such as the library of a device, never runs in this process.
type Plugin interface {
	// Name returns the name by which settings choose this holder, and which is stored with each of its
	// keys. Its own settings are keys.NAME in the configuration file.
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

// SoftwareName is the name of the SoftHolder among the holders of an installation. Its keys are the only
// ones that the master keys of the ring seal, and nothing of them is outside of their rows.
const SoftwareName = "software"

// Software is the Plugin of SoftHolder. It has no settings of its own.
type Software struct{}

// Name implements Plugin.
func (Software) Name() string { return SoftwareName }

// Settings implements Plugin.
func (Software) Settings() any { return nil }

// Check implements Plugin.
func (Software) Check() []error { return nil }

// Open implements Plugin.
func (Software) Open(e Environment) (Holder, error) { return NewSoftHolder(e.Ring, e.Rand, e.PIN) }
