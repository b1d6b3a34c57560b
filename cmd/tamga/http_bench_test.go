// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tamga/gost/gost3410"
	"tamga/internal/app/dev"
	"tamga/internal/domain/authority"
	"tamga/internal/tamgatest"
	"tamga/pki/ocsp"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
)

// BenchmarkHTTP times a running server as its clients see it: the audit log is on, the
// database fully durable, and 32 clients ask at once from a process of their own on the same
// machine. Figures of a row:
//
//   - signatures/s is reached while the clients share the processors.
//   - server-us/op is the processor time of the server for one signature.
//   - bare-signatures/op is the same as a multiple of one signature by gost2012-256, CryptoPro
//     A, which this process times between the requests. This figure carries over to other
//     machines.
//   - half-load-p99-ms is the time that the slowest of a hundred requests takes at half the
//     rate just reached.
//
// Run it with
//
//	go test -run '^$' -bench HTTP ./cmd/tamga
//
// TAMGA_BENCH_DATABASE is the address of an empty PostgreSQL database to use instead of
// SQLite, TAMGA_BENCH_BUCKET the address of a bucket to use instead of a directory, with its keys as in
// http://key:secret@127.0.0.1:7070/bucket. TAMGA_BENCH_BESIDE is the path of another build of the program. It gets every request
// too, in turns, and the figures beside-us/op and to-beside compare its processor time.
// TAMGA_BENCH_PROFILE is a directory that gets a processor profile of the server for each row.
func BenchmarkHTTP(b *testing.B) {
	more := []string{
		"--set", "tokens.access_life=1h",
		"--set", "verification.calls_per_second=1000000", "--set", "verification.calls_at_once=1000000",
		"--set", "certificates.stamps_per_second=1000000", "--set", "certificates.stamps_at_once=1000000",
		"--set", "documents.objects=1000000000", "--set", "documents.user_objects=1000000000", "--set", "two_step.anonymous=false",
	}
	if address := os.Getenv("TAMGA_BENCH_DATABASE"); address != "" {
		more = append(more, "--set", "database="+address)
	}
	if address := os.Getenv("TAMGA_BENCH_BUCKET"); address != "" {
		more = append(more, benchBucket(b, address)...)
	}
	profiles := os.Getenv("TAMGA_BENCH_PROFILE")
	var tags []string
	if profiles != "" {
		b.Setenv("TAMGA_PROFILE", filepath.Join(b.TempDir(), "profile"))
		tags = []string{"-tags", "profile"}
	}
	sides := []*benchServer{newBenchServer(b, plainProgram(b, tags...), more)}
	if other := os.Getenv("TAMGA_BENCH_BESIDE"); other != "" {
		sides = append(sides, newBenchServer(b, other, knownTo(other, more)))
	}
	for i, row := range sides[0].rows {
		b.Run(row.name, func(b *testing.B) {
			bare := newBareSignature(b)
			took := make([]time.Duration, len(sides))
			if profiles != "" {
				sides[0].signal(b, syscall.SIGUSR1)
			}
			n := b.N
			turns := max(1, min(b.N*row.signatures/500, 8))
			for turn := range turns {
				part := n / (turns - turn)
				n -= part
				// Each side is first as often as the others: what ran before a side costs it time.
				for k := range sides {
					j := (turn + k) % len(sides)
					side := sides[j]
					if j > 0 {
						b.StopTimer()
					} else {
						b.StartTimer()
					}
					before := side.server.ProcessorTime()
					repeat(b, part, side.rows[i].clients, side.rows[i].request(side.token))
					took[j] += side.server.ProcessorTime() - before
				}
				b.StopTimer()
				bare.time(b)
				b.StartTimer()
			}
			b.StopTimer()
			if profiles != "" {
				sides[0].saveProfile(b, filepath.Join(profiles, row.name+".cpu"))
			}
			each := func(d time.Duration) float64 { return d.Seconds() * 1e6 / float64(b.N*row.signatures) }
			rate := float64(b.N*row.signatures) / b.Elapsed().Seconds()
			b.ReportMetric(rate, "signatures/s")
			b.ReportMetric(each(took[0]), "server-us/op")
			b.ReportMetric(each(took[0])/bare.microseconds(), "bare-signatures/op")
			if len(sides) > 1 {
				b.ReportMetric(each(took[1]), "beside-us/op")
				b.ReportMetric(float64(took[0])/float64(took[1]), "to-beside")
			}
			if b.N > 1000 && row.latency && len(sides) == 1 && profiles == "" {
				b.ReportMetric(p99(b, sides[0].server, sides[0].token, row.body, rate/2, 3*time.Second), "half-load-p99-ms")
			}
		})
	}
}

