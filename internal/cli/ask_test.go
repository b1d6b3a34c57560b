// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cli

import (
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDialog checks answers, proposals, questions that are asked again, and the end of the input.
func TestDialog(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	person, terminal := os.NewFile(uintptr(pair[0]), "person"), os.NewFile(uintptr(pair[1]), "terminal")
	defer person.Close()
	if _, err := io.WriteString(person, "  given \n\nperhaps\nNo\n\n"); err != nil {
		t.Fatal(err)
	}
	if err := unix.Shutdown(pair[0], unix.SHUT_WR); err != nil {
		t.Fatal(err)
	}
	c := &Console{Context: t.Context(), Secrets: func() (*os.File, error) { return terminal, nil }}
	d, err := c.OpenDialog()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"given", "proposed"} {
		if got, err := d.Ask("Name", "proposed"); err != nil || got != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	for _, want := range []bool{false, true} { // "perhaps" is no answer
		if got, err := d.Confirm("Sure?", true); err != nil || got != want {
			t.Errorf("%t, %v, want %t", got, err, want)
		}
	}
	if _, err := d.Ask("More", ""); err == nil {
		t.Error("an answer after the end of the input")
	}
	d.Close()
	shown, err := io.ReadAll(person)
	if err != nil || strings.Count(string(shown), "Sure? [yes]: ") != 3 || !strings.HasPrefix(string(shown), "Name [proposed]: ") {
		t.Errorf("%q, %v", shown, err)
	}
	if _, err := (&Console{Context: t.Context()}).OpenDialog(); err == nil {
		t.Error("a dialog without a terminal")
	}
}
