// SPDX-License-Identifier: Apache-2.0

package signapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"tamga/internal/files"
	"tamga/internal/judge"
	"tamga/internal/tamgatest"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

const xmlDocument = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\r\n<act xmlns=\"urn:acts\"><sum currency='RUB'>100</sum><!-- note --></act>\n"

// xmlProfiles are the identifiers of the specification's templates.
var xmlProfiles = map[string]struct{ method, digest string }{
	"gost2001":     {"urn:ietf:params:xml:ns:cpxmlsec:algorithms:gostr34102001-gostr3411", "http://www.w3.org/2001/04/xmldsig-more#gostr34116"},
	"gost2012-256": {"urn:ietf:params:xml:ns:cpxmlsec:algorithms:gostr34102012-gostr34112012-256", "urn:ietf:params:xml:ns:cpxmlsec:algorithms:gostr34112012-256"},
	"gost2012-512": {"urn:ietf:params:xml:ns:cpxmlsec:algorithms:gostr34102012-gostr34112012-512", "urn:ietf:params:xml:ns:cpxmlsec:algorithms:gostr34112012-512"},
	"ecdsa-p256":   {"http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256", "http://www.w3.org/2001/04/xmlenc#sha256"},
	"rsa-2048":     {"http://www.w3.org/2001/04/xmldsig-more#rsa-sha256", "http://www.w3.org/2001/04/xmlenc#sha256"},
}

func xmlTemplate(method, digest string) string {
	return `<act xmlns="urn:acts" Id="whole"><sum>100</sum><ds:Signature xmlns:ds="http://www.w3.org/2000/09/xmldsig#"><ds:SignedInfo>` +
		`<ds:CanonicalizationMethod Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"/><ds:SignatureMethod Algorithm="` + method + `"/>` +
		`<ds:Reference URI="#whole"><ds:Transforms><ds:Transform Algorithm="http://www.w3.org/2000/09/xmldsig#enveloped-signature"/>` +
		`<ds:Transform Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"/></ds:Transforms><ds:DigestMethod Algorithm="` + digest + `"/>` +
		`<ds:DigestValue></ds:DigestValue></ds:Reference></ds:SignedInfo><ds:SignatureValue></ds:SignatureValue><ds:KeyInfo></ds:KeyInfo></ds:Signature></act>`
}

// TestXML signs XML on a running server in each form and suite. xmlsec judges the
// RSA and ECDSA ones; GOST is judged in sig/xmldsig by OpenSSL and xmllint.
func TestXML(t *testing.T) {
	t.Parallel()
	xmlsec := judge.XMLSec(t)
	server := tamgatest.Start(t)
	token := server.Token()
	ca := server.Path(server.Dev.CAPEM)
	caPEM, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	// xmlsec knows no GOST and reads one trusted certificate from a file.
	authorities, err := x509gost.ParseCertificates(caPEM)
	if err != nil {
		t.Fatal(err)
	}
	var root []byte
	for _, c := range authorities {
		if c.Suite == suite.ECDSAP256 && c.Issuer.Equal(c.Subject) {
			root = files.PEM(c)
		}
	}
	dir := t.TempDir()
	for _, su := range suites {
		t.Run(su.name, func(t *testing.T) {
			profile := xmlProfiles[su.name]
			template := xmlTemplate(profile.method, profile.digest)
			for _, form := range []struct{ name, document string }{
				{"XMLEnveloped", xmlDocument}, {"XMLEnveloping", xmlDocument}, {"XMLTemplate", template},
			} {
				signed := server.Signed("POST", "/api/documents", token, tamgatest.Request([]byte(form.document), "XMLDSig", server.Cert(su.name, false).ID, tamgatest.Parameters{"XMLDsigType": form.name, "IncludeCertChain": true}))
				if !bytes.Contains(signed, []byte(profile.method)) {
					t.Errorf("%s: the signature method is not %s", form.name, profile.method)
				}
				if form.name == "XMLTemplate" && !bytes.Contains(signed, []byte(profile.digest)) {
					t.Errorf("the digest method of the template was rewritten")
				}
				if form.name == "XMLEnveloped" && !bytes.HasPrefix(signed, []byte(strings.TrimSuffix(xmlDocument, "</act>\n"))) {
					t.Errorf("%s: the document was changed: %s", form.name, signed)
				}
				file := fmt.Sprintf("%s/%s.xml", dir, form.name)
				if err := os.WriteFile(file, signed, 0o600); err != nil {
					t.Fatal(err)
				}
				if r, err := verified(t, file, "--ca", ca); err != nil || r.Verdict != "passed" || r.Format != "xml" {
					t.Errorf("%s: tamga verify says %v %+v", form.name, err, r)
				}
				changed := bytes.Replace(signed, []byte(">100<"), []byte(">900<"), 1)
				if err := os.WriteFile(file, changed, 0o600); err != nil {
					t.Fatal(err)
				}
				if r, err := verified(t, file, "--ca", ca); err == nil || r.Verdict == "passed" {
					t.Errorf("%s: tamga verify accepts a changed sum", form.name)
				}
				if strings.HasPrefix(su.name, "gost") {
					continue
				}
				if err := xmlsec.Verify(signed, root, time.Now(), "act", "Object"); err != nil {
					t.Errorf("%s: xmlsec refuses it: %v", form.name, err)
				}
				if xmlsec.Verify(changed, root, time.Now(), "act", "Object") == nil {
					t.Errorf("%s: xmlsec accepts a changed sum", form.name)
				}
			}
			xmlTwoSteps(t, server, su.name, dir)
		})
	}
	t.Run("part", func(t *testing.T) { xmlPart(t, server, token, ca) })
	t.Run("bad input", func(t *testing.T) {
		cert := server.Cert("gost2012-256", false).ID
		for _, c := range []struct {
			name, document string
			params         tamgatest.Parameters
			status         int
			says           string
		}{
			{"text", "just text", tamgatest.Parameters{"XMLDsigType": "XMLEnveloped"}, 500, "An error has occurred"},
			{"no XMLDsigType", xmlDocument, tamgatest.Parameters{}, 400, "XMLDsigType"},
			{"broken XML", "<a><b></a>", tamgatest.Parameters{"XMLDsigType": "XMLEnveloped"}, 400, "line 1"},
			{"an entity bomb", `<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>`, tamgatest.Parameters{"XMLDsigType": "XMLEnveloped"}, 400, ""},
			{"no template", xmlDocument, tamgatest.Parameters{"XMLDsigType": "XMLTemplate"}, 400, "template"},
			{"a template for another key", xmlTemplate(xmlProfiles["rsa-2048"].method, xmlProfiles["rsa-2048"].digest), tamgatest.Parameters{"XMLDsigType": "XMLTemplate"}, 400, "rsa-sha256"},
		} {
			status, answer := server.Call("POST", "/api/documents", token, tamgatest.Request([]byte(c.document), "XMLDSig", cert, c.params))
			if status != c.status || !strings.Contains(string(answer), c.says) {
				t.Errorf("%s: %d %s; want %d with %q", c.name, status, answer, c.status, c.says)
			}
		}
	})
}