// knownTo returns the flags whose settings a build of the program knows. Older builds lack some.
func knownTo(program string, flags []string) (known []string) {
	for set := range slices.Chunk(flags, 2) {
		out, _ := exec.Command(program, "config", "check", "--config", os.DevNull, set[0], set[1]).CombinedOutput() // it may miss others
		if !bytes.Contains(out, []byte("unknown setting")) {
			known = append(known, set...)
		}
	}
	return known
}

// benchRow is a request of BenchmarkHTTP.
type benchRow struct {
	name       string
	clients    int
	signatures int // made or verified by one request
	latency    bool
	anonymous  bool // sent without a token
	address    string
	body       []byte
	// steps, if not nil, are the requests of one signature, instead of body.
	steps func(client *http.Client, token string) error
}

// request returns what is done for one operation of a row.
func (r benchRow) request(token string) func(*http.Client) error {
	if r.anonymous {
		token = ""
	}
	return func(client *http.Client) error {
		if r.steps != nil {
			return r.steps(client, token)
		}
		return askOnce(client, r.address, token, r.body)
	}
}

// benchServer is a server under test with the requests for it.
type benchServer struct {
	server *tamgatest.Server
	token  string
	rows   []benchRow
}

func newBenchServer(b *testing.B, program string, more []string) *benchServer {
	s := &benchServer{server: tamgatest.StartProgram(b, program, b.TempDir(), more...)}
	s.token = s.server.Token()
	document := bytes.Repeat([]byte("0123456789abcdef"), 64)
	add := func(row benchRow, path string, request any) {
		var err error
		if row.body, err = json.Marshal(request); err != nil {
			b.Fatal(err)
		}
		row.address = path
		s.rows = append(s.rows, row)
	}
	one := func(name string, c dev.Certificate, order map[string]any) {
		order["Signature"].(map[string]any)["PinCode"] = c.PIN
		add(benchRow{name: name, clients: 32, signatures: 1, latency: true}, s.server.Dev.BaseURL+"/api/documents", order)
	}
	plain := s.server.Cert("gost2012-256", false)
	cms := func(level string, c dev.Certificate) map[string]any {
		return tamgatest.Request(document, "CAdES", c.ID, tamgatest.Parameters{"CADESType": level, "IsDetached": "True", "TSPAddress": ""})
	}
	withPIN := s.server.Cert("gost2012-256", true)
	one("BES-1KiB", plain, cms("BES", plain))
	one("BES-1KiB-PIN", withPIN, cms("BES", withPIN))
	one("T-1KiB", plain, cms("T", plain))
	one("XLT1-1KiB", plain, cms("XLT1", plain))
	one("XMLEnveloped-4KiB", plain, tamgatest.Request(xmlOf(4<<10), "XMLDSig", plain.ID, tamgatest.Parameters{"XMLDsigType": "XMLEnveloped"}))
	one("PDF-100KB", plain, tamgatest.Request(tamgatest.PDFOf(100_000), "PDF", plain.ID, tamgatest.Parameters{"PDFFormat": "CMS"}))
	one("DOCX-50KB", plain, tamgatest.Request(tamgatest.DOCXOf(b, 50_000), "MSOffice", plain.ID, tamgatest.Parameters{}))

	detached := s.server.Signed("POST", "/api/documents", s.token, cms("BES", plain))
	// Verification needs no token, so one address may have nine calls at once.
	add(benchRow{name: "verify-BES-1KiB", clients: 8, signatures: 1}, s.server.Dev.SVSURL+"/api/signatures",
		map[string]any{"SignatureType": "CAdES", "Content": detached, "Source": document})

	for _, row := range []struct {
		name, path string
		body       []byte
	}{
		{"stamp", authority.TSPPath(), stampRequest(b, document)},
		{"OCSP", authority.OCSPPath(), statusRequest(b, s.server, plain)},
	} {
		s.rows = append(s.rows, benchRow{name: row.name, clients: 32, signatures: 1, anonymous: true, address: s.server.URL + row.path, body: row.body})
	}

	for _, algorithm := range []string{"28147-89", "Kuznyechik"} {
		of, ending := map[string]any{"Type": "CMS", "Certificates": [][]byte{s.encryptionCertificate(b)}, "Parameters": map[string]string{"Algorithm": algorithm}}, "-1KiB-"+algorithm
		encrypt := map[string]any{"Content": document, "Encryption": of}
		add(benchRow{name: "encrypt" + ending, clients: 32, signatures: 1}, s.server.Dev.BaseURL+"/api/documents/encrypt", encrypt)
		message := s.server.Signed("POST", "/api/documents/encrypt", s.token, encrypt)
		// Clients name the certificate, which a request to parse told them.
		add(benchRow{name: "decrypt" + ending, clients: 32, signatures: 1}, s.server.Dev.BaseURL+"/api/documents/decrypt",
			map[string]any{"Content": message, "Decryption": map[string]any{"Type": "CMS", "CertificateId": 7, "PinCode": ""}})
	}

	s.rows = append(s.rows, s.twoSteps(b, document), s.confirmed(b, document), s.storedDocuments(b, document, plain))

	binaries := make([]map[string]any, 1000)
	for i := range binaries {
		binaries[i] = map[string]any{"Content": document, "ContentInfo": "n.txt"}
	}
	add(benchRow{name: "v2-1000", clients: 1, signatures: len(binaries)}, s.server.Dev.BaseURL+"/api/v2/signature", map[string]any{
		"BinaryData": binaries,
		"Signature":  map[string]any{"Type": "CAdES", "Parameters": tamgatest.Parameters{"CADESType": "BES", "IsDetached": "True"}, "CertificateId": plain.ID, "PinCode": ""},
	})
	documents := make([]map[string]any, 10_000)
	for i := range documents {
		documents[i] = map[string]any{"Name": "n", "Content": detached, "OriginalContent": document}
	}
	add(benchRow{name: "cosign-10000", clients: 1, signatures: len(documents)}, s.server.Dev.BaseURL+"/api/documents/packagesignature", map[string]any{
		"Documents": documents,
		"Signature": map[string]any{"Type": "CAdES", "Parameters": tamgatest.Parameters{"CmsSignatureType": "Cosign"}, "CertificateId": s.server.Cert("gost2012-512", false).ID, "PinCode": ""},
	})
	return s
}

