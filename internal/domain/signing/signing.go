// Package signing owns the making of a signature as the service means it: who
// may sign what with which key, in which order the steps happen, and that no
// value leaves before it verified against its certificate. It conducts policy,
// keys and the signature formats; it knows no format by name.
//
// The order of one signature (docs/architecture.md, "Two requests on their way
// through"): policy, certificate and its standing, what to sign, the key, the
// check of the value, the document. Everything a client can get wrong is looked
// at before its PIN costs an attempt.
package signing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/policy"
	"tamga/pki/chain"
	"tamga/pki/suite"
	"tamga/sig"
)

// Result is a signed document ready to be written out.
type Result = sig.Result

// Order is what a client asks for. Content and Original stay the caller's: the
// service reads them and closes neither.
type Order struct {
	Type        string            // name of a format: a key of Service.Formats, letter case ignored
	Params      map[string]string // Signature.Parameters without OriginalDocument
	Content     *Intake           // document, hash or message; nil or empty: content_required
	Original    *Intake           // OriginalDocument; nil when absent
	Certificate string            // identifier as text; "" and "0" are the default certificate
	PIN         string
}

// Keys is what the service needs of the users' keys and certificates.
type Keys interface {
	Resolve(ctx context.Context, userID, identifier string) (*keys.Certificate, error)
	Judge(ctx context.Context, c *keys.Certificate, at time.Time) (*chain.Verdict, error)
	Sign(ctx context.Context, c *keys.Certificate, pin string, digests []suite.Digest) ([][]byte, error)
}

// Policy is what the service asks before it acts.
type Policy interface {
	Permit(ctx context.Context, userID string, a policy.Action) error
	PermitType(signatureType string, overHash bool) error
}

// Service makes signatures. All fields are set before first use and not changed
// afterwards; it is safe for concurrent use.
type Service struct {
	Formats map[string]sig.Format // by Signature.Type as the specification writes it
	Keys    Keys
	Policy  Policy
	Spool   Spool
	Now     func() time.Time
}

// NewIntake opens room for a document of who. It digests on the way in for the
// default certificate of who, the one most requests name; when the order turns
// out to name another kind of key, the document is read again.
func (s *Service) NewIntake(ctx context.Context, who audit.Principal) (*Intake, error) {
	c, err := s.Keys.Resolve(ctx, who.UserID, "")
	switch {
	case err == nil:
		return newIntake(s.Spool, c.X509.Suite.Hash), nil
	case fault.Is(err, fault.InvalidCertificate):
		return newIntake(s.Spool, nil), nil // no default: the order must name one
	}
	return nil, err
}

// Sign makes one signature. Faults: content_required, invalid_signature_params,
// invalid_certificate, invalid_pin, access_denied. When it returns a Result, all
// that can still fail is writing it.
func (s *Service) Sign(ctx context.Context, who audit.Principal, o *Order) (Result, error) {
	if o.Content == nil || o.Content.Size() == 0 {
		return nil, fault.New(fault.ContentRequired, "Content is missing or empty: send the document, hash or message as Base64")
	}
	name, format, err := s.format(o.Type)
	if err != nil {
		return nil, err
	}
	params := sig.Params(o.Params)
	overHash, err := isOverHash(params)
	if err != nil {
		return nil, translate(err)
	}
	if err := s.Policy.PermitType(name, overHash); err != nil {
		return nil, err
	}
	if err := s.Policy.Permit(ctx, who.UserID, policy.SignDocument); err != nil {
		return nil, err
	}

	now := s.Now()
	cert, err := s.Keys.Resolve(ctx, who.UserID, o.Certificate)
	if err != nil {
		return nil, err
	}
	verdict, err := s.Keys.Judge(ctx, cert, now)
	if err != nil {
		return nil, err
	}

	job := &sig.Job{
		Document:    o.Content,
		Digests:     o.Content.digests(),
		Certificate: cert.X509,
		Chain:       verdict.Chain[1:],
		Params:      params,
		Time:        now,
	}
	if o.Original != nil {
		job.Original = o.Original
	}
	prepared, err := format.Prepare(ctx, job)
	if err != nil {
		return nil, translate(err)
	}
	values, err := s.Keys.Sign(ctx, cert, o.PIN, []suite.Digest{prepared.Digest})
	if err != nil {
		return nil, err
	}
	// The only full verification on the way: it catches a computation gone wrong,
	// which would otherwise publish what the key can be computed from, and a key
	// that does not belong to the certificate.
	if err := cert.X509.Suite.Verify(cert.X509.PublicKey, prepared.Digest, values[0]); err != nil {
		return nil, fmt.Errorf("signing: the value made with the key of certificate %d does not verify against it: %w", cert.ID, err)
	}
	result, err := format.Finish(ctx, job, prepared.State, values[0])
	if err != nil {
		return nil, translate(err)
	}
	return result, nil
}

