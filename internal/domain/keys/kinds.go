// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tamga/gost/streebog"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/authority"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/vault"
	"tamga/pki/x509gost"
)

// Kind is a kind of operation on keys; see [operation.Kind]. Stored operations have these names, and users
// confirm them.
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

// Names returns the names of all kinds, for a request that carries out whatever was confirmed.
func Names() []string {
	var names []string
	for k := range kinds {
		names = append(names, string(k))
	}
	slices.Sort(names)
	return names
}

// Plan is an act on keys with its arguments, so that it can be stored until its user confirms it. Fields
// that the kind does not have are empty.
type Plan struct {
	Kind        Kind             `json:"kind"`
	Certificate string           `json:"certificate,omitempty"` // as the client sent it
	Request     string           `json:"request,omitempty"`     // as the client sent it
	Order       CertificateOrder `json:"order,omitzero"`        // of ToRequest
	Status      StatusOrder      `json:"status,omitzero"`       // of ToSetStatus and ToRequestRevocation
	Data        []byte           `json:"data,omitempty"`        // of ToInstall
	Algorithm   int64            `json:"algorithm,omitempty"`   // of ToGenerate, like the next
	Set         string           `json:"set,omitempty"`
	// DestroyKey is as in Delete.
	DestroyKey bool `json:"destroyKey,omitempty"`
	// Shown are further arguments that the user sees. They have no effect.
	Shown map[string]string `json:"shown,omitempty"`

	Secrets Secrets `json:"-"`
	// Protected reports whether Secrets.New is set. It is what the user confirms of it.
	Protected bool `json:"protected,omitempty"`
}

// planVersion is the version of the form of Plan.
const planVersion = 1

// Secrets are the PINs and passwords of an act. They are never among what the user confirms.
type Secrets struct {
	PIN string `json:"pin,omitempty"` // of the key of the certificate
	New string `json:"new,omitempty"` // of the new key, or the new PIN
	// Password protects the file of ToExport.
	Password string `json:"password,omitempty"`
}

// Format implements fmt.Formatter: every verb prints the same word.
func (Secrets) Format(f fmt.State, _ rune) { f.Write([]byte("secret")) }

// Ordered returns the order of an act for package operation.
func (p *Plan) Ordered(who audit.Principal, f operation.Form, c operation.Confirming) *operation.Order {
	p.Protected = p.Secrets.New != ""
	o := &operation.Order{Kind: string(p.Kind), Form: f, Owner: who, Confirming: c, Plan: p, Bytes: int64(len(p.Data))}
	if p.Secrets != (Secrets{}) {
		o.Secret = p.Secrets
	}
	return o
}

// kind says how acts of a kind are described and done.
type kind struct {
	action policy.Action
	// sets means that Secrets.New is a new PIN. needs means that Secrets.PIN must open the
	// key of the certificate. Otherwise it is checked only if it is given.
	sets, needs bool
	// describe checks an act without doing it.
	describe func(ctx context.Context, s *Service, who audit.Principal, d *Plan) (described, error)
	// do does an act, and gives its result to Service.change.
	do func(ctx context.Context, s *Service, a Act, p *Plan) error
}

// described is what a user confirms about an act.
type described struct {
	certificate *Certificate          // whose key Secrets.PIN opens; nil: none
	about       *x509gost.Certificate // nil: that of certificate
	arguments   map[string]string
}

