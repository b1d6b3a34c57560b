// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/tamgatest"
)

// Several files are one operation of a server, each by its own type, and have outputs of their own.
func TestSignSeveral(t *testing.T) {
	s := tamgatest.Start(t)
	dir := t.TempDir()
	t.Chdir(dir)
	pdf := tamgatest.PDFOf(2)
	for name, content := range map[string]string{"act.pdf": string(pdf), "act.xml": `<?xml version="1.0"?><act/>`, "note.txt": "a note", "old.txt": "old", "broken.pdf": "%PDF-1.4 broken"} {
		tamgatest.WriteFile(t, filepath.Join(dir, name), content)
	}
	run := func(args ...string) tamgatest.Result {
		t.Helper()
		return tamgatest.Run(t.Context(), "", append([]string{"sign", "--data", s.Dir}, args...)...)
	}
	before := len(operationsIn(t, s))
	r := run("--type", "auto", "--json", "act.pdf", "act.xml", "note.txt")
	var done []struct {
		Input, File, Type string
		Bytes             int64
	}
	if err := json.Unmarshal([]byte(r.Out), &done); r.Failure != nil || err != nil || len(done) != 3 {
		t.Fatalf("%s %v %v", r.Out, r.Failure, err)
	}
	for i, want := range []struct{ file, kind, original string }{{"act.signed.pdf", "PDF", ""}, {"act.signed.xml", "XMLDSig", ""}, {"note.txt.sig", "CAdES", "note.txt"}} {
		info, err := os.Stat(want.file)
		if err != nil || done[i].File != want.file || done[i].Type != want.kind || done[i].Bytes != info.Size() {
			t.Errorf("%+v, want %+v, %v", done[i], want, err)
		}
		args := []string{"verify", want.file, "--ca", s.Path(s.Dev.CAPEM)}
		if want.original != "" {
			args = append(args, "--original", want.original)
		}
		if v := tamgatest.Run(t.Context(), "", args...); v.Failure != nil {
			t.Errorf("%s: %v\n%s", want.file, v.Failure, v.Out)
		}
	}
	if after := operationsIn(t, s); len(after) != before+1 {
		t.Errorf("the files are %d operations, want 1", len(after)-before)
	}

	// PDFs get the visible mark, other files have none.
	if r = run("--type", "auto", "act.pdf", "note.txt", "--force", "--stamp-beside", "hello"); r.Failure != nil {
		t.Fatal(r.Failure, r.Err)
	}
	if signed, err := os.ReadFile("act.signed.pdf"); err != nil || !bytes.Contains(signed, []byte("/FontFile2")) {
		t.Errorf("act.signed.pdf has no mark: %v", err)
	}

	// A file that fails is named, and the others are written.
	if r = run("--type", "auto", "broken.pdf", "old.txt"); r.Failure == nil || !strings.Contains(r.Failure.Error(), "1 of 2 files are not signed") ||
		!strings.Contains(r.Err, "broken.pdf: not signed: invalid_content") || !strings.Contains(r.Out, "old.txt.sig: written") {
		t.Errorf("%v %s %s", r.Failure, r.Out, r.Err)
	}
	for _, c := range []struct{ args, says string }{
		{"note.txt old.txt", "already exists"},
		{"act.pdf act.xml -o both", "-o names the output of one file"},
		{"act.pdf -", "standard input"},
		{"act.pdf act.xml --original note.txt", "--original"},
		{"act.pdf missing.txt", "missing.txt"},
		{"act.xml ./act.xml --force", "same output"},
		{"act.pdf . --force", "regular file"},
		{"act.pdf act.xml --force --cert 999", "invalid_certificate"},
		{"note.txt old.txt --force --type auto --stamp", "no file gets one"},
		{"act.xml act.pdf --force --type PDF --pdf-format wax", "invalid_signature_params"},
	} {
		if r := run(strings.Fields(c.args)...); r.Failure == nil || !strings.Contains(r.Failure.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.args, r.Failure, c.says)
		}
	}
}

// operationsIn returns the operations that the audit log of a server names.
func operationsIn(t *testing.T, s *tamgatest.Server) []string {
	t.Helper()
	var list []string
	for line := range strings.Lines(s.MustRun("audit", "--json", "--data", s.Dir)) {
		if strings.Contains(line, `"SignUpload"`) {
			list = append(list, line)
		}
	}
	return list
}

