// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/budget"
	"tamga/sig/pdf/stamp"
)

// Limits of a card.
const (
	maxCardFiles   = 101 // the document and detached signatures
	maxCardSigners = 100
	maxCardName    = 255      // characters of the name of a file
	maxPictureFile = 24 << 20 // bytes of a picture whose page is shown
)

// The entries of a card.
const (
	keyCard      = "TMGA_Card"
	lengthDigits = 20
	sealDigits   = 64
)

// cardMaker makes a card: a revision that follows a document with the pages.
type cardMaker struct {
	*maker
	card   *sig.Card
	words  *cardWords
	files  []cardEntry // the document first
	cover  string      // why the pages of the document are not shown, "" if they are
	marks  []cardMark  // of the signers
	nested map[int]nesting
	parts  []sig.Part

	pagesBefore int          // of the document
	pageNumbers map[int]int  // how often the tree leads to a page, by its object number
	written     map[int]bool // pages that putPages looked at, by number
	stilled     map[int]bool // annotations, fields and bookmarks that were looked at, by number
}

// cardEntry is a file of a card.
type cardEntry struct {
	sig.File
	sum []byte // Streebog-256
}

// cardMark is where the mark of a signer is: on a page of the document, as the document was signed with, or on the sheet.
type cardMark struct {
	drawn *stamp.Appearance // nil: not by this program
	page  int               // index from 0, -1 for the sheet
}

// nesting is what is open at the end of the content of a page.
type nesting struct{ open, excess int }

// MakeCard implements [sig.Cards]. The pages of a PDF are those of the document, with this revision after it; a picture
// gets a page; other files, encrypted and broken ones get a cover sheet in place of their pages.
func (f *Format) MakeCard(ctx context.Context, c *sig.Card) (sig.Result, error) {
	return sig.Within(ctx, c.Document.Document, func(ctx context.Context) (sig.Result, error) { return f.makeCard(ctx, c) })
}

func (f *Format) makeCard(ctx context.Context, c *sig.Card) (sig.Result, error) {
	switch {
	case len(c.Signers) == 0:
		return nil, &sig.ErrDocument{What: "Document", Text: "has no signature that holds; a card is of a signed document"}
	case len(c.Signers) > maxCardSigners || len(c.Signatures) >= maxCardFiles:
		return nil, &sig.ErrDocument{What: "Document", Text: fmt.Sprintf("has more than %d signatures, which is the most of a card", maxCardSigners)}
	}
	files, err := cardFiles(ctx, c)
	if err != nil {
		return nil, err
	}
	base, cover, release, err := f.cardBase(ctx, c.Document.Document)
	if err != nil {
		return nil, err
	}
	defer release()
	for {
		m := &cardMaker{maker: &maker{format: f, ctx: ctx, form: &form{}}, card: c, words: wordsOfCards(c.Language), files: files, cover: cover, nested: map[int]nesting{}}
		out, err := m.make(base)
		if m.file != nil {
			if failed := m.file.failed(); failed != nil {
				err = failed
			}
			m.file.close()
		}
		if err == nil || cover != "" || ctx.Err() != nil || m.file != nil && m.file.failed() != nil {
			return out, err
		}
		base, cover = noPages(), coverBroken
		if errors.Is(err, errPassword) || errors.Is(err, errLocked) {
			cover = coverEncrypted
		}
	}
}

// errLocked means that a document is encrypted, also one that opens without a password.
var errLocked = errors.New("the document is encrypted")

// cardFiles returns the files with names that are safe and unlike, and their digests.
func cardFiles(ctx context.Context, c *sig.Card) ([]cardEntry, error) {
	var list []cardEntry
	taken := map[string]bool{}
	for _, one := range append([]sig.File{c.Document}, c.Signatures...) {
		e := cardEntry{File: one}
		e.Name = freeCardName(cleanCardName(one.Name), taken)
		taken[sig.NameKey(e.Name)] = true
		d, err := sig.DigestOf(ctx, one, suite.Streebog256)
		if err != nil {
			return nil, err
		}
		e.sum = d.Sum
		list = append(list, e)
	}
	return list, nil
}

