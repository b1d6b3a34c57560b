// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"tamga/internal/domain/fault"
)

// memory is a sink that remembers what happened to it.
type memory struct {
	written          bytes.Buffer // not embedded, so that bytes pass through Write only
	finished, closed int
	fail             error
	next             func() (*memory, error) // opens a sibling
}

func (m *memory) Write(p []byte) (int, error) {
	if m.fail != nil {
		return 0, m.fail
	}
	return m.written.Write(p)
}
func (m *memory) Finish() error { m.finished++; return nil }
func (m *memory) Close() error  { m.closed++; return nil }

func (m *memory) Sibling() (*memory, error) { return m.next() }

type sinks struct {
	made  []*memory
	first int // of made, those that are not siblings
	fail  error
}

func (s *sinks) documents() *Documents[*memory] {
	return &Documents[*memory]{most: fewDocuments, open: func() (*memory, error) { s.first++; return s.open() }}
}

func (s *sinks) open() (*memory, error) {
	m := &memory{fail: s.fail, next: s.open}
	s.made = append(s.made, m)
	return m, nil
}

type signRequest struct {
	Content   Blob
	Signature *struct {
		Type       Text
		Parameters map[string]Blob
	}
}

func random(n int) []byte {
	b := make([]byte, n)
	g := rand.NewChaCha8([32]byte{1})
	g.Read(b)
	return b
}

func TestBlobForms(t *testing.T) {
	lines := func(s, sep string, n int) string {
		var b strings.Builder
		for len(s) > n {
			b.WriteString(s[:n] + sep)
			s = s[n:]
		}
		return b.String() + s
	}
	for _, size := range []int{1, 2, 3, 4, 100, 49151, 49152, 49153, 200000, 1<<20 + 1} {
		want := random(size)
		plain := base64.StdEncoding.EncodeToString(want)
		for name, text := range map[string]string{
			"plain":         plain,
			"escaped lines": lines(plain, `\r\n`, 76),
			"odd lines":     lines(plain, `\n`, 61),
			"spaces":        lines(plain, ` `, 1000),
			"end of line":   plain + `\r\n\r\n`,
			"slashes":       strings.ReplaceAll(plain, "/", `\/`),
			"unicode":       strings.ReplaceAll(plain, "A", `\u0041`),
		} {
			for how, wrap := range map[string]func(io.Reader) io.Reader{
				"whole": func(r io.Reader) io.Reader { return r },
				"half":  iotest.HalfReader,
				"odd":   func(r io.Reader) io.Reader { return &oddReader{r: r} },
			} {
				s := &sinks{}
				docs := s.documents()
				var v signRequest
				body := `{"Signature":{"Type":1},"Content":"` + text + `"}`
				if _, err := readJSON(wrap(strings.NewReader(body)), &v, docs); err != nil {
					t.Fatalf("%d %s %s: %v", size, name, how, err)
				}
				m, err := docs.Open(v.Content)
				if err != nil {
					t.Fatalf("%d %s %s: %v", size, name, how, err)
				}
				again, _ := docs.Open(v.Content)
				if !bytes.Equal(m.written.Bytes(), want) || m.finished != 1 || again != m || v.Content.Empty() {
					t.Fatalf("%d %s %s: got %d bytes, finished %d times", size, name, how, m.written.Len(), m.finished)
				}
				if docs.close(); m.closed != 1 || len(s.made) != 1 {
					t.Fatalf("%d %s %s: closed %d times, %d sinks", size, name, how, m.closed, len(s.made))
				}
			}
		}
	}
}

// oddReader returns pieces of changing, small lengths.
type oddReader struct {
	r io.Reader
	n int
}

func (o *oddReader) Read(p []byte) (int, error) {
	o.n = (o.n*7 + 5) % 4099
	return o.r.Read(p[:min(len(p), o.n+1)])
}

func TestBlobBrokenBase64(t *testing.T) {
	long := strings.Repeat("QUJD", 100_000)
	for _, c := range []struct {
		name, text string
		at         int
	}{
		{"a letter outside", "QU*D", 3},
		{"url alphabet", "QU_D", 3},
		{"no padding", "QUI", 4},
		{"one character", "Q", 2},
		{"padding alone", "====", 1},
		{"padding inside", "QQ==QUJD", 5},
		{"too much padding", "QUJD=", 6},
		{"a word", "not base64 at all", 18},
		{"middle of a long one", long[:200_000] + "*" + long, 200_001},
		{"padding inside a long one", long[:200_000] + "QQ==" + long, 200_005},
		{"end of a long one", long + "QQ", 400_003},
		{"an escape that is no Base64", long[:200_000] + `\t\"` + long, 200_002},
		{"long, not ASCII", long + "ф" + long, 400_001},
	} {
		s := &sinks{}
		docs := s.documents()
		var v signRequest
		_, err := readJSON(strings.NewReader(`{"content":"`+c.text+`","Signature":{"Type":"x"}}`), &v, docs)
		if err != nil || v.Signature == nil || v.Signature.Type != "x" {
			t.Errorf("%s: what follows was not read: %v", c.name, err)
		}
		_, err = docs.Open(v.Content)
		f, _ := fault.As(err)
		if f == nil || f.Code != fault.InvalidContent || !strings.HasPrefix(f.Message, "Content ") {
			t.Errorf("%s: got %v", c.name, err)
		} else if want := fmt.Sprintf("character %d", c.at); !strings.HasSuffix(f.Message, want) {
			t.Errorf("%s: got %q, want %s", c.name, f.Message, want)
		}
		for _, m := range s.made {
			if m.closed == 0 {
				t.Errorf("%s: its room is still taken", c.name)
			}
		}
	}
}

