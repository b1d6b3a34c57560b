// SPDX-License-Identifier: Apache-2.0

package docapi_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/app"
	"tamga/internal/app/dev"
	"tamga/internal/judge"

	"tamga/internal/tamgatest"
)

// TestDocumentStoreInABucket: two processes over one PostgreSQL and one bucket are one
// document store; when one dies in the middle of an upload, nothing stays of that.
func TestDocumentStoreInABucket(t *testing.T) {
	t.Parallel()
	bucket := judge.S3(t)
	database := storetest.PostgreSQL(t).Database(t)
	dir := t.TempDir()
	for file, secret := range map[string]string{"access": bucket.AccessKey, "secret": bucket.SecretKey} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	settings := []string{
		"database=" + database, "public_url=http://tamga.test", "bucket.endpoint=" + bucket.Endpoint, "bucket.name=" + bucket.Bucket, "bucket.region=us-east-1",
		"bucket.prefix=tamga/", "bucket.path_style=true", "bucket.access_key_file=access", "bucket.secret_key_file=secret",
	}
	var set []string
	for _, s := range settings {
		set = append(set, "--set", s)
	}
	one := tamgatest.StartProcess(t, dir, set...)
	two := tamgatest.StartProcess(t, dir, set...)
	at := func(p *tamgatest.Server, token string) *tamgatest.DocumentStore {
		return &tamgatest.DocumentStore{Server: p, Base: p.URL + "/DocumentStore/api/documents", Bearer: token}
	}
	for _, p := range []*tamgatest.Server{one, two} {
		p.Dev.TokenURL = strings.Replace(p.Dev.TokenURL, "http://tamga.test", p.URL, 1)
	}
	token := one.Token()
	a, b := at(one, token), at(two, token)

	small, large := []byte("small"), bytes.Repeat([]byte("large document "), 1<<20)
	ids := []string{a.Put(small, map[string]any{"FileName": "s"}), b.Put(large, map[string]any{"FileName": "l"})}
	for _, d := range []*tamgatest.DocumentStore{a, b} {
		for i, want := range [][]byte{small, large} {
			if got := d.Content(ids[i]); !bytes.Equal(got, want) {
				t.Errorf("document %d has %d bytes", i, len(got))
			}
		}
	}
	for _, name := range bucket.Files(t) {
		text, err := os.ReadFile(filepath.Join(bucket.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(name, "tamga/documents/") || bytes.Contains(text, large[:30]) {
			t.Errorf("%s is in the bucket, in clear", name)
		}
	}
	b.Get("DELETE", "/"+ids[0], nil, nil)
	a.Refuse(404, "object_not_found", "GET", "/"+ids[0]+"/content", nil)

	// Documents of two steps go the same way.
	status, text := one.Do(t.Context(), "POST", one.URL+"/SignServer/api/signatures/presign", "", tamgatest.PresignRequest(t, one, large[:100_000]))
	if status != 200 {
		t.Errorf("presign: %d %s", status, text)
	}
	prepared := 0
	for _, name := range bucket.Files(t) {
		if strings.HasPrefix(name, "tamga/prepared/") {
			prepared++
		}
	}
	if prepared != 1 {
		t.Errorf("%d prepared documents are in the bucket", prepared)
	}

	// An upload in parts, and its process dies.
	reader, writer := io.Pipe()
	request, err := http.NewRequest("POST", b.Base, reader)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("CPDSS-POSTDOC", "e30")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			response.Body.Close()
			t.Errorf("an upload to a dead process is answered %d", response.StatusCode)
		}
	}()
	for range 20 {
		if _, err := writer.Write(large[:1<<20]); err != nil {
			t.Fatal(err)
		}
	}
	// A part is written beside the upload: go on until one is there.
	for n := 0; len(bucket.Files(t)) < 3 && n < 100; n++ {
		if _, err := writer.Write(large[:1<<20]); err != nil {
			t.Fatal(err)
		}
	}
	before := len(bucket.Files(t))
	two.Kill()
	writer.CloseWithError(io.ErrClosedPipe)
	<-ended
	if before < 3 {
		t.Fatalf("%d files: no part of the upload is in the bucket, so the test shows nothing", before)
	}
	if got := a.Content(ids[1]); !bytes.Equal(got, large) {
		t.Errorf("the other process reads %d bytes", len(got))
	}
	config, err := dev.Config(dir, settings, false)
	if err != nil {
		t.Fatal(err)
	}
	h, err := app.Open(t.Context(), config, app.ForCommand, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	storage, err := h.Storage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	service := h.Documents(storage)
	service.Now = func() time.Time { return time.Now().Add(time.Hour) }
	if err := service.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, name := range bucket.Files(t) {
		if !strings.HasPrefix(name, "tamga/prepared/") {
			left = append(left, name)
		}
	}
	if len(left) != 1 || !strings.Contains(left[0], ids[1]) {
		t.Errorf("after the sweep there are %v", left)
	}
}
