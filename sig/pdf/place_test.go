// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"image"
	"image/draw"
	"image/jpeg"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tamga/gost/streebog"
	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/internal/testsize"
	"tamga/sig"
)

// anywhere asks for a mark whose place is searched for. more are further keys of the appearance.
func anywhere(more string) sig.Params {
	return sig.Params{"PDFFormat": "CMS", "PdfSignatureTemplateId": "1", "PdfSignatureAppearance": base64.StdEncoding.EncodeToString([]byte(`{"Place": "auto"` + more + `}`))}
}

// paintedPage is a made page: the entries of its dictionary and its content. Objects from 100 on are its own.
type paintedPage struct {
	name, entries, content string
	objects                map[int]string
}

func (p paintedPage) build() []byte {
	objects := map[int]string{5: fmt.Sprintf("<</Length %d>>\nstream\n%s\nendstream", len(p.content), p.content)}
	for n, o := range p.objects {
		objects[n] = o
	}
	data := document{page: p.entries, objects: objects}.build()
	return bytes.Replace(data, []byte("/Contents 11 0 R"), []byte("/Contents  5 0 R"), 1)
}

// streamObject writes a stream object.
func streamObject(entries, data string) string {
	return fmt.Sprintf("<<%s /Length %d>>\nstream\n%s\nendstream", entries, len(data), data)
}

// paintedResources are the resources of made pages. Object 3 is Helvetica.
const paintedResources = `/Resources <</Font <</F1 3 0 R /F2 100 0 R /F3 101 0 R /F4 102 0 R>>
	/XObject <</Fm 103 0 R /Im 104 0 R /Nest 105 0 R>> /Shading <</Ax 106 0 R /Ra 107 0 R>> /Pattern <</Ti 108 0 R>>
	/ExtGState <</Dark <</BM /Difference>> /Thin <</LW 0.1 /ca 0.4>>>> /ColorSpace <</Sep [/Separation /Red /DeviceRGB 109 0 R] /Icc [/ICCBased 110 0 R]>>>>`

func paintedObjects() map[int]string {
	return map[int]string{
		100: "<</Type /Font /Subtype /Type1 /BaseFont /Times-Italic>>",
		101: "<</Type /Font /Subtype /Type1 /BaseFont /Courier-Bold>>",
		102: `<</Type /Font /Subtype /Type3 /FontBBox [0 0 0 0] /FontMatrix [0.01 0 0 0.01 0 0] /FirstChar 97 /LastChar 98 /Widths [90 120]
			/Encoding <</Type /Encoding /Differences [97 /square /tall]>> /CharProcs <</square 111 0 R /tall 112 0 R>> /Resources <<>>>>`,
		103: streamObject("/Type /XObject /Subtype /Form /BBox [0 0 120 80] /Matrix [1 0.2 -0.2 1 0 0]", "0.8 g 0 0 200 200 re f 0 g 10 10 30 30 re f"),
		104: streamObject("/Type /XObject /Subtype /Image /Width 2 /Height 2 /BitsPerComponent 8 /ColorSpace /DeviceGray", "\x20\x60\x80\x40"),
		105: streamObject("/Type /XObject /Subtype /Form /BBox [-50 -50 250 250] "+strings.Replace(paintedResources, "/Nest 105 0 R", "", 1), "q 0.5 0 0 0.5 20 20 cm /Fm Do Q BT /F1 14 Tf 5 5 Td (inner) Tj ET"),
		106: "<</ShadingType 2 /ColorSpace /DeviceRGB /Coords [0 0 100 0] /BBox [0 0 100 60] /Function <</FunctionType 2 /Domain [0 1] /C0 [1 0 0] /C1 [0 0 1] /N 1>>>>",
		107: "<</ShadingType 3 /ColorSpace /DeviceGray /Coords [50 50 0 50 50 40] /Extend [false false] /Function <</FunctionType 2 /Domain [0 1] /C0 [0] /C1 [0.5] /N 1>>>>",
		108: streamObject("/Type /Pattern /PatternType 1 /PaintType 1 /TilingType 1 /BBox [0 0 10 10] /XStep 10 /YStep 10 /Resources <<>>", "0.3 g 0 0 5 5 re f"),
		109: "<</FunctionType 2 /Domain [0 1] /C0 [1 1 1] /C1 [1 0 0] /N 1>>",
		110: streamObject("/N 3 /Alternate /DeviceRGB", ""),
		111: streamObject("", "90 0 0 0 80 80 d1 0 -20 80 100 re f"),
		120: "<</Type /Font /Subtype /Type1 /BaseFont /Helvetica /FirstChar 65 /LastChar 90 /Widths [" + strings.Repeat("10 ", 26) + "]>>",
		121: streamObject("/Type /XObject /Subtype /Form /BBox [0 0 290 150] /Resources <</ColorSpace <</DefaultGray [/Separation /Red /DeviceRGB 109 0 R]>>>>", "1 g 0 0 290 150 re f"),
		112: streamObject("", "120 0 d0 1 0 0 RG 6 w 10 0 m 60 190 l 110 0 l S"),
	}
}

