// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/rand"
	"hash"

	"tamga/gost/gost341194"
	"tamga/gost/streebog"

	"tamga/bench/engine"
	"tamga/bench/nettle"
)

var sizes = []struct {
	name  string
	bytes int
}{{"64 bytes", 64}, {"1 KiB", 1 << 10}, {"64 KiB", 64 << 10}, {"16 MiB", 16 << 20}}

func hashWorks() (all []work) {
	for _, h := range []struct {
		name, engine string
		ours         func() hash.Hash
		nettle       func(data []byte, rounds int) []byte
	}{
		{"Streebog-256", "md_gost12_256", streebog.New256, nettle.Streebog256},
		{"Streebog-512", "md_gost12_512", streebog.New512, nil},
		{"GOST R 34.11-94 CryptoPro", "md_gost94", gost341194.NewCryptoPro, nettle.CryptoPro94},
	} {
		for _, size := range sizes {
			data := random(size.bytes)
			running := h.ours()
			ours := func(n int) error {
				for range n {
					running.Reset()
					running.Write(data)
					running.Sum(nil)
				}
				return nil
			}
			name := h.name + ", " + size.name
			all = append(all, work{name, len(data), ours,
				func(n int) error { _, err := engine.Digest(h.engine, data, n); return err }})
			if h.nettle != nil {
				all = append(all, work{name + ", to nettle", len(data), ours,
					func(n int) error { h.nettle(data, n); return nil }})
			}
		}
	}
	for _, size := range sizes[1:3] {
		two := [][]byte{random(size.bytes), random(size.bytes)}
		all = append(all, work{"Streebog-256, two messages of " + size.name, 2 * size.bytes,
			func(n int) error {
				for range n {
					streebog.SumMany256(two)
				}
				return nil
			},
			func(n int) error { _, err := engine.Digest("md_gost12_256", two[0], 2*n); return err }})
	}
	return all
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b)
	return b
}
