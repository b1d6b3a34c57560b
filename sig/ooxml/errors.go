// SPDX-License-Identifier: Apache-2.0

package ooxml

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"tamga/sig"
	"tamga/sig/zip"
)

// Codes of findings.
const (
	codeNoSignature  = "no-signature"             // the document has no signature
	codeMany         = "too-many-signatures"      // more than are checked
	codeMalformed    = "signature-malformed"      // an element is missing, duplicate or in a wrong place
	codeUnreachable  = "signature-unreachable"    // a signature part that the origin does not refer to
	codeGone         = "signature-missing"        // a signature part that the origin refers to, but that is missing
	codeMissing      = "reference-missing"        // a signed part is missing
	codeTwice        = "reference-twice"          // a part is signed twice
	codeDigest       = "digest-mismatch"          // a signed part has changed
	codeAlgorithm    = "algorithm-unknown"        // an unknown algorithm
	codeTransform    = "transform-unexpected"     // a transform that signatures of packages do not use
	codeContentType  = "content-type-changed"     // a part has another content type than when it was signed
	codeNoType       = "content-type-missing"     // a part or a relationships part without its content type
	codeRelationship = "relationship-not-covered" // an unsigned relationship that Office would have signed
	codeUncovered    = "part-not-covered"         // an unsigned part that Office would have signed
	codeUnknown      = "relationship-unknown"     // an unsigned relationship of an unknown type
	codeFailed       = "reference-failed"         // a part is unreadable
	codeWork         = "too-much-work"            // more than the limit
	codeNotOffice    = "office-details-missing"   // a signature that was not made for Office
	codeHidden       = "hidden-entry"             // bytes in the archive that belong to no entry
	codeNotLookedAt  = "original-not-compared"    // an original document was given, which this format does not use
)

// unfit returns the error of an Office document that cannot be signed or checked.
func unfit(cause error, format string, args ...any) error {
	return &sig.ErrDocument{What: "Document", Text: fmt.Sprintf(format, args...), Err: cause}
}

// damaged returns the error of a document whose archive is broken or ambiguous.
func damaged(format string, args ...any) error {
	return unfit(nil, "the archive is damaged or ambiguous: %s", fmt.Sprintf(format, args...))
}

// ofArchive turns an error about an archive into one about the Office document. Other errors stay
// as they are.
func ofArchive(err error) error {
	var e *zip.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Kind {
	case zip.Damaged:
		return damaged("%s", e.Text)
	case zip.Encrypted:
		return unfit(nil, "%s; an Office document without a password expected", e.Text)
	}
	return unfit(nil, "%s", e.Text)
}

// otherKind returns the error of a document that is not an Office document.
func otherKind(format string, args ...any) error {
	return &sig.ErrDocument{What: "Document", Text: fmt.Sprintf(format, args...), OtherKind: true}
}

// isDocument reports whether an error is about the document, not about reading it.
func isDocument(err error) bool {
	var e *sig.ErrDocument
	return errors.As(err, &e)
}

func readError(err error) error { return fmt.Errorf("document: reading it: %w", err) }

// quote quotes a text from outside and truncates it, so that an error stays on one line.
func quote(s string) string {
	const most = 120
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return strconv.Quote(s)
}
