// SPDX-License-Identifier: Apache-2.0

package xmldsig

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"tamga/sig"
	"tamga/sig/budget"
	"tamga/sig/xmltree"
)

// Enhance implements sig.Enhancer: it adds a time stamp over the value to signatures of
// the level BES, which then are of the level T. It reads the parameters XAdESType,
// TSPAddress and SignatureIndex. A signature is verified first, except for the trust in
// its certificate. Signatures of the level T stay as they are. A plain XMLDSig signature
// is refused, because it has no properties to put a time stamp into. A signature is also
// refused if another signature of the document covers it, because the time stamp would
// break that one.
func (f *Format) Enhance(ctx context.Context, job *sig.Job) (sig.Result, error) {
	return sig.Within(ctx, job.Document, func(ctx context.Context) (sig.Result, error) { return f.enhance(ctx, job) })
}

func (f *Format) enhance(ctx context.Context, job *sig.Job) (sig.Result, error) {
	q := job.Params.Request()
	r := q.ForJob(job)
	address := ""
	if to := r.Choice("XAdESType", xadesTypes, xadesNone); to.Level < sig.LevelTime {
		r.Fault("XAdESType", "is "+to.Name+" or absent; T expected, because Enhance never lowers a level")
	} else {
		q.Level = to.Level
		address = stamper(q, job, r, to.Name)
	}
	index := readIndex(r)
	if err := r.Err(); err != nil {
		return nil, err
	}
	_, b := budget.Of(ctx, 0)
	data, err := read(b, job.Document, f.maxSigned())
	if err != nil {
		return nil, err
	}
	t, err := xmltree.Parse(data, f.options(b))
	if err != nil {
		return nil, &sig.ErrDocument{What: "Document", Text: "an XML document with signatures expected", Err: err, OtherKind: !LooksLikeXML(data)}
	}
	e := &enhancement{ctx: ctx, job: job, tree: t, options: f.options(b)}
	before, err := e.judge(data)
	if err != nil {
		return nil, err
	}
	chosen, err := e.choose(before, index)
	if err != nil || len(chosen) == 0 {
		return sig.Parts(sig.Section(job.Document, 0, job.Document.Size())), err
	}
	if err := e.check(before, chosen); err != nil {
		return nil, err
	}
	edits := make([]xmltree.Edit, len(chosen))
	for i, one := range chosen {
		d, err := canonicalDigest(t.Subtree(one.sig.value), xmltree.Method{Form: xmltree.Exclusive}, one.out.Signer.Suite.Hash)
		if err != nil {
			return nil, err
		}
		token, err := timeStamp(ctx, job, address, d)
		if err != nil {
			return nil, err
		}
		edits[i] = stampEdit(t, propertiesOf(one.sig)[0], signatureTimeStamp(token, xadesDeclaration+dsDeclaration))
	}
	pieces, err := planOf(t, edits)
	if err != nil {
		return nil, err
	}
	st := &state{StateHeader: sig.StateHeader{Size: int64(len(data))}, Encoding: t.Encoding(), Pieces: pieces}
	return st.result(job, nil)
}

// enhancement is the work on one document whose signatures get a time stamp.
type enhancement struct {
	ctx     context.Context
	job     *sig.Job
	tree    *xmltree.Tree
	options xmltree.Options
}

// judge verifies all signatures of a document, except for the trust in their
// certificates. data is the document of the job or a later version of it.
func (e *enhancement) judge(data []byte) ([]*verification, error) {
	t := e.tree
	if !bytes.Equal(data, t.Original()) {
		var err error
		if t, err = xmltree.Parse(data, e.options); err != nil {
			return nil, fmt.Errorf("xmldsig: the document with time stamps cannot be read: %w", err)
		}
	}
	check := &sig.Check{Document: e.job.Document, Certificate: e.job.Certificate, Intermediates: e.job.Chain, At: e.job.Time}
	v := &verifier{ctx: e.ctx, check: check, tree: t, options: e.options, report: &sig.Report{}, places: maxPlaces}
	var out []*verification
	nodes := signatures(t)
	if len(nodes) > maxSignatures {
		return nil, unfit(fmt.Sprintf("has %d signatures, at most %d expected", len(nodes), maxSignatures), nil)
	}
	var sound []*signature
	over, tops := countersigned(t, nodes), 0
	for i, n := range nodes {
		one := &verification{verifier: v, out: sig.Signature{Index: tops, Level: levelPlain, BestTime: check.At}}
		if over[i] >= 0 {
			one.over = out[over[i]].sig
			one.nested = true
		} else {
			tops++
		}
		s, err := readSignature(t, n, i)
		if err != nil {
			one.flaw(err)
		} else {
			one.sig = s
			sound = append(sound, s)
		}
		out = append(out, one)
	}
	v.resolve = newResolver(t, sound)
	for _, one := range out {
		if one.sig == nil {
			continue
		}
		if err := one.judgeItself(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// choose returns the requested signatures that are not at the level T yet: the one at the
// index, or all if index is -1. Countersignatures are not counted and stay as they are.
func (e *enhancement) choose(all []*verification, index int) (chosen []*verification, err error) {
	all = slices.DeleteFunc(slices.Clone(all), func(one *verification) bool { return one.nested })
	switch {
	case len(all) == 0:
		return nil, unfit("has no signature to enhance", nil)
	case index >= len(all):
		return nil, &sig.ErrParams{Faults: []sig.Fault{{Key: "SignatureIndex", Text: fmt.Sprintf("is %d, but the document has %d signatures, the first with index 0", index, len(all))}}}
	case index >= 0:
		all = all[index : index+1]
	}
	for _, one := range all {
		refuse := func(format string, args ...any) ([]*verification, error) {
			return nil, unfit(fmt.Sprintf("signature %d ", one.out.Index)+fmt.Sprintf(format, args...), nil)
		}
		if i := slices.IndexFunc(one.out.Findings, func(f sig.Finding) bool { return f.Indication != "" }); i >= 0 {
			return refuse("is not valid and is not enhanced: %s", one.out.Findings[i].Text)
		}
		switch {
		case len(one.out.TimeStamps) > 0:
		case one.out.Level == levelPlain:
			return refuse("is not XAdES-BES: it has no signed properties that say by which certificate it was made, and is not enhanced")
		default:
			chosen = append(chosen, one)
		}
	}
	return chosen, nil
}

// check tests in advance, with a placeholder instead of the time stamps, that each
// signature that was valid before stays valid.
func (e *enhancement) check(before, chosen []*verification) error {
	var edits []xmltree.Edit
	for _, one := range chosen {
		placeholder := "<xades:Other" + xadesDeclaration + "></xades:Other>"
		edits = append(edits, stampEdit(e.tree, propertiesOf(one.sig)[0], placeholder))
	}
	spliced, err := e.tree.Splice(edits...)
	if err != nil {
		return err
	}
	after, err := e.judge(spliced.Bytes())
	if err != nil {
		return err
	}
	for i, one := range before {
		if one.out.Holds() && !after[i].out.Holds() {
			var which []string
			for _, c := range chosen {
				which = append(which, fmt.Sprint(c.out.Index))
			}
			return unfit(fmt.Sprintf("signature %d covers the place of the time stamp of signature %s, which would make it invalid", i, strings.Join(which, ", ")), nil)
		}
	}
	return nil
}
