// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/fault"
	"tamga/sig"
)

// CardOrder orders a card of a signed document: one PDF with its pages, the marks of its signatures, a sheet of
// signatures, and the files as attachments.
type CardOrder struct {
	Document   sig.File
	Signatures []sig.File // its detached signatures; empty if they are inside of it
	Password   string     // opens an encrypted PDF, to verify the signatures inside of it; a secret
	Zone       *time.Location
	Language   string // of the sheet: "ru" or "en"
	// Keep stores a report of the verification, and returns what leads to it. nil: none is stored.
	Keep func(ctx context.Context, found []SignatureReport, digest []byte) (number, address string, err error)
	// Drop deletes that report, if the card could not be made. It is needed with Keep.
	Drop func(ctx context.Context, number string) error
	// Paint returns a PNG with the QR code of an address. It is needed with Keep.
	Paint func(address string) ([]byte, error)
}

// Add adds a detached signature.
func (o *CardOrder) Add(name string, content *Intake) {
	o.Signatures = append(o.Signatures, sig.File{Name: name, Document: content, Digests: content.digests()})
}

// Of names the document.
func (o *CardOrder) Of(name string, content *Intake) {
	o.Document = sig.File{Name: name, Document: content, Digests: content.digests()}
}

// Card verifies the signatures of a document and makes its card.
func (v *Verification) Card(ctx context.Context, o *CardOrder) (sig.Result, error) {
	trust, err := v.Trust(ctx)
	if err != nil {
		return nil, err
	}
	return MakeCard(v.bounded(ctx), v.Formats, sig.Check{
		Roots: trust.Roots, Intermediates: trust.Intermediates, CRLs: trust.CRLs, At: v.Now(), Evidence: v.Evidence, RequireRevocation: true, Ends: v.Ends, LivingStamps: v.LivingStamps,
	}, o)
}

// OpenCard reads a card.
func (v *Verification) OpenCard(ctx context.Context, card sig.Document) (*sig.OpenedCard, error) {
	opened, err := OpenCard(v.bounded(ctx), v.Formats, card)
	if err != nil {
		return nil, refused(err)
	}
	return opened, nil
}

// OpenCard reads a card with the format that makes cards.
func OpenCard(ctx context.Context, known sig.Formats, card sig.Document) (*sig.OpenedCard, error) {
	cards, err := cardsOf(known)
	if err != nil {
		return nil, err
	}
	return cards.OpenCard(ctx, card)
}

// cardsOf returns the format that makes cards.
func cardsOf(known sig.Formats) (sig.Cards, error) {
	for _, f := range known {
		if cards, ok := f.(sig.Cards); ok {
			return cards, nil
		}
	}
	return nil, errors.New("signing: no format makes cards")
}

// MakeCard is [Verification.Card] with what signatures are checked against. Every signature must hold: a mark on paper
// says that a document was signed, and cannot say more. Faults: content_required without a document, invalid_content for
// a signature that does not hold and for a document without one.
func MakeCard(ctx context.Context, known sig.Formats, check sig.Check, o *CardOrder) (sig.Result, error) {
	if o.Document.Document == nil || o.Document.Document.Size() == 0 {
		return nil, fault.New(fault.ContentRequired, "the document of the card is missing or empty")
	}
	cards, err := cardsOf(known)
	if err != nil {
		return nil, err
	}
	check.Password = []byte(o.Password)
	c := &cardVerifier{known: known, check: check}
	c.card = sig.Card{Document: o.Document, Signatures: o.Signatures, Made: check.At, Zone: o.Zone, Language: o.Language}
	if err := c.verify(ctx, o.Document, -1); err != nil {
		return nil, err
	}
	for i, s := range o.Signatures {
		if err := c.verify(ctx, s, i); err != nil {
			return nil, err
		}
	}
	if len(c.card.Signers) == 0 {
		return nil, fault.New(fault.InvalidContent, "the document has no signature: give the files of its signatures, too")
	}
	if o.Keep != nil {
		return c.withReport(ctx, cards, o)
	}
	result, err := cards.MakeCard(ctx, &c.card)
	if err != nil {
		return nil, refused(err)
	}
	return result, nil
}

// withReport makes a card that leads to a stored report. The report is stored first, since the card has its number: one
// whose card cannot be made is deleted.
func (c *cardVerifier) withReport(ctx context.Context, cards sig.Cards, o *CardOrder) (result sig.Result, err error) {
	hashed, err := sig.DigestOf(ctx, o.Document, digestOfReports)
	if err != nil {
		return nil, err
	}
	report := &c.card.Report
	if report.Number, report.Address, err = o.Keep(ctx, c.found, hashed.Sum); err != nil {
		return nil, err
	}
	defer func() {
		if err == nil {
			return
		}
		if failed := o.Drop(context.WithoutCancel(ctx), report.Number); failed != nil {
			err = errors.Join(err, failed)
		}
	}()
	if report.Address != "" {
		if report.Code, err = o.Paint(report.Address); err != nil {
			return nil, err
		}
	}
	if result, err = cards.MakeCard(ctx, &c.card); err != nil {
		return nil, refused(err)
	}
	return result, nil
}

