// SPDX-License-Identifier: Apache-2.0

// Package keys manages the private keys and certificates of users: the default
// certificate, the certificate status, the PINs of keys, and the requests for
// certificates and revocations. Begin with New, Service.Resolve to find a certificate,
// Service.Judge to check it and Service.Sign to sign. The package does not know signature
// formats: package signing does.
//
// Faults about a certificate reveal only what its owner may know: a missing certificate
// and one of another user get the same answer. Methods that take an Act check the user's
// access policy. The others are for administrators and expect an authorized caller.
package keys

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"tamga/internal/domain/authority"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
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

// ErrDuplicate is returned by Store.AddCertificate.
var ErrDuplicate = errors.New("keys: the certificate exists already")

// Store keeps keys and certificates. The transactions of Atomic include the calls that
// fn makes to the other stores of Options.
type Store interface {
	// Atomic runs fn in one transaction that first locks a set. It may run fn more than once.
	Atomic(ctx context.Context, set lock.Set, fn func(ctx context.Context) error) error

	// AddKey adds a key; its user exists.
	AddKey(ctx context.Context, k KeyRecord) error
	// Key reads a key by its id.
	Key(ctx context.Context, id string) (KeyRecord, bool, error)

	// AddCertificate adds a certificate of a key and gives it the next number. It returns
	// ErrDuplicate for a certificate of the built-in authority that is there already.
	AddCertificate(ctx context.Context, c NewCertificate) (id int64, err error)
	// Certificates reads the first 1000 certificates of a user by number.
	Certificates(ctx context.Context, userID string) ([]CertificateRecord, error)
	// Certificate reads one by number, of any user, and its key.
	Certificate(ctx context.Context, id int64) (CertificateRecord, KeyRecord, bool, error)
	// DefaultCertificate reads the default certificate of a user.
	DefaultCertificate(ctx context.Context, userID string) (CertificateRecord, bool, error)
	// SetDefault makes a certificate the default one of its user. It reports
	// false when the user has no certificate of this number.
	SetDefault(ctx context.Context, userID string, id int64) (bool, error)

	// DeleteCertificate removes one by number. It is no default certificate any more.
	DeleteCertificate(ctx context.Context, id int64) error
	// SetFriendlyName names one by number.
	SetFriendlyName(ctx context.Context, id int64, name string) error
	// DeleteUnusedKey removes a key that has neither a certificate nor a pending request.
	// Other keys stay.
	DeleteUnusedKey(ctx context.Context, keyID string) error
	// ReplaceSealed replaces the sealed record old by sealed. It reports false when the
	// stored record is not old.
	ReplaceSealed(ctx context.Context, keyID string, old, sealed []byte, hasPIN bool) (bool, error)
}

// RequestStore keeps requests for certificates and for their revocation.
type RequestStore interface {
	// AddRequest adds a request and gives it the next number.
	AddRequest(ctx context.Context, r RequestRecord) (id int64, err error)
	// Request reads one by number, of any user.
	Request(ctx context.Context, id int64) (RequestRecord, bool, error)
	// Requests reads the last 1000 requests of a user by number.
	Requests(ctx context.Context, userID string) ([]RequestRecord, error)
	// PendingRequests reads the first 1000 pending requests of all users.
	PendingRequests(ctx context.Context) ([]RequestRecord, error)
	// PendingRequestsFor reads pending requests of the users that an operator reaches, by
	// number, after one of them.
	PendingRequestsFor(ctx context.Context, operatorID string, after int64, limit int, now time.Time) ([]RequestRecord, error)
	// CountPendingFor counts the pending requests of the users that an operator reaches, most at most. It looks at a
	// bounded number of requests. more reports that there are others, or may be.
	CountPendingFor(ctx context.Context, operatorID string, most int, now time.Time) (n int, more bool, err error)
	// FindRequests and FindCertificates read what is sought of the users that an operator
	// reaches, the newest first.
	FindRequests(ctx context.Context, operatorID string, sought Sought, limit int, now time.Time) ([]RequestRecord, error)
	FindCertificates(ctx context.Context, operatorID string, sought Sought, limit int, now time.Time) ([]CertificateRecord, error)
	// Decide sets the status of a pending request. It reports false when the request is
	// not pending.
	Decide(ctx context.Context, id int64, status RequestStatus, certificateID int64, refusal string, at time.Time) (bool, error)
	// DeleteRequest removes one by number.
	DeleteRequest(ctx context.Context, id int64) error
}

