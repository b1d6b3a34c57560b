// SPDX-License-Identifier: Apache-2.0

package sigtest

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"tamga/pki/ocsp"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// Authority is how Services prove the status of a certificate.
type Authority int

// The ways to prove that a certificate is good.
const (
	ByResponder Authority = iota // an OCSP answer of a responder certified by the issuer
	ByIssuer                     // an OCSP answer the issuer signs itself
	ByList                       // a revocation list
)

// Services are a time-stamp service, OCSP responders and CRL issuers without a network: a
// sig.Evidence whose clock the test controls. The zero value of every exported field
// makes correct services.
type Services struct {
	// Now is the time of the services. Each time stamp advances it by Step.
	Now  time.Time
	Step time.Duration
	// TSA is the time-stamp service. Tokens contain its certificate, with the chain
	// unless Bare is set.
	TSA  *Party
	Bare bool
	// By is how the status of a certificate is proved; ByResponder if absent.
	By map[*x509gost.Certificate]Authority
	// ListAge is the age of revocation lists. The next list is due at twice that age, or
	// after a day if that is later.
	ListAge time.Duration
	// AnswerAge is the age of OCSP answers.
	AnswerAge time.Duration
	// Revoked are the revoked certificates with the time of revocation.
	Revoked map[*x509gost.Certificate]time.Time
	// ResponderChecked makes responders whose status must be checked: their certificates
	// are without nocheck, and a CRL covers them.
	ResponderChecked bool
	// Responders are the responders of authorities. Missing ones are made.
	Responders map[*Party]*Party
	// Obedient makes the services return an error instead of data older than requested,
	// as a source of evidence should.
	Obedient bool
	// Mixed returns for each request the time stamp of the request before, and none for the
	// first one.
	Mixed bool
	// Spoil changes the bytes that the services return. kind is "ocsp" or "crl".
	Spoil func(kind string, der []byte) []byte
	// Err is the error to return for "stamp", "revocation" or "issuer".
	Err map[string]error

	t       testing.TB
	mu      sync.Mutex
	last    *tsp.Verified // for Mixed
	parties []*Party      // authorities
	serial  uint64
	calls   map[string]int
	asked   []time.Time
}

// NewServices makes a time-stamp service with a key of the root's suite, certified by an
// authority under the root, and responders for that authority, the root and the given
// authorities.
func NewServices(t testing.TB, root *Party, authorities ...*Party) *Services {
	t.Helper()
	sub := root.Authority(t, "Time Authority")
	return newServices(t, sub.TimeStamper(t, "Time Stamper"), append([]*Party{root, sub}, authorities...))
}

func newServices(t testing.TB, tsa *Party, parties []*Party) *Services {
	return &Services{
		Now: Time, Step: time.Second, t: t, Obedient: true,
		TSA:        tsa,
		By:         map[*x509gost.Certificate]Authority{},
		Revoked:    map[*x509gost.Certificate]time.Time{},
		Err:        map[string]error{},
		parties:    parties,
		Responders: map[*Party]*Party{},
		calls:      map[string]int{},
	}
}

// Era makes a root, an authority below it and its services, all of whose certificates are valid from one
// time to another.
func Era(t testing.TB, s *suite.Suite, name string, from, to time.Time) (root, sub *Party, services *Services) {
	t.Helper()
	within := func(change func(*x509gost.Template)) func(*x509gost.Template) {
		return func(template *x509gost.Template) {
			change(template)
			template.NotBefore, template.NotAfter = from, to
		}
	}
	root = issue(t, nil, s, name+" Root", within(authority))
	sub = issue(t, root, s, name+" Authority", within(authority))
	services = newServices(t, issue(t, sub, s, name+" Stamper", within(forStamps)), []*Party{root, sub})
	for _, p := range services.parties {
		services.Responders[p] = issue(t, p, s, name+" Responder", within(func(template *x509gost.Template) { forAnswers(template, false) }))
	}
	services.Now = from
	return root, sub, services
}

// TimeStamper makes a time-stamp service with a key of the same suite.
func (p *Party) TimeStamper(t testing.TB, name string) *Party {
	t.Helper()
	return issue(t, p, p.Suite, name, forStamps)
}

