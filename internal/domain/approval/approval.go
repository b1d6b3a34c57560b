// SPDX-License-Identifier: Apache-2.0

// Package approval owns requests of operators that wait before they are carried out: for a
// second operator (four eyes), for the end of a delay, or for both.
//
// Begin with [Service.Hold]. The first call of a request stores it and is refused. Another
// operator approves or refuses it with [Service.Decide]; the user it is about may end it
// with [Service.Cancel]. Once nothing is missing, the next call of the same request by the
// same operator gets a [Admission] and is carried out, once. docs/users.md has the rules.
//
// [Rules] decide what a request waits for, by its effects and by what is stored, each time
// the request is made. The package does not carry requests out. It keeps their values and
// gives them back with the admission: what runs is what was stored.
package approval

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/effect"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/reach"
	"tamga/internal/domain/vault"
)

// State is the state of a request.
type State string

// The states. Waiting, Approved and Running are open, the others are final.
const (
	Waiting     State = "Waiting"
	Approved    State = "Approved" // by a second operator
	Running     State = "Running"
	Done        State = "Done"
	Refused     State = "Refused"     // by a second operator, or taken back by its requester
	Cancelled   State = "Cancelled"   // by the user it is about
	Expired     State = "Expired"     // it was not carried out in time
	Interrupted State = "Interrupted" // the process that carried it out has died
)

// Call is a request with the values that it was read as, without values that are used once,
// such as codes.
type Call struct {
	Operation string // name of the route
	Route     string // pattern of its path
	Method    string // with Target, for people
	Target    string // path, and the values of the query
	Object    string // identifier of the user it is about; "" for none
	Effects   effect.Set
	Value     []byte // equal for equal values; JSON
}

// digest identifies the same call of the same operator.
func (c *Call) digest(requester string) []byte {
	h := sha256.New()
	for _, part := range []string{"values", requester, c.Operation, c.Route, c.Object, string(c.Value)} {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		h.Write(length[:])
		io.WriteString(h, part)
	}
	return h.Sum(nil)
}

// Needs is what a call needs before it is carried out. The zero value is nothing.
type Needs struct {
	Approval bool          // by a second operator
	Delay    time.Duration // time to wait, during which the user may cancel it
}

// Request is a request that waits or has waited.
type Request struct {
	ID          string // GUID
	Operation   string
	Object      string   // as in Call
	Requester   string   // user id
	Login       string   // of the requester
	Groups      []string // of the requester when it was made; of a request about no user
	State       State
	Approval    bool // as in Needs
	DecidedBy   string
	CreatedAt   time.Time
	NotBefore   time.Time // it is not carried out before
	ExpiresAt   time.Time
	EndedAt     time.Time // zero while it is open
	DelayedFrom time.Time // when the delay began; zero: it has none
	ConfirmedAt time.Time // when the user has ended the delay; zero: not

	Digest []byte // of the call
	Sealed []byte // the rest of the call
}

// Growth is what a request needs more than before.
type Growth struct {
	Approval                          bool
	NotBefore, ExpiresAt, DelayedFrom time.Time
}

// Move changes the state of a request.
type Move struct {
	From  []State // any of them; at most two
	To    State
	At    time.Time
	By    string    // login of who decided; "": unchanged
	Live  bool      // refuses the move after ExpiresAt
	Due   bool      // refuses the move before NotBefore
	Lease time.Time // of a request that is Running
	Final bool
}

