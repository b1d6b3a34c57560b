// SPDX-License-Identifier: Apache-2.0

package cades

import (
	"cmp"
	"context"
	"encoding/asn1"
	"errors"
	"fmt"
	"hash"
	"slices"
	"time"

	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/budget"
)

// archives are the archive time stamps of one signature. They are read before the document is hashed,
// because their algorithms may be others than those of the signatures.
type archives struct {
	signer *cms.SignerInfo
	stamps []*archiveStamp // in the order of their bytes
	fields []byte          // of the SignerInfo up to the signature, as they are in the message
	attrs  map[attrsKey][]attrDigests
}

type attrsKey struct {
	hash  *suite.Hash
	whole bool
}

// attrDigests are the digests of one unsigned attribute, one for each value or one for the whole.
type attrDigests []suite.Digest

// archiveStamp is one archive time stamp.
type archiveStamp struct {
	place   int  // of the attribute
	v3      bool // archive-time-stamp-v3, else v2
	token   *tsp.Token
	index   *hashIndex // of v3
	err     error      // why it is invalid
	missing string     // why it cannot be checked, empty if it can
	covers  []bool     // by the place of the unsigned attribute
	signer  *x509gost.Certificate
	// lapsed reports that it was valid when it was made, and that nothing proves it now.
	lapsed bool
	result sig.TimeStamp
}

// valid reports whether the stamp belongs to the signature and its own signature holds. Its service
// may still be untrusted.
func (a *archiveStamp) valid() bool { return a.err == nil && a.missing == "" }

// name names a stamp in findings.
func (a *archiveStamp) name() string {
	if a.token == nil {
		return fmt.Sprintf("the archive time stamp at place %d of the unsigned attributes", a.place)
	}
	return "the archive time stamp of " + at(a.token.Info.Time)
}

// isArchive reports whether an attribute has archive time stamps that are checked, and of which kind. The
// first kind (RFC 3126) is not.
func isArchive(oid x509gost.OID) (v3, is bool) {
	if oid.Equal(cms.OIDArchiveTimeStampV3) {
		return true, true
	}
	return false, oid.Equal(cms.OIDArchiveTimeStampV2)
}

// readArchives reads the archive time stamps of a signature. It returns nil if it has none.
func readArchives(s *cms.SignerInfo, b *budget.Budget, left *int) (*archives, error) {
	var list *archives
	for place, a := range s.UnsignedAttrs {
		v3, is := isArchive(a.OID)
		if !is {
			continue
		}
		if list == nil {
			list = &archives{signer: s, attrs: map[attrsKey][]attrDigests{}}
		}
		for _, value := range a.Values {
			if *left == 0 {
				return list, nil // stamps reports those that are not checked
			}
			*left--
			if err := b.Spend(stepsOfValue * int64(len(value))); err != nil {
				return nil, err
			}
			one := &archiveStamp{place: place, v3: v3}
			list.stamps = append(list.stamps, one)
			if one.token, one.err = tsp.ParseTokenWithin(tsp.Unwrap(value), b.Hold); one.err != nil {
				if err := b.Err(); err != nil {
					return nil, err
				}
				continue
			}
			if v3 {
				one.index, one.err = readHashIndex(one.token)
			}
		}
	}
	if list == nil {
		return nil, nil
	}
	fields, err := s.Fields()
	if err != nil {
		return nil, err
	}
	list.fields = slices.Concat(fields...)
	return list, nil
}

// hashes adds the algorithms by which the imprints of v3 cover the document.
func (l *archives) hashes(list []*suite.Hash) []*suite.Hash {
	if l == nil {
		return list
	}
	for _, a := range l.stamps {
		if a.err == nil && a.v3 && !slices.Contains(list, a.token.Info.Digest.Hash) {
			list = append(list, a.token.Info.Digest.Hash)
		}
	}
	return list
}

