// SPDX-License-Identifier: Apache-2.0

package xmldsig_test

import (
	"maps"
	"slices"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/internal/testsize"
	"tamga/pki/suite"
	"tamga/sig/xmldsig"
)

// Apache Santuario, which shares no code with xmlsec, accepts signatures by RSA and ECDSA
// of every kind, level and transform that it supports, and refuses them with a change.
func TestSantuarioJudges(t *testing.T) {
	if testsize.Of() == testsize.Quick {
		t.Skip("xmlsec judges in the quick form")
	}
	j := judge.NewSantuario(t)
	var all []exhibit
	for _, s := range []*suite.Suite{suite.RSASHA256, suite.ECDSAP256} {
		signer := sigtest.Root(t, s).Signer(t, s, "Иван Петров")
		for _, kind := range kinds {
			for _, level := range []string{"None", "BES"} {
				if kind == "XMLTemplate" && level != "None" {
					continue
				}
				name := s.Name + "/" + kind + "/" + level
				signed := sigtest.Make(t, xmldsig.New(), signer, jobOf(kind, s, "XAdESType", level))
				all = append(all, exhibit{name, signed, true})
				for what, bad := range broken(t, signed) {
					all = append(all, exhibit{name + ", " + what + " changed", bad, false})
				}
			}
		}
		all = append(all, exhibit{s.Name + "/Base64", sigtest.Make(t, xmldsig.New(), signer, job("XMLEnveloping", "a text")), true})
		for i, name := range slices.Sorted(maps.Keys(everyTransform)) {
			for j, uri := range everyURI {
				if leftOut(i, j, len(everyURI)) {
					continue
				}
				signed := sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", withTemplate(bare(s, uri, everyTransform[name]))))
				all = append(all, exhibit{s.Name + "/" + name + "/" + uri, signed, true})
			}
		}
	}
	documents := make([][]byte, len(all))
	for i, e := range all {
		documents[i] = e.xml
	}
	for i, err := range j.Verify(documents...) {
		switch e := all[i]; {
		case e.good && err != nil:
			t.Errorf("%s is refused: %v\n%s", e.name, err, e.xml)
		case !e.good && err == nil:
			t.Errorf("%s is accepted", e.name)
		}
	}
}
