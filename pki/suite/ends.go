// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"fmt"
	"strings"
	"time"
)

// End is a row of the table of algorithms and the day on which they end: from then on a signature or a digest by the
// algorithm proves something only if it is proved to have existed before.
type End struct {
	// Name names the row in settings.
	Name string
	// Since is the end by itself, zero if the algorithm has none yet. Source says where the day is from.
	Since  time.Time
	Source string

	suite  *Suite // whose keys and signatures end, with the hashes
	hashes []*Hash
	// short is the least length of a key that does not end, in bits.
	short int
	keys  func(k *Key) (bits int, of bool)
}

func day(year int, month time.Month, day int) time.Time {
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// ends is the table. Rows without an end are for settings.
var ends = []End{
	{Name: "MD5", Since: day(2004, 8, 1), Source: "the first public collision", hashes: []*Hash{MD5}},
	{Name: "SHA-1", Since: day(2014, 1, 1), Source: "NIST SP 800-131A; the first public collision is of 2017", hashes: []*Hash{SHA1}},
	{Name: "SHA-224", hashes: []*Hash{SHA224, SHA3x224}},
	{Name: "RSA-1024", Since: day(2014, 1, 1), Source: "NIST SP 800-131A", short: minRSABits, keys: rsaBits},
	{Name: "RSA-2048", short: 3072, keys: rsaBits},
	{Name: "ECDSA-224", short: 256, keys: func(k *Key) (int, bool) {
		p, of := k.Public.(*ecdsa.PublicKey)
		if !of {
			return 0, false
		}
		return p.Curve.Params().BitSize, true
	}},
	{Name: "GOST R 34.10-2001", suite: GOST2001, hashes: []*Hash{GOST94}},
}

func rsaBits(k *Key) (int, bool) {
	p, of := k.Public.(*rsa.PublicKey)
	if !of {
		return 0, false
	}
	return p.N.BitLen(), true
}

// Ends are ends of algorithms by a setting, by the names of rows of the table that have none by themselves. nil is the
// table alone.
type Ends map[string]time.Time

// ParseEnds reads a setting: a list of NAME=YYYY-MM-DD, the first day on which the algorithm proves nothing.
func ParseEnds(list []string) (Ends, error) {
	e := Ends{}
	for _, text := range list {
		name, date, _ := strings.Cut(text, "=")
		name = strings.TrimSpace(name)
		at, err := time.Parse(time.DateOnly, strings.TrimSpace(date))
		if err != nil {
			return nil, fmt.Errorf("%q: want NAME=YYYY-MM-DD", text)
		}
		var names []string
		for _, row := range ends {
			if row.Since.IsZero() {
				names = append(names, row.Name)
			}
			if row.Since.IsZero() && strings.EqualFold(row.Name, name) {
				name, names = row.Name, nil
				break
			}
		}
		if names != nil {
			return nil, fmt.Errorf("%q: the algorithms whose end can be set are %s", text, strings.Join(names, ", "))
		}
		e[name] = at
	}
	return e, nil
}

func (e Ends) of(row *End, what string) Weakness {
	if row.Since.IsZero() {
		return Weakness{what, e[row.Name]}
	}
	return Weakness{what, row.Since}
}

// earlier returns the weakness that begins first.
func earlier(a, b Weakness) Weakness {
	if a.Since.IsZero() || !b.Since.IsZero() && b.Since.Before(a.Since) {
		return b
	}
	return a
}

// Hash returns the weakness of a digest. One without an end has the zero Since.
func (e Ends) Hash(h *Hash) (w Weakness) {
	for i := range ends {
		for _, of := range ends[i].hashes {
			if of == h {
				w = earlier(w, e.of(&ends[i], h.Name))
			}
		}
	}
	return w
}

// Key returns the weakness of a key.
func (e Ends) Key(k Key) (w Weakness) {
	for i := range ends {
		row := &ends[i]
		ended := row.suite != nil && k.Suite == row.suite
		if row.keys != nil {
			bits, of := row.keys(&k)
			ended = of && bits < row.short
		}
		if ended {
			w = earlier(w, e.of(row, k.Name()))
		}
	}
	return w
}

// Scheme returns the weakness of a scheme: that of its digest, or of the keys that it is for.
func (e Ends) Scheme(s *Scheme) Weakness {
	w := e.Hash(s.Hash)
	for i := range ends {
		if row := &ends[i]; row.suite != nil && s.suite == row.suite {
			w = earlier(w, e.of(row, s.Name))
		}
	}
	return w
}

// Weak reports whether a digest has an end by itself: nothing new is made with it.
func (h *Hash) Weak() bool { return !Ends(nil).Hash(h).Since.IsZero() }

// Weakness is a reason why signatures prove nothing from a moment on: a digest with known collisions, a key that is too
// short, or an algorithm whose end a setting has. The zero value means no weakness.
type Weakness struct {
	What  string // "SHA-1", "RSA of 1024 bits"
	Since time.Time
}

// At reports whether the weakness exists at time t.
func (w Weakness) At(t time.Time) bool { return !w.Since.IsZero() && !t.Before(w.Since) }
