// SPDX-License-Identifier: Apache-2.0

package contact

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/vault"
)

// CodeSettings are the settings of one-time codes.
type CodeSettings struct {
	Digits   int           // decimal digits, 6 to 12
	Life     time.Duration // of a code
	Attempts int           // allowed for one code, wrong or right
	Resend   time.Duration // before another code may be sent for the same purpose and contact
}

func (s CodeSettings) check() error {
	var faults []error
	must := func(ok bool, text string) {
		if !ok {
			faults = append(faults, errors.New("contact: codes: "+text))
		}
	}
	must(s.Digits >= 6 && s.Digits <= 12, "digits: want 6 to 12")
	must(s.Life >= 30*time.Second && s.Life <= 24*time.Hour, "life: want 30s to 24h")
	must(s.Attempts >= 1 && s.Attempts <= 10, "attempts: want 1 to 10")
	must(s.Resend >= 0, "resend: want 0s or more")
	return errors.Join(faults...)
}

// Codes makes one-time codes and spends them. A code is valid for one user, one purpose
// and one contact. The store keeps an HMAC of the code under a sealed key of its own, so
// that neither reading the database nor moving its rows gives a code that works.
type Codes struct {
	settings CodeSettings
	store    CodeStore
	vault    notify.Sealer
	now      func() time.Time
	rand     io.Reader
}

// NewCodes checks the settings.
func NewCodes(s CodeSettings, store CodeStore, seal notify.Sealer, now func() time.Time, rand io.Reader) (*Codes, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	return &Codes{settings: s, store: store, vault: seal, now: now, rand: rand}, nil
}

// Issue makes a code in place of the previous one. The fault is too_many_requests before
// the resend time is over. It joins the transaction of ctx.
func (c *Codes) Issue(ctx context.Context, userID, purpose string, kind Kind, normal string) (code string, expires time.Time, err error) {
	if code, err = c.draw(); err != nil {
		return "", time.Time{}, err
	}
	key := make([]byte, sha256.Size)
	if _, err := io.ReadFull(c.rand, key); err != nil {
		return "", time.Time{}, fmt.Errorf("contact: drawing a key: %w", err)
	}
	defer clear(key)
	now := c.now().UTC().Truncate(time.Millisecond)
	record := Code{
		UserID: userID, Purpose: purpose, Type: kind.Type, Normal: normal,
		MAC:      codeMAC(key, userID, purpose, kind.Type, normal, code),
		IssuedAt: now, ExpiresAt: now.Add(c.settings.Life),
	}
	if record.Key, err = c.vault.Seal(codePlace(record), key); err != nil {
		return "", time.Time{}, err
	}
	stored, err := c.store.IssueCode(ctx, record, now.Add(-c.settings.Resend))
	if err == nil && !stored {
		err = fault.Newf(fault.TooManyRequests, "a code was sent a moment ago: another one can be sent %d s after it", int(c.settings.Resend/time.Second)).Until(c.settings.Resend)
	}
	return code, record.ExpiresAt, err
}

// Spend accepts a code once. Faults: invalid_confirmation_code, max_attempts_exceeded;
// both commit, since the attempt must be counted.
func (c *Codes) Spend(ctx context.Context, userID, purpose string, kind Kind, normal, code string) error {
	wrong := fault.New(fault.InvalidCode, "the code is wrong or its time is over: check it, or have another one sent")
	// Spaces around a code are not a wrong attempt.
	code = strings.TrimSpace(code)
	return c.store.Atomic(ctx, lock.User(userID), func(ctx context.Context) error {
		now := c.now()
		// Counted first, so that concurrent attempts share one budget.
		record, attempts, found, err := c.store.TryCode(ctx, userID, purpose, kind.Type, normal, now)
		if err != nil {
			return err
		}
		if !found {
			return wrong
		}
		if attempts > c.settings.Attempts {
			return fault.New(fault.MaxAttempts, "too many wrong codes: have another one sent")
		}
		key, err := c.vault.Open(codePlace(record), record.Key)
		if err != nil {
			return wrong.With(err)
		}
		defer clear(key)
		mac := codeMAC(key, userID, purpose, kind.Type, normal, code)
		if !hmac.Equal(mac, record.MAC) {
			return wrong
		}
		spent, err := c.store.SpendCode(ctx, userID, purpose, kind.Type, normal, mac, c.settings.Attempts, now)
		if err == nil && !spent {
			err = wrong
		}
		return err
	})
}

// draw returns a code of uniformly distributed digits.
func (c *Codes) draw() (string, error) {
	code := make([]byte, 0, c.settings.Digits)
	var b [16]byte
	for {
		if _, err := io.ReadFull(c.rand, b[:]); err != nil {
			return "", fmt.Errorf("contact: drawing a code: %w", err)
		}
		for _, x := range b {
			if x >= 250 { // 250 is the largest multiple of 10 in a byte
				continue
			}
			if code = append(code, '0'+x%10); len(code) == c.settings.Digits {
				return string(code), nil
			}
		}
	}
}

// minutes returns the life of a code in minutes, rounded up, for texts.
func (c *Codes) minutes() string {
	return strconv.Itoa(int((c.settings.Life + time.Minute - 1) / time.Minute))
}

func codePlace(c Code) vault.Place {
	return vault.Place{
		Purpose: "one-time code: " + c.Purpose, Table: "one_time_codes",
		Row: c.UserID + " " + string(c.Type) + " " + c.Normal, Column: "key",
	}
}

// codeMAC authenticates a code with its purpose, user and contact. Each part is preceded
// by its length, so that different parts never give the same bytes.
func codeMAC(key []byte, userID, purpose string, t Type, normal, code string) []byte {
	mac := hmac.New(sha256.New, key)
	for _, part := range []string{"tamga one-time code", purpose, userID, string(t), normal, code} {
		var length [4]byte
		binary.BigEndian.PutUint32(length[:], uint32(len(part)))
		mac.Write(length[:])
		io.WriteString(mac, part)
	}
	return mac.Sum(nil)
}
