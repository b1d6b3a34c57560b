package xmldsig

import (
	"fmt"
	"strconv"
	"strings"

	"tamga/sig"
	"tamga/sig/xmltree"
)

// Codes of findings. Every flaw of a Signature element has one. The signing side
// returns its text alone. A signature that covers a part has sig.CodePart, one that
// rests on a weak hash function sig.CodeWeak.
const (
	codeNoSignature = "no-signature"                // nobody signed the document
	codeMany        = "too-many-signatures"         // more than are judged
	codeMalformed   = "signature-malformed"         // an element is missing, doubled or in a wrong place
	codeEmpty       = "signature-empty"             // a template that nobody filled
	codeAlgorithm   = "algorithm-unknown"           // an algorithm that is not known or not allowed here
	codeRefusedHash = "digest-algorithm-refused"    // a digest that is not signed any more
	codeTransform   = "transform-refused"           // a transform outside the list
	codeParameters  = "transform-malformed"         // a transform with wrong parameters
	codeRemote      = "reference-refused"           // a reference that leaves the document
	codeMissing     = "reference-missing"           // an identifier that nothing has
	codeNotUnique   = "reference-id-not-unique"     // an identifier that two elements have
	codeMisplaced   = "reference-misplaced"         // an element where a forger puts what was signed
	codeNothing     = "reference-empty"             // the transforms leave nothing to sign
	codeFailed      = "reference-failed"            // the transforms cannot be applied
	codeWork        = "too-much-work"               // more transforms, references or prefixes than are looked at
	codeDigest      = "digest-mismatch"             // what was signed has changed
	codeValue       = "signature-mismatch"          // the value does not belong to SignedInfo and key
	codeNoCert      = "certificate-missing"         // the signer's certificate is nowhere to be found
	codeUnreadable  = "certificate-unreadable"      // a certificate or CRL cannot be read
	codeKeyMismatch = "algorithm-mismatch"          // the signature algorithm is not of the certificate's key
	codeOrder       = "transform-order"             // an order that some programs read otherwise
	codeProperties  = "signed-properties"           // properties that are not what was signed
	codeSigningCert = "signing-certificate"         // the signed properties name another certificate
	codeNoSigning   = "signing-certificate-missing" // the signed properties name none
	codeFormat      = "data-object-format"          // the format of a signed object is said wrongly or not at all
	codeCounter     = "countersignature"            // a countersignature that is not over the value it stands with
	codeTimeStamp   = "time-stamp"                  // a time stamp that does not hold or proves nothing
	codeNotLookedAt = "original-not-compared"       // a document given beside, which this format has no use for
)

// indications say what fatal findings mean. Those that are not listed break the
// rules of the format: FORMAT_FAILURE.
var indications = sig.Indications{
	codeMany:      sig.Generic,
	codeAlgorithm: sig.CryptoConstraintsFailure,
	// What a refused transform would leave, or where a reference leads, is not known:
	// nothing shows that the data has changed, and nothing that it has not.
	codeTransform: sig.SignedDataNotFound,
	codeRemote:    sig.SignedDataNotFound,
	codeMissing:   sig.SignedDataNotFound,
	codeNotUnique: sig.SignedDataNotFound,
	codeMisplaced: sig.SignedDataNotFound,
	codeNothing:   sig.SignedDataNotFound,
	codeFailed:    sig.SignedDataNotFound,
	codeWork:      sig.Generic,
	codeDigest:    sig.HashFailure,
	codeValue:     sig.SigCryptoFailure,
	codeNoCert:    sig.NoSigningCertificateFound,
	// The signature names a certificate whose key cannot have made the value.
	codeKeyMismatch: sig.SigCryptoFailure,
	codeSigningCert: sig.NoSigningCertificateFound,
	codeTimeStamp:   sig.NoPOE,
}

// flaw is one thing wrong with a Signature element, and where. The place is counted
// when somebody asks: that takes a pass over the document.
type flaw struct {
	code, text string
	tree       *xmltree.Tree
	offset     int
}

// Error is "xml: line 3, column 7: text".
func (f *flaw) Error() string {
	line, column := f.tree.Position(f.offset)
	return fmt.Sprintf("xml: line %d, column %d: %s", line, column, f.text)
}

func flawAt(t *xmltree.Tree, n xmltree.Node, code, format string, args ...any) *flaw {
	return &flaw{code: code, text: fmt.Sprintf(format, args...), tree: t, offset: t.Start(n)}
}

// unfit is the error of a document that cannot be signed.
func unfit(text string, cause error) error {
	return &sig.ErrDocument{What: "Document", Text: text, Err: cause}
}

func tooLarge(size, limit int64) error {
	return unfit(fmt.Sprintf("has %d octets; XML of at most %d is signed and checked here", size, limit), nil)
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
