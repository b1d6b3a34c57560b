// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// envelopedOf returns an EnvelopedData of fields.
func envelopedOf(fields ...[]byte) []byte { return contentOf(OIDEnvelopedData, fields...) }

func contentOf(oid []int, fields ...[]byte) []byte {
	return wrap(tagSequence, marshalOID(oid), wrap(tagContext0, wrap(tagSequence, fields...)))
}

// manyRecipients returns a message with n recipients and the last one of them. The others have
// other serial numbers.
func manyRecipients(t testing.TB, n int) (message []byte, last party) {
	t.Helper()
	last = newParty(t, suite.GOST2012x256, nil, 1)
	small := encrypt(t, []byte("text"), 4, Encryption{}, last)
	e := parseEnveloped(t, small)
	raws := repeated(t, small, n)
	content := wrap(tagSequence, marshalOID(OIDData), e.Cipher.Raw, wrap(tagContext0&^bitConstructed, small[e.Content[0].Offset:]))
	return envelopedOf([]byte{tagInteger, 1, 0}, wrap(tagSet, raws), content), last
}

// repeated returns the only RecipientInfo of a message n times, the first n-1 with other serial numbers
// of the same issuer.
func repeated(t testing.TB, message []byte, n int) []byte {
	t.Helper()
	serial := []byte{tagInteger, 1, 1} // of newParty
	start := bytes.Index(message, []byte{tagSet}) + 1
	_, header, length, err := parseHeader(message[start-1:])
	if err != nil {
		t.Fatal(err)
	}
	one := message[start-1+header:][:length]
	at := bytes.Index(one[8:], serial) + 8
	_, header, _, err = parseHeader(one)
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	for i := range n - 1 {
		number := binary.BigEndian.AppendUint32([]byte{tagInteger, 5, 1}, uint32(i))
		id := one[header:at]
		// issuerAndSerialNumber is the second field, after the version.
		_, inner, _, err := parseHeader(id[3:])
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, wrap(tagSequence, id[:3], wrap(tagSequence, id[3+inner:], number), one[at+len(serial):])...)
	}
	return append(out, one...)
}

// 10,000 recipients are read, and a message with too many is refused before it takes memory.
func TestManyRecipients(t *testing.T) {
	message, last := manyRecipients(t, 10_000)
	text, _, err := decrypt(t, message, last.opening())
	if err != nil || string(text) != "text" {
		t.Errorf("10000 recipients: %q, %v", text, err)
	}
	message, _ = manyRecipients(t, MaxRecipients+1)
	if _, err := ParseEnveloped(bytes.NewReader(message), int64(len(message))); err == nil || !strings.Contains(err.Error(), "16384") {
		t.Errorf("%d recipients: %v", MaxRecipients+1, err)
	}
	// A million small ones, in the set and inside one key agreement.
	million := bytes.Repeat([]byte{0xa3, 0}, 1_000_000)
	agreed := wrap(tagContext1, []byte{tagInteger, 1, 3}, wrap(tagContext0, wrap(0x80, []byte{1})), wrap(tagSequence, marshalOID(OIDData)),
		wrap(tagSequence, bytes.Repeat(wrap(tagSequence, wrap(tagContext0, wrap(tagOctetString, []byte{1})), []byte{tagOctetString, 0}), 1_000_000)))
	for name, infos := range map[string][]byte{"set": million, "agreement": agreed} {
		message := envelopedOf([]byte{tagInteger, 1, 0}, wrap(tagSet, infos))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := ParseEnveloped(bytes.NewReader(message), int64(len(message)))
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; err == nil || took > 32<<20 {
			t.Errorf("a million in the %s: %d KiB, %v", name, took>>10, err)
		}
		full := errors.New("full")
		runtime.ReadMemStats(&before)
		_, err = ParseEnvelopedWithin(bytes.NewReader(message), int64(len(message)), func(int64) error { return full })
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, full) || took > 1<<20 {
			t.Errorf("a million in the %s with a limit of memory: %d KiB, %v", name, took>>10, err)
		}
	}
	many := make([]*x509gost.Certificate, MaxRecipients+1)
	if err := Encrypt(context.Background(), io.Discard, strings.NewReader(""), 0, many, Encryption{}); err == nil {
		t.Error("Encrypt accepts more recipients than ParseEnveloped")
	}
}

