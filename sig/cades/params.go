package cades

import (
	"slices"
	"strings"

	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/sig"
)

// The enumerations of the interface, with every value it knows.
var (
	levels = []sig.Choice{{Name: "BES", Number: "0"}, {Name: "XLT1", Number: "1"}, {Name: "T", Number: "2"}}
	kinds  = []sig.Choice{{Name: "Sign"}, {Name: "Cosign"}, {Name: "Countersign"}}
)

// available is what this release makes of them. A value of the interface that is
// missing here is refused by name; a release that makes it adds it here.
var available = []struct {
	key    string
	values []string
}{
	{"CADESType", []string{"BES"}},
	{"CmsSignatureType", []string{"Sign"}},
	{"AuthenticatedAttributes", nil}, // any value would be an attribute to add
}

// params are the parameters as read.
type params struct {
	hash     bool   // Document is a hash value
	detached bool   // the message is without the document
	level    string // CADESType
	kind     string // CmsSignatureType
	chain    bool   // include the issuers' certificates
}

// read reads the parameters of a job. What a mode cannot do without is checked
// before what this release does not make, so that a caller learns first what is
// wrong with the request itself. The caller asks r.Err().
func read(job *sig.Job, r *sig.ParamReader, s *suite.Suite) params {
	p := params{
		hash:  r.Bool("Hash", false),
		level: r.Enum("CADESType", levels, "BES"),
		kind:  r.Enum("CmsSignatureType", kinds, "Sign"),
		// Without the root: a verifier must have it already, and one that comes
		// with the message proves nothing.
		chain: r.Bool("IncludeCertChain", true),
	}
	p.detached = r.Bool("IsDetached", p.hash)
	if p.hash && !p.detached {
		r.Fault("IsDetached", "is False, but a signature over a hash value (Hash=True) is always detached; True expected")
	}
	if p.level != "BES" && !r.Has("TSPAddress") {
		r.Fault("TSPAddress", "is needed for CADESType="+p.level+": the address of a time-stamp service")
	}
	if p.kind == "Cosign" && p.hash && !r.Given("HashAlgorithm") {
		r.Fault("HashAlgorithm", "is needed for a cosignature over a hash value, such as "+s.Hash.Name)
	}
	r.CheckHashAlgorithm(s)

	// An empty original comes with plain signatures from some clients and means
	// nothing.
	original := job.Original != nil && job.Original.Size() > 0
	if p.kind == "Sign" && original {
		r.Fault("OriginalDocument", "has a meaning only with CmsSignatureType Cosign or Countersign")
	}
	if p.kind == "Cosign" && !original && (p.detached || isDetached(job.Document)) {
		r.Fault("OriginalDocument", "is needed to cosign a detached signature")
	}

	if r.Err() == nil {
		refuseUnavailable(r, map[string]string{
			"CADESType":               p.level,
			"CmsSignatureType":        p.kind,
			"AuthenticatedAttributes": r.String("AuthenticatedAttributes"),
		})
	}
	return p
}

// refuseUnavailable records a fault for each value this release does not make.
func refuseUnavailable(r *sig.ParamReader, values map[string]string) {
	for _, a := range available {
		v := values[a.key]
		switch {
		case v == "" || slices.Contains(a.values, v):
		case a.values == nil:
			r.Fault(a.key, "is not available in this release; leave it out")
		default:
			r.Fault(a.key, v+" is not available in this release; available: "+strings.Join(a.values, ", "))
		}
	}
}

// isDetached tells whether a document is a detached message.
func isDetached(d sig.Document) bool {
	m, err := cms.Parse(d, d.Size())
	return err == nil && m.Detached
}
