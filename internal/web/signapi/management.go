// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"context"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/policy"
	"tamga/internal/web/rest"
)

// Management has the services with which users manage their keys and certificates.
type Management struct {
	Keys       *keys.Service
	Parameters keys.Parameters
	Policy     *policy.Service
	// Realm is the name of the identity provider of the users.
	Realm string
	// Templates are the processing templates of the installation.
	Templates []Template
	Now       func() time.Time
	// Life is the lifetime of operations. Answers of v2 state it even for finished
	// operations.
	Life time.Duration
}

// Managing returns the API with the routes that manage keys and certificates.
func (a *API) Managing(m Management) *API {
	managing := *a
	managing.management = &m
	return &managing
}

func (a *API) managementRoutes() []rest.Route {
	m := a.management
	routes := []rest.Route{
		rest.Handle("GET /v2/certificates", "GetCertificatesV2", rest.SignedIn, a.list),
		rest.Handle("GET /v2/certificates/{id}", "GetCertificateV2", rest.SignedIn, a.one),
		rest.Handle("GET /policy", "GetSigningPolicy", rest.SignedIn, m.policy),
		rest.Handle("GET /v2/policy", "GetSigningPolicyV2", rest.SignedIn, m.policy),
		rest.Handle("POST /keys/generate", "GenerateKey", rest.SignedIn, m.generate),
		rest.Handle("POST /keys/{id}/params", "SetKeyParameter", rest.SignedIn, m.setParameter),
		rest.Handle("GET /keys/{id}/params", "GetKeyParameter", rest.SignedIn, m.parameter),
	}
	for _, version := range []struct{ prefix, suffix string }{{"", ""}, {"/v2", "V2"}} {
		routes = append(routes,
			rest.Handle("GET "+version.prefix+"/certificates/{id}/content", "GetCertificateContent"+version.suffix, rest.SignedIn, m.content),
			rest.Handle("POST "+version.prefix+"/certificates/{id}/pin/check", "CheckPin"+version.suffix, rest.SignedIn, m.checkPIN),
			rest.Handle("GET "+version.prefix+"/requests", "GetRequests"+version.suffix, rest.SignedIn, m.requests),
			rest.Handle("GET "+version.prefix+"/requests/{id}", "GetRequest"+version.suffix, rest.SignedIn, m.request),
			rest.Handle("GET "+version.prefix+"/requests/{id}/content", "GetRequestContent"+version.suffix, rest.SignedIn, m.requestContent),
		)
	}
	routes = append(routes, write(m, "POST", "/certificates", "InstallCertificate", m.install, false)...)
	routes = append(routes, write(m, "DELETE", "/certificates/{id}", "DeleteCertificate", m.deleteCertificate, true)...)
	routes = append(routes, write(m, "POST", "/certificates/{id}/default", "SetDefaultCertificate", m.setDefault, true)...)
	routes = append(routes, write(m, "POST", "/certificates/{id}/pin", "ChangePin", m.changePIN, true)...)
	routes = append(routes, write(m, "POST", "/certificates/{id}/status", "ChangeCertificateStatus", m.setStatus, true)...)
	routes = append(routes, write(m, "POST", "/certificates/{id}/friendlyname", "SetFriendlyName", m.setFriendlyName, true)...)
	routes = append(routes, write(m, "POST", "/requests", "CreateRequest", m.createRequest, false)...)
	return append(routes, write(m, "DELETE", "/requests/{id}", "DeleteRequest", m.deleteRequest, true)...)
}

// write returns the two routes of an operation that changes something. v1 answers the
// result, or nothing if void is set. v2 answers a finished operation.
func write[Req, Res any](m *Management, method, path, name string, do func(context.Context, Req) (Res, error), void bool) []rest.Route {
	v1 := rest.Handle(method+" "+path, name, rest.SignedIn, do)
	if void {
		v1 = rest.Handle(method+" "+path, name, rest.SignedIn, func(ctx context.Context, r Req) (rest.None, error) {
			_, err := do(ctx, r)
			return rest.None{}, err
		})
	}
	v2 := rest.Handle(method+" /v2"+path, name+"V2", rest.SignedIn, func(ctx context.Context, r Req) (operationAnswer, error) {
		result, err := do(ctx, r)
		if err != nil {
			return operationAnswer{}, err
		}
		return operationAnswer{newOperation(uuid.NewString(), rest.Caller(ctx), m.Realm, m.Now().Add(m.Life), result, nil)}, nil
	})
	return []rest.Route{v1, v2.Answering(answerOf[Res]{})}
}

