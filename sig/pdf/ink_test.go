// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/testsize"
	"tamga/sig"
	"tamga/sig/budget"
	"tamga/sig/pdf/stamp"
)

// manyTexts is a page of so many text objects.
func manyTexts(count int) []byte {
	var content strings.Builder
	for i := range count {
		fmt.Fprintf(&content, "BT /F1 4 Tf %d %d.5 Td (Object %d) Tj ET\n", 20+(i%12)*45, 100+(i*7)%700, i)
	}
	return paintedPage{entries: paintedResources, content: content.String(), objects: paintedObjects()}.build()
}

// prepared prepares a signature with a mark whose place is searched for.
func prepared(ctx context.Context, t testing.TB, data []byte, more string) error {
	_, signer := party(t)
	_, err := New().Prepare(ctx, &sig.Job{Document: bytes.NewReader(data), Certificate: signer.Certificate, Chain: signer.Chain, Params: anywhere(more)})
	return err
}

// searched searches for a place, and returns the steps that it takes.
func searched(t testing.TB, data []byte) int64 {
	f := opened(t, data)
	defer f.close()
	p, err := f.page(f.pageCount() - 1)
	if err != nil {
		t.Fatal(err)
	}
	before := f.spending.Spent()
	a, err := stamp.Render(&stamp.Request{TemplateID: 1, Appearance: []byte(`{"Place":"auto"}`), Signer: "Signer", Pages: f.pageCount(), Spending: f.spending,
		Ink: func(_ int, word string, g *stamp.Ground) (bool, error) { return newSearcher(f).ink(p, word, g) }},
		func(int) (stamp.Page, error) { return p.stamp, nil })
	if err != nil || a.Objects == nil {
		t.Fatalf("%v %v", a, err)
	}
	return f.spending.Spent() - before
}

// BenchmarkPlace searches for a place on pages of 2,000 and of 100,000 text objects.
func BenchmarkPlace(b *testing.B) {
	for _, count := range []int{2000, 100_000} {
		data := manyTexts(count)
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			b.ReportAllocs()
			steps := int64(0)
			for b.Loop() {
				steps = searched(b, data)
			}
			b.ReportMetric(float64(steps), "steps/op")
		})
	}
}

