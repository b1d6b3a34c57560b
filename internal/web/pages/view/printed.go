// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/document"
	"tamga/internal/domain/signing"
)

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
	Ref      string          // identifier of the stored document
}

// Opener opens stored documents; see [document.Service].
type Opener interface {
	Open(ctx context.Context, who audit.Principal, id string) (*document.Stored, error)
}

// Intakes makes intakes; see [signing.Verification].
type Intakes interface {
	NewIntake(ctx context.Context, who audit.Principal) (*signing.Intake, error)
}

// CopyOf returns a copy of a stored document of the caller, to be read more than once, within the limits of another one of
// the request; nil: it is the first.
func CopyOf(ctx context.Context, from Opener, to Intakes, id string, beside *signing.Intake) (in *signing.Intake, info document.Info, err error) {
	d, err := from.Open(ctx, CallerOf(ctx), id)
	if err != nil {
		return nil, info, err
	}
	defer d.Close()
	if beside != nil {
		in, err = beside.Sibling()
	} else {
		in, err = to.NewIntake(ctx, CallerOf(ctx))
	}
	if err != nil {
		return nil, info, err
	}
	if _, err = d.WriteTo(in); err == nil {
		err = in.Finish()
	}
	if err != nil {
		in.Close()
		return nil, info, err
	}
	return in, d.Info, nil
}
