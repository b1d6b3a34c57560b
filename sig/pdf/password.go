// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/md5"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/binary"
)

// passwords finds the key of a document by the user's or the owner's password.
type passwords struct {
	revision     int
	length       int // bytes of the key, revisions 2 to 4
	permissions  uint32
	metadata     bool
	id           []byte // first half of the trailer's ID
	o, u, oe, ue []byte
}

// padding fills short passwords (7.6.4.3.2).
var padding = []byte("\x28\xBF\x4E\x5E\x4E\x75\x8A\x41\x64\x00\x4E\x56\xFF\xFA\x01\x08\x2E\x2E\x00\xB6\xD0\x68\x3E\x80\x2F\x0C\xA9\xFE\x64\x53\x69\x7A")

// open returns the key of the document, nil if the password is wrong.
func (p *passwords) open(password []byte) []byte {
	if p.revision >= 5 {
		return p.open256(password[:min(len(password), 127)])
	}
	forms := [][]byte{password}
	if pdfDoc, ok := toPDFDoc(string(password)); ok && !bytes.Equal(pdfDoc, password) {
		forms = append(forms, pdfDoc)
	}
	for _, form := range forms {
		if key := p.openUser(form); key != nil {
			return key
		}
		if key := p.openOwner(form); key != nil {
			return key
		}
	}
	return nil
}

func pad(password []byte) []byte {
	return append(bytes.Clone(password[:min(len(password), 32)]), padding...)[:32]
}

// openUser implements algorithms 2, 4, 5 and 6.
func (p *passwords) openUser(password []byte) []byte {
	h := md5.New()
	h.Write(pad(password))
	h.Write(p.o[:min(len(p.o), 32)])
	h.Write(binary.LittleEndian.AppendUint32(nil, p.permissions))
	h.Write(p.id)
	if p.revision >= 4 && !p.metadata {
		h.Write([]byte{0xff, 0xff, 0xff, 0xff})
	}
	key := h.Sum(nil)
	if p.revision >= 3 {
		for range 50 {
			sum := md5.Sum(key[:p.length])
			key = sum[:]
		}
	}
	key = key[:p.length]
	if p.revision == 2 {
		if len(p.u) >= 32 && subtle.ConstantTimeCompare(rc4With(key, padding), p.u[:32]) == 1 {
			return key
		}
		return nil
	}
	sum := md5.Sum(append(bytes.Clone(padding), p.id...))
	value := sum[:]
	for i := range 20 {
		value = rc4With(masked(key, byte(i)), value)
	}
	if len(p.u) >= 16 && subtle.ConstantTimeCompare(value, p.u[:16]) == 1 {
		return key
	}
	return nil
}

// openOwner implements algorithm 7.
func (p *passwords) openOwner(password []byte) []byte {
	if len(p.o) < 32 {
		return nil
	}
	sum := md5.Sum(pad(password))
	if p.revision >= 3 {
		for range 50 {
			sum = md5.Sum(sum[:])
		}
	}
	key := sum[:p.length]
	user := p.o[:32]
	if p.revision == 2 {
		user = rc4With(key, user)
	} else {
		for i := 19; i >= 0; i-- {
			user = rc4With(masked(key, byte(i)), user)
		}
	}
	return p.openUser(user)
}

func masked(key []byte, mask byte) []byte {
	out := bytes.Clone(key)
	for i := range out {
		out[i] ^= mask
	}
	return out
}

// open256 implements algorithm 2.A.
func (p *passwords) open256(password []byte) []byte {
	if len(p.u) < 48 || len(p.o) < 48 || len(p.ue) < 32 || len(p.oe) < 32 {
		return nil
	}
	try := func(salts, more, wrapped []byte) []byte {
		if subtle.ConstantTimeCompare(p.hash(password, salts[32:40], more), salts[:32]) != 1 {
			return nil
		}
		block, err := aes.NewCipher(p.hash(password, salts[40:48], more))
		if err != nil {
			return nil
		}
		key := bytes.Clone(wrapped[:32])
		cipher.NewCBCDecrypter(block, make([]byte, aes.BlockSize)).CryptBlocks(key, key)
		return key
	}
	if key := try(p.u, nil, p.ue); key != nil {
		return key
	}
	return try(p.o, p.u[:48], p.oe)
}

// hash is SHA-256 in revision 5 and algorithm 2.B in revision 6.
func (p *passwords) hash(password, salt, more []byte) []byte {
	input := bytes.Join([][]byte{password, salt, more}, nil)
	sum := sha256.Sum256(input)
	k := sum[:]
	if p.revision == 5 {
		return k
	}
	for i := 0; ; i++ {
		e := bytes.Repeat(bytes.Join([][]byte{password, k, more}, nil), 64)
		block, err := aes.NewCipher(k[:16])
		if err != nil {
			return nil
		}
		cipher.NewCBCEncrypter(block, k[16:32]).CryptBlocks(e, e)
		rest := 0 // of the first 16 bytes as a number modulo 3; 256 modulo 3 is 1
		for _, c := range e[:16] {
			rest += int(c)
		}
		switch rest % 3 {
		case 0:
			sum := sha256.Sum256(e)
			k = sum[:]
		case 1:
			sum := sha512.Sum384(e)
			k = sum[:]
		default:
			sum := sha512.Sum512(e)
			k = sum[:]
		}
		if i >= 63 && int(e[len(e)-1]) <= i-31 {
			return k[:32]
		}
	}
}
