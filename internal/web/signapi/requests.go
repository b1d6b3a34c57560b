// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"context"
	"encoding/base64"
	"math"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/web/rest"
)

// requestAnswer is a request in the form of the interface family.
type requestAnswer struct {
	ID                     int64
	Base64Request          []byte
	CertificateAuthorityID int64
	CARequestID            string
	CADisplayName          string
	DistName               string
	Subject                string
	Status                 string
	CertificateID          int64
	CspID                  *string // identifier in a request for a key, so null instead of ""
	RequestType            string
	CertificateType        string
}

func describeRequest(q *keys.Request) requestAnswer {
	d := requestAnswer{
		ID: q.ID, Base64Request: q.DER, CertificateAuthorityID: q.Authority,
		CARequestID: strconv.FormatInt(q.ID, 10), CADisplayName: q.AuthorityName,
		DistName: q.Subject, Subject: q.Subject, Status: q.Status.String(), CertificateID: q.CertificateID,
		RequestType: q.Type.String(), CertificateType: "ServerSide",
	}
	if q.Parsed != nil && q.Parsed.Suite != nil {
		d.CspID = rest.OrNull(providerOf(q.Parsed.Suite.Name).group)
	}
	return d
}

func (m *Management) requests(ctx context.Context, _ struct{}) ([]requestAnswer, error) {
	found, err := m.Keys.Requests(ctx, rest.Caller(ctx))
	if err != nil {
		return nil, err
	}
	list := make([]requestAnswer, len(found))
	for i, q := range found {
		list[i] = describeRequest(q)
	}
	return list, nil
}

func (m *Management) find(ctx context.Context, id string) (*keys.Request, error) {
	rest.Concerning(ctx, requestObject(id))
	return m.Keys.Request(ctx, rest.Caller(ctx), id)
}

// requestObject returns the request for an audit entry. Only a text that can be a number is
// written.
func requestObject(id string) string {
	if len(id) > 19 || id == "" || strings.Trim(id, "0123456789") != "" {
		return ""
	}
	return "request " + id
}

// onRequest is a request that names a certificate request and nothing else.
type onRequest struct {
	ID string `path:"id"`
}

func (m *Management) request(ctx context.Context, r onRequest) (requestAnswer, error) {
	q, err := m.find(ctx, r.ID)
	if err != nil {
		return requestAnswer{}, err
	}
	return describeRequest(q), nil
}

func (m *Management) requestContent(ctx context.Context, r onRequest) (string, error) {
	q, err := m.find(ctx, r.ID)
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(q.DER), nil
}

// deletingRequest is a request to delete a certificate request.
type deletingRequest struct {
	ID   string `path:"id"`
	Body struct {
		ForceConfirmation rest.Text `api:"boolean"`
	}
}

func (r deletingRequest) plan(*Management) (*keys.Plan, rest.Text, error) {
	return &keys.Plan{Kind: keys.ToDeleteRequest, Request: r.ID}, r.Body.ForceConfirmation, nil
}

func (r deletingRequest) confirmed() claim { return claimed(r.ID, &r.Body, nil) }

// requestOrder is the body of a request for a certificate, or for its revocation.
type requestOrder struct {
	AuthorityID       rest.Text `json:"AuthorityId" api:"integer"`
	Template          rest.Text
	PinCode           rest.Text
	DistinguishedName map[string]rest.Text
	Parameters        map[string]rest.Text
	RequestType       rest.Text
	ForceConfirmation rest.Text `api:"boolean"`
}

// requesting is a request for a certificate, or for its revocation.
type requesting struct{ Body requestOrder }

