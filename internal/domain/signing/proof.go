// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/fault"
)

// Proofs exports the evidence of confirmations.
type Proofs struct {
	Records ProofRecords
	Entries Entries
}

// ProofRecords reads the records of confirmations; *confirm.Service satisfies it.
type ProofRecords interface {
	// UserOf returns the user of a record. The fault is invalid_transaction.
	UserOf(ctx context.Context, id string) (string, error)
	Find(ctx context.Context, who audit.Principal, id string) (confirm.Record, error)
	Content(ctx context.Context, who audit.Principal, id string) (confirm.Content, error)
}

// Entries reads the audit entries about one object.
type Entries interface {
	// Of returns the entries of an operation with an object, the oldest first. They are not
	// older than since.
	Of(ctx context.Context, operation, object string, since time.Time) ([]audit.Entry, error)
}

// ProofVersion is the version of the form of Proof.
const ProofVersion = 1

// Proof is the evidence of one confirmation. Its JSON form is the export, which
// docs/confirmation.md describes with the procedure that verifies it. It has no secrets.
type Proof struct {
	Version   int               `json:"version"`
	ID        string            `json:"id"`
	Purpose   string            `json:"purpose"`
	UserID    string            `json:"user_id"`
	ClientID  string            `json:"client_id"`
	Operator  string            `json:"operator,omitempty"` // login of the operator who acted for the user
	State     string            `json:"state"`
	Code      string            `json:"code,omitempty"` // why it ended, in states other than Completed
	Method    string            `json:"method,omitempty"`
	Address   string            `json:"address,omitempty"` // as the user sees it, digits of a number are hidden
	Number    string            `json:"number,omitempty"`  // two digits that the device had to send
	Times     ProofTimes        `json:"times"`
	What      ProofWhat         `json:"what"`
	Shown     map[string]string `json:"shown"`              // by language
	Declined  []int             `json:"declined,omitempty"` // indexes of documents
	Approval  *ProofApproval    `json:"approval,omitempty"` // of a device
	Passkey   *ProofPasskey     `json:"passkey,omitempty"`  // its answer
	Audit     []ProofEntry      `json:"audit"`
	Signature *ProofSignature   `json:"signature,omitempty"` // of a signature that was made
}

// ProofTimes are the times of a confirmation.
type ProofTimes struct {
	Created        time.Time `json:"created"`
	ConfirmBefore  time.Time `json:"confirm_before"`
	Confirmed      time.Time `json:"confirmed,omitzero"`
	CompleteBefore time.Time `json:"complete_before,omitzero"`
	Ended          time.Time `json:"ended,omitzero"`
}

// ProofWhat is what was confirmed.
type ProofWhat struct {
	Digest string      `json:"digest"` // of the fields, hexadecimal
	Fields what.Fields `json:"fields"`
}

// ProofApproval is the signed message of a device, as it was sent, and the public key of
// the device at that time.
type ProofApproval struct {
	Protected string `json:"protected"`
	Payload   string `json:"payload"`
	Signature string `json:"signature"`
	Key       []byte `json:"key,omitempty"` // SubjectPublicKeyInfo; missing in records of releases that did not store it
}

// ProofPasskey is the answer of a passkey, with what its challenge was made of besides the record.
type ProofPasskey = confirm.PasskeyApproval

// ProofEntry is an audit entry about a confirmation.
type ProofEntry struct {
	At       time.Time `json:"at"`
	Outcome  string    `json:"outcome"`
	Detail   string    `json:"detail"`
	UserID   string    `json:"user_id,omitempty"`
	Login    string    `json:"login,omitempty"`
	ClientID string    `json:"client_id,omitempty"`
	Method   string    `json:"method,omitempty"`
	Actor    string    `json:"actor,omitempty"`
}

// ProofSignature is the signature that a confirmation allowed.
type ProofSignature struct {
	Type        string          `json:"type,omitempty"` // "" for several, which the fields have
	Certificate []byte          `json:"certificate"`    // DER
	Documents   []ProofDocument `json:"documents"`      // without those that the user declined
}

