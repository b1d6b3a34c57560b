// SPDX-License-Identifier: Apache-2.0

// Package stock reads what manufacturers of one-time password tokens deliver with them:
// the secrets, as a PSKC container (RFC 6030), plain or encrypted, or as CSV.
//
// A file is hostile until it is read: its size, depth and number of tokens are bounded,
// it may not declare entities, and no error quotes a secret.
package stock

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"tamga/internal/domain/oath/otp"
)

// Bounds of files.
const (
	MaxFile   = 64 << 20 // bytes
	MaxTokens = 200_000  // of one file
	maxFaults = 20       // that are told of one file
)

// Token is one token of a file.
type Token struct {
	Serial    string // as printed on it
	Time      bool   // TOTP; otherwise HOTP
	Algorithm otp.Algorithm
	Digits    int
	Period    time.Duration // of TOTP, whole seconds
	Counter   int64         // of HOTP: the step of its next code
	Drift     int64         // of TOTP: the steps its clock is ahead
	Secret    []byte
	NotBefore time.Time // zero: no such bound
	NotAfter  time.Time
}

// Bounds of tokens.
const (
	minPeriod = 10 * time.Second
	maxPeriod = 10 * time.Minute
	maxDrift  = 10_000 // steps
)

// DefaultPeriod is that of tokens that name none (RFC 6238, 5.2).
const DefaultPeriod = 30 * time.Second

// serials are printable without surprises in lists, tables and file names.
var serials = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9 ._:/-]{0,62}[A-Za-z0-9])?$`)

// ValidSerial reports whether a serial number is one: 1 to 64 letters, digits and,
// inside, spaces and ._:/-.
func ValidSerial(serial string) bool { return serials.MatchString(serial) }

// Wipe overwrites the secrets of tokens.
func Wipe(list []Token) {
	for _, t := range list {
		clear(t.Secret)
	}
}

// check says what is wrong with a token, nil for nothing.
func (t Token) check() error {
	if !ValidSerial(t.Serial) {
		return errors.New("serial number: want 1 to 64 letters, digits and, inside, spaces and ._:/-")
	}
	if _, err := otp.New(t.Algorithm, t.Digits, t.Secret); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "otp: "))
	}
	switch {
	case t.Time && (t.Period < minPeriod || t.Period > maxPeriod || t.Period%time.Second != 0):
		return errors.New("period: want 10 to 600 s")
	case t.Time && (t.Drift < -maxDrift || t.Drift > maxDrift):
		return fmt.Errorf("drift: want at most %d steps either way", maxDrift)
	case !t.Time && (t.Counter < 0 || t.Counter >= otp.MaxStep/2):
		return errors.New("counter: want 0 or more")
	case !t.NotBefore.IsZero() && !t.NotAfter.IsZero() && !t.NotBefore.Before(t.NotAfter):
		return errors.New("it expires before it is valid")
	}
	return nil
}

// collector gathers tokens and what is wrong with others.
type collector struct {
	list   []Token
	seen   map[string]bool
	faults []error
	more   int
}

// add takes a token read at a place of the file.
func (c *collector) add(t Token, err error, place string) error {
	if err == nil {
		err = t.check()
	}
	key := Key(t.Serial)
	if err == nil && c.seen[key] {
		err = errors.New("the serial number is given twice in the file")
	}
	if err != nil {
		clear(t.Secret)
		if len(c.faults) == maxFaults {
			c.more++
			return nil
		}
		if ValidSerial(t.Serial) {
			place += " (" + t.Serial + ")"
		}
		c.faults = append(c.faults, fmt.Errorf("%s: %w", place, err))
		return nil
	}
	if len(c.list) == MaxTokens {
		return fmt.Errorf("stock: more than %d tokens: split the file", MaxTokens)
	}
	if c.seen == nil {
		c.seen = map[string]bool{}
	}
	c.seen[key] = true
	c.list = append(c.list, t)
	return nil
}

// result are the tokens, or everything that is wrong: a file is taken whole or not.
func (c *collector) result() ([]Token, error) {
	if len(c.faults) == 0 && len(c.list) == 0 {
		return nil, errors.New("stock: the file holds no tokens")
	}
	if len(c.faults) == 0 {
		return c.list, nil
	}
	Wipe(c.list)
	if c.more > 0 {
		c.faults = append(c.faults, fmt.Errorf("and %d more", c.more))
	}
	return nil, fmt.Errorf("stock: %w", errors.Join(c.faults...))
}

// Key is the form of a serial number that decides what is one token: letter case does
// not count.
func Key(serial string) string { return strings.ToLower(strings.TrimSpace(serial)) }
