// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"tamga/internal/domain/document"
	"tamga/internal/domain/fault"
	"tamga/internal/judge"
)

func openBucket(t testing.TB, s *judge.S3Server, endpoint string) *Bucket {
	t.Helper()
	b, err := NewBucket(t.Context(), BucketOptions{
		Endpoint: endpoint, Region: "us-east-1", Bucket: s.Bucket, Prefix: "tamga/", AccessKey: s.AccessKey, SecretKey: s.SecretKey, PathStyle: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// around starts a proxy in front of the server. meet may answer a request itself.
func around(t *testing.T, s *judge.S3Server, meet func(w http.ResponseWriter, r *http.Request) (met bool)) string {
	t.Helper()
	target, err := url.Parse(s.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // the host is signed
	}}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !meet(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(front.Close)
	return front.URL
}

func TestBucketIsAPlace(t *testing.T) {
	s := judge.S3(t)
	testStorage(t, openBucket(t, s, s.Endpoint), []int{0, 1, chunkSize, chunkSize + 1, readSize + 5, partSize - 300, partSize, 2*partSize + 77})
	for _, name := range s.Files(t) {
		t.Errorf("%s is left", name)
	}
}

// TestBucketChecksWhoAsks checks that the server refuses a wrong secret. So requests that it accepts
// are signed correctly.
func TestBucketChecksWhoAsks(t *testing.T) {
	s := judge.S3(t)
	for name, o := range map[string]BucketOptions{
		"another secret": {Endpoint: s.Endpoint, Bucket: s.Bucket, AccessKey: s.AccessKey, SecretKey: "another", Region: "us-east-1", PathStyle: true},
		"another bucket": {Endpoint: s.Endpoint, Bucket: "other", AccessKey: s.AccessKey, SecretKey: s.SecretKey, Region: "us-east-1", PathStyle: true},
		"no server":      {Endpoint: "ftp://x", Bucket: "other"},
	} {
		_, err := NewBucket(t.Context(), o)
		if err == nil {
			t.Errorf("%s: opened", name)
		} else if strings.Contains(err.Error(), "another") && name == "another secret" {
			t.Errorf("the secret is in the error: %v", err)
		}
	}
}

// TestBucketReadsRanges checks that reading a small piece of a large object reads one block.
func TestBucketReadsRanges(t *testing.T) {
	s := judge.S3(t)
	var served atomic.Int64
	b := openBucket(t, s, around(t, s, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == "GET" && strings.Contains(r.URL.Path, "/documents/tamga/") {
			if r.Header.Get("Range") == "" {
				t.Errorf("read without a range: %s", r.URL)
			}
			served.Add(1)
		}
		return false
	}))
	d := NewDocuments(Options{Storage: b, Ring: newRing(t), Plain: true})
	name := d.Name("00000000-0000-4000-8000-000000000001")
	want := sample(3*partSize + 5)
	keep(t, d, name, want, 1<<20)
	o, err := d.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 100)
	for i := range 1000 {
		at := int64(len(want)) - 100 - int64(i)
		if _, err := o.ReadAt(p, at); err != nil || !bytes.Equal(p, want[at:at+100]) {
			t.Fatalf("at %d: %v", at, err)
		}
	}
	if n := served.Load(); n > 2 {
		t.Errorf("a thousand adjacent pieces took %d requests", n)
	}
}

// TestBucketAbortsItsUploads checks that a failed part, a canceled request and a killed process leave
// nothing permanent.
func TestBucketAbortsItsUploads(t *testing.T) {
	s := judge.S3(t)
	var failing atomic.Bool
	b := openBucket(t, s, around(t, s, func(w http.ResponseWriter, r *http.Request) bool {
		if failing.Load() && r.Method == "PUT" && r.URL.Query().Get("partNumber") == "2" {
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(http.StatusInsufficientStorage)
			io.WriteString(w, "<Error><Code>XMinioStorageFull</Code><Message>no space</Message></Error>")
			return true
		}
		return false
	}))
	d := NewDocuments(Options{Storage: b, Ring: newRing(t)})
	content := sample(3 * partSize)

	failing.Store(true)
	name := d.Name("00000000-0000-4000-8000-000000000001")
	w, err := d.Create(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(content)
	if err == nil {
		err = w.Commit()
	}
	if !errors.Is(err, document.ErrNoRoom) {
		t.Errorf("a server without space: %v", err)
	}
	w.Abort()
	failing.Store(false)

	ctx, cancel := context.WithCancel(t.Context())
	if w, err = d.Create(ctx, name); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	cancel()
	w.Abort()
	if left := s.Files(t); len(left) != 0 {
		t.Errorf("left: %v", left)
	}

	// A killed process aborts nothing, and another process sweeps.
	if w, err = d.Create(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if len(s.Files(t)) == 0 {
		t.Fatal("no upload is in progress: the test proves nothing")
	}
	if err := NewDocuments(Options{Storage: openBucket(t, s, s.Endpoint), Ring: newRing(t)}).Remove(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if left := s.Files(t); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if err := w.Commit(); err == nil {
		t.Error("a swept object can be committed")
	}
}

// TestBucketChangedWhileRead checks that bytes of another object under the same name are never mixed
// in.
func TestBucketChangedWhileRead(t *testing.T) {
	s := judge.S3(t)
	b := openBucket(t, s, s.Endpoint)
	d := NewDocuments(Options{Storage: b, Ring: newRing(t), Plain: true})
	name := d.Name("00000000-0000-4000-8000-000000000001")
	keep(t, d, name, sample(4*readSize), 1<<20)
	o, err := d.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.ReadAt(make([]byte, 1), 0); err != nil {
		t.Fatal(err)
	}
	keep(t, d, name, bytes.Repeat([]byte{1}, 4*readSize), 1<<20)
	if _, err := o.ReadAt(make([]byte, 1), 3*readSize); err == nil {
		t.Error("bytes of another object were read")
	}
	if err := d.Remove(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if _, err := o.ReadAt(make([]byte, 1), 2*readSize); err == nil {
		t.Error("bytes of a removed object were read")
	}
}

// TestBucketTriesAgain checks that nothing is lost when a server is sometimes busy or hangs up.
func TestBucketTriesAgain(t *testing.T) {
	t.Parallel() // it waits most of the time
	s := judge.S3(t)
	var n atomic.Int64
	b := openBucket(t, s, around(t, s, func(w http.ResponseWriter, r *http.Request) bool {
		switch n.Add(1) % 5 {
		case 1:
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, "<Error><Code>SlowDown</Code></Error>")
			return true
		case 3:
			panic(http.ErrAbortHandler) // in the middle of the response
		}
		return false
	}))
	d := NewDocuments(Options{Storage: b, Ring: newRing(t)})
	for i, size := range []int{10, 3*partSize + 1} {
		name := d.Name("00000000-0000-4000-8000-00000000000" + string(rune('0'+i)))
		want := sample(size)
		keep(t, d, name, want, 1<<20)
		o, err := d.Open(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(io.NewSectionReader(o, 0, o.Size()))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("read %d bytes, %v", len(got), err)
		}
		if err := d.Remove(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBucketHangs checks that a server that accepts requests and never responds does not block us
// beyond the time limits.
func TestBucketHangs(t *testing.T) {
	s := judge.S3(t)
	var hanging atomic.Bool
	release := make(chan struct{})
	b := openBucket(t, s, around(t, s, func(w http.ResponseWriter, r *http.Request) bool {
		if hanging.Load() {
			select {
			case <-release:
			case <-r.Context().Done():
			}
			return true
		}
		return false
	}))
	hanging.Store(true)
	defer close(release)
	begun := time.Now()
	err := b.call(t.Context(), 50*time.Millisecond, func(ctx context.Context) error {
		_, err := b.client.StatObject(ctx, b.bucket, "x", minio.StatObjectOptions{})
		return err
	})
	if _, is := fault.AsOutage(err); !is || time.Since(begun) > 10*time.Second {
		t.Errorf("after %v: %v", time.Since(begun), err)
	}
	// A document without progress does not wait for the time limit of a slow one.
	b.stall = 100 * time.Millisecond
	for _, size := range []int{10, partSize + 1} {
		w, err := b.create(t.Context(), "stalled")
		if err != nil {
			t.Fatal(err)
		}
		if size > partSize {
			w.(*bucketWriter).upload = "begun" // the server hangs when it receives the part
		}
		if _, err = w.Write(sample(size)); err == nil {
			err = w.Commit()
		}
		if _, is := fault.AsOutage(err); !is || !errors.Is(err, errStalled) {
			t.Errorf("%d bytes: %v", size, err)
		}
		w.(*bucketWriter).done = true
	}
}

// When the server is gone, errors are outages and the bucket is not ready. When it is back, it is.
func TestBucketAway(t *testing.T) {
	t.Parallel() // it waits most of the time
	s := judge.S3(t)
	var gone atomic.Bool
	b := openBucket(t, s, around(t, s, func(w http.ResponseWriter, r *http.Request) bool {
		if gone.Load() {
			panic(http.ErrAbortHandler)
		}
		return false
	}))
	d := NewDocuments(Options{Storage: b, Ring: newRing(t)})
	name := d.Name("00000000-0000-4000-8000-000000000001")
	keep(t, d, name, sample(4*readSize), 1<<20)
	o, err := d.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	gone.Store(true)
	for what, call := range map[string]func() error{
		"ready":  func() error { return b.Ready(t.Context()) },
		"open":   func() error { _, err := d.Open(t.Context(), name); return err },
		"read":   func() error { _, err := o.ReadAt(make([]byte, 10), 2*readSize); return err },
		"remove": func() error { return d.Remove(t.Context(), name) },
		"create": func() error {
			w, err := d.Create(t.Context(), name)
			if err != nil {
				return err
			}
			defer w.Abort()
			if _, err := w.Write(sample(100)); err != nil {
				return err
			}
			return w.Commit()
		},
	} {
		if err := call(); err == nil {
			t.Errorf("%s: no error", what)
		} else if _, is := fault.AsOutage(err); !is {
			t.Errorf("%s: %v, want an outage", what, err)
		}
	}
	gone.Store(false)
	if err := b.Ready(t.Context()); err != nil {
		t.Errorf("back again: %v", err)
	}
	if err := d.Remove(t.Context(), name); err != nil {
		t.Error(err)
	}
}

// TestBucketKeepsConnections checks that requests of some callers at the same time do not connect anew for each
// object.
func TestBucketKeepsConnections(t *testing.T) {
	s := judge.S3(t)
	var opened sync.Map // addresses of the client, one for each connection
	front := around(t, s, func(_ http.ResponseWriter, r *http.Request) bool {
		opened.Store(r.RemoteAddr, true)
		return false
	})
	p := NewPrepared(Options{Storage: openBucket(t, s, front), Ring: newRing(t)})
	const callers, objects = 18, 10
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range objects {
				name, err := p.KeepBlob(t.Context(), bytes.NewReader(sample(1000)), noon)
				if err != nil {
					t.Error(err)
					return
				}
				o, err := p.OpenBlob(t.Context(), name)
				if err != nil {
					t.Error(err)
					return
				}
				readsAs(t, o, sample(1000))
				if err := errors.Join(o.Close(), p.RemoveBlob(t.Context(), name)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	// A caller may connect while another one gives its connection back.
	n := 0
	opened.Range(func(any, any) bool { n++; return true })
	if n > 3*callers {
		t.Errorf("%d connections for %d objects of %d callers", n, callers*objects, callers)
	}
}

// TestBucketKeepsPrepared checks that documents of two-step signing are in the same bucket and that
// the sweep removes them by the time in their names, finished or not.
func TestBucketKeepsPrepared(t *testing.T) {
	s := judge.S3(t)
	b := openBucket(t, s, s.Endpoint)
	p := NewPrepared(Options{Storage: b, Ring: newRing(t)})
	content := sample(100_000)
	old, err := p.KeepBlob(t.Context(), bytes.NewReader(content), noon)
	if err != nil {
		t.Fatal(err)
	}
	young, err := p.KeepBlob(t.Context(), bytes.NewReader(content), noon.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	// An unfinished one.
	w, err := b.create(t.Context(), strings.Replace(old, "-", "-A", 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(sample(2 * partSize)); err != nil {
		t.Fatal(err)
	}
	// Another process reads.
	other := NewPrepared(Options{Storage: openBucket(t, s, s.Endpoint), Ring: newRing(t)})
	blob, err := other.OpenBlob(t.Context(), old)
	if err != nil {
		t.Fatal(err)
	}
	readsAs(t, blob, content)
	// The sweep must not remove stored documents.
	d := NewDocuments(Options{Storage: b, Ring: newRing(t)})
	stored := d.Name("00000000-0000-4000-8000-000000000001")
	keep(t, d, stored, content, 1<<20)

	testResealed(t, b)
	if err := other.SweepBlobs(t.Context(), noon.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := p.OpenBlob(t.Context(), old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the expired one: %v", err)
	}
	if o, err := p.OpenBlob(t.Context(), young); err != nil {
		t.Error(err)
	} else {
		o.Close()
	}
	if left := s.Files(t); len(left) != 2 {
		t.Errorf("left are %v, want the young one and the stored one", left)
	}
	if _, err := os.Stat(filepath.Join(s.Dir, "tamga", stored)); err != nil {
		t.Error(err)
	}
}
