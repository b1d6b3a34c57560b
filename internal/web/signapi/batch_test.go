// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/signing"
	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/cades"
	"tamga/sig/pdf"
	"tamga/sig/raw"
)

// batch is the answer to one.
type batch struct {
	Results []*[]byte
	Errors  []*struct{ Message string }
}

// newBank is a desk whose user has a key with a PIN.
func newBank(t testing.TB, change func(*signing.Service)) (*desk, *vault) {
	t.Helper()
	v := &vault{t: t, signer: sigtest.Root(t, suite.GOST2012x256).Signer(t, suite.GOST2012x256, "user"), pin: "1234"}
	d := newDesk(t, func(s *signing.Service, a *API) *API {
		s.Keys = v
		if change != nil {
			change(s)
		}
		return a
	})
	return d, v
}

func (d *desk) batch(t testing.TB, path string, body io.Reader) (int, []byte, batch) {
	t.Helper()
	status, text := d.send(t, "POST", path, "1", body)
	var b batch
	if status == 200 {
		if err := json.Unmarshal(text, &b); err != nil {
			t.Fatalf("%v: %.300s", err, text)
		}
	}
	return status, text, b
}

const asUser = `"Signature":{"Type":"CAdES","Parameters":{"Hash":"False","CADESType":"BES","IsDetached":"False"},"CertificateId":0,"PinCode":"1234"}`

// TestBatch: each document gets its result or its error at its own place, and the
// key is asked once.
func TestBatch(t *testing.T) {
	for _, path := range []string{"/api/documents", "/rest/api/documents/packagesignature"} {
		d, v := newBank(t, nil)
		large := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("large ", 100_000)))
		documents := []string{
			`{"Name":"a","Content":"` + base64.StdEncoding.EncodeToString([]byte("first")) + `","OriginalContent":""}`,
			`{"Name":"b","Content":"*"}`,
			`{"Content":"` + large + `"}`,
			`{}`,
			`{"Content":"` + large[:len(large)-1] + `"}`,
			`{"content":"` + base64.StdEncoding.EncodeToString([]byte("last")) + `","name":7}`,
			`{"Content":"QQ==","OriginalContent":"QQ"}`,
			`{"Content":"QQ==","OriginalContent":"QQ=="}`,
			`{"Content":{}}`,
			`null`,
		}
		wants := []struct{ content, says string }{
			{"first", ""},
			{"", "invalid_content: Documents[1].Content is not Base64"},
			{strings.Repeat("large ", 100_000), ""},
			{"", "content_required: Documents[3].Content"},
			{"", "invalid_content: Documents[4].Content is not Base64"},
			{"last", ""},
			{"", "invalid_content: Documents[6].OriginalContent is not Base64"},
			{"", "invalid_signature_params: parameters: OriginalDocument"}, // a plain signature has no original
			{"", "invalid_content: Documents[8].Content must be a string"},
			{"", "content_required: Documents[9].Content"},
		}
		status, text, b := d.batch(t, path, strings.NewReader(`{"Documents":[`+strings.Join(documents, ",")+`],"Content":"",`+asUser+`}`))
		if status != 200 || len(b.Results) != len(wants) || len(b.Errors) != len(wants) || !strings.HasPrefix(string(text), `{"Results":["`) {
			t.Fatalf("%d %.300s", status, text)
		}
		for i, want := range wants {
			if (b.Results[i] == nil) != (b.Errors[i] != nil) || (b.Results[i] == nil) != (want.says != "") {
				t.Errorf("item %d: result %v, error %v", i, b.Results[i] != nil, b.Errors[i])
				continue
			}
			if want.says != "" {
				if !strings.HasPrefix(b.Errors[i].Message, want.says) {
					t.Errorf("item %d: %s", i, b.Errors[i].Message)
				}
				continue
			}
			valid(t, cades.New(), *b.Results[i], nil, v.signer)
			if !strings.Contains(string(*b.Results[i]), want.content) {
				t.Errorf("item %d: the result is of another document", i)
			}
		}
		if v.asked != 1 {
			t.Errorf("the key was asked %d times", v.asked)
		}
	}
}

