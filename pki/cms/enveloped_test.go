// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"tamga/pki/x509gost"
)

// published are the messages of testdata/enveloped.json.
type published struct {
	Note         string
	Certificates map[string][]byte
	Keys         map[string][]byte
	Messages     []struct {
		Name, Source, Recipient, Sender, Cipher, Integrity string
		Text, Message                                      []byte
	}
}

func readPublished(t testing.TB) (p published) {
	t.Helper()
	file, err := os.ReadFile("testdata/enveloped.json")
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(file))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		t.Fatal(err)
	}
	return p
}

func parsedCertificate(t testing.TB, der []byte) *x509gost.Certificate {
	t.Helper()
	c, err := x509gost.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func recipientKey(t testing.TB, pkcs8 []byte) RecipientKey {
	t.Helper()
	private, _, err := x509gost.ParsePrivateKey(pkcs8)
	if err != nil {
		t.Fatal(err)
	}
	key, err := NewRecipientKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func parseEnveloped(t testing.TB, message []byte) *Enveloped {
	t.Helper()
	e, err := ParseEnveloped(bytes.NewReader(message), int64(len(message)))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// watched is a Sink that notes its calls.
type watched struct {
	bytes.Buffer
	committed, discarded int
}

func (w *watched) Commit() error { w.committed++; return nil }
func (w *watched) Discard()      { w.discarded++ }

// decrypt decrypts a message. It returns nil for a message that is refused.
func decrypt(t testing.TB, message []byte, o Opening) ([]byte, Integrity, error) {
	t.Helper()
	e, err := ParseEnveloped(bytes.NewReader(message), int64(len(message)))
	if err != nil {
		return nil, NotVerified, err
	}
	var sink watched
	integrity, err := e.Decrypt(context.Background(), o, &sink)
	if sink.committed+sink.discarded != 1 || (err == nil) != (sink.committed == 1) {
		t.Fatalf("%d times committed and %d times discarded, %v", sink.committed, sink.discarded, err)
	}
	if err != nil {
		return nil, integrity, err
	}
	return append([]byte{}, sink.Bytes()...), integrity, nil
}

// The published messages decrypt, with the sender's certificate where a message only names it.
func TestPublishedEnveloped(t *testing.T) {
	p := readPublished(t)
	for _, m := range p.Messages {
		t.Run(m.Name, func(t *testing.T) {
			o := Opening{Certificate: parsedCertificate(t, p.Certificates[m.Recipient]), Key: recipientKey(t, p.Keys[m.Recipient])}
			e := parseEnveloped(t, m.Message)
			if c, _, err := e.ContentCipher(); err != nil || c.Name != m.Cipher {
				t.Errorf("cipher %v, %v", c, err)
			}
			if r, err := e.Recipient(o.Certificate); err != nil || r != e.Recipients[0] {
				t.Errorf("recipient: %v", err)
			}
			if m.Sender != "" {
				if _, _, err := decrypt(t, m.Message, o); !errors.Is(err, ErrOriginator) {
					t.Errorf("without the sender's certificate: %v", err)
				}
				o.Originator = parsedCertificate(t, p.Certificates["sender512"])
				if _, _, err := decrypt(t, m.Message, o); !errors.Is(err, ErrOriginator) {
					t.Errorf("with another certificate: %v", err)
				}
				o.Originator = parsedCertificate(t, p.Certificates[m.Sender])
			}
			text, integrity, err := decrypt(t, m.Message, o)
			if err != nil || !bytes.Equal(text, m.Text) || integrity.String() != m.Integrity {
				t.Errorf("%q, %v, %v", text, integrity, err)
			}
			o.Certificate = parsedCertificate(t, p.Certificates["sender512"])
			if _, _, err := decrypt(t, m.Message, o); !errors.Is(err, ErrNotRecipient) {
				t.Errorf("with a certificate that is not a recipient: %v", err)
			}
		})
	}
}
