package xmldsig

import (
	"strconv"

	"tamga/pki/suite"
	"tamga/sig"
)

// Kinds and levels of the interface by their documented names.
const (
	kindEnveloped  = "XMLEnveloped"
	kindEnveloping = "XMLEnveloping"
	kindTemplate   = "XMLTemplate"

	xadesNone = "None"
	xadesBES  = "BES"
	xadesT    = "T"
)

// The enumerations of the interface, with every value it knows.
var (
	kinds      = []sig.Choice{{Name: kindEnveloped, Number: "0"}, {Name: kindEnveloping, Number: "1"}, {Name: kindTemplate, Number: "2"}}
	xadesTypes = []sig.Choice{{Name: xadesNone, Number: "0"}, {Name: xadesBES, Number: "1"}, {Name: xadesT, Number: "2", Stamped: true}}
)

// params are the parameters as read.
type params struct {
	kind    string // XMLDsigType
	xades   string // XAdESType
	address string // TSPAddress
	chain   bool   // IncludeCertChain
	index   int    // SignatureIndex: which Signature element is the template, -1 for the first empty one
}

// readParams reads the parameters of a job; the caller asks r.Err().
func readParams(job *sig.Job, r *sig.ParamReader, s *suite.Suite) params {
	p := params{
		kind:  r.Enum("XMLDsigType", kinds, ""),
		xades: r.Enum("XAdESType", xadesTypes, xadesNone),
		// Readers of KeyInfo expect the signer's certificate alone.
		chain: r.Bool("IncludeCertChain", false),
	}
	if !r.Given("XMLDsigType") {
		r.Fault("XMLDsigType", "is needed: XMLEnveloped, XMLEnveloping or XMLTemplate")
	}
	if p.xades == xadesT {
		p.address = readAddress(job, r)
	}
	if r.Given("SignatureIndex") && p.kind != kindTemplate {
		r.Fault("SignatureIndex", "has a meaning only with XMLDsigType=XMLTemplate")
	} else {
		p.index = readIndex(r)
	}
	if r.Bool("Hash", false) {
		r.Fault("Hash", "is True, but a signature in XML is made over a document, never over its hash value; False expected")
	}
	for _, key := range []string{"XPath", "ObjectId"} {
		if r.Given(key) {
			r.Fault(key, "is not supported; a template (XMLDsigType=XMLTemplate) says which parts to sign")
		}
	}
	r.CheckHashAlgorithm(s)
	return p
}

// readAddress reads where the time stamp of the level T comes from.
func readAddress(job *sig.Job, r *sig.ParamReader) string {
	switch {
	case !r.Has("TSPAddress"):
		r.Fault("TSPAddress", "is needed for XAdESType=T: the address of a time-stamp service")
	case job.Evidence == nil:
		r.Fault("XAdESType", "T needs time stamps, and nobody to ask for them is configured here; BES expected")
	}
	return r.String("TSPAddress")
}

// readIndex reads the position of a Signature element among all of the document, -1
// when none is given.
func readIndex(r *sig.ParamReader) int {
	if !r.Given("SignatureIndex") {
		return -1
	}
	n, err := strconv.Atoi(r.String("SignatureIndex"))
	if err != nil || n < 0 {
		r.Fault("SignatureIndex", "is not a number from 0 on: the position among the Signature elements of the document")
		return -1
	}
	return n
}
