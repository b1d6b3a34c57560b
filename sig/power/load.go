// SPDX-License-Identifier: Apache-2.0

package power

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/budget"
	"tamga/sig/zip"
)

// Limits of Load.
const (
	MaxPowers     = 10
	MaxSignatures = 30 // files
)

// Set is some powers with their signatures.
type Set struct {
	powers []given
	// stray are names of files that are signatures of nothing here.
	stray []string
}

// given is a power with the signatures of its document.
type given struct {
	*Power
	document   []byte
	signatures []sig.Signature
	codes      map[string]bool // of its rights, in lower case
}

// Load reads powers and the signatures of their principals, in any order. A file that is no power is a detached signature of
// one; whose it is follows from the digest in it. A power may also have XML signatures inside, and a file may be a ZIP archive of
// such files. check has the trust anchors and the time, as for other documents.
func Load(ctx context.Context, known sig.Formats, check sig.Check, list []sig.File) (*Set, error) {
	check = sig.Check{
		Roots: check.Roots, Intermediates: check.Intermediates, CRLs: check.CRLs, OCSP: check.OCSP,
		At: check.At, Evidence: check.Evidence, RequireRevocation: check.RequireRevocation,
		Ends: check.Ends, LivingStamps: check.LivingStamps,
		Strict: true, // a signature of a part says nothing about the rest
	}
	// One call pays for all of it, because contents are kept until the end.
	return sig.Within(ctx, sizes(list), func(ctx context.Context) (*Set, error) { return load(ctx, known, check, list) })
}

// sizes are files, by their size together.
type sizes []sig.File

// Size returns the bytes of all files.
func (s sizes) Size() (n int64) {
	for _, f := range s {
		n += f.Document.Size()
	}
	return n
}

func load(ctx context.Context, known sig.Formats, check sig.Check, list []sig.File) (*Set, error) {
	s := &Set{}
	list, err := unpacked(ctx, list)
	if err != nil {
		return nil, err
	}
	var beside []sig.File
	for _, f := range list {
		is, err := Is(f.Document)
		if err != nil {
			return nil, err
		}
		if !is {
			beside = append(beside, f)
			continue
		}
		if len(s.powers) == MaxPowers {
			return nil, faulty("there are more than %d", MaxPowers)
		}
		if err := s.add(ctx, known, check, f); err != nil {
			return nil, named(f.Name, err)
		}
	}
	switch {
	case len(s.powers) == 0:
		return nil, faulty("none of the files is one: XML with the root element Доверенность expected")
	case len(beside) > MaxSignatures:
		return nil, faulty("there are more than %d files with signatures", MaxSignatures)
	}
	for _, f := range beside {
		if err := s.sign(ctx, known, check, f); err != nil {
			return nil, named(f.Name, err)
		}
	}
	for i := range s.powers {
		s.powers[i].document = nil // only signatures need it
	}
	return s, nil
}

// unpacked returns files with the files of archives in their place.
func unpacked(ctx context.Context, list []sig.File) (all []sig.File, err error) {
	for _, f := range list {
		head := make([]byte, min(f.Document.Size(), 4))
		if n, err := f.Document.ReadAt(head, 0); n < len(head) {
			return nil, cmp.Or(err, io.ErrUnexpectedEOF)
		}
		if string(head) != "PK\x03\x04" {
			all = append(all, f)
			continue
		}
		err = unpack(ctx, f, &all)
		var wrong *zip.Error
		if errors.As(err, &wrong) {
			err = &Error{err.Error()}
		}
		if err != nil {
			return nil, named(f.Name, err)
		}
	}
	return all, nil
}

// unpack adds the files of an archive.
func unpack(ctx context.Context, f sig.File, all *[]sig.File) error {
	_, b := budget.Of(ctx, 0)
	a, err := zip.Open(b, f.Document)
	if err != nil {
		return err
	}
	for i := range a.Entries {
		e := &a.Entries[i]
		if strings.HasSuffix(e.Name, "/") {
			continue
		}
		if len(*all) >= MaxPowers+MaxSignatures { // of all archives, before it is unpacked
			return faulty("there are more than %d files", MaxPowers+MaxSignatures)
		}
		content, err := a.Content(ctx, e, MaxSize)
		if err != nil {
			return err
		}
		*all = append(*all, sig.File{Name: e.Name, Document: bytes.NewReader(content)})
	}
	return nil
}

