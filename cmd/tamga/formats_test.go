package main

import (
	"strings"
	"testing"

	"tamga/internal/config"
	"tamga/sig"
	"tamga/sig/sigtest"
)

// TestFormatOfOneLine: verify recognises and judges a format that nothing but the list of
// formats knows.
func TestFormatOfOneLine(t *testing.T) {
	f := newSignedFiles(t)
	known := append(formats(&config.Config{}), sigtest.MadeUp{})
	signed := sigtest.Make(t, sigtest.MadeUp{}, f.signer, &sig.Job{Document: sigtest.Document([]byte(f.document))})
	writeFile(t, "file", string(signed))
	c := &console{ctx: t.Context(), stdout: t.Output(), stderr: t.Output()}
	for original, holds := range map[string]bool{"doc": true, "other": false} {
		r, err := (&verifyCommand{File: "file", Original: original, Cert: "signer.pem", Revocation: "known", Data: t.TempDir()}).judge(c, known)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := r.print(&text); err != nil || !strings.Contains(text.String(), "made-up file, 1 signature") {
			t.Errorf("%s, %v", text.String(), err)
		}
		if r.Format != "madeup" || len(r.Signatures) != 1 || r.Signatures[0].SignatureHolds != holds {
			t.Errorf("over %s: %+v", original, r)
		}
	}
	_, err := (&verifyCommand{File: "file", Cert: "signer.pem", Data: t.TempDir()}).judge(c, known)
	if err == nil || !strings.Contains(err.Error(), "does not hold the document") {
		t.Errorf("without the document: %v", err)
	}
	_, err = (&verifyCommand{File: "text", Data: t.TempDir()}).judge(c, known)
	if err == nil || !strings.Contains(err.Error(), "an Office document, a bare signature or a made-up file expected") {
		t.Errorf("of another kind: %v", err)
	}
}
