// SPDX-License-Identifier: Apache-2.0

package push

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"tamga/internal/adapter/guard"
	"tamga/internal/domain/notify"
)

// Settings configures the services that reach mobile devices and browsers. Each service for
// devices is for those whose OsType it lists. Settings implements notify.Plugin.
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
	// Browsers.
	Web struct {
		// [Web Push](device-protocol.md#browsers): file with the private key by which push services of browsers know
		// the installation, P-256 as PKCS #8 (PEM, mode 0600). `tamga init` makes it. With another key, all browsers
		// must be switched on again.
		KeyFile string `yaml:"key_file"`
		// Address at which push services reach the operator of the installation, `mailto:` or `https:`. Default: the
		// public address.
		Contact string `yaml:"contact"`
		// Networks and hosts outside of the public internet that may have push services of browsers, as in
		// `evidence.allow_networks`.
		AllowNetworks []string `yaml:"allow_networks"`
	} `yaml:"web"`
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
	return !s.OnlyUncaptured() || s.Web.KeyFile != ""
}

// OnlyUncaptured implements notify.Uncaptured: what a browser shows is not captured.
func (s *Settings) OnlyUncaptured() bool {
	return s.FCM.ServiceAccountFile == "" && s.APNs.KeyFile == "" && s.Webhook.URL == ""
}

// Check implements notify.Plugin.
func (s *Settings) Check() (faults []error) {
	if _, err := guard.ParseExceptions(s.Web.AllowNetworks); err != nil {
		faults = append(faults, fmt.Errorf("web.allow_networks: %w", err))
	}
	if c := s.Web.Contact; c != "" && !strings.HasPrefix(c, "mailto:") && !strings.HasPrefix(c, "https://") {
		faults = append(faults, errors.New("web.contact: want mailto: and an e-mail address, or https://"))
	}
	return faults
}

// Open implements notify.Plugin.
func (s *Settings) Open(e notify.Environment) (notify.Notifier, error) {
	roots, err := e.Roots(s.AuthoritiesFile)
	if err != nil {
		return nil, err
	}
	return s.open(e, roots, nil, s.openWeb, s.openFCM, s.openAPNs, s.openWebhook)
}

// OpenWeb returns a notifier for browsers alone, nil without their settings. Messages to devices go to others.
func (s *Settings) OpenWeb(e notify.Environment, others notify.Notifier) (*Notifier, error) {
	if s.Web.KeyFile == "" {
		return nil, nil
	}
	roots, err := e.Roots(s.AuthoritiesFile)
	if err != nil {
		return nil, err
	}
	return s.open(e, roots, others, s.openWeb)
}

func (s *Settings) open(e notify.Environment, roots *x509.CertPool, others notify.Notifier, services ...func(notify.Environment, *x509.CertPool) (Route, error)) (*Notifier, error) {
	var routes []Route
	for _, open := range services {
		route, err := open(e, roots)
		if err != nil {
			return nil, err
		}
		if route.Sender != nil {
			routes = append(routes, route)
		}
	}
	return New(Config{Title: e.Title, Routes: routes, Gone: e.Gone, Others: others})
}

// openWeb returns the route of browsers, or no route.
func (s *Settings) openWeb(e notify.Environment, roots *x509.CertPool) (Route, error) {
	if s.Web.KeyFile == "" {
		return Route{}, nil
	}
	key, err := e.File(s.Web.KeyFile, "web.key_file")
	if err != nil {
		return Route{}, err
	}
	exceptions, err := guard.ParseExceptions(s.Web.AllowNetworks)
	if err != nil {
		return Route{}, err
	}
	sender, err := NewWebPush(WebPushConfig{
		Key: key, Contact: cmp.Or(s.Web.Contact, e.URL), Guard: guard.New(guard.Config{Exceptions: exceptions}), Roots: roots, Now: e.Now, Browser: e.Browser,
	})
	if err != nil {
		return Route{}, err
	}
	return Route{Browsers: true, Sender: sender}, nil
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
