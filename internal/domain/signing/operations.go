// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"fmt"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/document"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/vault"
)

// Operations orders signatures over several documents, by reference or inline, as operations; see package
// operation. [Operations.Kind] says how they are carried out.
type Operations struct {
	*operation.Service // what becomes of them
	Signer             *Service
	PINs               PINs
	Templates          map[string]Template // by identifier
}

// PINs checks the PIN of a key; *keys.Service satisfies it.
type PINs interface {
	CheckPIN(ctx context.Context, who audit.Principal, id, pin string, attempts bool) (valid bool, reason string, err error)
}

// OperationOrder is a request of v2. The caller closes its documents, but not before the
// operation is closed.
type OperationOrder struct {
	Type        string            // may be empty with a template
	Params      map[string]string // without OriginalDocument
	Original    *Intake           // OriginalDocument, of a single document; nil if there is none
	Certificate string            // as in Order
	PIN         string
	Template    string // identifier; empty: none
	Inputs      []Input
	// Received are documents that the document store has kept from the same request. Those among
	// the inputs are not hashed again if they are signed at once.
	Received []document.New

	Async             bool
	Callback          string // address; empty: none
	ForceConfirmation bool
	Snapshot          *Snapshot // as in Order

	// Form is operation.FormOperation if it is empty. Package makes an operation on one document the action
	// SignDocuments. Arguments are shown to the user who confirms and have no effect on the signature.
	Form      operation.Form
	Package   bool
	Arguments map[string]string

	Keep operation.Keep // nil: none
}

// Input is one document of an operation: a stored document, or one sent with the request.
type Input struct {
	RefID   string  // of a stored document
	Content *Intake // instead of RefID
	Name    string  // file name as the client sent it; returned unchanged
	// RelatedRefID is the stored document that the message in Content or RefID is a
	// signature of: OriginalDocument by reference. Empty: none.
	RelatedRefID string
	Err          error // a fault of this input
}

// Start carries an operation out, or accepts it to be carried out later, or creates it as
// Propose does if it needs a confirmation.
//
// Faults: invalid_parameters, those of Sign for errors of the whole operation, those of
// Propose, and the fault of a single document. Several documents with different outcomes
// are not a fault: the answer lists them. A fault of one document is an [operation.OfDocument].
func (s *Operations) Start(ctx context.Context, who audit.Principal, o *OperationOrder) (*operation.Operation, error) {
	return s.order(ctx, who, o, operation.Waits)
}

// Propose creates an operation that its user must confirm, whatever the policy says. It
// checks everything that can be checked before: the PIN costs an attempt if it is wrong.
// Confirmed carries the operation out.
//
// Faults besides those of Start: those of confirm.Service.Create.
func (s *Operations) Propose(ctx context.Context, who audit.Principal, o *OperationOrder) (*operation.Operation, error) {
	return s.order(ctx, who, o, operation.Always)
}

func (s *Operations) order(ctx context.Context, who audit.Principal, o *OperationOrder, c operation.Confirming) (*operation.Operation, error) {
	if err := s.check(o); err != nil {
		return nil, err
	}
	shown, secrets := s.Signer.apart(o.Params)
	order := &operation.Order{
		Kind: KindSign, Form: o.Form, Owner: who, Confirming: c, Forced: o.ForceConfirmation, Async: o.Async, Callback: o.Callback,
		Parameters: operation.Parameters(shown), Description: describe(o.Inputs), Received: o.Received, Keep: o.Keep,
		Inputs: make([]operation.Input, len(o.Inputs)),
		Plan: &plan{
			Type: s.Signer.typeName(o.Type), Params: shown, Certificate: o.Certificate, Template: o.Template, Arguments: o.Arguments, Action: actionOf(o).String(),
		},
	}
	if order.Form == "" {
		order.Form = operation.FormOperation
	}
	if o.PIN != "" || len(secrets) > 0 {
		order.Secret = &secret{PIN: o.PIN, Params: secrets}
	}
	if o.Snapshot != nil {
		order.Fresh = o.Snapshot
	}
	if !o.Original.isEmpty() {
		order.Original = o.Original
	}
	for i := range o.Inputs {
		in := &o.Inputs[i]
		order.Inputs[i] = operation.Input{RefID: in.RefID, Name: in.Name, RelatedRefID: in.RelatedRefID, Err: in.Err}
		if !in.Content.isEmpty() {
			order.Inputs[i].Content = in.Content
		}
	}
	op, _, err := s.Service.Start(ctx, order)
	return op, err
}

