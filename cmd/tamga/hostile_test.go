// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"tamga/internal/tamgatest"
	"tamga/internal/testsize"
)

// Hostile questions to the verification service are refused by their cost, one after another:
// what comes beside them waits, and what is too much for the queue is sent away with a time to
// come back. Signing the same document with a token is refused for the same reason.
func TestHostileVerification(t *testing.T) {
	t.Parallel()
	p := tamgatest.StartProcess(t, t.TempDir())
	question, err := json.Marshal(map[string]any{"SignatureType": "XMLDSig", "Content": hostileXML()})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	counts := map[int]int{}
	callers := 14
	if testsize.Of() < testsize.Whole {
		callers = 2
	}
	for range callers {
		all.Go(func() {
			response, err := http.Post(p.Dev.SVSURL+"/api/signatures", "application/json", bytes.NewReader(question))
			if err != nil {
				t.Error(err)
				return
			}
			status, body := tamgatest.ReadAll(t, response)
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
	order, err := json.Marshal(tamgatest.Request([]byte(template), "XMLDSig", p.Cert("gost2012-256", false).ID, tamgatest.Parameters{"XMLDsigType": "XMLTemplate"}))
	if err != nil {
		t.Fatal(err)
	}
	status, body := p.Do(t.Context(), "POST", p.Dev.BaseURL+"/api/documents", p.Token(), bytes.NewReader(order))
	if status != 400 || !strings.Contains(string(body), "invalid_content") || !strings.Contains(string(body), "steps of work") {
		t.Errorf("signing: %d %s", status, body)
	}
	// The service goes on.
	signed := p.Signed("POST", "/api/documents", p.Token(), tamgatest.Request([]byte("text"), "CAdES", p.Cert("gost2012-256", false).ID, tamgatest.Parameters{}))
	if v := p.Verdicts(map[string]any{"SignatureType": "CAdES", "Content": signed}); len(v) != 1 || !*v[0].Result {
		t.Errorf("%+v", v)
	}
}
