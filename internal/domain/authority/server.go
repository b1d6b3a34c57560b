// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"

	"tamga/pki/x509gost"
)

// usageServerAuth is id-kp-serverAuth (RFC 5280, 4.2.1.12).
var usageServerAuth = x509gost.OID{1, 3, 6, 1, 5, 5, 7, 3, 1}

// serverKeyUsage is the key usage that TLS suites with GOST and RSA need: some sign the
// handshake, others agree on the secret or decrypt it.
const serverKeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageKeyAgreement

// maxServerNames limits the names of one certificate.
const maxServerNames = 100

// alternativeNames returns a subjectAltName (RFC 5280, 4.2.1.6) of host names and IP
// addresses.
func alternativeNames(names []string) (x509gost.Extension, error) {
	if len(names) > maxServerNames {
		return x509gost.Extension{}, fmt.Errorf("authority: names of a server: want at most %d", maxServerNames)
	}
	var b cryptobyte.Builder
	var wrong []error
	b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		for _, name := range names {
			if ip, err := netip.ParseAddr(name); err == nil {
				b.AddASN1(asn1.Tag(7).ContextSpecific(), func(b *cryptobyte.Builder) { b.AddBytes(ip.Unmap().WithZone("").AsSlice()) })
				continue
			}
			if !isHostName(name) {
				wrong = append(wrong, fmt.Errorf("authority: %q is neither a host name nor an IP address", name))
			}
			b.AddASN1(asn1.Tag(2).ContextSpecific(), func(b *cryptobyte.Builder) { b.AddBytes([]byte(name)) })
		}
	})
	value, err := b.Bytes()
	return x509gost.Extension{OID: x509gost.OIDSubjectAltName, Value: value}, errors.Join(append(wrong, err)...)
}

// isHostName reports whether a name is an ASCII host name of the DNS. Its first label may
// be a wildcard.
func isHostName(name string) bool {
	if len(name) == 0 || len(name) > 253 {
		return false
	}
	for label := range strings.SplitSeq(strings.TrimPrefix(name, "*."), ".") {
		if len(label) == 0 || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, c := range []byte(label) {
			if !('a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '-') {
				return false
			}
		}
	}
	return true
}