// Malformed messages are refused with an error that is not ErrDecrypt.
func TestMalformedEnveloped(t *testing.T) {
	p := newParty(t, suite.GOST2012x256, nil, 1)
	message := encrypt(t, []byte("text"), 4, Encryption{Cipher: Magma}, p)
	e := parseEnveloped(t, message)
	version, end := []byte{tagInteger, 1, 0}, message[e.Content[0].Offset:]
	at := bytes.Index(message, []byte{tagSet})
	_, header, length, _ := parseHeader(message[at:])
	infos := message[at : at+header+int(length)]
	sealed := end[:4]
	attrs := end[4:]
	content := func(value []byte) []byte { return wrap(tagSequence, marshalOID(OIDData), e.Cipher.Raw, value) }
	if text, _, err := decrypt(t, envelopedOf(version, infos, content(wrap(0x80, sealed)), attrs), p.opening()); err != nil || string(text) != "text" {
		t.Fatalf("the message itself: %q, %v", text, err)
	}
	pieces := func(n int) []byte {
		return bytes.Repeat([]byte{tagOctetString, 0}, n)
	}
	deep := wrap(tagOctetString, sealed)
	for range maxDepth + 1 {
		deep = wrap(tagOctetString|bitConstructed, deep)
	}
	attribute := wrap(tagSequence, marshalOID(OIDContentMAC), wrap(tagSet, wrap(tagOctetString, make([]byte, 8))))
	for name, bad := range map[string][]byte{
		"nothing":                    {},
		"another type":               contentOf(OIDSignedData, version),
		"no fields":                  envelopedOf(),
		"version 9":                  envelopedOf([]byte{tagInteger, 1, 9}, infos, content(wrap(0x80, sealed)), attrs),
		"no recipients":              envelopedOf(version, []byte{tagSet, 0}, content(wrap(0x80, sealed)), attrs),
		"no content info":            envelopedOf(version, infos),
		"content of another tag":     envelopedOf(version, infos, content(wrap(tagOctetString, sealed)), attrs),
		"content with other pieces":  envelopedOf(version, infos, content(wrap(tagContext0, []byte{tagInteger, 1, 1})), attrs),
		"content nested too deep":    envelopedOf(version, infos, content(wrap(tagContext0, deep)), attrs),
		"content in too many pieces": envelopedOf(version, infos, content(wrap(tagContext0, pieces(4*maxRanges+1))), attrs),
		"bytes after the content":    envelopedOf(version, infos, content(append(wrap(0x80, sealed), tagNull, 0)), attrs),
		"bytes after the attributes": envelopedOf(version, infos, content(wrap(0x80, sealed)), attrs, []byte{tagNull, 0}),
		"a length beyond the end":    message[:len(message)-1],
		"no content":                 envelopedOf(version, infos, content(nil), attrs),
		"no code":                    envelopedOf(version, infos, content(wrap(0x80, sealed))),
		"two codes":                  envelopedOf(version, infos, content(wrap(0x80, sealed)), wrap(tagContext1, attribute, attribute)),
		"a short code":               envelopedOf(version, infos, content(wrap(0x80, sealed)), wrap(tagContext1, wrap(tagSequence, marshalOID(OIDContentMAC), wrap(tagSet, wrap(tagOctetString, make([]byte, 7)))))),
		"no code in AuthEnveloped":   contentOf(OIDAuthEnvelopedData, version, infos, content(wrap(0x80, sealed))),
		"the cipher of the other":    contentOf(OIDAuthEnvelopedData, version, infos, content(wrap(0x80, sealed)), wrap(tagOctetString, make([]byte, 8))),
		"other recipients only":      envelopedOf(version, wrap(tagSet, wrap(0xa3, nil)), content(wrap(0x80, sealed)), attrs),
	} {
		if text, _, err := decrypt(t, bad, p.opening()); err == nil || errors.Is(err, ErrDecrypt) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	// The same message in BER, with the content in pieces of any depth.
	for name, good := range map[string][]byte{
		"pieces":        envelopedOf(version, infos, content(wrap(tagContext0, wrap(tagOctetString, sealed[:1]), wrap(tagOctetString|bitConstructed, wrap(tagOctetString, sealed[1:]), []byte{tagOctetString, 0}))), attrs),
		"indefinite":    envelopedOf(version, infos, append(append([]byte{tagSequence, 0x80}, bytes.Join([][]byte{marshalOID(OIDData), e.Cipher.Raw, {tagContext0, 0x80}, wrap(tagOctetString, sealed)}, nil)...), 0, 0, 0, 0), attrs),
		"originators":   envelopedOf(version, wrap(tagContext0, wrap(tagContext0, p.certificate.Raw), wrap(tagContext1)), infos, content(wrap(0x80, sealed)), attrs),
		"more forms":    envelopedOf(version, wrap(tagSet, infos[header:], wrap(0xa2, nil), wrap(0xa4, nil)), content(wrap(0x80, sealed)), attrs),
		"zeros after":   append(bytes.Clone(message), 0, 0, 0),
		"any attribute": envelopedOf(version, infos, content(wrap(0x80, sealed)), wrap(tagContext1, attrs[2:], wrap(tagSequence, marshalOID(OIDData), []byte{tagSet, 0}))),
	} {
		if text, integrity, err := decrypt(t, good, p.opening()); err != nil || string(text) != "text" || integrity != Verified {
			t.Errorf("%s: %q, %v, %v", name, text, integrity, err)
		}
	}
}

// Errors of the key, the source and the sink reach the caller as they are, and nothing is committed.
func TestDecryptErrors(t *testing.T) {
	p := newParty(t, suite.GOST2012x256, nil, 1)
	message := encrypt(t, make([]byte, 200_000), 200_000, Encryption{Cipher: Kuznyechik}, p)
	e := parseEnveloped(t, message)
	broken := errors.New("broken")
	o := p.opening()
	o.Key = brokenKey{broken}
	var sink watched
	if _, err := e.Decrypt(context.Background(), o, &sink); !errors.Is(err, broken) || sink.discarded != 1 || sink.Len() > 0 {
		t.Errorf("a key that fails: %v", err)
	}
	small := &Buffer{Limit: 100_000}
	if _, err := e.Decrypt(context.Background(), p.opening(), small); err == nil || small.Bytes() != nil || small.text != nil {
		t.Errorf("a sink that is full: %v", err)
	}
	exact := &Buffer{Limit: 200_000}
	if _, err := e.Decrypt(context.Background(), p.opening(), exact); err != nil || len(exact.Bytes()) != 200_000 {
		t.Errorf("a sink with room: %v", err)
	}
	cut, err := ParseEnveloped(&shrinking{message, len(message)}, int64(len(message)))
	if err != nil {
		t.Fatal(err)
	}
	cut.source.(*shrinking).left = len(message) - 1000
	if _, err := cut.Decrypt(context.Background(), p.opening(), &Buffer{Limit: 1 << 20}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a source that shrinks: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	sink = watched{}
	if _, err := e.Decrypt(ctx, p.opening(), &sink); !errors.Is(err, context.Canceled) || sink.discarded != 1 {
		t.Errorf("a cancelled context: %v", err)
	}
	if _, err := NewRecipientKey("text"); err == nil {
		t.Error("a text is a key")
	}
	for _, other := range []party{newParty(t, suite.RSASHA256, nil, 1), newParty(t, suite.ECDSAP256, nil, 1)} {
		o.Key = other.key
		if _, err := e.Decrypt(context.Background(), o, &Buffer{Limit: 1 << 20}); err == nil {
			t.Errorf("a key of %s opens a message for a GOST key", other.certificate.Suite.Title)
		}
	}
}

type brokenKey struct{ err error }

func (k brokenKey) Agree(context.Context, KeyAgreement) ([]byte, error)   { return nil, k.err }
func (k brokenKey) Decrypt(context.Context, KeyTransport) ([]byte, error) { return nil, k.err }

// shrinking is a source whose end disappears.
type shrinking struct {
	data []byte
	left int
}

func (s *shrinking) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(s.data[:s.left]).ReadAt(p, off)
}

// FuzzEnveloped has keys that do not change from process to process.
func FuzzEnveloped(f *testing.F) {
	published := readPublished(f)
	sender := parsedCertificate(f, published.Certificates["sender256"])
	var openings []Opening
	for _, name := range []string{"recipient256", "recipient512"} {
		o := Opening{Certificate: parsedCertificate(f, published.Certificates[name]), Key: recipientKey(f, published.Keys[name]), Originator: sender}
		openings = append(openings, o)
		for _, e := range []Encryption{{}, {Agreement: true}, {Cipher: Kuznyechik}, {Cipher: Magma, Agreement: true, WithoutIntegrity: true}} {
			f.Add(encrypt(f, []byte("text"), -1, e, party{certificate: o.Certificate}))
		}
	}
	for _, m := range published.Messages {
		f.Add(m.Message)
	}
	private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), bytes.Repeat([]byte{1}, 32))
	if err != nil {
		f.Fatal(err)
	}
	key, err := NewRecipientKey(private)
	if err != nil {
		f.Fatal(err)
	}
	// A certificate for the key, as far as messages need one.
	ec := &x509gost.Certificate{RawIssuer: wrap(tagSequence), SerialNumber: []byte{1}, PublicKey: private.Public(), Suite: suite.ECDSAP256}
	openings = append(openings, Opening{Certificate: ec, Key: key})
	f.Add(encrypt(f, []byte("text"), -1, Encryption{}, party{certificate: ec}))
	f.Add(encrypt(f, []byte("text"), 4, Encryption{Cipher: AES256GCM}, party{certificate: ec}))
	f.Fuzz(func(t *testing.T, message []byte) {
		e, err := ParseEnveloped(bytes.NewReader(message), int64(len(message)))
		if err != nil {
			return
		}
		for _, o := range openings {
			if _, err := e.Recipient(o.Certificate); err != nil {
				continue
			}
			sink := &Buffer{Limit: len(message)}
			if _, err := e.Decrypt(context.Background(), o, sink); err != nil && sink.Bytes() != nil {
				t.Error("a message that is refused has plaintext")
			}
		}
	})
}