// needs are the types of the interface that this service may lack, with the
// parameter each cannot do without: a client that sent neither learns both.
var needs = []struct{ name, parameter string }{
	{"XMLDSig", "XMLDsigType"},
	{"PDF", "PDFFormat"},
}

// format finds the format for a Signature.Type, letter case ignored.
func (s *Service) format(signatureType string) (string, sig.Format, error) {
	for name, f := range s.Formats {
		if strings.EqualFold(name, signatureType) {
			return name, f, nil
		}
	}
	names := make([]string, 0, len(s.Formats))
	for name := range s.Formats {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, later := range needs {
		if strings.EqualFold(later.name, signatureType) {
			return "", nil, fault.Newf(fault.InvalidSignatureParams, "Signature.Type %s, which also needs the parameter %s, is not served by this release: use one of %s",
				later.name, later.parameter, strings.Join(names, ", "))
		}
	}
	return "", nil, fault.Newf(fault.InvalidSignatureParams, "Signature.Type %q is not served here: use one of %s",
		abbreviate(signatureType), strings.Join(names, ", "))
}

// isOverHash reads the one parameter that policy needs before a format reads them all.
func isOverHash(p sig.Params) (bool, error) {
	r := p.Reader()
	over := r.Bool("Hash", false)
	return over, r.Err()
}

// translate turns the sentinels of the signature formats into faults. It is the
// only place that does.
func translate(err error) error {
	var params *sig.ErrParams
	var document *sig.ErrDocument
	switch {
	case errors.As(err, &params):
		return fault.New(fault.InvalidSignatureParams, params.Error()).With(err)
	case errors.As(err, &document):
		return fault.New(fault.InvalidContent, document.Error()).With(err)
	}
	return err
}

// abbreviate keeps a client's text in an error message short.
func abbreviate(s string) string {
	const most = 40
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "..."
	}
	return s
}

// Canary makes and checks a signature with a fresh key of every suite and
// checks that a changed one is refused: what a process must be able to do before
// it says it is ready. It touches no stored key.
func Canary(rand io.Reader) error {
	for _, su := range suite.All() {
		key, err := su.Generate(rand)
		if err != nil {
			return fmt.Errorf("signing: canary: generating a %s key: %w", su.Name, err)
		}
		h := su.Hash.New()
		io.WriteString(h, "canary "+su.Name)
		d := suite.Digest{Hash: su.Hash, Sum: h.Sum(nil)}
		value, err := su.Sign(rand, key, d)
		if err != nil {
			return fmt.Errorf("signing: canary: signing with %s: %w", su.Name, err)
		}
		if err := su.Verify(key.Public(), d, value); err != nil {
			return fmt.Errorf("signing: canary: verifying with %s: %w", su.Name, err)
		}
		d.Sum[0] ^= 1
		if su.Verify(key.Public(), d, value) == nil {
			return fmt.Errorf("signing: canary: %s accepts a signature of another digest", su.Name)
		}
	}
	return nil
}