// TestPlaceCost: a search is charged. Pages that are made to take long end it, and are refused or get a sheet.
func TestPlaceCost(t *testing.T) {
	nested := map[int]string{}
	for i := range 8 {
		nested[120+i] = streamObject(fmt.Sprintf("/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources <</XObject <</X %d 0 R>>>>", 121+i), strings.Repeat("/X Do ", 60))
	}
	nested[128] = streamObject("/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources <<>>", "0 0 1 1 re f")
	self := map[int]string{120: streamObject("/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources <</XObject <</X 120 0 R>>>>", "/X Do /X Do")}
	for name, p := range map[string]paintedPage{
		"forms in forms":    {content: "/X Do", entries: "/Resources <</XObject <</X 120 0 R>>>>", objects: nested},
		"a form in itself":  {content: "/X Do", entries: "/Resources <</XObject <</X 120 0 R>>>>", objects: self},
		"states":            {content: strings.Repeat("q ", 5000)},
		"one long path":     {content: "0 0 m " + strings.Repeat("9 9 l ", 300_000) + "S"},
		"many names":        {content: strings.Repeat("/X Do ", 300_000), entries: "/Resources <</XObject <<" + strings.Repeat("/Name 5 0 R ", 100_000) + ">>>>"},
		"many fonts":        {content: strings.Repeat("/F 1 Tf ", 100_000), entries: "/Resources <</Font <</F <</Type /Font /Subtype /Type1 /BaseFont /Helvetica>>>>>>"},
		"many parts":        {entries: "/Contents [" + strings.Repeat("5 0 R ", 200_000) + "]"},
		"widths again":      {content: "/F 1 Tf", entries: "/Resources <</Font <</F 120 0 R>>>>", objects: map[int]string{120: "<</Type /Font /Subtype /Type0 /Encoding /Identity-H /DescendantFonts [<</W [" + strings.Repeat("0 60000 500 ", 100_000) + "]>>]>>"}},
		"a glyph in itself": {content: "BT /T 1 Tf (a) Tj ET", entries: "/Resources <</Font <</T 120 0 R>>>>", objects: map[int]string{120: "<</Type /Font /Subtype /Type3 /FontBBox [0 0 0 0] /FontMatrix [1 0 0 1 0 0] /Encoding <</Differences [97 /a]>> /CharProcs <</a 121 0 R>> /Resources <</Font <</T 120 0 R>>>>>>", 121: streamObject("", "BT /T 1 Tf (a) Tj ET")}},
	} {
		ctx := budget.With(t.Context(), budget.Limits{Steps: 60_000_000, Memory: 64 << 20})
		if err := prepared(ctx, t, p.build(), ""); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Widths of a font that is no object of its own are read, and charged, each time.
	inline := paintedPage{content: strings.Repeat("/F 1 Tf ", 5), entries: "/Resources <</Font <</F <</Type /Font /Subtype /Type0 /Encoding /Identity-H /DescendantFonts [120 0 R]>>>>>>",
		objects: map[int]string{120: "<</W [0 59999 500]>>"}}
	if steps := searched(t, inline.build()); steps < 5*60_000 {
		t.Errorf("300,000 widths were read for %d steps", steps)
	}
	// A page that needs more than the search may use is taken: the document gets a sheet. It takes
	// 2.5 million steps.
	for _, l := range []budget.Limits{{Steps: 2_000_000, Memory: 64 << 20}, {Steps: 40_000_000, Memory: 4 << 20}} {
		if err := prepared(budget.With(t.Context(), l), t, manyTexts(20_000), ""); err != nil {
			t.Errorf("%v: %v", l, err)
		}
	}
	// So does a card.
	_, signer := party(t)
	r, err := New().MakeCard(budget.With(t.Context(), budget.Limits{Steps: 2_000_000, Memory: 64 << 20}), newCard(t, "document.pdf", manyTexts(20_000), signer))
	written(t, r, err)
	// What the rest of the work does not allow is refused.
	ctx := budget.With(t.Context(), budget.Limits{Steps: 100_000, Memory: 64 << 20})
	if err := prepared(ctx, t, manyTexts(20_000), ""); !errors.Is(err, budget.ErrSteps) {
		t.Errorf("%v", err)
	}
	ctx = budget.With(t.Context(), budget.Limits{Steps: 40_000_000, Memory: 1 << 20})
	if err := prepared(ctx, t, manyTexts(20_000), ""); !errors.Is(err, budget.ErrMemory) {
		t.Errorf("%v", err)
	}
	// A page of 100,000 objects has a place within the ordinary limits.
	if err := prepared(t.Context(), t, manyTexts(100_000), ""); err != nil {
		t.Error(err)
	}
}

// FuzzInk reads any content: it ends, and what it paints is in boxes of numbers.
func FuzzInk(f *testing.F) {
	for _, p := range paintedPages(30) {
		f.Add([]byte(p.content), "end")
	}
	f.Add([]byte("BI /W 1000000 /H 1000000 ID \x00 EI Q"), "")
	f.Add([]byte("1e308 w 99999999999999999999 0 0 99999999999999999999 0 0 cm 0 0 m 1 1 l S -. + [[[[(((<<<<"), "x")
	data := paintedPage{entries: paintedResources, objects: paintedObjects()}.build()
	f.Fuzz(func(t *testing.T, content []byte, word string) {
		file := newFile(budget.With(t.Context(), budget.Limits{Steps: 20_000_000, Memory: 32 << 20}), bytes.NewReader(data), int64(len(data)))
		defer file.close()
		if err := file.crossReferences(); err != nil {
			t.Fatal(err)
		}
		p, err := file.page(0)
		if err != nil {
			t.Fatal(err)
		}
		held := file.spending.Held()
		s := newSearcher(file)
		s.operators = 20_000
		p.dict = p.dict.with("Contents", &stream{fresh: content})
		a, err := stamp.Render(&stamp.Request{TemplateID: 1, Appearance: []byte(`{"Place":"auto","Beside":"end"}`), Pages: 1, Extend: true, Spending: file.spending,
			Ink: func(_ int, _ string, g *stamp.Ground) (bool, error) { return s.ink(p, word, g) }},
			func(int) (stamp.Page, error) { return p.stamp, nil })
		if err != nil {
			if file.failed() == nil {
				t.Error(err)
			}
			return
		}
		if a.Rect[0] >= a.Rect[2] || a.Rect[1] >= a.Rect[3] {
			t.Errorf("the place %v", a.Rect)
		}
		if kept := file.spending.Held() - held; kept > 4<<20 {
			t.Errorf("%d bytes stay held", kept)
		}
	})
}

// boxes collects what a page paints.
type boxes struct {
	list []bounds
	full bool
}

func (b *boxes) Ink(r [4]float64) { b.list = append(b.list, r) }
func (b *boxes) Word([4]float64)  {}
func (b *boxes) Fill()            { b.full = true }

// TestInk compares the boxes of made pages with their pictures by MuPDF: each pixel with ink is in a box.
func TestInk(t *testing.T) {
	tools := judge.PDF(t)
	programs := judge.Renderers(t)
	mupdf := programs[0]
	count := 100
	switch {
	case testsize.Of() < testsize.Whole:
		count = 40
	case testsize.Of() == testsize.Full:
		count = 2000
	}
	var sum inkSum
	for i, p := range paintedPages(count) {
		data := p.build()
		resolution := 72
		if strings.Contains(p.entries, "14400") {
			resolution = 6
		}
		sum.compare(t, mupdf, tools.Dir, p.name, data, resolution)
		if strings.HasPrefix(p.name, "white in another space") { // MuPDF is mostly built without support for them
			for _, program := range programs[1:] {
				sum.compare(t, program, tools.Dir, p.name+" in "+program.Name, data, resolution)
			}
		}
		if i%4 == 0 && resolution == 72 {
			for program, rewritten := range tools.Rewritten(data) {
				sum.compare(t, mupdf, tools.Dir, p.name+" by "+program, rewritten, resolution)
			}
		}
	}
	t.Logf("%d pages, %d pixels with ink in boxes of %d", sum.pages, sum.inks, sum.boxed)
	if sum.boxed > 4*sum.inks || sum.pages < count {
		t.Errorf("%d pages, whose boxes have %d pixels, %d of them with ink", sum.pages, sum.boxed, sum.inks)
	}
}

// inkSum counts what was compared, in pixels.
type inkSum struct{ pages, inks, boxed int }

// compare compares the boxes of the first page of a document with its picture.
func (s *inkSum) compare(t *testing.T, program judge.Renderer, dir, name string, data []byte, resolution int) {
	t.Helper()
	drawing := program.Draw(t.Context(), t, dir, data, resolution)
	if len(drawing.Pages) == 0 {
		t.Errorf("%s: %s", name, drawing.Complaint)
		return
	}
	picture := drawing.Pages[0]
	f := opened(t, data)
	defer f.close()
	at, err := f.page(0)
	if err != nil {
		t.Fatal(err)
	}
	var b boxes
	if _, err := newSearcher(f).ink(at, "", &b); err != nil || b.full {
		t.Errorf("%s: %v, unknown %v", name, err, b.full)
	}
	covered := image.NewGray(picture.Rect)
	for _, r := range b.list {
		fillPixels(covered, at, r, float64(resolution)/72)
	}
	s.pages++
	missed, first := 0, image.Point{}
	for y := range picture.Rect.Dy() {
		for x := range picture.Rect.Dx() {
			if picture.Pix[y*picture.Stride+x] >= inkLevel {
				continue
			}
			if s.inks++; covered.GrayAt(x, y).Y == 0 {
				if missed == 0 {
					first = image.Pt(x, y)
				}
				missed++
			}
		}
	}
	for _, v := range covered.Pix {
		if v != 0 {
			s.boxed++
		}
	}
	if missed == 0 {
		return
	}
	t.Errorf("%s: %d pixels with ink are in no box, the first at %v of %v", name, missed, first, picture.Rect.Size())
	if keep := os.Getenv("TAMGA_SCREENSHOTS"); keep != "" {
		os.WriteFile(filepath.Join(keep, name+".pdf"), data, 0o600)
	}
}

// fillPixels marks the pixels of a picture of a page that a box in default user space touches, and those beside them.
func fillPixels(m *image.Gray, p *page, r bounds, scale float64) {
	media, crop, unit := ordered(p.stamp.MediaBox), ordered(p.stamp.CropBox), p.stamp.UserUnit
	if media[0] == media[2] {
		media = bounds{0, 0, 612, 792}
	}
	if p.stamp.CropBox == [4]float64{} {
		crop = media
	}
	if unit == 0 {
		unit = 1
	}
	crop = crop.cut(media)
	out := nowhere
	w, h := crop[2]-crop[0], crop[3]-crop[1]
	for _, c := range [][2]float64{{r[0], r[1]}, {r[2], r[3]}} {
		x, y := min(max(c[0], -1e6), 1e6)-crop[0], min(max(c[1], -1e6), 1e6)-crop[1]
		switch p.stamp.Rotate {
		case 0:
			out.add(x, h-y)
		case 90:
			out.add(y, x)
		case 180:
			out.add(w-x, y)
		case 270:
			out.add(h-y, w-x)
		}
	}
	pixel := func(v float64, d int) int { return int(math.Floor(min(max(v*unit*scale, -10), 1e5))) + d }
	for y := max(0, pixel(out[1], -1)); y <= min(pixel(out[3], 1), m.Rect.Dy()-1); y++ {
		for x := max(0, pixel(out[0], -1)); x <= min(pixel(out[2], 1), m.Rect.Dx()-1); x++ {
			m.Pix[y*m.Stride+x] = 255
		}
	}
}
