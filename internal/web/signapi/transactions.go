// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	kept "tamga/internal/domain/document"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/signing"
	"tamga/internal/web/rest"
)

// transactionRequest is a transaction of v1: an operation that the user confirms before
// it is carried out.
type transactionRequest struct {
	Body struct {
		OperationCode rest.Text `api:"integer"`
		Parameters    []struct {
			Name  rest.Text
			Value rest.Blob `api:"parameter"`
		}
		Document  rest.Blob
		Documents []struct {
			Name    rest.Text
			Content rest.Document
		}
	}
}

// transact creates a transaction and answers its identifier.
func (a *API) transact(ctx context.Context, docs *documents, r transactionRequest) (string, error) {
	code, err := strconv.ParseInt(strings.TrimSpace(string(r.Body.OperationCode)), 10, 64)
	t, known := transactions[code]
	var op *operation.Operation
	switch {
	case err != nil || !known:
		return "", fault.New(fault.InvalidOperation, "OperationCode: want the number of an action, such as 2 (SignDocument) or 4 (SignDocuments)")
	case t.signs():
		op, err = a.deps.Operations.proposeSignature(ctx, docs, t.action, &r)
	case t.action == policy.DecryptDocument:
		op, err = a.deps.Operations.proposeDecryption(ctx, docs, &r)
	case t.read == nil || a.deps.Management == nil:
		return "", fault.Newf(fault.InvalidOperation, "OperationCode %d (%s) cannot be a transaction", code, t.action)
	default:
		op, err = a.proposeAct(ctx, t, &r)
	}
	if err != nil {
		return "", err
	}
	return op.ID, nil
}

// parameterList are the Parameters of a transaction by their names in lower case. What a
// transaction reads is removed, except for what shown takes.
type parameterList map[string]rest.Text

// split returns the parameters that are texts with the names known, in lower case, and the others as they
// were sent. Without known all are texts.
func (r *transactionRequest) split(known []string) (texts parameterList, others map[string]rest.Blob, err error) {
	texts, others = parameterList{}, map[string]rest.Blob{}
	for _, p := range r.Body.Parameters {
		name := strings.TrimSpace(string(p.Name))
		folded := strings.ToLower(name)
		_, twice := others[name]
		switch isText := known == nil || slices.Contains(known, folded); {
		case twice:
		case !isText:
			others[name] = p.Value
		default:
			text, err := p.Value.Text()
			if err != nil {
				return nil, nil, recoded(err, fault.InvalidParameters)
			}
			_, twice = texts[folded]
			texts[folded] = rest.Text(text)
		}
		if twice {
			return nil, nil, fault.Newf(fault.InvalidParameters, "Parameters: %.64q is given twice", name)
		}
	}
	return texts, others, nil
}

// shownParameters are parameters that the user sees and that have no effect.
var shownParameters = []string{"documentinfo", "documenttype"}

// maxShown is the longest parameter that the user sees, in bytes.
const maxShown = 1024

// shown returns the shown parameters. They are one line, without characters that change what the user sees.
func (p parameterList) shown() (map[string]string, error) {
	shown := map[string]string{}
	for _, name := range shownParameters {
		switch text := string(p[name]); {
		case len(text) > maxShown:
			return nil, fault.Newf(fault.InvalidParameters, "Parameters: %s has more than %d bytes", name, maxShown)
		case text != "":
			if err := kept.CheckText("Parameters: "+name, text, maxShown); err != nil {
				return nil, recoded(err, fault.InvalidParameters)
			}
			shown[name] = text
		}
	}
	return shown, nil
}

// proposeSignature creates a transaction that signs.
func (o *Operating) proposeSignature(ctx context.Context, docs *documents, action policy.Action, r *transactionRequest) (*operation.Operation, error) {
	order, err := o.transactionOrder(docs, r)
	if err != nil {
		return nil, err
	}
	order.Snapshot = snapshotOf(ctx)
	if order.Package = action == policy.SignDocuments; !order.Package && len(order.Inputs) > 1 {
		return nil, fault.New(fault.InvalidParameters, "OperationCode 2 (SignDocument) has one document: want 4 (SignDocuments) for several")
	}
	rest.Concerning(ctx, certificateObject(order.Certificate))
	return o.sign(ctx, order, operation.Always)
}

