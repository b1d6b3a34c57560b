// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"tamga/internal/app/dev"
	"tamga/internal/files"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// Trust is what certificates are verified against: names of files.
type Trust struct {
	CA, Intermediate, CRL []string
	Data                  string // directory of a server started with --dev, whose authority is trusted without CA
}

// Read reads the trusted certificates, the intermediate ones and the revocation lists into a check.
func (v *Trust) Read(check *sig.Check) (notes []Sentence, err error) {
	note := func(format string, args ...any) { notes = append(notes, Say(format, args...)) }
	anchors := v.CA
	if len(anchors) == 0 {
		dev, err := dev.Read(v.Data)
		switch {
		case err == nil && dev.CAPEM != "":
			anchors = []string{filepath.Join(v.Data, dev.CAPEM)}
			note("no --ca is given: the authority of the server in %s is trusted (%s)", v.Data, anchors[0])
		case err == nil || errors.Is(err, os.ErrNotExist):
			note("no --ca is given: no certificate is trusted, only the cryptography can hold")
		default:
			return notes, err
		}
	}
	for _, path := range anchors {
		certs, err := files.Certificates(path)
		if err != nil {
			return notes, fmt.Errorf("--ca: %w", err)
		}
		roots, others := splitRoots(certs)
		check.Roots = append(check.Roots, roots...)
		check.Intermediates = append(check.Intermediates, others...)
	}
	for _, path := range v.Intermediate {
		certs, err := files.Certificates(path)
		if err != nil {
			return notes, fmt.Errorf("--intermediate: %w", err)
		}
		check.Intermediates = append(check.Intermediates, certs...)
	}
	for _, path := range v.CRL {
		lists, err := files.RevocationLists(path)
		if err != nil {
			return notes, fmt.Errorf("--crl: %w", err)
		}
		check.CRLs = append(check.CRLs, lists...)
	}
	return notes, nil
}

// splitRoots splits the certificates of a --ca file: self-issued ones are trusted, the others are
// intermediate. So a bundle of both can be given. All certificates of a file without a self-issued one
// are trusted.
func splitRoots(certs []*x509gost.Certificate) (roots, others []*x509gost.Certificate) {
	for _, c := range certs {
		if c.Subject.Equal(c.Issuer) {
			roots = append(roots, c)
		} else {
			others = append(others, c)
		}
	}
	if len(roots) == 0 {
		return others, nil
	}
	return roots, others
}

// ParseTime reads the time of a flag. The empty text means now.
func ParseTime(flag, s string) (time.Time, error) {
	if s == "" {
		return time.Now(), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s: %q is not a time; want 2006-01-02, \"2006-01-02 15:04:05\" or 2006-01-02T15:04:05+03:00", flag, s)
}