// paintedAt returns operators that paint something around a point.
func paintedAt(r *rand.Rand, x, y float64) string {
	n := func(from, to float64) float64 { return math.Round((from+r.Float64()*(to-from))*100) / 100 }
	word := []string{"Agreement", "gjpqy", "(\\251\\304", "1 234.56", "\\317\\356\\344\\357\\350\\361\\374"}
	text := strings.Trim(word[r.IntN(len(word))], "(")
	switch r.IntN(24) {
	case 0, 1, 2, 3:
		font := []string{"F1", "F2", "F3"}[r.IntN(3)]
		return fmt.Sprintf("BT /%s %v Tf %v Tc %v Tw %v Tz %v Ts %v %v Td (%s %s) Tj ET 0 Ts 100 Tz 0 Tc 0 Tw", font, n(5, 30), n(-1, 3), n(-1, 5), n(60, 140), n(-6, 6), x, y, text, text)
	case 4:
		a := n(0, 6.28)
		return fmt.Sprintf("BT /F1 %v Tf %v %v %v %v %v %v Tm [(%s) -250 (%s) 120 (end)] TJ ET", n(6, 24), math.Cos(a), math.Sin(a), -math.Sin(a), math.Cos(a), x, y, text, text)
	case 5:
		return fmt.Sprintf("BT /F2 12 Tf 14 TL %v %v Td (%s) Tj T* (%s) Tj (%s) ' 2 1 (last) \" ET", x, y, text, text, text)
	case 6:
		return fmt.Sprintf("BT /F4 %v Tf %v %v Td (abba) Tj ET", n(10, 40), x, y)
	case 7:
		return fmt.Sprintf("%v g %v %v %v %v re f", n(0, 0.9), x, y, n(-80, 80), n(-60, 60))
	case 8:
		return fmt.Sprintf("%v w %d j %d J %v %v m %v %v l %v %v l S", n(0, 12), r.IntN(3), r.IntN(3), x, y, x+n(-90, 90), y+n(-90, 90), x+n(-90, 90), y+n(-90, 90))
	case 9:
		return fmt.Sprintf("0.6 g %v %v m %v %v %v %v %v %v c %v %v %v %v v %v %v %v %v y b*", x, y, x+n(-90, 90), y+n(-90, 90), x+n(-90, 90), y+n(-90, 90), x+n(-90, 90), y+n(-90, 90),
			x+n(-40, 40), y+n(-40, 40), x+n(-40, 40), y, x+n(-40, 40), y+n(-40, 40), x, y+20)
	case 10:
		return fmt.Sprintf("q %v %v 60 40 re W n 0.2 g %v %v 500 500 re f Q", x, y, x-200, y-200)
	case 11:
		return fmt.Sprintf("q %v %v %v %v %v %v cm /Fm Do Q", n(0.2, 1.2), n(-0.5, 0.5), n(-0.5, 0.5), n(0.2, 1.2), x, y)
	case 12:
		return fmt.Sprintf("q %v %v %v %v %v %v cm /Im Do Q", n(20, 90), n(-30, 30), n(-30, 30), n(20, 90), x, y)
	case 13:
		return fmt.Sprintf("q 1 0 0 1 %v %v cm /Nest Do Q", x, y)
	case 14:
		return fmt.Sprintf("q 1 0 0 1 %v %v cm /Ax sh Q", x, y)
	case 15:
		return fmt.Sprintf("q 1 0 0 1 %v %v cm 0 0 100 100 re W n /Ra sh Q", x, y)
	case 16:
		return fmt.Sprintf("/Pattern cs /Ti scn %v %v %v %v re f", x, y, n(10, 90), n(10, 90))
	case 17:
		return fmt.Sprintf("/Sep cs %v scn %v %v 40 20 re f", n(0.1, 1), x, y)
	case 18:
		return fmt.Sprintf("q %v 0 0 %v %v %v cm BI /W 4 /H 4 /BPC 8 /CS /G ID \x00EI Q \x10\x20\x30\x40\x50()<\x60\x70 EI Q", n(10, 60), n(10, 60), x, y)
	case 19: // white: nothing to see
		return fmt.Sprintf("1 g %v %v 300 300 re f /Icc cs 1 1 1 scn %v %v 90 90 re f 0 0 0 0 k %v %v 50 50 re f", x-100, y-100, x, y, x, y)
	case 20:
		return fmt.Sprintf("q /Dark gs 1 g %v %v 50 30 re f Q", x, y)
	case 21:
		return fmt.Sprintf("BT 3 Tr /F1 200 Tf %v %v Td (hidden) Tj 0 Tr ET", x, y)
	case 22:
		return fmt.Sprintf("BT 1 Tr 3 w /F1 30 Tf %v %v Td (%s) Tj 0 Tr ET", x, y, text)
	}
	return fmt.Sprintf("q 4 w [6 3] 0 d %v %v %v %v re s Q /Thin gs", x, y, n(10, 120), n(10, 120))
}

