// Package password hashes, checks and generates the passwords of users.
//
// Hashes are Argon2id. A hash costs tens of milliseconds and much memory, so all hashes
// share a budget and callers wait in a queue. Begin with [New], [Hasher.Encode] and
// [Hasher.Begin].
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
	MemoryKiB uint32 // 8 KiB a lane at least
	Passes    uint32
	Lanes     uint8
}

// DefaultCost is the smallest setting that OWASP's password storage
// sheet recommends: about 35 ms on one core.
var DefaultCost = Cost{MemoryKiB: 19 * 1024, Passes: 2, Lanes: 1}

// Limits of passwords. A shorter password can be guessed by luck before the lock-out
// begins. A longer one only costs time.
const (
	MinLength = 8   // characters
	MaxLength = 256 // characters
)

// Bounds on what a stored hash may ask for. Whoever can write the database must
// not be able to stop the service with one row.
const (
	maxMemoryKiB = 1 << 20 // 1 GiB
	maxPasses    = 64
	maxLanes     = 32
	maxEncoded   = 512

	saltLength = 16
	hashLength = 32
)

// ErrEncoding is the error for a stored password that is malformed. It does not quote
// the value, which is as good as a secret.
var ErrEncoding = errors.New("auth: stored password: want $argon2id$v=19$m=,t=,p=$salt$hash within bounds")

// Hasher derives and compares. It holds the memory that all derivations
// together may use.
type Hasher struct {
	cost      Cost
	budgetKiB int64
	queue     *queue
	rand      io.Reader
	dummy     encoded // compared against when there is no user
}

// New makes a hasher for new passwords of the given cost. All
// derivations at one time use at most budgetKiB of memory; more wait as limits
// has it.
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
		return fmt.Errorf("auth: password cost: lanes: want 1 to %d", maxLanes)
	case c.Passes < 1 || c.Passes > maxPasses:
		return fmt.Errorf("auth: password cost: passes: want 1 to %d", maxPasses)
	case c.MemoryKiB < 8*uint32(c.Lanes) || c.MemoryKiB > maxMemoryKiB:
		return fmt.Errorf("auth: password cost: memory: want %d to %d KiB", 8*uint32(c.Lanes), maxMemoryKiB)
	case int64(c.MemoryKiB) > budgetKiB:
		return fmt.Errorf("auth: password cost: one derivation takes %d KiB, want at most the budget of %d KiB", c.MemoryKiB, budgetKiB)
	}
	return nil
}

// encoded is a parsed stored password.
type encoded struct {
	cost       Cost
	salt, hash []byte
}

// parseEncoded reads $argon2id$v=19$m=M,t=T,p=P$salt$hash with Base64 without
// padding, and refuses costs out of bounds.
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

// Encode derives the form of a password that is stored.
func (p *Hasher) Encode(ctx context.Context, password string) (string, error) {
	e := encoded{cost: p.cost, salt: make([]byte, saltLength)}
	if _, err := io.ReadFull(p.rand, e.salt); err != nil {
		return "", fmt.Errorf("auth: making a salt: %w", err)
	}
	release, err := p.admit(ctx, inside, e)
	if err != nil {
		return "", err
	}
	defer release()
	e.hash = e.derive(password, hashLength)
	return e.String(), nil
}

// Attempt is one password that is about to be checked. It holds memory until End.
type Attempt struct {
	stored encoded
	End    func() // gives the memory back
}

// Begin waits for the memory to check a password against its stored form. For a user
// without a password, or without a user, pass "": the work is the same and no password
// matches. Refuse too long passwords (MaxLength) before. The fault is too_many_requests.
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

// Matches reports whether the password is the stored one. It does the same work in
// every case.
func (a Attempt) Matches(password string) bool { return a.stored.matches(password) }

// admit waits for the memory that one derivation of e takes. The fault is
// too_many_requests.
func (p *Hasher) admit(ctx context.Context, v Visitor, e encoded) (release func(), err error) {
	return p.queue.admit(ctx, v, int64(e.cost.MemoryKiB))
}

// matches derives password the way e was made and compares in constant time.
// The caller holds the memory (admit).
func (e encoded) matches(password string) bool {
	return subtle.ConstantTimeCompare(e.derive(password, len(e.hash)), e.hash) == 1
}

func (e encoded) derive(password string, length int) []byte {
	// Composed, so that one password typed on two keyboards is one password.
	typed := []byte(password)
	defer clear(typed)
	secret := norm.NFC.Bytes(typed)
	defer clear(secret)
	return argon2.IDKey(secret, e.salt, e.cost.Passes, e.cost.MemoryKiB, e.cost.Lanes, uint32(length))
}
