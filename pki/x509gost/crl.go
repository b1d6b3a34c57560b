// SPDX-License-Identifier: Apache-2.0

package x509gost

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/pki/suite"
)

// RevokedEntry is one entry of a revocation list.
type RevokedEntry struct {
	// SerialNumber is the content of the DER INTEGER, as in Certificate. In a
	// CRLTemplate it may also be the positive number without the leading zero that DER
	// adds to keep it positive.
	SerialNumber []byte
	At           time.Time
	// Reason is the CRLReason (RFC 5280, 5.3.1). It is 0, unspecified, when it is absent or not one
	// of those that the standard defines.
	Reason int
}

// RevocationList is a parsed CRL (RFC 5280, 5). The byte slices share memory
// with Raw. Find may be called from several goroutines.
type RevocationList struct {
	Raw, RawTBS, RawIssuer []byte
	Issuer                 Name
	ThisUpdate, NextUpdate time.Time // NextUpdate is zero when absent
	Number                 []byte    // cRLNumber, content of the INTEGER; nil when absent
	AuthorityKeyID         []byte
	SignatureOID           OID
	Signature              []byte
	parameters             []byte         // of SignatureOID
	Revoked                []RevokedEntry // in encoded order
	Scope                  Scope          // the certificates that the list covers
	Extensions             []Extension    // of the list

	// UnknownCritical holds critical extensions of the list or of an entry that this
	// package does not understand. If there are any, the list proves nothing.
	UnknownCritical []OID
	Deviations      []string

	sorting  sync.Once
	bySerial []int32 // indexes into Revoked, sorted by serial and date

	signer atomic.Pointer[Certificate] // as in Certificate
}

// Scope is issuingDistributionPoint (RFC 5280, 5.2.5). The zero value, which a list
// without the extension has, covers every certificate of the issuer.
type Scope struct {
	Points           []string // URIs; the certificate must have one of them
	UsersOnly        bool     // onlyContainsUserCerts
	AuthoritiesOnly  bool     // onlyContainsCACerts
	SomeReasons      bool     // onlySomeReasons: some revocations are not in the list
	Indirect         bool     // indirectCRL: entries of other issuers
	AttributeCerts   bool     // onlyContainsAttributeCerts
	otherPointSyntax bool
}

// Understood reports whether Covers supports the scope. It does not support indirect
// lists, partial reasons, lists of attribute certificates and relative names.
func (s Scope) Understood() bool {
	return !s.SomeReasons && !s.Indirect && !s.AttributeCerts && !s.otherPointSyntax
}

// Covers reports whether the list covers the certificate. The caller must check that both
// have the same issuer.
func (s Scope) Covers(c *Certificate) bool {
	if !s.Understood() || s.UsersOnly && c.IsCA || s.AuthoritiesOnly && !c.IsCA {
		return false
	}
	if len(s.Points) == 0 {
		return true
	}
	return slices.ContainsFunc(c.CRLDistributionPoints, func(p string) bool { return slices.Contains(s.Points, p) })
}

// ParseRevocationList reads one DER CRL of at most MaxRevocationList bytes and MaxRevoked
// entries. Nothing may follow it.
func ParseRevocationList(der []byte) (*RevocationList, error) {
	l, err := parseRevocationList(der)
	if err != nil {
		return nil, fmt.Errorf("x509gost: revocation list: %w", err)
	}
	return l, nil
}

func parseRevocationList(der []byte) (*RevocationList, error) {
	var faults deviations
	s, err := readSigned(der, MaxRevocationList, &faults)
	if err != nil {
		return nil, err
	}
	l := &RevocationList{Raw: s.raw, RawTBS: s.rawTBS, SignatureOID: s.oid, parameters: s.parameters, Signature: s.signature}
	if err := l.readTBS(s.body, s.rawAlgorithm, &faults); err != nil {
		return nil, err
	}
	l.Deviations = faults
	return l, nil
}

func (l *RevocationList) readTBS(in cryptobyte.String, outerAlgorithm []byte, faults *deviations) (err error) {
	version := 0
	if in.PeekASN1Tag(cbasn1.INTEGER) && (!in.ReadASN1Integer(&version) || version != 1) {
		return errors.New("the version is neither 1 nor 2")
	}
	var algorithm, revoked cryptobyte.String
	if !in.ReadASN1Element(&algorithm, cbasn1.SEQUENCE) || !bytes.Equal(algorithm, outerAlgorithm) {
		return errors.New("the signature algorithm inside TBSCertList differs from the one outside")
	}
	if l.Issuer, err = readName(&in, faults); err != nil {
		return fmt.Errorf("issuer: %w", err)
	}
	l.RawIssuer = l.Issuer.Raw
	if l.ThisUpdate, err = readTime(&in, faults); err != nil {
		return fmt.Errorf("thisUpdate: %w", err)
	}
	if isTime(in) {
		if l.NextUpdate, err = readTime(&in, faults); err != nil {
			return fmt.Errorf("nextUpdate: %w", err)
		}
	} else {
		faults.add("nextUpdate is absent")
	}
	if !in.ReadOptionalASN1(&revoked, nil, cbasn1.SEQUENCE) {
		return errors.New("the revoked certificates are malformed")
	}
	if err := l.readRevoked(revoked, faults); err != nil {
		return err
	}
	if l.Extensions, err = readExtensionField(&in, cbasn1.Tag(0).Constructed().ContextSpecific(), faults); err != nil {
		return err
	}
	if !in.Empty() {
		return errors.New("unknown data follows the extensions")
	}
	if version == 0 && len(l.Extensions) > 0 {
		faults.add("extensions in a list of version 1")
	}
	return l.readExtensions(faults)
}