// stampRequest returns a TimeStampReq for a document, with a nonce, for a token with certificates.
func stampRequest(b *testing.B, document []byte) []byte {
	b.Helper()
	r := tsp.Request{Digest: suite.Streebog256.Digest(document), Nonce: []byte("nonce"), CertReq: true}
	der, err := r.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	return der
}

// statusRequest returns an OCSPRequest about a certificate, with a nonce.
func statusRequest(b *testing.B, server *tamgatest.Server, c dev.Certificate) []byte {
	b.Helper()
	block, _ := pem.Decode(tamgatest.ReadFile(b, server.Path(c.PEM)))
	if block == nil {
		b.Fatalf("%s is not PEM", c.PEM)
	}
	certificate, err := x509gost.ParseCertificate(block.Bytes)
	if err != nil {
		b.Fatal(err)
	}
	status, der := server.Do(b.Context(), "GET", server.URL+authority.CertificatePath("gost"), "", nil)
	issuer, err := x509gost.ParseCertificate(der)
	if err != nil {
		b.Fatalf("status %d: %v", status, err)
	}
	request, err := ocsp.CreateRequest(certificate, issuer, suite.SHA1, bytes.Repeat([]byte{1}, 32))
	if err != nil {
		b.Fatal(err)
	}
	return request
}

// signal sends a signal that a build with the tag profile understands.
func (s *benchServer) signal(b *testing.B, which os.Signal) {
	b.Helper()
	if err := s.server.Process().Signal(which); err != nil {
		b.Fatal(err)
	}
}

