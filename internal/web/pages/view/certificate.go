// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"context"
	"slices"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/signing"
	"tamga/internal/web/rest"
)

// Certificates lists the certificates of a user; see [keys.Service].
type Certificates interface {
	List(ctx context.Context, userID string) ([]*keys.Certificate, error)
}

// PINs counts attempts at the PINs of keys; see [keys.Service].
type PINs interface {
	// AttemptsLeft returns how many wrong PINs in a row the key of a certificate of a user still takes. "" is the default
	// certificate.
	AttemptsLeft(ctx context.Context, userID, certificate string) (int, error)
}

// Certificate is a certificate of the person.
type Certificate struct {
	ID       int64
	Name     string // given by the person, otherwise from the subject
	Subject  string
	Serial   string // its end
	Suite    string // name; see [Words.Suite]
	Default  bool
	PIN      bool
	Usable   bool
	Status   string // key of the word
	NotAfter time.Time
	Soon     bool // ends soon

	Owner     string // name of the person
	Of        string // organisation and position; "" for none
	Authority string // name of the issuer
	NotBefore time.Time
	Left      int // of its term, in percent
	Days      int // that are left, whole ones
	Held      bool
	Encrypts  bool // it is for encryption, too
}

// Past reports whether the certificate will not sign any more.
func (c *Certificate) Past() bool { return !c.Usable && !c.Held }

// Kind is the kind of the tag of the status.
func (c *Certificate) Kind() string {
	switch {
	case c.Soon:
		return "warn"
	case c.Usable:
		return "good"
	}
	return "bad"
}

// soon is how long before its end a certificate is shown as ending.
const soon = 30 * 24 * time.Hour

// CertificatesOf lists what the caller has, the default first.
func CertificatesOf(ctx context.Context, from Certificates, now time.Time) ([]Certificate, error) {
	list, err := from.List(ctx, rest.Caller(ctx).UserID)
	if err != nil {
		return nil, err
	}
	var shown []Certificate
	for _, c := range list {
		shown = append(shown, DescribeCertificate(c, now))
	}
	slices.SortStableFunc(shown, func(x, y Certificate) int { return cmp.Compare(x.rank(), y.rank()) })
	return shown, nil
}

// DescribeCertificate returns a certificate as pages show it.
func DescribeCertificate(c *keys.Certificate, now time.Time) Certificate {
	info := signing.DescribeCertificate(c.X509)
	s := DescribeCertificateInfo(info)
	s.ID, s.Suite, s.Default, s.PIN, s.Encrypts = c.ID, suiteOf(c), c.Default, c.HasPIN, c.ForEncryption()
	s.Name, s.Status = cmp.Or(c.FriendlyName, s.Name), "certificate.status."+c.Status.String()
	s.Usable, s.Held = c.Status == keys.Active, c.Status == keys.Hold
	s.Soon = s.Usable && info.NotAfter.Sub(now) < soon
	if left := info.NotAfter.Sub(now); left > 0 {
		s.Days = int(left / (24 * time.Hour))
		if term := info.NotAfter.Sub(info.NotBefore); term > 0 {
			s.Left = min(100, int(left/(term/100+1)))
		}
	}
	return s
}

// DescribeCertificateInfo returns a certificate of anyone, with what is in the certificate itself.
func DescribeCertificateInfo(info *signing.CertificateInfo) Certificate {
	return Certificate{
		Name: PersonIn(info.Subject), Subject: info.Subject, Serial: shortSerial(info.Serial), NotAfter: info.NotAfter,
		Owner: NameIn(info.Subject), Of: RolesIn(info.Subject), Authority: NameIn(info.Issuer), NotBefore: info.NotBefore,
	}
}

// suiteOf returns the name of the suite of a certificate, "" for a key that cannot sign here.
func suiteOf(c *keys.Certificate) string {
	if c.X509.Suite == nil {
		return ""
	}
	return c.X509.Suite.Name
}

// rank orders certificates: the default one, those that can sign, the others.
func (c *Certificate) rank() int {
	switch {
	case c.Default:
		return 0
	case c.Usable:
		return 1
	}
	return 2
}

// Lack says what a person can do who has no certificate to sign with.
type Lack struct {
	Waits bool // for an answer to a request
	May   bool // request a certificate
}

// Requests knows the requests of a user for certificates; see [keys.Service].
type Requests interface {
	Requests(ctx context.Context, who audit.Principal) ([]*keys.Request, error)
	// MayRequest reports whether the user may request certificates.
	MayRequest(ctx context.Context, userID string) (bool, error)
}

// LackOf returns nil if the caller can sign with one of the certificates.
func LackOf(ctx context.Context, from Requests, list []Certificate) (*Lack, error) {
	if slices.ContainsFunc(list, func(c Certificate) bool { return c.Usable }) {
		return nil, nil
	}
	requests, err := from.Requests(ctx, rest.Caller(ctx))
	if err != nil {
		return nil, err
	}
	l := &Lack{Waits: slices.ContainsFunc(requests, func(q *keys.Request) bool { return q.Status == keys.Pending && q.Type == keys.ForCertificate })}
	l.May, err = from.MayRequest(ctx, rest.Caller(ctx).UserID)
	return l, err
}
