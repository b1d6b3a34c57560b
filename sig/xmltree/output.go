// SPDX-License-Identifier: Apache-2.0

package xmltree

import (
	"io"
	"unicode/utf8"

	"tamga/sig/budget"
)

// chunk is how many bytes of output are collected before they are written.
const chunk = 32 << 10

// output collects output in chunks and keeps the first error.
type output struct {
	w      io.Writer
	budget *budget.Budget // charged for each byte; nil: nothing is charged
	buf    []byte
	err    error
}

// Write never returns an error. It keeps the error.
func (o *output) Write(p []byte) (int, error) {
	o.bytes(p)
	return len(p), nil
}

func (o *output) bytes(p []byte) {
	if len(p) > chunk {
		o.flush()
		o.write(p)
		return
	}
	o.buf = append(o.buf, p...)
	if len(o.buf) >= chunk {
		o.flush()
	}
}

// WriteString never fails; the error is kept.
func (o *output) WriteString(s string) (int, error) {
	o.string(s)
	return len(s), nil
}

func (o *output) string(s string) {
	o.buf = append(o.buf, s...)
	if len(o.buf) >= chunk {
		o.flush()
	}
}

func (o *output) flush() error {
	if len(o.buf) > 0 {
		o.write(o.buf)
	}
	o.buf = o.buf[:0]
	return o.err
}

// write charges p, for making and digesting it, and writes it.
func (o *output) write(p []byte) {
	if o.err == nil {
		o.err = o.budget.Spend(2 * int64(len(p)))
	}
	if o.err == nil {
		_, o.err = o.w.Write(p)
	}
}

// text writes character data in its canonical form.
func (o *output) text(t *Tree, n Node) {
	if t.nodes[n].label&flagPlain != 0 {
		o.bytes(t.text[t.nodes[n].start:t.textEnd(n)])
		return
	}
	t.eachPiece(n, func(s []byte, reference bool) {
		if reference {
			r, _ := readReference(s)
			switch r {
			case '&':
				o.string("&amp;")
			case '<':
				o.string("&lt;")
			case '>':
				o.string("&gt;")
			case '\r':
				o.string("&#xD;")
			default:
				o.buf = utf8.AppendRune(o.buf, r)
			}
			return
		}
		done := 0
		for i, c := range s {
			var with string
			switch c {
			case '&':
				with = "&amp;"
			case '<':
				with = "&lt;"
			case '>':
				with = "&gt;"
			case '\r':
				if i+1 >= len(s) || s[i+1] != '\n' {
					with = "\n"
				}
			default:
				continue
			}
			o.bytes(s[done:i])
			o.string(with)
			done = i + 1
		}
		o.bytes(s[done:])
	})
}

// WriteValue writes the normalised value of an attribute in its canonical form, without the
// quotes around it (Canonical XML 1.0, section 2.3).
func WriteValue[W io.StringWriter](w W, s string) {
	done := 0
	for i := 0; i < len(s); i++ {
		var with string
		switch s[i] {
		case '&':
			with = "&amp;"
		case '<':
			with = "&lt;"
		case '"':
			with = "&quot;"
		case '\t':
			with = "&#x9;"
		case '\n':
			with = "&#xA;"
		case '\r':
			with = "&#xD;"
		default:
			continue
		}
		w.WriteString(s[done:i])
		w.WriteString(with)
		done = i + 1
	}
	w.WriteString(s[done:])
}
