package cades

import (
	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/sig"
)

// Levels and kinds of the interface by their documented names.
const (
	levelBES  = "BES"
	levelT    = "T"
	levelXLT1 = "XLT1"

	kindSign        = "Sign"
	kindCosign      = "Cosign"
	kindCountersign = "Countersign"
)

// The enumerations of the interface, with every value it knows.
var (
	levels = []sig.Choice{{Name: levelBES, Number: "0"}, {Name: levelXLT1, Number: "1", Stamped: true}, {Name: levelT, Number: "2", Stamped: true}}
	kinds  = []sig.Choice{{Name: kindSign}, {Name: kindCosign}, {Name: kindCountersign}}
)

// params are the parameters as read.
type params struct {
	hash     bool   // Document, or the original of a message, is a hash value
	detached bool   // the message is without the document
	level    string // CADESType
	address  string // TSPAddress
	kind     string // CmsSignatureType
	chain    bool   // include the issuers' certificates
	attrs    []cms.Attribute
	position position // SignatureIndex
}

// read reads the parameters of a job that signs. What depends on the message to
// extend is read by extend. The caller asks r.Err().
func read(job *sig.Job, r *sig.ParamReader, s *suite.Suite) params {
	p := params{
		hash: r.Bool("Hash", false),
		kind: r.Enum("CmsSignatureType", kinds, kindSign),
		// Without the root: a verifier must have it already, and one that comes
		// with the message proves nothing.
		chain: r.Bool("IncludeCertChain", true),
		attrs: ownAttributes(r),
	}
	readLevel(job, r, &p)
	p.detached = r.Bool("IsDetached", p.hash)
	if p.kind == kindSign && p.hash && !p.detached {
		r.Fault("IsDetached", "is False, but a signature over a hash value (Hash=True) is always detached; True expected")
	}
	r.CheckHashAlgorithm(s)
	if p.kind == kindCountersign {
		p.position = readPosition(r)
	}
	if p.kind == kindSign && given(job.Original) {
		r.Fault("OriginalDocument", "has a meaning only with CmsSignatureType Cosign or Countersign")
	}
	return p
}

// readLevel reads CADESType and what a level above BES needs.
func readLevel(job *sig.Job, r *sig.ParamReader, p *params) {
	p.level = r.Enum("CADESType", levels, levelBES)
	if p.level == levelBES {
		return
	}
	p.address = r.String("TSPAddress")
	switch {
	case !r.Has("TSPAddress"):
		r.Fault("TSPAddress", "is needed for CADESType="+p.level+": the address of a time-stamp service")
	case job.Evidence == nil:
		r.Fault("CADESType", p.level+" needs time stamps, and nobody to ask for them is configured here; BES expected")
	}
}

// given tells whether there is an original. An empty one comes with plain
// signatures from some clients and means nothing.
func given(d sig.Document) bool { return d != nil && d.Size() > 0 }
