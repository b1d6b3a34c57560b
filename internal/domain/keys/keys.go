// Package keys owns users' private keys and certificates: which ones a user
// has, which is the default, whether one may be used at a given time, the PIN that
// guards a key, and the requests by which certificates come and go.
//
// Faults about a certificate never tell more than its owner may know: an
// unknown certificate and somebody else's get the same answer. What users do by an Act
// is judged by their access policy here; what takes no Act is for administrators, and
// who is one was decided before.
package keys

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"tamga/internal/domain/authority"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/vault"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// Table is the table users' keys belong to: the first half of their vault.Key.ID.
const Table = "keys"

// DefaultPINAttempts is how many wrong PINs in a row block a key.
const DefaultPINAttempts = 10

// DefaultPINLength is the least length of a new PIN, and MaxPINLength the longest that
// an installation may ask for, in characters.
const (
	DefaultPINLength = 6
	MaxPINLength     = 64
)

// maxFriendlyName is the longest friendly name in characters.
const maxFriendlyName = 255

// Store keeps keys and certificates. The transactions of Atomic include the calls that
// fn makes to the other stores of Options.
type Store interface {
	// Atomic runs fn in one serial transaction; it may run fn again.
	Atomic(ctx context.Context, fn func(ctx context.Context) error) error

	// AddKey adds a key; its user exists.
	AddKey(ctx context.Context, k KeyRecord) error
	// Key reads a key by its id.
	Key(ctx context.Context, id string) (KeyRecord, bool, error)

	// AddCertificate adds a certificate of a key and gives it the next number.
	AddCertificate(ctx context.Context, c NewCertificate) (id int64, err error)
	// Certificates reads the first 1000 certificates of a user by number.
	Certificates(ctx context.Context, userID string) ([]CertificateRecord, error)
	// Certificate reads one by number, whoever's it is.
	Certificate(ctx context.Context, id int64) (CertificateRecord, bool, error)
	// DefaultCertificate reads the default certificate of a user.
	DefaultCertificate(ctx context.Context, userID string) (CertificateRecord, bool, error)
	// SetDefault makes a certificate the default one of its user. It reports
	// false when the user has no certificate of this number.
	SetDefault(ctx context.Context, userID string, id int64) (bool, error)

	// DeleteCertificate removes one by number; it is nobody's default any more.
	DeleteCertificate(ctx context.Context, id int64) error
	// SetFriendlyName names one by number.
	SetFriendlyName(ctx context.Context, id int64, name string) error
	// DeleteUnusedKey removes a key that has neither a certificate nor a pending
	// request; another is left alone.
	DeleteUnusedKey(ctx context.Context, keyID string) error
	// ReplaceSealed puts another seal in place of the one given. It reports false when
	// the key has yet another.
	ReplaceSealed(ctx context.Context, keyID string, old, sealed []byte, hasPIN bool) (bool, error)
}

// RequestStore keeps requests for certificates and for their revocation.
type RequestStore interface {
	// AddRequest adds a request and gives it the next number.
	AddRequest(ctx context.Context, r RequestRecord) (id int64, err error)
	// Request reads one by number, whoever's it is.
	Request(ctx context.Context, id int64) (RequestRecord, bool, error)
	// Requests reads the last 1000 requests of a user by number.
	Requests(ctx context.Context, userID string) ([]RequestRecord, error)
	// PendingRequests reads the first 1000 requests of everybody that wait.
	PendingRequests(ctx context.Context) ([]RequestRecord, error)
	// Decide ends the waiting of a request. It reports false when it does not wait.
	Decide(ctx context.Context, id int64, status RequestStatus, certificateID int64, at time.Time) (bool, error)
	// DeleteRequest removes one by number.
	DeleteRequest(ctx context.Context, id int64) error
}

// StatusStore keeps what changes about certificates of outside authorities, and the
// comments of users.
type StatusStore interface {
	// NoteStanding writes down what an outside authority said about a certificate; one
	// that is not there any more is passed over.
	NoteStanding(ctx context.Context, id int64, st Standing) error
	// NoteComment keeps what was said when a certificate was revoked or put on hold.
	NoteComment(ctx context.Context, id int64, comment string) error
	// DueStandings reads certificates of outside authorities that it is time to ask
	// about, by number from after on.
	DueStandings(ctx context.Context, now time.Time, after int64, limit int) ([]CertificateRecord, error)
}

