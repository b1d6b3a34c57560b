// SPDX-License-Identifier: Apache-2.0

package field

import (
	"os"
	"testing"

	"tamga/internal/gosttest"
)

// TestAssembly checks that no branch and no address in the assembly depends on a
// secret.
func TestAssembly(t *testing.T) {
	if n := gosttest.Assembly(t, os.DirFS(".")); n < 36 {
		t.Errorf("gosttest.Assembly found only %d routines", n)
	}
}
