// SPDX-License-Identifier: Apache-2.0

package ocsp

import (
	"cmp"
	"errors"
	"fmt"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// Tags of the protocol: EXPLICIT or constructed ones, and the three choices of CertStatus,
// two of which are primitive.
var (
	tag0       = cbasn1.Tag(0).Constructed().ContextSpecific()
	tag1       = cbasn1.Tag(1).Constructed().ContextSpecific()
	tag2       = cbasn1.Tag(2).Constructed().ContextSpecific()
	tagGood    = cbasn1.Tag(0).ContextSpecific()
	tagUnknown = cbasn1.Tag(2).ContextSpecific()
)

// ParseRequest reads one DER OCSPRequest of at most MaxRequest bytes. Nothing may follow it.
func ParseRequest(der []byte) (*Request, error) {
	r, err := parseRequest(der)
	if err != nil {
		return nil, fmt.Errorf("ocsp: request: %w", err)
	}
	return r, nil
}

func parseRequest(der []byte) (*Request, error) {
	if len(der) > MaxRequest {
		return nil, fmt.Errorf("%d bytes are more than the %d allowed", len(der), MaxRequest)
	}
	in := cryptobyte.String(der)
	var outer, tbs, list cryptobyte.String
	if !in.ReadASN1(&outer, cbasn1.SEQUENCE) || !in.Empty() || !outer.ReadASN1(&tbs, cbasn1.SEQUENCE) {
		return nil, errors.New("not an OCSPRequest")
	}
	// The signature, [0], proves who asks. Nothing here depends on that.
	if !outer.SkipOptionalASN1(tag0) || !outer.Empty() {
		return nil, errors.New("the signature is malformed")
	}
	if err := readVersion(&tbs); err != nil {
		return nil, err
	}
	if !tbs.SkipOptionalASN1(tag1) { // requestorName
		return nil, errors.New("requestorName is malformed")
	}
	if !tbs.ReadASN1(&list, cbasn1.SEQUENCE) {
		return nil, errors.New("requestList is not a SEQUENCE")
	}
	r := &Request{}
	for !list.Empty() {
		id, err := readSingleRequest(&list)
		if err != nil {
			return nil, fmt.Errorf("request %d: %w", len(r.CertIDs)+1, err)
		}
		if len(r.CertIDs) == MaxSingles {
			return nil, fmt.Errorf("it is about more than %d certificates", MaxSingles)
		}
		r.CertIDs = append(r.CertIDs, id)
	}
	if len(r.CertIDs) == 0 {
		return nil, errors.New("it names no certificate")
	}
	var err error
	if r.Extensions, err = readExtensions(&tbs, tag2); err != nil {
		return nil, err
	}
	if !tbs.Empty() {
		return nil, errors.New("unknown data follows the extensions")
	}
	r.Nonce, err = readNonce(r.Extensions)
	return r, err
}

// readVersion reads [0] EXPLICIT INTEGER DEFAULT v1. There is no other version.
func readVersion(in *cryptobyte.String) error {
	var field cryptobyte.String
	var present bool
	version := 0
	if !in.ReadOptionalASN1(&field, &present, tag0) ||
		present && (!field.ReadASN1Integer(&version) || !field.Empty() || version != 0) {
		return errors.New("the version is not 1")
	}
	return nil
}

func readSingleRequest(list *cryptobyte.String) (id CertID, err error) {
	var single cryptobyte.String
	if !list.ReadASN1(&single, cbasn1.SEQUENCE) {
		return id, errors.New("not a SEQUENCE")
	}
	if id, err = readCertID(&single); err != nil {
		return id, err
	}
	// singleRequestExtensions: the only known one is the service locator, a hint.
	if _, err := readExtensions(&single, tag0); err != nil {
		return id, err
	}
	if !single.Empty() {
		return id, errors.New("unknown data follows the extensions")
	}
	return id, nil
}

func readCertID(in *cryptobyte.String) (id CertID, err error) {
	var raw, seq, name, key cryptobyte.String
	if !in.ReadASN1Element(&raw, cbasn1.SEQUENCE) {
		return id, errors.New("CertID is not a SEQUENCE")
	}
	id.Raw = raw
	raw.ReadASN1(&seq, cbasn1.SEQUENCE)
	oid, _, err := x509gost.ReadAlgorithm(&seq)
	if err != nil {
		return id, fmt.Errorf("hashAlgorithm of CertID: %w", err)
	}
	if !seq.ReadASN1(&name, cbasn1.OCTET_STRING) || !seq.ReadASN1(&key, cbasn1.OCTET_STRING) ||
		!x509gost.ReadInteger(&seq, &id.Serial) || !seq.Empty() {
		return id, errors.New("CertID is malformed")
	}
	id.Hash, _ = suite.HashByOID(oid)
	id.IssuerName, id.IssuerKey = name, key
	return id, nil
}

// readExtensions reads optional Extensions with an explicit tag.
func readExtensions(in *cryptobyte.String, tag cbasn1.Tag) ([]x509gost.Extension, error) {
	var field cryptobyte.String
	var present bool
	if !in.ReadOptionalASN1(&field, &present, tag) {
		return nil, errors.New("the extensions are malformed")
	}
	if !present {
		return nil, nil
	}
	list, err := x509gost.ReadExtensions(&field)
	if err == nil && !field.Empty() {
		err = errors.New("data follows the extensions")
	}
	return list, err
}

// readNonce returns the nonce in extensions: an OCTET STRING (RFC 8954), or bare bytes from
// programs that are older than that rule.
func readNonce(list []x509gost.Extension) ([]byte, error) {
	for _, e := range list {
		if !e.OID.Equal(OIDNonce) {
			continue
		}
		in := cryptobyte.String(e.Value)
		var nonce cryptobyte.String
		if !in.ReadASN1(&nonce, cbasn1.OCTET_STRING) || !in.Empty() {
			nonce = e.Value
		}
		if len(nonce) == 0 || len(nonce) > MaxNonce {
			return nil, fmt.Errorf("the nonce has %d bytes; it must have 1 to %d", len(nonce), MaxNonce)
		}
		return nonce, nil
	}
	return nil, nil
}

// unknownCritical returns the critical extensions of a list except the nonce.
func unknownCritical(list []x509gost.Extension) (out []x509gost.OID) {
	for _, e := range list {
		if e.Critical && !e.OID.Equal(OIDNonce) {
			out = append(out, e.OID)
		}
	}
	return out
}

// Parse reads one DER OCSPResponse of at most MaxResponse bytes. Nothing may follow it.
func Parse(der []byte) (*Response, error) {
	r, err := parse(der)
	if err != nil {
		return nil, fmt.Errorf("ocsp: response: %w", err)
	}
	return r, nil
}

func parse(der []byte) (*Response, error) {
	if len(der) > MaxResponse {
		return nil, fmt.Errorf("%d bytes are more than the %d allowed", len(der), MaxResponse)
	}
	in := cryptobyte.String(der)
	var outer, field, bytes, basic cryptobyte.String
	var status int
	var present bool
	if !in.ReadASN1(&outer, cbasn1.SEQUENCE) || !in.Empty() || !outer.ReadASN1Enum(&status) ||
		!outer.ReadOptionalASN1(&field, &present, tag0) || !outer.Empty() {
		return nil, errors.New("not an OCSPResponse")
	}
	r := &Response{Raw: der, Status: ResponseStatus(status)}
	if r.Status != Successful {
		return r, nil // other contents are not an answer
	}
	if !present || !field.ReadASN1(&bytes, cbasn1.SEQUENCE) || !field.Empty() {
		return nil, errors.New("its status is successful, but responseBytes is missing")
	}
	oid, err := x509gost.ReadOID(&bytes)
	if err != nil {
		return nil, fmt.Errorf("responseType: %w", err)
	}
	if !oid.Equal(OIDBasic) {
		return nil, fmt.Errorf("responseType %s is not supported; want id-pkix-ocsp-basic", oid)
	}
	if !bytes.ReadASN1(&basic, cbasn1.OCTET_STRING) || !bytes.Empty() {
		return nil, errors.New("responseBytes is malformed")
	}
	r.Basic, err = parseBasic(basic)
	return r, err
}

// ParseBasic reads one DER BasicOCSPResponse of at most MaxResponse bytes. Nothing may follow
// it.
func ParseBasic(der []byte) (*Basic, error) {
	b, err := parseBasic(der)
	if err != nil {
		return nil, fmt.Errorf("ocsp: basic response: %w", err)
	}
	return b, nil
}

func parseBasic(der []byte) (*Basic, error) {
	if len(der) > MaxResponse {
		return nil, fmt.Errorf("%d bytes are more than the %d allowed", len(der), MaxResponse)
	}
	in := cryptobyte.String(der)
	var outer, tbs, data cryptobyte.String
	if !in.ReadASN1(&outer, cbasn1.SEQUENCE) || !in.Empty() || !outer.ReadASN1Element(&tbs, cbasn1.SEQUENCE) {
		return nil, errors.New("not a BasicOCSPResponse")
	}
	b := &Basic{Raw: der, RawTBS: tbs}
	tbs.ReadASN1(&data, cbasn1.SEQUENCE)
	if err := b.readData(data); err != nil {
		return nil, err
	}
	var err error
	if b.SignatureOID, b.parameters, err = x509gost.ReadAlgorithm(&outer); err != nil {
		return nil, fmt.Errorf("signatureAlgorithm: %w", err)
	}
	if !x509gost.ReadBits(&outer, &b.Signature) {
		return nil, errors.New("the signature is not a BIT STRING of whole bytes")
	}
	if err := b.readCertificates(&outer); err != nil {
		return nil, err
	}
	if !outer.Empty() {
		return nil, errors.New("unknown data follows the certificates")
	}
	return b, nil
}

// readData reads ResponseData.
func (b *Basic) readData(in cryptobyte.String) (err error) {
	if err := readVersion(&in); err != nil {
		return err
	}
	var id, produced, list cryptobyte.String
	form := tag2
	if in.PeekASN1Tag(tag1) {
		form = tag1
	}
	if !in.ReadASN1Element(&id, form) {
		return errors.New("responderID is neither a name nor a digest of a key")
	}
	b.RawResponderID = id
	if !in.ReadASN1Element(&produced, cbasn1.GeneralizedTime) {
		return errors.New("producedAt is not a GeneralizedTime")
	}
	b.RawProducedAt = produced
	if b.ProducedAt, err = x509gost.ReadGeneralizedTime(&produced); err != nil {
		return fmt.Errorf("producedAt: %w", err)
	}
	if !in.ReadASN1(&list, cbasn1.SEQUENCE) {
		return errors.New("responses is not a SEQUENCE")
	}
	for !list.Empty() {
		s, err := readSingle(&list)
		if err != nil {
			return fmt.Errorf("single answer %d: %w", len(b.Singles)+1, err)
		}
		if len(b.Singles) == MaxSingles {
			return fmt.Errorf("it is about more than %d certificates", MaxSingles)
		}
		b.Singles = append(b.Singles, s)
	}
	if b.Extensions, err = readExtensions(&in, tag1); err != nil {
		return err
	}
	if !in.Empty() {
		return errors.New("unknown data follows the extensions")
	}
	b.UnknownCritical = unknownCritical(b.Extensions)
	b.Nonce, err = readNonce(b.Extensions)
	return err
}

func readSingle(list *cryptobyte.String) (s Single, err error) {
	var seq cryptobyte.String
	if !list.ReadASN1(&seq, cbasn1.SEQUENCE) {
		return s, errors.New("not a SEQUENCE")
	}
	if s.CertID, err = readCertID(&seq); err != nil {
		return s, err
	}
	if err := s.readStatus(&seq); err != nil {
		return s, err
	}
	if s.ThisUpdate, err = x509gost.ReadGeneralizedTime(&seq); err != nil {
		return s, fmt.Errorf("thisUpdate: %w", err)
	}
	var next cryptobyte.String
	var present bool
	if !seq.ReadOptionalASN1(&next, &present, tag0) {
		return s, errors.New("nextUpdate is malformed")
	}
	if present {
		if s.NextUpdate, err = x509gost.ReadGeneralizedTime(&next); err != nil || !next.Empty() {
			return s, fmt.Errorf("nextUpdate: %w", cmp.Or(err, errors.New("data follows the time")))
		}
	}
	extensions, err := readExtensions(&seq, tag1)
	if err != nil {
		return s, err
	}
	if !seq.Empty() {
		return s, errors.New("unknown data follows the extensions")
	}
	s.UnknownCritical = unknownCritical(extensions)
	return s, nil
}

// readStatus reads CertStatus.
func (s *Single) readStatus(in *cryptobyte.String) (err error) {
	var value, reason, code cryptobyte.String
	switch {
	case in.PeekASN1Tag(tagGood):
		s.Status = Good
		in.ReadASN1(&value, tagGood)
	case in.PeekASN1Tag(tagUnknown):
		s.Status = Unknown
		in.ReadASN1(&value, tagUnknown)
	case in.ReadASN1(&value, tag1):
		s.Status = Revoked
		if s.RevokedAt, err = x509gost.ReadGeneralizedTime(&value); err != nil {
			return fmt.Errorf("revocationTime: %w", err)
		}
		var present bool
		if !value.ReadOptionalASN1(&reason, &present, tag0) || present && (!reason.ReadASN1(&code, cbasn1.ENUM) || !reason.Empty()) {
			return errors.New("revocationReason is not an ENUMERATED")
		}
		// A number that the standard does not define leaves the certificate revoked.
		if len(code) == 1 && x509gost.ValidReason(int(code[0])) {
			s.Reason = int(code[0])
		}
	default:
		return errors.New("certStatus must be good, revoked or unknown")
	}
	if !value.Empty() {
		return errors.New("certStatus is malformed")
	}
	return nil
}

// readCertificates reads the optional certs. It skips those that do not parse, because the
// answer may not need them.
func (b *Basic) readCertificates(in *cryptobyte.String) error {
	var field, list cryptobyte.String
	var present bool
	if !in.ReadOptionalASN1(&field, &present, tag0) {
		return errors.New("certs is malformed")
	}
	if !present {
		return nil
	}
	if !field.ReadASN1(&list, cbasn1.SEQUENCE) || !field.Empty() {
		return errors.New("certs is malformed")
	}
	for n := 0; !list.Empty(); n++ {
		var raw cryptobyte.String
		if n == MaxCertificates {
			return fmt.Errorf("it holds more than %d certificates", MaxCertificates)
		}
		if !list.ReadASN1Element(&raw, cbasn1.SEQUENCE) {
			return errors.New("certs is malformed")
		}
		if c, err := x509gost.ParseCertificate(raw); err == nil {
			b.Certificates = append(b.Certificates, c)
		}
	}
	return nil
}