// Store keeps requests. Each method is one atomic step.
type Store interface {
	Atomic(ctx context.Context, locked lock.Set, fn func(ctx context.Context) error) error
	// AddApproval stores a request. It reports false if an open one has the same requester and
	// digest, or if the requester has most open ones. Calls at the same time may exceed most.
	AddApproval(ctx context.Context, r *Request, most int) (added bool, err error)
	Approval(ctx context.Context, id string) (r Request, found bool, err error)
	ApprovalOf(ctx context.Context, requester string, digest []byte) (r Request, found bool, err error) // the open one
	// OpenApprovals returns open requests, the oldest first, after the one with an identifier. With
	// object set, it returns those about a user.
	OpenApprovals(ctx context.Context, object, after string, limit int) ([]Request, error)
	// OpenApprovalsFor is OpenApprovals for the requests about users within reach of an operator, and those
	// about no user.
	OpenApprovalsFor(ctx context.Context, operatorID, after string, limit int, now time.Time) ([]Request, error)
	MoveApproval(ctx context.Context, id string, m Move) (r Request, moved bool, err error)
	// GrowApproval sets what a request that is Waiting or Approved needs. It reports false if the
	// request is not in these states, or if Approval or NotBefore are not those of old any more.
	GrowApproval(ctx context.Context, old *Request, g Growth) (r Request, grown bool, err error)
	// ActingGroups returns the first groups of an operator, sorted, at most limit, or all with
	// the limit 0; none for other users.
	ActingGroups(ctx context.Context, operatorID string, limit int, now time.Time) ([]string, error)
	// EndDelay sets NotBefore and ConfirmedAt of an open request to a time, if NotBefore is later
	// and the request is not Running and has not expired. Otherwise it reports false.
	EndDelay(ctx context.Context, id string, now time.Time) (r Request, ended bool, err error)
	// DueApprovals returns open requests that have expired, and those Running whose lease is over.
	DueApprovals(ctx context.Context, now time.Time, limit int) ([]Request, error)
	SweepApprovals(ctx context.Context, endedBefore time.Time) error // deletes
}

// Events sends events; *notify.Service satisfies it.
type Events interface {
	Emit(ctx context.Context, e notify.Event) error
}

// Deps are what a Service works with.
type Deps struct {
	Store  Store
	Reach  reach.Checker
	Events Events
	Vault  notify.Sealer
	Audit  audit.Log
	Now    func() time.Time
	Rand   io.Reader     // safe for concurrent use
	Life   time.Duration // of a request that could be carried out
	Keep   time.Duration // of a request that has ended
}

// Service keeps requests that wait. It is safe for concurrent use.
type Service struct{ Deps }

// New returns a Service.
func New(d Deps) *Service { return &Service{d} }

const (
	most  = 100              // open requests of one operator
	lease = 15 * time.Minute // of a request that is carried out; longer than any takes
	page  = 100
)

// Administrator is the caller of commands, who may approve and refuse every request.
var Administrator = audit.Principal{Login: "administrator", Method: audit.CommandLine}

func administrator(who audit.Principal) bool {
	return who.UserID == "" && who.Method == Administrator.Method
}

// Admission is the right to carry a request out, once.
type Admission struct {
	Value []byte // of the call that was stored and approved
	// End ends the admission with the error of the operation. After a fault the request may be
	// repeated until it expires. After another error it may have been carried out, so it is not
	// repeated: it becomes Interrupted.
	End func(ctx context.Context, err error) error
}

// Hold stores a call and refuses it, or returns the admission of a call that may be carried
// out now. The admission is nil for a call that needs nothing and never did. A call that was stored
// before needs what it needs now: what was fulfilled since counts, what is new is waited for.
// The fault is wrong_operation with the identifier of the request; too_many_requests for an
// operator with too many open requests.
func (s *Service) Hold(ctx context.Context, who audit.Principal, c Call, n Needs) (*Admission, error) {
	digest := c.digest(who.UserID)
	r, found, err := s.Store.ApprovalOf(ctx, who.UserID, digest)
	if err != nil {
		return nil, err
	}
	now := s.now()
	if found && r.State != Running && !now.Before(r.ExpiresAt) {
		if err := s.expire(ctx, &r); err != nil {
			return nil, err
		}
		found = false
	}
	switch {
	case !found && n == (Needs{}):
		return nil, nil
	case !found:
		r, err = s.add(ctx, who, c, n, digest)
	case r.State != Running:
		r, err = s.grow(ctx, who, r, n)
	}
	if err != nil {
		return nil, err
	}
	if why := r.waits(now, n); why != nil {
		return nil, why
	}
	stored, err := s.open(&r)
	if err != nil {
		return nil, err
	}
	m := Move{From: []State{Waiting, Approved}, To: Running, At: now, Live: true, Due: n.Delay > 0, Lease: now.Add(lease)}
	if n.Approval {
		m.From = []State{Approved}
	}
	r, moved, err := s.Store.MoveApproval(ctx, r.ID, m)
	if err != nil {
		return nil, err
	}
	if !moved {
		return nil, decidedNow()
	}
	return &Admission{stored.Value, func(ctx context.Context, err error) error { return s.end(ctx, who, &r, err) }}, nil
}

