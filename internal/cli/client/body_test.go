package client

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"tamga/internal/cli"
)

// TestBodyAroundTheEdges sends documents whose lengths lie around the borders of
// Base64 groups and of the encoder's chunks.
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
				t.Errorf("%d octets, length known %t: size %d, want %d", n, known, size, want)
			}
			var got struct {
				Content   []byte
				Signature struct{ Parameters map[string]string }
			}
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatalf("%d octets: %v", n, err)
			}
			if !bytes.Equal(got.Content, content) || got.Signature.Parameters["OriginalDocument"] != base64.StdEncoding.EncodeToString(content) {
				t.Errorf("%d octets arrived changed", n)
			}
		}
	}
}

func TestCopyAnswer(t *testing.T) {
	const chunk = 48 << 10
	for _, n := range []int{0, 1, 2, 3, chunk - 1, chunk, chunk + 1, 3 * chunk} {
		value := bytes.Repeat([]byte("\xfb\xff\xfe?"), n/4+1)[:n]
		plain := `"` + base64.StdEncoding.EncodeToString(value) + `"`
		escaped := strings.NewReplacer("/", `\/`, "+", `\u002B`, "A", `\u0041`).Replace(plain)
		for _, text := range []string{plain, " \t\r\n" + plain + " \n", escaped} {
			for _, src := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text)), iotest.DataErrReader(strings.NewReader(text))} {
				var out bytes.Buffer
				got, err := cli.CopyAnswer(&out, src)
				if err != nil || got != int64(n) || !bytes.Equal(out.Bytes(), value) {
					t.Errorf("%d octets: %d decoded, %v", n, got, err)
				}
			}
		}
	}
	lost := errors.New("connection lost")
	for _, c := range []struct {
		text string
		want error
	}{
		{"", cli.ErrAnswer}, {"null", cli.ErrAnswer}, {`"`, cli.ErrAnswer}, {`"QUJ`, cli.ErrAnswer}, {`"QUJ"`, cli.ErrAnswer}, {`"QUJD""`, cli.ErrAnswer},
		{`"QUJD"x`, cli.ErrAnswer}, {`"QQ==QQ=="`, cli.ErrAnswer}, {`"QUJ\n"`, cli.ErrAnswer}, {"\"QUJD\n\"", cli.ErrAnswer}, {`"QUJ\u00`, cli.ErrAnswer},
		{`"QUJ\u0444"`, cli.ErrAnswer}, {`"QUJ\`, cli.ErrAnswer}, {`"QQ=="` + "\x00", cli.ErrAnswer}, {`"QR=="`, cli.ErrAnswer}, {`"ЖЖ"`, cli.ErrAnswer},
	} {
		if _, err := cli.CopyAnswer(io.Discard, strings.NewReader(c.text)); !errors.Is(err, c.want) {
			t.Errorf("%q: error %v, want %v", c.text, err, c.want)
		}
	}
	if _, err := cli.CopyAnswer(io.Discard, io.MultiReader(strings.NewReader(`"QUJD`), iotest.ErrReader(lost))); !errors.Is(err, lost) {
		t.Errorf("error %v, want %v", err, lost)
	}
	if _, err := cli.CopyAnswer(failingWriter{lost}, strings.NewReader(`"QUJD"`)); !errors.Is(err, lost) {
		t.Errorf("error %v, want %v", err, lost)
	}
}

type failingWriter struct{ err error }

func (f failingWriter) Write([]byte) (int, error) { return 0, f.err }

// FuzzCopyAnswer compares with the standard decoders, which hold everything.
func FuzzCopyAnswer(f *testing.F) {
	for _, s := range []string{`"QUJD"`, ` "QQ==" `, `"\/\u002B\u002b+"`, `"QUJD`, `"" `, "\"Q\nUJD\""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var out bytes.Buffer
		if _, err := cli.CopyAnswer(&out, bytes.NewReader(in)); err != nil {
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

// A PIN arrives as it is, whatever is in it, and is gone from memory after use.
func TestPINInBody(t *testing.T) {
	for _, pin := range []string{"", "1234", `a"b\c`, "\x01\t</script>&я\u2028😀", "\xff\xc3("} {
		r := &signRequest{kind: "CAdES", certificate: "7", pin: []byte(pin), content: source{strings.NewReader("x"), 1}}
		body, size, err := r.body()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(body)
		if err != nil || int64(len(text)) != size {
			t.Fatalf("%q: %d of %d octets, %v", pin, len(text), size, err)
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
