// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/judge"

	"tamga/internal/tamgatest"
	"tamga/internal/testsize"
)

// mostHeld is how long an outage of a bucket may hold a caller, with room for a busy machine: the
// limits of the program are a sixth of it.
const mostHeld = 60 * time.Second

// wantAway sends a request and wants to be told in less than a time that something is away.
func wantAway(t *testing.T, what string, request *http.Request, most time.Duration) {
	t.Helper()
	begun := time.Now()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	status, body := tamgatest.ReadAll(t, response)
	took := time.Since(begun)
	t.Logf("%s: %d after %v", what, status, took.Round(time.Millisecond))
	var f struct {
		Error       string
		Description string `json:"error_description"`
	}
	if err := json.Unmarshal(body, &f); err != nil || status != 503 || f.Error != "temporarily_unavailable" || f.Description == "" || response.Header.Get("Retry-After") == "" {
		t.Errorf("%s: %d %s, Retry-After %q", what, status, body, response.Header.Get("Retry-After"))
	}
	if took >= most {
		t.Errorf("%s: held for %v, want less than %v", what, took, most)
	}
}

// requestTo makes a request with a token.
func requestTo(t *testing.T, method, url, token, body string, headers ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// unready is what /readyz answers from the first answer on that is not 200: an answer may be a second old.
func unready(t *testing.T, p *tamgatest.Server) (int, map[string]string) {
	t.Helper()
	for end := time.Now().Add(tamgatest.Patience); ; time.Sleep(50 * time.Millisecond) {
		if status, parts := readyBody(t, p); status != 200 || time.Now().After(end) {
			return status, parts
		}
	}
}

// readyBody is what /readyz answers.
func readyBody(t *testing.T, p *tamgatest.Server) (int, map[string]string) {
	t.Helper()
	response, err := http.Get(p.URL + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	status, text := tamgatest.ReadAll(t, response)
	var body struct{ Parts map[string]string }
	if err := json.Unmarshal(text, &body); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return status, body.Parts
}

// TestDatabaseSilent: a database that is silent or gone is 503 for every kind of request,
// after database_wait, and what is asked when it is back is carried out. The wait is long, so that no
// healthy answer of a busy machine exceeds it, and that two waits differ from one.
func TestDatabaseSilent(t *testing.T) {
	t.Parallel()
	const wait = 25 * time.Second
	proxy := storetest.NewProxy(t, storetest.PostgreSQL(t).Database(t))
	w := tamgatest.StartUMSProcess(t, t.TempDir(), "--set", "database="+proxy.URL, "--set", "repetitions.lease=1h", "--set", "database_wait="+wait.String())
	signing := string(signingBody(t, w.Cert("gost2012-256", false).ID, ""))
	token := w.Token()
	sign := func(key string) *http.Request {
		return requestTo(t, "POST", w.Dev.BaseURL+"/api/documents", token, signing, "Idempotency-Key", key)
	}
	proxy.Pause()
	var all sync.WaitGroup
	all.Go(func() {
		begun := time.Now()
		status, parts := unready(t, w.Server)
		if took := time.Since(begun); status != 503 || parts["database"] != "unavailable" || parts["documents"] != "ready" || took >= wait {
			t.Errorf("/readyz: %d %v after %v", status, parts, took)
		}
	})
	for what, request := range map[string]*http.Request{
		"a signature":       requestTo(t, "POST", w.Dev.BaseURL+"/api/documents", token, signing),
		"one with a key":    sign("silent"),
		"the certificates":  requestTo(t, "GET", w.Dev.BaseURL+"/api/certificates", token, ""),
		"a people change":   requestTo(t, "POST", w.Dev.IDPURL+"/ums/user", w.Tokens[tamgatest.Ours], `{"Login":"silent"}`),
		"a revocation list": requestTo(t, "GET", w.Dev.CRLURL, "", ""),
	} {
		all.Go(func() { wantAway(t, what, request, 2*wait) })
	}
	all.Wait()
	proxy.Resume()
	// The key is free long before its lease is over.
	begun := time.Now()
	for {
		response, err := http.DefaultClient.Do(sign("silent"))
		if err != nil {
			t.Fatal(err)
		}
		status, body := tamgatest.ReadAll(t, response)
		if status == 200 {
			break
		}
		if time.Since(begun) > tamgatest.Patience {
			t.Fatalf("the key is still leased after %v: %d %s", time.Since(begun), status, body)
		}
		time.Sleep(50 * time.Millisecond)
	}
	w.Register()
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if status, parts := readyBody(t, w.Server); status == 200 {
			break
		} else if time.Since(begun) > tamgatest.Patience {
			t.Fatalf("/readyz: %d %v", status, parts)
		}
	}
}

// TestBucketSilent is the same for the bucket, silent and gone.
func TestBucketSilent(t *testing.T) {
	if testsize.Of() == testsize.Quick {
		t.Skip("waits for the ends of requests to a bucket")
	}
	t.Parallel()
	s3 := judge.S3(t)
	target, err := url.Parse(s3.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	var silent, gone atomic.Bool
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // it is signed
	}}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case gone.Load():
			panic(http.ErrAbortHandler)
		case silent.Load():
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		default:
			forward.ServeHTTP(w, r)
		}
	}))
	defer front.Close()
	dir := t.TempDir()
	for file, secret := range map[string]string{"access": s3.AccessKey, "secret": s3.SecretKey} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var set []string
	for _, s := range []string{
		"bucket.endpoint=" + front.URL, "bucket.name=" + s3.Bucket, "bucket.region=us-east-1",
		"bucket.prefix=tamga/", "bucket.path_style=true", "bucket.access_key_file=access", "bucket.secret_key_file=secret",
	} {
		set = append(set, "--set", s)
	}
	p := tamgatest.StartProcess(t, dir, set...)
	token := p.Token()
	store := p.Dev.DocumentsURL + "/api/documents"
	d := tamgatest.Documents(p, token)
	content := bytes.Repeat([]byte("document "), 20_000)
	id := d.Put(content, map[string]any{"FileName": "x"})
	for name, away := range map[string]*atomic.Bool{"silent": &silent, "gone": &gone} {
		away.Store(true)
		if status, parts := unready(t, p); status != 503 || parts["documents"] != "unavailable" || parts["database"] != "ready" {
			t.Errorf("%s: /readyz: %d %v", name, status, parts)
		}
		var all sync.WaitGroup
		for what, request := range map[string]*http.Request{
			name + ", reading":   requestTo(t, "GET", store+"/"+id+"/content", token, ""),
			name + ", storing":   requestTo(t, "POST", store, token, string(content), "CPDSS-POSTDOC", "eyJGaWxlTmFtZSI6InkifQ", "Content-Type", "application/octet-stream"),
			name + ", signing":   requestTo(t, "POST", p.Dev.BaseURL+"/api/v2/signature", token, fmt.Sprintf(`{"BinaryData":[{"RefId":%q}],"Signature":{"Type":"CMS"}}`, id)),
			name + ", preparing": requestTo(t, "POST", p.Dev.BaseURL+"/api/signatures/presign", "", presignText(t, p, content)),
		} {
			all.Go(func() { wantAway(t, what, request, mostHeld) })
		}
		all.Wait()
		// Small documents are in the database.
		if got := d.Content(d.Put([]byte("small"), map[string]any{"FileName": "x"})); string(got) != "small" {
			t.Errorf("%s: a small document: %q", name, got)
		}
		away.Store(false)
		if got := d.Content(id); !bytes.Equal(got, content) {
			t.Errorf("%s: back again: %d bytes", name, len(got))
		}
	}
}

