// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/rand"
	"errors"
	"hash"
	"slices"

	"tamga/gost/gost3410"
	"tamga/gost/gost341194"
	"tamga/gost/streebog"

	"tamga/bench/engine"
)

var signatureSets = []struct {
	name string
	set  *gost3410.Set
	kind int
	text string // the name in the engine
	hash func() hash.Hash
}{
	{"2001 CryptoPro-A", gost3410.CryptoProA, engine.GOST2001, "A", gost341194.NewCryptoPro},
	{"2012-256 CryptoPro-A", gost3410.CryptoProA, engine.GOST2012256, "A", streebog.New256},
	{"2012-256 CryptoPro-B", gost3410.CryptoProB, engine.GOST2012256, "B", streebog.New256},
	{"2012-256 CryptoPro-C", gost3410.CryptoProC, engine.GOST2012256, "C", streebog.New256},
	{"2012-256 TC26 A", gost3410.TC26256A, engine.GOST2012256, "TCA", streebog.New256},
	{"2012-512 TC26 A", gost3410.TC26512A, engine.GOST2012512, "A", streebog.New512},
	{"2012-512 TC26 B", gost3410.TC26512B, engine.GOST2012512, "B", streebog.New512},
	{"2012-512 TC26 C", gost3410.TC26512C, engine.GOST2012512, "C", streebog.New512},
}

// ukm is the keying material of VKO. The engine takes eight bytes.
var ukm = []byte{0x1d, 0x80, 0x60, 0x3c, 0x85, 0x44, 0xc7, 0x27}

// batch is how many items are signed or verified at a time.
const batch = 8

var errRefused = errors.New("a valid signature does not verify")

func signatureWorks() ([]work, error) {
	kinds := map[string][]work{}
	for _, s := range signatureSets {
		peer, err := engine.Generate(s.kind, s.text)
		if err != nil {
			return nil, err
		}
		digest := random(s.set.Size())
		theirValue, err := peer.Sign(digest, 1)
		if err != nil {
			return nil, err
		}
		toSign := make([]gost3410.SignItem, batch)
		toVerify := make([]gost3410.VerifyItem, batch) // each with a key of its own
		ofKnown := make([]gost3410.VerifyItem, batch)  // all with one key that has a table
		for i := range toSign {
			key, err := gost3410.GenerateKey(s.set, nil)
			if err != nil {
				return nil, err
			}
			toSign[i] = gost3410.SignItem{Key: key, Digest: random(s.set.Size())}
			toVerify[i] = gost3410.VerifyItem{Key: key.PublicKey(), Digest: toSign[i].Digest}
			if toVerify[i].Signature, err = key.Sign(nil, toSign[i].Digest, nil); err != nil {
				return nil, err
			}
		}
		key, public := toSign[0].Key, toVerify[0].Key
		known, ourDigest, value := public.Precompute(), toSign[0].Digest, toVerify[0].Signature
		for i := range ofKnown {
			ofKnown[i] = gost3410.VerifyItem{Key: known, Digest: toSign[i].Digest}
			if ofKnown[i].Signature, err = key.Sign(nil, toSign[i].Digest, nil); err != nil {
				return nil, err
			}
		}
		theySign := func(n int) error { _, err := peer.Sign(digest, n); return err }
		theyVerify := func(n int) error { return peer.Verify(digest, theirValue, n) }
		add := func(what string, ours, theirs func(n int) error) {
			kinds[what] = append(kinds[what], work{name: what + " " + s.name, ours: ours, theirs: theirs})
		}
		add("sign", func(n int) error {
			for range n {
				if _, err := key.Sign(rand.Reader, ourDigest, nil); err != nil {
					return err
				}
			}
			return nil
		}, theySign)
		add("sign eight at a time", func(n int) error {
			for ; n > 0; n -= batch {
				if _, err := gost3410.SignMany(rand.Reader, toSign[:min(n, batch)]); err != nil {
					return err
				}
			}
			return nil
		}, theySign)
		add("verify", func(n int) error {
			for range n {
				if !public.Verify(ourDigest, value) {
					return errRefused
				}
			}
			return nil
		}, theyVerify)
		add("verify with a known key", func(n int) error {
			for range n {
				if !known.Verify(ourDigest, value) {
					return errRefused
				}
			}
			return nil
		}, theyVerify)
		add("verify eight at a time", func(n int) error {
			for ; n > 0; n -= batch {
				if slices.Contains(gost3410.VerifyMany(toVerify[:min(n, batch)]), false) {
					return errRefused
				}
			}
			return nil
		}, theyVerify)
		add("verify eight at a time with a known key", func(n int) error {
			for ; n > 0; n -= batch {
				if slices.Contains(gost3410.VerifyMany(ofKnown[:min(n, batch)]), false) {
					return errRefused
				}
			}
			return nil
		}, theyVerify)
		add("generate", func(n int) error {
			for range n {
				k, err := gost3410.GenerateKey(s.set, rand.Reader)
				if err != nil {
					return err
				}
				k.PublicKey() // the engine also computes the public key
			}
			return nil
		}, func(n int) error { return engine.GenerateMany(s.kind, s.text, n) })
		add("VKO", func(n int) error {
			for range n {
				if _, err := key.VKO(public, ukm, s.hash); err != nil {
					return err
				}
			}
			return nil
		}, func(n int) error { return peer.Derive(peer, ukm, n) })
	}
	return slices.Concat(kinds["sign"], kinds["sign eight at a time"], kinds["verify"], kinds["verify with a known key"],
		kinds["verify eight at a time"], kinds["verify eight at a time with a known key"], kinds["generate"], kinds["VKO"]), nil
}
