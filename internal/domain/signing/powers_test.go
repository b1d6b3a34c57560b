// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"bytes"
	"context"
	"testing"
	"time"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/cades"
)

// noted is a format that notes what it is asked to check.
type noted struct {
	sig.Described
	checks *[]sig.Check
}

func (n noted) Verify(ctx context.Context, c *sig.Check) (*sig.Report, error) {
	*n.checks = append(*n.checks, *c)
	return n.Described.Verify(ctx, c)
}

// TestPowersCheck checks that settings of verification reach the signatures of powers.
func TestPowersCheck(t *testing.T) {
	root := sigtest.Root(t, suite.GOST2012x256)
	head := root.Identity(t, suite.GOST2012x256, sigtest.Head)
	document := sigtest.NewPower().XML()
	signature := sigtest.Make(t, cades.New(), head, &sig.Job{Document: sigtest.Document(document), Params: sig.Params{"CADESType": "BES", "IsDetached": "True"}})
	trust := Trust{Roots: []*x509gost.Certificate{root.Certificate}}
	var checks []sig.Check
	p := &Powers{
		Formats: sig.Formats{noted{cades.New(), &checks}}, Now: func() time.Time { return sigtest.Time },
		Ends: suite.Ends{"SHA-224": sigtest.Time}, LivingStamps: true,
	}
	if _, err := p.loadFiles(t.Context(), trust, []sig.File{{Document: bytes.NewReader(document)}, {Document: bytes.NewReader(signature)}}, nil); err != nil {
		t.Fatal(err)
	}
	if len(checks) == 0 {
		t.Fatal("nothing was checked")
	}
	for _, c := range checks {
		if !c.Ends["SHA-224"].Equal(sigtest.Time) || !c.LivingStamps || !c.RequireRevocation {
			t.Errorf("ends %v, living stamps %v, revocation required %v", c.Ends, c.LivingStamps, c.RequireRevocation)
		}
	}
}
