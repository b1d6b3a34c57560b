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
	"tamga/internal/domain/oath/stock"
	"tamga/internal/domain/session"
)

// Codes name a token and prove that it is at hand.
type Codes struct {
	Serial    string
	FirstOTP  string
	SecondOTP string // the code after the first; "" for none
}

// SetToken makes a token of the stock the user's, in the place of another one, which
// goes back. The user's own token may be named too. The codes prove that the token is
// the one that is meant; two in a row also find out how far its clock or counter has
// run. Faults: user_not_found, invalid_parameters, key_not_found for a serial number
// that is not in stock (or somebody else's), invalid_confirmation_code,
// max_attempts_exceeded, wrong_operation for a token that has expired.
func (s *Service) SetToken(ctx context.Context, who audit.Principal, userID string, t Codes) error {
	if strings.TrimSpace(t.Serial) == "" || t.FirstOTP == "" {
		return fault.New(fault.InvalidParameters, "Serial and FirstOtp: want the serial number of a token and a code that it shows")
	}
	// Out of reach nothing is counted: the budget is not for others to use up.
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
	return s.change(ctx, who, userID, func(ctx context.Context) error {
		if err := s.release(ctx, userID, p.row.Key); err != nil {
			return err
		}
		if err := s.accept(ctx, p, userID, s.now()); err != nil || r.UserID == userID {
			return err
		}
		return s.sessions.MethodChanged(ctx, userID, Method)
	})
}

// SyncToken finds by two codes in a row how far the clock or counter of the user's token
// has run. A serial number that is given has to be its. Faults: user_not_found,
// invalid_parameters, key_not_found without a token, invalid_confirmation_code,
// max_attempts_exceeded, wrong_operation for a token that has expired.
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
		return errCode().With(errors.New("auth: the token was taken from the user meanwhile"))
	}
	return s.change(ctx, who, userID, func(ctx context.Context) error {
		return s.accept(ctx, p, userID, p.row.AssignedAt)
	})
}

// tokenOf is the token of a user. The fault is key_not_found.
func (s *Service) tokenOf(ctx context.Context, userID string) (Record, error) {
	r, found, err := s.store.OathTokenOf(ctx, userID)
	if err == nil && !found {
		err = fault.New(fault.KeyNotFound, "the user has no token")
	}
	return r, err
}

// Token tells of the user's token. Faults: user_not_found, key_not_found without one.
func (s *Service) Token(ctx context.Context, who audit.Principal, userID string) (Token, error) {
	if err := s.reach.Reach(ctx, who, userID); err != nil {
		return Token{}, err
	}
	r, err := s.tokenOf(ctx, userID)
	if err != nil {
		return Token{}, err
	}
	// A token that was moved here behind our back is not to be shown as the user's.
	record, err := s.openToken(r)
	if err != nil {
		return Token{}, err
	}
	record.wipe()
	return r.describe(), nil
}

// RemoveToken takes the token from a user: one of the stock goes back, one of an app is
// deleted. The method stays, so that losing a token does not lose the second step; until
// another one is assigned the step cannot be done. Wrong codes that were counted against
// the token do not hinder it. Faults: user_not_found, key_not_found without one.
func (s *Service) RemoveToken(ctx context.Context, who audit.Principal, userID string) error {
	return s.change(ctx, who, userID, func(ctx context.Context) error {
		if _, err := s.tokenOf(ctx, userID); err != nil {
			return err
		}
		if err := s.release(ctx, userID, ""); err != nil {
			return err
		}
		return s.sessions.MethodChanged(ctx, userID, Method)
	})
}

// release takes the token from a user in the transaction of ctx, unless it is the one to
// stay. A token whose record does not open is let go as it is: it is of no use, but it
// must not stand in the way.
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
		record.UserID = "" // the record is sealed anew, so that the old one makes nobody's token this user's
		after, err = s.sealToken(r.Key, record)
		record.wipe()
		if err != nil {
			return err
		}
	}
	return deleted(s.store.ReleaseOathToken(ctx, r.Key, r.Sealed, after))
}

// AppData sets up an app that makes one-time passwords. It is told once.
type AppData struct {
	QR     []byte // GIF
	URI    string // otpauth://totp/...
	Secret string // Base32 without padding
	Serial string
	Type   Type
}

// Format prints no secret whatever the verb.
func (a AppData) Format(s fmt.State, _ rune) { io.WriteString(s, "oath.AppData") }

// CreateAppToken makes a secret for an app and makes it the user's token, in the place
// of another one. The fault is user_not_found.
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
			return AppData{}, fmt.Errorf("auth: making a token: %w", err)
		}
	}
	encoding := base32.StdEncoding.WithPadding(base32.NoPadding)
	data = AppData{Secret: encoding.EncodeToString(record.Secret), Serial: "APP-" + encoding.EncodeToString(number), Type: TOTP}
	// The label is made beforehand: painting takes longer than others should wait for.
	if err := s.reach.Reach(ctx, who, userID); err != nil {
		return AppData{}, err
	}
	name, _, err := s.store.SignInName(ctx, userID)
	if errors.Is(err, session.ErrNotFound) {
		err = fault.New(fault.UserNotFound, "User not found").With(err)
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
	err = s.change(ctx, who, userID, func(ctx context.Context) error {
		if err := s.release(ctx, userID, ""); err != nil {
			return err
		}
		added, err := s.store.AddOathToken(ctx, r)
		if err == nil && !added {
			err = errors.New("auth: making a token: its serial number is taken")
		}
		if err != nil {
			return err
		}
		return s.sessions.MethodChanged(ctx, userID, Method)
	})
	if err != nil {
		return AppData{}, err
	}
	return data, nil
}

// longest parts of a label in characters: the whole has to go into a QR code.
const (
	maxLabelIssuer = 40
	maxLabelName   = 80
)

// uri is the address that apps know a token by.
func (o Settings) uri(name, secret string) string {
	// A colon divides the parts of the label, so neither part has one.
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
