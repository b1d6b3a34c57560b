// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSignedRelease signs sums with a key that minisign made, has minisign verify them, and changes what is signed.
func TestSignedRelease(t *testing.T) {
	minisign := installed(t, "minisign")
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	made := func(secret, public string) {
		t.Helper()
		output(t, minisign, "-G", "-W", "-p", path(public), "-s", path(secret)) // an encrypted key takes a gigabyte
	}
	made("release.key", "release.pub")
	made("other.key", "other.pub")
	sums := write(t, path("SHA256SUMS"), strings.Repeat("00", 32)+"  tamga_1.2.3_amd64.deb\n")
	if err := run([]string{"sign", path("release.pub"), sums, "tamga 1.2.3"}, nil); err == nil {
		t.Error("signed with a public key")
	}
	if err := run([]string{"sign", path("release.key"), sums, "tamga 1.2.3\nuntrusted"}, nil); err == nil {
		t.Error("signed a comment of two lines")
	}
	if err := run([]string{"sign", path("release.key"), sums, "tamga 1.2.3, commit abc"}, nil); err != nil {
		t.Fatal(err)
	}
	check := func(name, public string, want bool) {
		t.Helper()
		out, err := exec.Command(minisign, "-V", "-m", sums, "-p", path(public)).CombinedOutput()
		if (err == nil) != want || want && !strings.Contains(string(out), "tamga 1.2.3, commit abc") {
			t.Errorf("%s: minisign: %v\n%s", name, err, out)
		}
		if err := run([]string{"verify", path(public), sums}, nil); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	check("as made", "release.pub", true)
	check("another key", "other.pub", false)
	signature, err := os.ReadFile(signatureOf(sums))
	if err != nil {
		t.Fatal(err)
	}
	write(t, signatureOf(sums), strings.Replace(string(signature), "1.2.3", "1.2.4", 1))
	check("another version in the comment", "release.pub", false)
	write(t, signatureOf(sums), string(signature))
	write(t, sums, strings.Repeat("01", 32)+"  tamga_1.2.3_amd64.deb\n")
	check("other sums", "release.pub", false)
}
