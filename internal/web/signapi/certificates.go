package signapi

import (
	"context"
	"strconv"
	"time"

	"tamga/internal/domain/keys"
	"tamga/internal/web/rest"
)

// certificate is the certificate object of the interface family.
type certificate struct {
	ID                     int64
	DName                  string
	CertificateBase64      []byte // in JSON: Base64 on one line
	Status                 status
	IsDefault              bool
	HasPin                 bool
	CertificateAuthorityID int
	CspID                  string
	HashAlgorithms         []string
	ProviderName           *string
	ProviderType           int
	PrivateKeyNotBefore    *string
	PrivateKeyNotAfter     *string
	FriendlyName           string
	CertificateType        string
}

type status struct {
	Value          string
	RevocationInfo *revocationInfo
	PinCode        *string // only ever null in an answer
	ActiveCertID   int64   `json:"ActiveCertId"`
}

// revocationInfo has every name the interface knows; what we do not record is null.
type revocationInfo struct {
	ApproveDate        *string
	DistName           *string
	RequestDate        *string
	RevocationComments *string
	RevocationDate     *string
	RevocationReason   string
	SignedRequest      *string
	UnholdAction       *string
	UnholdDate         *string
}

const (
	// builtInAuthority is the number of the one authority there is.
	builtInAuthority = 1
	// softwareProvider names the group of keys that this program holds itself.
	softwareProvider = "6f0e0f0c-7d0b-4a8e-9a53-5c9f2b0f7a11"
)

// providerTypes are the numbers by which clients tell kinds of keys.
var providerTypes = map[string]int{
	"gost2001":     75,
	"gost2012-256": 80,
	"gost2012-512": 81,
	"rsa-2048":     24,
	"ecdsa-p256":   16,
}

// reasons are the names of CRLReason (RFC 5280, 5.3.1).
var reasons = map[int]string{
	0: "UNSPECIFIED",
	1: "KEY_COMPROMISE",
	2: "CA_COMPROMISE",
	3: "AFFILIATION_CHANGED",
	4: "SUPERSEDED",
	5: "CESSATION_OF_OPERATION",
	6: "CERTIFICATE_HOLD",
	8: "REMOVE_FROM_CRL",
}

func (a *API) list(ctx context.Context, _ struct{}) ([]certificate, error) {
	found, err := a.certificates.List(ctx, rest.Caller(ctx).UserID)
	if err != nil {
		return nil, err
	}
	list := make([]certificate, len(found))
	for i, c := range found {
		list[i] = describe(c)
	}
	return list, nil
}

func (a *API) one(ctx context.Context, r struct {
	ID string `path:"id"`
}) (certificate, error) {
	rest.Concerning(ctx, certificateObject(r.ID))
	c, err := a.certificates.Resolve(ctx, rest.Caller(ctx).UserID, r.ID)
	if err != nil {
		return certificate{}, err
	}
	return describe(c), nil
}

func describe(c *keys.Certificate) certificate {
	d := certificate{
		ID:                     c.ID,
		DName:                  c.X509.Subject.String(),
		CertificateBase64:      c.X509.Raw,
		Status:                 status{Value: c.Status.String()},
		IsDefault:              c.Default,
		HasPin:                 c.HasPIN,
		CertificateAuthorityID: builtInAuthority,
		CspID:                  softwareProvider,
		HashAlgorithms:         []string{},
		PrivateKeyNotBefore:    date(c.X509.PrivateKeyNotBefore),
		PrivateKeyNotAfter:     date(c.X509.PrivateKeyNotAfter),
		FriendlyName:           c.FriendlyName,
		CertificateType:        "ServerSide",
	}
	if s := c.X509.Suite; s != nil { // nil: a key of a kind we cannot sign with
		d.HashAlgorithms = append(d.HashAlgorithms, s.Hash.Name)
		d.ProviderType = providerTypes[s.Name]
	}
	if !c.RevokedAt.IsZero() {
		reason, ok := reasons[c.Reason]
		if !ok {
			reason = strconv.Itoa(c.Reason)
		}
		d.Status.RevocationInfo = &revocationInfo{
			RevocationDate:   date(c.RevokedAt),
			RevocationReason: "CRL_REASON_" + reason,
		}
	}
	return d
}

// date is a time as ISO text; the zero time is null.
func date(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := t.UTC().Format(time.RFC3339)
	return &s
}
