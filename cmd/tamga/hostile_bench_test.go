// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
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

// BenchmarkBesideHostile times signatures, 200 a second, alone and beside six clients without a
// token who send a hostile document to the verification service without a pause. Both are
// measured in turns, since other programs may run on the machine. "p99-ms" and
// "beside-p99-ms" are the medians of the turns, "ratio" is theirs. Run it with
//
//	go test -run '^$' -bench BesideHostile -benchtime 5x ./cmd/tamga
//
// where -benchtime says how many turns there are.
func BenchmarkBesideHostile(b *testing.B) {
	server := tamgatest.StartProgram(b, plainProgram(b), b.TempDir(), "--set", "tokens.access_life=1h", "--set", "verification.calls_per_second=100000", "--set", "verification.calls_at_once=100000")
	token := server.Token()
	signature, err := json.Marshal(tamgatest.Request(bytes.Repeat([]byte("0123456789abcdef"), 64), "CAdES", server.Cert("gost2012-256", false).ID, tamgatest.Parameters{"CADESType": "BES", "IsDetached": "True"}))
	if err != nil {
		b.Fatal(err)
	}
	question, err := json.Marshal(map[string]any{"SignatureType": "XMLDSig", "Content": hostileXML()})
	if err != nil {
		b.Fatal(err)
	}
	const clients, rate = 6, 200
	p99(b, server, token, signature, rate) // warm
	var alone, beside []float64
	judged, busy := 0, 0
	var spent time.Duration
	for b.Loop() {
		alone = append(alone, p99(b, server, token, signature, rate))
		stop := make(chan struct{})
		var mu sync.Mutex
		var all sync.WaitGroup
		before := server.ProcessorTime()
		for range clients {
			all.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					response, err := http.Post(server.Dev.SVSURL+"/api/signatures", "application/json", bytes.NewReader(question))
					if err != nil {
						b.Error(err)
						return
					}
					io.Copy(io.Discard, response.Body)
					response.Body.Close()
					mu.Lock()
					if response.StatusCode == http.StatusBadRequest {
						judged++
					} else {
						busy++
					}
					mu.Unlock()
				}
			})
		}
		beside = append(beside, p99(b, server, token, signature, rate))
		spent += server.ProcessorTime() - before
		close(stop)
		all.Wait()
	}
	slices.Sort(alone)
	slices.Sort(beside)
	one, other := alone[len(alone)/2], beside[len(beside)/2]
	b.ReportMetric(one, "p99-ms")
	b.ReportMetric(other, "beside-p99-ms")
	b.ReportMetric(other/one, "ratio")
	b.ReportMetric(float64(judged)/float64(b.N), "judged/op")
	b.ReportMetric(float64(busy)/float64(b.N), "sent-away/op")
	b.ReportMetric(spent.Seconds()/float64(judged), "cpu-s/judged")
}