// TestBatchRefusals: what is wrong with a batch as a whole.
func TestBatchRefusals(t *testing.T) {
	d, v := newBank(t, func(s *signing.Service) { s.BatchItems = 3 })
	const item = `{"Content":"QQ=="}`
	for _, c := range []struct {
		name, body, code, says string
		asked                  int
	}{
		{"wrong PIN", `{"Documents":[` + item + `],` + strings.Replace(asUser, "1234", "4321", 1) + `}`, fault.InvalidPIN, "", 1},
		{"unknown certificate", `{"Documents":[` + item + `],` + strings.Replace(asUser, `"CertificateId":0`, `"CertificateId":5`, 1) + `}`, fault.InvalidCertificate, "", 0},
		{"an original for all", `{"Documents":[` + item + `],"Signature":{"Type":2,"Parameters":{"OriginalDocument":"QQ=="}}}`, fault.InvalidSignatureParams, "OriginalContent", 0},
		{"an empty list alone", `{"Documents":[],` + asUser + `}`, fault.ContentRequired, "Content", 0},
		{"too many", `{"Documents":[` + strings.Repeat(item+",", 3) + item + `],` + asUser + `}`, fault.InvalidParameters, "at most 3", 0},
		{"too many without documents", `{"Documents":[` + strings.Repeat("{},", 20_000) + `{}],` + asUser + `}`, fault.TooLarge, "holds more", 0},
		{"wrong type", `{"Documents":[` + item + `],"Signature":{"Type":"PGP"}}`, fault.InvalidSignatureParams, "not served", 0},
	} {
		v.asked = 0
		status, text, _ := d.batch(t, "/api/documents", strings.NewReader(c.body))
		if code, says := refused(t, status, text); code != c.code || !strings.Contains(says, c.says) || v.asked != c.asked {
			t.Errorf("%s: %d %s, the key was asked %d times", c.name, status, text, v.asked)
		}
	}
	// Nothing left to sign is an answer, and asks no key.
	v.asked = 0
	if status, text, b := d.batch(t, "/api/documents", strings.NewReader(`{"Documents":[{"Content":"*"},{}],`+asUser+`}`)); status != 200 || len(b.Errors) != 2 || v.asked != 0 {
		t.Errorf("%d %s, the key was asked %d times", status, text, v.asked)
	}
}

// TestBatchSharedFault: a fault that every document has refuses the request, as in
// v2; a client must not read 200 when nothing can be signed. Faults of documents stay
// with their documents.
func TestBatchSharedFault(t *testing.T) {
	d, v := newBank(t, func(s *signing.Service) { s.Formats = append(s.Formats, &pdf.Format{CMS: cades.New()}) })
	parameters := func(text string) string {
		return `"Signature":{"Type":"CAdES","Parameters":{` + text + `},"CertificateId":0,"PinCode":"1234"}`
	}
	const (
		item  = `{"Content":"QQ=="}`
		items = item + "," + item
	)
	for _, c := range []struct {
		name, documents, signature string
		code                       string // "": answered with 200
		status                     int    // 0: of the code
	}{
		{"no document has content", `{},{"Name":"b"}`, asUser, fault.ContentRequired, 400},
		{"the only document has no content", `{}`, asUser, fault.ContentRequired, 400},
		{"a wrong parameter", items, parameters(`"CmsSignatureType":"Foo"`), fault.InvalidSignatureParams, 400},
		{"a wrong parameter for the only document", item, parameters(`"CmsSignatureType":"Foo"`), fault.InvalidSignatureParams, 400},
		{"the only document cannot be read", `{"Content":"*"}`, asUser, fault.InvalidContent, 400},
		{"the only document is of another kind", item, `"Signature":{"Type":"PDF","Parameters":{"PDFFormat":"CMS"}}`, fault.Failed, 500},

		{"no document can be read", `{"Content":"*"},{"Content":"?"}`, asUser, "", 200},
		{"different faults", `{},{"Content":"*"}`, asUser, "", 200},
		{"one of two has content", `{},` + item, asUser, "", 200},
		{"all documents are of another kind", items, `"Signature":{"Type":"PDF","Parameters":{"PDFFormat":"CMS"}}`, "", 200},
	} {
		for _, path := range []string{"/api/documents", "/api/documents/packagesignature"} {
			v.asked = 0
			status, text, b := d.batch(t, path, strings.NewReader(`{"Documents":[`+c.documents+`],`+c.signature+`}`))
			if c.code == "" {
				if status != 200 || len(b.Errors) != 2 || b.Errors[0] == nil {
					t.Errorf("%s: %d %s", c.name, status, text)
				}
				continue
			}
			if code, _ := refused(t, status, text); status != c.status || code != c.code || v.asked != 0 {
				t.Errorf("%s: %d %s, the key was asked %d times", c.name, status, text, v.asked)
			}
		}
	}

	// A cosignature of detached messages needs the originals.
	message := base64.StdEncoding.EncodeToString(withoutDocument(t, d, "the document"))
	content := `{"Content":"` + message + `"}`
	status, text, _ := d.batch(t, "/api/documents", strings.NewReader(`{"Documents":[`+content+`,`+content+`],`+parameters(`"CmsSignatureType":"Cosign"`)+`}`))
	if code, says := refused(t, status, text); status != 400 || code != fault.InvalidSignatureParams || !strings.Contains(says, "OriginalDocument") {
		t.Errorf("detached messages without originals: %d %s", status, text)
	}
}