// named adds the name of a file to an error about its content.
func named(name string, err error) error {
	var wrong *Error
	if name != "" && errors.As(err, &wrong) {
		return &Error{name + ": " + wrong.Text}
	}
	return err
}

// Is reports whether a file may be a power, by its beginning.
func Is(d sig.Document) (bool, error) {
	head := make([]byte, min(d.Size(), 1<<10))
	if n, err := d.ReadAt(head, 0); n < len(head) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return false, err
	}
	return Recognises(head), nil
}

// add reads a power, and verifies XML signatures inside.
func (s *Set) add(ctx context.Context, known sig.Formats, check sig.Check, f sig.File) error {
	if f.Document.Size() > MaxSize {
		return faulty("it has %d bytes, at most %d expected", f.Document.Size(), MaxSize)
	}
	_, b := budget.Of(ctx, 0)
	if err := b.Hold(f.Document.Size()); err != nil {
		return err
	}
	document := make([]byte, f.Document.Size())
	if n, err := f.Document.ReadAt(document, 0); n < len(document) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	p, signed, err := read(ctx, document)
	if err != nil {
		return err
	}
	for i := range s.powers {
		if s.powers[i].Number != p.Number {
			continue
		}
		if !bytes.Equal(s.powers[i].document, document) {
			return faulty("two different ones have the number %s", p.Number)
		}
		return nil // the same again
	}
	g := given{Power: p, document: document, codes: map[string]bool{}}
	for _, r := range p.Rights {
		if r.Code != "" {
			g.codes[strings.ToLower(r.Code)] = true
		}
	}
	if signed {
		format, err := known.Recognise(ctx, bytes.NewReader(document))
		if err != nil {
			return err
		}
		if format != nil {
			check.Document = bytes.NewReader(document)
			r, err := format.Verify(ctx, &check)
			if err != nil {
				return refused(err)
			}
			g.signatures = signaturesOf(r)
		}
	}
	s.powers = append(s.powers, g)
	return nil
}

// refused returns an error about the content of a file as an Error.
func refused(err error) error {
	var document *sig.ErrDocument
	var params *sig.ErrParams
	if errors.As(err, &document) || errors.As(err, &params) {
		return &Error{err.Error()}
	}
	return err
}

// signaturesOf returns the signatures of a report, with findings about the whole file in each.
func signaturesOf(r *sig.Report) []sig.Signature {
	list := slices.Clone(r.Signatures)
	for i := range list {
		list[i].Findings = slices.Concat(list[i].Findings, r.Findings)
	}
	return list
}

// sign adds a file with signatures to the power that it signs.
func (s *Set) sign(ctx context.Context, known sig.Formats, check sig.Check, f sig.File) error {
	format, err := known.Recognise(ctx, f.Document)
	switch {
	case err != nil:
		return err
	case format == nil || format.Describe().Bare || format.Describe().Inspect == nil:
		return faulty("neither a power nor a signature of one: XML with the root element Доверенность, or a message CMS expected")
	}
	check.Document, check.Describe = f.Document, true
	described, err := format.Verify(ctx, &check)
	if err != nil {
		return refused(err)
	}
	check.Describe = false
	var signed []suite.Digest
	for i := range described.Signatures {
		if d := described.Signatures[i].Signed; d != nil {
			signed = append(signed, *d)
		}
	}
	for i := range s.powers {
		p := &s.powers[i]
		// A message with the document inside has no such digest. It must be for the document, which Verify compares.
		if len(signed) > 0 && !slices.ContainsFunc(signed, func(d suite.Digest) bool { return bytes.Equal(d.Hash.Digest(p.document).Sum, d.Sum) }) {
			continue
		}
		check.Original = bytes.NewReader(p.document)
		r, err := format.Verify(ctx, &check)
		if err != nil {
			return refused(err)
		}
		if len(signed) == 0 && !slices.ContainsFunc(r.Signatures, func(one sig.Signature) bool { return one.Holds() && r.Own() == sig.Passed }) {
			continue // of another document
		}
		p.signatures = append(p.signatures, signaturesOf(r)...)
		return nil
	}
	s.stray = append(s.stray, f.Name)
	return nil
}
