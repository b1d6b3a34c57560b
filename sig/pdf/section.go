// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/budget"
	"tamga/sig/pdf/stamp"
)

// section makes the new revision. If the structure of the document turns out to be
// broken, its objects are searched for and the revision is made again.
func (m *maker) section() (*made, error) {
	if err := m.open(); err != nil {
		return nil, err
	}
	out, err := m.compose()
	if f := m.file; f.failed() != nil {
		return nil, f.failed()
	} else if f.damaged != nil && !f.rebuilt {
		m.file, err = f.rebuild(m.params.password, f.damaged)
		if err != nil {
			return nil, m.opened(err)
		}
		if out, err = m.compose(); m.file.failed() != nil {
			return nil, m.file.failed()
		}
	}
	if err != nil {
		return nil, err
	}
	return out, m.readBack(out)
}

// lost returns an error if objects of a broken document are missing. Such a document is
// not signed, because other programs show something else of it, or nothing.
func (m *maker) lost() (err error) {
	f := m.file
	if f.cut.num != 0 {
		err = fmt.Errorf("it ends inside object %d", f.cut.num)
	} else {
		m.pages, err = f.pageList()
	}
	if err != nil && f.failed() == nil {
		return &sig.ErrDocument{What: "Document", Text: "is incomplete; a complete PDF document expected", Err: err}
	}
	return f.failed()
}

// compose writes the objects of the new revision.
func (m *maker) compose() (*made, error) {
	f := m.file
	m.form = f.form()
	limits := f.restrictions(m.form)
	if limits.level == 1 && !m.stamping {
		return nil, forbidden("is certified by its author, and the certification forbids all changes, signatures included (DocMDP, P 1)")
	}
	var err error
	if f.rebuilt {
		if err := m.lost(); err != nil {
			return nil, err
		}
	}
	if m.update, err = f.newUpdate(); err != nil {
		return nil, err
	}
	if f.newLine() {
		m.update.buf = append(m.update.buf, '\n')
	}
	if m.target, err = m.choose(&limits); err != nil {
		return nil, err
	}
	target := m.target
	level, err := m.certification(target)
	if err != nil {
		return nil, err
	}
	drawn := &stamp.Appearance{}
	if !m.stamping {
		if drawn, err = m.draw(target); err != nil {
			return nil, err
		}
	}
	room, fixed, key := m.room()
	rootID, _ := f.catalog()
	if rootID.num == 0 {
		rootID = m.update.reserve()
		m.update.trailer = m.update.trailer.with("Root", rootID)
	}
	sigID := m.update.reserve()
	byteRange := m.putSignature(sigID, target, level, room)
	if err := m.putField(target, sigID, drawn); err != nil {
		return nil, err
	}
	root := m.putForm(target)
	root = m.extend(root)
	if level > 0 {
		perms := f.resolveDict(root.get("Perms")).with("DocMDP", sigID)
		root = root.with("Perms", perms)
	}
	m.update.put(rootID, root)
	if f.rebuilt {
		m.keepAll()
	}
	if ids := f.identifiers(m.update, m.job, m.update.buf); ids != nil {
		m.update.trailer = m.update.trailer.with("ID", ids)
	}
	m.update.close()
	revision := m.revision(rootID, root)
	out, err := m.cut(byteRange, room, revision)
	if err == nil {
		out.fixed, out.key, out.signature = fixed, key, sigID.num
	}
	return out, err
}

func forbidden(text string) error { return &sig.ErrDocument{What: "Document", Text: text} }

// newUpdate begins the update after the last byte of the file. If the object numbers of
// the document are so large that some programs could not read new ones, the error is an
// ErrDocument.
func (f *file) newUpdate() (*update, error) {
	u := &update{base: f.size, bias: f.bias, prev: -1, crypt: f.crypt, holeAt: -1, placed: map[int]place{}}
	for _, key := range []name{"Root", "Info", "Encrypt"} {
		if v := f.trailer.get(key); v != nil {
			u.trailer = append(u.trailer, entry{key, v})
		}
	}
	highest := f.highest()
	u.next = max(highest, f.referred) + 1
	// Size may be larger than needed: numbers below it may be referred to and mean null.
	// A Size out of proportion is ignored.
	if size, ok := integer(f.trailer.get("Size")); ok && size > int64(u.next) && size <= min(int64(highest)*2+maxEntries, maxWritten-maxAdded) {
		u.next = int(size)
	}
	if u.next > maxWritten-maxAdded {
		return nil, forbidden(fmt.Sprintf("has an object with the number %d; with the objects of the signature it would exceed %d, the largest number that all programs can read", u.next-1, maxWritten))
	}
	if !f.rebuilt {
		last := f.sections[0]
		u.prev, u.stream = last.at, last.stream
	}
	return u, nil
}

