// SPDX-License-Identifier: Apache-2.0

package ooxml

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/budget"
	"tamga/sig/zip"
)

// SignsParts implements sig.PartSigner: digests are over the parts of the package.
func (*Format) SignsParts() {}

// params are the values of the parameters.
type params struct{ chain bool }

// Read implements sig.Format.
func (*Format) Read(p sig.Params) *sig.Request {
	q := p.Request()
	r := q.Reader()
	// Office writes only the signer's certificate and finds the others in the store of
	// Windows. Other readers have no store: without the issuers they call a signer
	// untrusted even if they trust its root.
	q.Own = params{chain: r.Bool("IncludeCertChain", true)}
	if q.OverHash {
		r.Fault("Hash", "is True, but an Office document is signed as a whole, never by its hash value; False expected")
	}
	return q
}

// Prepare implements sig.Format. The interface has no parameters only for Office
// documents. Prepare reads the general ones IncludeCertChain and HashAlgorithm. It reads
// every part to sign once.
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
	r.CheckHashAlgorithm(s)
	if err := r.Err(); err != nil {
		return nil, err
	}
	d, err := open(ctx, job.Document)
	if err != nil {
		return nil, err
	}
	if faults := d.untyped(); len(faults) > 0 {
		return nil, unfit(nil, "cannot be signed as a whole: %s", faults[0])
	}
	refs, err := d.references(ctx, s.Hash)
	if err != nil {
		return nil, err
	}
	changes, part, err := d.changes()
	if err != nil {
		return nil, err
	}
	if n := len(d.entries) + len(changes) + 1; n > zip.MaxEntries {
		return nil, unfit(nil, "has %d entries; at most %d are accepted, so that the signed document can be read", len(d.entries), zip.MaxEntries-len(changes)-1)
	}
	x := &signatureXML{suite: s, at: job.Time, certs: certificates(job, p.chain), refs: refs}
	head, tail, digest, err := x.render()
	if err != nil {
		return nil, err
	}
	st := sig.MarshalState(&state{
		StateHeader: stateForm.Header(job), Directory: d.fingerprint(),
		Part: part, Head: head, Tail: tail, Changes: changes,
	}, 4<<10+len(head)+len(tail))
	return &sig.Prepared{Digest: digest, State: st}, nil
}

// certificates returns the certificates for KeyInfo: the signer's and, with withChain,
// its issuers except the root, which a verifier must have already.
func certificates(job *sig.Job, withChain bool) []*x509gost.Certificate {
	out := []*x509gost.Certificate{job.Certificate}
	for _, c := range job.Chain {
		if withChain && c != nil && !c.IsSelfIssued() && !slices.ContainsFunc(out, c.Equal) {
			out = append(out, c)
		}
	}
	return out
}

// maxValue is more than the size of a signature value in Base64, maxHead more than that of
// the signature before it.
const (
	maxValue = 4096
	maxHead  = 4096
)

// changes returns the changes of the package besides the new signature part, and the name
// of that part.
func (d *document) changes() (changes []change, part string, err error) {
	origin := d.origin
	if origin == "" {
		origin = d.free("_xmlsignatures/origin", "", ".sigs") // where Office puts it
	}
	folder := origin[:strings.LastIndexByte(origin, '/')+1]
	part = d.free(folder+"sig", "1", ".xml")
	types, err := d.types.with([]typedPart{
		{relationshipsOf(origin), typeRelationships, false},
		{origin, typeOrigin, true},
		{part, typeSignature, false},
	})
	if err != nil {
		return nil, "", err
	}
	changes = append(changes, change{d.typesName, types})
	if d.byKey[key(origin)] == nil {
		changes = append(changes, change{origin, nil})
	}
	file := part[len(folder):]
	if d.rels[key(origin)] == nil {
		name := relationshipsOf(origin)
		if d.byKey[key(name)] != nil {
			return nil, "", unfit(nil, "has a part in the place of the relationships of the origin of signatures, but with another content type")
		}
		changes = append(changes, change{name, newRelationships(relSignature, file)})
	}
	// Once there is a signature, the bytes that it covers must not change.
	tidy := len(d.signatureParts()) == 0
	for _, source := range d.sources {
		rels := d.rels[source]
		kind, target := "", ""
		switch {
		case source == "" && d.origin == "":
			kind, target = relOrigin, origin
		case source != "" && source == d.originKeys[0]:
			kind, target = relSignature, file
		case !tidy || !rels.untidy || source != "" && d.isOfSignatures(source):
			continue
		}
		data, err := rels.edited(tidy, kind, target)
		if err != nil {
			return nil, "", err
		}
		changes = append(changes, change{rels.name, data})
	}
	return changes, part, nil
}