func decidedNow() error {
	return fault.New(fault.WrongOperation, "the request is being carried out or was decided just now: look before you repeat it")
}

// grow makes a request wait for what it needs now and did not need before.
func (s *Service) grow(ctx context.Context, who audit.Principal, r Request, n Needs) (Request, error) {
	now := s.now()
	g := Growth{r.Approval || n.Approval, r.NotBefore, r.ExpiresAt, r.DelayedFrom}
	switch {
	case n.Delay == 0 || !r.ConfirmedAt.IsZero(): // nothing to wait for, or the user does not want to
	case !r.delayed():
		g.DelayedFrom, g.NotBefore = now, now.Add(n.Delay) // the user learns of it now
	case r.DelayedFrom.Add(n.Delay).After(r.NotBefore):
		g.NotBefore = r.DelayedFrom.Add(n.Delay)
	}
	approval, delay := g.Approval != r.Approval, !g.NotBefore.Equal(r.NotBefore)
	if !approval && !delay {
		return r, nil
	}
	if expires := g.NotBefore.Add(s.Life); expires.After(g.ExpiresAt) {
		g.ExpiresAt = expires
	}
	grown := false
	var after Request
	err := s.Store.Atomic(ctx, lock.User(r.Object), func(ctx context.Context) (err error) {
		if after, grown, err = s.Store.GrowApproval(ctx, &r, g); err != nil || !grown {
			return err
		}
		if err := s.record(ctx, who, &after, ", needs more than before"); err != nil {
			return err
		}
		return s.announce(ctx, who, &after, approval, delay)
	})
	if err == nil && !grown {
		err = decidedNow()
	}
	return after, err
}

// Waits is the fault of a request that waits for an approval or for its time.
type Waits struct {
	Request Request
	fault   *fault.Error
}

func (w Waits) Error() string { return w.fault.Error() }
func (w Waits) Unwrap() error { return w.fault }

// waits returns the fault of a request that something is missing for, of what it needs now.
func (r *Request) waits(now time.Time, n Needs) error {
	switch {
	case r.State == Running:
		return fault.Newf(fault.WrongOperation, "request %s is being carried out: look before you repeat it", r.ID)
	case n.Approval && r.State == Waiting:
		return Waits{*r, fault.Newf(fault.WrongOperation, "request %s waits for the approval of another operator: repeat it unchanged after that, before %s", r.ID, r.ExpiresAt.Format(time.RFC3339))}
	case n.Delay > 0 && now.Before(r.NotBefore):
		return Waits{*r, fault.Newf(fault.WrongOperation, "request %s takes effect only after a delay: repeat it unchanged from %s to %s", r.ID, r.NotBefore.Format(time.RFC3339), r.ExpiresAt.Format(time.RFC3339))}
	}
	return nil
}

// sealed is the content of Request.Sealed.
type sealed struct {
	Method  string   `json:"method"`
	Target  string   `json:"target"`
	Value   []byte   `json:"value"`
	Route   string   `json:"route"`
	Effects []string `json:"effects"`
}

func place(id string) vault.Place {
	return vault.Place{Purpose: "approval request", Table: "approval_requests", Row: id, Column: "sealed"}
}

