// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"context"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/policy"
	"tamga/internal/web/rest"
)

// Management has the services with which users manage their keys and certificates.
type Management struct {
	Keys       *keys.Service
	Parameters keys.Parameters
	Policy     *policy.Service
	// Templates are the processing templates of the installation.
	Templates []Template
	Now       func() time.Time
	// Life is the lifetime of operations. Answers of v2 state it even for finished
	// operations.
	Life time.Duration
	// Language is the language of the installation, as in rest.Languages.
	Language string
}

func (a *API) managementRoutes() []rest.Route {
	m := a.deps.Management
	routes := []rest.Route{
		rest.Handle("GET /v2/certificates", "GetCertificatesV2", rest.SignedIn, a.list),
		rest.Handle("GET /v2/certificates/{id}", "GetCertificateV2", rest.SignedIn, a.one),
		rest.Handle("GET /policy", "GetSigningPolicy", rest.SignedIn, m.policy),
		rest.Handle("GET /v2/policy", "GetSigningPolicyV2", rest.SignedIn, m.policy),
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
	routes = append(routes, a.actRoutes()...)
	routes = append(routes, uncovered(a, "POST /certificates/{id}/default", "SetDefaultCertificate", m.setDefault)...)
	return append(routes, uncovered(a, "POST /certificates/{id}/friendlyname", "SetFriendlyName", m.setFriendlyName)...)
}

// uncovered returns the two routes of a change that no action of policies covers, so that it is always done
// at once.
func uncovered[Req any](a *API, pattern, name string, do func(context.Context, Req) (*keys.Certificate, error)) []rest.Route {
	w := &row{pattern: pattern, name: name, show: showCertificate, v1: rest.None{}, v2: answerOf[certificate]{}}
	return w.versions(func(pattern, name string, f operation.Form) rest.Route {
		return rest.Handle(pattern, name, rest.SignedIn, func(ctx context.Context, r Req) (any, error) {
			c, err := do(ctx, r)
			if err != nil {
				return nil, err
			}
			return a.done(ctx, w, f, c), nil
		})
	})
}

// actUncovered returns the caller of a change that no action of policies covers.
func actUncovered(ctx context.Context, force rest.Text) (keys.Act, error) {
	forced, err := truth("ForceConfirmation", force, false)
	if err == nil && forced {
		err = fault.New(fault.InvalidParameters, "ForceConfirmation: this change has no confirmation, leave it out")
	}
	return keys.Act{Who: rest.Caller(ctx)}, err
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

// installing is a request to install a certificate.
type installing struct {
	Body struct {
		Certificate       rest.Text
		ForceConfirmation rest.Text `api:"boolean"`
	}
}

func (r installing) plan(*Management) (*keys.Plan, rest.Text, error) {
	if r.Body.Certificate == "" {
		return nil, "", fault.New(fault.CertificateFormat, "certificate is missing: send the certificate as DER in Base64, or PEM")
	}
	return &keys.Plan{Kind: keys.ToInstall, Data: []byte(r.Body.Certificate)}, r.Body.ForceConfirmation, nil
}

func (r installing) confirmed() claim { return claimed("", &r.Body, nil) }

// deleting is a request to delete a certificate.
type deleting struct {
	ID         string `path:"id"`
	DestroyKey string `query:"destroyKey"`
	Body       struct {
		ForceConfirmation rest.Text `api:"boolean"`
	}
}

func (r deleting) plan(*Management) (*keys.Plan, rest.Text, error) {
	destroys, err := truth("destroyKey", rest.Text(r.DestroyKey), false)
	return &keys.Plan{Kind: keys.ToDelete, Certificate: r.ID, DestroyKey: destroys}, r.Body.ForceConfirmation, err
}

func (r deleting) confirmed() claim { return claimed(r.ID, &r.Body, nil) }

func (m *Management) setDefault(ctx context.Context, r struct {
	ID   string `path:"id"`
	Body struct {
		Default, ForceConfirmation rest.Text `api:"boolean"`
	}
}) (*keys.Certificate, error) {
	rest.Concerning(ctx, certificateObject(r.ID))
	a, err := actUncovered(ctx, r.Body.ForceConfirmation)
	if err != nil {
		return nil, err
	}
	wanted, err := truth("Default", r.Body.Default, true)
	if err != nil {
		return nil, err
	}
	if !wanted {
		return nil, fault.New(fault.InvalidParameters, "Default: want true; make another certificate the default one instead")
	}
	return m.Keys.MakeDefault(ctx, a, r.ID)
}

// changingPIN is a request to change a PIN.
type changingPIN struct {
	ID   string `path:"id"`
	Body struct {
		OldPin, NewPin    rest.Text
		ForceConfirmation rest.Text `api:"boolean"`
	}
}

func (r changingPIN) plan(*Management) (*keys.Plan, rest.Text, error) {
	return &keys.Plan{
		Kind: keys.ToChangePIN, Certificate: r.ID, Secrets: keys.Secrets{PIN: string(r.Body.OldPin), New: string(r.Body.NewPin)},
	}, r.Body.ForceConfirmation, nil
}

func (r changingPIN) confirmed() claim { return claimed(r.ID, &r.Body, &r.Body.OldPin) }

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

// settingStatus is a request to change the status of a certificate.
type settingStatus struct {
	ID   string `path:"id"`
	Body statusOrder
}

func (r settingStatus) plan(*Management) (*keys.Plan, rest.Text, error) {
	text := r.Body.Status
	if text == "" {
		text = r.Body.Value
	}
	status, ok := statusNames[strings.ToUpper(strings.TrimSpace(string(text)))]
	if !ok {
		return nil, "", fault.New(fault.InvalidParameters, "Status: want REVOKED, HOLD or ACTIVE")
	}
	reason, err := reasonOf(r.Body.RevocationInfo.RevocationReason)
	if err != nil {
		return nil, "", err
	}
	if status == keys.Revoked && reason == holdReason {
		status, reason = keys.Hold, 0
	}
	return &keys.Plan{
		Kind: keys.ToSetStatus, Certificate: r.ID, Secrets: keys.Secrets{PIN: string(r.Body.PinCode)},
		Status: keys.StatusOrder{Status: status, Reason: reason, Comment: string(r.Body.RevocationInfo.RevocationComments)},
	}, r.Body.ForceConfirmation, nil
}

func (r settingStatus) confirmed() claim { return claimed(r.ID, &r.Body, &r.Body.PinCode) }

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
}) (*keys.Certificate, error) {
	rest.Concerning(ctx, certificateObject(r.ID))
	a, err := actUncovered(ctx, r.Body.ForceConfirmation)
	if err != nil {
		return nil, err
	}
	return m.Keys.SetFriendlyName(ctx, a, r.ID, string(r.Body.FriendlyName))
}