// xmlTwoSteps signs XML with a key of the client's own.
func xmlTwoSteps(t *testing.T, server *tamgatest.Server, suiteName, dir string) {
	t.Helper()
	su, _ := suite.ByName(suiteName)
	cert, sign := tamgatest.ClientOfTwoSteps(t, su)
	params := tamgatest.Parameters{"XMLDsigType": "XMLEnveloped"}
	status, answer := server.Call("POST", "/api/signatures/presign", "", map[string]any{
		"Document": []byte(xmlDocument), "RawCertificate": cert.Raw, "SignatureType": "XMLDSig", "SignatureParams": params,
	})
	var prepared struct {
		HashValue     []byte
		CacheObjectID string `json:"CacheObjectId"`
	}
	if err := json.Unmarshal(answer, &prepared); err != nil || status != 200 {
		t.Fatalf("presign: %d %s", status, answer)
	}
	value, err := sign(suite.Digest{Hash: su.Hash, Sum: prepared.HashValue})
	if err != nil {
		t.Fatal(err)
	}
	signed := server.Signed("POST", "/api/signatures/postsign", "", map[string]any{
		"CacheObjectId": prepared.CacheObjectID, "SignatureType": "XMLDSig", "SignatureValue": value, "SignatureParams": params,
	})
	file, roots := dir+"/two.xml", dir+"/two.pem"
	if err := os.WriteFile(file, signed, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(roots, files.PEM(cert), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := verified(t, file, "--ca", roots); err != nil || r.Verdict != "passed" {
		t.Errorf("two steps: %v %+v", err, r)
	}
}

// xmlPart signs a part of a document: the command and the service name it first, and
// fail what does not cover enough where they are asked to.
func xmlPart(t *testing.T, server *tamgatest.Server, token, ca string) {
	profile := xmlProfiles["gost2012-256"]
	template := strings.Replace(xmlTemplate(profile.method, profile.digest), `<act xmlns="urn:acts" Id="whole"><sum>`, `<act xmlns="urn:acts"><sum Id="whole">`, 1)
	signed := server.Signed("POST", "/api/documents", token, tamgatest.Request([]byte(template), "XMLDSig", server.Cert("gost2012-256", false).ID, tamgatest.Parameters{"XMLDsigType": "XMLTemplate"}))
	file := t.TempDir() + "/part.xml"
	if err := os.WriteFile(file, signed, 0o600); err != nil {
		t.Fatal(err)
	}
	const headline = "covers only /act/sum"
	for _, c := range []struct {
		flags   []string
		params  map[string]any
		verdict string
	}{
		{nil, map[string]any{}, "passed"},
		{[]string{"--strict"}, map[string]any{"Strict": "true"}, "failed"},
		{[]string{"--covers", "/act/sum"}, map[string]any{"ExpectedPath": "/act/sum"}, "passed"},
		{[]string{"--covers", "/act"}, map[string]any{"ExpectedPath": "/act"}, "failed"},
	} {
		r, _ := verified(t, file, append([]string{"--ca", ca}, c.flags...)...)
		if r.Verdict != c.verdict || !slices.Contains(r.Headlines, headline) {
			t.Errorf("%v: the command says %s, %v", c.flags, r.Verdict, r.Headlines)
		}
		list := server.Verdicts(map[string]any{"SignatureType": "XMLDSig", "Content": signed, "VerifyParams": c.params})
		if len(list) != 1 || *list[0].Result != (c.verdict == "passed") || !strings.HasPrefix(*list[0].Message, "the signature covers a part of the document only: /act/sum") {
			t.Errorf("%v: the service says %+v", c.params, list)
		}
	}
}
