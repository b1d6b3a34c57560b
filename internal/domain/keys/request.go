// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/authority"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/policy"
	"tamga/pki/x509gost"
)

// RequestStatus is the status of a request. The numbers are those of the specification.
type RequestStatus int

// Statuses of requests.
const (
	Pending  RequestStatus = 2
	Accepted RequestStatus = 4
	Rejected RequestStatus = 8
)

var requestStatusNames = map[RequestStatus]string{Pending: "PENDING", Accepted: "ACCEPTED", Rejected: "REJECTED"}

// String returns the name in the specification.
func (s RequestStatus) String() string {
	if name, ok := requestStatusNames[s]; ok {
		return name
	}
	return "RequestStatus(" + strconv.Itoa(int(s)) + ")"
}

// RequestType is the type of a request. The numbers are those of the specification.
type RequestType int

// Types of requests.
const (
	ForCertificate RequestType = 0
	ForRevocation  RequestType = 1
)

var requestTypeNames = map[RequestType]string{ForCertificate: "Certificate", ForRevocation: "RevokeRequest"}

// String returns the name in the specification.
func (t RequestType) String() string {
	if name, ok := requestTypeNames[t]; ok {
		return name
	}
	return "RequestType(" + strconv.Itoa(int(t)) + ")"
}

// RequestRecord is a request as stored.
type RequestRecord struct {
	ID            int64
	UserID        string
	Type          RequestType
	Status        RequestStatus
	Authority     int64
	KeyID         string // key to certify; "" once it was deleted, and for a revocation
	CertificateID int64  // issued certificate, or the one to revoke; 0: none yet
	Renews        int64  // the certificate to renew; 0: none
	DER           []byte // PKCS #10; empty for a revocation
	Life          time.Duration
	Reason        int // CRLReason of a revocation
	Comment       string
	CreatedAt     time.Time
	DecidedAt     time.Time // zero while it waits
	Refusal       string    // why it was rejected, for its user; "": not said
}

// Request is a request for a certificate or for its revocation.
type Request struct {
	RequestRecord
	Subject       string // of the certificate, in the form of RFC 4514
	AuthorityName string
	Parsed        *x509gost.Request // nil for a revocation
}

// ForEncryption reports whether a certificate of the request is for encryption, too.
func (q *Request) ForEncryption() bool {
	if q.Parsed == nil {
		return false
	}
	for _, e := range q.Parsed.Extensions {
		if e.OID.Equal(x509gost.OIDKeyUsage) {
			usage, err := x509gost.ParseKeyUsage(e.Value)
			return err == nil && usage&authority.EncryptionUsage != 0
		}
	}
	return false
}

// request returns the request of a record.
func (s *Service) request(ctx context.Context, r RequestRecord) (*Request, error) {
	q := &Request{RequestRecord: r}
	if a, err := s.Enrolment.authority(r.Authority); err == nil {
		q.AuthorityName = a.Name
	}
	if r.Type == ForRevocation {
		c, _, found, err := s.Store.Certificate(ctx, r.CertificateID)
		if err != nil || !found { // the certificate was deleted meanwhile
			return q, err
		}
		parsed, err := s.certificate(c)
		if err == nil {
			q.Subject = parsed.X509.Subject.String()
		}
		return q, err
	}
	var err error
	if q.Parsed, err = x509gost.ParseRequest(r.DER); err != nil {
		return nil, fmt.Errorf("keys: request %d: %w", r.ID, err)
	}
	q.Subject = q.Parsed.Subject.String()
	return q, nil
}

