package ooxml

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"tamga/sig"
)

// Codes of findings.
const (
	codeNoSignature  = "no-signature"             // nobody signed the document
	codeMany         = "too-many-signatures"      // more than are judged
	codeMalformed    = "signature-malformed"      // an element is missing, doubled or in a wrong place
	codeUnreachable  = "signature-unreachable"    // a signature part that the origin does not know
	codeGone         = "signature-missing"        // a signature part that the origin names and that is not there
	codeMissing      = "reference-missing"        // a part that was signed is not there
	codeTwice        = "reference-twice"          // a part is signed twice
	codeDigest       = "digest-mismatch"          // what was signed has changed
	codeAlgorithm    = "algorithm-unknown"        // an algorithm that is not known
	codeTransform    = "transform-refused"        // a transform that is not of a package
	codeContentType  = "content-type-changed"     // a part is of another kind than when it was signed
	codeRelationship = "relationship-not-covered" // a relationship that nobody signed and Office would have
	codeUncovered    = "part-not-covered"         // a part that nobody signed and Office would have
	codeUnknown      = "relationship-unknown"     // a relationship of a type that is not known, which nobody signed
	codeFailed       = "reference-failed"         // a part cannot be read
	codeWork         = "too-much-work"            // more than is looked at
	codeNotOffice    = "office-details-missing"   // a signature that was not made for Office
	codeHidden       = "hidden-entry"             // octets in the archive that belong to no entry
	codeNotLookedAt  = "original-not-compared"    // a document given beside, for which there is no use
)

// indications say what fatal findings mean. Those that are not listed break the
// rules of the format: FORMAT_FAILURE. That is also what an Office signature does
// that leaves out what Office signs.
var indications = sig.Indications{
	codeMany: sig.Generic,
	// The package says that there is one signature more than can be judged. Nothing
	// shows that it did not hold, so the document has not failed.
	codeGone:    sig.SignedDataNotFound,
	codeMissing: sig.SignedDataNotFound,
	codeDigest:  sig.HashFailure,
	// The content type is in the signed reference to a part.
	codeContentType: sig.HashFailure,
	codeAlgorithm:   sig.CryptoConstraintsFailure,
	// What it leads to may show in some program, or nowhere.
	codeUnknown: sig.SignedDataNotFound,
	codeFailed:  sig.SignedDataNotFound,
	codeWork:    sig.Generic,
}

// unfit is the error of an Office document that cannot be signed or judged.
func unfit(cause error, format string, args ...any) error {
	return &sig.ErrDocument{What: "Document", Text: fmt.Sprintf(format, args...), Err: cause}
}

// otherKind is the error of a document that is no Office document.
func otherKind(format string, args ...any) error {
	return &sig.ErrDocument{What: "Document", Text: fmt.Sprintf(format, args...), OtherKind: true}
}

// isDocument tells whether an error is about the document and not about reading it.
func isDocument(err error) bool {
	var e *sig.ErrDocument
	return errors.As(err, &e)
}

func readError(err error) error { return fmt.Errorf("document: reading it: %w", err) }

// quote shows a text from outside, cut so that an error stays one line.
func quote(s string) string {
	const most = 120
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return strconv.Quote(s)
}