// StatusStore keeps what changes about certificates of outside authorities, and the
// comments of users.
type StatusStore interface {
	// NoteStatus records the status that an outside authority gave a certificate. A
	// missing certificate is no error.
	NoteStatus(ctx context.Context, id int64, st OutsideStatus) error
	// NoteComment records the user's comment on a revocation or a hold.
	NoteComment(ctx context.Context, id int64, comment string) error
	// DueStatuses reads certificates of outside authorities whose status is due for a
	// check at now, by number, those greater than after.
	DueStatuses(ctx context.Context, now time.Time, after int64, limit int) ([]CertificateRecord, error)
}

// PINStore counts attempts at the PINs of keys.
type PINStore interface {
	// PINFailures counts the attempts that ReservePIN took.
	PINFailures(ctx context.Context, keyID string) (int, error)
	// ReservePIN takes one of limit attempts of a key, durably before it returns, and
	// reports false when none is left. It must not be called in a transaction, whose
	// rollback would return the attempt.
	ReservePIN(ctx context.Context, keyID string, limit int) (bool, error)
	// ReturnPIN returns one reserved attempt.
	ReturnPIN(ctx context.Context, keyID string) error
	// ResetPIN returns all attempts.
	ResetPIN(ctx context.Context, keyID string) error
}

// DeletionStore keeps the keys that were deleted and that their holders must still destroy. DeleteUnusedKey
// and the deletion of a user add them, in the same transaction. Keys of vault.SoftHolder need nothing more.
type DeletionStore interface {
	// DeletedKeys reads deleted keys by id, those greater than after: ID, Holder, Suite, Sealed and HasPIN.
	DeletedKeys(ctx context.Context, after string, limit int) ([]KeyRecord, error)
	// ForgetKey removes a deleted key that is destroyed.
	ForgetKey(ctx context.Context, id string) error
}

// KeyRecord is a private key as stored.
type KeyRecord struct {
	ID        string // GUID
	UserID    string
	Holder    string // name of the holder
	Suite     string // name of the suite
	Sealed    []byte // vault.Key.Sealed of the key "keys:ID"
	HasPIN    bool
	CreatedAt time.Time
	// PINFailures is the number of attempts that are taken. AddKey stores none.
	PINFailures int
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

// CertificateRecord is a stored certificate with its current status.
type CertificateRecord struct {
	ID int64
	NewCertificate
	HasPIN    bool
	Default   bool
	RevokedAt time.Time // zero: not revoked; as far as known, if Outside
	Reason    int
	Comment   string // comment of the user on the revocation
}

// Status is the status of a certificate. The numbers are those of the specification.
type Status int

// Statuses of a certificate.
const (
	Active   Status = 1
	Revoked  Status = 2
	Hold     Status = 3
	NotValid Status = 4 // expired or not yet valid
)

var statusNames = map[Status]string{Active: "ACTIVE", Revoked: "REVOKED", Hold: "HOLD", NotValid: "NOT_VALID"}

// String returns the name of the status in the specification.
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
	Comment       string    // comment of the user on the revocation
	FriendlyName  string
	CreatedAt     time.Time
	Outside       bool // issued by another authority than the built-in one
}

