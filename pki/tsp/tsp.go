// Package tsp owns the messages of the Time-Stamp Protocol (RFC 3161, RFC 5816):
// requests, responses and tokens, written and read, with GOST algorithms and in
// the same code with RSA and ECDSA.
//
// It checks everything a token says by itself: that it answers a request, and
// that its signature is one of a time-stamping authority. Whether the
// authority's certificate leads to a trust anchor is for package chain.
//
// Requests and responses must be DER, the token inside a response may be BER.
// MaxRequest, MaxResponse and MaxInfo bound the octets.
package tsp

import (
	"fmt"
	"strings"
	"time"

	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// Limits on what is read, in octets.
const (
	MaxRequest  = 64 << 10
	MaxResponse = 4 << 20 // certificates and revocation lists may be inside
	MaxInfo     = 64 << 10
	MaxNonce    = 128
)

// OIDInfo is the content type of a token (id-ct-TSTInfo, RFC 3161, 2.4.2).
var OIDInfo = x509gost.OID{1, 2, 840, 113549, 1, 9, 16, 1, 4}

// Request asks for a time stamp (TimeStampReq, RFC 3161, 2.4.1).
type Request struct {
	// Digest is the imprint. In a parsed request its Hash is nil when the
	// algorithm is not one of ours.
	Digest suite.Digest
	Policy x509gost.OID // nil: any
	// Nonce is a positive number, big-endian, with or without a zero in front;
	// nil for none. In a parsed request it is the content of the INTEGER.
	Nonce []byte
	// CertReq asks for the authority's certificate in the token.
	CertReq bool
	// Extensions of a parsed request. None is known here, and none is written.
	Extensions []x509gost.Extension
}

// Info is what a token says (TSTInfo, RFC 3161, 2.4.2).
type Info struct {
	Policy x509gost.OID
	Digest suite.Digest
	Serial []byte // content of the INTEGER: positive, 20 octets at most
	Time   time.Time
	// Accuracy is how far Time may be off either way, in whole microseconds; 0
	// when the token does not say.
	Accuracy time.Duration
	Ordering bool
	Nonce    []byte // content of the INTEGER; nil when absent
	// Authority is the directoryName of the field tsa as DER, a hint; nil when
	// absent.
	Authority []byte
}

// Token is a parsed time stamp.
type Token struct {
	Raw     []byte       // the ContentInfo as received
	Message *cms.Message // of Raw
	Info    Info
	rawInfo []byte
}

// Status is PKIStatus (RFC 3161, 2.4.2).
type Status int

// Values of Status.
const (
	Granted         Status = 0
	GrantedWithMods Status = 1
	Rejection       Status = 2
	Waiting         Status = 3
)

// FailInfo is a bit of PKIFailureInfo (RFC 3161, 2.4.2).
type FailInfo int

// Values of FailInfo. NoFailInfo leaves it out.
const (
	NoFailInfo          FailInfo = -1
	BadAlg              FailInfo = 0
	BadRequest          FailInfo = 2
	BadDataFormat       FailInfo = 5
	TimeNotAvailable    FailInfo = 14
	UnacceptedPolicy    FailInfo = 15
	UnacceptedExtension FailInfo = 16
	AddInfoNotAvailable FailInfo = 17
	SystemFailure       FailInfo = 25
)

var failTexts = map[FailInfo]string{
	BadAlg:              "badAlg",
	BadRequest:          "badRequest",
	BadDataFormat:       "badDataFormat",
	TimeNotAvailable:    "timeNotAvailable",
	UnacceptedPolicy:    "unacceptedPolicy",
	UnacceptedExtension: "unacceptedExtension",
	AddInfoNotAvailable: "addInfoNotAvailable",
	SystemFailure:       "systemFailure",
}

// String is the name of RFC 3161.
func (f FailInfo) String() string {
	if text, ok := failTexts[f]; ok {
		return text
	}
	return fmt.Sprintf("failure %d", int(f))
}

// RejectedError is a response of an authority that gives no time stamp.
type RejectedError struct {
	Status   Status
	Text     string // of the authority, for people; of at most 1024 octets
	FailInfo FailInfo
}

// Error is "tsp: rejected (status N, failure): text".
func (e *RejectedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "tsp: the time-stamping authority refused (status %d", e.Status)
	if e.FailInfo != NoFailInfo {
		b.WriteString(", " + e.FailInfo.String())
	}
	b.WriteString(")")
	if e.Text != "" {
		fmt.Fprintf(&b, ": %q", e.Text)
	}
	return b.String()
}
