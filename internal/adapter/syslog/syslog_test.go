// SPDX-License-Identifier: Apache-2.0

package syslog_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tamga/internal/adapter/syslog"
	"tamga/internal/domain/audit"
	"tamga/internal/judge"
)

// identity is a certificate for this machine and its key, as PEM files.
type identity struct {
	pool             *x509.CertPool
	pair             tls.Certificate
	certificate, key string
	certificatePEM   []byte
}

func newIdentity(t testing.TB, name string) identity {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	i := identity{pool: x509.NewCertPool(), certificate: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem")}
	i.certificatePEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	for name, text := range map[string][]byte{i.certificate: i.certificatePEM, i.key: keyPEM} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	i.pool.AppendCertsFromPEM(i.certificatePEM)
	if i.pair, err = tls.X509KeyPair(i.certificatePEM, keyPEM); err != nil {
		t.Fatal(err)
	}
	return i
}

// entries returns n entries with the numbers from first on.
func entries(first, n int) (list []audit.Numbered) {
	for i := range n {
		list = append(list, audit.Numbered{Number: int64(first + i), Entry: audit.Entry{At: time.Unix(1e9, 0), Operation: "SignDocument", Phase: audit.Done, Outcome: audit.OK, Detail: "first\nsecond \"]\\"}})
	}
	return list
}

func collectorOf(t testing.TB, address string, secure *tls.Config, format syslog.Format, timeout time.Duration, requireEnd bool) *syslog.Collector {
	t.Helper()
	c, err := syslog.New(syslog.Config{Address: address, TLS: secure, Format: format, Facility: 13, Enterprise: 32473, Host: "sign.example.org", Version: "1.0", Timeout: timeout, RequireEnd: requireEnd})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// receiver serves connections with serve, one after the other.
func receiver(t testing.TB, secure *tls.Config, serve func(conn net.Conn)) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = listener.Addr().String()
	if secure != nil {
		listener = tls.NewListener(listener, secure)
	}
	done := make(chan struct{})
	t.Cleanup(func() { listener.Close(); <-done })
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serve(conn)
			conn.Close()
		}
	}()
	return address
}

// readFrame reads one message with its length in front.
func readFrame(r *bufio.Reader) (string, error) {
	digits, err := r.ReadString(' ')
	if err != nil {
		return "", err
	}
	n, err := strconv.Atoi(strings.TrimSuffix(digits, " "))
	if err != nil {
		return "", err
	}
	message := make([]byte, n)
	_, err = io.ReadFull(r, message)
	return string(message), err
}

func TestDeliver(t *testing.T) {
	t.Parallel()
	own := newIdentity(t, "localhost")
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprint("tls ", secure), func(t *testing.T) {
			t.Parallel()
			got := make(chan string, 3000)
			var server, client *tls.Config
			if secure {
				server, client = &tls.Config{Certificates: []tls.Certificate{own.pair}}, &tls.Config{RootCAs: own.pool}
			}
			address := receiver(t, server, func(conn net.Conn) {
				for r := bufio.NewReader(conn); ; {
					m, err := readFrame(r)
					if err != nil {
						return
					}
					got <- m
				}
			})
			c := collectorOf(t, address, client, syslog.RFC5424, time.Minute, true)
			if err := c.Probe(t.Context()); err != nil {
				t.Error(err)
			}
			const n = 2000 // more than a chunk
			if err := c.Deliver(t.Context(), entries(1, n)); err != nil {
				t.Fatal(err)
			}
			for i := range n {
				if m := <-got; !strings.Contains(m, fmt.Sprintf(` number="%d" `, i+1)) {
					t.Fatalf("message %d is %s", i+1, m)
				}
			}
		})
	}
}

