// SPDX-License-Identifier: Apache-2.0

package signapi_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"tamga/internal/tamgatest"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/cades"
	"tamga/sig/ooxml"
	"tamga/sig/pdf"
	"tamga/sig/raw"
	"tamga/sig/xmldsig"
)

type operationBody struct{ Operation typedOperation }

// v2 is a client of operations.
type v2 struct {
	*tamgatest.Server
	t      testing.TB
	bearer string
}

func (c *v2) send(method, url string, body any, header ...string) (int, []byte) {
	c.t.Helper()
	var text []byte
	switch b := body.(type) {
	case nil:
	case string:
		text = []byte(b)
	default:
		var err error
		if text, err = json.Marshal(b); err != nil {
			c.t.Fatal(err)
		}
	}
	request, err := http.NewRequestWithContext(context.Background(), method, url, bytes.NewReader(text))
	if err != nil {
		c.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+c.bearer)
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	return tamgatest.ReadAll(c.t, response)
}

func (c *v2) sign(body any, header ...string) (int, []byte) {
	c.t.Helper()
	return c.send("POST", c.Dev.BaseURL+"/api/v2/signature/", body, header...)
}

// operation signs and wants an operation.
func (c *v2) operation(body any, header ...string) typedOperation {
	c.t.Helper()
	status, text := c.sign(body, header...)
	if status != 200 {
		c.t.Fatalf("%d %s", status, text)
	}
	return typed[operationBody](c.t, text).Operation
}

// refusal signs and wants an error of a code.
func (c *v2) refusal(want string, body any) string {
	c.t.Helper()
	status, text := c.sign(body)
	var f struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if err := json.Unmarshal(text, &f); err != nil || status < 400 || f.Error != want {
		c.t.Errorf("answered %d %.300s, want %s", status, text, want)
	}
	return f.Description
}

func (c *v2) info(id uuid.UUID) typedInfo {
	c.t.Helper()
	status, text := c.send("GET", c.Dev.IDPURL+"/operations/"+id.String(), nil)
	if status != 200 {
		c.t.Fatalf("%d %s", status, text)
	}
	return typed[typedInfo](c.t, text)
}

