// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestCopyAnswer(t *testing.T) {
	const chunk = 48 << 10
	for _, n := range []int{0, 1, 2, 3, chunk - 1, chunk, chunk + 1, 3 * chunk} {
		value := bytes.Repeat([]byte("\xfb\xff\xfe?"), n/4+1)[:n]
		plain := `"` + base64.StdEncoding.EncodeToString(value) + `"`
		escaped := strings.NewReplacer("/", `\/`, "+", `\u002B`, "A", `\u0041`).Replace(plain)
		for _, text := range []string{plain, " \t\r\n" + plain + " \n", escaped} {
			for _, src := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text)), iotest.DataErrReader(strings.NewReader(text))} {
				var out bytes.Buffer
				got, err := CopyAnswer(&out, src)
				if err != nil || got != int64(n) || !bytes.Equal(out.Bytes(), value) {
					t.Errorf("%d bytes: %d decoded, %v", n, got, err)
				}
			}
		}
	}
	lost := errors.New("connection lost")
	for _, c := range []struct {
		text string
		want error
	}{
		{"", ErrAnswer}, {"null", ErrAnswer}, {`"`, ErrAnswer}, {`"QUJ`, ErrAnswer}, {`"QUJ"`, ErrAnswer}, {`"QUJD""`, ErrAnswer},
		{`"QUJD"x`, ErrAnswer}, {`"QQ==QQ=="`, ErrAnswer}, {`"QUJ\n"`, ErrAnswer}, {"\"QUJD\n\"", ErrAnswer}, {`"QUJ\u00`, ErrAnswer},
		{`"QUJ\u0444"`, ErrAnswer}, {`"QUJ\`, ErrAnswer}, {`"QQ=="` + "\x00", ErrAnswer}, {`"QR=="`, ErrAnswer}, {`"ЖЖ"`, ErrAnswer},
	} {
		if _, err := CopyAnswer(io.Discard, strings.NewReader(c.text)); !errors.Is(err, c.want) {
			t.Errorf("%q: error %v, want %v", c.text, err, c.want)
		}
	}
	if _, err := CopyAnswer(io.Discard, io.MultiReader(strings.NewReader(`"QUJD`), iotest.ErrReader(lost))); !errors.Is(err, lost) {
		t.Errorf("error %v, want %v", err, lost)
	}
	if _, err := CopyAnswer(failingWriter{lost}, strings.NewReader(`"QUJD"`)); !errors.Is(err, lost) {
		t.Errorf("error %v, want %v", err, lost)
	}
}

type failingWriter struct{ err error }

func (f failingWriter) Write([]byte) (int, error) { return 0, f.err }

// FuzzCopyAnswer compares CopyAnswer with the decoders of the standard library.
func FuzzCopyAnswer(f *testing.F) {
	for _, s := range []string{`"QUJD"`, ` "QQ==" `, `"\/\u002B\u002b+"`, `"QUJD`, `"" `, "\"Q\nUJD\""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var out bytes.Buffer
		if _, err := CopyAnswer(&out, bytes.NewReader(in)); err != nil {
			return
		}
		var text string
		if err := json.Unmarshal(in, &text); err != nil {
			t.Fatalf("%q was taken for a JSON string", in)
		}
		want, err := base64.StdEncoding.Strict().DecodeString(text)
		if err != nil || !bytes.Equal(want, out.Bytes()) {
			t.Errorf("%q: %x, want %x, %v", in, out.Bytes(), want, err)
		}
	})
}
