// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/budget"
	"tamga/sig/cades"
)

// maker prepares one signature.
type maker struct {
	format *Format
	ctx    context.Context
	job    *sig.Job
	suite  *suite.Suite
	params params
	file   *file
	form   *form
	update *update
	target *target
	pages  []ref // only for a file whose objects were searched for
	// stamped is the page with the visible stamp in a new field, zero without one.
	stamped ref
	// added reports that the stamp is on a page that this revision adds.
	added bool
	// stamping reports that the revision has a time stamp of the document. Then there is no signer.
	stamping bool
}

// SignsParts implements sig.PartSigner: the digest is over the document with its new section.
func (*Format) SignsParts() {}

// Prepare implements sig.Format. It reads the parameters PDFFormat, TSPAddress,
// PDFReason, PDFLocation, PDFCertificationLevel, PDFSignatureField,
// PdfSignatureTemplateId, PdfSignatureAppearance, PDFPassword, IncludeCertChain and
// HashAlgorithm.
func (f *Format) Prepare(ctx context.Context, job *sig.Job) (*sig.Prepared, error) {
	return sig.Within(ctx, job.Document, func(ctx context.Context) (*sig.Prepared, error) { return f.prepare(ctx, job) })
}

func (f *Format) prepare(ctx context.Context, job *sig.Job) (*sig.Prepared, error) {
	s, err := sig.SuiteOf(job.Certificate)
	if err != nil {
		return nil, err
	}
	q, p := sig.ReadFor[params](f, job)
	r := q.ForJob(job)
	p.logo = f.Logo
	p.address = q.Stamper(job, r, "PDFFormat", p.format, formatCMS)
	r.CheckHashAlgorithm(s)
	if err := r.Err(); err != nil {
		return nil, err
	}
	m := &maker{format: f, ctx: ctx, job: job, suite: s, params: p}
	out, err := m.section()
	if m.file != nil {
		m.file.close()
	}
	if err != nil {
		return nil, err
	}
	inner, err := f.message(p.format).Prepare(ctx, m.messageJob(out.signed(job.Document)))
	if err != nil {
		return nil, err
	}
	st := &state{
		Format: p.format, Address: p.address,
		Room: out.room, Fixed: out.fixed, Key: []byte(out.key), Head: out.head, Tail: out.tail, Signature: out.signature,
		Message: inner.State, Revision: out.revision,
	}
	raw, err := st.marshal(job)
	if err != nil {
		return nil, err
	}
	return &sig.Prepared{Digest: inner.Digest, State: raw}, nil
}

// message returns the format of the CMS messages of a PDFFormat.
func (f *Format) message(format string) *cades.Format {
	c := *f.CMS
	c.NoSigningTime = format != formatCMS
	return &c
}

// messageJob returns the job for the message over the bytes that the signature covers.
func (m *maker) messageJob(covered sig.Document) *sig.Job {
	job := *m.job
	job.Document, job.Original, job.Digests = covered, nil, nil
	job.Request, job.TSPAddress = nil, ""
	job.Params = messageParams(m.params.level, m.params.address, m.params.chain)
	return &job
}

func messageParams(level sig.Level, address string, chain bool) sig.Params {
	// Archive time stamps are of the document.
	p := sig.Params{"IsDetached": "True", "CADESType": cades.TypeOf(min(level, sig.LevelLongTerm)), "IncludeCertChain": "True"}
	if !chain {
		p["IncludeCertChain"] = "False"
	}
	if level >= sig.LevelTime {
		p["TSPAddress"] = address
	}
	return p
}

// subFilter returns the SubFilter of the signature dictionary.
func (m *maker) subFilter() name { return subFilterOf(m.params.format) }

func subFilterOf(format string) name {
	if format == formatCMS {
		return "adbe.pkcs7.detached"
	}
	return "ETSI.CAdES.detached"
}

// open opens the document. Its errors are those of a job.
func (m *maker) open() error {
	f, err := open(m.ctx, m.job.Document, m.job.Document.Size(), m.params.password)
	m.file = f
	return m.opened(err)
}

func (m *maker) opened(err error) error {
	if err == nil {
		return nil
	}
	return openError(m.ctx, err, len(m.params.password) > 0)
}

// openError turns an error of open into that of a job or a check. given reports whether
// there was a password.
func openError(ctx context.Context, err error, given bool) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errPassword) && given:
		return &sig.ErrParams{Faults: []sig.Fault{{Key: ParamPassword, Opens: true, Text: "does not open the document, neither as the user's nor as the owner's password"}}}
	case errors.Is(err, errPassword):
		return &sig.ErrParams{Faults: []sig.Fault{{Key: ParamPassword, Opens: true, Text: "is missing; the document is encrypted and does not open without a password"}}}
	case errors.Is(err, errNotPDF):
		return &sig.ErrDocument{What: "Document", Text: "a PDF document expected", Err: err, OtherKind: true}
	case errors.As(err, new(*readError)):
		return err
	}
	return &sig.ErrDocument{What: "Document", Text: "a PDF document expected", Err: err}
}

// made is the new revision before and after its hole.
type made struct {
	head, tail []byte
	room       int // bytes of the value of Contents, half of its digits
	signature  int // number of the signature dictionary
	fixed      int // see room
	key        string
	revision   *revision
}

// holeOf returns the length of the hole in the file, in bytes: digits and brackets.
func holeOf(room int) int64 { return 2*int64(room) + 2 }

// signed returns the bytes that the signature covers, as one document.
func (s *made) signed(d sig.Document) sig.Document {
	return joined{d, s.head, s.tail}
}

