// SPDX-License-Identifier: Apache-2.0

package asic

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"hash/crc32"
	"io"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"

	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/budget"
	"tamga/sig/xmldsig"
	"tamga/sig/zip"
)

// Prepare implements sig.Format. It reads the parameters ASiCType, ASiCFormat, CmsSignatureType, CADESType or
// XAdESType, TSPAddress, IncludeCertChain and HashAlgorithm. Without CmsSignatureType=Cosign the documents of the
// job become the files of a new container, otherwise the document is the container that gets a signature of all
// its files. Each document is read once, for its digest and its checksum.
func (f *Format) Prepare(ctx context.Context, job *sig.Job) (*sig.Prepared, error) {
	return sig.Within(ctx, job, func(ctx context.Context) (*sig.Prepared, error) { return f.prepare(ctx, job) })
}

func (f *Format) prepare(ctx context.Context, job *sig.Job) (*sig.Prepared, error) {
	s, err := sig.SuiteOf(job.Certificate)
	if err != nil {
		return nil, err
	}
	q, p := sig.ReadFor[params](f, job)
	r := q.ForJob(job)
	q.Stamper(job, r, p.levelKey(), p.level, levelBES)
	r.CheckHashAlgorithm(s)
	if job.Original != nil && job.Original.Size() > 0 {
		r.Fault("OriginalDocument", "has no place in a container, which holds its documents; leave it out")
	}
	m := &maker{format: f, job: job, params: p, suite: s}
	m.state = &state{StateHeader: stateForm.Header(job), XML: p.xml, Single: p.single, Extends: p.extends}
	if !p.extends {
		if err := checkNames(ctx, job, r); err != nil {
			return nil, err
		}
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	if p.extends {
		err = m.existing(ctx)
	} else {
		err = m.fresh(ctx)
	}
	if err != nil {
		return nil, err
	}
	inner, err := m.prepare(ctx)
	if err != nil {
		return nil, err
	}
	m.state.Inner = inner.State
	size := 256 + len(m.state.List) + len(inner.State) + 128*len(m.state.Files)
	return &sig.Prepared{Digest: inner.Digest, State: sig.MarshalState(m.state, size)}, nil
}

// nameOf returns the name of a document in a new container.
func nameOf(f sig.File) string {
	if f.Name == "" {
		return "document"
	}
	return f.Name
}

// maxName is the most bytes that the name of a document in a new container has.
const maxName = 1024

// checkNames adds the faults of the names of a job's documents. The error is of the budget.
func checkNames(ctx context.Context, job *sig.Job, r *sig.ParamReader) error {
	_, b := budget.Of(ctx, 0)
	seen := map[string]string{}
	for f := range job.Documents() {
		name := nameOf(f)
		refuse := func(format string, args ...any) { r.Fault("Files", fmt.Sprintf(format, args...)) }
		if len(name) > maxName {
			refuse("has the name %s of %d bytes; at most %d are accepted", quote(name), len(name), maxName)
			continue
		}
		// Each folder of the name is looked up.
		if err := b.Spend(int64(len(name)) * int64(20+strings.Count(name, "/")/8)); err != nil {
			return err
		}
		k := key(name)
		switch other, twice := seen[k]; {
		case twice && other == name:
			refuse("has two documents with the name %s; names that differ expected", quote(name))
		case twice:
			refuse("has documents with the names %s and %s, which mean the same file on some systems; names that differ expected", quote(other), quote(name))
		case k == mimetypeName || strings.HasPrefix(k, "meta-inf/") || k == "meta-inf":
			refuse("has the name %s, which containers use for themselves; another name expected", quote(name))
		case strings.Contains(name, ":") || strings.ContainsFunc(name, func(r rune) bool { return unicode.Is(unicode.Cf, r) }):
			refuse("has the name %s with a colon or a character that is not visible, which names no file on some systems; another name expected", quote(name))
		case strings.HasSuffix(name, "/"):
			refuse("has the name %s, which names a folder; the name of a file expected", quote(name))
		default:
			if _, _, err := zip.Layout([]zip.Stored{{Name: name}}); err != nil {
				refuse("has the name %s, which is not possible in a container: %s", quote(name), ofArchive(err))
			}
		}
		seen[k] = name
	}
	// A folder must not have the name of a file.
	for k, name := range seen {
		for at := strings.LastIndexByte(k, '/'); at >= 0; at = strings.LastIndexByte(k[:at], '/') {
			if _, is := seen[k[:at]]; is {
				r.Fault("Files", fmt.Sprintf("has the document %s inside of another document; other names expected", quote(name)))
				break
			}
		}
	}
	return nil
}

// maker prepares or finishes one signature.
type maker struct {
	format *Format
	job    *sig.Job
	params params
	suite  *suite.Suite
	state  *state

	container *container   // to extend
	files     []signedFile // that the signature covers
	inner     *sig.Job     // of the signature itself
}

// signedFile is a file with the digest that a signature covers.
type signedFile struct {
	name   string
	digest suite.Digest
}

// fresh reads the documents of a new container and chooses the names of its entries.
func (m *maker) fresh(ctx context.Context) error {
	for f := range m.job.Documents() {
		d, crc, err := sumsOf(ctx, f, m.suite.Hash)
		if err != nil {
			return err
		}
		name := nameOf(f)
		m.state.Files = append(m.state.Files, stateFile{name, f.Document.Size(), int64(crc), d.Sum})
		m.files = append(m.files, signedFile{name, d})
	}
	m.names(func(string) bool { return false })
	return nil
}

// names chooses the names of the entries for the signature and its list.
func (m *maker) names(taken func(name string) bool) {
	st := m.state
	switch {
	case st.Single && st.XML:
		st.Entry = metaFolder + "signatures.xml"
	case st.Single:
		st.Entry = metaFolder + "signature.p7s"
	default:
		for i := 1; ; i++ {
			st.Entry, st.ListName = fmt.Sprintf("%ssignature%03d.p7s", metaFolder, i), fmt.Sprintf("%sASiCManifest%03d.xml", metaFolder, i)
			if st.XML {
				st.Entry, st.ListName = fmt.Sprintf("%ssignatures%03d.xml", metaFolder, i), ""
			}
			if !taken(st.Entry) && (st.ListName == "" || !taken(st.ListName)) {
				return
			}
		}
	}
}

// sumsOf returns the digest and the checksum of a document. It reads it once.
func sumsOf(ctx context.Context, f sig.File, h *suite.Hash) (d suite.Digest, crc uint32, err error) {
	sum := crc32.NewIEEE()
	size := f.Document.Size()
	section := io.NewSectionReader(f.Document, 0, size)
	for _, known := range f.Digests {
		if known.Hash == h && len(known.Sum) == h.Size {
			// DigestAll without an algorithm only reads, and notices the end of ctx.
			_, err := sig.DigestAll(ctx, io.TeeReader(section, sum), size)
			return known, sum.Sum32(), err
		}
	}
	all, err := sig.DigestAll(ctx, io.TeeReader(section, sum), size, h)
	if err != nil {
		return d, 0, err
	}
	return all[0], sum.Sum32(), nil
}

// existing opens the container to extend, and chooses what the signature covers and where it is put.
func (m *maker) existing(ctx context.Context) error {
	c, err := m.open(ctx)
	if err != nil {
		return err
	}
	switch {
	case m.params.typed && m.params.single != (c.kind == kindS):
		return &sig.ErrParams{Faults: []sig.Fault{{Key: "ASiCType", Text: "is not the type of the container, which keeps its own; leave it out"}}}
	case m.state.XML && len(c.cms) > 0, !m.state.XML && len(c.xml) > 0:
		has, other := formatCAdES, formatXAdES
		if len(c.xml) > 0 {
			has, other = other, has
		}
		return &sig.ErrParams{Faults: []sig.Fault{{Key: "ASiCFormat", Text: fmt.Sprintf("is %s, but the container has signatures of the format %s; %s expected", other, has, has)}}}
	case len(c.files) == 0:
		return unfit(nil, "has no file to sign")
	case len(c.zip.Entries)+2 > zip.MaxEntries:
		return unfit(nil, "has %d entries; at most %d are accepted, so that the signed container can be read", len(c.zip.Entries), zip.MaxEntries-2)
	}
	if m.state.Single = c.kind == kindS; m.state.Single {
		if len(c.files) != 1 {
			return unfit(nil, "is ASiC-S with %d files, so it is not clear which one its signatures cover; one file expected", len(c.files))
		}
		if err := m.covered(ctx); err != nil {
			return err
		}
	}
	for _, f := range c.files {
		d, err := f.digest(ctx, m.suite.Hash)
		if err != nil {
			return err
		}
		m.files = append(m.files, signedFile{f.Name, d})
	}
	m.state.Directory = c.fingerprint()
	m.names(func(name string) bool { return c.byKey[key(name)] != nil })
	if f := c.byKey[key(m.state.Entry)]; f != nil {
		m.state.Entry = f.Name
	}
	return nil
}

// open opens the container to extend.
func (m *maker) open(ctx context.Context) (*container, error) {
	_, b := budget.Of(ctx, m.job.Document.Size())
	c, err := openContainer(ctx, b, m.job.Document)
	if err != nil {
		return nil, err
	}
	if c.kind != kindS && c.kind != kindE {
		return nil, otherKind("a container (ASiC) expected, to which a signature is added")
	}
	m.container = c
	return c, nil
}

// covered refuses a container of ASiC-S whose one entry with signatures an archive time stamp covers: one more
// signature would change that entry and break the time stamp.
func (m *maker) covered(ctx context.Context) error {
	r := &manifestReader{ctx: ctx, of: m.container, left: maxListed}
	for _, f := range m.container.archives[:min(len(m.container.archives), maxManifests)] {
		list, err := r.read(f)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(list.list, func(l listed) bool { return l.file != nil && l.file.signs }) {
			return unfit(nil, "has an archive time stamp (%s) over its signatures, which one more signature would break", quote(f.Name))
		}
	}
	return nil
}

// prepare prepares the signature itself.
func (m *maker) prepare(ctx context.Context) (*sig.Prepared, error) {
	if !m.state.XML && !m.state.Single {
		m.state.List = renderList(m.state.Entry, m.files)
	}
	if err := m.innerJob(ctx); err != nil {
		return nil, err
	}
	if !m.state.XML {
		return m.format.CMS.Prepare(ctx, m.inner)
	}
	refs := make([]xmldsig.Reference, len(m.files))
	for i, f := range m.files {
		refs[i] = xmldsig.Reference{URI: uriOf(f.name), MimeType: mimeOf(f.name), Digest: f.digest}
	}
	return m.format.XML.PrepareBeside(ctx, m.inner, refs)
}

// noSignatures is the document of XAdES signatures without one (EN 319 162-1, A.5).
const noSignatures = `<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<asic:XAdESSignatures xmlns:asic="` + nsASiC + `"></asic:XAdESSignatures>`

// innerJob makes the job of the signature itself. It is the same in both steps.
func (m *maker) innerJob(ctx context.Context) error {
	job, st := m.job, m.state
	m.inner = &sig.Job{
		Certificate: job.Certificate, Chain: job.Chain, Params: m.params.inner, TSPAddress: job.TSPAddress,
		Time: job.Time, Zone: job.Zone, Evidence: job.Evidence,
	}
	var before []byte // the entry with signatures to which one more is added
	if st.Single && st.Extends {
		if f := m.container.byKey[key(st.Entry)]; f != nil {
			var err error
			if before, err = f.content(ctx, maxMessage); err != nil {
				return err
			}
		}
	}
	switch {
	case st.XML && before == nil:
		m.inner.Document = strings.NewReader(noSignatures)
	case st.XML:
		m.inner.Document = bytes.NewReader(before)
	case !st.Single:
		m.inner.Document = bytes.NewReader(st.List)
	case before != nil:
		m.inner.Params = m.inner.Params.With("CmsSignatureType", kindCosign)
		m.inner.Document, m.inner.Original = bytes.NewReader(before), m.container.files[0].document()
	case st.Extends:
		m.inner.Document = m.container.files[0].document()
	default:
		m.inner.Document = job.Document
		m.inner.Digests = []suite.Digest{{Hash: m.suite.Hash, Sum: st.Files[0].Digest}}
	}
	return nil
}

// Finish implements sig.Format. It does not read the parameters again: they are in the state.
func (f *Format) Finish(ctx context.Context, job *sig.Job, prepared, signature []byte) (sig.Result, error) {
	return sig.Within(ctx, job, func(ctx context.Context) (sig.Result, error) { return f.finish(ctx, job, prepared, signature) })
}

func (f *Format) finish(ctx context.Context, job *sig.Job, prepared, signature []byte) (sig.Result, error) {
	s, err := sig.SuiteOf(job.Certificate)
	if err != nil {
		return nil, err
	}
	st := &state{}
	if err := sig.OpenState(stateForm, job, prepared, st); err != nil {
		return nil, err
	}
	if err := st.CheckCertificate(job.Certificate); err != nil {
		return nil, err
	}
	if err := st.CheckSize(job.Document); err != nil {
		return nil, err
	}
	m := &maker{format: f, job: job, suite: s, state: st}
	if st.Extends {
		if len(job.Files) > 0 {
			return nil, &sig.ErrState{Text: "made for another number of documents"}
		}
		c, err := m.open(ctx)
		if isDocument(err) || err == nil && !bytes.Equal(c.fingerprint(), st.Directory) {
			return nil, &sig.ErrState{Text: "made for another document"}
		}
		if err != nil {
			return nil, err
		}
		if st.Single && len(c.files) != 1 {
			return nil, &sig.ErrState{Text: "damaged"}
		}
	} else if err := st.fits(job); err != nil {
		return nil, err
	} else if st.Single && len(st.Files) != 1 {
		return nil, &sig.ErrState{Text: "damaged"}
	}
	if err := m.innerJob(ctx); err != nil {
		return nil, err
	}
	var result sig.Result
	switch {
	case !st.XML:
		result, err = f.CMS.Finish(ctx, m.inner, st.Inner, signature)
	case st.Extends:
		result, err = f.XML.FinishBeside(ctx, m.inner, st.Inner, signature, besideFiles{m.container})
	default:
		result, err = f.XML.FinishBeside(ctx, m.inner, st.Inner, signature, m.newFiles())
	}
	if err != nil {
		return nil, err
	}
	if result.Size() > maxMessage {
		return nil, unfit(nil, "gets a signature of %d bytes; at most %d are accepted, so that it can be read again", result.Size(), maxMessage)
	}
	_, b := budget.Of(ctx, 0)
	if err := b.Hold(result.Size()); err != nil {
		return nil, err
	}
	made := bytes.NewBuffer(make([]byte, 0, result.Size()))
	if _, err := result.WriteTo(made); err != nil {
		return nil, err
	}
	if st.Extends {
		return m.extended(made.Bytes())
	}
	return m.assembled(made.Bytes())
}

// assembled returns a new container.
func (m *maker) assembled(signature []byte) (sig.Result, error) {
	st := m.state
	mimetype := typeE
	if st.Single {
		mimetype = typeS
	}
	var entries []zip.Stored
	var contents []sig.Part
	add := func(name string, content []byte) {
		entries = append(entries, zip.Stored{Name: name, Size: int64(len(content)), CRC32: crc32.ChecksumIEEE(content)})
		contents = append(contents, sig.Bytes(content))
	}
	add(mimetypeName, []byte(mimetype))
	i := 0
	for f := range m.job.Documents() {
		kept := &st.Files[i]
		entries = append(entries, zip.Stored{Name: kept.Name, Size: kept.Size, CRC32: uint32(kept.CRC32)})
		contents = append(contents, sig.Section(f.Document, 0, kept.Size))
		i++
	}
	if st.List != nil {
		add(st.ListName, st.List)
	}
	add(st.Entry, signature)
	heads, tail, err := zip.Layout(entries)
	if err != nil {
		return nil, ofArchive(err)
	}
	parts := make([]sig.Part, 0, 2*len(heads)+1)
	for i, head := range heads {
		parts = append(parts, sig.Bytes(head), contents[i])
	}
	return sig.Parts(append(parts, sig.Bytes(tail))...), nil
}

// extended returns the container with the new entries.
func (m *maker) extended(signature []byte) (sig.Result, error) {
	st := m.state
	var changes []zip.Change
	if st.List != nil {
		changes = append(changes, zip.Change{Name: st.ListName, Content: st.List})
	}
	pieces, err := m.container.zip.Rewrite(append(changes, zip.Change{Name: st.Entry, Content: signature}))
	if err != nil {
		return nil, ofArchive(err)
	}
	parts := make([]sig.Part, len(pieces))
	for i, p := range pieces {
		if p.Bytes != nil {
			parts[i] = sig.Bytes(p.Bytes)
		} else {
			parts[i] = sig.Section(m.job.Document, p.Offset, p.Length)
		}
	}
	return sig.Parts(parts...), nil
}

// renderList returns the list of files that a CAdES signature of ASiC-E covers (EN 319 162-1, A.4).
func renderList(signature string, files []signedFile) []byte {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<asic:ASiCManifest xmlns:asic="` + nsASiC + `" xmlns:ds="` + nsDS + `">` +
		`<asic:SigReference URI="` + signature + `" MimeType="application/pkcs7-signature"/>`)
	for _, f := range files {
		b.WriteString(`<asic:DataObjectReference URI="` + uriOf(f.name) + `" MimeType="` + mimeOf(f.name) + `">` +
			`<ds:DigestMethod Algorithm="` + f.digest.Hash.XML[0] + `"/>` +
			"<ds:DigestValue>" + base64.StdEncoding.EncodeToString(f.digest.Sum) + "</ds:DigestValue></asic:DataObjectReference>")
	}
	b.WriteString("</asic:ASiCManifest>")
	return []byte(b.String())
}

// uriOf returns the name of a file as a URI. It has no character that XML would need to escape.
func uriOf(name string) string {
	segments := strings.Split(name, "/")
	for i, s := range segments {
		segments[i] = strings.ReplaceAll(url.PathEscape(s), "&", "%26")
	}
	// The first segment must not look like a scheme (RFC 3986, 4.2).
	return strings.ReplaceAll(strings.Join(segments, "/"), ":", "%3A")
}

// mimeTypes are the media types of common files by the ends of their names.
var mimeTypes = map[string]string{
	".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	".odt":  "application/vnd.oasis.opendocument.text", ".ods": "application/vnd.oasis.opendocument.spreadsheet",
	".pdf": "application/pdf", ".zip": "application/zip", ".json": "application/json",
	".xml": "text/xml", ".txt": "text/plain", ".csv": "text/csv", ".html": "text/html",
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".tif": "image/tiff", ".tiff": "image/tiff",
}

func mimeOf(name string) string {
	if kind := mimeTypes[strings.ToLower(path.Ext(name))]; kind != "" {
		return kind
	}
	return "application/octet-stream"
}
