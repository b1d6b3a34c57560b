// SPDX-License-Identifier: Apache-2.0

package register_test

import (
	"archive/zip"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"html"
	"io"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"tamga/gost/streebog"
	"tamga/internal/judge"
	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

var record = regexp.MustCompile(`href="(/signatures/[0-9a-f-]{36}/[0-9a-f-]{36})">([^<]+)<`)

// records returns the addresses of the records of a page, by the names of the documents.
func records(p pagetest.Page) map[string]string {
	list := map[string]string{}
	for _, m := range record.FindAllStringSubmatch(p.Text, -1) {
		list[html.UnescapeString(m[2])] = m[1]
	}
	return list
}

// TestRegister signs files in pages and by the interface, with and without a confirmation, and reads the register.
func TestRegister(t *testing.T) {
	p := pagetest.NewPerson(t, "otpviasms")
	b := p.Browser
	b.Shows(b.Get("/signatures"), "No signatures yet")
	b.Shows(b.Upload("/sign", map[string]string{"certificate": "1"}, pagetest.File{Field: "file", Name: "Договор №17.txt", Content: "a contract"}, pagetest.File{Field: "file", Name: pagetest.HostileName, Content: "hostile"},
		pagetest.File{Field: "file", Name: "no.pdf", Content: "no PDF"}), "2 documents are signed")
	p.Confirms(pagetest.BitSignDocument)
	page := b.Shows(b.Upload("/sign", map[string]string{"certificate": "1"}, pagetest.File{Field: "file", Name: "=1+1.txt", Content: "confirmed"}))
	at := b.Find(page, pagetest.ConfirmLink)[1]
	page = b.Shows(b.Get("/signatures"), "2 signatures")
	if strings.Contains(page.Text, "=1+1") {
		t.Error("a signature that waits is in the register")
	}
	b.Shows(b.Post(at, url.Values{"choice": {"otpviasms"}}))
	b.Shows(b.Post(at, url.Values{"code": {p.Code(p.Phone)}}), "Signed")
	p.Confirms(pagetest.BitChangePIN)
	p.Signed("POST", "/api/documents", p.Token(), tamgatest.Request([]byte("of a program"), "CAdES", 1, tamgatest.Parameters{"IsDetached": "True"}))

	page = b.Shows(b.Get("/signatures"), "4 signatures", "Code by SMS: ***0078", "without a confirmation", "Document without a name", "Verify marked", "Pages of this service", `aria-current="page"`)
	b.Safe(page)
	// The document of a signature of version 1 has a digest, a certificate and a type, and the page says what is missing.
	direct := streebog.Sum256([]byte("of a program"))
	text := hex.EncodeToString(direct[:])
	b.Shows(page, "kept neither its name nor the file", text[:4]+" "+text[4:8]+" … "+text[60:])
	if found := b.Shows(b.Get("/signatures?q=" + text)); !strings.Contains(found.Text, "1 signature<") || strings.Contains(found.Text, "the certificate is not named") {
		t.Errorf("the digest of a signature of version 1 finds\n%s", found.Text)
	}
	all := records(page)
	if len(all) != 3 {
		t.Fatalf("the register has %q", all)
	}
	// One search for names, digests and identifiers.
	for q, want := range map[string]int{"договор": 1, "№17 ДОГ": 1, "onerror": 1, "1+1.txt": 1, "nothing": 0, "?certificate=1": 0} {
		if got := len(records(b.Shows(b.Get("/signatures?q=" + url.QueryEscape(q))))); got != want {
			t.Errorf("%q finds %d signatures, want %d", q, got, want)
		}
	}
	for _, c := range []struct {
		address string
		want    int
	}{{"?period=week", 3}, {"?until=2020-01-01", 0}, {"?since=2020-01-01", 3}, {"?certificate=1", 3}, {"?certificate=2", 0}, {"?method=otpviasms", 1}, {"?method=none", 2}, {"?method=mydss", 0}} {
		if got := len(records(b.Shows(b.Get("/signatures" + c.address)))); got != c.want {
			t.Errorf("%s has %d signatures, want %d", c.address, got, c.want)
		}
	}
	b.Shows(b.Get("/signatures?since=yesterday"), `role="alert"`)

	contract := all["Договор №17.txt"]
	page = b.Shows(b.Get(contract), "Signed together with it", "10\u00a0bytes", "GOST R 34.11-2012", `href="/certificates/1"`, "This record stays")
	digest := b.Find(page, regexp.MustCompile(`<code>([0-9a-f]{64})</code>`))[1]
	if got := records(b.Shows(b.Get("/signatures?q=" + digest))); len(got) != 1 || got["Договор №17.txt"] == "" {
		t.Errorf("the digest finds %q", got)
	}
	if strings.Contains(page.Text, "proof.json") {
		t.Error("a signature without a confirmation has a proof of one")
	}
	b.Shows(b.Post(contract+"/do/verify", nil), "Signature valid", "Verified ")
	confirmed := all["=1+1.txt"]
	proof := b.Shows(b.Get(b.Find(b.Shows(b.Get(confirmed)), regexp.MustCompile(`href="([^"]+proof\.json)"`))[1]))
	var of struct{ State, Method string }
	if err := json.Unmarshal([]byte(proof.Text), &of); err != nil || of.State != "Completed" || of.Method != "otpviasms" || !strings.HasPrefix(proof.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf("the proof: %v, %+v", err, of)
	}

	// Marked signatures are verified together, those beside their documents with them.
	marks := regexp.MustCompile(`name="signature" value="([^"]+)"`).FindAllStringSubmatch(b.Shows(b.Get("/signatures")).Text, -1)
	if len(marks) != 3 {
		t.Fatalf("%d signatures can be marked, want 3", len(marks))
	}
	chosen := url.Values{"signature": {marks[0][1], marks[1][1], marks[2][1]}}
	page = b.Shows(b.Post("/signatures/do/verify", chosen), "3 files verified", "all signatures are valid", "Договор №17.txt.sig")
	b.Safe(page)
	b.Is(b.Post("/signatures/do/verify", nil), 400, "ark the signatures to verify")
	b.Is(b.Post("/signatures/do/verify", url.Values{"signature": {tamgatest.Missing + "/" + tamgatest.Missing}}), 404)
	b.Is(b.Post("/signatures/do/verify", url.Values{"signature": {strings.Split(marks[0][1], "/")[0] + "/x"}}), 404)

	// Files for spreadsheets: no name is a formula.
	file := b.Shows(b.Get("/signatures/export?format=csv"))
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(file.Text, "\ufeff"))).ReadAll()
	if err != nil || len(rows) != 5 || rows[2][1] != "'=1+1.txt" || rows[2][7] != "Code by SMS: ***0078" || len(rows[3][4]) != 64 {
		t.Errorf("the file of texts: %v, %q", err, rows)
	}
	file = b.Shows(b.Get("/signatures/export?format=xlsx&q=1%2B1.txt"))
	z, err := zip.NewReader(strings.NewReader(file.Text), int64(len(file.Text)))
	if err != nil {
		t.Fatal(err)
	}
	sheet, err := z.Open("xl/worksheets/sheet1.xml")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(sheet); err != nil || strings.Count(string(text), "<row>") != 2 || !strings.Contains(string(text), ">=1+1.txt<") || strings.Contains(string(text), "<f>") {
		t.Errorf("the workbook: %v, %s", err, text)
	}

	printed := b.Shows(b.Get("/signatures/export?format=pdf&method=otpviasms"))
	if said := judge.PDFViewers(t).Text([]byte(printed.Text)); !strings.Contains(said, "=1+1.txt") || !strings.Contains(said, "Code by SMS: ***0078") || strings.Contains(said, "№17") || !strings.Contains(said, "Signatures: 1.") {
		t.Errorf("the printed register:\n%s", said)
	}

	// A stored document has the digest that the store knows.
	result := b.Find(b.Shows(b.Get(confirmed)), regexp.MustCompile(`href="/signed/document/([0-9a-f-]{36})"`))[1]
	b.Shows(b.Upload("/sign", map[string]string{"certificate": "1", "stored": result, "format": "cades"}))
	b.Find(b.Shows(b.Get(records(b.Get("/signatures"))["=1+1.txt.sig"])), regexp.MustCompile(`<code>([0-9a-f]{64})</code>`))

	// The record stays when the documents are gone.
	ref := b.Find(b.Shows(b.Get(contract)), regexp.MustCompile(`href="/signed/document/([0-9a-f-]{36})"`))[1]
	b.Shows(b.Post("/documents/"+ref+"/do/delete", nil))
	page = b.Shows(b.Get(contract), "not stored here any more", digest)
	if strings.Contains(page.Text, "do/verify") {
		t.Error("a document that is gone is verified")
	}
	b.Is(b.Post(contract+"/do/verify", nil), 404)
	b.Shows(b.Post("/signatures/do/verify", chosen), "The file is not stored here any more")
	// No other user sees the register.
	other := pagetest.New(t, p.Server)
	other.Shows(other.SignIn("/start", p.Dev.Operator.Login, p.Dev.Operator.Password))
	other.Shows(other.Get("/signatures"), "No signatures yet")
	other.Is(other.Post("/signatures/do/verify", chosen), 404)
	for _, address := range []string{contract, confirmed, strings.Join(strings.Split(confirmed, "/")[:3], "/") + "/proof.json"} {
		other.Is(other.Get(address), 404)
	}
	b.Is(b.Get("/signatures/"+tamgatest.Missing+"/"+tamgatest.Missing), 404)
	if history := b.Shows(b.Get("/account/history")); strings.Contains(history.Text, "Signatures of documents") {
		t.Error("the history has each document beside its operation")
	}
}