// PINStore counts attempts at the PINs of keys.
type PINStore interface {
	// PINFailures counts the attempts that ReservePIN took.
	PINFailures(ctx context.Context, keyID string) (int, error)
	// ReservePIN takes one of limit attempts of a key, durably before it returns,
	// and reports false when none is left. It must not be called in a
	// transaction, which could take the attempt back.
	ReservePIN(ctx context.Context, keyID string, limit int) (bool, error)
	// ReturnPIN gives one reserved attempt back.
	ReturnPIN(ctx context.Context, keyID string) error
	// ResetPIN gives all attempts back.
	ResetPIN(ctx context.Context, keyID string) error
}

// KeyRecord is a private key as stored.
type KeyRecord struct {
	ID        string // GUID
	UserID    string
	Suite     string // name of the suite
	Sealed    []byte // vault.Key.Sealed of the key "keys:ID"
	HasPIN    bool
	CreatedAt time.Time
}

// NewCertificate is a certificate to store.
type NewCertificate struct {
	UserID, KeyID string
	DER           []byte
	Serial        []byte // as in the certificate
	FriendlyName  string
	CreatedAt     time.Time
	Outside       bool // issued by another authority than the built-in one
}

// CertificateRecord is a stored certificate with what is known about it now.
type CertificateRecord struct {
	ID int64
	NewCertificate
	HasPIN    bool
	Default   bool
	RevokedAt time.Time // zero: not revoked; of one of an outside authority, as far as is known
	Reason    int
	Comment   string // what the user said about it
}

// Status is the standing of a certificate, numbered as the interface numbers it.
type Status int

// Standings of a certificate.
const (
	Active   Status = 1
	Revoked  Status = 2
	Hold     Status = 3
	NotValid Status = 4 // expired or not yet valid
)

var statusNames = map[Status]string{Active: "ACTIVE", Revoked: "REVOKED", Hold: "HOLD", NotValid: "NOT_VALID"}

// String is the name the interface gives the standing.
func (s Status) String() string {
	if name, ok := statusNames[s]; ok {
		return name
	}
	return "Status(" + strconv.Itoa(int(s)) + ")"
}

// Certificate is a user's certificate.
type Certificate struct {
	ID            int64 // CertificateId of the interface
	UserID, KeyID string
	X509          *x509gost.Certificate // shared and never changed
	Default       bool
	HasPIN        bool
	Status        Status    // when it was read
	RevokedAt     time.Time // zero: neither revoked nor on hold
	Reason        int       // CRLReason of the revocation
	Comment       string    // what the user said about it
	FriendlyName  string
	CreatedAt     time.Time
	Outside       bool // issued by another authority than the built-in one

	// key is the public key to verify with; nil stands for that of X509.
	key func() crypto.PublicKey
}

// Verify checks a signature value over a digest against the certificate. A key
// that is used often is verified with faster than with X509 itself.
func (c *Certificate) Verify(d suite.Digest, value []byte) error {
	public := c.X509.PublicKey
	if c.key != nil {
		public = c.key()
	}
	return c.X509.Suite.Verify(public, d, value)
}

// Options are what a Service is made of. All are needed up to Now; acts of users need
// Policy as well.
type Options struct {
	// The stores keep their tables in one database.
	Store        Store
	RequestStore RequestStore
	StatusStore  StatusStore
	PINStore     PINStore

	Holder    vault.Holder
	Authority *authority.Service
	// Rand is a secure source that is safe for concurrent use.
	Rand io.Reader
	Now  func() time.Time
	// PINAttempts blocks a key after so many wrong PINs in a row; 0 means
	// DefaultPINAttempts.
	PINAttempts int
	// PINMode says whether new keys have a PIN; "" means PINAllow.
	PINMode PINMode
	// PINLength is how many characters a new PIN has at least; 0 means DefaultPINLength.
	PINLength int
	// SimplePINs allows new PINs that SimplePIN reports.
	SimplePINs bool

	// Exportable says whether an administrator may take keys out.
	Exportable bool

	Policy       Permitter    // judges the acts of users
	Confirmation Confirmation // nil: nothing waits for a confirmation
	Events       Events       // nil: nobody is told
	Profiles     Profiles     // nil: nothing is known about users' names

	// Enrolment says who certifies keys, and under which names.
	Enrolment Enrolment
	// Evidence tells about the revocation of certificates of outside authorities; nil:
	// nothing is known, so they cannot be used.
	Evidence Evidence
	// StandingAge is how old what is shown about their revocation may be; 0 means
	// DefaultStandingAge.
	StandingAge time.Duration
}