// keepAll lists the objects of a broken file in the new section, which replaces all
// sections before it, and the numbers without an object as free.
func (m *maker) keepAll() {
	u := m.update
	for i := range m.file.sections[0].subs {
		b := &m.file.sections[0].subs[i]
		for j, p := range b.list {
			if _, replaced := u.placed[b.first+j]; replaced {
				continue
			}
			u.placed[b.first+j] = p
			if p.kind == inStream || p.at > maxTable {
				u.stream = true
			}
		}
	}
	// A section without one before it has an entry for each number (ISO 32000-1, 7.5.4). One
	// object with a large number must not make the section of a small file large, though.
	if missing := u.next - len(u.placed); missing > len(u.placed)+maxAdded || !m.file.keep(int64(missing)*48) {
		return
	}
	for n := range u.next {
		if _, has := u.placed[n]; !has {
			u.placed[n] = place{free, 0, 65535}
		}
	}
}

// target is the field to sign: an existing one, or a new one.
type target struct {
	field *field // nil for a new field
	name  string
	page  int // index of the page of an existing field, 0 if unknown
}

// choose returns the field to sign.
func (m *maker) choose(limits *restriction) (*target, error) {
	f := m.file
	if m.stamping { // empty fields are for people
		return &target{name: m.form.freeName()}, nil
	}
	if m.params.field != "" {
		for _, s := range m.form.signatures {
			if s.name != m.params.field {
				continue
			}
			switch {
			case s.signed():
				return nil, fieldFault("is already signed; choose another field or leave PDFSignatureField empty")
			case limits.locked(s.name):
				return nil, forbidden("has an earlier signature that locks the signature field " + printable(textString(s.name)))
			}
			return m.existing(s), nil
		}
		if m.form.taken[m.params.field] || strings.Contains(m.params.field, ".") {
			return nil, fieldFault("is not a signature field of the document, and a new field cannot have this name")
		}
		return &target{name: m.params.field}, nil
	}
	for _, s := range m.form.signatures {
		if !s.signed() && !limits.locked(s.name) && f.resolve(s.dict.get("Lock")) == nil {
			return m.existing(s), nil
		}
	}
	for _, s := range m.form.signatures {
		if !s.signed() && !limits.locked(s.name) {
			return m.existing(s), nil
		}
	}
	return &target{name: m.form.freeName()}, nil
}

func (m *maker) existing(s *field) *target {
	t := &target{field: s, name: s.name}
	if id, ok := s.onWidget.get("P").(ref); ok {
		t.page = max(0, m.file.pageIndex(id))
	}
	return t
}

func fieldFault(text string) error {
	return &sig.ErrParams{Faults: []sig.Fault{{Key: "PDFSignatureField", Text: text}}}
}

// certification returns the level at which this signature certifies the document, 0 for
// none.
func (m *maker) certification(t *target) (int, error) {
	level := m.params.certification
	if t.field != nil {
		seeded, err := m.seed(t.field)
		if err != nil {
			return 0, err
		}
		switch {
		case seeded != 0 && level == 0:
			level = seeded
		case seeded != 0 && seeded != level:
			return 0, &sig.ErrParams{Faults: []sig.Fault{{
				Key: "PDFCertificationLevel", Text: fmt.Sprintf("is %s, but the signature field demands %s", certificationLevels[level].Name, certificationLevels[seeded].Name),
			}}}
		}
	}
	if level == 0 {
		return 0, nil
	}
	if slices.ContainsFunc(m.form.signatures, (*field).signed) {
		return 0, &sig.ErrParams{Faults: []sig.Fault{{
			Key: "PDFCertificationLevel", Text: "only the first signature of a document can certify it, but this document is already signed; NOT_CERTIFIED expected",
		}}}
	}
	return level, nil
}

