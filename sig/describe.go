// SPDX-License-Identifier: Apache-2.0

package sig

import (
	"context"
	"io"
	"slices"
	"strings"

	"tamga/pki/suite"
)

// Describer is a format that describes itself. Programs take what they need to know of a
// format from its description. So a new format is its package and one line in the program's
// list of [Formats].
type Describer interface {
	// Describe returns the same description at every call; the caller changes nothing in it.
	Describe() Description
}

// Description is what programs need to know of a format.
type Description struct {
	// Types are the types of signature that the format makes, as requests name them.
	Types []Type
	// Kind is the short name of a file with a signature of the format, for programs: "pdf".
	Kind string
	// Noun is the same for people, "PDF document", and Expected in a list of what may be
	// given, "PDF".
	Noun, Expected string
	// Suffix is what the name of a signed file has behind the name of its document; empty
	// where the signed file takes the place of the document.
	Suffix string
	// SuffixFor is Suffix where it depends on the parameters; nil: it does not.
	SuffixFor func(Params) string
	// Extends reports whether a signature with these parameters is added to a file of the
	// format, which the signed file then replaces. nil: never.
	Extends func(Params) bool
	// Params are the parameters of requests that are more to a program than a short text.
	// Others are passed on as they are.
	Params []Param
	// Recognises reports by the first kilobyte of a file, or by all of a shorter one, and by
	// the size of the file in bytes whether it is of this format.
	Recognises func(head []byte, size int64) bool
	// Confirms looks into a file that Recognises accepts, where its beginning is not enough; nil: it is.
	Confirms func(ctx context.Context, file Document) bool
	// Bare reports that a file holds the signature value and nothing to know it by. It is
	// recognised after all others, and to check it takes the certificate of the signer.
	Bare bool
	// Forms are the ways to sign that programs offer to people; none if the format is for
	// programs alone.
	Forms []Form
	// Inspect reads what a file says of itself before it is verified; nil where a signed
	// file always holds its document.
	Inspect func(Document) (Contents, error)
}

// Form is a way to sign a file, as programs offer it to people.
type Form struct {
	// Name is a short name for programs, unlike that of every other form: "cosign". Noun is for
	// people where a program has no words of its own for the name: "PDF with its signature
	// inside".
	Name, Noun string
	// Type is the type of signature, as requests name it.
	Type string
	// Extensions are the ends of the names of files that are signed in this way unless a person
	// says otherwise, in lower case and without the dot. Any reports that it is for all files
	// for which no form has an extension.
	Extensions []string
	Any        bool
	// Params are the parameters at each level. A level without an entry is not offered.
	Params map[Level]Params
	// Extends reports that the signature is added to a signed message. The document of the
	// message may be in another file.
	Extends bool
	// Attachable reports that the document may be in the signed file or beside it
	// (IsDetached).
	Attachable bool
	// Marks are the forms of the visible mark that the signature may have, the ordinary one first; nil: it has none.
	Marks []MarkForm
}

// MarkForm is a form of a visible mark, with its ordinary size in millimetres. A mark of another size has the same
// proportions.
type MarkForm struct {
	Name          string
	Width, Height int
}

// Marker is a Format whose signatures may have a visible mark.
type Marker interface {
	// Mark returns the mark of a signature as an SVG document, in its ordinary size. It uses Certificate, Params, Time and
	// Zone of the job.
	Mark(ctx context.Context, job *Job) ([]byte, error)
}

// SuffixOf returns what the name of a signed file has behind the name of the file that is
// signed with these parameters.
func (d *Description) SuffixOf(p Params) string {
	if d.Extends != nil && d.Extends(p) {
		return ""
	}
	if d.SuffixFor != nil {
		return d.SuffixFor(p)
	}
	return d.Suffix
}

// Raised returns the type and the parameter with its value that ask an Enhancer of the format for a level. ok is
// false if the format has no such level.
func (d *Description) Raised(to Level) (kind, param, value string, ok bool) {
	if len(d.Types) == 0 || to < LevelTime {
		return "", "", "", false
	}
	for _, p := range d.Params {
		for _, c := range p.Choices {
			if c.Level == to {
				return d.Types[0].Name, p.Name, c.Name, true
			}
		}
	}
	return "", "", "", false
}

// Type is a type of signature.
type Type struct {
	// Name is Signature.Type in a request, in any letter case. Number may be used instead;
	// it is empty if there is none.
	Name, Number string
	// Usual are parameters that a person need not name: a client program sends them with
	// these values unless told otherwise.
	Usual Params
}

