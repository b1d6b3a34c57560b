// SPDX-License-Identifier: Apache-2.0

package confirm

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
)

// byContact sends codes to the contact of a user that has the role for one-time codes.
type byContact struct {
	s    *Service
	kind contact.Kind
}

func newBySMS(s *Service) Method   { return byContact{s, contact.Phone} }
func newByEmail(s *Service) Method { return byContact{s, contact.Email} }

// Choices implements Method.
func (m byContact) Choices(ctx context.Context, userID string) ([]Choice, error) {
	if !slices.Contains(m.s.deps.Messages.Available(), m.kind.Channel) {
		return nil, nil
	}
	c, found, err := m.s.deps.Contacts.ForOneTime(ctx, userID, m.kind)
	if err != nil || !found {
		return nil, err
	}
	return []Choice{{Label: hidden(c.Value), to: c.Value}}, nil
}

// hidden returns a contact for the holder of the first factor, who need not know it: four
// characters of a phone number, the first character and the domain of an e-mail address.
func hidden(value string) string {
	if name, domain, is := strings.Cut(value, "@"); is {
		_, first := utf8.DecodeRuneInString(name)
		return name[:first] + "***@" + domain
	}
	if len(value) <= 4 {
		return "***"
	}
	return "***" + value[len(value)-4:]
}

// purpose binds the codes of a record. A repetition replaces the code before it.
func purpose(r *Record) string { return "confirmation " + r.ID }

// Begin implements Method.
func (m byContact) Begin(ctx context.Context, r *Record, f *what.Fields) error {
	normal, err := m.kind.Stored(r.Address)
	if err != nil {
		return err
	}
	code, expires, err := m.s.codes.Issue(ctx, r.UserID, purpose(r), m.kind, normal)
	if err != nil {
		return err
	}
	lang := m.s.settings.Language
	const nameLength = 60
	data := map[string]string{
		"Action": what.ActionName(r.Action, lang), "Documents": "", "Name": "", "Group": what.CheckNumber(r.Action, r.What),
		"Code": code, "Minutes": strconv.Itoa(int((m.s.settings.Codes.Life + time.Minute - 1) / time.Minute)),
	}
	if r.Action == what.Free { // the text says what is confirmed
		for _, v := range f.Arguments.List() {
			if v.Name == "scope" && v.Digest == nil {
				data["Action"] += ": " + what.Brief(v.Value, nameLength)
			}
		}
	}
	if len(f.Documents) > 0 {
		data["Documents"] = strconv.Itoa(len(f.Documents))
		data["Name"] = what.Brief(f.FirstName(lang), nameLength)
	}
	return m.s.deps.Messages.Order(ctx, notify.Direct{
		Channel: m.kind.Channel, To: r.Address, Template: notify.TemplateConfirmationCode, Lang: lang,
		Data: data, UserID: r.UserID, Actor: r.UserID, Expires: expires,
	})
}

// Check implements Method.
func (m byContact) Check(ctx context.Context, r *Record, answer string) error {
	normal, err := m.kind.Stored(r.Address)
	if err != nil {
		return err
	}
	err = m.s.codes.Spend(ctx, r.UserID, purpose(r), m.kind, normal, answer)
	if fault.Is(err, fault.MaxAttempts) {
		// The store of codes counts the same answers. Its limit is not above ours, so the
		// code is worth nothing any more.
		return fault.New(fault.InvalidCode, "the code is used up").With(err)
	}
	return err
}
