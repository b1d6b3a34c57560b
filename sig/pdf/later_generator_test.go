// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/sig"
)

// This generator makes revisions of signed documents that other programs read in different
// ways: it writes what no writer would.

// tape are the choices of one document.
type tape []byte

// pick takes a choice below n. An empty tape chooses 0.
func (t *tape) pick(n int) int {
	if len(*t) == 0 {
		return 0
	}
	c := int((*t)[0])
	*t = (*t)[1:]
	return c % n
}

func pickOf[T any](t *tape, list ...T) T { return list[t.pick(len(list))] }

// revisionPlan is a revision to be written. Its parts need not fit together.
type revisionPlan struct {
	base    *revisionBase
	bodies  []*plannedBody
	entries []plannedEntry // besides those of the bodies
	style   int            // of the section, see below
	trailer []string       // entries; %size is the size
	next    int            // the next free number

	before, after string // bytes before the first object and after the end
	packed        struct {
		untyped   bool
		more      int // added to N
		displaced int // added to First
	}
	comment  string // after the keyword xref
	open     bool   // the trailer is not closed
	startref string // %d is the offset
	end      string
	length   int64 // the file is brought to this length, if it is not longer

	made []string // names of the constructs
}

// Styles of sections.
const (
	styleTable = iota
	styleStream
	styleHybrid // a table with XRefStm
)

// plannedBody is the text of one object.
type plannedBody struct {
	num, gen int
	text     string // between "obj" and "endobj"
	packed   bool   // in an object stream
	entries  []plannedEntry
	after    string // bytes behind it

	at    int64
	index int
}

// plannedEntry is one entry of the cross-references.
type plannedEntry struct {
	num, gen int
	kind     int          // 0, 1 or 3; objects in streams have 2
	body     *plannedBody // where it leads, or at
	at       int64
	index    int  // added to the index in an object stream
	hidden   bool // in XRefStm, if there is one
}

// body returns the object with a number. The first time it is as the signed revision has it.
func (p *revisionPlan) body(num int) *plannedBody {
	for _, b := range p.bodies {
		if b.num == num && len(b.entries) > 0 {
			return b
		}
	}
	return p.add(num, p.base.text[num])
}

func (p *revisionPlan) add(num int, text string) *plannedBody {
	b := &plannedBody{num: num, text: text}
	b.entries = []plannedEntry{{num: num, kind: 1, body: b}}
	p.bodies = append(p.bodies, b)
	p.next = max(p.next, num+1)
	return b
}

// unlisted adds a body without an entry.
func (p *revisionPlan) unlisted(num int, text string) *plannedBody {
	b := p.add(num, text)
	b.entries = nil
	return b
}

// write returns the document with the revision.
func (p *revisionPlan) write() []byte {
	out := []byte(string(p.base.data) + p.before)
	var packed []*plannedBody
	for _, b := range p.bodies {
		if b.packed {
			packed = append(packed, b)
			continue
		}
		b.at = int64(len(out))
		out = fmt.Appendf(out, "%d %d obj\n%s\nendobj\n%s", b.num, b.gen, b.text, b.after)
	}
	entries := slices.Clone(p.entries)
	for _, b := range p.bodies {
		entries = append(entries, b.entries...)
	}
	next := p.next
	if len(packed) > 0 {
		var pairs, texts string
		for i, b := range packed {
			b.at, b.index = int64(next), i
			pairs += fmt.Sprintf("%d %d ", b.num, len(texts))
			texts += b.text + "\n"
		}
		kind := "/Type /ObjStm "
		if p.packed.untyped {
			kind = ""
		}
		entries = append(entries, plannedEntry{num: next, kind: 1, at: int64(len(out))})
		out = fmt.Appendf(out, "%d 0 obj\n<<%s/N %d /First %d /Length %d>>\nstream\n%s%s\nendstream\nendobj\n",
			next, kind, len(packed)+p.packed.more, len(pairs)+p.packed.displaced, len(pairs)+len(texts), pairs, texts)
		next++
	}
	own := next
	style := p.style
	if style != styleTable {
		next++
	}
	trailer := strings.ReplaceAll(strings.Join(p.trailer, " "), "%size", fmt.Sprint(next))
	start := int64(len(out))
	if style == styleStream {
		out = append(out, p.crossStream(own, append(entries, plannedEntry{num: own, kind: 1, at: start}), trailer)...)
	} else {
		var lines []plannedEntry
		var hidden []plannedEntry
		for _, e := range entries {
			if e.hidden && style == styleHybrid || e.body != nil && e.body.packed {
				hidden = append(hidden, e)
			} else {
				lines = append(lines, e)
			}
		}
		if style == styleHybrid {
			at := int64(len(out))
			out = append(out, p.crossStream(own, append(hidden, plannedEntry{num: own, kind: 1, at: at}), trailer)...)
			trailer += fmt.Sprintf(" /XRefStm %d", at)
		}
		start = int64(len(out))
		out = append(out, "xref\n"+p.comment...)
		for _, e := range lines {
			kind := 'n'
			if e.kind == 0 {
				kind = 'f'
			}
			out = fmt.Appendf(out, "%d 1\n%010d %05d %c \n", e.num, e.offset(), e.gen, kind)
		}
		out = append(out, "trailer\n<<"+trailer...)
		if !p.open {
			out = append(out, ">>"...)
		}
		out = append(out, '\n')
	}
	out = append(out, strings.ReplaceAll(p.startref, "%d", fmt.Sprint(start))+p.end+p.after...)
	if missing := p.length - int64(len(out)); missing > 1 {
		out = append(out, "%"+strings.Repeat("x", int(missing)-2)+"\n"...)
	}
	return out
}

