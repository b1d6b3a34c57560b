// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"context"
	"fmt"
	"strings"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/encryption"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/signing"
	"tamga/internal/web/rest"
)

// Encryption makes orders of encryption and decryption; *encryption.Service satisfies it.
type Encryption interface {
	Encrypting(ctx context.Context, who audit.Principal, o *encryption.EncryptOrder) (*operation.Order, error)
	Decrypting(who audit.Principal, o *encryption.DecryptOrder, c operation.Confirming) (*operation.Order, error)
	Parse(ctx context.Context, who audit.Principal, snap *signing.Snapshot, t encryption.Type, messages []encryption.Input) ([]encryption.Parsed, error)
}

// encryptionRoutes returns the routes of encryption and decryption, in v1 and v2.
func (o *Operating) encryptionRoutes(take func(context.Context, audit.Principal) (*signing.Intake, error)) []rest.Route {
	return []rest.Route{
		rest.HandleDocuments("POST /documents/encrypt", "EncryptDocument", rest.SignedIn, take, o.encryptOne).Large().AnswerOnly().Once(),
		rest.HandleDocuments("POST /documents/decrypt", "DecryptDocument", rest.SignedIn, take, o.decryptOne).Large().AnswerOnly().Once().Confirmed(),
		rest.HandleDocuments("POST /documents/decrypt/parse", "ParseEncryptedDocument", rest.SignedIn, take, o.parseOne).Large().AnswerOnly(),
		rest.HandleDocuments("POST /v2/encryption", "EncryptionOperation", rest.SignedIn, take, o.encryptMany).Answering(answerOf[*processed]{}).Large().Once(),
		rest.HandleDocuments("POST /v2/decryption", "DecryptionOperation", rest.SignedIn, take, o.decryptMany(operation.FormOperation)).Answering(answerOf[*processed]{}).Large().Once().Confirmed(),
		// Ours, for files of the command line: once it is confirmed it carries itself out.
		rest.HandleDocuments("POST /tamga/decryption", "DecryptUpload", rest.SignedIn, take, o.decryptMany(operation.FormUpload)).Answering(answerOf[*processed]{}).Large().Once().Confirmed(),
		rest.HandleDocuments("POST /v2/parse", "ParseOperation", rest.SignedIn, take, o.parseMany).Answering(answerOf[*parsed]{}).Large().AnswerOnly(),
	}
}

// integrityHeader of an answer of v1 says whether an authentication code covered the content of a message that
// was decrypted: Verified or None. v2 says it of each document.
const integrityHeader = "Tamga-Integrity"

// encryptionForm is the Encryption of v1 and v2.
type encryptionForm struct {
	Type         rest.Text       // a name or a number
	Certificates []rest.Document `full:"invalid_recipients"`
	Parameters   map[string]rest.Text
}

// decryptionForm is the Decryption of v1 and v2.
type decryptionForm struct {
	Type          rest.Text // a name or a number
	CertificateID rest.Text `json:"CertificateId" api:"integer"`
	PinCode       rest.Text
	Parameters    map[string]rest.Text
}

// encryptRequest is the request of v1.
type encryptRequest struct {
	Body struct {
		Content    rest.Blob
		Name       rest.Unread // allowed and ignored
		Encryption *encryptionForm
	}
}

// decryptRequest is the request of v1.
type decryptRequest struct {
	Body struct {
		Content    rest.Blob
		Name       rest.Unread // allowed and ignored
		Decryption *decryptionForm
	}
}

type encryptionRequest struct {
	Body struct {
		BinaryData []binary
		Encryption *encryptionForm
	}
}

type decryptionRequest struct {
	Body struct {
		BinaryData        []binary
		Decryption        *decryptionForm
		IsAsync           rest.Text `api:"boolean"`
		Callback          rest.Text
		ForceConfirmation rest.Text `api:"boolean"`
	}
}

type parseRequest struct {
	Body struct {
		BinaryData []binary
		Type       rest.Text
	}
}

// parsed is the result of an operation that finds out which certificates open messages.
type parsed struct{ ParsedDocuments []parsedDocument }

// parsedDocument says which certificates of the caller open a message.
type parsedDocument struct {
	OriginalRefID       *string `json:"OriginalRefId"`
	OriginalContentInfo *string
	CertificateIDs      []int64 `json:"CertificateIds"`
	Status              string
	Error               *string
	ErrorDescription    *string
}

