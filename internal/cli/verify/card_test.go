// SPDX-License-Identifier: Apache-2.0

package verify_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"tamga/internal/sigtest"
	"tamga/internal/tamgatest"
	"tamga/sig"
	"tamga/sig/cades"
	"tamga/sig/pdf"
)

// TestCardOffline makes a card without a server, opens it, and opens changed copies.
func TestCardOffline(t *testing.T) {
	f := newSignedFiles(t)
	run := func(code int, args ...string) string {
		t.Helper()
		r := tamgatest.Run(t.Context(), "", args...)
		if r.Code != code {
			t.Fatalf("%v: exit code %d: %s%s", args, r.Code, r.Out, r.Err)
		}
		return r.Out + r.Err
	}
	run(0, "card", "make", "doc", "--offline", "--ca", "bundle.pem") // finds doc.sig
	if out := run(0, "card", "open", "doc.card.pdf", "--ca", "bundle.pem", "--at", "2025-03-15"); !strings.Contains(out, "no change since the card was made was found") || !strings.Contains(out, "passed") {
		t.Error(out)
	}
	for _, name := range []string{"doc", "doc.sig"} {
		if want, got := tamgatest.ReadFile(t, name), tamgatest.ReadFile(t, "doc.card/"+name); !bytes.Equal(want, got) {
			t.Errorf("%s came back with %d of %d bytes", name, len(got), len(want))
		}
	}
	if out := run(2, "card", "open", "doc.card.pdf"); !strings.Contains(out, "already exists") {
		t.Error(out)
	}
	run(3, "card", "open", "doc.card.pdf", "-o", "untrusted", "--data", t.TempDir())
	card := tamgatest.ReadFile(t, "doc.card.pdf")
	tamgatest.WriteFile(t, "changed.pdf", strings.Replace(string(card), f.document, "Договоп\n", 1))
	var report struct {
		Changes  []struct{ Change, Name string }
		Verified []struct{ Verdict, Original string }
	}
	if err := json.Unmarshal([]byte(run(1, "card", "open", "changed.pdf", "--ca", "bundle.pem", "--at", "2025-03-15", "--json")), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Changes) != 2 || report.Changes[0].Name != "doc" || report.Changes[0].Change != "file-changed" || len(report.Verified) != 1 || report.Verified[0].Verdict != "failed" {
		t.Errorf("%+v", report)
	}
	tamgatest.WriteFile(t, "climbs.pdf", strings.ReplaceAll(string(card), "(doc)", "(..)"))
	if out := run(2, "card", "open", "climbs.pdf", "-o", "climbed"); !strings.Contains(out, "leads to another folder") {
		t.Error(out)
	}
	if _, err := os.Stat("climbed"); err == nil {
		t.Error("a refused card left a directory")
	}
	for _, args := range [][]string{
		{"card", "make", "doc", "other", "--offline"}, {"card", "make", "other", "doc.sig", "--offline"}, {"card", "make", "text", "--offline"},
		{"card", "make", "doc.sig", "--offline"}, {"card", "make", "doc", "--offline", "--report"}, {"card", "make", "doc", "--ca", "root.pem"},
		{"card", "make", "doc", "--offline", "--language", "de"}, {"card", "make", "empty", "doc.sig", "--offline"},
	} {
		if r := tamgatest.Run(t.Context(), "", append(args, "-o", "none.pdf")...); r.Code != 1 {
			t.Errorf("%v: exit code %d: %s", args, r.Code, r.Err)
		}
	}
	if _, err := os.Stat("none.pdf"); err == nil {
		t.Error("a refused card left a file")
	}
	for _, name := range []string{"doc", "pdf"} {
		if r := tamgatest.Run(t.Context(), "", "card", "open", name); r.Code != 2 {
			t.Errorf("%s: exit code %d: %s", name, r.Code, r.Err)
		}
	}
	// A PDF can have a signature inside and another one beside it. Both are verified.
	inside := sigtest.Make(t, pdf.New(), f.signer, &sig.Job{Document: sigtest.Document(tamgatest.PDFOf(2000)), Params: sig.Params{"PDFFormat": "CMS"}})
	tamgatest.WriteFile(t, "both.pdf", string(inside))
	tamgatest.WriteFile(t, "both.pdf.sig", string(sigtest.Make(t, cades.New(), f.signer, &sig.Job{Document: sigtest.Document(inside), Params: sig.Params{"CADESType": "BES", "IsDetached": "True"}})))
	run(0, "card", "make", "both.pdf", "both.pdf.sig", "--offline", "--ca", "bundle.pem")
	report.Verified = nil
	if err := json.Unmarshal([]byte(run(0, "card", "open", "both.pdf.card.pdf", "--ca", "bundle.pem", "--at", "2025-03-15", "--json")), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Verified) != 2 || report.Verified[0].Verdict != "passed" || report.Verified[1].Verdict != "passed" || report.Verified[0].Original != "" {
		t.Errorf("a signature inside and one beside: %+v", report.Verified)
	}
	// A document with its signature inside needs no other file.
	run(0, "card", "make", "attached", "--offline", "--ca", "bundle.pem", "--language", "ru")
	if out := run(0, "card", "open", "attached.card.pdf", "--ca", "bundle.pem", "--at", "2025-03-15"); !strings.Contains(out, "passed") {
		t.Error(out)
	}
}
