// SPDX-License-Identifier: Apache-2.0

package oath

import (
	"context"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/oath/stock"
	"tamga/internal/domain/reach"
	"tamga/internal/domain/session"
)

// Codes names a token and proves possession of it.
type Codes struct {
	Serial    string
	FirstOTP  string
	SecondOTP string // the next code after FirstOTP; "" for none
}

// SetToken assigns a token of the stock to a user. The user's previous token is released:
// see RemoveToken. The serial number may also be that of the user's present token. The
// codes prove possession of the token. Two codes in a row also measure how far its clock or
// counter has drifted.
//
// Faults: user_not_found, invalid_parameters, invalid_confirmation_code,
// max_attempts_exceeded; key_not_found for a token that is unknown or of another user;
// wrong_operation for a token that has expired or is not valid yet.
func (s *Service) SetToken(ctx context.Context, who audit.Principal, userID string, t Codes) error {
	if strings.TrimSpace(t.Serial) == "" || t.FirstOTP == "" {
		return fault.New(fault.InvalidParameters, "Serial and FirstOtp: want the serial number of a token and a code that it shows")
	}
	// Before tryCode counts: an operator without reach must not lock the token.
	if err := s.reach.Reach(ctx, who, userID); err != nil {
		return err
	}
	r, found, err := s.store.OathToken(ctx, stock.Key(t.Serial))
	if err != nil {
		return err
	}
	if !found || r.UserID != userID && (r.UserID != "" || r.App) {
		return errNoToken()
	}
	p, err := s.tryCode(ctx, r.Key, codes{t.FirstOTP, t.SecondOTP})
	if err != nil {
		return err
	}
	defer p.record.wipe()
	return s.changes.Run(ctx, who, userID, func(ctx context.Context) error {
		if err := s.release(ctx, userID, p.row.Key); err != nil {
			return err
		}
		if err := s.accept(ctx, p, userID, s.now()); err != nil || r.UserID == userID {
			return err
		}
		return s.added(ctx, who, userID)
	})
}

// SyncToken measures with two codes in a row how far the clock or counter of the user's
// token has drifted. The serial number may be empty, otherwise it must be the token's.
//
// Faults: user_not_found, invalid_parameters, invalid_confirmation_code,
// max_attempts_exceeded; key_not_found for a user without a token, or with another one;
// wrong_operation for a token that has expired or is not valid yet.
func (s *Service) SyncToken(ctx context.Context, who audit.Principal, userID string, t Codes) error {
	if t.FirstOTP == "" || t.SecondOTP == "" {
		return fault.New(fault.InvalidParameters, "FirstOtp and SecondOtp: want two codes in a row")
	}
	if err := s.reach.Reach(ctx, who, userID); err != nil {
		return err
	}
	r, err := s.tokenOf(ctx, userID)
	if err != nil {
		return err
	}
	if strings.TrimSpace(t.Serial) != "" && stock.Key(t.Serial) != r.Key {
		return fault.New(fault.KeyNotFound, "Serial: the user has another token")
	}
	p, err := s.tryCode(ctx, r.Key, codes{t.FirstOTP, t.SecondOTP})
	if err != nil {
		return err
	}
	defer p.record.wipe()
	if p.row.UserID != userID {
		return errCode().With(errors.New("oath: the token was removed from the user meanwhile"))
	}
	return s.changes.Run(ctx, who, userID, func(ctx context.Context) error {
		return s.accept(ctx, p, userID, p.row.AssignedAt)
	})
}

// tokenOf returns the token of a user. The fault is key_not_found.
func (s *Service) tokenOf(ctx context.Context, userID string) (Record, error) {
	r, found, err := s.store.OathTokenOf(ctx, userID)
	if err == nil && !found {
		err = fault.New(fault.KeyNotFound, "the user has no token")
	}
	return r, err
}

// Token returns the user's token. It also opens its sealed record, so a token whose row was
// changed outside of the program is an error. Faults: user_not_found, key_not_found for a
// user without a token.
func (s *Service) Token(ctx context.Context, who audit.Principal, userID string) (Token, error) {
	if err := s.reach.Reach(ctx, who, userID); err != nil {
		return Token{}, err
	}
	r, err := s.tokenOf(ctx, userID)
	if err != nil {
		return Token{}, err
	}
	// Do not show a token that was moved to the user in the database.
	record, err := s.openToken(r)
	if err != nil {
		return Token{}, err
	}
	record.wipe()
	return r.describe(), nil
}

// RemoveToken removes the token from a user. A token of the stock goes back there, and an
// app token is deleted. The user keeps the method, so a lost token does not remove the
// second step. The user cannot do the step until another token is assigned. A locked token
// can be removed too. Faults: user_not_found, key_not_found for a user without a token.
func (s *Service) RemoveToken(ctx context.Context, who audit.Principal, userID string) error {
	return s.changes.Run(ctx, who, userID, func(ctx context.Context) error {
		if _, err := s.tokenOf(ctx, userID); err != nil {
			return err
		}
		if err := s.release(ctx, userID, ""); err != nil {
			return err
		}
		return s.changed(ctx, who, userID)
	})
}

// changed ends what depends on the token that the user had, in the transaction of ctx.
func (s *Service) changed(ctx context.Context, who audit.Principal, userID string) error {
	if err := s.sessions.MethodChanged(ctx, userID, Method); err != nil {
		return err
	}
	return s.confirmations.CancelAll(ctx, who, userID, "the token for one-time passwords was changed")
}

