// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/sig"
)

// TestParameters: the error names each invalid parameter.
func TestParameters(t *testing.T) {
	_, signer := party(t)
	services := sigtest.NewServices(t, sigtest.Root(t, suite.ECDSAP256))
	data := formDocument()
	for _, c := range []struct {
		params sig.Params
		keys   []string
	}{
		{sig.Params{}, []string{"PDFFormat"}},
		{sig.Params{"PDFFormat": "PAdES"}, []string{"PDFFormat"}},
		{sig.Params{"PDFFormat": "CAdES"}, []string{"TSPAddress"}},
		{sig.Params{"PDFFormat": "0"}, []string{"TSPAddress"}},
		{sig.Params{"PDFFormat": "CMS", "PDFCertificationLevel": "YES"}, []string{"PDFCertificationLevel"}},
		{sig.Params{"PDFFormat": "CMS", "Hash": "True"}, []string{"Hash"}},
		{sig.Params{"PDFFormat": "CMS", "HashAlgorithm": "GR 34.11-2012 256"}, []string{"HashAlgorithm"}},
		{sig.Params{"PDFFormat": "CMS", "PdfSignatureTemplateId": "9"}, []string{"PdfSignatureTemplateId"}},
		{sig.Params{"PDFFormat": "CMS", "PdfSignatureAppearance": "?"}, []string{"PdfSignatureAppearance"}},
		{sig.Params{"PDFFormat": "CMS", "PDFReason": strings.Repeat("x", maxText+1)}, []string{"PDFReason"}},
		{sig.Params{"PDFFormat": "CMS", "PDFSignatureField": "Sum"}, []string{"PDFSignatureField"}},
	} {
		_, err := sigtest.Try(t, New(), signer, &sig.Job{Document: bytes.NewReader(data), Params: c.params, Evidence: services})
		if !slices.Equal(sigtest.Faults(err), c.keys) {
			t.Errorf("%v: %v", c.params, err)
		}
	}
	_, err := sigtest.Try(t, New(), signer, &sig.Job{Document: bytes.NewReader(data), Params: sig.Params{"PDFFormat": "CAdEST", "TSPAddress": ""}})
	if !slices.Equal(sigtest.Faults(err), []string{"PDFFormat"}) {
		t.Errorf("without evidence: %v", err)
	}
}

// TestDictionary reads back the entries of a signature dictionary.
func TestDictionary(t *testing.T) {
	root, signer := party(t)
	services := sigtest.NewServices(t, root)
	for format, subFilter := range map[string]string{"CMS": "adbe.pkcs7.detached", "CAdEST": "ETSI.CAdES.detached", "CAdES": "ETSI.CAdES.detached"} {
		signed := sigtest.Make(t, New(), signer, &sig.Job{Document: bytes.NewReader(formDocument()), Evidence: services, Params: sig.Params{
			"PDFFormat": format, "TSPAddress": "", " pdfreason ": "Утверждаю (я)", "PDFLocation": "Nürnberg – A\\B", "PDFSignatureField": "Moi",
		}})
		f := opened(t, signed)
		field := f.form().signatures[0]
		d := f.resolveDict(field.value)
		at, _ := readDate(f.textOf(d.get("M")))
		if d.get("SubFilter") != name(subFilter) || d.get("Filter") != name("Adobe.PPKLite") || d.get("Type") != name("Sig") ||
			readTextString(f.textOf(d.get("Reason"))) != "Утверждаю (я)" || readTextString(f.textOf(d.get("Location"))) != "Nürnberg – A\\B" ||
			!at.Equal(sigtest.Time) || field.name != "Moi" || readTextString(f.textOf(d.get("Name"))) != "Signer" {
			t.Errorf("%s: %v %v", format, field.name, d)
		}
		m, err := cms.Parse(bytes.NewReader(f.signature(field).message), int64(len(f.signature(field).message)))
		if err != nil {
			t.Fatal(err)
		}
		_, claims := m.Signers[0].SigningTime()
		_, names, _ := m.Signers[0].SignedAttribute(cms.OIDSigningCertificateV2)
		if claims != (format == "CMS") || !names || !m.Detached {
			t.Errorf("%s: signing-time %v, signing-certificate-v2 %v, detached %v", format, claims, names, m.Detached)
		}
		_, catalog := f.catalog()
		if dss := f.resolveDict(catalog.get("DSS")); (dss != nil) != (format == "CAdES") {
			t.Errorf("%s: DSS %v", format, dss)
		} else if dss != nil {
			for _, key := range []name{"Certs", "OCSPs", "VRI"} {
				if len(f.resolveArray(dss.get(key)))+len(f.resolveDict(dss.get(key))) == 0 {
					t.Errorf("the security store has no %s: %v", key, dss)
				}
			}
		}
	}
}

