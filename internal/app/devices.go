package app

import (
	"context"
	"crypto/rand"
	"fmt"
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
func (h *Rooms) openDevices() error {
	c := &h.Config.Devices
	contacts := store.Contacts{DB: h.DB}
	codes, err := contact.NewCodes(contact.CodeSettings{
		Digits: c.Codes.Digits, Life: c.Codes.Life, Attempts: c.Codes.Attempts, Resend: c.Codes.Resend,
	}, contacts, h.ring, time.Now, rand.Reader)
	if err != nil {
		return fmt.Errorf("devices.codes: %w", err)
	}
	devices := store.Devices{DB: h.DB}
	h.devices, err = device.New(c.Settings(h.Config.BaseURL(), h.Config.Messages.Title), device.Deps{
		Devices: devices, KInits: devices, Nonces: devices, Vault: h.ring, Users: h.Users, Contacts: contacts, Codes: codes,
		Messages: h.Messages, Methods: h.Sessions, Paint: qr.GIF, Now: time.Now, Rand: rand.Reader,
	})
	if err != nil {
		return fmt.Errorf("devices: %w", err)
	}
	return nil
}

// deviceDoor is where devices come in.
func (h *Rooms) deviceDoor() *deviceapi.API {
	c := &h.Config.Devices
	return deviceapi.New(h.devices, limit.New(c.CallsPerSecond, c.CallsAtOnce, 10_000, time.Now).Admit)
}

// activeDevices tells auth of devices, which are opened after it.
type activeDevices struct{ h *Rooms }

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
	h        *Rooms
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