// encryptOne answers the message as a JSON string.
func (o *Operating) encryptOne(ctx context.Context, docs *documents, r encryptRequest) (rest.Stream, error) {
	b := &r.Body
	order, err := o.encrypting(docs, b.Encryption)
	if err != nil {
		return rest.Stream{}, err
	}
	order.Form = operation.FormTransaction
	order.Noted = func(text string) { rest.Concerning(ctx, text) }
	if order.Documents, err = oneDocument(docs, b.Content); err != nil {
		return rest.Stream{}, err
	}
	op, err := o.encrypt(ctx, order)
	if err != nil {
		return rest.Stream{}, err
	}
	return rest.Stream{Content: op.Documents[0].Content}, nil
}

// encryptMany answers a message for each document.
func (o *Operating) encryptMany(ctx context.Context, docs *documents, r encryptionRequest) (rest.JSON, error) {
	b := &r.Body
	order, err := o.encrypting(docs, b.Encryption)
	if err != nil {
		return rest.JSON{}, err
	}
	if order.Documents, err = manyDocuments(docs, b.BinaryData); err != nil {
		return rest.JSON{}, err
	}
	keep, answer := o.keeping("")
	order.Form, order.Keep = operation.FormOperation, keep
	op, err := o.encrypt(ctx, order)
	if err != nil {
		return rest.JSON{}, err
	}
	return answer(op)
}

// encrypt does what an order says.
func (o *Operating) encrypt(ctx context.Context, order *encryption.EncryptOrder) (*operation.Operation, error) {
	order.Snapshot = snapshotOf(ctx)
	rest.Concerning(ctx, fmt.Sprintf("%d recipients, %d documents", len(order.Recipients), len(order.Documents)))
	ordered, err := o.Encryption.Encrypting(ctx, rest.Caller(ctx), order)
	if err != nil {
		return nil, err
	}
	op, _, err := o.begin(ctx, ordered, "")
	return op, err
}

// encrypting returns the order of an Encryption, without its documents.
func (o *Operating) encrypting(docs *documents, f *encryptionForm) (*encryption.EncryptOrder, error) {
	if f == nil {
		return nil, fault.New(fault.ParametersRequired, "Encryption is missing: say the Type and the Certificates of the recipients")
	}
	order := &encryption.EncryptOrder{Recipients: make([][]byte, len(f.Certificates))}
	var err error
	if order.Type, err = encryption.ParseType("Encryption.Type", string(f.Type)); err != nil {
		return nil, err
	}
	if order.Params, err = textsOf("Encryption.Parameters", f.Parameters); err != nil {
		return nil, err
	}
	for i, c := range f.Certificates {
		if order.Recipients[i], err = recipient(docs, i, c); err != nil {
			return nil, err
		}
	}
	return order, nil
}

// maxCertificate is the largest size of a certificate in bytes.
const maxCertificate = 64 << 10

// recipient reads a certificate.
func recipient(docs *documents, i int, from rest.Document) ([]byte, error) {
	if from.Empty() {
		return nil, fault.Newf(fault.InvalidRecipients, "Encryption.Certificates[%d] is empty", i)
	}
	in, err := docs.Open(from)
	if err != nil {
		return nil, recoded(err, fault.InvalidRecipients)
	}
	if in.Size() > maxCertificate {
		return nil, fault.Newf(fault.InvalidRecipients, "Encryption.Certificates[%d] has %d bytes: a certificate has at most %d", i, in.Size(), maxCertificate)
	}
	der := make([]byte, in.Size())
	return der, operation.ReadFull(in, der, 0)
}

// textsOf returns parameters without those that are missing. A key must not be there twice up to its letter case.
func textsOf(where string, parameters map[string]rest.Text) (map[string]string, error) {
	texts := make(map[string]string, len(parameters))
	seen := make(map[string]bool, len(parameters))
	for key, value := range parameters {
		name := strings.TrimSpace(key)
		if folded := strings.ToLower(name); seen[folded] {
			return nil, fault.Newf(fault.InvalidParameters, "%s: %.64q is given twice, in different spellings", where, name)
		} else {
			seen[folded] = true
		}
		if value != "" {
			texts[name] = string(value)
		}
	}
	return texts, nil
}

// oneDocument returns the document of a request of v1.
func oneDocument(docs *documents, content rest.Blob) ([]encryption.Input, error) {
	if content.Empty() {
		return nil, fault.New(fault.ContentRequired, "Content is missing or empty: send the document as Base64")
	}
	in, err := docs.Open(content)
	if err != nil {
		return nil, err
	}
	return []encryption.Input{{Content: in}}, nil
}

// manyDocuments returns the documents of a request of v2.
func manyDocuments(docs *documents, data []binary) ([]encryption.Input, error) {
	if len(data) == 0 {
		return nil, fault.New(fault.ContentRequired, "BinaryData is missing or empty: send the documents")
	}
	list := make([]encryption.Input, len(data))
	for i := range data {
		d, in := &data[i], &list[i]
		if d.RelatedRefID != "" {
			return nil, fault.Newf(fault.InvalidParameters, "BinaryData[%d]: RelatedRefId is of signatures", i)
		}
		in.RefID, in.Name = strings.TrimSpace(string(d.RefID)), string(d.ContentInfo)
		if d.Content.Empty() {
			continue
		}
		content, err := docs.Open(d.Content)
		switch _, refused := fault.As(err); {
		case refused:
			in.Err = err // of this document alone
		case err != nil:
			return nil, err
		default:
			in.Content = content
		}
	}
	return list, nil
}

