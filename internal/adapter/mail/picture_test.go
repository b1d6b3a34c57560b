// SPDX-License-Identifier: Apache-2.0

package mail

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime"
	"mime/multipart"
	netmail "net/mail"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPicture checks that a picture is an attachment in addition to the text.
func TestPicture(t *testing.T) {
	s := start(t, &server{}, false, false)
	with := message
	with.Picture = append([]byte("GIF89a"), bytes.Repeat([]byte{0, 1, 0xff, '\n', '.'}, 2000)...)
	if err := s.notifier(t, nil).Send(t.Context(), with); err != nil {
		t.Fatal(err)
	}
	m, err := netmail.ReadMessage(bytes.NewReader(s.received()[0].data))
	if err != nil {
		t.Fatal(err)
	}
	kind, parameters, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/mixed" {
		t.Fatalf("the mail is %s, %v", kind, err)
	}
	var kinds []string
	for parts := multipart.NewReader(m.Body, parameters["boundary"]); ; {
		part, err := parts.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		kind, _, err := mime.ParseMediaType(part.Header.Get("Content-Type"))
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, kind)
		if kind != "image/gif" {
			continue
		}
		if part.FileName() != "qr.gif" || part.Header.Get("Content-Transfer-Encoding") != "base64" {
			t.Errorf("the picture is %v", part.Header)
		}
		got, err := io.ReadAll(base64.NewDecoder(base64.StdEncoding, part))
		if err != nil || !bytes.Equal(got, with.Picture) {
			t.Errorf("the picture has %d bytes, %v; want %d", len(got), err, len(with.Picture))
		}
	}
	if d := cmp.Diff([]string{"text/plain", "image/gif"}, kinds); d != "" {
		t.Error(d)
	}
}
