// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"

	"tamga/internal/domain/fault"
)

// TestMessageInTextForm: a message that is sent in a text form is refused with 400 and the name of
// the form, for a cosignature and a countersignature, alone and in a batch.
func TestMessageInTextForm(t *testing.T) {
	d, _ := newBank(t, nil)
	message := withoutDocument(t, d, "the document")
	encoded := base64.StdEncoding.EncodeToString(message)
	wide := []byte("\xff\xfe")
	for i := range len(encoded) {
		wide = append(wide, encoded[i], 0)
	}
	armoured := pem.EncodeToMemory(&pem.Block{Type: "PKCS7", Bytes: message})
	cosigned := func(more string) string {
		return `"Signature":{"Type":"CAdES","Parameters":{` + more + `},"CertificateId":0,"PinCode":"1234"}`
	}
	original := base64.StdEncoding.EncodeToString([]byte("the document"))
	for _, form := range []struct {
		name, says string
		content    []byte
	}{
		{"PEM", "PEM text", armoured},
		{"PEM below a text", "PEM text", append([]byte("Signature of the contract\n\n"), armoured...)},
		{"PEM below a byte order mark", "PEM text", append([]byte("\xef\xbb\xbf"), armoured...)},
		{"Base64", "Base64", []byte(encoded)},
		{"Base64 in UTF-16", "UTF-16", wide},
		{"Base64 in UTF-16 without a mark", "UTF-16", wide[2:]},
		{"a part of S/MIME", "S/MIME", []byte("MIME-Version: 1.0\r\nContent-Type: application/pkcs7-mime; smime-type=signed-data; name=smime.p7m\r\n" +
			"Content-Transfer-Encoding: base64\r\n\r\n" + encoded + "\r\n")},
		{"signed S/MIME", "S/MIME", []byte("Content-Type: multipart/signed; protocol=\"application/pkcs7-signature\"; boundary=b\n\n--b\n\ntext\n--b\n" +
			"Content-Type: application/pkcs7-signature\nContent-Transfer-Encoding: base64\n\n" + encoded + "\n--b--\n")},
	} {
		content := base64.StdEncoding.EncodeToString(form.content)
		for what, request := range map[string]struct{ path, body string }{
			"cosign":                      {"/api/documents", `{"Content":"` + content + `",` + cosigned(`"CmsSignatureType":"Cosign","OriginalDocument":"`+original+`"`) + `}`},
			"cosign without the original": {"/api/documents", `{"Content":"` + content + `",` + cosigned(`"CmsSignatureType":"Cosign"`) + `}`},
			"countersign":                 {"/api/documents", `{"Content":"` + content + `",` + cosigned(`"CmsSignatureType":"Countersign"`) + `}`},
			"a batch of one":              {"/api/documents", `{"Documents":[{"Content":"` + content + `","OriginalContent":"` + original + `"}],` + cosigned(`"CmsSignatureType":"Cosign"`) + `}`},
		} {
			status, text := d.send(t, "POST", request.path, "1", strings.NewReader(request.body))
			if code, says := refused(t, status, text); status != 400 || code != fault.InvalidContent || !strings.Contains(says, form.says) {
				t.Errorf("%s, %s: %d %s, want 400 that says %s", form.name, what, status, text, form.says)
			}
		}
		// In a batch the other documents are signed.
		status, text, batch := d.batch(t, "/api/documents", strings.NewReader(`{"Documents":[{"Content":"`+content+`","OriginalContent":"`+original+
			`"},{"Content":"`+encoded+`","OriginalContent":"`+original+`"}],`+cosigned(`"CmsSignatureType":"Cosign"`)+`}`))
		if errs, _ := json.Marshal(batch.Errors); status != 200 || len(batch.Results) != 2 || batch.Results[0] != nil || batch.Results[1] == nil || !bytes.Contains(errs, []byte(form.says)) {
			t.Errorf("%s in a batch: %d %.600s, want an error that says %s", form.name, status, text, form.says)
		}
	}
}
