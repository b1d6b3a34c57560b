// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tamga/gost/streebog"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/policy"
	"tamga/pki/x509gost"
)

// Kind is a kind of Deed. Stored deeds have these names.
type Kind string

// The kinds.
const (
	ToRequest           Kind = "request"            // CreateRequest
	ToRequestRevocation Kind = "request revocation" // RequestRevocation
	ToDeleteRequest     Kind = "delete request"     // DeleteRequest
	ToInstall           Kind = "install"            // Install
	ToGenerate          Kind = "generate"           // Generate
	ToDelete            Kind = "delete"             // Delete
	ToChangePIN         Kind = "change PIN"         // ChangePIN
	ToSetStatus         Kind = "set status"         // SetStatus
	ToExport            Kind = "export"             // always after a confirmation
)

// Kinds returns all kinds, for a request that carries out whatever was confirmed.
func Kinds() []Kind { return slices.Collect(maps.Keys(kinds)) }

// Deed is an Act with its arguments, so that it can be stored until its user confirms it.
// Fields that the kind does not have are empty.
type Deed struct {
	Kind        Kind        `json:"kind"`
	Certificate string      `json:"certificate,omitempty"` // as the client sent it
	Request     string      `json:"request,omitempty"`     // as the client sent it
	Order       Order       `json:"order,omitzero"`        // of ToRequest
	Status      StatusOrder `json:"status,omitzero"`       // of ToSetStatus and ToRequestRevocation
	Data        []byte      `json:"data,omitempty"`        // of ToInstall
	Algorithm   int64       `json:"algorithm,omitempty"`   // of ToGenerate, like the next
	Set         string      `json:"set,omitempty"`
	// Shown are further arguments that the user sees. They have no effect.
	Shown map[string]string `json:"shown,omitempty"`

	Secrets DeedSecrets `json:"-"`
	// Protected reports whether Secrets.New is set. It is what the user confirms of it.
	Protected bool `json:"protected,omitempty"`
}

// DeedSecrets are the PINs and passwords of a deed. They are never among what the user confirms.
type DeedSecrets struct {
	PIN string `json:"pin,omitempty"` // of the key of the certificate
	New string `json:"new,omitempty"` // of the new key, or the new PIN
	// Password is that of the file of ToExport.
	Password string `json:"password,omitempty"`
}

// Format implements fmt.Formatter: every verb prints the same word.
func (DeedSecrets) Format(f fmt.State, _ rune) { f.Write([]byte("secret")) }

// kind says how deeds of a kind are described and done.
type kind struct {
	action policy.Action
	// sets means that Secrets.New is a new PIN. needs means that Secrets.PIN must open the
	// key of the certificate. Otherwise it is checked only if it is given.
	sets, needs bool
	// describe checks a deed without doing it.
	describe func(ctx context.Context, s *Service, who audit.Principal, d *Deed) (described, error)
	// do does a deed. What it returns is for a deed that needs no confirmation. Others give
	// their result to Service.change.
	do func(ctx context.Context, s *Service, a Act, d *Deed) (any, error)
}

// described is what a user confirms about a deed.
type described struct {
	certificate *Certificate          // whose key Secrets.PIN opens; nil: none
	about       *x509gost.Certificate // nil: that of certificate
	arguments   map[string]string
}