// paintedPages returns made pages, the same for a seed.
func paintedPages(count int) []paintedPage {
	list := []paintedPage{
		{name: "empty"},
		{name: "no resources", content: "BT /None 20 Tf 300 40 Td (text) Tj ET 0 0 100 100 re f"},
		{name: "background", content: "1 1 1 rg 0 0 595 842 re f 0 g BT /F1 12 Tf 300 100 Td (on white) Tj ET"},
		{name: "frame", content: "2 w 20 20 555 802 re S 20 100 m 575 100 l S 300 20 m 300 100 l S"},
		{name: "full", content: "0.5 g 0 0 595 842 re f"},
		{name: "large", entries: "/MediaBox [0 0 14400 14400]", content: "0 g 12000 0 2400 2400 re f"},
		{name: "small", entries: "/MediaBox [0 0 60 60]", content: ""},
		{name: "no size", entries: "/MediaBox [10 10 10 10]", content: "0 g 400 0 200 100 re f"},
		{name: "unit", entries: "/MediaBox [0 0 300 421] /UserUnit 2", content: "0 g 200 0 100 50 re f"},
		{name: "unbalanced", content: "Q Q q q 0.5 0 0 0.5 300 0 cm 0 g 0 0 200 200 re f q q"},
		{name: "annotations", content: "", entries: "/Annots [<</Type /Annot /Subtype /Square /Rect [300 0 590 150] /C [1 0 0] /IC [0 1 0]>> <</Type /Annot /Subtype /Link /Rect [300 160 400 200] /Border [0 0 3]>>]"},
		{name: "annotations drawn by programs", content: "", entries: `/Annots [<</Type /Annot /Subtype /Line /Rect [300 100 310 100] /L [250 60 560 90] /LE [/ClosedArrow /Diamond] /C [1 0 0] /BS <</W 3>>>>
			<</Type /Annot /Subtype /Text /Rect [400 300 400 300] /Contents (note)>> <</Type /Annot /Subtype /Ink /Rect [10 10 20 20] /InkList [[400 400 500 470 560 410]] /C [0 0 1]>>
			<</Type /Annot /Subtype /Polygon /Rect [10 10 20 20] /Vertices [300 200 380 260 420 180] /C [0 1 0] /IC [0.5 0.5 0]>>
			<</Type /Annot /Subtype /Highlight /Rect [10 10 20 20] /QuadPoints [460 180 560 180 460 160 560 160] /C [1 1 0]>>]`},
		{name: "narrow widths", content: "BT /Lying 40 Tf 300 60 Td (AWMOQ) Tj ET", entries: "/Resources <</Font <</Lying 120 0 R>>>>"},
		{name: "white in another space", content: "1 g 300 0 290 150 re f 1 G 20 w 20 20 m 200 20 l S", entries: "/Resources <</ColorSpace <</DefaultGray [/Indexed /DeviceRGB 1 <FF0000 0000FF>]>>>>"},
		{name: "white in another space of a form", content: "1 g 300 200 290 150 re f q 1 0 0 1 300 0 cm /Own Do Q", entries: "/Resources <</XObject <</Own 121 0 R>>>>"},
		{name: "crop beyond media", entries: "/MediaBox [100 100 400 500] /CropBox [-50 200 900 900]", content: "0 g 300 100 200 150 re f 0.5 g 100 480 80 200 re f"},
		{name: "diagonal", content: "q 0.7 0.7 -0.7 0.7 100 100 cm BT 0.7 g /F1 90 Tf (WATERMARK) Tj ET Q"},
	}
	for i, p := range list {
		list[i].entries += " " + paintedResources
		list[i].objects = paintedObjects()
		if strings.Contains(p.entries, "/Resources") {
			list[i].entries = p.entries
		}
		if p.name == "no resources" {
			list[i].entries = "/Resources null"
		}
	}
	for seed := range count - len(list) {
		r := rand.New(rand.NewPCG(43, uint64(seed)))
		box := [4]float64{0, 0, 300 + r.Float64()*500, 300 + r.Float64()*700}
		if seed%3 == 1 {
			box[0], box[1] = -200, 50
		}
		entries := fmt.Sprintf("/MediaBox [%v %v %v %v] /Rotate %d", box[0], box[1], box[2], box[3], 90*(seed%4))
		if seed%5 == 2 {
			entries += fmt.Sprintf(" /CropBox [%v %v %v %v]", box[0]+20, box[1]+30, box[2]-10, box[3]-40)
		}
		if seed%7 == 3 {
			entries += " /UserUnit 1.5"
		}
		var content strings.Builder
		for range r.IntN(14) {
			x, y := box[0]+r.Float64()*(box[2]-box[0]), box[1]+r.Float64()*(box[3]-box[1])
			content.WriteString("q " + paintedAt(r, math.Round(x), math.Round(y)) + " Q\n")
		}
		list = append(list, paintedPage{name: fmt.Sprint("seed ", seed), entries: entries + " " + paintedResources, content: content.String(), objects: paintedObjects()})
	}
	return list
}

// inkLevel is the gray from which a pixel has ink.
const inkLevel = 250

