// SPDX-License-Identifier: Apache-2.0

package x509gost

import (
	"crypto/x509"
	"errors"
	"fmt"
	"math/bits"
	"time"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// Extensions that this package reads and writes.
var (
	OIDSubjectKeyID      = OID{2, 5, 29, 14}
	OIDKeyUsage          = OID{2, 5, 29, 15}
	OIDPrivateKeyUsage   = OID{2, 5, 29, 16} // privateKeyUsagePeriod
	OIDSubjectAltName    = OID{2, 5, 29, 17}
	OIDBasicConstraints  = OID{2, 5, 29, 19}
	OIDCRLNumber         = OID{2, 5, 29, 20}
	OIDReasonCode        = OID{2, 5, 29, 21}
	OIDIssuingPoint      = OID{2, 5, 29, 28} // issuingDistributionPoint of a CRL
	OIDCRLPoints         = OID{2, 5, 29, 31}
	OIDPolicies          = OID{2, 5, 29, 32}
	OIDAuthorityKeyID    = OID{2, 5, 29, 35}
	OIDExtKeyUsage       = OID{2, 5, 29, 37}
	OIDInfoAccess        = OID{1, 3, 6, 1, 5, 5, 7, 1, 1} // authorityInfoAccess
	OIDOCSPNoCheck       = OID{1, 3, 6, 1, 5, 5, 7, 48, 1, 5}
	oidAccessOCSP        = OID{1, 3, 6, 1, 5, 5, 7, 48, 1}
	oidAccessIssuers     = OID{1, 3, 6, 1, 5, 5, 7, 48, 2}
	oidExtensionRequest  = OID{1, 2, 840, 113549, 1, 9, 14}
	UsageAny             = OID{2, 5, 29, 37, 0}
	UsageServerAuth      = OID{1, 3, 6, 1, 5, 5, 7, 3, 1}
	UsageClientAuth      = OID{1, 3, 6, 1, 5, 5, 7, 3, 2}
	UsageEmailProtection = OID{1, 3, 6, 1, 5, 5, 7, 3, 4}
	UsageTimeStamping    = OID{1, 3, 6, 1, 5, 5, 7, 3, 8}
	UsageOCSPSigning     = OID{1, 3, 6, 1, 5, 5, 7, 3, 9}
)

// Extension is one X.509 extension.
type Extension struct {
	OID      OID
	Critical bool
	Value    []byte // content of extnValue: the DER of the extension's own type
}

func findExtension(list []Extension, oid OID) (Extension, bool) {
	for _, e := range list {
		if e.OID.Equal(oid) {
			return e, true
		}
	}
	return Extension{}, false
}

// readExtensionField reads optional Extensions with an explicit tag.
func readExtensionField(in *cryptobyte.String, tag cbasn1.Tag, faults *deviations) ([]Extension, error) {
	var field cryptobyte.String
	var present bool
	if !in.ReadOptionalASN1(&field, &present, tag) {
		return nil, errors.New("the extensions are malformed")
	}
	if !present {
		return nil, nil
	}
	list, err := readExtensionList(&field, faults)
	if err == nil && !field.Empty() {
		err = errors.New("data follows the extensions")
	}
	return list, err
}

// readExtensionList reads SEQUENCE OF Extension. An extension may occur only once:
// readers could disagree on which of two basicConstraints counts.
func readExtensionList(in *cryptobyte.String, faults *deviations) ([]Extension, error) {
	var seq cryptobyte.String
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) {
		return nil, errors.New("the extensions are not a SEQUENCE")
	}
	if seq.Empty() {
		faults.add("the list of extensions is empty")
	}
	var list []Extension
	for !seq.Empty() {
		e, err := readExtension(&seq, faults)
		if err != nil {
			return nil, err
		}
		if _, twice := findExtension(list, e.OID); twice {
			return nil, fmt.Errorf("extension %s is there twice", e.OID)
		}
		if len(list) == maxExtensions {
			return nil, fmt.Errorf("more than %d extensions", maxExtensions)
		}
		list = append(list, e)
	}
	return list, nil
}

func readExtension(in *cryptobyte.String, faults *deviations) (e Extension, err error) {
	var seq, value cryptobyte.String
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) {
		return e, errors.New("an extension is not a SEQUENCE")
	}
	if e.OID, err = readOID(&seq); err != nil {
		return e, fmt.Errorf("identifier of an extension: %w", err)
	}
	if seq.PeekASN1Tag(cbasn1.BOOLEAN) {
		if e.Critical, err = readBool(&seq, faults); err != nil {
			return e, fmt.Errorf("extension %s: %w", e.OID, err)
		}
		if !e.Critical {
			faults.add("critical FALSE is written in an extension, DER omits it")
		}
	}
	if !seq.ReadASN1(&value, cbasn1.OCTET_STRING) || !seq.Empty() {
		return e, fmt.Errorf("extension %s: the value is not a final OCTET STRING", e.OID)
	}
	e.Value = value
	return e, nil
}

