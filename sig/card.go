// SPDX-License-Identifier: Apache-2.0

package sig

import (
	"context"
	"io"
	"time"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// Card is what a card of a signed document shows and holds: one PDF with the pages of the document and marks of its
// signatures, a sheet of signatures, and the document and its signatures as attachments.
type Card struct {
	// Document is what was signed, and Signatures are the files of its detached signatures. Names are those of files.
	Document   File
	Signatures []File
	// Signers are all signatures of the document that hold, those inside of it first.
	Signers []CardSigner
	// Made is when the signatures were verified, Zone the time zone of texts for people and Language theirs: "ru" or "en".
	Made     time.Time
	Zone     *time.Location
	Language string
	// Report is the report of the verification, the zero value without one.
	Report CardReport
}

// CardSigner is one signature on a card.
type CardSigner struct {
	Certificate *x509gost.Certificate
	// Time is when it was made: as its time stamp proves, if Stamped, or as its signer claims. Zero: not known.
	Time    time.Time
	Stamped bool
	// File is the index of its file in Signatures, -1 for a signature inside of the document. Index is its position there.
	File, Index int
	// Verdict is that of the verification, Passed or Indeterminate.
	Verdict Verdict
}

// CardReport leads to the report of a verification.
type CardReport struct {
	Number, Address string
	// Code is a PNG with the QR code of the address.
	Code []byte
}

// OpenedCard is what a card holds.
type OpenedCard struct {
	// Original is the signed document, nil if the card has lost it. Signatures are the files of its detached signatures.
	Original   *CardFile
	Signatures []*CardFile
	// Others were attached after the card was made.
	Others []*CardFile
	// Made is when the card was made, as it says.
	Made   time.Time
	Report CardReport // without Code
	// Changes are what differs from the digests that the card has. They have no key: they show changes by programs and by
	// accident, and a person who makes a card can make others.
	Changes []CardChange
}

// CardFile is a file inside of a card.
type CardFile struct {
	Name string
	// Size and Digest (Streebog-256) are what the file has, whatever the card says of it.
	Size   int64
	Digest suite.Digest
	// WriteTo writes the file. It may be called any number of times.
	WriteTo func(ctx context.Context, w io.Writer) error
}

// NameKey returns what two names of files have in common that are one file on some system: letter case, and how letters with
// marks are written.
func NameKey(name string) string {
	return norm.NFC.String(cases.Fold().String(norm.NFC.String(name)))
}

// CardChange is something that was changed in a card after it was made.
type CardChange struct {
	Kind CardChangeKind
	Name string // of the file; empty for other changes
}

// CardChangeKind is a kind of change of a card.
type CardChangeKind string

// The kinds of changes.
const (
	CardFileChanged CardChangeKind = "file-changed" // its content differs from what was attached
	CardFileMissing CardChangeKind = "file-missing"
	CardFileAdded   CardChangeKind = "file-added"
	CardExtended    CardChangeKind = "extended" // bytes follow the card as it was made
	CardRewritten   CardChangeKind = "rewritten"
)

// Cards is a Format that makes cards and opens them.
type Cards interface {
	// MakeCard returns a card. An error about a name or an input is an *ErrDocument.
	MakeCard(ctx context.Context, c *Card) (Result, error)
	// OpenCard reads a card. A document that is no card, or that cannot be opened safely, is an *ErrDocument.
	OpenCard(ctx context.Context, card Document) (*OpenedCard, error)
}