// changedBox returns the box around the pixels that differ.
func changedBox(a, b *image.Gray) image.Rectangle {
	var box image.Rectangle
	for y := range a.Rect.Dy() {
		for x := range a.Rect.Dx() {
			if a.Pix[y*a.Stride+x] != b.Pix[y*b.Stride+x] {
				box = box.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	return box
}

// inked counts the pixels with ink in a box.
func inked(m *image.Gray, box image.Rectangle, level uint8) (n int) {
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			if m.Pix[y*m.Stride+x] < level {
				n++
			}
		}
	}
	return n
}

// placedMark is where a mark appeared.
type placedMark struct {
	page  int // from 0
	added bool
	box   image.Rectangle // pixels
}

// judgePlace compares the pictures of a document before and after a mark was added: the mark is on one page, where nothing
// was, and nothing else has changed.
func judgePlace(t *testing.T, name string, before, after judge.Drawing, level uint8) (m placedMark, ok bool) {
	t.Helper()
	m.page = -1
	n := len(before.Pages)
	if len(after.Pages) != n && len(after.Pages) != n+1 {
		t.Errorf("%s: %d pages became %d: %s", name, n, len(after.Pages), after.Complaint)
		return m, false
	}
	if m.added = len(after.Pages) > n; m.added {
		m.page = n
		white := image.NewGray(after.Pages[n].Rect)
		for i := range white.Pix {
			white.Pix[i] = 255
		}
		m.box = changedBox(white, after.Pages[n])
	}
	for i := range n {
		a, b := before.Pages[i], after.Pages[i]
		if a.Rect != b.Rect {
			t.Errorf("%s: page %d has another size", name, i+1)
			return m, false
		}
		box := changedBox(a, b)
		if box.Empty() {
			continue
		}
		if m.page >= 0 {
			t.Errorf("%s: pages %d and %d have changed", name, m.page+1, i+1)
			return m, false
		}
		m.page, m.box = i, box
		if covered := inked(a, box, level); covered > 0 {
			t.Errorf("%s: %d pixels with ink were in %v of page %d", name, covered, box, i+1)
			return m, false
		}
	}
	if m.page < 0 {
		t.Errorf("%s: no mark is to be seen", name)
		return m, false
	}
	return m, true
}

// TestPlace searches for the place of a mark on pages of every kind. MuPDF draws them before and after: the mark is where
// no ink was, and nothing else has changed.
func TestPlace(t *testing.T) {
	tools := judge.PDF(t)
	mupdf := judge.Renderers(t)[0]
	root, signer := party(t)
	count := 100
	switch {
	case testsize.Of() < testsize.Whole:
		count = 36
	case testsize.Of() == testsize.Full:
		count = 2000
	}
	added := 0
	pages := paintedPages(count)
	for i, p := range pages {
		data := p.build()
		resolution := 72
		if strings.Contains(p.entries, "14400") {
			resolution = 6
		}
		params := anywhere([]string{"", `, "Mark": "compact"`, `, "Beside": "end"`}[i%3])
		signed, err := sigtest.Try(t, New(), signer, &sig.Job{Document: bytes.NewReader(data), Params: params})
		if err != nil {
			t.Errorf("%s: %v", p.name, err)
			continue
		}
		m, ok := judgePlace(t, p.name, mupdf.Draw(t.Context(), t, tools.Dir, data, resolution), mupdf.Draw(t.Context(), t, tools.Dir, signed, resolution), inkLevel)
		if !ok {
			continue
		}
		if m.added {
			added++
		}
		if p.name == "full" != m.added && !strings.HasPrefix(p.name, "seed") && p.name != "small" {
			t.Errorf("%s: a page was added: %v", p.name, m.added)
		}
		if i%10 == 0 {
			if r := verified(t, signed, root); !r.Passed() {
				t.Errorf("%s: %s", p.name, say(r))
			}
			if err := tools.CheckQPDF(signed, ""); err != nil {
				t.Errorf("%s: %v", p.name, err)
			}
		}
	}
	t.Logf("%d pages, %d sheets added", len(pages), added)
	if added > len(pages)/3 {
		t.Errorf("%d of %d marks are on an added page", added, len(pages))
	}
}

// TestPlaceUnknown searches for a place on pages that programs show in different ways, or that need more memory than the
// search may use. The mark is on an added sheet. MuPDF draws them before and after.
func TestPlaceUnknown(t *testing.T) {
	tools := judge.PDF(t)
	mupdf := judge.Renderers(t)[0]
	_, signer := party(t)
	for _, p := range []paintedPage{
		{name: "text before a text object", content: "1 0 0 1 300 40 cm /F1 20 Tf (before) Tj BT ET"},
		{name: "text after a text object", content: "BT /F1 20 Tf 300 40 Td (inside) Tj ET (after) Tj"},
		{name: "text after a state in a text object", content: "BT /F1 20 Tf 300 40 Td q (inside) Tj Q (after) Tj ET"},
		{name: "crop outside of media", entries: "/MediaBox [0 0 300 400] /CropBox [400 500 700 800]", content: "0 g 0 0 50 50 re f"},
		{name: "above the memory", content: "/Big Do", objects: map[int]string{120: streamObject("/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Filter /FlateDecode", bomb(90<<20))},
			entries: "/Resources <</XObject <</Big 120 0 R>>>>"},
	} {
		if !strings.Contains(p.entries, "/Resources") {
			p.entries += " " + paintedResources
		}
		objects := paintedObjects()
		for n, o := range p.objects {
			objects[n] = o
		}
		p.objects = objects
		data := p.build()
		before := mupdf.Draw(t.Context(), t, tools.Dir, data, 72)
		signed, err := sigtest.Try(t, New(), signer, &sig.Job{Document: bytes.NewReader(data), Params: anywhere("")})
		if err != nil {
			t.Errorf("%s: %v", p.name, err)
		} else if m, ok := judgePlace(t, p.name, before, mupdf.Draw(t.Context(), t, tools.Dir, signed, 72), inkLevel); ok && !m.added {
			t.Errorf("%s: the mark is on page %d", p.name, m.page+1)
		}
		// A card has its marks on its own sheet then.
		card := made1(t, newCard(t, "document.pdf", data, signer))
		judgePlace(t, p.name+", card", before, mupdf.Draw(t.Context(), t, tools.Dir, card, 72), inkLevel)
	}
}

// bomb is so much white space, deflated.
func bomb(size int) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	block := bytes.Repeat([]byte{' '}, 1<<20)
	for range size >> 20 {
		w.Write(block)
	}
	w.Close()
	return b.String()
}

