// SPDX-License-Identifier: Apache-2.0

package asic

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"tamga/sig"
	"tamga/sig/zip"
)

// Codes of findings, in addition to the codes of packages cades and xmldsig.
const (
	codeNoSignature   = "no-signature"              // the container has no signature
	codeMany          = "too-many-signatures"       // more than are checked
	codeMimetype      = "mimetype"                  // the entry mimetype is missing or in a wrong place or form
	codeKind          = "container-kind"            // the entries do not fit the kind of the container
	codeManifest      = "manifest-malformed"        // a list of files cannot be read
	codeNoManifest    = "manifest-missing"          // no list names the signature, or several do
	codeGone          = "signature-missing"         // a list names a signature that is missing
	codeMissing       = "reference-missing"         // a signed file is missing
	codeDigest        = "digest-mismatch"           // a signed file has changed
	codeAlgorithm     = "algorithm-unknown"         // an unknown algorithm
	codeFailed        = "reference-failed"          // a file cannot be read
	codeMalformed     = "signature-malformed"       // an entry with a signature cannot be read
	codeUncovered     = "file-not-covered"          // a file that no signature covers
	codeHidden        = "hidden-entry"              // bytes in the archive that belong to no entry
	codeEvidence      = "evidence-record"           // an evidence record that proves nothing
	codeTimeStamp     = "time-stamp"                // a time stamp that is invalid
	codeNoCertificate = "certificate-missing"       // the certificate of a time stamp was not found
	codeNotLookedAt   = "original-not-compared"     // an original document was given, which this format does not use
	codeArchive       = "archive-manifest"          // a list of an archive time stamp no longer fits
	codeLapsed        = "archive-time-stamp-lapsed" // it was not renewed in time
)

func finding(code string, fatal bool, format string, args ...any) sig.Finding {
	f := sig.Finding{Code: code, Text: fmt.Sprintf(format, args...)}
	if fatal {
		f.Indication = sig.IndicationOf(code)
	}
	return f
}

// unfit returns the error of a container that cannot be signed or checked.
func unfit(cause error, format string, args ...any) error {
	return &sig.ErrDocument{What: "Document", Text: fmt.Sprintf(format, args...), Err: cause}
}

// damaged returns the error of a container whose archive is broken or ambiguous.
func damaged(format string, args ...any) error {
	return unfit(nil, "the archive is damaged or ambiguous: %s", fmt.Sprintf(format, args...))
}

// otherKind returns the error of a document that is no container.
func otherKind(format string, args ...any) error {
	return &sig.ErrDocument{What: "Document", Text: fmt.Sprintf(format, args...), OtherKind: true}
}

// ofArchive turns an error about an archive into one about the container. Other errors stay as they are.
func ofArchive(err error) error {
	var e *zip.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Kind {
	case zip.Damaged:
		return damaged("%s", e.Text)
	case zip.Encrypted:
		return unfit(nil, "%s; a container without a password expected", e.Text)
	}
	return unfit(nil, "%s", e.Text)
}

// isDocument reports whether an error is about the document, not about reading it.
func isDocument(err error) bool {
	var e *sig.ErrDocument
	return errors.As(err, &e)
}

// quote quotes a text from outside and truncates it, so that an error stays on one line.
func quote(s string) string {
	const most = 120
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return strconv.Quote(s)
}

// list joins names for a text, the first ones of many.
func list(names []string) string {
	more := ""
	if len(names) > maxNames {
		more = fmt.Sprintf(" and %d more", len(names)-maxNames)
		names = names[:maxNames]
	}
	shown := make([]string, len(names))
	for i, name := range names {
		shown[i] = sig.Printable(name, 120, '?')
	}
	return strings.Join(shown, ", ") + more
}