// decryptOne answers the plaintext as a JSON string.
func (o *Operating) decryptOne(ctx context.Context, docs *documents, r decryptRequest) (rest.Stream, error) {
	b := &r.Body
	var op *operation.Operation
	if rest.Caller(ctx).Confirmation != "" {
		c := claimedBy(b.Decryption, !b.Content.Empty())
		if c.more {
			return rest.Stream{}, onlyPIN()
		}
		var err error
		if op, err = o.carryOut(ctx, operation.FormTransaction, decrypts, c, nil); err != nil {
			return rest.Stream{}, err
		}
	} else {
		messages, err := oneDocument(docs, b.Content)
		if err != nil {
			return rest.Stream{}, err
		}
		order, err := o.decrypting(ctx, b.Decryption, messages)
		if err != nil {
			return rest.Stream{}, err
		}
		order.Form = operation.FormTransaction
		if op, err = o.decrypt(ctx, order, operation.Refuses); err != nil {
			return rest.Stream{}, err
		}
	}
	d := &op.Documents[0]
	switch {
	case d.Fault != nil: // the user declined it
		return rest.Stream{}, d.Fault
	case d.Content == nil:
		return rest.Stream{}, fmt.Errorf("signapi: operation %q has no plaintext", op.ID)
	}
	return rest.Stream{Content: d.Content, Header: map[string]string{integrityHeader: d.Integrity}}, nil
}

// decryptMany answers a plaintext for each message, or accepts them for later, in operations of a form.
func (o *Operating) decryptMany(form operation.Form) func(context.Context, *documents, decryptionRequest) (rest.JSON, error) {
	return func(ctx context.Context, docs *documents, r decryptionRequest) (rest.JSON, error) {
		return o.decryptAs(ctx, form, docs, &r)
	}
}

func (o *Operating) decryptAs(ctx context.Context, form operation.Form, docs *documents, r *decryptionRequest) (rest.JSON, error) {
	b := &r.Body
	if rest.Caller(ctx).Confirmation != "" {
		more := len(b.BinaryData) > 0 || b.IsAsync != "" || b.Callback != "" || b.ForceConfirmation != ""
		return o.confirmed(ctx, form, decrypts, claimedBy(b.Decryption, more))
	}
	if len(b.BinaryData) == 0 && (b.Decryption == nil || b.Decryption.empty()) {
		// Only the token of a confirmed operation says which operation to carry out.
		return rest.JSON{}, fault.New(fault.InvalidOperation, "there is no operation to carry out: the access token is not that of a confirmed one, so send BinaryData and Decryption")
	}
	messages, err := manyDocuments(docs, b.BinaryData)
	if err != nil {
		return rest.JSON{}, err
	}
	order, err := o.decrypting(ctx, b.Decryption, messages)
	if err != nil {
		return rest.JSON{}, err
	}
	order.Form, order.Callback = form, strings.TrimSpace(string(b.Callback))
	if order.Async, order.ForceConfirmation, err = whenAndHow(b.IsAsync, b.ForceConfirmation); err != nil {
		return rest.JSON{}, err
	}
	object := decryptionObject(order)
	keep, answer := o.keeping(object)
	order.Keep = keep
	op, err := o.decrypt(ctx, order, operation.Waits)
	if err != nil {
		return rest.JSON{}, err
	}
	return answer(op)
}

// empty reports whether a Decryption says nothing but a PIN.
func (f *decryptionForm) empty() bool {
	return f.Type == "" && f.CertificateID == "" && len(f.Parameters) == 0
}

// claimedBy reads a request with a confirmed token. more: it says something else than a Decryption.
func claimedBy(f *decryptionForm, more bool) claim {
	if f == nil {
		return claim{more: more}
	}
	return claim{pin: string(f.PinCode), more: more || !f.empty()}
}

// decrypting returns the order of a Decryption.
func (o *Operating) decrypting(ctx context.Context, f *decryptionForm, messages []encryption.Input) (*encryption.DecryptOrder, error) {
	if f == nil {
		return nil, fault.New(fault.ParametersRequired, "Decryption is missing: say the Type and, if it is not the only one, the CertificateId")
	}
	order := &encryption.DecryptOrder{Certificate: string(f.CertificateID), PIN: string(f.PinCode), Messages: messages, Snapshot: snapshotOf(ctx)}
	var err error
	if order.Type, err = encryption.ParseType("Decryption.Type", string(f.Type)); err == nil {
		order.Params, err = textsOf("Decryption.Parameters", f.Parameters)
	}
	return order, err
}

