// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/signing"
	"tamga/internal/web/rest"
	"tamga/pki/chain"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/cades"
	"tamga/sig/pdf"
	"tamga/sig/raw"
)

// seen is an order as a signer sees it.
type seen struct {
	Type, Certificate, PIN, Content, Original string
	Params                                    map[string]string
	Login                                     string
}

// signer remembers the last order and answers "signed:" and the document.
type signer struct {
	*signing.Service // opens intakes

	mu    sync.Mutex
	order *seen
	err   error
	give  signing.Result
}

func (s *signer) Sign(_ context.Context, who audit.Principal, o *signing.SignOrder) (signing.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	if s.give != nil {
		return s.give, nil
	}
	text := func(in *signing.Intake) string {
		if in == nil {
			return ""
		}
		b, err := io.ReadAll(io.NewSectionReader(in, 0, in.Size()))
		if err != nil {
			return err.Error()
		}
		return string(b)
	}
	s.order = &seen{o.Type, o.Certificate, o.PIN, text(o.Content), text(o.Original), o.Params, who.Login}
	return strings.NewReader("signed:" + s.order.Content), nil
}

// certificates are those of the user "1".
type certificates []*keys.Certificate

func (c certificates) List(_ context.Context, userID string) ([]*keys.Certificate, error) {
	if userID != "1" {
		return nil, nil
	}
	return c, nil
}

func (c certificates) Resolve(_ context.Context, userID, identifier string) (*keys.Certificate, error) {
	for _, k := range c {
		if userID == "1" && identifier == fmt.Sprint(k.ID) {
			return k, nil
		}
	}
	return nil, fault.New(fault.InvalidCertificate, "no such certificate")
}

// noKeys has no certificate, so that documents are taken in without a digest.
type noKeys struct{ certificates }

func (k noKeys) ResolveIn(ctx context.Context, _ *keys.Snapshot, userID, identifier string) (*keys.Certificate, error) {
	return k.Resolve(ctx, userID, identifier)
}

func (noKeys) JudgeIn(context.Context, *keys.Snapshot, *keys.Certificate, time.Time) (*chain.Result, error) {
	panic("not asked")
}

func (noKeys) SignIn(context.Context, *keys.Snapshot, *keys.Certificate, string, []suite.Digest) ([][]byte, error) {
	panic("not asked")
}

// spool counts files. It keeps the bytes of a small file and only a digest of a large one.
type spool struct {
	mu     sync.Mutex
	files  []*spoolFile
	closed int
}

func (s *spool) Create() (signing.SpoolFile, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &spoolFile{spool: s, sum: sha256.New()}
	s.files = append(s.files, f)
	return f, nil
}

type spoolFile struct {
	spool *spool
	sum   hash.Hash
	n     int64
	head  []byte
}

func (f *spoolFile) Write(p []byte) (int, error) {
	if len(f.head) < 1<<20 {
		f.head = append(f.head, p...)
	}
	f.n += int64(len(p))
	return f.sum.Write(p)
}

