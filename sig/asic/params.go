// SPDX-License-Identifier: Apache-2.0

package asic

import (
	"tamga/sig"
)

// The values of parameters, by their names in the interface.
const (
	typeNameS = "S"
	typeNameE = "E"

	formatCAdES = "CAdES"
	formatXAdES = "XAdES"

	kindSign   = "Sign"
	kindCosign = "Cosign"

	levelBES = "BES"
)

var (
	types   = []sig.Choice{{Name: typeNameS}, {Name: typeNameE}}
	formats = []sig.Choice{{Name: formatCAdES}, {Name: formatXAdES}}
	kinds   = []sig.Choice{{Name: kindSign}, {Name: kindCosign}}
)

// params are the values of the parameters.
type params struct {
	xml     bool   // ASiCFormat
	single  bool   // ASiCType is S
	typed   bool   // ASiCType is given
	extends bool   // CmsSignatureType is Cosign: the document is a container
	level   string // CADESType or XAdESType as their formats read it
	inner   sig.Params
}

// Read implements sig.Format.
func (f *Format) Read(given sig.Params) *sig.Request {
	q := given.Request()
	r := q.Reader()
	p := params{
		xml:     r.Enum("ASiCFormat", formats, formatCAdES) == formatXAdES,
		single:  r.Enum("ASiCType", types, typeNameE) == typeNameS,
		typed:   r.Given("ASiCType"),
		extends: r.Enum("CmsSignatureType", kinds, kindSign) == kindCosign,
	}
	key, other := p.levelKey(), "XAdESType"
	if p.xml {
		other = "CADESType"
	}
	if r.Given(other) {
		r.Fault(other, "is not for the signatures of this container: their level is in "+key)
	}
	level := r.Choice(key, f.levels(key), levelBES)
	if p.xml && level.Name == "None" {
		r.Fault(key, "is None, but a container has XAdES signatures; BES or higher expected")
	}
	if q.OverHash {
		r.Fault("Hash", "is True, but a container holds its documents; False expected")
	}
	if r.Given("IsDetached") && !r.Bool("IsDetached", true) {
		r.Fault("IsDetached", "is False, but a signature in a container is always beside the documents; leave it out")
	}
	p.level = level.Name
	p.inner = sig.Params{key: level.Name, "IncludeCertChain": truth(r.Bool("IncludeCertChain", true))}
	if p.xml {
		p.inner["XMLDsigType"] = "XMLEnveloped" // needed, and without a meaning for references to files
	} else {
		p.inner["IsDetached"] = truth(true)
	}
	if q.Stamping.Given {
		p.inner["TSPAddress"] = q.Stamping.Address
	}
	if r.Given("HashAlgorithm") {
		p.inner["HashAlgorithm"] = r.String("HashAlgorithm")
	}
	q.Level, q.Own = level.Level, p
	q.Several = !p.single && !p.extends
	return q
}

// levelKey is the parameter that has the level.
func (p *params) levelKey() string {
	if p.xml {
		return "XAdESType"
	}
	return "CADESType"
}

// levels returns the values of a parameter with the level, as the format of the signatures inside describes it.
func (f *Format) levels(key string) []sig.Choice {
	for _, d := range []sig.Description{f.CMS.Describe(), f.XML.Describe()} {
		for _, p := range d.Params {
			if p.Name == key {
				return p.Choices
			}
		}
	}
	return nil
}

func truth(b bool) string {
	if b {
		return "True"
	}
	return "False"
}
