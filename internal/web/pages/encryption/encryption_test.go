// SPDX-License-Identifier: Apache-2.0

package encryption_test

import (
	"archive/zip"
	"encoding/base64"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

type fields = map[string]string

var (
	result = regexp.MustCompile(`href="(/(?:en|de)crypted/document/[^"]+)">.*?<span class="vh">: ([^<]+)</span>`)
	all    = regexp.MustCompile(`href="(/(?:en|de)crypted/all\.zip\?[^"]+)"`)
	stored = regexp.MustCompile(`name="stored" value="([0-9a-f-]{36})"`)
	chosen = regexp.MustCompile(`name="to" value="([0-9a-f-]{36})" checked><strong>([^<]+)`)
	found  = regexp.MustCompile(`name="to" value="([0-9a-f-]{36})"><strong>([^<]+)`)
	der    = regexp.MustCompile(`name="der" value="([^"]+)" checked`)
)

// signedIn returns a browser with a user.
func signedIn(w *tamgatest.UMS, login, password string) *pagetest.Browser {
	w.T.Helper()
	b := pagetest.New(w.T, w.Server)
	b.Shows(b.SignIn("/start", login, password))
	return b
}

// colleague gives the user "plain" a certificate for encryption, and returns a browser with that user.
func colleague(w *tamgatest.UMS) *pagetest.Browser {
	w.T.Helper()
	w.Command("cert", "issue", tamgatest.Plain, "--encryption", "--default")
	return signedIn(w, tamgatest.Plain, tamgatest.Password)
}

// results returns the downloads of a page, by the names of the files.
func results(b *pagetest.Browser, p pagetest.Page) map[string]string {
	b.Helper()
	list := map[string]string{}
	for _, m := range result.FindAllStringSubmatch(p.Text, -1) {
		got := b.Shows(b.Get(m[1]))
		if !strings.HasPrefix(got.Header.Get("Content-Disposition"), "attachment") {
			b.Errorf("%s is shown: %v", m[2], got.Header)
		}
		list[m[2]] = got.Text
	}
	return list
}

// entries returns the files of an archive, by their names.
func entries(t *testing.T, archive string) map[string]string {
	t.Helper()
	z, err := zip.NewReader(strings.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		list[f.Name] = string(text)
	}
	return list
}

// TestEncryptForAnother: a person finds another one, encrypts files and a folder for them without a script, and the
// other one decrypts them.
func TestEncryptForAnother(t *testing.T) {
	w := tamgatest.StartUMS(t)
	other := colleague(w)
	b := signedIn(w, w.Dev.User.Login, w.Dev.User.Password)
	b.Shows(b.Get("/start"), `href="/encrypt"`, `href="/decrypt"`)

	// The search keeps the file, and the mistake afterwards keeps the person, too.
	page := b.Shows(b.Upload("/encrypt", fields{"do": "find", "q": "PLA"}, pagetest.File{Field: "file", Name: "Акт.txt", Content: "an act"}), ">Акт.txt<")
	id := b.Find(page, found)[1]
	file := b.Find(page, stored)[1]
	page = b.Upload("/encrypt", fields{"do": "find", "q": "p", "to": id, "stored": file})
	b.Is(page, 200, `id="q-problem"`, "at least two letters")
	if b.Find(page, chosen)[1] != id || b.Find(page, stored)[1] != file {
		t.Errorf("the search forgets a file or a person:\n%s", page.Text)
	}
	page = b.Upload("/encrypt", fields{"to": id, "stored": file, "protection": "kuznyechik", "ending": ".enc"}, pagetest.File{Field: "file", Name: "empty.txt"})
	b.Is(page, 400, `id="file-problem"`, "empty.txt", `value=".enc" selected`, `value="kuznyechik" checked`)
	if b.Find(page, chosen)[1] != id || b.Find(page, stored)[1] != file {
		t.Errorf("a mistake loses a file or a person:\n%s", page.Text)
	}
	// A folder that is refused is read before the fields that follow it, and those are kept, too.
	page = b.Upload("/encrypt", nil, pagetest.File{Field: "folder", Name: "a/" + strings.Repeat("b", 2000), Content: "1"}, pagetest.File{Field: "folder", Name: "a/c", Content: "2"},
		pagetest.File{Field: "stored", Content: file}, pagetest.File{Field: "to", Content: id}, pagetest.File{Field: "ending", Content: ".enc"})
	b.Is(page, 400, `id="file-problem"`, "path of a file in a folder", `value=".enc" selected`)
	if b.Find(page, chosen)[1] != id || len(stored.FindAllStringSubmatch(page.Text, -1)) != 1 {
		t.Errorf("a refused folder loses a file or a person, or is kept:\n%s", page.Text)
	}
	page = b.Shows(b.Upload("/encrypt", fields{"to": id, "stored": file, "protection": "kuznyechik", "ending": ".enc"},
		pagetest.File{Field: "folder", Name: "Склад/a/чертёж.txt", Content: "a drawing"}, pagetest.File{Field: "folder", Name: "Склад/../../etc/passwd", Content: "a wrong path"}, pagetest.File{Field: "folder", Name: `Склад\b\чертёж.txt`, Content: "another"}),
		"2 files are encrypted", "Акт.txt.enc", "Склад.zip.enc")
	made := results(b, page)
	if len(made) != 2 || strings.Contains(made["Акт.txt.enc"], "an act") {
		t.Fatalf("the results: %q", made)
	}
	archive := b.Shows(b.Get(b.Find(page, all)[1]))
	if got := entries(t, archive.Text); len(got) != 2 || got["Склад.zip.enc"] != made["Склад.zip.enc"] {
		t.Errorf("the archive has other files: %q", got)
	}

	// The sender did not encrypt for themselves.
	b.Is(b.Upload("/decrypt", nil, pagetest.File{Field: "file", Name: "Акт.txt.enc", Content: made["Акт.txt.enc"]}), 400, `id="file-problem"`, "none of your certificates")
	looked := other.Shows(other.Upload("/decrypt", fields{"do": "look"}, pagetest.File{Field: "file", Name: "Акт.txt.enc", Content: made["Акт.txt.enc"]}, pagetest.File{Field: "file", Name: "Склад.zip.enc", Content: made["Склад.zip.enc"]}, pagetest.File{Field: "file", Name: "no.txt", Content: "no message"}),
		"Opens with the certificate", "supported")
	ids := stored.FindAllStringSubmatch(looked.Text, -1)
	if len(ids) != 3 || strings.Count(looked.Text, "Opens with the certificate") != 2 {
		t.Fatalf("the page says of other files what opens them:\n%s", looked.Text)
	}
	page = other.Shows(other.Upload("/decrypt", fields{"stored": ids[0][1]}, pagetest.File{Field: "file", Name: "Склад.zip.enc", Content: made["Склад.zip.enc"]}, pagetest.File{Field: "file", Name: "no.txt.p7m", Content: "no message"}),
		"2 files are decrypted, 1 is not", "unchanged, verified", "not changed after their encryption", "no.txt.p7m", `href="/decrypt?stored=`)
	plain := results(other, page)
	if len(plain) != 2 || plain["Акт.txt"] != "an act" {
		t.Fatalf("the results: %q", plain)
	}
	if got := entries(t, plain["Склад.zip"]); len(got) != 3 || got["Склад/a/чертёж.txt"] != "a drawing" || got["Склад/etc/passwd"] != "a wrong path" || got["Склад/b/чертёж.txt"] != "another" {
		t.Errorf("the folder: %q", got)
	}
	if got := entries(t, other.Shows(other.Get(other.Find(page, all)[1])).Text); len(got) != 2 || got["Акт.txt"] != "an act" {
		t.Errorf("the archive has other files: %q", got)
	}
	// No other user sees the results, and a result has the page of its kind alone.
	for _, address := range []string{page.At.RequestURI(), other.Find(page, result)[1], other.Find(page, all)[1]} {
		b.Is(b.Get(address), 404)
	}
	other.Is(other.Get("/encrypted?"+page.At.RawQuery), 404)
	if log := w.Command("audit", "--operation", "DecryptByPage", "--json"); !strings.Contains(log, "integrity Verified of 2") {
		t.Errorf("the audit entry does not say what was decrypted: %s", log)
	}
}

// TestRecipients: who is found, by the setting, and who can be named without having been found.
func TestRecipients(t *testing.T) {
	for _, c := range []struct {
		scope string
		finds []string // of demo, by "pl" and "fo"
	}{
		{"group", []string{"plain"}}, {"everyone", []string{"foreign", "plain"}}, {"none", nil},
	} {
		t.Run(c.scope, func(t *testing.T) {
			w := tamgatest.StartUMS(t, "--set", "pages.recipients="+c.scope)
			colleague(w)
			foreignID := regexp.MustCompile(`foreign\s+Other\s+(\S+)`).FindStringSubmatch(w.Command("operator", "list"))[1]
			w.Command("cert", "issue", tamgatest.Foreign, "--encryption")
			w.Command("cert", "issue", tamgatest.TwoGroup) // not for encryption
			b := signedIn(w, w.Dev.User.Login, w.Dev.User.Password)
			var names []string
			for _, q := range []string{"pl", "fo", "tw", w.Dev.User.Login} {
				p := b.Shows(b.Get("/encrypt/recipients?q=" + q))
				for _, m := range found.FindAllStringSubmatch(p.Text, -1) {
					if m[2] != "Demo User" {
						names = append(names, m[2])
					}
				}
			}
			slices.Sort(names)
			if !slices.Equal(names, c.finds) {
				t.Errorf("found %q, want %q", names, c.finds)
			}
			p := b.Shows(b.Get("/encrypt"))
			if strings.Contains(p.Text, `name="q"`) != (c.scope != "none") || strings.Contains(p.Text, `name="group" value="Default"`) != (c.scope != "none") || strings.Contains(p.Text, `name="group" value="Other"`) != (c.scope == "everyone") {
				t.Errorf("the form offers another search or other groups:\n%s", p.Text)
			}
			// A form that names a person out of reach says no more than one that names no person at all.
			foreign := b.Upload("/encrypt", fields{"to": foreignID}, pagetest.File{Field: "file", Name: "a.txt", Content: "a"})
			missing := b.Upload("/encrypt", fields{"to": tamgatest.Missing}, pagetest.File{Field: "file", Name: "a.txt", Content: "a"})
			if (foreign.Status == 200) != (c.scope == "everyone") || missing.Status != 400 {
				t.Errorf("for a person of another group: %d, for a missing one %d", foreign.Status, missing.Status)
			}
			for group, want := range map[string]bool{"Default": c.scope != "none", "Other": c.scope == "everyone", "None": false} {
				p := b.Upload("/encrypt", fields{"group": group}, pagetest.File{Field: "file", Name: "a.txt", Content: "a"})
				if (p.Status == 200) != want || !want && !strings.Contains(p.Text, "There is no such group") && !strings.Contains(p.Text, "No person of the group") {
					t.Errorf("for the group %s: %d\n%s", group, p.Status, p.Text)
				}
			}
		})
	}
}

// TestCertificateFiles encrypts for certificates of files, in each format, and says what is wrong with them.
func TestCertificateFiles(t *testing.T) {
	w := tamgatest.StartUMS(t)
	b := signedIn(w, w.Dev.User.Login, w.Dev.User.Password)
	read := func(suite string) string { return string(tamgatest.ReadFile(t, w.Path(w.Cert(suite, false).PEM))) }
	gost, rsa := read("gost2012-256"), read("rsa-2048")
	b.Is(b.Upload("/encrypt", nil, pagetest.File{Field: "file", Name: "a.txt", Content: "a"}), 400, `id="to-problem"`, "Choose at least one person")
	b.Is(b.Upload("/encrypt", nil, pagetest.File{Field: "certificate", Name: "a.cer", Content: gost}), 400, `id="file-problem"`)
	p := b.Upload("/encrypt", nil, pagetest.File{Field: "file", Name: "a.txt", Content: "a"}, pagetest.File{Field: "certificate", Name: pagetest.HostileName, Content: "no certificate"})
	b.Is(p, 400, `id="certificate-problem"`)
	b.Safe(p)
	// The certificate stays with the form when another field is wrong.
	p = b.Upload("/encrypt", fields{"protection": "aes"}, pagetest.File{Field: "file", Name: "a.txt", Content: "the text"}, pagetest.File{Field: "certificate", Name: "a.cer", Content: gost})
	b.Is(p, 400, `id="to-problem"`, "Demo User: ", "from a file")
	kept := fields{"der": b.Find(p, der)[1], "stored": b.Find(p, stored)[1]}
	for protection, name := range map[string]string{"usual": "a.txt.p7m", "kuznyechik": "a.txt.p7m"} {
		kept["protection"] = protection
		made := results(b, b.Shows(b.Upload("/encrypt", kept), "1 file is encrypted"))
		integrity := "not protected against changes"
		if protection == "kuznyechik" {
			integrity = "unchanged, verified"
		}
		plain := results(b, b.Shows(b.Upload("/decrypt", nil, pagetest.File{Field: "file", Name: name, Content: made[name]}), integrity))
		if plain["a.txt"] != "the text" {
			t.Errorf("%s: %q", protection, plain)
		}
	}
	made := results(b, b.Shows(b.Upload("/encrypt", fields{"protection": "aes"}, pagetest.File{Field: "file", Name: "b", Content: "b"}, pagetest.File{Field: "certificate", Name: "b.cer", Content: rsa})))
	if plain := results(b, b.Shows(b.Upload("/decrypt", nil, pagetest.File{Field: "file", Name: "b.p7m", Content: made["b.p7m"]}))); plain["b"] != "b" {
		t.Errorf("AES: %q", plain)
	}
	// A message that came by mail or out of an editor is text.
	coded := base64.StdEncoding.EncodeToString([]byte(made["b.p7m"]))
	for name, text := range map[string]string{
		"b.pem": "-----BEGIN CMS-----\n" + coded + "\n-----END CMS-----\n", "b.txt": coded, "b.eml": "Content-Type: application/pkcs7-mime\n\n" + coded,
	} {
		if plain := results(b, b.Shows(b.Upload("/decrypt", nil, pagetest.File{Field: "file", Name: name, Content: text}))); plain[name] != "b" {
			t.Errorf("%s: %q", name, plain)
		}
	}
	const order = "<order><item>apples</item></order>"
	made = results(b, b.Shows(b.Upload("/encrypt", fields{"protection": "xml"}, pagetest.File{Field: "file", Name: "order.xml", Content: order}, pagetest.File{Field: "certificate", Name: "a.cer", Content: gost})))
	if strings.Contains(made["order.xml"], "apples") {
		t.Errorf("the XML is not encrypted: %s", made)
	}
	// Messages of both formats are one operation.
	cms := results(b, b.Shows(b.Upload("/encrypt", nil, pagetest.File{Field: "file", Name: "c", Content: "c"}, pagetest.File{Field: "certificate", Name: "a.cer", Content: gost})))
	plain := results(b, b.Shows(b.Upload("/decrypt", nil, pagetest.File{Field: "file", Name: "order.xml", Content: made["order.xml"]}, pagetest.File{Field: "file", Name: "c.p7m", Content: cms["c.p7m"]}), "2 files are decrypted"))
	if plain["order.xml"] != order || plain["c"] != "c" {
		t.Errorf("decrypted together: %q", plain)
	}
	b.Is(b.Upload("/encrypt", fields{"protection": "xml"}, pagetest.File{Field: "file", Name: "a.txt", Content: "no XML"}, pagetest.File{Field: "certificate", Name: "a.cer", Content: gost}), 400, `id="file-problem"`)
	b.Is(b.Upload("/encrypt", fields{"protection": "rot13"}, pagetest.File{Field: "file", Name: "a.txt", Content: "a"}, pagetest.File{Field: "certificate", Name: "a.cer", Content: gost}), 400, `id="protection-problem"`)
}

// TestNothingLost: whatever is wrong with a form, all is said at once, and what is right is kept.
func TestNothingLost(t *testing.T) {
	w := tamgatest.StartUMS(t)
	colleague(w)
	b := signedIn(w, w.Dev.User.Login, w.Dev.User.Password)
	id := b.Find(b.Get("/encrypt/recipients?q=pl"), found)[1]
	gost := string(tamgatest.ReadFile(t, w.Path(w.Cert("gost2012-256", false).PEM)))
	long := strings.Repeat("long ", 60) + ".txt"
	p := b.Upload("/encrypt", fields{"to": id, "protection": "kuznyechik", "ending": ".enc", "self": "yes"},
		pagetest.File{Field: "file", Name: "good.txt", Content: "good"}, pagetest.File{Field: "file", Name: long, Content: "long"}, pagetest.File{Field: "file", Name: "better.txt", Content: "better"},
		pagetest.File{Field: "certificate", Name: "bad.cer", Content: "no certificate"}, pagetest.File{Field: "certificate", Name: "good.cer", Content: gost})
	b.Is(p, 400, `id="file-problem"`, "The name of the file &#34;long long", "no name may have: rename it.<", `id="certificate-problem"`, "bad.cer: The file has no certificate", "or .p7b.<",
		">good.txt<", ">better.txt<", "Demo User", `value=".enc" selected`, `value="kuznyechik" checked`, `name="self" value="yes" checked`)
	if strings.Contains(p.Text, "not right") || len(stored.FindAllString(p.Text, -1)) != 2 || b.Find(p, chosen)[1] != id || len(der.FindAllString(p.Text, -1)) != 1 {
		t.Errorf("the form has lost something, or says twice what is wrong:\n%s", p.Text)
	}
	// A person who is no recipient any more does not take the others away.
	file := b.Find(p, stored)[1]
	p = b.Upload("/encrypt", fields{"to": tamgatest.Missing, "stored": file, "der": b.Find(p, der)[1]})
	b.Is(p, 400, `id="to-problem"`, "A person who was chosen has no certificate for encryption any more", ">good.txt<", "Demo User")
}

// TestSelfAlone: the reader alone is no recipient, and the form says whom to add.
func TestSelfAlone(t *testing.T) {
	w := tamgatest.StartUMS(t)
	b := colleague(w)
	file := pagetest.File{Field: "file", Name: "a.txt", Content: "a"}
	b.Is(b.Upload("/encrypt", fields{"self": "yes"}, file), 400, `id="to-problem"`, "Besides yourself, choose at least one person, group or certificate to encrypt for.")
	b.Is(b.Upload("/encrypt", nil, file), 400, `id="to-problem"`, "Choose at least one person, group or certificate to encrypt for.")
}

// TestHostileNames: names of files stay texts, and no name leads out of a folder of the reader.
func TestHostileNames(t *testing.T) {
	w := tamgatest.StartUMS(t)
	b := signedIn(w, w.Dev.User.Login, w.Dev.User.Password)
	own := fields{"self": "yes", "group": "Default"}
	p := b.Shows(b.Upload("/encrypt", own, pagetest.File{Field: "file", Name: pagetest.HostileName, Content: "a"}), "1 file is encrypted")
	b.Safe(p)
	message := ""
	for _, text := range results(b, p) {
		message = text
	}
	for _, name := range []string{`..\..\evil.txt.p7m`, "/etc/passwd.p7m", pagetest.HostileName + ".p7m", ".p7m", "con.p7m"} {
		p := b.Shows(b.Upload("/decrypt", nil, pagetest.File{Field: "file", Name: name, Content: message}, pagetest.File{Field: "file", Name: name, Content: message}), "2 files are decrypted")
		b.Safe(p)
		got := entries(t, b.Shows(b.Get(b.Find(p, all)[1])).Text)
		if len(got) != 2 {
			t.Errorf("%q: the archive has %q", name, got)
		}
		for entry := range got {
			if strings.ContainsAny(entry, `/\<>:"|?*`) || strings.Contains(entry, "..") {
				t.Errorf("%q becomes %q", name, entry)
			}
		}
	}
	p = b.Upload("/decrypt", nil, pagetest.File{Field: "file", Name: "a\u202efdp.p7m", Content: message}, pagetest.File{Field: "file", Name: "good.p7m", Content: message})
	b.Is(p, 400, `id="file-problem"`, ">good.p7m<")
	b.Shows(b.Upload("/decrypt", fields{"stored": b.Find(p, stored)[1]}), "1 file is decrypted")
}

// TestPIN: the PIN is asked for if a key has one, and costs an attempt if it is wrong. The form keeps all but the PIN.
func TestPIN(t *testing.T) {
	w := tamgatest.StartUMS(t)
	b := signedIn(w, w.Dev.User.Login, w.Dev.User.Password)
	locked := w.Cert("gost2012-256", true)
	pem := string(tamgatest.ReadFile(t, w.Path(locked.PEM)))
	made := results(b, b.Shows(b.Upload("/encrypt", nil, pagetest.File{Field: "file", Name: "a.txt", Content: "the text"}, pagetest.File{Field: "certificate", Name: "a.cer", Content: pem})))
	p := b.Shows(b.Upload("/decrypt", fields{"do": "look"}, pagetest.File{Field: "file", Name: "a.txt.p7m", Content: made["a.txt.p7m"]}), `name="pin"`, `>PIN<`)
	id := b.Find(p, stored)[1]
	p = b.Upload("/decrypt", fields{"stored": id, "pin": "not the PIN"})
	b.Is(p, 400, `id="pin-problem"`)
	if b.Find(p, stored)[1] != id || strings.Contains(p.Text, "not the PIN") {
		t.Errorf("the form forgets the file, or keeps the PIN:\n%s", p.Text)
	}
	if plain := results(b, b.Shows(b.Upload("/decrypt", fields{"stored": id, "pin": locked.PIN}), "1 file is decrypted")); plain["a.txt"] != "the text" {
		t.Errorf("%q", plain)
	}
	b.Is(b.Upload("/decrypt", fields{"stored": id, "certificate": "1"}), 400, `id="certificate-problem"`)
}

// TestConfirmedDecryption: a decryption that must be confirmed leads to its confirmation, and is carried out at the
// approval. One that is denied is refused.
func TestConfirmedDecryption(t *testing.T) {
	p := pagetest.NewPerson(t, "otpviasms")
	b := p.Browser
	made := results(b, b.Shows(b.Upload("/encrypt", fields{"self": "yes", "group": "Default"}, pagetest.File{Field: "file", Name: "a.txt", Content: "the text"}, pagetest.File{Field: "file", Name: "b.txt", Content: "another"})))
	messages := []pagetest.File{{Field: "file", Name: "a.txt.p7m", Content: made["a.txt.p7m"]}, {Field: "file", Name: "b.txt.p7m", Content: made["b.txt.p7m"]}}
	p.Confirms(pagetest.BitDecryptDocument)
	page := b.Shows(b.Upload("/decrypt", nil, messages...), "Decrypting a document", "a.txt.p7m", "b.txt.p7m")
	at := page.At.Path
	if !strings.HasPrefix(at, "/confirm/") || strings.Contains(page.Text, "the text") {
		t.Fatalf("the browser is at %s:\n%s", at, page.Text)
	}
	operation := "/decrypted?operation=" + strings.TrimPrefix(at, "/confirm/")
	b.Shows(b.Get(operation), "waits for your confirmation", `href="`+at+`"`)
	b.Shows(b.Post(at, url.Values{"choice": {"otpviasms"}}), `name="code"`)
	page = b.Shows(b.Post(at, url.Values{"code": {p.Code(p.Phone)}}), "2 files are decrypted")
	if page.At.RequestURI() != operation {
		t.Errorf("after the approval the browser is at %s", page.At)
	}
	if plain := results(b, page); plain["a.txt"] != "the text" || plain["b.txt"] != "another" {
		t.Errorf("%q", plain)
	}
	b.Shows(b.Get(at), `href="`+operation+`"`)
	p.Denies(pagetest.BitDecryptDocument)
	b.Is(b.Upload("/decrypt", nil, messages...), 403, `name="stored" value="`)
}