// Service gives users the use of their keys. It is safe for concurrent use; the
// options do not change once it is in use.
type Service struct {
	Options
	gates gates
	cache cache
}

// New makes the service.
func New(o Options) (*Service, error) {
	if o.Store == nil || o.RequestStore == nil || o.StatusStore == nil || o.PINStore == nil ||
		o.Holder == nil || o.Authority == nil || o.Rand == nil || o.Now == nil {
		return nil, errors.New("keys: stores, holder, authority, randomness and clock are all needed")
	}
	if o.PINAttempts == 0 {
		o.PINAttempts = DefaultPINAttempts
	}
	if o.PINAttempts < 0 {
		return nil, fmt.Errorf("keys: %d PIN attempts: want at least 1", o.PINAttempts)
	}
	if o.PINLength == 0 {
		o.PINLength = DefaultPINLength
	}
	if o.PINLength < 0 || o.PINLength > MaxPINLength {
		return nil, fmt.Errorf("keys: PIN length %d: want 1 to %d", o.PINLength, MaxPINLength)
	}
	if o.StandingAge == 0 {
		o.StandingAge = DefaultStandingAge
	}
	switch o.PINMode {
	case "":
		o.PINMode = PINAllow
	case PINRequired, PINForbid, PINAllow:
	default:
		return nil, fmt.Errorf("keys: PIN mode %q: want Required, Forbid or Allow", o.PINMode)
	}
	if err := o.Enrolment.complete(); err != nil {
		return nil, err
	}
	return &Service{Options: o}, nil
}

