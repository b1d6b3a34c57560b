// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/signing"
	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/cades"
)

// levelsOf verifies a message and returns the levels of its signatures.
func levelsOf(t testing.TB, message, original []byte, roots *sigtest.Party, services *sigtest.Services) []string {
	t.Helper()
	c := &sig.Check{Document: bytes.NewReader(message), Roots: roots.Chain, At: sigtest.Time}
	if services != nil {
		c.Evidence = services
	}
	if original != nil {
		c.Original = bytes.NewReader(original)
	}
	r, err := cades.New().Verify(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	var levels []string
	for _, s := range r.Signatures {
		levels = append(levels, s.Level)
	}
	for _, code := range sigtest.Codes(r) {
		if code != "certificate-revocation-unknown" {
			t.Errorf("the result is not valid: %v", sigtest.Codes(r))
		}
	}
	return levels
}

// TestLevels: two steps, one step, a batch and enhancing, up to each level, with
// the parameters through the policy and the evidence through the format.
func TestLevels(t *testing.T) {
	root := sigtest.Root(t, suite.GOST2012x256)
	p := root.Signer(t, suite.GOST2012x256, "user")
	services := sigtest.NewServices(t, root)
	v := &vault{t: t, signer: p}
	d := newDesk(t, func(s *signing.Service, a *API) *API {
		s.Keys, s.Evidence = v, services
		return a
	})
	// The root is needed for the evidence: a client sends what it has.
	container := append(p.PEM(), root.PEM()...)
	for _, level := range []string{"T", "XLT1", "A"} {
		params := object{"CADESType": level, "IsDetached": "False", "TSPAddress": ""}
		answer := d.presign(t, object{"Document": []byte("document"), "RawCertificate": container, "SignatureType": "CAdES", "SignatureParams": params})
		status, text := d.call(t, "POST", "/api/signatures/postsign", object{"CacheObjectId": answer.CacheObjectID, "SignatureValue": value(t, p, answer), "SignatureParams": params})
		if got := levelsOf(t, bytesOf(t, status, text), nil, p, services); len(got) != 1 || got[0] != level {
			t.Errorf("two steps to %s: %v", level, got)
		}

		request := `{"Content":"RE9D","Signature":{"Type":"CAdES","Parameters":{"CADESType":"%s","IsDetached":"False","TSPAddress":""}}}`
		status, text = d.send(t, "POST", "/api/documents", "1", strings.NewReader(fmt.Sprintf(request, level)))
		if got := levelsOf(t, bytesOf(t, status, text), nil, p, services); len(got) != 1 || got[0] != level {
			t.Errorf("one step to %s: %v", level, got)
		}
		status, text = d.send(t, "POST", "/api/documents", "1", strings.NewReader(fmt.Sprintf(request, "BES")))
		basic := bytesOf(t, status, text)
		status, text = d.call(t, "PATCH", "/api/signatures/postsign", object{"SignedMessage": basic, "SignatureType": "CAdES", "SignatureParams": params})
		raised := bytesOf(t, status, text)
		if got := levelsOf(t, raised, nil, p, services); len(got) != 1 || got[0] != level {
			t.Errorf("raised to %s: %v", level, got)
		}
		status, text = d.call(t, "POST", "/api/documents/enhancesignature", object{"Content": raised, "Signature": object{"Type": "CAdES", "Parameters": params}})
		again := bytesOf(t, status, text)
		if level == "A" { // it is renewed
			if got := levelsOf(t, again, nil, p, services); len(got) != 1 || got[0] != level || bytes.Equal(again, raised) {
				t.Errorf("renewed: %v", got)
			}
		} else if !bytes.Equal(again, raised) {
			t.Errorf("at %s already: the message has changed", level)
		}
	}
}

// TestBatchCosign: the batch of the specification. One with a wrong original is
// refused before it is signed, and the rest goes on.
func TestBatchCosign(t *testing.T) {
	root := sigtest.Root(t, suite.GOST2012x256)
	first, second := root.Signer(t, suite.GOST2012x256, "first"), root.Signer(t, suite.GOST2012x512, "second")
	v := &vault{t: t, signer: second}
	d := newDesk(t, func(s *signing.Service, a *API) *API { s.Keys = v; return a })
	const n, wrong = 20, 7
	var items []string
	originals := make([][]byte, n)
	messages := make([][]byte, n)
	for i := range n {
		originals[i] = fmt.Appendf(nil, "document %d", i)
		messages[i] = sigtest.Make(t, cades.New(), first, &sig.Job{Document: sigtest.Document(originals[i]), Params: sig.Params{"IsDetached": "True"}})
		sent := originals[i]
		if i == wrong {
			sent = []byte("another document")
		}
		items = append(items, fmt.Sprintf(`{"Content":"%s","Name":"%d","OriginalContent":"%s"}`,
			base64.StdEncoding.EncodeToString(messages[i]), i, base64.StdEncoding.EncodeToString(sent)))
	}
	for _, path := range []string{"/api/documents", "/api/documents/packagesignature"} {
		v.asked = 0
		status, text, b := d.batch(t, path, strings.NewReader(`{"Documents":[`+strings.Join(items, ",")+`],"Signature":{"Type":"CAdES","Parameters":{"CmsSignatureType":"cosign","CADESType":"BES","IsDetached":"True"}}}`))
		if status != 200 || len(b.Results) != n || len(b.Errors) != n || v.asked != 1 {
			t.Fatalf("%d, asked %d times, %.300s", status, v.asked, text)
		}
		for i := range n {
			if i == wrong {
				if b.Results[i] != nil || b.Errors[i] == nil || !strings.HasPrefix(b.Errors[i].Message, fault.InvalidContent) {
					t.Errorf("a wrong original: %v", b.Errors[i])
				}
				continue
			}
			if b.Results[i] == nil || b.Errors[i] != nil {
				t.Fatalf("item %d: %v", i, b.Errors[i])
			}
			if got := levelsOf(t, *b.Results[i], originals[i], first, nil); len(got) != 2 {
				t.Errorf("item %d: %v", i, got)
			}
		}
	}
}

// TestTwoStepCosign: the second signature with a client's own key, its original
// kept beside the message and compared when it is repeated.
func TestTwoStepCosign(t *testing.T) {
	root := sigtest.Root(t, suite.GOST2012x256)
	first, second := root.Signer(t, suite.GOST2012x256, "first"), root.Signer(t, suite.GOST2012x256, "second")
	d := newDesk(t, nil)
	original := bytes.Repeat([]byte("original "), 20_000)
	message := sigtest.Make(t, cades.New(), first, &sig.Job{Document: sigtest.Document(original), Params: sig.Params{"IsDetached": "True"}})
	params := func(original []byte) object {
		return object{"CmsSignatureType": "Cosign", "IsDetached": "True", "OriginalDocument": original}
	}
	answer := d.presign(t, object{"Document": message, "RawCertificate": second.Certificate.Raw, "SignatureType": "CAdES", "SignatureParams": params(original)})
	if n := d.kept(t); n != 2 {
		t.Errorf("%d documents are kept", n)
	}
	d = d.again(t)
	body := object{"CacheObjectId": answer.CacheObjectID, "SignatureValue": value(t, second, answer)}
	for _, other := range [][]byte{original[1:], append([]byte("O"), original[1:]...)} {
		body["SignatureParams"] = params(other)
		if code, says := refusal(t, d, "/api/signatures/postsign", body); code != fault.InvalidSignatureParams || !strings.Contains(says, "OriginalDocument: differs") {
			t.Errorf("another original: %s %s", code, says)
		}
	}
	body["SignatureParams"] = params(original)
	status, text := d.call(t, "POST", "/api/signatures/postsign", body)
	if got := levelsOf(t, bytesOf(t, status, text), original, first, nil); len(got) != 2 {
		t.Errorf("%v", got)
	}
	d.down()
	if n := d.kept(t); n != 0 {
		t.Errorf("%d documents are kept", n)
	}
}
