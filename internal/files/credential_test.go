// SPDX-License-Identifier: Apache-2.0

package files

import (
	"os"
	"path/filepath"
	"testing"
)

// TestCredential checks that a secret of the service manager comes before the file that the configuration
// names, and that only such a secret may be readable by a group.
func TestCredential(t *testing.T) {
	given, own := t.TempDir(), t.TempDir()
	write := func(dir, name, text string, mode os.FileMode) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write(given, "a.key", "given\n", 0o440)
	write(given, "secrets_b.key", "of a directory\n", 0o440)
	for _, name := range []string{"a.key", "b.key", "c.key"} {
		write(own, name, "own\n", 0o600)
	}
	for _, c := range []struct{ dir, name, want string }{
		{"", "a.key", "own"},
		{given, "a.key", "given"},
		{given + "/", "a.key", "given"},
		{given, "b.key", "of a directory"},
		{given, "c.key", "own"},
	} {
		t.Setenv(credentials, c.dir)
		got, err := OwnSecret(Credential(filepath.Join(own, c.name)), "a secret")
		if err != nil || got != c.want {
			t.Errorf("%s with %q: got %q, %v", c.name, c.dir, got, err)
		}
	}
	// Secrets of a reload are newer. Their directory has no right of its own: others may not read them.
	later := t.TempDir()
	write(later, "a.key", "later\n", 0o400)
	t.Setenv(credentials, given)
	t.Setenv(refreshed, later)
	for name, want := range map[string]string{"a.key": "later", "b.key": "of a directory", "c.key": "own"} {
		if got, err := OwnSecret(Credential(filepath.Join(own, name)), "a secret"); err != nil || got != want {
			t.Errorf("%s after a reload: got %q, %v", name, got, err)
		}
	}
	if err := os.Chmod(filepath.Join(later, "a.key"), 0o444); err != nil {
		t.Fatal(err)
	}
	if _, err := OwnSecret(Credential(filepath.Join(own, "a.key")), "a secret"); err == nil {
		t.Error("a secret of a reload that others can read was accepted")
	}
	t.Setenv(refreshed, "")
	t.Setenv(credentials, own)
	if _, err := OwnSecret(filepath.Join(given, "a.key"), "a secret"); err == nil {
		t.Error("a file that others can read was accepted from outside of the directory of credentials")
	}
	if _, err := OwnFile(filepath.Join(given, "a.key"), "a key"); err == nil {
		t.Error("a key that others can read was accepted from outside of the directory of credentials")
	}
}
