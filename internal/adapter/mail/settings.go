// SPDX-License-Identifier: Apache-2.0

package mail

import (
	"errors"

	"tamga/internal/domain/notify"
)

// Settings configures the SMTP server for outgoing mail. It implements notify.Plugin.
type Settings struct {
	// SMTP server, HOST:PORT. Without it no e-mail is sent.
	Address string `yaml:"address"`
	// `starttls`, `tls`, or `none` for a server on this machine.
	Security string `yaml:"security" default:"starttls" oneof:"starttls tls none"`
	// Authorities (PEM) of the server's certificate. Default: the system's.
	AuthoritiesFile string `yaml:"authorities_file"`
	// User name at the server, if it requires one.
	User string `yaml:"user"`
	// File with the password for the server.
	PasswordFile string `yaml:"password_file"`
	// Address of the sender. Default: none, required.
	From string `yaml:"from"`
	// Name of the sender.
	FromName string `yaml:"from_name"`
}

// Section implements notify.Plugin.
func (s *Settings) Section() string { return "mail" }

// Channel implements notify.Plugin.
func (s *Settings) Channel() notify.Channel { return notify.Email }

// Configured implements notify.Plugin.
func (s *Settings) Configured() bool { return s.Address != "" }

// Check implements notify.Plugin.
func (s *Settings) Check() (faults []error) {
	if s.Address != "" && s.From == "" {
		faults = append(faults, errors.New("from: want the address of the sender"))
	}
	if (s.User == "") != (s.PasswordFile == "") {
		faults = append(faults, errors.New("user: want password_file as well, or neither"))
	}
	return faults
}

// Open implements notify.Plugin.
func (s *Settings) Open(e notify.Environment) (notify.Notifier, error) {
	roots, err := e.Roots(s.AuthoritiesFile)
	if err != nil {
		return nil, err
	}
	password, err := e.Secret(s.PasswordFile, "password_file")
	if err != nil {
		return nil, err
	}
	return New(Config{
		Address: s.Address, Security: Security(s.Security), Roots: roots, User: s.User, Password: password,
		From: s.From, FromName: s.FromName,
	})
}
