// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/x509"
	"fmt"
	"time"

	"tamga/internal/adapter/guard"
	"tamga/internal/adapter/webhook"
	"tamga/internal/config"
	"tamga/internal/domain/device"
	"tamga/internal/domain/notify"
)

// notifiers opens the notifiers that the configuration has settings for, in the order in which
// clients see them.
func notifiers(c *config.Config, now func() time.Time, devices *device.Addresses) (list []notify.Notifier, err error) {
	for _, p := range c.Notifiers() {
		if !p.Configured() {
			continue
		}
		path := "messages." + p.Section()
		n, err := p.Open(notify.Environment{
			Title:  c.Messages.Title,
			Now:    now,
			Secret: func(file, setting string) (string, error) { return optionalSecret(c, file, path+"."+setting) },
			File:   func(file, setting string) ([]byte, error) { return ownFile(c, file, path+"."+setting) },
			Roots:  func(file string) (*x509.CertPool, error) { return roots(c, file) },
			Gone:   func(ctx context.Context, to string) error { return recipientGone(ctx, devices, to) },
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		list = append(list, n)
	}
	return list, nil
}

// recipientGone removes the push address of a device that receives messages no more. Other
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
