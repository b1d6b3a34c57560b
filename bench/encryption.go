// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"

	"tamga/gost/gost3410"
	"tamga/pki/cms"
	"tamga/pki/x509gost"

	"tamga/bench/engine"
)

// encryptionWorks returns works that encrypt and decrypt CMS messages (EnvelopedData) with one recipient, by key
// transport, each side its own messages. The peer has whole messages in memory, as openssl cms without -stream.
func encryptionWorks() ([]work, error) {
	key, err := gost3410.GenerateKey(gost3410.CryptoProA, nil)
	if err != nil {
		return nil, err
	}
	certificate, err := certify(key)
	if err != nil {
		return nil, err
	}
	recipient, err := cms.NewRecipientKey(key)
	if err != nil {
		return nil, err
	}
	peer, err := engine.Generate(engine.GOST2012256, "A")
	if err != nil {
		return nil, err
	}
	owner, err := peer.Certify()
	if err != nil {
		return nil, err
	}
	party := &encryptionParty{certificate, cms.Opening{Certificate: certificate, Key: recipient}, owner}
	data := make([]byte, 100<<20)
	var all []work
	for _, size := range []struct {
		name  string
		bytes int
	}{{"1 KiB", 1 << 10}, {"100 MiB", len(data)}} {
		for _, c := range []struct {
			name, theirs string
			o            cms.Encryption
			broken       bool // the engine reads long messages with shorter sections than it writes with: its code is wrong
		}{
			{"28147-89", "gost89", cms.Encryption{Cipher: cms.GOST28147}, false},
			{"Kuznyechik", "kuznyechik-ctr-acpkm", cms.Encryption{Cipher: cms.Kuznyechik, WithoutIntegrity: true}, false},
			{"Kuznyechik OMAC", "kuznyechik-ctr-acpkm-omac", cms.Encryption{Cipher: cms.Kuznyechik}, size.bytes > 1<<10},
		} {
			text, bytesOf := data[:size.bytes], 0
			if size.bytes > 1<<20 {
				bytesOf = size.bytes
			}
			if bytesOf > 0 && *lines {
				continue // half a minute a round in the portable build
			}
			all = append(all,
				work{"encrypt CMS, " + size.name + ", " + c.name, bytesOf,
					func(n int) error {
						for range n {
							if err := party.encrypt(io.Discard, text, c.o); err != nil {
								return err
							}
						}
						return nil
					},
					func(n int) error {
						_, err := owner.EncryptCMS(c.theirs, text, n, false)
						return err
					}},
				party.decryption("decrypt CMS, "+size.name+", "+c.name, bytesOf, text, c.o, c.theirs, c.broken))
		}
	}
	return all, nil
}

// encryptionParty is the recipient of messages.
type encryptionParty struct {
	certificate *x509gost.Certificate
	opening     cms.Opening
	peer        *engine.Signer
}

func (p *encryptionParty) encrypt(dst io.Writer, text []byte, o cms.Encryption) error {
	return cms.Encrypt(context.Background(), dst, bytes.NewReader(text), int64(len(text)), []*x509gost.Certificate{p.certificate}, o)
}

// decryption returns a work that decrypts. Its messages are made when it is run: all of them would take gigabytes.
func (p *encryptionParty) decryption(name string, bytesOf int, text []byte, o cms.Encryption, cipher string, broken bool) work {
	return work{name, bytesOf,
		func(n int) error {
			ours, err := messageOf(name+" ours", func() ([]byte, error) {
				var out bytes.Buffer
				out.Grow(len(text) + 4<<10)
				err := p.encrypt(&out, text, o)
				return out.Bytes(), err
			})
			if err != nil {
				return err
			}
			for range n {
				e, err := cms.ParseEnveloped(bytes.NewReader(ours), int64(len(ours)))
				if err != nil {
					return err
				}
				if _, err := e.Decrypt(context.Background(), p.opening, discard{}); err != nil {
					return err
				}
			}
			return nil
		},
		func(n int) error {
			theirs, err := messageOf(name+" theirs", func() ([]byte, error) { return p.peer.EncryptCMS(cipher, text, 1, true) })
			if err != nil {
				return err
			}
			return p.peer.DecryptCMS(theirs, n, broken)
		}}
}

// messages are what both sides decrypt, by the name of the work.
var messages [2]struct {
	name    string
	message []byte
}

// messageOf returns a message, which it makes once.
func messageOf(name string, make func() ([]byte, error)) ([]byte, error) {
	for _, m := range messages {
		if m.name == name {
			return m.message, nil
		}
	}
	messages[0] = messages[1]
	message, err := make()
	messages[1].name, messages[1].message = name, message
	return message, err
}

// discard is a cms.Sink that keeps nothing.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Commit() error               { return nil }
func (discard) Discard()                    {}