// saveProfile ends the profile of the server and moves it to path.
func (s *benchServer) saveProfile(b *testing.B, path string) {
	b.Helper()
	s.signal(b, syscall.SIGUSR2)
	from := os.Getenv("TAMGA_PROFILE")
	for range 100 {
		if _, err := os.Stat(from); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	data, err := os.ReadFile(from)
	if err == nil {
		err = errors.Join(os.WriteFile(path, data, 0o600), os.Remove(from))
	}
	if err != nil {
		b.Fatal(err)
	}
}

// bareSignature times single signatures by gost2012-256, CryptoPro A, in this process.
type bareSignature struct {
	key    *gost3410.PrivateKey
	digest [32]byte
	took   []time.Duration // for bareRounds signatures
}

const bareRounds = 500

func newBareSignature(b *testing.B) *bareSignature {
	key, err := gost3410.GenerateKey(gost3410.CryptoProA, rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	s := &bareSignature{key: key}
	s.time(b) // makes the tables
	s.took = nil
	return s
}

// time takes five timings. Processor time is counted, so that other programs do not disturb.
func (s *bareSignature) time(b *testing.B) {
	for range 5 {
		before := ownProcessorTime(b)
		for range bareRounds {
			if _, err := s.key.Sign(rand.Reader, s.digest[:], nil); err != nil {
				b.Fatal(err)
			}
		}
		s.took = append(s.took, ownProcessorTime(b)-before)
	}
}

// microseconds returns the median for one signature.
func (s *bareSignature) microseconds() float64 {
	slices.Sort(s.took)
	return s.took[len(s.took)/2].Seconds() * 1e6 / bareRounds
}

// ownProcessorTime is the processor time of this process.
func ownProcessorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// xmlOf makes an XML document of about size bytes.
func xmlOf(size int) []byte {
	var b bytes.Buffer
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?><orders xmlns="urn:orders">`)
	for i := 0; b.Len() < size-20; i++ {
		fmt.Fprintf(&b, `<order number="%d"><name>Поставка</name><sum currency="RUB">%d.00</sum></order>`, i, i*17)
	}
	b.WriteString("</orders>")
	return b.Bytes()
}

// p99 asks at a steady rate during a time and returns the 99th percentile of
// the time an answer took, in milliseconds.
func p99(b *testing.B, server *tamgatest.Server, token string, body []byte, rate float64, during time.Duration) float64 {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
	defer client.CloseIdleConnections()
	return quantile(b, client, server.Dev.BaseURL, token, body, rate, during, 99)
}

// quantile is the time in ms that so many percent of signatures take at most, if so many a second are
// asked for during a time.
func quantile(b *testing.B, client *http.Client, base, token string, body []byte, rate float64, during time.Duration, percent int) float64 {
	var mu sync.Mutex
	var took []time.Duration
	var all sync.WaitGroup
	pace := time.NewTicker(time.Duration(float64(time.Second) / rate))
	defer pace.Stop()
	for end := time.Now().Add(during); time.Now().Before(end); {
		<-pace.C
		all.Go(func() {
			start := time.Now()
			if err := askOnce(client, base+"/api/documents", token, body); err != nil {
				b.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(start))
		})
	}
	all.Wait()
	slices.Sort(took)
	return float64(took[len(took)*percent/100].Microseconds()) / 1000
}

// askTimes sends a request n times from some clients at once.
func askTimes(b *testing.B, n, clients int, address, token string, body []byte) {
	repeat(b, n, clients, func(client *http.Client) error { return askOnce(client, address, token, body) })
}

// repeat calls do n times from some clients at once.
func repeat(b *testing.B, n, clients int, do func(client *http.Client) error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()
	var left atomic.Int64
	left.Store(int64(n))
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				if err := do(client); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

func askOnce(client *http.Client, address, token string, body []byte) error {
	r, err := http.NewRequest("POST", address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != 200 {
		text, err := io.ReadAll(io.LimitReader(response.Body, 1000))
		return fmt.Errorf("answered %s %s (%v)", response.Status, text, err)
	}
	_, err = io.Copy(io.Discard, response.Body)
	return err
}
