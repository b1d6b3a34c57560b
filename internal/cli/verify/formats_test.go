// SPDX-License-Identifier: Apache-2.0

package verify_test

import (
	"strings"
	"testing"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/cli/verify"
	"tamga/internal/config"
	"tamga/internal/sigtest"
	"tamga/internal/tamgatest"
	"tamga/sig"
)

// TestFormatOfOneLine checks that verify handles a format that is only in the list of formats.
func TestFormatOfOneLine(t *testing.T) {
	f := newSignedFiles(t)
	known := append(app.Formats(&config.Config{}), sigtest.MadeUp{})
	signed := sigtest.Make(t, sigtest.MadeUp{}, f.signer, &sig.Job{Document: sigtest.Document([]byte(f.document))})
	tamgatest.WriteFile(t, "file", string(signed))
	c := &cli.Console{Context: t.Context(), Stdout: t.Output(), Stderr: t.Output()}
	for original, holds := range map[string]bool{"doc": true, "other": false} {
		r, err := judge(c, known, "file", verify.Command{Original: original, Cert: "signer.pem", Revocation: "known", Data: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := r.Print(&cli.Console{Stdout: &text}); err != nil || !strings.Contains(text.String(), "made-up file, 1 signature") {
			t.Errorf("%s, %v", text.String(), err)
		}
		if r.Format != "madeup" || len(r.Signatures) != 1 || r.Signatures[0].SignatureHolds != holds {
			t.Errorf("over %s: %+v", original, r)
		}
	}
	_, err := judge(c, known, "file", verify.Command{Cert: "signer.pem", Data: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "does not hold the document") {
		t.Errorf("without the document: %v", err)
	}
	_, err = judge(c, known, "text", verify.Command{Data: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "an Office document, a bare signature or a made-up file expected") {
		t.Errorf("of another kind: %v", err)
	}
}

// judge verifies one file with the flags of a command.
func judge(c *cli.Console, known sig.Formats, file string, flags verify.Command) (*verify.Report, error) {
	common, err := flags.Common(c)
	if err != nil {
		return nil, err
	}
	return flags.Judge(c, known, common, file)
}