// add stores a request and tells of it, or returns the one that another call has stored.
func (s *Service) add(ctx context.Context, who audit.Principal, c Call, n Needs, digest []byte) (Request, error) {
	id, err := uuid.NewRandomFromReader(s.Rand)
	if err != nil {
		return Request{}, fmt.Errorf("approval: making an identifier: %w", err)
	}
	now := s.now()
	r := Request{
		ID: id.String(), Operation: c.Operation, Object: c.Object, Requester: who.UserID, Login: who.Login,
		State: Waiting, Approval: n.Approval, CreatedAt: now, NotBefore: now.Add(n.Delay), ExpiresAt: now.Add(n.Delay + s.Life), Digest: digest,
	}
	if n.Delay > 0 {
		r.DelayedFrom = now
	}
	plain, err := json.Marshal(sealed{c.Method, c.Target, c.Value, c.Route, c.Effects.Names()})
	if err != nil {
		return Request{}, err
	}
	defer clear(plain)
	if r.Sealed, err = s.Vault.Seal(place(r.ID), plain); err != nil {
		return Request{}, err
	}
	added := false
	err = s.Store.Atomic(ctx, lock.User(c.Object), func(ctx context.Context) error {
		if c.Object == "" {
			r.Groups, err = s.Store.ActingGroups(ctx, who.UserID, 0, now)
			if err == nil && len(r.Groups) == 0 {
				err = fault.New(fault.AccessDenied, "the caller is not an operator of any group")
			}
			if err != nil {
				return err
			}
		}
		if added, err = s.Store.AddApproval(ctx, &r, most); err != nil || !added {
			return err
		}
		return s.note(ctx, who, &r)
	})
	if err != nil || added {
		return r, err
	}
	r, found, err := s.Store.ApprovalOf(ctx, who.UserID, digest)
	if err == nil && !found {
		err = fault.Newf(fault.TooManyRequests, "you have %d requests that wait: have them decided, or take some back", most)
	}
	return r, err
}

// end ends the admission of a request with the error of its operation.
func (s *Service) end(ctx context.Context, who audit.Principal, r *Request, err error) error {
	failed := err != nil
	if _, refused := fault.As(err); failed && !refused {
		return nil
	}
	m := Move{From: []State{Running}, To: Done, At: s.now(), Final: true}
	if failed {
		m.To, m.Final = Waiting, false
		if r.DecidedBy != "" {
			m.To = Approved
		}
	}
	return s.Store.Atomic(ctx, lock.User(r.Object), func(ctx context.Context) error {
		r, moved, err := s.Store.MoveApproval(ctx, r.ID, m)
		if err != nil || !moved || failed {
			return err
		}
		return s.note(ctx, who, &r)
	})
}

// may returns nil if an operator may see and decide a request: the user it is about is
// within reach, or, where there is none, the groups of the requester are the operator's.
func (s *Service) may(ctx context.Context, who audit.Principal, r *Request) error {
	switch {
	case administrator(who):
		return nil
	case !who.Operator:
		return missing()
	case r.Object != "":
		if err := s.Reach.Reach(ctx, who, r.Object); fault.Is(err, fault.UserNotFound) {
			return missing()
		} else if err != nil {
			return err
		}
		return nil
	}
	groups, err := s.Store.ActingGroups(ctx, who.UserID, 0, s.now())
	if err != nil {
		return err
	}
	return r.ofThese(groups)
}

// ofThese returns nil if the groups of an operator, which are sorted, include all of the requester.
func (r *Request) ofThese(groups []string) error {
	for _, group := range r.Groups {
		if _, has := slices.BinarySearch(groups, group); !has {
			return missing()
		}
	}
	return nil
}

func missing() error {
	return fault.New(fault.NotFound, "there is no such request")
}

