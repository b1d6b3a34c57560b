package point

import (
	"os"
	"testing"

	"tamga/gost/gosttest"
)

// Nothing in the assembly branches on a secret or looks one up.
func TestAssembly(t *testing.T) {
	if n := gosttest.Assembly(t, os.DirFS(".")); n < 60 {
		t.Errorf("%d routines were read, fewer than there are", n)
	}
}
