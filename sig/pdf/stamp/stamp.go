// SPDX-License-Identifier: Apache-2.0

// Package stamp draws the visible appearance of a PDF signature.
//
// Begin with Render. The package reads the parameters PdfSignatureTemplateId and
// PdfSignatureAppearance and determines the layout of the stamp, its fonts and images,
// and its place on the page. The result is a Form XObject with the objects it needs, in
// PDF syntax, and the rectangle of the widget. The caller numbers the objects, encrypts
// them if the file is encrypted, and writes them. The package does not know about
// signatures and imports no other package of this module. The same request gives the same
// bytes.
package stamp

import (
	"encoding/base64"
	"fmt"
	"time"

	"tamga/sig/budget"
)

// Page is the data that the place of a stamp depends on: entries of the page dictionary,
// with inherited values resolved.
type Page struct {
	MediaBox [4]float64 // default user space units; any two opposite corners
	CropBox  [4]float64 // all zero: the page has none and shows its MediaBox
	Rotate   int        // degrees clockwise, a multiple of 90, also negative; anything else counts as 0
	UserUnit float64    // points in a unit of default user space; below a thousandth it counts as 1

	// Taken are the rectangles of the existing signature fields of the page, in default
	// user space. A stamp without a given place avoids them. May be nil.
	Taken [][4]float64

	// Signatures reports that the page is a sheet of signatures that was added for stamps.
	Signatures bool
}

// Field is an existing signature field that the stamp must fill.
type Field struct {
	Page int        // 0-based
	Rect [4]float64 // default user space, any two opposite corners; an empty one makes the stamp invisible
}

// Request is the description of a stamp.
type Request struct {
	TemplateID int    // PdfSignatureTemplateId: 0 not given, 1 text, 2 logo and text, 3 image
	Appearance []byte // PdfSignatureAppearance, the decoded JSON; nil: not given

	// Values of a mark, which is drawn if the request has no text of its own. An empty text or a zero time omits its
	// line. Position is that of the signer, and shown if the request asks for it.
	Signer, Position, Serial, Reason, Location string
	NotBefore, NotAfter, Time                  time.Time

	// Logo is the logo or the arms on a mark of a request without an image, as Base64 that [CheckLogo] accepts. Empty: none.
	Logo string

	Field *Field // the existing field to fill; nil: the place comes from Appearance
	Pages int    // number of pages of the document

	// Ink says what a page paints, for a stamp whose place is searched for, and where the word is, unless word is
	// empty. It returns whether it can say that of more pages. nil: pages have no free place.
	Ink func(n int, word string, g *Ground) (more bool, err error)
	// Digest returns the digest of the document as text, for an added page. nil: the page does not name it.
	Digest func() (string, error)
	// Extend reports that a page may be added for a stamp that has no place on another.
	Extend bool

	// Opaque forbids transparency, as PDF/A-1 does: an image with an alpha channel is
	// drawn over the background of the stamp, or over white if it has none.
	Opaque bool

	Spending *budget.Budget // of the document; nil: no limits
}

// Appearance is a stamp ready to be written.
type Appearance struct {
	Page    int        // 0-based; the number of pages if the page is to be added
	Added   *Page      // the page to add; nil: none
	Sheet   []Object   // the content of that page, a Form XObject of its size and what it refers to
	Rect    [4]float64 // default user space of that page, lower left and upper right corners; /Rect of the widget
	Scale   float64    // of the form in default user space, which content without a widget needs
	Objects []Object   // the first is the Form XObject for /AP /N, the others are those that it refers to; nil: nothing to show
}

// CheckLogo checks an image for marks and returns it as [Request.Logo].
func CheckLogo(image []byte) (string, error) {
	_, err := convert(image, ground{colour: white}, nil)
	return base64.StdEncoding.EncodeToString(image), err
}

// Object is an indirect object of a stamp. A reference to another object of the same
// stamp is written {n}, where n is its index in Objects: the caller replaces it by a
// reference such as "12 0 R". Dict has no other braces. The only strings in it are
// literal ones without escapes, (Adobe) and (Identity). In an encrypted file the caller
// encrypts them and the streams like all others.
type Object struct {
	Dict   string // the dictionary in PDF syntax, "<< ... >>", without /Length
	Stream []byte // encoded as /Filter of Dict says; nil: no stream
}

// ParamError is an error in a parameter of the request.
type ParamError struct {
	Parameter string // PdfSignatureTemplateId or PdfSignatureAppearance
	Text      string // with the JSON path: "Rect.BorderWeight: is 900; must be from 0 to 100"
}

func (e *ParamError) Error() string { return e.Parameter + ": " + e.Text }