// TestPlaceText: text that is extracted from the mark is what it must say.
func TestPlaceText(t *testing.T) {
	tools := judge.PDF(t)
	_, signer := party(t)
	signed := signedBy(t, signer, paintedPages(12)[2].build(), anywhere(""))
	said, err := tools.Text(signed, "")
	if err != nil {
		t.Fatal(err)
	}
	cert := signer.Certificate
	said = strings.TrimPrefix(said, "warning: ICC support is not available\n") // about MuPDF as it is built
	want := "on white ДОКУМЕНТ ПОДПИСАН ЭЛЕКТРОННОЙ ПОДПИСЬЮ Сертификат: " + strings.ToUpper(cert.SerialHex()) + " Владелец: Signer Действителен: с " +
		cert.NotBefore.Format("02.01.2006") + " по " + cert.NotAfter.Format("02.01.2006") + " Подписано: " + sigtest.Time.UTC().Format("02.01.2006 15:04") + " UTC"
	words := func(s string) string { f := strings.Fields(s); slices.Sort(f); return strings.Join(f, " ") }
	if words(said) != words(want) {
		t.Errorf("%q, want %q", said, want)
	}
}

// TestPlaceSeveral: the marks of several signers are beside each other, and when the page is full, on another or on a
// sheet of signatures that only the first signature may add.
func TestPlaceSeveral(t *testing.T) {
	tools := judge.PDF(t)
	mupdf := judge.Renderers(t)[0]
	root, signer := party(t)
	for name, first := range map[string][]byte{
		"beside": paintedPages(12)[2].build(),
		"sheet":  paintedPages(12)[4].build(),
	} {
		data := first
		before := mupdf.Draw(t.Context(), t, tools.Dir, data, 72)
		var boxes []image.Rectangle
		for i := range 5 {
			signed, err := sigtest.Try(t, New(), signer, &sig.Job{Document: bytes.NewReader(data), Params: anywhere("")})
			if err != nil {
				t.Fatalf("%s, signature %d: %v", name, i+1, err)
			}
			after := mupdf.Draw(t.Context(), t, tools.Dir, signed, 72)
			m, ok := judgePlace(t, fmt.Sprint(name, " ", i+1), before, after, inkLevel)
			if !ok {
				return
			}
			if m.added != (name == "sheet" && i == 0) || name == "sheet" && m.page != 1 {
				t.Errorf("%s, signature %d: on page %d, added %v", name, i+1, m.page+1, m.added)
			}
			boxes = append(boxes, m.box)
			data, before = signed, after
		}
		if name == "sheet" {
			if keep := os.Getenv("TAMGA_SCREENSHOTS"); keep != "" {
				os.WriteFile(filepath.Join(keep, "sheet.pdf"), data, 0o600)
			}
			said, err := tools.Text(data, "")
			sum := streebog.Sum256(first)
			if want := "Лист электронных подписей"; err != nil || !strings.Contains(said, want) || !strings.Contains(said, hex.EncodeToString(sum[:])) || strings.Count(said, want) != 1 {
				t.Errorf("the sheet says %q: %v", said, err)
			}
		}
		a, b := boxes[0], boxes[1]
		if name == "sheet" { // the first box has the heading
			a, b = boxes[2], boxes[3]
		}
		if a.Min.Y != b.Min.Y {
			t.Errorf("%s: %v and %v are not on one line", name, a, b)
		}
		if r := verified(t, data, root); !r.Passed() || len(r.Signatures) != 5 {
			t.Errorf("%s: %s", name, say(r))
		}
	}
	// Marks without a place, as requests have always asked for them, are beside each other, too.
	data := paintedPages(12)[0].build()
	before := mupdf.Draw(t.Context(), t, tools.Dir, data, 72)
	for i := range 3 {
		data = signedBy(t, signer, data, sig.Params{"PdfSignatureTemplateId": "1"})
		after := mupdf.Draw(t.Context(), t, tools.Dir, data, 72)
		judgePlace(t, fmt.Sprint("without a place ", i+1), before, after, inkLevel)
		before = after
	}
	// A full page, already signed without a mark, has no place for one.
	signed := signedBy(t, signer, paintedPages(12)[4].build(), nil)
	_, err := sigtest.Try(t, New(), signer, &sig.Job{Document: bytes.NewReader(signed), Params: anywhere("")})
	if f := sigtest.Faults(err); len(f) != 1 || f[0] != "PdfSignatureAppearance" || !strings.Contains(err.Error(), "no page has a free place") {
		t.Errorf("%v", err)
	}
}

