// SPDX-License-Identifier: Apache-2.0

package xmldsig

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/xmltree"
)

// Slots are the places of a signed document whose content is unknown in Prepare. In the
// text of an edit a slot is written between two NUL characters, which XML does not allow.
const (
	slotValue    = "value"    // the signature value as Base64
	slotUnsigned = "unsigned" // UnsignedProperties, empty below the level T
	slotStamp    = "stamp"    // SignatureTimeStamp of a template
	slotDocument = "document" // the document as Base64
)

func slot(name string) string { return "\x00" + name + "\x00" }

// withoutSlots returns a text with its slots left empty.
func withoutSlots(text string) string {
	parts := strings.Split(text, "\x00")
	for i := range parts {
		if i%2 == 1 {
			parts[i] = ""
		}
	}
	return strings.Join(parts, "")
}

// change is an edit inside an element.
type change struct {
	node xmltree.Node
	edit xmltree.Edit
}

// contentOf returns the change that replaces the whole content of an element.
func contentOf(t *xmltree.Tree, n xmltree.Node, content string) change {
	return change{n, t.SetContent(n, content)}
}

func editsOf(changes []change) []xmltree.Edit {
	edits := make([]xmltree.Edit, len(changes))
	for i, c := range changes {
		edits[i] = c.edit
	}
	return edits
}

// piece is a part of a signed document: bytes, a section of the document to sign (From
// and To), or a slot.
type piece struct {
	Bytes []byte `json:"b,omitempty"`
	From  int64  `json:"f,omitempty"`
	To    int64  `json:"t,omitempty"`
	Slot  string `json:"s,omitempty"`
}

// planOf returns the pieces of a document with edits. The edits must not overlap.
func planOf(t *xmltree.Tree, edits []xmltree.Edit) ([]piece, error) {
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b xmltree.Edit) int { return a.Span.Start - b.Span.Start })
	var out []piece
	text, size := t.Text(), int64(len(t.Original()))
	at := 0                                  // position in the text
	from := size - width(t.Encoding(), text) // the same position in the document
	var begin int64                          // start of the section not yet written
	for _, e := range edits {
		if e.Span.Start < at {
			return nil, fmt.Errorf("xmldsig: changes to the document overlap at offset %d of its text", e.Span.Start)
		}
		from += width(t.Encoding(), text[at:e.Span.Start])
		out = append(out, piece{From: begin, To: from})
		for i, part := range strings.Split(e.Text, "\x00") {
			if i%2 == 1 {
				out = append(out, piece{Slot: part})
			} else if part != "" {
				out = append(out, piece{Bytes: t.Encode(part)})
			}
		}
		from += width(t.Encoding(), text[e.Span.Start:e.Span.End])
		at, begin = e.Span.End, from
	}
	out = append(out, piece{From: begin, To: size})
	return slices.DeleteFunc(out, func(p piece) bool { return p.Bytes == nil && p.Slot == "" && p.From == p.To }), nil
}

// width returns the length of a text in bytes, in an encoding of package xmltree.
func width(encoding string, text []byte) int64 {
	switch {
	case encoding == "utf-8", encoding == "us-ascii":
		return int64(len(text))
	case isWide(encoding):
		units := utf8.RuneCount(text)
		for _, b := range text {
			if b >= 0xF0 { // four bytes of UTF-8 are two units of UTF-16
				units++
			}
		}
		return 2 * int64(units)
	}
	return int64(utf8.RuneCount(text)) // one byte a character
}

func isWide(encoding string) bool { return strings.HasPrefix(encoding, "utf-16") }

// wide encodes ASCII text in an encoding of two bytes a character. For all others it
// returns the text as it is.
func wide(encoding, text string) []byte {
	if !isWide(encoding) {
		return []byte(text)
	}
	out := make([]byte, 0, 2*len(text))
	for i := range len(text) {
		if encoding == "utf-16be" {
			out = append(out, 0, text[i])
		} else {
			out = append(out, text[i], 0)
		}
	}
	return out
}

var stateForm = sig.StateForm{What: "a signature in XML", First: 1, JSON: 1, Version: 2}

