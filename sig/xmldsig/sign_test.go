// SPDX-License-Identifier: Apache-2.0

package xmldsig_test

import (
	"testing"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/sig/xmldsig"
)

func TestRoundTrip(t *testing.T) {
	for _, s := range suite.All() {
		root := sigtest.Root(t, s)
		signer := root.Signer(t, s, "Signer")
		for _, kind := range kinds {
			for _, xades := range []string{"None", "BES"} {
				if kind == "XMLTemplate" && xades != "None" {
					continue
				}
				t.Run(s.Name+"/"+kind+"/"+xades, func(t *testing.T) {
					signed := sigtest.Make(t, xmldsig.New(), signer, jobOf(kind, s, "XAdESType", xades))
					r := mustHold(t, signed, root)
					t.Log(r.Signatures[0].Covers, r.Signatures[0].Level)
				})
			}
		}
	}
}
