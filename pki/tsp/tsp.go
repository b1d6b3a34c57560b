// SPDX-License-Identifier: Apache-2.0

// Package tsp reads and writes messages of the Time-Stamp Protocol (RFC 3161, RFC 5816):
// requests, responses and tokens. The same code serves GOST algorithms, RSA and ECDSA.
//
// A client begins with Request.Marshal and ParseResponse, then checks the token with
// Token.Answers and Token.CheckSignature. An authority begins with ParseRequest and
// CreateToken. The package checks everything that a token proves by itself. It does not check
// whether the authority's certificate leads to a trust anchor: package chain does. It does not
// send requests.
//
// Requests and responses must be DER. The token inside a response may be BER. MaxRequest,
// MaxResponse and MaxInfo limit the bytes.
package tsp

import (
	"fmt"
	"strings"
	"time"

	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// Limits on what is read, in bytes.
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
	// Digest is the imprint. In a parsed request its Hash is nil when the algorithm is
	// not supported.
	Digest suite.Digest
	Policy x509gost.OID // nil: any policy
	// Nonce is a positive number, big-endian, a leading zero allowed, nil for none. In a
	// parsed request it is the content of the INTEGER.
	Nonce []byte
	// CertReq requests the authority's certificate in the token.
	CertReq bool
	// Extensions are those of a parsed request. Marshal writes none.
	Extensions []x509gost.Extension
}

// Info is the content of a token (TSTInfo, RFC 3161, 2.4.2).
type Info struct {
	Policy x509gost.OID
	Digest suite.Digest
	Serial []byte // content of the INTEGER: positive, at most 20 bytes
	Time   time.Time
	// Accuracy is the largest error of Time in both directions, in whole microseconds.
	// It is 0 when the token does not state it.
	Accuracy time.Duration
	Ordering bool
	Nonce    []byte // content of the INTEGER; nil when absent
	// Authority is the directoryName of the field tsa as DER, nil when absent. It is a
	// hint and is not checked.
	Authority []byte
}

// Token is a parsed time stamp.
type Token struct {
	Raw     []byte       // the ContentInfo as received
	Message *cms.Message // of Raw
	Info    Info
	rawInfo []byte
	// certificates are those in the token, and unreadable reports those that cannot be parsed.
	certificates []*x509gost.Certificate
	unreadable   error
}

// Certificates returns the X.509 certificates in the token that can be parsed. They are parsed
// once, with the token.
func (t *Token) Certificates() []*x509gost.Certificate { return t.certificates }

// Verified is a token that was checked: it is for a known digest and has a valid signature.
// Only [Verify] and [Token.Verify] make one, so a function that takes a *Verified need not
// check the token again. It must still compare the digest with its own (see Verified.For), and
// package chain checks the path of the authority.
type Verified struct {
	token     *Token
	authority *x509gost.Certificate
}

// Token returns the token, which must not be changed.
func (v *Verified) Token() *Token { return v.token }

// Authority returns the certificate that signed the token.
func (v *Verified) Authority() *x509gost.Certificate { return v.authority }

// For checks that the token is for a digest. The error wraps ErrAnswer.
func (v *Verified) For(d suite.Digest) error { return v.token.Answers(&Request{Digest: d}) }

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

// Values of FailInfo. With NoFailInfo the field is omitted.
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

// String returns the name in RFC 3161.
func (f FailInfo) String() string {
	if text, ok := failTexts[f]; ok {
		return text
	}
	return fmt.Sprintf("failure %d", int(f))
}

// RejectedError is a response without a time stamp.
type RejectedError struct {
	Status   Status
	Text     string // the authority's explanation for people, at most 1024 bytes
	FailInfo FailInfo
}

// Error returns `tsp: the time-stamping authority refused (status N, failure): "text"`. An
// absent failure or text is omitted.
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
