// SPDX-License-Identifier: Apache-2.0

package gost341194

import "testing"

func BenchmarkGOST341194(b *testing.B) {
	for _, size := range []struct {
		name  string
		bytes int
	}{{"64B", 64}, {"1KiB", 1 << 10}, {"16MiB", 16 << 20}} {
		b.Run(size.name, func(b *testing.B) {
			d, p := NewCryptoPro(), make([]byte, size.bytes)
			var sum [Size]byte
			b.SetBytes(int64(size.bytes))
			b.ReportAllocs()
			for b.Loop() {
				d.Reset()
				d.Write(p)
				d.Sum(sum[:0])
			}
		})
	}
}