// state is all that Finish needs in addition to the job's document and certificate.
type state struct {
	sig.StateHeader
	Document []byte  `json:"document"` // SHA-256 of the document
	Digest   []byte  `json:"digest"`   // of the canonical SignedInfo, by the suite's hash
	Encoding string  `json:"encoding"` // of the result
	Pieces   []piece `json:"pieces"`   // of the result
	Level    string  `json:"level"`    // XAdESType
	Address  string  `json:"address,omitempty"`
	// Stamped is the text before and after the value in the canonical SignatureValue,
	// which the time stamp of a template covers.
	Stamped []string `json:"stamped,omitempty"`
}

// Fields implements sig.State.
func (st *state) Fields(f *sig.Fields) {
	f.Header(&st.StateHeader)
	f.Bytes(&st.Document)
	f.Bytes(&st.Digest)
	f.Text(&st.Encoding)
	sig.List(f, &st.Pieces, func(p *piece) {
		f.Bytes(&p.Bytes)
		sig.Number(f, &p.From)
		sig.Number(f, &p.To)
		f.Text(&p.Slot)
	})
	f.Text(&st.Level)
	f.Text(&st.Address)
	sig.List(f, &st.Stamped, func(s *string) { f.Text(s) })
}

// readState reads a prepared state and checks that it was made for this job. The caller
// must check the digest of the document.
func readState(job *sig.Job, s *suite.Suite, prepared []byte) (*state, error) {
	var st state
	if err := sig.OpenState(stateForm, job, prepared, &st); err != nil {
		return nil, err
	}
	if err := st.CheckCertificate(job.Certificate); err != nil {
		return nil, err
	}
	if err := st.CheckSize(job.Document); err != nil {
		return nil, err
	}
	damaged := len(st.Digest) != s.Hash.Size || len(st.Stamped) != 0 && len(st.Stamped) != 2
	for _, p := range st.Pieces {
		damaged = damaged || p.From < 0 || p.To < p.From || p.To > st.Size
	}
	if damaged {
		return nil, &sig.ErrState{Text: "damaged"}
	}
	return &st, nil
}

// sum returns the SHA-256 of a document.
func sum(d sig.Document) ([]byte, error) {
	h := sha256.New()
	buf := make([]byte, min(max(d.Size(), 1), 64<<10))
	if n, err := io.CopyBuffer(h, io.NewSectionReader(d, 0, d.Size()), buf); err != nil {
		return nil, readError(err)
	} else if n < d.Size() {
		return nil, readError(io.ErrUnexpectedEOF)
	}
	return h.Sum(nil), nil
}

// encoded is the Base64 of the first size bytes of a document. It is encoded while it is read, so
// a result holds no document.
type encoded struct {
	document sig.Document
	size     int64
}

// encodedAtOnce is how many bytes are encoded at once: whole groups.
const encodedAtOnce = 3 << 12

// Size returns the length of the Base64 in bytes.
func (e encoded) Size() int64 { return (e.size + 2) / 3 * 4 }

// ReadAt implements io.ReaderAt.
func (e encoded) ReadAt(p []byte, off int64) (n int, err error) {
	var data [encodedAtOnce]byte
	var text [encodedAtOnce / 3 * 4]byte
	for n < len(p) {
		at := (off + int64(n)) / 4 * 3
		if at >= e.size {
			return n, io.EOF
		}
		groups := (int64(len(p)-n)+3)/4 + 1 // the first one may be read in part
		part := data[:min(encodedAtOnce, 3*groups, e.size-at)]
		if got, err := e.document.ReadAt(part, at); got < len(part) {
			if err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return n, readError(err)
		}
		base64.StdEncoding.Encode(text[:], part)
		n += copy(p[n:], text[(off+int64(n))%4:base64.StdEncoding.EncodedLen(len(part))])
	}
	return n, nil
}

// result returns the signed document. fill has the content of all slots except
// slotDocument.
func (st *state) result(job *sig.Job, fill map[string]string) (*sig.Assembly, error) {
	var parts []sig.Part
	for _, p := range st.Pieces {
		switch {
		case p.Slot == slotDocument:
			text := encoded{job.Document, st.Size}
			parts = append(parts, sig.Section(text, 0, text.Size()))
		case p.Slot != "":
			text, ok := fill[p.Slot]
			if !ok {
				return nil, &sig.ErrState{Text: "damaged"}
			}
			parts = append(parts, sig.Bytes(wide(st.Encoding, text)))
		case p.Bytes != nil:
			parts = append(parts, sig.Bytes(p.Bytes))
		default:
			parts = append(parts, sig.Section(job.Document, p.From, p.To-p.From))
		}
	}
	return sig.Parts(parts...), nil
}
