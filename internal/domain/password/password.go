// SPDX-License-Identifier: Apache-2.0

// Package password hashes, checks and generates the passwords of users.
//
// Hashes are Argon2id. A hash takes tens of milliseconds and much memory, so all hashes
// share a memory budget and callers wait in a queue. Begin with [New], [Hasher.Encode]
// and [Hasher.Begin].
//
// The package does not store passwords, does not know users and does not count failed
// attempts.
package password

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"
)

// Cost is the work of one Argon2id derivation (RFC 9106).
type Cost struct {
	MemoryKiB uint32 // at least 8 KiB for each lane
	Passes    uint32
	Lanes     uint8
}

// DefaultCost is the smallest setting that OWASP's Password Storage Cheat Sheet
// recommends. A derivation takes about 35 ms on one core.
var DefaultCost = Cost{MemoryKiB: 19 * 1024, Passes: 2, Lanes: 1}

// Limits of passwords. A shorter password can be guessed before the lock-out begins. A
// longer one only costs time.
const (
	MinLength = 8   // characters
	MaxLength = 256 // characters
)

// Limits of a stored hash. One row of the database must not be able to stop the service.
const (
	maxMemoryKiB = 1 << 20 // 1 GiB
	maxPasses    = 64
	maxLanes     = 32
	maxEncoded   = 512 // bytes

	saltLength = 16 // bytes
	hashLength = 32 // bytes
)

// ErrEncoding is the error for a malformed stored password. It does not quote the value,
// which must be kept secret like the password.
var ErrEncoding = errors.New("password: invalid stored password: want $argon2id$v=19$m=,t=,p=$salt$hash within bounds")

// Hasher hashes and checks passwords. All derivations share its memory budget.
type Hasher struct {
	cost      Cost
	budgetKiB int64
	queue     *queue
	rand      io.Reader
	dummy     encoded // compared with the password of a user without a stored one
}

// New returns a hasher that gives new passwords this cost. All derivations at one time
// use at most budgetKiB of memory. Others wait in a queue with these limits.
func New(cost Cost, budgetKiB int64, limits Limits, rand io.Reader) (*Hasher, error) {
	if err := errors.Join(cost.check(budgetKiB), limits.check()); err != nil {
		return nil, err
	}
	p := &Hasher{cost: cost, budgetKiB: budgetKiB, queue: newQueue(limits, budgetKiB, int64(cost.MemoryKiB)), rand: rand}
	p.dummy = encoded{cost: cost, salt: make([]byte, saltLength), hash: make([]byte, hashLength)}
	return p, nil
}

func (c Cost) check(budgetKiB int64) error {
	switch {
	case c.Lanes < 1 || c.Lanes > maxLanes:
		return fmt.Errorf("password: cost: lanes: want 1 to %d", maxLanes)
	case c.Passes < 1 || c.Passes > maxPasses:
		return fmt.Errorf("password: cost: passes: want 1 to %d", maxPasses)
	case c.MemoryKiB < 8*uint32(c.Lanes) || c.MemoryKiB > maxMemoryKiB:
		return fmt.Errorf("password: cost: memory: want %d to %d KiB", 8*uint32(c.Lanes), maxMemoryKiB)
	case int64(c.MemoryKiB) > budgetKiB:
		return fmt.Errorf("password: cost: one derivation takes %d KiB, want at most the budget of %d KiB", c.MemoryKiB, budgetKiB)
	}
	return nil
}

// encoded is a parsed stored password.
type encoded struct {
	cost       Cost
	salt, hash []byte
}