// added is changed for a user who has another token now. The older contacts of the user are
// told.
func (s *Service) added(ctx context.Context, who audit.Principal, userID string) error {
	if err := s.changed(ctx, who, userID); err != nil {
		return err
	}
	return s.changes.Events.Emit(ctx, notify.Event{Type: notify.UserFactorChanged, UserID: userID, Actor: who.UserID, Factor: notify.FactorToken})
}

// release removes the token from a user in the transaction of ctx, unless its key is stays.
// A token whose record does not open is released too. It is useless, but it must not block
// a new token.
func (s *Service) release(ctx context.Context, userID, stays string) error {
	r, found, err := s.store.OathTokenOf(ctx, userID)
	if err != nil || !found || r.Key == stays {
		return err
	}
	if r.App {
		return deleted(s.store.DeleteOathToken(ctx, r.Key, r.Sealed))
	}
	after := r.Sealed
	if record, err := s.openToken(r); err == nil {
		record.UserID = "" // seal anew: the old record must not assign the token to this user again
		after, err = s.sealToken(r.Key, record)
		record.wipe()
		if err != nil {
			return err
		}
	}
	return deleted(s.store.ReleaseOathToken(ctx, r.Key, r.Sealed, after))
}

// AppData sets up an app that makes one-time passwords. It is returned once and not
// readable later.
type AppData struct {
	QR     []byte // GIF
	URI    string // otpauth://totp/...
	Secret string // Base32 without padding
	Serial string
	Type   Type
}

// Format keeps the secret out of every verb of package fmt.
func (a AppData) Format(s fmt.State, _ rune) { io.WriteString(s, "oath.AppData") }

// CreateAppToken makes a token with a random secret for an app and assigns it to the user.
// The user's previous token is released: see RemoveToken. The fault is user_not_found.
func (s *Service) CreateAppToken(ctx context.Context, who audit.Principal, userID string) (data AppData, err error) {
	o := s.settings
	record := &sealedToken{
		UserID: userID, Type: TOTP, App: true, Algorithm: o.AppAlgorithm, Digits: o.AppDigits, Period: int64(o.AppPeriod / time.Second),
		Secret: make([]byte, o.AppAlgorithm.Size()), Watermark: -1,
	}
	defer record.wipe()
	number := make([]byte, 10)
	for _, random := range [][]byte{record.Secret, number} {
		if _, err := io.ReadFull(s.rand, random); err != nil {
			return AppData{}, fmt.Errorf("oath: reading random bytes for a token: %w", err)
		}
	}
	encoding := base32.StdEncoding.WithPadding(base32.NoPadding)
	data = AppData{Secret: encoding.EncodeToString(record.Secret), Serial: "APP-" + encoding.EncodeToString(number), Type: TOTP}
	// Outside the transaction: painting the QR code is slow, and other writers wait.
	if err := s.reach.Reach(ctx, who, userID); err != nil {
		return AppData{}, err
	}
	name, _, err := s.store.SignInName(ctx, userID)
	if errors.Is(err, session.ErrNotFound) {
		err = fault.New(fault.UserNotFound, reach.NotFound).With(err)
	}
	if err != nil {
		return AppData{}, err
	}
	data.URI = o.uri(name, data.Secret)
	if data.QR, err = s.paint(data.URI); err != nil {
		return AppData{}, err
	}
	now := s.now().UTC().Truncate(time.Millisecond)
	r := Record{
		Key: stock.Key(data.Serial), Serial: data.Serial, UserID: userID, Type: TOTP, App: true, Watermark: -1, CreatedAt: now, AssignedAt: now,
	}
	if r.Sealed, err = s.sealToken(r.Key, record); err != nil {
		return AppData{}, err
	}
	err = s.changes.Run(ctx, who, userID, func(ctx context.Context) error {
		if err := s.release(ctx, userID, ""); err != nil {
			return err
		}
		added, err := s.store.AddOathToken(ctx, r)
		if err == nil && !added {
			err = errors.New("oath: the random serial number of a new token is taken")
		}
		if err != nil {
			return err
		}
		return s.added(ctx, who, userID)
	})
	if err != nil {
		return AppData{}, err
	}
	return data, nil
}

// Greatest lengths of the parts of a label in characters. The whole address must fit into a
// QR code.
const (
	maxLabelIssuer = 40
	maxLabelName   = 80
)

// uri returns the otpauth address that sets up an app.
func (o Settings) uri(name, secret string) string {
	// A colon separates the parts of the label, so the parts must not contain one.
	plain := func(text string, longest int) string {
		runes := []rune(strings.Map(func(r rune) rune {
			if r == ':' || r < ' ' {
				return ' '
			}
			return r
		}, text))
		return strings.TrimSpace(string(runes[:min(len(runes), longest)]))
	}
	escape := func(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }
	issuer := plain(o.Issuer, maxLabelIssuer)
	return "otpauth://totp/" + escape(issuer) + ":" + escape(plain(name, maxLabelName)) +
		"?secret=" + secret + "&issuer=" + escape(issuer) + "&algorithm=" + string(o.AppAlgorithm) +
		"&digits=" + strconv.Itoa(o.AppDigits) + "&period=" + strconv.Itoa(int(o.AppPeriod/time.Second))
}
