// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	"tamga/internal/adapter/guard"
	"tamga/internal/adapter/push"
	"tamga/internal/adapter/webhook"
	"tamga/internal/config"
	"tamga/internal/domain/device"
	"tamga/internal/domain/notify"
	"tamga/internal/files"
)

// notifiers opens the notifiers that the configuration has settings for, in the order in which
// clients see them.
func notifiers(c *config.Config, now func() time.Time, devices *device.Addresses) (list []notify.Notifier, err error) {
	for _, p := range c.Notifiers() {
		if !p.Configured() {
			continue
		}
		n, err := p.Open(environment(c, p, now, devices))
		if err != nil {
			return nil, fmt.Errorf("messages.%s: %w", p.Section(), err)
		}
		list = append(list, n)
	}
	return list, nil
}

// environment is what a notifier gets.
func environment(c *config.Config, p notify.Plugin, now func() time.Time, devices *device.Addresses) notify.Environment {
	path := "messages." + p.Section()
	return notify.Environment{
		Title:   c.Messages.Title,
		URL:     c.BaseURL(),
		Now:     now,
		Secret:  func(file, setting string) (string, error) { return optionalSecret(c, file, path+"."+setting) },
		File:    func(file, setting string) ([]byte, error) { return ownFile(c, file, path+"."+setting) },
		Roots:   func(file string) (*x509.CertPool, error) { return roots(c, file) },
		Gone:    func(ctx context.Context, to string) error { return recipientGone(ctx, devices, to) },
		Browser: func(ctx context.Context, to string) (notify.Browser, bool, error) { return browserOf(ctx, devices, to) },
	}
}

// browserOf returns where the browser that is a recipient gets messages.
func browserOf(ctx context.Context, devices *device.Addresses, to string) (notify.Browser, bool, error) {
	target, ok := device.ParsePushTarget(to)
	if !ok {
		return notify.Browser{}, false, nil
	}
	o, found, err := devices.Subscription(ctx, target)
	return notify.Browser{Address: o.Address, Public: o.Public, Secret: o.Secret}, found, err
}

// capturedBeside returns captured notifiers, except that messages to browsers are sent if there are settings for
// them: no page shows them, since they are shown by the browser of the person who tries the program.
func capturedBeside(c *config.Config, captured []notify.Notifier, now func() time.Time, devices *device.Addresses) ([]notify.Notifier, error) {
	for _, p := range c.Notifiers() {
		s, ok := p.(*push.Settings)
		i := slices.IndexFunc(captured, func(n notify.Notifier) bool { return n.Channel() == p.Channel() })
		if !ok || i < 0 {
			continue
		}
		n, err := s.OpenWeb(environment(c, p, now, devices), captured[i])
		if err != nil {
			return nil, fmt.Errorf("messages.%s: %w", p.Section(), err)
		}
		if n != nil {
			captured[i] = n
		}
	}
	return captured, nil
}

// BrowserKeySetting names the file with the key by which browsers know the installation.
const BrowserKeySetting = "messages.push.web.key_file"

// MakeBrowserKey makes the file of BrowserKeySetting if it is missing, and returns its path: "" for an installation
// that sends no messages to browsers.
func MakeBrowserKey(c *config.Config) (file string, made bool, err error) {
	for _, p := range c.Notifiers() {
		s, ok := p.(*push.Settings)
		if !ok || s.Web.KeyFile == "" {
			continue
		}
		key, err := push.NewWebPushKey(rand.Reader)
		if err != nil {
			return "", false, err
		}
		defer clear(key)
		file = secretPath(c, s.Web.KeyFile)
		made, err = files.Create(file, key, 0o600)
		return file, made, err
	}
	return "", false, nil
}

// TellsBrowsers reports whether the installation sends messages to browsers.
func TellsBrowsers(c *config.Config) bool {
	return slices.ContainsFunc(c.Notifiers(), func(p notify.Plugin) bool {
		s, ok := p.(*push.Settings)
		return ok && s.Web.KeyFile != ""
	})
}

// browserSender returns what sends to browsers, nil for an installation that does not.
func browserSender(senders []notify.Notifier) *push.Notifier {
	for _, n := range senders {
		if p, ok := n.(*push.Notifier); ok && p.BrowserKey() != nil {
			return p
		}
	}
	return nil
}

// recipientGone removes the push address of a device or a browser that receives messages no more. Other
// addresses are contacts, which only their users and operators change.
func recipientGone(ctx context.Context, devices *device.Addresses, to string) error {
	target, ok := device.ParsePushTarget(to)
	if !ok {
		return nil
	}
	return devices.PushGone(ctx, target)
}

// outward returns the settings of requests to the addresses of subscribers.
func outward(conf *config.Config, now func() time.Time) (webhook.Config, error) {
	c := &conf.Webhooks
	exceptions, err := c.Exceptions()
	if err != nil {
		return webhook.Config{}, err
	}
	roots, err := roots(conf, c.AuthoritiesFile)
	return webhook.Config{
		Guard: guard.New(guard.Config{Exceptions: exceptions}), Plain: c.PlainHTTP, Roots: roots, Now: now,
	}, err
}
