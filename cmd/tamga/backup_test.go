// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/tamgatest"
	"tamga/pki/x509gost"
)

// elsewhere copies what an administrator keeps separate from a backup: all of a directory of serve
// --dev but the database and the documents.
func elsewhere(t *testing.T, dir string) string {
	t.Helper()
	other := t.TempDir()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		name, relErr := filepath.Rel(dir, path)
		if err != nil || relErr != nil || d.IsDir() {
			if err == nil && (name == "blobs" || name == "spool") {
				return filepath.SkipDir
			}
			return err
		}
		if strings.HasPrefix(name, "tamga.db") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(other, name)), 0o700); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(other, name), text, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return other
}

// get reads an address without a token.
func get(t *testing.T, url string) (int, []byte) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	return tamgatest.ReadAll(t, response)
}

// released waits until a server is open.
func released(t *testing.T, p *tamgatest.Server) {
	t.Helper()
	for status := 0; status != 200; {
		status, _ = get(t, p.URL+"/readyz")
	}
}

func crlNumber(t *testing.T, der []byte) (n int64) {
	t.Helper()
	list, err := x509gost.ParseRevocationList(der)
	if err != nil {
		t.Fatalf("%v in %.100q", err, der)
	}
	for _, b := range list.Number {
		n = n<<8 | int64(b)
	}
	return n
}

// TestBackupAndRestore signs, makes a backup, goes on, restores elsewhere and looks what the restored
// service does before and after its release.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) { t.Parallel(); backUpAndRestore(t, nil, nil) })
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		cluster := storetest.PostgreSQL(t)
		backUpAndRestore(t, []string{"--set", "database=" + cluster.Database(t)}, []string{"--set", "database=" + cluster.Database(t)})
	})
}

