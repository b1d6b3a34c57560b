// SPDX-License-Identifier: Apache-2.0

package signapi_test

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"tamga/gost/streebog"
	"tamga/internal/judge"
	"tamga/internal/tamgatest"
)

// certificate returns a certificate of the user in DER.
func (c *v2) certificate(own string) []byte {
	c.t.Helper()
	file, err := os.ReadFile(c.Path(own))
	if err != nil {
		c.t.Fatal(err)
	}
	block, _ := pem.Decode(file)
	return block.Bytes
}

// encrypt encrypts a text for a certificate of the user.
func (c *v2) encrypt(text []byte, own string, parameters fields) []byte {
	c.t.Helper()
	status, answer := c.send("POST", c.Dev.BaseURL+"/api/documents/encrypt", fields{
		"Content": text, "Encryption": fields{"Type": "CMS", "Certificates": [][]byte{c.certificate(own)}, "Parameters": parameters},
	})
	var message []byte
	if err := json.Unmarshal(answer, &message); err != nil || status != 200 {
		c.t.Fatalf("%d %.300s", status, answer)
	}
	return message
}

// TestDecryptedAsynchronously has messages decrypted without a request. The callback has the results, and the audit
// log has certificate, digest and sizes.
func TestDecryptedAsynchronously(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key, settings := asynchronous(t, dir)
	c := openV2(t, dir, settings...)
	r := newReceiver(t, key)
	pin := c.Cert("gost2012-256", true)
	text := bytes.Repeat([]byte("a line of the text\n"), 10_000)
	message := c.encrypt(text, pin.PEM, fields{"Algorithm": "Magma"})
	decrypt := func(secret string) typedOperation {
		t.Helper()
		status, answer := c.send("POST", c.Dev.BaseURL+"/api/v2/decryption", fields{
			"BinaryData": []fields{{"RefId": c.upload("text.txt.p7m", message)}, inline("other.txt.p7m", message)}, "IsAsync": true, "Callback": r.URL,
			"Decryption": fields{"Type": 0, "CertificateId": pin.ID, "PinCode": secret},
		})
		if status != 200 {
			t.Fatalf("%d %s", status, answer)
		}
		if o := typed[operationBody](t, answer).Operation; o.Status != "Processing" || o.Result.ProcessedDocuments[0].Status != "InProgress" {
			t.Errorf("%+v", o)
		}
		select {
		case called := <-r.calls:
			return called
		case <-time.After(tamgatest.Patience):
			t.Fatalf("no callback came\n%s", c.Logged())
		}
		panic("unreachable")
	}
	called := decrypt(pin.PIN)
	if called.Status != "Completed" || len(called.Result.ProcessedDocuments) != 2 {
		t.Fatalf("%+v", called)
	}
	for i, d := range called.Result.ProcessedDocuments {
		name := []string{"text.txt", "other.txt"}[i]
		if d.Status != "Completed" || d.Integrity != "Verified" || *d.ContentInfo != name || !bytes.Equal(c.content(d.RefID.String()), text) {
			t.Errorf("%d: %+v", i, d)
		}
	}
	if got := called.Result.ProcessedDocuments[1].Content; !bytes.Equal(got, text) {
		t.Errorf("the result of the inline message has %d bytes", len(got))
	}
	status, answer := c.send("GET", c.Dev.BaseURL+"/api/v2/signature/"+called.ID.String(), nil)
	if again := typed[operationBody](t, answer).Operation; status != 200 || !bytes.Equal(again.Result.ProcessedDocuments[1].Content, text) {
		t.Errorf("%d: asked for, the result is another", status)
	}
	if info := c.info(called.ID); info.Type != "DecryptDocument" || info.State != "Completed" || !strings.HasSuffix(info.Description, " and 1 more") {
		t.Errorf("%+v", info)
	}
	one := streebog.Sum256(message)
	both := streebog.Sum256(append(one[:], one[:]...))
	want := fmt.Sprintf("certificate %d, 2 messages %x of %d bytes, plaintext of %d bytes, integrity Verified of 2", pin.ID, both, 2*len(message), 2*len(text))
	if entries := c.Command("audit", "--operation", "ExecuteDecryptDocument", "--json"); !strings.Contains(entries, want) {
		t.Errorf("%s\nlacks %s", entries, want)
	}
	if wrong := decrypt("wrong"); wrong.Status != "Error" || *wrong.Error != "invalid_pin" || wrong.Result.ProcessedDocuments[0].Status != "Error" {
		t.Errorf("%+v", wrong)
	}
}

