// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"tamga/internal/adapter/guard"
)

// kind is a kind of request with its limits. The answers in progress take at most the sum
// of size times atOnce in memory.
type kind struct {
	name   string // of events
	accept string // media type of the answer
	send   string // media type of the body; empty: a GET
	size   int64  // bytes of an answer
	atOnce int    // requests in progress; others wait
}

var (
	stampKind  = &kind{"tsp", "application/timestamp-reply", "application/timestamp-query", 64 << 10, 512}
	statusKind = &kind{"ocsp", "application/ocsp-response", "application/ocsp-request", 1 << 20, 64}
	listKind   = &kind{"crl", "application/pkix-crl", "", 64 << 20, 4}
	issuerKind = &kind{"issuer", "application/pkix-cert, application/pkcs7-mime", "", 1 << 20, 16}
	// trustKind goes to a file, not to memory.
	trustKind = &kind{"trust_list", "application/xml, text/xml", "", 512 << 20, 1}

	powerKind = &kind{"power", "application/json", "", 64 << 10, 16}

	kinds = []*kind{stampKind, statusKind, listKind, issuerKind, trustKind, powerKind}
)

// Bounds of the connection pool.
const (
	maxConnsPerHost = 64
	maxIdlePerHost  = 16
	maxIdle         = 64
	idleTimeout     = 30 * time.Second
	maxHeader       = 32 << 10
)

// newClient returns a client that connects through the guard, follows no redirects and
// keeps no cookies. It uses HTTP/1.1, because these protocols have one request and one
// answer.
func newClient(c Config, g *guard.Guard) *http.Client {
	t := &http.Transport{
		DialContext:            g.Dial,
		TLSHandshakeTimeout:    guard.ConnectTimeout,
		MaxConnsPerHost:        maxConnsPerHost,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		MaxIdleConns:           maxIdle,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeader,
		DisableCompression:     true, // the answer has exactly its announced size
	}
	if c.TLS != nil {
		t.TLSClientConfig = c.TLS.Clone()
	}
	if c.Proxy != nil {
		t.Proxy = http.ProxyURL(c.Proxy)
	}
	var transport http.RoundTripper = t
	if c.Local != nil {
		transport = &localFirst{*c.Local, t}
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// order is one request.
type order struct {
	kind    *kind
	url     *url.URL
	body    []byte
	timeout time.Duration
	limit   int64 // of the answer; 0 means the limit of the kind
	hedged  bool
	to      *target // gets the answer; nil: it is returned
}

// fetch sends one request and reads its whole answer.
func (s *Source) fetch(ctx context.Context, o order) (answer []byte, err error) {
	slot := s.slots[o.kind]
	select {
	case slot <- struct{}{}:
		defer func() { <-slot }()
	case <-ctx.Done():
		return nil, fmt.Errorf("waited for other requests: %w", ctx.Err())
	}
	start := s.Now()
	defer func() {
		outcome, failed := "ok", error(nil)
		switch {
		case err != nil && ctx.Err() != nil:
			outcome = "canceled"
		case err != nil:
			outcome, failed = "failed", err
		}
		s.observe(Event{Kind: o.kind.name, Host: o.url.Host, Outcome: outcome, Err: failed, Hedged: o.hedged, Duration: s.Now().Sub(start)})
	}()
	limited, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	answer, err = s.exchange(limited, o)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		err = outagef("no whole answer within %s", o.timeout)
	}
	return answer, err
}

// TrustList fetches a list of accredited authorities from an address of the configuration, and returns its size in bytes. The
// address may be an internal one only if an exception allows it.
func (s *Source) TrustList(ctx context.Context, address string, to io.Writer, timeout time.Duration) (size int64, err error) {
	u, err := s.guard.ParseRegistered(address)
	if err != nil {
		return 0, err
	}
	out := &target{Writer: to}
	if _, err := s.fetch(ctx, order{kind: trustKind, url: u, timeout: timeout, to: out}); err != nil {
		return 0, fmt.Errorf("the list of authorities at %s: %w", u.Host, err)
	}
	return out.size, nil
}

func (s *Source) exchange(ctx context.Context, o order) ([]byte, error) {
	method, body := http.MethodGet, io.Reader(nil)
	if o.kind.send != "" {
		method, body = http.MethodPost, bytes.NewReader(o.body)
	}
	req, err := http.NewRequestWithContext(ctx, method, o.url.String(), body)
	if err != nil {
		return nil, &guard.Refused{Text: "the address is malformed"}
	}
	req.Header.Set("Accept", o.kind.accept)
	req.Header.Set("User-Agent", "tamga")
	if o.kind.send != "" {
		req.Header.Set("Content-Type", o.kind.send)
		// The request changes nothing on the server. If the server closed an idle
		// connection, the request is repeated on a new one.
		req.Header["Idempotency-Key"] = nil
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, transportError(err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return nil, fmt.Errorf("it answers with a redirect (HTTP %d), which is not followed", resp.StatusCode)
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500:
		return nil, outagef("it answers with HTTP %d", resp.StatusCode)
	case resp.StatusCode/100 != 2:
		// RFC 3161 and RFC 6960 name no status. Some services answer 201, so the body decides.
		return nil, fmt.Errorf("it answers with HTTP %d", resp.StatusCode)
	}
	limit := o.limit
	if limit == 0 {
		limit = o.kind.size
	}
	if resp.ContentLength > limit {
		return nil, fmt.Errorf("the answer has %d bytes, more than the %d allowed", resp.ContentLength, limit)
	}
	body = io.LimitReader(resp.Body, limit+1)
	if o.to != nil {
		n, err := io.Copy(o.to, body)
		switch {
		case o.to.err != nil: // of the disk here, not of the service
			return nil, fmt.Errorf("writing the answer: %w", o.to.err)
		case err != nil:
			return nil, &outage{&detailed{fmt.Sprintf("the answer breaks off after %d bytes", n), err}}
		case n > limit:
			return nil, fmt.Errorf("the answer has more than the %d bytes allowed", limit)
		}
		return nil, nil
	}
	var answer bytes.Buffer
	if resp.ContentLength > 0 {
		answer.Grow(int(min(resp.ContentLength, 1<<20)) + bytes.MinRead) // a merely announced size reserves no more
	}
	if _, err := answer.ReadFrom(body); err != nil {
		return nil, &outage{&detailed{fmt.Sprintf("the answer breaks off after %d bytes", answer.Len()), err}}
	}
	if int64(answer.Len()) > limit {
		return nil, fmt.Errorf("the answer has more than the %d bytes allowed", limit)
	}
	return answer.Bytes(), nil
}

// target counts what is written, and keeps the error of a writer.
type target struct {
	io.Writer
	size int64
	err  error
}

func (t *target) Write(p []byte) (int, error) {
	n, err := t.Writer.Write(p)
	t.size, t.err = t.size+int64(n), err
	return n, err
}