func (r requesting) plan(m *Management) (*keys.Plan, rest.Text, error) {
	b := &r.Body
	if b.AuthorityID == "" && b.Template == "" && len(b.DistinguishedName) == 0 && len(b.Parameters) == 0 {
		return nil, "", fault.New(fault.InvalidParameters, "the request says nothing: name an AuthorityId, a DistinguishedName or Parameters")
	}
	p, err := readRequestParameters(b, m.Now())
	if err != nil {
		return nil, "", err
	}
	d := &keys.Plan{Kind: keys.ToRequest, Order: p.order, Secrets: keys.Secrets{PIN: p.order.RenewPIN, New: p.order.PIN}}
	d.Order.PIN, d.Order.RenewPIN = "", ""
	if p.revoke {
		d = &keys.Plan{
			Kind: keys.ToRequestRevocation, Certificate: p.order.Renew, Secrets: keys.Secrets{PIN: p.order.RenewPIN},
			Status: keys.StatusOrder{Reason: p.reason, Comment: p.comment},
		}
	}
	return d, b.ForceConfirmation, nil
}

func (r requesting) confirmed() claim { return claimed("", &r.Body, &r.Body.PinCode) }

// requestParameters are the Parameters of a request after they were read.
type requestParameters struct {
	order   keys.CertificateOrder
	revoke  bool
	reason  int
	comment string

	renew       bool
	count, unit string
	until       time.Time
	from        time.Time
}

func readRequestParameters(b *requestOrder, now time.Time) (*requestParameters, error) {
	p := &requestParameters{order: keys.CertificateOrder{PIN: string(b.PinCode), Name: map[string]string{}}}
	var err error
	if p.order.Authority, err = number("AuthorityId", b.AuthorityID); err != nil {
		return nil, err
	}
	for key, value := range b.DistinguishedName {
		p.order.Name[key] = string(value)
	}
	for name, value := range map[string]rest.Text{"TemplateOid": b.Template, "RequestType": b.RequestType} {
		if value != "" {
			if err := p.take(name, string(value)); err != nil {
				return nil, err
			}
		}
	}
	seen := map[string]bool{}
	for key, value := range b.Parameters {
		name := strings.ToLower(strings.TrimSpace(key))
		if seen[name] {
			return nil, fault.Newf(fault.InvalidParameters, "Parameters: %.64q is given twice, in different spellings", key)
		}
		seen[name] = true
		if text := strings.TrimSpace(string(value)); text != "" {
			if err := p.take(key, text); err != nil {
				return nil, err
			}
		}
	}
	switch {
	case p.renew && p.order.Renew == "":
		return nil, fault.New(fault.InvalidParameters, "Parameters: RequestType Renew wants ActiveCertId, the certificate to renew")
	case p.revoke && p.order.Renew == "":
		return nil, fault.New(fault.InvalidParameters, "Parameters: RequestType RevokeRequest wants ActiveCertId, the certificate to revoke")
	case !p.renew && !p.revoke && p.order.Renew != "":
		return nil, fault.New(fault.InvalidParameters, "Parameters: ActiveCertId goes with RequestType Renew or RevokeRequest")
	}
	return p, p.life(now)
}