// List returns the certificates of a user by number, at most 1000.
func (s *Service) List(ctx context.Context, userID string) ([]*Certificate, error) {
	records, err := s.Store.Certificates(ctx, userID)
	if err != nil {
		return nil, err
	}
	list := make([]*Certificate, 0, len(records))
	for _, r := range records {
		c, err := s.certificate(r)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

// Resolve finds a certificate of a user by the text a client sent: "" and "0"
// are the default one, other decimal numbers the one of that number. The answer
// may be expired or revoked; Judge says whether it may be used.
//
// Every failure is the fault invalid_certificate, and a certificate that does
// not exist, one of another user and a text that is no number get the same one.
func (s *Service) Resolve(ctx context.Context, userID, identifier string) (*Certificate, error) {
	return s.ResolveIn(ctx, nil, userID, identifier)
}

// IsDefault reports whether the text of a client means the default certificate.
func IsDefault(identifier string) bool {
	identifier = strings.TrimSpace(identifier)
	return identifier == "" || identifier == "0"
}

// ResolveIn is Resolve with a snapshot of the same user. nil: everything is read.
func (s *Service) ResolveIn(ctx context.Context, snap *Snapshot, userID, identifier string) (*Certificate, error) {
	identifier = strings.TrimSpace(identifier)
	if IsDefault(identifier) {
		r, found, err := s.defaultRecord(ctx, snap, userID)
		if err != nil {
			return nil, err
		}
		if !found {
			return nil, fault.New(fault.InvalidCertificate, "you have no default certificate: give the number of a certificate")
		}
		return s.certificate(r)
	}
	id, err := strconv.ParseUint(identifier, 10, 63)
	if err != nil {
		return nil, unknownCertificate()
	}
	r, found, err := s.numberedRecord(ctx, snap, int64(id))
	if err != nil {
		return nil, err
	}
	if !found || r.UserID != userID {
		return nil, unknownCertificate()
	}
	return s.certificate(r)
}

func unknownCertificate() error {
	return fault.New(fault.InvalidCertificate, "you have no certificate of this number")
}

// IssueOrder asks for a new key with its certificate.
type IssueOrder struct {
	UserID       string
	Suite        *suite.Suite
	Subject      x509gost.Name
	PIN          string        // empty: a key without a PIN
	Default      bool          // make it the user's default certificate
	FriendlyName string        // at most 255 characters
	Life         time.Duration // 0: the authority's default

	first bool // make it the default one when the user has none
}

// Issue makes a key and has the built-in authority certify it; both are stored
// or neither. A user's first certificate is the default one only when the order
// says so. The mode of PINs is for users. Faults: invalid_pin for a PIN that is too
// long, too short or too simple, invalid_parameters for a friendly name that is too long.
func (s *Service) Issue(ctx context.Context, o IssueOrder) (*Certificate, error) {
	if o.UserID == "" || o.Suite == nil {
		return nil, errors.New("keys: an order has a user and a suite")
	}
	if err := s.checkPIN(o.PIN); err != nil {
		return nil, err
	}
	if utf8.RuneCountInString(o.FriendlyName) > maxFriendlyName {
		return nil, fault.Newf(fault.InvalidParameters, "the friendly name is too long: at most %d characters", maxFriendlyName)
	}
	return s.certify(ctx, o, s.generate)
}

// SetDefault makes a certificate the default one of its user. One that is
// unknown or somebody else's is the fault invalid_certificate, as in Resolve.
func (s *Service) SetDefault(ctx context.Context, userID string, id int64) error {
	found, err := s.Store.SetDefault(ctx, userID, id)
	if err == nil && !found {
		err = unknownCertificate()
	}
	return err
}

// Revoke revokes a certificate by number, whoever's it is, and renews the
// revocation list. The reason is a CRLReason (RFC 5280, section 5.3.1): 0 to 6,
// 9 or 10; 6 puts the certificate on hold and may be followed by another.
// Faults: object_not_found, invalid_parameters, invalid_object_state when it is
// revoked already, wrong_operation for one of another authority.
func (s *Service) Revoke(ctx context.Context, id int64, reason int) error {
	if !authority.ValidReason(reason) {
		return fault.Newf(fault.InvalidParameters, "revocation reason %d: want 0 to 6, 9 or 10", reason)
	}
	r, found, err := s.Store.Certificate(ctx, id)
	if err != nil {
		return err
	}
	if !found {
		return fault.Newf(fault.NotFound, "there is no certificate %d", id)
	}
	if r.Outside {
		return fault.Newf(fault.WrongOperation, "certificate %d was issued by another authority: have it revoked there", id)
	}
	err = s.Authority.Revoke(ctx, r.Serial, reason, s.Now())
	if errors.Is(err, authority.ErrAlreadyRevoked) {
		return fault.Newf(fault.InvalidObjectState, "certificate %d is revoked already", id).With(err)
	}
	return err
}

// Unhold lifts the hold of a certificate by number, whoever's it is, and renews the
// revocation list. Faults: object_not_found, invalid_certificate_status.
func (s *Service) Unhold(ctx context.Context, id int64) error {
	r, found, err := s.Store.Certificate(ctx, id)
	if err != nil {
		return err
	}
	if !found {
		return fault.Newf(fault.NotFound, "there is no certificate %d", id)
	}
	c, err := s.certificate(r)
	if err != nil {
		return err
	}
	return s.setStatus(ctx, c, StatusOrder{Status: Active})
}

// certificate makes the domain's view of a record.
func (s *Service) certificate(r CertificateRecord) (*Certificate, error) {
	e, err := s.cache.entry(r.ID, r.DER)
	if err != nil {
		return nil, fmt.Errorf("keys: certificate %d: %w", r.ID, err)
	}
	c := &Certificate{
		ID: r.ID, UserID: r.UserID, KeyID: r.KeyID, X509: e.x509,
		Default: r.Default, HasPIN: r.HasPIN,
		RevokedAt: r.RevokedAt, Reason: r.Reason, Comment: r.Comment,
		FriendlyName: r.FriendlyName, CreatedAt: r.CreatedAt, Outside: r.Outside,
		key: func() crypto.PublicKey { return e.key(&s.cache) },
	}
	now := s.Now()
	switch {
	case !c.RevokedAt.IsZero() && c.Reason == reasonHold:
		c.Status = Hold
	case !c.RevokedAt.IsZero():
		c.Status = Revoked
	case now.Before(e.x509.NotBefore) || !now.Before(end(e.x509)):
		c.Status = NotValid
	default:
		c.Status = Active
	}
	return c, nil
}

const reasonHold = 6 // certificateHold

// end is the first moment a certificate is no longer valid: notAfter is given in
// whole seconds, and the last one belongs to the certificate.
func end(c *x509gost.Certificate) time.Time { return c.NotAfter.Add(time.Second) }

func vaultID(keyID string) string { return Table + ":" + keyID }