func (s *Service) requests(ctx context.Context, records []RequestRecord, err error) ([]*Request, error) {
	if err != nil {
		return nil, err
	}
	list := make([]*Request, len(records))
	for i, r := range records {
		if list[i], err = s.request(ctx, r); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Requests lists the requests of a user by number, the last 1000.
func (s *Service) Requests(ctx context.Context, who audit.Principal) ([]*Request, error) {
	records, err := s.RequestStore.Requests(ctx, who.UserID)
	return s.requests(ctx, records, err)
}

// Waiting lists the pending requests of all users, for an operator: the first 1000.
func (s *Service) Waiting(ctx context.Context) ([]*Request, error) {
	records, err := s.RequestStore.PendingRequests(ctx)
	return s.requests(ctx, records, err)
}

// WaitingFor lists pending requests of the users within reach of an operator, by number,
// after the one with a number.
func (s *Service) WaitingFor(ctx context.Context, who audit.Principal, after int64, limit int) ([]*Request, error) {
	records, err := s.RequestStore.PendingRequestsFor(ctx, who.UserID, after, limit, s.Now())
	return s.requests(ctx, records, err)
}

// CountWaitingFor counts the pending requests of the users within reach of an operator, most at most. more reports that
// there are others, or may be.
func (s *Service) CountWaitingFor(ctx context.Context, who audit.Principal, most int) (n int, more bool, err error) {
	return s.RequestStore.CountPendingFor(ctx, who.UserID, most, s.Now())
}

// Request finds a request of a user. A missing request, one of another user and a text
// that is not a number are the fault request_not_found.
func (s *Service) Request(ctx context.Context, who audit.Principal, identifier string) (*Request, error) {
	unknown := fault.New(fault.RequestNotFound, "you have no request of this number")
	id, err := strconv.ParseInt(identifier, 10, 64)
	if err != nil {
		return nil, unknown
	}
	r, found, err := s.RequestStore.Request(ctx, id)
	if err != nil {
		return nil, err
	}
	if !found || r.UserID != who.UserID {
		return nil, unknown
	}
	return s.request(ctx, r)
}

// DeleteRequest removes a request of a user. The key of a pending request is deleted too,
// so its certificate cannot be installed later. Faults: request_not_found, access_denied,
// wrong_operation.
func (s *Service) DeleteRequest(ctx context.Context, a Act, identifier string) (*Request, error) {
	if err := s.guard(ctx, a, policy.CreateRequest); err != nil {
		return nil, err
	}
	var q *Request
	err := s.change(ctx, a, a.Who.UserID, func(ctx context.Context) (_ any, err error) {
		if q, err = s.Request(ctx, a.Who, identifier); err != nil {
			return nil, err
		}
		if err := s.RequestStore.DeleteRequest(ctx, q.ID); err != nil || q.KeyID == "" {
			return q, fault.Rollback(err)
		}
		return q, fault.Rollback(s.Store.DeleteUnusedKey(ctx, q.KeyID))
	})
	return q, err
}

// settle runs fn on a pending request for an operator, in a transaction that locks the
// user of the request.
func (s *Service) settle(ctx context.Context, id int64, fn func(ctx context.Context, q *Request) error) (*Request, error) {
	q, err := s.waiting(ctx, id)
	if err != nil {
		return nil, err
	}
	err = s.Store.Atomic(ctx, lock.User(q.UserID), func(ctx context.Context) (err error) {
		if q, err = s.waiting(ctx, id); err != nil { // it may be decided by now
			return err
		}
		return fn(ctx, q)
	})
	return q, err
}

// Undecided reads a pending request of any user, for an operator. Faults: request_not_found,
// invalid_request_status.
func (s *Service) Undecided(ctx context.Context, id int64) (*Request, error) {
	return s.waiting(ctx, id)
}

// waiting reads a pending request for an operator.
func (s *Service) waiting(ctx context.Context, id int64) (*Request, error) {
	r, found, err := s.RequestStore.Request(ctx, id)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fault.Newf(fault.RequestNotFound, "there is no request %d", id)
	}
	if r.Status != Pending {
		return nil, fault.Newf(fault.RequestStatus, "request %d is decided already: %s", id, r.Status)
	}
	return s.request(ctx, r)
}

// Approve has the built-in authority carry out a pending request of any user, for an
// operator. Faults: request_not_found, invalid_request_status, wrong_operation for a
// request to an outside authority, those of the revocation.
func (s *Service) Approve(ctx context.Context, id int64) (*Request, error) {
	return s.settle(ctx, id, func(ctx context.Context, q *Request) error {
		if q.Authority != BuiltIn {
			return fault.Newf(fault.WrongOperation, "request %d is for %s: install its certificate instead", id, q.AuthorityName)
		}
		return fault.Rollback(s.fulfil(ctx, q, ""))
	})
}

// maxRefusal limits the reason of a refusal, in characters. Messages have it whole.
const maxRefusal = 200

// Reject refuses a pending request of any user, for an operator, and deletes its key. The reason is for the user; "": none.
// Faults: request_not_found, invalid_request_status, invalid_parameters for a reason that is too long.
func (s *Service) Reject(ctx context.Context, id int64, reason string) (*Request, error) {
	reason = notify.OneLine(strings.Join(strings.Fields(reason), " "))
	if n := utf8.RuneCountInString(reason); n > maxRefusal {
		return nil, fault.Newf(fault.InvalidParameters, "the reason of a refusal has %d characters: at most %d are possible", n, maxRefusal)
	}
	return s.settle(ctx, id, func(ctx context.Context, q *Request) error {
		q.Refusal = reason
		if err := s.decide(ctx, q, Rejected, q.CertificateID); err != nil {
			return fault.Rollback(err)
		}
		if q.KeyID != "" {
			if err := s.Store.DeleteUnusedKey(ctx, q.KeyID); err != nil {
				return fault.Rollback(err)
			}
		}
		if s.Events == nil {
			return nil
		}
		return fault.Rollback(s.Events.Emit(ctx, notify.Event{Type: notify.CertificateRejected, UserID: q.UserID, Detail: "request " + strconv.FormatInt(q.ID, 10), Reason: reason}))
	})
}

// decide sets the status of a pending request, inside a transaction.
func (s *Service) decide(ctx context.Context, q *Request, status RequestStatus, certificateID int64) error {
	now := s.Now()
	decided, err := s.RequestStore.Decide(ctx, q.ID, status, certificateID, q.Refusal, now)
	if err == nil && !decided {
		err = errors.New("keys: a request was decided twice inside a transaction")
	}
	q.Status, q.CertificateID, q.DecidedAt = status, certificateID, now
	return err
}