func forStamps(template *x509gost.Template) {
	// SEQUENCE { id-kp-timeStamping }
	template.ExtraExtensions = []x509gost.Extension{{OID: x509gost.OIDExtKeyUsage, Critical: true,
		Value: []byte{0x30, 10, 6, 8, 0x2b, 6, 1, 5, 5, 7, 3, 8}}}
}

func forAnswers(template *x509gost.Template, checked bool) {
	template.ExtKeyUsage = []x509gost.OID{x509gost.UsageOCSPSigning}
	if !checked {
		template.ExtraExtensions = []x509gost.Extension{{OID: x509gost.OIDOCSPNoCheck, Value: []byte{5, 0}}}
	}
}

// Responder makes an OCSP responder with a key of the same suite.
func (p *Party) Responder(t testing.TB, name string, checked bool) *Party {
	t.Helper()
	return issue(t, p, p.Suite, name, func(template *x509gost.Template) { forAnswers(template, checked) })
}

// Calls returns how often a kind was requested: "stamp", "revocation" or "issuer".
func (s *Services) Calls(kind string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[kind]
}

// Asked returns the notBefore times of the requests for revocation data, in the order of
// the requests.
func (s *Services) Asked() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

func (s *Services) spoiled(kind string, der []byte) []byte {
	if s.Spoil == nil {
		return der
	}
	return s.Spoil(kind, der)
}

// TimeStamp implements sig.Evidence.
func (s *Services) TimeStamp(_ context.Context, _ string, d suite.Digest) (*tsp.Verified, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls["stamp"]++
	if err := s.Err["stamp"]; err != nil {
		return nil, err
	}
	s.serial++
	embed := append([]*x509gost.Certificate{s.TSA.Certificate}, s.TSA.Chain...)
	if s.Bare {
		embed = embed[:1]
	}
	token, err := tsp.CreateToken(&tsp.Info{
		Policy: x509gost.OID{1, 2, 643, 2, 2}, Digest: d, Time: s.Now,
		Serial: binary.BigEndian.AppendUint64([]byte{1}, s.serial),
	}, s.TSA.Certificate, embed, s.TSA.Suite, x509gost.SignWith(Random(3), s.TSA.Key, s.TSA.Suite))
	if err != nil {
		return nil, err
	}
	s.Now = s.Now.Add(s.Step)
	v, err := tsp.Verify(token, func(*suite.Hash) suite.Digest { return d }, nil)
	if err != nil {
		return nil, err
	}
	if s.Mixed {
		v, s.last = s.last, v
	}
	return v, nil
}

// OtherSerial returns a token of the service's with the same length that names another serial
// number beside the digest of its certificate.
func (s *Services) OtherSerial(token []byte) []byte {
	s.t.Helper()
	t, err := tsp.ParseToken(token)
	if err != nil {
		s.t.Fatal(err)
	}
	signer := t.Message.Signers[0]
	number := append([]byte{2, byte(len(s.TSA.Certificate.SerialNumber))}, s.TSA.Certificate.SerialNumber...)
	other := bytes.Clone(number)
	other[len(other)-1] ^= 1
	set := bytes.Replace(signer.RawSignedAttrs, number, other, 1)
	var value []byte
	for seed := byte(0); len(value) != len(signer.Signature); seed++ { // those by ECDSA have different lengths
		if value, err = s.TSA.Suite.Sign(Random(seed), s.TSA.Key, s.TSA.Suite.Hash.Digest(set)); err != nil {
			s.t.Fatal(err)
		}
	}
	// The tag of the set is another one in the token.
	changed := bytes.Replace(token, signer.RawSignedAttrs[1:], set[1:], 1)
	changed = bytes.Replace(changed, signer.Signature, value, 1)
	if len(changed) != len(token) || bytes.Equal(set, signer.RawSignedAttrs) {
		s.t.Fatal("the token was not changed")
	}
	return changed
}

