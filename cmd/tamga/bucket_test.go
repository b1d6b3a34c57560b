// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"tamga/internal/app/dev"
	"tamga/internal/judge"
	"tamga/internal/tamgatest"
)

// bucketSettings are the settings of a bucket, with its secrets in files.
func bucketSettings(t *testing.T, s3 *judge.S3Server) map[string]string {
	t.Helper()
	dir := t.TempDir()
	return map[string]string{
		"endpoint": s3.Endpoint, "name": s3.Bucket, "region": "us-east-1", "prefix": "tamga/", "path_style": "true",
		"access_key_file": tamgatest.WriteFile(t, filepath.Join(dir, "access"), s3.AccessKey+"\n"),
		"secret_key_file": tamgatest.WriteFile(t, filepath.Join(dir, "secret"), s3.SecretKey+"\n"),
	}
}

// bucketFlags are bucketSettings as flags, with small documents in the bucket, too.
func bucketFlags(t *testing.T, s3 *judge.S3Server) (flags []string) {
	t.Helper()
	for name, value := range bucketSettings(t, s3) {
		flags = append(flags, "--set", "bucket."+name+"="+value)
	}
	return append(flags, "--set", "documents.in_database=0")
}

// frontOf starts a proxy before a bucket. From the request number stops for an object on, requests
// for objects wait until the test lets them go or ends. arrived is closed when the first one waits.
func frontOf(t *testing.T, s3 *judge.S3Server, stops int64) (address string, arrived chan struct{}, goOn func()) {
	t.Helper()
	target, err := url.Parse(s3.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // it is signed
	}}
	arrived = make(chan struct{})
	waits := make(chan struct{})
	var requests atomic.Int64
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/tamga/documents/") {
			n := requests.Add(1)
			if n == stops {
				close(arrived)
			}
			if n >= stops {
				select {
				case <-waits:
				case <-r.Context().Done():
					return
				}
			}
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	return front.URL, arrived, func() { close(waits) }
}

// objects returns the names of the documents in a bucket.
func objects(t *testing.T, s3 *judge.S3Server) []string {
	t.Helper()
	return slices.DeleteFunc(s3.Files(t), func(name string) bool { return !strings.HasPrefix(name, "tamga/documents/") })
}

// TestBackupOfBucket makes a list of a bucket and a copy of it, deletes documents meanwhile, restores the list
// over the same bucket, with and without a lost object, and the copy into another bucket.
func TestBackupOfBucket(t *testing.T) {
	t.Parallel()
	s3, second := judge.S3(t), judge.S3(t)
	p := tamgatest.Start(t, bucketFlags(t, s3)...)
	store := tamgatest.Documents(p, p.Token())
	put := func(text string) (id string) { return store.Put([]byte(text), map[string]string{"FileName": "a.txt"}) }
	lost := put("lost in the bucket")
	lostObject := objects(t, s3)
	ids := map[string]string{"kept": put("kept"), "deleted": put("deleted")}
	store.Ask("DELETE", "/"+put("not held"), nil)
	if names := objects(t, s3); len(lostObject) != 1 || len(names) != 3 {
		t.Fatalf("%q and %q are in the bucket", lostObject, names)
	}

	// The list is being made when a document is deleted: its object stays.
	front, arrived, goOn := frontOf(t, s3, 1)
	list, copied := filepath.Join(t.TempDir(), "list"), filepath.Join(t.TempDir(), "copy")
	ended := make(chan tamgatest.Result, 1)
	go func() {
		ended <- tamgatest.Run(t.Context(), "", append([]string{"backup", list, "--data", p.Dir, "--json"}, append(bucketFlags(t, s3), "--set", "bucket.endpoint="+front)...)...)
	}()
	<-arrived
	store.Ask("DELETE", "/"+ids["deleted"], nil)
	if names := objects(t, s3); len(names) != 3 {
		t.Errorf("%q are in the bucket while the backup runs", names)
	}
	goOn()
	r := <-ended
	var manifest struct {
		Bucket    string
		Documents int
	}
	if err := json.Unmarshal([]byte(r.Out), &manifest); r.Failure != nil || err != nil || manifest.Bucket != s3.Bucket || manifest.Documents != 3 {
		t.Fatalf("%v, %v: %s", r.Failure, err, r.Out)
	}
	if names := tamgatest.Listing(t, list); !slices.Equal(names, []string{"SHA256SUMS", "bucket.jsonl", "database", "manifest.json"}) {
		t.Errorf("the list has %q", names)
	}
	p.Command("backup", copied, "--copy-bucket")
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}

	restored := func(dir string, flags []string) *tamgatest.DocumentStore {
		t.Helper()
		q := tamgatest.StartIn(t, dir, flags...)
		q.Command("restore", "release", "--yes")
		released(t, q)
		return tamgatest.Documents(q, q.Token())
	}
	dir := elsewhere(t, p.Dir)
	run := func(args ...string) tamgatest.Result {
		return tamgatest.Run(t.Context(), "", append(append(args, "--data", dir), bucketFlags(t, s3)...)...)
	}
	if err := os.Remove(filepath.Join(s3.Dir, lostObject[0])); err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(lostObject[0], "tamga/")
	if r := run("restore", list); r.Failure == nil || !strings.Contains(r.Failure.Error(), "objects of the backup are missing in the bucket") {
		t.Errorf("a restore over a bucket without an object: %v", r.Failure)
	}
	if r := run("restore", copied); r.Failure == nil || !strings.Contains(r.Failure.Error(), "storage of documents is not empty") {
		t.Errorf("a restore of the copy over a bucket that is not empty: %v", r.Failure)
	}
	if r := run("restore", list, "--missing-documents"); r.Failure != nil || !strings.Contains(r.Out, "Missing in the bucket: "+name+"\n") {
		t.Fatalf("with --missing-documents: %v: %s", r.Failure, r.Out)
	}
	open := restored(dir, bucketFlags(t, s3))
	if got := open.Content(ids["kept"]); string(got) != "kept" {
		t.Errorf("from the bucket: %q", got)
	}
	response, body := open.Ask("GET", "/"+lost+"/content", nil)
	if response.StatusCode != 500 || !strings.HasPrefix(string(body), `{"Message":"An error has occurred","error":"document_lost","error_description":"the content of the document is lost`) {
		t.Errorf("the lost document: %d %s", response.StatusCode, body)
	}
	var line string
	for said := range strings.Lines(open.Server.Logged()) {
		if strings.Contains(said, "document_lost") && strings.Contains(said, "cause") {
			line = said
		}
	}
	if !strings.Contains(line, "level=ERROR") || !strings.Contains(line, lost) || !strings.Contains(line, "object "+name) {
		t.Errorf("the log says of the lost document: %s", line)
	}

	dir = elsewhere(t, p.Dir)
	flags := bucketFlags(t, second)
	if r := tamgatest.Run(t.Context(), "", append([]string{"restore", copied, "--data", dir}, flags...)...); r.Failure != nil {
		t.Fatal(r.Failure)
	}
	open = restored(dir, flags)
	for id, want := range map[string]string{ids["kept"]: "kept", lost: "lost in the bucket"} {
		if got := open.Content(id); string(got) != want {
			t.Errorf("from the copy: %q, want %q", got, want)
		}
	}
}

