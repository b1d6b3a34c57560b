// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/zlib"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tamga/pki/suite"

	"tamga/internal/tamgatest"
)

// hostileXML is a document of 26 KB that asks for 256 nested walks over itself.
func hostileXML() []byte {
	filter := `<Transform Algorithm="http://www.w3.org/2002/06/xmldsig-filter2">` +
		strings.Repeat(`<XPath xmlns="http://www.w3.org/2002/06/xmldsig-filter2" Filter="intersect">//*[//*]</XPath>`, 8) + `</Transform>`
	s := suite.GOST2012x256
	reference := `<Reference URI=""><Transforms>` + strings.Repeat(filter, 8) + `</Transforms>` +
		`<DigestMethod Algorithm="` + s.Hash.XML[0] + `"/><DigestValue>AAAA</DigestValue></Reference>`
	return []byte(`<d>` + strings.Repeat("<a/>", 100) + `<Signature xmlns="http://www.w3.org/2000/09/xmldsig#"><SignedInfo>` +
		`<CanonicalizationMethod Algorithm="http://www.w3.org/TR/2001/REC-xml-c14n-20010315"/>` +
		`<SignatureMethod Algorithm="` + s.XML[0] + `"/>` + strings.Repeat(reference, 4) +
		`</SignedInfo><SignatureValue>AAAA</SignatureValue></Signature></d>`)
}

// hostilePDF returns a PDF of a few KB whose pages are in an object stream with this content.
func hostilePDF(content string) []byte {
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	io.WriteString(w, "5 0 "+content)
	w.Close()
	var b bytes.Buffer
	fmt.Fprintf(&b, "%%PDF-1.7\n1 0 obj\n<</Type/Catalog/Pages 5 0 R>>\nendobj\n2 0 obj\n<</Type/ObjStm/N 1/First 4/Filter/FlateDecode/Length %d>>\nstream\n", packed.Len())
	b.Write(packed.Bytes())
	b.WriteString("\nendstream\nendobj\ntrailer\n<</Root 1 0 R>>\n%%EOF\n")
	return b.Bytes()
}

// A hostileCall is a request without a token that asks for much memory or work.
type hostileCall struct {
	Address string
	Body    []byte
}

// hostileCalls are the most expensive requests that are known.
func hostileCalls(b *testing.B, server *tamgatest.Server) (calls []hostileCall) {
	b.Helper()
	add := func(address string, body any) {
		data, err := json.Marshal(body)
		if err != nil {
			b.Fatal(err)
		}
		calls = append(calls, hostileCall{address, data})
	}
	verify := func(kind string, content []byte) {
		add(server.Dev.SVSURL+"/api/signatures", map[string]any{"SignatureType": kind, "Content": content})
	}
	certificate := tamgatest.ReadFile(b, server.Path(server.Cert("gost2012-256", false).PEM))
	presign := func(kind string, content []byte, params map[string]string) {
		add(server.Dev.BaseURL+"/api/signatures/presign", map[string]any{"Document": content, "RawCertificate": certificate, "signatureType": kind, "signatureParams": params})
	}
	nested := tamgatest.ReadFile(b, filepath.Join("..", "..", "internal", "web", "svsapi", "testdata", "nested-flate.json"))
	calls = append(calls, hostileCall{server.Dev.SVSURL + "/api/signatures", nested})
	var question struct{ Content []byte }
	if err := json.Unmarshal(nested, &question); err != nil {
		b.Fatal(err)
	}
	presign("PDF", question.Content, nil)
	for _, content := range []string{
		"[" + strings.Repeat("[]", 1<<19) + "]",
		"[" + strings.Repeat("1000 ", 1<<20) + "]",
		"(" + strings.Repeat("x", 30<<20) + ")",
		strings.Repeat(" ", 60<<20),
	} {
		verify("PDF", hostilePDF(content))
		presign("PDF", hostilePDF(content), nil)
	}
	verify("XMLDSig", hostileXML())
	elements := []byte("<d>" + strings.Repeat(`<a b=""/>`, 1<<17) + "</d>")
	verify("XMLDSig", elements)
	presign("XMLDSig", elements, map[string]string{"XMLDsigType": "XMLEnveloped"})
	return calls
}

// asHostileClients is set in the environment of the process of the hostile clients.
const asHostileClients = "TAMGA_TEST_HOSTILE_CLIENTS"

// hostileClients is the number of clients that send hostile documents at the same time.
const hostileClients = 64

// A hostileTurn is what the hostile clients did in one turn.
type hostileTurn struct {
	Judged, Busy int      // requests that were answered, and that were sent away
	Failures     []string // requests without an answer, or with one that reports a fault of the server
}

// runHostileClients is the process of the hostile clients. It reads the calls, then true at the begin
// and false at the end of each turn, and writes what happened in the turn. It ends with its input.
func runHostileClients(in io.Reader, out io.Writer) error {
	from, to := json.NewDecoder(in), json.NewEncoder(out)
	var calls []hostileCall
	if err := from.Decode(&calls); err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: hostileClients}}
	for {
		var begin, end bool
		if err := from.Decode(&begin); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		stop := make(chan struct{})
		done := make(chan hostileTurn)
		go func() { done <- hostileCallsUntil(stop, client, calls) }()
		if err := from.Decode(&end); err != nil {
			return err
		}
		close(stop)
		if err := to.Encode(<-done); err != nil {
			return err
		}
	}
}

