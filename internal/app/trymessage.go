// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/device"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/web/pages/operator"
)

// TryMessage sends a test message at once. to is an address, a phone number, or the login of a person for a channel to devices:
// then each device and browser of the person gets a message through its push service. actor is the operator who wants it, "" at
// the command line.
func (b *Base) TryMessage(ctx context.Context, channel notify.Channel, to, actor string) ([]notify.Trial, error) {
	userID := ""
	switch channel.Info().To {
	case notify.ToAddresses, notify.ToNumbers:
		if b.Captured != nil {
			return nil, fault.New(fault.WrongOperation, "messages.capture is on: messages are shown and not sent")
		}
		kind := contact.Phone
		if channel.Info().To == notify.ToAddresses {
			kind = contact.Email
		}
		var err error
		if to, err = kind.New(to); err != nil {
			return nil, err
		}
	case notify.ToDevices:
		u, err := b.Users.ByLogin(ctx, to)
		if err != nil {
			return nil, err
		}
		userID = u.ID
	}
	list, err := b.Messages.Try(ctx, channel, to, userID, actor)
	for i := range list {
		if t, is := device.ParsePushTarget(list[i].To); is {
			list[i].To = targetName(t)
		}
	}
	return list, err
}

// targetName returns a device or a browser for people, without its address, which is a secret.
func targetName(t device.PushTarget) string {
	if t.Browser != "" {
		return "browser " + t.Browser
	}
	return fmt.Sprintf("device %s, OsType %d", t.Kid, t.OSType)
}

// checkProviders reaches what the installation needs in the network, as the doctor does.
func (s *Services) checkProviders(ctx context.Context) (facts []operator.Fact, err error) {
	list, err := s.Dependencies()
	if err != nil {
		return nil, err
	}
	CheckAll(ctx, list, func(d Dependency, err error) {
		f := operator.Fact{Key: providerWord(d.Part), Value: strings.TrimSpace(d.Name + " ✓")}
		if err != nil {
			f.Value, f.Bad = strings.TrimSpace(d.Name+" "+notify.OneLine(err.Error())), true
		}
		facts = append(facts, f)
	})
	slices.SortFunc(facts, func(a, b operator.Fact) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.Value, b.Value))
	})
	return facts, nil
}

// providerWord returns the key of the word for a part of the installation.
func providerWord(part string) string {
	if slices.Contains([]string{"mail", "sms", "push", "sign_in", "stamps", "revocation", "traces", directoryPart, auditExport}, part) {
		return "provider." + part
	}
	return "provider.other"
}

// tryMessage is TryMessage for the pages.
func (s *Services) tryMessage(ctx context.Context, who audit.Principal, channel notify.Channel, to string) (facts []operator.Fact, err error) {
	list, err := s.TryMessage(ctx, channel, to, who.UserID)
	for _, t := range list {
		facts = append(facts, operator.Fact{Key: "check.recipient", Value: t.To})
		if len(t.Answers) > 0 {
			facts = append(facts, operator.Fact{Key: "check.said", Value: strings.Join(t.Answers, "; ")})
		}
		taken := operator.Fact{Key: "check.taken", Value: "✓"}
		if t.Err != nil {
			taken.Value, taken.Failed, taken.Bad = "", notify.OneLine(t.Err.Error()), true
		}
		facts = append(facts, taken)
	}
	return facts, err
}