// readBool reads a BOOLEAN. TRUE is 255 in DER and any value but 0 in BER.
func readBool(in *cryptobyte.String, faults *deviations) (bool, error) {
	var content cryptobyte.String
	if !in.ReadASN1(&content, cbasn1.BOOLEAN) || len(content) != 1 {
		return false, errors.New("not a BOOLEAN")
	}
	if content[0] != 0 && content[0] != 0xff {
		faults.add("a BOOLEAN has a BER form of TRUE")
	}
	return content[0] != 0, nil
}

// extensionReaders reads extensions into the fields of a certificate. A malformed extension
// is an error if checks depend on it (strict, or marked critical) and a deviation otherwise.
var extensionReaders = []struct {
	oid    OID
	strict bool
	read   func(*Certificate, cryptobyte.String, *deviations) error
}{
	{OIDBasicConstraints, true, (*Certificate).readBasicConstraints},
	{OIDKeyUsage, true, (*Certificate).readKeyUsage},
	{OIDExtKeyUsage, true, (*Certificate).readExtKeyUsage},
	{OIDSubjectKeyID, false, (*Certificate).readSubjectKeyID},
	{OIDAuthorityKeyID, false, (*Certificate).readAuthorityKeyID},
	{OIDCRLPoints, false, (*Certificate).readCRLPoints},
	{OIDInfoAccess, false, (*Certificate).readInfoAccess},
	{OIDPolicies, false, (*Certificate).readPolicies},
	{OIDPrivateKeyUsage, false, (*Certificate).readPrivateKeyUsage},
}

func (c *Certificate) readExtensions(faults *deviations) error {
	for _, row := range extensionReaders {
		e, ok := c.Extension(row.oid)
		if !ok {
			continue
		}
		err := row.read(c, e.Value, faults)
		if err != nil && (row.strict || e.Critical) {
			return fmt.Errorf("extension %s: %w", e.OID, err)
		}
		if err != nil {
			faults.add("extension %s: %v", e.OID, err)
		}
	}
	return nil
}

var errExtension = errors.New("the value is malformed")

func (c *Certificate) readBasicConstraints(in cryptobyte.String, faults *deviations) (err error) {
	var seq cryptobyte.String
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) || !in.Empty() {
		return errExtension
	}
	c.HasBasicConstraints = true
	if seq.PeekASN1Tag(cbasn1.BOOLEAN) {
		if c.IsCA, err = readBool(&seq, faults); err != nil {
			return err
		}
	}
	if seq.PeekASN1Tag(cbasn1.INTEGER) {
		var n uint16
		if !seq.ReadASN1Integer(&n) {
			return errors.New("the path length is not a small number")
		}
		c.MaxPathLen = int(n)
	}
	if !seq.Empty() {
		return errExtension
	}
	if c.MaxPathLen >= 0 && !c.IsCA {
		faults.add("a path length in a certificate that is no authority")
	}
	return nil
}

func (c *Certificate) readKeyUsage(in cryptobyte.String, faults *deviations) (err error) {
	if c.KeyUsage, err = ParseKeyUsage(in); err != nil {
		return err
	}
	c.HasKeyUsage = true
	if c.KeyUsage == 0 {
		faults.add("the key usage names no use")
	}
	return nil
}

// ParseKeyUsage reads the value of the extension keyUsage, as of a request. The bits are in the order of
// RFC 5280, 4.2.1.3, and the constants of crypto/x509 have the same order.
func ParseKeyUsage(value []byte) (u x509.KeyUsage, err error) {
	in := cryptobyte.String(value)
	var content cryptobyte.String
	if !in.ReadASN1(&content, cbasn1.BIT_STRING) || !in.Empty() || len(content) == 0 || len(content) > 3 || content[0] > 7 {
		return 0, errExtension
	}
	for i, part := range content[1:] {
		u |= x509.KeyUsage(bits.Reverse8(part)) << (8 * i)
	}
	return u, nil
}

func (c *Certificate) readExtKeyUsage(in cryptobyte.String, _ *deviations) error {
	var seq cryptobyte.String
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) || !in.Empty() || seq.Empty() {
		return errExtension
	}
	for !seq.Empty() {
		oid, err := readOID(&seq)
		if err != nil {
			return err
		}
		if len(c.ExtKeyUsage) == maxOIDs {
			return fmt.Errorf("more than %d key uses", maxOIDs)
		}
		c.ExtKeyUsage = append(c.ExtKeyUsage, oid)
	}
	return nil
}

func (c *Certificate) readSubjectKeyID(in cryptobyte.String, _ *deviations) error {
	var id cryptobyte.String
	if !in.ReadASN1(&id, cbasn1.OCTET_STRING) || !in.Empty() {
		return errExtension
	}
	c.SubjectKeyID = id
	return nil
}

