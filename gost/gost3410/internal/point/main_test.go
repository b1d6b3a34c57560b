// SPDX-License-Identifier: Apache-2.0

package point

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"tamga/gost/gost3410/internal/impl"
)

// TestMain runs all tests once with every implementation of the arithmetic. Benchmarks
// and fuzz tests run with the best implementation that the processor supports.
func TestMain(m *testing.M) {
	flag.Parse()
	for _, name := range []string{"test.bench", "test.fuzz"} {
		if flag.Lookup(name).Value.String() != "" {
			os.Exit(m.Run())
		}
	}
	code := 0
	impl.Each(func(name string) {
		if c := m.Run(); c != 0 {
			fmt.Fprintf(os.Stderr, "these tests failed with the implementation %s\n", name)
			code = c
		}
	})
	os.Exit(code)
}
