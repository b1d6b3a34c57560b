// SPDX-License-Identifier: Apache-2.0

package tokenapi_test

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tamga/gost/streebog"
	"tamga/internal/judge"
	"tamga/internal/tamgatest"
	"tamga/pki/cms"
	"tamga/pki/x509gost"
)

type object = map[string]any

// decrypting are the texts and the certificates of a test of encryption.
type decrypting struct {
	*confirming
	token string
	text  []byte
}

// startDecrypting starts a server whose user confirms by codes.
func startDecrypting(t *testing.T, database string, settings ...string) *decrypting {
	t.Helper()
	c, token := demoConfirms(t, database, settings...)
	return &decrypting{c, token, bytes.Repeat([]byte("A line of the document.\n"), 5000)}
}

// certificate returns a certificate of the user, DER.
func (d *decrypting) certificate(suite string, withPIN bool) []byte {
	d.T.Helper()
	text, err := os.ReadFile(filepath.Join(d.Dir, d.Cert(suite, withPIN).PEM))
	if err != nil {
		d.T.Fatal(err)
	}
	block, _ := pem.Decode(text)
	return block.Bytes
}

// encrypt encrypts the text by v1.
func (d *decrypting) encrypt(parameters object, certificates ...[]byte) []byte {
	d.T.Helper()
	return d.Signed("POST", "/rest/api/documents/encrypt", d.token, object{"Content": d.text, "Encryption": object{"Type": 0, "Certificates": certificates, "Parameters": parameters}})
}

// send sends a request and returns the answer with its header.
func (d *decrypting) send(method, path, token string, body any) (int, http.Header, []byte) {
	d.T.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		d.T.Fatal(err)
	}
	request, err := http.NewRequestWithContext(d.T.Context(), method, d.URL+"/SignServer"+path, bytes.NewReader(text))
	if err != nil {
		d.T.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		d.T.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		d.T.Fatal(err)
	}
	return response.StatusCode, response.Header, answer
}

// plain reads an answer of v1.
func plain(t testing.TB, status int, body []byte) []byte {
	t.Helper()
	var content []byte
	if err := json.Unmarshal(body, &content); err != nil || status != 200 {
		t.Fatalf("%d %.300s", status, body)
	}
	return content
}

// processed is what clients read of an operation of v2.
type processed struct {
	Operation struct {
		ID               *string
		Status           string
		Error            *string
		ErrorDescription *string
		Result           *struct {
			ProcessedDocuments []struct {
				OriginalRefID, RefID, OriginalContentInfo, ContentInfo, Status, Integrity string
				Error                                                                     *string
				Content                                                                   []byte
			}
			ParsedDocuments []struct {
				OriginalRefID    *string
				CertificateIDs   []int64 `json:"CertificateIds"`
				Status           string
				Error            *string
				ErrorDescription *string
			}
		}
	}
}

func operationOf(t testing.TB, status int, body []byte) (p processed) {
	t.Helper()
	if err := json.Unmarshal(body, &p); err != nil || status != 200 || p.Operation.Error != nil {
		t.Fatalf("%d %.400s, %v", status, body, err)
	}
	return p
}

// download returns a stored document by the identifier of a result.
func (d *decrypting) download(ref string) []byte {
	d.T.Helper()
	status, body := d.Do(d.T.Context(), "GET", d.Dev.DocumentsURL+"/api/documents/"+ref+"/content", d.token, nil)
	if status != 200 {
		d.T.Fatalf("%d %.300s", status, body)
	}
	return body
}

