// SPDX-License-Identifier: Apache-2.0

package xmldsig

import (
	"slices"
	"strconv"

	"tamga/sig"
)

// Signature kinds and levels, by their names in the interface.
const (
	kindEnveloped  = "XMLEnveloped"
	kindEnveloping = "XMLEnveloping"
	kindTemplate   = "XMLTemplate"

	xadesNone = "None"
	xadesBES  = "BES"
	xadesT    = "T"
	xadesLT   = "LT"
	xadesLTA  = "LTA"
)

// The enumerations of the interface with all their values.
var (
	kinds      = []sig.Choice{{Name: kindEnveloped, Number: "0"}, {Name: kindEnveloping, Number: "1"}, {Name: kindTemplate, Number: "2"}}
	xadesTypes = []sig.Choice{{Name: xadesNone, Number: "0"}, {Name: xadesBES, Number: "1"}, {Name: xadesT, Number: "2", Level: sig.LevelTime},
		{Name: xadesLT, Number: "3", Level: sig.LevelLongTerm}, {Name: xadesLTA, Number: "4", Level: sig.LevelArchive}}
)

// params are the values of the parameters.
type params struct {
	kind    string    // XMLDsigType
	xades   string    // XAdESType
	level   sig.Level // of that type
	address string    // TSPAddress
	chain   bool      // IncludeCertChain
	index   int       // SignatureIndex: index of the Signature element that is the template, -1 for the first empty one
}

// Read implements sig.Format.
func (*Format) Read(given sig.Params) *sig.Request {
	q := given.Request()
	r := q.Reader()
	xades := r.Choice("XAdESType", xadesTypes, xadesNone)
	p := params{
		kind:  r.Enum("XMLDsigType", kinds, ""),
		xades: xades.Name,
		level: xades.Level,
		// Programs that read KeyInfo expect only the signer's certificate.
		chain: r.Bool("IncludeCertChain", false),
	}
	if !r.Given("XMLDsigType") {
		r.Fault("XMLDsigType", "is missing; XMLEnveloped, XMLEnveloping or XMLTemplate expected")
	}
	if r.Given("SignatureIndex") && p.kind != kindTemplate {
		r.Fault("SignatureIndex", "is allowed only with XMLDsigType=XMLTemplate")
	} else {
		p.index = readIndex(r)
	}
	if q.OverHash {
		r.Fault("Hash", "is True, but a signature in XML is made over a document, never over its hash value; False expected")
	}
	for _, key := range []string{"XPath", "ObjectId"} {
		if r.Given(key) {
			r.Fault(key, "is not supported; a template (XMLDsigType=XMLTemplate) says which parts to sign")
		}
	}
	q.Level, q.Own = p.level, p
	return q
}

// levelOf returns the level of an XAdESType.
func levelOf(name string) (l sig.Level, ok bool) {
	i := slices.IndexFunc(xadesTypes, func(c sig.Choice) bool { return c.Name == name })
	if i < 0 {
		return l, false
	}
	return xadesTypes[i].Level, true
}

// stamper returns the address of the time-stamp service for a job.
func stamper(q *sig.Request, job *sig.Job, r *sig.ParamReader, xades string) string {
	return q.Stamper(job, r, "XAdESType", xades, xadesBES)
}

// readIndex reads the index of a Signature element among all those of the document. It
// returns -1 if the parameter is absent.
func readIndex(r *sig.ParamReader) int {
	if !r.Given("SignatureIndex") {
		return -1
	}
	n, err := strconv.Atoi(r.String("SignatureIndex"))
	if err != nil || n < 0 {
		r.Fault("SignatureIndex", "is not a number from 0 on; the index of a Signature element of the document expected")
		return -1
	}
	return n
}
