// SPDX-License-Identifier: Apache-2.0

package cades

import (
	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/sig"
)

// Levels and kinds, by their names in the interface.
const (
	levelBES  = "BES"
	levelT    = "T"
	levelXLT1 = "XLT1"

	kindSign        = "Sign"
	kindCosign      = "Cosign"
	kindCountersign = "Countersign"
)

// The enumerations of the interface with all their values.
var (
	levels = []sig.Choice{{Name: levelBES, Number: "0"}, {Name: levelXLT1, Number: "1", Stamped: true}, {Name: levelT, Number: "2", Stamped: true}}
	kinds  = []sig.Choice{{Name: kindSign}, {Name: kindCosign}, {Name: kindCountersign}}
)

// params are the values of the parameters.
type params struct {
	hash     bool   // Document, or the original of a message, is a hash value
	detached bool   // the message does not contain the document
	level    string // CADESType
	address  string // TSPAddress
	kind     string // CmsSignatureType
	chain    bool   // include the issuers' certificates
	attrs    []cms.Attribute
	position position // SignatureIndex
}

// read reads the parameters of a job that signs. extend reads those that depend on the
// message to extend. The caller then checks r.Err().
func read(job *sig.Job, r *sig.ParamReader, s *suite.Suite) params {
	p := params{
		hash: r.Bool("Hash", false),
		kind: r.Enum("CmsSignatureType", kinds, kindSign),
		// Without the root: a verifier must have it already, and a root in the message
		// proves nothing.
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
		r.Fault("OriginalDocument", "is allowed only with CmsSignatureType Cosign or Countersign")
	}
	return p
}

// readLevel reads CADESType and the parameters of levels above BES.
func readLevel(job *sig.Job, r *sig.ParamReader, p *params) {
	p.level = r.Enum("CADESType", levels, levelBES)
	if p.level == levelBES {
		return
	}
	p.address = r.String("TSPAddress")
	switch {
	case !r.Has("TSPAddress"):
		r.Fault("TSPAddress", "is missing; CADESType="+p.level+" needs the address of a time-stamp service")
	case job.Evidence == nil:
		r.Fault("CADESType", p.level+" needs time stamps, but no time-stamp service is configured; BES expected")
	}
}

// given reports whether there is an original. Some clients send an empty one with plain
// signatures, which counts as none.
func given(d sig.Document) bool { return d != nil && d.Size() > 0 }
