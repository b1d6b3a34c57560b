// SPDX-License-Identifier: Apache-2.0

package message

import "encoding/json"

// Registration is the payload of Register. Without a K-init the device has no user until
// an operator assigns it.
type Registration struct {
	KInit  *KInitAnswer `json:"kinit,omitempty"`
	Device About        `json:"device"`
}

// KInitAnswer answers the QR code of a K-init.
type KInitAnswer struct {
	Kid   string `json:"kid"`
	Proof []byte `json:"proof"`          // KInitProof
	Code  string `json:"code,omitempty"` // activation code, if the QR code requires one
}

// About is what a device reports about itself.
type About struct {
	Name       string `json:"name,omitempty"`
	Type       string `json:"type,omitempty"` // such as android, huawei, ios, cli
	AppVersion string `json:"app_version,omitempty"`
}

// VerificationAnswer is the payload of Verify.
type VerificationAnswer struct {
	Proof []byte `json:"proof"` // VerificationProof
}

// PushAddress is the payload of Push. An empty address removes it.
type PushAddress struct {
	Address  string `json:"address"`
	OSType   int    `json:"os_type"`
	SystemID string `json:"system_id"`
}

// PollRequest is the payload of Poll.
type PollRequest struct {
	After string `json:"after,omitempty"` // identifier at which the list before it ended; "" for the first part of the list
	// Describes is the latest version of the digest of operations that the device computes, and all
	// before it. 0 of older devices is 1.
	Describes int `json:"describes,omitempty"`
}

// OperationRequest is the payload of Operation. From is the index of the first document of
// the answer.
type OperationRequest struct {
	ID   string `json:"id"`
	From int    `json:"from,omitempty"`
}

// DocumentRequest is the payload of Read. The answer is the bytes of the document.
type DocumentRequest struct {
	ID       string `json:"id"` // of the operation
	Index    int    `json:"index"`
	Original bool   `json:"original,omitempty"` // the content of a signed message, which Document.Original describes
}

// Decision is the payload of Confirm and Decline, and of Approval and Refusal.
type Decision struct {
	ID   string `json:"id"`
	What string `json:"what"` // digest that the device computed from what it has shown, hexadecimal
	// Declined are the indexes of the documents that the user declined, of Confirm and Approval only.
	Declined []int  `json:"declined,omitempty"`
	Number   string `json:"number,omitempty"` // that the user chose, of Confirm and Approval only
	// NotMe says that the user has not begun the operation or sign-in, of Decline and Refusal only.
	NotMe bool `json:"not_me,omitempty"`
}

// KnownKey is the payload of ServiceKey.
type KnownKey struct {
	Key []byte `json:"key"` // Successor.Key, which the device has verified and keeps
}

// Delivery is the payload of Deliver: an Approval or a Refusal of the same device.
type Delivery struct {
	Message Signed `json:"message"`
}

// Answer is the answer of the service to each message.
type Answer struct {
	Kid        string    `json:"kid"`
	UID        string    `json:"uid"` // user of the device; empty for none
	State      string    `json:"state"`
	NotAfter   int64     `json:"not_after"`             // Unix seconds
	Time       int64     `json:"time"`                  // of the service, Unix seconds
	PollAfter  int       `json:"poll_after"`            // seconds
	Operations []Waiting `json:"operations"`            // to be confirmed, of Poll and Operation
	Next       string    `json:"next,omitempty"`        // of Poll: PollRequest.After of the next part of the list
	Result     *Result   `json:"result,omitempty"`      // of Confirm, Decline and Deliver
	ServiceKey []byte    `json:"service_key,omitempty"` // of Register: SubjectPublicKeyInfo that signs challenges
	// Successor is the key that follows the one that the device knows, of Poll.
	Successor  *Successor `json:"new_service_key,omitempty"`
	PushListed bool       `json:"push_listed"` // whether the push address is in use
}

// Waiting is an operation that waits for a decision of the device.
type Waiting struct {
	ID     string            `json:"id"`
	Action string            `json:"action"`
	What   string            `json:"what"`   // digest, hexadecimal
	Shown  map[string]string `json:"shown"`  // text by language, ru and en
	Number bool              `json:"number"` // whether Decision.Number is needed
	// Application and Network say who asks: the OAuth client, and for a sign-in the network that it
	// comes from, an IPv4 address or a prefix of an IPv6 address; "" if it is not known.
	Application   string `json:"application"`
	Network       string `json:"network,omitempty"`
	CreatedAt     int64  `json:"created_at"` // Unix seconds
	ConfirmBefore int64  `json:"confirm_before"`
	// Fields are the fields of the digest without documents, in the answer to Operation.
	Fields json.RawMessage `json:"fields,omitempty"`
	Count  int             `json:"documents_total"`
	// Documents are a part of the documents. More is the index of the first one of the next
	// part, 0 after the last one.
	Documents []Document `json:"documents"`
	More      int        `json:"documents_next,omitempty"`
}

// Document is one document of an operation.
type Document struct {
	Index    int       `json:"index"`
	Name     string    `json:"name"`
	Size     int64     `json:"size"`
	Digest   string    `json:"digest"`         // hexadecimal
	Hash     string    `json:"hash,omitempty"` // algorithm, if the client sent a hash: the document is unknown
	Path     string    `json:"path,omitempty"` // where Read gets the bytes, below the service; "" if the device cannot read them
	Original *Original `json:"original,omitempty"`
	Way      int       `json:"way,omitempty"` // index in the ways of Waiting.Fields
}

// Original is the content of a signed message that is signed again.
type Original struct {
	Size   int64  `json:"size"`
	Digest string `json:"digest"`         // hexadecimal
	Path   string `json:"path,omitempty"` // as in Document
}

// Result is what came of a decision.
type Result struct {
	ID       string `json:"id"`
	State    string `json:"state"`              // Confirmed, Declined, or Completed for one that was repeated
	Declined []int  `json:"declined,omitempty"` // indexes of documents
}
