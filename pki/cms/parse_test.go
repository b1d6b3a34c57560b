// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// sample is a published message with the certificate of its signer.
type sample struct {
	Name, Source         string
	Message, Certificate []byte
}

func samples(t testing.TB) []sample {
	t.Helper()
	b, err := os.ReadFile("testdata/samples.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Samples []sample }
	if err := json.Unmarshal(b, &file); err != nil || len(file.Samples) == 0 {
		t.Fatalf("samples: %v", err)
	}
	return file.Samples
}

func parse(t testing.TB, b []byte) *Message {
	t.Helper()
	m, err := Parse(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func content(t testing.TB, m *Message) string {
	t.Helper()
	b, err := io.ReadAll(m.ContentReader())
	if err != nil || int64(len(b)) != m.ContentSize() {
		t.Fatalf("content: %v, %d bytes of %d", err, len(b), m.ContentSize())
	}
	return string(b)
}

func TestPublishedSamples(t *testing.T) {
	for _, s := range samples(t) {
		t.Run(s.Name, func(t *testing.T) {
			c, err := x509gost.ParseCertificate(s.Certificate)
			if err != nil {
				t.Fatal(err)
			}
			m := parse(t, s.Message)
			if m.Version != 1 || len(m.Signers) != 1 || m.Detached {
				t.Fatalf("%+v", m)
			}
			si := m.Signers[0]
			if si.FindCertificate([]*x509gost.Certificate{c}) != c {
				t.Fatal("the signer is not found")
			}
			h, err := si.Hash()
			if err != nil {
				t.Fatal(err)
			}
			text := []byte(content(t, m))
			if err := si.Check(c, m.ContentType, h.Digest(text)).Err(); err != nil {
				t.Error(err)
			}
			text[0] ^= 1
			if err := si.Check(c, m.ContentType, h.Digest(text)).Err(); err == nil {
				t.Error("a signature over a changed text is valid")
			}
		})
	}
}

// indefinite returns a constructed element with an end mark.
func indefinite(tag byte, contents ...[]byte) []byte {
	return slices.Concat([]byte{tag, 0x80}, bytes.Join(contents, nil), []byte{0, 0})
}

// minimal returns a message without signers around an encoded eContent.
func minimal(octetString []byte) []byte {
	return wrap(tagSequence, marshalOID(OIDSignedData), wrap(tagContext0, wrap(tagSequence,
		[]byte{2, 1, 1}, []byte{tagSet, 0},
		wrap(tagSequence, marshalOID(OIDData), wrap(tagContext0, octetString)),
		[]byte{tagSet, 0})))
}

func TestContentEncodings(t *testing.T) {
	piece := func(s string) []byte { return wrap(tagOctetString, []byte(s)) }
	const pieces = tagOctetString | bitConstructed
	tests := []struct {
		name        string
		octetString []byte
		want        string
		nranges     int
	}{
		{"primitive", piece("abc"), "abc", 1},
		{"empty", piece(""), "", 0},
		{"long length", slices.Concat([]byte{tagOctetString, 0x84, 0, 0, 0, 3}, []byte("abc")), "abc", 1},
		{"constructed", wrap(pieces, piece("ab"), piece("c")), "abc", 2},
		{"constructed, empty", wrap(pieces), "", 0},
		{"indefinite", indefinite(pieces, piece("a"), piece(""), piece("bc")), "abc", 2},
		{"nested", indefinite(pieces, wrap(pieces, piece("a"), indefinite(pieces, piece("b"))), piece("c")), "abc", 3},
		{"zeros inside", indefinite(pieces, piece("\x00\x00\x00\x00")), "\x00\x00\x00\x00", 1},
	}
	for _, test := range tests {
		m := parse(t, minimal(test.octetString))
		if got := content(t, m); got != test.want || len(m.Content) != test.nranges || m.Detached {
			t.Errorf("%s: %q in %d ranges", test.name, got, len(m.Content))
		}
	}
}

// A published message re-encoded in every BER form still verifies, and signed bytes stay
// unchanged.
func TestIndefiniteMessage(t *testing.T) {
	s := samples(t)[1]
	c, err := x509gost.ParseCertificate(s.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	d := parse(t, s.Message)
	si := d.Signers[0]
	inner := si.Raw[3:] // SEQUENCE with a length of two bytes
	signer := indefinite(tagSequence, inner)
	b := indefinite(tagSequence, marshalOID(OIDSignedData), indefinite(tagContext0, indefinite(tagSequence,
		[]byte{2, 1, 1}, indefinite(tagSet, si.DigestAlgorithm.Raw),
		indefinite(tagSequence, marshalOID(OIDData), indefinite(tagContext0, indefinite(tagOctetString|bitConstructed, wrap(tagOctetString, []byte("Test ")), wrap(tagOctetString, []byte("message"))))),
		indefinite(tagContext0, s.Certificate),
		indefinite(tagSet, signer))))
	m := parse(t, b)
	if !bytes.Equal(m.Signers[0].Raw, signer) || !bytes.Equal(m.Certificates[0], s.Certificate) {
		t.Error("the signer's or the certificate's bytes are changed")
	}
	e := m.EncapContentInfo
	if raw := b[e.Offset : e.Offset+e.Length]; raw[0] != tagSequence || !bytes.HasSuffix(raw, []byte{0, 0, 0, 0, 0, 0}) {
		t.Errorf("encapContentInfo: %x", raw)
	}
	if err := m.Signers[0].Check(c, m.ContentType, mustHash(t, si).Digest([]byte(content(t, m)))).Err(); err != nil {
		t.Error(err)
	}
}

func TestRefused(t *testing.T) {
	good := samples(t)[0].Message
	deep := []byte{tagOctetString, 0}
	for range maxDepth {
		deep = indefinite(tagOctetString|bitConstructed, deep)
	}
	deepSet := []byte{5, 0}
	for range maxDepth {
		deepSet = indefinite(tagSequence, deepSet)
	}
	withCertificates := func(set []byte) []byte {
		return wrap(tagSequence, marshalOID(OIDSignedData), wrap(tagContext0, wrap(tagSequence,
			[]byte{2, 1, 1}, []byte{tagSet, 0}, wrap(tagSequence, marshalOID(OIDData)), set, []byte{tagSet, 0})))
	}
	tests := []struct {
		name    string
		message []byte
		text    string
	}{
		{"nothing", nil, "empty"},
		{"text", []byte("Hello, world"), "SEQUENCE"},
		{"PEM", []byte("-----BEGIN CMS-----\nMIIB"), "PEM"},
		{"PEM after a byte order mark", []byte("\xef\xbb\xbf\r\n-----BEGIN PKCS7-----\n"), "PEM"},
		{"Base64", []byte("MIIBKAYJKoZIhvcNAQcCoIIBGTCCARUCAQExDDAKBgYqhQMCAgkFADAbBgkqhkiG9w0BBwGg"), "Base64"},
		{"cut short", good[:len(good)-1], "cut short"},
		{"bytes after", append(bytes.Clone(good), 0, 0, 5), "byte 0x05 follows the message"},
		{"too many zeros after", append(bytes.Clone(good), make([]byte, maxPadding+1)...), "at most 1048576 zero bytes may follow"},
		{"other content", wrap(tagSequence, marshalOID(OIDData), wrap(tagContext0, []byte{4, 0})), "not SignedData"},
		{"no content", wrap(tagSequence, marshalOID(OIDSignedData)), "has no content"},
		{"end mark in a definite element", wrap(tagSequence, marshalOID(OIDSignedData), []byte{0, 0}), "end mark"},
		{"no end mark", []byte{tagSequence, 0x80, 6, 1, 0}, "header"},
		{"indefinite primitive", []byte{tagSequence, 4, tagOID, 0x80, 0, 0}, "indefinite length on a primitive"},
		{"length beyond int64", []byte{tagSequence, 0x88, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, "2^63"},
		{"length of nine bytes", []byte{tagSequence, 0x89, 1, 0, 0, 0, 0, 0, 0, 0, 0}, "2^63"},
		{"version", bytes.Replace(good, []byte{2, 1, 1, 0x31}, []byte{2, 1, 9, 0x31}, 1), "version"},
		{"eContent without string", minimal(nil), "eContent has nothing inside"},
		{"eContent of another kind", minimal([]byte{0x0c, 0}), "not an OCTET STRING"},
		{"two eContents", minimal([]byte{4, 0, 4, 0}), "bytes follow eContent"},
		{"integer among pieces", minimal(wrap(tagOctetString|bitConstructed, []byte{2, 1, 1})), "not an OCTET STRING"},
		{"deep content", minimal(deep), "deeper"},
		{"deep certificate", withCertificates(indefinite(tagContext0, deepSet)), "deeper"},
		{"many certificates", withCertificates(wrap(tagContext0, bytes.Repeat([]byte{0x30, 0}, maxElements+1))), "more than"},
		{"large certificate", withCertificates(wrap(tagContext0, wrap(tagSequence, make([]byte, maxHeld+1)))), "more than"},
		{"malformed signer", wrap(tagSequence, marshalOID(OIDSignedData), wrap(tagContext0, wrap(tagSequence,
			[]byte{2, 1, 1}, []byte{tagSet, 0}, wrap(tagSequence, marshalOID(OIDData)), []byte{tagSet, 2, 0x30, 0}))), "signer 0"},
	}
	for _, test := range tests {
		_, err := Parse(bytes.NewReader(test.message), int64(len(test.message)))
		if err == nil || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %v, want %q", test.name, err, test.text)
		}
	}
	if _, err := Parse(strings.NewReader("-----BEGIN CMS-----"), 19); !errors.Is(err, ErrPEM) {
		t.Error("not ErrPEM:", err)
	}
	for text, want := range map[string]error{
		"Comment\n\n-----BEGIN PKCS7-----\n":  ErrPEM,
		"\xef\xbb\xbf-----BEGIN PKCS7-----\n": ErrPEM,
		"\xff\xfeM\x00I\x00I\x00":             ErrUTF16,
		"M\x00I\x00I\x00B\x00":                ErrUTF16,
		"\x00M\x00I\x00I\x00B":                ErrUTF16,
		"MIME-Version: 1.0\nContent-Type: application/pkcs7-mime; name=a\n\nMIIB":           ErrSMIME,
		"Content-Type: multipart/signed; protocol=\"application/pkcs7-signature\"\r\n\r\nx": ErrSMIME,
	} {
		if _, err := Parse(strings.NewReader(text), int64(len(text))); !errors.Is(err, want) || !IsText(err) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"Comment", "MZ\x90\x00\x03\x00\x00\x00", "PK\x03\x04", "\x04\x01-----BEGIN ", "<a>"} {
		if _, err := Parse(strings.NewReader(text), int64(len(text))); err == nil || IsText(err) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := Parse(strings.NewReader("MIIBKAYJKoZIhvcNAQcC"), 20); !errors.Is(err, ErrBase64) {
		t.Error("not ErrBase64:", err)
	}
}

// A reader that ends before its announced size always leads to an error.
func TestShortReader(t *testing.T) {
	good := samples(t)[0].Message
	for n := range good {
		if _, err := Parse(bytes.NewReader(good[:n]), int64(len(good))); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
}

// Attributes up to the limits parse, one more does not.
func TestManyAttributes(t *testing.T) {
	one := NewAttribute(OIDSigningTime, []byte{5, 0}).Raw
	value := []byte{5, 0}
	for _, test := range []struct {
		name string
		set  []byte
		ok   bool
	}{
		{"attributes", bytes.Repeat(one, maxAttrs), true},
		{"more attributes", bytes.Repeat(one, maxAttrs+1), false},
		{"values", NewAttribute(OIDSigningTime, bytes.Repeat(value, maxValues)).Raw, true},
		{"more values", NewAttribute(OIDSigningTime, bytes.Repeat(value, maxValues+1)).Raw, false},
	} {
		if _, err := readAttributes(test.set, nil); (err == nil) != test.ok {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestToDER(t *testing.T) {
	tests := []struct {
		name, in, want string // want "": an error
	}{
		{"as it is", "\x30\x03\x02\x01\x05", "\x30\x03\x02\x01\x05"},
		{"indefinite", "\x30\x80\x02\x01\x05\x00\x00", "\x30\x03\x02\x01\x05"},
		{"long length", "\x30\x83\x00\x00\x03\x02\x01\x05", "\x30\x03\x02\x01\x05"},
		{"string in pieces", "\x24\x80\x04\x01a\x24\x03\x04\x01b\x00\x00", "\x04\x02ab"},
		{"order of a set is kept", "\x31\x80\x02\x01\x05\x02\x01\x03\x00\x00", "\x31\x06\x02\x01\x05\x02\x01\x03"},
		{"high tag", "\xbf\x87\x01\x80\x04\x00\x00\x00", "\xbf\x87\x01\x02\x04\x00"},
		{"bit string in pieces", "\x23\x80\x03\x02\x00\x01\x00\x00", ""},
		{"pieces of another kind", "\x24\x03\x02\x01\x05", ""},
		{"bytes after", "\x05\x00\x05", ""},
		{"cut short", "\x30\x80\x05\x00", ""},
		{"nothing", "", ""},
	}
	for _, test := range tests {
		got, err := toDER([]byte(test.in))
		if string(got) != test.want || (err != nil) != (test.want == "") {
			t.Errorf("%s: %x, %v", test.name, got, err)
		}
	}
}

// TestSizeDER compares the check for DER with the conversion to DER.
func TestSizeDER(t *testing.T) {
	compare := func(b []byte) {
		t.Helper()
		n, ok := sizeDER(b, 0)
		der, rest, err := appendDER(nil, b, 0)
		same := err == nil && bytes.Equal(der, b[:len(b)-len(rest)])
		if ok != same || ok && n != len(der) {
			t.Fatalf("%x: size %d, %v; as DER %x, %v", b, n, ok, der, err)
		}
	}
	deep := []byte{tagNull, 0}
	for range maxDepth {
		compare(deep)
		deep = wrap(tagSequence, deep)
	}
	compare(deep)
	compare(wrap(tagSequence, deep))
	compare(wrap(tagOctetString, make([]byte, 300)))
	random := rand.New(rand.NewPCG(1, 2))
	for _, s := range samples(t) {
		message := s.Message[:min(len(s.Message), 3000)]
		der, err := toDER(s.Message)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range [][]byte{s.Message, message, der} {
			compare(b)
			b = bytes.Clone(b[:min(len(b), 3000)])
			for range 2000 {
				at := random.IntN(len(b))
				old := b[at]
				b[at] = byte(random.Uint32())
				compare(b)
				compare(b[at:])
				b[at] = old
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range samples(f) {
		f.Add(s.Message)
	}
	f.Add(minimal(indefinite(tagOctetString|bitConstructed, wrap(tagOctetString, []byte("abc")))))
	f.Add([]byte("text\n-----BEGIN CMS-----\n"))
	f.Add([]byte("Content-Type: application/pkcs7-mime\n\nMII"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Parse(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			if m != nil {
				t.Fatal("Parse returned a message together with an error")
			}
			return
		}
		if n, err := io.Copy(io.Discard, m.ContentReader()); err != nil || n != m.ContentSize() || n > int64(len(b)) {
			t.Fatalf("content: %d of %d bytes, %v", n, m.ContentSize(), err)
		}
		e := m.EncapContentInfo
		if e.Offset < 0 || e.Offset+e.Length > int64(len(b)) {
			t.Fatalf("encapContentInfo outside of the message: %+v", e)
		}
		certs, _ := m.X509()
		for _, s := range m.Signers {
			if !bytes.Contains(b, s.Raw) {
				t.Fatal("the message does not contain the bytes of a signer")
			}
			s.SigningTime()
			s.Scheme()
			s.FindCertificate(certs)
			s.Countersignatures()
			for _, c := range certs {
				s.Check(c, m.ContentType, suite.SHA256.Digest(nil))
			}
			if s.notDER() == "" && s.RawSignedAttrs != nil && !bytes.Contains(b, s.RawSignedAttrs[1:]) {
				t.Fatal("signed attributes are in DER, but not in the message")
			}
		}
		// If a message parses, it can be extended and parsed again.
		if len(m.Signers) == 0 || len(b) > 1<<20 {
			return
		}
		raw, err := m.Signers[0].AppendUnsigned(NewAttribute(OIDData, []byte{tagNull, 0}))
		if err != nil {
			return // already at the limit
		}
		head, tail, err := m.Rewrite(Changes{Replaced: map[int][]byte{0: raw}, Added: [][]byte{m.Signers[0].Raw}})
		if err != nil {
			return // already at the limit
		}
		b = slices.Concat(head, b[e.Offset:e.Offset+e.Length], tail)
		again, err := Parse(bytes.NewReader(b), int64(len(b)))
		if err != nil || len(again.Signers) != len(m.Signers)+1 || again.ContentSize() != m.ContentSize() {
			t.Fatalf("the extended message: %v", err)
		}
		if s := again.Signers[0]; !bytes.Equal(s.Signature, m.Signers[0].Signature) || len(s.UnsignedAttrs) != len(m.Signers[0].UnsignedAttrs)+1 {
			t.Fatal("the extended signer differs")
		}
	})
}