// Revocation implements sig.Evidence.
func (s *Services) Revocation(_ context.Context, cert, issuer *x509gost.Certificate, notBefore time.Time) (sig.Proof, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls["revocation"]++
	s.asked = append(s.asked, notBefore)
	if err := s.Err["revocation"]; err != nil {
		return sig.Proof{}, err
	}
	i := slices.IndexFunc(s.parties, func(p *Party) bool { return p.Certificate.Equal(issuer) })
	if i < 0 {
		return sig.Proof{}, &sig.ErrEvidence{What: "revocation", Text: "the issuer is unknown to the test"}
	}
	by, ok := lookUp(s.By, cert)
	if !ok && slices.ContainsFunc(cert.ExtKeyUsage, x509gost.UsageOCSPSigning.Equal) {
		by = ByList
	}
	if by == ByList {
		return s.list(s.parties[i], notBefore)
	}
	return s.answer(cert, s.parties[i], by == ByIssuer, notBefore)
}

// lookUp finds a certificate by its bytes: a message contains copies.
func lookUp[V any](m map[*x509gost.Certificate]V, cert *x509gost.Certificate) (v V, ok bool) {
	for c, v := range m {
		if c.Equal(cert) {
			return v, true
		}
	}
	return v, false
}

func (s *Services) answer(cert *x509gost.Certificate, issuer *Party, direct bool, notBefore time.Time) (sig.Proof, error) {
	made := s.Now.Add(-s.AnswerAge)
	if s.Obedient && made.Before(notBefore) {
		return sig.Proof{}, &sig.ErrEvidence{What: "revocation", Text: "no fresh answer"}
	}
	id, err := ocsp.NewCertID(cert, issuer.Certificate, suite.SHA1)
	if err != nil {
		return sig.Proof{}, err
	}
	single := ocsp.Single{CertID: id, ThisUpdate: made, NextUpdate: made.Add(time.Hour)}
	if at, ok := lookUp(s.Revoked, cert); ok {
		single.Status, single.RevokedAt, single.Reason = ocsp.Revoked, at, 1
	}
	template := &ocsp.Template{ProducedAt: made, Singles: []ocsp.Single{single}}
	by := issuer
	if !direct {
		if by = s.Responders[issuer]; by == nil {
			by = issuer.Responder(s.t, fmt.Sprintf("Responder %d", len(s.Responders)), s.ResponderChecked)
			s.Responders[issuer] = by
		}
		template.Certificates = []*x509gost.Certificate{by.Certificate}
	}
	der, err := ocsp.CreateBasic(template, by.Certificate, by.Suite, x509gost.SignWith(Random(4), by.Key, by.Suite))
	return sig.Proof{OCSP: s.spoiled("ocsp", der)}, err
}

func (s *Services) list(issuer *Party, notBefore time.Time) (sig.Proof, error) {
	made := s.Now.Add(-s.ListAge)
	next := made.Add(max(2*s.ListAge, 24*time.Hour))
	if s.Obedient && made.Before(notBefore) {
		return sig.Proof{}, &sig.ErrEvidence{What: "revocation", Text: "the list is too old; the next one is due at " + next.Format(time.RFC3339)}
	}
	template := &x509gost.CRLTemplate{ThisUpdate: made, NextUpdate: next, Number: []byte{7}}
	for cert, at := range s.Revoked {
		if cert.Issuer.Equal(issuer.Certificate.Subject) {
			template.Revoked = append(template.Revoked, x509gost.RevokedEntry{SerialNumber: cert.SerialNumber, At: at, Reason: 1})
		}
	}
	der, err := x509gost.CreateRevocationList(template, issuer.Certificate, issuer.Suite, x509gost.SignWith(Random(5), issuer.Key, issuer.Suite))
	return sig.Proof{CRL: s.spoiled("crl", der)}, err
}

// Issuer implements sig.Evidence.
func (s *Services) Issuer(_ context.Context, cert *x509gost.Certificate) (*x509gost.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls["issuer"]++
	if err := s.Err["issuer"]; err != nil {
		return nil, err
	}
	for _, p := range s.parties {
		if cert.CheckSignatureFrom(p.Certificate) == nil {
			return p.Certificate, nil
		}
	}
	return nil, &sig.ErrEvidence{What: "issuer", Text: "unknown to the test"}
}