// transactionOrder reads the parameters and the documents of a transaction.
func (o *Operating) transactionOrder(docs *documents, r *transactionRequest) (*signing.OperationOrder, error) {
	texts, signature, err := r.split(append([]string{"signaturetype", "certificateid", "pincode"}, shownParameters...))
	if err != nil {
		return nil, err
	}
	shown, err := texts.shown()
	if err != nil {
		return nil, err
	}
	order := &signing.OperationOrder{
		Form: operation.FormTransaction, Arguments: shown,
		Type: string(texts["signaturetype"]), Certificate: string(texts["certificateid"]), PIN: string(texts["pincode"]),
	}
	if order.Params, order.Original, err = readParameters(docs, o.Signatures, "Parameters", signature); err != nil {
		return nil, err
	}
	if order.Type == "" {
		return nil, fault.New(fault.InvalidSignatureParams, "Parameters: SignatureType is missing")
	}
	order.Inputs, err = r.documents(docs, string(texts["documentinfo"]))
	return order, err
}

// documents returns the documents of a transaction. name is that of Document.
func (r *transactionRequest) documents(docs *documents, name string) (list []signing.Input, err error) {
	b := &r.Body
	switch {
	case !b.Document.Empty() && len(b.Documents) > 0:
		return nil, fault.New(fault.InvalidParameters, "Document and Documents are both given: send one of them")
	case !b.Document.Empty():
		in := signing.Input{Name: name}
		if in.Content, err = docs.Open(b.Document); err != nil {
			return nil, err
		}
		list = []signing.Input{in}
	}
	for i := range b.Documents {
		d := &b.Documents[i]
		in := signing.Input{Name: string(d.Name)}
		if err := kept.CheckText(fmt.Sprintf("Documents[%d].Name", i), in.Name, maxShown); err != nil {
			return nil, recoded(err, fault.InvalidParameters)
		}
		if !d.Content.Empty() {
			if in.Content, err = docs.Open(d.Content); err != nil {
				return nil, err
			}
		}
		list = append(list, in)
	}
	if len(list) == 0 {
		return nil, fault.New(fault.ContentRequired, "Document is missing or empty: send the document as Base64, or several as Documents")
	}
	return list, nil
}

// proposeAct creates a transaction that changes keys or certificates.
func (a *API) proposeAct(ctx context.Context, t transaction, r *transactionRequest) (*operation.Operation, error) {
	b := &r.Body
	if !b.Document.Empty() || len(b.Documents) > 0 {
		return nil, fault.Newf(fault.InvalidParameters, "OperationCode %s (%s) has no documents: leave Document and Documents out", b.OperationCode, t.action)
	}
	list, _, err := r.split(nil)
	if err != nil {
		return nil, err
	}
	shown, err := list.shown()
	if err != nil {
		return nil, err
	}
	if list["certificateid"]+list["activecertid"] == "" && t.action != policy.CreateRequest {
		return nil, fault.New(fault.InvalidParameters, "Parameters: CertificateID is missing")
	}
	request, err := t.read(list)
	if err != nil {
		return nil, err
	}
	op, _, err := a.order(ctx, request, operation.FormTransaction, operation.Always, shown)
	return op, err
}

// take removes a parameter and returns the first of several names that has a value.
func (p parameterList) take(names ...string) (value rest.Text) {
	for _, name := range names {
		if value == "" {
			value = p[name]
		}
		delete(p, name)
	}
	return value
}

func (p parameterList) creation() (act, error) {
	if p["algid"] == "" {
		return p.request(nil)
	}
	var r generating
	r.Body.AlgID, r.Body.ParametersOid, r.Body.PinCode = p.take("algid"), p.take("parametersoid"), p.take("pincode")
	return r, nil
}

func (p parameterList) renewal() (act, error) {
	return p.request(map[string]rest.Text{"RequestType": "Renew", "ActiveCertId": p.take("certificateid", "activecertid")})
}

func (p parameterList) deletion() (act, error) {
	return deleting{ID: string(p.take("certificateid")), DestroyKey: string(p.take("destroykey"))}, nil
}

func (p parameterList) newPIN() (act, error) {
	var r changingPIN
	r.ID, r.Body.OldPin, r.Body.NewPin = string(p.take("certificateid")), p.take("oldpin", "pincode"), p.take("newpin")
	return r, nil
}

func (p parameterList) revocation() (act, error) {
	if strings.EqualFold(string(p["requesttype"]), "RevokeRequest") {
		return p.request(map[string]rest.Text{"ActiveCertId": p.take("certificateid", "activecertid"), "ActiveCertPin": p.take("pincode", "activecertpin")})
	}
	return p.status("REVOKED"), nil
}

// status returns a request to change the status of a certificate.
func (p parameterList) status(status rest.Text) act {
	r := settingStatus{ID: string(p.take("certificateid"))}
	r.Body.Status, r.Body.PinCode = status, p.take("pincode")
	r.Body.RevocationInfo.RevocationReason = p.take("revocationreason")
	r.Body.RevocationInfo.RevocationComments = p.take("revocationcomments")
	return r
}

