// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/cipher"

	"tamga/gost/gost28147"
	"tamga/gost/kuznyechik"
	"tamga/gost/magma"
	"tamga/gost/mode"

	"tamga/bench/engine"
)

func cipherWorks() ([]work, error) {
	key, iv := random(32), random(16)
	iv[0] &= 0x7f // MGM ignores this bit
	data := make([]byte, 1<<20, 1<<20+mode.MGMTagSize)
	kuz, err := kuznyechik.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := mode.NewMGM(kuz)
	if err != nil {
		return nil, err
	}
	mag, err := magma.NewCipher(key)
	if err != nil {
		return nil, err
	}
	theirs := func(name string, passes int) func(n int) error {
		return func(n int) error { return engine.Encrypt(name, key, iv, data, passes*n) }
	}
	stream := func(start func() (cipher.Stream, error)) func(n int) error {
		return func(n int) error {
			for range n {
				s, err := start()
				if err != nil {
					return err
				}
				s.XORKeyStream(data, data)
			}
			return nil
		}
	}
	return []work{
		{"Kuznyechik CTR, 1 MiB", len(data), stream(func() (cipher.Stream, error) { return mode.NewCTR(kuz, iv[:8]) }), theirs("kuznyechik-ctr", 1)},
		{"Magma CTR, 1 MiB", len(data), stream(func() (cipher.Stream, error) { return mode.NewCTR(mag, iv[:4]) }), theirs("magma-ctr", 1)},
		{"Kuznyechik MGM, 1 MiB, to two passes of engine's CTR", len(data), func(n int) error {
			for range n {
				aead.Seal(data[:0], iv, data, nil)
			}
			return nil
		}, theirs("kuznyechik-ctr", 2)},
		{"GOST 28147-89 CNT, 1 MiB", len(data), stream(func() (cipher.Stream, error) {
			return gost28147.NewCNT(key, iv[:8], gost28147.SBoxZ, gost28147.NoMeshing)
		}), theirs("gost89-cnt-12", 1)},
	}, nil
}