// Every form is read when all lengths are indefinite and all strings are in pieces, as devices write.
func TestEnvelopedBER(t *testing.T) {
	for _, f := range forms() {
		p := newParty(t, f.suite, f.set, 1)
		text := textOf(1000)
		ber := appendBER(t, nil, encrypt(t, text, 1000, f.o, p))
		if got, integrity, err := decrypt(t, ber, p.opening()); err != nil || !bytes.Equal(got, text) || integrity != f.integrity {
			t.Errorf("%s: %d bytes, %v, %v", f.name, len(got), integrity, err)
		}
		for _, cut := range []int{1, 2, 3, len(ber) / 2, len(ber) - 1} {
			if _, _, err := decrypt(t, ber[:len(ber)-cut], p.opening()); err == nil || errors.Is(err, ErrDecrypt) {
				t.Errorf("%s: without %d bytes: %v", f.name, cut, err)
			}
		}
	}
}

// appendBER appends elements in DER with indefinite lengths and strings in two pieces. OCTET STRINGs
// with elements inside get them in the same form.
func appendBER(t *testing.T, dst, der []byte) []byte {
	t.Helper()
	for len(der) > 0 {
		tag, header, length, err := parseHeader(der)
		if err != nil || length < 0 {
			t.Fatalf("%x, %v", der[:min(len(der), 20)], err)
		}
		body := der[header:][:length]
		switch {
		case tag&bitConstructed != 0:
			dst = append(appendBER(t, append(dst, tag, 0x80), body), 0, 0)
		case tag == tagOctetString || tag == 0x80: // encryptedContent
			if size, ok := sizeDER(body, 0); ok && size == len(body) && body[0] == tagSequence {
				body = appendBER(t, nil, body) // encryptedKey
			}
			half := len(body) / 2
			dst = append(dst, tag|bitConstructed, 0x80)
			dst = append(dst, wrap(tagOctetString, body[:half])...)
			dst = append(dst, wrap(tagOctetString|bitConstructed, wrap(tagOctetString, body[half:]))...)
			dst = append(dst, 0, 0)
		default:
			dst = append(dst, der[:header+int(length)]...)
		}
		der = der[header+int(length):]
	}
	return dst
}

// A sink that cannot commit fails the decryption.
func TestCommitFails(t *testing.T) {
	p := newParty(t, suite.GOST2012x256, nil, 1)
	e := parseEnveloped(t, encrypt(t, []byte("text"), 4, Encryption{Cipher: Magma}, p))
	broken := errors.New("broken")
	if integrity, err := e.Decrypt(context.Background(), p.opening(), &uncommitted{err: broken}); !errors.Is(err, broken) || integrity != NotVerified {
		t.Errorf("%v, %v", integrity, err)
	}
}

type uncommitted struct {
	watched
	err error
}

func (u *uncommitted) Commit() error { return u.err }
