// SPDX-License-Identifier: Apache-2.0

package print

import (
	"bytes"
	"fmt"
	"time"

	"codeberg.org/go-pdf/fpdf"
)

// Line is a part of a document for people. The kinds:
//
//   - "title", "heading", "note": the text;
//   - "verdict": a sentence in Label and what it means in Text, in a frame of the colour of Tone;
//   - "fact": a label and a value beside it;
//   - "check": what was checked in Label and its result in Text, in the colour of Tone;
//   - "picture": a square PNG with the text beside it.
//
// Tone is good, bad or warn.
type Line struct {
	Kind, Label, Text string
	Tone              string
	Picture           []byte
}

// Measures of a document, in millimetres.
const (
	labels  = 52.0 // width of the labels of facts
	results = 70.0 // width of the results of checks
	square  = 32.0 // side of a picture
)

// tones have the colour of each tone. The words say the same.
var tones = map[string]struct{ r, g, b int }{
	"good": {0x0b, 0x62, 0x36}, "bad": {0xa1, 0x16, 0x20}, "warn": {0x7a, 0x4a, 0x00},
}

// PDF returns a document with a title that it has in its properties, too. Characters that the fonts do not have are shown
// as boxes.
func PDF(language, title string, at time.Time, lines []Line) ([]byte, error) {
	f := newSheet(language, title, at)
	for i, l := range lines {
		switch l.Kind {
		case "title":
			f.SetFont(sans, "B", 16)
			f.MultiCell(0, 7.5, shown(l.Text), "", "L", false)
			f.Ln(1)
		case "heading":
			f.Ln(2.5)
			keep(f, 20) // with its first line
			f.SetFont(sans, "B", 11.5)
			f.MultiCell(0, 6, shown(l.Text), "", "L", false)
			f.Ln(0.5)
		case "note":
			f.SetFont(sans, "", 10)
			f.SetTextColor(0x46, 0x52, 0x68)
			f.MultiCell(0, 5, shown(l.Text), "", "L", false)
			f.SetTextColor(0, 0, 0)
			f.Ln(2)
		case "verdict":
			drawVerdict(f, l)
		case "fact":
			drawRow(f, labels, l.Label, l.Text, "")
		case "check":
			drawRow(f, widthOf(f)-results, l.Label, l.Text, l.Tone)
		case "picture":
			if err := drawPicture(f, i, l); err != nil {
				return nil, err
			}
		}
	}
	var out bytes.Buffer
	if err := f.Output(&out); err != nil {
		return nil, fmt.Errorf("print: pdf: %w", err)
	}
	return out.Bytes(), nil
}

// keep begins a page unless this one has a height left.
func keep(f *fpdf.Fpdf, height float64) {
	if _, page := f.GetPageSize(); f.GetY()+height > page-margin {
		f.AddPage()
	}
}

func widthOf(f *fpdf.Fpdf) float64 {
	width, _ := f.GetPageSize()
	return width - 2*margin
}

func drawVerdict(f *fpdf.Fpdf, l Line) {
	width := widthOf(f)
	f.SetFont(sans, "B", 14)
	head := len(f.SplitText(shown(l.Label), width-2*inset-2))
	f.SetFont(sans, "", 10.5)
	body := 0
	if l.Text != "" {
		body = len(f.SplitText(shown(l.Text), width-2*inset-2))
	}
	height := 8 + float64(head)*6.5 + float64(body)*5
	keep(f, height)
	tone, top := tones[l.Tone], f.GetY()
	f.SetDrawColor(tone.r, tone.g, tone.b)
	f.SetLineWidth(0.6)
	f.Rect(margin, top, width, height, "D")
	f.SetLineWidth(0.2)
	f.SetXY(margin+inset, top+4)
	f.SetLeftMargin(margin + inset)
	f.SetFont(sans, "B", 14)
	f.SetTextColor(tone.r, tone.g, tone.b)
	f.MultiCell(width-2*inset, 6.5, shown(l.Label), "", "L", false)
	f.SetTextColor(0, 0, 0)
	f.SetFont(sans, "", 10.5)
	if body > 0 {
		f.MultiCell(width-2*inset, 5, shown(l.Text), "", "L", false)
	}
	f.SetLeftMargin(margin)
	f.SetXY(margin, top+height+3)
}

// drawRow draws a label in a column of a width, and a text beside it. A text too long for a page goes on at the next.
func drawRow(f *fpdf.Fpdf, column float64, label, text, tone string) {
	const line = 4.8
	width := widthOf(f)
	f.SetFont(sans, "", 9.5)
	left, right := f.SplitText(shown(label), column-4), f.SplitText(shown(text), width-column-2)
	rows := max(len(left), len(right))
	keep(f, min(float64(rows)*line+2, 60))
	f.SetDrawColor(0xcf, 0xd6, 0xe1)
	f.Line(margin, f.GetY(), margin+width, f.GetY())
	f.SetY(f.GetY() + 0.8)
	for i := range rows {
		keep(f, line)
		f.SetTextColor(0x46, 0x52, 0x68)
		if i < len(left) {
			f.CellFormat(column, line, left[i], "", 0, "L", false, 0, "")
		} else {
			f.SetX(margin + column)
		}
		f.SetTextColor(0, 0, 0)
		if of, has := tones[tone]; has {
			f.SetTextColor(of.r, of.g, of.b)
		}
		if i < len(right) {
			f.CellFormat(width-column, line, right[i], "", 0, "L", false, 0, "")
		}
		f.Ln(line)
	}
	f.SetTextColor(0, 0, 0)
	f.SetY(f.GetY() + 0.8)
}

func drawPicture(f *fpdf.Fpdf, number int, l Line) error {
	f.Ln(3)
	keep(f, square+2)
	top, name := f.GetY(), fmt.Sprintf("picture %d", number)
	options := fpdf.ImageOptions{ImageType: "PNG"}
	f.RegisterImageOptionsReader(name, options, bytes.NewReader(l.Picture))
	f.ImageOptions(name, margin+widthOf(f)-square, top, square, square, false, options, 0, "")
	if err := f.Error(); err != nil {
		return fmt.Errorf("print: picture: %w", err)
	}
	f.SetFont(sans, "", 9.5)
	f.SetXY(margin, top+3)
	f.MultiCell(widthOf(f)-square-inset, 4.8, shown(l.Text), "", "L", false)
	f.SetXY(margin, max(f.GetY(), top+square+2))
	return nil
}
