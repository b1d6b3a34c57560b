package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// Hostile questions to the verification service are refused by their cost, one after another:
// what comes beside them waits, and what is too much for the queue is sent away with a time to
// come back. Signing the same document with a token is refused for the same reason.
func TestHostileVerification(t *testing.T) {
	t.Parallel() // it waits most of the time
	p := startDev(t, t.TempDir())
	question, err := json.Marshal(map[string]any{"SignatureType": "XMLDSig", "Content": hostileXML()})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	counts := map[int]int{}
	for range 14 {
		all.Go(func() {
			response, err := http.Post(p.dev.SVSURL+"/api/signatures", "application/json", bytes.NewReader(question))
			if err != nil {
				t.Error(err)
				return
			}
			status, body := readAll(t, response)
			mu.Lock()
			defer mu.Unlock()
			counts[status]++
			switch {
			case status == 400 && strings.Contains(string(body), "invalid_content") && strings.Contains(string(body), "steps of work"):
			case (status == 429 || status == 503) && response.Header.Get("Retry-After") != "":
			default:
				t.Errorf("%d %s", status, body)
			}
		})
	}
	all.Wait()
	if counts[400] == 0 {
		t.Errorf("none was judged: %v", counts)
	}
	template := strings.NewReplacer("<DigestValue>AAAA</DigestValue>", "<DigestValue/>", "<SignatureValue>AAAA</SignatureValue>", "<SignatureValue/>").Replace(string(hostileXML()))
	order, err := json.Marshal(request([]byte(template), "XMLDSig", p.cert("gost2012-256", false).ID, parameters{"XMLDsigType": "XMLTemplate"}))
	if err != nil {
		t.Fatal(err)
	}
	status, body := p.do(t.Context(), "POST", p.dev.BaseURL+"/api/documents", p.token(), bytes.NewReader(order))
	if status != 400 || !strings.Contains(string(body), "invalid_content") || !strings.Contains(string(body), "steps of work") {
		t.Errorf("signing: %d %s", status, body)
	}
	// The service goes on.
	signed := p.signed("POST", "/api/documents", p.token(), request([]byte("text"), "CAdES", p.cert("gost2012-256", false).ID, parameters{}))
	if v := p.judged(map[string]any{"SignatureType": "CAdES", "Content": signed}); len(v) != 1 || !*v[0].Result {
		t.Errorf("%+v", v)
	}
}
