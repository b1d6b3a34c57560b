// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// heaviest is the largest first load of a page, compressed, in bytes.
const heaviest = 100_000

// TestWeights checks what a browser loads for the first sight of each page of everybody, of a
// person and of an operator. With -v it prints the table of docs/performance.md.
func TestWeights(t *testing.T) {
	s := start(t)
	var seen []string
	for _, who := range []person{demo, operator} {
		b := s.tab(t, looks[1]) // Russian texts are the longer ones
		b.enter(who)
		var loaded []string
		if err := chromedp.Listen(b.ctx, func(event any) {
			// What is in the page itself is reported too, and a stream of events, which has no end.
			if e, ok := event.(*network.EventRequestWillBeSent); ok && !strings.HasPrefix(e.Request.URL, "data:") && e.Type != network.ResourceTypeEventSource {
				b.mu.Lock()
				loaded = append(loaded, e.Request.URL)
				b.mu.Unlock()
			}
		}); err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			path, name := r.path, r.path
			if r.name == "operator-person" && who == operator { // its path has an identifier
				b.open(path)
				r.do(b)
				path, name = value[string](b, `location.pathname`), path+"/ID"
			}
			if r.refused || r.who > who || slices.Contains(seen, name) {
				continue
			}
			seen = append(seen, name)
			b.mu.Lock()
			loaded = nil
			b.mu.Unlock()
			b.open(path)
			b.until(`document.readyState === "complete"`)
			b.mu.Lock()
			addresses := slices.Clone(loaded)
			b.mu.Unlock()
			if len(addresses) == 0 {
				t.Fatalf("%s: the browser reports no request", name)
			}
			total, compressed := 0, 0
			for _, address := range addresses {
				plain, packed := b.weigh(address)
				total, compressed = total+plain, compressed+packed
			}
			t.Logf("| `%s` | %d | %.1f KB | %.1f KB |", name, len(addresses), float64(total)/1000, float64(compressed)/1000)
			if compressed > heaviest {
				t.Errorf("%s: the first load is %d bytes compressed, want at most %d: %q", name, compressed, heaviest, addresses)
			}
		}
		for _, f := range b.findings() {
			t.Error(f)
		}
	}
}

// weigh returns the size of what is at an address, plain and compressed, with the session of the
// window.
func (b *tab) weigh(address string) (plain, compressed int) {
	b.Helper()
	text := b.fetch(address)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	w.Write(text)
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	return len(text), packed.Len()
}

func (b *tab) fetch(address string) []byte {
	b.Helper()
	request, err := http.NewRequest("GET", address, nil)
	if err != nil {
		b.Fatal(err)
	}
	request.Header.Set("Accept-Language", b.look.language)
	for _, c := range call(b, network.GetCookies, network.GetCookiesParams{}).Cookies {
		request.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		b.Fatal(err)
	}
	return text
}
