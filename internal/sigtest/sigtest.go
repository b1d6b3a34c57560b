// SPDX-License-Identifier: Apache-2.0

// Package sigtest is for tests only. It makes authorities, signers with certificates of every
// suite, evidence without a network, and documents of any size, so that the tests of a format
// need only the format.
//
// Begin with Root, Party.Signer and Make. NewServices gives the evidence.
package sigtest

import (
	"bytes"
	"context"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// Time is the time of all tests. Certificates are valid around it.
var Time = time.Date(2025, 3, 14, 9, 26, 53, 0, time.UTC)

// Random returns a source of numbers that is the same on every run. The standard library
// makes RSA and ECDSA keys from its own source, whatever it is given.
func Random(seed byte) io.Reader { return rand.NewChaCha8([32]byte{seed}) }

// Party is a certificate with its key: an authority or a signer.
type Party struct {
	Certificate *x509gost.Certificate
	Suite       *suite.Suite
	Key         crypto.Signer
	// Chain has the issuers, nearest first, with the root at the end. It is empty for a
	// root.
	Chain []*x509gost.Certificate

	issued byte
}

// Root makes a self-signed authority.
func Root(t testing.TB, s *suite.Suite) *Party {
	t.Helper()
	return issue(t, nil, s, "Test Root "+s.Name, authority)
}

// Authority makes a subordinate authority with a key of the same suite.
func (p *Party) Authority(t testing.TB, name string) *Party {
	t.Helper()
	return issue(t, p, p.Suite, name, authority)
}

// Signer makes a signer with a key of the suite.
func (p *Party) Signer(t testing.TB, s *suite.Suite, name string) *Party {
	t.Helper()
	return issue(t, p, s, name, nil)
}

// Issue makes a party of any kind: change adapts the template of a signer.
func (p *Party) Issue(t testing.TB, s *suite.Suite, name string, change func(*x509gost.Template)) *Party {
	t.Helper()
	return issue(t, p, s, name, change)
}

// PEM returns the party's certificate as PEM.
func (p *Party) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate.Raw})
}

// Sign signs a digest with the party's key.
func (p *Party) Sign(t testing.TB, d suite.Digest) []byte {
	t.Helper()
	value, err := p.Suite.Sign(Random(7), p.Key, d)
	if err != nil {
		t.Fatalf("signing: %v", err)
	}
	return value
}

// authority changes a template to that of an authority.
func authority(template *x509gost.Template) {
	template.IsCA, template.MaxPathLen = true, -1
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
}

// keys are the keys that keyOf has generated, by suite and seed.
var keys sync.Map

type keyName struct {
	suite *suite.Suite
	seed  byte
}

// keyOf returns the key of a party. Parties with the same seed below different roots have the
// same key, as GOST keys of one seed are the same: generating RSA keys would take most of the
// time of the tests. Roots have keys of their own.
func keyOf(s *suite.Suite, seed byte, root bool) (crypto.Signer, error) {
	if root {
		return s.Generate(Random(seed))
	}
	if key, ok := keys.Load(keyName{s, seed}); ok {
		return key.(crypto.Signer), nil
	}
	key, err := s.Generate(Random(seed))
	if err != nil {
		return nil, err
	}
	kept, _ := keys.LoadOrStore(keyName{s, seed}, key)
	return kept.(crypto.Signer), nil
}

// issue makes a signer, or another party if change adapts its template.
func issue(t testing.TB, issuer *Party, s *suite.Suite, name string, change func(*x509gost.Template)) *Party {
	t.Helper()
	seed := byte(1)
	if issuer != nil {
		issuer.issued++
		seed = 16*issuer.issued + byte(len(issuer.Chain))
	}
	key, err := keyOf(s, seed, issuer == nil)
	if err != nil {
		t.Fatalf("key of %s: %v", s.Name, err)
	}
	subject, err := x509gost.BuildName([]x509gost.Attribute{
		{OID: x509gost.OID{2, 5, 4, 6}, Value: "RU"},
		{OID: x509gost.OID{2, 5, 4, 3}, Value: name},
	})
	if err != nil {
		t.Fatalf("name: %v", err)
	}
	template := &x509gost.Template{
		Subject:      subject,
		SerialNumber: []byte{0x10, seed},
		NotBefore:    Time.AddDate(-1, 0, 0),
		NotAfter:     Time.AddDate(10, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageContentCommitment,
	}
	if change != nil {
		change(template)
	}
	out := &Party{Suite: s, Key: key}
	by, signer := (*x509gost.Certificate)(nil), out
	if issuer != nil {
		by, signer = issuer.Certificate, issuer
		out.Chain = append([]*x509gost.Certificate{issuer.Certificate}, issuer.Chain...)
	}
	der, err := x509gost.CreateCertificate(template, by, key.Public(), s, signer.Suite,
		x509gost.SignWith(Random(seed), signer.Key, signer.Suite))
	if err != nil {
		t.Fatalf("certificate of %s: %v", s.Name, err)
	}
	if out.Certificate, err = x509gost.ParseCertificate(der); err != nil {
		t.Fatalf("certificate of %s: %v", s.Name, err)
	}
	return out
}

// Document returns a document of bytes in memory.
func Document(b []byte) sig.Document { return bytes.NewReader(b) }

// Make signs with a format from beginning to end and returns the result. It checks that
// the result has the announced size.
func Make(t testing.TB, f sig.Format, p *Party, job *sig.Job) []byte {
	t.Helper()
	out, err := Try(t, f, p, job)
	if err != nil {
		t.Fatalf("signing: %v", err)
	}
	return out
}

// Try is Make for a job that may be refused.
func Try(t testing.TB, f sig.Format, p *Party, job *sig.Job) ([]byte, error) {
	t.Helper()
	job.Certificate, job.Chain = p.Certificate, p.Chain
	if job.Time.IsZero() {
		job.Time = Time
	}
	result, err := sig.Sign(context.Background(), f, job, Random(7), p.Key)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	n, err := result.WriteTo(&out)
	if err != nil {
		return nil, err
	}
	if n != result.Size() || n != int64(out.Len()) {
		t.Fatalf("result: Size is %d, WriteTo returned %d and wrote %d bytes", result.Size(), n, out.Len())
	}
	return out.Bytes(), nil
}

// Codes returns the codes of the fatal findings of a report, in their order.
func Codes(r *sig.Report) []string {
	var codes []string
	add := func(fs []sig.Finding) {
		for _, f := range fs {
			if f.Indication != "" {
				codes = append(codes, f.Code)
			}
		}
	}
	add(r.Findings)
	for _, s := range r.Signatures {
		add(s.Findings)
	}
	return codes
}

// Faults returns the parameters that an error says are wrong, nil if it is an error of
// another kind.
func Faults(err error) []string {
	var e *sig.ErrParams
	if !errors.As(err, &e) {
		return nil
	}
	var keys []string
	for _, f := range e.Faults {
		keys = append(keys, f.Key)
	}
	return keys
}

// Zeros is a document of that many zero bytes. It takes no memory.
type Zeros int64

// Size implements sig.Document.
func (z Zeros) Size() int64 { return int64(z) }

// ReadAt implements io.ReaderAt.
func (z Zeros) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off > int64(z) {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), int64(z)-off))
	clear(p[:n])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
