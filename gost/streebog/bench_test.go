// SPDX-License-Identifier: Apache-2.0

package streebog

import "testing"

func BenchmarkStreebog(b *testing.B) {
	for _, hash := range []struct {
		name string
		new  func() *digest
	}{
		{"256", func() *digest { return newDigest(Size256) }},
		{"512", func() *digest { return newDigest(Size512) }},
	} {
		for _, size := range []struct {
			name  string
			bytes int
		}{{"64B", 64}, {"1KiB", 1 << 10}, {"16MiB", 16 << 20}} {
			b.Run(hash.name+"/"+size.name, func(b *testing.B) {
				d, p := hash.new(), make([]byte, size.bytes)
				var sum [Size512]byte
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
}