// TestCosignHashWithoutAlgorithm: HashAlgorithm may be left out of a cosignature over
// hashes, single and in a batch: the key decides.
func TestCosignHashWithoutAlgorithm(t *testing.T) {
	d, v := newBank(t, nil)
	const original = "the document"
	hash := base64.StdEncoding.EncodeToString(v.signer.Suite.Hash.Digest([]byte(original)).Sum)
	content := base64.StdEncoding.EncodeToString(withoutDocument(t, d, original))
	const over = `"Signature":{"Type":"CAdES","Parameters":{"Hash":"True","CmsSignatureType":"Cosign"`
	const by = `},"CertificateId":0,"PinCode":"1234"}`

	status, text := d.send(t, "POST", "/api/documents", "1", strings.NewReader(`{"Content":"`+content+`",`+over+`,"OriginalDocument":"`+hash+`"`+by+`}`))
	messages := [][]byte{bytesOf(t, status, text)}
	item := `{"Content":"` + content + `","OriginalContent":"` + hash + `"}`
	status, text, b := d.batch(t, "/api/documents", strings.NewReader(`{"Documents":[`+item+`,`+item+`],`+over+by+`}`))
	if status != 200 || len(b.Results) != 2 || b.Results[0] == nil || b.Results[1] == nil {
		t.Fatalf("%d %.300s", status, text)
	}
	for _, m := range append(messages, *b.Results[0], *b.Results[1]) {
		r, err := cades.New().Verify(t.Context(), &sig.Check{Document: bytes.NewReader(m), Original: strings.NewReader(original), Roots: v.signer.Chain, At: sigtest.Time})
		if err != nil || len(r.Signatures) != 2 || !r.Passed() {
			t.Errorf("%v: %+v", err, r)
		}
	}
}

// withoutDocument signs a document and returns the message without it.
func withoutDocument(t *testing.T, d *desk, document string) []byte {
	t.Helper()
	status, text := d.send(t, "POST", "/api/documents", "1", strings.NewReader(`{"Content":"`+base64.StdEncoding.EncodeToString([]byte(document))+
		`",`+strings.Replace(asUser, `"IsDetached":"False"`, `"IsDetached":"True"`, 1)+`}`))
	return bytesOf(t, status, text)
}

// TestEmptyBatchIsSingle: on both paths an empty list beside a document means nothing.
func TestEmptyBatchIsSingle(t *testing.T) {
	d, v := newBank(t, nil)
	for _, path := range []string{"/api/documents", "/api/documents/packagesignature"} {
		status, text := d.send(t, "POST", path, "1", strings.NewReader(`{"Documents":[],"Content":"QQ==",`+asUser+`}`))
		valid(t, cades.New(), bytesOf(t, status, text), nil, v.signer)
	}
}

// documentsOf writes a batch of n documents of size bytes.
func documentsOf(n, size int, signature string) io.Reader {
	r, w := io.Pipe()
	go func() {
		io.WriteString(w, `{"Documents":[`)
		for i := range n {
			if i > 0 {
				io.WriteString(w, ",")
			}
			content := strings.Repeat(fmt.Sprintf("%06d ", i), size/7+1)[:size]
			if _, err := fmt.Fprintf(w, `{"Name":"%d","Content":"%s","OriginalContent":""}`, i, base64.StdEncoding.EncodeToString([]byte(content))); err != nil {
				return // the reader reports the error
			}
		}
		io.WriteString(w, `],`+signature+`}`)
		w.Close()
	}()
	return r
}

const bareAsUser = `"Signature":{"Type":"GOST3410","Parameters":{"Hash":"False"},"CertificateId":0,"PinCode":"1234"}`

// TestBatchMemory: a batch of many documents keeps few of them in memory, whether
// each is small or large, and opens one file for all.
func TestBatchMemory(t *testing.T) {
	d, v := newBank(t, nil)
	defer debug.SetGCPercent(debug.SetGCPercent(20)) // so that garbage adds little to what is kept
	const most = 48 << 20                            // bytes the heap may grow by
	for _, c := range []struct{ n, size int }{
		{2500, 32 << 10}, // 80 MB together, each below what one may keep
		{80, 1 << 20},
	} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		status, text, b := d.batch(t, "/api/documents", documentsOf(c.n, c.size, bareAsUser))
		runtime.ReadMemStats(&after)
		if status != 200 || len(b.Results) != c.n {
			t.Fatalf("%d %.200s", status, text)
		}
		for _, i := range []int{0, c.n / 2, c.n - 1} {
			content := strings.Repeat(fmt.Sprintf("%06d ", i), c.size/7+1)[:c.size]
			valid(t, raw.New(), *b.Results[i], []byte(content), v.signer)
		}
		grown := int64(after.HeapSys) - int64(before.HeapSys)
		t.Logf("%d documents of %d bytes: the heap has grown by %d KiB", c.n, c.size, grown>>10)
		if grown > most {
			t.Errorf("%d documents of %d bytes: the heap has grown by %d KiB", c.n, c.size, grown>>10)
		}
	}
}

func BenchmarkBatch(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("documents=%d", n), func(b *testing.B) {
			d, _ := newBank(b, nil)
			for b.Loop() {
				if status, text, _ := d.batch(b, "/api/documents", documentsOf(n, 1024, asUser)); status != 200 {
					b.Fatalf("%d %.200s", status, text)
				}
			}
			b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "signatures/s")
		})
	}
}
