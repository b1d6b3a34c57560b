// SPDX-License-Identifier: Apache-2.0

package cades

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/evidence"
)

// level is a level of signed messages.
type level struct {
	sig.Choice // CADESType
	// raise appends what signatures at the level before this one lack. nil for the lowest level.
	raise func(ctx context.Context, r *raising, targets []*target) error
	// has reports whether a signature at the level before this one is at this level. It is needed
	// above XLT1.
	has func(s *cms.SignerInfo) bool
	// renews reports that raise also extends signatures that are at this level.
	renews bool
}

// levels are all levels, from the lowest up. XLT1 is X-L type 1: both a long-term level and one with a
// time stamp over its references.
var levels = []level{
	{Choice: sig.Choice{Name: typeBES, Number: "0"}},
	{Choice: sig.Choice{Name: typeT, Number: "2", Level: sig.LevelTime}, raise: stampValues},
	{Choice: sig.Choice{Name: typeXLT1, Number: "1", Level: sig.LevelLongTerm}, raise: addEvidence},
	{Choice: sig.Choice{Name: typeA, Number: "3", Also: "221", Level: sig.LevelArchive}, raise: addArchive, has: hasArchive, renews: true},
}

const (
	typeBES  = "BES"
	typeT    = "T"
	typeXLT1 = "XLT1"
	typeA    = "A"
)

// typesOf returns the values of CADESType in the order of their numbers.
func typesOf(levels []level) (types []sig.Choice) {
	for _, l := range levels {
		types = append(types, l.Choice)
	}
	slices.SortFunc(types, func(a, b sig.Choice) int { return cmp.Compare(a.Number, b.Number) })
	return types
}

// raising is the work of raising the signatures of one message.
type raising struct {
	by    stamper
	known []*x509gost.Certificate // that may be issuers
	rules evidence.Rules
	into  *container

	collected *evidence.Collector
}

// collector returns the one collector, so that each piece of evidence is fetched once for all levels.
func (r *raising) collector() *evidence.Collector {
	if r.collected == nil {
		r.collected = evidence.New(r.by.source, r.known, r.rules)
	}
	return r.collected
}

// target is one signature that is being enhanced. Attributes are appended to those it
// has.
type target struct {
	level  sig.Level       // that it has
	value  []byte          // of the signature
	has    []cms.Attribute // unsigned attributes it has
	info   *cms.SignerInfo // without the new attributes
	signer *x509gost.Certificate
	hash   *suite.Hash // of the signer's suite, for imprints and references
	// carried are the certificates of the message, which are not added a second time.
	carried [][]byte

	attrs   []cms.Attribute // to append
	stamped time.Time       // time of the earliest signature time stamp
	stamps  []*tsp.Verified // all of its signature, then that of its references
	// earlier are the archive time stamps that it had, and unproven the services of the time stamps
	// that it had and that none of those covers.
	earlier  *archives
	unproven []service
	replaced map[int]cms.Attribute // of those it has
}

// lifted returns the unsigned attributes of a new signature at the level of the state. into gets what
// else the level adds to the message.
func (f *Format) lifted(ctx context.Context, job *sig.Job, st *state, s *cms.Signer, m *cms.Message, into *container) ([]cms.Attribute, error) {
	level, _ := levelOf(st.Level) // parseState has checked it
	if level == sig.LevelBasic {
		return nil, nil
	}
	// Callers verify a value before Finish. It is verified again here because this is the boundary to
	// the outside: a time stamp cannot be taken back, and a program that keeps its key elsewhere may
	// bring the wrong value.
	if err := s.Suite.Verify(job.Certificate.PublicKey, s.Suite.Hash.Digest(st.Attributes), s.Signature); err != nil {
		return nil, fmt.Errorf("signature value: %w", err)
	}
	if job.Evidence == nil {
		return nil, &sig.ErrEvidence{What: "time stamp", Text: "no time-stamp service is configured"}
	}
	info, err := cms.ParseSignerInfo(s.Marshal())
	if err != nil {
		return nil, err
	}
	t := &target{value: s.Signature, info: info, signer: job.Certificate, hash: s.Suite.Hash, carried: certificates(job, st.Chain)}
	known := append([]*x509gost.Certificate{job.Certificate}, job.Chain...)
	if m != nil {
		t.carried = append(t.carried, m.Certificates...)
		inside, _ := m.X509() // unreadable ones are ignored
		known = append(known, inside...)
	}
	r := &raising{by: stamper{job.Evidence, st.Address}, known: known, rules: f.Rules, into: into}
	if err := r.raise(ctx, []*target{t}, level); err != nil {
		return nil, err
	}
	return t.attrs, nil
}

