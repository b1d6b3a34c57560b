// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/md5"
	"crypto/rc4"
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

// crypt encrypts and decrypts the strings and streams of one document (ISO 32000-2, 7.6).
type crypt struct {
	key      []byte
	strings  method
	streams  method
	filters  map[name]method
	metadata bool // metadata streams are encrypted too
	own      int  // number of the encryption dictionary, whose strings are never encrypted
}

// method is the algorithm of a crypt filter.
type method uint8

const (
	identity method = iota
	methodRC4
	methodAES128
	methodAES256
)

// errPassword means that none of the given passwords opens the document.
var errPassword = errors.New("the document is encrypted, and none of the given passwords opens it")

// decryption prepares decryption by the encryption dictionary.
func (f *file) decryption(o object, password []byte) error {
	own := 0
	if r, ok := o.(ref); ok {
		own = r.num
	}
	d, ok := f.resolve(o).(dict)
	if !ok {
		return errors.New("the encryption dictionary is missing")
	}
	if n := f.resolve(d.get("Filter")); n != name("Standard") {
		return refuse("the document is encrypted by the security handler %v; only passwords (Standard) are supported", printable(n))
	}
	c := &crypt{own: own, metadata: f.resolve(d.get("EncryptMetadata")) != false}
	p := &passwords{metadata: c.metadata}
	v := f.intOf(d.get("V"))
	p.revision = int(f.intOf(d.get("R")))
	p.permissions = uint32(f.intOf(d.get("P")))
	p.o, p.u = f.textOf(d.get("O")), f.textOf(d.get("U"))
	p.oe, p.ue = f.textOf(d.get("OE")), f.textOf(d.get("UE"))
	if ids := f.resolveArray(f.trailer.get("ID")); len(ids) > 0 {
		p.id = f.textOf(ids[0])
	}
	c.strings, c.streams = methodRC4, methodRC4
	switch v {
	case 1:
		p.length = 5
	case 2, 3:
		p.length = 16 // if Length is missing or wrong; 5 is tried as well
		if n := f.intOf(d.get("Length")); n >= 40 && n <= 128 {
			p.length = int(n / 8)
		}
	case 4, 5:
		p.length = 16
		if v == 5 {
			p.length = 32
		}
		if err := c.readFilters(f, d); err != nil {
			return err
		}
	default:
		return refuse("the document is encrypted by the unknown algorithm V=%d", v)
	}
	if p.revision < 2 || p.revision > 6 || (v == 5) != (p.revision >= 5) {
		return refuse("the document is encrypted by the unknown algorithm V=%d, R=%d", v, p.revision)
	}
	for _, length := range []int{p.length, 5} {
		p.length = length
		f.charge(2 * pricePassword)
		if c.key == nil {
			c.key = p.open(nil)
		}
		if c.key == nil && len(password) > 0 {
			c.key = p.open(password)
		}
		if v != 2 && v != 3 {
			break
		}
	}
	if c.key == nil {
		return errPassword
	}
	f.crypt = c
	f.forget() // these were read without decryption
	return nil
}

// readFilters reads the crypt filters of V 4 and 5.
func (c *crypt) readFilters(f *file, d dict) error {
	c.filters = map[name]method{"Identity": identity}
	for _, e := range f.resolveDict(d.get("CF")) {
		filter := f.resolveDict(e.value)
		switch m := f.resolve(filter.get("CFM")); m {
		case nil, name("None"):
			c.filters[e.key] = identity
		case name("V2"):
			c.filters[e.key] = methodRC4
		case name("AESV2"):
			c.filters[e.key] = methodAES128
		case name("AESV3"):
			c.filters[e.key] = methodAES256
		default:
			return refuse("the document is encrypted by the unknown method %v", printable(m))
		}
	}
	for key, to := range map[name]*method{"StmF": &c.streams, "StrF": &c.strings} {
		n, ok := f.resolve(d.get(key)).(name)
		if !ok {
			n = "Identity"
		}
		if *to, ok = c.filters[n]; !ok {
			return refuse("the document is encrypted by the crypt filter %v, which is not defined", printable(n))
		}
	}
	return nil
}

func (f *file) intOf(o object) int64 {
	n, _ := integer(f.resolve(o))
	return n
}

func (f *file) textOf(o object) []byte {
	t, _ := f.resolve(o).(text)
	return t
}

