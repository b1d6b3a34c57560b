// SPDX-License-Identifier: Apache-2.0

package pfx

import (
	"bytes"
	"crypto"
	"crypto/subtle"
	"errors"
	"fmt"
	"unicode/utf16"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"

	"tamga/pki/x509gost"
)

// Parse reads a file. The file must have exactly one private key. The result has the
// certificate of this key, if the file has it. A wrong password is ErrPassword. The caller
// must wipe the key.
func Parse(data []byte, password string) (*Bundle, error) {
	b, err := parse(data, password)
	if err != nil && !errors.Is(err, ErrPassword) {
		return nil, fmt.Errorf("pfx: %w", err)
	}
	return b, err
}

// reader holds the state of reading one file.
type reader struct {
	password     string
	budget       budget
	bags         int
	key          []byte // PKCS #8; wiped at the end
	keyID        []byte
	name         string
	unproven     bool // only a certificate can prove the key
	sealed       bool // a content with certificates could not be read
	certificates []certificate
}

type certificate struct {
	*x509gost.Certificate
	id   []byte
	name string
}

func parse(data []byte, password string) (*Bundle, error) {
	der, err := x509gost.FromBER(data, MaxSize)
	if err != nil {
		return nil, err
	}
	r := &reader{password: password, budget: MaxIterations}
	defer func() { clear(r.key) }()
	safe, err := r.authenticated(der)
	if err != nil {
		return nil, err
	}
	if safe, err = x509gost.FromBER(safe, MaxSize); err != nil {
		return nil, err
	}
	in, list := cryptobyte.String(safe), cryptobyte.String(nil)
	if !in.ReadASN1(&list, asn1.SEQUENCE) || !in.Empty() {
		return nil, errors.New("the authenticated safe is malformed")
	}
	for count := 0; !list.Empty(); count++ {
		if count == maxContents {
			return nil, fmt.Errorf("more than %d contents", maxContents)
		}
		if err := r.content(&list); err != nil {
			return nil, err
		}
	}
	return r.bundle()
}

// authenticated checks the integrity of a file and returns the protected content.
func (r *reader) authenticated(der []byte) ([]byte, error) {
	in, pfx := cryptobyte.String(der), cryptobyte.String(nil)
	var version uint
	if !in.ReadASN1(&pfx, asn1.SEQUENCE) || !in.Empty() || !pfx.ReadASN1Integer(&version) || version != 3 {
		return nil, errors.New("this is not a PKCS #12 file of version 3")
	}
	kind, content, err := readContent(&pfx)
	if err != nil {
		return nil, err
	}
	var contents cryptobyte.String
	if !kind.Equal(oidData) || !content.ReadASN1(&contents, asn1.OCTET_STRING) {
		return nil, errors.New("its integrity is protected by a signature, which is not supported; want a password")
	}
	if pfx.Empty() {
		return nil, errors.New("its integrity is not protected; want a code made with the password")
	}
	var mac, info, digest, salt cryptobyte.String
	iterations := uint64(1)
	if !pfx.ReadASN1(&mac, asn1.SEQUENCE) || !pfx.Empty() || !mac.ReadASN1(&info, asn1.SEQUENCE) {
		return nil, errors.New("the integrity code is malformed")
	}
	algorithm, _, err := x509gost.ReadAlgorithm(&info)
	if err != nil || !info.ReadASN1(&digest, asn1.OCTET_STRING) || !mac.ReadASN1(&salt, asn1.OCTET_STRING) || len(salt) > maxSalt {
		return nil, errors.New("the integrity code is malformed")
	}
	if !mac.Empty() && (!mac.ReadASN1Integer(&iterations) || !mac.Empty()) {
		return nil, errors.New("the integrity code is malformed")
	}
	code, err := r.budget.integrity(algorithm, r.password, salt, iterations, contents)
	if err != nil {
		return nil, err
	}
	if subtle.ConstantTimeCompare(code, digest) != 1 {
		return nil, ErrPassword
	}
	return contents, nil
}

// readContent reads a ContentInfo (RFC 5652, section 3).
func readContent(in *cryptobyte.String) (kind x509gost.OID, content cryptobyte.String, err error) {
	var info cryptobyte.String
	if !in.ReadASN1(&info, asn1.SEQUENCE) {
		return nil, nil, errors.New("a content is malformed")
	}
	if kind, err = x509gost.ReadOID(&info); err != nil {
		return nil, nil, err
	}
	if !info.ReadASN1(&content, asn1.Tag(0).Constructed().ContextSpecific()) || !info.Empty() {
		return nil, nil, errors.New("a content is malformed")
	}
	return kind, content, nil
}

