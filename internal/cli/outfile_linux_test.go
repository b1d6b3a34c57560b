// SPDX-License-Identifier: Apache-2.0

package cli

import "testing"

// TestOutfileUnnamed: an unfinished file has no name, so a process that is killed leaves nothing, also where it replaces
// another file.
func TestOutfileUnnamed(t *testing.T) {
	dir := t.TempDir()
	if f := createUnnamed(dir, 0o600); f == nil {
		t.Skip("the file system of the tests has no files without a name")
	} else {
		f.Close()
	}
	if err := writeOut(t, dir+"/a", "one", false); err != nil {
		t.Fatal(err)
	}
	for _, force := range []bool{false, true} {
		target := dir + "/b"
		if force {
			target = dir + "/a"
		}
		o, err := CreatePrivateOutfile(target, force)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Write([]byte("plaintext")); err != nil {
			t.Fatal(err)
		}
		if names := listing(t, dir); len(names) != 1 || names[0] != "a" {
			t.Errorf("force %t: the unfinished file has a name among %q", force, names)
		}
		o.Discard()
	}
}
