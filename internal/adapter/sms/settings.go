// SPDX-License-Identifier: Apache-2.0

package sms

import "tamga/internal/domain/notify"

// SMPPSettings configures a message centre. It implements notify.Plugin.
type SMPPSettings struct {
	// Message centre by SMPP 3.4, HOST:PORT.
	Address string `yaml:"address"`
	// Whether the connection is TLS.
	TLS bool `yaml:"tls"`
	// Authorities (PEM) of its certificate, with `tls`. Default: the system's.
	AuthoritiesFile string `yaml:"authorities_file"`
	// Our name at the message centre.
	SystemID string `yaml:"system_id"`
	// File with the password, at most 8 bytes as the protocol says.
	PasswordFile string `yaml:"password_file"`
	// System type of the protocol, if the message centre requires one.
	SystemType string `yaml:"system_type"`
	// Whether to bind as a transmitter only.
	Transmitter bool `yaml:"transmitter"`
	// Sender: a name of up to 11 letters, or digits.
	From string `yaml:"from"`
	// Whether to send everything in UCS-2.
	Unicode bool `yaml:"unicode"`
	// Parts of messages per second; 0: no limit.
	PerSecond float64 `yaml:"per_second" min:"0"`
}

// Section implements notify.Plugin.
func (s *SMPPSettings) Section() string { return "sms.smpp" }

// Channel implements notify.Plugin.
func (s *SMPPSettings) Channel() notify.Channel { return notify.SMS }

// Configured implements notify.Plugin.
func (s *SMPPSettings) Configured() bool { return s.Address != "" }

// Check implements notify.Plugin.
func (s *SMPPSettings) Check() []error { return nil }

// Open implements notify.Plugin.
func (s *SMPPSettings) Open(e notify.Environment) (notify.Notifier, error) {
	roots, err := e.Roots(s.AuthoritiesFile)
	if err != nil {
		return nil, err
	}
	password, err := e.Secret(s.PasswordFile, "password_file")
	if err != nil {
		return nil, err
	}
	return NewSMPP(SMPPConfig{
		Address: s.Address, TLS: s.TLS, Roots: roots, SystemID: s.SystemID, Password: password, SystemType: s.SystemType,
		Transmitter: s.Transmitter, From: s.From, Unicode: s.Unicode, PerSecond: s.PerSecond,
	})
}

// GatewaySettings configures a gateway that accepts a message in one HTTP request. It
// implements notify.Plugin. GatewayConfig lists the fields of the templates.
type GatewaySettings struct {
	// Gateway that takes a message by one HTTP request.
	URL string `yaml:"url"`
	// `GET` or `POST`. Default: `POST` with `form` or `json`.
	Method string `yaml:"method"`
	// Parameters in the address. Values may use `{{.To}}`, `{{.Text}}`, `{{.ID}}` and
	// `{{.Secret}}`. Each is encoded for its place.
	Query map[string]string `yaml:"query"`
	// Parameters in the body, as in `query`.
	Form map[string]string `yaml:"form"`
	// Body in JSON, not together with `form`. Its strings may use the same fields as values of
	// `query`.
	JSON string `yaml:"json"`
	// Headers. Values may use the same fields as values of `query`, except `{{.Text}}`.
	Headers map[string]string `yaml:"headers"`
	// User of HTTP Basic. The password is the secret.
	User string `yaml:"user"`
	// File with the secret.
	SecretFile string `yaml:"secret_file"`
	// Regular expression that matches an answer if the message was accepted. Default: every answer
	// 200 to 299.
	Success string `yaml:"success"`
	// Authorities (PEM) of the gateway's certificate. Default: the system's.
	AuthoritiesFile string `yaml:"authorities_file"`
}

// Section implements notify.Plugin.
func (s *GatewaySettings) Section() string { return "sms.http" }

// Channel implements notify.Plugin.
func (s *GatewaySettings) Channel() notify.Channel { return notify.SMS }

// Configured implements notify.Plugin.
func (s *GatewaySettings) Configured() bool { return s.URL != "" }

// Check implements notify.Plugin.
func (s *GatewaySettings) Check() []error { return nil }

// Open implements notify.Plugin.
func (s *GatewaySettings) Open(e notify.Environment) (notify.Notifier, error) {
	roots, err := e.Roots(s.AuthoritiesFile)
	if err != nil {
		return nil, err
	}
	secret, err := e.Secret(s.SecretFile, "secret_file")
	if err != nil {
		return nil, err
	}
	return NewGateway(GatewayConfig{
		URL: s.URL, Method: s.Method, Query: s.Query, Form: s.Form, JSON: s.JSON, Headers: s.Headers,
		User: s.User, Secret: secret, Success: s.Success, Roots: roots,
	})
}