// content reads one of the contents of the safe.
func (r *reader) content(in *cryptobyte.String) error {
	kind, content, err := readContent(in)
	if err != nil {
		return err
	}
	switch {
	case kind.Equal(oidData):
		var contents cryptobyte.String
		if !content.ReadASN1(&contents, asn1.OCTET_STRING) {
			return errors.New("a content is malformed")
		}
		return r.safe(contents, 0)
	case kind.Equal(oidEncryptedData):
		var data, info, contents cryptobyte.String
		var version uint
		if !content.ReadASN1(&data, asn1.SEQUENCE) || !data.ReadASN1Integer(&version) || !data.ReadASN1(&info, asn1.SEQUENCE) ||
			!info.SkipASN1(asn1.OBJECT_IDENTIFIER) {
			return errors.New("an encrypted content is malformed")
		}
		algorithm := info
		if !info.SkipASN1(asn1.SEQUENCE) || !readImplicit(&info, &contents) {
			return errors.New("an encrypted content is malformed")
		}
		if oid, _, err := algorithmOf(algorithm); err == nil && oid.Equal(oidRC2) {
			// CryptoPro CSP encrypts certificates so, which are public. The key is elsewhere.
			r.sealed = true
			return nil
		}
		plain, err := r.budget.decipher(&algorithm, r.password, contents)
		if err != nil {
			return err
		}
		defer clear(plain)
		return r.safe(plain, 0)
	}
	return fmt.Errorf("contents of type %s are not supported", kind)
}

// algorithmOf reads the AlgorithmIdentifier at the beginning of in.
func algorithmOf(in cryptobyte.String) (x509gost.OID, []byte, error) {
	return x509gost.ReadAlgorithm(&in)
}

// readImplicit reads [0] IMPLICIT OCTET STRING, in one piece or, in BER, in several.
func readImplicit(in, contents *cryptobyte.String) bool {
	if in.ReadASN1(contents, asn1.Tag(0).ContextSpecific()) {
		return true
	}
	var pieces, piece cryptobyte.String
	if !in.ReadASN1(&pieces, asn1.Tag(0).Constructed().ContextSpecific()) {
		return false
	}
	for !pieces.Empty() {
		if !pieces.ReadASN1(&piece, asn1.OCTET_STRING) {
			return false
		}
		*contents = append(*contents, piece...)
	}
	return true
}