// kinds is the table of deeds. A new one is a row.
var kinds = map[Kind]kind{
	ToRequest: {action: policy.CreateRequest, sets: true, describe: describeOrder,
		do: func(ctx context.Context, s *Service, a Act, d *Deed) (any, error) {
			o := d.Order
			o.PIN, o.RenewPIN = d.Secrets.New, d.Secrets.PIN
			return result(s.CreateRequest(ctx, a, o))
		}},
	ToRequestRevocation: {action: policy.RevokeCertificate, describe: describeRevocation,
		do: func(ctx context.Context, s *Service, a Act, d *Deed) (any, error) {
			o := d.Status
			o.PIN = d.Secrets.PIN
			return result(s.RequestRevocation(ctx, a, d.Certificate, o))
		}},
	ToDeleteRequest: {action: policy.CreateRequest, describe: describeDeletedRequest,
		do: func(ctx context.Context, s *Service, a Act, d *Deed) (any, error) {
			return result(s.DeleteRequest(ctx, a, d.Request))
		}},
	ToInstall: {action: policy.CreateRequest, describe: describeInstalled,
		do: func(ctx context.Context, s *Service, a Act, d *Deed) (any, error) {
			return result(s.Install(ctx, a, d.Data))
		}},
	ToGenerate: {action: policy.CreateRequest, sets: true, describe: describeGenerated,
		do: func(ctx context.Context, s *Service, a Act, d *Deed) (any, error) {
			return result(s.Generate(ctx, a, d.Algorithm, d.Set, d.Secrets.New))
		}},
	ToDelete: {action: policy.DeleteCertificate, describe: describeCertificate,
		do: func(ctx context.Context, s *Service, a Act, d *Deed) (any, error) {
			return result(s.Delete(ctx, a, d.Certificate))
		}},
	ToChangePIN: {action: policy.ChangePin, sets: true, needs: true, describe: describeCertificate,
		do: func(ctx context.Context, s *Service, a Act, d *Deed) (any, error) {
			return result(s.changePIN(ctx, a, d.Certificate, d.Secrets.PIN, d.Secrets.New))
		}},
	ToSetStatus: {action: policy.RevokeCertificate, describe: describeStatus,
		do: func(ctx context.Context, s *Service, a Act, d *Deed) (any, error) {
			o := d.Status
			o.PIN = d.Secrets.PIN
			return result(s.SetStatus(ctx, a, d.Certificate, o))
		}},
	ToExport: {action: policy.PrivateKeyAccess, needs: true, describe: describeExported,
		do: func(ctx context.Context, s *Service, a Act, d *Deed) (any, error) {
			return result(s.exportOwn(ctx, a, d.Certificate, d.Secrets))
		}},
}

// result avoids a nil pointer in an interface that is not nil.
func result[T any](v *T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return v, nil
}

// row returns the row of a deed, with the action of this deed.
func (d *Deed) row() (kind, error) {
	k, known := kinds[d.Kind]
	switch {
	case !known:
		return k, fmt.Errorf("keys: deed of the kind %q, which this release does not know", d.Kind)
	case d.Kind == ToRequest && d.Order.Renew != "":
		k.action, k.needs = policy.RenewCertificate, true
	case d.Kind == ToSetStatus:
		act, ok := acts[d.Status.Status]
		if !ok {
			return k, unknownStatus()
		}
		k.action = act.action
	}
	return k, nil
}

// fields returns what the user confirms.
func (d *Deed) fields(ctx context.Context, s *Service, who audit.Principal) (what.Fields, *Certificate, error) {
	k, err := d.row()
	if err != nil {
		return what.Fields{}, nil, err
	}
	about, err := k.describe(ctx, s, who, d)
	if err != nil {
		return what.Fields{}, nil, err
	}
	arguments := map[string]string{}
	maps.Copy(arguments, d.Shown)
	maps.Copy(arguments, about.arguments)
	arguments["operation"] = string(d.Kind)
	f := what.Fields{Action: k.action.String()}
	cert := about.about
	if c := about.certificate; c != nil {
		arguments["certificate"] = strconv.FormatInt(c.ID, 10)
		if cert == nil {
			cert = c.X509
		}
	}
	if cert != nil {
		f.Certificate, f.PublicKey = digest(cert.Raw), digest(cert.RawSPKI)
		if arguments["subject"] == "" {
			arguments["subject"] = cert.Subject.String()
		}
	}
	if k.sets {
		arguments["protected"] = strconv.FormatBool(d.Protected)
	}
	for name, value := range arguments {
		if value == "" {
			delete(arguments, name)
		}
	}
	if f.Arguments, err = what.Arguments(arguments); err != nil {
		return what.Fields{}, nil, fault.New(fault.InvalidParameters, "the operation cannot be confirmed: a parameter is not text").With(err)
	}
	return f, about.certificate, nil
}

// Digest returns the digest of the certificate in what a user confirms.
func (c *Certificate) Digest() []byte { return digest(c.X509.Raw) }

func digest(b []byte) what.Hex {
	sum := streebog.Sum256(b)
	return sum[:]
}

