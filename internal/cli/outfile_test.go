// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// listing returns the names in a directory.
func listing(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func writeOut(t *testing.T, target, text string, force bool) error {
	t.Helper()
	o, err := CreateOutfile(target, force)
	if err != nil {
		return err
	}
	defer o.Discard()
	if _, err := o.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return o.Commit()
}

// TestOutfile writes files without a name until they are complete, where the system has them, and with a temporary one.
func TestOutfile(t *testing.T) {
	t.Run("unnamed", testOutfile)
	named(t)
	t.Run("named", testOutfile)
}

// named makes files have temporary names, as on systems that have no others.
func named(t *testing.T) {
	t.Cleanup(func() { unnamed = createUnnamed })
	unnamed = func(string, fs.FileMode) *os.File { return nil }
}

func testOutfile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	content := func() string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if err := writeOut(t, path, "one", false); err != nil || content() != "one" {
		t.Fatal(err, content())
	}
	if err := writeOut(t, path, "two", false); err == nil || content() != "one" {
		t.Error("a file was overwritten without force", err, content())
	}
	if err := writeOut(t, path, "two", true); err != nil || content() != "two" {
		t.Error(err, content())
	}
	// A symbolic link still names the file, and the file is the new one.
	link := filepath.Join(dir, "link")
	if err := os.Symlink("a", link); err != nil {
		t.Fatal(err)
	}
	if err := writeOut(t, link, "three", true); err != nil || content() != "three" {
		t.Error(err, content())
	}
	if to, err := os.Readlink(link); err != nil || to != "a" {
		t.Error("the link was replaced", to, err)
	}
	if err := writeOut(t, dir, "x", true); err == nil {
		t.Error("a directory was overwritten")
	}
	if diff := cmp.Diff([]string{"a", "link"}, listing(t, dir)); diff != "" {
		t.Error(diff)
	}
}

// TestOutfileThatAppears checks that Commit keeps a file that another program made after CreateOutfile.
func TestOutfileThatAppears(t *testing.T) {
	t.Run("unnamed", testOutfileThatAppears)
	named(t)
	t.Run("named", testOutfileThatAppears)
}

func testOutfileThatAppears(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	o, err := CreateOutfile(path, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := o.Commit(); err == nil {
		t.Error("the file was overwritten")
	}
	o.Discard()
	if b, _ := os.ReadFile(path); string(b) != "theirs" {
		t.Errorf("the file has %q", b)
	}
	if diff := cmp.Diff([]string{"a"}, listing(t, dir)); diff != "" {
		t.Error(diff)
	}
}

// TestOutfileToADevice checks that a device is written to and not replaced.
func TestOutfileToADevice(t *testing.T) {
	if err := writeOut(t, os.DevNull, "x", false); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode()&os.ModeDevice == 0 {
		t.Error("the device was replaced")
	}
}

// A file that takes the place of another one has its mode, and a file that was changed meanwhile is not replaced.
func TestReplacement(t *testing.T) {
	path := filepath.Join(t.TempDir(), "signed")
	for _, mode := range []fs.FileMode{0o600, 0o640, 0o644} {
		if err := os.WriteFile(path, []byte("before"), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		before, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, changed := range []bool{true, false} {
			if changed {
				if err := os.WriteFile(path, []byte("changed by another program"), 0); err != nil {
					t.Fatal(err)
				}
			}
			o, err := CreateReplacement(path, before)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := o.Write([]byte("after")); err != nil {
				t.Fatal(err)
			}
			err = o.Commit()
			o.Discard()
			content, _ := os.ReadFile(path)
			if changed {
				if err == nil || string(content) != "changed by another program" {
					t.Errorf("%v: a changed file was replaced: %v, %q", mode, err, content)
				}
				if before, err = os.Stat(path); err != nil {
					t.Fatal(err)
				}
				continue
			}
			info, statErr := os.Stat(path)
			if err != nil || statErr != nil || info.Mode() != mode || string(content) != "after" {
				t.Errorf("%v: %v %v %v %q", mode, err, statErr, info.Mode(), content)
			}
		}
	}
}