func (e *plannedEntry) offset() int64 {
	if e.body != nil {
		return e.body.at
	}
	return e.at
}

func (p *revisionPlan) crossStream(own int, entries []plannedEntry, trailer string) []byte {
	var data []byte
	var index []string
	for _, e := range entries {
		kind, at, third := e.kind, e.offset(), e.gen
		if e.body != nil && e.body.packed && kind == 1 {
			kind, third = 2, e.body.index+e.index
		}
		index = append(index, fmt.Sprintf("%d 1", e.num))
		data = append(data, byte(kind), byte(at>>24), byte(at>>16), byte(at>>8), byte(at), byte(third>>8), byte(third))
	}
	return fmt.Appendf(nil, "%d 0 obj\n<</Type /XRef /W [1 4 2] /Index [%s] /Length %d %s>>\nstream\n%s\nendstream\nendobj\n",
		own, strings.Join(index, " "), len(data), trailer, data)
}

// revisionBase is a signed document.
type revisionBase struct {
	name   string
	data   []byte
	text   map[int]string // the signed objects
	prev   int64          // the last section
	older  int64          // a section before, 0 if there is none
	size   int
	length int64 // that the linearization dictionary names
	stream bool
}

// Objects of the documents: the page with its font, contents and annotations, a form, and
// what a revision can lead to in their place.
const (
	objCatalog = iota + 1
	objPages
	objFont
	objPage
	objContents
	objForm
	objField
	objResources
	objOtherCatalog
	objLength
	objFieldLook
	objSquare
	objCover
	objOtherContents
	objSquareLook
	objCoverLook
	objInfo
	objOtherPage
	objOtherPages
	objEnd
)

const (
	signedContents = "BT /F1 24 Tf 10 110 Td (No 17) Tj ET 8 8 30 30 re f "
	otherContents  = "BT /F1 24 Tf 10 110 Td (EVIL 99) Tj ET 8 8 60 9 re f"
	draftContents  = "BT /F1 24 Tf 10 110 Td (Draft) Tj ET 80 8 30 30 re f"
)

func streamOf(entries, data string) string {
	return fmt.Sprintf("<<%s/Length %d>>\nstream\n%s\nendstream", entries, len(data), data)
}

// contentsOf is the stream of page contents, whose Length is an object.
func contentsOf(entries, data string) string {
	return fmt.Sprintf("<<%s/Length %d 0 R>>\nstream\n%s\nendstream", entries, objLength, data)
}

func lookOf(box, data string) string {
	return streamOf("/Type /XObject /Subtype /Form /BBox "+box+" /Resources 8 0 R ", data)
}

// revisionObjects are the objects of a document in one role.
func revisionObjects(role string) map[int]string {
	objects := map[int]string{
		objCatalog:       "<</Type /Catalog /Pages 2 0 R /AcroForm 6 0 R>>",
		objPages:         "<</Type /Pages /Kids [4 0 R] /Count 1>>",
		objFont:          "<</Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding <</Type /Encoding /Differences [49 /one 55 /seven]>>>>",
		objPage:          "<</Type /Page /Parent 2 0 R /MediaBox [0 0 144 144] /Contents 5 0 R /Resources 8 0 R /Annots [12 0 R 13 0 R 7 0 R]>>",
		objContents:      contentsOf("", signedContents),
		objForm:          "<</Fields [7 0 R] /DA (/F1 12 Tf 0 g) /DR <</Font <</F1 3 0 R>>>>>>",
		objField:         "<</Type /Annot /Subtype /Widget /FT /Tx /T (amount) /V (99) /DA (/F1 12 Tf 0 g) /Rect [10 70 70 90] /F 4 /P 4 0 R /AP <</N 11 0 R>>>>",
		objResources:     "<</Font <</F1 3 0 R>>>>",
		objOtherCatalog:  "<</Type /Catalog /Pages 19 0 R>>",
		objLength:        fmt.Sprint(len(signedContents)),
		objFieldLook:     lookOf("[0 0 60 20]", "BT /F1 18 Tf 2 3 Td (17) Tj ET"),
		objSquare:        "<</Type /Annot /Subtype /Square /Rect [80 60 110 100] /F 4 /AP <</N 15 0 R>>>>",
		objCover:         "<</Type /Annot /Subtype /Square /Rect [90 50 140 90] /F 4 /AP <</N 16 0 R>>>>",
		objOtherContents: streamOf("", otherContents),
		objSquareLook:    lookOf("[0 0 30 40]", "0 0 30 40 re f"),
		objCoverLook:     lookOf("[0 0 50 40]", "0.6 g 0 0 50 40 re f"),
		objInfo:          "<</Title (Contract)>>",
		objOtherPage:     "<</Type /Page /Parent 19 0 R /MediaBox [0 0 144 144] /Contents 14 0 R /Resources 8 0 R>>",
		objOtherPages:    "<</Type /Pages /Kids [18 0 R] /Count 1>>",
	}
	catalog := func(more string) { objects[objCatalog] = strings.Replace(objects[objCatalog], ">>", more+">>", 1) }
	switch role {
	case "store":
		catalog(" /DSS <</Type /DSS /Certs [5 0 R]>>")
	case "metadata":
		catalog(" /Metadata 5 0 R")
	case "information":
		objects[objInfo] = "<</Title (Contract) /Part 5 0 R>>"
	case "section":
		objects[objContents] = contentsOf("/Type /XRef ", signedContents)
	case "resources":
		objects[objForm] = "<</Fields [7 0 R] /DA (/F1 12 Tf 0 g) /DR 8 0 R>>"
		objects[objContents] = contentsOf("", strings.Replace(signedContents, "ET", "/F2 24 Tf (x) Tj ET", 1))
		objects[objLength] = fmt.Sprint(len(signedContents) + len("/F2 24 Tf (x) Tj "))
	}
	return objects
}

