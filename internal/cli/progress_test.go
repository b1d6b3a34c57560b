// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"
)

func TestProgress(t *testing.T) {
	now := time.Unix(0, 0)
	var out bytes.Buffer
	p := &Progress{w: &out, now: func() time.Time { return now }}
	shown := func(want string) {
		t.Helper()
		if out.String() != want {
			t.Errorf("shown %q, want %q", out.String(), want)
		}
		out.Reset()
	}
	p.Stage("sending", 4096)
	r := p.Reader(strings.NewReader(strings.Repeat("x", 4096)))
	io.CopyN(io.Discard, r, 1024)
	shown("") // no line before the first refresh
	now = now.Add(refresh)
	io.CopyN(io.Discard, r, 1024)
	shown("\rsending 50% of 4.0 KiB")
	io.CopyN(io.Discard, r, 1024)
	shown("")
	p.Stage("receiving", -1)
	shown("\rreceiving 0 bytes     ")
	now = now.Add(refresh)
	p.Add(3 << 20)
	shown("\rreceiving 3.0 MiB")
	p.Clear()
	shown("\r                 \r")
	p.Clear()
	shown("")

	var none *Progress // without a terminal
	none.Stage("sending", 1)
	none.Add(1)
	none.Clear()
	if r := strings.NewReader(""); none.Reader(r) != io.Reader(r) {
		t.Error("a nil Progress wrapped the reader")
	}
	if NewProgress(&Console{Stderr: &out}) != nil || IsTerminal(&out) {
		t.Error("a buffer was taken for a terminal")
	}
}
