// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"errors"
	"strings"
	"testing"
	"time"

	"tamga/gost/gost3410"
	"tamga/internal/domain/fault"
	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// recipient is a key of a holder with its PIN. It implements cms.RecipientKey.
type recipient struct {
	Decrypter
	key Key
	pin string
}

func (r recipient) Agree(ctx context.Context, a cms.KeyAgreement) ([]byte, error) {
	return r.Decrypter.Agree(ctx, r.key, []byte(r.pin), a)
}

func (r recipient) Decrypt(ctx context.Context, t cms.KeyTransport) ([]byte, error) {
	return r.Decrypter.Decrypt(ctx, r.key, []byte(r.pin), t)
}

// certificateOf returns a certificate that a key of the holder signed itself.
func certificateOf(t testing.TB, h *SoftHolder, k Key, public crypto.PublicKey, pin string) *x509gost.Certificate {
	t.Helper()
	name, err := x509gost.BuildName([]x509gost.Attribute{{OID: x509gost.OIDCommonName, Value: "Recipient"}})
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509gost.CreateCertificate(&x509gost.Template{
		Subject: name, SerialNumber: []byte{1},
		NotBefore: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC),
	}, nil, public, k.Suite, k.Suite, func(d suite.Digest) ([]byte, error) {
		values, err := h.Sign(t.Context(), k, []byte(pin), []suite.Digest{d})
		if err != nil {
			return nil, err
		}
		return values[0], nil
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509gost.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSoftHolderDecrypts(t *testing.T) {
	h := newTestHolder(t, newTestRing(t, "2025"))
	text := strings.Repeat("A line of the document.\n", 100)
	for _, want := range []struct {
		suite *suite.Suite
		set   *gost3410.Set
		how   cms.Encryption
	}{
		{suite: suite.GOST2001}, {suite: suite.GOST2012x256}, {suite: suite.GOST2012x512},
		{suite: suite.GOST2012x256, set: gost3410.TC26256A, how: cms.Encryption{Cipher: cms.Kuznyechik, Agreement: true}},
		{suite: suite.GOST2012x512, set: gost3410.TC26512C, how: cms.Encryption{Cipher: cms.Magma}},
		{suite: suite.ECDSAP256, how: cms.Encryption{Cipher: cms.AES256GCM}},
		{suite: suite.RSASHA256, how: cms.Encryption{Cipher: cms.AES256GCM}},
		{suite: suite.RSASHA256, how: cms.Encryption{Cipher: cms.AES256GCM, OAEP: true}},
	} {
		for _, pin := range []string{"", "1234"} {
			k, public, err := h.Generate(t.Context(), "keys:a", want.suite, want.set, []byte(pin))
			if err != nil {
				t.Fatal(err)
			}
			c := certificateOf(t, h, k, public, pin)
			var message bytes.Buffer
			if err := cms.Encrypt(t.Context(), &message, strings.NewReader(text), int64(len(text)), []*x509gost.Certificate{c}, want.how); err != nil {
				t.Fatal(err)
			}
			e, err := cms.ParseEnveloped(bytes.NewReader(message.Bytes()), int64(message.Len()))
			if err != nil {
				t.Fatal(err)
			}
			for _, given := range []string{pin, "1235"} {
				out := cms.Buffer{Limit: len(text)}
				_, err := e.Decrypt(t.Context(), cms.Opening{Certificate: c, Key: recipient{h, k, given}}, &out)
				switch right := given == pin || pin == ""; {
				case right && (err != nil || string(out.Bytes()) != text):
					t.Errorf("%s, %+v, PIN %q: %v", want.suite.Name, want.how, pin, err)
				case !right && (!errors.Is(err, ErrPIN) || out.Bytes() != nil):
					t.Errorf("%s, %+v, a wrong PIN: %v", want.suite.Name, want.how, err)
				}
			}
		}
	}
}

// A padding that is wrong gives a key of the right size, the same for the same ciphertext each time the
// key is opened. With OAEP it is cms.ErrDecrypt.
func TestSoftHolderRejectsImplicitly(t *testing.T) {
	h := newTestHolder(t, newTestRing(t, "2025"))
	k, public, err := h.Generate(t.Context(), "keys:a", suite.RSASHA256, nil, []byte("1234"))
	if err != nil {
		t.Fatal(err)
	}
	wrong := bytes.Repeat([]byte{0x5a}, public.(*rsa.PublicKey).Size())
	r := recipient{h, k, "1234"}
	first, err := r.Decrypt(t.Context(), cms.KeyTransport{Ciphertext: wrong, Size: 32})
	if err != nil || len(first) != 32 {
		t.Fatalf("%d bytes, %v", len(first), err)
	}
	second, err := r.Decrypt(t.Context(), cms.KeyTransport{Ciphertext: wrong, Size: 32})
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("another key for the same ciphertext: %v", err)
	}
	if _, err := r.Decrypt(t.Context(), cms.KeyTransport{Ciphertext: wrong, Size: 32, OAEP: &rsa.OAEPOptions{Hash: crypto.SHA256}}); !errors.Is(err, cms.ErrDecrypt) {
		t.Errorf("OAEP: %v", err)
	}
}

// Input that does not fit the key is refused before the PIN is tried, so that it reveals nothing about the PIN.
func TestSoftHolderRefusesWhatDoesNotFit(t *testing.T) {
	ctx := t.Context()
	h := newTestHolder(t, newTestRing(t, "2025"))
	publics, made := map[*suite.Suite]crypto.PublicKey{}, map[*suite.Suite]Key{}
	for _, s := range []*suite.Suite{suite.GOST2012x256, suite.GOST2012x512, suite.ECDSAP256, suite.RSASHA256} {
		k, public, err := h.Generate(ctx, "keys:a", s, nil, []byte("1234"))
		if err != nil {
			t.Fatal(err)
		}
		made[s], publics[s] = k, public
	}
	ukm := bytes.Repeat([]byte{1}, 8)
	gost := cms.KeyAgreement{Peer: publics[suite.GOST2012x256], UKM: ukm, Hash: suite.Streebog256}
	for what, try := range map[string]func(pin []byte) error{
		"a peer of 512 bits": func(pin []byte) error {
			a := gost
			a.Peer = publics[suite.GOST2012x512]
			_, err := h.Agree(ctx, made[suite.GOST2012x256], pin, a)
			return err
		},
		"no hash": func(pin []byte) error {
			a := gost
			a.Hash = nil
			_, err := h.Agree(ctx, made[suite.GOST2012x256], pin, a)
			return err
		},
		"no peer": func(pin []byte) error {
			_, err := h.Agree(ctx, made[suite.GOST2012x256], pin, cms.KeyAgreement{UKM: ukm, Hash: suite.Streebog256})
			return err
		},
		"an EC key with a hash": func(pin []byte) error {
			_, err := h.Agree(ctx, made[suite.ECDSAP256], pin, cms.KeyAgreement{Peer: publics[suite.ECDSAP256], Hash: suite.Streebog256})
			return err
		},
		"an RSA key agrees": func(pin []byte) error {
			_, err := h.Agree(ctx, made[suite.RSASHA256], pin, cms.KeyAgreement{Peer: publics[suite.RSASHA256]})
			return err
		},
		"a GOST key decrypts": func(pin []byte) error {
			_, err := h.Decrypt(ctx, made[suite.GOST2012x256], pin, cms.KeyTransport{Ciphertext: make([]byte, 64), Size: 32})
			return err
		},
		"no suite": func(pin []byte) error {
			_, err := h.Decrypt(ctx, Key{ID: "keys:a"}, pin, cms.KeyTransport{})
			_, err2 := h.Agree(ctx, Key{ID: "keys:a"}, pin, gost)
			if err2 == nil {
				return nil
			}
			return err
		},
	} {
		for _, pin := range []string{"1234", "1235"} {
			if err := try([]byte(pin)); err == nil || errors.Is(err, ErrPIN) {
				t.Errorf("%s, PIN %s: %v", what, pin, err)
			}
		}
	}
}

// signer is a holder whose keys only sign.
type signer struct{ Holder }

// failingDecrypter is a Decrypter that is not ready.
type failingDecrypter struct {
	failing
	Decrypter
}

func (f *failingDecrypter) Agree(ctx context.Context, _ Key, _ []byte, _ cms.KeyAgreement) ([]byte, error) {
	return nil, f.Ready(ctx)
}

func (f *failingDecrypter) Decrypt(ctx context.Context, _ Key, _ []byte, _ cms.KeyTransport) ([]byte, error) {
	return nil, f.Ready(ctx)
}

func TestHoldersDecrypt(t *testing.T) {
	ctx, s := t.Context(), suite.ECDSAP256
	soft := newTestHolder(t, newTestRing(t, "2025"))
	h, err := NewHolders(NamedHolder{SoftwareName, soft}, NamedHolder{"signer", signer{soft}}, NamedHolder{"away", &failingDecrypter{}})
	if err != nil {
		t.Fatal(err)
	}
	k, public, err := h.Generate(ctx, SoftwareName, "keys:a", s, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	other, err := s.Generate(newReader(9))
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := cms.NewRecipientKey(other)
	if err != nil {
		t.Fatal(err)
	}
	a := cms.KeyAgreement{Peer: other.Public().(*ecdsa.PublicKey)}
	secret, err := h.Agree(ctx, k, nil, a)
	if same, err2 := theirs.Agree(ctx, cms.KeyAgreement{Peer: public}); err != nil || err2 != nil || !bytes.Equal(secret, same) {
		t.Errorf("both sides: %x, %x, %v, %v", secret, same, err, err2)
	}
	if err := h.Decrypts(k); err != nil {
		t.Error(err)
	}
	for name, code := range map[string]string{"signer": fault.WrongOperation, "away": fault.Unavailable, "gone": fault.Unavailable} {
		k := k
		k.Holder = name
		_, err := h.Agree(ctx, k, nil, a)
		_, err2 := h.Decrypt(ctx, k, nil, cms.KeyTransport{})
		for _, err := range []error{err, err2} {
			f, is := fault.As(err)
			if !is || f.Code != code || strings.Contains(f.Message, name) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := h.Decrypts(k); (err == nil) != (name == "away") || err != nil && !fault.Is(err, code) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