// TestPlaceBeside: the mark is beside the marked word, whatever the encoding and the direction of the text.
func TestPlaceBeside(t *testing.T) {
	tools := judge.PDF(t)
	mupdf := judge.Renderers(t)[0]
	_, signer := party(t)
	cyrillic := map[int]string{
		100: "<</Type /Font /Subtype /TrueType /BaseFont /Arial /FirstChar 32 /LastChar 33 /Widths [278 278] /Encoding <</Differences [192 /afii10033 /afii10080 /afii10069 /afii10081 /afii10074 /afii10083 /afii10094]>>>>",
		101: "<</Type /Font /Subtype /Type0 /BaseFont /X /Encoding /Identity-H /DescendantFonts [102 0 R] /ToUnicode 103 0 R>>",
		102: "<</Type /Font /Subtype /CIDFontType2 /BaseFont /X /CIDSystemInfo <</Registry (Adobe) /Ordering (Identity) /Supplement 0>> /DW 500 /W [1 [600 600] 3 7 550]>>",
		103: streamObject("", "1 begincodespacerange <0000> <FFFF> endcodespacerange 2 beginbfrange <0001> <0001> <041F> <0002> <0006> [<043E> <0434> <043F> <0438> <0441>] endbfrange 1 beginbfchar <0007> <044C> endbfchar"),
	}
	fonts := "/Resources <</Font <</F1 3 0 R /F2 100 0 R /F3 101 0 R>>>>"
	for _, test := range []struct {
		name, word, content, entries string
		at                           [2]float64 // of the word, as shown, from the lower left
		beside                       bool
	}{
		{"Helvetica", "Sign here:", "BT /F1 12 Tf 72 400 Td (Sign ) Tj (here:) Tj 0 -300 Td (End) Tj ET", "", [2]float64{72, 400}, true},
		{"Differences", "Подпись", "BT /F2 12 Tf 72 400 Td [(\300\301\302) 20 (\303\304\305\306)] TJ ET", "", [2]float64{72, 400}, true},
		{"ToUnicode", "Подпись", "BT /F3 12 Tf 72 400 Td <0001000200030004000500060007> Tj ET", "", [2]float64{72, 400}, true},
		{"hidden", "Sign", "BT 3 Tr /F1 12 Tf 72 400 Td (Sign) Tj ET", "", [2]float64{72, 400}, true},
		{"turned", "Sign", "BT /F1 12 Tf 400 72 Td (Sign) Tj ET", "/Rotate 90", [2]float64{72, 195}, true},
		{"last", "Sign", "BT /F1 12 Tf 72 700 Td (Sign) Tj 0 -300 Td (Sign) Tj ET", "", [2]float64{72, 400}, true},
		{"narrow", "Sign", "BT /F1 12 Tf 72 400 Td (Sign) Tj ET 0.4 g 150 380 445 60 re f", "", [2]float64{72, 400}, true},
		{"absent", "Подпись", "BT /F1 12 Tf 72 400 Td (Sign) Tj ET", "", [2]float64{}, false},
		{"surrounded", "Sign", "0.4 g 0 200 595 400 re f 1 g 60 390 100 30 re f 0 g BT /F1 12 Tf 72 400 Td (Sign) Tj ET", "", [2]float64{72, 400}, false},
	} {
		data := paintedPage{entries: fonts + test.entries, content: test.content, objects: cyrillic}.build()
		signed, err := sigtest.Try(t, New(), signer, &sig.Job{Document: bytes.NewReader(data), Params: anywhere(fmt.Sprintf(`, "Beside": %q`, test.word))})
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		before := mupdf.Draw(t.Context(), t, tools.Dir, data, 72)
		m, ok := judgePlace(t, test.name, before, mupdf.Draw(t.Context(), t, tools.Dir, signed, 72), inkLevel)
		if !ok {
			continue
		}
		height := float64(before.Pages[0].Rect.Dy())
		dx := max(0, float64(m.box.Min.X)-test.at[0], test.at[0]-float64(m.box.Max.X))
		dy := max(0, height-float64(m.box.Max.Y)-test.at[1], test.at[1]-(height-float64(m.box.Min.Y)))
		if near := math.Hypot(dx, dy) < 100; near != test.beside {
			t.Errorf("%s: the mark is at %v, the word at %v", test.name, m.box, test.at)
		}
	}
}