func TestBlobAsText(t *testing.T) {
	docs := (&sinks{}).documents()
	var v signRequest
	const text = `{"Signature":{"Parameters":{"a":"True","b":true,"c":5,"d":null,"e":"","f":{"x":1},"g":"` + "%s" + `"}}}`
	if _, err := readJSON(strings.NewReader(fmt.Sprintf(text, strings.Repeat("QUJD", 20_000))), &v, docs); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"a": "True", "b": "true", "c": "5", "d": "", "e": "", "missing": ""} {
		b := v.Signature.Parameters[key]
		if got, err := b.Text(); got != want || err != nil || b.Empty() != (want == "") {
			t.Errorf("%s: got %q, %v, empty %v", key, got, err, b.Empty())
		}
	}
	for key, want := range map[string]string{"f": "Signature.Parameters.f must be", "g": "at most 65536 characters"} {
		if _, err := v.Signature.Parameters[key].Text(); !fault.Is(err, fault.InvalidParameters) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", key, err)
		}
	}
	for _, key := range []string{"b", "c", "f"} { // "true" would be Base64
		if _, err := docs.Open(v.Signature.Parameters[key]); !fault.Is(err, fault.InvalidContent) {
			t.Errorf("%s: got %v", key, err)
		}
	}
}

// fewDocuments is what a request of these tests may hold.
const fewDocuments = 16

func TestBlobRefuses(t *testing.T) {
	long := strings.Repeat("QUJD", 20_000)
	var many strings.Builder
	for i := range fewDocuments + 1 {
		fmt.Fprintf(&many, `"k%d":"%s",`, i, long)
	}
	noRoom := errors.New("no room")
	for _, c := range []struct {
		name, text, says string
		fail             error
	}{
		{"twice", `{"Content":"QQ==","content":"QQ=="}`, "Content is given twice", nil},
		{"twice in a map", `{"Signature":{"Parameters":{"a":"QQ==","a":"1"}}}`, "Signature.Parameters.a is given twice", nil},
		{"cut off", `{"Content":"` + long, "ends too early", nil},
		{"line break", `{"Content":"` + long + "\n" + `"}`, "control character", nil},
		{"carriage return", `{"Content":"` + long + "\r" + long + `"}`, "control character", nil},
		{"control character", `{"Content":"` + long + "\x01" + long + `"}`, "control character", nil},
		{"control character after a fault", `{"Content":"` + long + "*" + long + "\t" + `"}`, "control character", nil},
		{"control character in a short one", `{"Content":"QQ` + "\x00" + `=="}`, "control character", nil},
		{"too many", `{"Signature":{"Parameters":{` + many.String() + `"x":1}}}`, "more than 16 documents", nil},
		{"no room", `{"Content":"` + long + `"}`, "no room", noRoom},
	} {
		s := &sinks{fail: c.fail}
		docs := s.documents()
		var v signRequest
		_, err := readJSON(strings.NewReader(c.text), &v, docs)
		if err == nil || !strings.Contains(err.Error(), c.says) || c.fail == nil != fault.Is(err, fault.InvalidParameters) {
			t.Errorf("%s: got %v", c.name, err)
		}
		docs.close()
		for _, m := range s.made {
			if m.closed == 0 {
				t.Errorf("%s: a sink is open", c.name)
			}
		}
	}
}

func FuzzBlob(f *testing.F) {
	f.Add("QUJD", uint8(3), uint16(0))
	f.Add("QQ==", uint8(0), uint16(30000))
	f.Add("QU JD\r\nQUI=\n", uint8(1), uint16(17000))
	f.Fuzz(func(t *testing.T, text string, step uint8, repeat uint16) {
		text = strings.Repeat("QUJD", int(repeat)) + text
		// What the standard library says when white space is taken out first.
		stripped := strings.NewReplacer(" ", "", "\t", "", "\r", "", "\n", "").Replace(text)
		want, wantErr := base64.StdEncoding.DecodeString(stripped)
		var d decoder
		out := decodeAll(t, &d, text, int(step)*97+1)
		if d.failed() != (wantErr != nil) {
			t.Fatalf("%q: failed %v at %d, want %v", text, d.failed(), d.bad, wantErr)
		}
		if !d.failed() && !bytes.Equal(out, want) {
			t.Fatalf("%q: got %x, want %x", text, out, want)
		}
	})
}

