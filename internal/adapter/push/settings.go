// SPDX-License-Identifier: Apache-2.0

package push

import (
	"crypto/x509"

	"tamga/internal/domain/notify"
)

// Settings configures the services that reach mobile devices. Each service is for the
// devices whose OsType it lists. Settings implements notify.Plugin.
type Settings struct {
	// Firebase Cloud Messaging.
	FCM struct {
		// [Firebase Cloud Messaging](device-protocol.md#push): the JSON file of a service account
		// that may send (mode 0600).
		ServiceAccountFile string `yaml:"service_account_file"`
		// Values of OsType the service is for.
		OSTypes []int `yaml:"os_types" default:"[2]"`
		// Address of a relay. Default: Google's.
		Endpoint string `yaml:"endpoint"`
	} `yaml:"fcm"`
	// Apple Push Notification service.
	APNs struct {
		// Apple Push Notification service: the .p8 file of the signing key (mode 0600).
		KeyFile string `yaml:"key_file"`
		// Identifier of the key.
		KeyID string `yaml:"key_id"`
		// Identifier of the team.
		TeamID string `yaml:"team_id"`
		// Bundle identifier of the application.
		Topic string `yaml:"topic"`
		// Values of OsType the service is for.
		OSTypes []int `yaml:"os_types" default:"[1]"`
		// Address of the sandbox (`https://api.sandbox.push.apple.com`) or of a relay. Default:
		// Apple's.
		Endpoint string `yaml:"endpoint"`
	} `yaml:"apns"`
	// An operator's own address.
	Webhook struct {
		// An operator's own address that reaches all devices that no other service is for. Requests
		// are signed as in Standard Webhooks.
		URL string `yaml:"url"`
		// File with the secret that signs them: `whsec_` and Base64.
		SecretFile string `yaml:"secret_file"`
	} `yaml:"webhook"`
	// Authorities (PEM) of the certificates of the push services. Default: the system's.
	AuthoritiesFile string `yaml:"authorities_file"`
}

// Section implements notify.Plugin.
func (s *Settings) Section() string { return "push" }

// Channel implements notify.Plugin.
func (s *Settings) Channel() notify.Channel { return notify.Push }

// Configured implements notify.Plugin.
func (s *Settings) Configured() bool {
	return s.FCM.ServiceAccountFile != "" || s.APNs.KeyFile != "" || s.Webhook.URL != ""
}

// Check implements notify.Plugin.
func (s *Settings) Check() []error { return nil }

// Open implements notify.Plugin.
func (s *Settings) Open(e notify.Environment) (notify.Notifier, error) {
	roots, err := e.Roots(s.AuthoritiesFile)
	if err != nil {
		return nil, err
	}
	var routes []Route
	for _, open := range []func(notify.Environment, *x509.CertPool) (Route, error){s.openFCM, s.openAPNs, s.openWebhook} {
		route, err := open(e, roots)
		if err != nil {
			return nil, err
		}
		if route.Sender != nil {
			routes = append(routes, route)
		}
	}
	return New(Config{Title: e.Title, Routes: routes, Gone: e.Gone})
}

// openFCM returns the route of Firebase Cloud Messaging, or no route.
func (s *Settings) openFCM(e notify.Environment, roots *x509.CertPool) (Route, error) {
	if s.FCM.ServiceAccountFile == "" {
		return Route{}, nil
	}
	account, err := e.File(s.FCM.ServiceAccountFile, "fcm.service_account_file")
	if err != nil {
		return Route{}, err
	}
	sender, err := NewFCM(FCMConfig{ServiceAccount: account, Endpoint: s.FCM.Endpoint, Roots: roots, Now: e.Now})
	if err != nil {
		return Route{}, err
	}
	return Route{OSTypes: s.FCM.OSTypes, Sender: sender}, nil
}

// openAPNs returns the route of the Apple Push Notification service, or no route.
func (s *Settings) openAPNs(e notify.Environment, roots *x509.CertPool) (Route, error) {
	if s.APNs.KeyFile == "" {
		return Route{}, nil
	}
	key, err := e.File(s.APNs.KeyFile, "apns.key_file")
	if err != nil {
		return Route{}, err
	}
	sender, err := NewAPNs(APNsConfig{
		Key: key, KeyID: s.APNs.KeyID, TeamID: s.APNs.TeamID, Topic: s.APNs.Topic,
		Endpoint: s.APNs.Endpoint, Roots: roots, Now: e.Now,
	})
	if err != nil {
		return Route{}, err
	}
	return Route{OSTypes: s.APNs.OSTypes, Sender: sender}, nil
}

// openWebhook returns the route of an operator's own address, or no route.
func (s *Settings) openWebhook(e notify.Environment, roots *x509.CertPool) (Route, error) {
	if s.Webhook.URL == "" {
		return Route{}, nil
	}
	secret, err := e.Secret(s.Webhook.SecretFile, "webhook.secret_file")
	if err != nil {
		return Route{}, err
	}
	sender, err := NewWebhook(WebhookConfig{URL: s.Webhook.URL, Secret: secret, Roots: roots, Now: e.Now})
	if err != nil {
		return Route{}, err
	}
	return Route{Sender: sender}, nil
}
