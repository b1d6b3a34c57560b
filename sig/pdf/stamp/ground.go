// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"cmp"
	"math"
)

// Ground is what a page paints, as far as the place of a stamp depends on it: a grid of cells that have ink or not.
// Its memory does not grow with what the page paints.
type Ground struct {
	on     sheet
	cell   float64 // length of the side of a cell, in points
	nx, ny int
	cells  []int32 // at first differences, then sums; (nx+1) by (ny+1)
	words  []rect
	full   bool
	steps  int64
}

const (
	// cellsAcross is the number of cells along the longer side of a page, at most.
	cellsAcross = 640
	// finest is the smallest side of a cell, in points.
	finest = 0.75
	// maxWords is how many occurrences of a word on a page are tried.
	maxWords = 32
)

// groundSize is the memory of a ground, in bytes.
const groundSize = 4 * (cellsAcross + 2) * (cellsAcross + 2)

func newGround(on sheet) *Ground {
	g := &Ground{on: on, cell: max(finest, max(on.width, on.height)/cellsAcross)}
	count := func(length float64) int { return min(max(int(math.Ceil(length/g.cell)), 1), cellsAcross+1) }
	g.nx, g.ny = count(on.width), count(on.height)
	g.cells = make([]int32, (g.nx+1)*(g.ny+1))
	return g
}

// Ink says that something is painted inside of a rectangle, in default user space. If a coordinate is not a number, it
// may be anywhere.
func (g *Ground) Ink(r [4]float64) {
	for i, v := range r {
		if math.IsNaN(v) {
			g.full = true
			return
		}
		r[i] = min(max(v, -1e8), 1e8)
	}
	g.ink(g.on.shown(corners(r)))
}

// ink takes a rectangle of the shown page.
func (g *Ground) ink(r rect) {
	if r.x1 < 0 || r.y1 < 0 || r.x0 > g.on.width || r.y0 > g.on.height {
		return
	}
	index := func(v float64, n int) int { return min(max(int(v/g.cell), 0), n-1) }
	x0, x1, y0, y1 := index(r.x0, g.nx), index(r.x1, g.nx)+1, index(r.y0, g.ny), index(r.y1, g.ny)+1
	w := g.nx + 1
	g.cells[y0*w+x0]++
	g.cells[y0*w+x1]--
	g.cells[y1*w+x0]--
	g.cells[y1*w+x1]++
}

// Fill says that ink may be anywhere on the page.
func (g *Ground) Fill() { g.full = true }

// Word says that the word of the request is in a rectangle, in default user space.
func (g *Ground) Word(r [4]float64) {
	if c := corners(r); !c.empty() && len(g.words) < maxWords {
		g.words = append(g.words, g.on.shown(c))
	}
}

// settle turns differences into the number of cells with ink below and to the left of each corner.
func (g *Ground) settle() {
	w := g.nx + 1
	for y := range g.ny + 1 {
		row := int32(0)
		for x := range w {
			i := y*w + x
			row += g.cells[i] // of this row
			g.cells[i] = row
			if y > 0 {
				g.cells[i] += g.cells[i-w]
			}
		}
	}
	// A cell now has the number of rectangles over it. Sums of cells with ink follow.
	above := make([]int32, w)
	for y := range g.ny + 1 {
		row := int32(0) // cells with ink to the left
		for x := range w {
			i := y*w + x
			here := g.cells[i]
			g.cells[i] = above[x]
			above[x] += row
			if x < g.nx && y < g.ny && here > 0 {
				row++
			}
		}
	}
}

// clear reports whether the cells of a rectangle have no ink.
func (g *Ground) clear(x0, y0, x1, y1 int) bool {
	w := g.nx + 1
	return g.cells[y1*w+x1]-g.cells[y1*w+x0]-g.cells[y0*w+x1]+g.cells[y0*w+x0] == 0
}