// request returns a request for a certificate with all parameters that are left.
func (p parameterList) request(more map[string]rest.Text) (act, error) {
	var r requesting
	b := &r.Body
	b.AuthorityID, b.Template, b.PinCode = p.take("caid", "authorityid"), p.take("certtemplateoid", "templateoid", "template"), p.take("pincode")
	if b.AuthorityID == "" {
		b.AuthorityID = "0" // the first of the policy
	}
	var err error
	if b.DistinguishedName, err = readName(string(p.take("certsubjectname", "distinguishedname"))); err != nil {
		return nil, err
	}
	b.Parameters = map[string]rest.Text{}
	for name, value := range p {
		if !slices.Contains(shownParameters, name) {
			b.Parameters[name] = value
		}
	}
	maps.Copy(b.Parameters, more)
	return r, nil
}

// readName reads a distinguished name: the text form of RFC 4514, such as
// "CN=Petrov,O=Horns", or a JSON object. The keys are those of DistinguishedName.
func readName(text string) (map[string]rest.Text, error) {
	text = strings.TrimSpace(text)
	name := map[string]rest.Text{}
	if strings.HasPrefix(text, "{") {
		var values map[string]string
		if err := rest.ReadJSON(text, &values); err != nil {
			return nil, fault.New(fault.InvalidSubject, "CertSubjectName: want a name such as CN=Petrov,O=Horns, or a JSON object of texts with each part once").With(err)
		}
		for key, value := range values {
			name[key] = rest.Text(value)
		}
		return name, nil
	}
	for text != "" {
		key, rest1, found := strings.Cut(text, "=")
		key = strings.TrimSpace(key)
		key = strings.TrimPrefix(strings.TrimPrefix(key, "OID."), "oid.")
		value, left, ok := readValue(rest1)
		if _, twice := name[key]; !found || !ok || key == "" || twice {
			return nil, fault.New(fault.InvalidSubject, "CertSubjectName: want a name such as CN=Petrov,O=Horns with each part once")
		}
		name[key] = rest.Text(value)
		text = left
	}
	return name, nil
}

// readValue reads a value up to a separator. Quotes and backslashes protect characters.
func readValue(text string) (value, left string, ok bool) {
	var b strings.Builder
	text = strings.TrimLeft(text, " ")
	quoted := strings.HasPrefix(text, `"`)
	i, end := 0, 0 // spaces from end on do not belong to the value
	if quoted {
		i = 1
	}
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			if digits := text[i+1 : min(i+3, len(text))]; len(digits) == 2 {
				if value, err := hex.DecodeString(digits); err == nil {
					b.Write(value)
					i, end = i+2, b.Len()
					continue
				}
			}
			i++
			b.WriteByte(text[i])
			end = b.Len()
		case c == '\\':
			return "", "", false
		case quoted && c == '"':
			left = strings.TrimLeft(text[i+1:], " ")
			if left != "" && !strings.ContainsRune(",;+", rune(left[0])) {
				return "", "", false
			}
			return b.String(), strings.TrimPrefix(left, left[:min(1, len(left))]), true
		case !quoted && strings.IndexByte(",;+", c) >= 0:
			return b.String()[:end], text[i+1:], true
		default:
			b.WriteByte(c)
			if c != ' ' {
				end = b.Len()
			}
		}
	}
	return b.String()[:end], "", !quoted
}

// onlyPIN is the fault of a request with a confirmed token that says what to do.
func onlyPIN() error {
	return fault.New(fault.InvalidOperation, "the access token is that of a confirmed operation: send {} or the PIN of the key, the documents and parameters are those that were confirmed")
}

// signConfirmed answers the result of a transaction in the form of v1.
func (a *API) signConfirmed(ctx context.Context, s *signature) (any, error) {
	var c claim
	if s != nil {
		c = claim{pin: string(s.PinCode), more: s.Type != "" || s.CertificateID != "" || len(s.Parameters) > 0}
	}
	switch {
	case c.more:
		return nil, onlyPIN()
	case a.deps.Operations == nil:
		return nil, fault.New(fault.InvalidOperation, "this installation makes no transactions")
	}
	op, err := a.deps.Operations.carryOut(ctx, operation.FormTransaction, signs, c, nil)
	if err != nil {
		return nil, err
	}
	if op.Action != policy.SignDocuments.String() {
		return rest.Stream{Content: op.Documents[0].Content}, nil
	}
	outcomes := make([]signing.Outcome, len(op.Documents))
	for i := range op.Documents {
		outcomes[i] = signing.Outcome{Result: op.Documents[i].Content, Err: op.Documents[i].Fault}
	}
	return newBatchAnswer(outcomes)
}