// revisionBaseNames are the documents, by structure and by role.
var revisionBaseNames = []string{
	"table", "stream", "hybrid", "history", "stream history", "linearized",
	"role store", "role metadata", "role information", "role section", "role resources",
}

// revisionBases are the documents made so far, by index.
var revisionBases struct {
	sync.Mutex
	made map[int]*revisionBase
	root *sigtest.Party
}

// revisionBaseOf returns a signed document. It is the same in every run.
func revisionBaseOf(t testing.TB, index int) *revisionBase {
	t.Helper()
	revisionBases.Lock()
	defer revisionBases.Unlock()
	if b := revisionBases.made[index]; b != nil {
		return b
	}
	if revisionBases.root == nil {
		revisionBases.root, revisionBases.made = sigtest.Root(t, suite.GOST2012x256), map[int]*revisionBase{}
	}
	// A second signer of the root would get another number and another key.
	root := sigtest.Root(t, suite.GOST2012x256)
	b := &revisionBase{name: revisionBaseNames[index]}
	role, _ := strings.CutPrefix(b.name, "role ")
	plain := b.plain(revisionObjects(role))
	signed, err := sigtest.Try(t, New(), root.Signer(t, suite.GOST2012x256, "Signer"), &sig.Job{Document: bytes.NewReader(plain), Params: sig.Params{"PDFFormat": "CMS"}})
	if err != nil {
		t.Fatalf("%s: %v", b.name, err)
	}
	f, err := open(context.Background(), bytes.NewReader(signed), int64(len(signed)), nil)
	if err != nil || f.rebuilt {
		t.Fatalf("%s: %v", b.name, err)
	}
	defer f.close()
	b.data, b.prev, b.stream, b.size, b.text = signed, f.sections[0].at, f.sections[0].stream, f.highest()+1, map[int]string{}
	for n := 1; n < objEnd; n++ {
		if s, ok := f.object(ref{num: n}).(*stream); ok {
			data, err := f.rawData(s)
			if err != nil {
				t.Fatalf("%s: object %d: %v", b.name, n, err)
			}
			b.text[n] = fmt.Sprintf("%s\nstream\n%s\nendstream", appendObject(nil, s.dict, nil), data)
		} else {
			b.text[n] = string(appendObject(nil, f.object(ref{num: n}), nil))
		}
	}
	revisionBases.made[index] = b
	return b
}

// plain writes the document before it is signed.
func (b *revisionBase) plain(objects map[int]string) []byte {
	empty := &revisionBase{data: []byte("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")}
	revise := func(on []byte, style int, prev int64, objects map[int]string) (data []byte, at int64) {
		p := &revisionPlan{base: &revisionBase{data: on}, style: style, next: objEnd, startref: "startxref\n%d\n", end: "%%EOF\n",
			trailer: []string{"/Size %size", "/Root 1 0 R", "/Info 17 0 R", "/ID [<00112233445566778899aabbccddeeff><00112233445566778899aabbccddeeff>]"}}
		if prev == 0 {
			p.entries = []plannedEntry{{gen: 65535}}
		} else {
			p.trailer = append(p.trailer, fmt.Sprintf("/Prev %d", prev))
			p.next += 4 // behind the streams of the section before
		}
		for _, n := range slices.Sorted(maps.Keys(objects)) {
			o := p.add(n, objects[n])
			o.packed = !strings.Contains(o.text, "stream") && n != objLength &&
				(style == styleStream || style == styleHybrid && (n == objFont || n == objResources))
		}
		data = p.write()
		fmt.Sscanf(string(data[bytes.LastIndex(data, []byte("startxref\n"))+10:]), "%d", &at)
		return data, at
	}
	style := map[string]int{"stream": styleStream, "stream history": styleStream, "hybrid": styleHybrid}[b.name]
	switch b.name {
	case "history", "stream history":
		final := map[int]string{objContents: objects[objContents]}
		objects[objContents] = contentsOf("", draftContents)
		var data []byte
		data, b.older = revise(empty.data, style, 0, objects)
		data, _ = revise(data, style, b.older, final)
		return data
	case "linearized":
		return b.linearized(empty.data, objects, revise)
	}
	data, _ := revise(empty.data, style, 0, objects)
	return data
}

// linearized writes a document with a draft of its page in the first section, which readers
// begin with while the file has the length that its first object names.
func (b *revisionBase) linearized(head []byte, objects map[int]string, revise func([]byte, int, int64, map[int]string) ([]byte, int64)) []byte {
	final := map[int]string{objContents: objects[objContents]}
	objects[objContents] = contentsOf("", draftContents)
	b.length = 30_000
	var data []byte
	offsets := map[int]int{}
	var firstAt, lastAt, endOfPage int
	for range 2 { // the second time with the right offsets
		data = fmt.Appendf(bytes.Clone(head), "%d 0 obj\n<</Linearized 1 /L %05d /H [%05d 00010] /O 4 /E %05d /N 1 /T %05d>>\nendobj\n", objEnd, b.length, firstAt, endOfPage, lastAt)
		offsets[objEnd] = len(head)
		firstAt = len(data)
		data = fmt.Appendf(data, "xref\n1 %d\n", objEnd)
		for n := 1; n <= objEnd; n++ {
			data = fmt.Appendf(data, "%010d 00000 n \n", offsets[n])
		}
		data = fmt.Appendf(data, "trailer\n<</Size %d /Root 1 0 R /Info 17 0 R /Prev %05d /ID [<00112233445566778899aabbccddeeff><00112233445566778899aabbccddeeff>]>>\nstartxref\n0\n%%%%EOF\n", objEnd+1, lastAt)
		for n := 1; n < objEnd; n++ {
			offsets[n] = len(data)
			data = fmt.Appendf(data, "%d 0 obj\n%s\nendobj\n", n, objects[n])
		}
		endOfPage, lastAt = len(data), len(data)
		data = fmt.Appendf(data, "xref\n0 1\n0000000000 65535 f \ntrailer\n<</Size 1>>\nstartxref\n%d\n%%%%EOF\n", firstAt)
	}
	b.older = int64(firstAt)
	data, _ = revise(data, styleTable, int64(firstAt), final)
	return data
}

