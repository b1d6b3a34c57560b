package config

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"tamga/internal/domain/device"
)

// Devices says how mobile devices are registered and spoken to.
type Devices struct {
	// Path that devices send their messages below. Default /DssApiGateway.
	Path string `yaml:"path"`
	// Mobile applications. Empty: one with the GUID of docs/device-protocol.md.
	Systems []System `yaml:"systems"`
	// Most devices of one user. Default 5.
	PerUser int `yaml:"per_user"`
	// Most devices of all users together; 0 is no bound. Default 0.
	InstallationLimit int `yaml:"installation_limit"`
	// Whether a new device needs a code beside its QR code. Default true: whoever
	// photographs the QR code has nothing.
	ActivationCodes bool `yaml:"activation_codes"`
	// Whether such codes, and QR codes by e-mail, go to confirmed contacts of the user
	// alone. Default true.
	ConfirmedContacts bool `yaml:"confirmed_contacts"`
	// Whether QR codes may be sent by e-mail. Default true.
	SendQR bool `yaml:"send_qr"`
	// Whether devices may keep their keys without a password. Default false.
	WithoutPassword bool `yaml:"without_password"`
	// How long the QR code of a new device is good, that of a verification, and the
	// key of a device. Defaults 24h, 10m, 26280h.
	KInitLife        time.Duration `yaml:"kinit_life"`
	VerificationLife time.Duration `yaml:"verification_life"`
	DeviceLife       time.Duration `yaml:"device_life"`
	// Codes that are sent beside a QR code.
	Codes struct {
		Digits   int           `yaml:"digits"`   // default 8
		Life     time.Duration `yaml:"life"`     // default 30m
		Attempts int           `yaml:"attempts"` // at one code, default 5
		Resend   time.Duration `yaml:"resend"`   // before another may be sent, default 60s
	} `yaml:"codes"`
	// The most that the clock of a device may be wrong. Default 5m.
	Skew time.Duration `yaml:"skew"`
	// How soon a device asks again. Default 5s.
	PollAfter time.Duration `yaml:"poll_after"`
	// Devices that register without a QR code and wait to be assigned: how many may
	// wait at a time, 0 for none, and how long. Defaults 1000, 24h.
	Anonymous     int           `yaml:"anonymous"`
	AnonymousLife time.Duration `yaml:"anonymous_life"`
	// Messages of one address a second in the long run, and at once: many devices may
	// be behind one address. Defaults 50, 500.
	CallsPerSecond float64 `yaml:"calls_per_second"`
	CallsAtOnce    int     `yaml:"calls_at_once"`
}

// System is a mobile application.
type System struct {
	ID   string `yaml:"id"` // GUID: SystemId on the wire
	Name string `yaml:"name"`
}

// DefaultSystemID is the mobile application of installations that name none.
const DefaultSystemID = "5b0c7c1a-3f6e-4d53-8a39-6f2d9f0e7c41"

func defaultDevices() Devices {
	d := device.DefaultSettings()
	c := Devices{
		Path: "/DssApiGateway", PerUser: d.Devices, ActivationCodes: d.ActivationCodes, ConfirmedContacts: d.ConfirmedContacts, SendQR: d.SendQR,
		KInitLife: d.KInitLife, VerificationLife: d.VerificationLife, DeviceLife: d.DeviceLife, Skew: d.Skew, PollAfter: d.PollAfter,
		Anonymous: d.Anonymous, AnonymousLife: d.AnonymousLife, CallsPerSecond: 50, CallsAtOnce: 500,
	}
	c.Codes.Digits, c.Codes.Life, c.Codes.Attempts, c.Codes.Resend = 8, 30*time.Minute, 5, 60*time.Second
	return c
}

// Settings returns the rules of mobile devices. base is the address of the server, title the
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
	if c.CallsPerSecond <= 0 || c.CallsAtOnce < 1 {
		faults = append(faults, errors.New("devices: calls_per_second and calls_at_once: want more than 0"))
	}
	return faults
}

// Push names the services that reach mobile devices. Each is for the devices
// whose OsType it lists.
type Push struct {
	// Firebase Cloud Messaging.
	FCM struct {
		// JSON file of a service account that may send. Empty: none.
		ServiceAccountFile string `yaml:"service_account_file"`
		OSTypes            []int  `yaml:"os_types"` // default [2]
		Endpoint           string `yaml:"endpoint"` // of a relay; empty: the service itself
	} `yaml:"fcm"`
	// Apple Push Notification service.
	APNs struct {
		// The .p8 file of the signing key. Empty: none.
		KeyFile  string `yaml:"key_file"`
		KeyID    string `yaml:"key_id"`
		TeamID   string `yaml:"team_id"`
		Topic    string `yaml:"topic"`    // bundle identifier of the application
		OSTypes  []int  `yaml:"os_types"` // default [1]
		Endpoint string `yaml:"endpoint"` // such as https://api.sandbox.push.apple.com; empty: the service itself
	} `yaml:"apns"`
	// An address of one's own that reaches devices in another way, by requests signed
	// as Standard Webhooks are. It is for all devices that no other service is for.
	Webhook struct {
		URL        string `yaml:"url"`         // empty: none
		SecretFile string `yaml:"secret_file"` // whsec_ and Base64
	} `yaml:"webhook"`
	// Authorities (PEM) that their certificates lead to. Empty: those of the system.
	AuthoritiesFile string `yaml:"authorities_file"`
}

func defaultPush() (c Push) {
	c.FCM.OSTypes, c.APNs.OSTypes = []int{2}, []int{1}
	return c
}

// Configured reports whether a push service is set.
func (c Push) Configured() bool {
	return c.FCM.ServiceAccountFile != "" || c.APNs.KeyFile != "" || c.Webhook.URL != ""
}