// TestCertification certifies a document, and respects existing certifications.
func TestCertification(t *testing.T) {
	tools := judge.PDF(t)
	root := sigtest.Root(t, suite.RSASHA256)
	signer := root.Signer(t, suite.RSASHA256, "Signer")
	tools.Trust(root.PEM())
	for level := 1; level <= 3; level++ {
		certified := signedBy(t, signer, formDocument(), sig.Params{"PDFCertificationLevel": certificationLevels[level].Name})
		f := opened(t, certified)
		if got := f.restrictions(f.form()).level; got != level {
			t.Errorf("level %d came out as %d", level, got)
		}
		_, catalog := f.catalog()
		if f.resolveDict(f.resolveDict(catalog.get("Perms")).get("DocMDP")) == nil {
			t.Error("Perms does not lead to the signature")
		}
		if list, err := tools.Signatures(certified, ""); err != nil || len(list) != 1 || !list[0].Valid {
			t.Errorf("pdfsig: %v %v", err, list)
		}
		job := &sig.Job{Document: bytes.NewReader(certified), Params: sig.Params{"PDFFormat": "CMS"}}
		again, err := sigtest.Try(t, New(), signer, job)
		var document *sig.ErrDocument
		if level == 1 {
			if !errors.As(err, &document) || !strings.Contains(err.Error(), "forbids all changes") || document.OtherKind {
				t.Errorf("level 1 does not forbid: %v", err)
			}
		} else if err != nil {
			t.Errorf("level %d forbids: %v", level, err)
		} else if r := verified(t, again, root); !r.Passed() || len(r.Signatures) != 2 {
			t.Errorf("%s", say(r))
		}
		job.Params["PDFCertificationLevel"] = "CERTIFIED_FORM_FILLING"
		if _, err := sigtest.Try(t, New(), signer, job); level > 1 && !slices.Equal(sigtest.Faults(err), []string{"PDFCertificationLevel"}) {
			t.Errorf("certified twice: %v", err)
		}
	}
}

// signatureField returns a document with an unsigned signature field that has more
// entries.
func signatureField(more string) []byte {
	return document{
		catalog: "/AcroForm <</Fields [4 0 R 5 0 R]>>", page: "/Annots [4 0 R 5 0 R]",
		objects: map[int]string{
			4: strings.Replace(textField, "Sum", "Total", 1),
			5: "<</Type /Annot /Subtype /Widget /FT /Sig /T (Approval) /Rect [50 50 200 100] /F 4 /P 10 0 R " + more + ">>",
		},
	}.build()
}

// TestSeedValues makes demands on a signature by seed values.
func TestSeedValues(t *testing.T) {
	root, signer := party(t)
	hexOf := func(b []byte) string { return fmt.Sprintf("<%x>", b) }
	for _, c := range []struct {
		sv, refused string
		params      sig.Params
	}{
		{"/Ff 2 /SubFilter [/adbe.pkcs7.detached]", "", nil},
		{"/Ff 2 /SubFilter [/ETSI.CAdES.detached]", "ETSI.CAdES.detached", nil},
		{"/SubFilter [/ETSI.CAdES.detached]", "", nil},
		{"/Ff 1 /Filter /Entrust.PPKEF", "handler", nil},
		{"/Ff 8 /Reasons [(One) (Two)]", "PDFReason", nil},
		{"/Ff 8 /Reasons [(One) (Two)]", "", sig.Params{"PDFReason": "Two"}},
		{"/Ff 8 /Reasons [(One)]", "", nil},
		{"/Ff 64 /DigestMethod [(SHA256)]", "", nil},
		{"/Ff 64 /DigestMethod [(SHA512)]", "digests", nil},
		{"/TimeStamp <</URL (http://tsp) /Ff 1>>", "time stamp", nil},
		{"/Ff 32 /AddRevInfo true", "revocation", nil},
		{"/Cert <</Ff 1 /Subject [" + hexOf(signer.Certificate.Raw) + "]>>", "", nil},
		{"/Cert <</Ff 1 /Subject [" + hexOf(root.Certificate.Raw) + "]>>", "certificates", nil},
		{"/Cert <</Ff 2 /Issuer [" + hexOf(root.Certificate.Raw) + "]>>", "", nil},
		{"/Cert <</Ff 2 /Issuer [<3000>]>>", "issuers", nil},
		{"/Cert <</Ff 32 /KeyUsage [(XX1XXXXXX)]>>", "key usage", nil},
		{"/Cert <</Ff 32 /KeyUsage [(11XXXXXXX)]>>", "", nil},
		{"/MDP <</P 2>>", "", nil},
		{"/MDP <</P 2>>", "PDFCertificationLevel", sig.Params{"PDFCertificationLevel": "CERTIFIED_NO_CHANGES_ALLOWED"}},
		{"/MDP <</P 0>>", "NOT_CERTIFIED", sig.Params{"PDFCertificationLevel": "CERTIFIED_NO_CHANGES_ALLOWED"}},
	} {
		p := sig.Params{"PDFFormat": "CMS"}
		for k, v := range c.params {
			p[k] = v
		}
		signed, err := sigtest.Try(t, New(), signer, &sig.Job{Document: bytes.NewReader(signatureField("/SV <<" + c.sv + ">>")), Params: p})
		if c.refused != "" {
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%s: %v", c.sv, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.sv, err)
			continue
		}
		f := opened(t, signed)
		if s := f.form().signatures; len(s) != 1 || s[0].name != "Approval" || !s[0].signed() {
			t.Errorf("%s: the field was not used", c.sv)
		}
		if level := f.restrictions(f.form()).level; strings.Contains(c.sv, "/P 2") != (level == 2) {
			t.Errorf("%s: certified at level %d", c.sv, level)
		}
	}
}

