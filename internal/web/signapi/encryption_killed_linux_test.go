// SPDX-License-Identifier: Apache-2.0

package signapi_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/tamgatest"
)

// TestDecryptionKilled kills a server in the middle of decryptions of v2. No file has plaintext, not even the removed
// one in which the plaintext waits for the end of the message. Each operation is carried out once, later.
func TestDecryptionKilled(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) { testDecryptionKilled(t, "") })
	t.Run("PostgreSQL", func(t *testing.T) { testDecryptionKilled(t, storetest.PostgreSQL(t).Migrated(t)) })
}

func testDecryptionKilled(t *testing.T, database string) {
	dir := t.TempDir()
	key, settings := asynchronous(t, dir)
	settings = append(settings, "--set", "documents.plain=true", "--set", "documents.in_database=0")
	if database != "" {
		settings = append(settings, "--set", "database="+database)
	}
	c := openV2Process(t, dir, settings...)
	r := newReceiver(t, key)
	secret := []byte("the secret of the message 0b9d41f7\n")
	text := bytes.Repeat(secret, 24<<20/len(secret))
	message := c.encrypt(text, "certs/7.pem", fields{"Algorithm": "Kuznyechik"})
	const inputs = 2
	var ids []uuid.UUID
	within, documents := 0, 0
	for range 3 {
		data := []fields{}
		for i := range inputs {
			data = append(data, fields{"RefId": c.upload(fmt.Sprint(i, ".p7m"), message)})
			documents++
		}
		status, answer := c.send("POST", c.Dev.BaseURL+"/api/v2/decryption", fields{"BinaryData": data, "IsAsync": true, "Callback": r.URL, "Decryption": fields{"Type": 0}})
		if status != 200 {
			t.Fatalf("%d %.300s", status, answer)
		}
		ids = append(ids, typed[operationBody](t, answer).Operation.ID)
		if c.scratched(c.Process().Pid, secret, 1<<20) {
			within++
		}
		c.Kill()
		unreadable(t, dir, secret)
		c = c.again(settings...)
	}
	if within == 0 {
		t.Error("the server was never killed in the middle of a decryption")
	}
	told := map[uuid.UUID]typedOperation{}
	for len(told) < len(ids) {
		select {
		case o := <-r.calls:
			told[o.ID] = o
		case <-time.After(tamgatest.Patience):
			t.Fatalf("%d of %d callbacks came\n%s", len(told), len(ids), c.Logged())
		}
	}
	results := map[string]bool{}
	for _, id := range ids {
		o, info := told[id], c.info(id)
		if info.State != "Completed" || o.Status != "Completed" || len(o.Result.ProcessedDocuments) != inputs {
			t.Fatalf("%+v, %+v", info, o)
		}
		for i, d := range o.Result.ProcessedDocuments {
			results[d.RefID.String()] = true
			if d.Integrity != "Verified" || !bytes.Equal(c.content(d.RefID.String()), text) {
				t.Errorf("%s: document %d is not the plaintext: %+v", id, i, d)
			}
		}
	}
	if n := c.stored(); len(results) != inputs*len(ids) || n != documents+len(results) {
		t.Errorf("%d results of %d documents, %d documents in the store", len(results), inputs*len(ids), n)
	}
	unreadable(t, dir, secret)
}

// TestEncryptionSpooled looks at the spool while a document is being sent to be encrypted: the file of v1 and the one
// of v2 have nothing of it in the clear.
func TestEncryptionSpooled(t *testing.T) {
	t.Parallel()
	c := openV2(t, t.TempDir())
	secret := []byte("the secret of the document 7c40e1\n")
	text := bytes.Repeat(secret, 3<<20/len(secret))
	recipient := c.certificate("certs/7.pem")
	encryption := `"Encryption":{"Type":"CMS","Certificates":["` + base64.StdEncoding.EncodeToString(recipient) + `"]}}`
	for _, route := range []struct{ path, before, after string }{
		{"/api/documents/encrypt", `{"Content":"`, `",` + encryption},
		{"/api/v2/encryption", `{"BinaryData":[{"ContentInfo":"a.txt","Content":"`, `"}],` + encryption},
	} {
		body, to := io.Pipe()
		looked := make(chan bool, 1)
		go func() {
			content := base64.StdEncoding.EncodeToString(text)
			half := len(content) / 2 / 4 * 4
			io.WriteString(to, route.before+content[:half])
			looked <- c.scratched(os.Getpid(), secret, 256<<10)
			io.WriteString(to, content[half:]+route.after)
			to.Close()
		}()
		status, answer := c.Do(t.Context(), "POST", c.Dev.BaseURL+route.path, c.bearer, body)
		if status != 200 {
			t.Errorf("%s: %d %.300s", route.path, status, answer)
		}
		if !<-looked {
			t.Errorf("%s: the document was not in the spool", route.path)
		}
	}
}

// scratched waits until a removed file of the server has more than least bytes, and checks that they are no plaintext. It
// returns false if the server has ended its operations before.
func (c *v2) scratched(process int, secret []byte, least int64) bool {
	c.t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", process)
	for range 100_000 {
		list, err := os.ReadDir(dir)
		if err != nil {
			c.t.Fatal(err)
		}
		for _, e := range list {
			name := filepath.Join(dir, e.Name())
			link, err := os.Readlink(name)
			if err != nil || !strings.HasSuffix(link, " (deleted)") || !strings.HasPrefix(link, c.Dir) {
				continue
			}
			if info, err := os.Stat(name); err != nil || info.Size() < least {
				continue
			}
			file, err := os.Open(name)
			if err != nil { // it was closed meanwhile
				continue
			}
			content, err := io.ReadAll(file)
			file.Close()
			if err == nil && bytes.Contains(content, secret) {
				c.t.Errorf("%s has plaintext", link)
			}
			return err == nil
		}
	}
	return false
}

// unreadable looks for plaintext in all files of a directory.
func unreadable(t *testing.T, dir string, secret []byte) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			return nil
		}
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		files++
		if bytes.Contains(content, secret) {
			t.Errorf("%s has plaintext", name)
		}
		return err
	})
	if err != nil || files < 5 {
		t.Error(files, err)
	}
}
