// SPDX-License-Identifier: Apache-2.0

package stamp

import "fmt"

// sheetOfSignatures is the page that is added for stamps, of the size A4.
var sheetOfSignatures = Page{MediaBox: [4]float64{0, 0, 595.28, 841.89}, Signatures: true}

// listing lays the heading of a sheet of signatures out: what it is, and of which document. The ground has the heading,
// so that stamps are below it.
func (d *drawing) listing(on sheet) (*scene, *Ground, error) {
	plain := style{face: faceOf(sans, false, false), size: 9, colour: pale}
	title, exact := plain, plain
	title.face, title.size, title.colour = faceOf(sans, true, false), 14, ink
	exact.colour = dark
	text := []paragraph{
		{text: []rune("Лист электронных подписей"), style: title},
		{text: []rune(fmt.Sprintf("Добавлен при подписании. Страниц в документе до него: %d.", d.request.Pages)), style: plain, above: 4},
	}
	if d.request.Digest != nil {
		digest, err := d.request.Digest()
		if err != nil {
			return nil, nil, err
		}
		text = append(text,
			paragraph{text: []rune("Хэш документа до подписания, ГОСТ Р 34.11-2012, 256 бит:"), style: plain, above: 4},
			paragraph{text: []rune(digest), style: exact})
	}
	s := &scene{width: on.width, height: on.height}
	in := rect{0, 0, on.width, on.height}.inset(edge)
	l := arrange(text, in.width(), 1, leadingContent)
	s.layout(l, in, false)
	g := newGround(on)
	g.reserve()
	g.settle()
	return s, g, nil
}

// heading is the height of the heading of a sheet of signatures, in points.
const heading = 78

// reserve keeps stamps of a sheet of signatures below its heading, so that they are in rows.
func (g *Ground) reserve() {
	if g.on.listed {
		g.ink(rect{0, g.on.height - edge - heading, g.on.width, g.on.height})
	}
}