func (c *Certificate) readAuthorityKeyID(in cryptobyte.String, _ *deviations) (err error) {
	c.AuthorityKeyID, err = readAuthorityKeyID(in)
	return err
}

// readAuthorityKeyID reads keyIdentifier [0]. It ignores the issuer and serial number that
// may follow, because nothing here needs them.
func readAuthorityKeyID(in cryptobyte.String) ([]byte, error) {
	var seq, id cryptobyte.String
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) || !in.Empty() || !seq.ReadOptionalASN1(&id, nil, cbasn1.Tag(0).ContextSpecific()) {
		return nil, errExtension
	}
	return id, nil
}

const tagURI = 6 // uniformResourceIdentifier of GeneralName

// readURIs collects the URIs of GeneralNames and skips other names.
func readURIs(in cryptobyte.String, out *[]string, faults *deviations) error {
	for !in.Empty() {
		var value cryptobyte.String
		var tag cbasn1.Tag
		if !in.ReadAnyASN1(&value, &tag) {
			return errExtension
		}
		if tag != cbasn1.Tag(tagURI).ContextSpecific() {
			continue
		}
		for _, b := range value {
			if b <= ' ' || b >= 0x7f {
				faults.add("an address has characters that a URI must not have")
				break
			}
		}
		if len(*out) == maxURLs {
			return fmt.Errorf("more than %d addresses", maxURLs)
		}
		*out = append(*out, string(value))
	}
	return nil
}

func (c *Certificate) readCRLPoints(in cryptobyte.String, faults *deviations) error {
	var points cryptobyte.String
	if !in.ReadASN1(&points, cbasn1.SEQUENCE) || !in.Empty() {
		return errExtension
	}
	for !points.Empty() {
		var point cryptobyte.String
		if !points.ReadASN1(&point, cbasn1.SEQUENCE) {
			return errExtension
		}
		if err := readPointName(&point, &c.CRLDistributionPoints, faults); err != nil {
			return err
		}
	}
	return nil
}

// readPointName reads the optional distributionPoint [0] { fullName [0] } at the beginning
// of distribution points in certificates and CRLs.
func readPointName(point *cryptobyte.String, out *[]string, faults *deviations) error {
	var name, full cryptobyte.String
	explicit := cbasn1.Tag(0).Constructed().ContextSpecific()
	if !point.ReadOptionalASN1(&name, nil, explicit) || !name.ReadOptionalASN1(&full, nil, explicit) {
		return errExtension
	}
	return readURIs(full, out, faults)
}

func (c *Certificate) readInfoAccess(in cryptobyte.String, faults *deviations) error {
	var list cryptobyte.String
	if !in.ReadASN1(&list, cbasn1.SEQUENCE) || !in.Empty() {
		return errExtension
	}
	for !list.Empty() {
		var entry cryptobyte.String
		if !list.ReadASN1(&entry, cbasn1.SEQUENCE) {
			return errExtension
		}
		method, err := readOID(&entry)
		if err != nil {
			return err
		}
		var ignored []string
		out := &ignored
		switch {
		case method.Equal(oidAccessOCSP):
			out = &c.OCSPServers
		case method.Equal(oidAccessIssuers):
			out = &c.IssuingURLs
		}
		if err := readURIs(entry, out, faults); err != nil {
			return err
		}
	}
	return nil
}

func (c *Certificate) readPolicies(in cryptobyte.String, _ *deviations) error {
	var list cryptobyte.String
	if !in.ReadASN1(&list, cbasn1.SEQUENCE) || !in.Empty() {
		return errExtension
	}
	for !list.Empty() {
		var policy cryptobyte.String
		if !list.ReadASN1(&policy, cbasn1.SEQUENCE) {
			return errExtension
		}
		oid, err := readOID(&policy)
		if err != nil {
			return err
		}
		if len(c.Policies) == maxOIDs {
			return fmt.Errorf("more than %d policies", maxOIDs)
		}
		c.Policies = append(c.Policies, oid)
	}
	return nil
}

// readPrivateKeyUsage reads privateKeyUsagePeriod (RFC 3280, 4.2.1.4): notBefore [0] and
// notAfter [1], GeneralizedTime with implicit tags, both optional.
func (c *Certificate) readPrivateKeyUsage(in cryptobyte.String, _ *deviations) error {
	var seq cryptobyte.String
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) || !in.Empty() {
		return errExtension
	}
	for n, out := range []*time.Time{&c.PrivateKeyNotBefore, &c.PrivateKeyNotAfter} {
		var content cryptobyte.String
		var present bool
		if !seq.ReadOptionalASN1(&content, &present, cbasn1.Tag(n).ContextSpecific()) {
			return errExtension
		}
		if !present {
			continue
		}
		t, err := time.Parse(generalizedTimeForms[0], string(content))
		if err != nil {
			return fmt.Errorf("time %.40q has an unknown form", content)
		}
		*out = t
	}
	if !seq.Empty() {
		return errExtension
	}
	return nil
}