// Verify checks a signature value over a digest against the certificate.
func (c *Certificate) Verify(d suite.Digest, value []byte) error {
	return c.X509.Suite.Verify(c.X509.PublicKey, d, value)
}

// VerifyMany checks the signature values of many digests against the certificate.
func (c *Certificate) VerifyMany(d []suite.Digest, values [][]byte) error {
	return c.X509.Suite.VerifyMany(c.X509.PublicKey, d, values)
}

// Options are what a Service is made of. All are needed up to Now; methods that take an
// Act need Policy too.
type Options struct {
	// The stores keep their tables in one database.
	Store        Store
	RequestStore RequestStore
	StatusStore  StatusStore
	PINStore     PINStore
	// DeletionStore is needed by DestroyDeleted alone.
	DeletionStore DeletionStore

	Holders *vault.Holders
	// Placement chooses the holder of a new key.
	Placement Placement
	Authority *authority.Service
	// Rand is a secure source that is safe for concurrent use.
	Rand io.Reader
	Now  func() time.Time
	// PINAttempts blocks a key after so many wrong PINs in a row; 0 means
	// DefaultPINAttempts.
	PINAttempts int
	// PINMode is the rule about PINs of new keys; "" means PINAllow.
	PINMode PINMode
	// PINLength is the least number of characters of a new PIN; 0 means DefaultPINLength.
	PINLength int
	// SimplePINs allows new PINs that SimplePIN reports.
	SimplePINs bool

	// Exportable allows administrators to export keys, ExportableByUsers each user to export
	// own ones.
	Exportable, ExportableByUsers bool

	Policy       Permitter    // decides about the acts of users
	Confirmation Confirmation // nil: nothing waits for a confirmation
	Events       Events       // nil: no notices
	Profiles     Profiles     // nil: users have no known names

	// Enrolment configures who certifies keys, and under which names.
	Enrolment Enrolment
	// Evidence fetches the revocation status of certificates of outside authorities.
	// Without it these certificates cannot be used.
	Evidence Evidence
	// RefuseEnded keeps certificates that are expired, revoked or on hold from decrypting.
	RefuseEnded bool
	// StatusAge is the greatest age of the status that is shown for these certificates;
	// 0 means DefaultStatusAge.
	StatusAge time.Duration
}

// Service manages keys and certificates. It is safe for concurrent use. The options must
// not change once it is in use.
type Service struct {
	Options
	gates gates
	cache cache
}

