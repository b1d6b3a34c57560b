// SPDX-License-Identifier: Apache-2.0

package xmldsig

import (
	"cmp"
	"errors"
	"fmt"
	"hash"
	"slices"
	"time"

	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/budget"
	"tamga/sig/cades"
	"tamga/sig/xmltree"
)

// Limits for the time stamps of one signature.
const (
	maxTimeStamps = 8  // over the value
	maxArchives   = 64 // archive time stamps: two a year for thirty years
)

// stamped is one time stamp among the unsigned properties of a signature.
type stamped struct {
	node    xmltree.Node
	place   int  // among the unsigned properties
	archive bool // an ArchiveTimeStamp
	every   bool // of 1.4.1, which covers every Object, and not only those that no reference names
	token   *tsp.Token
	signer  *x509gost.Certificate
	err     error
	good    *bool // whether it was valid when it was made; nil: not asked yet
	result  sig.TimeStamp
	lapsed  bool // it was valid when it was made, and nothing proves it now
}

func (s *stamped) name() string {
	if s.archive {
		return "the archive time stamp of " + s.token.Info.Time.UTC().Format(time.RFC3339)
	}
	return "the time stamp of " + s.token.Info.Time.UTC().Format(time.RFC3339)
}

// stamps lists the time stamps of the signature that are checked, in their order.
func (v *verification) stampList() (list []*stamped) {
	t := v.tree
	counts := map[bool]int{}
	for place, n := range unsignedProperties(v.sig) {
		s := &stamped{node: n, place: place, result: sig.TimeStamp{Kind: "signature"}}
		switch {
		case t.Is(n, nsXAdES, "SignatureTimeStamp"):
		case t.Is(n, nsXAdES, "ArchiveTimeStamp"), t.Is(n, nsLater, "ArchiveTimeStamp"):
			s.archive, s.every, s.result.Kind = true, t.Is(n, nsLater, "ArchiveTimeStamp"), "archive"
		default:
			continue
		}
		most := maxTimeStamps
		if s.archive {
			most = maxArchives
		}
		if counts[s.archive]++; counts[s.archive] == most+1 {
			v.add(codeTimeStamp, fmt.Sprintf("the signature has more than %d time stamps of one kind; the others were ignored", most), false)
		}
		if counts[s.archive] <= most {
			list = append(list, s)
		}
	}
	return list
}

// timeStamps checks the time stamps of the signature: first each by itself, then, from the last to the
// first, whether its service is trusted at the time that a later one proves. The earliest valid one is the
// time for which the signature is checked. Each archive time stamp covers all properties before it.
func (v *verification) timeStamps() {
	v.stamps = v.stampList()
	for i, s := range v.stamps {
		if s.err = v.readStamp(s); s.err != nil || !s.archive {
			continue
		}
		for _, below := range v.stamps[:i] {
			if below.err == nil && s.token.Info.Time.Before(below.token.Info.Time) && v.wasGood(below) {
				s.err = fmt.Errorf("it covers a time stamp of %s, which is later", below.token.Info.Time.UTC().Format(time.RFC3339))
				break
			}
		}
	}
	proven, chained := v.check.At, v.check.Container != nil && v.check.Container.Chained
	for _, s := range slices.Backward(v.stamps) {
		if s.err != nil {
			name := "the time stamp"
			if s.archive {
				name = fmt.Sprintf("the archive time stamp at place %d of the unsigned properties", s.place+1)
			}
			text := name + " is invalid: " + s.err.Error()
			s.result.Findings = append(s.result.Findings, sig.Finding{Code: codeTimeStamp, Text: text, Indication: sig.IndicationOf(codeTimeStamp)})
			v.out.Findings = append(v.out.Findings, sig.StampLeftOut(codeTimeStamp, text))
			continue
		}
		s.result, s.lapsed = v.check.JudgeStamp(v.ctx, s.result.Kind, s.token, s.signer, v.tokenFound(s), proven, chained || s.archive)
		v.out.Findings = append(v.out.Findings, sig.StampOtherIssuer(s.token, s.signer)...)
		switch {
		case s.result.Passed():
			if s.archive {
				proven, chained = s.token.Info.Time, true
				if v.archived < 0 {
					v.archived = s.place
				}
			}
		case s.lapsed:
			chained = true
			v.add(codeLapsed, s.name()+" proves nothing at "+proven.UTC().Format(time.RFC3339)+": its certificate or its algorithm had ended, and no later archive time stamp was made before", false)
		default:
			v.add(codeTimeStamp, s.name()+" proves no time: it is not by a trusted service, or its hash function is weak", false)
		}
	}
	for _, s := range v.stamps {
		v.out.TimeStamps = append(v.out.TimeStamps, s.result)
		if s.result.Passed() && v.out.Level != levelPlain {
			v.out.Level = xadesT
			if s.result.Time.Before(v.out.BestTime) {
				v.out.BestTime = s.result.Time
			}
		}
	}
}

// wasGood reports whether a time stamp was valid when it was made: the time of any other one counts for nothing.
// It is asked for few, those that are later than one that covers them.
func (v *verification) wasGood(s *stamped) bool {
	if s.good == nil {
		// Without anchors, as when signatures are raised, every one counts.
		good := len(v.check.Roots) == 0 || v.check.StampWasGood(v.ctx, s.token, s.signer, v.tokenFound(s))
		s.good = &good
	}
	return *s.good
}

// tokenFound returns all data that may help to check a token.
func (v *verification) tokenFound(s *stamped) sig.Found {
	own, all := cades.Carried(s.token.Message), v.carried.found(-1)
	return sig.Found{
		Certificates: slices.Concat(own.Certificates, all.Certificates), CRLs: slices.Concat(own.CRLs, all.CRLs), OCSP: slices.Concat(own.OCSP, all.OCSP),
	}
}