func (l *RevocationList) readRevoked(in cryptobyte.String, faults *deviations) error {
	// An entry has more than 20 bytes, so the input length limits the allocation.
	l.Revoked = make([]RevokedEntry, 0, min(len(in)/20, MaxRevoked))
	for !in.Empty() {
		if len(l.Revoked) == MaxRevoked {
			return fmt.Errorf("more than %d entries", MaxRevoked)
		}
		e, err := l.readEntry(&in, faults)
		if err != nil {
			return fmt.Errorf("entry %d: %w", len(l.Revoked)+1, err)
		}
		l.Revoked = append(l.Revoked, e)
	}
	return nil
}

func (l *RevocationList) readEntry(in *cryptobyte.String, faults *deviations) (e RevokedEntry, err error) {
	var seq cryptobyte.String
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) || !readInteger(&seq, &e.SerialNumber) {
		return e, errors.New("not a SEQUENCE with a serial number")
	}
	if e.At, err = readTime(&seq, faults); err != nil {
		return e, err
	}
	if seq.Empty() {
		return e, nil
	}
	extensions, err := readExtensionList(&seq, faults)
	if err != nil || !seq.Empty() {
		return e, cmp.Or(err, errors.New("data follows the extensions"))
	}
	for _, x := range extensions {
		switch {
		case x.OID.Equal(OIDReasonCode):
			value := cryptobyte.String(x.Value)
			if !value.ReadASN1Enum(&e.Reason) || !value.Empty() || !validReason(e.Reason) {
				// The entry revokes its certificate for whatever reason. Without it, the list
				// would not revoke the other certificates either.
				e.Reason = 0
				faults.add("the reason of an entry is not a CRLReason")
			}
		case x.Critical:
			l.addUnknown(x.OID)
		}
	}
	return e, nil
}

func validReason(r int) bool { return r >= 0 && r <= 10 && r != 7 }

func (l *RevocationList) addUnknown(oid OID) {
	for _, known := range l.UnknownCritical {
		if known.Equal(oid) {
			return
		}
	}
	if len(l.UnknownCritical) < maxOIDs {
		l.UnknownCritical = append(l.UnknownCritical, oid)
	}
}

func (l *RevocationList) readExtensions(faults *deviations) (err error) {
	for _, x := range l.Extensions {
		value := cryptobyte.String(x.Value)
		switch {
		case x.OID.Equal(OIDCRLNumber):
			if !readInteger(&value, &l.Number) || !value.Empty() {
				return errors.New("cRLNumber is not an INTEGER")
			}
		case x.OID.Equal(OIDAuthorityKeyID):
			if l.AuthorityKeyID, err = readAuthorityKeyID(value); err != nil {
				faults.add("extension %s: %v", x.OID, err)
			}
		case x.OID.Equal(OIDIssuingPoint):
			if err := l.readScope(value, faults); err != nil {
				return fmt.Errorf("issuingDistributionPoint: %w", err)
			}
		case x.Critical:
			l.addUnknown(x.OID)
		}
	}
	return nil
}

// readScope reads issuingDistributionPoint: fields with tags [0] to [5] in order, each
// with a default.
func (l *RevocationList) readScope(in cryptobyte.String, faults *deviations) error {
	var seq cryptobyte.String
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) || !in.Empty() {
		return errExtension
	}
	s := &l.Scope
	hasName := seq.PeekASN1Tag(cbasn1.Tag(0).Constructed().ContextSpecific())
	if err := readPointName(&seq, &s.Points, faults); err != nil {
		return err
	}
	s.otherPointSyntax = hasName && len(s.Points) == 0
	flags := []*bool{1: &s.UsersOnly, 2: &s.AuthoritiesOnly, 3: &s.SomeReasons, 4: &s.Indirect, 5: &s.AttributeCerts}
	for n := 1; n <= 5; n++ {
		var content cryptobyte.String
		var present bool
		if !seq.ReadOptionalASN1(&content, &present, cbasn1.Tag(n).ContextSpecific()) {
			return errExtension
		}
		// [3] is a BIT STRING and counts when it is present. The others are BOOLEAN.
		*flags[n] = present && (n == 3 || len(content) != 1 || content[0] != 0)
	}
	if !seq.Empty() {
		return errExtension
	}
	return nil
}

// Scheme returns the algorithm of the signature. The error names an algorithm that is not
// supported.
func (l *RevocationList) Scheme() (*suite.Scheme, error) {
	return schemeOf(l.SignatureOID, l.parameters)
}

