// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"image"
	"image/jpeg"
)

const (
	// tilesAcross is the number of tiles along each side of an image that is decoded. A tile has ink or not.
	tilesAcross = 96
	// paper is the level of each component from which a pixel of a scan is paper: scans are not clean.
	paper = 200
	// largeImage is the area of a decoded image, in square points. The box of a smaller one is enough.
	largeImage = 200 * 200
	// pricePixel is the price of decoding a pixel, in steps.
	pricePixel = 2
	// jpegMemory and progressiveMemory are the memory of a pixel of a JPEG while it is decoded, in bytes.
	jpegMemory        = 3
	progressiveMemory = 16
)

// image paints an image: the unit square, or the tiles of a large one that are not paper, so that a scan has margins. A mask
// paints the colour of filling where it is black.
func (p *painter) image(s *stream) {
	unit := p.state.ctm.of(bounds{0, 0, 1, 1})
	mask, _ := p.file.resolve(s.dict.get("ImageMask")).(bool)
	if mask && p.state.fill.white && !p.state.odd {
		return
	}
	shown := unit.cut(p.state.clip)
	if shown.empty() {
		return
	}
	if (shown[2]-shown[0])*(shown[3]-shown[1]) < largeImage || p.box != nil || p.state.odd {
		p.ink(unit)
		return
	}
	tiles := p.tiles(s, mask)
	if tiles == nil {
		p.ink(unit)
		return
	}
	const side = 1.0 / tilesAcross
	for i, ink := range tiles {
		if ink {
			x, y := float64(i%tilesAcross)*side, 1-float64(i/tilesAcross+1)*side
			p.ink(p.state.ctm.of(bounds{x, y, x + side, y + side}))
		}
	}
}

// raster is a decoded image: rows of components.
type raster struct {
	width, height, components int
	at                        func(x, y, c int) uint8
}

// tiles returns which tiles of an image have ink, row by row from the top, nil if the image cannot be decoded.
func (p *painter) tiles(s *stream, mask bool) []bool {
	f := p.file
	w, h := f.intOf(s.dict.get("Width")), f.intOf(s.dict.get("Height"))
	if w < 1 || h < 1 || w > 1<<16 || h > 1<<16 || w*h > int64(p.pixels) {
		return nil
	}
	space := colourSpace{components: 1}
	if !mask {
		space = p.space(s.dict.get("ColorSpace"), 0)
	}
	if space.components == 0 || space.components == 4 {
		return nil
	}
	names := filterList(f.resolve(s.dict.get("Filter")))
	if len(names) > 1 {
		return nil
	}
	p.pixels -= int(w * h)
	if !f.charge(pricePixel * w * h) {
		return nil
	}
	inverted := false
	if d := f.resolveArray(s.dict.get("Decode")); len(d) > 0 {
		low, _ := real(f.resolve(d[0]))
		high, _ := real(f.resolve(d[len(d)-1]))
		if low != 0 && low != 1 || high != 1-low {
			return nil
		}
		inverted = low == 1
	}
	if len(names) == 1 && names[0] == name("DCTDecode") {
		return p.jpegTiles(s, int(w), int(h), space.components, inverted)
	}
	bits := f.intOf(s.dict.get("BitsPerComponent"))
	if mask {
		bits = 1
	}
	if len(names) == 1 && names[0] == name("CCITTFaxDecode") && space.components == 1 && bits <= 1 {
		return p.faxTiles(s, int(w), int(h), inverted)
	}
	if bits != 1 && bits != 8 {
		return nil
	}
	row := (int(w)*space.components*int(bits) + 7) / 8
	if row*int(h) > maxDecoded || !p.affordable(2*int64(row)*h+2*f.intOf(s.dict.get("Length"))) {
		return nil
	}
	data, err := f.beginning(s, int64(row)*h)
	if err != nil {
		return nil
	}
	defer func() { f.spending.Release(int64(len(data))) }()
	if len(data) < row*int(h) {
		return nil
	}
	at := func(x, y, c int) uint8 { return data[y*row+x*space.components+c] }
	if bits == 1 {
		at = bitsOf(data, row, space.components)
	}
	return tilesOf(raster{int(w), int(h), space.components, at}, inverted)
}

// bitsOf reads components of one bit each.
func bitsOf(data []byte, row, components int) func(x, y, c int) uint8 {
	return func(x, y, c int) uint8 {
		i := x*components + c
		return -(data[y*row+i/8] >> (7 - i%8) & 1)
	}
}