// another returns an object that shows something else in the place of a signed one.
func (b *revisionBase) another(num int) string {
	text := b.text[num]
	replaced := func(old, new string) string { return strings.Replace(text, old, new, 1) }
	switch num {
	case objCatalog:
		return replaced("/Pages 2 0 R", "/Pages 19 0 R")
	case objPages:
		return replaced("[4 0 R]", "[18 0 R]")
	case objFont:
		return replaced("55 /seven", "55 /nine")
	case objPage:
		return replaced("/Contents 5 0 R", "/Contents 14 0 R")
	case objContents, objOtherContents:
		return replaced("No 17", "No 99")
	case objResources:
		return "<</Font <</F1 <</Type /Font /Subtype /Type1 /BaseFont /Courier>>>>>>"
	case objLength:
		return "20"
	case objSquareLook, objCoverLook, objFieldLook:
		return replaced("endstream", "endstream") + " "
	}
	return replaced("/Rect [80 ", "/Rect [0 ")
}

// shownObjects are the objects that a page shows, the choices for what to change.
var shownObjects = []int{objPage, objContents, objFont, objResources, objCatalog, objPages, objLength, objSquare, objCover, objFieldLook, objForm, objField}

// construct is one thing that a revision does.
type construct struct {
	name string
	base string // a document in which it can show something, the first one if empty
	// kind matches the revision that the first choices make.
	kind string
	make func(p *revisionPlan, t *tape)
}

// keyed puts entries into the dictionary of an object, at its end or at its beginning.
func keyed(text, entries string, atEnd bool) string {
	end := strings.LastIndex(text, ">>")
	if s := strings.Index(text, ">>\nstream\n"); s >= 0 {
		end = s
	}
	begin := strings.Index(text, "<<")
	if begin < 0 || end < begin {
		return text + " " + entries
	}
	if atEnd {
		return text[:end] + " " + entries + text[end:]
	}
	return text[:begin+2] + entries + " " + text[begin+2:]
}

// inDict returns a construct of one text at the end of a dictionary.
func inDict(name string, num int, entries string) construct {
	return construct{name: name, kind: regexp.QuoteMeta(entries), make: func(p *revisionPlan, t *tape) {
		b := p.body(pickOf(t, append([]int{num}, shownObjects...)...))
		b.text = keyed(b.text, entries, t.pick(3) != 1)
	}}
}

// replacing returns a construct that replaces a text of an object.
func replacing(name, base string, num int, old, new string) construct {
	return construct{name: name, base: base, kind: regexp.QuoteMeta(new), make: func(p *revisionPlan, t *tape) {
		b := p.body(num)
		b.text = strings.Replace(b.text, old, new, 1)
	}}
}

// twoBodies adds an object as it was and the same with other content, in either order.
func twoBodies(p *revisionPlan, t *tape) (signed, other *plannedBody) {
	num := pickOf(t, shownObjects...)
	swap := t.pick(2) == 1
	if !swap {
		signed = p.add(num, p.base.text[num])
	}
	other = p.add(num, p.base.another(num))
	if swap {
		signed = p.add(num, p.base.text[num])
	}
	return signed, other
}

// fragments are what is put between the tokens of an object.
var fragments = []string{
	"(", ")", "[", "]", "<<", ">>", "<", ">", "{", "}", "7", "14 0 R", "R", "0 R", "14 0", "xref", "endobj", "obj", "stream", "endstream", "trailer", "null", "true",
	"/K", "/", "%", "%\n", "\x00", "\x80", "5.0 0 R", "4294967310 0 R", "-14 0 R", "+14 0 R", "014 0 R", "14 1 R", "14 65536 R", "--1", "1-1", ".", "1.2.3", "1e3", "startxref", "#",
	"/#00", "/Contents", "/Contents#20", "/Cont#65nts 14 0 R", "/Rotate 180", "<4", "<zz>", "(\\", "(a\\)", "BT", "inf", "9999999999999999999", "\x0c", "\r", "R 5", "5 0 R",
}

// twice are entries that are written a second time.
var twice = []string{
	"/Rotate 180", "/Rotate null", "/Contents 14 0 R", "/Contents null", "/Contents [5 0 R 14 0 R]", "/MediaBox [0 0 72 72]", "/CropBox [0 0 72 72]", "/Annots []", "/Annots null",
	"/Length 5", "/Length 10 0 R", "/Filter /ASCIIHexDecode", "/Filter null", "/Filter []", "/DecodeParms <<>>", "/F (x)", "/Resources <<>>", "/Resources null", "/Type /Pages", "/Type null",
	"/Parent 19 0 R", "/Kids [18 0 R]", "/Pages 19 0 R", "/Kids []", "/BBox [0 0 5 5]", "/BBox (x)", "/Matrix [2 0 0 2 0 0]", "/AP <<>>", "/AS /Off", "/F 2", "/Rect [0 0 9 9]", "/UserUnit 2",
	"/BaseFont /Courier", "/Subtype /Type3", "/NeedAppearances true", "/OC 1 0 R", "/OCProperties <<>>", "/OpenAction [4 0 R /Fit]", "/Count 0", "/Count 2", "/Group <<>>",
}