// act returns the caller. force is the ForceConfirmation of the body.
func act(ctx context.Context, force rest.Text) (keys.Act, error) {
	forced, err := truth("ForceConfirmation", force, false)
	return keys.Act{Who: rest.Caller(ctx), ForceConfirmation: forced}, err
}

// truth reads a boolean as [rest.Truth] does. "" is absent.
func truth(name string, text rest.Text, absent bool) (bool, error) {
	if strings.TrimSpace(string(text)) == "" {
		return absent, nil
	}
	if value, ok := rest.Truth(string(text)); ok {
		return value, nil
	}
	return false, fault.Newf(fault.InvalidParameters, "%s: want true or false", name)
}

// number reads an integer that clients send as a number or as a string. "" is 0.
func number(name string, text rest.Text) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0, fault.Newf(fault.InvalidParameters, "%s: want a whole number", name)
	}
	return n, nil
}

func (m *Management) install(ctx context.Context, r struct {
	Body struct {
		Certificate       rest.Text
		ForceConfirmation rest.Text `api:"boolean"`
	}
}) (certificate, error) {
	a, err := act(ctx, r.Body.ForceConfirmation)
	if err != nil {
		return certificate{}, err
	}
	if r.Body.Certificate == "" {
		return certificate{}, fault.New(fault.CertificateFormat, "certificate is missing: send the certificate as DER in Base64, or PEM")
	}
	return described(m.Keys.Install(ctx, a, []byte(r.Body.Certificate)))
}

// described is describe for a result that may be an error.
func described(c *keys.Certificate, err error) (certificate, error) {
	if err != nil {
		return certificate{}, err
	}
	return describe(c), nil
}

// onCertificate is a request that names a certificate and nothing else.
type onCertificate struct {
	ID   string `path:"id"`
	Body struct {
		ForceConfirmation rest.Text `api:"boolean"`
	}
}

func (m *Management) deleteCertificate(ctx context.Context, r onCertificate) (certificate, error) {
	rest.Concerning(ctx, certificateObject(r.ID))
	a, err := act(ctx, r.Body.ForceConfirmation)
	if err != nil {
		return certificate{}, err
	}
	return described(m.Keys.Delete(ctx, a, r.ID))
}

func (m *Management) setDefault(ctx context.Context, r struct {
	ID   string `path:"id"`
	Body struct {
		Default, ForceConfirmation rest.Text `api:"boolean"`
	}
}) (certificate, error) {
	rest.Concerning(ctx, certificateObject(r.ID))
	a, err := act(ctx, r.Body.ForceConfirmation)
	if err != nil {
		return certificate{}, err
	}
	wanted, err := truth("Default", r.Body.Default, true)
	if err != nil {
		return certificate{}, err
	}
	if !wanted {
		return certificate{}, fault.New(fault.InvalidParameters, "Default: want true; make another certificate the default one instead")
	}
	return described(m.Keys.MakeDefault(ctx, a, r.ID))
}

func (m *Management) changePIN(ctx context.Context, r struct {
	ID   string `path:"id"`
	Body struct {
		OldPin, NewPin    rest.Text
		ForceConfirmation rest.Text `api:"boolean"`
	}
}) (certificate, error) {
	rest.Concerning(ctx, certificateObject(r.ID))
	a, err := act(ctx, r.Body.ForceConfirmation)
	if err != nil {
		return certificate{}, err
	}
	if err := m.Keys.ChangePIN(ctx, a, r.ID, string(r.Body.OldPin), string(r.Body.NewPin)); err != nil {
		return certificate{}, err
	}
	return described(m.Keys.Find(ctx, a.Who.UserID, r.ID))
}

// pinCheck is the answer of a check of a PIN.
type pinCheck struct {
	IsValid          bool
	ErrorDescription *string
}

