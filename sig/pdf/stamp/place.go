// SPDX-License-Identifier: Apache-2.0

package stamp

import "math"

// rect is a rectangle by its lower left and upper right corners.
type rect struct{ x0, y0, x1, y1 float64 }

func (r rect) width() float64  { return r.x1 - r.x0 }
func (r rect) height() float64 { return r.y1 - r.y0 }
func (r rect) empty() bool     { return !(r.x1 > r.x0 && r.y1 > r.y0) }

func (r rect) inset(d float64) rect { return rect{r.x0 + d, r.y0 + d, r.x1 - d, r.y1 - d} }

func (r rect) cut(s rect) rect {
	return rect{max(r.x0, s.x0), max(r.y0, s.y0), min(r.x1, s.x1), min(r.y1, s.y1)}
}

func (r rect) meets(s rect) bool { return !r.cut(s).empty() }

// corners orders two opposite corners. If a coordinate is not finite, the rectangle is
// empty.
func corners(v [4]float64) rect {
	for _, c := range v {
		if math.IsNaN(c) || math.Abs(c) > 1e9 {
			return rect{}
		}
	}
	return rect{min(v[0], v[2]), min(v[1], v[3]), max(v[0], v[2]), max(v[1], v[3])}
}

// sheet is a page as shown: upright, cut to its CropBox, in points, with the origin in
// the lower left corner.
type sheet struct {
	crop          rect // default user space
	turn          int  // quarter turns clockwise by which the page is shown
	unit          float64
	width, height float64 // points, as shown
	taken         []rect  // in the same points, as shown
	listed        bool    // it is a sheet of signatures
}

// letter is the page that viewers assume if a file has no usable box.
var letter = rect{0, 0, 612, 792}

// shown returns the box of a page that is shown: what the CropBox has of the MediaBox (ISO 32000-1, 14.11.2). agreed is false
// if the two do not meet: some programs show all of the MediaBox then, others nothing.
func (p Page) shown() (crop rect, agreed bool) {
	media := corners(p.MediaBox)
	if media.empty() {
		media = letter
	}
	if p.CropBox == ([4]float64{}) {
		return media, true
	}
	crop = corners(p.CropBox)
	if crop.empty() { // as if there were none
		return media, true
	}
	if crop = crop.cut(media); crop.empty() {
		return media, false
	}
	return crop, true
}

// Shown returns the box of the page that is shown, lower left and upper right corners in default user space.
func (p Page) Shown() [4]float64 {
	c, _ := p.shown()
	return [4]float64{c.x0, c.y0, c.x1, c.y1}
}

// see returns how a page is shown (ISO 32000-1, 7.7.3.3 and 14.11.2).
func see(p Page) sheet {
	crop, _ := p.shown()
	s := sheet{crop: crop, unit: p.UserUnit, listed: p.Signatures}
	// Real units are 1 or more. A page of a hundred kilometres is a mistake.
	if !(s.unit >= 1e-3 && max(crop.width(), crop.height())*s.unit < 3e8) {
		s.unit = 1
	}
	if p.Rotate%90 == 0 {
		s.turn = (p.Rotate/90%4 + 4) % 4
	}
	s.width, s.height = crop.width()*s.unit, crop.height()*s.unit
	if s.turn%2 == 1 {
		s.width, s.height = s.height, s.width
	}
	for _, t := range p.Taken {
		if r := corners(t); !r.empty() {
			s.taken = append(s.taken, s.shown(r))
		}
	}
	return s
}

// user converts a rectangle of the shown page to default user space.
func (s sheet) user(r rect) rect {
	x0, y0, x1, y1 := r.x0/s.unit, r.y0/s.unit, r.x1/s.unit, r.y1/s.unit
	c := s.crop
	switch s.turn {
	case 1: // up in user space is shown to the right
		return rect{c.x1 - y1, c.y0 + x0, c.x1 - y0, c.y0 + x1}
	case 2:
		return rect{c.x1 - x1, c.y1 - y1, c.x1 - x0, c.y1 - y0}
	case 3: // up in user space is shown to the left
		return rect{c.x0 + y0, c.y1 - x1, c.x0 + y1, c.y1 - x0}
	}
	return rect{c.x0 + x0, c.y0 + y0, c.x0 + x1, c.y0 + y1}
}

// shown is the inverse of user.
func (s sheet) shown(r rect) rect {
	c := s.crop
	var v rect
	switch s.turn {
	case 1:
		v = rect{r.y0 - c.y0, c.x1 - r.x1, r.y1 - c.y0, c.x1 - r.x0}
	case 2:
		v = rect{c.x1 - r.x1, c.y1 - r.y1, c.x1 - r.x0, c.y1 - r.y0}
	case 3:
		v = rect{c.y1 - r.y1, r.x0 - c.x0, c.y1 - r.y0, r.x1 - c.x0}
	default:
		v = rect{r.x0 - c.x0, r.y0 - c.y0, r.x1 - c.x0, r.y1 - c.y0}
	}
	return rect{v.x0 * s.unit, v.y0 * s.unit, v.x1 * s.unit, v.y1 * s.unit}
}

// matrix returns /Matrix of a form of the given size that must appear upright: it rotates
// the form against the page.
func (s sheet) matrix(width, height float64) string {
	switch s.turn {
	case 1:
		return "0 1 -1 0 " + num(height) + " 0"
	case 2:
		return "-1 0 0 -1 " + num(width) + " " + num(height)
	case 3:
		return "0 -1 1 0 0 " + num(width)
	}
	return ""
}

// fit moves a rectangle onto the page by the shortest distance, and cuts it if it is
// larger than the page. It returns false if the rectangle does not touch the page.
func (s sheet) fit(r rect) (rect, bool) {
	page := rect{0, 0, s.width, s.height}
	if !r.meets(page) {
		return rect{}, false
	}
	slide := func(a, b, most float64) (float64, float64) {
		switch {
		case b-a >= most:
			return 0, most
		case a < 0:
			return 0, b - a
		case b > most:
			return most - (b - a), most
		}
		return a, b
	}
	r.x0, r.x1 = slide(r.x0, r.x1, s.width)
	r.y0, r.y1 = slide(r.y0, r.y1, s.height)
	return r, true
}

// edge is the distance of a stamp without a given place from the edge of the page, gap
// its distance from other stamps.
const (
	edge = 24
	gap  = 6
)

// free returns the place of a stamp without a given place: the lower right corner of the
// page or, if other signatures are there, the next free place to the left and then
// upwards. On a full page it returns the corner.
func (s sheet) free(width, height float64) rect {
	// If the page is too small for the edge around a stamp, the edge shrinks.
	mx := max(0, min(edge, (s.width-width)/2))
	my := max(0, min(edge, (s.height-height)/2))
	corner := rect{s.width - mx - width, my, s.width - mx, my + height}
	const most = 64 // steps in each direction: more than the places on a page, and a limit
	r := corner
	for range most {
		top := 0.0
		for range most {
			hit, x, y := s.hit(r)
			if !hit {
				return r
			}
			if top == 0 || y < top {
				top = y
			}
			r.x1 = x - gap
			r.x0 = r.x1 - width
			if r.x0 < mx {
				break
			}
		}
		r = rect{corner.x0, top + gap, corner.x1, top + gap + height}
		if r.y1 > s.height-my {
			break
		}
	}
	return corner
}

// hit reports whether a taken rectangle is in the way, and returns its left and upper
// edges.
func (s sheet) hit(r rect) (hit bool, left, top float64) {
	for _, t := range s.taken {
		if r.meets(t) {
			return true, t.x0, t.y1
		}
	}
	return false, 0, 0
}
