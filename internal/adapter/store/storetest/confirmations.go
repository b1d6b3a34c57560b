// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/document"
	"tamga/internal/domain/lease"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/operation"
)

// Quotas that are not reached.
var (
	wideConfirmations = confirm.Quota{Records: 1000, Bytes: 1 << 40}
	wideDocuments     = confirm.DocumentQuotas{User: wideConfirmations, All: confirm.Quota{Records: 1 << 40, Bytes: 1 << 50}}
)

// answers is the rule of the tests.
var answers = confirm.Limit{Wrong: 3, Window: 10 * time.Minute, Closed: 20 * time.Minute}

// confirmationOf returns record n of a user, which expires after twenty minutes.
func confirmationOf(n int, userID string) *confirm.Record {
	r := &confirm.Record{
		ID: fmt.Sprintf("00000000-0000-4000-8000-%012d", n), RefID: fmt.Sprintf("00000000-0000-4000-9000-%012d", n),
		Subject: confirm.Subject{UserID: userID, ClientID: "client", Operator: "operator", SignIn: "sign-in"},
		Purpose: confirm.ForOperation, Action: "SignDocuments", Documents: 3, Bytes: 100, State: confirm.Created,
		CreatedAt: start.Add(time.Duration(n) * time.Second), ConfirmBefore: start.Add(20 * time.Minute),
	}
	r.UpdatedAt = r.CreatedAt
	for i := range r.What {
		r.What[i] = byte(i + n)
	}
	return r
}

var confirmationContent = confirm.StoredContent{Fields: []byte(`{"f":1}`), Shown: []byte(`{"ru":"text"}`), Outline: []byte{4, 5}, Offline: []byte{}, Result: []byte{}, Approval: []byte{}}

func addConfirmation(t testing.TB, s confirm.Store, r *confirm.Record) {
	t.Helper()
	room, err := s.AddConfirmation(t.Context(), r, &confirmationContent, wideConfirmations, wideDocuments)
	must(t, err)
	if room != confirm.Added {
		t.Fatal("a wide quota has no room")
	}
}

// challengeOf returns the first challenge of a record.
func challengeOf(at time.Time) confirm.Challenge {
	return confirm.Challenge{Method: "otpviasms", Address: "79161234567", Label: "***4567", Number: "07", At: at, AnswerBefore: at.Add(5 * time.Minute)}
}

// moveTo returns a move that a service makes.
func moveTo(to confirm.State, at time.Time, from ...confirm.State) confirm.Move {
	return confirm.Move{From: from, To: to, At: at}
}

// confirmed adds a record and confirms it until five minutes after at.
func confirmed(t testing.TB, s store.Confirmations, r *confirm.Record, at time.Time) {
	t.Helper()
	addConfirmation(t, s, r)
	_, begun, err := s.BeginChallenge(t.Context(), r.ID, challengeOf(at))
	must(t, err)
	m := moveTo(confirm.Confirmed, at, confirm.Challenged)
	m.CompleteBefore = at.Add(5 * time.Minute)
	_, moved, err := s.MoveConfirmation(t.Context(), r.ID, m)
	must(t, err)
	if !begun || !moved {
		t.Fatalf("begun %v, confirmed %v", begun, moved)
	}
}