// cleanCardName returns the name of a file without folders and without characters that do not show or that change the
// direction of writing.
func cleanCardName(name string) string {
	name = norm.NFC.String(strings.ReplaceAll(strings.ToValidUTF8(name, "_"), "\ufffd", "_"))
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		if hiddenInName(r) {
			return -1
		}
		return r
	}, name)
	if driveOf(name) {
		name = name[2:]
	}
	name = strings.TrimSpace(strings.ReplaceAll(name, ":", "_"))
	if runes := []rune(name); len(runes) > maxCardName {
		end := []rune(path.Ext(name))
		if len(end) > 16 {
			end = nil
		}
		name = string(runes[:maxCardName-len(end)]) + string(end)
	}
	for trimmed := ""; trimmed != name; {
		trimmed = name
		name = strings.TrimRight(strings.TrimSpace(name), " .")
	}
	if device(name) {
		runes := []rune("_" + name)
		name = string(runes[:min(len(runes), maxCardName)])
	}
	if wrongCardName(name) != "" {
		return "document"
	}
	return name
}

// device reports whether Windows takes a name for a device, whatever follows its first point.
func device(name string) bool {
	stem, _, _ := strings.Cut(name, ".")
	stem = strings.ToUpper(strings.TrimRight(stem, " "))
	switch stem {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	number, ok := strings.CutPrefix(stem, "COM")
	if !ok {
		number, ok = strings.CutPrefix(stem, "LPT")
	}
	return ok && utf8.RuneCountInString(number) == 1 && strings.Contains("0123456789\u00b9\u00b2\u00b3", number)
}

// hiddenInName reports whether a character may not be in the name of a file: it does not show, or it changes the direction
// of writing. Joiners are letters of some scripts.
func hiddenInName(r rune) bool {
	return r != '\u200c' && r != '\u200d' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// driveOf reports whether a name begins with that of a drive.
func driveOf(name string) bool {
	return len(name) >= 2 && name[1] == ':' && (name[0]|0x20 >= 'a' && name[0]|0x20 <= 'z')
}

func freeCardName(name string, taken map[string]bool) string {
	end := path.Ext(name)
	stem := strings.TrimSuffix(name, end)
	for i := 2; taken[sig.NameKey(name)]; i++ {
		tail := []rune(fmt.Sprintf(" (%d)%s", i, end))
		runes := []rune(stem)
		name = string(runes[:min(len(runes), max(0, maxCardName-len(tail)))]) + string(tail)
	}
	return name
}

// Why the pages of a document are not shown.
const (
	coverOther     = "other"
	coverEncrypted = "encrypted"
	coverBroken    = "broken"
)

// cardBase returns the document with the pages. release is called when it is not read any more.
func (f *Format) cardBase(ctx context.Context, d sig.Document) (base sig.Document, cover string, release func(), err error) {
	size := d.Size()
	head := make([]byte, min(size, headerReach))
	if n, err := d.ReadAt(head, 0); n < len(head) {
		return nil, "", nil, readFailed(err, 0)
	}
	nothing := func() {}
	if LooksLikePDF(head) {
		return d, "", nothing, nil
	}
	if size > maxPictureFile || !looksLikePicture(head) {
		return noPages(), coverOther, nothing, nil
	}
	_, b := budget.Of(ctx, size)
	page, ok, err := printedPicture(d, b)
	if err != nil {
		return nil, "", nil, err
	}
	if !ok {
		return noPages(), coverOther, nothing, nil
	}
	held := 2 * page.Size() // the page, and the document with it
	if err := b.Hold(held); err != nil {
		return nil, "", nil, err
	}
	base, err = pagesOf(page)
	return base, "", func() { b.Release(held) }, err
}

// printedPicture returns a page with a picture, false for what is none.
func printedPicture(d sig.Document, b *budget.Budget) (stamp.Printed, bool, error) {
	size := d.Size()
	held := 2 * size // the file, and a copy of it without metadata
	if err := b.Hold(held); err != nil {
		return stamp.Printed{}, false, err
	}
	defer b.Release(held)
	image := make([]byte, size)
	if n, err := d.ReadAt(image, 0); n < len(image) {
		return stamp.Printed{}, false, readFailed(err, 0)
	}
	return stamp.PrintImage(image, b)
}

func looksLikePicture(head []byte) bool {
	for _, magic := range []string{"\x89PNG\r\n\x1a\n", "\xff\xd8\xff", "GIF8"} {
		if bytes.HasPrefix(head, []byte(magic)) {
			return true
		}
	}
	return false
}

// noPages returns a document without pages, for a card that has only a sheet of signatures.
func noPages() sig.Document {
	d, err := pagesOf()
	if err != nil {
		panic(err) // nothing in it is from outside
	}
	return d
}

// pagesOf returns a document with printed pages.
func pagesOf(pages ...stamp.Printed) (sig.Document, error) {
	u := &update{prev: -1, holeAt: -1, next: 1, placed: map[int]place{}}
	var size int64
	for _, p := range pages {
		size += p.Size()
	}
	u.buf = append(slices.Grow(u.buf, int(size)+4096), "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"...)
	m := &maker{update: u}
	root, tree := u.reserve(), u.reserve()
	kids := array{}
	for _, p := range pages {
		id, err := m.putPrinted(p, tree)
		if err != nil {
			return nil, err
		}
		kids = append(kids, id)
	}
	u.put(tree, dict{{"Type", name("Pages")}, {"Kids", kids}, {"Count", intObject(int64(len(kids)))}})
	u.put(root, dict{{"Type", name("Catalog")}, {"Pages", tree}})
	u.trailer = dict{{"Root", root}}
	u.close()
	return bytes.NewReader(u.buf), nil
}

// putPrinted writes a printed page below a node of the page tree.
func (m *maker) putPrinted(p stamp.Printed, parent ref) (ref, error) {
	var forms dict
	var content bytes.Buffer
	for i, f := range p.Forms {
		id, err := m.putObjects(f.Objects)
		if err != nil {
			return ref{}, err
		}
		key := name("F" + strconv.Itoa(i))
		forms = append(forms, entry{key, id})
		fmt.Fprintf(&content, "q 1 0 0 1 %s %s cm /%s Do Q\n", decimal(f.X), decimal(f.Y), key)
	}
	box := rectObject(stamp.PrintedBox)
	// A page inherits what it does not have.
	return m.update.add(dict{{"Type", name("Page")}, {"Parent", parent}, {"MediaBox", box}, {"CropBox", box}, {"Rotate", number("0")},
		{"Resources", dict{{"XObject", forms}}}, {"Contents", m.update.add(&stream{fresh: content.Bytes()})}}), nil
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// make writes the card.
func (m *cardMaker) make(base sig.Document) (sig.Result, error) {
	f, err := open(m.ctx, base, base.Size(), nil)
	m.file = f
	if err != nil {
		return nil, err
	}
	if f.crypt != nil {
		return nil, errLocked
	}
	out, err := m.compose(base)
	if f.damaged == nil || f.rebuilt || f.failed() != nil {
		return out, err
	}
	if m.file, err = f.rebuild(nil, f.damaged); err != nil {
		return nil, err
	}
	return m.compose(base)
}

func (m *cardMaker) compose(base sig.Document) (sig.Result, error) {
	f := m.file
	m.parts, m.marks, m.pageNumbers, m.written, m.stilled = nil, nil, map[int]int{}, map[int]bool{}, map[int]bool{}
	if f.rebuilt {
		if err := m.lost(); err != nil {
			return nil, err
		}
	}
	var err error
	if m.update, err = f.newUpdate(); err != nil {
		return nil, err
	}
	if f.newLine() {
		m.update.buf = append(m.update.buf, '\n')
	}
	m.parts = append(m.parts, sig.Section(base, 0, base.Size()))
	if err := m.findPlaces(); err != nil {
		return nil, err
	}
	rootID, root := f.catalog()
	root = m.still(root)
	if err := m.putPages(); err != nil {
		return nil, err
	}
	pages, err := m.putSheet()
	if err != nil {
		return nil, err
	}
	if rootID.num == 0 {
		rootID = m.update.reserve()
		m.update.trailer = m.update.trailer.with("Root", rootID)
	}
	sealed := m.attach(&root)
	m.update.put(rootID, root)
	if f.rebuilt {
		m.keepAll()
	}
	m.update.trailer = m.update.trailer.with("ID", m.cardIdentifiers())
	m.update.close()
	out, err := m.seal(sealed)
	if err != nil {
		return nil, err
	}
	return out, m.readCard(out, pages)
}

// findPlaces finds the places of the marks. Those that have none are drawn on the sheet.
func (m *cardMaker) findPlaces() error {
	f := m.file
	shown, err := m.shownInside()
	if err != nil {
		return err
	}
	m.pagesBefore = 0
	if err := f.pages(func(_ int, p *page) { m.pageNumbers[p.id.num]++; m.pagesBefore++ }); err != nil {
		return err
	}
	found := newSearcher(f)
	taken := map[int][][4]float64{}
	for i := range m.card.Signers {
		s := &m.card.Signers[i]
		mark := cardMark{page: -1}
		if s.File < 0 && s.Index < len(shown) && shown[s.Index] >= 0 {
			m.marks = append(m.marks, cardMark{page: shown[s.Index]})
			continue
		}
		request := m.markRequest(s)
		request.Appearance, request.Pages, request.Spending = []byte(`{"Place":"auto"}`), m.pagesBefore, f.spending
		found.pages = maxSearched
		request.Ink = func(n int, word string, g *stamp.Ground) (bool, error) {
			p, err := f.page(n)
			if err != nil {
				return false, err
			}
			if p.id.num == 0 || m.pageNumbers[p.id.num] > 1 { // a mark would be on other pages, too
				g.Fill()
				return true, nil
			}
			more, err := found.ink(p, word, g)
			m.nested[n] = nesting{found.open, found.excess}
			return more, err
		}
		drawn, err := stamp.Render(request, func(n int) (stamp.Page, error) {
			p, err := f.page(n)
			if err != nil {
				return stamp.Page{}, err
			}
			p.stamp.Taken = taken[n]
			return p.stamp, nil
		})
		switch {
		case errors.As(err, new(*stamp.ParamError)): // there is no free place
		case err != nil:
			return err
		default:
			mark = cardMark{drawn, drawn.Page}
			taken[drawn.Page] = append(taken[drawn.Page], drawn.Rect)
		}
		m.marks = append(m.marks, mark)
	}
	return nil
}

// markRequest returns the request for the mark of a signer.
func (m *cardMaker) markRequest(s *sig.CardSigner) *stamp.Request {
	return stampOf(&sig.Job{Certificate: s.Certificate, Time: s.Time, Zone: m.card.Zone}, &params{logo: m.format.Logo})
}

// putPages writes the pages that change: with marks, which are drawn after the content in a graphics state of their own, and
// without what runs.
func (m *cardMaker) putPages() error {
	f := m.file
	on := map[int][]*stamp.Appearance{}
	for _, mark := range m.marks {
		if mark.drawn != nil {
			on[mark.page] = append(on[mark.page], mark.drawn)
		}
	}
	var wrong error
	err := f.pages(func(n int, p *page) {
		if wrong != nil || p.id.num != 0 && m.written[p.id.num] {
			return
		}
		m.written[p.id.num] = true
		d, changed := m.stillPage(p.dict)
		if on[n] != nil {
			d, wrong = m.withMarks(p, d, on[n], m.nested[n])
			changed = true
		}
		switch {
		case wrong != nil || !changed:
		case p.id.num == 0:
			wrong = errors.New("a page that has actions is not an indirect object")
		default:
			m.replace(p.id, d)
		}
	})
	if err == nil {
		err = wrong
	}
	return err
}

// withMarks returns a page with marks.
func (m *cardMaker) withMarks(p *page, d dict, marks []*stamp.Appearance, around nesting) (dict, error) {
	f := m.file
	resources := f.resolveDict(f.inheritedEntry(p, "Resources"))
	forms := f.resolveDict(resources.get("XObject"))
	before := strings.Repeat("q\n", around.excess+1)
	after := strings.Repeat("\nQ", around.open+1) + "\n"
	for i, drawn := range marks {
		id, err := m.putObjects(drawn.Objects)
		if err != nil {
			return nil, err
		}
		key := name(fmt.Sprintf("TMGA_Mark%d", i))
		for n := len(marks); forms.get(key) != nil; n++ { // the page draws something else by this name
			key = name(fmt.Sprintf("TMGA_Mark%d", n))
		}
		forms = forms.with(key, id)
		scale := decimal(drawn.Scale)
		after += fmt.Sprintf("q %s 0 0 %s %s %s cm /%s Do Q\n", scale, scale, decimal(drawn.Rect[0]), decimal(drawn.Rect[1]), key)
	}
	content := array{m.update.add(&stream{fresh: []byte(before)})}
	switch old := d.get("Contents").(type) {
	case ref:
		if list, ok := f.resolve(old).(array); ok {
			content = append(content, list...)
		} else if f.resolve(old) != nil {
			content = append(content, old)
		}
	case array:
		content = append(content, old...)
	}
	content = append(content, m.update.add(&stream{fresh: []byte(after)}))
	return d.with("Resources", resources.with("XObject", forms)).with("Contents", content), nil
}

// putSheet adds the pages of the sheet of signatures after the others. It returns how many pages the card has.
func (m *cardMaker) putSheet() (int, error) {
	f := m.file
	_, root := f.catalog()
	above, ok := root.get("Pages").(ref)
	if !ok {
		return 0, errors.New("the page tree is not an indirect object")
	}
	above = f.current(above)
	printed, err := stamp.Print(m.sheet(), m.foot, f.spending)
	if err != nil {
		return 0, err
	}
	node, _ := m.bare(f.resolveDict(above))
	kids := slices.Clone(f.resolveArray(node.get("Kids")))
	for _, p := range printed {
		id, err := m.putPrinted(p, above)
		if err != nil {
			return 0, err
		}
		kids = append(kids, id)
	}
	count := m.pagesBefore + len(printed)
	m.update.put(above, node.with("Kids", kids).with("Count", intObject(int64(count))))
	return count, nil
}

// attach writes the files and their description. It returns the reference of the description.
func (m *cardMaker) attach(root *dict) ref {
	u := m.update
	type named struct {
		key  string
		spec ref
	}
	var tree []named
	var associated, listed array
	made := dateString(m.card.Made)
	for i, e := range m.files {
		kind, relation := name("application/octet-stream"), name("Supplement")
		if i == 0 {
			relation = "Source"
			if strings.EqualFold(path.Ext(e.Name), ".pdf") {
				kind = "application/pdf"
			}
		}
		size := e.Document.Size()
		content, label := u.reserve(), textString(e.Name)
		u.begin(content)
		u.buf = appendObject(u.buf, dict{{"Type", name("EmbeddedFile")}, {"Subtype", kind},
			{"Params", dict{{"Size", intObject(size)}, {"ModDate", made}}}, {"Length", intObject(size)}}, nil)
		u.buf = append(u.buf, "\nstream\n"...)
		m.flush()
		m.parts = append(m.parts, sig.Section(e.Document, 0, size))
		u.base += size
		u.buf = append(u.buf, "\nendstream"...)
		u.end()
		spec := u.add(dict{{"Type", name("Filespec")}, {"F", label}, {"UF", label}, {"AFRelationship", relation},
			{"EF", dict{{"F", content}, {"UF", content}}}})
		tree = append(tree, named{string(label), spec})
		associated = append(associated, spec)
		listed = append(listed, dict{{"Name", label}, {"Relation", relation}, {"Size", intObject(size)}, {"Digest", text(hex.EncodeToString(e.sum))}})
	}
	slices.SortFunc(tree, func(a, b named) int { return strings.Compare(a.key, b.key) })
	var leaves array
	for _, n := range tree {
		leaves = append(leaves, text(n.key), n.spec)
	}
	sealed := u.reserve()
	d := dict{{"Type", name(keyCard)}, {"Version", number("1")}, {"Length", number(strings.Repeat("0", lengthDigits))}, {"Seal", text(strings.Repeat("0", sealDigits))},
		{"Made", made}, {"Files", listed}}
	if r := m.card.Report; r.Number != "" || r.Address != "" {
		d = append(d, entry{"Number", textString(r.Number)}, entry{"Address", textString(r.Address)})
	}
	u.put(sealed, d)
	names := m.file.resolveDict(root.get("Names")).with("EmbeddedFiles", dict{{"Names", leaves}})
	*root = root.with("Names", names).with("AF", associated).with(keyCard, sealed)
	if m.file.effectiveVersion() < "1.7" {
		*root = root.with("Version", name("1.7"))
	}
	return sealed
}

// flush ends a part of new bytes.
func (m *cardMaker) flush() {
	u := m.update
	m.parts = append(m.parts, sig.Bytes(u.buf))
	u.base += int64(len(u.buf))
	u.buf = nil
}

// cardIdentifiers returns the identifiers of the trailer: the card is another document than the one it was made of.
func (m *cardMaker) cardIdentifiers() array {
	h := sha256.New()
	fmt.Fprint(h, m.card.Made.UnixNano(), m.update.base, ";")
	for _, e := range m.files {
		h.Write(e.sum)
	}
	id := text(h.Sum(nil)[:16])
	return array{id, id}
}

// seal writes the length of the card and its digest into the description. The digest is over the card with zeros in
// place of the digest.
func (m *cardMaker) seal(sealed ref) (*sig.Assembly, error) {
	u := m.update
	at := u.placed[sealed.num].at + u.bias - u.base // in buf, which was begun after the last file
	if at < 0 || at > int64(len(u.buf)) {
		return nil, errors.New("pdf: the description of the card is not in its last part")
	}
	begin := u.buf[at:]
	length, digest := bytes.Index(begin, []byte("/Length ")), bytes.Index(begin, []byte("/Seal ("))
	if length < 0 || digest < 0 {
		return nil, errors.New("pdf: the description of the card has no seal")
	}
	copy(begin[length+len("/Length "):], fmt.Sprintf("%0*d", lengthDigits, u.base+int64(len(u.buf))))
	m.parts = append(m.parts, sig.Bytes(u.buf))
	out := sig.Parts(m.parts...)
	h := suite.Streebog256.New()
	if err := sig.HashSection(m.ctx, h, out, 0, out.Size()); err != nil {
		return nil, err
	}
	copy(begin[digest+len("/Seal ("):], hex.EncodeToString(h.Sum(nil)))
	return out, nil
}

// readCard reads the card as other programs do.
func (m *cardMaker) readCard(card sig.Document, pages int) error {
	f, err := open(m.ctx, card, card.Size(), nil)
	if err != nil {
		return err
	}
	defer f.close()
	if f.rebuilt {
		return errors.New("pdf: the cross-references of the card are broken")
	}
	count := 0
	if err := f.pages(func(int, *page) { count++ }); err != nil {
		return err
	}
	if count != pages {
		return fmt.Errorf("pdf: the card has %d pages; want %d", count, pages)
	}
	_, root := f.catalog()
	if f.resolveDict(root.get(keyCard)) == nil {
		return errors.New("pdf: the card has no description")
	}
	return f.failed()
}