// kinds is the table of acts. A new one is a row.
var kinds = map[Kind]kind{
	ToRequest: {action: policy.CreateRequest, sets: true, describe: describeOrder,
		do: func(ctx context.Context, s *Service, a Act, p *Plan) error {
			o := p.Order
			o.PIN, o.RenewPIN = p.Secrets.New, p.Secrets.PIN
			_, err := s.CreateRequest(ctx, a, o)
			return err
		}},
	ToRequestRevocation: {action: policy.RevokeCertificate, describe: describeRevocation,
		do: func(ctx context.Context, s *Service, a Act, p *Plan) error {
			o := p.Status
			o.PIN = p.Secrets.PIN
			_, err := s.RequestRevocation(ctx, a, p.Certificate, o)
			return err
		}},
	ToDeleteRequest: {action: policy.CreateRequest, describe: describeDeletedRequest,
		do: func(ctx context.Context, s *Service, a Act, p *Plan) error {
			_, err := s.DeleteRequest(ctx, a, p.Request)
			return err
		}},
	ToInstall: {action: policy.CreateRequest, describe: describeInstalled,
		do: func(ctx context.Context, s *Service, a Act, p *Plan) error {
			_, err := s.Install(ctx, a, p.Data)
			return err
		}},
	ToGenerate: {action: policy.CreateRequest, sets: true, describe: describeGenerated,
		do: func(ctx context.Context, s *Service, a Act, p *Plan) error {
			_, err := s.Generate(ctx, a, p.Algorithm, p.Set, p.Secrets.New)
			return err
		}},
	ToDelete: {action: policy.DeleteCertificate, describe: describeDeleted,
		do: func(ctx context.Context, s *Service, a Act, p *Plan) error {
			_, err := s.Delete(ctx, a, p.Certificate, p.DestroyKey)
			return err
		}},
	ToChangePIN: {action: policy.ChangePin, sets: true, needs: true, describe: describeCertificate,
		do: func(ctx context.Context, s *Service, a Act, p *Plan) error {
			_, err := s.changePIN(ctx, a, p.Certificate, p.Secrets.PIN, p.Secrets.New)
			return err
		}},
	ToSetStatus: {action: policy.RevokeCertificate, describe: describeStatus,
		do: func(ctx context.Context, s *Service, a Act, p *Plan) error {
			o := p.Status
			o.PIN = p.Secrets.PIN
			_, err := s.SetStatus(ctx, a, p.Certificate, o)
			return err
		}},
	ToExport: {action: policy.PrivateKeyAccess, needs: true, describe: describeExported,
		do: func(ctx context.Context, s *Service, a Act, p *Plan) error {
			_, err := s.exportOwn(ctx, a, p.Certificate, p.Secrets)
			return err
		}},
}

// row returns the row of an act, with the action of this one.
func (p *Plan) row() (kind, error) {
	k, known := kinds[p.Kind]
	switch {
	case !known:
		return k, fmt.Errorf("keys: an act of the kind %q, which this release does not know", p.Kind)
	case p.Kind == ToRequest && p.Order.Renew != "":
		k.action, k.needs = policy.RenewCertificate, true
	case p.Kind == ToSetStatus:
		act, ok := acts[p.Status.Status]
		if !ok {
			return k, unknownStatus()
		}
		k.action = act.action
	}
	return k, nil
}