// Param is a parameter of requests.
type Param struct {
	// Name is the documented name; requests write it in any letter case.
	Name string
	// Kind is the form of its value.
	Kind ParamKind
	// Choices are the values of an enumeration; empty for another value.
	Choices []Choice
	// Secret reports that the value is used and never kept, neither between two steps nor in
	// logs.
	Secret bool
	// Long is how many bytes the value may have as decoded Base64, where it may be longer
	// than ordinary parameters; 0 otherwise.
	Long int64
}

// ParamKind is the form of a parameter's value.
type ParamKind int

// The forms of values.
const (
	Text   ParamKind = iota // text, a number or a truth value
	Object                  // a JSON object, or the Base64 of one as text
)

// Contents is what a signed file says of itself.
type Contents struct {
	// Detached reports that the signed document is not in the file.
	Detached bool
	// Hashes are the algorithms that the signatures hash the document by; nil where the file
	// does not say.
	Hashes []*suite.Hash
}

// Described is a format that a program can list.
type Described interface {
	Format
	Describer
}

// Formats are the formats of a program. Where two of them recognise a file, the earlier one
// has it.
type Formats []Described

// Named returns the format for a type of signature and the documented name of that type.
// text is a name in any letter case, or a number. The format is nil if there is none.
func (fs Formats) Named(text string) (name string, f Described) {
	name, f, _ = fs.find(text)
	return name, f
}

func (fs Formats) find(text string) (string, Described, Type) {
	for _, f := range fs {
		for _, t := range f.Describe().Types {
			if strings.EqualFold(text, t.Name) || text != "" && text == t.Number {
				return t.Name, f, t
			}
		}
	}
	return "", nil, Type{}
}

// Usual returns the parameters that a person need not name for a type of signature.
func (fs Formats) Usual(text string) Params {
	_, _, t := fs.find(text)
	return t.Usual
}

// Names returns the documented names of all types of signature, sorted.
func (fs Formats) Names() []string {
	var names []string
	for _, f := range fs {
		for _, t := range f.Describe().Types {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Param returns what is known of a parameter, by its name in any letter case and with space
// around it; the zero Param if nothing is. A name means the same in all formats.
func (fs Formats) Param(name string) Param {
	name = strings.TrimSpace(name)
	for _, f := range fs {
		for _, p := range f.Describe().Params {
			if strings.EqualFold(p.Name, name) {
				return p
			}
		}
	}
	return Param{}
}

// Forms returns the ways to sign that the formats offer to people. Those for all files are last.
func (fs Formats) Forms() []Form {
	var own, any []Form
	for _, f := range fs {
		forms := f.Describe().Forms
		if slices.ContainsFunc(forms, func(f Form) bool { return f.Any }) {
			any = append(any, forms...)
		} else {
			own = append(own, forms...)
		}
	}
	return append(own, any...)
}

// Stamped reports whether the parameters ask for a time stamp. The choices of all formats
// count: this is asked before one of them opens a connection.
func (fs Formats) Stamped(r *ParamReader) bool {
	for _, f := range fs {
		for _, p := range f.Describe().Params {
			value := r.String(p.Name)
			if slices.ContainsFunc(p.Choices, func(c Choice) bool { return c.Level >= LevelTime && c.is(value) }) {
				return true
			}
		}
	}
	return false
}

// headSize is how much of a file Recognises gets, in bytes.
const headSize = 1 << 10

// Recognise returns the format of a file, nil for a file of no known format. The error is one of reading the file.
func (fs Formats) Recognise(ctx context.Context, file Document) (Described, error) {
	size := file.Size()
	head := make([]byte, min(size, headSize))
	if n, err := file.ReadAt(head, 0); n < len(head) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	for _, bare := range []bool{false, true} {
		for _, f := range fs {
			if d := f.Describe(); d.Bare == bare && d.Recognises(head, size) && (d.Confirms == nil || d.Confirms(ctx, file)) {
				return f, nil
			}
		}
	}
	return nil, nil
}

// Expected names the files that the formats recognise, for an error: "XML, PDF or a bare
// signature".
func (fs Formats) Expected() string {
	var all []string
	for _, f := range fs {
		all = append(all, f.Describe().Expected)
	}
	if last := len(all) - 1; last > 0 {
		return strings.Join(all[:last], ", ") + " or " + all[last]
	}
	return strings.Join(all, "")
}