// TestLock locks fields by signing.
func TestLock(t *testing.T) {
	root, signer := party(t)
	signed := signedBy(t, signer, signatureField("/Lock <</Type /SigFieldLock /Action /Include /Fields [(Total) (Second)]>>"), nil)
	fill := func(f *file, u *update) {
		d := f.object(ref{num: 4}).(dict)
		u.put(ref{num: 4}, d.with("V", text("7")))
	}
	r := verified(t, revise(t, signed, fill), root)
	if !slices.Equal(sigtest.Codes(r), []string{codeLaterForm}) {
		t.Errorf("a locked field was filled: %s", say(r))
	}
	free := signedBy(t, signer, signatureField("/Lock <</Type /SigFieldLock /Action /Exclude /Fields [(Total)]>>"), nil)
	if r := verified(t, revise(t, free, fill), root); !r.Passed() {
		t.Errorf("a field that is not locked was filled: %s", say(r))
	}
	// A signature field that the first signature locked cannot be signed.
	both := revise(t, signatureField("/Lock <</Type /SigFieldLock /Action /Include /Fields [(Second)]>>"), func(f *file, u *update) {
		id := u.add(dict{{"FT", name("Sig")}, {"T", text("Second")}})
		_, cat := f.catalog()
		form := f.resolveDict(cat.get("AcroForm"))
		u.put(ref{num: 1}, cat.with("AcroForm", form.with("Fields", append(f.resolveArray(form.get("Fields")), id))))
	})
	first := signedBy(t, signer, both, sig.Params{"PDFSignatureField": "Approval"})
	_, err := sigtest.Try(t, New(), signer, &sig.Job{Document: bytes.NewReader(first), Params: sig.Params{"PDFFormat": "CMS", "PDFSignatureField": "Second"}})
	if err == nil || !strings.Contains(err.Error(), "locks") {
		t.Errorf("a locked signature field: %v", err)
	}
	names := map[string]bool{}
	for _, s := range opened(t, signedBy(t, signer, first, nil)).form().signatures {
		names[s.name] = s.signed()
	}
	if names["Second"] || !names["Signature1"] {
		t.Errorf("fields by whether they are signed: %v", names)
	}
}

// TestSteps finishes a state that another process prepared, and refuses all others.
func TestSteps(t *testing.T) {
	root, signer := party(t)
	services := sigtest.NewServices(t, root)
	ctx := context.Background()
	job := func(data []byte, params sig.Params) *sig.Job {
		return &sig.Job{Document: bytes.NewReader(data), Params: params, Certificate: signer.Certificate, Chain: signer.Chain, Time: sigtest.Time, Evidence: services}
	}
	data := formDocument()
	params := sig.Params{"PDFFormat": "CAdES", "TSPAddress": ""}
	prepared, err := New().Prepare(ctx, job(data, params))
	if err != nil {
		t.Fatal(err)
	}
	value := signer.Sign(t, prepared.Digest)
	if _, err := New().Finish(ctx, job(data, nil), prepared.State, value); err != nil {
		t.Errorf("the parameters are in the state: %v", err)
	}
	var wrong *sig.ErrState
	other := bytes.Replace(data, []byte("Page 1"), []byte("Page 2"), 1)
	foreign := job(data, params)
	foreign.Certificate = root.Certificate
	for what, j := range map[string]*sig.Job{
		"another document": job(other, params), "a longer document": job(append(bytes.Clone(data), '\n'), params),
		"another certificate": foreign, "no document": {Certificate: signer.Certificate},
	} {
		if _, err := New().Finish(ctx, j, prepared.State, value); !errors.As(err, &wrong) {
			t.Errorf("%s: %v", what, err)
		}
	}
	change := func(edit func(*state)) []byte {
		st := mustState(t, prepared.State)
		edit(st)
		return sig.MarshalState(st, 0)
	}
	old := mustState(t, prepared.State)
	old.Version = 1
	asJSON, err := json.Marshal(old)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New().Finish(ctx, job(data, nil), asJSON, value); err != nil {
		t.Errorf("a state of version 1: %v", err)
	}
	for _, st := range [][]byte{nil, []byte("{}"), change(func(s *state) { s.Version = 9 }), change(func(s *state) { s.Room = -1 }), change(func(s *state) { s.Revision = nil })} {
		if _, err := New().Finish(ctx, job(data, params), st, value); !errors.As(err, &wrong) {
			t.Errorf("state %.40s: %v", st, err)
		}
	}
	var room *sig.ErrRoom
	if _, err := New().Finish(ctx, job(data, params), change(func(s *state) { s.Room = 100 }), value); !errors.As(err, &room) || room.Need < 1000 {
		t.Fatalf("too little room: %v", err)
	}
	again := job(data, params)
	again.Room = 1 << 20
	if prepared, err = New().Prepare(ctx, again); err != nil {
		t.Fatal(err)
	}
	result, err := New().Finish(ctx, again, prepared.State, signer.Sign(t, prepared.Digest))
	if err != nil || result.Size() < 2<<20 {
		t.Errorf("with the room that was asked for: %v", err)
	}
}

