// SPDX-License-Identifier: Apache-2.0

package xmltree

import (
	"errors"
	"fmt"

	"tamga/sig/budget"
)

// Options are the limits of Parse. A zero field means its default.
type Options struct {
	// AllowDoctype accepts a document type declaration without internal subset, such as
	// <!DOCTYPE html>. External files that it names are never read.
	AllowDoctype bool
	// Size is the largest number of bytes of the document, and of its text in UTF-8.
	// Default 256 MiB, at most 2 GiB.
	Size int64
	// Depth is the largest nesting of elements. Default 256.
	Depth int
	// Attributes is the largest number of attributes and declarations of an element.
	// Default 1024.
	Attributes int
	// Nodes is the largest number of nodes and attributes together. Default 16 Mi, at most
	// 2 Gi. A node takes 16 bytes of memory, and so does an attribute.
	Nodes int
	// Names is the largest number of different names of elements and attributes. Default
	// 64 Ki, at most 16 Mi.
	Names int
	// Namespaces is the largest number of different prefixes, and of different namespace
	// names. Default 1024.
	Namespaces int
	// Budget pays for the tree and for everything done with it. Default is a new budget
	// with the ordinary limits.
	Budget *budget.Budget
}

// maxSpace is the largest length of a namespace name in bytes. Namespace names are compared and
// written once for each element.
const maxSpace = 8 << 10

// withDefaults returns the options with defaults and upper limits applied.
func (o Options) withDefaults() Options {
	o.Size = limit(o.Size, 256<<20, 2<<30-1)
	o.Depth = limit(o.Depth, 256, 1<<30)
	o.Attributes = limit(o.Attributes, 1024, 1<<30)
	o.Nodes = limit(o.Nodes, 16<<20, 2<<30-64)
	o.Names = limit(o.Names, 64<<10, 1<<24-64)
	o.Namespaces = limit(o.Namespaces, 1024, 1<<24)
	return o
}

func limit[T int | int64](given, normal, most T) T {
	if given <= 0 {
		return normal
	}
	return min(given, most)
}

// The values of SyntaxError.Kind besides nil, for errors.Is.
var (
	// ErrLimit: the document exceeds one of Options.
	ErrLimit = errors.New("beyond a limit")
	// ErrDoctype: the document has a document type declaration that is not allowed.
	ErrDoctype = errors.New("document type declaration refused")
	// ErrEncoding: the encoding is not supported, or differs from the declared one.
	ErrEncoding = errors.New("wrong encoding")
)

// SyntaxError reports why and where a document was refused.
type SyntaxError struct {
	// Line and Column are the position of the wrong character, both from 1. The column
	// counts characters.
	Line, Column int
	// Offset is the byte offset of that character in the text as UTF-8 without byte order
	// mark. If the document could not be decoded, it is the offset in the document itself.
	Offset int
	// Text says what is wrong and what would be right.
	Text string
	// Kind is ErrLimit, ErrDoctype, ErrEncoding, or nil for malformed documents.
	Kind error
}

// Error returns "xml: line 3, column 7: text".
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("xml: line %d, column %d: %s", e.Line, e.Column, e.Text)
}

// Unwrap returns Kind.
func (e *SyntaxError) Unwrap() error { return e.Kind }

// position returns the line and column of offset.
func position(text []byte, offset int) (line, column int) {
	line, column = 1, 1
	for i := 0; i < offset && i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n', c == '\r' && (i+1 >= len(text) || text[i+1] != '\n'):
			line, column = line+1, 1
		case c == '\r', c&0xC0 == 0x80:
			// first half of a line end, or continuation byte of a character
		default:
			column++
		}
	}
	return line, column
}