// upload stores a document.
func (c *v2) upload(name string, content []byte) string {
	c.t.Helper()
	info := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"Filename":%q}`, name))
	status, text := c.send("POST", c.Dev.DocumentsURL+"/api/documents", string(content), "CPDSS-POSTDOC", info, "Content-Type", "application/octet-stream")
	var answer struct {
		DocumentID string `json:"DocumentId"`
	}
	if err := json.Unmarshal(text, &answer); status != 200 || err != nil || answer.DocumentID == "" {
		c.t.Fatalf("%d %s", status, text)
	}
	return answer.DocumentID
}

func (c *v2) content(id string) []byte {
	c.t.Helper()
	status, text := c.send("GET", c.Dev.DocumentsURL+"/api/documents/"+id+"/content", nil)
	if status != 200 {
		c.t.Fatalf("%d %s", status, text)
	}
	return text
}

func (c *v2) stored() int {
	c.t.Helper()
	status, text := c.send("GET", c.Dev.DocumentsURL+"/api/documents/user/docinfo/all", nil)
	var list []json.RawMessage
	if err := json.Unmarshal(text, &list); status != 200 || err != nil {
		c.t.Fatalf("%d %s", status, text)
	}
	return len(list)
}

func openV2(t testing.TB, dir string, more ...string) *v2 {
	t.Helper()
	p := tamgatest.StartIn(t, dir, more...)
	return &v2{p, t, p.Token()}
}

// openV2Process is openV2 for servers that are killed.
func openV2Process(t testing.TB, dir string, more ...string) *v2 {
	t.Helper()
	p := tamgatest.StartProcess(t, dir, more...)
	return &v2{p, t, p.Token()}
}

// again starts the server once more over the same directory and address, after a power cut.
func (c *v2) again(more ...string) *v2 {
	c.t.Helper()
	c.Kill()
	p := tamgatest.StartProcess(c.t, c.Dir, append([]string{"--listen", strings.TrimPrefix(c.URL, "http://")}, more...)...)
	return &v2{p, c.t, c.bearer}
}

// good says that a document has valid signatures and nothing else.
func good(t testing.TB, f sig.Format, c *v2, document, original []byte) {
	t.Helper()
	authorities := certificatesOf(t, c.Path("ca.pem"))
	check := &sig.Check{
		Document: bytes.NewReader(document), At: time.Now(), Roots: authorities, Intermediates: authorities,
		Certificate: certificatesOf(t, c.Path(c.Cert("gost2012-256", false).PEM))[0],
	}
	if original != nil {
		check.Original = bytes.NewReader(original)
	}
	r, err := f.Verify(t.Context(), check)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Passed() || len(r.Signatures) != 1 {
		t.Errorf("not valid: %+v", r)
	}
}

func certificatesOf(t testing.TB, file string) []*x509gost.Certificate {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	list, err := x509gost.ParseCertificates(data)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

type fields = map[string]any

func inline(name string, content []byte) fields {
	return fields{"Content": content, "ContentInfo": name}
}

func TestV2Types(t *testing.T) {
	t.Parallel()
	c := openV2(t, t.TempDir())
	cms := cades.New()
	plain := []byte("a document")
	xml := []byte("<a><b>text</b></a>")
	office, page := tamgatest.DOCXOf(t, 100), tamgatest.PDFOf(100)
	for _, row := range []struct {
		name, kind string
		parameters fields
		document   []byte
		original   []byte
		format     sig.Format
		result     string
	}{
		{"raw", "GOST3410", fields{"Hash": "False"}, plain, plain, raw.New(), "file #001.sig"},
		{"attached", "CAdES", fields{"CADESType": "BES", "IsDetached": "False"}, plain, nil, cms, "file #001.sig"},
		{"detached", "CAdES", fields{"CADESType": 0, "IsDetached": true}, plain, plain, cms, "file #001.sig"},
		{"T", "CAdES", fields{"CADESType": "T", "TSPAddress": c.Dev.TSPURL}, plain, nil, cms, "file #001.sig"},
		{"XLT1", "CAdES", fields{"CADESType": "XLT1", "TSPAddress": c.Dev.TSPURL}, plain, nil, cms, "file #001.sig"},
		{"CMS", "CMS", fields{}, plain, nil, cms, "file #001.sig"},
		{"XML", "XMLDSig", fields{"XMLDsigType": "XMLEnveloped"}, xml, nil, xmldsig.New(), "file #001"},
		{"Office", "MSOffice", fields{}, office, nil, ooxml.New(), "file #001"},
		{"PDF", "PDF", fields{"PDFFormat": "CMS"}, page, nil, &pdf.Format{CMS: cms}, "file #001"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := &v2{c.Server, t, c.bearer}
			signature := fields{"Type": row.kind, "Parameters": row.parameters, "CertificateId": "0", "PinCode": ""}
			o := c.operation(fields{"BinaryData": []fields{inline("file #001", row.document)}, "Signature": signature})
			d := o.Result.ProcessedDocuments[0]
			if o.Status != "Completed" || o.Error != nil || o.UserLogin != "demo" || o.UserID.String() != c.Dev.User.ID || d.Status != "Completed" ||
				d.RefID != nil || d.OriginalRefID != nil || *d.OriginalContentInfo != "file #001" || *d.ContentInfo != row.result || d.Error != nil {
				t.Errorf("%+v %+v", o, d)
			}
			if left := o.ExpirationDate - time.Now().Unix(); left < 1100 || left > 1200 {
				t.Errorf("expires in %d s", left)
			}
			good(t, row.format, c, d.Content, row.original)

			ref := c.upload("file.bin", row.document)
			o = c.operation(fields{"binaryData": []fields{{"refId": ref}}, "signature": signature})
			d = o.Result.ProcessedDocuments[0]
			if d.Status != "Completed" || d.Content != nil || d.RefID == nil || d.OriginalRefID.String() != ref || *d.OriginalContentInfo != "file.bin" {
				t.Fatalf("%+v", d)
			}
			good(t, row.format, c, c.content(d.RefID.String()), row.original)
			info := c.info(o.ID)
			if info.State != "Completed" || len(info.Actions) != 1 || *info.Actions[0].ResultValue != d.RefID.String() || info.Actions[0].State != "Executed" ||
				info.Actions[0].Status != "Approved" || info.CompletedAt == nil || info.Type != "SignDocument" || info.IsAsync {
				t.Errorf("%+v", info)
			}
		})
	}
}

func TestV2DocumentsAndErrors(t *testing.T) {
	t.Parallel()
	c := openV2(t, t.TempDir())
	signature := fields{"Type": "CMS", "CertificateId": 0}
	ref := c.upload("kept.txt", []byte("kept"))
	foreign := uuid.NewString()
	o := c.operation(fields{"BinaryData": []fields{
		inline("a.txt", []byte("first")), {"RefId": ref}, {"RefId": foreign}, {"Content": "%%%", "ContentInfo": "broken"}, inline("", []byte("last")),
	}, "Signature": signature})
	var got []string
	for _, d := range o.Result.ProcessedDocuments {
		code := "-"
		if d.Error != nil {
			code = *d.Error
		}
		got = append(got, fmt.Sprintf("%s %s content:%t ref:%t", d.Status, code, d.Content != nil, d.RefID != nil))
	}
	want := []string{
		"Completed - content:true ref:false", "Completed - content:false ref:true", "Error object_not_found content:false ref:false",
		"Error invalid_content content:false ref:false", "Completed - content:true ref:false",
	}
	if o.Status != "Completed" || o.Error != nil || !slices.Equal(got, want) {
		t.Errorf("%s\n got %q\nwant %q", o.Status, got, want)
	}
	for code, body := range map[string]any{
		"invalid_operation":          "{}",
		"content_required":           fields{"BinaryData": []fields{{}}, "Signature": signature},
		"invalid_signature_params":   fields{"BinaryData": []fields{inline("a", []byte("x"))}, "Signature": fields{"Type": "CAdES", "Parameters": fields{"CADESType": "?"}}},
		"invalid_certificate":        fields{"BinaryData": []fields{inline("a", []byte("x"))}, "Signature": fields{"Type": "CMS", "CertificateId": 999}},
		"invalid_pin":                fields{"BinaryData": []fields{inline("a", []byte("x"))}, "Signature": fields{"Type": "CMS", "CertificateId": c.Cert("gost2012-256", true).ID, "PinCode": "?"}},
		"object_not_found":           fields{"BinaryData": []fields{{"RefId": foreign}}, "Signature": signature},
		"authn_method_not_confirmed": fields{"BinaryData": []fields{inline("a", []byte("x"))}, "Signature": signature, "ForceConfirmation": true},
		"invalid_parameters":         fields{"BinaryData": []fields{inline("a", []byte("x"))}, "Signature": signature, "isAsync": true},
	} {
		c.refusal(code, body)
	}
	c.refusal("invalid_operation", fields{"Signature": fields{"PinCode": "1"}})
	c.refusal("content_required", fields{"Signature": signature})
	c.refusal("invalid_parameters", fields{"BinaryData": []fields{inline("a", []byte("x"))}, "Signature": signature, "Callback": "https://example.org/"})
	c.refusal("invalid_signature_params", fields{"BinaryData": []fields{inline("a", []byte("x"))}})

	// Cosigning by reference: the message is one stored document, what it signs another.
	detached := c.operation(fields{"BinaryData": []fields{{"RefId": ref}}, "Signature": fields{"Type": "CAdES", "Parameters": fields{"IsDetached": "True"}}})
	message := detached.Result.ProcessedDocuments[0].RefID.String()
	both := c.operation(fields{"BinaryData": []fields{{"RefId": message, "RelatedRefId": ref}}, "Signature": fields{
		"Type": "CAdES", "Parameters": fields{"CmsSignatureType": "Cosign", "IsDetached": "True"}, "CertificateId": c.Cert("gost2012-512", false).ID,
	}})
	r, err := cades.New().Verify(t.Context(), &sig.Check{
		Document: bytes.NewReader(c.content(both.Result.ProcessedDocuments[0].RefID.String())), Original: strings.NewReader("kept"),
		Roots: certificatesOf(t, c.Path("ca.pem")), At: time.Now(),
	})
	if err != nil || len(r.Signatures) != 2 {
		t.Errorf("%v, %+v", err, r)
	}

	// Operations of others and those that are not there are one and the same.
	operator := &v2{c.Server, t, c.TokenOf(c.Dev.Operator.Login, c.Dev.Operator.Password)}
	for _, call := range []struct{ method, path string }{
		{"GET", ""}, {"POST", "/cancel"}, {"DELETE", ""},
	} {
		one, first := operator.send(call.method, c.Dev.IDPURL+"/operations/"+o.ID.String()+call.path, nil)
		two, second := operator.send(call.method, c.Dev.IDPURL+"/operations/"+uuid.NewString()+call.path, nil)
		if one != 404 || two != 404 || !bytes.Equal(first, second) {
			t.Errorf("%s%s: %d %s, %d %s", call.method, call.path, one, first, two, second)
		}
	}
	if status, text := c.send("DELETE", c.Dev.IDPURL+"/operations/"+o.ID.String(), nil); status != 400 || !strings.Contains(string(text), "wrong_operation") {
		t.Errorf("cancelling what is over: %d %s", status, text)
	}
	if status, text := c.send("GET", c.Dev.IDPURL+"/operations", nil); status != 200 || string(text) != "[]" {
		t.Errorf("%d %s", status, text)
	}
	for _, path := range []string{"/api/v2/signature", "/rest/api/v2/signature", "/rest/api/v2/signature/"} {
		if status, text := c.send("POST", c.Dev.BaseURL+path, fields{"BinaryData": []fields{inline("a", []byte("x"))}, "Signature": signature}); status != 200 {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}

func TestV2Templates(t *testing.T) {
	t.Parallel()
	c := openV2(t, t.TempDir(), "--set", `operations.templates=[{id: "7", rules: [{extensions: [xml], type: XMLDSig, parameters: {XMLDsigType: XMLEnveloped}}, {type: CAdES, parameters: {IsDetached: "True"}}]}]`)
	for _, where := range []fields{
		{"Signature": fields{"CertificateId": 0, "ProcessingTemplateId": "7"}},
		{"ProcessingTemplateId": 7},
	} {
		where["BinaryData"] = []fields{inline("A.XML #001", []byte("<a/>")), inline("b.txt", []byte("text"))}
		o := c.operation(where)
		good(t, xmldsig.New(), c, o.Result.ProcessedDocuments[0].Content, nil)
		good(t, cades.New(), c, o.Result.ProcessedDocuments[1].Content, []byte("text"))
	}
	c.refusal("invalid_signature_params", fields{"BinaryData": []fields{inline("a", []byte("x"))}, "ProcessingTemplateId": 8})
}

// receiver is a server that operations are reported to.
type receiver struct {
	*httptest.Server
	calls chan typedOperation
	key   []byte
	mu    sync.Mutex
	fail  int // how many calls to refuse
}

func newReceiver(t *testing.T, key []byte) *receiver {
	r := &receiver{calls: make(chan typedOperation, 100), key: key}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			return
		}
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.%s", q.Header.Get("Webhook-Id"), q.Header.Get("Webhook-Timestamp"), body)
		if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); q.Header.Get("Webhook-Signature") != want {
			t.Errorf("the signature of a callback is %q, want %q", q.Header.Get("Webhook-Signature"), want)
		}
		r.mu.Lock()
		refuse := r.fail > 0
		r.fail--
		r.mu.Unlock()
		if refuse {
			w.WriteHeader(500)
			return
		}
		o := typed[operationBody](t, body).Operation
		if o.ID.String() != q.Header.Get("Webhook-Id") {
			t.Errorf("the callback of %s is named %s", o.ID, q.Header.Get("Webhook-Id"))
		}
		r.calls <- o
	}))
	t.Cleanup(r.Close)
	return r
}

// asynchronous are the settings of a server with asynchronous operations.
func asynchronous(t *testing.T, dir string) (key []byte, settings []string) {
	t.Helper()
	key = bytes.Repeat([]byte{0x5a}, 32)
	tamgatest.WriteFile(t, filepath.Join(dir, "callback.secret"), "whsec_"+base64.StdEncoding.EncodeToString(key))
	return key, []string{
		"--set", "operations.async=true", "--set", "operations.lease=2s", "--set", "repetitions.lease=2s",
		"--set", "operations.callbacks.secret_file=callback.secret", "--set", "operations.callbacks.plain_http=true",
		"--set", "operations.callbacks.allow_networks=[127.0.0.1]",
	}
}

func TestV2Asynchronous(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key, settings := asynchronous(t, dir)
	c := openV2(t, dir, settings...)
	r := newReceiver(t, key)
	r.fail = 1
	pin := c.Cert("gost2012-256", true)
	ref := c.upload("kept.txt", []byte("kept"))
	o := c.operation(fields{
		"BinaryData": []fields{{"RefId": ref}, inline("a.txt", []byte("inline"))}, "IsAsync": true, "Callback": r.URL + "/done",
		"Signature": fields{"Type": "CMS", "CertificateId": pin.ID, "PinCode": pin.PIN},
	})
	if o.Status != "Processing" || o.Result.ProcessedDocuments[0].Status != "InProgress" {
		t.Errorf("%+v", o)
	}
	var called typedOperation
	select {
	case called = <-r.calls:
	case <-time.After(tamgatest.Patience):
		t.Fatalf("no callback came\n%s", c.Logged())
	}
	if called.ID != o.ID || called.Status != "Completed" {
		t.Errorf("%+v", called)
	}
	good(t, cades.New(), c, c.content(called.Result.ProcessedDocuments[0].RefID.String()), nil)
	good(t, cades.New(), c, called.Result.ProcessedDocuments[1].Content, nil)
	status, text := c.send("GET", c.Dev.BaseURL+"/api/v2/signature/"+o.ID.String(), nil)
	if again := typed[operationBody](t, text).Operation; status != 200 || !bytes.Equal(again.Result.ProcessedDocuments[1].Content, called.Result.ProcessedDocuments[1].Content) {
		t.Errorf("%d: asked for, the result is another", status)
	}
	if info := c.info(o.ID); !info.IsAsync || info.State != "Completed" || *info.Callback != r.URL+"/done" {
		t.Errorf("%+v", info)
	}
	for _, address := range []string{"http://10.0.0.1/", "http://[::1]/", "http://169.254.169.254/", "file:///etc/passwd", "http://u:p@example.org/"} {
		c.refusal("invalid_parameters", fields{"BinaryData": []fields{inline("a", []byte("x"))}, "Signature": fields{"Type": "CMS"}, "Callback": address})
	}

	// A wrong PIN is found out when its turn comes.
	o = c.operation(fields{
		"BinaryData": []fields{inline("a.txt", []byte("inline"))}, "IsAsync": "true", "Callback": r.URL,
		"Signature": fields{"Type": "CMS", "CertificateId": pin.ID, "PinCode": "wrong"},
	})
	select {
	case called = <-r.calls:
	case <-time.After(tamgatest.Patience):
		t.Fatal("no callback came")
	}
	if called.ID != o.ID || called.Status != "Error" || *called.Error != "invalid_pin" || called.Result.ProcessedDocuments[0].Status != "Error" {
		t.Errorf("%+v", called)
	}
	// The PIN and the body are nowhere in the database or the log.
	for _, name := range []string{"tamga.db", "tamga.db-wal"} {
		if data, err := os.ReadFile(c.Path(name)); err == nil && bytes.Contains(data, []byte(`"wrong"`)) {
			t.Errorf("%s holds a PIN", name)
		}
	}
}

// Killed again and again while operations are carried out: each ends once, with one
// result, and none is lost.
func TestV2KilledWhileAsynchronous(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key, settings := asynchronous(t, dir)
	c := openV2Process(t, dir, settings...)
	r := newReceiver(t, key)
	cert := c.Cert("rsa-2048", false)
	var ids []uuid.UUID
	const inputs = 3
	before := 0
	for range 3 {
		for range 8 {
			data := []fields{}
			for i := range inputs {
				data = append(data, fields{"RefId": c.upload(fmt.Sprint(i), []byte("kept"))})
				before++
			}
			o := c.operation(fields{"BinaryData": data, "IsAsync": true, "Callback": r.URL, "Signature": fields{"Type": "CMS", "CertificateId": cert.ID}})
			ids = append(ids, o.ID)
		}
		c = c.again(settings...)
	}
	// What is called back is over, and is so for everybody: no need to ask until it is.
	told := map[uuid.UUID]typedOperation{}
	for len(told) < len(ids) {
		select {
		case o := <-r.calls:
			if before, again := told[o.ID]; again && !cmp.Equal(before, o) {
				t.Errorf("callbacks of %s differ: %+v, %+v", o.ID, before, o)
			}
			told[o.ID] = o
		case <-time.After(tamgatest.Patience):
			t.Fatalf("%d of %d callbacks came\n%s", len(told), len(ids), c.Logged())
		}
	}
	results := map[string]uuid.UUID{}
	for _, id := range ids {
		o, info := told[id], c.info(id)
		if info.State != "Completed" || o.Status != "Completed" || len(info.Actions) != inputs || len(o.Result.ProcessedDocuments) != inputs {
			t.Fatalf("%+v, %+v", info, o)
		}
		for i, a := range info.Actions {
			results[*a.ResultValue] = id
			if d := o.Result.ProcessedDocuments[i]; d.RefID == nil || d.RefID.String() != *a.ResultValue {
				t.Errorf("the callback of %s names the result %s, the operation %s", id, d.RefID, *a.ResultValue)
			}
		}
	}
	if n := c.stored(); len(results) != inputs*len(ids) || n != before+len(results) {
		t.Errorf("%d results of %d documents, %d documents in the store", len(results), inputs*len(ids), n)
	}
}

func TestV2Cancel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, settings := asynchronous(t, dir)
	// Time stamps from a service that does not answer keep an operation under way.
	hang := make(chan struct{})
	stuck := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}))
	defer stuck.Close()
	defer close(hang)
	settings = append(settings, "--set", "evidence.tsp_services=[{name: stuck, url: '"+stuck.URL+"'}]", "--set", "evidence.allow_networks=[127.0.0.1]",
		"--set", "evidence.stamp_timeout=30s", "--set", "evidence.total_timeout=30s")
	c := openV2(t, dir, settings...)
	ref := c.upload("kept", []byte("kept"))
	body := fields{"BinaryData": []fields{{"RefId": ref}}, "IsAsync": true, "Signature": fields{"Type": "CAdES", "Parameters": fields{"CADESType": "T", "TSPAddress": stuck.URL}}}
	for _, call := range []struct{ method, path string }{{"POST", "/cancel"}, {"DELETE", ""}} {
		o := c.operation(body)
		status, text := c.send("GET", c.Dev.IDPURL+"/operations", nil)
		if list := typed[[]typedInfo](t, text); status != 200 || len(list) != 1 || list[0].ID != o.ID || list[0].State != "Confirmed" || list[0].Actions[0].State != "Pending" {
			t.Errorf("%d %s", status, text)
		}
		for range 2 { // cancelling again changes nothing
			status, text := c.send(call.method, c.Dev.IDPURL+"/operations/"+o.ID.String()+call.path, nil)
			if info := typed[typedInfo](t, text); status != 200 || info.State != "Cancelled" || info.Status != "Error" || info.Actions[0].ResultValue != nil {
				t.Errorf("%d %s", status, text)
			}
		}
	}
	if n := c.stored(); n != 1 {
		t.Errorf("%d documents are stored", n)
	}
}