var constructs = []construct{
	// What is well-formed.
	replacing("font of page and field", "", objFont, "55 /seven", "55 /nine"),
	replacing("order of annotations", "", objPage, "12 0 R 13 0 R", "13 0 R 12 0 R"),
	inDict("NeedAppearances", objForm, "/NeedAppearances true"),
	{name: "linearized length", base: "linearized", kind: `xxx\n$`, make: func(p *revisionPlan, _ *tape) { p.length = p.base.length }},
	replacing("role of the store", "role store", objContents, "No 17", "No 99"),
	replacing("role of metadata", "role metadata", objContents, "No 17", "No 99"),
	replacing("role of information", "role information", objContents, "No 17", "No 99"),
	replacing("role of a section", "role section", objContents, "No 17", "No 99"),
	replacing("role of resources", "role resources", objResources, "/F1", "/F2 3 0 R /F1"),
	replacing("appearance box", "", objFieldLook, "[0 0 60 20]", "(x)"),
	{name: "another object", kind: "No 99|14 0 R", make: func(p *revisionPlan, t *tape) {
		num := pickOf(t, shownObjects...)
		p.body(num).text = p.base.another(num)
	}},
	// Syntax of objects.
	inDict("key null second", objPage, "/Rotate 180 /Rotate null"),
	inDict("string unclosed", objPage, "("),
	inDict("array unclosed", objPage, "["),
	inDict("dictionary opened twice", objPage, "<<"),
	inDict("array end in dictionary", objPage, "]"),
	inDict("greater in dictionary", objPage, "> "),
	replacing("number before key", "", objPage, "/Resources", "7 /Resources"),
	replacing("second reference", "", objPage, "/Contents 5 0 R", "/Contents 5 0 R 14 0 R"),
	inDict("dictionary ended by keyword", objPage, "xref /Contents 14 0 R"),
	replacing("reference real", "", objPage, "/Contents 5 0 R", "/Contents 5.0 0 R"),
	inDict("stream brace", objContents, "{"),
	{name: "fragment", kind: `\(`, make: func(p *revisionPlan, t *tape) {
		b := p.body(pickOf(t, shownObjects...))
		at := 0
		for range 1 + t.pick(64) { // behind the next token
			at++
			for at < len(b.text) && !strings.ContainsAny(b.text[at:at+1], " /[]<>(") {
				at++
			}
			if at >= len(b.text) {
				at = 0
			}
		}
		space := pickOf(t, " ", "")
		b.text = b.text[:at] + space + pickOf(t, fragments...) + space + b.text[at:]
	}},
	{name: "key twice", kind: "/Rotate 180", make: func(p *revisionPlan, t *tape) {
		b := p.body(pickOf(t, shownObjects...))
		entry := pickOf(t, twice...)
		if t.pick(2) == 1 {
			entry += " " + pickOf(t, twice...)
		}
		b.text = keyed(b.text, entry, t.pick(2) == 0)
	}},
	{name: "numbers in other forms", kind: "144.00", make: func(p *revisionPlan, t *tape) {
		b := p.body(objPage)
		b.text = strings.Replace(b.text, "144 144", pickOf(t, "144.00 144.00", "+144 144", "144. 144", "0144 144", "144 14.4e1", "144 --144", "144 144-", "1 44 144"), 1)
	}},
	{name: "bytes behind the object", kind: "endobj\n%", make: func(p *revisionPlan, t *tape) {
		p.body(pickOf(t, shownObjects...)).after = pickOf(t, "% 4 0 obj\n", "endobj\n", "junk\n", "4 0 obj\n", "trailer\n<</Root 9 0 R>>\n", "xref\n0 0\n", "\x00\x00", "startxref\n0\n%%EOF\n")
	}},
	{name: "end of the object", kind: "", make: func(p *revisionPlan, t *tape) {
		b := p.body(pickOf(t, shownObjects...))
		b.text += pickOf(t, "\nendobj\n14 0 R", " endobj", "\nendobj\n<<>>", " 7", "\nobj", "\nendstream", " %")
	}},
	// Streams.
	replacing("length negative", "", objContents, fmt.Sprintf("/Length %d 0 R", objLength), "/Length -45"),
	{name: "length missing, two ends", kind: `<<>>\nstream\n.*\nendstream\nendobj[^\x00]*endstream`, make: func(p *revisionPlan, t *tape) {
		lengthOf := pickOf(t, "", "", "/Length 9", "/Length null", "/Length (9)", "/Length 1000000")
		first, second := signedContents, otherContents
		if t.pick(2) == 1 {
			first, second = second, first
		}
		p.body(objContents).text = "<<" + lengthOf + ">>\nstream\n" + first + "\nendstream\nendobj\n" + second + "\nendstream"
	}},
	{name: "length object with another number", kind: `\n37 3\n`, make: func(p *revisionPlan, t *tape) {
		p.body(objLength).text = pickOf(t, "37 3", "20", "20.0", "(20)", "[20]", "20 0 R", "null", "-1", "20 endobj 52", "<</Length 20>>")
	}},
	replacing("length object and direct", "", objContents, fmt.Sprintf("/Length %d 0 R", objLength), fmt.Sprintf("/Length %d 0 R /Length 20", objLength)),
	inDict("filter twice, null last", objContents, "/Filter /ASCIIHexDecode /Filter null"),
	{name: "stream", kind: `/Length 20`, make: func(p *revisionPlan, t *tape) {
		b := p.body(pickOf(t, objContents, objFieldLook, objSquareLook))
		head, data, _ := strings.Cut(b.text, "\nstream\n")
		data = strings.TrimSuffix(data, "\nendstream")
		head = keyed(head, pickOf(t, "/Length 20", "", "/Filter /FlateDecode", "/Filter [/ASCIIHexDecode]", "/Filter /Crypt", "/Filter /Unknown", "/DL 5", "/FFilter /FlateDecode", "/F (other)", "/Filter /RunLengthDecode", "/Filter []"), t.pick(2) == 0)
		b.text = head + pickOf(t, "\nstream\n", "\nstream\r\n", "\nstream\r", "\nstream \n", "stream\n", "\nstream", "\nstream\n\n", "\n%c\nstream\n") +
			pickOf(t, data, data+" ", data+"\nendstream\n"+data, data[:len(data)/2], "") + pickOf(t, "\nendstream", "endstream", "\nendstream\nendstream", "\nendstrea", "\nendstream 7", "")
	}},
	// Cross-references.
	{name: "generation one", kind: `5 1 obj`, make: func(p *revisionPlan, t *tape) {
		b := p.body(pickOf(t, append([]int{objContents}, shownObjects...)...))
		b.gen = 1
		for i := range b.entries {
			b.entries[i].gen = pickOf(t, 1, 0, 65535)
		}
	}},
	{name: "generations one and zero", kind: `4 1 obj[^\x00]*4 0 obj`, make: func(p *revisionPlan, t *tape) {
		signed, other := twoBodies(p, t)
		other.gen, other.entries[0].gen = 1, 1
		signed.entries = nil
		if t.pick(2) == 0 { // the listed one first
			p.bodies = append(slices.DeleteFunc(p.bodies, func(b *plannedBody) bool { return b == signed }), signed)
		}
	}},
	{name: "entry twice", kind: `xref\n4 1\n.*\n4 1\n`, make: func(p *revisionPlan, t *tape) { twoBodies(p, t) }},
	{name: "entry of type 3", base: "stream", kind: `XRef`, make: func(p *revisionPlan, t *tape) {
		_, other := twoBodies(p, t)
		other.entries[0].kind = pickOf(t, 3, 0, 4, 255)
		if t.pick(2) == 1 {
			p.style = styleStream
		}
	}},
	{name: "hybrid with two places", kind: `/XRefStm`, make: func(p *revisionPlan, t *tape) {
		signed, other := twoBodies(p, t)
		p.style = styleHybrid
		other.entries[0].hidden = true
		if t.pick(2) == 1 {
			signed.entries[0].hidden, other.entries[0].hidden = true, false
		}
	}},
	{name: "hybrid without the place", kind: `/XRefStm`, make: func(p *revisionPlan, t *tape) {
		signed, other := twoBodies(p, t)
		p.style = styleHybrid
		signed.entries[0].hidden = true
		other.entries = nil
	}},
	{name: "index in an object stream", base: "stream", kind: `/ObjStm`, make: func(p *revisionPlan, t *tape) {
		num := pickOf(t, objPage, objFont, objResources, objCatalog)
		signed := p.body(num)
		p.packed.displaced = 0
		other := p.unlisted(p.next, p.base.another(num))
		signed.packed, other.packed = true, true
		signed.entries[0].index = pickOf(t, 1, -1, 5, 0)
		p.style = pickOf(t, styleStream, styleHybrid)
	}},
	{name: "count of an object stream", base: "stream", kind: `/N 3`, make: func(p *revisionPlan, t *tape) {
		p.body(pickOf(t, objPage, objFont, objResources)).packed = true
		p.style, p.packed.more = styleStream, pickOf(t, 2, 1, 100, -1, -2)
	}},
	{name: "object stream without type", base: "stream", kind: `<</N`, make: func(p *revisionPlan, t *tape) {
		p.body(pickOf(t, objPage, objFont, objResources)).packed = true
		p.style, p.packed.untyped, p.packed.displaced = styleStream, true, pickOf(t, 0, 0, 1, -1)
	}},
	{name: "number twice in an object stream", base: "stream", kind: `stream\n4 0 4 `, make: func(p *revisionPlan, t *tape) {
		signed, other := twoBodies(p, t)
		signed.packed, other.packed, other.entries = true, true, nil
		p.style = styleStream
	}},
	{name: "first of an object stream", base: "stream", kind: `/ObjStm`, make: func(p *revisionPlan, t *tape) {
		p.body(pickOf(t, objPage, objFont)).packed = true
		p.style, p.packed.displaced = styleStream, pickOf(t, 1, -1, 3, -8)
	}},
	{name: "in an object stream", base: "stream", kind: `/ObjStm`, make: func(p *revisionPlan, t *tape) {
		num := pickOf(t, objPage, objFont, objResources, objField, objForm, objCatalog, objContents, objLength)
		p.body(num).packed = true
		p.style = pickOf(t, styleStream, styleHybrid)
	}},
	{name: "entry leads to another object", kind: `xref\n[0-9]+ 1\n`, make: func(p *revisionPlan, t *tape) {
		num, to := pickOf(t, objPages, objContents, objPage, objCatalog), pickOf(t, objOtherPages, objOtherContents, objOtherPage, objOtherCatalog)
		at := int64(bytes.Index(p.base.data, fmt.Appendf(nil, "\n%d 0 obj", to)) + 1)
		p.entries = append(p.entries, plannedEntry{num: num, kind: 1, at: at + int64(pickOf(t, 0, 1, -1))})
	}},
	{name: "entry free", kind: `00000 f `, make: func(p *revisionPlan, t *tape) {
		p.entries = append(p.entries, plannedEntry{num: pickOf(t, shownObjects...), gen: pickOf(t, 0, 1, 65535)})
	}},
	{name: "entry beyond the end and a second body", kind: `0999999999`, make: func(p *revisionPlan, t *tape) {
		_, other := twoBodies(p, t)
		other.entries = nil
		p.entries = append(p.entries, plannedEntry{num: p.next, kind: 1, at: pickOf[int64](t, 999_999_999, 0, 1)})
		p.next++
	}},
	{name: "trailer unclosed and a second body", kind: `%size|/Prev \d+\nstartxref`, make: func(p *revisionPlan, t *tape) {
		_, other := twoBodies(p, t)
		other.entries = nil
		p.open, p.style = true, styleTable
	}},
	{name: "comment in a subsection and a second body", kind: `xref\n%`, make: func(p *revisionPlan, t *tape) {
		_, other := twoBodies(p, t)
		other.entries = nil
		p.style, p.comment = styleTable, pickOf(t, "% comment\n", "0 0\n", "\n", " ", "\x00", "% 4 1\n", "4 0\n", "-1 1\n0000000000 65535 f \n", "4 1 \n", "abc\n")
	}},
	{name: "second body unlisted", kind: `4 0 obj[^\x00]*4 0 obj`, make: func(p *revisionPlan, t *tape) {
		_, other := twoBodies(p, t)
		other.entries = nil
	}},
	{name: "body unlisted", kind: `14 0 R`, make: func(p *revisionPlan, t *tape) {
		num := pickOf(t, shownObjects...)
		p.unlisted(num, p.base.another(num))
	}},
	// Trailer and end.
	{name: "root null first", kind: `/Root 9 0 R /Root null /Root 1 0 R`, make: func(p *revisionPlan, t *tape) {
		p.setTrailer("/Root", pickOf(t, "/Root 9 0 R /Root null /Root 1 0 R", "/Root 1 0 R /Root 9 0 R", "/Root 9 0 R /Root 1 0 R", "/Root 1 0 R /Root null", "/Root null /Root 1 0 R", "/Root 9 0 R"))
	}},
	{name: "root null", kind: `/Root null`, make: func(p *revisionPlan, t *tape) {
		p.setTrailer("/Root", pickOf(t, "/Root null", "", "/Root <</Type /Catalog /Pages 19 0 R>>", "/Root 1 1 R", "/Root 4294967305 0 R", "/Root 1.0 0 R", "/Root [1 0 R]", "/Root 99 0 R"))
	}},
	{name: "Prev twice, to an older section", base: "history", kind: `/Prev \d+ /Prev \d+`, make: func(p *revisionPlan, t *tape) {
		prev, older := fmt.Sprintf("/Prev %d", p.base.prev), fmt.Sprintf("/Prev %d", p.base.older)
		p.setTrailer("/Prev", pickOf(t, older+" "+prev, prev+" "+older, older, "", "/Prev 0", "/Prev -1", prev+".0", prev+" 0 R", "/Prev null", older+" /Prev null "+prev, "/Prev 99999999"))
	}},
	{name: "XRefStm to an older section", base: "history", kind: `/XRefStm \d+`, make: func(p *revisionPlan, t *tape) {
		at := pickOf(t, p.base.older, p.base.prev, 0, 1, 99_999_999)
		p.trailer = append(p.trailer, fmt.Sprintf("/XRefStm %d", at))
	}},
	{name: "Size", kind: `/Size 5`, make: func(p *revisionPlan, t *tape) {
		p.setTrailer("/Size", pickOf(t, "/Size 5", "", "/Size 0", "/Size -1", "/Size 8388608", "/Size 4 /Size %size", "/Size %size.0", "/Size null", "/Size 14 0 R"))
	}},
	{name: "entries of the trailer", kind: `/Encrypt`, make: func(p *revisionPlan, t *tape) {
		p.trailer = append(p.trailer, pickOf(t, "/Encrypt <</Filter /Standard /V 1 /R 2 /P -4 /O (0123456789abcdef0123456789abcdef) /U (0123456789abcdef0123456789abcdef)>>",
			"/Encrypt null", "/Encrypt 99 0 R", "/Info 17 0 R", "/Info null", "/ID []", "/ID [(a)(b)]", "/Type /XRef", "/Length 5", "/Unknown 7", "/W [1 2 3]", "/Filter /ASCIIHexDecode", "/Index [0 1]"))
	}},
	{name: "startxref, a comment, the number", kind: `startxref\n%`, make: func(p *revisionPlan, t *tape) {
		prev := p.otherSection(t)
		p.startref = pickOf(t, fmt.Sprintf("startxref\n%%%d\n%%d\n", prev), fmt.Sprintf("startxref %%%d\n%%d\n", prev), fmt.Sprintf("startxref\n%%d\n%%%d\n", prev))
	}},
	{name: "startxref in a word", kind: `xstartxref`, make: func(p *revisionPlan, t *tape) {
		p.startref = pickOf(t, "xstartxref\n%d\n", "startxrefx\n%d\n", "startxref%d\n", "/startxref\n%d\n", "(startxref\n%d)\n", "startxref\n\n%d\n", "startxref\n%d.0\n", "startxref\n+%d\n", "startxref\n%d 0\n", "startxref\n0%d\n", "STARTXREF\n%d\n", "")
	}},
	{name: "startxref far from the end", kind: `x{1000}`, make: func(p *revisionPlan, t *tape) {
		p.after += pickOf(t, "%", "", "\n") + strings.Repeat(pickOf(t, "x", "\n", " ", "\x00"), pickOf(t, 2100, 1100, 900, 4200, 300)) + pickOf(t, "\n", "")
	}},
	{name: "startxref twice", kind: `startxref[^\x00]*startxref`, make: func(p *revisionPlan, t *tape) {
		first, second := fmt.Sprintf("startxref\n%d\n", p.otherSection(t)), "startxref\n%d\n"
		if t.pick(2) == 1 {
			first, second = second, first
		}
		p.startref = first + pickOf(t, "%%%%EOF\n", "", "%%") + second
	}},
	{name: "startxref to another section", kind: `startxref\n\d+\n`, make: func(p *revisionPlan, t *tape) {
		p.startref = fmt.Sprintf("startxref\n%d\n", p.otherSection(t))
	}},
	{name: "end", kind: `startxref\n\d+\n%%EO\n`, make: func(p *revisionPlan, t *tape) {
		p.end = pickOf(t, "%%EO\n", "", "%%EOF", "%%EOFx\n", "%EOF\n", " %%EOF\n", "%%EOF\n\n\n", "%%EOF\r\n", "%%EOF\n\x00\x00\x00", "%%EOF\n%%EOF\n", "%%EOF\njunk\n", "%%EOF \n \n", "%%EOF\n%c\n")
	}},
	{name: "between the revisions", kind: "", make: func(p *revisionPlan, t *tape) {
		p.before = pickOf(t, "", "\n\n", "%c\n", "junk\n", "4 0 obj\n"+p.base.another(objPage)+"\nendobj\n", "endobj\n", "%%EOF\n", "startxref\n0\n%%EOF\n", "<<", "(", "\x00", "%PDF-1.7\n", "trailer\n<</Root 9 0 R>>\n", "stream\n") + p.before
	}},
	{name: "object behind the end", kind: `EOF\n4 0 obj`, make: func(p *revisionPlan, t *tape) {
		num := pickOf(t, shownObjects...)
		p.after += fmt.Sprintf("%d 0 obj\n%s\nendobj\n", num, p.base.another(num)) + pickOf(t, "", "trailer\n<</Root 1 0 R>>\n", "startxref\n0\n%%EOF\n")
	}},
	{name: "style", kind: "", make: func(p *revisionPlan, t *tape) { p.style = pickOf(t, styleStream, styleHybrid, styleTable) }},
	// What is benign.
	{name: "field filled", kind: `\(18\)`, make: func(p *revisionPlan, t *tape) {
		p.body(objField).text = strings.Replace(p.body(objField).text, "(99)", "(18)", 1)
		if t.pick(2) == 0 {
			p.body(objFieldLook).text = lookOf("[0 0 60 20]", "BT /F1 18 Tf 2 3 Td (18) Tj ET")
		} else {
			id := p.add(p.next, lookOf("[0 0 60 20]", "BT /F1 18 Tf 2 3 Td (18) Tj ET"))
			p.body(objField).text = strings.Replace(p.body(objField).text, "11 0 R", fmt.Sprintf("%d 0 R", id.num), 1)
		}
	}},
	{name: "information", kind: `/Info \d+ 0 R`, make: func(p *revisionPlan, t *tape) {
		id := p.add(p.next, "<</Title (Other)>>")
		p.setTrailer("/Info", fmt.Sprintf("/Info %d 0 R", id.num))
	}},
	{name: "store", kind: `/DSS`, make: func(p *revisionPlan, t *tape) {
		id := p.add(p.next, "<</Type /DSS /Certs []>>")
		b := p.body(objCatalog)
		b.text = keyed(b.text, fmt.Sprintf("/DSS %d 0 R", id.num), true)
	}},
	{name: "new object", kind: `null`, make: func(p *revisionPlan, t *tape) {
		p.add(p.next+t.pick(3), pickOf(t, "null", p.base.another(objPage), "<<>>", "<</Type /Catalog /Pages 19 0 R>>"))
	}},
	{name: "written again", kind: `4 0 obj`, make: func(p *revisionPlan, t *tape) { p.body(pickOf(t, shownObjects...)) }},
}

