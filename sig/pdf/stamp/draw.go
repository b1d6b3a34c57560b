// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
)

// drawing is a stamp that is being made.
type drawing struct {
	request  *Request
	settings *settings
	template int

	marked bool     // it is a mark, whose text depends on its size
	text   *content // nil: a mark, or only an image
	image  *graphic // nil: only text
	frame  box
}

// prepare reads the text and the image that the template draws. The error is a *ParamError, or
// that of the budget.
func (d *drawing) prepare() error {
	s := d.settings
	d.frame = s.box
	if d.template == templateImage && !s.box.styled {
		// A stamp with only an image has a frame only if the request has one.
		d.frame.weight, d.frame.margin = 0, 0
	}
	d.marked = d.template != templateImage && s.content == nil
	if s.content != nil && d.template != templateImage {
		text := contentText(s.content)
		d.text = &text
	}
	if d.template == templateText {
		return nil
	}
	p := d.picture()
	if p == nil {
		key := map[int]string{templateLogo: "Icon", templateImage: "Background"}[d.template]
		return &ParamError{paramAppearance, fmt.Sprintf("%s.Image: is missing, but template %d draws it", key, d.template)}
	}
	var err error
	g := ground{opaque: d.request.Opaque, colour: rgb{255, 255, 255}}
	if g.opaque && d.frame.background != nil {
		g.colour = *d.frame.background
	}
	d.image, err = readImage(p, g, d.request.Spending)
	return err
}

// picture returns the image that the template draws. For template 3 it is Background, or
// Icon if there is no Background.
func (d *drawing) picture() *picture {
	if d.template == templateImage && d.settings.back != nil {
		return d.settings.back
	}
	return d.settings.icon
}

// contentText makes paragraphs of Content.
func contentText(entries []textual) content {
	list := []paragraph{}
	for _, c := range entries {
		for _, l := range clean(c.text, c.style.face) {
			list = append(list, paragraph{text: l, style: c.style, indent: c.margin})
		}
	}
	return content{variants: [][]paragraph{list}, leading: leadingContent, growth: 1}
}

// place returns the rectangle of the stamp on the page as shown, in points.
func (d *drawing) place(on sheet) (rect, *ParamError) {
	if f := d.request.Field; f != nil {
		return on.shown(corners(f.Rect)), nil
	}
	if c := d.settings.box.corners; c != nil {
		r := corners(*c)
		if r.empty() {
			return rect{}, nil
		}
		placed, ok := on.fit(r)
		if !ok {
			return rect{}, &ParamError{paramAppearance, fmt.Sprintf("Rect: is outside of the page, which has %s by %s points", num(on.width), num(on.height))}
		}
		return placed, nil
	}
	width, height := d.natural(max(on.width-2*edge, on.width/2))
	return on.free(width, min(height, max(on.height-2*edge, on.height/2))), nil
}

// The default width of a stamp with Content, in points. The height follows from the text.
const (
	widthText = 240
	widthLogo = 270
)

// natural returns the default size of a stamp. Its width is at most most.
func (d *drawing) natural(most float64) (width, height float64) {
	if d.marked {
		f := d.settings.form
		if f == nil {
			f = full
		}
		scale := min(1, most/(f.width*millimetre))
		return f.width * millimetre * scale, f.height * millimetre * scale
	}
	around := 2 * d.around()
	if d.template == templateImage {
		// 96 pixels per inch, as on screens, and no larger than a seal.
		w, h := d.image.size()
		w, h = w*0.75, h*0.75
		shrink := min(1, max(most-around, 1)/w, 120/h)
		return w*shrink + around, h*shrink + around
	}
	width = min(widthText, most)
	inner := width - around
	if d.template == templateLogo && !d.picture().placed {
		width = min(widthLogo, most)
		inner = (width-around)*(1-logoShare) - logoGap
	}
	return width, max(arrange(d.text.variants[0], inner, 1, d.text.leading).height, 10) + around
}

// around returns the distance between the edge of the stamp and its content.
func (d *drawing) around() float64 { return d.frame.weight + d.frame.margin }

// A logo without a place is on the left.
const (
	logoShare = 0.2 // of the width at most
	logoGap   = 6
)