// objectKey returns the key for the strings and streams of one object.
func (c *crypt) objectKey(m method, id ref) []byte {
	if m == methodAES256 {
		return c.key
	}
	h := md5.New()
	h.Write(c.key)
	var b [8]byte
	binary.LittleEndian.PutUint32(b[:], uint32(id.num))
	binary.LittleEndian.PutUint16(b[3:], uint16(id.gen))
	h.Write(b[:5])
	if m == methodAES128 {
		h.Write([]byte("sAlT"))
	}
	return h.Sum(nil)[:min(len(c.key)+5, 16)]
}

// decrypt returns the plain bytes. Malformed ciphertext is decrypted as far as possible,
// as viewers do.
func (c *crypt) decrypt(m method, id ref, data []byte) []byte {
	switch m {
	case methodRC4:
		return rc4With(c.objectKey(m, id), data)
	case methodAES128, methodAES256:
		if len(data) < 2*aes.BlockSize {
			return nil
		}
		block, err := aes.NewCipher(c.objectKey(m, id))
		if err != nil {
			return nil
		}
		iv, body := data[:aes.BlockSize], data[aes.BlockSize:]
		body = bytes.Clone(body[:len(body)/aes.BlockSize*aes.BlockSize])
		cipher.NewCBCDecrypter(block, iv).CryptBlocks(body, body)
		if n := int(body[len(body)-1]); n >= 1 && n <= aes.BlockSize {
			body = body[:len(body)-n]
		}
		return body
	}
	return data
}

// encrypt returns the ciphertext. The initialization vector is derived from key, object
// and data, because no randomness is available here. The same data in the same object
// gives the same ciphertext.
func (c *crypt) encrypt(m method, id ref, data []byte) []byte {
	switch m {
	case methodRC4:
		return rc4With(c.objectKey(m, id), data)
	case methodAES128, methodAES256:
		key := c.objectKey(m, id)
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil // impossible: the key lengths are valid
		}
		h := hmac.New(sha256.New, key)
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(id.num)))
		h.Write(data)
		out := append([]byte(nil), h.Sum(nil)[:aes.BlockSize]...)
		n := aes.BlockSize - len(data)%aes.BlockSize
		out = append(append(out, data...), bytes.Repeat([]byte{byte(n)}, n)...)
		cipher.NewCBCEncrypter(block, out[:aes.BlockSize]).CryptBlocks(out[aes.BlockSize:], out[aes.BlockSize:])
		return out
	}
	return data
}

func rc4With(key, data []byte) []byte {
	c, err := rc4.NewCipher(key)
	if err != nil {
		return nil
	}
	out := make([]byte, len(data))
	c.XORKeyStream(out, data)
	return out
}

// decryptStrings decrypts the strings inside an object, except the value of a signature,
// which is never encrypted.
func (c *crypt) decryptStrings(o object, id ref) object {
	return c.mapStrings(o, func(t text) text { return c.decrypt(c.strings, id, t) })
}

func (c *crypt) mapStrings(o object, change func(text) text) object {
	switch o := o.(type) {
	case text:
		return change(o)
	case array:
		out := make(array, len(o))
		for i := range o {
			out[i] = c.mapStrings(o[i], change)
		}
		return out
	case dict:
		out := make(dict, len(o))
		signature := o.has("ByteRange")
		for i, e := range o {
			out[i] = e
			if !(signature && e.key == "Contents") {
				out[i].value = c.mapStrings(e.value, change)
			}
		}
		return out
	case *stream:
		out := *o
		out.dict = c.mapStrings(o.dict, change).(dict)
		return &out
	}
	return o
}

// decryptStream decrypts the bytes of a stream.
func (c *crypt) decryptStream(raw []byte, s *stream, filters, parms array) ([]byte, error) {
	m := c.streams
	switch s.dict.get("Type") {
	case name("XRef"):
		return raw, nil
	case name("Metadata"):
		if !c.metadata {
			m = identity
		}
	}
	if len(filters) > 0 && filters[0] == name("Crypt") {
		n := name("Identity")
		if len(parms) > 0 {
			d, _ := parms[0].(dict)
			if own, ok := d.get("Name").(name); ok {
				n = own
			}
		}
		var ok bool
		if m, ok = c.filters[n]; !ok {
			return nil, errors.New("a stream has a crypt filter that the document does not define")
		}
	}
	return c.decrypt(m, s.id, raw), nil
}
