// SPDX-License-Identifier: Apache-2.0

package pfx_test

import (
	"testing"

	"tamga/pki/pfx"
	"tamga/pki/suite"
)

// BenchmarkFile writes and reads a file with the iterations of new files.
func BenchmarkFile(b *testing.B) {
	for name, c := range ciphers {
		bundle := bundle(b, suite.GOST2012x256, 0)
		data, err := pfx.Create(seeded(1), bundle, "пароль", pfx.Options{Cipher: c})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name+"/parse", func(b *testing.B) {
			for b.Loop() {
				if _, err := pfx.Parse(data, "пароль"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
