// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"strings"
	"testing"
	"time"

	"tamga/internal/domain/signing"
	"tamga/internal/web/pages/view"
)

// TestRows checks that each code of a finding has a row of the table of verdicts in each language, that the row says what is
// the case and what to do, and that it is filled with the values of the finding. TestFindings of package view checks that the
// sentences are those of all codes.
func TestRows(t *testing.T) {
	day := func(d int) time.Time { return time.Date(2026, 11, d, 11, 5, 0, 0, time.UTC) }
	owner := &signing.CertificateInfo{Subject: "CN=Signer,O=Firm", Issuer: "CN=Authority", NotBefore: day(1), NotAfter: day(20), DER: []byte{1}}
	for _, w := range view.Languages {
		codes := w.Family("code.")
		if len(codes) < 100 {
			t.Fatalf("only %d codes", len(codes))
		}
		for _, asks := range []bool{true, false} {
			speak := speaker{w, asks, true}
			for _, code := range codes {
				if _, known := rowsOf[code.Value]; !known {
					t.Errorf("%s: the code %s has no row", w.Language, code.Value)
				}
				for _, verdict := range []string{passed, indeterminate, failed} {
					s := &signing.SignatureReport{Signer: owner, ClaimedTime: day(2), Verdict: verdict, Algorithm: "ALG"}
					f := &signing.Finding{Code: code.Value, Verdict: verdict, Of: owner, When: day(10)}
					said := speak.say(speak.rowOf(s, f), s, f)
					for _, text := range []string{said.Head, said.Text, said.Mend} {
						if text == "" || strings.HasPrefix(text, "row.") || strings.ContainsAny(text, "{}%") {
							t.Errorf("%s: %s, %s: the row %s says %q", w.Language, code.Value, verdict, said.Row, text)
						}
					}
				}
			}
		}
	}
	for _, r := range rows {
		for _, code := range r.codes {
			if !view.HasText("code." + code) {
				t.Errorf("the row %s has the code %s, which no verifier has", r.name, code)
			}
		}
	}

	// The rows that depend on more than the code.
	for _, c := range []struct {
		name, code, verdict string
		change              func(s *signing.SignatureReport, w *speaker)
		row, want           string
	}{
		{"revoked", "certificate-revoked", failed, nil, "revoked", "Действие сертификата прекращено 10\u00a0ноября 2026, 11:05\u00a0(UTC), до подписи."},
		{"revoked later", "certificate-revoked-later", passed, nil, "revoked_later", "позже подписи"},
		{"expired", "certificate-expired", indeterminate, nil, "expired", "Срок истёк 20\u00a0ноября 2026, штампа времени нет"},
		{"claimed after", "certificate-expired", indeterminate, func(s *signing.SignatureReport, _ *speaker) { s.ClaimedTime = day(25) }, "expired_later", "уже после срока"},
		{"stamped after", "certificate-expired", indeterminate, func(s *signing.SignatureReport, _ *speaker) { s.StampedTime = day(25) }, "after_term", "По штампу подписано 25\u00a0ноября 2026, 11:05\u00a0(UTC), а сертификат действовал до 20\u00a0ноября 2026."},
		{"detached", "message-digest-mismatch", failed, nil, "other_document", "не тот документ"},
		{"attached", "message-digest-mismatch", failed, func(_ *signing.SignatureReport, w *speaker) { w.beside = false }, "data_changed", "данные изменены"},
		{"asked", "certificate-revocation-unknown", indeterminate, nil, "revocation", "Центр «Authority» не ответил"},
		{"not asked", "certificate-revocation-unknown", indeterminate, func(_ *signing.SignatureReport, w *speaker) { w.asks = false }, "revocation_off", "чужие центры этот сервис не спрашивает"},
		{"unknown authority", "certificate-no-path", indeterminate, nil, "unknown_authority", "Центру «Authority» этот сервис не доверяет, поэтому имя в сертификате – Signer"},
		{"algorithm", "algorithm-unknown", indeterminate, nil, "algorithm", "Алгоритм ALG"},
		{"form", "later-form-filling", passed, nil, "later", "заполнены поля формы – документ это допускает"},
		{"form forbidden", "later-form-filling", failed, nil, "changed", "не подписано"},
	} {
		speak := speaker{view.WordsIn("ru"), true, true}
		s := &signing.SignatureReport{Signer: owner, ClaimedTime: day(2), Verdict: c.verdict, Algorithm: "ALG"}
		if c.change != nil {
			c.change(s, &speak)
		}
		f := &signing.Finding{Code: c.code, Verdict: c.verdict, Of: owner, When: day(10)}
		if row := speak.rowOf(s, f); row != c.row || !strings.Contains(speak.say(row, s, f).Text, c.want) {
			t.Errorf("%s: the row %s says %q, want %s with %q", c.name, row, speak.say(row, s, f).Text, c.row, c.want)
		}
	}
}

// TestAdvice checks that no advice names what an installation may have switched off: asking other authorities.
func TestAdvice(t *testing.T) {
	for _, w := range view.Languages {
		speak := speaker{w, false, true}
		for _, code := range w.Family("code.") {
			s, f := &signing.SignatureReport{}, &signing.Finding{Code: code.Value, Verdict: indeterminate}
			if speak.rowOf(s, f) == "revocation" {
				t.Errorf("%s: %s advises to wait for an answer that is not asked for", w.Language, code.Value)
			}
		}
	}
}

// TestDecider checks which finding is the cause.
func TestDecider(t *testing.T) {
	of := func(codes ...string) *signing.SignatureReport {
		s := &signing.SignatureReport{}
		for _, code := range codes {
			name, verdict, _ := strings.Cut(code, ":")
			s.Findings = append(s.Findings, signing.Finding{Code: name, Verdict: verdict})
		}
		return s
	}
	for want, s := range map[string]*signing.SignatureReport{
		"message-digest-mismatch": of("certificate-no-path:indeterminate", "certificate-revoked:failed", "message-digest-mismatch:failed"),
		"certificate-expired":     of("certificate-revocation-unknown:indeterminate", "certificate-expired:indeterminate", "later-signature:passed"),
		"certificate-no-path":     of("certificate-revocation-unknown:indeterminate", "certificate-no-path:indeterminate"),
	} {
		if f := decider(s); f == nil || f.Code != want {
			t.Errorf("%v decides, want %s", f, want)
		}
	}
	if f := decider(of("later-signature:passed")); f != nil {
		t.Errorf("the note %s decides", f.Code)
	}
}