// New checks the options, fills in defaults and returns a Service.
func New(o Options) (*Service, error) {
	if o.Store == nil || o.RequestStore == nil || o.StatusStore == nil || o.PINStore == nil ||
		o.Holders == nil || o.Authority == nil || o.Rand == nil || o.Now == nil {
		return nil, errors.New("keys: stores, holders, authority, randomness and clock are all needed")
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
	if o.StatusAge == 0 {
		o.StatusAge = DefaultStatusAge
	}
	switch o.PINMode {
	case "":
		o.PINMode = PINAllow
	case PINRequired, PINForbid, PINAllow:
	default:
		return nil, fmt.Errorf("keys: PIN mode %q: want Required, Forbid or Allow", o.PINMode)
	}
	if err := o.Placement.check(o.Holders.Names()); err != nil {
		return nil, err
	}
	if err := o.Enrolment.complete(); err != nil {
		return nil, err
	}
	if len(o.Enrolment.EncryptionGroups) > 0 && o.Placement.Groups == nil {
		return nil, errors.New("keys: certificates for encryption by group need the groups of users")
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

// Resolve finds a certificate of a user by the text a client sent: "" and "0" are the
// default one, other decimal numbers the one of that number. The certificate may be
// expired or revoked; Judge checks that.
//
// All faults are invalid_certificate. A missing certificate, one of another user and a
// text that is not a number get the same fault.
func (s *Service) Resolve(ctx context.Context, userID, identifier string) (*Certificate, error) {
	return s.ResolveIn(ctx, nil, userID, identifier)
}

// IsDefault reports whether the text of a client means the default certificate.
func IsDefault(identifier string) bool {
	identifier = numeral(identifier)
	return identifier == "" || identifier == "0"
}

// numeral returns the number of a certificate as a client sent it, without space around it and
// without a fraction of zeros, which programs that know no whole numbers write.
func numeral(identifier string) string {
	identifier = strings.TrimSpace(identifier)
	if whole, zeros, _ := strings.Cut(identifier, "."); whole != "" && zeros != "" && strings.Trim(zeros, "0") == "" {
		return whole
	}
	return identifier
}

// ResolveIn is Resolve with a snapshot of the same user. nil: everything is read.
func (s *Service) ResolveIn(ctx context.Context, snap *Snapshot, userID, identifier string) (*Certificate, error) {
	identifier = numeral(identifier)
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
	Encryption   *bool         // as in CertificateOrder

	first bool // make it the default one when the user has none
	act   Act  // of the user; the zero value for others
}

// Issue makes a key and has the built-in authority certify it; both are stored or
// neither. A user's first certificate becomes the default one only if the order says so.
// PINMode is not applied: it is a rule for users. Faults: invalid_pin for a PIN that is
// too long, too short or too simple, invalid_parameters for a friendly name that is too
// long.
func (s *Service) Issue(ctx context.Context, o IssueOrder) (*Certificate, error) {
	if o.UserID == "" || o.Suite == nil {
		return nil, errors.New("keys: an order needs a user and a suite")
	}
	if err := s.checkPIN(o.PIN); err != nil {
		return nil, err
	}
	if utf8.RuneCountInString(o.FriendlyName) > maxFriendlyName {
		return nil, fault.Newf(fault.InvalidParameters, "the friendly name is too long: at most %d characters", maxFriendlyName)
	}
	return s.certify(ctx, o, s.generate(nil))
}

// SetDefault makes a certificate the default one of its user. A missing certificate and
// one of another user are the fault invalid_certificate, as in Resolve.
func (s *Service) SetDefault(ctx context.Context, userID string, id int64) error {
	found, err := s.Store.SetDefault(ctx, userID, id)
	if err == nil && !found {
		err = unknownCertificate()
	}
	return err
}

// Revoke revokes a certificate of any user by number and renews the revocation list. The
// reason is a CRLReason (RFC 5280, section 5.3.1): 0 to 6, 9 or 10; 6 puts the
// certificate on hold, which another reason may replace. Faults: object_not_found,
// invalid_parameters, invalid_object_state when it is revoked or on hold already, wrong_operation
// for one of another authority.
func (s *Service) Revoke(ctx context.Context, id int64, reason int) error {
	if !authority.ValidReason(reason) {
		return fault.Newf(fault.InvalidParameters, "revocation reason %d: want 0 to 6, 9 or 10", reason)
	}
	r, _, found, err := s.Store.Certificate(ctx, id)
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
		return fault.Newf(fault.InvalidObjectState, "certificate %d is revoked or on hold already", id).With(err)
	}
	return err
}

// Unhold lifts the hold of a certificate of any user by number and renews the revocation
// list. Faults: object_not_found, invalid_certificate_status.
func (s *Service) Unhold(ctx context.Context, id int64) error {
	r, _, found, err := s.Store.Certificate(ctx, id)
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

// certificate returns the certificate of a record.
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
	}
	now := s.Now()
	switch {
	case !c.RevokedAt.IsZero() && c.Reason == ReasonHold:
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

// ReasonHold is the reason of a revocation that can be undone: certificateHold.
const ReasonHold = 6

// end returns the first moment at which a certificate is not valid any more: notAfter is
// in whole seconds, and that last second is still valid.
func end(c *x509gost.Certificate) time.Time { return c.NotAfter.Add(time.Second) }

func vaultID(keyID string) string { return Table + ":" + keyID }