// digested returns the digests of the unsigned attributes for an index. They are computed once for all
// stamps with the same form.
func (l *archives) digested(key attrsKey, spend func(int64) error) ([]attrDigests, error) {
	if list, known := l.attrs[key]; known {
		return list, nil
	}
	list := make([]attrDigests, len(l.signer.UnsignedAttrs))
	for i, a := range l.signer.UnsignedAttrs {
		if err := spend(int64(len(a.Encoded))); err != nil {
			return nil, err
		}
		if key.whole {
			list[i] = attrDigests{key.hash.Digest(a.Encoded)}
			continue
		}
		oid, values, err := a.Parts()
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			list[i] = append(list[i], key.hash.Digest(slices.Concat(oid, v)))
		}
	}
	l.attrs[key] = list
	return list, nil
}

// source is what archive time stamps of a message cover besides a signature.
type source struct {
	message  *cms.Message
	signed   sig.Document // the message
	original sig.Document // the document of a detached message; nil if only its digest is known
	content  []suite.Digest
	ends     suite.Ends
	spend    func(int64) error

	elements map[elementsKey]tally       // certificates and CRLs
	prefixes map[*suite.Hash]hash.Cloner // states after what a v2 covers before the SignerInfo
	failed   error                       // from reading the document
}

type elementsKey struct {
	hash *suite.Hash
	crls bool
}

// tallied returns the certificates or CRLs of SignedData by their digests.
func (o *source) tallied(key elementsKey) (tally, error) {
	if t, known := o.elements[key]; known {
		return t, nil
	}
	list := o.message.Certificates
	if key.crls {
		list = o.message.CRLs
	}
	for _, raw := range list {
		if err := o.spend(int64(len(raw))); err != nil {
			return nil, err
		}
	}
	if o.elements == nil {
		o.elements = map[elementsKey]tally{}
	}
	o.elements[key] = tallyOf(key.hash.SumMany(list))
	return o.elements[key], nil
}

// errOutside is the text for an index that does not fit.
var errOutside = errors.New("its index names something that is not in the message where the index says")

// check compares a stamp with what it must cover.
func (o *source) check(ctx context.Context, l *archives, a *archiveStamp) error {
	if a.v3 {
		return o.checkV3(l, a)
	}
	return o.checkV2(ctx, l, a)
}

func (o *source) checkV3(l *archives, a *archiveStamp) error {
	x, h := a.index, a.token.Info.Digest.Hash
	if !x.whole && x.hash != h {
		return fmt.Errorf("its index has digests by %s, and its imprint is by %s", x.hash.Name, h.Name)
	}
	if w := o.ends.Hash(x.hash); w.At(a.token.Info.Time) {
		return fmt.Errorf("its index has digests by %s, which could be forged when it was made", x.hash.Name)
	}
	content, known := find(o.content, h)
	if !known {
		a.missing = "the document was given by a digest of another algorithm than " + h.Name
		return nil
	}
	input, err := imprintV3(o.message.ContentType, content, l.fields, x)
	if err != nil {
		return err
	}
	if err := o.spend(int64(len(input))); err != nil {
		return err
	}
	if err := a.token.Answers(&tsp.Request{Digest: h.Digest(input)}); err != nil {
		return err
	}
	for _, part := range []struct {
		crls bool
		sums [][]byte
	}{{false, x.certs}, {true, x.crls}} {
		t, err := o.tallied(elementsKey{x.hash, part.crls})
		if err != nil {
			return err
		}
		if !t.holds(part.sums) {
			return errOutside
		}
	}
	list, err := l.digested(attrsKey{x.hash, x.whole}, o.spend)
	if err != nil {
		return err
	}
	have := tallyOf(slices.Concat(list...))
	if !have.holds(x.attrs) {
		return errOutside
	}
	named := make(map[string]bool, len(x.attrs))
	for _, sum := range x.attrs {
		named[string(sum)] = true
	}
	a.covers = make([]bool, len(list))
	for i, digests := range list {
		a.covers[i] = !slices.ContainsFunc(digests, func(d suite.Digest) bool { return !named[string(d.Sum)] })
	}
	a.covers[a.place] = false // not even if a copy is covered
	return nil
}

// imprintV3 returns what the imprint of an archive-time-stamp-v3 is the digest of (EN 319 122-1, 5.5.3).
// fields are those of the SignerInfo up to the signature.
func imprintV3(contentType x509gost.OID, content suite.Digest, fields []byte, x *hashIndex) ([]byte, error) {
	oid, err := asn1.Marshal(contentType)
	if err != nil {
		return nil, fmt.Errorf("the type of the content is unknown: %w", err)
	}
	return slices.Concat(oid, content.Sum, fields, x.raw), nil
}