// readStamp reads a time stamp and checks its imprint and its signature.
func (v *verification) readStamp(s *stamped) error {
	t := v.tree
	method := xmltree.Method{Form: xmltree.C14N10} // the default
	if m := t.Child(s.node, nsDS, "CanonicalizationMethod"); m != xmltree.None {
		algorithm, _ := t.Get(m, "Algorithm")
		form, ok := canonicalForms[algorithm]
		if algorithm == "" { // some programs write the default so
			form, ok = method, true
		}
		if !ok {
			return flawAt(t, m, codeAlgorithm, "CanonicalizationMethod %s is not one of the canonical forms of XML", quote(algorithm))
		}
		var err error
		if method, err = withPrefixes(t, m, form); err != nil {
			return err
		}
	}
	if n := t.Child(s.node, nsXAdES, "Include"); n != xmltree.None && s.archive {
		return flawAt(t, n, codeTimeStamp, "it says what it covers by Include, which is not supported")
	}
	value := t.Child(s.node, nsXAdES, "EncapsulatedTimeStamp")
	if value == xmltree.None {
		return flawAt(t, s.node, codeTimeStamp, "it has no EncapsulatedTimeStamp")
	}
	der, err := base64Text(t, value, 2*tsp.MaxResponse)
	if err != nil {
		return err
	}
	b := v.budget()
	if err := errors.Join(b.Spend(budget.Signature+2*int64(len(der))), b.Hold(4*int64(len(der)))); err != nil {
		return err
	}
	token, err := tsp.ParseTokenWithin(tsp.Unwrap(der), b.Hold)
	if err != nil {
		return flawAt(t, value, codeTimeStamp, "%s", err)
	}
	s.result.Time = token.Info.Time
	h := token.Info.Digest.Hash
	if h == nil {
		return flawAt(t, value, codeTimeStamp, "its digest algorithm is unknown")
	}
	var d suite.Digest
	if s.archive {
		d, err = v.archiveDigest(s.place, s.every, method, h)
	} else {
		d, err = canonicalDigest(t.Subtree(v.sig.value), method, h)
	}
	if err == nil {
		err = token.Answers(&tsp.Request{Digest: d})
	}
	if err != nil {
		return cmp.Or(b.Err(), error(flawAt(t, value, codeTimeStamp, "%s", err)))
	}
	s.token = token
	if s.signer, err = token.CheckSignature(slices.Concat(token.Certificates(), v.carried.certs, v.check.Intermediates, v.check.Roots)); err != nil {
		return flawAt(t, value, codeTimeStamp, "%s", err)
	}
	return nil
}

// prefixKey names the part of an imprint that is the same for all archive time stamps of a signature.
type prefixKey struct {
	hash   *suite.Hash
	method string
}

// archiveDigest returns the imprint of an archive time stamp before the unsigned property at a place (EN 319
// 132-1, 5.5.2.2, not distributed): what the references refer to, SignedInfo, SignatureValue and KeyInfo,
// the unsigned properties before that place, and the Objects except the one of the properties.
// every reports that Objects count even if a reference names them.
func (v *verification) archiveDigest(place int, every bool, method xmltree.Method, h *suite.Hash) (suite.Digest, error) {
	s, t := v.sig, v.tree
	write := func(w hash.Hash, n xmltree.Node) error {
		set := t.Subtree(n)
		defer set.Free()
		if err := v.budget().Err(); err != nil {
			return err
		}
		return set.Canonicalize(w, method)
	}
	key := prefixKey{h, fmt.Sprint(method)}
	state := v.prefixes[key]
	if state == nil {
		state = h.New()
		for _, r := range s.refs {
			d := digester{ctx: v.ctx, sig: s, ref: r, options: v.options, final: method}
			if v.files != nil && isBeside(r.uri) {
				file, err := v.files.File(r.uri)
				if err != nil {
					return suite.Digest{}, fmt.Errorf("the file %s %w", quote(r.uri), err)
				}
				if _, err := d.writeFile(file, v.options.Size, state); err != nil {
					return suite.Digest{}, err
				}
				continue
			}
			to, err := v.resolve.resolve(r)
			if err != nil {
				return suite.Digest{}, err
			}
			if err := d.write(to, state); err != nil {
				return suite.Digest{}, d.explain(err)
			}
		}
		for _, n := range []xmltree.Node{s.info, s.value, s.keyInfo} {
			if n != xmltree.None {
				if err := write(state, n); err != nil {
					return suite.Digest{}, err
				}
			}
		}
		if v.prefixes == nil {
			v.prefixes = map[prefixKey]hash.Hash{}
		}
		v.prefixes[key] = state
	}
	cloner, is := state.(hash.Cloner)
	if !is {
		return suite.Digest{}, fmt.Errorf("digests by %s cannot be continued", h.Name)
	}
	clone, err := cloner.Clone()
	if err != nil {
		return suite.Digest{}, err
	}
	sum := clone.(hash.Hash)
	properties := propertiesOf(s)
	for _, n := range unsignedProperties(s)[:place] {
		if err := write(sum, n); err != nil {
			return suite.Digest{}, err
		}
	}
	for _, o := range s.objects {
		if len(properties) > 0 && t.Contains(o, properties[0]) || !every && v.named(o) {
			continue
		}
		if err := write(sum, o); err != nil {
			return suite.Digest{}, err
		}
	}
	return suite.Digest{Hash: h, Sum: sum.Sum(nil)}, nil
}

// named reports whether a reference of the signature names an Object.
func (v *verification) named(object xmltree.Node) bool {
	return slices.ContainsFunc(v.sig.refs, func(r *reference) bool {
		to, err := v.resolve.resolve(r)
		return err == nil && to.node == object
	})
}