func backUpAndRestore(t *testing.T, from, to []string) {
	p := tamgatest.Start(t, from...)
	token := p.Token()
	store := tamgatest.Documents(p, token)
	large := strings.Repeat("too large for the database", 2000)
	kept := store.Put([]byte("kept"), map[string]string{"FileName": "kept.txt"})
	keptLarge := store.Put([]byte(large), map[string]string{"FileName": "large.txt"})
	deleted := store.Put([]byte("deleted later"), map[string]string{"FileName": "deleted.txt"})
	deletedLarge := store.Put([]byte(large), map[string]string{"FileName": "large.txt"})
	cert := p.Cert("gost2012-256", false).ID
	document := []byte("signed before the backup")
	signature := p.Signed("POST", "/rest/api/documents", token, tamgatest.Request(document, "CAdES", cert, tamgatest.Parameters{"IsDetached": "true", "CADESType": "BES"}))

	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	identity := tamgatest.WriteFile(t, filepath.Join(t.TempDir(), "age.key"), key.String()+"\n")
	backup := filepath.Join(t.TempDir(), "backups", "one")
	// The plain backup first, for the tests of damage.
	plain := backup + "-plain"
	p.Command("backup", plain)
	p.Command("backup", backup, "--recipient", key.Recipient().String())
	if r := p.TryCommand("backup", backup); r.Failure == nil || !strings.Contains(r.Failure.Error(), "exists") {
		t.Errorf("a second backup in one directory: %v", r.Failure)
	}
	var manifest struct {
		Documents int
		TakenAt   time.Time `json:"taken_at"`
	}
	if err := json.Unmarshal(tamgatest.ReadFile(t, filepath.Join(backup, "manifest.json")), &manifest); err != nil || manifest.Documents != 4 || manifest.TakenAt.IsZero() {
		t.Fatalf("%+v, %v", manifest, err)
	}
	for _, name := range tamgatest.Listing(t, filepath.Dir(backup)) {
		if strings.Contains(name, ".part-") {
			t.Errorf("%s was left", name)
		}
	}

	// What is lost.
	late := store.Put([]byte("stored after the backup"), map[string]string{"FileName": "late.txt"})
	store.Ask("DELETE", "/"+deleted, nil)
	store.Ask("DELETE", "/"+deletedLarge, nil)
	lateToken := p.Token()
	if status, body := p.Call("GET", "/rest/api/policy", lateToken, nil); status != 200 {
		t.Fatalf("a token that was issued after the backup: %d %s", status, body)
	}
	revoked := p.Cert("gost2012-512", false)
	p.Command("cert", "revoke", fmt.Sprint(revoked.ID), "--reason", "1")
	_, published := get(t, p.Dev.CRLURL)
	crl := tamgatest.WriteFile(t, filepath.Join(t.TempDir(), "gost.crl"), string(published))
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}

	dir := elsewhere(t, p.Dir)
	run := func(args ...string) tamgatest.Result {
		return tamgatest.Run(t.Context(), "", append(append(args, "--data", dir), to...)...)
	}
	refused := func(want string, args ...string) {
		t.Helper()
		if r := run(args...); r.Failure == nil || !strings.Contains(r.Failure.Error(), want) {
			t.Errorf("%v: %v, want %q", args, r.Failure, want)
		}
	}
	refused("encrypted", "restore", backup)
	other, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	refused("another key", "restore", backup, "--identity-file", tamgatest.WriteFile(t, filepath.Join(t.TempDir(), "other.key"), other.String()))
	for _, d := range damages {
		damaged := filepath.Join(t.TempDir(), "damaged")
		if err := os.CopyFS(damaged, os.DirFS(plain)); err != nil {
			t.Fatal(err)
		}
		d.do(t, damaged)
		refused(d.want, "restore", damaged)
	}
	if r := run("restore", backup, "--identity-file", identity); r.Failure != nil {
		t.Fatal(r.Failure)
	}
	refused("not empty", "restore", backup, "--identity-file", identity)

	// Closed.
	q := tamgatest.StartIn(t, dir, to...)
	for _, path := range []string{"/STS/oauth/token", "/SignServer/rest/api/policy", "/pki/gost.crl", "/pki/ocsp", "/"} {
		status, body := get(t, q.URL+path)
		var failure struct{ Error string }
		if err := json.Unmarshal(body, &failure); status != 503 || err != nil || failure.Error != "service_closed" {
			t.Errorf("closed: %s: %d %s", path, status, body)
		}
	}
	if status, body := get(t, q.URL+"/readyz"); status != 503 || !strings.Contains(string(body), `"release":"unavailable"`) {
		t.Errorf("closed: /readyz: %d %s", status, body)
	}
	if status, _ := get(t, q.URL+"/healthz"); status != 200 {
		t.Errorf("closed: /healthz: %d", status)
	}
	if status, body := q.Grant(q.Dev.User.Login, q.Dev.User.Password); status != 503 {
		t.Errorf("closed: a sign-in: %d %s", status, body)
	}
	if status, body := q.Call("POST", "/rest/api/documents", token, tamgatest.Request(document, "CAdES", cert, nil)); status != 503 || !strings.Contains(string(body), "service_closed") {
		t.Errorf("closed: a signature: %d %s", status, body)
	}
	if text := q.Command("restore", "unknown"); !strings.Contains(text, "unknown after") || !strings.Contains(text, "operator") {
		t.Errorf("unknown: %s", text)
	}
	if r := q.TryCommand("restore", "release"); r.Failure == nil || !strings.Contains(r.Failure.Error(), "--yes") {
		t.Errorf("release without --yes: %v", r.Failure)
	}
	if text := q.Command("restore", "release", "--crl", crl, "--yes"); !strings.Contains(text, "1 revocations are missing") {
		t.Errorf("release: %s", text)
	}
	released(t, q)

	// Open.
	for when, token := range map[string]string{"before": token, "after": lateToken} {
		if status, _ := q.Call("GET", "/rest/api/policy", token, nil); status != 401 {
			t.Errorf("a token from %s the backup: %d", when, status)
		}
	}
	token = q.Token()
	store = tamgatest.Documents(q, token)
	for _, id := range []string{keptLarge, deletedLarge} {
		if got := store.Content(id); string(got) != large {
			t.Errorf("a large document has %d bytes", len(got))
		}
	}
	if got := store.Content(kept); string(got) != "kept" {
		t.Errorf("the stored document: %q", got)
	}
	if got := store.Content(deleted); string(got) != "deleted later" {
		t.Errorf("the document that was deleted after the backup: %q", got)
	}
	store.Refuse(404, "object_not_found", "GET", "/"+late+"/content", nil)
	if v := q.Verdicts(map[string]any{"SignatureType": "CAdES", "Content": signature, "Source": document}); !*v[0].Result {
		t.Errorf("the signature of before: %s", *v[0].Message)
	}
	q.Signed("POST", "/rest/api/documents", token, tamgatest.Request(document, "CAdES", cert, tamgatest.Parameters{"CADESType": "BES"}))
	if status, body := q.Call("POST", "/rest/api/documents", token, tamgatest.Request(document, "CAdES", revoked.ID, nil)); status != 400 {
		t.Errorf("a signature with the certificate that was revoked after the backup: %d %s", status, body)
	}
	_, next := get(t, q.Dev.CRLURL)
	if before, after := crlNumber(t, published), crlNumber(t, next); after <= before {
		t.Errorf("revocation list %d after %d was published", after, before)
	}
	if r := q.TryCommand("restore", "release", "--yes"); r.Failure == nil || !strings.Contains(r.Failure.Error(), "is open") {
		t.Errorf("a second release: %v", r.Failure)
	}
}