// otherSection returns the offset of a section that is not the last.
func (p *revisionPlan) otherSection(t *tape) int64 {
	return pickOf(t, p.base.prev, p.base.older, 0, 9, int64(len(p.base.data)))
}

// setTrailer replaces the entries of a key.
func (p *revisionPlan) setTrailer(key, with string) {
	p.trailer = slices.DeleteFunc(p.trailer, func(s string) bool { return strings.HasPrefix(s, key+" ") })
	if with != "" {
		p.trailer = append(p.trailer, with)
	}
}

// revisionOf makes a document from choices: the first is the signed document, and each
// construct follows with its own choices.
func revisionOf(t testing.TB, choices []byte) *revisionPlan {
	t.Helper()
	c := tape(choices)
	b := revisionBaseOf(t, c.pick(len(revisionBaseNames)))
	p := &revisionPlan{base: b, next: b.size, startref: "startxref\n%d\n", end: "%%EOF\n",
		trailer: []string{"/Size %size", "/Root 1 0 R", "/Info 17 0 R", fmt.Sprintf("/Prev %d", b.prev)}}
	if b.stream {
		p.style = styleStream
	}
	for range 4 {
		one := constructs[c.pick(len(constructs))]
		one.make(p, &c)
		p.made = append(p.made, one.name)
		if len(c) == 0 {
			break
		}
	}
	return p
}

// choicesOf returns the choices that make a construct in its document.
func choicesOf(one construct) []byte {
	return []byte{byte(max(0, slices.Index(revisionBaseNames, one.base))), byte(slices.IndexFunc(constructs, func(c construct) bool { return c.name == one.name }))}
}
