// SPDX-License-Identifier: Apache-2.0

package cades

import (
	"slices"

	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/sig"
)

// Levels and kinds, by their names in the interface. XLT1 is X-L type 1: both a long-term level and
// one with a time stamp over its references.
const (
	typeBES  = "BES"
	typeT    = "T"
	typeXLT1 = "XLT1"

	kindSign        = "Sign"
	kindCosign      = "Cosign"
	kindCountersign = "Countersign"
)

// The enumerations of the interface with all their values.
var (
	types = []sig.Choice{{Name: typeBES, Number: "0"}, {Name: typeXLT1, Number: "1", Level: sig.LevelLongTerm}, {Name: typeT, Number: "2", Level: sig.LevelTime}}
	kinds = []sig.Choice{{Name: kindSign}, {Name: kindCosign}, {Name: kindCountersign}}
)

// params are the values of the parameters.
type params struct {
	hash     bool      // Document, or the original of a message, is a hash value
	detached bool      // the message does not contain the document
	level    sig.Level // CADESType
	address  string    // TSPAddress
	kind     string    // CmsSignatureType
	chain    bool      // include the issuers' certificates
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
	p.level = r.Choice("CADESType", types, typeBES).Level
	if p.level == sig.LevelBasic {
		return
	}
	p.address = r.String("TSPAddress")
	switch {
	case !r.Has("TSPAddress"):
		r.Fault("TSPAddress", "is missing; CADESType="+TypeOf(p.level)+" needs the address of a time-stamp service")
	case job.Evidence == nil:
		r.Fault("CADESType", TypeOf(p.level)+" needs time stamps, but no time-stamp service is configured; BES expected")
	}
}

// TypeOf returns the CADESType of a level, empty if no signature is made at it.
func TypeOf(l sig.Level) string {
	for _, c := range types {
		if c.Level == l {
			return c.Name
		}
	}
	return ""
}

// levelOf returns the level of a CADESType.
func levelOf(name string) (l sig.Level, ok bool) {
	i := slices.IndexFunc(types, func(c sig.Choice) bool { return c.Name == name })
	if i < 0 {
		return l, false
	}
	return types[i].Level, true
}

// given reports whether there is an original. Some clients send an empty one with plain
// signatures, which counts as none.
func given(d sig.Document) bool { return d != nil && d.Size() > 0 }
