// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"tamga/internal/domain/device"
	"tamga/internal/setting"
)

// Devices configures the registration of mobile devices and their messages.
type Devices struct {
	// First path element of the addresses that mobile devices send their messages to
	// ([device-protocol.md](device-protocol.md)).
	Path string `yaml:"path" default:"/DssApiGateway" rule:"path"`
	// Mobile applications. The first one is used if a request names none. Default: one,
	// `5b0c7c1a-3f6e-4d53-8a39-6f2d9f0e7c41`.
	Systems []System `yaml:"systems"`
	// Most devices of one user.
	PerUser int `yaml:"per_user" default:"5"`
	// Most devices of all users together; 0: no limit.
	InstallationLimit int `yaml:"installation_limit"`
	// Whether a new device needs a code in addition to its QR code, so that a photograph of the QR
	// code is not enough.
	ActivationCodes bool `yaml:"activation_codes" default:"true"`
	// Whether such codes, and QR codes by e-mail, are sent only to confirmed contacts of the user.
	ConfirmedContacts bool `yaml:"confirmed_contacts" default:"true"`
	// Whether QR codes may be sent by e-mail.
	SendQR bool `yaml:"send_qr" default:"true"`
	// Whether devices may keep their keys without a password (`weakness` in the QR code).
	WithoutPassword bool `yaml:"without_password"`
	// How long the QR code of a new device is valid.
	KInitLife time.Duration `yaml:"kinit_life" default:"24h"`
	// How long the QR code of a verification is valid.
	VerificationLife time.Duration `yaml:"verification_life" default:"10m"`
	// How long the key of a device is valid.
	DeviceLife time.Duration `yaml:"device_life" default:"26280h"`
	// Codes that are sent in addition to a QR code.
	Codes struct {
		// Length of an activation code.
		Digits int `yaml:"digits" default:"8"`
		// Validity of an activation code.
		Life time.Duration `yaml:"life" default:"30m"`
		// Attempts at one activation code.
		Attempts int `yaml:"attempts" default:"5"`
		// Pause before another activation code is sent.
		Resend time.Duration `yaml:"resend" default:"1m"`
	} `yaml:"codes"`
	// Largest error of the clock of a device.
	Skew time.Duration `yaml:"skew" default:"5m"`
	// Time after which a device polls again.
	PollAfter time.Duration `yaml:"poll_after" default:"5s"`
	// Devices that may register without a QR code and wait to be assigned, at the same time; 0:
	// none.
	Anonymous int `yaml:"anonymous" default:"1000"`
	// Such devices from one address (IPv6: from one /64) per hour and process.
	AnonymousPerHour int `yaml:"anonymous_per_hour" default:"20" above:"0"`
	// How long a device that registered without a QR code may wait to be assigned.
	AnonymousLife time.Duration `yaml:"anonymous_life" default:"24h"`
	// Largest document that a device may read before its user confirms an operation.
	Readable setting.Size `yaml:"readable" default:"64MiB" above:"0"`
	// Messages of devices per second from one address, in the long run. Many devices may have the
	// same address.
	CallsPerSecond float64 `yaml:"calls_per_second" default:"50" above:"0"`
	// Messages of devices from one address at once.
	CallsAtOnce int `yaml:"calls_at_once" default:"500" above:"0"`
}

// System is a mobile application.
type System struct {
	// GUID of a mobile application: SystemId on the wire. Default: none, required.
	ID string `yaml:"id"`
	// Name of the application.
	Name string `yaml:"name"`
}

// DefaultSystemID is the mobile application if the configuration lists none.
const DefaultSystemID = "5b0c7c1a-3f6e-4d53-8a39-6f2d9f0e7c41"

// Settings returns the rules of mobile devices. base is the address of the server. title is the
// name of the mobile application if the configuration lists none.
func (c Devices) Settings(base, title string) device.Settings {
	s := device.Settings{
		ServiceURL: base + c.Path, Devices: c.PerUser, InstallationLimit: c.InstallationLimit,
		ActivationCodes: c.ActivationCodes, ConfirmedContacts: c.ConfirmedContacts, SendQR: c.SendQR, WithoutPassword: c.WithoutPassword,
		KInitLife: c.KInitLife, VerificationLife: c.VerificationLife, DeviceLife: c.DeviceLife, Skew: c.Skew, PollAfter: c.PollAfter,
		Anonymous: c.Anonymous, AnonymousLife: c.AnonymousLife,
	}
	for _, system := range c.Systems {
		s.Systems = append(s.Systems, device.System{ID: strings.ToLower(system.ID), Name: system.Name})
	}
	if len(s.Systems) == 0 {
		s.Systems = []device.System{{ID: DefaultSystemID, Name: title}}
	}
	return s
}

func (c Devices) check() (faults []error) {
	for i, system := range c.Systems {
		if err := uuid.Validate(system.ID); err != nil || len(system.ID) != 36 {
			faults = append(faults, fmt.Errorf("devices.systems[%d].id: want a GUID", i))
		}
	}
	if err := c.Settings("", "").Check(); err != nil {
		faults = append(faults, fmt.Errorf("devices: %w", err))
	}
	return faults
}
