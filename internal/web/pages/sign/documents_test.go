// SPDX-License-Identifier: Apache-2.0

package sign_test

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

// TestKeptDocuments keeps a signed document, page by page, and has an operator end the retention of another one.
func TestKeptDocuments(t *testing.T) {
	s := tamgatest.Start(t)
	b := pagetest.New(t, s)
	b.SignIn("/documents", s.Dev.User.Login, s.Dev.User.Password)
	b.Shows(b.Get("/documents/kept"), "No document is kept")
	store := tamgatest.Documents(s, s.Token())
	signed := s.Signed("POST", "/api/documents", s.Token(), tamgatest.Request([]byte("a text"), "CAdES", s.Cert("ecdsa-p256", false).ID, tamgatest.Parameters{"CADESType": "BES", "IsDetached": "False"}))
	id := store.Put(signed, map[string]any{"FileName": pagetest.HostileName})
	text := store.Put([]byte("a text"), map[string]any{"FileName": "a.txt"})
	at := "/documents/" + id
	day := time.Now().AddDate(5, 0, 0).Format(time.DateOnly)
	b.Is(b.Post("/documents/"+text+"/do/retain", url.Values{"until": {day}}), 400, "not a signed document")
	b.Is(b.Post(at+"/do/retain", url.Values{"until": {"2020-01-01"}}), 400, "choose a time after now")
	b.Is(b.Post(at+"/do/retain", nil), 400, "choose the day")
	page := b.Shows(b.Post(at+"/do/retain", url.Values{"until": {day}}), "Signatures are good until", "Do not keep it any more", `value="`+day+`"`)
	if strings.Contains(page.Text, "do/delete") {
		t.Error("a document that is kept can be deleted on its page")
	}
	if page := b.Shows(b.Get("/documents/kept"), at, "Renewal"); strings.Contains(page.Text, "<img") {
		t.Error("a name became a part of the page")
	}
	b.Is(b.Post(at+"/do/delete", nil), 400, "has a retention until")
	b.Shows(b.Post(at+"/do/release", nil), "Keep with valid signatures", "do/delete")
	b.Shows(b.Post(at+"/do/retain", url.Values{"until": {day}}), "Signatures are good until")

	o := pagetest.New(t, s)
	o.SignIn("/operator/services", s.Dev.Operator.Login, s.Dev.Operator.Password)
	o.Shows(o.Get("/operator/services"), "Archive time stamps that are due")
	o.Shows(o.SendCommand("/operator/services/retention-end?of="+id, nil), "The retention has ended")
	b.Shows(b.Get("/documents/kept"), "No document is kept")
}

// TestDocuments lists, keeps and deletes stored documents, page by page.
func TestDocuments(t *testing.T) {
	s := tamgatest.Start(t)
	b := pagetest.New(t, s)
	b.SignIn("/documents", s.Dev.User.Login, s.Dev.User.Password)
	b.Shows(b.Get("/documents"), "No documents are stored")
	files := []pagetest.File{{Field: "file", Name: pagetest.HostileName, Content: "first"}}
	for i := range 60 {
		files = append(files, pagetest.File{Field: "file", Name: fmt.Sprintf("file-%02d.txt", i), Content: "x"})
	}
	b.Shows(b.Upload("/sign", map[string]string{"certificate": "1"}, files...))
	seen := map[string]bool{}
	link := regexp.MustCompile(`href="(/documents/[0-9a-f-]{36})"`)
	next := regexp.MustCompile(`href="(/documents\?before=[^"]+)"`)
	pages := 0
	for at := "/documents"; at != ""; pages++ {
		page := b.Shows(b.Get(at))
		if strings.Contains(page.Text, "<img") {
			t.Errorf("a name became a part of the page")
		}
		for _, m := range link.FindAllStringSubmatch(page.Text, -1) {
			if seen[m[1]] {
				t.Errorf("%s is listed twice", m[1])
			}
			seen[m[1]] = true
		}
		if at = ""; next.MatchString(page.Text) {
			at = b.Find(page, next)[1]
		}
	}
	if len(seen) != 122 || pages != 3 {
		t.Errorf("%d documents on %d pages, want 122 on 3", len(seen), pages)
	}
	at := b.Find(b.Get("/documents"), link)[1]
	b.Shows(b.Get(at), "Made from", "Keep it until", `href="/sign?stored=`+strings.TrimPrefix(at, "/documents/")+`">Sign</a>`)
	b.Shows(b.Post(at+"/do/keep", nil), "you delete it")
	if page := b.Shows(b.Post(at+"/do/delete", nil)); page.At.Path != "/documents" {
		t.Errorf("after the deletion the browser is at %s", page.At)
	}
	b.Is(b.Get(at), 404)
	b.Is(b.Post(at+"/do/keep", nil), 404, `href="`+at+`"`)
	for _, wrong := range []string{"x", "1", "1.x", "-1." + tamgatest.Missing, "99999999999999999999." + tamgatest.Missing} {
		b.Is(b.Get("/documents?before="+wrong), 400)
	}
	other := pagetest.New(t, s)
	other.SignIn("/documents", s.Dev.Operator.Login, s.Dev.Operator.Password)
	other.Shows(other.Get("/documents"), "No documents are stored")
	for one := range seen {
		other.Is(other.Get(one), 404)
		other.Is(other.Post(one+"/do/delete", nil), 404)
		break
	}
}

// TestSignedAsReceived signs with certificates of all suites, whose number comes before the file
// or after it. The document is hashed on its way in with the algorithm of the default certificate.
func TestSignedAsReceived(t *testing.T) {
	s := tamgatest.Start(t)
	b := pagetest.New(t, s)
	b.SignIn("/sign", s.Dev.User.Login, s.Dev.User.Password)
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
			signed := b.Shows(b.Do("POST", "/sign", w.FormDataContentType(), &body), ">Signed<")
			signature := pagetest.File{Field: "file", Name: "a.txt.sig", Content: b.Shows(b.Get(b.Find(signed, pagetest.Result)[1])).Text}
			b.Shows(b.Upload("/verify", nil, signature, pagetest.File{Field: "original", Name: "a.txt", Content: text}), "Signature valid")
			b.Shows(b.Upload("/verify", nil, signature, pagetest.File{Field: "original", Name: "a.txt", Content: "A document"}), "Signature invalid")
		}
	}
}
