// SPDX-License-Identifier: Apache-2.0

package signapi_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"tamga/internal/cli/verify"
	"tamga/internal/judge"
	"tamga/internal/tamgatest"
	"tamga/internal/testsize"
)

// verified runs tamga verify and returns its report.
func verified(t *testing.T, file string, args ...string) (verify.Report, error) {
	t.Helper()
	ran := tamgatest.Run(t.Context(), "", append([]string{"verify", file, "--json"}, args...)...)
	var r verify.Report
	if e := json.Unmarshal([]byte(ran.Out), &r); e != nil {
		t.Fatalf("tamga verify: %v\n%s%s", ran.Failure, ran.Out, ran.Err)
	}
	return r, ran.Failure
}

// TestFamily makes every member of the CMS family on a running server, against
// its own time stamps and revocation data over HTTP, and lets OpenSSL, Bouncy Castle
// and tamga verify judge.
func TestFamily(t *testing.T) {
	t.Parallel()
	openssl := judge.OpenSSL(t)
	var bouncy *judge.Castle
	if testsize.Of() > testsize.Quick {
		bouncy = judge.BouncyCastle(t)
	}
	server := tamgatest.StartIn(t, t.TempDir()) // asks for the status of its certificates
	token := server.Token()
	ca := server.Path(server.Dev.CAPEM)
	caPEM, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	document := []byte("Акт сверки\n" + strings.Repeat("строка\n", 3000))
	documentFile := openssl.Write("document", document)
	// agree lets all judges look at a message; levels are those of its signatures.
	agree := func(t *testing.T, message []byte, detached bool, levels ...string) {
		t.Helper()
		file := openssl.Write("message", message)
		args := []string{"cms", "-verify", "-binary", "-cades", "-inform", "DER", "-in", file, "-CAfile", ca, "-out", "out"}
		var content []byte
		more := []string{"--ca", ca}
		if detached {
			args, content, more = append(args, "-content", documentFile), document, append(more, "--original", documentFile)
		}
		if _, err := openssl.Run(args...); err != nil {
			t.Errorf("openssl cms refuses it: %v", err)
		}
		if bouncy != nil {
			if err := bouncy.VerifyCMS(message, content, caPEM); err != nil {
				t.Errorf("Bouncy Castle refuses it: %v", err)
			}
		}
		r, err := verified(t, file, more...)
		var got []string
		for _, s := range r.Signatures {
			got = append(got, s.Level)
		}
		if err != nil || r.Verdict != "passed" || !slices.Equal(got, levels) {
			t.Errorf("tamga verify says %s, levels %v, want %v: %+v", r.Verdict, got, levels, r)
		}
	}

	for _, su := range suites {
		t.Run(su.name, func(t *testing.T) {
			cert := server.Cert(su.name, false).ID
			for _, level := range []string{"T", "XLT1"} {
				for _, detached := range []bool{true, false} {
					agree(t, server.Signed("POST", "/api/documents", token, tamgatest.Request(document, "CAdES", cert, tamgatest.Parameters{
						"CADESType": level, "IsDetached": detached, "TSPAddress": server.Dev.TSPURL,
					})), detached, level)
				}
			}
			// Raised step by step and at once; the level that is there changes nothing.
			bes := server.Signed("POST", "/api/documents", token, tamgatest.Request(document, "CAdES", cert, tamgatest.Parameters{"IsDetached": "True"}))
			raise := func(message []byte, level string) []byte {
				return server.Signed("POST", "/api/signatures/enhance", "", map[string]any{
					"Signature": message, "SignatureType": "CAdES",
					"SignatureParams": tamgatest.Parameters{"CADESType": level, "TSPAddress": "", "IsDetached": "true", "OriginalDocument": document},
				})
			}
			stamped := raise(bes, "T")
			agree(t, stamped, true, "T")
			whole := raise(stamped, "XLT1")
			agree(t, whole, true, "XLT1")
			agree(t, raise(bes, "XLT1"), true, "XLT1")
			if again := raise(whole, "XLT1"); !bytes.Equal(again, whole) {
				t.Error("raising to the level that is there changes the message")
			}
			if status, answer := server.Call("PATCH", "/api/signatures/postsign", "", map[string]any{
				"Signature": whole, "SignatureType": "CAdES", "SignatureParams": tamgatest.Parameters{"CADESType": "BES"},
			}); status != 400 {
				t.Errorf("lowering a level is answered %d %s", status, answer)
			}

			// Cosigned and countersigned.
			first := server.Signed("POST", "/api/documents", token, tamgatest.Request(document, "CAdES", server.Cert("gost2012-256", false).ID, tamgatest.Parameters{"IsDetached": "True"}))
			both := server.Signed("POST", "/api/documents", token, tamgatest.Request(first, "CAdES", cert, tamgatest.Parameters{
				"CmsSignatureType": "Cosign", "OriginalDocument": document, "CADESType": "T", "TSPAddress": "",
			}))
			agree(t, both, true, "BES", "T")
			if status, answer := server.Call("POST", "/api/documents", token, tamgatest.Request(first, "CAdES", cert, tamgatest.Parameters{
				"CmsSignatureType": "Cosign", "OriginalDocument": []byte("another document"),
			})); status != 400 {
				t.Errorf("a cosignature over another document is answered %d %s", status, answer)
			}
			counter := server.Signed("POST", "/api/documents", token, tamgatest.Request(both, "CAdES", cert, tamgatest.Parameters{
				"CmsSignatureType": "Countersign", "SignatureIndex": "1",
			}))
			r, err := verified(t, openssl.Write("counter", counter), "--ca", ca, "--original", documentFile)
			if err != nil || len(r.Signatures) != 2 || len(r.Signatures[1].Countersigners) != 1 || r.Signatures[1].Countersigners[0].Verdict != "passed" {
				t.Errorf("countersigned: %v %+v", err, r)
			}

			tamgatest.TwoSteps(t, server, server, su.name, document, func(message []byte, root string) {
				file := openssl.Write("two", message)
				args := []string{"cms", "-verify", "-binary", "-cades", "-inform", "DER", "-in", file, "-content", documentFile, "-CAfile", openssl.Write("root.pem", []byte(root)), "-out", "out"}
				if _, err := openssl.Run(args...); err != nil {
					t.Errorf("openssl cms refuses what was signed in two steps: %v", err)
				}
			})
		})
	}

	t.Run("batch", func(t *testing.T) {
		cert := server.Cert("gost2012-256", true)
		var documents []map[string]any
		for i := range 20 {
			content := append([]byte{byte('a' + i)}, document...)
			message := server.Signed("POST", "/api/documents", token, tamgatest.Request(content, "CAdES", server.Cert("gost2012-512", false).ID, tamgatest.Parameters{"IsDetached": "True"}))
			if i == 7 {
				message = []byte("no message at all")
			}
			documents = append(documents, map[string]any{"Name": "n", "Content": message, "OriginalContent": content})
		}
		for _, path := range []string{"/api/documents", "/rest/api/documents/packagesignature"} {
			status, answer := server.Call("POST", path, token, map[string]any{
				"Documents": documents,
				"Signature": map[string]any{"Type": "CAdES", "Parameters": tamgatest.Parameters{"CmsSignatureType": "Cosign"}, "CertificateId": cert.ID, "PinCode": cert.PIN},
			})
			var batch struct {
				Results []*string
				Errors  []*struct{ Message string }
			}
			if err := json.Unmarshal(answer, &batch); err != nil || status != 200 || len(batch.Results) != 20 || len(batch.Errors) != 20 {
				t.Fatalf("%s: %d %.300s", path, status, answer)
			}
			for i := range batch.Results {
				if failed := i == 7; (batch.Results[i] == nil) != failed || (batch.Errors[i] != nil) != failed {
					t.Errorf("%s: document %d: result %t, error %+v", path, i, batch.Results[i] != nil, batch.Errors[i])
				}
			}
		}
	})

	t.Run("bad input", func(t *testing.T) {
		cert := server.Cert("gost2012-256", false).ID
		message := server.Signed("POST", "/api/documents", token, tamgatest.Request(document, "CAdES", cert, tamgatest.Parameters{"IsDetached": "False"}))
		for _, c := range []struct {
			name string
			body any
			says string
		}{
			{"index out of range", tamgatest.Request(message, "CAdES", cert, tamgatest.Parameters{"CmsSignatureType": "Countersign", "SignatureIndex": "5"}), "SignatureIndex"},
			{"a time-stamp service that is not registered", tamgatest.Request(document, "CAdES", cert, tamgatest.Parameters{"CADESType": "T", "TSPAddress": "http://192.0.2.1/tsp"}), "TSPAddress"},
			{"a message in PEM", tamgatest.Request([]byte("-----BEGIN CMS-----\nAAAA\n-----END CMS-----\n"), "CAdES", cert, tamgatest.Parameters{"CmsSignatureType": "Cosign"}), "PEM"},
			{"Base64 of Base64", tamgatest.Request([]byte(base64.StdEncoding.EncodeToString(message)), "CAdES", cert, tamgatest.Parameters{"CmsSignatureType": "Cosign"}), "Base64"},
			{"a reserved attribute", tamgatest.Request(document, "CAdES", cert, tamgatest.Parameters{"AuthenticatedAttributes": map[string]string{"1.2.840.113549.1.9.3": "BAA="}}), "1.2.840.113549.1.9.3"},
		} {
			status, answer := server.Call("POST", "/api/documents", token, c.body)
			if status < 400 || status >= 500 || !strings.Contains(string(answer), c.says) {
				t.Errorf("%s: %d %s, want a refusal with %q", c.name, status, answer, c.says)
			}
		}
	})
}
