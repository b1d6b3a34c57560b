package xmldsig_test

import (
	"testing"

	"tamga/internal/judge"
	"tamga/pki/suite"
	"tamga/sig/sigtest"
	"tamga/sig/xmldsig"
)

// Apache Santuario, which shares nothing with xmlsec, accepts what RSA and ECDSA
// sign, of every kind, level and transform that it has, and refuses it changed.
func TestSantuarioJudges(t *testing.T) {
	j := judge.NewSantuario(t)
	type exhibit struct {
		name string
		xml  []byte
		good bool
	}
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
		for name, transform := range map[string]string{
			"enveloped alone": enveloped(""),
			"C14N 1.0":        enveloped(`<Transform Algorithm="http://www.w3.org/TR/2001/REC-xml-c14n-20010315#WithComments"/>`),
			"C14N 1.1":        enveloped(`<Transform Algorithm="http://www.w3.org/2006/12/xml-c14n11"/>`),
			"prefix list":     enveloped(`<Transform Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"><InclusiveNamespaces xmlns="http://www.w3.org/2001/10/xml-exc-c14n#" PrefixList="a #default"/></Transform>`),
			"XPath":           transformsOf(`<Transform Algorithm="http://www.w3.org/TR/1999/REC-xpath-19991116"><XPath xmlns:dsig="http://www.w3.org/2000/09/xmldsig#">not(ancestor-or-self::dsig:Signature)</XPath></Transform>`),
			"here()":          transformsOf(`<Transform Algorithm="http://www.w3.org/TR/1999/REC-xpath-19991116"><XPath xmlns:dsig="http://www.w3.org/2000/09/xmldsig#">count(ancestor-or-self::dsig:Signature | here()/ancestor::dsig:Signature[1]) &gt; count(ancestor-or-self::dsig:Signature)</XPath></Transform>`),
			"filter 2.0":      transformsOf(`<Transform Algorithm="http://www.w3.org/2002/06/xmldsig-filter2"><XPath xmlns="http://www.w3.org/2002/06/xmldsig-filter2" Filter="subtract" xmlns:dsig="http://www.w3.org/2000/09/xmldsig#">//dsig:Signature</XPath></Transform>`),
		} {
			for _, uri := range []string{"", "#part", "#xpointer(/)", "#xpointer(id('part'))"} {
				signed := sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", withTemplate(bare(s, uri, transform))))
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