// List returns up to most open requests that an operator may decide, the oldest first. after is the
// identifier of the last one of the list before, "" for the first list.
func (s *Service) List(ctx context.Context, who audit.Principal, after string, most int) (list []Request, err error) {
	if !administrator(who) && !who.Operator {
		return nil, nil
	}
	after = strings.ToLower(after)
	portion := min(page, most)
	// A list without requests about no user needs no groups.
	groupsOf := sync.OnceValues(func() ([]string, error) { return s.Store.ActingGroups(ctx, who.UserID, 0, s.now()) })
	for {
		var all []Request
		if administrator(who) {
			all, err = s.Store.OpenApprovals(ctx, "", after, portion)
		} else {
			all, err = s.Store.OpenApprovalsFor(ctx, who.UserID, after, portion, s.now())
		}
		if err != nil {
			return nil, err
		}
		for i := range all {
			after = all[i].ID
			if all[i].Object == "" && !administrator(who) {
				groups, err := groupsOf()
				if err != nil {
					return nil, err
				}
				if all[i].ofThese(groups) != nil {
					continue
				}
			}
			list = append(list, all[i])
		}
		if len(all) < portion || len(list) >= most {
			return list[:min(len(list), most)], nil
		}
	}
}

// Read returns a request and its call.
func (s *Service) Read(ctx context.Context, who audit.Principal, id string) (Request, Call, error) {
	r, found, err := s.Store.Approval(ctx, strings.ToLower(id))
	if err == nil && !found {
		err = missing()
	}
	if err == nil {
		err = s.may(ctx, who, &r)
	}
	if err != nil {
		return Request{}, Call{}, err
	}
	c, err := s.open(&r)
	return r, c, err
}

// open returns the call of a request.
func (s *Service) open(r *Request) (Call, error) {
	plain, err := s.Vault.Open(place(r.ID), r.Sealed)
	if err != nil {
		return Call{}, fmt.Errorf("approval: request %s: %w", r.ID, err)
	}
	defer clear(plain)
	var c sealed
	if err := json.Unmarshal(plain, &c); err != nil {
		return Call{}, fmt.Errorf("approval: request %s has an unknown form", r.ID)
	}
	return Call{r.Operation, c.Route, c.Method, c.Target, r.Object, effect.OfNames(c.Effects), c.Value}, nil
}

// Decide approves or refuses a request. The requester may take the request back, but not
// approve it. Faults: object_not_found; access_denied for the own request;
// wrong_operation for one that was decided or needs no approval.
func (s *Service) Decide(ctx context.Context, who audit.Principal, id string, approve bool) (Request, error) {
	r, _, err := s.Read(ctx, who, id)
	if err != nil {
		return Request{}, err
	}
	m := Move{From: []State{Waiting, Approved}, To: Refused, At: s.now(), By: who.Login, Final: true}
	if approve {
		switch {
		case who.UserID == r.Requester:
			return Request{}, fault.New(fault.AccessDenied, "another operator must approve the request: you have made it")
		case !r.Approval:
			return Request{}, fault.New(fault.WrongOperation, "the request needs no approval: it waits for its time")
		}
		m = Move{From: []State{Waiting}, To: Approved, At: s.now(), By: who.Login, Live: true}
	}
	return s.move(ctx, who, r, m)
}

// OfUser returns the open requests about a user that a delay holds, for the user.
func (s *Service) OfUser(ctx context.Context, userID string) ([]Request, error) {
	list, err := s.Store.OpenApprovals(ctx, userID, "", page)
	return slices.DeleteFunc(list, func(r Request) bool { return !r.delayed() }), err
}

func (r *Request) delayed() bool { return !r.DelayedFrom.IsZero() }

// Cancel ends a request about the caller that a delay holds. Faults: object_not_found,
// wrong_operation for one that was carried out or decided.
func (s *Service) Cancel(ctx context.Context, who audit.Principal, id string) (Request, error) {
	r, found, err := s.Store.Approval(ctx, strings.ToLower(id))
	if err == nil && (!found || who.UserID == "" || r.Object != who.UserID || !r.delayed()) {
		err = missing()
	}
	if err != nil {
		return Request{}, err
	}
	return s.move(ctx, who, r, Move{From: []State{Waiting, Approved}, To: Cancelled, At: s.now(), By: who.Login, Final: true})
}

