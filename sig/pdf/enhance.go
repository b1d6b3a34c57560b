// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/budget"
	"tamga/sig/cades"
	"tamga/sig/evidence"
)

// Enhance implements sig.Enhancer. It reads the parameters PDFFormat, TSPAddress and PDFPassword. It adds
// revisions and changes no byte before them, so it needs no key, and any program may have made the
// signatures. All signatures of the document are raised together, because a time stamp of the document
// covers all of them:
//
//	CAdEST  a time stamp of the document if a signature has no time stamp
//	CAdES   also a document security store with the evidence that is missing
//	CAdESA  also a time stamp of the document over the store; each call adds one
//
// Signatures are verified before, except for the trust in their certificates.
func (f *Format) Enhance(ctx context.Context, job *sig.Job) (sig.Result, error) {
	goal := sig.Goal{Index: -1}
	result, err := sig.Within(ctx, job.Document, func(ctx context.Context) (sig.Result, error) { return f.enhance(ctx, job, &goal) })
	if err != nil {
		return nil, err
	}
	return sig.Reached(ctx, f, job, result, &goal)
}

func (f *Format) enhance(ctx context.Context, job *sig.Job, goal *sig.Goal) (sig.Result, error) {
	q := job.Params.Request()
	r := q.ForJob(job)
	format := r.Choice("PDFFormat", formats, formatCMS)
	q.Level = format.Level
	address := q.Stamper(job, r, "PDFFormat", format.Name, formatCMS)
	if format.Level < sig.LevelTime {
		r.Fault("PDFFormat", "is CMS or absent; CAdEST, CAdES or CAdESA expected, because Enhance never lowers a level")
	}
	if r.Given("SignatureIndex") {
		r.Fault("SignatureIndex", "is not for PDF: a time stamp of the document covers all its signatures")
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	e := &enhancement{format: f, ctx: ctx, job: job, address: address, password: password(job.Params),
		parts: []sig.Part{sig.Section(job.Document, 0, job.Document.Size())}}
	defer e.close()
	goal.Level, goal.Password = format.Level, e.password
	if err := e.raise(format.Level); err != nil {
		return nil, err
	}
	return e.document(), nil
}

// enhancement is the work on one document that gets more revisions.
type enhancement struct {
	format   *Format
	ctx      context.Context
	job      *sig.Job
	address  string // of the time-stamp service
	password []byte
	parts    []sig.Part // the document with its new revisions

	file      *file // the document as it was
	signers   []*raised
	collector *evidence.Collector
}

func (e *enhancement) close() {
	if e.file != nil {
		e.file.close()
	}
}

// document returns the document as it is now.
func (e *enhancement) document() *sig.Assembly { return sig.Parts(e.parts...) }

// raised is a signature or a time stamp of the document, whose evidence is needed.
type raised struct {
	*signature
	stamped  time.Time        // of the earliest time stamp, zero without one
	services []evidence.Stamp // its time stamps; of a time stamp of the document itself
	found    sig.Found        // what is in the message
	signer   *x509gost.Certificate
}

// raise adds the revisions that a level needs.
func (e *enhancement) raise(level sig.Level) error {
	if err := e.read(); err != nil {
		return err
	}
	if slices.ContainsFunc(e.signers, func(s *raised) bool { return s.stamped.IsZero() }) {
		if err := e.stamp(); err != nil {
			return err
		}
		if err := e.read(); err != nil { // the new time stamp is one of those that need evidence
			return err
		}
		if slices.ContainsFunc(e.signers, func(s *raised) bool { return s.stamped.IsZero() }) {
			return &sig.ErrEvidence{What: "time stamp", Text: "the new one is not by a service that leads to a trusted root"}
		}
	}
	if level < sig.LevelLongTerm {
		return nil
	}
	if err := e.store(); err != nil {
		return err
	}
	if level < sig.LevelArchive {
		return nil
	}
	return e.stamp()
}

// read verifies the signatures of the document and notes the time stamps of each.
func (e *enhancement) read() error {
	e.close()
	document := e.document()
	check := &sig.Check{Document: document, Password: e.password, At: e.job.Time}
	if e.job.Certificate != nil {
		check.Intermediates = append(check.Intermediates, e.job.Certificate)
	}
	check.Intermediates = append(check.Intermediates, e.job.Chain...)
	check.Roots = e.job.Roots
	v, err := e.format.verified(e.ctx, check)
	if err != nil {
		return err
	}
	e.file, e.signers = v.file, nil
	if e.file.rebuilt {
		return forbidden("is broken: its cross-references had to be searched for, and a new revision would lead other programs to other objects")
	}
	if len(v.signatures) == 0 {
		return sig.Unsigned()
	}
	known := slices.Concat(v.beside.Certificates, check.Intermediates)
	for i, s := range v.signatures {
		out := &v.report.Signatures[i]
		if i := slices.IndexFunc(out.Findings, func(f sig.Finding) bool { return f.Indication.Verdict() == sig.Failed }); i >= 0 || out.Signer == nil {
			err := errors.New("its certificate was not found")
			if i >= 0 {
				err = errors.New(out.Findings[i].Text)
			}
			return &sig.ErrDocument{What: "Document", Text: fmt.Sprintf("signature %d (%s) is not valid, and the document is not enhanced", out.Index, quoted(s.field.name)), Err: err}
		}
		one := &raised{signature: s, signer: out.Signer}
		if s.stamp != nil {
			if !e.counts(out) {
				continue
			}
			one.stamped, one.found = s.stamp.token.Info.Time, cades.Carried(s.stamp.token.Message)
			one.services = []evidence.Stamp{{Authority: s.stamp.signer, Made: one.stamped, Others: s.stamp.token.Certificates()}}
			for _, below := range e.signers { // it covers all before it
				if below.stamped.IsZero() {
					below.stamped = one.stamped
				}
				for i := range below.services {
					below.services[i].Covered = below.services[i].Covered || s.stamp.archive
				}
			}
		} else if err := one.read(out, e, v.file.spending); err != nil {
			return err
		}
		known = append(known, one.found.Certificates...)
		e.signers = append(e.signers, one)
	}
	if len(e.signers) == 0 {
		return forbidden("has no signature to enhance, only time stamps that are not by a trusted service")
	}
	e.collector = evidence.New(e.job.Evidence, known, e.format.CMS.Rules)
	return e.file.failed()
}

// counts reports whether a time stamp of the document is one to build on. With anchors it must lead to one of
// them, or any caller could have made it. One that has lapsed counts, because it is the reason to refuse what comes
// too late.
func (e *enhancement) counts(stamp *sig.Signature) bool {
	return len(e.job.Roots) == 0 || stamp.Own() == sig.Passed ||
		slices.ContainsFunc(stamp.Findings, func(f sig.Finding) bool { return f.Code == codeLapsed })
}

// read reads the message of a signature with its time stamps.
func (s *raised) read(out *sig.Signature, e *enhancement, b *budget.Budget) error {
	m, err := cms.ParseWithin(bytes.NewReader(s.message), int64(len(s.message)), b.Hold)
	if err != nil {
		return cmp.Or(b.Err(), err)
	}
	s.found = cades.Carried(m)
	for _, ts := range out.TimeStamps {
		if !ts.Holds() || ts.Signer == nil || len(e.job.Roots) > 0 && !ts.Passed() {
			continue
		}
		if s.stamped.IsZero() || ts.Time.Before(s.stamped) {
			s.stamped = ts.Time
		}
		s.services = append(s.services, evidence.Stamp{Authority: ts.Signer, Made: ts.Time})
	}
	// Their tokens may have the issuers of their services.
	for _, one := range m.Signers {
		for _, a := range one.UnsignedAttrs {
			if !cades.IsTimeStamp(a.OID) {
				continue
			}
			for _, value := range a.Values {
				if token, err := tsp.ParseTokenWithin(tsp.Unwrap(value), b.Hold); err == nil {
					s.found.Certificates = append(s.found.Certificates, token.Certificates()...)
				}
			}
		}
	}
	return b.Err()
}

// store adds a revision with the evidence that is missing, if any is.
func (e *enhancement) store() error {
	v := &verifier{file: e.file}
	beside := v.store(e.file)
	all := beside
	for _, s := range e.signers {
		all.Certificates = slices.Concat(all.Certificates, s.found.Certificates)
		all.CRLs, all.OCSP = slices.Concat(all.CRLs, s.found.CRLs), slices.Concat(all.OCSP, s.found.OCSP)
	}
	var list []stored
	for _, s := range e.signers {
		var values evidence.Values
		supply := func(of evidence.Subject) error {
			if err := e.file.spending.Spend(sig.Price(of.Certificate)); err != nil {
				return err
			}
			return e.collector.Supply(e.ctx, &values, all, of)
		}
		if s.stamp == nil {
			if s.stamped.After(s.signer.NotAfter) {
				return forbidden(fmt.Sprintf("cannot be raised: %s ended at %s, before the first time stamp (%s) of signature %s", evidence.Name(s.signer), at(s.signer.NotAfter), at(s.stamped), quoted(s.field.name)))
			}
			if err := supply(evidence.Subject{Certificate: s.signer, Purpose: evidence.ForSigner, At: s.stamped}); err != nil {
				return err
			}
		}
		for _, t := range s.services {
			if t.Covered {
				continue // it needs nothing any more
			}
			if err := supply(t.Subject()); err != nil {
				return err
			}
		}
		one := stored{contents: e.file.textOf(s.dict.get("Contents"))}
		for _, v := range values.Certificates {
			one.certs = append(one.certs, v.DER)
		}
		for _, v := range values.CRLs {
			one.crls = append(one.crls, v.DER)
		}
		for _, v := range values.OCSP {
			one.answers = append(one.answers, v.DER)
		}
		if len(one.certs)+len(one.crls)+len(one.answers) > 0 {
			list = append(list, one)
		}
	}
	if len(list) == 0 {
		return nil
	}
	f := e.file
	u, err := f.newUpdate()
	if err != nil {
		return err
	}
	rootID, root := f.catalog()
	if rootID.num == 0 {
		return forbidden("has a catalog that is not an indirect object")
	}
	if ids := f.identifiers(u, e.job, []byte("DSS")); ids != nil {
		u.trailer = u.trailer.with("ID", ids)
	}
	var begin []byte
	if f.newLine() {
		begin = []byte("\n")
	}
	r := f.storeRevision(u, u.prev, rootID, root)
	data, added, err := r.write(f.size, begin, f.crypt, f.streamsOfStore(), list)
	if err != nil {
		return err
	}
	e.parts = append(e.parts, sig.Bytes(data))
	return e.checkStore(added)
}

// streamsOfStore returns the streams of the document security store by their content.
func (f *file) streamsOfStore() map[string]ref {
	_, root := f.catalog()
	dss := f.resolveDict(root.get("DSS"))
	known, left := map[string]ref{}, maxStore
	for _, key := range []name{"Certs", "CRLs", "OCSPs"} {
		for _, o := range f.resolveArray(dss.get(key)) {
			id, indirect := o.(ref)
			s, ok := f.resolve(o).(*stream)
			if left--; !ok || !indirect || left < 0 {
				continue
			}
			if data, err := f.data(s); err == nil && f.keep(int64(len(data))) {
				known[string(data)] = id
			}
		}
	}
	return known
}

// checkStore reads the new revision as a viewer does.
func (e *enhancement) checkStore(added map[name][][]byte) error {
	d := e.document()
	f, err := open(e.ctx, d, d.Size(), e.password)
	if err != nil {
		return openError(e.ctx, err, len(e.password) > 0)
	}
	defer f.close()
	_, root := f.catalog()
	store := f.resolveDict(root.get("DSS"))
	for key, values := range added {
		if !f.holds(f.resolveArray(store.get(key)), values) {
			return cmp.Or(f.failed(), fmt.Errorf("pdf: %s of the security store is not complete", key))
		}
	}
	return f.failed()
}

// hash returns the algorithm of a new time stamp: the one of the first signer.
func (e *enhancement) hash() *suite.Hash {
	signer := e.job.Certificate
	for _, s := range e.signers {
		if s.stamp == nil {
			signer = s.signer
			break
		}
	}
	if signer != nil && signer.Suite != nil && !signer.Suite.Hash.Weak() {
		return signer.Suite.Hash
	}
	return suite.Streebog256
}

// stamp adds a revision with a time stamp of the document.
func (e *enhancement) stamp() error {
	document := e.document()
	job := *e.job
	job.Document, job.Certificate, job.Chain, job.Room = document, nil, nil, 0
	hash := e.hash()
	for range 2 {
		m := &maker{format: e.format, ctx: e.ctx, job: &job, stamping: true,
			params: params{format: formatCAdESA, level: sig.LevelArchive, address: e.address, password: e.password}}
		out, err := m.section()
		if m.file != nil {
			if m.file.rebuilt && err == nil {
				err = forbidden("is broken: its cross-references had to be searched for")
			}
			m.file.close()
		}
		if err != nil {
			return err
		}
		digest, err := sig.DigestOf(e.ctx, sig.File{Document: out.signed(document)}, hash)
		if err != nil {
			return err
		}
		s, err := sig.Stamp(e.ctx, e.job.Evidence, e.address, digest)
		if err != nil {
			return err
		}
		for _, t := range e.signers {
			if err := evidence.InTime(s.Token().Info.Time, t.services); err != nil {
				return err
			}
		}
		token := s.Token().Raw
		e.format.sizes.note(m.stampKey(), len(token))
		if len(token) > out.room {
			job.Room = len(token) + len(token)/8 + 1024
			continue
		}
		contents := make([]byte, out.room)
		copy(contents, token)
		e.parts = append(e.parts, sig.Bytes(out.head), sig.Bytes(appendHex(make([]byte, 0, holeOf(out.room)), contents)), sig.Bytes(out.tail))
		return nil
	}
	return &sig.ErrEvidence{What: "time stamp", Text: "the tokens of the service have very different sizes"}
}