// TestNotDelivered has receivers that do not take everything. No delivery succeeds.
func TestNotDelivered(t *testing.T) {
	t.Parallel()
	own, other := newIdentity(t, "localhost"), newIdentity(t, "other")
	server, client := &tls.Config{Certificates: []tls.Certificate{own.pair}}, &tls.Config{RootCAs: own.pool}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	first := func(conn net.Conn) { readFrame(bufio.NewReaderSize(conn, 16)) }
	all := func(conn net.Conn) { io.Copy(io.Discard, conn) }
	for name, c := range map[string]struct {
		address string
		secure  *tls.Config
		n       int
		want    string
	}{
		"away":                          {closed.Addr().String(), nil, 1, "connection refused"},
		"ends after one message":        {receiver(t, nil, first), nil, 2000, "syslog: "},
		"ends after one message, TLS":   {receiver(t, server, first), client, 2000, "syslog: "},
		"ends at once":                  {receiver(t, nil, func(net.Conn) {}), nil, 2000, "syslog: "},
		"does not end":                  {receiver(t, nil, func(conn net.Conn) { all(conn); <-t.Context().Done() }), nil, 1, "in time"},
		"reads nothing":                 {receiver(t, nil, func(net.Conn) { <-t.Context().Done() }), nil, 100_000, "in time"},
		"says something":                {receiver(t, nil, func(conn net.Conn) { conn.Write([]byte("220 mail\r\n")); all(conn) }), nil, 1, "does not receive syslog"},
		"another certificate":           {receiver(t, &tls.Config{Certificates: []tls.Certificate{other.pair}}, all), client, 1, "certificate signed by unknown authority"},
		"no TLS":                        {receiver(t, nil, all), client, 1, "in time"},
		"wants a certificate":           {receiver(t, &tls.Config{Certificates: []tls.Certificate{own.pair}, ClientAuth: tls.RequireAnyClientCert}, all), client, 1, "certificate required"},
		"ends without the end of TLS":   {receiver(t, server, func(conn net.Conn) { all(conn); conn.(*tls.Conn).NetConn().Close() }), client, 1, "without the end of TLS"},
		"begins TLS and is silent then": {receiver(t, nil, func(net.Conn) { <-t.Context().Done() }), client, 1, "in time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			timeout := time.Minute
			if c.want == "in time" {
				timeout = 200 * time.Millisecond
			}
			err := collectorOf(t, c.address, c.secure, syslog.RFC5424, timeout, true).Deliver(t.Context(), entries(1, c.n))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := collectorOf(t, receiver(t, nil, all), nil, syslog.RFC5424, time.Minute, true).Deliver(canceled, entries(1, 1)); err == nil {
		t.Error("delivered after the end of the context")
	}
}

// TestRsyslogReads has rsyslog receive entries in all ways, with values that try to forge others.
func TestRsyslogReads(t *testing.T) {
	t.Parallel()
	own, client := newIdentity(t, "localhost"), newIdentity(t, "tamga.example.org")
	for _, c := range []struct {
		name, driver, clientName string
		format                   syslog.Format
	}{
		{"plain", "", "", syslog.RFC5424},
		{"common event format", "", "", syslog.CEF},
		{"OpenSSL", "ossl", "", syslog.RFC5424},
		{"GnuTLS", "gtls", "", syslog.RFC5424},
		{"certificates of both sides", "gtls", "tamga.example.org", syslog.RFC5424},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var server *judge.RsyslogTLS
			var secure *tls.Config
			if c.driver != "" {
				server = &judge.RsyslogTLS{Driver: c.driver, Authorities: client.certificate, Certificate: own.certificate, Key: own.key, ClientName: c.clientName}
				secure = &tls.Config{RootCAs: own.pool}
				if c.clientName != "" {
					secure.Certificates = []tls.Certificate{client.pair}
				}
			}
			r := judge.RunRsyslog(t, server)
			to := collectorOf(t, r.Address, secure, c.format, 20*time.Second, c.driver == "ossl")
			if err := to.Probe(t.Context()); err != nil {
				t.Fatal(err)
			}
			const n = 1200
			list := entries(1, n)
			list[7].Detail = "a\n<13>1 - x evil - - [audit@32473 number=\"9\"] b"
			list[8].Principal.Login = "|\\=\r\n externalId=9"
			list[9].Detail = strings.Repeat("\"]", 512)
			for i := 0; i < n; i += 400 {
				if err := to.Deliver(t.Context(), list[i:i+400]); err != nil {
					t.Fatal(err)
				}
			}
			got := r.Await(func(list []judge.Received) bool { return len(list) >= n })
			if len(got) != n {
				t.Fatalf("%d messages", len(got))
			}
			for i, m := range got {
				number, data := fmt.Sprintf(` number="%d" `, i+1), m.Data
				if c.format == syslog.CEF {
					number, data = fmt.Sprintf("|externalId=%d ", i+1), m.Message
				}
				if m.Host != "sign.example.org" || m.App != "tamga" || strings.Count(data, number) != 1 {
					t.Fatalf("message %d is %+v", i+1, m)
				}
			}
		})
	}
}