// checkV2 compares an archive-time-stamp-v2 with what it covers (EN 319 122-1, A.2.4): the element around
// the content, the document if it is elsewhere, certificates and CRLs with their headers, and the
// fields of the SignerInfo, of its unsigned attributes those that existed. There are two readings of the
// rule: TS 101 733 v1.8.3 takes the unsigned attributes alone, v2.2.1 with their tag and length.
func (o *source) checkV2(ctx context.Context, l *archives, a *archiveStamp) error {
	h := a.token.Info.Digest.Hash
	state, err := o.prefix(ctx, h)
	if err != nil || state == nil {
		if err == nil {
			a.missing = "the document was given by its digest alone"
		}
		return err
	}
	for _, orEqual := range []bool{false, true} {
		attrs, covers, ties := l.before(a, orEqual)
		if orEqual && !ties {
			break
		}
		bare := slices.Concat(attrs...)
		if err := o.spend(2 * int64(len(l.fields)+len(bare))); err != nil {
			return err
		}
		for _, unsigned := range [][]byte{cms.UnsignedField(attrs), bare} {
			c, err := state.Clone()
			if err != nil {
				return err
			}
			c.Write(l.fields)
			c.Write(unsigned)
			if a.token.Answers(&tsp.Request{Digest: suite.Digest{Hash: h, Sum: c.Sum(nil)}}) == nil {
				a.covers = covers
				return nil
			}
		}
	}
	return fmt.Errorf("%w: it is for another digest", tsp.ErrAnswer)
}

// before returns the unsigned attributes that existed when a stamp was made: all but the archive time
// stamps that are not earlier in time. Their order says nothing. ties reports whether others are of the
// same time, which orEqual includes.
func (l *archives) before(a *archiveStamp, orEqual bool) (attrs [][]byte, covers []bool, ties bool) {
	made := a.token.Info.Time
	out := make([]bool, len(l.signer.UnsignedAttrs))
	for _, b := range l.stamps {
		switch {
		case b.place == a.place:
			out[b.place] = true
		case b.token == nil || b.token.Info.Time.After(made):
			out[b.place] = true
		case b.token.Info.Time.Equal(made):
			ties = true
			out[b.place] = out[b.place] || !orEqual
		}
	}
	covers = make([]bool, len(out))
	for i, attr := range l.signer.UnsignedAttrs {
		if covers[i] = !out[i]; covers[i] {
			attrs = append(attrs, attr.Encoded)
		}
	}
	return attrs, covers, ties
}

// prefix returns the state after everything that precedes the SignerInfo. It reads the document once
// for each algorithm. The state is nil if the document is not known.
func (o *source) prefix(ctx context.Context, h *suite.Hash) (hash.Cloner, error) {
	if state, known := o.prefixes[h]; known {
		return state, nil
	}
	state, err := o.hashPrefix(ctx, h)
	if err != nil {
		return nil, err
	}
	if o.prefixes == nil {
		o.prefixes = map[*suite.Hash]hash.Cloner{}
	}
	o.prefixes[h] = state
	return state, nil
}

func (o *source) hashPrefix(ctx context.Context, h *suite.Hash) (hash.Cloner, error) {
	m := o.message
	if m.Detached && o.original == nil {
		return nil, nil
	}
	state, is := h.New().(hash.Cloner)
	if !is {
		return nil, fmt.Errorf("digests by %s cannot be continued", h.Name)
	}
	type section struct {
		of sig.Document
		cms.Range
	}
	sections := []section{{o.signed, m.EncapContentInfo}}
	if m.Detached {
		sections = append(sections, section{o.original, cms.Range{Length: o.original.Size()}})
	}
	sections = append(sections, section{o.signed, m.CertificateSet}, section{o.signed, m.RevocationInfo})
	for _, s := range sections {
		if err := o.spend(s.Length); err != nil {
			return nil, err
		}
		if err := sig.HashSection(ctx, state, s.of, s.Offset, s.Length); err != nil {
			o.failed = err
			return nil, err
		}
	}
	return state, nil
}