func testConfirmations(t *testing.T, open func(t *testing.T) *store.DB) {
	const user, other = "user", "other"
	later := start.Add(time.Minute)
	fresh := func(db *store.DB) store.Confirmations { return store.Confirmations{DB: db} }
	cases{
		{"Kept", func(t *testing.T, db *store.DB) {
			s := fresh(db)
			r := confirmationOf(1, user)
			if _, found, err := s.Confirmation(t.Context(), r.ID); found || err != nil {
				t.Errorf("before: found %v, %v", found, err)
			}
			addConfirmation(t, s, r)
			_, begun, err := s.BeginChallenge(t.Context(), r.ID, challengeOf(later))
			must(t, err)
			if !begun {
				t.Fatal("no challenge")
			}
			r.State, r.Method, r.Address, r.Label, r.Number, r.Round = confirm.Challenged, "otpviasms", "79161234567", "***4567", "07", 1
			r.SentAt, r.UpdatedAt, r.AnswerBefore = later, later, later.Add(5*time.Minute)
			must(t, s.SetCallback(t.Context(), r.ID, "https://client.example/first"))
			must(t, s.SetCallback(t.Context(), r.ID, "https://client.example/called"))
			r.Callback = "https://client.example/called"
			m := moveTo(confirm.Confirmed, later, confirm.Challenged)
			m.Declined, m.CompleteBefore, m.Approval, m.Round, m.Live = []int{0, 2}, later.Add(time.Minute), []byte("signed"), 1, true
			moved, ok, err := s.MoveConfirmation(t.Context(), r.ID, m)
			must(t, err)
			r.State, r.Declined, r.ConfirmedAt, r.CompleteBefore = confirm.Confirmed, []int{0, 2}, later, later.Add(time.Minute)
			if d := cmp.Diff(*r, moved); !ok || d != "" {
				t.Errorf("moved %v: %s", ok, d)
			}
			must(t, s.SetCallback(t.Context(), r.ID, "https://client.example/late")) // the client has been called
			for name, find := range map[string]func(context.Context, string) (confirm.Record, bool, error){r.ID: s.Confirmation, r.RefID: s.ConfirmationByRef} {
				got, found, err := find(t.Context(), name)
				must(t, err)
				if d := cmp.Diff(*r, got); !found || d != "" {
					t.Errorf("%s: found %v: %s", name, found, d)
				}
				if _, found, err := find(t.Context(), "a\x00\xff"); found || err != nil {
					t.Errorf("hostile name: %v, %v", found, err)
				}
			}
			must(t, s.SetOffline(t.Context(), r.ID, []byte("former")))
			must(t, s.SetOffline(t.Context(), r.ID, []byte("offline")))
			must(t, s.SetOffline(t.Context(), "missing", []byte("offline")))
			content, found, err := s.ConfirmationContent(t.Context(), r.ID)
			must(t, err)
			want := confirmationContent
			want.Offline = []byte("offline")
			want.Approval = []byte("signed")
			if d := cmp.Diff(want, content); !found || d != "" {
				t.Error(d)
			}
			if _, err := s.AddConfirmation(t.Context(), r, &confirmationContent, wideConfirmations, wideDocuments); err == nil {
				t.Error("the same identifier was added twice")
			}
		}},
		{"Challenges", func(t *testing.T, db *store.DB) {
			s := fresh(db)
			r := confirmationOf(1, user)
			addConfirmation(t, s, r)
			minute := time.Minute
			type step struct {
				name   string
				before int
				repeat bool
				at     time.Time
				sent   time.Time // SentBefore
				want   bool
			}
			for _, c := range []step{
				{"another round was read", 1, false, later, later, false},
				{"the first", 0, false, later, later, true},
				{"the first again", 0, false, later, later, false},
				{"repeated too early", 1, true, later.Add(minute - 1e6), later.Add(-1e6), false},
				{"repeated", 1, true, later.Add(minute), later, true},
				{"another method", 1, false, later.Add(minute), later.Add(minute), true},
				{"repeated with the round before", 1, true, later.Add(3 * minute), later.Add(2 * minute), false},
				{"expired", 2, true, start.Add(20 * minute), start.Add(19 * minute), false},
			} {
				if c.name == "repeated" {
					if after, ok, err := s.CountAttempt(t.Context(), r.RefID, user, "", c.at, 5); after.Attempts != 1 || !ok || err != nil {
						t.Fatalf("attempt: %d, %v, %v", after.Attempts, ok, err)
					}
				}
				ch := challengeOf(c.at)
				ch.Before, ch.Repeat, ch.SentBefore = c.before, c.repeat, c.sent
				_, got, err := s.BeginChallenge(t.Context(), r.ID, ch)
				must(t, err)
				if got != c.want {
					t.Errorf("%s: %v, want %v", c.name, got, c.want)
				}
				now, _, err := s.Confirmation(t.Context(), r.ID)
				must(t, err)
				if c.name == "repeated" && (now.Round != 1 || now.Attempts != 1 || now.Resends != 1) {
					t.Errorf("repeated: round %d, attempts %d, resends %d", now.Round, now.Attempts, now.Resends)
				}
				if c.name == "another method" && (now.Round != 2 || now.Attempts != 0 || now.Resends != 0) {
					t.Errorf("another method: round %d, attempts %d, resends %d", now.Round, now.Attempts, now.Resends)
				}
			}
		}},
		{"ChallengesOfClosedMethods", func(t *testing.T, db *store.DB) {
			s := fresh(db)
			for range answers.Wrong {
				_, err := s.CountWrong(t.Context(), user, "otpviasms", later, answers)
				must(t, err)
			}
			begin := func(n int, userID, method string, at time.Time, want bool) {
				t.Helper()
				r := confirmationOf(n, userID)
				r.ConfirmBefore = start.Add(time.Hour)
				addConfirmation(t, s, r)
				c := challengeOf(at)
				c.Method = method
				_, got, err := s.BeginChallenge(t.Context(), r.ID, c)
				must(t, err)
				if got != want {
					t.Errorf("%s of %s at %v: %v, want %v", method, userID, at, got, want)
				}
			}
			begin(1, user, "otpviasms", later.Add(answers.Closed-time.Millisecond), false)
			begin(2, user, "otpviasms", later.Add(answers.Closed), true)
			begin(3, user, "otpviaemail", later, true)
			begin(4, other, "otpviasms", later, true)
		}},
		{"Attempts", func(t *testing.T, db *store.DB) {
			s := fresh(db)
			r := confirmationOf(1, user)
			addConfirmation(t, s, r)
			count := func(userID, clientID string, at time.Time, want int) {
				t.Helper()
				after, ok, err := s.CountAttempt(t.Context(), r.RefID, userID, clientID, at, 2)
				must(t, err)
				if after.Attempts != want || ok != (want > 0) || ok && after.ID != r.ID {
					t.Errorf("%s of %s at %v: %d, %v; want %d", userID, clientID, at, after.Attempts, ok, want)
				}
			}
			count(user, "", later, 0) // no challenge
			fields, _, err := s.BeginChallenge(t.Context(), r.ID, challengeOf(later))
			must(t, err)
			if !bytes.Equal(fields, confirmationContent.Fields) {
				t.Errorf("the fields are %q", fields)
			}
			count(other, "", later, 0)
			count(user, "another", later, 0)
			count(user, "", later.Add(5*time.Minute), 0) // too late
			count(user, "", later, 1)
			count(user, "client", later, 2)
			count(user, "client", later, 0) // the limit
			r = confirmationOf(2, user)
			addConfirmation(t, s, r)
			_, _, err = s.BeginChallenge(t.Context(), r.ID, challengeOf(later))
			must(t, err)
			for range answers.Wrong {
				_, err := s.CountWrong(t.Context(), user, "otpviasms", later, answers)
				must(t, err)
			}
			count(user, "", later, 0) // closed
			must(t, s.ForgiveAnswers(t.Context(), user))
			count(user, "", later, 1)
		}},
		{"Moves", func(t *testing.T, db *store.DB) {
			s := fresh(db)
			n := 0
			for _, from := range confirm.States() {
				for _, wanted := range confirm.States() {
					n++
					r := confirmationOf(n, user)
					r.State = from
					addConfirmation(t, s, r)
					if from.Final() {
						// The store leaves a record that has ended alone, even if it is asked for
						// its state.
						continue
					}
					_, moved, err := s.MoveConfirmation(t.Context(), r.ID, moveTo(confirm.Cancelled, later, wanted))
					must(t, err)
					if moved != (from == wanted) {
						t.Errorf("a move from %s of a record in %s: %v", wanted, from, moved)
					}
				}
			}
			r := confirmationOf(1000, user)
			addConfirmation(t, s, r)
			_, _, err := s.BeginChallenge(t.Context(), r.ID, challengeOf(later))
			must(t, err)
			for name, spoil := range map[string]func(m *confirm.Move){
				"another round": func(m *confirm.Move) { m.Round = 2 },
				"expired":       func(m *confirm.Move) { m.Live, m.At = true, r.ConfirmBefore },
			} {
				m := moveTo(confirm.Declined, later, confirm.Challenged)
				spoil(&m)
				if _, moved, err := s.MoveConfirmation(t.Context(), r.ID, m); moved || err != nil {
					t.Errorf("%s: %v, %v", name, moved, err)
				}
			}
			must(t, s.SetOffline(t.Context(), r.ID, []byte("offline")))
			m := moveTo(confirm.Declined, later, confirm.Created, confirm.Challenged)
			m.Round, m.Live, m.Code, m.Message = 1, true, "code", "message"
			got, moved, err := s.MoveConfirmation(t.Context(), r.ID, m)
			must(t, err)
			if !moved || got.State != confirm.Declined || !got.EndedAt.Equal(later) || got.Code != "code" || got.Message != "message" {
				t.Errorf("declined: %v, %+v", moved, got)
			}
			content, _, err := s.ConfirmationContent(t.Context(), r.ID)
			must(t, err)
			if len(content.Offline) != 0 || len(content.Fields) == 0 {
				t.Errorf("after the end: %+v", content)
			}
			if _, moved, err := s.MoveConfirmation(t.Context(), r.ID, moveTo(confirm.Cancelled, later, confirm.Declined)); moved || err != nil {
				t.Errorf("after the end: %v, %v", moved, err)
			}
			if _, _, err := s.MoveConfirmation(t.Context(), r.ID, moveTo(confirm.Cancelled, later)); err == nil {
				t.Error("a move from no state was made")
			}
		}},
		{"Quotas", func(t *testing.T, db *store.DB) {
			s := fresh(db)
			q := confirm.Quota{Records: 2, Bytes: 250}
			add := func(n int, userID string, purpose confirm.Purpose, bytes int64, want bool) {
				t.Helper()
				r := confirmationOf(n, userID)
				r.Bytes, r.Purpose = bytes, purpose
				room, err := s.AddConfirmation(t.Context(), r, &confirmationContent, q, wideDocuments)
				must(t, err)
				got := room == confirm.Added
				if _, found, err := s.Confirmation(t.Context(), r.ID); got != want || found != want || err != nil {
					t.Errorf("record %d: added %v, found %v, want %v, %v", n, got, found, want, err)
				}
			}
			add(1, user, confirm.ForOperation, 251, false)
			add(1, user, confirm.ForOperation, 200, true)
			add(2, user, confirm.ForOperation, 51, false)
			add(2, user, confirm.ForOperation, 50, true)
			add(3, user, confirm.ForOperation, 0, false)
			add(3, user, confirm.ForSignIn, 0, true)
			add(4, other, confirm.ForOperation, 0, true)
			_, moved, err := s.MoveConfirmation(t.Context(), confirmationOf(1, user).ID, moveTo(confirm.Cancelled, later, confirm.Created))
			must(t, err)
			if !moved {
				t.Fatal("not cancelled")
			}
			add(5, user, confirm.ForOperation, 200, true) // room again
			add(6, user, confirm.ForOperation, 0, false)
			list, err := s.MoveConfirmations(t.Context(), user, time.Time{}, moveTo(confirm.Cancelled, later, confirm.Created), 10)
			must(t, err)
			if len(list) != 3 {
				t.Errorf("%d records were cancelled, want 3", len(list))
			}
			add(7, user, confirm.ForOperation, 250, true)
			add(8, other, confirm.ForOperation, 0, true)
			add(9, other, confirm.ForOperation, 0, false)
		}},
		{"QuotaOfDocuments", func(t *testing.T, db *store.DB) {
			s, documents := fresh(db), store.Documents{DB: db}
			q := confirm.DocumentQuotas{User: confirm.Quota{Records: 3, Bytes: 300}, All: wideDocuments.All}
			stored := document.Quotas{All: document.Quota{Objects: 1 << 40, Bytes: 1 << 50}, Own: document.Quota{Objects: 3, Bytes: 300}}
			add := func(n int, purpose confirm.Purpose, bytes int64, want confirm.Room) {
				t.Helper()
				r := confirmationOf(n, user)
				r.Bytes, r.Purpose = bytes, purpose
				room, err := s.AddConfirmation(t.Context(), r, &confirmationContent, wideConfirmations, q)
				must(t, err)
				if _, found, err := s.Confirmation(t.Context(), r.ID); room != want || found != (want == confirm.Added) || err != nil {
					t.Errorf("record %d: %v, found %v, want %v, %v", n, room, found, want, err)
				}
			}
			upload := func(n int, bytes int64, want bool) {
				t.Helper()
				id := fmt.Sprintf("00000000-0000-4000-a000-%012d", n)
				added, err := documents.AddUploads(t.Context(), []document.Upload{{ID: id, UserID: user, Bytes: id, Counted: bytes}}, start, later, stored)
				must(t, err)
				if added != want {
					t.Errorf("upload %d: %v, want %v", n, added, want)
				}
			}
			upload(1, 100, true)
			add(1, confirm.ForOperation, 100, confirm.Added)
			upload(2, 101, false) // 300 bytes
			add(2, confirm.ForOperation, 101, confirm.NoDocuments)
			add(2, confirm.ForOperation, 0, confirm.Added)
			upload(3, 1, false) // three objects
			add(3, confirm.ForOperation, 0, confirm.NoDocuments)
			add(4, confirm.ForSignIn, 0, confirm.Added) // is no document
			list, err := s.MoveConfirmations(t.Context(), user, time.Time{}, moveTo(confirm.Cancelled, later, confirm.Created), 10)
			must(t, err)
			if len(list) != 3 {
				t.Errorf("%d records were cancelled, want 3", len(list))
			}
			upload(4, 200, true)
			add(5, confirm.ForOperation, 0, confirm.Added)
			upload(5, 0, false)
			// All users together.
			q.User, q.All = wideDocuments.User, confirm.Quota{Records: 3, Bytes: 1 << 40}
			add(6, confirm.ForOperation, 0, confirm.NoDocuments)
			q.All.Records = 4
			add(6, confirm.ForOperation, 0, confirm.Added)
		}},
		{"QuotaAtOnce", func(t *testing.T, db *store.DB) {
			s := fresh(db)
			added := make([]bool, 40)
			for _, err := range together(len(added), func(i int) error {
				room, err := s.AddConfirmation(t.Context(), confirmationOf(i, user), &confirmationContent, confirm.Quota{Records: 1, Bytes: 1 << 20}, wideDocuments)
				added[i] = err == nil && room == confirm.Added
				return err
			}) {
				must(t, err)
			}
			if n := count(added); n != 1 {
				t.Errorf("%d records in a quota of one", n)
			}
		}},
		{"Expiry", func(t *testing.T, db *store.DB) {
			s := fresh(db)
			expired := moveTo(confirm.Expired, start, confirm.Created, confirm.Challenged, confirm.Confirmed)
			expire := func(userID string, at time.Time, limit int, want ...int) {
				t.Helper()
				expired.At = at
				list, err := s.MoveConfirmations(t.Context(), userID, at, expired, limit)
				must(t, err)
				ids := map[string]bool{}
				for _, r := range list {
					ids[r.ID] = r.State == confirm.Expired
				}
				if len(ids) != len(want) {
					t.Errorf("%s at %v: %d expired, want %d", userID, at, len(ids), len(want))
				}
				for _, n := range want {
					if !ids[confirmationOf(n, "").ID] {
						t.Errorf("%s at %v: record %d has not expired", userID, at, n)
					}
				}
			}
			addConfirmation(t, s, confirmationOf(1, user))
			addConfirmation(t, s, confirmationOf(2, other))
			confirmed(t, s, confirmationOf(3, user), later)
			confirmed(t, s, confirmationOf(4, user), later)
			operations := store.Operations{DB: db}
			added, err := operations.AddOperation(t.Context(), operationOf(4), operation.Quota(wide))
			must(t, err)
			_, leased, err := operations.ClaimOperation(t.Context(), operationOf(4).ID, lease.Lease{Token: "a", Until: later.Add(10 * time.Minute)}, later)
			must(t, err)
			if !added || !leased {
				t.Fatalf("added %v, leased %v", added, leased)
			}
			expire("", later.Add(5*time.Minute-time.Millisecond), 10)
			expire("", later.Add(5*time.Minute), 10, 3) // and not 4, whose operation is being carried out
			expire(user, later.Add(10*time.Minute-time.Millisecond), 10)
			expire("", later.Add(10*time.Minute), 10, 4)
			end := start.Add(20 * time.Minute)
			expire("", end.Add(-time.Millisecond), 10)
			expire(user, end, 10, 1)
			expire("", end, 10, 2)
			for n := 5; n < 8; n++ {
				addConfirmation(t, s, confirmationOf(n, user))
			}
			list, err := s.MoveConfirmations(t.Context(), "", end, expired, 2)
			must(t, err)
			if len(list) != 2 {
				t.Errorf("%d in a portion of 2", len(list))
			}
			if _, err := s.MoveConfirmations(t.Context(), "", time.Time{}, expired, 2); err == nil {
				t.Error("the records of all users were moved")
			}
			must(t, s.SweepConfirmations(t.Context(), end))
			for n, want := range map[int]bool{1: true, 2: true, 3: false, 4: false, 7: true} {
				_, found, err := s.Confirmation(t.Context(), confirmationOf(n, "").ID)
				must(t, err)
				_, content, err := s.ConfirmationContent(t.Context(), confirmationOf(n, "").ID)
				must(t, err)
				if found != want || content != want {
					t.Errorf("record %d after the sweep: %v, content %v; want %v", n, found, content, want)
				}
			}
		}},
		{"Open", func(t *testing.T, db *store.DB) {
			s := fresh(db)
			for n := 1; n <= 5; n++ {
				addConfirmation(t, s, confirmationOf(n, user))
			}
			addConfirmation(t, s, confirmationOf(6, other))
			_, _, err := s.MoveConfirmation(t.Context(), confirmationOf(2, "").ID, moveTo(confirm.Cancelled, later, confirm.Created))
			must(t, err)
			list := func(after int, limit int, at time.Time, want ...int) {
				t.Helper()
				id := ""
				if after > 0 {
					id = confirmationOf(after, "").ID
				}
				got, err := s.OpenConfirmations(t.Context(), user, id, at, limit)
				must(t, err)
				var ids, wanted []string
				for _, r := range got {
					ids = append(ids, r.ID)
				}
				for _, n := range want {
					wanted = append(wanted, confirmationOf(n, "").ID)
				}
				if d := cmp.Diff(wanted, ids); d != "" {
					t.Errorf("after %d: %s", after, d)
				}
			}
			list(0, 10, later, 1, 3, 4, 5)
			list(0, 2, later, 1, 3)
			list(3, 2, later, 4, 5)
			list(2, 1, later, 3) // a record that has ended since
			list(5, 10, later)
			list(6, 10, later) // of another user
			list(0, 10, start.Add(20*time.Minute))
		}},
		{"SpentOnce", func(t *testing.T, db *store.DB) {
			s := fresh(db)
			failed := errors.New("beside failed")
			spend := func(r *confirm.Record, fails error) (spent bool, err error) {
				m := moveTo(confirm.Completed, later, confirm.Confirmed)
				m.Proof = []byte("proof")
				err = s.Atomic(t.Context(), lock.Set{}, func(ctx context.Context) (err error) {
					if _, spent, err = s.MoveConfirmation(ctx, r.ID, m); err != nil || !spent {
						return err
					}
					return fails
				})
				return spent && err == nil, err
			}
			is := func(r *confirm.Record, state confirm.State, proof string) {
				t.Helper()
				got, _, err := s.Confirmation(t.Context(), r.ID)
				must(t, err)
				content, _, err := s.ConfirmationContent(t.Context(), r.ID)
				must(t, err)
				if got.State != state || got.EndedAt.Equal(later) != state.Final() || string(content.Result) != proof {
					t.Errorf("%s at %v with %q, want %s with %q", got.State, got.EndedAt, content.Result, state, proof)
				}
			}
			r := confirmationOf(1, user)
			confirmed(t, s, r, later)
			if spent, err := spend(r, failed); spent || !errors.Is(err, failed) {
				t.Errorf("with a failure beside: %v, %v", spent, err)
			}
			is(r, confirm.Confirmed, "")
			for i, want := range []bool{true, false} {
				if spent, err := spend(r, nil); spent != want || err != nil {
					t.Errorf("spending %d: %v, %v", i, spent, err)
				}
			}
			is(r, confirm.Completed, "proof")
			r = confirmationOf(2, user)
			confirmed(t, s, r, later)
			_, _, err := s.MoveConfirmation(t.Context(), r.ID, moveTo(confirm.Cancelled, later, confirm.Confirmed))
			must(t, err)
			if spent, err := spend(r, nil); spent || err != nil {
				t.Errorf("a cancelled record was spent: %v, %v", spent, err)
			}
			is(r, confirm.Cancelled, "")
		}},
		{"WrongAnswers", func(t *testing.T, db *store.DB) {
			s := fresh(db)
			begin := func(userID, method string, at time.Time, want bool) {
				t.Helper()
				got, err := s.CountWrong(t.Context(), userID, method, at, answers)
				must(t, err)
				if got != want {
					t.Errorf("%s %s at %v: %v, want %v", userID, method, at, got, want)
				}
			}
			closed := func(method string, want time.Time) {
				t.Helper()
				got, err := s.ClosedUntil(t.Context(), user, method)
				must(t, err)
				if !got.Equal(want) {
					t.Errorf("%s is closed until %v, want %v", method, got, want)
				}
			}
			begin(user, "sms", later, true)
			begin(user, "sms", later, true)
			closed("sms", time.Time{})
			begin(user, "sms", later, true)
			closed("sms", later.Add(answers.Closed))
			begin(user, "sms", later, false)
			begin(user, "email", later, true)
			begin(other, "sms", later, true)
			begin(user, "sms", later.Add(answers.Closed-time.Millisecond), false)
			begin(user, "sms", later.Add(answers.Closed), true)
			must(t, s.ForgiveAnswers(t.Context(), user))
			for range answers.Wrong {
				begin(user, "sms", later, true)
			}
			must(t, s.SweepAnswers(t.Context(), later.Add(time.Minute), later.Add(answers.Closed-1e6)))
			begin(user, "sms", later, false)
			must(t, s.SweepAnswers(t.Context(), later.Add(time.Minute), later.Add(answers.Closed)))
			begin(user, "sms", later, true)
		}},
		{"WrongAnswersAtOnce", func(t *testing.T, db *store.DB) {
			s := fresh(db)
			counted := make([]bool, 40)
			for _, err := range together(len(counted), func(i int) (err error) {
				counted[i], err = s.CountWrong(t.Context(), user, "sms", later, answers)
				return err
			}) {
				must(t, err)
			}
			if n := count(counted); n != answers.Wrong {
				t.Errorf("%d answers were counted, want %d", n, answers.Wrong)
			}
		}},
	}.run(t, open)
}

// count returns how many are true.
func count(list []bool) (n int) {
	for _, v := range list {
		if v {
			n++
		}
	}
	return n
}
