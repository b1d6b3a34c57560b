// Package stamp draws the visible appearance of a PDF signature.
//
// It owns the parameters PdfSignatureTemplateId and PdfSignatureAppearance, the
// layout of the stamp, the fonts and images in it and where it stands on the page.
// What comes out is a Form XObject with the objects it needs, in PDF syntax, and
// the rectangle of the widget; the caller numbers the objects, encrypts them where
// the file is encrypted, and writes them. The package knows nothing of signatures
// and imports none of our rooms. The same request gives the same bytes.
package stamp

import (
	"fmt"
	"time"
)

// Page is what the place of a stamp depends on: entries of the page dictionary,
// inherited values resolved.
type Page struct {
	MediaBox [4]float64 // default user space units; any two opposite corners
	CropBox  [4]float64 // all zero: the page has none and shows its MediaBox
	Rotate   int        // degrees clockwise, a multiple of 90 of either sign; anything else counts as 0
	UserUnit float64    // points in a unit of default user space; below a thousandth it counts as 1

	// Rectangles of the signature fields that the page has already, in default user
	// space. A stamp that was given no place keeps clear of them. May be nil.
	Taken [][4]float64
}

// Field is an existing signature field that the stamp has to fill.
type Field struct {
	Page int        // 0-based
	Rect [4]float64 // default user space, any two opposite corners; an empty one makes the stamp invisible
}

// Request says what to draw.
type Request struct {
	TemplateID int    // PdfSignatureTemplateId: 0 none given, 1 text, 2 logo and text, 3 image
	Appearance []byte // PdfSignatureAppearance, the JSON itself, Base64 removed; nil: none given

	// What the default text says; an empty text or a zero time leaves its line out.
	Signer, Issuer, Serial, Reason, Location string
	NotBefore, NotAfter, Time                time.Time

	Field *Field // the existing field to fill; nil: the place comes from Appearance
	Pages int    // how many pages the document has

	// Opaque forbids transparency, as PDF/A-1 does: an image with an alpha channel
	// is laid upon the background of the stamp, white where it has none.
	Opaque bool
}

// Appearance is a stamp ready to be written.
type Appearance struct {
	Page    int        // 0-based
	Rect    [4]float64 // default user space of that page, lower left and upper right corner; /Rect of the widget
	Objects []Object   // the first is the Form XObject for /AP /N, the rest is what it refers to; nil: nothing to show
}

// Object is an indirect object of a stamp. A reference to another object of the
// same stamp is written {n}, n being its index in Objects: the caller puts "12 0 R"
// in its place. Braces stand nowhere else in Dict. The only strings in it are
// literal ones without escapes, (Adobe) and (Identity); in an encrypted file the
// caller encrypts them, and the streams, as any others.
type Object struct {
	Dict   string // the dictionary in PDF syntax, "<< ... >>", without /Length
	Stream []byte // encoded as /Filter of Dict says; nil: no stream
}

// ParamError says what is wrong with a parameter of the request.
type ParamError struct {
	Parameter string // PdfSignatureTemplateId or PdfSignatureAppearance
	Text      string // with the JSON path: "Rect.BorderWeight: 900, must be from 0 to 100"
}

func (e *ParamError) Error() string { return e.Parameter + ": " + e.Text }

// Render draws the stamp. It calls page at most once, for the page the stamp
// stands on; an error of page is returned as it is, every other one is a
// *ParamError. Objects is nil and Rect empty where nothing is to be shown: the
// request has neither a template nor an appearance, or the rectangle is empty.
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
	if a.Page >= r.Pages || a.Page < 0 {
		return nil, &ParamError{paramAppearance, fmt.Sprintf("Page: is %d, the document has %d", a.Page+1, r.Pages)}
	}
	d := &drawing{request: r, settings: s, template: template}
	if err := d.prepare(); err != nil {
		return nil, err
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
		user = corners(r.Field.Rect) // as it stands in the file, to the last digit
	}
	a.Rect = [4]float64{user.x0, user.y0, user.x1, user.y1}
	a.Objects = d.draw(place.width(), place.height(), on)
	return a, nil
}

// settle reads the parameters and finds the template they ask for, 0 for none. The
// two places that name it must agree; where neither does, the images tell.
func settle(r *Request) (*settings, int, *ParamError) {
	if r.TemplateID != 0 && (r.TemplateID < templateText || r.TemplateID > templateImage) {
		return nil, 0, &ParamError{paramTemplate, fmt.Sprintf("is %d; 1 (text), 2 (logo and text) or 3 (image) expected", r.TemplateID)}
	}
	if len(r.Appearance) == 0 {
		return &settings{box: box{weight: defaultWeight, margin: defaultMargin}}, r.TemplateID, nil
	}
	s, err := readSettings(r.Appearance)
	if err != nil {
		return nil, 0, err
	}
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
