// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"bytes"
	"context"
	"crypto"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"tamga/gost/gost3410"
	"tamga/internal/testsize"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// party is a recipient with its private key.
type party struct {
	certificate *x509gost.Certificate
	private     crypto.Signer
	key         RecipientKey
}

func (p party) opening() Opening { return Opening{Certificate: p.certificate, Key: p.key} }

var parties sync.Map // by name: RSA keys are slow to make

// newParty returns the same recipient for the same arguments. set is nil for the default set.
func newParty(t testing.TB, s *suite.Suite, set *gost3410.Set, serial byte) party {
	t.Helper()
	id := fmt.Sprint(s.Name, set, serial)
	if p, ok := parties.Load(id); ok {
		return p.(party)
	}
	var p party
	var err error
	if set != nil {
		p.private, err = gost3410.GenerateKey(set, nil)
	} else {
		p.private, err = s.Generate(nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	name, err := x509gost.BuildName([]x509gost.Attribute{{OID: x509gost.OIDCommonName, Value: "Recipient " + s.Name}})
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509gost.CreateCertificate(&x509gost.Template{
		Subject: name, SerialNumber: []byte{serial},
		NotBefore: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2049, 1, 1, 0, 0, 0, 0, time.UTC),
	}, nil, p.private.Public(), s, s, x509gost.SignWith(nil, p.private, s))
	if err != nil {
		t.Fatal(err)
	}
	p.certificate = parsedCertificate(t, der)
	if p.key, err = NewRecipientKey(p.private); err != nil {
		t.Fatal(err)
	}
	parties.Store(id, p)
	return p
}

func encrypt(t testing.TB, text []byte, size int64, o Encryption, to ...party) []byte {
	t.Helper()
	var certificates []*x509gost.Certificate
	for _, p := range to {
		certificates = append(certificates, p.certificate)
	}
	var out bytes.Buffer
	if err := Encrypt(context.Background(), &out, bytes.NewReader(text), size, certificates, o); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// forms are all forms that Encrypt writes.
type form struct {
	name      string
	suite     *suite.Suite
	set       *gost3410.Set
	o         Encryption
	integrity Integrity
}

func forms() (list []form) {
	type key struct {
		suite *suite.Suite
		set   *gost3410.Set
	}
	keys := []key{{suite.GOST2001, nil}, {suite.GOST2012x256, nil}, {suite.GOST2012x512, nil}, {suite.GOST2012x256, gost3410.TC26256A}, {suite.GOST2012x512, gost3410.TC26512C}}
	for _, agreement := range []bool{false, true} {
		for _, k := range keys {
			for _, c := range []*ContentCipher{GOST28147, Magma, Kuznyechik} {
				if c != GOST28147 && k.suite == suite.GOST2001 {
					continue
				}
				for _, without := range []bool{true, false} {
					if c == GOST28147 && !without {
						continue
					}
					f := form{suite: k.suite, set: k.set, o: Encryption{Cipher: c, Agreement: agreement, WithoutIntegrity: without}}
					if !without {
						f.integrity = Verified
					}
					f.name = fmt.Sprintf("%s %v %s agreement %v %v", k.suite.Name, k.set, c, agreement, f.integrity)
					list = append(list, f)
				}
			}
		}
	}
	list = append(list, form{"rsa 28147", suite.RSASHA256, nil, Encryption{Cipher: GOST28147}, NotVerified})
	for _, c := range []*ContentCipher{AES128CBC, AES192CBC, AES256CBC, AES128GCM, AES192GCM, AES256GCM} {
		integrity := NotVerified
		if c.isGCM() {
			integrity = Verified
		}
		list = append(list,
			form{"rsa " + c.Name, suite.RSASHA256, nil, Encryption{Cipher: c}, integrity},
			form{"oaep " + c.Name, suite.RSASHA256, nil, Encryption{Cipher: c, OAEP: true}, integrity},
			form{"ec " + c.Name, suite.ECDSAP256, nil, Encryption{Cipher: c}, integrity})
	}
	return list
}

// sizes are those where padding, meshing and parts begin.
var sizes = []int{0, 1, 8, 15, 16, 17, 1023, 1024, 1025, 100_000, partSize, partSize + 1}

func TestEncryptDecrypt(t *testing.T) {
	for _, f := range forms() {
		t.Run(f.name, func(t *testing.T) {
			p := newParty(t, f.suite, f.set, 1)
			for _, size := range sizes {
				text := bytes.Repeat([]byte("text and more "), size/14+1)[:size]
				for _, announced := range []int64{int64(size), -1} {
					message := encrypt(t, text, announced, f.o, p)
					got, integrity, err := decrypt(t, message, p.opening())
					if err != nil || !bytes.Equal(got, text) || integrity != f.integrity {
						t.Fatalf("%d bytes, announced %d: %d bytes, %v, %v", size, announced, len(got), integrity, err)
					}
					if announced < 0 {
						continue
					}
					if der, err := toDER(message); err != nil || !bytes.Equal(der, message) {
						t.Errorf("%d bytes: the message is not DER: %v", size, err)
					}
					if reason := notDERInside(message, 0); reason != "" {
						t.Errorf("%d bytes: the message is not DER: %s", size, reason)
					}
				}
			}
		})
	}
}

// The zero Encryption makes the form that most programs read.
func TestEncryptDefaults(t *testing.T) {
	gost, old, rsa := newParty(t, suite.GOST2012x256, nil, 1), newParty(t, suite.GOST2001, nil, 2), newParty(t, suite.RSASHA256, nil, 3)
	for _, c := range []struct {
		to     []party
		cipher *ContentCipher
		set    string
	}{
		{[]party{gost}, GOST28147, "1.2.643.7.1.2.5.1.1"},
		{[]party{old}, GOST28147, "1.2.643.2.2.31.1"},
		{[]party{gost, old, rsa}, GOST28147, "1.2.643.2.2.31.1"},
		{[]party{rsa}, AES256CBC, ""},
		{[]party{newParty(t, suite.ECDSAP256, nil, 4), rsa}, AES256CBC, ""},
	} {
		message := encrypt(t, []byte("text"), 4, Encryption{}, c.to...)
		e := parseEnveloped(t, message)
		got, _, err := e.ContentCipher()
		if err != nil || got != c.cipher || !e.ContentType.Equal(OIDData) || len(e.Recipients) != len(c.to) || e.Originators != nil || e.Attributes != nil {
			t.Errorf("%v, %v, type %v, %d recipients", got, err, e.ContentType, len(e.Recipients))
		}
		if c.set != "" {
			state, err := readCFB(e.Cipher.Params)
			if err != nil || suite.SBoxOID(state.(cfb).box).String() != c.set {
				t.Errorf("set %v, %v, want %s", state, err, c.set)
			}
		}
		if reason := notDERInside(message, 0); reason != "" {
			t.Errorf("%d recipients: the message is not DER: %s", len(c.to), reason)
		}
		for _, p := range c.to {
			if text, _, err := decrypt(t, message, p.opening()); err != nil || string(text) != "text" {
				t.Errorf("%s: %q, %v", p.certificate.Subject, text, err)
			}
		}
	}
}

func TestEncryptRefuses(t *testing.T) {
	gost, old, rsa, ec := newParty(t, suite.GOST2012x256, nil, 1), newParty(t, suite.GOST2001, nil, 2), newParty(t, suite.RSASHA256, nil, 3), newParty(t, suite.ECDSAP256, nil, 4)
	for _, c := range []struct {
		to    []party
		o     Encryption
		index int
	}{
		{[]party{gost, old}, Encryption{Cipher: Magma}, 1},
		{[]party{rsa}, Encryption{Cipher: Kuznyechik}, 0},
		{[]party{gost, rsa, ec}, Encryption{}, 2},
		{[]party{ec, rsa, gost}, Encryption{Cipher: AES256GCM}, 2},
	} {
		var certificates []*x509gost.Certificate
		for _, p := range c.to {
			certificates = append(certificates, p.certificate)
		}
		var out bytes.Buffer
		var refused *RecipientError
		err := Encrypt(context.Background(), &out, strings.NewReader("text"), 4, certificates, c.o)
		if !errors.As(err, &refused) || refused.Index != c.index || out.Len() > 0 {
			t.Errorf("%v with %d bytes written, want one of recipient %d", err, out.Len(), c.index)
		}
	}
	one := []*x509gost.Certificate{gost.certificate}
	broken := errors.New("broken")
	for name, f := range map[string]func() error{
		"no recipients": func() error {
			return Encrypt(context.Background(), io.Discard, strings.NewReader(""), 0, nil, Encryption{})
		},
		"too short": func() error {
			return Encrypt(context.Background(), io.Discard, strings.NewReader("abc"), 4, one, Encryption{})
		},
		"too long": func() error {
			return Encrypt(context.Background(), io.Discard, strings.NewReader("abcde"), 4, one, Encryption{})
		},
		"a size below -1": func() error {
			return Encrypt(context.Background(), io.Discard, strings.NewReader(""), -2, one, Encryption{})
		},
		"no random bytes": func() error {
			return Encrypt(context.Background(), io.Discard, strings.NewReader(""), 0, one, Encryption{Rand: iotest.ErrReader(broken)})
		},
		"a broken source": func() error {
			return Encrypt(context.Background(), io.Discard, iotest.ErrReader(broken), -1, one, Encryption{})
		},
	} {
		var refused *RecipientError
		if err := f(); err == nil || errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Another private key gives the one error, and nothing is committed. RSA with PKCS #1 v1.5 rejects
// implicitly: only the code of the content shows it.
func TestOtherKey(t *testing.T) {
	for _, f := range forms() {
		p, other := newParty(t, f.suite, f.set, 1), newParty(t, f.suite, f.set, 2)
		message := encrypt(t, make([]byte, 100), 100, f.o, p)
		o := p.opening()
		o.Key = other.key
		text, _, err := decrypt(t, message, o)
		if f.suite == suite.RSASHA256 && !f.o.OAEP && f.integrity == NotVerified {
			if err == nil && bytes.Equal(text, make([]byte, 100)) || err != nil && !errors.Is(err, ErrDecrypt) {
				t.Errorf("%s: %v", f.name, err)
			}
			continue
		}
		if !errors.Is(err, ErrDecrypt) {
			t.Errorf("%s: %v", f.name, err)
		}
		// The whole content is decrypted in any case, so that the time does not tell why.
		var sink watched
		parseEnveloped(t, message).Decrypt(context.Background(), o, &sink)
		if sink.Len() < 100 || sink.committed != 0 || sink.discarded != 1 {
			t.Errorf("%s: %d bytes were decrypted", f.name, sink.Len())
		}
	}
}

// A flipped bit anywhere gives an error or, in what nothing covers, the same plaintext. Without a
// code of the content it may give other bytes, and never Verified. In the short form only every eighth byte
// outside of the content has its turn.
func TestFlippedBits(t *testing.T) {
	for _, f := range forms() {
		if f.set != nil || f.o.Cipher == AES192CBC || f.o.Cipher == AES192GCM || f.suite == suite.GOST2001 && f.o.Agreement {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			p := newParty(t, f.suite, f.set, 1)
			text := []byte("thirty-three bytes of plain text.")
			message := encrypt(t, text, int64(len(text)), f.o, p)
			e := parseEnveloped(t, message)
			content := e.Content[0]
			params := int64(bytes.Index(message, e.Cipher.Params))
			changed := bytes.Clone(message)
			refused, same, other := 0, 0, 0
			for i := range message {
				inside := int64(i) >= content.Offset && int64(i) < content.Offset+content.Length
				if testsize.Of() < testsize.Whole && !inside && i%8 != 0 {
					continue
				}
				for bit := range 8 {
					if bit != i%8 && !inside {
						continue // one bit of a byte takes long enough
					}
					changed[i] ^= 1 << bit
					got, integrity, err := decrypt(t, changed, p.opening())
					changed[i] ^= 1 << bit
					switch {
					case err != nil:
						refused++
						if inside && !errors.Is(err, ErrDecrypt) {
							t.Errorf("byte %d of the content: %v", i, err)
						}
					case f.integrity == Verified && integrity == Verified && !bytes.Equal(got, text):
						t.Errorf("byte %d, bit %d: other bytes are verified", i, bit)
					case integrity == Verified && f.integrity != Verified:
						t.Errorf("byte %d, bit %d: a message without a code is verified", i, bit)
					case bytes.Equal(got, text):
						same++
						if inside {
							t.Errorf("byte %d of the content does not count", i)
						}
					default:
						other++
						allowed := inside || int64(i) >= params-20 && int64(i) < params+int64(len(e.Cipher.Params)) ||
							f.suite == suite.RSASHA256 && !f.o.OAEP
						if !allowed {
							t.Errorf("byte %d, bit %d: other bytes", i, bit)
						}
					}
				}
			}
			if f.integrity == Verified && other > 0 || f.integrity == NotVerified && other == 0 || refused == 0 {
				t.Errorf("%d refused, %d same, %d other", refused, same, other)
			}
		})
	}
}

// A message names the set, the digest and the agreement of its keys up to three times. A flipped bit in any of these
// is a contradiction, and refused, but for the two identifiers of agreement with keys of 2001.
func TestContradictions(t *testing.T) {
	for _, f := range forms() {
		if f.suite == suite.RSASHA256 {
			continue
		}
		p := newParty(t, f.suite, f.set, 1)
		text := []byte("the text")
		message := encrypt(t, text, int64(len(text)), f.o, p)
		if got, _, err := decrypt(t, message, p.opening()); err != nil || !bytes.Equal(got, text) {
			t.Fatalf("%s: %q, %v", f.name, got, err)
		}
		key, err := keyAlgorithm(p.certificate)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, named := range [][]byte{parseEnveloped(t, message).Recipients[0].Algorithm.Raw, key} {
			for at := 0; ; at++ {
				next := bytes.Index(message[at:], named)
				if next < 0 {
					break
				}
				at += next
				found++
				for i := at; i < at+len(named); i++ {
					for bit := range 8 {
						changed := bytes.Clone(message)
						changed[i] ^= 1 << bit
						alias := f.suite == suite.GOST2001 && changed[i]^message[i] == 96^98 && (message[i] == 96 || message[i] == 98)
						if got, _, err := decrypt(t, changed, p.opening()); err == nil && !alias {
							t.Errorf("%s: byte %d of %x, bit %d: %q", f.name, i-at, named, bit, got)
						}
					}
				}
			}
		}
		if found < 2 {
			t.Errorf("%s: %d identifiers of the key were found", f.name, found)
		}
	}
}

// A message costs one use of the private key, also when it does not decrypt.
func TestOneUseOfTheKey(t *testing.T) {
	for _, f := range forms() {
		p, other := newParty(t, f.suite, f.set, 1), newParty(t, f.suite, f.set, 2)
		message := encrypt(t, []byte("text"), 4, f.o, other, p)
		for _, key := range []RecipientKey{p.key, other.key} {
			used := &usedKey{RecipientKey: key}
			_, _, err := decrypt(t, message, Opening{Certificate: p.certificate, Key: used})
			if used.times != 1 || err != nil && key == p.key {
				t.Errorf("%s: the key was used %d times, %v", f.name, used.times, err)
			}
		}
	}
}

// usedKey counts the uses of a key.
type usedKey struct {
	RecipientKey
	times int
}

func (k *usedKey) Agree(ctx context.Context, a KeyAgreement) ([]byte, error) {
	k.times++
	return k.RecipientKey.Agree(ctx, a)
}

func (k *usedKey) Decrypt(ctx context.Context, t KeyTransport) ([]byte, error) {
	k.times++
	return k.RecipientKey.Decrypt(ctx, t)
}

// Memory does not grow with the content, in either direction and encoding.
func TestEnvelopedMemory(t *testing.T) {
	const size = 8 << 20
	for _, o := range []Encryption{{Cipher: Kuznyechik}, {Cipher: AES256GCM}} {
		p := newParty(t, suite.GOST2012x256, nil, 1)
		if o.Cipher == AES256GCM {
			p = newParty(t, suite.ECDSAP256, nil, 4)
		}
		for _, announced := range []int64{size, -1} {
			var before, between, after runtime.MemStats
			message := bytes.NewBuffer(make([]byte, 0, size+1<<16))
			runtime.ReadMemStats(&before)
			if err := Encrypt(context.Background(), message, io.LimitReader(zeros{}, size), announced, []*x509gost.Certificate{p.certificate}, o); err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&between)
			e := parseEnveloped(t, message.Bytes())
			var sink counted
			if integrity, err := e.Decrypt(context.Background(), p.opening(), &sink); err != nil || integrity != Verified || sink != size {
				t.Fatalf("%d bytes, %v, %v", sink, integrity, err)
			}
			runtime.ReadMemStats(&after)
			const most = 1 << 20
			if wrote, read := between.TotalAlloc-before.TotalAlloc, after.TotalAlloc-between.TotalAlloc; wrote > most || read > most {
				t.Errorf("%s, announced %d: %d KiB were allocated to write and %d KiB to read", o.Cipher, announced, wrote>>10, read>>10)
			}
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// counted is a Sink that counts.
type counted int64

func (c *counted) Write(p []byte) (int, error) { *c += counted(len(p)); return len(p), nil }
func (c *counted) Commit() error               { return nil }
func (c *counted) Discard()                    { *c = -1 }
