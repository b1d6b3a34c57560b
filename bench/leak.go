// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"tamga/gost/gost3410"
	"tamga/gost/streebog"
)

// The search for timing leaks follows "Dude, is my code constant time?" (Reparaz,
// Balasch, Verbauwhede, 2017). Calls with one fixed secret and calls with changing
// secrets are mixed at random. Welch's t shows how likely it is that both take the same
// time. The changing secrets are also compared with each other by their lowest bit,
// because a step that runs only for odd secrets shows only half in the comparison with
// a fixed secret.

// limit is the |t| from which on two times count as different.
const limit = 4.5

// A subject is an operation to search for leaks.
type subject struct {
	name string
	// fresh returns a new secret.
	fresh func() []byte
	// ready returns the call to time, with the given secret. Its own work is not timed.
	ready func(secret []byte) func()
}

// leakSets are the sets to search: each form of prime, each kind of curve and, for VKO,
// each way to multiply a point other than the base point. Signatures are timed only for
// sets where at most one nonce in 2^32 is out of range. To draw a nonce again takes time
// but says nothing about the nonce in use, and this test cannot distinguish it from a
// leak.
var leakSets = []struct {
	set  *gost3410.Set
	sign bool
	vko  bool
}{
	{gost3410.CryptoProA, true, true},
	{gost3410.CryptoProB, false, false},
	{gost3410.CryptoProC, false, false},
	{gost3410.TC26256A, false, true},
	{gost3410.TC26512A, true, true},
	{gost3410.TC26512B, false, false},
	{gost3410.TC26512C, false, true},
}

// feed is a random source that returns prepared bytes.
type feed struct{ bytes []byte }

func (f *feed) Read(p []byte) (int, error) {
	n := copy(p, f.bytes)
	f.bytes = f.bytes[n:]
	return n, nil
}

func subjects() (all []subject) {
	for _, s := range leakSets {
		size := s.set.Size()
		scalar := func() []byte {
			key, err := gost3410.GenerateKey(s.set, nil)
			if err != nil {
				panic(err)
			}
			return key.Bytes()
		}
		digest := random(size)
		all = append(all, subject{"generate " + s.set.Name(), scalar, func(secret []byte) func() {
			source := &feed{slices.Clone(secret)}
			return func() {
				key, err := gost3410.GenerateKey(s.set, source)
				if err != nil || key.PublicKey() == nil {
					panic("GenerateKey does not accept a key in range")
				}
			}
		}})
		if s.vko {
			peer, err := gost3410.GenerateKey(s.set, nil)
			if err != nil {
				panic(err)
			}
			all = append(all, subject{"VKO " + s.set.Name(), scalar, func(secret []byte) func() {
				key, err := gost3410.NewPrivateKey(s.set, secret)
				if err != nil {
					panic(err)
				}
				return func() {
					if _, err := key.VKO(peer.PublicKey(), ukm, streebog.New256); err != nil {
						panic(err)
					}
				}
			}})
		}
		if !s.sign {
			continue
		}
		// A secret is a key, followed by the bytes of the random source for 8 signatures.
		both := func() []byte { return append(scalar(), random(8*size)...) }
		all = append(all, subject{"sign " + s.set.Name(), both, func(secret []byte) func() {
			key, err := gost3410.NewPrivateKey(s.set, secret[:size])
			if err != nil {
				panic(err)
			}
			source := &feed{slices.Clone(secret[size:])}
			return func() {
				if _, err := key.Sign(source, digest, nil); err != nil {
					panic(err)
				}
			}
		}}, subject{"sign eight at a time " + s.set.Name(), both, func(secret []byte) func() {
			items := make([]gost3410.SignItem, batch)
			for i := range items {
				key, err := gost3410.NewPrivateKey(s.set, secret[:size])
				if err != nil {
					panic(err)
				}
				items[i] = gost3410.SignItem{Key: key, Digest: digest}
			}
			source := &feed{slices.Clone(secret[size:])}
			return func() {
				if _, err := gost3410.SignMany(source, items); err != nil {
					panic(err)
				}
			}
		}})
	}
	return all
}