// parseEncoded reads $argon2id$v=19$m=M,t=T,p=P$salt$hash, with Base64 without padding.
// The error is ErrEncoding, also for a cost out of bounds.
func parseEncoded(s string, budgetKiB int64) (encoded, error) {
	if len(s) > maxEncoded {
		return encoded{}, ErrEncoding
	}
	part := strings.Split(s, "$")
	if len(part) != 6 || part[0] != "" || part[1] != "argon2id" || part[2] != "v=19" {
		return encoded{}, ErrEncoding
	}
	var number [3]uint64
	params := strings.Split(part[3], ",")
	if len(params) != len(number) {
		return encoded{}, ErrEncoding
	}
	for i, key := range []string{"m=", "t=", "p="} {
		digits, ok := strings.CutPrefix(params[i], key)
		n, err := strconv.ParseUint(digits, 10, 32)
		if !ok || err != nil {
			return encoded{}, ErrEncoding
		}
		number[i] = n
	}
	if number[2] > maxLanes {
		return encoded{}, ErrEncoding
	}
	e := encoded{cost: Cost{uint32(number[0]), uint32(number[1]), uint8(number[2])}}
	if e.cost.check(budgetKiB) != nil {
		return encoded{}, ErrEncoding
	}
	var err1, err2 error
	e.salt, err1 = base64.RawStdEncoding.Strict().DecodeString(part[4])
	e.hash, err2 = base64.RawStdEncoding.Strict().DecodeString(part[5])
	if err1 != nil || err2 != nil || len(e.salt) < 8 || len(e.salt) > 64 || len(e.hash) < 16 || len(e.hash) > 64 {
		return encoded{}, ErrEncoding
	}
	return e, nil
}

func (e encoded) String() string {
	b64 := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=19$m=%d,t=%d,p=%d$%s$%s", e.cost.MemoryKiB, e.cost.Passes, e.cost.Lanes, b64(e.salt), b64(e.hash))
}

// Encode hashes a password with a new salt and returns the form to store. It waits for
// memory as a trusted caller. The fault is too_many_requests.
func (p *Hasher) Encode(ctx context.Context, password string) (string, error) {
	e := encoded{cost: p.cost, salt: make([]byte, saltLength)}
	if _, err := io.ReadFull(p.rand, e.salt); err != nil {
		return "", fmt.Errorf("password: reading random bytes for a salt: %w", err)
	}
	release, err := p.admit(ctx, inside, e)
	if err != nil {
		return "", err
	}
	defer release()
	e.hash = e.derive(password, hashLength)
	return e.String(), nil
}

// Attempt is a check of one password. It holds memory until End.
type Attempt struct {
	stored encoded
	End    func() // releases the memory; call it once
}

// Begin waits for the memory to check a password against its stored form. Pass "" if the
// user is missing or has no password: the work is the same and no password matches. Refuse passwords longer than MaxLength before the call. The fault is
// too_many_requests.
func (p *Hasher) Begin(ctx context.Context, stored string) (Attempt, error) {
	e := p.dummy
	if stored != "" {
		var err error
		if e, err = parseEncoded(stored, p.budgetKiB); err != nil {
			return Attempt{}, err
		}
	}
	release, err := p.admit(ctx, VisitorOf(ctx), e)
	return Attempt{e, release}, err
}

// Matches reports whether the password is the stored one. The work is the same for a
// right and a wrong password.
func (a Attempt) Matches(password string) bool { return a.stored.matches(password) }

// admit waits for the memory of one derivation of e. The fault is too_many_requests.
func (p *Hasher) admit(ctx context.Context, v Visitor, e encoded) (release func(), err error) {
	return p.queue.admit(ctx, v, int64(e.cost.MemoryKiB))
}

// matches derives password with the cost and salt of e and compares in constant time.
// The caller holds the memory: see admit.
func (e encoded) matches(password string) bool {
	return subtle.ConstantTimeCompare(e.derive(password, len(e.hash)), e.hash) == 1
}

func (e encoded) derive(password string, length int) []byte {
	// NFC: keyboards differ in how they compose a letter, and the password is the same.
	typed := []byte(password)
	defer clear(typed)
	secret := norm.NFC.Bytes(typed)
	defer clear(secret)
	return argon2.IDKey(secret, e.salt, e.cost.Passes, e.cost.MemoryKiB, e.cost.Lanes, uint32(length))
}