// parameters are the known names, in lower case, with what they do.
var parameters = map[string]func(p *requestParameters, text string) error{
	"requesttype": func(p *requestParameters, text string) error {
		switch strings.ToLower(text) {
		case "first", "certificate", "0":
		case "renew":
			p.renew = true
		case "revokerequest", "revoke", "1":
			p.revoke = true
		default:
			return fault.New(fault.InvalidParameters, "RequestType: want First, Renew or RevokeRequest")
		}
		return nil
	},
	"activecertid":  func(p *requestParameters, text string) error { p.order.Renew = text; return nil },
	"activecertpin": func(p *requestParameters, text string) error { p.order.RenewPIN = text; return nil },
	"revocationreason": func(p *requestParameters, text string) (err error) {
		p.reason, err = reasonOf(rest.Text(text))
		return err
	},
	"revocationcomments": func(p *requestParameters, text string) error { p.comment = text; return nil },
	"ekustring": func(p *requestParameters, text string) error {
		p.order.Usages = strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(",; \t\r\n|", r) })
		return nil
	},
	"forencryption": func(p *requestParameters, text string) error {
		set, err := truth("ForEncryption", rest.Text(text), false)
		p.order.Encryption = &set
		return err
	},
	"templateoid": func(p *requestParameters, text string) error {
		if p.order.Template != "" && p.order.Template != text {
			return fault.New(fault.InvalidParameters, "TemplateOid and Template: want one of them")
		}
		p.order.Template = text
		return nil
	},
	"groupid": func(p *requestParameters, text string) error {
		for _, known := range providers {
			if strings.EqualFold(strings.Trim(text, "{}"), known.group) {
				p.order.Suite = known.suite
				return nil
			}
		}
		return fault.New(fault.ProviderNotFound, "GroupId: there is no such provider of keys: CSPsPolicy of the policy lists them")
	},
	"certperiod":      func(p *requestParameters, text string) error { p.count = text; return nil },
	"certperiodunits": func(p *requestParameters, text string) error { p.unit = text; return nil },
	"startdate": func(p *requestParameters, text string) (err error) {
		p.from, err = dateOf("StartDate", text)
		return err
	},
	"expirationdate": func(p *requestParameters, text string) (err error) {
		p.until, err = dateOf("ExpirationDate", text)
		return err
	},
	"isclient":        onlyFalse("IsClient", "keys are made and kept by this service"),
	"selfsigned":      onlyFalse("SelfSigned", "certificates come from an authority"),
	"extensionsdata":  unavailable("ExtensionsData"),
	"namedvaluesdata": unavailable("NamedValuesData"),
}

func (p *requestParameters) take(name, text string) error {
	set, ok := parameters[strings.ToLower(strings.TrimSpace(name))]
	if !ok {
		return nil // clients send names of other releases; unknown names are ignored
	}
	return set(p, text)
}

func onlyFalse(name, why string) func(*requestParameters, string) error {
	return func(_ *requestParameters, text string) error {
		set, err := truth(name, rest.Text(text), false)
		if err == nil && set {
			err = fault.Newf(fault.InvalidParameters, "%s: not possible here, %s", name, why)
		}
		return err
	}
}

func unavailable(name string) func(*requestParameters, string) error {
	return func(*requestParameters, string) error {
		return fault.Newf(fault.InvalidParameters, "%s: not possible here, leave it out", name)
	}
}

// dateOf reads a date: Unix seconds, or ISO text with or without a time.
func dateOf(name, text string) (time.Time, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 && n < 1<<36 {
		return time.Unix(n, 0), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateTime, time.DateOnly, "02.01.2006 15:04:05", "02.01.2006"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fault.Newf(fault.InvalidParameters, "%s: want a date such as 2027-01-31T00:00:00Z", name)
}

// units are the lengths of CertPeriodUnits.
var units = map[string]time.Duration{
	"years": 365 * 24 * time.Hour, "months": 30 * 24 * time.Hour, "weeks": 7 * 24 * time.Hour,
	"days": 24 * time.Hour, "hours": time.Hour, "minutes": time.Minute,
}

// life reads the lifetime of the certificate. The order keeps 0 if the request sets none.
func (p *requestParameters) life(now time.Time) error {
	if p.count != "" || p.unit != "" {
		n, err := strconv.ParseInt(p.count, 10, 32)
		unit, ok := units[strings.ToLower(p.unit)]
		if err != nil || n <= 0 || !ok || n > math.MaxInt64/int64(unit) {
			return fault.New(fault.InvalidParameters, "CertPeriod and CertPeriodUnits: want a number and Years, Months, Weeks, Days, Hours or Minutes")
		}
		p.order.Life = time.Duration(n) * unit
	}
	if p.from.After(now.Add(24 * time.Hour)) {
		return fault.New(fault.InvalidParameters, "StartDate: certificates begin when they are issued, leave it out")
	}
	if p.until.IsZero() {
		return nil
	}
	if p.order.Life != 0 {
		return fault.New(fault.InvalidParameters, "ExpirationDate and CertPeriod: want one of them")
	}
	if p.order.Life = p.until.Sub(now); p.order.Life <= 0 {
		return fault.New(fault.InvalidParameters, "ExpirationDate: want a date to come")
	}
	return nil
}