// fields returns what the user confirms.
func (p *Plan) fields(ctx context.Context, s *Service, who audit.Principal) (what.Fields, *Certificate, error) {
	k, err := p.row()
	if err != nil {
		return what.Fields{}, nil, err
	}
	about, err := k.describe(ctx, s, who, p)
	if err != nil {
		return what.Fields{}, nil, err
	}
	arguments := map[string]string{}
	maps.Copy(arguments, p.Shown)
	maps.Copy(arguments, about.arguments)
	arguments["operation"] = string(p.Kind)
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
		arguments["protected"] = strconv.FormatBool(p.Protected)
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

func describeOrder(ctx context.Context, s *Service, who audit.Principal, p *Plan) (described, error) {
	o, err := s.checkOrder(p.Order)
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
	if o.encryption, err = s.forEncryption(ctx, who.UserID, o.Encryption, old); err != nil {
		return described{}, err
	}
	usages := o.Usages
	if o.encryption {
		usages = append(encryptionNames(authority.KeyUsage(o.newSuite(), true)), usages...)
	}
	arguments := map[string]string{
		"authority": fmt.Sprintf("%d %s", target.ID, target.Name), "suite": o.newSuite().Name, "subject": subject.String(),
		"template": o.Template, "usages": strings.Join(usages, ","),
	}
	if o.Life != 0 {
		arguments["life"] = o.Life.String()
	}
	return described{certificate: old, arguments: arguments}, nil
}

// encryptionNames returns the purposes of encryption of a key usage by their names in RFC 5280.
func encryptionNames(usage x509.KeyUsage) (names []string) {
	for _, one := range []struct {
		bit  x509.KeyUsage
		name string
	}{
		{x509.KeyUsageKeyEncipherment, "keyEncipherment"}, {x509.KeyUsageDataEncipherment, "dataEncipherment"}, {x509.KeyUsageKeyAgreement, "keyAgreement"},
	} {
		if usage&one.bit != 0 {
			names = append(names, one.name)
		}
	}
	return names
}

func describeRevocation(ctx context.Context, s *Service, who audit.Principal, p *Plan) (described, error) {
	c, _, err := s.revocable(ctx, who.UserID, p.Certificate, p.Status)
	return described{certificate: c, arguments: statusArguments(p.Status, Revoked)}, err
}

func statusArguments(o StatusOrder, status Status) map[string]string {
	arguments := map[string]string{"status": status.String(), "comment": o.Comment}
	if status == Revoked {
		arguments["reason"] = strconv.Itoa(o.Reason)
	}
	return arguments
}

func describeStatus(ctx context.Context, s *Service, who audit.Principal, p *Plan) (described, error) {
	c, err := s.Find(ctx, who.UserID, p.Certificate)
	if err != nil {
		return described{}, err
	}
	if err := checkStatus(c, p.Status); err != nil {
		return described{}, err
	}
	switch onHold := c.Status == Hold; {
	case p.Status.Status == Active && !onHold:
		return described{}, notOnHold(c)
	case p.Status.Status == Hold && onHold, p.Status.Status != Active && c.Status == Revoked:
		return described{}, revokedAlready(c)
	}
	return described{certificate: c, arguments: statusArguments(p.Status, p.Status.Status)}, nil
}

func describeCertificate(ctx context.Context, s *Service, who audit.Principal, p *Plan) (described, error) {
	c, err := s.Find(ctx, who.UserID, p.Certificate)
	return described{certificate: c}, err
}

func describeDeleted(ctx context.Context, s *Service, who audit.Principal, p *Plan) (described, error) {
	c, err := s.Find(ctx, who.UserID, p.Certificate)
	if err == nil {
		err = mayDelete(c, p.DestroyKey)
	}
	if err != nil {
		return described{}, err
	}
	return described{certificate: c, arguments: map[string]string{"usages": strings.Join(encryptionNames(c.X509.KeyUsage), ",")}}, nil
}

func describeExported(ctx context.Context, s *Service, who audit.Principal, p *Plan) (described, error) {
	c, err := s.ownExportable(ctx, who.UserID, p.Certificate)
	return described{certificate: c}, err
}

func describeDeletedRequest(ctx context.Context, s *Service, who audit.Principal, p *Plan) (described, error) {
	q, err := s.Request(ctx, who, p.Request)
	if err != nil {
		return described{}, err
	}
	sum := streebog.Sum256(q.DER)
	return described{arguments: map[string]string{
		"request": strconv.FormatInt(q.ID, 10), "digest": hex.EncodeToString(sum[:]), "subject": q.Subject,
	}}, nil
}

func describeInstalled(ctx context.Context, s *Service, who audit.Principal, p *Plan) (described, error) {
	certificates, err := installed(p.Data)
	if err != nil {
		return described{}, err
	}
	q, cert, err := s.awaited(ctx, who, certificates)
	if err != nil {
		return described{}, err
	}
	return described{about: cert, arguments: map[string]string{"request": strconv.FormatInt(q.ID, 10)}}, nil
}

func describeGenerated(ctx context.Context, s *Service, who audit.Principal, p *Plan) (described, error) {
	g, err := s.generation(ctx, who.UserID, p.Algorithm, p.Set)
	if err != nil {
		return described{}, err
	}
	return described{arguments: map[string]string{"suite": g.suite.Name, "set": p.Set, "subject": g.subject.String()}}, nil
}

// OperationKinds returns the rows of the table for package operation.
func (s *Service) OperationKinds() []operation.Kind {
	var rows []operation.Kind
	for name := range kinds {
		rows = append(rows, operation.Kind{
			Name: string(name), Version: planVersion, Purpose: confirm.ForOperation, Handed: name == ToExport,
			Check: s.check, Describe: s.describe, Propose: s.proposes, Fits: fits, Do: s.carryOut,
		})
	}
	return rows
}

// check implements operation.Kind.Check.
func (s *Service) check(ctx context.Context, o *operation.Order) (bool, error) {
	_, k, err := planOf(o)
	if err != nil {
		return false, err
	}
	o.Action = k.action
	return s.needed(ctx, o.Owner, k.action)
}

// planOf returns the plan of an order, with its row.
func planOf(o *operation.Order) (*Plan, kind, error) {
	p := &Plan{}
	if err := o.ReadPlan(p); err != nil {
		return nil, kind{}, err
	}
	k, err := p.row()
	return p, k, err
}

// describe implements operation.Kind.Describe.
func (s *Service) describe(ctx context.Context, o *operation.Order) (what.Fields, error) {
	p, _, err := planOf(o)
	if err != nil {
		return what.Fields{}, err
	}
	f, _, err := p.fields(ctx, s, o.Owner)
	return f, err
}

// proposes implements operation.Kind.Propose: it checks everything about the secrets that can be checked
// before. The PIN costs an attempt if it is wrong.
func (s *Service) proposes(ctx context.Context, o *operation.Order) error {
	p, k, err := planOf(o)
	if err != nil {
		return err
	}
	secrets, _ := o.Secret.(Secrets)
	if k.sets {
		if err := s.checkNewPIN(secrets.New); err != nil {
			return err
		}
	}
	if p.Kind == ToExport {
		if err := checkFilePassword(secrets.Password); err != nil {
			return err
		}
	}
	if len(secrets.PIN) > vault.MaxPIN {
		return wrongPIN()
	}
	if !k.needs && secrets.PIN == "" {
		return nil
	}
	_, c, err := p.fields(ctx, s, o.Owner)
	if err != nil || c == nil {
		return err
	}
	return s.open(ctx, c, secrets.PIN, s.opens)
}

// fits implements operation.Kind.Fits: a request with a number in its address is about the certificate or
// the request that the user has confirmed.
func fits(o *operation.Operation, stored *operation.Plan, c *operation.Claim) error {
	if c.About == "" || strings.TrimSpace(c.About) == about(o) {
		return nil
	}
	if stored != nil {
		var p Plan
		if err := stored.Read(&p); err != nil {
			return err
		}
		if p.Certificate != "" && IsDefault(c.About) && IsDefault(p.Certificate) {
			return nil
		}
	}
	return confirm.OtherOperation()
}

// about returns the number of the certificate or of the request that an operation is about, as the user
// confirmed it, or "" for none.
func about(o *operation.Operation) string {
	return cmp.Or(o.Argument("certificate"), o.Argument("request"))
}

// carryOut implements operation.Kind.Do.
func (s *Service) carryOut(ctx context.Context, r *operation.Run) error {
	p := &Plan{}
	if err := r.Plan(p); err != nil {
		return err
	}
	k, err := p.row()
	if err != nil {
		return err
	}
	if err := r.Secret(&p.Secrets); err != nil {
		return err
	}
	if r.Confirmed() {
		number := about(&r.Operation)
		switch {
		case r.PIN == "":
		case number != "":
			p.Secrets.PIN = r.PIN
		case r.PIN != p.Secrets.New:
			return fault.New(fault.InvalidOperation, "the PIN of the new key was given when the operation was created: leave it out")
		}
		// The default certificate may be another one by now.
		if p.Certificate != "" {
			p.Certificate = number
		}
		if p.Order.Renew != "" {
			p.Order.Renew = number
		}
	}
	return k.do(ctx, s, Act{Who: r.Owner, run: r}, p)
}

// change runs the changes of an act in one transaction that locks the user whose keys change. fn returns
// the result of the act. Of an operation, the same transaction spends it with the result.
func (s *Service) change(ctx context.Context, a Act, userID string, fn func(ctx context.Context) (any, error)) error {
	if a.run != nil {
		return a.run.Spend(ctx, fn)
	}
	return s.Store.Atomic(ctx, lock.User(userID), func(ctx context.Context) error {
		_, err := fn(ctx)
		return err
	})
}
