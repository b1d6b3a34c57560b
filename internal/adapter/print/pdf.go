// SPDX-License-Identifier: Apache-2.0

package print

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"

	"codeberg.org/go-pdf/fpdf"
	"github.com/go-fonts/liberation/liberationmonobold"
	"github.com/go-fonts/liberation/liberationsansbold"
	"github.com/go-fonts/liberation/liberationsansregular"

	"tamga/internal/domain/fault"
	"tamga/sig/pdf/stamp"
)

// Fonts of the PDF form. The file includes only the characters that it uses.
const (
	sans = "sans"
	mono = "mono" // similar letters, digits and strokes look different in it
)

// Measures of the sheet, in millimetres.
const (
	margin = 20.0
	inset  = 6.0 // inside a frame
)

// renderPDF draws the form on A4. Equal forms give equal bytes.
func renderPDF(p *page) ([]byte, error) {
	if r, ok := lacks(p.form.Login); ok {
		return nil, fault.Newf(fault.WrongOperation, "the fonts of the PDF form do not have the character U+%04X of the login; request the form as Html or Word", r)
	}
	return drawPDF(p.Language, p.Title, p.form.At, p.Blocks)
}

func drawPDF(language, title string, at time.Time, blocks []filled) ([]byte, error) {
	f := newSheet(language, title, at)
	for _, b := range blocks {
		switch b.Kind {
		case "title":
			f.SetFont(sans, "B", 20)
			f.MultiCell(0, 9, shown(b.Text), "", "L", false)
			f.Ln(5)
		case "text":
			f.SetFont(sans, "", 11)
			f.MultiCell(0, 5.5, shown(b.Text), "", "L", false)
			f.Ln(4)
		default:
			drawField(f, b)
		}
	}
	var out bytes.Buffer
	if err := f.Output(&out); err != nil {
		return nil, fmt.Errorf("print: pdf: %w", err)
	}
	return out.Bytes(), nil
}

// newSheet begins a document on A4. Equal documents give equal bytes.
func newSheet(language, title string, at time.Time) *fpdf.Fpdf {
	f := fpdf.New("P", "mm", "A4", "")
	f.AddUTF8FontFromBytes(sans, "", liberationsansregular.TTF)
	f.AddUTF8FontFromBytes(sans, "B", liberationsansbold.TTF)
	f.AddUTF8FontFromBytes(mono, "B", liberationmonobold.TTF)
	f.SetCatalogSort(true)
	f.SetCreationDate(at.UTC())
	f.SetModificationDate(at.UTC())
	f.SetProducer("Tamga", true)
	f.SetTitle(shown(title), true)
	f.SetLang(language)
	f.SetMargins(margin, margin, margin)
	f.SetAutoPageBreak(true, margin)
	f.AddPage()
	return f
}

// drawField draws a label and a value in a frame. If the page has too little space, the whole frame
// goes to the next page.
func drawField(f *fpdf.Fpdf, b filled) {
	pageWidth, pageHeight := f.GetPageSize()
	width := pageWidth - 2*margin - 2*inset
	family, style, size, line := sans, "", 13.0, 6.5
	if b.Kind == "secret" {
		family, style, size, line = mono, "B", 17, 8.5
	}
	f.SetFont(family, style, size)
	lines := len(f.SplitText(shown(b.Text), width-2))
	height := 3 + 5 + float64(lines)*line + 3
	if f.GetY()+height > pageHeight-margin {
		f.AddPage()
	}
	top := f.GetY()
	f.SetDrawColor(0x99, 0x99, 0x99)
	f.Rect(margin, top, pageWidth-2*margin, height, "D")
	f.SetXY(margin+inset, top+3)
	f.SetTextColor(0x55, 0x55, 0x55)
	f.SetFont(sans, "", 9)
	f.CellFormat(width, 5, shown(b.Label), "", 2, "L", false, 0, "")
	f.SetTextColor(0, 0, 0)
	f.SetFont(family, style, size)
	f.SetLeftMargin(margin + inset)
	f.MultiCell(width, line, shown(b.Text), "", "L", false)
	f.SetLeftMargin(margin)
	f.SetXY(margin, top+height+4)
}

// missing replaces a character that the fonts do not have, and one that only changes how others
// look, such as a change of direction.
const missing = '□'

// shown returns s with missing in place of such characters.
func shown(s string) string {
	return strings.Map(func(r rune) rune {
		if !covered()[r] || unicode.Is(unicode.Cf, r) {
			return missing
		}
		return r
	}, s)
}

// lacks returns the first character that the fonts do not have.
func lacks(s string) (rune, bool) {
	for _, r := range s {
		if !covered()[r] {
			return r, true
		}
	}
	return 0, false
}

// covered returns the characters that every font of the form has.
var covered = sync.OnceValue(func() map[rune]bool {
	count := map[rune]int{}
	fonts := [][]byte{liberationsansregular.TTF, liberationsansbold.TTF, liberationmonobold.TTF}
	for _, font := range fonts {
		for r := range stamp.Characters(font) {
			count[r]++
		}
	}
	all := map[rune]bool{}
	for r, n := range count {
		all[r] = n == len(fonts)
	}
	return all
})