// ConfirmedOrder carries out an operation that its user has confirmed.
type ConfirmedOrder struct {
	ID       string         // of the confirmation
	Form     operation.Form // of the interface that asks
	PIN      string         // instead of the one that was given at creation; "": that one
	Snapshot *Snapshot
	Keep     operation.Keep // as in OperationOrder
}

// Confirmed carries out an operation that its user has confirmed, or returns the result of
// an earlier call, byte for byte, without asking any service again. All documents that the
// user approved are signed or none. A failure leaves the operation confirmed, so that the
// caller can repeat the call in time.
//
// Faults: those of operation.Service.CarryOut and of Sign.
func (s *Operations) Confirmed(ctx context.Context, who audit.Principal, o *ConfirmedOrder) (*operation.Operation, error) {
	c := &operation.Claim{ID: o.ID, Form: o.Form, Kinds: []string{KindSign}, PIN: o.PIN, Keep: o.Keep}
	if o.Snapshot != nil {
		c.Fresh = o.Snapshot
	}
	op, _, err := s.Service.CarryOut(ctx, who, c)
	return op, err
}

// check refuses errors in the request itself.
func (s *Operations) check(o *OperationOrder) error {
	for i := range o.Inputs {
		in := &o.Inputs[i]
		switch {
		case in.Err != nil:
		case in.RefID != "" && !in.Content.isEmpty():
			return fault.Newf(fault.InvalidParameters, "BinaryData[%d] has both RefId and Content: send one of them", i)
		case in.RefID == "" && in.Content.isEmpty():
			return fault.Newf(fault.ContentRequired, "BinaryData[%d] has neither RefId nor Content", i)
		}
	}
	most := s.Signer.batchItems()
	switch {
	case len(o.Inputs) == 0:
		return fault.New(fault.ContentRequired, "BinaryData is missing or empty: send the documents to sign")
	case len(o.Inputs) > most:
		return fault.Newf(fault.InvalidParameters, "BinaryData holds %d documents: send at most %d in one request", len(o.Inputs), most)
	case !o.Original.isEmpty() && len(o.Inputs) > 1:
		return fault.New(fault.InvalidSignatureParams, "Signature.Parameters.OriginalDocument is not allowed with several documents: name each original by RelatedRefId")
	case !o.Original.isEmpty() && o.Inputs[0].RelatedRefID != "":
		return fault.New(fault.InvalidSignatureParams, "OriginalDocument and RelatedRefId are both given: send one of them")
	case len(o.PIN) > vault.MaxPIN:
		return fault.Newf(fault.InvalidPIN, "the PIN is too long: at most %d bytes", vault.MaxPIN)
	}
	if o.Template != "" {
		if _, ok := s.Templates[o.Template]; !ok {
			return fault.Newf(fault.InvalidSignatureParams, "ProcessingTemplateId %q is unknown", abbreviate(o.Template))
		}
		return nil
	}
	_, _, err := s.Signer.format(o.Type)
	return err
}

// actionOf returns the action of an order.
func actionOf(o *OperationOrder) policy.Action {
	if len(o.Inputs) == 1 && !o.Package {
		return policy.SignDocument
	}
	return policy.SignDocuments
}

// describe returns a line that says what an operation is about.
func describe(inputs []Input) string {
	if len(inputs) == 0 {
		return ""
	}
	name := inputs[0].Name
	if name == "" {
		name = inputs[0].RefID
	}
	name = oneLine(name)
	switch {
	case len(inputs) == 1 && name == "":
		return "1 document"
	case len(inputs) == 1:
		return name
	case name == "":
		return fmt.Sprintf("%d documents", len(inputs))
	}
	return fmt.Sprintf("%s and %d more", name, len(inputs)-1)
}

// oneLine returns a name as one line of text: the first 200 runes, with spaces instead of
// control characters and changes of the writing direction. Clients and receivers of
// callbacks get the result, so its bytes must not change. That is why sig.Printable is
// not used: it replaces more runes and adds "..." to a truncated text.
func oneLine(s string) string {
	const most = 200
	out := make([]rune, 0, len(s))
	for _, r := range s {
		if len(out) == most {
			break
		}
		if r < ' ' || r == 0x7f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			r = ' '
		}
		out = append(out, r)
	}
	return string(out)
}

// Parameter is Service.Parameter of the Signer.
func (s *Operations) Parameter(name string) Parameter { return s.Signer.Parameter(name) }