// move changes the state of a request, in one transaction with its audit entry and event.
func (s *Service) move(ctx context.Context, who audit.Principal, r Request, m Move) (after Request, err error) {
	err = s.Store.Atomic(ctx, lock.User(r.Object), func(ctx context.Context) error {
		if !administrator(who) && m.To != Cancelled { // rights are those of this transaction
			if err := s.may(ctx, who, &r); err != nil {
				return err
			}
		}
		var moved bool
		if after, moved, err = s.Store.MoveApproval(ctx, r.ID, m); err != nil {
			return err
		}
		if !moved {
			return fault.New(fault.WrongOperation, "the request was decided, carried out or has expired")
		}
		return s.note(ctx, who, &after)
	})
	return after, err
}

// expire ends a request whose time is over, or whose process has died.
func (s *Service) expire(ctx context.Context, r *Request) error {
	m := Move{From: []State{Waiting, Approved}, To: Expired, At: s.now(), Final: true}
	if r.State == Running {
		m.From, m.To = []State{Running}, Interrupted
	}
	return s.Store.Atomic(ctx, lock.User(r.Object), func(ctx context.Context) error {
		after, moved, err := s.Store.MoveApproval(ctx, r.ID, m)
		if err != nil || !moved {
			return err
		}
		return s.note(ctx, audit.Principal{}, &after)
	})
}

// Sweep ends requests whose time is over and deletes old ones. The server calls it from
// time to time.
func (s *Service) Sweep(ctx context.Context) error {
	for n := page; n == page; {
		list, err := s.Store.DueApprovals(ctx, s.now(), page)
		if err != nil {
			return err
		}
		for i := range list {
			if err := s.expire(ctx, &list[i]); err != nil {
				return err
			}
		}
		n = len(list)
	}
	return s.Store.SweepApprovals(ctx, s.now().Add(-s.Keep))
}

// AuditOperation is the operation of the audit entries of this package. Their object is the
// identifier of the request.
const AuditOperation = "ApprovalRequest"

// note writes the audit entry of a request that has a new state and tells of it, in the
// transaction of ctx. Errors roll it back.
func (s *Service) note(ctx context.Context, who audit.Principal, r *Request) error {
	if err := s.record(ctx, who, r, ""); err != nil {
		return err
	}
	if r.State == Waiting {
		return s.announce(ctx, who, r, r.Approval, r.delayed())
	}
	types := map[State]notify.EventType{Approved: notify.ApprovalGiven, Refused: notify.ApprovalRefused, Cancelled: notify.UserChangeCancelled}
	if types[r.State] == "" {
		return nil
	}
	return fault.Rollback(s.Events.Emit(ctx, notify.Event{Type: types[r.State], UserID: r.Object, Actor: who.UserID, Detail: r.Operation + " " + r.ID}))
}

// record writes the audit entry of a request, in the transaction of ctx.
func (s *Service) record(ctx context.Context, who audit.Principal, r *Request, more string) error {
	detail := string(r.State) + " " + r.Operation
	if r.Object != "" {
		detail += " on " + r.Object
	}
	if r.DecidedBy != "" {
		detail += ", decided by " + notify.OneLine(r.DecidedBy)
	}
	return fault.Rollback(s.Audit.Record(ctx, audit.Entry{
		At: s.now(), Operation: AuditOperation, Phase: audit.Done, Outcome: audit.OK, Object: r.ID, Detail: detail + more, Principal: who,
	}))
}

// announce tells of a request that needs an approval or a delay from now on, in the transaction
// of ctx.
func (s *Service) announce(ctx context.Context, who audit.Principal, r *Request, approval, delay bool) error {
	e := notify.Event{UserID: r.Object, Actor: who.UserID, Detail: r.Operation + " " + r.ID}
	if delay {
		e := e
		e.Type, e.When = notify.UserChangeWaits, r.NotBefore
		if err := s.Events.Emit(ctx, e); err != nil {
			return fault.Rollback(err)
		}
	}
	if !approval {
		return nil
	}
	e.Type = notify.ApprovalRequested
	return fault.Rollback(s.Events.Emit(ctx, e))
}

// now returns the time with the precision of stores.
func (s *Service) now() time.Time { return s.Now().UTC().Truncate(time.Millisecond) }
