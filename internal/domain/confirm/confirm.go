// SPDX-License-Identifier: Apache-2.0

// Package confirm owns confirmations: one record for each operation that a user confirms,
// each second step of a sign-in, and each text of a client that is confirmed.
//
//	*this user allowed this key to sign these digests, with these parameters, until this
//	time, once*
//
// Begin with [Service.Create]. A client then calls [Service.Challenge], and
// [Service.Answer] or [Service.Poll] until the record is Confirmed; a device answers with
// [Service.Approve]. [Service.Spend] ends a confirmed record in the transaction that stores
// what it gives. An operation ends its record with [Service.Complete]. Package what is the
// digest and the text of what is confirmed. docs/confirmation.md has the rules.
//
// The package does not decide whether something needs a confirmation (package policy
// does), issues no tokens, signs nothing, and knows no names of the interfaces.
package confirm

import (
	"time"

	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/fault"
)

// Purpose is what a record is for.
type Purpose string

// The purposes.
const (
	ForOperation Purpose = "operation" // an operation of the user
	ForSignIn    Purpose = "signin"    // the second step of a sign-in
	ForText      Purpose = "free"      // a text of a client, which no interface of ours reads
	ForChange    Purpose = "change"    // the end of the delay of a change of the account

	// ForNamedSignIn is the second step of a sign-in whose first step was a name alone, which
	// every attacker knows. It has a quota of its own, so that it ends no ForSignIn.
	ForNamedSignIn Purpose = "signin-name"
)

// SignIn reports whether a record is the second step of a sign-in.
func (p Purpose) SignIn() bool { return p == ForSignIn || p == ForNamedSignIn }

// Subject is who may use a record.
type Subject struct {
	UserID   string
	ClientID string // OAuth client that created it
	Operator string // login of the operator who acts for the user; "" for the user
	SignIn   string // sign-in that it is a step of, or in which it was begun (audit.Principal.TokenID); "" for none
}

// Record is a confirmation, without its contents (see Content). A record never changes
// its fields above State.
type Record struct {
	ID    string // GUID, never used again
	RefID string // GUID by which clients name the challenge; the same for all challenges of a record
	Subject
	Purpose   Purpose
	Action    string // as in what.Fields
	Documents int    // number of documents
	What      what.Digest
	Bytes     int64 // bytes of stored documents, which count in the quota
	CreatedAt time.Time

	State State
	// The challenge under way, or the last one. Method is "" in the state Created.
	Method       string    // name of the method
	Address      string    // contact or device that it was sent to; not for clients
	Label        string    // the address as the user sees it
	Number       string    // two digits that the device, or the page in another sign-in, must send; "" where none are asked for
	Round        int       // counts challenges; a repetition belongs to the same one
	SentAt       time.Time // of the last message
	AnswerBefore time.Time
	Attempts     int // answers to this challenge, wrong or right
	Resends      int // repetitions of this challenge

	Callback string // address that the client named; "" for none
	Origin   string // network that a sign-in came from; "" if it is not known

	Declined []int // indexes of the documents that the user declined
	// Code and Message say why the record ended, for states that are not Completed; in the
	// state Confirmed, why it does not carry itself out any more (see Postpone).
	Code, Message string

	ConfirmBefore  time.Time
	ConfirmedAt    time.Time // zero until then
	CompleteBefore time.Time // zero until the record is confirmed
	UpdatedAt      time.Time
	EndedAt        time.Time // zero until the state is final
}

// matches reports whether the answers of a method to the record can have a number. A device and the page in which the
// record was begun are two places, and so are that page and one in another sign-in. The page of a second step is in no
// sign-in yet, and shows no record of another one.
func (r *Record) matches(m *Row) bool {
	return m.Device || m.Page && !r.Purpose.SignIn() && r.SignIn != ""
}

// AsksNumber reports whether an answer in a sign-in needs the number that the page of another one shows.
func (r *Record) AsksNumber(signIn string) bool {
	return r.Number != "" && ByPage(r.Method) && r.SignIn != signIn
}

