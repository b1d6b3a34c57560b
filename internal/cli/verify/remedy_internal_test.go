// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"strings"
	"testing"

	"tamga/sig"
)

// TestRemedies checks that a finding that decides says what is missing, by its code before its indication, and that a command that the
// format does not know is not named.
func TestRemedies(t *testing.T) {
	r := &Report{File: "contract.sig", raises: true}
	for _, test := range []struct {
		finding          sig.Finding
		missing, command string
	}{
		{sig.Finding{Code: "document-missing", Indication: sig.SignedDataNotFound}, "the document that was signed", "tamga verify contract.sig --original DOCUMENT"},
		{sig.Finding{Code: "certificate-no-path", Indication: sig.NoCertificateChainFound}, "root that you trust", "tamga verify contract.sig --ca ROOT --intermediate AUTHORITY"},
		{sig.Finding{Code: "certificate-revocation-unknown"}, "revocation list", "tamga verify contract.sig --crl LIST"},
		{sig.Finding{Code: "long-term-evidence-incomplete"}, "revocation data", "tamga enhance contract.sig --level LT"},
		{sig.Finding{Code: "digest-mismatch", Indication: sig.HashFailure}, "as it was signed", ""},
		{sig.Finding{Code: "certificate-expired", Indication: sig.OutOfBoundsNoPOE}, "before the end", ""},
		{sig.Finding{Code: "certificate-revoked", Indication: sig.Revoked}, "another certificate", ""},
	} {
		m := r.remedyOf(&test.finding)
		if m == nil || !strings.Contains(string(m.Missing), test.missing) || string(m.Command) != test.command {
			t.Errorf("%s: %+v", test.finding.Code, m)
		}
	}
	if m := r.remedyOf(&sig.Finding{Code: "later-time-stamp"}); m != nil {
		t.Errorf("a note has the remedy %+v", m)
	}
	bare := &Report{File: "a b; rm"}
	if m := bare.remedyOf(&sig.Finding{Code: "long-term-evidence-incomplete"}); m == nil || m.Command != "" {
		t.Errorf("a format that is not raised: %+v", m)
	}
	if m := bare.remedyOf(&sig.Finding{Code: "document-missing"}); m.Command != needsOriginal.Command {
		t.Errorf("a name that a shell reads otherwise is in %q", m.Command)
	}
}
