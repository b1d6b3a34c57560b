// SPDX-License-Identifier: Apache-2.0

package sig_test

import (
	"strings"
	"testing"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/cades"
	"tamga/sig/xmldsig"
)

// A result that does not have the level for a reader with the same anchors is not returned.
func TestLevelNotReached(t *testing.T) {
	root, other := sigtest.Root(t, suite.ECDSAP256), sigtest.Root(t, suite.RSASHA256)
	services := sigtest.NewServices(t, other, root)
	signer := root.Signer(t, suite.ECDSAP256, "Signer")
	for name, c := range map[string]struct {
		format    sig.Format
		content   string
		basic, to sig.Params
	}{
		"CAdES": {cades.New(), "text", sig.Params{}, sig.Params{"CADESType": "A"}},
		"XML":   {xmldsig.New(), "<a/>", sig.Params{"XMLDsigType": "XMLEnveloped", "XAdESType": "BES"}, sig.Params{"XAdESType": "LTA"}},
	} {
		signed := sigtest.Make(t, c.format, signer, &sig.Job{Document: sigtest.Document([]byte(c.content)), Params: c.basic})
		c.to["TSPAddress"] = ""
		for _, anchors := range [][]*x509gost.Certificate{nil, {root.Certificate, other.Certificate}, {other.Certificate}} {
			_, err := c.format.(sig.Enhancer).Enhance(t.Context(), &sig.Job{Document: sigtest.Document(signed), Evidence: services, Params: c.to, Time: services.Now, Roots: anchors})
			if len(anchors) != 1 && err != nil || len(anchors) == 1 && (err == nil || !strings.Contains(err.Error(), " only, and nothing was written")) {
				t.Errorf("%s with %d anchors: %v", name, len(anchors), err)
			}
		}
	}
}
