// SPDX-License-Identifier: Apache-2.0

package pfx

import "testing"

// BenchmarkIteration measures one iteration of a derivation of one block. All functions need
// about the same time, one or two microseconds, so the budget of a file counts them alike.
func BenchmarkIteration(b *testing.B) {
	for _, row := range prfs {
		b.Run(row.oid.String(), func(b *testing.B) {
			for b.Loop() {
				if _, err := stretch(row.new, "пароль", []byte("salt"), 1000, 20); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/iteration")
		})
	}
}
