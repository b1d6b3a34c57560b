// SPDX-License-Identifier: Apache-2.0

package view

import "tamga/internal/domain/signing"

// Line is a part of a printed document; package print has the kinds.
type Line struct {
	Kind, Label, Text string
	Tone              string // good, bad or warn, of a verdict or a check
	Picture           []byte // PNG, beside the text of a picture
}

// Copy is a copy of a signed document to verify.
type Copy struct {
	Name     string          // of the signed document
	Content  *signing.Intake // nil: it is not stored any more
	Original *signing.Intake // that the signature is beside; nil: it is in the document, or not stored any more
	Document string          // name of Original
}
