// SPDX-License-Identifier: Apache-2.0

package xmlenc

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
	"io"

	"tamga/gost/gost28147"
	"tamga/pki/cms"
)

// method is a cipher for contents.
type method struct {
	uri     string // the Algorithm of an EncryptionMethod
	keySize int    // bytes
	gost    bool
	box     *gost28147.SBox // of GOST 28147-89: that of the encrypted keys
}

var methods = []*method{
	{uri: nsPro + "gost28147", keySize: 32, gost: true},
	{uri: nsEnc11 + "aes256-gcm", keySize: 32},
	{uri: nsEnc11 + "aes128-gcm", keySize: 16},
}

// methodNamed returns a method, nil if it is not supported.
func methodNamed(uri string) *method {
	for _, m := range methods {
		if m.uri == uri {
			return m
		}
	}
	return nil
}

const (
	gcmNonce = 12 // bytes before the encrypted content
	gcmCode  = 16 // bytes after it
)

// extra is the number of bytes of an encrypted content beyond the plaintext.
func (m *method) extra() int {
	if m.gost {
		return gost28147.BlockSize
	}
	return gcmNonce + gcmCode
}

// encrypt returns the vector, the encrypted text and, if the method has one, the authentication code.
func (m *method) encrypt(random io.Reader, key, text []byte) ([]byte, error) {
	size := gcmNonce
	if m.gost {
		size = gost28147.BlockSize
	}
	iv := make([]byte, size, len(text)+m.extra())
	if _, err := io.ReadFull(random, iv); err != nil {
		return nil, fmt.Errorf("xmlenc: drawing a vector: %w", err)
	}
	if m.gost {
		s, err := gost28147.NewCFBEncrypter(key, iv, m.box, gost28147.CryptoProMeshing)
		if err != nil {
			return nil, err
		}
		out := append(iv, text...)
		s.XORKeyStream(out[len(iv):], out[len(iv):])
		return out, nil
	}
	g, err := gcm(key)
	if err != nil {
		return nil, err
	}
	return g.Seal(iv, iv, text, nil), nil
}

// decrypt decrypts in place. The error is cms.ErrDecrypt if the code is wrong. wrong decrypts and then
// returns that error anyway, in the same time.
func (m *method) decrypt(key, sealed []byte, wrong bool) (text []byte, err error) {
	if len(sealed) < m.extra() {
		return nil, errors.New("xmlenc: the encrypted content is shorter than its vector and code")
	}
	if m.gost {
		iv, text := sealed[:gost28147.BlockSize], sealed[gost28147.BlockSize:]
		s, err := gost28147.NewCFBDecrypter(key, iv, m.box, gost28147.CryptoProMeshing)
		if err != nil {
			return nil, err
		}
		s.XORKeyStream(text, text)
		if wrong {
			clear(text)
			return nil, cms.ErrDecrypt
		}
		return text, nil
	}
	g, err := gcm(key)
	if err != nil {
		return nil, err
	}
	iv, rest := sealed[:gcmNonce], sealed[gcmNonce:]
	text, err = g.Open(rest[:0], iv, rest, nil)
	if err != nil || wrong {
		clear(rest)
		return nil, cms.ErrDecrypt
	}
	return text, nil
}

func gcm(key []byte) (cipher.AEAD, error) {
	b, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(b)
}
