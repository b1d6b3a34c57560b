// SPDX-License-Identifier: Apache-2.0

package device

import (
	"context"
	"encoding/json"
	"strings"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
)

// Sources of push addresses.
const (
	SourceContacts = ""       // those listed among the contacts of the user
	SourceAll      = "All"    // these, and those that only the device has
	SourceTokens   = "Tokens" // those that devices told, listed or not
)

// PushFilter selects push addresses.
type PushFilter struct {
	Source     string // one of the sources, without regard to letter case
	ActiveOnly bool   // of devices that are Active
}

// PushAddress names a push address: that of one device or browser. SystemID and OSType are compared
// only if they are set.
type PushAddress struct {
	Address  string
	OSType   *int
	SystemID string
}

// PushContact is a push address with the device it belongs to.
type PushContact struct {
	Device
	SystemName string
	Source     string // SourceAll for one among the contacts, SourceTokens for one that only the device has
}

// PushAddresses lists the push addresses of a user's devices and browsers, the oldest device first, then the browsers.
// The fault is invalid_parameters for an unknown source.
func (s *Service) PushAddresses(ctx context.Context, who audit.Principal, userID string, f PushFilter) (list []PushContact, err error) {
	var keep func(p *Push) bool
	switch {
	case f.Source == SourceContacts:
		keep = func(p *Push) bool { return p.Listed }
	case strings.EqualFold(f.Source, SourceAll), strings.EqualFold(f.Source, SourceTokens):
		keep = func(*Push) bool { return true } // every address comes from a device
	default:
		return nil, fault.Newf(fault.InvalidParameters, "DataSource: want %s or %s, or nothing for the contacts", SourceAll, SourceTokens)
	}
	err = s.reading(ctx, who, userID, func(ctx context.Context) error {
		list = nil
		devices, err := s.devices(ctx, userID)
		if err != nil {
			return err
		}
		for _, d := range devices {
			if d.Push != nil && keep(d.Push) && (!f.ActiveOnly || d.Active(s.now())) {
				list = append(list, s.describePush(d))
			}
		}
		browsers, err := s.browsers.of(ctx, userID)
		if err != nil {
			return err
		}
		for i := range browsers {
			if keep(&browsers[i].Push) {
				list = append(list, s.describePush(browsers[i].contact(s.now())))
			}
		}
		return nil
	})
	return list, err
}

// RestorePush puts the push address of a device among the contacts again. The fault
// is invalid_contact_info when no device of the user has it.
func (s *Service) RestorePush(ctx context.Context, who audit.Principal, userID string, a PushAddress) (PushContact, error) {
	return s.changePush(ctx, who, userID, a, func(p *Push) error {
		p.Listed = true
		return nil
	})
}

// SetPushNotification starts or stops notifications to a push address. The fault is
// invalid_contact_info when the user has no such contact.
func (s *Service) SetPushNotification(ctx context.Context, who audit.Principal, userID string, a PushAddress, notification bool) (PushContact, error) {
	return s.changePush(ctx, who, userID, a, func(p *Push) error {
		if !p.Listed {
			return noPush()
		}
		p.Notification = notification
		return nil
	})
}

// DeletePush removes a push address from the contacts and returns it as it was. The
// device keeps the address, and [Service.RestorePush] restores it. The fault is
// invalid_contact_info when the user has no such contact.
func (s *Service) DeletePush(ctx context.Context, who audit.Principal, userID string, a PushAddress) (PushContact, error) {
	var was Push
	c, err := s.changePush(ctx, who, userID, a, func(p *Push) error {
		if !p.Listed {
			return noPush()
		}
		was = *p
		p.Listed, p.Notification = false, false
		return nil
	})
	if err != nil {
		return PushContact{}, err
	}
	c.Push = &was
	return s.describePush(c.Device), nil
}

func noPush() error {
	return fault.New(fault.InvalidContactInfo, "the user has no such push address: want Address, OsType and SystemId as they are listed")
}

// changePush changes one push address. A phone that was registered again appears as two
// devices with the same address. Then the later one is changed.
func (s *Service) changePush(ctx context.Context, who audit.Principal, userID string, a PushAddress, fn func(p *Push) error) (c PushContact, err error) {
	err = s.within(ctx, who, userID, func(ctx context.Context) error {
		records, err := s.deps.Devices.Devices(ctx, userID)
		if err != nil {
			return err
		}
		for i := len(records) - 1; i >= 0; i-- {
			d, err := s.read(records[i])
			if err != nil {
				return err
			}
			if !a.names(d.Push) {
				continue
			}
			if err := fn(d.Push); err != nil {
				return err
			}
			if err := s.change(ctx, records[i], d); err != nil {
				return err
			}
			c = s.describePush(d)
			return s.changed(ctx, who, userID)
		}
		if c, err = s.changeBrowser(ctx, userID, a, fn); err != nil {
			return err
		}
		return s.changed(ctx, who, userID)
	})
	return c, err
}

// changeBrowser is changePush for the push address of a browser.
func (s *Service) changeBrowser(ctx context.Context, userID string, a PushAddress, fn func(p *Push) error) (PushContact, error) {
	r, found, err := s.browsers.store.Browser(ctx, browserID(a.Address))
	if err != nil {
		return PushContact{}, err
	}
	if !found || r.UserID != userID {
		return PushContact{}, noPush()
	}
	b, err := s.browsers.read(r)
	if err != nil {
		return PushContact{}, err
	}
	if !a.names(&b.Push) {
		return PushContact{}, noPush()
	}
	if err := fn(&b.Push); err != nil {
		return PushContact{}, err
	}
	after, err := s.browsers.record(b)
	if err != nil {
		return PushContact{}, err
	}
	changed, err := s.browsers.store.ChangeBrowser(ctx, b.ID, r.Sealed, after.Sealed)
	if err == nil && !changed {
		err = fault.New(fault.Unavailable, "another request is changing the browser: try again")
	}
	return s.describePush(b.contact(s.now())), err
}

// names reports whether a names p.
func (a PushAddress) names(p *Push) bool {
	return p != nil && a.Address == p.Address && (a.OSType == nil || *a.OSType == p.OSType) &&
		(a.SystemID == "" || strings.EqualFold(a.SystemID, p.SystemID))
}

func (s *Service) describePush(d Device) PushContact {
	c := PushContact{Device: d, Source: SourceTokens}
	if d.Push.Listed {
		c.Source = SourceAll
	}
	if d.Push.OSType == OSTypeBrowser && d.Kid == "" { // it runs no mobile application
		return c
	}
	if system, known := s.system(d.Push.SystemID); known {
		c.SystemName = system.Name
	}
	return c
}

// PushTarget is the recipient of a push message, as the outbox stores it.
type PushTarget struct {
	Kid      string `json:"Kid"`
	Address  string `json:"Address"`
	OSType   int    `json:"OsType"`
	SystemID string `json:"SystemId"`
	// Browser identifies a browser, whose Address is only that of its push service. It is empty for a
	// device. See Addresses.Subscription.
	Browser string `json:"Browser,omitempty"`
}

// ParsePushTarget parses the text that [Addresses] returned.
func ParsePushTarget(text string) (PushTarget, bool) {
	var t PushTarget
	err := json.Unmarshal([]byte(text), &t)
	return t, err == nil && t.Address != ""
}
