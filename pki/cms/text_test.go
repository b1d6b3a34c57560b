// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"
)

// wide returns a text in UTF-16 with a byte order mark or without.
func wide(text string, mark, bigEndian bool) string {
	var out []byte
	if mark {
		text = "\ufeff" + text
	}
	for _, c := range utf16.Encode([]rune(text)) {
		pair := []byte{byte(c), byte(c >> 8)}
		if bigEndian {
			pair[0], pair[1] = pair[1], pair[0]
		}
		out = append(out, pair...)
	}
	return string(out)
}

// texts returns the text forms of a message.
func texts(message []byte) map[string]struct {
	form TextForm
	text string
} {
	code := base64.StdEncoding.EncodeToString(message)
	block := string(pem.EncodeToMemory(&pem.Block{Type: "CMS", Bytes: message}))
	lines := strings.ReplaceAll(block[strings.Index(block, "\n")+1:strings.LastIndex(block, "-----END")], "\n", "\r\n")
	return map[string]struct {
		form TextForm
		text string
	}{
		"bytes":                {NoText, string(message)},
		"PEM":                  {PEM, block},
		"PEM with a comment":   {PEM, "From: Anna\n\n" + block + block},
		"PEM of Windows":       {PEM, "\xef\xbb\xbf" + strings.ReplaceAll(block, "\n", "\r\n")},
		"Base64":               {Base64, code},
		"Base64 in lines":      {Base64, "\r\n" + lines},
		"quoted":               {QuotedBase64, ` "` + code + "\" \n"},
		"quoted with escapes":  {QuotedBase64, `"` + strings.ReplaceAll(strings.ReplaceAll(code, "/", `\/`), "+", `\u002B`) + `"`},
		"S/MIME":               {SMIME, "MIME-Version: 1.0\r\nContent-Type: application/x-pkcs7-mime;\r\n smime-type=enveloped-data\r\n\r\n" + lines},
		"UTF-16":               {UTF16, wide(block, true, false)},
		"UTF-16, big endian":   {UTF16, wide(code, true, true)},
		"Base64 in UTF-16":     {UTF16, wide(lines, true, false)},
		"UTF-16 without mark":  {UTF16, wide(block, false, true)},
		"UTF-16 with a remark": {UTF16, wide("Сообщение\n"+block, true, false)},
	}
}

// decodeAll decodes a text until it is none.
func decodeAll(text []byte) ([]byte, error) {
	for range 2 {
		form := TextFormOf(text[:min(len(text), TextHead)])
		if form == NoText {
			break
		}
		var out bytes.Buffer
		n, err := form.Decode(&out, bytes.NewReader(text))
		if err != nil {
			return nil, err
		}
		if n != int64(out.Len()) {
			return nil, fmt.Errorf("%d bytes are said to be %d", out.Len(), n)
		}
		text = out.Bytes()
	}
	return text, nil
}

func TestTexts(t *testing.T) {
	for _, size := range []int{100, 200_000} { // within one buffer, and over some
		message := append([]byte{0x30, 0x80}, bytes.Repeat([]byte{0, 0xfb, 0xff, 7, 62}, size/5)...)
		for name, c := range texts(message) {
			if form := TextFormOf([]byte(c.text[:min(len(c.text), TextHead)])); form != c.form {
				t.Errorf("%s of %d bytes: form %d", name, size, form)
			}
			if got, err := decodeAll([]byte(c.text)); err != nil || !bytes.Equal(got, message) {
				t.Errorf("%s of %d bytes: %d bytes, %v", name, size, len(got), err)
			}
		}
	}
}

// TestBrokenTexts: a text that is cut or damaged is an error, and errors of the reader and the writer stay what they are.
func TestBrokenTexts(t *testing.T) {
	message := append([]byte{0x30, 0x80}, bytes.Repeat([]byte{0xfb, 0xff, 7}, 100)...)
	for name, c := range texts(message) {
		if c.form == NoText || c.form == UTF16 {
			continue
		}
		at := strings.Index(c.text, "MIAA") + strings.Index(c.text, "MID7") + 1 + 100
		for what, text := range map[string]string{
			"damaged": c.text[:at] + "!" + c.text[at+1:],
			"cut":     c.text[:at] + strings.Repeat("A", (at+1)%4),
			"longer":  c.text[:at] + "=" + c.text[at+1:],
		} {
			if what == "cut" && c.form != PEM && c.form != QuotedBase64 { // they have no end
				continue
			}
			if _, err := c.form.Decode(io.Discard, strings.NewReader(text)); !errors.Is(err, ErrText) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
		failure := errors.New("the storage is away")
		if _, err := c.form.Decode(io.Discard, io.MultiReader(strings.NewReader(c.text[:at]), iotest.ErrReader(failure))); !errors.Is(err, failure) {
			t.Errorf("%s: the error of the reader is %v", name, err)
		}
		out, in := io.Pipe()
		out.CloseWithError(failure)
		if _, err := c.form.Decode(in, strings.NewReader(c.text)); !errors.Is(err, failure) {
			t.Errorf("%s: the error of the writer is %v", name, err)
		}
	}
	for _, text := range []string{`"QUJD" "`, `"QU\nJD"`, `"QU\u0431D"`, `"QU\u00`, `"QUJD\`} {
		if _, err := QuotedBase64.Decode(io.Discard, strings.NewReader(text)); !errors.Is(err, ErrText) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, c := range texts([]byte("0\x80 a message that is long enough for the forms that are found by their length")) {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := decodeAll(text)
		if err != nil && !errors.Is(err, ErrText) {
			t.Error(err)
		}
		if len(got) > len(text) {
			t.Errorf("%d bytes of %d", len(got), len(text))
		}
	})
}
