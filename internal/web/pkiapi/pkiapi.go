// SPDX-License-Identifier: Apache-2.0

// Package pkiapi serves the public addresses of the built-in authority: its certificates
// and revocation lists at the addresses that issued certificates name (CRL distribution
// point and caIssuers, RFC 5280, sections 4.2.1.13 and 4.2.2.1), OCSP over HTTP (RFC 6960,
// appendix A) and time stamps over HTTP (RFC 3161, section 3.4). Begin with [New] and
// [API.Routes]. Package authority makes the answers.
//
// Content types of requests are ignored. Content types of answers are those of the standards. If
// the authority refuses a request, the answer is 200 with a refusal in the protocol itself,
// as both standards demand.
package pkiapi

import (
	"bytes"
	"context"
	_ "embed" // for Docs
	"encoding/base64"
	"strings"

	"tamga/internal/domain/fault"
	"tamga/internal/web/rest"
)

// Docs describes the operations of this surface for people; see
// [tamga/internal/web/rest/openapi].
//
//go:embed operations.txt
var Docs string

// Path is the beginning of the paths of all routes.
const Path = "/pki/"

// maxRequest bounds requests for time stamps and OCSP answers, in bytes.
const maxRequest = 64 << 10

// Authority answers the requests.
type Authority interface {
	// CRL returns the current revocation list of an authority (DER). The fault is
	// object_not_found.
	CRL(ctx context.Context, name string) ([]byte, error)
	// Certificate returns the certificate of an authority (DER). The fault is
	// object_not_found.
	Certificate(ctx context.Context, name string) ([]byte, error)
	// OCSP answers an OCSPRequest with an OCSPResponse, both DER.
	OCSP(ctx context.Context, request []byte) ([]byte, error)
	// TimeStamp answers a TimeStampReq with a TimeStampResp, both DER.
	TimeStamp(ctx context.Context, request []byte) ([]byte, error)
}

// API serves an authority.
type API struct {
	authority Authority
	admit     func(remote string) error
}

// New returns the API of an authority. admit refuses time stamps to the address of a caller that comes
// too often; nil: all are admitted.
func New(a Authority, admit func(remote string) error) *API { return &API{a, admit} }

// Routes returns the operations of this surface. Time stamps are counted in the audit log, because
// each is a promise of the service (see authority.TimeStamp). Reads of public data and
// refused requests have no entry.
func (a *API) Routes() []rest.Route {
	stamp := rest.Handle("POST /pki/tsp", "TimeStamp", rest.Anyone, a.timeStamp).AtMost(maxRequest).Counted()
	if a.admit != nil {
		stamp = stamp.Guarded(a.admit)
	}
	return []rest.Route{
		stamp,
		rest.Handle("GET /pki/{file}", "GetAuthorityFile", rest.Anyone, a.file).Exact().Unaudited(),
		rest.Handle("POST /pki/ocsp", "PostOCSP", rest.Anyone, a.postOCSP).AtMost(maxRequest).Unaudited(),
		rest.Handle("GET /pki/ocsp/{request...}", "GetOCSP", rest.Anyone, a.getOCSP).Unaudited(),
	}
}

// kinds are the kinds of files, by the suffix of their names.
var kinds = []struct {
	suffix, mediaType string
	read              func(Authority, context.Context, string) ([]byte, error)
}{
	{".crl", "application/pkix-crl", Authority.CRL},
	{".crt", "application/pkix-cert", Authority.Certificate},
}

func (a *API) file(ctx context.Context, r struct {
	File string `path:"file"`
}) (rest.File, error) {
	for _, k := range kinds {
		name, ok := strings.CutSuffix(r.File, k.suffix)
		if !ok {
			continue
		}
		der, err := k.read(a.authority, ctx, name)
		if err != nil {
			return rest.File{}, err
		}
		return rest.File{Content: bytes.NewReader(der), Name: r.File, Type: k.mediaType}, nil
	}
	return rest.File{}, fault.New(fault.NotFound, "there is no such file: want the name of an authority followed by .crl or .crt")
}

// message is a body in DER.
type message struct{ Body rest.Bytes }

func (a *API) postOCSP(ctx context.Context, r message) (rest.File, error) {
	return a.ocsp(ctx, r.Body)
}

// getOCSP takes the request from the path, in Base64 whose slashes and plus signs may be
// escaped or not.
func (a *API) getOCSP(ctx context.Context, r struct {
	Request string `path:"request"`
}) (rest.File, error) {
	der, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(unURL.Replace(r.Request), "="))
	if err != nil {
		return rest.File{}, fault.New(fault.InvalidParameters, "want an OCSP request in Base64 behind /pki/ocsp/").With(err)
	}
	return a.ocsp(ctx, der)
}

// unURL reverts the replacements that clients make in Base64 for an address.
var unURL = strings.NewReplacer("-", "+", "_", "/", " ", "+")

func (a *API) ocsp(ctx context.Context, request []byte) (rest.File, error) {
	der, err := a.authority.OCSP(ctx, request)
	if err != nil {
		return rest.File{}, err
	}
	return rest.File{Content: bytes.NewReader(der), Type: "application/ocsp-response"}, nil
}

func (a *API) timeStamp(ctx context.Context, r message) (rest.File, error) {
	der, err := a.authority.TimeStamp(ctx, r.Body)
	if err != nil {
		return rest.File{}, err
	}
	return rest.File{Content: bytes.NewReader(der), Type: "application/timestamp-reply"}, nil
}