// TestXMLEncryption encrypts and decrypts XML documents, and decrypts one of another program.
func TestXMLEncryption(t *testing.T) {
	t.Parallel()
	j := judge.NewXMLEncryption(t)
	c := openV2(t, t.TempDir())
	own := c.Cert("gost2012-256", false)
	file, err := os.ReadFile(c.Path(own.PEM))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(file)
	document := []byte("<?xml version=\"1.0\"?>\n<order xmlns='urn:o'><item>apples</item></order>")
	encrypt := func(text []byte, parameters fields) (int, []byte) {
		t.Helper()
		return c.send("POST", c.Dev.BaseURL+"/api/documents/encrypt", fields{
			"Content": text, "Encryption": fields{"Type": 1, "Certificates": [][]byte{block.Bytes}, "Parameters": parameters},
		})
	}
	decrypt := func(text []byte) (int, []byte) {
		t.Helper()
		return c.send("POST", c.Dev.BaseURL+"/api/documents/decrypt", fields{"Content": text, "Decryption": fields{"Type": "XML"}})
	}
	opened := func(what string, message, want []byte) {
		t.Helper()
		status, answer := c.send("POST", c.Dev.BaseURL+"/api/documents/decrypt/parse", fields{"Content": message, "Decryption": fields{"Type": "XML"}})
		if got := strings.TrimSpace(string(answer)); status != 200 || got != fmt.Sprintf("[%d]", own.ID) {
			t.Errorf("%s: parse: %d %s", what, status, got)
		}
		status, answer = decrypt(message)
		var got []byte
		if err := json.Unmarshal(answer, &got); err != nil || status != 200 || !bytes.Equal(got, want) {
			t.Errorf("%s: %d %.300s", what, status, answer)
		}
	}
	for _, parameters := range []fields{nil, {"Part": "content", "KeyTransport": "gost2001", "AllowInvalid": "false"}} {
		status, answer := encrypt(document, parameters)
		var message []byte
		if err := json.Unmarshal(answer, &message); err != nil || status != 200 || bytes.Contains(message, []byte("apples")) || !bytes.Contains(message, []byte("EncryptedData")) {
			t.Fatalf("%d %.300s", status, answer)
		}
		if parameters != nil && (!bytes.Contains(message, []byte("<order xmlns='urn:o'>")) || !bytes.Contains(message, []byte("transport-gost2001"))) {
			t.Errorf("%v is not obeyed: %s", parameters, message)
		}
		opened(fmt.Sprint(parameters), message, document)
		key := bytes.Index(message, []byte("<xenc:CipherValue>")) + 30
		changed := bytes.Clone(message)
		changed[key] ^= 1 // another letter of Base64, or none
		if status, answer := decrypt(changed); status != 400 || !bytes.Contains(answer, []byte("invalid_content")) {
			t.Errorf("a changed key: %d %s", status, answer)
		}
	}
	theirs, err := j.Encrypt([]byte("<a>pears</a>"), block.Bytes, file, "http://www.w3.org/2001/04/xmlenc#Element",
		"urn:ietf:params:xml:ns:cpxmlsec:algorithms:transport-gost2012-256", "id-tc26-gost-28147-param-Z")
	if err != nil {
		t.Fatal(err)
	}
	opened("of another program", theirs, []byte("<?xml version=\"1.0\"?>\n<a>pears</a>"))
	for _, wrong := range []struct {
		text       string
		parameters fields
		want       string
	}{
		{"no XML", nil, "invalid_content"},
		{"<!DOCTYPE a [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><a>&e;</a>", nil, "invalid_content"},
		{string(theirs), nil, "invalid_content"},
		{"<a/>", fields{"Algorithm": "Magma"}, "invalid_parameters"},
		{"<a/>", fields{"Part": "Half"}, "invalid_parameters"},
		{"<a/>", fields{"KeyTransport": "rsa"}, "invalid_parameters"},
	} {
		if status, answer := encrypt([]byte(wrong.text), wrong.parameters); status != 400 || !bytes.Contains(answer, []byte(wrong.want)) {
			t.Errorf("%.30s, %v: %d %s", wrong.text, wrong.parameters, status, answer)
		}
	}
	if status, answer := decrypt(document); status != 400 || !bytes.Contains(answer, []byte("invalid_content")) {
		t.Errorf("a document without encrypted data: %d %s", status, answer)
	}
}