func presignText(t *testing.T, p *tamgatest.Server, content []byte) string {
	t.Helper()
	text, err := io.ReadAll(tamgatest.PresignRequest(t, p, content))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestStopsBehindABalancer: servers behind a balancer that looks at /readyz stop and start
// again under load, and no request is lost. The balancer repeats nothing.
func TestStopsBehindABalancer(t *testing.T) {
	t.Parallel()
	judge.HAProxyProgram(t)
	stops := 2
	if testsize.Of() == testsize.Full {
		stops = 20
	} else if testsize.Of() < testsize.Whole {
		stops = 1
	}
	f := startFleet(t, 2, "--set", "drain_time=3s")
	dir := t.TempDir()
	var addresses []string
	for _, s := range f.servers {
		addresses = append(addresses, strings.TrimPrefix(s.URL, "http://"))
	}
	listen := freeAddress(t)
	config := filepath.Join(dir, "haproxy.cfg")
	tamgatest.WriteFile(t, config, fmt.Sprintf(`defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  retries 0
listen tamga
  bind %s
  http-reuse always
  option httpchk GET /readyz
  http-check expect status 200
  default-server inter 300ms fall 1 rise 1
  server a %s check
  server b %s check
`, listen, addresses[0], addresses[1]))
	judge.HAProxy(t, config, "/dev/null", listen)
	token := f.Token()
	body := signingBody(t, f.Cert("gost2012-256", false).ID, "")
	ended := make(chan struct{})
	var answered, lost atomic.Int64
	var load sync.WaitGroup
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	for range 6 {
		next := pauses(false)
		load.Go(func() {
			for {
				select {
				case <-ended:
					return
				case <-next:
				}
				request, err := http.NewRequest("POST", "http://"+listen+"/SignServer/api/documents", bytes.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				request.Header.Set("Authorization", "Bearer "+token)
				response, err := client.Do(request)
				status := 0
				if err == nil {
					_, err = io.Copy(io.Discard, response.Body)
					response.Body.Close()
					status = response.StatusCode
				}
				if answered.Add(1); err != nil || status != 200 {
					lost.Add(1)
					t.Errorf("request %d: %d %v", answered.Load(), status, err)
				}
			}
		})
	}
	for n := range stops {
		i := n % 2
		if err := f.servers[i].Stop(); err != nil {
			t.Errorf("a polite stop ends with %v", err)
		}
		f.servers[i] = f.another(i, addresses[i], "--set", "drain_time=3s")
		for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
			if status, _ := readyBody(t, f.servers[i]); status == 200 {
				break
			} else if time.Since(begun) > tamgatest.Patience {
				t.Fatal("the server is not ready again")
			}
		}
		time.Sleep(time.Second) // the balancer looks three times in a second
	}
	close(ended)
	load.Wait()
	t.Logf("%d stops under %d requests, %d lost", stops, answered.Load(), lost.Load())
}

// TestDrain: a server that gets SIGTERM says at once that it is not ready and goes on
// answering; a second signal ends that, and Ctrl-C does not begin it.
func TestDrain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		first, second syscall.Signal
	}{
		{"a second signal", syscall.SIGTERM, syscall.SIGTERM},
		{"Ctrl-C", syscall.SIGINT, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := tamgatest.StartProcess(t, t.TempDir(), "--set", "drain_time=1h")
			if status, _ := readyBody(t, p); status != 200 {
				t.Fatalf("/readyz: %d", status)
			}
			p.Process().Signal(c.first)
			if c.second != 0 {
				for begun := time.Now(); ; time.Sleep(time.Millisecond) {
					if status, _ := readyBody(t, p); status == 503 {
						break
					} else if time.Since(begun) > tamgatest.Patience {
						t.Fatal("the server stays ready")
					}
				}
				if status, body := p.Post(p.Token(), bytes.NewReader(signingBody(t, p.Cert("gost2012-256", false).ID, ""))); status != 200 {
					t.Errorf("draining: %d %s", status, body)
				}
				p.Process().Signal(c.second)
			}
			if err := p.Wait(); err != nil {
				t.Errorf("the stop ends with %v", err)
			}
		})
	}
}

// freeAddress is an address of loopback that nothing listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
