// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"cmp"
	"slices"
	"strings"

	"tamga/internal/domain/signing"
	"tamga/internal/web/pages/view"
)

// A row of the table of verdicts says in words what findings mean. Its texts are row.NAME.head, which follows the word of
// the verdict, row.NAME.text and row.NAME.mend. They never overrule the verdict.
//
// rows are in the order in which they decide: of several findings with the worst verdict, the first row is the cause.
var rows = []struct {
	name  string
	codes []string
}{
	{"changed", []string{"later-annotations", "later-change", "later-metadata", "later-form-filling", "later-signature"}},
	{"other_document", []string{"message-digest-mismatch", "original-mismatch"}},
	{"data_changed", []string{"digest-mismatch", "content-type-mismatch", "content-type-changed"}},
	{"other_key", []string{"signature-mismatch", "signing-certificate-mismatch", "signing-certificate", "signing-certificate-issuer-serial", "algorithm-mismatch"}},
	{"algorithm_changed", []string{"algorithm-protection-mismatch"}},
	{"not_covered", []string{
		"reference-misplaced", "reference-id-not-unique", "byte-range", "trailing-bytes", "hidden-entry", "covers-no-revision", "covers-part", "part-not-covered",
		"relationship-not-covered", "relationship-unknown", "reference-missing", "reference-refused", "reference-empty", "reference-failed", "reference-twice",
		"transform-refused", "transform-unexpected", "transform-malformed", "transform-order", "content-type-missing", "signature-in-fields", "signature-missing", "signature-unreachable",
		"contents-padding", "signed-properties", "data-object-format", "manifest-missing", "file-not-covered",
	}},
	{"revoked", []string{"certificate-revoked"}},
	{"not_yet", []string{"certificate-not-yet-valid"}},
	{"broken", []string{
		"signature-malformed", "structure-broken", "message-malformed", "message-digest-malformed", "message-padding", "signed-attributes-missing", "signature-empty",
		"unsigned-attribute-malformed", "signing-time-malformed", "signing-time-twice", "digest-algorithm-not-listed", "format-unknown", "office-details-missing", "manifest-malformed", "container-kind",
	}},
	{"none", []string{"no-signature"}},
	{"document_needed", []string{"document-missing", "hash-algorithm-mismatch"}},
	{"forged", []string{"certificate-signature", "certificate-not-authority", "certificate-path-length"}},
	{"unknown_authority", []string{"certificate-no-path"}},
	{"certificate_missing", []string{"certificate-missing", "certificate-unreadable", "signing-certificate-missing", "signing-certificate-v1"}},
	{"usage", []string{"certificate-usage", "certificate-key-usage", "certificate-extended-key-usage", "certificate-critical-extension", "certificate-private-key-period"}},
	{"expired", []string{"certificate-expired"}},
	{"reading", []string{"signed-attributes-not-in-order", "signed-attributes-stored-out-of-order", "signed-attributes-not-der"}},
	{"revocation", []string{
		"certificate-revocation-unknown", "certificate-evidence-unavailable", "certificate-crl-unusable", "certificate-crl-stale", "certificate-ocsp-unusable",
		"certificate-ocsp-stale", "certificate-ocsp-unknown",
	}},
	{"stamp", []string{"time-stamp", "time-stamp-not-checked", "time-stamp-invalid", "time-stamp-added-later", "time-stamp-untrusted", "time-stamps-out-of-order", "archive-time-stamp-lapsed", "archive-manifest"}},
	{"evidence", []string{
		"long-term-value-broken", "long-term-value-unused", "long-term-evidence-incomplete", "evidence-older-than-time-stamp", "reference-without-value",
		"references-out-of-step", "reference-not-checked", "evidence-record",
	}},
	{"algorithm", []string{
		"algorithm-unknown", "digest-algorithm-weak", "signature-algorithm-weak", "digest-algorithm-refused", "certificate-algorithm-unsupported", "certificate-algorithm-weak",
	}},
	{"power", []string{"power-unsigned", "power-signature", "power-not-yet", "power-expired", "power-withdrawn", "power-delegation", "power-principal", "power-chain"}},
	{"power_signer", []string{"power-other", "power-differs", "power-unknown", "power-joint"}},
	{"power_rights", []string{"power-rights", "power-words", "power-wider"}},
	{"power_parent", []string{"power-parent"}},
	{"power_notary", []string{"power-notary"}},
	{"power_proof", []string{"power-no-proof"}},
	{"power_later", []string{"power-status-later"}},
	{"work", []string{"too-much-work", "too-many-signatures", "later-not-judged"}},
	{"countersigned", []string{"countersignature", "countersignature-malformed"}},
	{"later", []string{"later-validation-data", "later-time-stamp"}},
	{"revoked_later", []string{"certificate-revoked-later"}},
	{"note", []string{
		"original-not-compared", "mimetype", "power-remark", "power-status-unknown", "power-not-needed", "power-stray", "power-limits",
	}},
}