// scanned draws a page with lines of dark marks inside of margins, on paper that is not clean.
func scanned(w, h int, margins image.Rectangle) *image.Gray {
	m := image.NewGray(image.Rect(0, 0, w, h))
	r := rand.New(rand.NewPCG(1, 2))
	for y := range h {
		for x := range w {
			v := 232 + r.IntN(20)
			if image.Pt(x, y).In(margins) && y/12%3 == 0 && x/7%5 != 0 {
				v = 40 + r.IntN(40)
			}
			m.Pix[y*m.Stride+x] = uint8(v)
		}
	}
	return m
}

// faxOf codes an image of bits as Ghostscript does, for the devices of TIFF.
func faxOf(t *testing.T, tools *judge.PDFTools, device, bits string, w, h int) string {
	t.Helper()
	data := paintedPage{entries: fmt.Sprintf("/MediaBox [0 0 %d %d] /Resources <</XObject <</Im 104 0 R>>>>", w, h), content: fmt.Sprintf("q %d 0 0 %d 0 0 cm /Im Do Q", w, h),
		objects: map[int]string{104: streamObject(fmt.Sprintf("/Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceGray /BitsPerComponent 1", w, h), bits)}}.build()
	out := filepath.Join(tools.Dir, "fax.tif")
	said, err := exec.Command(judge.Program(t, "gs"), "-q", "-dSAFER", "-dNOPAUSE", "-dBATCH", "-r72", "-sDEVICE="+device, "-dMaxStripSize=0", "-dAdjustWidth=0", "-sOutputFile="+out, tools.Write("fax.pdf", data)).CombinedOutput()
	if err != nil {
		t.Fatalf("gs: %v: %s", err, said)
	}
	tiff, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	tag := map[uint16]uint32{}
	at := binary.LittleEndian.Uint32(tiff[4:])
	for i := range uint32(binary.LittleEndian.Uint16(tiff[at:])) {
		e := tiff[at+2+12*i:]
		tag[binary.LittleEndian.Uint16(e)] = binary.LittleEndian.Uint32(e[8:])
	}
	if tag[256] != uint32(w) || tag[257] != uint32(h) {
		t.Fatalf("gs: %d by %d pixels", tag[256], tag[257])
	}
	return string(tiff[tag[273]:][:tag[279]])
}