// draw renders the visible stamp.
func (m *maker) draw(t *target) (*stamp.Appearance, error) {
	request := stampOf(m.job, &m.params)
	request.Pages, request.Spending, request.Extend = m.file.pageCount(), m.file.spending, m.extensible()
	request.Digest = m.digest
	found := newSearcher(m.file)
	request.Ink = func(n int, word string, g *stamp.Ground) (bool, error) {
		p, err := m.file.page(n)
		if err != nil {
			return false, err
		}
		return found.ink(p, word, g)
	}
	if t.field != nil {
		rect, _ := m.file.rectangle(t.field.onWidget.get("Rect"))
		request.Field = &stamp.Field{Page: t.page, Rect: rect}
	}
	drawn, err := stamp.Render(request, func(n int) (stamp.Page, error) {
		p, err := m.file.page(n)
		if err != nil {
			return stamp.Page{}, err
		}
		p.stamp.Signatures, _ = m.file.resolve(p.dict.get(keySheet)).(bool)
		for _, s := range m.form.signatures {
			if on, _ := s.onWidget.get("P").(ref); on.num == p.id.num {
				if r, ok := m.file.rectangle(s.onWidget.get("Rect")); ok && r[0] != r[2] && r[1] != r[3] {
					p.stamp.Taken = append(p.stamp.Taken, r)
				}
			}
		}
		return p.stamp, nil
	})
	switch wrong := wrongStamp(err); {
	case wrong != nil:
		return nil, wrong
	case err != nil && m.file.failed() != nil:
		return nil, m.file.failed()
	case err != nil:
		return nil, &sig.ErrDocument{What: "Document", Text: "cannot be stamped", Err: err}
	}
	return drawn, nil
}

// stampOf returns the request for the visible stamp of a job.
func stampOf(job *sig.Job, p *params) *stamp.Request {
	cert := job.Certificate
	r := &stamp.Request{
		TemplateID: p.template, Appearance: p.appearance,
		Signer: commonName(cert.Subject), Position: positionOf(cert.Subject), Serial: strings.ToUpper(cert.SerialHex()),
		NotBefore: cert.NotBefore, NotAfter: cert.NotAfter, Time: job.Time, Reason: p.reason, Location: p.location, Logo: p.logo,
	}
	if zone := job.Zone; zone != nil {
		r.Time, r.NotBefore, r.NotAfter = r.Time.In(zone), r.NotBefore.In(zone), r.NotAfter.In(zone)
	}
	return r
}

// wrongStamp returns an error of a parameter of the stamp as one of the format, nil for other errors.
func wrongStamp(err error) error {
	var wrong *stamp.ParamError
	if errors.As(err, &wrong) {
		return &sig.ErrParams{Faults: []sig.Fault{{Key: wrong.Parameter, Text: wrong.Text}}}
	}
	return nil
}

// Mark implements [sig.Marker].
func (f *Format) Mark(ctx context.Context, job *sig.Job) ([]byte, error) {
	q, p := sig.ReadFor[params](f, job)
	if err := q.Reader().Err(); err != nil {
		return nil, err
	}
	p.logo = f.Logo
	r := stampOf(job, &p)
	_, r.Spending = budget.Of(ctx, 0)
	svg, err := stamp.Preview(r)
	return svg, cmp.Or(wrongStamp(err), err)
}

// keySheet marks a page that was added for stamps.
const keySheet = "TMGA_Signatures"

// extensible reports whether a page may be added: no signature forbids it, and the page tree has a root to add it to.
func (m *maker) extensible() bool {
	_, root := m.file.catalog()
	_, indirect := root.get("Pages").(ref)
	return indirect && m.params.certification == 0 && !slices.ContainsFunc(m.form.signatures, (*field).signed)
}