// CheckSignatureFrom checks that issuer's key signed the list, over the exact bytes
// received. It checks nothing else. The error wraps suite.ErrSignature when the value does
// not match.
func (l *RevocationList) CheckSignatureFrom(issuer *Certificate) error {
	if issuer != nil && l.signer.Load() == issuer {
		return nil
	}
	if err := checkSignedOnce(l.SignatureOID, l.parameters, l.RawTBS, l.Signature, issuer); err != nil {
		return fmt.Errorf("x509gost: signature of a revocation list: %w", err)
	}
	l.signer.Store(issuer)
	return nil
}

// Find returns the entry of a serial number in the form of Certificate.SerialNumber. If
// there are several, it returns the earliest.
func (l *RevocationList) Find(serial []byte) (RevokedEntry, bool) {
	l.sorting.Do(l.sort)
	serial = trimInteger(serial)
	n, found := sort.Find(len(l.bySerial), func(i int) int {
		return bytes.Compare(serial, trimInteger(l.Revoked[l.bySerial[i]].SerialNumber))
	})
	if !found {
		return RevokedEntry{}, false
	}
	return l.Revoked[l.bySerial[n]], true
}

func (l *RevocationList) sort() {
	l.bySerial = make([]int32, len(l.Revoked))
	for i := range l.bySerial {
		l.bySerial[i] = int32(i)
	}
	slices.SortFunc(l.bySerial, func(a, b int32) int {
		x, y := &l.Revoked[a], &l.Revoked[b]
		return cmp.Or(bytes.Compare(trimInteger(x.SerialNumber), trimInteger(y.SerialNumber)), x.At.Compare(y.At), cmp.Compare(a, b))
	})
}

// CRLTemplate holds what CreateRevocationList writes.
type CRLTemplate struct {
	ThisUpdate, NextUpdate time.Time
	Number                 []byte // cRLNumber: positive, big-endian
	Revoked                []RevokedEntry
	ExtraExtensions        []Extension
}

// CreateRevocationList builds and signs a CRL of version 2. The issuer signs with s through
// sign. CreateRevocationList verifies the signature before it returns the list.
func CreateRevocationList(t *CRLTemplate, issuer *Certificate, s *suite.Suite, sign SignFunc) ([]byte, error) {
	der, err := createRevocationList(t, issuer, s, sign)
	if err != nil {
		return nil, fmt.Errorf("x509gost: creating a revocation list: %w", err)
	}
	return der, nil
}

func createRevocationList(t *CRLTemplate, issuer *Certificate, s *suite.Suite, fn SignFunc) ([]byte, error) {
	if issuer.Suite == nil || issuer.Suite != s {
		return nil, errors.New("the issuer's key does not belong to the suite that signs")
	}
	if err := checkPeriod(t.ThisUpdate, t.NextUpdate); err != nil {
		return nil, fmt.Errorf("period: %w", err)
	}
	number, err := magnitudeToInteger(t.Number)
	if err != nil {
		return nil, fmt.Errorf("number: %w", err)
	}
	entries, err := t.entries()
	if err != nil {
		return nil, err
	}
	var e extensionList
	if issuer.SubjectKeyID != nil {
		e.add(OIDAuthorityKeyID, false, authorityKeyID(issuer.SubjectKeyID))
	}
	e.add(OIDCRLNumber, false, func(b *cryptobyte.Builder) { addInteger(b, number) })
	extensions, err := e.with(t.ExtraExtensions)
	if err != nil {
		return nil, err
	}
	return sign(s, fn, issuer.key(), func(b *cryptobyte.Builder) {
		b.AddASN1Uint64(1)
		addAlgorithm(b, s.SignatureOID, s.SignatureNull)
		b.AddBytes(issuer.RawSubject)
		addTime(b, t.ThisUpdate)
		addTime(b, t.NextUpdate)
		if len(entries) > 0 { // an empty list is omitted (5.1.2.6)
			b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) { b.AddBytes(entries) })
		}
		b.AddASN1(cbasn1.Tag(0).Constructed().ContextSpecific(), func(b *cryptobyte.Builder) { addExtensions(b, extensions) })
	})
}

func (t *CRLTemplate) entries() ([]byte, error) {
	if len(t.Revoked) > MaxRevoked {
		return nil, fmt.Errorf("%d entries are more than the %d allowed", len(t.Revoked), MaxRevoked)
	}
	var b cryptobyte.Builder
	for i, r := range t.Revoked {
		serial, err := magnitudeToInteger(r.SerialNumber)
		if err == nil {
			err = checkTime(r.At)
		}
		if err == nil && !validReason(r.Reason) {
			err = fmt.Errorf("%d is not a CRLReason", r.Reason)
		}
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", i+1, err)
		}
		b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
			addInteger(b, serial)
			addTime(b, r.At)
			if r.Reason != 0 { // unspecified is omitted (5.3.1)
				addReason(b, r.Reason)
			}
		})
	}
	return b.Bytes()
}

func addReason(b *cryptobyte.Builder, reason int) {
	var value cryptobyte.Builder
	value.AddASN1Enum(int64(reason))
	addExtensions(b, []Extension{{OID: OIDReasonCode, Value: value.BytesOrPanic()}})
}
