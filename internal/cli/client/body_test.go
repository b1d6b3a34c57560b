// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestBodyAroundTheEdges sends documents with lengths near the borders of Base64 groups and of the
// chunks of the encoder.
func TestBodyAroundTheEdges(t *testing.T) {
	const chunk = 48 << 10
	for _, n := range []int{0, 1, 2, 3, 4, chunk - 1, chunk, chunk + 1, 2 * chunk, 2*chunk + 2} {
		content := bytes.Repeat([]byte("\x00\xfb\xff?"), n/4+1)[:n]
		for _, known := range []bool{true, false} {
			src := func(b []byte) source {
				if known {
					return source{bytes.NewReader(b), int64(len(b))}
				}
				return source{iotest.OneByteReader(bytes.NewReader(b)), -1}
			}
			original := src(content)
			r := &signRequest{content: src(content), original: &original, kind: "CAdES", parameters: map[string]string{"Hash": "False"}, certificate: "0"}
			body, size, err := r.body()
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(body)
			if err != nil {
				t.Fatal(err)
			}
			if want := map[bool]int64{true: int64(len(text)), false: -1}[known]; size != want {
				t.Errorf("%d bytes, length known %t: size %d, want %d", n, known, size, want)
			}
			var got struct {
				Content   []byte
				Signature struct{ Parameters map[string]string }
			}
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatalf("%d bytes: %v", n, err)
			}
			if !bytes.Equal(got.Content, content) || got.Signature.Parameters["OriginalDocument"] != base64.StdEncoding.EncodeToString(content) {
				t.Errorf("%d bytes arrived changed", n)
			}
		}
	}
}

// TestPINInBody checks that a PIN arrives unchanged and is cleared in memory after use.
func TestPINInBody(t *testing.T) {
	for _, pin := range []string{"", "1234", `a"b\c`, "\x01\t</script>&я\u2028😀", "\xff\xc3("} {
		r := &signRequest{kind: "CAdES", certificate: "7", pin: []byte(pin), content: source{strings.NewReader("x"), 1}}
		body, size, err := r.body()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(body)
		if err != nil || int64(len(text)) != size {
			t.Fatalf("%q: %d of %d bytes, %v", pin, len(text), size, err)
		}
		var got struct {
			Signature struct {
				Type, PinCode string
				CertificateID int64 `json:"CertificateId"`
			}
		}
		if err := json.Unmarshal(text, &got); err != nil || got.Signature.PinCode != strings.ToValidUTF8(strings.ReplaceAll(pin, "\xff\xc3(", "\ufffd\ufffd("), "?") ||
			got.Signature.Type != "CAdES" || got.Signature.CertificateID != 7 {
			t.Errorf("%q: %v %+v in %s", pin, err, got, text)
		}
		pinBytes, quoted := r.pin, r.quoted
		r.wipe()
		if strings.Trim(string(pinBytes)+string(quoted), "\x00") != "" {
			t.Errorf("%q is still in memory", pin)
		}
	}
}
