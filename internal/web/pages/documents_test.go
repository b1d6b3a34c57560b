// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"regexp"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
)

// TestDocuments lists, keeps and deletes stored documents, page by page.
func TestDocuments(t *testing.T) {
	s := tamgatest.Start(t)
	b := newBrowser(t, s)
	b.signIn("/documents", s.Dev.User.Login, s.Dev.User.Password)
	b.ok(b.get("/documents"), "No documents are stored")
	files := []file{{"file", hostileName, "first"}}
	for i := range 60 {
		files = append(files, file{"file", fmt.Sprintf("file-%02d.txt", i), "x"})
	}
	b.ok(b.upload("/sign", map[string]string{"certificate": "1"}, files...))
	seen := map[string]bool{}
	link := regexp.MustCompile(`href="(/documents/[0-9a-f-]{36})"`)
	next := regexp.MustCompile(`href="(/documents\?before=[^"]+)"`)
	pages := 0
	for at := "/documents"; at != ""; pages++ {
		page := b.ok(b.get(at))
		if strings.Contains(page.text, "<img") {
			t.Errorf("a name became a part of the page")
		}
		for _, m := range link.FindAllStringSubmatch(page.text, -1) {
			if seen[m[1]] {
				t.Errorf("%s is listed twice", m[1])
			}
			seen[m[1]] = true
		}
		if at = ""; next.MatchString(page.text) {
			at = b.find(page, next)[1]
		}
	}
	if len(seen) != 122 || pages != 3 {
		t.Errorf("%d documents on %d pages, want 122 on 3", len(seen), pages)
	}
	at := b.find(b.get("/documents"), link)[1]
	b.ok(b.get(at), "Made from", "Keep it until", `href="/sign?stored=`+strings.TrimPrefix(at, "/documents/")+`">Sign</a>`)
	b.ok(b.post(at+"/do/keep", nil), "you delete it")
	if page := b.ok(b.post(at+"/do/delete", nil)); page.at.Path != "/documents" {
		t.Errorf("after the deletion the browser is at %s", page.at)
	}
	b.is(b.get(at), 404)
	b.is(b.post(at+"/do/keep", nil), 404, `href="`+at+`"`)
	for _, wrong := range []string{"x", "1", "1.x", "-1." + tamgatest.Missing, "99999999999999999999." + tamgatest.Missing} {
		b.is(b.get("/documents?before="+wrong), 400)
	}
	other := newBrowser(t, s)
	other.signIn("/documents", s.Dev.Operator.Login, s.Dev.Operator.Password)
	other.ok(other.get("/documents"), "No documents are stored")
	for one := range seen {
		other.is(other.get(one), 404)
		other.is(other.post(one+"/do/delete", nil), 404)
		break
	}
}

// TestSignedAsReceived signs with certificates of all suites, whose number comes before the file
// or after it. The document is hashed on its way in with the algorithm of the default certificate.
func TestSignedAsReceived(t *testing.T) {
	s := tamgatest.Start(t)
	b := newBrowser(t, s)
	b.signIn("/sign", s.Dev.User.Login, s.Dev.User.Password)
	const text = "a document"
	for _, c := range s.Dev.Certificates {
		if c.PIN != "" {
			continue
		}
		for _, late := range []bool{false, true} {
			var body bytes.Buffer
			w := multipart.NewWriter(&body)
			number := func() error { return w.WriteField("certificate", fmt.Sprint(c.ID)) }
			send := func() error {
				part, err := w.CreateFormFile("file", "a.txt")
				if err == nil {
					_, err = io.WriteString(part, text)
				}
				return err
			}
			steps := []func() error{number, send, w.Close}
			if late {
				steps = []func() error{send, number, w.Close}
			}
			for _, step := range steps {
				if err := step(); err != nil {
					t.Fatal(err)
				}
			}
			signed := b.ok(b.do("POST", "/sign", w.FormDataContentType(), &body), "<td>Signed")
			signature := file{"file", "a.txt.sig", b.ok(b.get(b.find(signed, result)[1])).text}
			b.ok(b.upload("/verify", nil, signature, file{"original", "a.txt", text}), "The signature is valid")
			b.ok(b.upload("/verify", nil, signature, file{"original", "a.txt", "A document"}), "The signature is not valid")
		}
	}
}