// stamper requests time stamps from the service at an address.
type stamper struct {
	source  sig.Evidence
	address string
}

// raise appends what is missing for the level.
func (r *raising) raise(ctx context.Context, targets []*target, to sig.Level) error {
	for _, l := range levels {
		if l.Level > to {
			break
		}
		var below []*target
		for _, t := range targets {
			if t.level < l.Level || l.renews && t.level == l.Level {
				below = append(below, t)
			}
		}
		if len(below) == 0 {
			continue
		}
		if err := l.raise(ctx, r, below); err != nil {
			return err
		}
		for _, t := range below {
			t.level = l.Level
		}
	}
	return nil
}

// stampValues is the raise of T: a time stamp over the value of each signature.
func stampValues(ctx context.Context, r *raising, targets []*target) error {
	for _, t := range targets {
		a, s, err := r.by.stamp(ctx, cms.OIDSignatureTimeStamp, t.hash, t.value)
		if err != nil {
			return err
		}
		t.attrs, t.stamps, t.stamped = append(t.attrs, a), []*tsp.Verified{s}, s.Token().Info.Time
	}
	return nil
}

// addEvidence is the raise of XLT1. All signatures have their stamps before evidence for their
// certificates is fetched, so that one answer serves all.
func addEvidence(ctx context.Context, r *raising, targets []*target) error {
	var latest time.Time // data must not be older than the latest stamp
	for _, t := range targets {
		if t.stamped.After(latest) {
			latest = t.stamped
		}
	}
	for _, t := range targets {
		if err := t.complete(ctx, r.by, r.collector(), latest); err != nil {
			return err
		}
	}
	return nil
}

// stamp requests a time stamp over data and returns it as an attribute.
func (by stamper) stamp(ctx context.Context, oid x509gost.OID, h *suite.Hash, data []byte) (a cms.Attribute, s *tsp.Verified, err error) {
	if err := ctx.Err(); err != nil {
		return a, nil, err
	}
	if s, err = sig.Stamp(ctx, by.source, by.address, h.Digest(data)); err != nil {
		return a, nil, err
	}
	return cms.NewAttribute(oid, s.Token().Raw), s, nil
}

// complete appends references, their time stamp, and values. Nothing that the time stamp
// covers changes afterwards. The values are not covered.
func (t *target) complete(ctx context.Context, by stamper, collector *evidence.Collector, notBefore time.Time) error {
	var values evidence.Values
	own, err := collector.Collect(ctx, &values, evidence.Subject{Certificate: t.signer, Purpose: evidence.ForSigner, At: notBefore})
	if err != nil {
		return err
	}
	certRefs, revRefs := certificateRefs(own.Path, t.hash), revocationRefs(own.Statuses, t.hash)
	covered := escCovers(t.value, slices.Concat(t.has, t.attrs, []cms.Attribute{certRefs, revRefs}))
	esc, s, err := by.stamp(ctx, cms.OIDEscTimeStamp, t.hash, covered)
	if err != nil {
		return err
	}
	t.stamps = append(t.stamps, s)
	if !slices.ContainsFunc(t.carried, func(raw []byte) bool { return string(raw) == string(t.signer.Raw) }) {
		values.AddCertificate(t.signer, evidence.ForSigner)
	}
	for _, s := range t.stamps {
		values.AddCertificate(s.Authority(), evidence.ForTimeStamp)
		of := evidence.Subject{Certificate: s.Authority(), Purpose: evidence.ForTimeStamp, Others: s.Token().Certificates(), At: notBefore}
		if _, err := collector.Collect(ctx, &values, of); err != nil {
			return err
		}
	}
	t.attrs = append(t.attrs, certRefs, revRefs, esc, certificateValues(values.Certificates), revocationValues(values.CRLs, values.OCSP))
	return nil
}

// escCovers returns the bytes that a CAdES-C time stamp covers (RFC 5126, 6.3.5): the
// signature value, then the attributes with the time stamps of the signature, the
// certificate references and the revocation references, each without its header.
func escCovers(value []byte, attrs []cms.Attribute) []byte {
	out := slices.Clone(value)
	for _, oid := range []x509gost.OID{cms.OIDSignatureTimeStamp, cms.OIDCertificateRefs, cms.OIDRevocationRefs} {
		for _, a := range attrs {
			if a.OID.Equal(oid) {
				out = append(out, a.Contents()...)
			}
		}
	}
	return out
}
