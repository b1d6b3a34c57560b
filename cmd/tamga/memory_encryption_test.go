// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
	"tamga/internal/testsize"
)

// encryptedCiphers are encrypted and decrypted with documents of any size: one without a code, and one with it.
var encryptedCiphers = []struct{ name, integrity string }{{"28147-89", "None"}, {"Kuznyechik", "Verified"}}

// encryptionMemory: the memory of a server does not grow with a document that it encrypts and decrypts, stored or in
// the request. Documents have 1 GiB in the full size, and 110 MiB in the short form.
func encryptionMemory(t *testing.T, server *tamgatest.Server) {
	// 150 MiB: a busy machine, whose collector is late, has room, and a document that is held as a whole has none.
	size, most := int64(3<<18*200), int64(100<<20)
	if testsize.Of() == testsize.Full {
		size, most = 3<<18*1366, oneRequestRise // 1 GiB
	}
	const own = "certs/7.pem" // for encryption
	block, _ := pem.Decode(tamgatest.ReadFile(t, server.Path(own)))
	if testsize.Of() < testsize.Whole {
		size = 3 << 18 * 147 // 110 MiB
	}
	for i, c := range encryptedCiphers {
		// In the short form one of them is decrypted in v2, the other in v1.
		whole := testsize.Of() >= testsize.Whole
		within := func(name string, work func(d *tamgatest.DocumentStore)) {
			t.Helper()
			d := tamgatest.Documents(server, server.Token())
			rise := peakRise(server, func() { work(d) })
			if t.Logf("%s, %s: %d MiB", c.name, name, rise>>20); rise > most {
				t.Errorf("%s: %s of %d MiB raised the resident memory by %d MiB; want at most %d", c.name, name, size>>20, rise>>20, most>>20)
			}
		}
		var plain, message string
		var messageSize int64
		within("storing", func(d *tamgatest.DocumentStore) {
			response, text := d.Ask("POST", "", io.LimitReader(repeating{}, size), "CPDSS-POSTDOC", "e30")
			var id tamgatest.DocumentIDs
			if err := json.Unmarshal(text, &id); err != nil || response.StatusCode != 200 {
				t.Fatalf("%d %s", response.StatusCode, text)
			}
			plain = append(id.DocumentIDs, id.DocumentID)[0]
		})
		within("encryption in v2", func(d *tamgatest.DocumentStore) {
			message, _ = inStore(t, server, d.Bearer, "encryption", plain, "Encryption", map[string]any{
				"Type": "CMS", "Certificates": [][]byte{block.Bytes}, "Parameters": map[string]string{"Algorithm": c.name},
			})
		})
		inV2 := func(d *tamgatest.DocumentStore) {
			ref, integrity := inStore(t, server, d.Bearer, "decryption", message, "Decryption", map[string]any{"Type": "CMS"})
			if integrity != c.integrity {
				t.Errorf("%s: integrity %q", c.name, integrity)
			}
			content := contentOf(t, d, ref)
			if n, err := io.Copy(&repeated{}, content); err != nil || n != size {
				t.Errorf("%s: the plaintext has %d bytes: %v", c.name, n, err)
			}
			content.Close()
		}
		file := filepath.Join(t.TempDir(), "message")
		inV1 := func(d *tamgatest.DocumentStore) {
			if n := decryptStreamed(t, server, d.Bearer, file, messageSize); n != (size+2)/3*4+2 {
				t.Errorf("%s: the answer has %d bytes", c.name, n)
			}
		}
		if whole || i == 1 {
			within("decryption in v2", inV2)
		}
		if whole || i == 0 {
			within("the message", func(d *tamgatest.DocumentStore) { messageSize = download(t, d, message, file) })
			within("decryption in v1", inV1)
		}
		d := tamgatest.Documents(server, server.Token())
		for _, id := range []string{plain, message} {
			d.Get("DELETE", "/"+id, nil, nil)
		}
	}
}

// inStore encrypts or decrypts a stored document and returns the identifier of the result.
func inStore(t *testing.T, server *tamgatest.Server, token, route, ref, field string, with any) (result, integrity string) {
	t.Helper()
	status, answer := server.Call("POST", "/api/v2/"+route, token, map[string]any{"BinaryData": []any{map[string]any{"RefId": ref}}, field: with})
	var done struct {
		Operation struct {
			Result struct {
				ProcessedDocuments []struct{ RefID, Status, Integrity string }
			}
		}
	}
	if err := json.Unmarshal(answer, &done); err != nil || status != 200 || len(done.Operation.Result.ProcessedDocuments) != 1 {
		t.Fatalf("%s: %d %.300s", route, status, answer)
	}
	d := done.Operation.Result.ProcessedDocuments[0]
	return d.RefID, d.Integrity
}

// contentOf begins to download a stored document.
func contentOf(t *testing.T, d *tamgatest.DocumentStore, id string) io.ReadCloser {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), "GET", d.Base+"/"+id+"/content", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+d.Bearer)
	response, err := http.DefaultClient.Do(request)
	if err != nil || response.StatusCode != 200 {
		t.Fatalf("%v %v", response, err)
	}
	return response.Body
}

