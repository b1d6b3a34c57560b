// SPDX-License-Identifier: Apache-2.0

package xmldsig

import (
	"fmt"
	"strconv"
	"strings"

	"tamga/sig"
	"tamga/sig/xmltree"
)

// Codes of findings. Every flaw of a Signature element has one; the signing side returns
// only the text. A signature that covers a part of the document has sig.CodePart, one
// with a weak hash function has sig.CodeWeak.
const (
	codeNoSignature = "no-signature"                // the document has no signature
	codeMany        = "too-many-signatures"         // more than are checked
	codeMalformed   = "signature-malformed"         // an element is missing, duplicate or in a wrong place
	codeEmpty       = "signature-empty"             // a template that was not filled
	codeAlgorithm   = "algorithm-unknown"           // an algorithm that is not known or not allowed here
	codeRefusedHash = "digest-algorithm-refused"    // a digest algorithm that is not used for signing any more
	codeTransform   = "transform-refused"           // a transform that is not on the list
	codeParameters  = "transform-malformed"         // a transform with wrong parameters
	codeRemote      = "reference-refused"           // a reference to something outside the document
	codeMissing     = "reference-missing"           // no element has the identifier
	codeNotUnique   = "reference-id-not-unique"     // several elements have the identifier
	codeMisplaced   = "reference-misplaced"         // a reference to an element in a place typical of signature wrapping
	codeNothing     = "reference-empty"             // the result of the transforms is empty
	codeFailed      = "reference-failed"            // the transforms cannot be applied
	codeWork        = "too-much-work"               // more transforms, references or prefixes than the limit
	codeDigest      = "digest-mismatch"             // the signed data has changed
	codeValue       = "signature-mismatch"          // the value does not match SignedInfo and the key
	codeNoCert      = "certificate-missing"         // the signer's certificate was not found
	codeUnreadable  = "certificate-unreadable"      // a certificate or CRL cannot be read
	codeKeyMismatch = "algorithm-mismatch"          // the signature algorithm does not match the certificate's key
	codeOrder       = "transform-order"             // an order that some programs read differently
	codeProperties  = "signed-properties"           // properties that are not the signed ones
	codeSigningCert = "signing-certificate"         // the signed properties name another certificate
	codeNoSigning   = "signing-certificate-missing" // the signed properties name no certificate
	codeFormat      = "data-object-format"          // the format of a signed object is wrong or missing
	codeCounter     = "countersignature"            // a countersignature that does not cover the value of the signature that contains it
	codeTimeStamp   = "time-stamp"                  // a time stamp that is invalid or proves nothing
	codeLapsed      = "archive-time-stamp-lapsed"   // it was not renewed in time
	codeNotLookedAt = "original-not-compared"       // an original document was given, which this format does not use
)

// flaw is an error in a Signature element with its place. The place is counted only when
// Error is called, because that takes a pass over the document.
type flaw struct {
	code, text string
	tree       *xmltree.Tree
	offset     int
}

// Error returns "xml: line 3, column 7: text".
func (f *flaw) Error() string {
	line, column := f.tree.Position(f.offset)
	return fmt.Sprintf("xml: line %d, column %d: %s", line, column, f.text)
}

func flawAt(t *xmltree.Tree, n xmltree.Node, code, format string, args ...any) *flaw {
	return &flaw{code: code, text: fmt.Sprintf(format, args...), tree: t, offset: t.Start(n)}
}

// unfit returns the error of a document that cannot be signed or checked.
func unfit(text string, cause error) error {
	return &sig.ErrDocument{What: "Document", Text: text, Err: cause}
}

func tooLarge(size, limit int64) error {
	return unfit(fmt.Sprintf("has %d bytes; at most %d are accepted for XML", size, limit), nil)
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