// TestConfirmed waits for the user's confirmation of one file and of several. Then the server signs or decrypts by
// itself.
func TestConfirmed(t *testing.T) {
	w := tamgatest.StartUMS(t, "--set", "confirmation.codes.resend=1s")
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"a", "b"} {
		tamgatest.WriteFile(t, filepath.Join(dir, name), name)
		must(t, "encrypt "+name+" --offline -o "+name+".x.p7m --to "+w.Path("certs/7.pem"))
	}
	const phone = "79250000078"
	user := "/ums/user/" + w.Dev.User.ID
	w.OK(tamgatest.Ours, "POST", user+"/phones", `"`+phone+`"`)
	for _, path := range []string{"/phones/" + phone + "/confirm", "/phones/" + phone + "/secondaryauth", "/authmethod/otpviasms?level=1"} {
		w.OK(tamgatest.Ours, "POST", user+path, "")
	}
	w.OK(tamgatest.Ours, "POST", user+"/operationpolicy", "[2, 4, 8]")
	w.Tokens["user"] = w.TokenOf(w.Dev.User.Login, w.Dev.User.Password)
	verified := func(name string) error {
		return tamgatest.Run(t.Context(), "", "verify", name+".sig", "--original", name, "--ca", w.Path(w.Dev.CAPEM)).Failure
	}
	decrypted := func(name string) error {
		text := name[:1]
		if got := string(tamgatest.ReadFile(t, text+".x")); got != text {
			return fmt.Errorf("the document is %q", got)
		}
		return nil
	}
	for _, c := range []struct {
		command string
		files   []string
		check   func(name string) error
	}{
		{"sign", []string{"a"}, verified}, {"sign", []string{"a", "b"}, verified},
		{"decrypt", []string{"a.x.p7m"}, decrypted}, {"decrypt", []string{"a.x.p7m", "b.x.p7m"}, decrypted},
	} {
		for _, answer := range []string{"confirm", "decline"} {
			ended := make(chan tamgatest.Result, 1)
			go func() {
				ended <- tamgatest.Run(t.Context(), "", append([]string{c.command, "--force", "--data", w.Dir}, c.files...)...)
			}()
			var waiting []struct{ ID string }
			for len(waiting) == 0 {
				select {
				case r := <-ended:
					t.Fatalf("%v ended: %v %s", c.files, r.Failure, r.Err)
				default:
				}
				w.OK("user", "GET", "/operations", "").Into(t, &waiting)
			}
			id := waiting[0].ID
			if answer == "decline" {
				w.OK("user", "DELETE", "/operations/"+id, "")
				if r := <-ended; r.Failure == nil {
					t.Errorf("%v: a cancelled operation is a success", c.files)
				}
				continue
			}
			ask := func(more string) (got struct {
				Challenge struct{ ContextData struct{ RefID string } }
			}) {
				t.Helper()
				w.OK("user", "POST", "/v2.0/confirmation", fmt.Sprintf(`{"Resource":%q,"ClientId":%q%s}`, w.Dev.Resource, w.Dev.ClientID, more)).Into(t, &got)
				return got
			}
			ref := ask(fmt.Sprintf(`,"OperationId":%q`, id)).Challenge.ContextData.RefID
			ask(fmt.Sprintf(`,"ChallengeResponse":{"TextChallengeResponse":[{"RefId":%q,"Value":%q}]}`, ref, w.Code(phone)))
			r := <-ended
			if r.Failure != nil || !strings.Contains(r.Err, "/confirm/"+id) {
				t.Fatalf("%v: %v\n%s", c.files, r.Failure, r.Err)
			}
			for _, name := range c.files {
				if err := c.check(name); err != nil {
					t.Errorf("%s %s: %v", c.command, name, err)
				}
			}
		}
	}
}