// safe reads SafeContents.
func (r *reader) safe(data []byte, depth int) error {
	if depth > maxNesting {
		return fmt.Errorf("bags nest deeper than %d", maxNesting)
	}
	der, err := x509gost.FromBER(data, MaxSize)
	if err != nil {
		return err
	}
	in, list := cryptobyte.String(der), cryptobyte.String(nil)
	if !in.ReadASN1(&list, asn1.SEQUENCE) || !in.Empty() {
		return errors.New("the bags are malformed")
	}
	for !list.Empty() {
		if r.bags++; r.bags > maxBags {
			return fmt.Errorf("more than %d bags", maxBags)
		}
		var bag, value cryptobyte.String
		if !list.ReadASN1(&bag, asn1.SEQUENCE) {
			return errors.New("a bag is malformed")
		}
		kind, err := x509gost.ReadOID(&bag)
		if err != nil || !bag.ReadASN1(&value, asn1.Tag(0).Constructed().ContextSpecific()) {
			return errors.New("a bag is malformed")
		}
		name, id, err := readAttributes(bag)
		if err != nil {
			return err
		}
		if err := r.bag(kind, value, name, id, depth); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) bag(kind x509gost.OID, value cryptobyte.String, name string, id []byte, depth int) error {
	switch {
	case kind.Equal(oidKeyBag):
		return r.setKey(bytes.Clone(value), name, id)
	case kind.Equal(oidShroudedBag):
		var seq, contents cryptobyte.String
		if !value.ReadASN1(&seq, asn1.SEQUENCE) {
			return errors.New("an encrypted key is malformed")
		}
		algorithm := seq
		if !seq.SkipASN1(asn1.SEQUENCE) || !seq.ReadASN1(&contents, asn1.OCTET_STRING) {
			return errors.New("an encrypted key is malformed")
		}
		if oid, parameters, err := algorithmOf(algorithm); err == nil && oid.Equal(oidCryptoPro) {
			key, proven, err := r.budget.cryptoPro(parameters, r.password, contents)
			if err != nil {
				return err
			}
			r.unproven = !proven
			return r.setKey(key, name, id)
		}
		key, err := r.budget.decipher(&algorithm, r.password, contents)
		if err != nil {
			return err
		}
		return r.setKey(key, name, id)
	case kind.Equal(oidCertBag):
		var seq, explicit, der cryptobyte.String
		if !value.ReadASN1(&seq, asn1.SEQUENCE) {
			return errors.New("a certificate's bag is malformed")
		}
		form, err := x509gost.ReadOID(&seq)
		if err != nil || !seq.ReadASN1(&explicit, asn1.Tag(0).Constructed().ContextSpecific()) || !explicit.ReadASN1(&der, asn1.OCTET_STRING) {
			return errors.New("a certificate's bag is malformed")
		}
		if !form.Equal(oidX509Certificate) {
			return nil // ignore SDSI certificates
		}
		if len(r.certificates) == maxCertificates {
			return fmt.Errorf("more than %d certificates", maxCertificates)
		}
		cert, err := x509gost.ParseCertificate(bytes.Clone(der))
		if err != nil {
			return err
		}
		r.certificates = append(r.certificates, certificate{cert, id, name})
	case kind.Equal(oidSafeBag):
		return r.safe(value, depth+1)
	}
	return nil // ignore revocation lists and secrets
}

func (r *reader) setKey(pkcs8 []byte, name string, id []byte) error {
	if r.key != nil {
		clear(pkcs8)
		return errors.New("there is more than one private key; want one")
	}
	r.key, r.keyID, r.name = pkcs8, id, name
	return nil
}

// readAttributes reads the friendly name and the id that links a key to its certificate.
func readAttributes(in cryptobyte.String) (name string, id []byte, err error) {
	malformed := errors.New("the attributes of a bag are malformed")
	if in.Empty() {
		return "", nil, nil
	}
	var set cryptobyte.String
	if !in.ReadASN1(&set, asn1.SET) || !in.Empty() {
		return "", nil, malformed
	}
	for !set.Empty() {
		var attribute, values, value cryptobyte.String
		if !set.ReadASN1(&attribute, asn1.SEQUENCE) {
			return "", nil, malformed
		}
		kind, err := x509gost.ReadOID(&attribute)
		if err != nil || !attribute.ReadASN1(&values, asn1.SET) {
			return "", nil, malformed
		}
		switch {
		case kind.Equal(oidFriendlyName):
			if !values.ReadASN1(&value, asn1.Tag(30)) || len(value)%2 != 0 { // BMPString
				return "", nil, malformed
			}
			units := make([]uint16, len(value)/2)
			for i := range units {
				units[i] = uint16(value[2*i])<<8 | uint16(value[2*i+1])
			}
			name = string(utf16.Decode(units))
		case kind.Equal(oidLocalKeyID):
			if !values.ReadASN1(&value, asn1.OCTET_STRING) {
				return "", nil, malformed
			}
			id = value
		}
	}
	return name, id, nil
}

// bundle finds the certificate of the key.
func (r *reader) bundle() (*Bundle, error) {
	if r.sealed {
		return nil, fmt.Errorf("its certificates are encrypted with RC2 of 40 bits (%s), which is not supported; export it without encryption of certificates, or with PBES2", oidRC2)
	}
	if r.key == nil {
		return nil, errors.New("there is no private key in the file")
	}
	key, su, err := x509gost.ParsePrivateKey(r.key)
	if err != nil {
		return nil, err
	}
	b := &Bundle{Key: key, Suite: su, Name: r.name}
	for _, c := range r.certificates {
		if b.Certificate == nil && c.Suite == su && sameKey(c.PublicKey, key.Public()) {
			b.Certificate = c.Certificate
			if b.Name == "" {
				b.Name = c.name
			}
			continue
		}
		b.Others = append(b.Others, c.Certificate)
	}
	if r.unproven && b.Certificate == nil {
		return nil, errors.New("the code of the key in CryptoPro's encryption does not fit, and no certificate in the file belongs to the key")
	}
	return b, nil
}

func sameKey(a, b crypto.PublicKey) bool {
	k, ok := a.(interface{ Equal(x crypto.PublicKey) bool })
	return ok && k.Equal(b)
}