func describeOrder(ctx context.Context, s *Service, who audit.Principal, d *Deed) (described, error) {
	o, err := s.checkOrder(d.Order)
	if err != nil {
		return described{}, err
	}
	target, err := s.Enrolment.authority(o.Authority)
	if err != nil {
		return described{}, err
	}
	if err := s.mayAsk(ctx, who.UserID); err != nil {
		return described{}, err
	}
	subject, old, err := s.subjectOf(ctx, who.UserID, o)
	if err != nil {
		return described{}, err
	}
	arguments := map[string]string{
		"authority": fmt.Sprintf("%d %s", target.ID, target.Name), "suite": o.newSuite().Name, "subject": subject.String(),
		"template": o.Template, "usages": strings.Join(o.Usages, ","),
	}
	if o.Life != 0 {
		arguments["life"] = o.Life.String()
	}
	return described{certificate: old, arguments: arguments}, nil
}

func describeRevocation(ctx context.Context, s *Service, who audit.Principal, d *Deed) (described, error) {
	c, _, err := s.revocable(ctx, who.UserID, d.Certificate, d.Status)
	return described{certificate: c, arguments: statusArguments(d.Status, Revoked)}, err
}

func statusArguments(o StatusOrder, status Status) map[string]string {
	arguments := map[string]string{"status": status.String(), "comment": o.Comment}
	if status == Revoked {
		arguments["reason"] = strconv.Itoa(o.Reason)
	}
	return arguments
}

func describeStatus(ctx context.Context, s *Service, who audit.Principal, d *Deed) (described, error) {
	c, err := s.Find(ctx, who.UserID, d.Certificate)
	if err != nil {
		return described{}, err
	}
	if err := checkStatus(c, d.Status); err != nil {
		return described{}, err
	}
	switch onHold := c.Status == Hold; {
	case d.Status.Status == Active && !onHold:
		return described{}, notOnHold(c)
	case d.Status.Status == Hold && onHold, d.Status.Status != Active && c.Status == Revoked:
		return described{}, revokedAlready(c)
	}
	return described{certificate: c, arguments: statusArguments(d.Status, d.Status.Status)}, nil
}

func describeCertificate(ctx context.Context, s *Service, who audit.Principal, d *Deed) (described, error) {
	c, err := s.Find(ctx, who.UserID, d.Certificate)
	return described{certificate: c}, err
}

func describeExported(ctx context.Context, s *Service, who audit.Principal, d *Deed) (described, error) {
	c, err := s.ownExportable(ctx, who.UserID, d.Certificate)
	return described{certificate: c}, err
}

func describeDeletedRequest(ctx context.Context, s *Service, who audit.Principal, d *Deed) (described, error) {
	q, err := s.Request(ctx, who, d.Request)
	if err != nil {
		return described{}, err
	}
	sum := streebog.Sum256(q.DER)
	return described{arguments: map[string]string{
		"request": strconv.FormatInt(q.ID, 10), "digest": hex.EncodeToString(sum[:]), "subject": q.Subject,
	}}, nil
}

func describeInstalled(ctx context.Context, s *Service, who audit.Principal, d *Deed) (described, error) {
	certificates, err := installed(d.Data)
	if err != nil {
		return described{}, err
	}
	q, cert, err := s.awaited(ctx, who, certificates)
	if err != nil {
		return described{}, err
	}
	return described{about: cert, arguments: map[string]string{"request": strconv.FormatInt(q.ID, 10)}}, nil
}

func describeGenerated(ctx context.Context, s *Service, who audit.Principal, d *Deed) (described, error) {
	g, err := s.generation(ctx, who.UserID, d.Algorithm, d.Set)
	if err != nil {
		return described{}, err
	}
	return described{arguments: map[string]string{"suite": g.suite.Name, "set": d.Set, "subject": g.subject.String()}}, nil
}

// number returns the number of the certificate or of the request that a deed is about, as
// the user confirmed it, or "" for none.
func number(f *what.Fields) string {
	for _, name := range []string{"certificate", "request"} {
		for _, v := range f.Arguments.List() {
			if v.Name == name {
				return v.Value
			}
		}
	}
	return ""
}

var errNoConfirming = errors.New("keys: confirmed acts need Options.Confirming")
