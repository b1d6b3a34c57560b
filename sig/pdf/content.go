// SPDX-License-Identifier: Apache-2.0

package pdf

import "strings"

// decodes reports whether all programs get the same content from a stream: it has no filter or is Deflate
// without a fault, and what it has are operands and operators of content (7.8.2).
func (f *file) decodes(s *stream) bool {
	data, err := f.strictData(s, f.crypt)
	if err != nil {
		return false
	}
	defer f.spending.Release(int64(len(data)))
	p := f.strictBytes(data)
	defer p.release()
	for {
		p.skipSpace()
		at := p.offset()
		if p.peek() < 0 {
			return p.err == nil
		}
		var word []byte
		for c := p.peek(); isRegular(c) && len(word) < 4; c = p.peek() {
			word = append(word, byte(c))
			p.pos++
		}
		switch operator := contentOperators[string(word)] && !isRegular(p.peek()); {
		case operator && string(word) == "BI": // bytes of an image follow
			return true
		case operator:
			if p.paid(0) != nil {
				return false
			}
			p.release() // its operands are not kept
		default:
			p.seek(at)
			if _, err := p.value(0); err != nil {
				return false
			}
		}
	}
}

// contentOperators are the operators of content streams (annex A), without those of glyphs of Type 3 fonts.
var contentOperators = func() map[string]bool {
	known := map[string]bool{}
	for _, word := range strings.Fields(`b B b* B* BDC BI BMC BT BX c cm CS cs d Do DP EMC ET EX f F f* G g gs h i j J K k l m M MP n
		q Q re RG rg ri s S SC sc SCN scn sh T* Tc Td TD Tf Tj TJ TL Tm Tr Ts Tw Tz v w W W* y ' "`) {
		known[word] = true
	}
	return known
}()