// faxTiles decodes an image of ITU-T T.4 or T.6 (CCITT Group 3 and 4), as scanners write it.
func (p *painter) faxTiles(s *stream, w, h int, inverted bool) []bool {
	f := p.file
	parms := f.resolveDict(s.dict.get("DecodeParms"))
	if list := f.resolveArray(s.dict.get("DecodeParms")); len(list) == 1 {
		parms = f.resolveDict(list[0])
	}
	is := func(key name) bool { v, _ := f.resolve(parms.get(key)).(bool); return v }
	k, _ := real(f.resolve(parms.get("K")))
	columns := int64(1728)
	if parms.has("Columns") {
		columns = f.intOf(parms.get("Columns"))
	}
	memory := faxMemory(w)
	if columns != int64(w) || !p.affordable(memory+2*f.intOf(s.dict.get("Length"))) {
		return nil
	}
	s = &stream{dict: s.dict.with("Filter", nil).with("DecodeParms", nil), offset: s.offset, id: s.id, fresh: s.fresh}
	packed, err := f.data(s)
	if err != nil {
		return nil
	}
	defer func() { f.spending.Release(int64(len(packed))) }()
	if !f.keep(memory) {
		return nil
	}
	defer f.spending.Release(memory)
	// Where black is 0, as usual, and 0 is ink, as usual, black is ink.
	ink := 0
	if is("BlackIs1") == inverted {
		ink = 1
	}
	out := make([]bool, tilesAcross*tilesAcross)
	d := newFax(packed, w, int(max(-1, min(k, 1))), is("EncodedByteAlign"))
	for y := range h {
		row, err := d.next()
		if err != nil {
			return nil
		}
		tiles := out[y*tilesAcross/h*tilesAcross:][:tilesAcross]
		from, colour := 0, 0
		for _, to := range append(row, int32(w)) {
			if colour == ink && int(to) > from {
				for x := from * tilesAcross / w; x <= (int(to)-1)*tilesAcross/w; x++ {
					tiles[x] = true
				}
			}
			from, colour = int(to), colour^1
		}
	}
	return out
}

// jpegTiles decodes a JPEG. Its size must be the one of the dictionary, which was charged.
func (p *painter) jpegTiles(s *stream, w, h, components int, inverted bool) []bool {
	f := p.file
	if !p.affordable(2 * f.intOf(s.dict.get("Length"))) {
		return nil
	}
	s = &stream{dict: s.dict.with("Filter", nil).with("DecodeParms", nil), offset: s.offset, id: s.id, fresh: s.fresh}
	data, err := f.data(s)
	if err != nil {
		return nil
	}
	defer func() { f.spending.Release(int64(len(data))) }()
	config, err := jpeg.DecodeConfig(bytes.NewReader(data))
	if err != nil || config.Width != w || config.Height != h {
		return nil
	}
	memory := jpegMemory * int64(w) * int64(h)
	if bytes.Contains(data, []byte("\xff\xc2")) {
		memory = progressiveMemory * int64(w) * int64(h)
	}
	if !p.affordable(memory) || !f.keep(memory) {
		return nil
	}
	defer f.spending.Release(memory)
	decoded, err := jpeg.Decode(bytes.NewReader(data))
	if err != nil {
		return nil
	}
	switch m := decoded.(type) {
	case *image.Gray:
		return tilesOf(raster{w, h, 1, func(x, y, _ int) uint8 { return m.Pix[y*m.Stride+x] }}, inverted)
	case *image.YCbCr:
		// The colours of a scan are near gray: a colour that is not has a component below paper.
		return tilesOf(raster{w, h, 3, func(x, y, c int) uint8 {
			switch c {
			case 0:
				return m.Y[m.YOffset(x, y)]
			case 1:
				return 255 - 2*distance(m.Cb[m.COffset(x, y)])
			}
			return 255 - 2*distance(m.Cr[m.COffset(x, y)])
		}}, inverted)
	}
	return nil
}

// distance returns how far a component of colour is from gray.
func distance(v uint8) uint8 {
	if v == 0 {
		return 127
	}
	return max(v, 128) - min(v, 128)
}

// affordable reports whether memory may be held without failing the document: an image that is too large for it is not
// decoded, which is no reason to refuse a signature.
func (p *painter) affordable(n int64) bool {
	return p.file.spending.Held()+n <= mostImageMemory
}

// mostImageMemory is the memory of a document up to which images are decoded. It is below all limits of documents of
// callers with a token.
const mostImageMemory = 56 << 20

// tilesOf finds the tiles with a pixel that is not paper.
func tilesOf(r raster, inverted bool) []bool {
	out := make([]bool, tilesAcross*tilesAcross)
	for y := range r.height {
		row := out[y*tilesAcross/r.height*tilesAcross:][:tilesAcross]
		for x := range r.width {
			tile := x * tilesAcross / r.width
			if row[tile] {
				continue
			}
			for c := range r.components {
				v := r.at(x, y, c)
				if inverted {
					v = 255 - v
				}
				if v < paper {
					row[tile] = true
				}
			}
		}
	}
	return out
}
