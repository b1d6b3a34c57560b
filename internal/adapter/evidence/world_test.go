// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"bytes"
	"context"
	"crypto"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/gost/gost3410"
	"tamga/internal/domain/policy"
	"tamga/pki/ocsp"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
)

// A bubble of testing/synctest begins here; certificates are valid around it.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

const (
	stampURL  = "http://tsp.example/tsp"
	secondURL = "http://second.example:8080/"
	ocspURL   = "http://ocsp.example/ocsp"
	crlURL    = "http://crl.example/list.crl"
	issuerURL = "http://ca.example/ca.crt"
)

var theSuite = suite.GOST2012x256

// party is a certificate with its key.
type party struct {
	key  crypto.Signer
	cert *x509gost.Certificate
}

func (p party) sign() x509gost.SignFunc { return x509gost.SignWith(nil, p.key, theSuite) }

var lastKey atomic.Uint32

// certify makes a party; a nil issuer means self-signed.
func certify(t testing.TB, issuer *party, cn string, change func(*x509gost.Template)) party {
	t.Helper()
	n := lastKey.Add(1)
	d := make([]byte, 32)
	d[0], d[1], d[2] = byte(n), byte(n>>8), 7
	key, err := gost3410.NewPrivateKey(gost3410.CryptoProA, d)
	if err != nil {
		t.Fatal(err)
	}
	name, err := x509gost.BuildName([]x509gost.Attribute{{OID: x509gost.OIDCommonName, Value: cn}})
	if err != nil {
		t.Fatal(err)
	}
	template := &x509gost.Template{
		Subject: name, SerialNumber: []byte{0x40, byte(n >> 8), byte(n)}, MaxPathLen: -1,
		NotBefore: epoch.AddDate(-1, 0, 0), NotAfter: epoch.AddDate(50, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature,
	}
	if change != nil {
		change(template)
	}
	signer, by := key, (*x509gost.Certificate)(nil)
	signFunc := x509gost.SignWith(nil, signer, theSuite)
	if issuer != nil {
		by, signFunc = issuer.cert, issuer.sign()
	}
	der, err := x509gost.CreateCertificate(template, by, key.Public(), theSuite, theSuite, signFunc)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509gost.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return party{key, c}
}

func isAuthority(t *x509gost.Template) {
	t.IsCA, t.KeyUsage = true, x509.KeyUsageCertSign|x509.KeyUsageCRLSign|x509.KeyUsageDigitalSignature
}

// isStamper is the critical, sole use of a time-stamping authority.
func isStamper(t *x509gost.Template) {
	var b cryptobyte.Builder
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) { b.AddASN1ObjectIdentifier(x509gost.UsageTimeStamping) })
	t.ExtraExtensions = append(t.ExtraExtensions, x509gost.Extension{OID: x509gost.OIDExtKeyUsage, Critical: true, Value: b.BytesOrPanic()})
}

// addressed names every address there is.
func addressed(t *x509gost.Template) {
	t.OCSPServers, t.CRLDistributionPoints, t.IssuingURLs = []string{ocspURL}, []string{crlURL}, []string{issuerURL}
}

// people are the certificates of the tests. Their keys cost time, so they are
// made once.
type people struct{ root, ca, user, other, stamper, responder, impostor party }

var everybody = sync.OnceValue(func() *people {
	t := &fatal{}
	var p people
	p.root = certify(t, nil, "Root", isAuthority)
	p.ca = certify(t, &p.root, "CA", isAuthority)
	p.user = certify(t, &p.ca, "User", addressed)
	p.other = certify(t, &p.ca, "Other", addressed)
	p.stamper = certify(t, &p.ca, "TSA", isStamper)
	p.responder = certify(t, &p.ca, "Responder", func(t *x509gost.Template) { t.ExtKeyUsage = []x509gost.OID{x509gost.UsageOCSPSigning} })
	p.impostor = certify(t, nil, "CA", isAuthority)
	return &p
})

// fatal is a testing.TB for code that runs outside of a test.
type fatal struct{ testing.TB }