// upload stores a document.
func (d *decrypting) upload(name string, content []byte) string {
	d.T.Helper()
	status, body := d.Do(d.T.Context(), "POST", d.Dev.DocumentsURL+"/api/documents/pack", d.token, strings.NewReader(fmt.Sprintf(`{"Documents":[{"FileName":%q,"Content":%s}]}`, name, must(json.Marshal(content)))))
	var stored struct{ DocumentIDs []string }
	if err := json.Unmarshal(body, &stored); err != nil || status != 200 || len(stored.DocumentIDs) != 1 {
		d.T.Fatalf("%d %.300s", status, body)
	}
	return stored.DocumentIDs[0]
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// refused sends a request that must have a fault.
func (d *decrypting) refused(token string, want int, code, method, path string, body any) string {
	d.T.Helper()
	status, header, answer := d.send(method, path, token, body)
	var f struct {
		Error            string `json:"error"`
		ErrorDescription string `json:"error_description"`
	}
	if json.Unmarshal(answer, &f); status != want || f.Error != code {
		d.T.Errorf("%s %s with %.200s: %d %.400s, want %d %s", method, path, must(json.Marshal(body)), status, answer, want, code)
	}
	if header.Get("Tamga-Integrity") != "" {
		d.T.Errorf("%s %s: a refusal has the header of a plaintext", method, path)
	}
	return f.ErrorDescription
}

// TestClientOfEncryption sends the nine requests of a client as it sends them, on both databases.
func TestClientOfEncryption(t *testing.T) { onBothEngines(t, testClientOfEncryption) }

func testClientOfEncryption(t *testing.T, database string) {
	d := startDecrypting(t, database)
	const suite = "gost2012-256"
	cert := d.Cert(suite, true)
	der := d.certificate(suite, true)
	inline := func(content []byte) []any {
		return []any{object{"Content": content, "ContentInfo": "report.txt #001"}}
	}

	// 1: documents/encrypt. Parameters may be absent.
	message := d.encrypt(object{}, der)
	if other := d.Signed("POST", "/api/documents/encrypt", d.token, object{"Content": d.text, "Encryption": object{"Type": "CMS", "Certificates": [][]byte{der}}}); bytes.Equal(message, other) {
		t.Error("two messages are equal")
	}
	// 2: documents/decrypt/parse
	status, _, body := d.send("POST", "/rest/api/documents/decrypt/parse", d.token, object{"Content": message, "Decryption": object{"Type": 0, "CertificateId": 0}})
	if want := fmt.Sprintf("[%d]", cert.ID); status != 200 || string(body) != want {
		t.Errorf("parse: %d %s, want %s", status, body, want)
	}
	foreign := d.encrypt(nil, newRecipient(t, judge.OpenSSL(t)))
	if status, _, body := d.send("POST", "/api/documents/decrypt/parse", d.token, object{"Content": foreign, "Decryption": object{"Type": "CMS"}}); status != 200 || string(body) != "[]" {
		t.Errorf("parse of a message for another one: %d %s", status, body)
	}
	// 3: documents/decrypt
	one := func(id any, pin string) object {
		return object{"Content": message, "Decryption": object{"Type": 0, "CertificateId": id, "PinCode": pin}}
	}
	status, header, body := d.send("POST", "/rest/api/documents/decrypt", d.token, one(cert.ID, cert.PIN))
	if got := plain(t, status, body); !bytes.Equal(got, d.text) || header.Get("Tamga-Integrity") != "None" {
		t.Errorf("decrypt: %d bytes, integrity %q", len(got), header.Get("Tamga-Integrity"))
	}
	for _, id := range []any{0, "0", nil, fmt.Sprint(cert.ID)} {
		status, _, body := d.send("POST", "/api/documents/decrypt", d.token, one(id, cert.PIN))
		if got := plain(t, status, body); !bytes.Equal(got, d.text) {
			t.Errorf("decrypt with certificate %v: %d bytes", id, len(got))
		}
	}
	d.refused(d.token, 400, "invalid_pin", "POST", "/api/documents/decrypt", one(cert.ID, ""))
	d.refused(d.token, 400, "invalid_certificate", "POST", "/api/documents/decrypt", one(d.Cert("rsa-2048", false).ID, ""))
	d.refused(d.token, 400, "invalid_certificate", "POST", "/api/documents/decrypt", one(999999, ""))
	d.refused(d.token, 400, "invalid_certificate", "POST", "/api/documents/decrypt", object{"Content": foreign, "Decryption": object{"Type": 0}})

	// 6: v2/encryption, inline and by reference
	ref := d.upload("act.txt", d.text)
	encrypted := operationOf2(d, "/rest/api/v2/encryption", d.token, object{
		"BinaryData": []any{object{"RefId": ref}, inline(d.text)[0]}, "Encryption": object{"Type": 0, "Certificates": [][]byte{der}, "Parameters": object{}},
	})
	if o := encrypted.Operation; o.ID != nil || o.Status != "Completed" || len(o.Result.ProcessedDocuments) != 2 {
		t.Fatalf("%+v", o)
	}
	results := encrypted.Operation.Result.ProcessedDocuments
	if r := results[0]; r.OriginalRefID != ref || r.OriginalContentInfo != "act.txt" || r.ContentInfo != "act.txt.p7m" || r.Status != "Completed" || r.Content != nil || r.Integrity != "" {
		t.Errorf("%+v", r)
	}
	if r := results[1]; r.OriginalContentInfo != "report.txt #001" || r.RefID == "" || r.Status != "Completed" || !bytes.Equal(r.Content, d.download(r.RefID)) {
		t.Errorf("%+v", r)
	}
	// 9: v2/parse
	list := operationOf2(d, "/rest/api/v2/parse", d.token, object{"BinaryData": []any{object{"RefId": results[0].RefID}, inline(results[1].Content)[0], inline([]byte("no message"))[0]}, "Type": "CMS"}).Operation.Result.ParsedDocuments
	for i, p := range list[:2] {
		if p.Status != "Completed" || len(p.CertificateIDs) != 1 || p.CertificateIDs[0] != cert.ID || p.Error != nil {
			t.Errorf("parsed %d: %+v", i, p)
		}
	}
	if p := list[2]; p.Status != "Error" || p.Error == nil || *p.Error != "invalid_content" || p.ErrorDescription == nil || p.CertificateIDs == nil {
		t.Errorf("parsed: %+v", p)
	}
	// 7: v2/decryption at once
	operate := func(force bool) object {
		return object{
			"IsAsync": false, "Callback": "", "ForceConfirmation": force, "BinaryData": []any{object{"RefId": results[0].RefID}, inline(results[1].Content)[0]},
			"Decryption": object{"Type": 0, "CertificateId": cert.ID, "PinCode": cert.PIN, "Parameters": object{}},
		}
	}
	check := func(p processed) {
		t.Helper()
		if p.Operation.ID == nil || p.Operation.Status != "Completed" || len(p.Operation.Result.ProcessedDocuments) != 2 {
			t.Fatalf("%+v", p.Operation)
		}
		for i, r := range p.Operation.Result.ProcessedDocuments {
			if r.Status != "Completed" || r.Integrity != "None" || !bytes.Equal(d.download(r.RefID), d.text) || (r.Content != nil) != (i == 1) || i == 1 && !bytes.Equal(r.Content, d.text) {
				t.Errorf("result %d: %+v", i, r)
			}
		}
	}
	check(operationOf2(d, "/rest/api/v2/decryption", d.token, operate(false)))

	// 8: the same after a confirmation, and a repetition with the same answer
	id := d.operate("POST", "/rest/api/v2/decryption", d.token, operate(true))
	confirmed := d.confirm(d.token, id)
	d.refused(confirmed, 400, "invalid_operation", "POST", "/rest/api/v2/decryption", operate(false))
	d.refused(confirmed, 400, "invalid_operation", "POST", "/rest/api/v2/signature", object{})
	_, _, first := d.send("POST", "/rest/api/v2/decryption", confirmed, object{})
	check(operationOf(t, 200, first))
	if _, _, again := d.send("POST", "/rest/api/v2/decryption", confirmed, object{"Decryption": object{"PinCode": cert.PIN}}); !bytes.Equal(again, first) {
		t.Errorf("a repetition has other bytes: %.300s", again)
	}

	// 5 and 4: a transaction, and documents/decrypt with its confirmed token
	for _, documents := range []object{{"Document": message}, {"Documents": []any{object{"Name": "report.txt.p7m", "Content": message}}}} {
		order := transaction(8, "EncryptionType", "CMS", "CertificateID", fmt.Sprint(cert.ID), "DocumentInfo", "report.txt.p7m", "DocumentType", "txt")
		for key, value := range documents {
			order[key] = value
		}
		id := d.operate("POST", "/rest/api/transactions", d.token, order)
		confirmed := d.confirm(d.token, id)
		d.refused(confirmed, 400, "invalid_operation", "POST", "/api/documents/decrypt", one(cert.ID, cert.PIN))
		d.refused(confirmed, 400, "invalid_operation", "POST", "/api/documents", object{})
		d.refused(confirmed, 400, "invalid_pin", "POST", "/api/documents/decrypt", object{"Decryption": object{}}) // no PIN yet
		var answers [2][]byte
		for i := range answers {
			status, header, body := d.send("POST", "/api/documents/decrypt", confirmed, object{"Decryption": object{"PinCode": cert.PIN}})
			if answers[i] = plain(t, status, body); header.Get("Tamga-Integrity") != "None" {
				t.Errorf("integrity %q", header.Get("Tamga-Integrity"))
			}
		}
		if !bytes.Equal(answers[0], d.text) || !bytes.Equal(answers[1], d.text) {
			t.Errorf("%d and %d bytes", len(answers[0]), len(answers[1]))
		}
	}

	// What is wrong with a request.
	encryption := object{"Type": 0, "Certificates": [][]byte{der}}
	for _, r := range []struct {
		code, path string
		body       object
	}{
		{"parameters_required", "/api/documents/encrypt", object{"Content": d.text}},
		{"content_required", "/api/documents/encrypt", object{"Content": "", "Encryption": encryption}},
		{"content_required", "/api/documents/encrypt", object{"Encryption": encryption}},
		{"invalid_content", "/api/documents/encrypt", object{"Content": "?", "Encryption": encryption}},
		{"invalid_recipients", "/api/documents/encrypt", object{"Content": d.text, "Encryption": object{"Type": 0}}},
		{"invalid_recipients", "/api/documents/encrypt", object{"Content": d.text, "Encryption": object{"Type": 0, "Certificates": []any{der, "AAAA"}}}},
		{"invalid_recipients", "/api/documents/encrypt", object{"Content": d.text, "Encryption": object{"Type": 0, "Certificates": []any{"?"}}}},
		{"invalid_recipients", "/api/documents/encrypt", object{"Content": d.text, "Encryption": object{"Type": 0, "Certificates": []any{der, d.certificate("ecdsa-p256", false)}}}},
		{"invalid_parameters", "/api/documents/encrypt", object{"Content": d.text, "Encryption": object{"Type": 2, "Certificates": [][]byte{der}}}},
		{"invalid_parameters", "/api/documents/encrypt", object{"Content": d.text, "Encryption": object{"Type": 0, "Certificates": [][]byte{der}, "Parameters": object{"Algorithm": "DES"}}}},
		{"parameters_required", "/api/v2/encryption", object{"BinaryData": inline(d.text)}},
		{"content_required", "/api/v2/encryption", object{"Encryption": encryption}},
		{"content_required", "/api/documents/decrypt", object{"Content": "", "Decryption": object{"Type": 0}}},
		{"content_required", "/api/documents/decrypt", object{}},
		{"parameters_required", "/api/documents/decrypt", object{"Content": message}},
		{"invalid_content", "/api/documents/decrypt", object{"Content": d.text, "Decryption": object{"Type": 0}}},
		{"invalid_content", "/api/documents/decrypt/parse", object{"Content": d.text, "Decryption": object{"Type": 0}}},
		{"content_required", "/api/documents/decrypt/parse", object{"Decryption": object{"Type": 0}}},
		{"invalid_operation", "/api/v2/decryption", object{}},
		{"content_required", "/api/v2/decryption", object{"Decryption": object{"Type": 0}}},
		{"parameters_required", "/api/v2/decryption", object{"BinaryData": inline(message)}},
		{"content_required", "/api/v2/parse", object{"Type": "CMS"}},
		{"invalid_parameters", "/api/transactions", func() object {
			o := transaction(8, "EncryptionType", "CMS")
			o["Documents"] = []any{object{"Content": message}, object{"Content": message}}
			return o
		}()},
	} {
		d.refused(d.token, 400, r.code, "POST", r.path, r.body)
	}

	// The policy.
	d.OK(tamgatest.Ours, "POST", "/ums/user/"+d.id+"/accesspolicy", "[8]")
	d.refused(d.token, 403, "access_denied", "POST", "/api/documents/decrypt", one(cert.ID, cert.PIN))
	d.refused(d.token, 403, "access_denied", "POST", "/api/v2/decryption", operate(true))
	d.encrypt(object{}, der) // has no policy
	d.OK(tamgatest.Ours, "POST", "/ums/user/"+d.id+"/accesspolicy", "[]")
	d.OK(tamgatest.Ours, "POST", "/ums/user/"+d.id+"/operationpolicy", "[8]")
	d.refused(d.token, 400, "authn_method_not_confirmed", "POST", "/api/documents/decrypt", one(cert.ID, cert.PIN))
	if id := d.operate("POST", "/api/v2/decryption", d.token, operate(false)); d.state(d.token, id) != "Created" {
		t.Error("the policy does not ask for a confirmation")
	}
	d.encrypt(object{}, der)
}

// operationOf2 sends a request of v2 and reads its operation.
func operationOf2(d *decrypting, path, token string, body any) processed {
	d.T.Helper()
	status, _, answer := d.send("POST", path, token, body)
	return operationOf(d.T, status, answer)
}

// newRecipient makes a key of GOST R 34.10-2012 with a certificate in the directory of OpenSSL: key.pem and
// cert.pem. It returns the certificate, DER.
func newRecipient(t *testing.T, tool *judge.Tool) []byte {
	t.Helper()
	if out, err := tool.Run("req", "-x509", "-newkey", "gost2012_256", "-pkeyopt", "paramset:A", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=Recipient", "-days", "3650"); err != nil {
		t.Fatal(err, out)
	}
	block, _ := pem.Decode(tool.Read("cert.pem"))
	return block.Bytes
}

// TestOpenSSLOverHTTP has OpenSSL encrypt for certificates of the service, and read what the service encrypts.
func TestOpenSSLOverHTTP(t *testing.T) { onBothEngines(t, testOpenSSLOverHTTP) }

func testOpenSSLOverHTTP(t *testing.T, database string) {
	d := startDecrypting(t, database)
	tool := judge.OpenSSL(t)
	theirs := newRecipient(t, tool)
	tool.Write("text", d.text)
	for _, c := range []struct {
		suite, option, integrity string
		most                     int
	}{
		{"gost2012-256", "-gost89", "None", 1 << 20}, {"gost2012-512", "-gost89", "None", 1 << 20}, {"rsa-2048", "-aes-256-cbc", "None", 1 << 20},
		{"ecdsa-p256", "-aes-256-gcm", "Verified", 1 << 20}, {"gost2012-256", "-kuznyechik-ctr-acpkm-omac", "Verified", 1 << 20}, {"gost2012-512", "-magma-ctr-acpkm", "None", 1 << 20},
	} {
		own := d.Cert(c.suite, false)
		recipient := filepath.Join(d.Dir, own.PEM)
		args := []string{"cms", "-encrypt", "-binary", "-outform", "DER", "-in", "text", "-out", "theirs", c.option, "-recip", recipient}
		if c.suite == "ecdsa-p256" {
			args = append(args, "-keyopt", "ecdh_kdf_md:sha256")
		}
		if out, err := tool.Run(args...); err != nil {
			t.Fatal(c.option, err, out)
		}
		message := tool.Read("theirs")
		status, header, body := d.send("POST", "/api/documents/decrypt", d.token, object{"Content": message, "Decryption": object{"Type": 0, "CertificateId": own.ID}})
		if got := plain(t, status, body); !bytes.Equal(got, d.text) || header.Get("Tamga-Integrity") != c.integrity {
			t.Errorf("%s, %s: %d bytes, integrity %q", c.suite, c.option, len(got), header.Get("Tamga-Integrity"))
		}
		p := operationOf2(d, "/api/v2/decryption", d.token, object{"BinaryData": []any{object{"Content": message}}, "Decryption": object{"Type": 0, "CertificateId": own.ID}})
		if r := p.Operation.Result.ProcessedDocuments[0]; !bytes.Equal(r.Content, d.text) || r.Integrity != c.integrity {
			t.Errorf("%s, %s: v2: %d bytes, integrity %q", c.suite, c.option, len(r.Content), r.Integrity)
		}
	}
	for _, message := range [][]byte{
		d.encrypt(nil, theirs),
		d.encrypt(object{"Algorithm": "28147-89", "AllowInvalid": "True"}, theirs, d.certificate("gost2012-512", false), d.certificate("rsa-2048", false)),
		operationOf2(d, "/api/v2/encryption", d.token, object{"BinaryData": []any{object{"Content": d.text}}, "Encryption": object{"Certificates": [][]byte{theirs}}}).Operation.Result.ProcessedDocuments[0].Content,
	} {
		tool.Write("message", message)
		if out, err := tool.Run("cms", "-decrypt", "-binary", "-inform", "DER", "-in", "message", "-recip", "cert.pem", "-inkey", "key.pem", "-out", "got"); err != nil || !bytes.Equal(tool.Read("got"), d.text) {
			t.Errorf("OpenSSL does not read ours: %v %s", err, out)
		}
	}
}

// TestEndedCertificatesDecrypt revokes a certificate: it opens what was encrypted for it before, unless
// decryption.ended_certificates is off. Nothing is encrypted for it any more, unless the sender insists.
func TestEndedCertificatesDecrypt(t *testing.T) {
	for _, allowed := range []bool{true, false} {
		t.Run(fmt.Sprint(allowed), func(t *testing.T) {
			t.Parallel()
			d := startDecrypting(t, "", "--set", fmt.Sprintf("decryption.ended_certificates=%t", allowed))
			cert, der := d.Cert("rsa-2048", false), d.certificate("rsa-2048", false)
			own := object{"Type": 0, "CertificateId": cert.ID}
			message := d.encrypt(nil, der)
			if status, body := d.Call("POST", fmt.Sprintf("/api/certificates/%d/status", cert.ID), d.token, object{"Status": "REVOKED"}); status != 200 {
				t.Fatalf("%d %s", status, body)
			}
			status, _, list := d.send("POST", "/api/documents/decrypt/parse", d.token, object{"Content": message, "Decryption": object{"Type": 0}})
			if allowed {
				_, _, body := d.send("POST", "/api/documents/decrypt", d.token, object{"Content": message, "Decryption": own})
				if got := plain(t, 200, body); !bytes.Equal(got, d.text) || string(list) != fmt.Sprintf("[%d]", cert.ID) {
					t.Errorf("%d bytes; parse: %s", len(got), list)
				}
			} else {
				d.refused(d.token, 400, "invalid_certificate", "POST", "/api/documents/decrypt", object{"Content": message, "Decryption": own})
				d.refused(d.token, 400, "invalid_certificate", "POST", "/api/documents/decrypt", object{"Content": message, "Decryption": object{"Type": 0}})
				d.refused(d.token, 400, "invalid_certificate", "POST", "/api/v2/decryption", object{"ForceConfirmation": true, "BinaryData": []any{object{"Content": message}}, "Decryption": own})
				if status != 200 || string(list) != "[]" {
					t.Errorf("parse: %d %s", status, list)
				}
			}
			order := object{"Content": d.text, "Encryption": object{"Type": 0, "Certificates": [][]byte{d.certificate("gost2012-256", false), der}}}
			if why := d.refused(d.token, 400, "invalid_recipients", "POST", "/api/documents/encrypt", order); why != "Encryption.Certificates[1]: the certificate is revoked or on hold" {
				t.Error(why)
			}
			order["Encryption"].(object)["Parameters"] = object{"AllowInvalid": true}
			d.Signed("POST", "/api/documents/encrypt", d.token, order)
			if entries := d.Command("audit", "--operation", "EncryptDocument", "--json"); !strings.Contains(entries, "2 recipients") || !strings.Contains(entries, "1 of them not valid (AllowInvalid)") {
				t.Errorf("audit entries: %.2000s", entries)
			}
		})
	}
}

// TestChangedMessages changes messages bit by bit. A changed bit that a MAC or a wrap covers releases no byte, and each
// change has the one answer. A change of content that nothing covers decrypts to other bytes, and the answer says
// that nothing covers it.
func TestChangedMessages(t *testing.T) { onBothEngines(t, testChangedMessages) }

func testChangedMessages(t *testing.T, database string) {
	d := startDecrypting(t, database)
	d.text = d.text[:3000]
	der := d.certificate("gost2012-256", false)
	ask := func(message []byte) (int, http.Header, []byte) {
		return d.send("POST", "/api/documents/decrypt", d.token, object{"Content": message, "Decryption": object{"Type": 0}})
	}
	answers := map[string]int{}
	refusal := func(name string, message []byte) {
		t.Helper()
		status, header, body := ask(message)
		if status != 400 || header.Get("Tamga-Integrity") != "" || bytes.Contains(body, []byte("A line")) {
			t.Errorf("%s: %d %.300s", name, status, body)
		}
		answers[string(body)]++
	}
	flip := func(message []byte, at int, bit byte) []byte {
		changed := bytes.Clone(message)
		changed[at] ^= bit
		return changed
	}

	protected := d.encrypt(object{"Algorithm": "Kuznyechik"}, der)
	status, header, body := ask(protected)
	if got := plain(t, status, body); !bytes.Equal(got, d.text) || header.Get("Tamga-Integrity") != "Verified" {
		t.Fatalf("%d bytes, %q", len(got), header.Get("Tamga-Integrity"))
	}
	// The content ends before the attribute with its code, which is last.
	end := bytes.LastIndex(protected, []byte{0x2a, 0x85, 0x03, 0x07, 0x01, 0x00, 0x06, 0x01, 0x01}) - 6
	for i := 0; i < len(d.text); i += 97 {
		refusal(fmt.Sprintf("content, byte %d", i), flip(protected, end-len(d.text)+i, 1<<(i%8)))
	}
	for i := range 16 {
		refusal(fmt.Sprintf("code, byte %d", i), flip(protected, len(protected)-1-i, 1<<(i%8)))
	}

	bare := d.encrypt(nil, der)
	at := len(bare) - len(d.text)
	status, header, body = ask(flip(bare, at+100, 4))
	if got := plain(t, status, body); bytes.Equal(got, d.text) || len(got) != len(d.text) || header.Get("Tamga-Integrity") != "None" {
		t.Errorf("a bit that nothing covers: %d bytes, %q", len(got), header.Get("Tamga-Integrity"))
	}
	// The encrypted key and its MAC, in the transport of RFC 4490: SEQ{SEQ{OCTET STRING 32, OCTET STRING 4}, ...}.
	key := bytes.Index(bare, []byte{0x30, 0x28, 0x04, 0x20})
	if key < 0 {
		t.Fatal("the message has no encrypted key")
	}
	for i := range 32 {
		refusal(fmt.Sprintf("encrypted key, byte %d", i), flip(bare, key+4+i, 1<<(i%8)))
	}
	for i := range 4 {
		refusal(fmt.Sprintf("MAC of the key, byte %d", i), flip(bare, key+38+i, 1<<(i%8)))
	}
	// A message for another key under the name of this certificate is a wrong key.
	for _, cipher := range []*cms.ContentCipher{cms.GOST28147, cms.Kuznyechik} {
		refusal("a wrong key, "+cipher.Name, d.forAnotherKey(der, cipher))
	}
	// The last byte of the block before the last one changes the length of the padding to more than a block.
	rsa := d.certificate("rsa-2048", false)
	padded := d.encrypt(object{"Algorithm": "AES256-CBC"}, rsa)
	refusal("padding", flip(padded, len(padded)-17, 0x80))
	gcm := d.encrypt(object{"Algorithm": "AES256-GCM"}, rsa)
	refusal("code of GCM", flip(gcm, len(gcm)-1, 1))
	wrapped := bytes.Index(gcm, []byte{0x04, 0x82, 0x01, 0x00}) // an OCTET STRING of 256 bytes
	if wrapped < 0 {
		t.Fatal("the message has no key that RSA encrypted")
	}
	refusal("padding of RSA", flip(gcm, wrapped+100, 1))
	if len(answers) != 1 {
		t.Errorf("%d different answers: %v", len(answers), answers)
	}
	for answer := range answers {
		if !strings.Contains(answer, `"error":"invalid_content"`) || !strings.Contains(answer, "does not decrypt") {
			t.Error(answer)
		}
	}
	// v2 says the same of its only message, and of one of several. Their plaintext is not stored.
	bad := object{"Content": flip(protected, len(protected)-1, 1), "ContentInfo": "bad"}
	d.refused(d.token, 400, "invalid_content", "POST", "/api/v2/decryption", object{"BinaryData": []any{bad}, "Decryption": object{"Type": 0}})
	p := operationOf2(d, "/api/v2/decryption", d.token, object{"BinaryData": []any{bad, object{"Content": protected}}, "Decryption": object{"Type": 0}})
	if r := p.Operation.Result.ProcessedDocuments; r[0].Status != "Error" || *r[0].Error != "invalid_content" || r[0].RefID != "" || r[0].Content != nil || r[0].Integrity != "" ||
		r[1].Status != "Completed" || !bytes.Equal(r[1].Content, d.text) || r[1].Integrity != "Verified" {
		t.Errorf("%+v", r)
	}
	// A confirmed operation is all or none, and stays Confirmed.
	id := d.operate("POST", "/api/v2/decryption", d.token, object{"ForceConfirmation": true, "BinaryData": []any{object{"Content": protected}, bad}, "Decryption": object{"Type": 0}})
	confirmed := d.confirm(d.token, id)
	d.refused(confirmed, 400, "invalid_content", "POST", "/api/v2/decryption", object{})
	if state := d.state(d.token, id); state != "Confirmed" {
		t.Errorf("the operation is %s", state)
	}
	// The audit log names certificate, digest and size of a message that failed.
	entries := d.Command("audit", "--operation", "DecryptDocument", "--json")
	digest := streebog.Sum256(bad["Content"].([]byte))
	if !strings.Contains(entries, fmt.Sprintf("message %x of %d bytes", digest, len(protected))) || !strings.Contains(entries, "integrity Verified of 1") || !strings.Contains(entries, fmt.Sprintf("certificate %d, message", d.Cert("gost2012-256", false).ID)) {
		t.Errorf("%.3000s", entries)
	}
}

// forAnotherKey encrypts the text for another key under the name of a certificate.
func (d *decrypting) forAnotherKey(der []byte, cipher *cms.ContentCipher) []byte {
	d.T.Helper()
	own := must(x509gost.ParseCertificate(der))
	key := must(own.Suite.Generate(nil))
	other := must(x509gost.CreateCertificate(&x509gost.Template{
		Subject: own.Issuer, SerialNumber: own.SerialNumber, NotBefore: own.NotBefore, NotAfter: own.NotAfter,
	}, nil, key.Public(), own.Suite, own.Suite, x509gost.SignWith(nil, key, own.Suite)))
	var message bytes.Buffer
	recipients := []*x509gost.Certificate{must(x509gost.ParseCertificate(other))}
	if err := cms.Encrypt(d.T.Context(), &message, bytes.NewReader(d.text), int64(len(d.text)), recipients, cms.Encryption{Cipher: cipher}); err != nil {
		d.T.Fatal(err)
	}
	return message.Bytes()
}

// TestEmptyMessages decrypts messages of no bytes to empty documents, in v1 and v2, at once and after a confirmation.
func TestEmptyMessages(t *testing.T) { onBothEngines(t, testEmptyMessages) }

func testEmptyMessages(t *testing.T, database string) {
	d := startDecrypting(t, database)
	tool := judge.OpenSSL(t)
	tool.Write("text", nil)
	if out, err := tool.Run("cms", "-encrypt", "-binary", "-outform", "DER", "-in", "text", "-out", "message", "-gost89", "-recip", filepath.Join(d.Dir, d.Cert("gost2012-256", false).PEM)); err != nil {
		t.Fatal(err, out)
	}
	message := tool.Read("message")
	status, _, body := d.send("POST", "/api/documents/decrypt", d.token, object{"Content": message, "Decryption": object{"Type": 0}})
	if status != 200 || string(body) != `""` {
		t.Errorf("v1: %d %s", status, body)
	}
	order := object{"BinaryData": []any{object{"Content": message}, object{"RefId": d.upload("empty.p7m", message)}}, "Decryption": object{"Type": 0}}
	check := func(body []byte) {
		t.Helper()
		for i, r := range operationOf(t, 200, body).Operation.Result.ProcessedDocuments {
			if r.Status != "Completed" || (r.Content == nil) != (i == 1) || len(r.Content) != 0 || len(d.download(r.RefID)) != 0 {
				t.Errorf("%d: %+v", i, r)
			}
		}
	}
	_, _, body = d.send("POST", "/api/v2/decryption", d.token, order)
	check(body)
	order["ForceConfirmation"] = true
	confirmed := d.confirm(d.token, d.operate("POST", "/api/v2/decryption", d.token, order))
	_, _, first := d.send("POST", "/api/v2/decryption", confirmed, object{})
	check(first)
	if _, _, again := d.send("POST", "/api/v2/decryption", confirmed, object{}); !bytes.Equal(again, first) {
		t.Errorf("a repetition has other bytes: %.500s", again)
	}
	transacted := transaction(8, "EncryptionType", "CMS")
	transacted["Document"] = message
	confirmed = d.confirm(d.token, d.operate("POST", "/api/transactions", d.token, transacted))
	for range 2 {
		if status, header, body := d.send("POST", "/api/documents/decrypt", confirmed, object{}); status != 200 || string(body) != `""` || header.Get("Tamga-Integrity") != "None" {
			t.Errorf("v1, confirmed: %d %s", status, body)
		}
	}
}

// TestDecryptedIsSealed stores documents as they are, and looks for plaintext of a message in all files of the
// installation after it was decrypted in every way.
func TestDecryptedIsSealed(t *testing.T) {
	d := startDecrypting(t, "", "--set", "documents.plain=true", "--set", "documents.in_database=0", "--set", "operations.async=true")
	secret := []byte("the secret of the message 7c1f6a52")
	d.text = bytes.Repeat(append(secret, '\n'), 20_000) // more than memory takes
	message := d.encrypt(nil, d.certificate("gost2012-256", false))
	order := func(force bool) object {
		return object{"ForceConfirmation": force, "BinaryData": []any{object{"Content": message}, object{"RefId": d.upload("m.p7m", message)}}, "Decryption": object{"Type": 0}}
	}
	for _, r := range operationOf2(d, "/api/v2/decryption", d.token, order(false)).Operation.Result.ProcessedDocuments {
		if !bytes.Equal(d.download(r.RefID), d.text) {
			t.Error("the result is not the plaintext")
		}
	}
	confirmed := d.confirm(d.token, d.operate("POST", "/api/v2/decryption", d.token, order(true)))
	operationOf2(d, "/api/v2/decryption", confirmed, object{})
	again := operationOf2(d, "/api/v2/decryption", confirmed, object{})
	if r := again.Operation.Result.ProcessedDocuments; !bytes.Equal(r[0].Content, d.text) {
		t.Error("the repetition is not the plaintext")
	}
	transacted := transaction(8, "EncryptionType", "CMS")
	transacted["Document"] = message
	confirmed = d.confirm(d.token, d.operate("POST", "/api/transactions", d.token, transacted))
	for range 2 {
		status, body := d.keyed("/api/documents/decrypt", confirmed, "one")
		if !bytes.Equal(plain(t, status, body), d.text) {
			t.Error("the answer to a key is not the plaintext")
		}
	}
	files, plainly := 0, d.upload("plain.txt", d.text[:300_000])
	err := filepath.WalkDir(d.Dir, func(name string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || !e.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		files++
		if bytes.Contains(content, secret) && !strings.Contains(name, plainly) {
			t.Errorf("%s has plaintext", name)
		}
		return nil
	})
	if err != nil || files < 5 {
		t.Error(files, err)
	}
	if text, err := os.ReadFile(filepath.Join(d.Dir, "blobs", "documents", plainly)); err != nil || !bytes.Contains(text, secret) {
		t.Errorf("documents are not stored as they are: %v", err)
	}
}

// TestDeletedReader deletes a user for whom something may be encrypted: only an order that knows of it does so.
func TestDeletedReader(t *testing.T) { onBothEngines(t, testDeletedReader) }

func testDeletedReader(t *testing.T, database string) {
	d := startDecrypting(t, database)
	at := "/ums/user/" + d.id
	reader := 0
	for _, c := range d.Dev.Certificates {
		if c.Encryption {
			reader = int(c.ID)
		}
	}
	for _, query := range []string{"", "?destroyKey=false"} {
		if a := d.Ask(tamgatest.Ours, "DELETE", at+query, ""); a.Status != 400 || !strings.Contains(a.Body, `"error":"invalid_parameters"`) || !strings.Contains(a.Body, fmt.Sprintf("certificates for encryption: %d (", reader)) {
			t.Errorf("%q: %s", query, a)
		}
	}
	d.encrypt(nil, d.certificate("gost2012-256", false)) // the user is still there
	if a := d.Ask(tamgatest.Ours, "DELETE", at+"?destroyKey=true", ""); a.Status != 200 {
		t.Errorf("%s", a)
	}
	if a := d.Ask(tamgatest.Ours, "GET", at, ""); a.Status != 404 {
		t.Errorf("%s", a)
	}
	if a := d.Ask(tamgatest.Ours, "DELETE", "/ums/user/"+tamgatest.Missing, ""); a.Status != 404 {
		t.Errorf("%s", a)
	}
}
