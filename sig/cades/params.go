// SPDX-License-Identifier: Apache-2.0

package cades

import (
	"slices"

	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/sig"
)

// Kinds, by their names in the interface.
const (
	kindSign        = "Sign"
	kindCosign      = "Cosign"
	kindCountersign = "Countersign"
)

// The enumerations of the interface with all their values.
var (
	types = typesOf(levels)
	kinds = []sig.Choice{{Name: kindSign}, {Name: kindCosign}, {Name: kindCountersign}}
)

// profileOrder472 is the form of Order 472 of the ministry of digital development of 14.09.2020: a signature holds its
// algorithms with their parameters, its time, the certificate of the signer, and those of all issuers. The first three are in each message
// of this package. The root itself stays out, as always.
const profileOrder472 = "Order472"

var profiles = []sig.Choice{{Name: profileOrder472}}

// wholePath adds the fault of a job whose certificates do not lead to a root.
func wholePath(job *sig.Job, r *sig.ParamReader) {
	last := job.Certificate
	for _, c := range job.Chain {
		if last.IsSelfIssued() {
			break
		}
		last = c
	}
	if last != nil && !last.IsSelfIssued() {
		r.Fault(sig.Profile, "is Order472, which needs the certificates of all issuers, but that of "+sig.Printable(last.Issuer.String(), 100, '?')+" is unknown; give it with the certificate of the signer")
	}
}

// params are the values of the parameters.
type params struct {
	hash     bool      // Document, or the original of a message, is a hash value
	detached bool      // the message does not contain the document
	level    sig.Level // CADESType
	address  string    // TSPAddress
	kind     string    // CmsSignatureType
	chain    bool      // include the issuers' certificates
	whole    bool      // they must lead to a root
	attrs    []cms.Attribute
	position position // SignatureIndex
}

// Read implements sig.Format.
func (*Format) Read(given sig.Params) *sig.Request {
	q := given.Request()
	r := q.Reader()
	p := params{
		hash: q.OverHash,
		kind: r.Enum("CmsSignatureType", kinds, kindSign),
		// Without the root: a verifier must have it already, and a root in the message
		// proves nothing.
		chain: r.Bool("IncludeCertChain", true),
		attrs: ownAttributes(r),
	}
	if r.Enum(sig.Profile, profiles, "") == profileOrder472 {
		q.Profiled, p.whole = true, true
		if !p.chain {
			r.Fault("IncludeCertChain", "is False, but Profile=Order472 needs the certificates of the issuers; True expected")
		}
		p.chain = true
	} else {
		q.Profiled = r.Given(sig.Profile) // the fault of an unknown one is enough
	}
	q.Level = readLevel(r)
	p.detached = r.Bool("IsDetached", p.hash)
	if p.kind == kindSign && p.hash && !p.detached {
		r.Fault("IsDetached", "is False, but a signature over a hash value (Hash=True) is always detached; True expected")
	}
	if p.kind == kindCountersign {
		p.position = readPosition(r)
	}
	q.Own = p
	return q
}

func readLevel(r *sig.ParamReader) sig.Level { return r.Choice("CADESType", types, typeBES).Level }

// check adds the faults of one job that signs, and sets what depends on it. extend reads what depends
// on the message to extend. The caller then checks r.Err().
func (p *params) check(q *sig.Request, job *sig.Job, r *sig.ParamReader, s *suite.Suite) {
	p.level, p.address = q.Level, stampAddress(q, job, r)
	r.CheckHashAlgorithm(s)
	if p.kind == kindCountersign && p.level == sig.LevelArchive {
		r.Fault("CADESType", "is A, but a countersignature gets no archive time stamp of its own: the one of the signature covers it; XLT1 expected")
	}
	if p.kind == kindSign && given(job.Original) {
		r.Fault("OriginalDocument", "is allowed only with CmsSignatureType Cosign or Countersign")
	}
}

func stampAddress(q *sig.Request, job *sig.Job, r *sig.ParamReader) string {
	return q.Stamper(job, r, "CADESType", TypeOf(q.Level), typeBES)
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

// renewed reports whether signatures at a level are raised to it again.
func renewed(l sig.Level) bool {
	return slices.ContainsFunc(levels, func(row level) bool { return row.Level == l && row.renews })
}