func (*fatal) Helper()           {}
func (*fatal) Fatal(args ...any) { panic(args) }

// internet is a network in memory: names, and servers by address and port.
type internet struct {
	t       testing.TB
	mu      sync.Mutex
	names   map[string][]netip.Addr
	servers map[string]*listener
	lookups map[string]int
	dials   []string
	next    byte
}

func newInternet(t testing.TB) *internet {
	return &internet{t: t, names: map[string][]netip.Addr{}, servers: map[string]*listener{}, lookups: map[string]int{}}
}

func (n *internet) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lookups[host]++
	if a, ok := n.names[host]; ok {
		return a, nil
	}
	return nil, &net.DNSError{Name: host, Err: "no such host", IsNotFound: true}
}

func (n *internet) connect(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	n.dials = append(n.dials, address)
	l := n.servers[address]
	n.mu.Unlock()
	if l == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	ours, theirs := net.Pipe()
	select {
	case l.incoming <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serve puts a server at HOST or HOST:PORT.
func (n *internet) serve(hostPort string, h http.HandlerFunc) {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		host, port = hostPort, "80"
	}
	n.mu.Lock()
	n.next++
	a := netip.AddrFrom4([4]byte{8, 8, 4, n.next})
	n.names[host] = []netip.Addr{a}
	l := &listener{incoming: make(chan net.Conn), closed: make(chan struct{})}
	n.servers[net.JoinHostPort(a.String(), port)] = l
	n.mu.Unlock()
	var running sync.WaitGroup
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		running.Add(1)
		defer running.Done()
		h(w, r)
	})}
	running.Go(func() { _ = server.Serve(l) })
	n.t.Cleanup(func() { server.Close(); running.Wait() })
}

type listener struct {
	incoming chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.incoming:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l *listener) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *listener) Addr() net.Addr { return &net.TCPAddr{} }

// source makes a Source on the internet; change may alter its configuration.
func (n *internet) source(change func(*Config)) *Source {
	n.t.Helper()
	p := everybody()
	c := Config{
		Services: func(context.Context) ([]policy.TSPService, error) {
			return []policy.TSPService{{Name: "first", URL: stampURL}}, nil
		},
		Anchors: func(context.Context) (roots, known []*x509gost.Certificate, err error) {
			return []*x509gost.Certificate{p.root.cert}, []*x509gost.Certificate{p.ca.cert}, nil
		},
		Resolver: n,
	}
	if change != nil {
		change(&c)
	}
	s, err := New(c)
	if err != nil {
		n.t.Fatal(err)
	}
	s.guard.Connect, s.guard.Trusted = n.connect, n.connect
	n.t.Cleanup(s.Close)
	return s
}

// services is a configuration with these services.
func services(list ...policy.TSPService) func(*Config) {
	return func(c *Config) {
		c.Services = func(context.Context) ([]policy.TSPService, error) { return list, nil }
	}
}

// stamper is a time-stamp service; its fields spoil the answer.
type stamper struct {
	t      testing.TB
	signer party
	before func(w http.ResponseWriter, r *http.Request) (answered bool)
	info   func(*tsp.Info)
	answer func([]byte) []byte
	calls  atomic.Int32
}

func newStamper(t testing.TB) *stamper { return &stamper{t: t, signer: everybody().stamper} }

var stampPolicy = x509gost.OID{1, 2, 643, 7, 9}