// digest returns the digest of the document before this revision, as text.
func (m *maker) digest() (string, error) {
	size := m.job.Document.Size()
	if err := m.file.spending.Spend(size); err != nil {
		return "", err
	}
	h := suite.Streebog256.New()
	if err := sig.HashSection(m.ctx, h, m.job.Document, 0, size); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// addPage adds a page with its content and a widget after the last one.
func (m *maker) addPage(drawn *stamp.Appearance, widget ref) (ref, error) {
	f, u := m.file, m.update
	_, root := f.catalog()
	above, _ := root.get("Pages").(ref) // extensible has seen it
	node := f.resolveDict(above)
	content, err := m.putObjects(drawn.Sheet)
	if err != nil {
		return ref{}, err
	}
	id, box := u.reserve(), rectObject(drawn.Added.MediaBox)
	// A page inherits what it does not have.
	u.put(id, dict{{"Type", name("Page")}, {"Parent", f.current(above)}, {"MediaBox", box}, {"CropBox", box}, {"Rotate", number("0")},
		{"Resources", dict{{"XObject", dict{{"Sheet", content}}}}}, {"Contents", u.add(&stream{fresh: []byte("/Sheet Do"), dict: dict{}})},
		{keySheet, true}, {"Annots", array{widget}}})
	u.put(f.current(above), node.with("Kids", append(slices.Clone(f.resolveArray(node.get("Kids"))), id)).with("Count", intObject(int64(f.pageCount())+1)))
	m.added = true
	return id, nil
}

func commonName(n x509gost.Name) string {
	if cn, ok := n.Get(x509gost.OIDCommonName); ok {
		return cn
	}
	return n.String()
}

// positionOf returns the position of the owner of a certificate, empty if the name has none.
func positionOf(n x509gost.Name) string {
	title, _ := n.Get(x509gost.OIDTitle)
	return title
}

// putSignature writes the signature dictionary with its hole. It returns the offset in
// the buffer of the array of ByteRange, which is written later.
func (m *maker) putSignature(id ref, t *target, level, room int) (byteRange int) {
	u := m.update
	d := dict{{"Type", name("DocTimeStamp")}, {"Filter", name("Adobe.PPKLite")}, {"SubFilter", subFilterStamp}}
	if !m.stamping {
		d = dict{{"Type", name("Sig")}, {"Filter", name("Adobe.PPKLite")}, {"SubFilter", m.subFilter()},
			{"Name", textString(commonName(m.job.Certificate.Subject))}, {"M", dateString(m.job.Time)}}
	}
	if m.params.reason != "" {
		d = append(d, entry{"Reason", textString(m.params.reason)})
	}
	if m.params.location != "" {
		d = append(d, entry{"Location", textString(m.params.location)})
	}
	if references := m.references(t, level); len(references) > 0 {
		d = append(d, entry{"Reference", references})
	}
	u.begin(id)
	text := appendObject(nil, d, u.conceal(id))
	u.buf = append(append(u.buf, bytes.TrimSuffix(text, []byte(">>"))...), "/ByteRange "...)
	byteRange = len(u.buf)
	u.buf = append(append(u.buf, strings.Repeat(" ", byteRangeWidth)...), "/Contents "...)
	u.holeAt, u.hole = len(u.buf), holeOf(room)
	u.buf = append(u.buf, ">>"...)
	u.end()
	return byteRange
}

// byteRangeWidth is enough for four numbers below 2^63.
const byteRangeWidth = len("[0 ]") + 3*20

// references returns the transforms: certification and the lock of the field.
func (m *maker) references(t *target, level int) array {
	var list array
	reference := func(method name, params dict) dict {
		return dict{{"Type", name("SigRef")}, {"TransformMethod", method},
			{"TransformParams", append(dict{{"Type", name("TransformParams")}, {"V", name("1.2")}}, params...)}}
	}
	if level > 0 {
		list = append(list, reference("DocMDP", dict{{"P", intObject(int64(level))}}))
	}
	if t.field == nil {
		return list
	}
	f := m.file
	if k := f.resolveDict(t.field.dict.get("Lock")); k != nil {
		params := dict{}
		for _, key := range []name{"Action", "Fields", "P"} {
			v := f.resolve(k.get(key))
			if a, ok := v.(array); ok {
				resolved := make(array, len(a))
				for i := range a {
					resolved[i] = f.resolve(a[i])
				}
				v = resolved
			}
			if v != nil {
				params = append(params, entry{key, v})
			}
		}
		list = append(list, append(reference("FieldMDP", params), entry{"Data", m.update.trailer.get("Root")}))
	}
	return list
}

// putField writes the field with its widget: a new field, or the existing one with its
// value.
func (m *maker) putField(t *target, value ref, drawn *stamp.Appearance) error {
	f, u := m.file, m.update
	if t.field != nil {
		s := t.field
		own, widget := s.dict.with("V", value), s.onWidget
		if s.widget == s.id {
			widget = own
		}
		rect, _ := f.rectangle(widget.get("Rect"))
		shown, err := m.putAppearance(drawn, rect)
		if err != nil {
			return err
		}
		widget = widget.with("AP", dict{{"N", shown}})
		if s.widget == s.id {
			u.put(s.id, widget)
			return nil
		}
		u.put(s.id, own)
		if s.widget.num != 0 && s.onWidget != nil {
			u.put(s.widget, widget)
		}
		return nil
	}
	d := dict{{"Type", name("Annot")}, {"Subtype", name("Widget")}, {"FT", name("Sig")}, {"T", textString(t.name)},
		{"V", value}, {"F", number("132")}} // print, locked
	d = append(d, entry{"Rect", rectObject(drawn.Rect)})
	shown, err := m.putAppearance(drawn, drawn.Rect)
	if err != nil {
		return err
	}
	d = append(d, entry{"AP", dict{{"N", shown}}})
	t.field = &field{id: u.reserve()}
	if drawn.Added != nil {
		if m.stamped, err = m.addPage(drawn, t.field.id); err != nil {
			return err
		}
		u.put(t.field.id, append(d, entry{"P", m.stamped}))
		return nil
	}
	page, err := f.page(drawn.Page)
	switch {
	case f.failed() != nil:
		return f.failed()
	case err == nil && page.id.num != 0:
		if drawn.Objects != nil {
			if err := m.alone(page, drawn.Page); err != nil {
				return err
			}
			m.stamped = page.id
		}
		d = append(d, entry{"P", page.id})
		m.putAnnotation(page, t.field.id)
	case drawn.Objects != nil:
		return &sig.ErrDocument{What: "Document", Text: "cannot be stamped: the page is not an indirect object"}
	}
	u.put(t.field.id, d)
	return nil
}

// putAnnotation adds the widget to the annotations of a page. The page gets an array of its
// own, because other pages may have the one that it had: an annotation belongs to one page
// (ISO 32000-1, 12.5.2).
func (m *maker) putAnnotation(p *page, widget ref) {
	list, _ := m.file.resolve(p.dict.get("Annots")).(array)
	m.update.put(p.id, p.dict.with("Annots", append(slices.Clone(list), widget)))
}

// alone makes a page an object of its own if the page tree leads to it more than once,
// because the stamp would show on all these pages.
func (m *maker) alone(p *page, index int) error {
	var places []int
	if err := m.file.pages(func(i int, other *page) {
		if other.id == p.id {
			places = append(places, i)
		}
	}); err != nil {
		return &sig.ErrDocument{What: "Document", Text: "cannot be stamped", Err: err}
	}
	if len(places) < 2 {
		return nil
	}
	why := ""
	switch {
	case slices.ContainsFunc(m.form.signatures, (*field).signed):
		why = "an earlier signature covers the page tree, which would change with a copy"
	case p.node.num == 0:
		why = "the node of the page tree above it is not an indirect object"
	default:
		node := m.file.resolveDict(p.node)
		kids := slices.Clone(m.file.resolveArray(node.get("Kids")))
		p.id = m.update.reserve()
		kids[p.kid] = p.id
		m.update.put(p.node, node.with("Kids", kids))
		return nil
	}
	return forbidden(fmt.Sprintf("cannot be stamped on page %d alone: pages %s are one object, and %s", index+1, pageNumbers(places), why))
}

// pageNumbers lists the first few pages with these indexes.
func pageNumbers(indexes []int) string {
	var parts []string
	for _, i := range indexes {
		if len(parts) == 5 {
			parts = append(parts, "...")
			break
		}
		parts = append(parts, strconv.Itoa(i+1))
	}
	return strings.Join(parts, ", ")
}

// putAppearance writes the appearance of the widget: the stamp, or an empty form of its
// size, because archive formats require an appearance in any case.
func (m *maker) putAppearance(drawn *stamp.Appearance, rect [4]float64) (ref, error) {
	u := m.update
	if len(drawn.Objects) == 0 {
		box := [4]float64{0, 0, max(rect[0], rect[2]) - min(rect[0], rect[2]), max(rect[1], rect[3]) - min(rect[1], rect[3])}
		return u.add(&stream{fresh: []byte{}, dict: dict{{"Type", name("XObject")}, {"Subtype", name("Form")},
			{"BBox", rectObject(box)}, {"Resources", dict{}}}}), nil
	}
	return m.putObjects(drawn.Objects)
}

// putObjects writes the objects of a stamp and returns the first.
func (m *maker) putObjects(list []stamp.Object) (ref, error) {
	u := m.update
	ids := make([]ref, len(list))
	var pairs []string
	for i := range ids {
		ids[i] = u.reserve()
		pairs = append(pairs, "{"+strconv.Itoa(i)+"}", fmt.Sprintf("%d 0 R", ids[i].num))
	}
	numbers := strings.NewReplacer(pairs...)
	for i, o := range list {
		parsed, err := lexBytes([]byte(numbers.Replace(o.Dict))).object()
		d, ok := parsed.(dict)
		if err != nil || !ok {
			return ref{}, fmt.Errorf("pdf: object %d of the stamp is not a dictionary", i)
		}
		if o.Stream == nil {
			u.put(ids[i], d)
		} else {
			u.put(ids[i], &stream{dict: d, fresh: o.Stream})
		}
	}
	return ids[0], nil
}

func rectObject(r [4]float64) array {
	out := make(array, len(r))
	for i, v := range r {
		out[i] = number(strconv.FormatFloat(v, 'f', -1, 64))
	}
	return out
}

// sigFlags are SignaturesExist and AppendOnly.
const sigFlags = 3

// putForm writes the form with the field and returns the catalog that refers to it.
func (m *maker) putForm(t *target) dict {
	f, u := m.file, m.update
	_, root := f.catalog()
	d := m.form.dict
	changed := false
	if have := f.intOf(d.get("SigFlags")); have&sigFlags != sigFlags {
		d, changed = d.with("SigFlags", intObject(have|sigFlags)), true
	}
	if !slices.ContainsFunc(m.form.signatures, func(s *field) bool { return s.id == t.field.id }) {
		list := append(slices.Clone(m.form.fields), t.field.id)
		if m.form.fieldsID.num != 0 {
			u.put(m.form.fieldsID, list)
		} else {
			d, changed = d.with("Fields", list), true
		}
	}
	switch {
	case !changed:
	case m.form.id.num != 0:
		u.put(m.form.id, d)
	case m.form.dict == nil:
		root = root.with("AcroForm", u.add(d))
	default:
		root = root.with("AcroForm", d)
	}
	return root
}

// extend adds the ETSI extensions if the document is older than PDF 2.0, which includes
// them.
func (m *maker) extend(root dict) dict {
	level := map[string]int64{formatCAdEST: 2, formatCAdES: 5, formatCAdESA: 5}[m.params.format]
	if level == 0 || m.file.effectiveVersion() >= "2.0" {
		return root
	}
	f := m.file
	if f.effectiveVersion() < "1.7" {
		root = root.with("Version", name("1.7"))
	}
	extensions := f.resolveDict(root.get("Extensions"))
	if f.intOf(f.resolveDict(extensions.get("ESIC")).get("ExtensionLevel")) >= level {
		return root
	}
	return root.with("Extensions", extensions.with("ESIC", dict{{"BaseVersion", name("1.7")}, {"ExtensionLevel", intObject(level)}}))
}

// effectiveVersion returns the version of the header, or that of the catalog if it is
// later.
func (f *file) effectiveVersion() string {
	_, root := f.catalog()
	if v, ok := f.resolve(root.get("Version")).(name); ok && versionOf([]byte(v)) > f.version {
		return versionOf([]byte(v))
	}
	return f.version
}

// cut writes ByteRange and splits the section at its hole.
func (m *maker) cut(byteRange, room int, rev *revision) (*made, error) {
	u := m.update
	from := u.base + int64(u.holeAt)
	behind := from + u.hole
	value := fmt.Sprintf("[0 %d %d %d]", from, behind, u.base+u.total()-behind)
	if len(value) > byteRangeWidth {
		return nil, forbidden("is too large to be signed")
	}
	copy(u.buf[byteRange:], value)
	return &made{head: u.buf[:u.holeAt:u.holeAt], tail: u.buf[u.holeAt:], room: room, revision: rev}, nil
}

// identifiers returns the two identifiers of the trailer. The first one never changes. of makes the second
// one different from others.
func (f *file) identifiers(u *update, job *sig.Job, of []byte) array {
	h := sha256.New()
	fmt.Fprint(h, job.Time.UnixNano(), u.base, u.next, ";")
	if job.Certificate != nil {
		h.Write(job.Certificate.Raw)
	}
	h.Write(of)
	fresh := text(h.Sum(nil)[:16])
	if ids := f.resolveArray(f.trailer.get("ID")); len(ids) > 0 {
		if first := f.textOf(ids[0]); len(first) > 0 {
			return array{text(first), fresh}
		}
	}
	if f.crypt != nil { // the key depends on the missing identifier
		return nil
	}
	return array{fresh, fresh}
}