// ProofDocument is the signature of one document.
type ProofDocument struct {
	Index     int    `json:"index"`
	Algorithm string `json:"digest_algorithm"` // object identifier
	Digest    []byte `json:"digest"`           // that was signed
	Value     []byte `json:"value"`
	Result    string `json:"result,omitempty"` // identifier of the signed document in the document store
}

// madeVersion is the version of the format of made.
const madeVersion = 1

// made is what the record of a confirmed operation stores of its signatures.
type made struct {
	Version     int              `json:"v"`
	Type        string           `json:"type"`        // "" for several
	Certificate []byte           `json:"certificate"` // DER
	Signed      []*ProofDocument `json:"signed"`      // nil for a document that the user declined
}

// Of returns the evidence of a record for its user, or for an operator whose reach the
// caller has checked: who is the user then. The fault is object_not_found.
func (p *Proofs) Of(ctx context.Context, who audit.Principal, id string) (*Proof, error) {
	r, err := p.Records.Find(ctx, who, id)
	if fault.Is(err, fault.InvalidTransaction) {
		return nil, fault.New(fault.NotFound, "there is no confirmation with this identifier").With(err)
	}
	if err != nil {
		return nil, err
	}
	return p.of(ctx, &r)
}

// Any is Of for administrators, who may read every record.
func (p *Proofs) Any(ctx context.Context, id string) (*Proof, error) {
	userID, err := p.Records.UserOf(ctx, id)
	if fault.Is(err, fault.InvalidTransaction) {
		return nil, fault.New(fault.NotFound, "there is no confirmation with this identifier").With(err)
	}
	if err != nil {
		return nil, err
	}
	return p.Of(ctx, audit.Principal{UserID: userID}, id)
}

func (p *Proofs) of(ctx context.Context, r *confirm.Record) (*Proof, error) {
	c, err := p.Records.Content(ctx, audit.Principal{UserID: r.UserID}, r.ID)
	if err != nil {
		return nil, err
	}
	proof := &Proof{
		Version: ProofVersion, ID: r.ID, Purpose: string(r.Purpose), UserID: r.UserID, ClientID: r.ClientID, Operator: r.Operator,
		State: string(r.State), Code: r.Code, Method: r.Method, Address: r.Label, Number: r.Number,
		Times: ProofTimes{r.CreatedAt, r.ConfirmBefore, r.ConfirmedAt, r.CompleteBefore, r.EndedAt},
		What:  ProofWhat{r.What.String(), c.Fields}, Shown: c.Shown, Declined: r.Declined, Audit: []ProofEntry{},
	}
	if len(c.Approval) > 0 {
		var by struct {
			ProofApproval
			Passkey *ProofPasskey `json:"passkey"`
		}
		if err := json.Unmarshal(c.Approval, &by); err != nil {
			return nil, fmt.Errorf("signing: the approval of operation %s: %w", r.ID, err)
		}
		if proof.Passkey = by.Passkey; by.Passkey == nil {
			proof.Approval = &by.ProofApproval
		}
	}
	entries, err := p.Entries.Of(ctx, confirm.AuditOperation, r.ID, r.CreatedAt)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		proof.Audit = append(proof.Audit, ProofEntry{
			e.At, e.Outcome, e.Detail, e.Principal.UserID, e.Principal.Login, e.Principal.ClientID, e.Principal.Method, e.Principal.Actor,
		})
	}
	if r.State != confirm.Completed || r.Purpose != confirm.ForOperation || len(c.Result) == 0 {
		return proof, nil
	}
	// The results of other actions have no signature.
	var m made
	if err := json.Unmarshal(c.Result, &m); err != nil || m.Version != madeVersion || len(m.Certificate) == 0 || len(m.Signed) == 0 {
		return proof, nil
	}
	proof.Signature = &ProofSignature{Type: m.Type, Certificate: m.Certificate}
	for _, d := range m.Signed {
		if d != nil {
			proof.Signature.Documents = append(proof.Signature.Documents, *d)
		}
	}
	return proof, nil
}
