package main

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
	p := &progress{w: &out, now: func() time.Time { return now }}
	shown := func(want string) {
		t.Helper()
		if out.String() != want {
			t.Errorf("shown %q, want %q", out.String(), want)
		}
		out.Reset()
	}
	p.stage("sending", 4096)
	r := p.reader(strings.NewReader(strings.Repeat("x", 4096)))
	io.CopyN(io.Discard, r, 1024)
	shown("") // what is quick leaves no trace
	now = now.Add(refresh)
	io.CopyN(io.Discard, r, 1024)
	shown("\rsending 50% of 4.0 KiB")
	io.CopyN(io.Discard, r, 1024)
	shown("")
	p.stage("receiving", -1)
	shown("\rreceiving 0 octets    ")
	now = now.Add(refresh)
	p.add(3 << 20)
	shown("\rreceiving 3.0 MiB ")
	p.clear()
	shown("\r                 \r")
	p.clear()
	shown("")

	var none *progress // what a pipe gets
	none.stage("sending", 1)
	none.add(1)
	none.clear()
	if r := strings.NewReader(""); none.reader(r) != io.Reader(r) {
		t.Error("nothing is counted, so nothing is wrapped")
	}
	if newProgress(&console{stderr: &out}) != nil || isTerminal(&out) {
		t.Error("a buffer is no terminal")
	}
}
