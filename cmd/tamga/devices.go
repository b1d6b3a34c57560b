package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"time"

	"tamga/internal/adapter/qr"
	"tamga/internal/adapter/store"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/device"
	"tamga/internal/domain/notify"
	"tamga/internal/web/deviceapi"
	"tamga/internal/web/rest/limit"
)

// openDevices opens the room of mobile devices, after those of messages, users and
// contacts.
func (h *house) openDevices() error {
	c := &h.config.Devices
	contacts := store.Contacts{DB: h.db}
	codes, err := contact.NewCodes(contact.CodeSettings{
		Digits: c.Codes.Digits, Life: c.Codes.Life, Attempts: c.Codes.Attempts, Resend: c.Codes.Resend,
	}, contacts, h.ring, time.Now, rand.Reader)
	if err != nil {
		return fmt.Errorf("devices.codes: %w", err)
	}
	devices := store.Devices{DB: h.db}
	h.devices, err = device.New(c.Settings(h.config.BaseURL(), h.config.Messages.Title), device.Deps{
		Devices: devices, KInits: devices, Nonces: devices, Vault: h.ring, Users: h.users, Contacts: contacts, Codes: codes,
		Messages: h.messages, Methods: h.sessions, Paint: qr.GIF, Now: time.Now, Rand: rand.Reader,
	})
	if err != nil {
		return fmt.Errorf("devices: %w", err)
	}
	return nil
}

// deviceDoor is where devices come in.
func (h *house) deviceDoor() *deviceapi.API {
	c := &h.config.Devices
	return deviceapi.New(h.devices, limit.New(c.CallsPerSecond, c.CallsAtOnce, 10_000, time.Now).Admit)
}

// activeDevices tells auth of devices, which are opened after it.
type activeDevices struct{ h *house }

// HasActive implements auth.Devices.
func (a activeDevices) HasActive(ctx context.Context, userID string) (bool, error) {
	if a.h.devices == nil {
		return false, nil
	}
	return a.h.devices.HasActive(ctx, userID)
}

// recipients know where notifications go: contacts, and devices once their room is
// open, which needs the one that asks here.
type recipients struct {
	contacts contact.Addresses
	h        *house
}

func (r recipients) NotificationAddresses(ctx context.Context, userID string, channel notify.Channel) ([]string, error) {
	if channel.Info().To == notify.ToDevices {
		return r.h.devices.NotificationAddresses(ctx, userID, channel)
	}
	return r.contacts.NotificationAddresses(ctx, userID, channel)
}

// ConfirmedAddresses implements notify.Recipients. Devices are confirmed by being
// active; without the role nothing is sent to them.
func (r recipients) ConfirmedAddresses(ctx context.Context, userID string, channel notify.Channel) ([]string, error) {
	if channel.Info().To == notify.ToDevices {
		return r.h.devices.NotificationAddresses(ctx, userID, channel)
	}
	return r.contacts.ConfirmedAddresses(ctx, userID, channel)
}

// ownFile reads a secret of several lines, which its owner alone may read.
func (h *house) ownFile(file, what string) ([]byte, error) {
	file = h.config.Path(file)
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s: %s can be read by others: chmod 600 it", what, file)
	}
	if info.Size() > maxSecret {
		return nil, fmt.Errorf("%s: %s has more than %d bytes: it must hold the secret and nothing else", what, file, maxSecret)
	}
	return os.ReadFile(file)
}