// Render draws the stamp. It calls page at most once, for the page with the stamp, unless the place is searched for. It
// returns errors of page, of Ink and of the budget unchanged; every other error is a *ParamError.
// Objects is nil and Rect empty if there is nothing to show: the request has neither a
// template nor an appearance, or the rectangle is empty.
func Render(r *Request, page func(n int) (Page, error)) (*Appearance, error) {
	s, template, err := settle(r)
	if err != nil {
		return nil, err
	}
	a := &Appearance{}
	if r.Field != nil {
		a.Page = r.Field.Page
	} else if s.page > 0 {
		a.Page = s.page - 1
	}
	if template == 0 || r.Field != nil && corners(r.Field.Rect).empty() {
		return a, nil
	}
	if s.auto && r.Field == nil && s.page == 0 {
		a.Page = max(0, r.Pages-1)
	}
	if a.Page >= r.Pages || a.Page < 0 {
		return nil, &ParamError{paramAppearance, fmt.Sprintf("Page: is %d, but the document has %d pages", a.Page+1, r.Pages)}
	}
	d := &drawing{request: r, settings: s, template: template}
	if err := d.prepare(); err != nil {
		return nil, err
	}
	if s.auto && r.Field == nil {
		return a, d.anywhere(a, page)
	}
	p, pageErr := page(a.Page)
	if pageErr != nil {
		return nil, pageErr
	}
	on := see(p)
	place, err := d.place(on)
	if err != nil {
		return nil, err
	}
	if place.empty() {
		return a, nil
	}
	user := on.user(place)
	if r.Field != nil {
		user = corners(r.Field.Rect) // exactly as in the file
	}
	a.Rect, a.Scale = [4]float64{user.x0, user.y0, user.x1, user.y1}, 1/on.unit
	a.Objects = d.draw(place.width(), place.height(), on)
	return a, nil
}

// anywhere searches for the place of the stamp and draws it there, or on an added page.
func (d *drawing) anywhere(a *Appearance, page func(n int) (Page, error)) error {
	p, found, err := d.search(page)
	if err != nil {
		return err
	}
	if !found {
		if !d.request.Extend {
			return &ParamError{paramAppearance, "Place: no page has a free place for the stamp, and an earlier signature forbids an added page; give the place in Rect"}
		}
		added := sheetOfSignatures
		a.Added, p.page, p.on = &added, d.request.Pages, see(added)
		p.width, p.height = d.natural(p.on.width - 2*edge)
		heading, g, err := d.listing(p.on)
		if err != nil {
			return err
		}
		a.Sheet = heading.objects("")
		if p.at, found = g.free(p.width, p.height, true); !found {
			return &ParamError{paramAppearance, "Place: the stamp is larger than a page"}
		}
	}
	user := p.on.user(p.at)
	a.Page, a.Rect, a.Scale = p.page, [4]float64{user.x0, user.y0, user.x1, user.y1}, 1/p.on.unit
	a.Objects = d.draw(p.width, p.height, p.on)
	return nil
}

// Preview returns the stamp of a request as an SVG document, in the size that a stamp without a place has. Request.Field is not used. The document is nil if there is nothing to show.
func Preview(r *Request) ([]byte, error) {
	s, template, err := settle(r)
	if err != nil {
		return nil, err
	}
	if template == 0 {
		return nil, nil
	}
	d := &drawing{request: r, settings: s, template: template}
	if err := d.prepare(); err != nil {
		return nil, err
	}
	width, height := d.natural(letter.width())
	return d.scene(min(width, maxLength), min(height, maxLength)).svg(), nil
}

// useLogo gives a mark without an image the one of the installation.
func (s *settings) useLogo(r *Request) {
	if r.Logo != "" && s.icon == nil && s.back == nil && s.content == nil && r.TemplateID != templateImage && s.template != templateImage {
		s.icon = &picture{path: "Logo", image: r.Logo, scale: defaultScale}
	}
}

// settle reads the parameters and returns the template that they select, 0 for none. If
// both parameters name a template, they must agree. If neither does, the images decide.
func settle(r *Request) (*settings, int, *ParamError) {
	if r.TemplateID != 0 && (r.TemplateID < templateText || r.TemplateID > templateImage) {
		return nil, 0, &ParamError{paramTemplate, fmt.Sprintf("is %d; 1 (text), 2 (logo and text) or 3 (image) expected", r.TemplateID)}
	}
	if len(r.Appearance) == 0 {
		s := &settings{box: box{weight: defaultWeight, margin: defaultMargin}}
		s.useLogo(r)
		return s, r.TemplateID, nil
	}
	s, err := readSettings(r.Appearance)
	if err != nil {
		return nil, 0, err
	}
	s.useLogo(r)
	switch {
	case r.TemplateID == 0 && s.template != 0:
		return s, s.template, nil
	case r.TemplateID != 0:
		if s.template != 0 && s.template != r.TemplateID {
			return nil, 0, &ParamError{paramAppearance, fmt.Sprintf("TemplateId: is %d, but %s is %d; leave one out", s.template, paramTemplate, r.TemplateID)}
		}
		return s, r.TemplateID, nil
	case s.back != nil:
		return s, templateImage, nil
	case s.icon != nil:
		return s, templateLogo, nil
	}
	return s, templateText, nil
}
