// SPDX-License-Identifier: Apache-2.0

package sign_test

import (
	"archive/zip"
	"bytes"
	"regexp"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

// TestContainerPages signs several files as one container, verifies it and takes its files out.
func TestContainerPages(t *testing.T) {
	t.Parallel()
	b := pagetest.New(t, tamgatest.Start(t))
	b.Header.Set("Accept-Language", "ru")
	b.SignIn("/start", b.Site.Dev.User.Login, b.Site.Dev.User.Password)
	b.Shows(b.Get("/sign"), "Один контейнер с файлами и их подписью (ASiC)")
	file := func(name, content string) pagetest.File {
		return pagetest.File{Field: "file", Name: name, Content: content}
	}
	p := b.Shows(b.Upload("/sign", map[string]string{"certificate": "1", "format": "asic", "level": "stamped"}, file("договор.txt", "Привет"), file("b.txt", "second")), "договор.txt.asice")
	refs := map[string]bool{}
	for _, m := range regexp.MustCompile(`href="/signed/document/([0-9a-f-]{36})"`).FindAllStringSubmatch(p.Text, -1) {
		refs[m[1]] = true
	}
	if len(refs) != 1 {
		t.Fatalf("two files gave %d containers", len(refs))
	}
	var container string
	for ref := range refs {
		container = b.Shows(b.Get("/signed/document/" + ref)).Text
	}
	visitor := pagetest.New(t, b.Site)
	visitor.Header.Set("Accept-Language", "ru")
	sent := file("договор.txt.asice", container)
	visitor.Shows(visitor.Upload("/verify", nil, sent), "<h1>Подпись действительна</h1>", "Файлы в контейнере", "договор.txt", `value="taken.0.1"`)
	for i, want := range []string{"Привет", "second"} {
		one := visitor.Shows(visitor.Upload("/verify", map[string]string{"answer": "taken.0." + string(rune('0'+i))}, sent))
		if d := one.Header.Get("Content-Disposition"); one.Text != want || !strings.HasPrefix(d, "attachment") {
			t.Errorf("file %d: %q, %s", i, one.Text, d)
		}
	}
	for _, wrong := range []string{"taken.0.2", "taken.1.0", "taken.0", "taken.-1.0", "taken.x.y"} {
		visitor.Is(visitor.Upload("/verify", map[string]string{"answer": wrong}, sent), 400)
	}
	// The report of ETSI, and until when the signature can be verified.
	visitor.Shows(visitor.Upload("/verify", nil, sent), `value="etsi.0"`, "Можно проверить до")
	etsi := visitor.Shows(visitor.Upload("/verify", map[string]string{"answer": "etsi.0"}, sent), "urn:etsi:019102:mainindication:total-passed", "<DAIdentifier>1</DAIdentifier>")
	if d := etsi.Header.Get("Content-Disposition"); !strings.HasPrefix(d, "attachment") || !strings.Contains(d, ".etsi.xml") {
		t.Errorf("the report of ETSI: %s", d)
	}
	for _, wrong := range []string{"etsi.1", "etsi.x", "etsi."} {
		visitor.Is(visitor.Upload("/verify", map[string]string{"answer": wrong}, sent), 400)
	}
	var larger bytes.Buffer
	w := zip.NewWriter(&larger)
	r, err := zip.NewReader(strings.NewReader(container), int64(len(container)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.File {
		if err := w.Copy(f); err != nil {
			t.Fatal(err)
		}
	}
	if one, err := w.Create("invoice.pdf"); err != nil {
		t.Fatal(err)
	} else if _, err := one.Write([]byte("not signed")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	added := visitor.Upload("/verify", nil, file("added.asice", larger.String()))
	for name, tag := range map[string]string{"договор.txt": "подписан", "b.txt": "подписан", "invoice.pdf": "не подписан"} {
		if !regexp.MustCompile(`<span>` + name + `</span><span class="hint">[^<]*</span><span class="tag [a-z]+">` + tag + `</span>`).MatchString(added.Text) {
			t.Errorf("%s is not marked as %s", name, tag)
		}
	}
	at := strings.Index(container, "second")
	changed := container[:at] + "sekond" + container[at+6:]
	if page := visitor.Upload("/verify", nil, file("changed.asice", changed)); strings.Contains(page.Text, "<h1>Подпись действительна</h1>") {
		t.Error("a changed container passes")
	}
}
