// SPDX-License-Identifier: Apache-2.0

package pdf

import "math"

// outline is the current path (8.5), in the space of the page.
type outline struct {
	segments []bounds
	subpaths []bounds // whole boxes
	whole    bounds
	x, y     float64 // current point
	sx, sy   float64 // start of the subpath
	begun    bool
	slanted  bool // it has joins that are not right angles
	clips    bool
	held     int64
}

// segment adds a segment with its box.
func (p *painter) segment(b bounds, slanted bool) {
	t := &p.path
	if p.all {
		return
	}
	if !p.file.charge(priceSegment) || len(t.segments) >= maxSegments {
		p.all = true
		return
	}
	if len(t.segments)%1024 == 0 {
		if !p.file.keep(1024 * segmentSize) {
			p.all = true
			return
		}
		t.held += 1024 * segmentSize
	}
	t.segments = append(t.segments, b)
	t.slanted = t.slanted || slanted
	p.extend(b)
}

// extend adds a box to the path and to its last subpath.
func (p *painter) extend(b bounds) {
	t := &p.path
	last := &t.subpaths[len(t.subpaths)-1]
	last.add(b[0], b[1])
	last.add(b[2], b[3])
	t.whole.add(b[0], b[1])
	t.whole.add(b[2], b[3])
}

// pathOperands are the numbers of operands of the operators of path construction.
var pathOperands = map[string]int{"m": 2, "l": 2, "c": 6, "v": 4, "y": 4, "re": 4}

// construct carries out an operator of path construction.
func (p *painter) construct(op string) {
	t, m := &p.path, p.state.ctm
	n := pathOperands[op]
	v, ok := p.numbers(n)
	if !ok {
		return
	}
	if !t.begun {
		if op != "m" && op != "re" {
			return // there is no current point
		}
		t.begun, t.whole = true, nowhere
	}
	begin := func(x, y float64) {
		if len(t.subpaths) >= maxSegments || len(t.subpaths)%1024 == 0 && !p.file.keep(1024*segmentSize) {
			p.all = true
			return
		}
		if len(t.subpaths)%1024 == 0 {
			t.held += 1024 * segmentSize
		}
		t.subpaths = append(t.subpaths, nowhere)
		t.x, t.y = x, y
		t.sx, t.sy = x, y
	}
	line := func(x, y float64) {
		// The box of a long slanted line is large: its parts have smaller ones.
		dx, dy := x-t.x, y-t.y
		parts := 1
		if least := min(math.Abs(dx), math.Abs(dy)); least > 10 {
			parts = int(min(32, least/5))
		}
		fromX, fromY := t.x, t.y
		for i := range parts {
			a, b := float64(i)/float64(parts), float64(i+1)/float64(parts)
			box := nowhere
			box.add(fromX+a*dx, fromY+a*dy)
			box.add(fromX+b*dx, fromY+b*dy)
			p.segment(box, dx != 0 && dy != 0)
		}
		t.x, t.y = x, y
	}
	switch op {
	case "m":
		begin(m.point(v[0], v[1]))
	case "l":
		line(m.point(v[0], v[1]))
	case "c", "v", "y":
		box := nowhere
		box.add(t.x, t.y)
		for i := 0; i < n; i += 2 {
			t.x, t.y = m.point(v[i], v[i+1])
			box.add(t.x, t.y)
		}
		p.segment(box, true)
	case "h":
		line(t.sx, t.sy)
	case "re":
		x, y, w, h := v[0], v[1], v[2], v[3]
		begin(m.point(x, y))
		for _, c := range [][2]float64{{x + w, y}, {x + w, y + h}, {x, y + h}, {x, y}} {
			if p.all {
				return
			}
			line(m.point(c[0], c[1]))
		}
	}
}

// paintPath carries out an operator that paints the path, and begins a new one.
func (p *painter) paintPath(op string) {
	t, s := &p.path, &p.state
	defer func() {
		p.file.spending.Release(t.held)
		*t = outline{segments: t.segments[:0], subpaths: t.subpaths[:0]}
		if cap(t.segments) > 1024 || cap(t.subpaths) > 1024 {
			*t = outline{} // what is not charged must not stay
		}
	}()
	if !t.begun {
		return
	}
	if op == "s" || op == "b" || op == "b*" {
		p.construct0("h")
	}
	if op[0] != 'S' && op[0] != 's' && op != "n" && (!s.fill.white || s.odd) {
		for _, b := range t.subpaths {
			p.ink(b.grown(0.3))
		}
	}
	if (op[0] == 'S' || op[0] == 's' || op[0] == 'B' || op[0] == 'b') && (!s.stroke.white || s.odd) {
		reach := 1.42
		if t.slanted && s.join == 0 {
			reach = max(reach, min(s.miter, 12))
		}
		around := max(s.width*s.ctm.scale()/2, 0.5)*reach + 0.3
		for _, b := range t.segments {
			p.ink(b.grown(around))
		}
		for _, b := range t.subpaths {
			if b.empty() { // a point with round ends
				p.ink(bounds{t.x, t.y, t.x, t.y}.grown(around))
			}
		}
	}
	if t.clips && len(t.segments) > 0 {
		s.clip = s.clip.cut(t.whole.grown(0.3))
	}
}

// construct0 carries out an operator without operands.
func (p *painter) construct0(op string) {
	p.operands = p.operands[:0]
	p.construct(op)
}