// An operation that the user must confirm is cancelled when the program is stopped. Answers that are no operation
// write nothing.
func TestSignSeveralAnswers(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"a", "b"} {
		tamgatest.WriteFile(t, filepath.Join(dir, name), name)
	}
	var answer, cancelled string
	ctx, stop := context.WithCancel(t.Context())
	var sent map[string]any
	mux := http.NewServeMux()
	mux.HandleFunc("POST /SignServer/api/tamga/operations", func(w http.ResponseWriter, r *http.Request) {
		sent = nil
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			t.Error(err)
		}
		io.WriteString(w, answer)
	})
	mux.HandleFunc("DELETE /STS/operations/{id}", func(w http.ResponseWriter, r *http.Request) { cancelled = r.PathValue("id") })
	mux.HandleFunc("GET /SignServer/api/v2/signature/{id}", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, answer)
		stop() // while the program waits
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	tamgatest.WriteFile(t, filepath.Join(dir, "token"), "t")
	tamgatest.WriteFile(t, filepath.Join(dir, "pin"), "12")
	run := func() tamgatest.Result {
		return tamgatest.Run(ctx, "", "sign", "a", "b", "--cert", "7", "--pin-file", "pin", "--server", server.URL+"/SignServer", "--token-file", "token")
	}
	answer = `{"Operation":{"Id":"x/1","Status":"Created","Result":null}}`
	if r := run(); r.Failure == nil || !strings.Contains(r.Err, "/confirm/x%2F1") || cancelled != "x/1" {
		t.Errorf("%v, cancelled %q", r.Failure, cancelled)
	}
	ctx = t.Context()
	b64 := base64.StdEncoding.EncodeToString
	document := func(name string) any {
		return map[string]any{"Name": name, "Content": b64([]byte(name)),
			"Signature": map[string]any{"Type": "CAdES", "Parameters": map[string]any{"Hash": "False", "CADESType": "BES", "IsDetached": "True"}}}
	}
	want := map[string]any{"Signature": map[string]any{"CertificateId": 7.0, "PinCode": "12"}, "Documents": []any{document("a"), document("b")}}
	if d := cmp.Diff(want, sent); d != "" {
		t.Error(d)
	}
	for text, says := range map[string]string{
		`{}`: "fewer documents", `[]`: "not an operation", ``: "EOF", `{"Operation":{"Result":{"ProcessedDocuments":{}}}}`: "not a list",
		`{"Operation":{"Status":"Completed","Result":{"ProcessedDocuments":[{"Status":"Completed","Content":""}]}}}`:                                       "empty signature",
		`{"Operation":{"Status":"Completed","Result":{"ProcessedDocuments":[{"Error":"e"},{"Error":"e"},{"Error":"e"}]}}}`:                                 "more documents",
		`{"Operation":{"Status":"Error","Result":{"ProcessedDocuments":[{"Error":"e","ErrorDescription":"why"},{"Error":"e","ErrorDescription":"why"}]}}}`: "2 of 2 files",
	} {
		answer = text
		if r := run(); r.Failure == nil || !strings.Contains(r.Failure.Error(), says) {
			t.Errorf("%s: %v, want %q", text, r.Failure, says)
		}
		for _, name := range []string{"a.sig", "b.sig"} {
			if _, err := os.Stat(name); err == nil {
				t.Errorf("%s: %s was written", text, name)
			}
		}
	}
}

// TestSignAwaits: a program that waits for a confirmation outlives a restart of the server, says what the user
// declined, and writes what was signed before it could cancel.
func TestSignAwaits(t *testing.T) {
	b64 := base64.StdEncoding.EncodeToString
	const created, declined = `{"Operation":{"Id":"x","Status":"Created","Result":null}}`,
		`{"Operation":{"Status":"Error","Result":{"ProcessedDocuments":[{"Status":"Declined"},{"Status":"Declined"}]}}}`
	completed := `{"Operation":{"Status":"Completed","Result":{"ProcessedDocuments":[{"Status":"Completed","Content":"` + b64([]byte("A")) + `"},{"Status":"Completed","Content":"` + b64([]byte("B")) + `"}]}}}`
	for name, c := range map[string]struct {
		answers    []string // "stop": the program is stopped before it
		err, says  string
		written    bool
		mayNotStop bool
	}{
		"restarted":  {answers: []string{"gone", "503", completed[:len(completed)-70], completed}, says: "a.sig: written", written: true},
		"declined":   {answers: []string{created, declined}, err: "2 of 2 files", says: "a: not signed: authentication_declined"},
		"stopped":    {answers: []string{"stop"}, err: "cancelled: nothing is signed"},
		"too late":   {answers: []string{"stop", completed}, says: "a.sig: written", written: true, mayNotStop: true},
		"no results": {answers: []string{"stop", created}, err: "x is not cancelled", mayNotStop: true},
		"refused":    {answers: []string{"404"}, err: "404"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Chdir(dir)
			for _, file := range []string{"a", "b", "token"} {
				tamgatest.WriteFile(t, filepath.Join(dir, file), file)
			}
			ctx, stop := context.WithCancel(t.Context())
			mux := http.NewServeMux()
			mux.HandleFunc("POST /SignServer/api/tamga/operations", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, created) })
			mux.HandleFunc("DELETE /STS/operations/{id}", func(w http.ResponseWriter, _ *http.Request) {
				if c.mayNotStop {
					w.WriteHeader(http.StatusBadRequest)
				}
			})
			mux.HandleFunc("GET /SignServer/api/v2/signature/{id}", func(w http.ResponseWriter, _ *http.Request) {
				answer := c.answers[0]
				c.answers = c.answers[1:]
				switch answer {
				case "gone":
					panic(http.ErrAbortHandler)
				case "404", "503":
					status, _ := strconv.Atoi(answer)
					w.WriteHeader(status)
				case "stop":
					stop()
				default:
					io.WriteString(w, answer)
				}
			})
			server := httptest.NewServer(mux)
			defer server.Close()
			r := tamgatest.Run(ctx, "", "sign", "a", "b", "--server", server.URL+"/SignServer", "--token-file", "token")
			failed := ""
			if r.Failure != nil {
				failed = r.Failure.Error()
			}
			if (c.err == "") != (failed == "") || !strings.Contains(failed, c.err) || !strings.Contains(r.Out+r.Err, c.says) {
				t.Errorf("%q\n%s\n%s", failed, r.Out, r.Err)
			}
			if text, err := os.ReadFile("b.sig"); c.written != (err == nil) || c.written && string(text) != "B" {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}