func (f *spoolFile) ReadAt(p []byte, off int64) (int, error) {
	n := copy(p, f.head[min(off, int64(len(f.head))):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *spoolFile) Close() error {
	f.spool.mu.Lock()
	defer f.spool.mu.Unlock()
	f.spool.closed++
	return nil
}

type noAuditLog struct{}

func (noAuditLog) Record(context.Context, audit.Entry) error { return nil }

func (noAuditLog) Begin(context.Context, audit.Entry) func(context.Context) error {
	return func(context.Context) error { return nil }
}

type fixture struct {
	*httptest.Server
	signer *signer
	spool  *spool
}

func open(t *testing.T, own certificates) *fixture {
	t.Helper()
	sp := &spool{}
	h := &fixture{spool: sp, signer: &signer{Service: &signing.Service{Formats: sig.Formats{raw.New(), cades.New(), pdf.New()}, Keys: noKeys{}, Spool: sp}}}
	identify := func(ctx context.Context, token string) (context.Context, audit.Principal, error) {
		who := audit.Principal{UserID: token, Login: "login" + token}
		return WithSnapshot(ctx, snapshotFor(who)), who, nil
	}
	gate := &rest.Gate{
		Identify: func(_ context.Context, token string) (audit.Principal, error) {
			return audit.Principal{UserID: token, Login: "login" + token}, nil
		},
		IdentifyWith: identify, IdentifyConfirmed: identify,
		Audit: noAuditLog{}, Log: slog.New(slog.DiscardHandler),
	}
	mux := http.NewServeMux()
	rest.MountAPI(mux, "/SignServer", gate, New(Deps{Signer: h.signer, Certificates: own}).Routes())
	h.Server = httptest.NewServer(rest.Routed(mux))
	t.Cleanup(func() {
		h.Close()
		if len(sp.files) != sp.closed {
			t.Errorf("%d of %d spool files were closed", sp.closed, len(sp.files))
		}
	})
	return h
}

func (h *fixture) ask(t *testing.T, method, path, user string, body io.Reader) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, h.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+user)
	resp, err := h.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// TestRouteTable holds the table against what the interface asks for now.
func TestRouteTable(t *testing.T) {
	var got []string
	for _, r := range New(Deps{Signer: &signer{}}).Routes() {
		got = append(got, fmt.Sprintf("%s %s %s %s", r.Method, r.Path, r.Name, r.Right))
	}
	want := []string{
		"POST /documents SignDocument signed-in",
		"POST /documents/packagesignature SignPackage signed-in",
		"POST /documents/hash HashDocument signed-in",
		"GET /certificates GetCertificates signed-in",
		"GET /certificates/{id} GetCertificate signed-in",
		"POST /signatures/presign PreSignDocument signed-in",
		"POST /signatures/postsign PostSignDocument signed-in",
		"POST /signatures/enhance EnhanceSignature signed-in",
		"PATCH /signatures/postsign EnhanceSignature signed-in",
		"POST /documents/enhancesignature EnhanceSignature signed-in",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	// Opened to callers without a token are the routes without a key of ours, and
	// no other.
	for i, r := range New(Deps{Signer: &signer{}, Anonymous: &Anonymous{Limit: 1 << 20}}).Routes() {
		if open := i > 4; open != (r.Right == rest.Anyone) {
			t.Errorf("%s %s: %s", r.Method, r.Path, r.Right)
		}
	}
}

func TestSign(t *testing.T) {
	h := open(t, nil)
	const content = `"Content":"RE9D"`
	simple := seen{Type: "GOST3410", Content: "DOC", Login: "login1", Params: map[string]string{}}
	large := strings.Repeat("large ", 50_000)
	large64 := base64.StdEncoding.EncodeToString([]byte(large))
	with := func(change func(*seen)) seen { s := simple; change(&s); return s }
	for _, c := range []struct {
		name, body string
		want       seen
	}{
		{"least", `{` + content + `,"Signature":{"Type":"GOST3410"}}`, simple},
		{"numbers", `{` + content + `,"Signature":{"Type":1,"CertificateId":17,"PinCode":1234}}`,
			with(func(s *seen) { s.Type, s.Certificate, s.PIN = "1", "17", "1234" })},
		{"texts", `{` + content + `,"Signature":{"Type":"cades","CertificateId":"17","PinCode":"","Parameters":{}}}`,
			with(func(s *seen) { s.Type, s.Certificate = "cades", "17" })},
		{"a number as text", `{` + content + `,"Signature":{"Type":"5"}}`, with(func(s *seen) { s.Type = "5" })},
		{"lower case and order", `{"signature":{"pincode":"p","parameters":{"Hash":false,"IsDetached":"True","SignatureIndex":2,"TSPAddress":"","x":null},"certificateid":0,"type":"CAdES"},"content":"RE9D"}`,
			seen{Type: "CAdES", Certificate: "0", PIN: "p", Content: "DOC", Login: "login1",
				Params: map[string]string{"Hash": "false", "IsDetached": "True", "SignatureIndex": "2", "TSPAddress": ""}}},
		{"a name and an empty list beside it", `{"Name":"a.txt","Documents":[],"Document":"",` + content + `,"Signature":{"Type":"GOST3410"},"UserContactInfo":{"a":[1]}}`, simple},
		{"documents null", `{"Documents":null,` + content + `,"Signature":{"Type":"GOST3410"}}`, simple},
		{"a space behind a key", `{` + content + `,"Signature":{"Type":"GOST3410","Parameters":{"PdfSignatureTemplateId ":"1"}}}`,
			with(func(s *seen) { s.Params = map[string]string{"PdfSignatureTemplateId": "1"} })},
		{"an original", `{` + content + `,"Signature":{"Type":"GOST3410","Parameters":{"originaldocument":"T1JH"}}}`, with(func(s *seen) { s.Original = "ORG" })},
		{"attributes as an object", `{` + content + `,"Signature":{"Type":"GOST3410","Parameters":{"authenticatedAttributes":{"1.2.3" : "QQ==", "1.2.4":"Qg==", "x":["\u00e9\n",{"y":null}, -1.5e3,true,false]}}}}`,
			with(func(s *seen) {
				s.Params = map[string]string{"authenticatedAttributes": `{"1.2.3":"QQ==","1.2.4":"Qg==","x":["é\n",{"y":null},-1.5e3,true,false]}`}
			})},
		{"an empty original", `{` + content + `,"Signature":{"Type":"GOST3410","Parameters":{"OriginalDocument":""}}}`, simple},
		{"a large original before a large content", `{"Signature":{"Parameters":{"OriginalDocument":"` + large64 + `"},"Type":"GOST3410"},"Content":"` + large64 + `"}`,
			with(func(s *seen) { s.Original, s.Content = large, large })},
	} {
		for _, path := range []string{"/SignServer/api/documents", "/SignServer/rest/api/documents/"} {
			h.signer.order = nil
			status, body := h.ask(t, "POST", path, "1", strings.NewReader(c.body))
			if want := `"` + base64.StdEncoding.EncodeToString([]byte("signed:"+c.want.Content)) + `"`; status != 200 || body != want {
				t.Errorf("%s: got %d %.200s", c.name, status, body)
				continue
			}
			if d := cmp.Diff(&c.want, h.signer.order); d != "" {
				t.Errorf("%s: %s", c.name, d)
			}
		}
	}
}

func TestSignBadInput(t *testing.T) {
	h := open(t, nil)
	const signature = `"Signature":{"Type":"GOST3410","Parameters":{"Hash":"False"},"CertificateId":0,"PinCode":""}`
	const content = `"Content":"RE9D"`
	long := strings.Repeat("QUJD", 100_000)
	var many strings.Builder
	for i := range 30 {
		fmt.Fprintf(&many, `"k%d":"%s",`, i, long[:60_000])
	}
	params := func(p string) string { return `{` + content + `,"Signature":{"Type":1,"Parameters":{` + p + `}}}` }
	for _, c := range []struct{ name, body, code, says string }{
		{"empty body", ``, fault.ContentRequired, "Content"},
		{"no content", `{` + signature + `}`, fault.ContentRequired, "Content"},
		{"null content", `{"Content":null,` + signature + `}`, fault.ContentRequired, "Content"},
		{"empty content", `{"Content":"",` + signature + `}`, fault.ContentRequired, "Content"},
		{"broken Base64", `{"Content":"RE9D*",` + signature + `}`, fault.InvalidContent, "Content is not Base64"},
		{"broken in the middle of a large one", `{"Content":"` + long + "!" + long + `",` + signature + `}`, fault.InvalidContent, "character 400001"},
		{"padding in the middle", `{"Content":"` + long + "QQ==" + long + `",` + signature + `}`, fault.InvalidContent, "character 400005"},
		{"truncated Base64", `{"Content":"` + long + "QQ" + `",` + signature + `}`, fault.InvalidContent, "character 400003"},
		{"content true", `{"Content":true,` + signature + `}`, fault.InvalidContent, "must be a string"},
		{"content object", `{"Content":{},` + signature + `}`, fault.InvalidContent, "must be a string"},
		{"broken JSON", `{"Content":"RE9D",` + signature + `,}`, fault.InvalidParameters, "not valid JSON"},
		{"truncated JSON", `{"Content":"RE9D",` + signature, fault.InvalidParameters, "ends too early"},
		{"truncated document", `{` + signature + `,"Content":"` + long, fault.InvalidParameters, "ends too early"},
		{"trailing garbage", `{"Content":"RE9D",` + signature + `}}`, fault.InvalidParameters, "goes on"},
		{"nests without end", `{"Content":"RE9D","Signature":` + strings.Repeat(`{"Parameters":`, 100_000), fault.InvalidParameters, "nests deeper"},
		{"nests without end unread", `{"Content":"RE9D","x":` + strings.Repeat(`[`, 100_000), fault.InvalidParameters, "nests deeper"},
		{"not an object", `[]`, fault.InvalidParameters, "must be an object"},
		{"content twice", `{"Content":"RE9D","content":"RE9D",` + signature + `}`, fault.InvalidParameters, "Content is given twice"},
		{"signature a text", `{` + content + `,"Signature":"x"}`, fault.InvalidParameters, "Signature must be an object"},
		{"a batch beside a document", `{"Documents":[{"Content":"` + long + `","Name":"a","OriginalContent":"QQ=="}],` + content + `,` + signature + `}`, fault.InvalidParameters, "both given"},
		{"a batch that is no list", `{"Documents":{},` + content + `,` + signature + `}`, fault.InvalidParameters, "Documents must be an array"},
		{"a batch of texts", `{"Documents":["QQ=="],` + signature + `}`, fault.InvalidParameters, "Documents[0] must be an object"},
		{"a batch without a signature", `{"Documents":[{"Content":"QQ=="}]}`, fault.InvalidSignatureParams, "Signature is missing"},
		{"attributes without end", params(`"AuthenticatedAttributes":{"1.2":"` + long + `"}`), fault.InvalidParameters, "AuthenticatedAttributes must be an object of at most"},
		{"no signature", `{` + content + `}`, fault.InvalidSignatureParams, "Signature"},
		{"parameters a list", `{` + content + `,"Signature":{"Type":1,"Parameters":[]}}`, fault.InvalidParameters, "Signature.Parameters must be an object"},
		{"parameter an object", params(`"Hash":{}`), fault.InvalidSignatureParams, "Signature.Parameters.Hash must be"},
		{"parameter a document", params(`"TSPAddress":"` + long + `"`), fault.InvalidSignatureParams, "Signature.Parameters.TSPAddress must be a string of at most 65536"},
		{"a key in two spellings", params(`"Hash":"True","hash":"False"`), fault.InvalidParameters, "Signature.Parameters.hash is given twice"},
		{"two originals", params(`"OriginalDocument":"QQ==","originalDocument":"QQ=="`), fault.InvalidParameters, "given twice"},
		{"broken original", params(`"OriginalDocument":"` + long + `*"`), fault.InvalidContent, "Signature.Parameters.OriginalDocument is not Base64"},
		{"parameters without end", params(many.String() + `"z":1`), fault.TooLarge, "holds more"},
	} {
		status, body := h.ask(t, "POST", "/SignServer/api/documents", "1", strings.NewReader(c.body))
		var f rest.Failure
		if err := json.Unmarshal([]byte(body), &f); err != nil {
			t.Errorf("%s: %d %s", c.name, status, body)
			continue
		}
		want := 400
		if c.code == fault.TooLarge {
			want = 413
		}
		if status != want || f.Error != c.code || f.Message != c.code || !strings.Contains(f.Description, c.says) {
			t.Errorf("%s: got %d %s", c.name, status, body)
		}
		if h.signer.order != nil {
			t.Errorf("%s: signed", c.name)
		}
	}
	h.signer.err = fault.New(fault.InvalidPIN, "wrong")
	if status, body := h.ask(t, "POST", "/SignServer/api/documents", "1", strings.NewReader(`{`+content+`,`+signature+`}`)); status != 400 || !strings.Contains(body, "invalid_pin") {
		t.Errorf("PIN: %d %s", status, body)
	}
}

// request64 gives n characters of Base64 between a head and a tail.
func request64(head string, n int64, tail string) io.Reader {
	return io.MultiReader(strings.NewReader(head), io.LimitReader(&repeated{text: []byte(strings.Repeat("QUJD", 4096))}, n), strings.NewReader(tail))
}

type repeated struct {
	text []byte
	at   int
}

func (r *repeated) Read(p []byte) (int, error) {
	n := copy(p, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}

// zeros is a result of a given length.
type zeros int64

func (z zeros) Size() int64 { return int64(z) }
func (z zeros) WriteTo(w io.Writer) (int64, error) {
	block := make([]byte, 32<<10)
	for left := int64(z); left > 0; {
		n, err := w.Write(block[:min(left, int64(len(block)))])
		if left -= int64(n); err != nil {
			return int64(z) - left, err
		}
	}
	return int64(z), nil
}

// A document of 256 MiB in Base64 goes in and comes out in the memory of a few
// buffers, client included.
func TestSignHoldsNoDocument(t *testing.T) {
	const encoded = 256 << 20
	h := open(t, nil)
	h.signer.give = zeros(encoded / 4 * 3)
	r, err := http.NewRequest("POST", h.URL+"/SignServer/api/documents",
		request64(`{"Signature":{"Type":1},"Content":"`, encoded, `"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer 1")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	resp, err := h.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	runtime.ReadMemStats(&after)
	if err != nil || resp.StatusCode != 200 || n != encoded+2 {
		t.Fatalf("%d, %d bytes, %v", resp.StatusCode, n, err)
	}
	// The last small pieces wait for more, or for a reader.
	if f := h.spool.files[0]; len(h.spool.files) != 1 || f.n > encoded/4*3 || f.n < encoded/4*3-64<<10 {
		t.Fatalf("spooled %d bytes in %d files", f.n, len(h.spool.files))
	}
	// All that was ever allocated, so that no garbage collection can hide any.
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20 {
		t.Errorf("a request of %d MiB took %d KiB of memory", encoded>>20, grown>>10)
	} else {
		t.Logf("took %d KiB of memory", grown>>10)
	}
}

func TestCertificates(t *testing.T) {
	subject, err := x509gost.BuildName([]x509gost.Attribute{{OID: x509gost.OIDCommonName, Value: "Анна"}})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	own := certificates{
		{ID: 1, X509: &x509gost.Certificate{Raw: []byte{1, 2, 3}, Subject: subject, Suite: suite.GOST2012x256, PrivateKeyNotAfter: at}, Default: true, HasPIN: true, Status: keys.Active, FriendlyName: "mine"},
		{ID: 2, X509: &x509gost.Certificate{Raw: []byte{4}}, Status: keys.Revoked, RevokedAt: at, Reason: 1},
	}
	h := open(t, own)
	first := `{"ID":1,"DName":"CN=Анна","CertificateBase64":"AQID","Status":{"Value":"ACTIVE","RevocationInfo":null,"PinCode":null,"ActiveCertId":0},"IsDefault":true,"HasPin":true,` +
		`"CertificateAuthorityID":1,"CspID":"` + providers[0].group + `","HashAlgorithms":["GR 34.11-2012 256"],"ProviderName":"Tamga GOST R 34.10-2012","ProviderType":80,"PrivateKeyNotBefore":null,"PrivateKeyNotAfter":"2026-11-21T10:00:00Z","FriendlyName":"mine","CertificateType":"ServerSide"}`
	second := `{"ID":2,"DName":"","CertificateBase64":"BA==","Status":{"Value":"REVOKED","RevocationInfo":{"ApproveDate":null,"DistName":null,"RequestDate":null,"RevocationComments":null,"RevocationDate":"2026-11-21T10:00:00Z","RevocationReason":"CRL_REASON_KEY_COMPROMISE","SignedRequest":null,"UnholdAction":null,"UnholdDate":null},"PinCode":null,"ActiveCertId":0},"IsDefault":false,"HasPin":false,` +
		`"CertificateAuthorityID":1,"CspID":"` + providers[0].group + `","HashAlgorithms":[],"ProviderName":null,"ProviderType":0,"PrivateKeyNotBefore":null,"PrivateKeyNotAfter":null,"FriendlyName":"","CertificateType":"ServerSide"}`
	for _, c := range []struct {
		path, user string
		status     int
		want       string
	}{
		{"/SignServer/api/certificates", "1", 200, "[" + first + "," + second + "]"},
		{"/SignServer/rest/api/certificates/", "1", 200, "[" + first + "," + second + "]"},
		{"/SignServer/api/certificates", "2", 200, "[]"},
		{"/SignServer/api/certificates/2", "1", 200, second},
		{"/SignServer/api/certificates/2", "2", 400, `{"Message":"invalid_certificate","error":"invalid_certificate","error_description":"no such certificate"}`},
		{"/SignServer/api/certificates/9", "1", 400, `{"Message":"invalid_certificate","error":"invalid_certificate","error_description":"no such certificate"}`},
	} {
		status, body := h.ask(t, "GET", c.path, c.user, nil)
		if status != c.status {
			t.Errorf("%s: got %d %s", c.path, status, body)
		}
		if d := cmp.Diff(c.want, body); d != "" {
			t.Errorf("%s: %s", c.path, d)
		}
	}
	for identifier, want := range map[string]string{"": "default certificate", " 0": "default certificate", "12": "certificate 12", "x": "", strings.Repeat("1", 20): ""} {
		if got := certificateObject(identifier); got != want {
			t.Errorf("%q: got %q", identifier, got)
		}
	}
}

// TestNameOnce: a name in a text has each part once, as JSON and as RFC 4514.
func TestNameOnce(t *testing.T) {
	for text, want := range map[string]int{`{"CN":"a","O":"b"}`: 2, `CN=a,O=b`: 2, `{"CN":"a","cn":"b"}`: 0, `{"CN":"a","CN":"a"}`: 0, `CN=a,CN=b`: 0, `{"CN":1}`: 0, `{}x`: 0} {
		if name, err := readName(text); len(name) != want || (err == nil) != (want > 0) {
			t.Errorf("%s is %v, %v", text, name, err)
		}
	}
}