// TestWithoutIssuers drops the issuers' certificates if the message does not fit only
// because of them.
func TestWithoutIssuers(t *testing.T) {
	root, _ := party(t)
	signer := root.Authority(t, "Sub").Signer(t, suite.ECDSAP256, "Signer")
	job := &sig.Job{Document: bytes.NewReader(formDocument()), Params: sig.Params{"PDFFormat": "CMS"}, Certificate: signer.Certificate, Chain: signer.Chain, Time: sigtest.Time}
	prepared, err := New().Prepare(context.Background(), job)
	if err != nil {
		t.Fatal(err)
	}
	value := signer.Sign(t, prepared.Digest)
	message, err := New().fitting(context.Background(), job, mustState(t, prepared.State), value)
	if err != nil {
		t.Fatal(err)
	}
	st := mustState(t, prepared.State)
	st.Room = len(message) - 1
	shorter, err := New().fitting(context.Background(), job, st, value)
	if err != nil || len(shorter) >= len(message) {
		t.Errorf("%d bytes instead of %d: %v", len(shorter), len(message), err)
	}
}

func mustState(t *testing.T, raw []byte) *state {
	t.Helper()
	var st state
	if err := sig.OpenState(stateForm, new(sig.Job), bytes.Clone(raw), &st); err != nil {
		t.Fatal(err)
	}
	return &st
}

// TestPassword requests the password if it is needed, reports a wrong one, and does not
// store it.
func TestPassword(t *testing.T) {
	tools := judge.PDF(t)
	root, signer := party(t)
	services := sigtest.NewServices(t, root)
	data, err := tools.QPDF(formDocument(), "--encrypt", "user-word", "owner-word", "256", "--")
	if err != nil {
		t.Fatal(err)
	}
	job := func(password string) *sig.Job {
		p := sig.Params{"PDFFormat": "CAdES", "TSPAddress": ""}
		if password != "" {
			p["PDFPassword"] = password
		}
		return &sig.Job{Document: bytes.NewReader(data), Params: p, Certificate: signer.Certificate, Chain: signer.Chain, Time: sigtest.Time, Evidence: services}
	}
	ctx := context.Background()
	for _, wrong := range []string{"", "other-word"} {
		_, err := New().Prepare(ctx, job(wrong))
		if !slices.Equal(sigtest.Faults(err), []string{"PDFPassword"}) || strings.Contains(err.Error(), "-word") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	for _, word := range []string{"user-word", "owner-word"} {
		prepared, err := New().Prepare(ctx, job(word))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(prepared.State, []byte(word)) || bytes.Contains(prepared.State, []byte(base64.StdEncoding.EncodeToString([]byte(word)))) {
			t.Error("the password is in the state")
		}
		value := signer.Sign(t, prepared.Digest)
		if _, err := New().Finish(ctx, job(""), prepared.State, value); !slices.Equal(sigtest.Faults(err), []string{"PDFPassword"}) {
			t.Errorf("finished without the password: %v", err)
		}
		if n := services.Calls("stamp"); n != 0 && word == "user-word" {
			t.Errorf("%d time stamps were asked for in vain", n)
		}
		result, err := New().Finish(ctx, job(word), prepared.State, value)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if _, err := result.WriteTo(&out); err != nil {
			t.Fatal(err)
		}
		if err := tools.CheckQPDF(out.Bytes(), word); err != nil {
			t.Error(err)
		}
	}
}