// scene lays the stamp out in the given size.
func (d *drawing) scene(width, height float64) *scene {
	outer := rect{0, 0, width, height}
	if d.marked {
		f := d.settings.formOf(width, height)
		u := min(width/f.width, height/f.height)
		frame := d.frame
		if !frame.styled {
			frame.radius, frame.weight, frame.border = f.radius*u, f.weight*u, ink
		}
		if frame.background == nil {
			frame.background = &white
		}
		image := d.image
		if image != nil && d.picture().placed {
			image = nil
		}
		s := markOf(d.request, d.settings, f).scene(width, height, frame, image)
		if d.image != nil && image == nil {
			d.drawImage(s, outer, outer)
		}
		return s
	}
	s := &scene{width: width, height: height}
	weight := min(d.frame.weight, width/2, height/2)
	s.frame(outer, d.frame)

	// In a small stamp the margin becomes smaller before the text does, sooner if it is
	// the default margin.
	share := 0.1
	if d.frame.spaced {
		share = 0.25
	}
	around := weight + min(d.frame.margin, share*width, share*height)
	inner := outer.inset(around)
	if d.image != nil && !inner.empty() {
		inner = d.drawImage(s, outer.inset(weight), inner)
	}
	if d.text != nil && len(d.text.variants[0]) > 0 && !inner.empty() {
		s.layout(fit(*d.text, inner.width(), inner.height()), inner, d.text.middle)
	}
	return s
}

// draw makes the objects of a stamp of the given size.
func (d *drawing) draw(width, height float64, on sheet) []Object {
	return d.scene(width, height).objects(on.matrix(width, height))
}

// objects makes the objects of a scene. matrix is that of its form, empty for none.
func (s *scene) objects(matrix string) []Object {
	var c canvas
	fonts := s.write(&c)
	var images []Object
	if s.picture != nil {
		images = s.picture.objects
	}

	objects := make([]Object, 1)
	var resources strings.Builder
	for i, f := range fonts {
		if i == 0 {
			resources.WriteString(" /Font <<")
		}
		fmt.Fprintf(&resources, " /F%d {%d}", i, len(objects))
		objects = append(objects, f.objects(len(objects))...)
	}
	if len(fonts) > 0 {
		resources.WriteString(" >>")
	}
	if len(images) > 0 {
		fmt.Fprintf(&resources, " /XObject << /I0 {%d} >>", len(objects))
		mask := fmt.Sprintf("{%d}", len(objects)+1)
		for _, o := range images {
			// The image may be cached for other stamps, and the caller may encrypt it in
			// place.
			objects = append(objects, Object{strings.ReplaceAll(o.Dict, "{mask}", mask), bytes.Clone(o.Stream)})
		}
	}
	dict := "/Type /XObject /Subtype /Form /FormType 1 /BBox [ 0 0 " + num(s.width) + " " + num(s.height) + " ]"
	if matrix != "" {
		dict += " /Matrix [ " + matrix + " ]"
	}
	objects[0] = deflated(dict+" /Resources <<"+resources.String()+" >>", c.Bytes())
	return objects
}

// drawImage draws the image and returns the space that is left for text.
func (d *drawing) drawImage(s *scene, clip, inner rect) rect {
	w, h := d.image.size()
	p := d.picture()
	if p.placed {
		// At the place of the request, inside the stamp. Text may overlap it.
		w, h = w*p.scale/100, h*p.scale/100
		s.image(d.image, rect{p.x, p.y, p.x + w, p.y + h}, clip)
		return inner
	}
	room := inner
	if d.template == templateLogo {
		room.x1 = room.x0 + min(logoShare*inner.width(), inner.height()*w/h)
		inner.x0 = room.x1 + min(logoGap, 0.1*inner.width())
	}
	scale := min(room.width()/w, room.height()/h)
	w, h = w*scale, h*scale
	x, y := (room.x0+room.x1-w)/2, (room.y0+room.y1-h)/2
	s.image(d.image, rect{x, y, x + w, y + h}, clip)
	return inner
}

// canvas is a content stream.
type canvas struct{ bytes.Buffer }

func (c *canvas) op(operator string, operands ...float64) {
	for _, v := range operands {
		c.WriteString(num(v))
		c.WriteByte(' ')
	}
	c.WriteString(operator)
	c.WriteByte('\n')
}

