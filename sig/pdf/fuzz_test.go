// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/sig"
)

// seeds are small documents of several kinds, complete and broken.
func seeds() [][]byte {
	plain := formDocument()
	catalog := []string{"<</Type /Catalog /Pages 2 0 R /AcroForm <</Fields [3 0 R]>>>>", "<</Type /Pages /Kids [] /Count 0>>", "<</T (a) /FT /Sig /Kids [3 0 R]>>"}
	return [][]byte{
		plain, plain[:len(plain)-30], plain[:len(plain)/2],
		crossStreamDocument(catalog, "/Size 9 /Index [0 4]", ""),
		crossStreamDocument(catalog, "/Size 9", "/Encrypt <</Filter /Standard /V 2 /R 3 /P -4 /Length 128 /O (0123456789abcdef0123456789abcdef) /U (0123456789abcdef0123456789abcdef)>>"),
		signatureField("/SV <</Ff 8 /Reasons [(One)]>> /Lock <</Action /All>>"),
		[]byte("%PDF-1.4\n1 0 obj<</Type/ObjStm/N 1/First 4/Length 9>>stream\n5 0 <<>>\nendstream\ntrailer<</Root 5 0 R>>"),
	}
}

// FuzzPrepare signs any input. The result is a refusal of the document or a parameter, or
// a document that can be read again without searching for objects, with the signature in
// it.
func FuzzPrepare(f *testing.F) {
	for _, s := range seeds() {
		f.Add(s)
	}
	// Any 64 bytes are a GOST value, and CMS does not check it.
	signer := sigtest.Root(f, suite.GOST2012x256).Signer(f, suite.GOST2012x256, "Signer")
	f.Fuzz(func(t *testing.T, data []byte) {
		job := &sig.Job{Document: bytes.NewReader(data), Certificate: signer.Certificate, Chain: signer.Chain, Time: sigtest.Time, Params: sig.Params{"PDFFormat": "CMS"}}
		prepared, err := New().Prepare(context.Background(), job)
		var document *sig.ErrDocument
		var params *sig.ErrParams
		if err != nil {
			if !errors.As(err, &document) && !errors.As(err, &params) {
				t.Fatalf("%v", err)
			}
			return
		}
		result, err := New().Finish(context.Background(), job, prepared.State, make([]byte, 64))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if _, err := result.WriteTo(&out); err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(out.Bytes(), data) {
			t.Fatal("the document was changed")
		}
		again, err := open(context.Background(), bytes.NewReader(out.Bytes()), int64(out.Len()), nil)
		if err != nil || again.rebuilt {
			t.Fatalf("the result is not read again: %v", err)
		}
		for _, s := range again.form().signatures {
			if s.signed() && again.signature(s).end == int64(out.Len()) {
				return
			}
		}
		t.Fatal("the signature is not in the result")
	})
}

// FuzzVerify checks any input.
func FuzzVerify(f *testing.F) {
	_, signer := party(f)
	for _, s := range seeds() {
		f.Add(s)
	}
	once := signedBy(f, signer, formDocument(), nil)
	f.Add(once)
	f.Add(signedBy(f, signer, once, nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := New().Verify(context.Background(), &sig.Check{Document: bytes.NewReader(data), At: sigtest.Time})
		var document *sig.ErrDocument
		var params *sig.ErrParams // a password is missing
		if err != nil && !errors.As(err, &document) && !errors.As(err, &params) || err == nil && r.Passed() {
			t.Fatalf("%v %v", err, r) // no certificate is trusted
		}
	})
}

// FuzzEnhance raises any input to the level with an archive time stamp. What is not refused begins with the
// input and has a valid time stamp at its end.
func FuzzEnhance(f *testing.F) {
	root, signer := party(f)
	services := sigtest.NewServices(f, root)
	once := signedBy(f, signer, formDocument(), nil)
	f.Add(once)
	f.Add(mustRaise(f, once, "CAdESA", services))
	f.Add(stampedByHand(f, once, services, suite.SHA256))
	f.Fuzz(func(t *testing.T, data []byte) {
		raised, err := raise(data, "CAdESA", services)
		var document *sig.ErrDocument
		var params *sig.ErrParams
		var evidence *sig.ErrEvidence // of an unknown authority
		if errors.As(err, &document) || errors.As(err, &params) || errors.As(err, &evidence) {
			return
		}
		if err != nil || !bytes.HasPrefix(raised, data) {
			t.Fatalf("%v: %d bytes of %d", err, len(raised), len(data))
		}
		r := verifiedAt(t, raised, services.Now, root)
		if last := r.Signatures[len(r.Signatures)-1]; !last.IsStamp() || last.Own() != sig.Passed {
			t.Fatalf("%s", say(r))
		}
	})
}

// FuzzObject reads any object and writes it, so that it is read as the same.
func FuzzObject(f *testing.F) {
	for _, s := range []string{"<</A [1 -2.5 (x\\)\\101) <4 1> /N#20a true null 12 0 R]>>", "12 0 R", "[[[", "<</A/B/C>>", "(\r\n\\\r)", "%x\n/"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := lexBytes(data).object()
		if err != nil {
			return
		}
		written := appendObject(nil, first, nil)
		second, err := lexBytes(written).object()
		if err != nil {
			t.Fatalf("%q is not read again: %v", written, err)
		}
		if again := appendObject(nil, second, nil); !bytes.Equal(again, written) {
			t.Fatalf("%q became %q", written, again)
		}
	})
}