// joined is a document followed by new bytes.
type joined struct {
	document   sig.Document
	head, tail []byte
}

// Size implements sig.Document.
func (j joined) Size() int64 { return j.document.Size() + int64(len(j.head)+len(j.tail)) }

// ReadAt implements io.ReaderAt.
func (j joined) ReadAt(p []byte, off int64) (n int, err error) {
	size := j.document.Size()
	if off < 0 {
		return 0, errors.New("pdf: a negative offset")
	}
	if off < size {
		n, err = j.document.ReadAt(p[:min(int64(len(p)), size-off)], off)
		if off+int64(n) < size || n == len(p) {
			return n, err
		}
	}
	for _, part := range [][]byte{j.head, j.tail} {
		if from := off + int64(n) - size; from < int64(len(part)) && n < len(p) {
			n += copy(p[n:], part[max(from, 0):])
		}
		size += int64(len(part))
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Finish implements sig.Format. It reads no parameter again except PDFPassword.
// PDFFormat=CAdES needs the password again if the document does not open without it,
// because it is not stored. For formats with a time stamp the value is verified before
// evidence is requested.
func (f *Format) Finish(ctx context.Context, job *sig.Job, prepared, signature []byte) (sig.Result, error) {
	return sig.Within(ctx, job.Document, func(ctx context.Context) (sig.Result, error) { return f.finish(ctx, job, prepared, signature) })
}

func (f *Format) finish(ctx context.Context, job *sig.Job, prepared, signature []byte) (sig.Result, error) {
	st, err := readState(job, prepared)
	if err != nil {
		return nil, err
	}
	var locked *crypt
	if st.Revision != nil && st.Revision.Encrypted {
		// Before the request for evidence, so that none is requested in vain.
		if locked, err = reopen(ctx, job); err != nil {
			return nil, err
		}
	}
	message, err := f.fitting(ctx, job, st, signature)
	if err != nil {
		return nil, err
	}
	contents := make([]byte, st.Room)
	copy(contents, message)
	parts := []sig.Part{
		sig.Section(job.Document, 0, job.Document.Size()),
		sig.Bytes(st.Head), sig.Bytes(appendHex(make([]byte, 0, holeOf(st.Room)), contents)), sig.Bytes(st.Tail),
	}
	var added map[name][][]byte
	if st.Revision != nil {
		var store []byte
		_, b := budget.Of(ctx, job.Document.Size())
		if store, added, err = st.securityStore(message, contents, locked, b.Hold); err != nil {
			return nil, err
		}
		parts = append(parts, sig.Bytes(store))
	}
	result := sig.Parts(parts...)
	if job.Again && st.Revision == nil {
		// In one step readBack has read these bytes before, all but the value of Contents.
		if err := st.readContents(result, message); err != nil {
			return nil, err
		}
		return result, nil
	}
	if err := st.readResult(ctx, result, message, added, locked); err != nil {
		return nil, err
	}
	if level, _ := levelOf(st.Format); level < sig.LevelArchive {
		return result, nil
	}
	e := &enhancement{format: f, ctx: ctx, job: job, address: st.Address, password: password(job.Params), parts: parts}
	if err := e.stamp(); err != nil {
		return nil, err
	}
	return e.document(), nil
}

// reopen opens the document again for its encryption key.
func reopen(ctx context.Context, job *sig.Job) (*crypt, error) {
	secret := password(job.Params)
	f, err := open(ctx, job.Document, job.Document.Size(), secret)
	if errors.Is(err, errPassword) && len(secret) == 0 {
		return nil, &sig.ErrParams{Faults: []sig.Fault{{
			Key: ParamPassword, Text: "is missing; the document is encrypted, and the password is not stored between the steps, so it is needed again",
		}}}
	}
	if err != nil {
		return nil, openError(ctx, err, len(secret) > 0)
	}
	if f.crypt == nil {
		return nil, &sig.ErrState{Text: "made for another document"}
	}
	return f.crypt, nil
}

// fitting makes the message. If it does not fit, it is made again without the issuers'
// certificates, if that is enough.
func (f *Format) fitting(ctx context.Context, job *sig.Job, st *state, signature []byte) ([]byte, error) {
	inner := *job
	inner.Document, inner.Original, inner.Digests = nil, nil, nil
	level, _ := levelOf(st.Format) // readState has checked it
	inner.Request, inner.TSPAddress = nil, ""
	inner.Params = messageParams(level, st.Address, true)
	message, err := f.finished(ctx, &inner, st, signature)
	if err != nil {
		return nil, err
	}
	f.sizes.note(string(st.Key), max(0, len(message)-st.Fixed))
	if len(message) <= st.Room {
		return message, nil
	}
	need := len(message)
	issuers := 0
	for _, c := range inner.Chain {
		issuers += len(c.Raw)
	}
	// X Long needs the issuers, and the message contains them only once.
	if st.Revision == nil && need-issuers <= st.Room {
		inner.Chain = nil
		if message, err = f.finished(ctx, &inner, st, signature); err != nil || len(message) <= st.Room {
			return message, err
		}
	}
	return nil, &sig.ErrRoom{Need: need + need/8 + 1024}
}

func (f *Format) finished(ctx context.Context, job *sig.Job, st *state, signature []byte) ([]byte, error) {
	result, err := f.message(st.Format).Finish(ctx, job, st.Message, signature)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if _, err := result.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("pdf: the message: %w", err)
	}
	return b.Bytes(), nil
}