// ShowsNumber reports whether a sign-in is the one whose page shows the number for answers elsewhere.
func (r *Record) ShowsNumber(signIn string) bool {
	return r.Number != "" && (ByDevice(r.Method) || ByPage(r.Method) && r.SignIn == signIn)
}

// DocumentState is the state of one document of a record.
type DocumentState string

// The states of documents, by their names on the wire.
const (
	Considering DocumentState = "Considering"
	Approved    DocumentState = "Approved"
	Refused     DocumentState = "Declined"
)

// DocumentStates returns the state of each document.
func (r *Record) DocumentStates() []DocumentState {
	state := Considering
	switch {
	case r.State == Declined:
		state = Refused
	case !r.ConfirmedAt.IsZero():
		state = Approved
	}
	list := make([]DocumentState, r.Documents)
	for i := range list {
		list[i] = state
	}
	for _, i := range r.Declined {
		list[i] = Refused
	}
	return list
}

// due returns when the record expires in its present state.
func (r *Record) due() time.Time {
	if r.State == Confirmed {
		return r.CompleteBefore
	}
	return r.ConfirmBefore
}

// overdue reports whether the record has expired, even if it was not swept yet.
func (r *Record) overdue(now time.Time) bool { return !r.State.Final() && !now.Before(r.due()) }

// Content is the large part of a record.
type Content struct {
	Fields what.Fields
	Shown  map[string]string // what.Fields.Shown when the record was created
	// Outline is of the caller of Create. It stays as long as the record.
	Outline []byte
	// Result is the proof of Complete. Approval is the signed message of a device or the answer of a passkey,
	// a JSON object, with the public key of the device as its member "key".
	Result   []byte
	Approval []byte
}

// Draft is a record to be created.
type Draft struct {
	// ID is the identifier of the record, if the caller stores something else under the
	// same one. It is a GUID that was never used. "": Create makes one.
	ID      string
	Purpose Purpose
	Fields  what.Fields
	SignIn  string // that the record is a step of; "": the sign-in of the caller
	Bytes   int64  // bytes of documents that are stored for it
	// Outline is what is shown of the operation as long as the record is stored. It names
	// nothing that is deleted when the record ends.
	Outline []byte
	Life    time.Duration // until ConfirmBefore; 0: Settings.Life
}

// Choice is one way to confirm.
type Choice struct {
	Method  string // name of the method
	Address string // which of several: the identifier of a device; "" where there is one
	Label   string // for the user: the name of a device, a phone number with digits hidden

	to        string // Record.Address
	describes int    // latest version of the digest that a device computes; 0: it is no device
}

// Ask is a call that begins or repeats a challenge.
type Ask struct {
	ID    string // of the record: the first call of a client
	RefID string // of the record: a later call; used if ID is ""
	// Methods are the names of the methods that the client can handle. Fallback are those
	// for a user who has none of them. With neither, all methods are offered.
	Methods, Fallback []string
	// Method and Address are the choice of the user. With an empty Method, the only choice
	// begins at once, and a challenge that is under way is repeated.
	Method, Address string
	// Callback is the address that the answer of the user is reported to; "": the one that
	// was named before, or none.
	Callback string
	// Titles means that the client shows a title with the challenge. Then a device must
	// send the two digits of Record.Number, and so must an answer of a passkey in another sign-in
	// than the one in which the record was begun.
	Titles bool
}

// Prompt is what a client shows.
type Prompt struct {
	Record Record
	// Choices are set when the user must choose. Then no challenge is under way.
	Choices []Choice
	// QR is the text of a QR code that the device of the challenge confirms without a
	// network; "" for none. Challenge sets it, and Poll and Answer do not.
	QR string
	// Request has the options for the browser, as JSON, if a passkey answers the challenge.
	// The functions that set QR set it, and so do Poll and Answer.
	Request []byte
	// Wrong is set after a wrong answer if another one is allowed. Its code is
	// authentication_failed.
	Wrong *fault.Error
	// What a person must know of a challenge under way: how many answers of how many are left, for how long it can be
	// answered, and after which time the message may be sent again. Pages show them.
	Left, Most       int
	Lives, RepeatsIn time.Duration
	Digits           int // of the code that was sent; 0 for a challenge without one
}