// findLeaks times the given number of calls of each subject. It returns an error if the
// times of a subject differ in three attempts out of three. It takes seconds for a
// hundred thousand calls.
func findLeaks(calls int) error {
	runtime.LockOSThread()
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(400)
	var leaking []string
	for _, s := range subjects() {
		if !strings.Contains(s.name, *only) {
			continue
		}
		for attempt := 1; ; attempt++ {
			t, parity := welch(s, calls)
			fmt.Printf("%-60s %d calls, |t| = %.2f, by the lowest bit %.2f\n", s.name, calls, t, parity)
			if max(t, parity) < limit {
				break
			}
			if attempt == 3 {
				leaking = append(leaking, s.name)
				break
			}
		}
	}
	// Check that the method finds a leak of a fraction of a microsecond.
	if t, _ := welch(slow(), min(calls, 1_000_000)); t < limit {
		return fmt.Errorf("the deliberate leak was not found: |t| = %.2f; use more calls or a quieter machine", t)
	}
	if len(leaking) > 0 {
		return errors.New("execution time depends on secrets: " + fmt.Sprint(leaking))
	}
	return nil
}

// slow returns a subject with a deliberate leak: it generates a key and, if the first
// byte of the secret is odd, draws two more random bytes.
func slow() subject {
	s := subjects()[0]
	fresh, ready, first := s.fresh, s.ready, true
	s.fresh = func() []byte {
		secret := fresh()
		secret[0] &^= 1
		if first {
			secret[0] |= 1
		}
		first = false
		return secret
	}
	s.ready = func(secret []byte) func() {
		call, longer := ready(secret), int(secret[0]&1)*2
		return func() {
			call()
			for range longer {
				random(1)
			}
		}
	}
	return s
}

// The classes of calls.
const (
	fixed = iota // with the fixed secret
	even         // with a changing secret whose lowest bit is 0
	odd          // with a changing secret whose lowest bit is 1
)

// welch returns the largest |t| of a subject: t compares the fixed secret with changing
// ones, parity compares changing secrets by the lowest bit of their first byte. It uses
// all calls, and also only the calls below some percentiles of the time, which excludes
// interrupted calls.
func welch(s subject, calls int) (t, parity float64) {
	const together = 512
	one := s.fresh()
	many := make([][]byte, 4096)
	for i := range many {
		many[i] = s.fresh()
	}
	r := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	var cuts []float64
	var classes [6][3]moments
	for done := 0; done < calls+together; done += together {
		var class [together]int
		var call [together]func()
		for i := range call {
			secret := one
			if r.IntN(2) == 1 {
				secret = many[r.IntN(len(many))]
				class[i] = even + int(secret[0]&1)
			}
			call[i] = s.ready(slices.Clone(secret))
		}
		var took [together]float64
		for i, f := range call {
			start := time.Now()
			f()
			took[i] = float64(time.Since(start))
		}
		if done == 0 { // this round builds tables and determines the percentiles
			sorted := slices.Sorted(slices.Values(took[:]))
			for _, p := range []float64{0.5, 0.75, 0.9, 0.95, 0.99} {
				cuts = append(cuts, sorted[int(p*together)])
			}
			cuts = append(cuts, math.Inf(1))
			continue
		}
		for i, t := range took {
			for j, cut := range cuts {
				if t <= cut {
					classes[j][class[i]].add(t)
				}
			}
		}
	}
	for _, c := range classes {
		others := c[even].with(c[odd])
		t = max(t, c[fixed].distance(others))
		parity = max(parity, c[even].distance(c[odd]))
	}
	return t, parity
}

// moments are the mean and the variance of a growing sample (Welford).
type moments struct{ n, mean, squares float64 }

func (m *moments) add(x float64) {
	m.n++
	d := x - m.mean
	m.mean += d / m.n
	m.squares += d * (x - m.mean)
}

func (m moments) variance() float64 { return m.squares / (m.n - 1) }

// with returns the moments of both samples together (Chan, Golub, LeVeque).
func (m moments) with(o moments) moments {
	n := m.n + o.n
	if n == 0 {
		return m
	}
	d := o.mean - m.mean
	return moments{n, m.mean + d*o.n/n, m.squares + o.squares + d*d*m.n*o.n/n}
}

// distance returns Welch's |t| of two samples, or 0 if a sample is too small.
func (m moments) distance(o moments) float64 {
	if m.n <= 1000 || o.n <= 1000 {
		return 0
	}
	return math.Abs(m.mean-o.mean) / math.Sqrt(m.variance()/m.n+o.variance()/o.n)
}
