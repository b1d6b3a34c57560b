// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"fmt"
	"slices"

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
	// Ways are how the documents are signed, by Input.Way, instead of Type, Params and Template. Equal ones
	// become one.
	Ways []Way

	Type        string            // may be empty with a template
	Params      map[string]string // without OriginalDocument
	Original    *Intake           // OriginalDocument, of a single document; nil if there is none
	Certificate string            // as in SignOrder
	PIN         string
	Template    string // identifier; empty: none
	Inputs      []Input
	// Received are documents that the document store has kept from the same request. Those among
	// the inputs are not hashed again if they are signed at once.
	Received []document.New

	Async             bool
	Callback          string // address; empty: none
	ForceConfirmation bool
	Snapshot          *Snapshot // as in SignOrder

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
	Way          int   // index in OperationOrder.Ways
	Err          error // a fault of this input
}

// Start carries an operation out, or accepts it to be carried out later, or creates one that its user must
// confirm. Then it checks everything that can be checked before: the PIN costs an attempt if it is wrong.
//
// Faults: invalid_parameters, those of Sign for errors of the whole operation, those of
// confirm.Service.Create, and the fault of a single document. Several documents with different outcomes
// are not a fault: the answer lists them. But with several ways, one that cannot be used refuses all. A
// fault of one document is an [operation.OfDocument], and one of a way is an [OfWay].
func (s *Operations) Start(ctx context.Context, who audit.Principal, o *OperationOrder) (*operation.Operation, error) {
	order, err := s.Ordered(who, o, operation.Waits)
	if err != nil {
		return nil, err
	}
	op, _, err := s.Service.Start(ctx, order)
	return op, err
}

// Ordered checks an order, and returns it for package operation. Its faults are the first of those of Start.
func (s *Operations) Ordered(who audit.Principal, o *OperationOrder, c operation.Confirming) (*operation.Order, error) {
	ways, of, err := s.ways(o)
	if err != nil {
		return nil, err
	}
	if err := s.check(o, ways, of); err != nil {
		return nil, err
	}
	p := &plan{Certificate: o.Certificate, Template: o.Template, Arguments: o.Arguments, Action: actionOf(o).String()}
	list, secrets := make([]way, len(ways)), make([]map[string]string, len(ways))
	for i, w := range ways {
		list[i].Type = s.Signer.typeName(w.Type)
		list[i].Params, secrets[i] = s.Signer.separate(w.Params)
	}
	p.setWays(list)
	hidden := newSecret(o.PIN, secrets)
	order := &operation.Order{
		Kind: p.kind(), Form: o.Form, Owner: who, Confirming: c, Forced: o.ForceConfirmation, Async: o.Async, Callback: o.Callback,
		Description: describe(o.Inputs), Received: o.Received, Keep: o.Keep,
		Inputs: make([]operation.Input, len(o.Inputs)), Plan: p, Parameters: p.parameters(),
	}
	if order.Form == "" {
		order.Form = operation.FormOperation
	}
	if hidden != nil {
		order.Secret = hidden
	}
	if o.Snapshot != nil {
		order.Fresh = o.Snapshot
	}
	if !o.Original.isEmpty() {
		order.Original = o.Original
	}
	for i := range o.Inputs {
		in := &o.Inputs[i]
		order.Inputs[i] = operation.Input{RefID: in.RefID, Name: in.Name, RelatedRefID: in.RelatedRefID, Way: of[i], Err: in.Err}
		if !in.Content.isEmpty() {
			order.Inputs[i].Content = in.Content
		}
	}
	return order, nil
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
	c := &operation.Claim{ID: o.ID, Form: o.Form, Kinds: []string{KindSign, KindSeveral}, PIN: o.PIN, Keep: o.Keep}
	if o.Snapshot != nil {
		c.Fresh = o.Snapshot
	}
	op, _, err := s.Service.CarryOut(ctx, who, c)
	return op, err
}

// check refuses errors in the request itself.
func (s *Operations) check(o *OperationOrder, ways []Way, of []int) error {
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
	for i := range ways {
		if _, _, err := s.Signer.format(ways[i].Type); err != nil {
			return ofWay(len(ways), slices.Index(of, i), err)
		}
	}
	return nil
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
	return Describe(name, len(inputs))
}

// Describe returns a line for operation.Order.Description about n documents. name is that of the first one; "":
// it has none.
func Describe(name string, n int) string {
	name = oneLine(name)
	switch {
	case n == 1 && name == "":
		return "1 document"
	case n == 1:
		return name
	case name == "":
		return fmt.Sprintf("%d documents", n)
	}
	return fmt.Sprintf("%s and %d more", name, n-1)
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
