// SPDX-License-Identifier: Apache-2.0

package pdf

// image paints an image: the unit square.
func (p *painter) image(s *stream) {
	unit := p.state.ctm.of(bounds{0, 0, 1, 1})
	if mask, _ := p.file.resolve(s.dict.get("ImageMask")).(bool); mask {
		p.filled(unit, p.state.fill)
		return
	}
	p.ink(unit)
}