// free returns the first of the names stem+first+suffix, stem+"2"+suffix... that no entry
// has.
func (d *document) free(stem, first, suffix string) string {
	for i := 1; ; i++ {
		number := first
		if i > 1 {
			number = fmt.Sprint(i)
		}
		name := stem + number + suffix
		if d.byKey[key(name)] == nil && d.byKey[key(relationshipsOf(name))] == nil {
			return name
		}
	}
}

var stateForm = sig.StateForm{What: "a signature in an Office document", First: 1, JSON: 1, Version: 2}

// state is all that Finish needs in addition to the job's document and certificate.
type state struct {
	sig.StateHeader
	Directory []byte `json:"directory"` // its fingerprint
	Part      string `json:"part"`      // name of the new signature part
	// Head and Tail are the signature part before and after the signature value, exactly
	// as it was digested.
	Head    []byte   `json:"head"`
	Tail    []byte   `json:"tail"`
	Changes []change `json:"changes"`
}

// Fields implements sig.State.
func (st *state) Fields(f *sig.Fields) {
	f.Header(&st.StateHeader)
	f.Bytes(&st.Directory)
	f.Text(&st.Part)
	f.Bytes(&st.Head)
	f.Bytes(&st.Tail)
	sig.List(f, &st.Changes, func(c *change) {
		f.Text(&c.Name)
		f.Bytes(&c.Content)
	})
}

// fingerprint distinguishes documents without reading their parts: the SHA-256 of the
// central directory, which has the name, size and checksum of each.
func (a *archive) fingerprint() []byte {
	sum := sha256.Sum256(a.zip.Directory)
	return sum[:]
}

// Finish implements sig.Format. It does not read the parameters again: they are in the
// state.
func (f *Format) Finish(ctx context.Context, job *sig.Job, prepared, signature []byte) (sig.Result, error) {
	return sig.Within(ctx, job.Document, func(ctx context.Context) (sig.Result, error) { return f.finish(ctx, job, prepared, signature) })
}

func (f *Format) finish(ctx context.Context, job *sig.Job, prepared, signature []byte) (sig.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, err := sig.SuiteOf(job.Certificate)
	if err != nil {
		return nil, err
	}
	var st state
	if err := sig.OpenState(stateForm, job, prepared, &st); err != nil {
		return nil, err
	}
	if err := st.CheckCertificate(job.Certificate); err != nil {
		return nil, err
	}
	if err := st.CheckSize(job.Document); err != nil {
		return nil, err
	}
	_, b := budget.Of(ctx, job.Document.Size())
	a, err := openArchive(b, job.Document)
	if isDocument(err) || err == nil && !bytes.Equal(a.fingerprint(), st.Directory) {
		return nil, &sig.ErrState{Text: "made for another document"}
	}
	if err != nil {
		return nil, err
	}
	encoded, err := s.XMLValue(signature)
	if err != nil {
		return nil, err
	}
	value := base64.StdEncoding.EncodeToString(encoded)
	changes := append(slices.Clone(st.Changes), change{st.Part, slices.Concat(st.Head, []byte(value), st.Tail)})
	result, err := a.rewrite(changes)
	if err != nil {
		return nil, err
	}
	if err := a.readBack(ctx, result, changes, st.Part); err != nil {
		return nil, err
	}
	return result, nil
}