// rowsOf are the places in rows by code.
var rowsOf = func() map[string]int {
	at := map[string]int{}
	for i, r := range rows {
		for _, code := range r.codes {
			at[code] = i
		}
	}
	return at
}()

// allowed are the notes about later changes that the signed document permits.
var allowed = map[string]bool{
	"later-validation-data": true, "later-time-stamp": true, "later-signature": true, "later-metadata": true, "later-form-filling": true,
}

// speaker says what findings mean.
type speaker struct {
	*view.Words
	asks   bool // this service asks other authorities for the status of a certificate
	beside bool // the signature is beside its document
}

// rowOf returns the row of a finding of a signature.
func (w speaker) rowOf(s *signing.SignatureReport, f *signing.Finding) string {
	at, known := rowsOf[f.Code]
	if f.Verdict == passed {
		switch {
		case allowed[f.Code]:
			return "later"
		case f.Code == "certificate-revoked-later":
			return "revoked_later"
		}
		return "note"
	}
	if !known {
		return "general"
	}
	switch row := rows[at].name; {
	case row == "other_document" && f.Code == "message-digest-mismatch" && !w.beside:
		return "data_changed" // the document is in the signed file
	case row == "expired" && !s.StampedTime.IsZero():
		return "after_term"
	case row == "expired" && f.Of != nil && s.ClaimedTime.After(f.Of.NotAfter):
		return "expired_later"
	case row == "revocation" && !w.asks:
		return "revocation_off"
	default:
		return row
	}
}

// decider returns the finding that decides the verdict of a signature itself, nil for none.
func decider(s *signing.SignatureReport) (worst *signing.Finding) {
	place := func(f *signing.Finding) int {
		if at, known := rowsOf[f.Code]; known {
			return at
		}
		return len(rows)
	}
	for i := range s.Findings {
		f := &s.Findings[i]
		if f.Verdict == passed {
			continue
		}
		if worst == nil || cmp.Or(verdicts[worst.Verdict]-verdicts[f.Verdict], place(f)-place(worst)) < 0 {
			worst = f
		}
	}
	return worst
}

// fill fills a text of a row with the values of a finding.
func (w speaker) fill(text string, s *signing.SignatureReport, f *signing.Finding) string {
	if !strings.Contains(text, "{") {
		return text
	}
	unknown := w.Text("verify.unknown")
	of := f.Of
	if of == nil {
		of = s.Signer
	}
	values := []string{"{what}", w.TextOr("code."+f.Code, cmp.Or(w.Own(f.Text), f.Text)), "{algorithm}", unknown, "{date}", unknown, "{stamped}", unknown}
	if s.Algorithm != "" {
		values[3] = w.Algorithm(s.Algorithm)
	}
	if !f.When.IsZero() {
		values[5] = w.When(f.When)
	}
	if !s.StampedTime.IsZero() {
		values[7] = w.When(s.StampedTime)
	}
	if of == nil {
		values = append(values, "{name}", unknown, "{authority}", unknown, "{from}", unknown, "{until}", unknown)
	} else {
		values = append(values, "{name}", view.NameIn(of.Subject), "{authority}", view.NameIn(of.Issuer), "{from}", w.Day(of.NotBefore), "{until}", w.Day(of.NotAfter))
	}
	return strings.NewReplacer(values...).Replace(text)
}

// said is what a row says of a finding.
type said struct{ Row, Head, Text, Mend string }

// say returns the texts of a row about a finding of a signature.
func (w speaker) say(row string, s *signing.SignatureReport, f *signing.Finding) said {
	one := said{Row: row, Head: w.Text("row." + row + ".head"), Mend: w.Text("row." + row + ".mend")}
	one.Text = w.fill(w.Text("row."+row+".text"), s, f)
	if f.Of != nil && s.Signer != nil && !slices.Equal(f.Of.DER, s.Signer.DER) && f.Code != "certificate-no-path" {
		one.Text += " " + w.Text("verify.other_certificate", view.NameIn(f.Of.Subject))
	}
	return one
}
