// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/user"
)

// AuditSignature is the operation of the audit entries that the register of signatures is made of, written with the
// end of an operation that signs. The object is the identifier of the operation, and the detail is a JSON array of
// signedEntry: as many documents as an entry has room for. So the register is kept as long as the audit log.
const AuditSignature = "SignatureMade"

// directly are the operations of the interface that sign without an operation of ours. Their entries name the
// certificate, and those of one document what direct says. A batch, and a signature in two steps, has no more.
var directly = []string{"SignDocument", "SignPackage", "PostSignDocument"}

// signedEntry is a document that was signed.
type signedEntry struct {
	Document    string `json:"document"` // of the operation
	Name        string `json:"name,omitempty"`
	Size        int64  `json:"size"`
	Hash        string `json:"hash,omitempty"` // algorithm of the digest
	Digest      string `json:"digest,omitempty"`
	Certificate int64  `json:"certificate"`
	Type        string `json:"type"`
	Original    string `json:"original,omitempty"` // stored document, as long as it is stored
	Result      string `json:"result,omitempty"`
	Method      string `json:"method,omitempty"` // how it was confirmed
	Label       string `json:"label,omitempty"`
}

// maxDetail is what an audit entry keeps of a detail, in bytes.
const maxDetail = 1000

// enter adds a document that was signed to the register.
func (r *signRun) enter(i int, by *signer, t *request, it *Item) {
	d := &r.run.Documents[i]
	e := signedEntry{
		Document: d.ID, Name: d.OriginalName, Size: it.content().Size(), Certificate: by.certificate.ID, Type: t.name, Original: d.OriginalRef, Result: d.RefID,
	}
	digest := r.run.Order().Documents()[i].Known
	if found := it.content().digests(); len(found) > 0 {
		digest = found[0]
	}
	if digest.Hash != nil {
		e.Hash, e.Digest = digest.Hash.Name, hex.EncodeToString(digest.Sum)
	}
	e.Method, e.Label = r.run.ConfirmedBy()
	r.entries = append(r.entries, e)
}

// register records what enter has added.
func (r *signRun) register() {
	for _, detail := range detailsOf(r.entries) {
		r.run.Record(audit.Entry{Operation: AuditSignature, Object: r.run.ID, Detail: detail})
	}
}

// detailsOf returns documents as details of audit entries, in few.
func detailsOf(list []signedEntry) (details []string) {
	var b []byte
	for _, e := range list {
		text := e.text()
		if len(b) > 0 && len(b)+len(text)+len(",]") > maxDetail {
			details, b = append(details, string(append(b, ']'))), b[:0]
		}
		if len(b) == 0 {
			b = append(b, '[')
		} else {
			b = append(b, ',')
		}
		b = append(b, text...)
	}
	if len(b) > 0 {
		details = append(details, string(append(b, ']')))
	}
	return details
}

// text returns the entry as JSON that an audit entry keeps as a whole, in an array. A name that is too long loses its
// end.
func (e signedEntry) text() string {
	for {
		text, err := json.Marshal(e)
		if err != nil {
			return "{}"
		}
		over := len(text) + len("[]") - maxDetail
		switch {
		case over <= 0:
			return string(text)
		case e.Name != "":
			e.Name = shorter(e.Name, over)
		case e.Label != "":
			e.Label = shorter(e.Label, over)
		default:
			return "{}"
		}
	}
}

// shorter returns a text without its last n bytes or a few more.
func shorter(text string, n int) string {
	text = text[:max(len(text)-max(n, 1), 0)]
	for len(text) > 0 && !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return text
}

// Signature is an entry of the register.
type Signature struct {
	Operation   string // identifier; "": a client signed without an operation
	Document    string // of the operation
	At          time.Time
	Name        string // of the file; "": the client did not say it
	Size        int64
	HashName    string // algorithm of Digest
	Digest      string // hexadecimal; "": not known
	Certificate int64  // 0: not known
	Type        string // of the signature
	Original    string // stored document, as long as it is stored
	Result      string
	Method      string // by which the user has confirmed; "": without a confirmation
	Label       string // address of the method as the user sees it
	ClientID    string // application
	Actor       string // login of the operator who acted for the user
}

// RegisterQuery selects entries of the register of a user.
type RegisterQuery struct {
	Text         string // words of the name, a digest or the identifier of an operation, or the beginning of one
	Certificate  int64
	Method       string // of the confirmation; Unconfirmed: without one; "": any
	Since, Until time.Time
	Before       int64 // position to go on from; 0: the newest
	Far          bool  // looks at many more entries of the log
}

// Unconfirmed is RegisterQuery.Method for signatures without a confirmation.
const Unconfirmed = "none"

// RegisterLog reads the audit log.
type RegisterLog interface {
	// Signatures returns the newest entries of some operations of a user, the oldest of them first, and the position to
	// go on from.
	Signatures(ctx context.Context, userID string, operations []string, q RegisterQuery, limit int) ([]audit.Entry, int64, error)
	// Of returns the entries of an operation with an object, the oldest first.
	Of(ctx context.Context, operation, object string, since time.Time) ([]audit.Entry, error)
}

// Register is the register of signatures, read from the audit log.
type Register struct{ Log RegisterLog }

// pagesOfSearch bounds the pages of the log that one call reads for a search.
const pagesOfSearch = 40