// cardVerifier verifies the signatures of a card.
type cardVerifier struct {
	known sig.Formats
	check sig.Check
	card  sig.Card
	found []SignatureReport
	seen  int // signatures of all files
}

// verify verifies one file: the document itself (at -1), or a detached signature.
func (c *cardVerifier) verify(ctx context.Context, file sig.File, at int) error {
	format, err := c.known.Recognise(ctx, file.Document)
	if err != nil {
		return err
	}
	inside := at < 0
	if format == nil || format.Describe().Bare {
		if inside {
			return nil
		}
		return fault.Newf(fault.InvalidContent, "the file %s is no signature with the certificate of its signer: a detached signature of the document expected", abbreviate(file.Name))
	}
	check := c.check
	check.Document, check.Password = file.Document, nil
	if inside {
		check.Password = c.check.Password
	}
	if !inside {
		// Only a format that says so has signatures over another file. Others carry what they signed.
		inspect, detached := format.Describe().Inspect, false
		if inspect != nil {
			contents, err := inspect(file.Document)
			detached = err == nil && contents.Detached
		}
		if !detached {
			return fault.Newf(fault.InvalidContent, "the file %s is no detached signature: it carries what it signed, and is a document of its own", abbreviate(file.Name))
		}
		check.Original = c.card.Document.Document
	} else if inspect := format.Describe().Inspect; inspect != nil {
		switch contents, err := inspect(file.Document); {
		case err != nil:
			return nil // it is a document like any other
		case contents.Detached:
			return fault.New(fault.InvalidContent, "the document of the card is a signature without its document: give the document first, and the signature after it")
		}
	}
	report, err := format.Verify(ctx, &check)
	var document *sig.ErrDocument
	switch {
	case err != nil && inside && len(c.card.Signatures) > 0 && (errors.As(err, &document) || NeedsPassword(err)):
		return nil // broken or encrypted: its detached signatures count
	case err != nil:
		return refused(err)
	}
	if !inside && len(report.Signatures) == 0 {
		return fault.Newf(fault.InvalidContent, "the file %s has no signature", abbreviate(file.Name))
	}
	first := c.seen
	c.seen += len(report.Signatures)
	for i := range report.Signatures {
		s := &report.Signatures[i]
		if s.IsStamp() && report.Own() == sig.Passed && report.Verdict() != sig.Failed {
			continue // a time stamp of the document; a broken one is left out of the verdict
		}
		if max(s.Verdict(), report.Own()) == sig.Failed || report.Own() != sig.Passed || !s.IsStamp() && s.Signer != nil && !holds(s) {
			var judged SignatureReport
			judged.set(sig.Conclusion{Verdict: sig.Failed}, append(s.Findings, report.Findings...))
			return fault.Newf(fault.InvalidContent, "the signature %d of the file %s does not hold, and a card is only of signatures that do: %s", i+1, abbreviate(file.Name), judged.Message)
		}
		if s.IsStamp() {
			continue // a time stamp of the document
		}
		if s.Signer == nil {
			return fault.Newf(fault.InvalidContent, "the signature %d of the file %s has no certificate of its signer", i+1, abbreviate(file.Name))
		}
		one := sig.CardSigner{Certificate: s.Signer, Time: s.SigningTime, File: at, Index: i, Verdict: max(s.Verdict(), report.Own())}
		for _, stamp := range slices.Concat(s.TimeStamps, s.Proofs) {
			if stamp.Proves() && (!one.Stamped || stamp.Time.Before(one.Time)) {
				one.Time, one.Stamped = stamp.Time, true
			}
		}
		c.card.Signers = append(c.card.Signers, one)
	}
	for _, r := range (&reporter{whole: report, check: &check, withPath: true}).of(nil, report.Signatures, "") {
		r.ID, r.ParentID = shifted(r.ID, first), shifted(r.ParentID, first)
		c.found = append(c.found, r)
	}
	return nil
}

// holds reports whether a signature and those over it are valid under the keys of their signers. What is left open can then
// only be about certificates.
func holds(s *sig.Signature) bool {
	if !s.Holds() {
		return false
	}
	for i := range s.Countersigners {
		if !holds(&s.Countersigners[i]) {
			return false
		}
	}
	return true
}

// shifted returns the identifier of a signature that follows those of other files.
func shifted(id string, by int) string {
	own, rest, inner := strings.Cut(id, ".")
	n, err := strconv.Atoi(own)
	if err != nil {
		return id
	}
	if own = strconv.Itoa(n + by); inner {
		return own + "." + rest
	}
	return own
}