// hostileCallsUntil sends calls from all clients until stop is closed. A client that is sent away
// comes again after 50 ms.
func hostileCallsUntil(stop <-chan struct{}, client *http.Client, calls []hostileCall) (turn hostileTurn) {
	var mu sync.Mutex
	var all sync.WaitGroup
	send := func(call hostileCall) (judged bool) {
		response, err := client.Post(call.Address, "application/json", bytes.NewReader(call.Body))
		var answer []byte
		if err == nil {
			answer, err = io.ReadAll(response.Body)
			response.Body.Close()
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
			turn.Failures = append(turn.Failures, err.Error())
			return false
		case response.StatusCode == http.StatusTooManyRequests, response.StatusCode == http.StatusServiceUnavailable:
			turn.Busy++
			return false
		case response.StatusCode >= http.StatusInternalServerError:
			turn.Failures = append(turn.Failures, fmt.Sprintf("%d %s", response.StatusCode, answer))
		}
		turn.Judged++
		return true
	}
	for i := range hostileClients {
		all.Go(func() {
			for n := i; ; n++ {
				var wait time.Duration
				if !send(calls[n%len(calls)]) {
					wait = 50 * time.Millisecond
				}
				select {
				case <-stop:
					return
				case <-time.After(wait):
				}
			}
		})
	}
	all.Wait()
	return turn
}

// startHostileClients starts the process of the hostile clients. It returns a function that lets
// them send their calls while work runs.
func startHostileClients(b *testing.B, calls []hostileCall) func(work func()) hostileTurn {
	b.Helper()
	// Below the lowest priority of nice, which would keep a processor for a whole slice.
	run := exec.Command("chrt", "--idle", "0", tamgatest.Program(b))
	run.Env = append(os.Environ(), asHostileClients+"=1")
	run.Stderr = os.Stderr
	in, err := run.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := run.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := run.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		if err := run.Wait(); err != nil {
			b.Errorf("the hostile clients: %v", err)
		}
	})
	to, from := json.NewEncoder(in), json.NewDecoder(out)
	say := func(what any) {
		if err := to.Encode(what); err != nil {
			b.Fatal(err)
		}
	}
	say(calls)
	return func(work func()) (turn hostileTurn) {
		say(true)
		work()
		say(false)
		if err := from.Decode(&turn); err != nil {
			b.Fatal(err)
		}
		for _, f := range turn.Failures {
			b.Errorf("a hostile call: %s", f)
		}
		return turn
	}
}

// BenchmarkBesideHostile times signatures, 200 a second during 12 s, alone and beside 64 clients without a
// token who send hostile documents to the verification service and to presign. A client that is
// sent away comes again after 50 ms. Both are
// measured in turns, since other programs may run on the machine. "p99-ms" and
// "beside-p99-ms" are the medians of the turns, "ratio" is theirs. "MiB-above-idle" is the most
// resident memory of the server, beyond what it had before.
//
// Hostile clients are other machines in practice, whose work costs the server nothing. Here they are
// a process of their own that runs when a processor is idle, so they take the processors from neither the
// server nor the honest client. What the server and the kernel do for them counts in full. Run it with
//
//	go test -run '^$' -bench BesideHostile -benchtime 5x ./cmd/tamga
//
// where -benchtime says how many turns there are.
func BenchmarkBesideHostile(b *testing.B) {
	server := tamgatest.StartProgram(b, plainProgram(b), b.TempDir(), "--set", "tokens.access_life=1h",
		"--set", "verification.calls_per_second=100000", "--set", "verification.calls_at_once=100000",
		"--set", "two_step.calls_per_second=100000", "--set", "two_step.calls_at_once=100000")
	token := server.Token()
	signature, err := json.Marshal(tamgatest.Request(bytes.Repeat([]byte("0123456789abcdef"), 64), "CAdES", server.Cert("gost2012-256", false).ID, tamgatest.Parameters{"CADESType": "BES", "IsDetached": "True"}))
	if err != nil {
		b.Fatal(err)
	}
	besideHostile := startHostileClients(b, hostileCalls(b, server))
	const rate = 200
	const during = 12 * time.Second                // in 3 s, the begin of the load would be a tenth of it
	p99(b, server, token, signature, rate, during) // warm
	var alone, beside []float64
	var rise int64
	judged, busy := 0, 0
	var spent time.Duration
	for b.Loop() {
		alone = append(alone, p99(b, server, token, signature, rate, during))
		before := server.ProcessorTime()
		rise = max(rise, peakRise(server, func() {
			turn := besideHostile(func() {
				beside = append(beside, p99(b, server, token, signature, rate, during))
				spent += server.ProcessorTime() - before
			})
			judged += turn.Judged
			busy += turn.Busy
		}))
	}
	slices.Sort(alone)
	slices.Sort(beside)
	one, other := alone[len(alone)/2], beside[len(beside)/2]
	b.ReportMetric(one, "p99-ms")
	b.ReportMetric(other, "beside-p99-ms")
	b.ReportMetric(other/one, "ratio")
	b.ReportMetric(float64(rise)/(1<<20), "MiB-above-idle")
	b.ReportMetric(float64(judged)/float64(b.N), "judged/op")
	b.ReportMetric(float64(busy)/float64(b.N), "sent-away/op")
	b.ReportMetric(spent.Seconds()/float64(judged), "cpu-s/judged")
}