// TestPlaceOnScan: a scan that can be decoded has its own margins, any other gets a sheet.
func TestPlaceOnScan(t *testing.T) {
	tools := judge.PDF(t)
	mupdf := judge.Renderers(t)[0]
	_, signer := party(t)
	const w, h = 620, 877
	below := scanned(w, h, image.Rect(60, 60, 560, 640)) // free at the bottom
	everywhere := scanned(w, h, image.Rect(0, 0, w, h))
	gray := func(m *image.Gray) string { return string(m.Pix) }
	bits := func(m *image.Gray, invert byte) string {
		var b []byte
		for y := range h {
			row := make([]byte, (w+7)/8)
			for x := range w {
				if m.GrayAt(x, y).Y > 128 {
					row[x/8] |= 0x80 >> (x % 8)
				}
			}
			for i := range row {
				row[i] ^= invert
			}
			b = append(b, row...)
		}
		return string(b)
	}
	jpegOf := func(m image.Image) string {
		var b bytes.Buffer
		if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: 80}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	colour := image.NewRGBA(below.Rect)
	draw.Draw(colour, colour.Rect, below, image.Point{}, draw.Src)
	deflate := func(s string) string {
		var b bytes.Buffer
		z := zlib.NewWriter(&b)
		z.Write([]byte(s))
		z.Close()
		return b.String()
	}
	runs := func(s string) string {
		var b strings.Builder
		for len(s) > 0 {
			n := min(len(s), 128)
			b.WriteByte(byte(n - 1))
			b.WriteString(s[:n])
			s = s[n:]
		}
		return b.String() + "\x80"
	}
	rgb := func() string {
		var b []byte
		for _, v := range below.Pix {
			b = append(b, v, v, v)
		}
		return string(b)
	}()
	for _, test := range []struct {
		name, entries, data string
		added               bool
	}{
		{"gray", "/ColorSpace /DeviceGray /BitsPerComponent 8", gray(below), false},
		{"deflated", "/ColorSpace /DeviceRGB /BitsPerComponent 8 /Filter /FlateDecode", deflate(rgb), false},
		{"bits", "/ColorSpace /DeviceGray /BitsPerComponent 1", bits(below, 0), false},
		{"inverted bits", "/ColorSpace /DeviceGray /BitsPerComponent 1 /Decode [1 0]", bits(below, 0xff), false},
		{"JPEG", "/ColorSpace /DeviceGray /BitsPerComponent 8 /Filter /DCTDecode", jpegOf(below), false},
		{"JPEG in colour", "/ColorSpace /DeviceRGB /BitsPerComponent 8 /Filter [/DCTDecode]", jpegOf(colour), false},
		{"full", "/ColorSpace /DeviceGray /BitsPerComponent 8 /Filter /DCTDecode", jpegOf(everywhere), true},
		{"another filter", "/ColorSpace /DeviceGray /BitsPerComponent 8 /Filter /RunLengthDecode", runs(gray(below)), true},
		{"cut off", "/ColorSpace /DeviceGray /BitsPerComponent 8", gray(below)[:1000], true},
		{"a JPEG of another size", "/Width 600 /Height 800 /ColorSpace /DeviceGray /BitsPerComponent 8 /Filter /DCTDecode", jpegOf(scanned(300, 300, image.Rect(0, 0, 300, 300))), true},
		{"T.6", fmt.Sprintf("/ColorSpace /DeviceGray /BitsPerComponent 1 /Filter /CCITTFaxDecode /DecodeParms <</K -1 /Columns %d /Rows %d>>", w, h), faxOf(t, tools, "tiffg4", bits(below, 0), w, h), false},
		{"T.6 in an array", fmt.Sprintf("/ColorSpace /DeviceGray /BitsPerComponent 1 /Filter [/CCITTFaxDecode] /DecodeParms [<</K -1 /Columns %d /BlackIs1 true>>] /Decode [1 0]", w), faxOf(t, tools, "tiffg4", bits(below, 0), w, h), false},
		{"a mask of T.6", fmt.Sprintf("/ImageMask true /Filter /CCITTFaxDecode /DecodeParms <</K -1 /Columns %d>>", w), faxOf(t, tools, "tiffg4", bits(below, 0), w, h), false},
		{"a mask", "/ImageMask true /BitsPerComponent 1", bits(below, 0), false},
		{"an inverted mask", "/ImageMask true /BitsPerComponent 1 /Decode [1 0]", bits(below, 0xff), false},
		{"a full mask", "/ImageMask true /BitsPerComponent 1", bits(everywhere, 0), true},
		{"T.6 full", fmt.Sprintf("/ColorSpace /DeviceGray /BitsPerComponent 1 /Filter /CCITTFaxDecode /DecodeParms <</K -1 /Columns %d>>", w), faxOf(t, tools, "tiffg4", bits(everywhere, 0), w, h), true},
		{"T.6 cut off", fmt.Sprintf("/ColorSpace /DeviceGray /BitsPerComponent 1 /Filter /CCITTFaxDecode /DecodeParms <</K -1 /Columns %d>>", w), faxOf(t, tools, "tiffg4", bits(below, 0), w, h)[:200], true},
		{"T.6 of another width", "/ColorSpace /DeviceGray /BitsPerComponent 1 /Filter /CCITTFaxDecode /DecodeParms <</K -1 /Columns 600>>", faxOf(t, tools, "tiffg4", bits(below, 0), w, h), true},
		{"T.4", fmt.Sprintf("/ColorSpace /DeviceGray /BitsPerComponent 1 /Filter /CCITTFaxDecode /DecodeParms <</K 0 /EndOfLine true /Columns %d /Rows %d>>", w, h), faxOf(t, tools, "tiffg3", bits(below, 0), w, h), false},
		{"T.4 in two dimensions", fmt.Sprintf("/ColorSpace /DeviceGray /BitsPerComponent 1 /Filter /CCITTFaxDecode /DecodeParms <</K 4 /EndOfLine true /Columns %d /Rows %d>>", w, h), faxOf(t, tools, "tiffg32d", bits(below, 0), w, h), false},
		{"T.4 without ends of lines", fmt.Sprintf("/ColorSpace /DeviceGray /BitsPerComponent 1 /Filter /CCITTFaxDecode /DecodeParms <</EncodedByteAlign true /Columns %d>>", w), faxOf(t, tools, "tiffcrle", bits(below, 0), w, h), false},
		{"T.4 full", fmt.Sprintf("/ColorSpace /DeviceGray /BitsPerComponent 1 /Filter /CCITTFaxDecode /DecodeParms <</K 4 /EndOfLine true /Columns %d>>", w), faxOf(t, tools, "tiffg32d", bits(everywhere, 0), w, h), true},
		{"T.4 cut off", fmt.Sprintf("/ColorSpace /DeviceGray /BitsPerComponent 1 /Filter /CCITTFaxDecode /DecodeParms <</EndOfLine true /Columns %d>>", w), faxOf(t, tools, "tiffg3", bits(below, 0), w, h)[:900], true},
		{"JBIG2", "/ColorSpace /DeviceGray /BitsPerComponent 1 /Filter /JBIG2Decode", "\x00\x00\x00\x00", true},
	} {
		entries := test.entries
		if !strings.Contains(entries, "/Width") {
			entries += fmt.Sprintf(" /Width %d /Height %d", w, h)
		}
		data := paintedPage{entries: "/Resources <</XObject <</Im 104 0 R>>>>", content: "q 595 0 0 842 0 0 cm /Im Do Q",
			objects: map[int]string{104: streamObject("/Type /XObject /Subtype /Image "+entries, test.data)}}.build()
		signed, err := sigtest.Try(t, New(), signer, &sig.Job{Document: bytes.NewReader(data), Params: anywhere("")})
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		m, ok := judgePlace(t, test.name, mupdf.Draw(t.Context(), t, tools.Dir, data, 72), mupdf.Draw(t.Context(), t, tools.Dir, signed, 72), paper)
		if ok && m.added != test.added {
			t.Errorf("%s: a sheet was added: %v", test.name, m.added)
		}
	}
}
