// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"context"
	"strconv"

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
	PinCode        *string // always null in answers
	ActiveCertID   int64   `json:"ActiveCertId"`
}

// revocationInfo has every name of the interface. Values that we do not record are null.
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

// builtInAuthority and outsideAuthority are the authorities that certificates name. The
// request for a certificate names the outside authority exactly.
const (
	builtInAuthority = keys.BuiltIn
	outsideAuthority = 0
)

// provider is a kind of keys in this program, as the interface describes it. The groups are
// our own GUIDs, the same in every installation.
type provider struct {
	suite       string // name of the suite
	group       string // CspID and GroupID
	kind        int    // ProviderType
	keyLength   int    // bits
	hash        string // of the digests it signs
	name        string
	description string // clients look for "10-2012" in it
}

// providers are all kinds, the usual one first.
var providers = []provider{
	{"gost2012-256", "6f0e0f0c-7d0b-4a8e-9a53-5c9f2b0f7a11", 80, 256, "GR 34.11-2012 256", "Tamga GOST R 34.10-2012", "ГОСТ Р 34.10-2012, 256 бит (GOST R 34.10-2012)"},
	{"gost2012-512", "6f0e0f0c-7d0b-4a8e-9a53-5c9f2b0f7a12", 81, 512, "GR 34.11-2012 512", "Tamga GOST R 34.10-2012 Strong", "ГОСТ Р 34.10-2012, 512 бит (GOST R 34.10-2012)"},
	{"gost2001", "6f0e0f0c-7d0b-4a8e-9a53-5c9f2b0f7a13", 75, 256, "GOST R 34.11-94", "Tamga GOST R 34.10-2001", "ГОСТ Р 34.10-2001"},
	{"rsa-2048", "6f0e0f0c-7d0b-4a8e-9a53-5c9f2b0f7a14", 24, 2048, "SHA-256", "Tamga RSA", "RSA, 2048 бит"},
	{"ecdsa-p256", "6f0e0f0c-7d0b-4a8e-9a53-5c9f2b0f7a15", 16, 256, "SHA-256", "Tamga ECDSA", "ECDSA, P-256"},
}

// CryptoProvider is a kind of keys for the answers of user management.
type CryptoProvider struct {
	ID, Name, Description string // ID is the CspID of certificates
	Type                  string // GOST or RSA_AES
}

// CryptoProviders returns the kinds of keys of type GOST or RSA_AES.
func CryptoProviders() []CryptoProvider {
	types := map[int]string{75: "GOST", 80: "GOST", 81: "GOST", 24: "RSA_AES"}
	var list []CryptoProvider
	for _, p := range providers {
		if t := types[p.kind]; t != "" {
			list = append(list, CryptoProvider{p.group, p.name, p.description, t})
		}
	}
	return list
}

// providerOf returns the provider of a suite, the zero value if there is none.
func providerOf(suite string) provider {
	for _, p := range providers {
		if p.suite == suite {
			return p
		}
	}
	return provider{}
}

// reasons are the names of CRLReason (RFC 5280, section 5.3.1).
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
	found, err := a.deps.Certificates.List(ctx, rest.Caller(ctx).UserID)
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
	find := a.deps.Certificates.Resolve
	if a.deps.Management != nil {
		find = a.deps.Management.Keys.Find
	}
	c, err := find(ctx, rest.Caller(ctx).UserID, r.ID)
	if err != nil {
		return certificate{}, err
	}
	return describe(c), nil
}

func showCertificate(c *keys.Certificate) any { return describe(c) }

func describe(c *keys.Certificate) certificate {
	d := certificate{
		ID:                     c.ID,
		DName:                  c.X509.Subject.String(),
		CertificateBase64:      c.X509.Raw,
		Status:                 status{Value: c.Status.String()},
		IsDefault:              c.Default,
		HasPin:                 c.HasPIN,
		CertificateAuthorityID: builtInAuthority,
		CspID:                  providers[0].group,
		HashAlgorithms:         []string{},
		PrivateKeyNotBefore:    rest.TimeOrNull(c.X509.PrivateKeyNotBefore),
		PrivateKeyNotAfter:     rest.TimeOrNull(c.X509.PrivateKeyNotAfter),
		FriendlyName:           c.FriendlyName,
		CertificateType:        "ServerSide",
	}
	if s := c.X509.Suite; s != nil { // nil: a kind of key that cannot sign here
		p := providerOf(s.Name)
		d.HashAlgorithms = append(d.HashAlgorithms, s.Hash.Name)
		d.CspID, d.ProviderType, d.ProviderName = p.group, p.kind, rest.OrNull(p.name)
	}
	if c.Outside {
		d.CertificateAuthorityID = outsideAuthority
	}
	if !c.RevokedAt.IsZero() {
		reason, ok := reasons[c.Reason]
		if !ok {
			reason = strconv.Itoa(c.Reason)
		}
		d.Status.RevocationInfo = &revocationInfo{
			RevocationComments: rest.OrNull(c.Comment),
			RevocationDate:     rest.TimeOrNull(c.RevokedAt),
			RevocationReason:   "CRL_REASON_" + reason,
		}
	}
	return d
}