// candidates calls try for each place of a box of the size, whose surroundings have no ink, from the bottom up and from the
// right to the left, or from the top left. It ends when try returns false.
func (g *Ground) candidates(width, height, around float64, fromTop bool, try func(r rect) bool) {
	if g.full {
		return
	}
	side := func(length, size float64) (from, to, cells int) {
		cells = int(math.Ceil((size + 2*around) / g.cell))
		margin := max(0, min(edge, (length-size)/2)-around)
		from = int(math.Ceil(margin / g.cell))
		return from, int(math.Floor((length-margin)/g.cell)) - cells, cells
	}
	left, right, cw := side(g.on.width, width)
	bottom, top, ch := side(g.on.height, height)
	right, top = min(right, g.nx-cw), min(top, g.ny-ch)
	for j := range top - bottom + 1 {
		for i := range right - left + 1 {
			x, y := right-i, bottom+j
			if fromTop {
				x, y = left+i, top-j
			}
			if g.steps++; !g.clear(x, y, x+cw, y+ch) {
				continue
			}
			x0, y0 := float64(x)*g.cell+around, float64(y)*g.cell+around
			if !try(rect{x0, y0, x0 + width, y0 + height}) {
				return
			}
		}
	}
}

// free returns the first place for a box.
func (g *Ground) free(width, height float64, fromTop bool) (found rect, ok bool) {
	g.candidates(width, height, gap, fromTop, func(r rect) bool {
		found, ok = r, true
		return false
	})
	return found, ok
}

// How far from a word a stamp may be, and its distance from the ink around it, in points.
const (
	besideMost = 120
	besideGap  = 3
)

// beside returns the place of a box that is nearest to one of the words, the last word first.
func (g *Ground) beside(width, height float64) (found rect, ok bool) {
	for i := len(g.words) - 1; i >= 0; i-- {
		word, least := g.words[i], float64(besideMost)
		g.candidates(width, height, besideGap, false, func(r rect) bool {
			dx, dy := max(0, r.x0-word.x1, word.x0-r.x1), max(0, r.y0-word.y1, word.y0-r.y1)
			// To the right and on one line with the word, then below, above and to the left.
			cost := math.Hypot(dx, dy) + math.Abs(r.y0+r.y1-word.y0-word.y1)/16
			switch {
			case r.x1 < word.x0:
				cost += 8
			case r.y0 > word.y1:
				cost += 4
			}
			if dy > 0 {
				cost += math.Abs(r.x0-word.x0) / 16
			}
			if cost < least {
				found, least, ok = r, cost, true
			}
			return true
		})
		if ok {
			return found, true
		}
	}
	return found, false
}

// place is the result of a search.
type place struct {
	page          int
	at            rect
	on            sheet
	width, height float64
}

// sizes are the sizes in which a stamp without a given place is tried on a page, as parts of the ordinary one.
var sizes = []float64{1, 0.85, 0.7}

// search finds the place of a stamp on the pages of the document, the last one first. found is false if there is no
// place on any.
func (d *drawing) search(page func(n int) (Page, error)) (p place, found bool, err error) {
	r, s := d.request, d.settings
	first, last := 0, r.Pages-1
	if s.page > 0 {
		first, last = s.page-1, s.page-1
	}
	b := r.Spending
	if err := b.Hold(groundSize); err != nil {
		return p, false, err
	}
	defer b.Release(groundSize)
	for n := last; n >= first; n-- {
		see, more, err := d.ground(n, page)
		if err != nil {
			return p, false, err
		}
		width, height := d.natural(max(see.on.width-2*edge, see.on.width/2))
		if f := cmp.Or(s.form, full); d.marked && width < 0.5*f.width*millimetre {
			continue // a page of a label
		}
		for _, scale := range sizes {
			w, h := width*scale, height*scale
			if s.beside != "" {
				if at, ok := see.beside(w, h); ok {
					return place{n, at, see.on, w, h}, true, nil
				}
			}
			if found {
				continue
			}
			if at, ok := see.free(w, h, see.on.listed); ok {
				p, found = place{n, at, see.on, w, h}, true
			}
		}
		if err := b.Spend(see.steps/8 + int64(len(see.cells))/4); err != nil {
			return p, false, err
		}
		if !more || found && s.beside == "" {
			break
		}
	}
	return p, found, nil
}

// ground returns what a page paints. more reports whether other pages may be asked for.
func (d *drawing) ground(n int, page func(n int) (Page, error)) (g *Ground, more bool, err error) {
	p, err := page(n)
	if err != nil {
		return nil, false, err
	}
	g = newGround(see(p))
	if _, agreed := p.shown(); d.request.Ink == nil || !agreed {
		g.Fill()
		more = d.request.Ink != nil
	} else if more, err = d.request.Ink(n, d.settings.beside, g); err != nil {
		return nil, false, err
	}
	g.reserve()
	for _, t := range p.Taken {
		g.Ink(t)
	}
	g.settle()
	return g, more, nil
}