// TestRestoreRefused restores into a database of another kind and with other master keys. Each is refused
// with what to do, writes nothing, and the right restore goes well after it.
func TestRestoreRefused(t *testing.T) {
	t.Parallel()
	cluster := storetest.PostgreSQL(t)
	inFile := func(testing.TB) string { return "sqlite:tamga.db" }
	inCluster := func(t testing.TB) string { return cluster.Database(t) }
	for _, engines := range []struct {
		own, other  string
		make, wrong func(t testing.TB) string
	}{
		{"SQLite", "PostgreSQL", inFile, inCluster},
		{"PostgreSQL", "SQLite", inCluster, inFile},
	} {
		t.Run(engines.own, func(t *testing.T) {
			t.Parallel()
			p := tamgatest.Start(t, "--set", "database="+engines.make(t))
			id := tamgatest.Documents(p, p.Token()).Put([]byte("kept"), map[string]string{"FileName": "a.txt"})
			backup := filepath.Join(t.TempDir(), "backup")
			p.Command("backup", backup)
			if err := p.Stop(); err != nil {
				t.Fatal(err)
			}
			dir := elsewhere(t, p.Dir)
			before := tamgatest.Listing(t, dir)
			database := engines.make(t)
			key := filepath.Join(dir, "master.key")
			right := tamgatest.ReadFile(t, key)
			refused := func(database, want string) {
				t.Helper()
				r := tamgatest.Run(t.Context(), "", "restore", backup, "--data", dir, "--set", "database="+database)
				if r.Failure == nil || !strings.Contains(r.Failure.Error(), want) {
					t.Errorf("%v, want %q", r.Failure, want)
				}
				if names := tamgatest.Listing(t, dir); !slices.Equal(names, before) {
					t.Errorf("%v: %q are there, before it %q", r.Failure, names, before)
				}
			}
			refused(engines.wrong(t), fmt.Sprintf("the backup is of a database of %s, and the configuration names one of %s: set database to an empty database of %[1]s", engines.own, engines.other))
			tamgatest.WriteFile(t, key, strings.Repeat("0f", 32)+"\n")
			refused(database, "wrong master key")

			// The right one finds an empty database.
			tamgatest.WriteFile(t, key, string(right))
			if r := tamgatest.Run(t.Context(), "", "restore", backup, "--data", dir, "--set", "database="+database); r.Failure != nil {
				t.Fatal(r.Failure)
			}
			q := tamgatest.StartIn(t, dir, "--set", "database="+database)
			q.Command("restore", "release", "--yes")
			released(t, q)
			if got := tamgatest.Documents(q, q.Token()).Content(id); string(got) != "kept" {
				t.Errorf("the document is %q", got)
			}
		})
	}
}

