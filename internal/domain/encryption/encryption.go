// SPDX-License-Identifier: Apache-2.0

// Package encryption encrypts documents for certificates and decrypts messages with users' keys. Both are
// kinds of operation (see [operation.Kind]): begin with [Service.Kinds], and with [Service.Encrypting] and
// [Service.Decrypting], which make the orders that package operation starts. [Service.Parse] says which
// certificates of a user open a message.
//
// Decryption obeys the policies of the action DecryptDocument, is confirmed, carried out later and repeated like
// a signature. What a user confirms is the encrypted message, its recipient and the application. No byte of a
// plaintext is in a result before the whole message was checked: until then it is in a sealed scratch document
// of this process. Encryption uses no key of ours, so it needs neither a policy nor a confirmation.
//
// The formats are rows of a table in types.go. The package opens no files and sends no requests.
package encryption

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/signing"
	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// Keys gives access to the certificates of users and to the keys that decrypt; *keys.Service satisfies it.
type Keys interface {
	List(ctx context.Context, userID string) ([]*keys.Certificate, error)
	ResolveIn(ctx context.Context, snap *keys.Snapshot, userID, identifier string) (*keys.Certificate, error)
	Decrypts(ctx context.Context, snap *keys.Snapshot, userID string, c *keys.Certificate) error
	DecryptIn(ctx context.Context, snap *keys.Snapshot, userID string, c *keys.Certificate, pin string) (cms.Opening, error)
	CheckPIN(ctx context.Context, who audit.Principal, id, pin string, attempts bool) (valid bool, reason string, err error)
	Receiving(ctx context.Context, at time.Time) (check func(cert *x509gost.Certificate) error, err error)
}

// Policy decides what users may do; *policy.Service satisfies it.
type Policy interface {
	PermitBy(access policy.Set, a policy.Action) error
	NeedsConfirmationBy(operation policy.Set, a policy.Action) bool
}

// Snapshots reads what a user may do now; *signing.Service satisfies it.
type Snapshots interface {
	Current(ctx context.Context, who audit.Principal, snap *signing.Snapshot) (*signing.Snapshot, error)
}

// Operations starts orders; *operation.Service satisfies it.
type Operations interface {
	Start(ctx context.Context, o *operation.Order) (*operation.Operation, any, error)
}

// Service encrypts and decrypts. All fields must be set before first use and must not change after that. It is
// safe for concurrent use.
type Service struct {
	Operations Operations
	Keys       Keys
	Policy     Policy
	Snapshots  Snapshots
	// Scratch returns a document for a result: in memory, or in a file that is sealed. Its siblings share both.
	Scratch func() *signing.Intake
	Now     func() time.Time
	Rand    io.Reader
}

// Names of the kinds of operation.
const (
	KindEncrypt = "encrypt"
	KindDecrypt = "decrypt"
	kindParse   = "parse"
)

// Input is a document of an order: a stored document, or one sent with the request.
type Input struct {
	RefID   string       // of a stored document
	Content sig.Document // instead of RefID; nil: none
	Name    string       // file name as the client sent it; returned unchanged
	Err     error        // a fault of this input
}

// inputs returns the documents of an order for package operation.
func inputs(list []Input) []operation.Input {
	in := make([]operation.Input, len(list))
	for i, one := range list {
		in[i] = operation.Input{RefID: one.RefID, Name: one.Name, Err: one.Err}
		if one.Content != nil && one.Content.Size() > 0 {
			in[i].Content = one.Content
		}
	}
	return in
}

// MaxDocuments is the number of documents of one order.
const MaxDocuments = 10_000

func checkInputs(list []Input) error {
	switch {
	case len(list) == 0:
		return fault.New(fault.ContentRequired, "there is no document: send one as Base64")
	case len(list) > MaxDocuments:
		return fault.Newf(fault.InvalidParameters, "%d documents in one request: send at most %d", len(list), MaxDocuments)
	}
	for i := range list {
		in := &list[i]
		switch {
		case in.Err != nil:
		case in.RefID != "" && in.Content != nil:
			return fault.Newf(fault.InvalidParameters, "BinaryData[%d]: RefId and Content are both given: send one of them", i)
		}
	}
	return nil
}

// noDocument is the fault of a document that is missing or empty.
func noDocument() error {
	return fault.New(fault.ContentRequired, "the document is missing or empty: send it as Base64")
}

// Kinds returns the rows of the table for package operation.
func (s *Service) Kinds() []operation.Kind {
	return []operation.Kind{s.encryptKind(), s.decryptKind(), s.parseKind()}
}

// free permits an order that uses no key of ours.
func free(context.Context, *operation.Order) (confirm bool, err error) { return false, nil }

// ended refuses a request as a whole if its only document has a fault, or all have one that is about all.
func ended(r *operation.Run) error {
	if !r.AtOnce() || r.Confirmed() {
		return nil
	}
	faults := make([]*fault.Error, len(r.Documents))
	for i := range faults {
		faults[i] = r.Documents[i].Fault
	}
	if f := operation.Refusal(faults); f != nil {
		return operation.OfDocumentAt(0, f)
	}
	return nil
}

// results gives out the scratch documents of a run.
type results struct {
	last *signing.Intake // of those that stay open; nil: none
}

// next returns a scratch document. Those that stay open share their memory and their file.
func (r *results) next(s *Service, stays bool) (made *signing.Intake, err error) {
	if !stays || r.last == nil {
		made = s.Scratch()
	} else {
		made, err = r.last.Sibling()
	}
	if stays && err == nil {
		r.last = made
	}
	return made, err
}

// total is what audit entries say of the documents of an order: their number, sizes and digests.
type total struct {
	messages, refused   int
	encrypted, plain    int64 // bytes
	digest              []byte
	several             hash.Hash // of the digests of several messages
	verified, unchecked int       // of messages that were decrypted
}

// add counts a message with its digest.
func (t *total) add(digest []byte, size int64) {
	t.messages++
	t.encrypted += size
	if t.messages == 1 {
		t.digest = digest
		return
	}
	if t.several == nil {
		t.several = suite.Streebog256.New()
		t.several.Write(t.digest)
	}
	t.several.Write(digest)
}

// String returns the text for audit entries. The digest of several messages is Streebog-256 of their digests, in
// their order.
func (t *total) String() string {
	if t.messages == 0 {
		return "no message"
	}
	digest := t.digest
	var b strings.Builder
	if t.messages == 1 {
		b.WriteString("message ")
	} else {
		digest = t.several.Sum(nil)
		fmt.Fprintf(&b, "%d messages ", t.messages)
	}
	fmt.Fprintf(&b, "%x of %d bytes", digest, t.encrypted)
	if t.refused > 0 {
		fmt.Fprintf(&b, ", %d documents refused", t.refused)
	}
	return b.String()
}

// digestOf returns the Streebog-256 digest of a document.
func digestOf(ctx context.Context, d sig.Document) ([]byte, error) {
	found, err := sig.DigestAll(ctx, operation.NewSection(d, 0, d.Size()), d.Size(), suite.Streebog256)
	if err != nil {
		return nil, err
	}
	return found[0].Sum, nil
}

func streebog(b []byte) []byte {
	h := suite.Streebog256.New()
	h.Write(b)
	return h.Sum(nil)
}

// source keeps the error of a document that cannot be read, which is no fault of the message.
type source struct {
	sig.Document
	err error
}

// ReadAt implements [io.ReaderAt].
func (s *source) ReadAt(p []byte, off int64) (int, error) {
	n, err := s.Document.ReadAt(p, off)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}