func download(t *testing.T, d *tamgatest.DocumentStore, id, file string) int64 {
	t.Helper()
	content := contentOf(t, d, id)
	defer content.Close()
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(out, content)
	if err != nil || out.Close() != nil {
		t.Fatal(n, err)
	}
	return n
}

// decryptStreamed sends a message in a request of v1 and returns the length of the answer.
func decryptStreamed(t *testing.T, server *tamgatest.Server, token, file string, size int64) int64 {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	text, into := io.Pipe()
	go func() {
		encode := base64.NewEncoder(base64.StdEncoding, into)
		_, err := io.Copy(encode, in)
		if err == nil {
			err = encode.Close()
		}
		into.CloseWithError(err)
	}()
	head, tail := `{"Content":"`, `","Decryption":{"Type":"CMS","CertificateId":0,"PinCode":""}}`
	request, err := http.NewRequestWithContext(t.Context(), "POST", server.Dev.BaseURL+"/api/documents/decrypt", io.MultiReader(strings.NewReader(head), text, strings.NewReader(tail)))
	if err != nil {
		t.Fatal(err)
	}
	request.ContentLength = int64(len(head)+len(tail)) + (size+2)/3*4
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	n, err := io.Copy(io.Discard, response.Body)
	if err != nil || response.StatusCode != 200 {
		t.Fatalf("%d, %d bytes: %v", response.StatusCode, n, err)
	}
	return n
}

// repeated checks what repeating wrote.
type repeated struct{ n int64 }

func (r *repeated) Write(p []byte) (int, error) {
	for i, b := range p {
		if want := "abc"[(r.n+int64(i))%3]; b != want {
			return i, fmt.Errorf("byte %d is %q, want %q", r.n+int64(i), b, want)
		}
	}
	r.n += int64(len(p))
	return len(p), nil
}

// TestCommandsEncryptInLittleMemory encrypts and decrypts a document of 150 MiB without a server, of 2 GiB in the
// full size and of 75 MiB in the short form. The memory of a command is read before it gets or writes the end of the document.
func TestCommandsEncryptInLittleMemory(t *testing.T) {
	if testsize.Of() == testsize.Quick {
		t.Skip("it compiles a program and moves gigabytes")
	}
	t.Parallel()
	program, dir := plainProgram(t), t.TempDir()
	size := int64(3 << 18 * 200)
	switch testsize.Of() {
	case testsize.Full:
		size = 3 << 18 * 2731
	case testsize.Plain:
		size = 3 << 18 * 100 // 75 MiB
	}
	const most = 64 << 20
	start := func(args ...string) (cmd *exec.Cmd, in io.WriteCloser, out io.ReadCloser) {
		t.Helper()
		cmd = exec.CommandContext(t.Context(), program, args...)
		cmd.Dir, cmd.Stderr, cmd.Env = dir, os.Stderr, append(os.Environ(), tamgatest.DefaultCollector)
		var errs [3]error
		in, errs[0] = cmd.StdinPipe()
		out, errs[1] = cmd.StdoutPipe()
		errs[2] = cmd.Start()
		if err := errors.Join(errs[:]...); err != nil {
			t.Fatal(err)
		}
		return cmd, in, out
	}
	look := func(cmd *exec.Cmd) {
		t.Helper()
		if peak := statusOf(t, cmd.Process.Pid, "VmHWM"); peak > most {
			t.Errorf("%v: %d MiB of memory, want at most %d", cmd.Args[1:], peak>>20, most>>20)
		} else {
			t.Logf("%v: %d MiB", cmd.Args[1:], peak>>20)
		}
	}
	server := tamgatest.StartIn(t, t.TempDir(), "--set", "certificates.exportable=true")
	password := filepath.Join(dir, "password")
	tamgatest.WriteFile(t, password, "apricots\n")
	if err := os.Chmod(password, 0o600); err != nil {
		t.Fatal(err)
	}
	server.Command("key", "export", "7", "-o", filepath.Join(dir, "key.p12"), "--password-file", password)
	for _, c := range encryptedCiphers {
		cmd, in, _ := start("encrypt", "-", "--offline", "--force", "-o", "doc.p7m", "--to", server.Path("certs/7.pem"), "--algorithm", c.name)
		document := io.LimitReader(repeating{}, size)
		n, err := io.CopyN(in, document, size-3) // repeating gives threes
		if err != nil {
			t.Fatal(n, err)
		}
		look(cmd)
		io.Copy(in, document)
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		cmd, _, out := start("decrypt", "doc.p7m", "-o", "-", "--key", "key.p12", "--key-password-file", "password")
		const last = 1 << 20 // more than a pipe holds
		checked := &repeated{}
		if n, err := io.CopyN(checked, out, size-last); err != nil {
			t.Fatal(n, err)
		}
		look(cmd)
		if _, err := io.Copy(checked, out); err != nil || checked.n != size {
			t.Errorf("%s: %d bytes: %v", c.name, checked.n, err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
	}
}