// archived checks the archive time stamps of a signature: first each by itself, then, from the last to
// the first, whether its service is trusted at the time that a later one proves.
func (v *verifier) archived(ctx context.Context, l *longTerm) error {
	if l.archives == nil {
		return nil
	}
	for _, a := range l.archives.stamps {
		a.result = sig.TimeStamp{Kind: "archive"}
		if a.token != nil {
			a.result.Time, a.result.Digest = a.token.Info.Time, sig.DigestOfToken(a.token)
		}
		if a.err == nil {
			a.err = v.source.check(ctx, l.archives, a)
		}
		if err := cmp.Or(v.budget.Err(), ctx.Err(), v.source.failed); err != nil {
			return err // Verify returns this error
		}
		if a.valid() {
			if err := v.budget.Spend(budget.Signature); err != nil {
				return err
			}
			a.signer, a.err = a.token.CheckSignature(slices.Concat(v.candidates, l.values.Certificates))
			a.result.Signer = a.signer
		}
	}
	// Each is compared with all others.
	n := int64(len(l.archives.stamps))
	if err := v.budget.Spend(n * n); err != nil {
		return err
	}
	l.archives.refuseDisorder(func(a *archiveStamp) bool {
		return v.check.StampWasGood(ctx, a.token, a.signer, v.tokenFound(contentsOf(a.token), l))
	})
	// What is in a token may be about any of the others: data that may not be added to SignedData is
	// put there.
	seen := map[string]bool{}
	for _, a := range l.archives.stamps {
		if !a.valid() || seen[string(a.token.Raw)] {
			continue
		}
		seen[string(a.token.Raw)] = true
		if err := l.hold(v.budget, a.token); err != nil {
			return err
		}
	}
	if err := v.budget.Spend(n * int64(len(l.held.Certificates)+len(l.held.CRLs)+len(l.held.OCSP))); err != nil {
		return err
	}
	order := slices.Clone(l.archives.stamps)
	slices.SortStableFunc(order, func(a, b *archiveStamp) int { return l.archives.compare(b, a) })
	found := v.tokenFound(sig.Found{}, l) // hold has put the data of all tokens there
	for _, a := range order {
		v.archiveStamp(ctx, a, l, found)
	}
	return nil
}

// compare orders stamps by their time, and one of the same time after those that it covers.
func (l *archives) compare(a, b *archiveStamp) int {
	if a.token == nil || b.token == nil || !a.token.Info.Time.Equal(b.token.Info.Time) {
		var x, y time.Time
		if a.token != nil {
			x = a.token.Info.Time
		}
		if b.token != nil {
			y = b.token.Info.Time
		}
		return x.Compare(y)
	}
	switch {
	case a.valid() && a.covers[b.place]:
		return 1
	case b.valid() && b.covers[a.place]:
		return -1
	}
	return cmp.Compare(a.place, b.place)
}

// refuseDisorder refuses stamps that cover a later one, if that one was valid when it was made. The time of
// any other one counts for nothing.
func (l *archives) refuseDisorder(wasGood func(*archiveStamp) bool) {
	good := map[*archiveStamp]bool{}
	for _, a := range l.stamps {
		for _, b := range l.stamps {
			if !a.valid() || !b.valid() || !a.covers[b.place] || !b.token.Info.Time.After(a.token.Info.Time) {
				continue
			}
			if _, known := good[b]; !known {
				good[b] = wasGood(b)
			}
			if good[b] {
				a.err = fmt.Errorf("it covers %s, which is later", b.name())
			}
		}
	}
}

// provenBy returns the earliest time at which an unsigned attribute is proven to exist: that of the
// earliest archive time stamp over it that proves its time. Without one it is the time of the check,
// and no earlier than a given one.
func (v *verifier) provenBy(l *longTerm, place int, made time.Time) time.Time {
	var first time.Time
	for _, a := range l.archives.stamps {
		if a.valid() && a.covers[place] && a.result.Passed() && (first.IsZero() || a.result.Time.Before(first)) {
			first = a.result.Time
		}
	}
	if first.IsZero() {
		first = v.check.At
	}
	if first.Before(made) {
		return made
	}
	return first
}

