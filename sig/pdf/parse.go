// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"errors"
	"strconv"
	"strings"
)

var errNoObject = errors.New("there is no object")

// keyword marks a keyword among the items of an array or dictionary.
type keyword string

// object reads one object. At the end of the input, or if something else follows, it
// returns errNoObject.
func (l *lexer) object() (object, error) {
	o, err := l.value(l.token())
	if err != nil {
		return nil, err
	}
	if k, ok := o.(keyword); ok {
		if k == "null" {
			return nil, nil
		}
		return nil, errNoObject
	}
	// 12 0 R
	num, ok := o.(number)
	if !ok {
		return o, nil
	}
	back := l.offset()
	if gen := l.token(); gen.kind == tokenNumber {
		g := number(gen.bytes)
		if r := l.token(); r.kind == tokenKeyword && string(r.bytes) == "R" {
			if id, ok := reference(num, g); ok {
				return id, l.err
			}
			return nil, l.err
		}
	}
	l.seek(back)
	return o, l.err
}

// reference makes a reference from its two numbers.
func reference(num, gen object) (ref, bool) {
	n, ok1 := integer(num)
	g, ok2 := integer(gen)
	if !ok1 || !ok2 || n <= 0 || n > maxNumber || g < 0 || g > 65535 {
		return ref{}, false
	}
	return ref{int(n), int(g)}, true
}

// maxNumber is the largest object number that is read.
const maxNumber = 1<<31 - 1

// common has the values of tokens that most documents repeat, so that reading them takes no
// memory.
var common = func() (c struct {
	numbers, names map[string]object
	reference      object // the keyword R
}) {
	c.numbers, c.names, c.reference = map[string]object{}, map[string]object{}, keyword("R")
	for n := range 256 {
		text := strconv.Itoa(n)
		c.numbers[text] = number(text)
	}
	for word := range strings.FieldsSeq(`Type Subtype Pages Page Kids Count Parent Resources MediaBox Contents Font Rect
		Annots Annot Widget Catalog AcroForm Fields SigFlags FT Sig Filter SubFilter ByteRange Reference V T F P M Name
		Reason Location Prop_Build App Length Size Root Info ID Prev Index W ObjStm XRef FlateDecode Extensions
		Adobe.PPKLite adbe.pkcs7.detached ETSI.CAdES.detached BBox Matrix XObject Form ProcSet PDF Text`) {
		c.names[word] = name(word)
	}
	return c
}()

// value reads the value that begins with the token.
func (l *lexer) value(t token) (object, error) {
	switch t.kind {
	case tokenNumber:
		if o, ok := common.numbers[string(t.bytes)]; ok {
			return o, l.err
		}
		return number(t.bytes), l.err
	case tokenText:
		return text(t.bytes), l.err
	case tokenName:
		if o, ok := common.names[string(t.bytes)]; ok {
			return o, l.err
		}
		return name(t.bytes), l.err
	case tokenArray, tokenDict:
		return l.group(t.kind)
	case tokenKeyword:
		switch string(t.bytes) {
		case "true":
			return true, l.err
		case "false":
			return false, l.err
		case "R":
			return common.reference, l.err
		}
		return keyword(t.bytes), l.err
	}
	if l.err != nil {
		return nil, l.err
	}
	return nil, errNoObject
}

// group reads the rest of an array or dictionary. If it is not closed, it ends with the
// object.
func (l *lexer) group(kind tokenKind) (object, error) {
	if l.depth++; l.depth > maxDepth {
		return nil, errTooMuch
	}
	first := len(l.items)
	defer func() {
		l.depth--
		clear(l.items[first:])
		l.items = l.items[:first]
	}()
	var places []span
	tell := l.spans != nil && l.depth == 1 && kind == tokenDict
	for {
		t := l.token()
		if l.err != nil {
			return nil, l.err
		}
		if t.kind == tokenEnd || t.kind == tokenArrayEnd && kind == tokenArray || t.kind == tokenDictEnd && kind == tokenDict {
			l.unclosed = l.unclosed || t.kind == tokenEnd
			break
		}
		if t.kind == tokenArrayEnd || t.kind == tokenDictEnd {
			continue // closes nothing
		}
		if t.kind == tokenKeyword && endsObject(t.bytes) {
			l.seek(t.at)
			break
		}
		if !l.hold(readingSize + int64(len(t.bytes))) {
			return nil, l.err
		}
		o, err := l.value(t)
		if err != nil {
			return nil, err
		}
		place := span{t.at, l.offset()}
		if k, ok := o.(keyword); ok {
			o = nil
			if items := l.items[first:]; k == "R" && len(items) >= 2 {
				if id, ok := reference(items[len(items)-2], items[len(items)-1]); ok {
					o = id
				}
				l.items = l.items[:len(l.items)-2]
				if tell {
					place.from = places[len(places)-2].from
					places = places[:len(places)-2]
				}
			}
		}
		l.items = append(l.items, o)
		if tell {
			places = append(places, place)
		}
	}
	items := l.items[first:]
	if kind == tokenArray {
		return append(array(nil), items...), nil
	}
	return l.pairs(items, places, tell), nil
}

func endsObject(word []byte) bool {
	switch string(word) {
	case "endobj", "endstream", "stream", "obj", "xref", "trailer", "startxref":
		return true
	}
	return false
}

// pairs makes a dictionary of items. A key must be a name; anything else in its place is
// skipped.
func (l *lexer) pairs(items []object, places []span, tell bool) dict {
	d := make(dict, 0, len(items)/2)
	for i := 0; i < len(items); i++ {
		key, ok := items[i].(name)
		if !ok {
			continue
		}
		e := entry{key: key}
		if i++; i < len(items) {
			e.value = items[i]
			if tell {
				if _, twice := l.spans[key]; twice {
					l.spans[key] = span{}
				} else {
					l.spans[key] = places[i]
				}
			}
		}
		d = append(d, e)
	}
	return d
}
