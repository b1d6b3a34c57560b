package xmltree

import (
	"errors"
	"fmt"

	"tamga/sig/budget"
)

// Options are the limits of Parse. A zero field is its default.
type Options struct {
	// AllowDoctype admits a document type declaration without internal subset,
	// such as <!DOCTYPE html>. What it names outside is never read.
	AllowDoctype bool
	// Size is the greatest number of octets: of the document, and of its text
	// in UTF-8. Default 256 MiB, at most 2 GiB.
	Size int64
	// Depth is how deep elements may nest. Default 256.
	Depth int
	// Attributes is how many attributes and declarations an element may have.
	// Default 1024.
	Attributes int
	// Nodes is how many nodes and attributes together the document may have.
	// Default 16 Mi, at most 2 Gi: a node costs 16 octets, and so does an
	// attribute.
	Nodes int
	// Names is how many different names of elements and attributes it may have.
	// Default 64 Ki, at most 16 Mi.
	Names int
	// Namespaces is how many different prefixes, and how many different
	// namespace names, it may have. Default 1024.
	Namespaces int
	// Budget is what the tree costs and what is spent by everything done with it.
	// Default is one of its own with the ordinary bounds.
	Budget *budget.Budget
}

// maxSpace is how many bytes a namespace name may have: they are compared and written
// once for each element.
const maxSpace = 8 << 10

// withDefaults fills in and bounds what the caller left out.
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

// What a SyntaxError may be besides plain malformed, for errors.Is.
var (
	// ErrLimit: the document is beyond one of Options.
	ErrLimit = errors.New("beyond a limit")
	// ErrDoctype: it has a document type declaration that is not admitted.
	ErrDoctype = errors.New("document type declaration refused")
	// ErrEncoding: its encoding is not known, or not the one it declares.
	ErrEncoding = errors.New("wrong encoding")
)

// SyntaxError says why and where a document was refused.
type SyntaxError struct {
	// Line and Column are of the character at fault, both from 1, the column
	// in characters.
	Line, Column int
	// Offset is of that character in the text as UTF-8 without byte order mark,
	// or in the document itself where it could not be decoded.
	Offset int
	// Text says what is wrong and what would be right.
	Text string
	// Kind is ErrLimit, ErrDoctype, ErrEncoding, or nil for malformed.
	Kind error
}

// Error is "xml: line 3, column 7: text".
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("xml: line %d, column %d: %s", e.Line, e.Column, e.Text)
}

// Unwrap returns Kind.
func (e *SyntaxError) Unwrap() error { return e.Kind }

// position counts lines and characters up to offset.
func position(text []byte, offset int) (line, column int) {
	line, column = 1, 1
	for i := 0; i < offset && i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n', c == '\r' && (i+1 >= len(text) || text[i+1] != '\n'):
			line, column = line+1, 1
		case c == '\r', c&0xC0 == 0x80:
			// the first half of a line end, a continuation of a character
		default:
			column++
		}
	}
	return line, column
}
