// SPDX-License-Identifier: Apache-2.0

package x509gost

import (
	"crypto"
	"errors"
	"fmt"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/pki/suite"
)

// Request is a parsed PKCS #10 certification request (RFC 2986). ParseRequest does not
// check the proof of possession. CheckSignature does. The byte slices share memory with
// Raw.
type Request struct {
	Raw, RawTBS, RawSPKI, RawSubject []byte
	Subject                          Name

	// PublicKey, Suite and KeyError are as in Certificate.
	PublicKey crypto.PublicKey
	Suite     *suite.Suite
	KeyError  error

	SignatureOID OID
	Signature    []byte
	parameters   []byte // of SignatureOID
	key          *keyInfo

	Extensions []Extension // those of the attribute extensionRequest
	Deviations []string
}

// ParseRequest reads one DER request of at most MaxRequest bytes. Nothing may follow it.
func ParseRequest(der []byte) (*Request, error) {
	r, err := parseRequest(der)
	if err != nil {
		return nil, fmt.Errorf("x509gost: request: %w", err)
	}
	return r, nil
}

func parseRequest(der []byte) (*Request, error) {
	var faults deviations
	s, err := readSigned(der, MaxRequest, &faults)
	if err != nil {
		return nil, err
	}
	r := &Request{Raw: s.raw, RawTBS: s.rawTBS, SignatureOID: s.oid, parameters: s.parameters, Signature: s.signature}
	in := s.body
	var version uint
	if !in.ReadASN1Integer(&version) || version != 0 {
		return nil, errors.New("the version is not 1")
	}
	if r.Subject, err = readName(&in, &faults); err != nil {
		return nil, fmt.Errorf("subject: %w", err)
	}
	r.RawSubject = r.Subject.Raw
	raw, key, err := readKey(&in, &faults)
	if err != nil {
		return nil, fmt.Errorf("public key: %w", err)
	}
	r.RawSPKI, r.PublicKey, r.Suite, r.KeyError = raw, key.Public, key.Suite, key.problem
	r.key = key
	if err := r.readAttributes(&in, &faults); err != nil {
		return nil, err
	}
	if !in.Empty() {
		return nil, errors.New("unknown data follows the attributes")
	}
	r.Deviations = faults
	return r, nil
}

// readAttributes reads attributes [0] IMPLICIT SET OF Attribute and its extension request.
func (r *Request) readAttributes(in *cryptobyte.String, faults *deviations) error {
	var set cryptobyte.String
	var present bool
	if !in.ReadOptionalASN1(&set, &present, cbasn1.Tag(0).Constructed().ContextSpecific()) {
		return errors.New("the attributes are malformed")
	}
	if !present {
		faults.add("the attributes are absent, an empty set is required")
	}
	seen := false
	for count := 0; !set.Empty(); count++ {
		var attribute, values cryptobyte.String
		if count == maxAttributes {
			return fmt.Errorf("more than %d attributes", maxAttributes)
		}
		if !set.ReadASN1(&attribute, cbasn1.SEQUENCE) {
			return errors.New("an attribute is not a SEQUENCE")
		}
		oid, err := readOID(&attribute)
		if err != nil {
			return fmt.Errorf("type of an attribute: %w", err)
		}
		if !attribute.ReadASN1(&values, cbasn1.SET) || !attribute.Empty() {
			return fmt.Errorf("attribute %s has no SET of values", oid)
		}
		if !oid.Equal(oidExtensionRequest) {
			continue
		}
		if seen {
			return errors.New("the extension request is there twice")
		}
		seen = true
		if r.Extensions, err = readExtensionList(&values, faults); err != nil {
			return err
		}
		if !values.Empty() {
			return errors.New("the extension request must have one value")
		}
	}
	return nil
}

// CheckSignature checks that the key in the request signed it. The error wraps
// suite.ErrSignature when the value does not match.
func (r *Request) CheckSignature() error {
	scheme, err := schemeOf(r.SignatureOID, r.parameters)
	if err == nil {
		err = checkSigned(scheme, r.RawTBS, r.Signature, r.key)
	}
	if err != nil {
		return fmt.Errorf("x509gost: signature of the request: %w", err)
	}
	return nil
}

// CreateRequest builds and signs a request for pub, a key of the suite. It asks for the
// given extensions. Without any it omits the attribute.
func CreateRequest(subject Name, extensions []Extension, pub crypto.PublicKey, s *suite.Suite, sign SignFunc) ([]byte, error) {
	der, err := createRequest(subject, extensions, pub, s, sign)
	if err != nil {
		return nil, fmt.Errorf("x509gost: creating a request: %w", err)
	}
	return der, nil
}

func createRequest(subject Name, extensions []Extension, pub crypto.PublicKey, s *suite.Suite, fn SignFunc) ([]byte, error) {
	if len(subject.Raw) == 0 {
		return nil, errors.New("the subject must have a name")
	}
	spki, key, err := infoOf(pub, s)
	if err != nil {
		return nil, err
	}
	der, err := sign(s, fn, key, func(b *cryptobyte.Builder) {
		b.AddASN1Uint64(0)
		b.AddBytes(subject.Raw)
		b.AddBytes(spki)
		b.AddASN1(cbasn1.Tag(0).Constructed().ContextSpecific(), func(b *cryptobyte.Builder) {
			if len(extensions) == 0 {
				return
			}
			b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
				b.AddASN1ObjectIdentifier(oidExtensionRequest)
				b.AddASN1(cbasn1.SET, func(b *cryptobyte.Builder) { addExtensions(b, extensions) })
			})
		})
	})
	if err != nil {
		return nil, err
	}
	_, err = parseRequest(der)
	return der, err
}
