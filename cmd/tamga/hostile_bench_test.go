// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/zlib"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
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
	address string
	body    []byte
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

// BenchmarkBesideHostile times signatures, 200 a second, alone and beside 64 clients without a
// token who send hostile documents to the verification service and to presign. A client that is
// sent away comes again after 50 ms. Both are
// measured in turns, since other programs may run on the machine. "p99-ms" and
// "beside-p99-ms" are the medians of the turns, "ratio" is theirs. "MiB-above-idle" is the most
// resident memory of the server, beyond what it had before. Run it with
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
	calls := hostileCalls(b, server)
	const clients, rate = 64, 200
	p99(b, server, token, signature, rate) // warm
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()
	var alone, beside []float64
	var rise int64
	judged, busy := 0, 0
	var spent time.Duration
	for b.Loop() {
		alone = append(alone, p99(b, server, token, signature, rate))
		stop := make(chan struct{})
		var mu sync.Mutex
		var all sync.WaitGroup
		before := server.ProcessorTime()
		hostile := func(call hostileCall) bool {
			response, err := client.Post(call.address, "application/json", bytes.NewReader(call.body))
			if err != nil {
				b.Error(err)
				return false
			}
			answer, _ := io.ReadAll(response.Body)
			response.Body.Close()
			mu.Lock()
			defer mu.Unlock()
			switch {
			case response.StatusCode == http.StatusTooManyRequests, response.StatusCode == http.StatusServiceUnavailable:
				busy++
				return false
			case response.StatusCode >= http.StatusInternalServerError:
				b.Errorf("%d %s", response.StatusCode, answer)
			}
			judged++
			return true
		}
		rise = max(rise, peakRise(server, func() {
			for i := range clients {
				all.Go(func() {
					for n := i; ; n++ {
						if !hostile(calls[n%len(calls)]) {
							select {
							case <-stop:
								return
							case <-time.After(50 * time.Millisecond):
							}
						}
						select {
						case <-stop:
							return
						default:
						}
					}
				})
			}
			beside = append(beside, p99(b, server, token, signature, rate))
			spent += server.ProcessorTime() - before
			close(stop)
			all.Wait()
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