func (s *stamper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	serial := s.calls.Add(1)
	if s.before != nil && s.before(w, r) {
		return
	}
	if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/timestamp-query" || r.Header.Get("Cookie") != "" {
		s.t.Errorf("request %s with %v", r.Method, r.Header)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away
	}
	q, err := tsp.ParseRequest(body)
	if err != nil {
		s.t.Errorf("request: %v", err)
		return
	}
	if len(q.Nonce) < 16 || !q.CertReq {
		s.t.Errorf("nonce %x, certReq %v", q.Nonce, q.CertReq)
	}
	info := &tsp.Info{Policy: stampPolicy, Digest: q.Digest, Serial: binary.BigEndian.AppendUint32([]byte{0x40}, uint32(serial)), Time: time.Now(), Nonce: q.Nonce}
	if q.Policy != nil {
		info.Policy = q.Policy
	}
	if s.info != nil {
		s.info(info)
	}
	token, err := tsp.CreateToken(info, s.signer.cert, []*x509gost.Certificate{s.signer.cert}, theSuite, s.signer.sign())
	if err != nil {
		s.t.Errorf("token: %v", err)
		return
	}
	answer := tsp.CreateResponse(token)
	if s.answer != nil {
		answer = s.answer(answer)
	}
	w.Header().Set("Set-Cookie", "a=b")
	w.Header().Set("Content-Type", "application/timestamp-reply")
	_, _ = w.Write(answer)
}

// responder answers OCSP requests about people's certificates.
type responder struct {
	t      testing.TB
	signer party
	before func(w http.ResponseWriter, r *http.Request) (answered bool)
	single func(*ocsp.Single)
	change func(*ocsp.Template)
	answer func([]byte) []byte
	calls  atomic.Int32
}

func newResponder(t testing.TB) *responder { return &responder{t: t, signer: everybody().responder} }

func (o *responder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.calls.Add(1)
	if o.before != nil && o.before(w, r) {
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	q, err := ocsp.ParseRequest(body)
	if err != nil || len(q.CertIDs) != 1 || len(q.Nonce) != 32 {
		o.t.Errorf("request %+v: %v", q, err)
		return
	}
	now := time.Now()
	single := ocsp.Single{CertID: q.CertIDs[0], ThisUpdate: now, NextUpdate: now.Add(time.Hour)}
	if o.single != nil {
		o.single(&single)
	}
	template := &ocsp.Template{ProducedAt: now, Singles: []ocsp.Single{single}, Extensions: q.Extensions, Certificates: []*x509gost.Certificate{o.signer.cert}}
	if o.change != nil {
		o.change(template)
	}
	basic, err := ocsp.CreateBasic(template, o.signer.cert, theSuite, o.signer.sign())
	if err != nil {
		o.t.Errorf("answer: %v", err)
		return
	}
	answer := ocsp.CreateResponse(basic)
	if o.answer != nil {
		answer = o.answer(answer)
	}
	_, _ = w.Write(answer)
}

// publisher serves a CRL of the CA, made when it is asked for.
type publisher struct {
	t      testing.TB
	signer party
	before func(w http.ResponseWriter, r *http.Request) (answered bool)
	change func(*x509gost.CRLTemplate)
	calls  atomic.Int32
}

func newPublisher(t testing.TB) *publisher { return &publisher{t: t, signer: everybody().ca} }

func (p *publisher) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.calls.Add(1)
	if p.before != nil && p.before(w, r) {
		return
	}
	now := time.Now()
	template := &x509gost.CRLTemplate{ThisUpdate: now, NextUpdate: now.Add(24 * time.Hour), Number: []byte{1}}
	if p.change != nil {
		p.change(template)
	}
	der, err := x509gost.CreateRevocationList(template, p.signer.cert, theSuite, p.signer.sign())
	if err != nil {
		p.t.Errorf("list: %v", err)
		return
	}
	_, _ = w.Write(der)
}

// hang answers nothing until the client goes away.
func hang(_ http.ResponseWriter, r *http.Request) bool {
	_, _ = io.Copy(io.Discard, r.Body) // the server notices the end only behind the body
	<-r.Context().Done()
	return true
}

func status(code int) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(code)
		return true
	}
}

func write(b []byte) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		_, _ = w.Write(b)
		return true
	}
}

func digest() suite.Digest { return theSuite.Hash.Digest([]byte("a signature value")) }

// checkToken tells that a token is the whole of a stamp over the digest.
func checkToken(t testing.TB, verified *tsp.Verified) *tsp.Token {
	t.Helper()
	token, err := tsp.ParseToken(verified.Token().Raw)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(token.Info.Digest.Sum, digest().Sum) {
		t.Error("the token is over another digest")
	}
	return token
}

var errStore = errors.New("the database is away")