func (m *Management) checkPIN(ctx context.Context, r struct {
	ID   string `path:"id"`
	Body struct {
		Pin           rest.Text
		CheckAttempts rest.Text `api:"boolean"`
	}
}) (pinCheck, error) {
	rest.Concerning(ctx, certificateObject(r.ID))
	attempts, err := truth("CheckAttempts", r.Body.CheckAttempts, false)
	if err != nil {
		return pinCheck{}, err
	}
	valid, reason, err := m.Keys.CheckPIN(ctx, rest.Caller(ctx), r.ID, string(r.Body.Pin), attempts)
	return pinCheck{valid, rest.OrNull(reason)}, err
}

// The forms of the description of a certificate.
const (
	formatRaw       = 1
	formatXML       = 2
	formatFormatted = 4
)

func (m *Management) content(ctx context.Context, r struct {
	ID     string `path:"id"`
	Format string `query:"format"`
}) (string, error) {
	rest.Concerning(ctx, certificateObject(r.ID))
	c, err := m.Keys.Find(ctx, rest.Caller(ctx).UserID, r.ID)
	if err != nil {
		return "", err
	}
	switch strings.ToUpper(r.Format) {
	case "", "1", "RAW":
		return base64.StdEncoding.EncodeToString(c.X509.Raw), nil
	case "2", "XML":
		return c.XML()
	case "4", "FORMATTED":
		return c.Formatted(), nil
	}
	return "", fault.Newf(fault.InvalidParameters, "format: want %d (RAW), %d (XML) or %d (FORMATTED)", formatRaw, formatXML, formatFormatted)
}

// statusNames are the certificate statuses that a client may ask for, by name and by
// number.
var statusNames = map[string]keys.Status{
	"REVOKED": keys.Revoked, "2": keys.Revoked, "HOLD": keys.Hold, "3": keys.Hold, "ACTIVE": keys.Active, "1": keys.Active,
}

// statusOrder is a certificate status in a request, in the fields of DSSCertificateStatus.
type statusOrder struct {
	Status, Value  rest.Text // one or the other
	RevocationInfo struct {
		RevocationReason   rest.Text
		RevocationComments rest.Text
	}
	PinCode           rest.Text
	ForceConfirmation rest.Text `api:"boolean"`
}

func (m *Management) setStatus(ctx context.Context, r struct {
	ID   string `path:"id"`
	Body statusOrder
}) (certificate, error) {
	rest.Concerning(ctx, certificateObject(r.ID))
	a, err := act(ctx, r.Body.ForceConfirmation)
	if err != nil {
		return certificate{}, err
	}
	text := r.Body.Status
	if text == "" {
		text = r.Body.Value
	}
	status, ok := statusNames[strings.ToUpper(strings.TrimSpace(string(text)))]
	if !ok {
		return certificate{}, fault.New(fault.InvalidParameters, "Status: want REVOKED, HOLD or ACTIVE")
	}
	reason, err := reasonOf(r.Body.RevocationInfo.RevocationReason)
	if err != nil {
		return certificate{}, err
	}
	if status == keys.Revoked && reason == holdReason {
		status, reason = keys.Hold, 0
	}
	return described(m.Keys.SetStatus(ctx, a, r.ID, keys.StatusOrder{
		Status: status, Reason: reason, Comment: string(r.Body.RevocationInfo.RevocationComments), PIN: string(r.Body.PinCode),
	}))
}

const holdReason = 6 // CRL_REASON_CERTIFICATE_HOLD

// reasonOf reads a CRLReason: a number, or its name with or without CRL_REASON_.
func reasonOf(text rest.Text) (int, error) {
	name := strings.TrimPrefix(strings.ToUpper(strings.TrimSpace(string(text))), "CRL_REASON_")
	if name == "" {
		return 0, nil
	}
	for number, known := range reasons {
		if known == name || strconv.Itoa(number) == name {
			return number, nil
		}
	}
	return 0, fault.New(fault.InvalidParameters, "RevocationReason: want a name such as CRL_REASON_KEY_COMPROMISE, or its number")
}

func (m *Management) setFriendlyName(ctx context.Context, r struct {
	ID   string `path:"id"`
	Body struct {
		FriendlyName      rest.Text
		ForceConfirmation rest.Text `api:"boolean"`
	}
}) (certificate, error) {
	rest.Concerning(ctx, certificateObject(r.ID))
	a, err := act(ctx, r.Body.ForceConfirmation)
	if err != nil {
		return certificate{}, err
	}
	return described(m.Keys.SetFriendlyName(ctx, a, r.ID, string(r.Body.FriendlyName)))
}