// TestRotateKilledOverBucket kills the replacement of the master key while it reseals documents in a
// bucket, under load. The same command goes on where that one ended, and no request fails.
func TestRotateKilledOverBucket(t *testing.T) {
	t.Parallel()
	s3 := judge.S3(t)
	i := initialize(t)
	text := read(t, i.config) + "\nbucket:\n"
	for name, value := range bucketSettings(t, s3) {
		text += fmt.Sprintf("  %s: %s\n", name, value)
	}
	tamgatest.WriteFile(t, i.config, text)
	serve := func() (*tamgatest.Server, *tamgatest.DocumentStore) {
		server := i.serve()
		token, err := i.token(server)
		if err != nil {
			t.Fatal(err)
		}
		server.Dev = &dev.Description{DocumentsURL: server.URL + "/DocumentStore"}
		return server, tamgatest.Documents(server, token)
	}
	server, stored := serve()
	content := bytes.Repeat([]byte("document "), 5000) // too large for the database
	ids := make([]string, 20)
	for n := range ids {
		ids[n] = stored.Put(content, map[string]string{"FileName": "a.txt"})
	}
	stop := i.load(server)
	const before = 12 // requests that are answered: one for each document side by side, and more
	front, arrived, _ := frontOf(t, s3, before+1)
	rotate := launch(t, tamgatest.ProcessOf(t, "key", "rotate", "--config", i.config, "--set", "bucket.endpoint="+front))
	select {
	case <-arrived:
	case <-rotate.ended:
		t.Fatalf("the rotation ended: %s", rotate.said.String())
	}
	left := func(id string) int64 {
		for _, k := range i.keyStatus().Keys {
			if k.ID == id {
				return k.Documents
			}
		}
		t.Fatalf("no key %s", id)
		return 0
	}
	for left("1") == int64(len(ids)) { // until a document is resealed
		runtime.Gosched()
	}
	rotate.kill()
	if n := left("1"); n == 0 || n == int64(len(ids)) {
		t.Fatalf("%d of %d documents are left: the rotation was not in the middle", n, len(ids))
	}
	i.run("key", "rotate")
	if s := i.keyStatus(); s.Active != "2" || len(s.Keys) != 2 || s.Keys[0].Records != 0 || s.Keys[0].Documents != 0 {
		t.Errorf("after the rotation went on: %+v", s)
	}
	if n := stop(); n == 0 {
		t.Error("no request was answered")
	}
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
	tamgatest.WriteFile(t, i.config, strings.ReplaceAll(read(t, i.config), "    \"1\": \"secrets/master-1.key\"\n", ""))
	_, stored = serve()
	for _, id := range ids {
		if got := stored.Content(id); !bytes.Equal(got, content) {
			t.Errorf("a document has %d bytes without the old key", len(got))
		}
	}
}