// archiveStamp judges one archive time stamp. Those that cover it were judged before. found may help to check it.
func (v *verifier) archiveStamp(ctx context.Context, a *archiveStamp, l *longTerm, found sig.Found) {
	ts := &a.result
	switch {
	case a.err != nil:
		text := fmt.Sprintf("%s is invalid: %v", a.name(), a.err)
		ts.Findings = append(ts.Findings, sig.Finding{Code: codeTimeStampInvalid, Text: text, Indication: sig.IndicationOf(codeTimeStampInvalid)})
		l.findings = append(l.findings, sig.StampLeftOut(codeTimeStampInvalid, text))
		return
	case a.missing != "":
		text := a.name() + " was not checked: " + a.missing
		ts.Findings = append(ts.Findings, sig.Finding{Code: codeTimeStamp, Text: text, Indication: sig.IndicationOf(codeTimeStamp)})
		l.note(codeTimeStamp, "%s", text)
		return
	}
	made := a.token.Info.Time
	proven := v.provenBy(l, a.place, made)
	var findings []sig.Finding
	ts.Chain, findings = v.check.TrustTimeStamp(ctx, a.signer, proven, found)
	ts.Findings = append(ts.Findings, findings...)
	other := sig.StampOtherIssuer(a.token, a.signer)
	ts.Findings, l.findings = append(ts.Findings, other...), append(l.findings, other...)
	f, weak := sig.WeakStamp(a.token.Weakness(a.signer, proven, v.check.Ends))
	if weak {
		ts.Findings = append(ts.Findings, f)
	}
	if ts.Passed() {
		l.archiveTS = true
		return
	}
	// Was it good when it was made? Then a renewal is missing. Otherwise it proves nothing at all.
	then := sig.TimeStamp{Signer: a.signer}
	then.Chain, then.Findings = v.check.TrustTimeStamp(ctx, a.signer, made, found)
	if _, weakThen := sig.WeakStamp(a.token.Weakness(a.signer, made, v.check.Ends)); weakThen || !then.Passed() {
		l.note(codeTimeStampUntrusted, "%s proves no time: it is not by a trusted service", a.name())
		return
	}
	a.lapsed = true
	l.note(codeArchiveLapsed, "%s proves nothing at %s: its certificate or its algorithm had ended, and no later archive time stamp was made before", a.name(), at(proven))
}

// hold keeps what a token contains, and charges for it first.
func (l *longTerm) hold(b *budget.Budget, token *tsp.Token) error {
	var lists int64
	for _, raw := range token.Message.CRLs {
		lists += int64(len(raw))
	}
	if err := b.Hold(memoryOfList * lists); err != nil {
		return err
	}
	if err := b.Spend(stepsOfValue * int64(len(token.Raw))); err != nil {
		return err
	}
	l.held = joined(l.held, contentsOf(token))
	return nil
}

// inOrder notes an archive time stamp that is earlier than another stamp that it covers, if that one was good
// when it was made. One of the two has a wrong time.
func (l *longTerm) inOrder(place int, kind string, made time.Time, good func() bool) {
	for _, a := range l.archives.stamps {
		if a.valid() && a.covers[place] && made.After(a.token.Info.Time) && good() {
			l.disorder = true
			l.note(codeTimeStampOrder, "%s covers the time stamp (%s) of %s, which is later", a.name(), kind, at(made))
		}
	}
}

// chained reports whether the signature depends on archive time stamps: one is valid now or was when it
// was made. Then its other time stamps are judged at the time that those prove.
func (l *longTerm) chained() bool {
	return l.archives != nil && (l.archiveTS || slices.ContainsFunc(l.archives.stamps, func(a *archiveStamp) bool { return a.lapsed }))
}

// contentsOf returns the certificates and revocation data in a token, with those in its unsigned
// attributes. Unreadable ones are reported as missing if they are needed.
func contentsOf(token *tsp.Token) sig.Found { return Carried(token.Message) }

func joined(a, b sig.Found) sig.Found {
	return sig.Found{
		Certificates: slices.Concat(a.Certificates, b.Certificates),
		CRLs:         slices.Concat(a.CRLs, b.CRLs),
		OCSP:         slices.Concat(a.OCSP, b.OCSP),
	}
}