func (c *canvas) colour(operator string, v rgb) { c.op(operator, v[0]/255, v[1]/255, v[2]/255) }

// shape draws background and border.
func (c *canvas) shape(f *shape) {
	paint := ""
	c.op("q")
	if f.background != nil {
		c.colour("rg", *f.background)
		paint = "f"
	}
	if f.weight > 0 {
		c.colour("RG", f.border)
		c.op("w", f.weight)
		paint = map[string]string{"": "S", "f": "B"}[paint]
	}
	c.path(f.rect, f.radius)
	c.op(paint)
	c.op("Q")
}

// path draws the outline of a rectangle with round corners.
func (c *canvas) path(r rect, radius float64) {
	if radius <= 0 {
		c.op("re", r.x0, r.y0, r.width(), r.height())
		return
	}
	k := radius * (1 - 0.5522847) // a Bézier curve that is nearly a quarter circle
	c.op("m", r.x0+radius, r.y0)
	c.op("l", r.x1-radius, r.y0)
	c.op("c", r.x1-k, r.y0, r.x1, r.y0+k, r.x1, r.y0+radius)
	c.op("l", r.x1, r.y1-radius)
	c.op("c", r.x1, r.y1-k, r.x1-k, r.y1, r.x1-radius, r.y1)
	c.op("l", r.x0+radius, r.y1)
	c.op("c", r.x0+k, r.y1, r.x0, r.y1-k, r.x0, r.y1-radius)
	c.op("l", r.x0, r.y0+radius)
	c.op("c", r.x0, r.y0+k, r.x0+k, r.y0, r.x0+radius, r.y0)
	c.op("h")
}

// image draws the image into a rectangle, clipped to clip.
func (c *canvas) image(m *graphic, r, clip rect) {
	c.op("q")
	c.op("re", clip.x0, clip.y0, clip.width(), clip.height())
	c.WriteString("W n\n")
	w, h := r.width(), r.height()
	t := m.orientation.matrix()
	c.op("cm", t[0]*w, t[1]*h, t[2]*w, t[3]*h, r.x0+t[4]*w, r.y0+t[5]*h)
	c.WriteString("/I0 Do\nQ\n")
}

// text draws pieces of text, clipped to a rectangle unless it is empty. It returns the fonts that it uses, in the order
// of their names.
func (c *canvas) text(pieces []piece, clip rect) []*subset {
	var fonts []*subset
	index := map[*face]int{}
	c.op("q")
	if !clip.empty() {
		c.op("re", clip.x0, clip.y0, clip.width(), clip.height())
		c.WriteString("W n\n")
	}
	for _, p := range pieces {
		n, ok := index[p.style.face]
		if !ok {
			n = len(fonts)
			index[p.style.face] = n
			fonts = append(fonts, newSubset(p.style.face))
		}
		c.colour("rg", p.style.colour)
		fmt.Fprintf(c, "BT /F%d %s Tf %s %s Td <", n, num(p.style.size), num(p.x), num(p.y))
		for _, r := range p.text {
			fmt.Fprintf(c, "%04X", fonts[n].encode(r))
		}
		c.WriteString("> Tj ET\n")
		for _, l := range p.lines() {
			c.op("re", p.x, p.y+l[0]-l[1]/2, measure(p.text, p.style), l[1])
			c.op("f")
		}
	}
	c.op("Q")
	return fonts
}

// num formats a number for PDF: no exponent, at most three digits after the point.
func num(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "0"
	}
	s := strconv.FormatFloat(v, 'f', 3, 64)
	s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	if s == "-0" {
		return "0"
	}
	return s
}

// compressors are reused: one has a megabyte of tables.
var compressors = sync.Pool{New: func() any {
	w, _ := zlib.NewWriterLevel(nil, zlib.BestCompression) // impossible error: the level is valid
	return w
}}

// deflated returns a stream object with compressed data. dict has the other entries of
// the dictionary.
func deflated(dict string, data []byte) Object {
	var b bytes.Buffer
	w := compressors.Get().(*zlib.Writer)
	w.Reset(&b)
	w.Write(data) // a bytes.Buffer never fails
	w.Close()
	compressors.Put(w)
	return Object{Dict: "<< " + strings.TrimSpace(dict+" /Filter /FlateDecode") + " >>", Stream: b.Bytes()}
}