// damages are what may happen to a backup.
var damages = []struct {
	want string
	do   func(t *testing.T, dir string)
}{
	{"is damaged", func(t *testing.T, dir string) { flip(t, filepath.Join(dir, "database")) }},
	{"is damaged", func(t *testing.T, dir string) { flip(t, filepath.Join(dir, "manifest.json")) }},
	{"is damaged", func(t *testing.T, dir string) { cut(t, filepath.Join(dir, "documents.tar")) }},
	{"is not whole", func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "documents.tar")) }},
	{"is not a whole backup", func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "SHA256SUMS")) }},
	{"is damaged", func(t *testing.T, dir string) { cut(t, filepath.Join(dir, "SHA256SUMS")) }},
	{"restore it with the program that made it", early},
}

// early makes a backup one of a build before the first release.
func early(t *testing.T, dir string) {
	manifest, sums := filepath.Join(dir, "manifest.json"), filepath.Join(dir, "SHA256SUMS")
	before := string(tamgatest.ReadFile(t, manifest))
	after := strings.Replace(before, `"format": 2`, `"format": 1`, 1)
	tamgatest.WriteFile(t, manifest, after)
	sum := func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
	tamgatest.WriteFile(t, sums, strings.Replace(string(tamgatest.ReadFile(t, sums)), sum(before), sum(after), 1))
}

func flip(t *testing.T, path string) {
	text := tamgatest.ReadFile(t, path)
	text[len(text)/2] ^= 1
	tamgatest.WriteFile(t, path, string(text))
}

func cut(t *testing.T, path string) {
	text := tamgatest.ReadFile(t, path)
	tamgatest.WriteFile(t, path, string(text[:len(text)-100]))
}

func remove(t *testing.T, path string) {
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// TestBackupUnderLoad stores and deletes documents while a backup runs. Every document that was
// answered before the time of the backup is in it, with its bytes.
func TestBackupUnderLoad(t *testing.T) {
	t.Parallel()
	p := tamgatest.Start(t)
	store := tamgatest.Documents(p, p.Token())
	type stored struct {
		id, content string
		at, gone    time.Time // of the answers
	}
	var mu sync.Mutex
	var all []*stored
	working, stop := context.WithCancel(t.Context())
	defer stop()
	begun := make(chan struct{}, 100)
	var workers sync.WaitGroup
	for n := range 4 {
		workers.Go(func() {
			for i := 0; working.Err() == nil; i++ {
				s := &stored{content: fmt.Sprintf("document %d of %d", i, n)}
				s.id = store.Put([]byte(s.content), map[string]string{"FileName": "a.txt"})
				s.at = time.Now()
				mu.Lock()
				all = append(all, s)
				mu.Unlock()
				if i%3 == 0 {
					s.gone = time.Now() // before the request
					store.Ask("DELETE", "/"+s.id, nil)
				}
				select {
				case begun <- struct{}{}:
				default:
				}
			}
		})
	}
	for range 20 {
		<-begun
	}
	backup := filepath.Join(t.TempDir(), "backup")
	p.Command("backup", backup)
	stop()
	workers.Wait()
	var manifest struct {
		TakenAt time.Time `json:"taken_at"`
	}
	if err := json.Unmarshal(tamgatest.ReadFile(t, filepath.Join(backup, "manifest.json")), &manifest); err != nil {
		t.Fatal(err)
	}
	dir := elsewhere(t, p.Dir)
	if r := tamgatest.Run(t.Context(), "", "restore", backup, "--data", dir); r.Failure != nil {
		t.Fatal(r.Failure)
	}
	q := tamgatest.StartIn(t, dir)
	q.Command("restore", "release", "--yes")
	released(t, q)
	restored := tamgatest.Documents(q, q.Token())
	compared := 0
	for _, s := range all {
		if !s.at.Before(manifest.TakenAt) || !s.gone.IsZero() && !s.gone.After(manifest.TakenAt) {
			continue
		}
		compared++
		if response, content := restored.Ask("GET", "/"+s.id+"/content", nil); response.StatusCode == 404 && !s.gone.IsZero() {
			continue // deleted between the time and the snapshot
		} else if !bytes.Equal(content, []byte(s.content)) {
			t.Errorf("%+v: %d %.100q", s, response.StatusCode, content)
		}
	}
	if compared < 10 {
		t.Errorf("only %d documents were compared", compared)
	}
}