// decrypt begins what an order of decryption says.
func (o *Operating) decrypt(ctx context.Context, order *encryption.DecryptOrder, c operation.Confirming) (*operation.Operation, error) {
	object := decryptionObject(order)
	rest.Concerning(ctx, object)
	order.Noted = func(text string) { rest.Concerning(ctx, text) }
	ordered, err := o.Encryption.Decrypting(rest.Caller(ctx), order, c)
	if err != nil {
		return nil, err
	}
	op, _, err := o.begin(ctx, ordered, object)
	return op, err
}

// decryptionObject returns what an order of decryption is about, for an audit entry.
func decryptionObject(o *encryption.DecryptOrder) string {
	return fmt.Sprintf("%s, %d documents", certificateObject(o.Certificate), len(o.Messages))
}

// proposeDecryption creates a transaction that decrypts.
func (o *Operating) proposeDecryption(ctx context.Context, docs *documents, r *transactionRequest) (*operation.Operation, error) {
	texts, _, err := r.split(nil)
	if err != nil {
		return nil, err
	}
	shown, err := texts.shown()
	if err != nil {
		return nil, err
	}
	list, err := r.documents(docs, string(texts["documentinfo"]))
	if err != nil {
		return nil, err
	}
	if len(list) > 1 {
		return nil, fault.New(fault.InvalidParameters, "OperationCode 8 (DecryptDocument) has one document: send several with POST /api/v2/decryption")
	}
	in := encryption.Input{Name: list[0].Name}
	if in.Name == "" {
		in.Name = string(texts["documentinfo"])
	}
	if list[0].Content != nil {
		in.Content = list[0].Content
	}
	form := &decryptionForm{Type: texts["encryptiontype"], CertificateID: texts["certificateid"], PinCode: texts["pincode"]}
	if c := texts["originatorcertificate"]; c != "" {
		form.Parameters = map[string]rest.Text{encryption.ParamOriginator: c}
	}
	order, err := o.decrypting(ctx, form, []encryption.Input{in})
	if err != nil {
		return nil, err
	}
	order.Form, order.Arguments = operation.FormTransaction, shown
	return o.decrypt(ctx, order, operation.Always)
}

// parseOne answers the numbers of certificates.
func (o *Operating) parseOne(ctx context.Context, docs *documents, r decryptRequest) ([]int64, error) {
	b := &r.Body
	t := encryption.CMS
	if b.Decryption != nil {
		var err error
		if t, err = encryption.ParseType("Decryption.Type", string(b.Decryption.Type)); err != nil {
			return nil, err
		}
	}
	messages, err := oneDocument(docs, b.Content)
	if err != nil {
		return nil, err
	}
	list, err := o.Encryption.Parse(ctx, rest.Caller(ctx), snapshotOf(ctx), t, messages)
	switch {
	case err != nil:
		return nil, err
	case list[0].Fault != nil:
		return nil, list[0].Fault
	}
	return certificateIDs(list[0].Certificates), nil
}

// certificateIDs returns a list that is [] in JSON if it is empty.
func certificateIDs(list []int64) []int64 {
	if list == nil {
		return []int64{}
	}
	return list
}

// parseMany answers the numbers of certificates for each message.
func (o *Operating) parseMany(ctx context.Context, docs *documents, r parseRequest) (answerOf[*parsed], error) {
	var none answerOf[*parsed]
	t, err := encryption.ParseType("Type", string(r.Body.Type))
	if err != nil {
		return none, err
	}
	messages, err := manyDocuments(docs, r.Body.BinaryData)
	if err != nil {
		return none, err
	}
	who := rest.Caller(ctx)
	list, err := o.Encryption.Parse(ctx, who, snapshotOf(ctx), t, messages)
	if err != nil {
		return none, err
	}
	result := &parsed{make([]parsedDocument, len(list))}
	for i := range list {
		p := &list[i]
		d := parsedDocument{
			OriginalRefID: rest.OrNull(p.RefID), OriginalContentInfo: rest.OrNull(p.Name),
			CertificateIDs: certificateIDs(p.Certificates), Status: documentCompleted,
		}
		if p.Fault != nil {
			d.Status = documentError
		}
		d.Error, d.ErrorDescription = saying(p.Fault)
		result.ParsedDocuments[i] = d
	}
	return answerOf[*parsed]{operationOf[*parsed]{
		Status: operationCompleted, UserLogin: who.Login, UserRealm: o.Realm, UserID: who.UserID, Result: result,
	}}, nil
}
