// SPDX-License-Identifier: Apache-2.0

package stamp

import "tamga/sig/budget"

// EntryKind is the kind of a part of printed pages.
type EntryKind uint8

// The kinds of entries.
const (
	Title   EntryKind = iota // Text in large letters
	Heading                  // Text; it stays with what follows
	Note                     // Text
	Fact                     // Label with Text beside it
	Drawn                    // the mark of Mark
	Code                     // the square image Picture with Text beside it
)

// Entry is a part of printed pages.
type Entry struct {
	Kind        EntryKind
	Label, Text string
	Mark        *Request
	Picture     []byte // PNG
}

// Printed is a page of the size [PrintedBox]: forms, each at a place of its lower left corner in points.
type Printed struct{ Forms []Form }

// Form is a Form XObject and the objects that it refers to, as in [Appearance].
type Form struct {
	Objects []Object
	X, Y    float64
}

// Size returns the size of the forms in bytes.
func (p Printed) Size() (n int64) {
	for _, f := range p.Forms {
		for _, o := range f.Objects {
			n += int64(len(o.Dict) + len(o.Stream))
		}
	}
	return n
}

// PrintedBox is the MediaBox of printed pages: A4.
var PrintedBox = [4]float64{0, 0, 595.28, 841.89}

// Measures of printed pages, in points.
const (
	printedEdge  = 56
	printedLabel = 160 // width of the labels of facts
	printedCode  = 92  // side of a picture
	printedLines = 1.4 // leading
	footerAt     = 30  // base line of the foot
	footerSize   = 8
)

// maxPrinted bounds the pages of one call. A card has at most 100 signatures.
const maxPrinted = 256

// Print lays entries out on pages. foot returns the text at the foot of page n of all, counted from 1.
func Print(entries []Entry, foot func(n, all int) string, b *budget.Budget) ([]Printed, error) {
	p := &printer{on: see(Page{MediaBox: PrintedBox}), spending: b}
	p.width, p.height = p.on.width-2*printedEdge, p.on.height-2*printedEdge
	p.turn()
	for i := range entries {
		if err := p.add(&entries[i]); err != nil {
			return nil, err
		}
		if len(p.text) > maxPrinted {
			return nil, &ParamError{paramAppearance, "the text has more pages than a document may have"}
		}
	}
	out := make([]Printed, len(p.text))
	for i, s := range p.text {
		style := style{face: faceOf(sans, false, false), size: footerSize, colour: pale}
		line := oneLine(foot(i+1, len(p.text)))
		s.text = append(s.text, piece{x: printedEdge, y: footerAt, text: visual(line), style: style})
		out[i].Forms = append(p.forms[i], Form{Objects: s.objects("")})
	}
	return out, nil
}

// printer lays out pages. Lengths are from the upper left corner of what is inside of the edges.
type printer struct {
	on            sheet
	width, height float64
	text          []*scene // of each page
	forms         [][]Form
	y             float64
	spending      *budget.Budget
}

// turn begins a page.
func (p *printer) turn() {
	p.text = append(p.text, &scene{width: p.on.width, height: p.on.height})
	p.forms, p.y = append(p.forms, nil), 0
}

// keep begins a page unless this one has a height left.
func (p *printer) keep(height float64) {
	if p.y > 0 && p.y+height > p.height {
		p.turn()
	}
}

// place adds a form of a height below what is there.
func (p *printer) place(objects []Object, height float64) {
	i := len(p.forms) - 1
	p.forms[i] = append(p.forms[i], Form{Objects: objects, X: printedEdge, Y: p.on.height - printedEdge - p.y - height})
}

// paragraph adds text, which may go on on further pages. It begins left of the edge.
func (p *printer) paragraph(text paragraph, left float64) {
	above := text.above
	text.above = 0
	if p.y > 0 {
		p.y += above
	}
	s := text.style
	for _, ln := range arrange([]paragraph{text}, p.width-left, 1, printedLines).lines {
		p.keep(ln.height)
		base := p.on.height - printedEdge - p.y - (ln.base - ln.top)
		page := p.text[len(p.text)-1]
		for _, one := range ln.pieces {
			one.x, one.y = printedEdge+left+one.x, base
			page.text = append(page.text, one)
		}
		p.y += max(ln.height, s.size)
	}
}

func (p *printer) add(e *Entry) error {
	plain := style{face: faceOf(sans, false, false), size: 9.5, colour: dark}
	bold := plain
	bold.face = faceOf(sans, true, false)
	quiet := plain
	quiet.colour = pale
	switch e.Kind {
	case Title:
		bold.size, bold.colour = 16, ink
		p.paragraph(paragraph{text: oneLine(e.Text), style: bold}, 0)
	case Heading:
		p.keep(90)
		bold.size = 11.5
		p.paragraph(paragraph{text: oneLine(e.Text), style: bold, above: 12}, 0)
	case Note:
		p.paragraph(paragraph{text: oneLine(e.Text), style: quiet, above: 4}, 0)
	case Fact:
		p.paragraph(paragraph{label: oneLine(e.Label), labelStyle: quiet, tab: printedLabel, text: oneLine(e.Text), style: plain, above: 3}, 0)
	case Drawn:
		s, template, fault := settle(e.Mark)
		if fault != nil {
			return fault
		}
		if template == 0 {
			template = templateText
		}
		d := &drawing{request: e.Mark, settings: s, template: template}
		if err := d.prepare(); err != nil {
			return err
		}
		width, height := d.natural(p.width)
		p.y += 6
		p.keep(height)
		p.place(d.scene(width, height).objects(""), height)
		p.y += height + 4
	case Code:
		g, err := convert(e.Picture, ground{opaque: true, colour: white}, p.spending)
		if err != nil {
			return err
		}
		p.y += 10
		p.keep(printedCode)
		s := &scene{width: printedCode, height: printedCode}
		at := rect{0, 0, printedCode, printedCode}
		s.image(g, at, at)
		p.place(s.objects(""), printedCode)
		top := p.y
		p.paragraph(paragraph{text: oneLine(e.Text), style: quiet}, printedCode+12)
		p.y = max(p.y, top+printedCode)
	}
	return nil
}

// PrintImage returns a page with an image, as large as its edges allow and no larger than it is at 96 pixels per inch. It
// returns false for what is no image that can be shown. The caller has charged the image twice: a JPEG is copied without
// its metadata.
func PrintImage(image []byte, b *budget.Budget) (Printed, bool, error) {
	g, err := convert(image, ground{colour: white}, b)
	if err != nil {
		return Printed{}, false, b.Err()
	}
	on := see(Page{MediaBox: PrintedBox})
	w, h := g.size()
	scale := min(0.75, (on.width-2*printedEdge)/w, (on.height-2*printedEdge-4*heading)/h)
	w, h = w*scale, h*scale
	s := &scene{width: w, height: h}
	at := rect{0, 0, w, h}
	s.image(g, at, at)
	return Printed{Forms: []Form{{Objects: s.objects(""), X: (on.width - w) / 2, Y: on.height - printedEdge - h}}}, true, nil
}