// TestShownTexts: what a user sees of a transaction has no characters that change it, whatever the transaction does.
func TestShownTexts(t *testing.T) {
	t.Parallel()
	c := openV2(t, t.TempDir())
	own := fmt.Sprint(c.Cert("gost2012-256", false).ID)
	value := func(name, text string) fields { return fields{"Name": name, "Value": text} }
	for code, parameters := range map[int][]fields{
		2: {value("SignatureType", "CAdES"), value("CADESType", "BES")}, 4: {value("SignatureType", "CAdES"), value("CADESType", "BES")}, 8: {value("EncryptionType", "CMS")}, 1024: nil,
	} {
		for _, name := range []string{"DocumentInfo", "DocumentType"} {
			for _, text := range []string{"a\nb", "a\u202eb", "a\x1bb", "a\u2028b"} {
				body := fields{"OperationCode": code, "Parameters": append([]fields{value("CertificateID", own), value(name, text)}, parameters...)}
				if code != 1024 {
					body["Document"] = []byte("the document")
				}
				status, answer := c.send("POST", c.Dev.BaseURL+"/api/transactions", body)
				if status != 400 || !bytes.Contains(answer, []byte("invalid_parameters")) || !bytes.Contains(answer, []byte(strings.ToLower(name)+" contains the character U+")) {
					t.Errorf("%d with %s %q: %d %s", code, name, text, status, answer)
				}
			}
		}
		if code == 1024 {
			continue
		}
		status, answer := c.send("POST", c.Dev.BaseURL+"/api/transactions", fields{
			"OperationCode": code, "Parameters": append([]fields{value("CertificateID", own)}, parameters...), "Documents": []fields{{"Name": "a\nb", "Content": []byte("the document")}},
		})
		if status != 400 || !bytes.Contains(answer, []byte("invalid_parameters")) || !bytes.Contains(answer, []byte("Documents[0].Name contains the character U+000A")) {
			t.Errorf("%d with a name: %d %s", code, status, answer)
		}
	}
}

// TestManyRecipients: more certificates than a request holds documents are too many recipients, not too many documents.
func TestManyRecipients(t *testing.T) {
	t.Parallel()
	c := openV2(t, t.TempDir())
	for _, n := range []int{10_001, 100_000} {
		list := slices.Repeat([][]byte{{0x30, 0}}, n)
		for path, body := range map[string]fields{
			"/api/documents/encrypt": {"Content": []byte("a")}, "/api/v2/encryption": {"BinaryData": []fields{inline("a", []byte("a"))}},
		} {
			body["Encryption"] = fields{"Type": 0, "Certificates": list}
			status, answer := c.send("POST", c.Dev.BaseURL+path, body)
			if status != 400 || !bytes.Contains(answer, []byte("invalid_recipients")) {
				t.Errorf("%s for %d: %d %s", path, n, status, answer)
			}
		}
	}
	status, answer := c.send("POST", c.Dev.BaseURL+"/api/v2/encryption", fields{
		"BinaryData": slices.Repeat([]fields{inline("a", []byte("a"))}, 10_001), "Encryption": fields{"Type": 0, "Certificates": [][]byte{{0x30, 0}}},
	})
	if status != 400 || !bytes.Contains(answer, []byte("invalid_parameters")) {
		t.Errorf("too many documents: %d %s", status, answer)
	}
}
