// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/cli/client"
	"tamga/internal/cli/program"

	"tamga/internal/tamgatest"
)

// fakeServer answers as the signing service and as the identity provider, and records the requests.
type fakeServer struct {
	*httptest.Server
	t *testing.T

	tokenForm  map[string]string
	body       []byte // of the last signing request
	length     int64  // its Content-Length
	bearer     string
	expect     string
	answer     http.HandlerFunc // of a signing request, after its body was read
	tokenReply http.HandlerFunc
}

const fakeSignature = "the signature\x00\xff"

func newFakeServer(t *testing.T) *fakeServer {
	s := &fakeServer{t: t}
	s.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		fmt.Fprintf(w, "%q", base64.StdEncoding.EncodeToString([]byte(fakeSignature)))
	}
	s.tokenReply = func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"access_token":"a.b.c","expires_in":300,"token_type":"Bearer"}`)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /STS/oauth/token", func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Errorf("token request: %v", err)
		}
		s.tokenForm = map[string]string{}
		for k, v := range r.PostForm {
			s.tokenForm[k] = strings.Join(v, ",")
		}
		s.tokenReply(w, r)
	})
	mux.HandleFunc("POST /SignServer/api/documents", func(w http.ResponseWriter, r *http.Request) {
		s.length, s.bearer, s.expect = r.ContentLength, r.Header.Get("Authorization"), r.Header.Get("Expect")
		var err error
		if s.body, err = io.ReadAll(r.Body); err != nil {
			return // a client that hung up
		}
		s.answer(w, r)
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// writeDev makes dir the directory of a server started with --dev.
func (s *fakeServer) writeDev(dir string) {
	s.t.Helper()
	text := fmt.Sprintf(`{"base_url":"%s/SignServer","idp_url":"%s/STS","resource":"urn:dev","client_id":"tamga-dev",`+
		`"operator":{"login":"operator","password":"op"},"user":{"id":"1","login":"demo","password":"p & w"},"certificates":[]}`, s.URL, s.URL)
	tamgatest.WriteFile(s.t, filepath.Join(dir, "dev.json"), text)
}

// atDev makes a directory with a document "doc" and a dev.json beside it.
func atDev(t *testing.T) (*fakeServer, string) {
	s, dir := newFakeServer(t), t.TempDir()
	s.writeDev(filepath.Join(dir, "data"))
	tamgatest.WriteFile(t, filepath.Join(dir, "doc"), "document")
	t.Chdir(dir)
	return s, dir
}

func TestSignSendsWhatTheFlagsSay(t *testing.T) {
	s, dir := atDev(t)
	hash := strings.Repeat("\x01\x02", 16)
	tamgatest.WriteFile(t, filepath.Join(dir, "hash"), hash)
	tamgatest.WriteFile(t, filepath.Join(dir, "hash.hex"), strings.Repeat("0102 ", 16)+"\n")
	tamgatest.WriteFile(t, filepath.Join(dir, "message"), "message")
	tamgatest.WriteFile(t, filepath.Join(dir, "pin"), "12\"34\n")
	type object = map[string]any
	type params = map[string]any
	b64 := base64.StdEncoding.EncodeToString
	request := func(content, kind string, cert any, pin string, p params) object {
		return object{"Content": b64([]byte(content)), "Signature": object{
			"Type": kind, "CertificateId": cert, "PinCode": pin, "Parameters": p,
		}}
	}
	for _, c := range []struct {
		name string
		args string
		want object
	}{
		{"defaults", "doc", request("document", "CAdES", 0.0, "",
			params{"Hash": "False", "CADESType": "BES", "IsDetached": "True"})},
		{"attached, certificate and PIN", "doc --attached --cert 7 --pin-file pin", request("document", "CAdES", 7.0, "12\"34",
			params{"Hash": "False", "CADESType": "BES", "IsDetached": "False"})},
		{"certificate as text", "doc --detached --cert 0b6a-x", request("document", "CAdES", "0b6a-x", "",
			params{"Hash": "False", "CADESType": "BES", "IsDetached": "True"})},
		{"raw", "doc --type GOST3410", request("document", "GOST3410", 0.0, "", params{"Hash": "False"})},
		{"raw over a hash", "hash --type GOST3410 --hash", request(hash, "GOST3410", 0.0, "", params{"Hash": "True"})},
		{"CMS over a hash in text", "hash.hex --type CMS --hash --hex", request(hash, "CMS", 0.0, "",
			params{"Hash": "True", "IsDetached": "True"})},
		{"time stamp", "doc --cades-type XLT1 --tsp http://tsp/", request("document", "CAdES", 0.0, "",
			params{"Hash": "False", "CADESType": "XLT1", "IsDetached": "True", "TSPAddress": "http://tsp/"})},
		{"first time-stamp service", "doc --cades-type T --tsp=", request("document", "CAdES", 0.0, "",
			params{"Hash": "False", "CADESType": "T", "IsDetached": "True", "TSPAddress": ""})},
		{"cosignature", "message --cms-signature-type Cosign --original doc", request("message", "CAdES", 0.0, "",
			params{"Hash": "False", "CADESType": "BES", "CmsSignatureType": "Cosign", "OriginalDocument": b64([]byte("document"))})},
		{"cosignature of a hash", "message --hash --cms-signature-type Cosign --original hash --hash-algorithm=GR-34", request("message", "CAdES", 0.0, "",
			params{"Hash": "True", "CADESType": "BES", "CmsSignatureType": "Cosign", "OriginalDocument": b64([]byte(hash)), "HashAlgorithm": "GR-34"})},
		{"countersignature", "message --cms-signature-type Countersign --signature-index 0", request("message", "CAdES", 0.0, "",
			params{"Hash": "False", "CADESType": "BES", "CmsSignatureType": "Countersign", "SignatureIndex": "0"})},
		{"XML", "doc --type XMLDSig --xmldsig-type XMLEnveloped", request("document", "XMLDSig", 0.0, "", params{"XMLDsigType": "XMLEnveloped"})},
		{"PDF with a stamp", "doc --type PDF --stamp --stamp-form compact", request("document", "PDF", 0.0, "", params{"PDFFormat": "CMS",
			"PdfSignatureAppearance": base64.StdEncoding.EncodeToString([]byte(`{"Mark":"compact","Place":"auto"}`))})},
		{"PDF beside a word", "doc --type PDF --stamp-beside Sign", request("document", "PDF", 0.0, "", params{"PDFFormat": "CMS",
			"PdfSignatureAppearance": base64.StdEncoding.EncodeToString([]byte(`{"Beside":"Sign","Place":"auto"}`))})},
		{"PDF", "doc --type PDF --pdf-format CMS --param PDFReason=a=b;c", request("document", "PDF", 0.0, "", params{"PDFFormat": "CMS", "PDFReason": "a=b;c"})},
		{"Office", "doc --type MSOffice", request("document", "MSOffice", 0.0, "", params{})},
		{"only an original", "doc --type Next --original message", request("document", "Next", 0.0, "", params{"OriginalDocument": b64([]byte("message"))})},
		{"a parameter instead of a default", "doc --param isdetached=False", request("document", "CAdES", 0.0, "",
			params{"Hash": "False", "CADESType": "BES", "isdetached": "False"})},
		{"attributes", "doc --type CMS --attribute 1.2.3=BAA=", request("document", "CMS", 0.0, "",
			params{"Hash": "False", "IsDetached": "True", "AuthenticatedAttributes": b64([]byte(`{"1.2.3":"BAA="}`))})},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{"sign", "--data", "data", "-o", "out", "--force"}, strings.Fields(c.args)...)
			if r := tamgatest.Run(t.Context(), "", args...); r.Failure != nil {
				t.Fatal(r.Failure)
			}
			var got object
			if err := json.Unmarshal(s.body, &got); err != nil {
				t.Fatalf("%v: %s", err, s.body)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
			if s.length != int64(len(s.body)) {
				t.Errorf("Content-Length %d, the body has %d bytes", s.length, len(s.body))
			}
			if got, _ := os.ReadFile("out"); string(got) != fakeSignature {
				t.Errorf("the file holds %q", got)
			}
		})
	}
}

// TestSignTypeOfFile checks that --type auto takes the type from the file, and that a signed document keeps
// the ending of its name.
func TestSignTypeOfFile(t *testing.T) {
	s, dir := atDev(t)
	for name, text := range map[string]string{
		"a.pdf": "%PDF-1.7\n", "b.docx": "PK\x03\x04" + strings.Repeat("\x00", 60), "c.xml": "<?xml version=\"1.0\"?><a/>", "d.txt": "text", "no-ending": "%PDF-1.7\n",
	} {
		tamgatest.WriteFile(t, filepath.Join(dir, name), text)
	}
	for _, c := range []struct{ args, kind, file string }{
		{"a.pdf --type auto", "PDF", "a.signed.pdf"},
		{"b.docx --type auto", "MSOffice", "b.signed.docx"},
		{"c.xml --type auto", "XMLDSig", "c.signed.xml"},
		{"d.txt --type AUTO", "CAdES", "d.txt.sig"},
		{"d.txt.sig --cms-signature-type Countersign", "CAdES", "d.txt.signed.sig"},
		{"no-ending --type auto", "PDF", "no-ending.signed"},
		{"a.pdf --type PDF --force", "PDF", "a.signed.pdf"},
		{"a.pdf --type pdf -o own.pdf", "pdf", "own.pdf"},
		{"a.pdf", "CAdES", "a.pdf.sig"}, // as always
		{"d.txt --type GOST3410 --force", "GOST3410", "d.txt.sig"},
	} {
		r := tamgatest.Run(t.Context(), "", append([]string{"sign", "--data", "data", "--json"}, strings.Fields(c.args)...)...)
		if r.Failure != nil {
			t.Errorf("%s: %v", c.args, r.Failure)
			continue
		}
		var said struct {
			File, Type string
			Bytes      int
		}
		if err := json.Unmarshal([]byte(r.Out), &said); err != nil || said.File != c.file || said.Type != c.kind || said.Bytes != len(fakeSignature) {
			t.Errorf("%s: prints %s, %v", c.args, r.Out, err)
		}
		if !strings.Contains(string(s.body), `"Type":"`+c.kind+`"`) {
			t.Errorf("%s: sends %s", c.args, s.body)
		}
		if got, err := os.ReadFile(c.file); err != nil || string(got) != fakeSignature {
			t.Errorf("%s: %s has %q, %v", c.args, c.file, got, err)
		}
	}
}

// TestSignWritesTheExactBody checks the bytes of a body once: Content first, so that a
// server can hash it while it arrives.
func TestSignWritesTheExactBody(t *testing.T) {
	s, dir := atDev(t)
	r := tamgatest.Run(t.Context(), "", "sign", "doc", "--data", "data")
	if r.Failure != nil {
		t.Fatal(r.Failure)
	}
	const want = `{"Content":"ZG9jdW1lbnQ=","Signature":{"Type":"CAdES","CertificateId":0,"PinCode":"","Parameters":{"CADESType":"BES","Hash":"False","IsDetached":"True"}}}`
	if string(s.body) != want {
		t.Errorf("body %s\nwant %s", s.body, want)
	}
	if want := "doc.sig: written, 15 bytes\n"; r.Out != want || r.Err != "" {
		t.Errorf("printed %q and %q, want %q and nothing", r.Out, r.Err, want)
	}
	if diff := cmp.Diff([]string{"data", "doc", "doc.sig"}, tamgatest.Listing(t, dir)); diff != "" {
		t.Error(diff)
	}
	if info, err := os.Stat("doc.sig"); err != nil || info.Mode().Perm()&^0o644 != 0 || info.Mode().Perm()&0o600 != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if s.bearer != "Bearer a.b.c" {
		t.Errorf("Authorization: %q", s.bearer)
	}
	wantForm := map[string]string{
		"grant_type": "password", "username": "demo", "password": "p & w",
		"resource": "urn:dev", "client_id": "tamga-dev", "scope": "dss",
	}
	if diff := cmp.Diff(wantForm, s.tokenForm); diff != "" {
		t.Error(diff)
	}
}

func TestSignReadsAndWritesStreams(t *testing.T) {
	s, dir := atDev(t)
	document := strings.Repeat("0123456789", 300_000)
	r := tamgatest.Run(t.Context(), document, "sign", "-", "--data", "data", "--type", "GOST3410")
	if r.Failure != nil {
		t.Fatal(r.Failure)
	}
	if r.Out != fakeSignature {
		t.Errorf("standard output holds %q", r.Out)
	}
	if s.length != -1 || s.expect != "100-continue" {
		t.Errorf("Content-Length %d, Expect %q; an unknown size is sent in chunks after a question", s.length, s.expect)
	}
	var got struct{ Content []byte }
	if err := json.Unmarshal(s.body, &got); err != nil || string(got.Content) != document {
		t.Errorf("the document did not arrive: %v", err)
	}
	if diff := cmp.Diff([]string{"data", "doc"}, tamgatest.Listing(t, dir)); diff != "" {
		t.Error(diff)
	}
}

func TestSignAsAnotherUser(t *testing.T) {
	s, dir := atDev(t)
	tamgatest.WriteFile(t, filepath.Join(dir, "password"), "secret\r\n")
	tamgatest.WriteFile(t, filepath.Join(dir, "client"), "shared")
	tamgatest.WriteFile(t, filepath.Join(dir, "token"), "x.y.z\n")
	server := s.URL + "/SignServer/"
	for _, c := range []struct {
		name   string
		args   []string
		form   map[string]string
		bearer string
	}{
		{
			"operator of dev.json", []string{"--data", "data", "--login", "Operator"},
			map[string]string{"grant_type": "password", "username": "Operator", "password": "op", "resource": "urn:dev", "client_id": "tamga-dev", "scope": "dss"},
			"Bearer a.b.c",
		},
		{
			"another server", []string{"--data", "data", "--server", server, "--login", "ivanov", "--password-file", "password", "--client-id", "c", "--client-secret-file", "client"},
			map[string]string{"grant_type": "password", "username": "ivanov", "password": "secret", "resource": client.DefaultResource, "client_id": "c", "client_secret": "shared", "scope": "dss"},
			"Bearer a.b.c",
		},
		{"a token", []string{"--server", server, "--token-file", "token"}, nil, "Bearer x.y.z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.tokenForm = nil
			if r := tamgatest.Run(t.Context(), "", append([]string{"sign", "doc", "--force"}, c.args...)...); r.Failure != nil {
				t.Fatal(r.Failure)
			}
			if diff := cmp.Diff(c.form, s.tokenForm); diff != "" {
				t.Error(diff)
			}
			if s.bearer != c.bearer {
				t.Errorf("Authorization: %q", s.bearer)
			}
		})
	}
}

// TestSignRefusesBeforeItAsks checks the errors that are found before a request is sent.
func TestSignRefusesBeforeItAsks(t *testing.T) {
	s, dir := atDev(t)
	s.tokenReply = func(http.ResponseWriter, *http.Request) { t.Error("the server was asked") }
	s.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the server was asked") })
	tamgatest.WriteFile(t, filepath.Join(dir, "there.sig"), "precious")
	tamgatest.WriteFile(t, filepath.Join(dir, "there"), "document")
	tamgatest.WriteFile(t, filepath.Join(dir, "hex"), strings.Repeat("ab", 32))
	tamgatest.WriteFile(t, filepath.Join(dir, "long"), strings.Repeat("ab", 4096))
	tamgatest.WriteFile(t, filepath.Join(dir, "lines"), "pin\nand more")
	before := tamgatest.Listing(t, dir)
	for _, c := range []struct{ name, args, want string }{
		{"output is there", "there", "--force"},
		{"no document", "nowhere", "no such file"},
		{"directory", "data", "is a directory"},
		{"no server", "doc --data elsewhere", "tamga serve --dev"},
		{"both attachments", "doc --detached --attached", "can't be used together"},
		{"hash without --hex", "hex --hash", "--hex"},
		{"hex without --hash", "hex --hex", "needs --hash"},
		{"a stamp without PDF", "doc --stamp", "are for PDF signatures, and the type is CAdES"},
		{"a form without a stamp", "doc --type PDF --stamp-form full", "--stamp-form needs --stamp"},
		{"hash too long", "long --hash", "too long"},
		{"not hexadecimal", "doc --hash --hex", "not hexadecimal"},
		{"given twice", "doc --detached --param ISDETACHED=False", "IsDetached is given twice"},
		{"original given twice", "doc --original doc --param OriginalDocument=AA==", "OriginalDocument is given twice"},
		{"attribute", "doc --attribute 1.2.3=!", "not Base64"},
		{"twice standard input", "- --original - -o x", "cannot both"},
		{"open network", "doc --server http://192.0.2.1/SignServer --token-file hex", "--plain-http"},
		{"address", "doc --server host/SignServer", "https://host/path"},
		{"no client", "doc --server https://192.0.2.1/S --login a", "--client-id"},
		{"no user", "doc --server https://192.0.2.1/S", "--login"},
		{"identity provider alone", "doc --idp https://192.0.2.1/S", "--server"},
		{"type of a stream", "- --type auto -o x", "--type auto needs a file"},
		{"JSON and signature", "doc --json -o -", "same output"},
		{"JSON and signature of a stream", "- --json", "same output"},
		{"PIN in lines", "doc --pin-file lines", "more than one line"},
		{"PIN without a terminal", "doc --pin", "--pin-file"},
		{"password without a terminal", "doc --login someone", "--password-file"},
		{"TLS certificates", "doc --ca-file hex", "no PEM certificate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := tamgatest.Run(t.Context(), "", append([]string{"sign", "--data", "data"}, strings.Fields(c.args)...)...)
			if r.Failure == nil || !strings.Contains(r.Failure.Error(), c.want) {
				t.Errorf("error %v, want one with %q", r.Failure, c.want)
			}
		})
	}
	if diff := cmp.Diff(before, tamgatest.Listing(t, dir)); diff != "" {
		t.Error(diff)
	}
	if got, _ := os.ReadFile("there.sig"); string(got) != "precious" {
		t.Errorf("the file that was there holds %q", got)
	}
}

func TestSignWordsRefusals(t *testing.T) {
	reply := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://elsewhere/")
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	for _, c := range []struct {
		name   string
		token  http.HandlerFunc
		answer http.HandlerFunc
		want   []string
	}{
		{"PIN", nil, reply(400, `{"Message":"invalid_pin","error":"invalid_pin","error_description":"the PIN is wrong"}`),
			[]string{"the signing service refused: 400 invalid_pin: the PIN is wrong", "--pin-file"}},
		{"size", nil, reply(413, `{"error":"max_request_length_exceeded","error_description":"at most 5"}`), []string{"413", "at most 5", "--hash"}},
		{"words only", nil, reply(500, `{"Message":"An error has occurred"}`), []string{"500 An error has occurred", "log of the server"}},
		{"no words", nil, reply(404, `<html>`), []string{"404", "https://host/SignServer"}},
		{"redirect", nil, reply(302, ``), []string{"302", "http://elsewhere/", "not followed"}},
		{"escape sequences", nil, reply(400, `{"error":"\u001b[2J"}`), []string{"400 \uFFFD[2J"}},
		{"login", reply(400, `{"error":"invalid_grant","error_description":"no"}`), nil, []string{"identity provider refused: 400 invalid_grant: no", "--password-file"}},
		{"no token", reply(200, `{}`), nil, []string{"without a token", "--idp"}},
		{"not Base64", nil, reply(200, `"QUJ?"`), []string{"not a complete JSON string"}},
		{"not a string", nil, reply(200, `{"a":1}`), []string{"not a complete JSON string"}},
		{"cut", nil, reply(200, `"QUJD`), []string{"not a complete JSON string"}},
		{"more behind", nil, reply(200, `"QUJD" 1`), []string{"not a complete JSON string"}},
		{"padding in the middle", nil, reply(200, `"QQ==QUJD"`), []string{"not a complete JSON string"}},
		{"empty", nil, reply(200, `""`), []string{"empty signature"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, dir := atDev(t)
			if c.token != nil {
				s.tokenReply = c.token
			}
			if c.answer != nil {
				s.answer = c.answer
			}
			r := tamgatest.Run(t.Context(), "", "sign", "doc", "--data", "data")
			if r.Failure == nil {
				t.Fatal("no error")
			}
			for _, want := range c.want {
				if !strings.Contains(r.Failure.Error(), want) {
					t.Errorf("error %q lacks %q", r.Failure, want)
				}
			}
			if strings.Contains(r.Failure.Error(), "p & w") || strings.Contains(r.Failure.Error(), "a.b.c") {
				t.Errorf("error %q holds a secret", r.Failure)
			}
			if diff := cmp.Diff([]string{"data", "doc"}, tamgatest.Listing(t, dir)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSignSaysWhenNoServerListens(t *testing.T) {
	s, _ := atDev(t)
	s.Close()
	r := tamgatest.Run(t.Context(), "", "sign", "doc", "--data", "data")
	if r.Failure == nil || !strings.Contains(r.Failure.Error(), "is the server running?") {
		t.Errorf("error %v", r.Failure)
	}
}

func TestSignCanceledLeavesNothing(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(cancel func()) http.HandlerFunc
	}{
		{"while the server works", func(cancel func()) http.HandlerFunc {
			return func(_ http.ResponseWriter, r *http.Request) {
				cancel()
				<-r.Context().Done()
			}
		}},
		{"while the answer arrives", func(cancel func()) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, `"`+strings.Repeat("QUJD", 100_000))
				w.(http.Flusher).Flush()
				cancel()
				<-r.Context().Done()
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, dir := atDev(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s.answer = c.answer(cancel)
			r := tamgatest.Run(ctx, "", "sign", "doc", "--data", "data")
			if !errors.Is(r.Failure, context.Canceled) {
				t.Errorf("error %v", r.Failure)
			}
			if diff := cmp.Diff([]string{"data", "doc"}, tamgatest.Listing(t, dir)); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("while standard input says nothing", func(t *testing.T) {
		s, dir := atDev(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s.tokenReply = func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"access_token":"t"}`) }
		silent, writer := io.Pipe()
		defer writer.Close()
		var out bytes.Buffer
		ended := make(chan error)
		go func() {
			ended <- program.Run(ctx, tamgatest.Version, []string{"sign", "-", "--data", "data"}, silent, &out, io.Discard)
		}()
		writer.Write([]byte("beginning")) // returns when the program has read it
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		if diff := cmp.Diff([]string{"data", "doc"}, tamgatest.Listing(t, dir)); diff != "" || out.Len() > 0 {
			t.Error(diff, out.String())
		}
	})
}

// TestSignStopsAtABrokenDocument checks that the error is the one of the document.
func TestSignStopsAtABrokenDocument(t *testing.T) {
	s, _ := atDev(t)
	broken := errors.New("the disk is on fire")
	err := program.Run(t.Context(), tamgatest.Version, []string{"sign", "-", "--data", "data"}, io.MultiReader(strings.NewReader("begin"), failing{broken}), io.Discard, io.Discard)
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
	s.Close() // waits for the handler
	if json.Valid(s.body) {
		t.Error("the server got a whole request")
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