// Read returns the signatures of at most limit entries of the log for a user, the newest first, and the position to go on from, 0 after the last one.
// The fault is error_invalid_filter_value.
func (r *Register) Read(ctx context.Context, who audit.Principal, q RegisterQuery, limit int) (list []Signature, before int64, err error) {
	fits, err := q.fits()
	if err != nil {
		return nil, 0, err
	}
	operations := append([]string{AuditSignature}, directly...)
	before = q.Before
	for range pagesOfSearch {
		q.Before = before
		entries, next, err := r.Log.Signatures(ctx, who.UserID, operations, q, limit)
		if err != nil {
			return nil, 0, err
		}
		for i := len(entries) - 1; i >= 0; i-- {
			if entries[i].Principal.UserID != who.UserID {
				continue
			}
			for _, one := range slices.Backward(signaturesOf(&entries[i])) {
				if fits(&one) {
					list = append(list, one)
				}
			}
		}
		before = next
		if before == 0 || len(list) > 0 && q.plain() || len(list) >= limit {
			break
		}
	}
	return list, before, nil
}

// plain reports whether every entry of the period fits.
func (q *RegisterQuery) plain() bool { return q.Text == "" && q.Certificate == 0 && q.Method == "" }

// fits returns the function that says whether an entry is sought.
func (q *RegisterQuery) fits() (func(s *Signature) bool, error) {
	text := strings.ToLower(strings.TrimSpace(q.Text))
	compact := strings.Join(strings.Fields(text), "")
	var terms []user.Term
	if text != "" {
		var err error
		if terms, err = user.SearchTerms(text); err != nil {
			return nil, err
		}
	}
	return func(s *Signature) bool {
		switch {
		case q.Certificate != 0 && s.Certificate != q.Certificate:
			return false
		case q.Method == Unconfirmed && s.Method != "" || q.Method != "" && q.Method != Unconfirmed && s.Method != q.Method:
			return false
		case text == "":
			return true
		case len(compact) >= 4 && (strings.HasPrefix(s.Digest, compact) || strings.HasPrefix(s.Operation, compact)):
			return true
		}
		return user.HasTerms(user.SearchWords(s.Name), terms)
	}, nil
}

// Of returns the signatures of an operation of the user, in their order. The fault is object_not_found.
func (r *Register) Of(ctx context.Context, who audit.Principal, operation string) (list []Signature, err error) {
	entries, err := r.Log.Of(ctx, AuditSignature, strings.ToLower(operation), time.Time{})
	if err != nil {
		return nil, err
	}
	for i := range entries {
		if entries[i].Principal.UserID == who.UserID {
			list = append(list, signaturesOf(&entries[i])...)
		}
	}
	if len(list) == 0 {
		return nil, fault.New(fault.NotFound, "the register has no signature of yours with this number")
	}
	return list, nil
}

// certificateIn returns the certificate that the object of an entry names, 0 for the default one, which may be another by now.
func certificateIn(object string) int64 {
	number, named := strings.CutPrefix(object, "certificate ")
	if !named {
		return 0
	}
	number, _, _ = strings.Cut(number, ",")
	id, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0
	}
	return id
}

// Keys of the detail of an entry that direct writes.
const (
	directType        = "type"
	directSize        = "bytes"
	directCertificate = "certificate"
	directHash        = "hash"
	directDigest      = "digest"
)

// direct returns what the register says of a document that is signed without an operation: what is known without more work.
// The request has no name of a file.
func direct(t *request, by *signer, content *Intake) string {
	text := directType + " " + t.name + ", " + directSize + " " + strconv.FormatInt(content.Size(), 10) + ", " + directCertificate + " " + strconv.FormatInt(by.certificate.ID, 10)
	if sum := content.digest; sum.Sum != nil && !t.read.OverHash { // of the hash itself it would be another digest
		text += ", " + directHash + " " + sum.Hash.Name + ", " + directDigest + " " + hex.EncodeToString(sum.Sum)
	}
	return text
}

// directly adds what direct has written to a signature.
func (s *Signature) directly(detail string) {
	for part := range strings.SplitSeq(detail, ", ") {
		switch key, value, _ := strings.Cut(part, " "); key {
		case directType:
			s.Type = value
		case directSize:
			s.Size, _ = strconv.ParseInt(value, 10, 64)
		case directCertificate:
			s.Certificate, _ = strconv.ParseInt(value, 10, 64)
		case directHash:
			s.HashName = value
		case directDigest:
			s.Digest = value
		}
	}
}

// signaturesOf reads an audit entry, with its documents in their order.
func signaturesOf(e *audit.Entry) (list []Signature) {
	s := Signature{At: e.At, ClientID: e.Principal.ClientID, Actor: e.Principal.Actor}
	if e.Operation != AuditSignature {
		// What an operation has signed has entries of its own.
		if e.Outcome == audit.OK && !strings.HasPrefix(e.Object, "operation") {
			s.Certificate = certificateIn(e.Object)
			if strings.HasPrefix(e.Detail, directType+" ") {
				s.directly(e.Detail)
			}
			list = append(list, s)
		}
		return list
	}
	var documents []signedEntry
	if json.Unmarshal([]byte(e.Detail), &documents) != nil {
		return nil
	}
	for _, of := range documents {
		s.Operation, s.Document, s.Name, s.Size, s.HashName, s.Digest = e.Object, of.Document, of.Name, of.Size, of.Hash, of.Digest
		s.Certificate, s.Type, s.Original, s.Result, s.Method, s.Label = of.Certificate, of.Type, of.Original, of.Result, of.Method, of.Label
		list = append(list, s)
	}
	return list
}
