// Package sigtest is for tests only: an authority, signers with certificates of
// every suite, and documents of any size, so that each format's tests speak only
// of the format.
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
	"testing"
	"time"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// Time is when everything in a test happens; certificates are valid around it.
var Time = time.Date(2025, 3, 14, 9, 26, 53, 0, time.UTC)

// Random is a source of numbers that is the same on every run. The standard
// library makes RSA and ECDSA keys from its own, whatever it is given.
func Random(seed byte) io.Reader { return rand.NewChaCha8([32]byte{seed}) }

// Party is a certificate with its key: an authority or a signer.
type Party struct {
	Certificate *x509gost.Certificate
	Suite       *suite.Suite
	Key         crypto.Signer
	// Chain holds the issuers, nearest first, with the root at the end; empty for
	// a root.
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

// Issue makes a party of any kind: change turns the template of a signer into it.
func (p *Party) Issue(t testing.TB, s *suite.Suite, name string, change func(*x509gost.Template)) *Party {
	t.Helper()
	return issue(t, p, s, name, change)
}

// PEM is the party's certificate as text.
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

// authority makes what is issued an authority.
func authority(template *x509gost.Template) {
	template.IsCA, template.MaxPathLen = true, -1
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
}

// issue makes a signer, or what change makes of its template.
func issue(t testing.TB, issuer *Party, s *suite.Suite, name string, change func(*x509gost.Template)) *Party {
	t.Helper()
	seed := byte(1)
	if issuer != nil {
		issuer.issued++
		seed = 16*issuer.issued + byte(len(issuer.Chain))
	}
	key, err := s.Generate(Random(seed))
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

// Document makes a document of bytes in memory.
func Document(b []byte) sig.Document { return bytes.NewReader(b) }

// Make signs with a format from beginning to end and returns the result. What
// Prepare and Finish do with a job of the caller's is checked on the way: the
// announced size is the written one.
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
		t.Fatalf("result: Size is %d, WriteTo said %d and wrote %d octets", result.Size(), n, out.Len())
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

// Faults returns the keys an error says are wrong, nil when it is of another
// kind.
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

// Zeros is a document of any number of zero octets that takes no memory.
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