type discard struct{ io.Writer }

func (discard) Finish() error               { return nil }
func (discard) Close() error                { return nil }
func (d discard) Sibling() (discard, error) { return d, nil }

func BenchmarkBlob(b *testing.B) {
	plain := strings.Repeat("QUJDREVGR0hJSktM", 1<<20) // 16 MiB
	var mime strings.Builder
	for p := plain[:4<<20]; len(p) > 76; p = p[76:] {
		mime.WriteString(p[:76] + `\r\n`)
	}
	for name, text := range map[string]string{"plain": plain, "lines": mime.String(), "slashes": strings.Repeat(`QUJDREVG\/0hJSktM`, 1<<18)} {
		b.Run(name, func(b *testing.B) {
			body := `{"Content":"` + text + `"}`
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				var v signRequest
				docs := &Documents[discard]{most: fewDocuments, open: func() (discard, error) { return discard{io.Discard}, nil }}
				if _, err := readJSON(strings.NewReader(body), &v, docs); err != nil {
					b.Fatal(err)
				}
				if _, err := docs.Open(v.Content); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// FuzzDecoder compares the decoder of documents, which works in pieces and in vector
// instructions, with encoding/base64.
func FuzzDecoder(f *testing.F) {
	long := strings.Repeat("QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo0", 40)
	for _, s := range []string{"", "QQ==", "QUI=", "QUJD", long, long + "QQ==", long[:99] + "\r\n" + long[99:], long[:77] + "-" + long[78:], long + "=", "Q", "QQ==QQ==", "\x80QUJ"} {
		f.Add(s, uint16(7))
		f.Add(s, uint16(1000))
	}
	f.Fuzz(func(t *testing.T, text string, step uint16) {
		want, wrong := base64.StdEncoding.DecodeString(strings.NewReplacer(" ", "", "\t", "").Replace(text))
		var d decoder
		got := decodeAll(t, &d, text, int(step)+1)
		if d.failed() != (wrong != nil) {
			t.Fatalf("%q: refused %v, encoding/base64 says %v", text, d.failed(), wrong)
		}
		if wrong == nil && !bytes.Equal(got, want) {
			t.Fatalf("%q: %q, want %q", text, got, want)
		}
	})
}

// decodeAll decodes a text in pieces, with as much room as a piece is long.
func decodeAll(t *testing.T, d *decoder, text string, piece int) (all []byte) {
	t.Helper()
	room := make([]byte, max(3, piece))
	for rest := []byte(text); len(rest) > 0; {
		n, used := d.decode(room, rest[:min(len(rest), piece)])
		if used == 0 {
			t.Fatalf("nothing is taken of %q", rest)
		}
		all = append(all, room[:n]...)
		rest = rest[used:]
	}
	d.finish()
	return all
}

// TestBlobReadsInLargePieces: the reads grow with the document. Large buffers are few and
// come back. A document that finds none free goes on with smaller ones.
func TestBlobReadsInLargePieces(t *testing.T) {
	want := random(2 * hugeFrom)
	body := `{"Content":"` + base64.StdEncoding.EncodeToString(want) + `","Signature":{"Type":"t"}}`
	for _, taken := range []int32{0, hugeMost} {
		hugeInUse.Add(taken)
		largest := 0
		s := &sinks{}
		docs := s.documents()
		var v signRequest
		_, err := readJSON(readerFunc(func(p []byte) (int, error) {
			largest = max(largest, len(p))
			n := copy(p, body[:min(len(body), 3<<20)]) // not all that there is room for
			if body = body[n:]; body == "" {
				return n, io.EOF
			}
			return n, nil
		}), &v, docs)
		if err != nil || v.Signature.Type != "t" || !bytes.Equal(s.made[0].written.Bytes(), want) {
			t.Errorf("with %d large buffers taken: %v, or wrong bytes", taken, err)
		}
		if size := map[int32]int{0: hugeSize, hugeMost: wideSize}[taken]; largest != size {
			t.Errorf("with %d large buffers taken: %d bytes are read at a time; want %d", taken, largest, size)
		}
		if n := hugeInUse.Add(-taken); n != 0 {
			t.Errorf("with %d large buffers taken: %d did not come back", taken, n)
		}
		docs.close()
		body = `{"Content":"` + base64.StdEncoding.EncodeToString(want) + `","Signature":{"Type":"t"}}`
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestControl compares control, which looks at eight bytes at once, with a simple loop.
func TestControl(t *testing.T) {
	for length := range 40 {
		for at := range length {
			for _, c := range []byte{0, '\n', ' ' - 1, ' ', 'A', 0x7F, 0x80, 0x9F, 0xA0, 0xFF} {
				for _, around := range []byte{' ', 'Z', 0x80, 0xFF} {
					p := bytes.Repeat([]byte{around}, length)
					p[at] = c
					want := at
					if c >= ' ' {
						want = -1
					}
					if got := control(p); got != want {
						t.Fatalf("%x: %d, want %d", p, got, want)
					}
				}
			}
		}
	}
}
