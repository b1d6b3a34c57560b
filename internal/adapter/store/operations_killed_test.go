// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	osexec "os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/signing"
	"tamga/internal/testsize"
	"tamga/pki/suite"
)

// A transition is one of the state machine of package operation, with one of its causes. A process makes step, and may be
// killed in it; another one makes step again.
type transition struct {
	number int
	name   string
	begin  func(s *stage)                     // makes what is there before it
	step   func(s *stage) (string, error)     // returns what the client or the user learns
	want   operation.State                    // after step, however often it was begun
	loop   bool                               // carried out without a request
	down   string                             // the code of the fault that the keys answer in step; "": they work
	change func(settings *operation.Settings) // nil: the settings of the other tests
}

// killedTransitions has the transitions of the state machine in the comment of package operation. Their numbers are: 1 to
// an end at once, 2 to Created, 3 to Confirmed for later, 4 from Created to Confirmed, 5 from Created to an end, 6 claim
// and release, 7 from Confirmed to Completed, 8 to Error, 9 to Cancelled, 10 to Expired.
var killedTransitions = []transition{
	{number: 1, name: "at once", step: (*stage).order, want: operation.Completed},
	{number: 1, name: "at once, no document is there", begin: func(s *stage) { s.Missing = true }, step: (*stage).order, want: operation.Error},
	{number: 2, name: "created", begin: func(s *stage) { s.Force = true }, step: (*stage).order, want: operation.Created},
	{number: 3, name: "for later", begin: func(s *stage) { s.Async = true }, step: (*stage).order, want: operation.Confirmed, loop: true},
	{number: 4, name: "confirmed", begin: (*stage).challenged, step: (*stage).answer, want: operation.Confirmed},
	{number: 4, name: "confirmed, carries itself out", begin: later((*stage).challenged), step: (*stage).answer, want: operation.Confirmed, loop: true},
	{number: 4, name: "confirmed by a device", begin: func(s *stage) { s.Device = true; (*stage).challenged(s) }, step: (*stage).decision, want: operation.Confirmed},
	{number: 5, name: "declined", begin: (*stage).challenged, step: (*stage).decline, want: operation.Declined},
	{number: 5, name: "cancelled", begin: (*stage).challenged, step: (*stage).cancel, want: operation.Cancelled},
	{number: 5, name: "cancelled with the account", begin: (*stage).challenged, step: (*stage).cancelAll, want: operation.Cancelled},
	{number: 5, name: "expired", begin: after((*stage).challenged, 21*time.Minute), step: (*stage).sweep, want: operation.Expired},
	{number: 5, name: "wrong answers", begin: (*stage).almostExhausted, step: (*stage).answerWrong, want: operation.Error},
	{number: 6, name: "claimed by a request, released", begin: (*stage).confirmed, step: (*stage).carryOut, want: operation.Confirmed, down: fault.Unavailable},
	{number: 6, name: "claimed by the loop, extended, put off", begin: (*stage).accepted, step: (*stage).next, want: operation.Confirmed, loop: true, down: fault.Unavailable},
	{number: 7, name: "carried out by a request", begin: (*stage).confirmed, step: (*stage).carryOut, want: operation.Completed},
	{number: 7, name: "carried out by the loop", begin: (*stage).accepted, step: (*stage).next, want: operation.Completed, loop: true},
	{number: 7, name: "confirmed and carried out by the loop", begin: later((*stage).confirmed), step: (*stage).next, want: operation.Completed, loop: true},
	{number: 7, name: "an act with changes of its own", begin: (*stage).acted, step: (*stage).act, want: operation.Completed},
	{number: 8, name: "refused for good", begin: later((*stage).confirmed), step: (*stage).next, want: operation.Error, loop: true, down: fault.InvalidCertificate},
	{number: 8, name: "without attempts left", begin: (*stage).accepted, step: (*stage).next, want: operation.Error, loop: true, down: fault.Unavailable,
		change: func(s *operation.Settings) { s.Attempts = 1 }},
	{number: 9, name: "cancelled, for later", begin: (*stage).accepted, step: (*stage).cancel, want: operation.Cancelled},
	{number: 9, name: "cancelled after the confirmation", begin: (*stage).confirmed, step: (*stage).cancel, want: operation.Cancelled},
	{number: 9, name: "cancelled with the account after the confirmation", begin: later((*stage).confirmed), step: (*stage).cancelAll, want: operation.Cancelled},
	{number: 10, name: "expired, for later", begin: after((*stage).accepted, 21*time.Minute), step: (*stage).sweep, want: operation.Expired},
	{number: 10, name: "expired after the confirmation", begin: after((*stage).confirmed, 6*time.Minute), step: (*stage).sweep, want: operation.Expired},
}

// later has an operation carried out without a request.
func later(begin func(s *stage)) func(s *stage) {
	return func(s *stage) {
		s.Async = true
		begin(s)
	}
}

func after(begin func(s *stage), d time.Duration) func(s *stage) {
	return func(s *stage) {
		begin(s)
		s.pass(d)
	}
}

// scene is what a process knows of the operation that it works on: it is in the memory of the client.
type scene struct {
	User                  string
	Async, Force, Missing bool
	Device                bool   // the user has a device
	Act                   bool   // the operation adds a group with the name of the user, and signs nothing
	Ref                   string // of the stored document
	ID                    string // "" before there is an operation
	RefID                 string // of its challenge
}

// killedOrder in the environment makes TestKilledProcess a process that is killed. Its value is a killOrder.
const killedOrder = "TAMGA_TEST_KILLED_PROCESS"

type killOrder struct {
	URL, Dir, Done string // Done: the file of the answer
	Process        uint32
	Now            time.Time
	Transition, At int // the process is killed at this point; points have numbers from 0
	Scene          scene
}

// stage is what a process has: services, and the operation of a scene.
type stage struct {
	*desk
	scene
	transition *transition
	o          *signing.Operations
	answers    *signing.Answers
	acting     *operation.Service
}

// newStage returns a stage. at is called at each point.
func newStage(t *testing.T, db *store.DB, dir string, number uint32, c *transition, at func(string)) *stage {
	s := &stage{desk: deskAt(t, db, dir, suite.GOST2012x256, number), transition: c}
	s.keys.rand, s.tells, s.at = s.random(1), true, at
	s.keys.meanwhile = func() { at("before the key is used") }
	if c.change != nil {
		c.change(&s.settings)
	}
	return s
}

// start starts a process.
func (s *stage) start() {
	s.who.UserID, s.device = s.User, s.Device
	s.o = s.live()
	s.confirm = s.service
	s.acting = s.acts((&founding{d: s.desk, groups: store.Users{DB: s.records.DB}}).kind(1))
	s.answers = &signing.Answers{Store: store.Answers{DB: s.records.DB}, Blobs: s.o.Signer.Blobs, Spool: s.spool, Vault: s.ring, Now: s.clock, Rand: s.random(2)}
}

// run makes the step of the transition. The fault that the keys answer is no error.
func (s *stage) run() (answer string, err error) {
	if s.transition.down != "" {
		s.keys.down = fault.New(s.transition.down, "out of order")
		defer func() { s.keys.down = nil }()
	}
	answer, err = s.transition.step(s)
	if s.transition.down != "" && fault.Is(err, s.transition.down) {
		return "", nil
	}
	return answer, err
}

// once makes a request with an Idempotency-Key.
func (s *stage) once(key string, do func(keep operation.Keep) (*operation.Operation, error)) (answer string, err error) {
	ctx := s.t.Context()
	turn, wait, err := s.answers.Begin(ctx, s.User, key, []byte(key))
	if err != nil || wait {
		return "", errors.Join(err, fmt.Errorf("another request with the key: %v", wait))
	}
	defer turn.Close()
	if _, body, ok := turn.Kept(); ok {
		var text strings.Builder
		_, err := body.WriteTo(&text)
		return text.String(), err
	}
	op, err := do(func(ctx context.Context, op *operation.Operation) (func(context.Context) error, error) {
		answer = s.seen(op)
		record, err := turn.Keep(ctx, []byte("head"), strings.NewReader(answer))
		return func(ctx context.Context) error { return record(ctx, nil) }, err
	})
	if err != nil {
		if e := turn.Release(ctx); e != nil {
			s.t.Error(e)
		}
		return "", err
	}
	return answer, op.Close()
}

func (s *stage) order() (string, error) {
	order := s.desk.order(s.o)
	order.Callback, order.Async, order.ForceConfirmation = callbackURL, s.Async, s.Force
	order.Inputs[1].RefID = s.Ref
	if s.Missing {
		order.Inputs = []signing.Input{{RefID: "00000000-0000-4000-8000-00000000dead"}, {RefID: "00000000-0000-4000-8000-00000000beef"}}
	}
	return s.once("order", func(keep operation.Keep) (*operation.Operation, error) {
		order.Keep = keep
		return s.o.Start(s.t.Context(), s.who, order)
	})
}

func (s *stage) carryOut() (string, error) {
	return s.once("carry out", func(keep operation.Keep) (*operation.Operation, error) {
		o := confirmedOrder(s.ID)
		o.Keep = keep
		return s.o.Confirmed(s.t.Context(), s.who, o)
	})
}

func (s *stage) answer() (string, error) {
	p, err := s.service.Answer(s.t.Context(), s.who, s.RefID, "123456")
	return string(p.Record.State), err
}

// decision approves on the device.
func (s *stage) decision() (string, error) {
	r, err := s.service.Find(s.t.Context(), s.who, s.ID)
	if err != nil {
		return "", err
	}
	signed, err := json.Marshal(confirm.Decision{UserID: s.User, Kid: "kid", ID: s.ID, What: r.What[:], Approved: true, SignedAt: s.clock()})
	if err != nil {
		return "", err
	}
	r, err = s.service.Approve(s.t.Context(), signed)
	return string(r.State), err
}

func (s *stage) act() (string, error) {
	op, _, err := s.acting.CarryOut(s.t.Context(), s.who, claim(s.ID))
	if err != nil {
		return "", err
	}
	return string(op.Answer), op.Close()
}

func (s *stage) answerWrong() (string, error) {
	_, err := s.service.Answer(s.t.Context(), s.who, s.RefID, "000000")
	if fault.Is(err, fault.MaxAttempts) {
		return fault.MaxAttempts, nil
	}
	return "", err
}

func (s *stage) decline() (string, error) {
	r, err := s.service.Decline(s.t.Context(), s.who, s.ID)
	return string(r.State), err
}

func (s *stage) cancel() (string, error) { return "", s.o.Cancel(s.t.Context(), s.who, s.ID) }

func (s *stage) cancelAll() (string, error) {
	return "", s.service.CancelAll(s.t.Context(), s.who, s.User, "the password was changed")
}

func (s *stage) sweep() (string, error) {
	ctx := s.t.Context()
	return "", errors.Join(s.service.Sweep(ctx), s.o.Sweep(ctx))
}

func (s *stage) next() (string, error) {
	_, err := s.o.Next(s.t.Context())
	if s.transition.down != "" { // it is for the operator
		err = nil
	}
	return "", err
}

// ordered orders an operation.
func (s *stage) ordered() {
	answer, err := s.order()
	s.must(err)
	s.ID, _, _ = strings.Cut(answer, " ")
}

// accepted has an operation that is carried out later.
func (s *stage) accepted() {
	s.Async = true
	s.ordered()
}

// challenged has an operation that waits for an answer of its user.
func (s *stage) challenged() {
	s.start() // with the methods of the user
	s.Force = true
	s.ordered()
	s.challenge()
}

func (s *stage) challenge() {
	ask := confirm.Ask{ID: s.ID, Callback: callbackURL}
	if s.Device {
		ask.Method, ask.Address = "mydss", "kid"
	}
	p, err := s.service.Challenge(s.t.Context(), s.who, ask)
	s.must(err)
	s.RefID = p.Record.RefID
}

// acted has an act that is confirmed.
func (s *stage) acted() {
	s.Act = true
	s.ID = found(s.desk, s.acting, s.User)
	s.challenge()
	_, err := s.answer()
	s.must(err)
}

func (s *stage) confirmed() {
	s.challenged()
	_, err := s.answer()
	s.must(err)
}

func (s *stage) almostExhausted() {
	s.challenged()
	for range confirm.DefaultSettings().Codes.Attempts - 1 {
		_, err := s.answerWrong()
		s.must(err)
	}
}

// TestKilledProcess is a process of TestKilled. Without an order there is nothing to do.
func TestKilledProcess(t *testing.T) {
	text := os.Getenv(killedOrder)
	if text == "" {
		return
	}
	var k killOrder
	if err := json.Unmarshal([]byte(text), &k); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), store.Options{URL: k.URL, Now: func() time.Time { return k.Now }})
	if err != nil {
		t.Fatal(err)
	}
	at, begin := dies(k.At)
	store.OnStatements(db, at)
	s := newStage(t, db, k.Dir, k.Process, &killedTransitions[k.Transition], at)
	s.now, s.scene = k.Now, k.Scene
	s.start()
	begin()
	answer, err := s.run()
	s.must(err)
	at("before the answer")
	s.must(os.WriteFile(k.Done, []byte(answer), 0o600))
	s.must(db.Close())
}

// dies returns a function that kills this process when it is called for the time of a number, which counts from 0
// after begin.
func dies(point int) (at func(string), begin func()) {
	var begun atomic.Bool
	var points atomic.Int64
	at = func(string) {
		if !begun.Load() || points.Add(1)-1 != int64(point) {
			return
		}
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		if err != nil {
			panic(err)
		}
		select {}
	}
	return at, func() { begun.Store(true) }
}

// killer is the process that is not killed. It continues what the others have left.
type killer struct {
	*stage
	engine    engine
	index     int // of the transition
	url, dir  string
	pool      *sql.DB
	processes uint32

	mu     sync.Mutex
	points []string // of the step in this process
	listen bool
}

// TestKilled kills a process by SIGKILL at each point of each transition of the state machine: before and after each statement,
// each commit, each use of a key and of the storage of documents, and before the answer. Another process continues. The operation has one
// end, or none, everything that belongs to the end is there once, and nothing else stays.
//
// With TAMGA_TEST_FULL_FAULTS each point has its turn, otherwise a commit or the moment after it.
func TestKilled(t *testing.T) {
	of := map[int]int{}
	for _, c := range killedTransitions {
		of[c.number]++
	}
	for _, engine := range engines(t) {
		for i := range killedTransitions {
			c := &killedTransitions[i]
			t.Run(fmt.Sprintf("%s/%d %s", engine.name, c.number, c.name), func(t *testing.T) {
				t.Parallel()
				url := engine.reused(t)
				k := &killer{engine: engine, index: i, url: url, dir: t.TempDir()}
				var err error
				k.pool, err = sql.Open(engine.driver, engine.source(url))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { k.pool.Close() })
				db := storetest.Open(t, url)
				store.OnStatements(db, k.at)
				k.stage = newStage(t, db, k.dir, 0, c, k.at)
				k.round(-1)
				if testsize.Of() < testsize.Full {
					k.round(k.commit(i%2 == 0))
				} else {
					least := (25 + of[c.number] - 1) / of[c.number] // 25 for a transition
					for n := range max(least, len(k.points)) {
						k.round(n % len(k.points))
					}
					t.Logf("%d points", len(k.points))
				}
				k.over()
			})
		}
	}
}

func (k *killer) at(point string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.listen {
		k.points = append(k.points, point)
	}
}

func (k *killer) listening(on bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.listen = on
}

// commit returns the last point before a commit, or that after it.
func (k *killer) commit(before bool) int {
	name := "after the commit"
	if before {
		name = "before the commit"
	}
	for i := len(k.points) - 1; i >= 0; i-- {
		if k.points[i] == name {
			return i
		}
	}
	return len(k.points) - 1 // statements that commit by themselves
}

// round has a process make the step of a transition. It is killed at a point; below 0: this process makes the step.
func (k *killer) round(point int) {
	k.t.Helper()
	k.processes++
	k.scene = scene{User: fmt.Sprintf("00000000-0000-4000-8000-%012d", k.processes)}
	k.start()
	k.Ref = k.stored("two")
	if c := k.transition; c.begin != nil {
		c.begin(k.stage)
	}
	label, given := "in this process", ""
	if point < 0 {
		var err error
		k.listening(true)
		given, err = k.run()
		k.must(err)
		k.at("before the answer")
		k.listening(false)
	} else {
		label = fmt.Sprintf("killed at point %d, %s", point, k.points[point])
		k.kill(label, point)
	}
	k.pass(61 * time.Second) // the leases end
	id := k.text("SELECT COALESCE(MIN(id), '') FROM operations WHERE user_id = '" + k.User + "'")
	if k.ID != "" && k.ID != id {
		k.t.Fatalf("%s: operation %s is gone", label, k.ID)
	}
	over := id != "" && !operation.State(k.text("SELECT state FROM operations WHERE id = '"+id+"'")).Active()
	signed := k.keys.signed
	var answers [2]string
	for i := range answers {
		k.start()
		var err error
		if answers[i], err = k.run(); err != nil {
			k.t.Fatalf("%s: the next process: %v", label, err)
		}
	}
	if answers[0] != answers[1] || given != "" && given != answers[0] {
		k.t.Errorf("%s: the answers differ:\n%s\n%s\n%s", label, given, answers[0], answers[1])
	}
	if over && k.keys.signed != signed {
		k.t.Errorf("%s: the key was used again after the end", label)
	}
	k.ID = k.text("SELECT COALESCE(MIN(id), '') FROM operations WHERE user_id = '" + k.User + "'")
	k.check(label, k.transition.want, answers[0])
	k.finish(label)
}

// kill has another process make the step, and kills it at a point.
func (k *killer) kill(label string, point int) {
	k.t.Helper()
	order := killOrder{
		URL: k.urlOfKilled(), Dir: k.dir, Done: filepath.Join(k.dir, "done"), Process: k.processes, Now: k.clock(), Transition: k.index, At: point, Scene: k.scene,
	}
	if k.dying("TestKilledProcess", killedOrder, order, order.Done, label) {
		k.t.Fatalf("%s: the process has answered", label)
	}
}

// urlOfKilled is the address of the database for a process that is killed.
func (k *killer) urlOfKilled() string {
	if k.engine.driver == "pgx" {
		return k.url + "&application_name=killed"
	}
	return k.url
}

// dying runs a test as a process of its own, which an order in an environment variable has killed. It reports whether
// the process has answered in the file done instead.
func (k *killer) dying(test, variable string, order any, done, label string) (answered bool) {
	k.t.Helper()
	text, err := json.Marshal(order)
	k.must(err)
	cmd := osexec.CommandContext(k.t.Context(), os.Args[0], "-test.run=^"+test+"$")
	cmd.Env = append(os.Environ(), variable+"="+string(text))
	out, err := cmd.CombinedOutput()
	if _, missing := os.Stat(done); missing == nil {
		return true
	}
	var exit *osexec.ExitError
	if !errors.As(err, &exit) || len(out) > 0 || runtime.GOOS != "windows" && exit.ExitCode() != -1 {
		k.t.Fatalf("%s: the process was not killed: %v\n%s", label, err, out)
	}
	if k.engine.driver == "pgx" { // the server notices the death at a time of its own
		_, err := k.pool.ExecContext(k.t.Context(), "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'killed'")
		k.must(err)
	}
	return false
}

func value[T any](k *killer, query string) (v T) {
	k.t.Helper()
	k.must(k.pool.QueryRowContext(k.t.Context(), query).Scan(&v))
	return v
}

func (k *killer) text(query string) string { return value[string](k, query) }

// counts compares the number of a query.
func (k *killer) counts(label, what string, want int64, query string, args ...any) {
	k.t.Helper()
	if n := value[int64](k, fmt.Sprintf(query, args...)); n != want {
		k.t.Errorf("%s: %d %s, want %d", label, n, what, want)
	}
}

// check compares all that is stored of the operation with its state.
func (k *killer) check(label string, want operation.State, answer string) {
	k.t.Helper()
	k.counts(label, "operations", 1, "SELECT COUNT(*) FROM operations WHERE user_id = '%s'", k.User)
	r := k.row(k.ID)
	state := r.State
	asked, ended, carried := !r.ConfirmBefore.IsZero(), !state.Active(), state == operation.Completed || state == operation.Error
	carried = carried && (!asked || !r.ConfirmedAt.IsZero())
	if state != want || ended == r.KeepUntil.IsZero() {
		k.t.Fatalf("%s: the operation is %s until %v, want %s", label, state, r.KeepUntil, want)
	}
	number := func(yes bool) int64 {
		if yes {
			return 1
		}
		return 0
	}
	// The confirmation agrees, and counts as long as it is open.
	k.counts(label, "confirmations", number(asked), "SELECT COUNT(*) FROM confirmations WHERE user_id = '%s'", k.User)
	if asked {
		k.counts(label, "confirmations in the state of the operation", 1, "SELECT COUNT(*) FROM confirmations WHERE id = '%s' AND state = '%s'", k.ID, state)
		for _, s := range []confirm.State{confirm.Created, confirm.Challenged, confirm.Confirmed, confirm.State(want)} {
			happened := s == confirm.Created || s == confirm.State(state) || s == confirm.Challenged && k.RefID != "" || s == confirm.Confirmed && !r.ConfirmedAt.IsZero()
			k.counts(label, "audit entries of the confirmation as "+string(s), number(happened), "SELECT COUNT(*) FROM audit WHERE operation = '%s' AND object = '%s' AND detail LIKE '%s %%'", confirm.AuditOperation, k.ID, s)
		}
		k.counts(label, "events", value[int64](k, fmt.Sprintf("SELECT COUNT(*) FROM audit WHERE operation = '%s' AND object = '%s'", confirm.AuditOperation, k.ID)),
			"SELECT COUNT(*) FROM outbox WHERE channel = '%s' AND recipient = '%s'", notify.Email, k.User)
		k.counts(label, "callbacks of the answer", number(k.RefID != "" && (ended || state == operation.Confirmed)),
			"SELECT COUNT(*) FROM outbox WHERE user_id = '%s' AND subject LIKE 'Confirmation%%'", k.User)
	}
	for _, of := range [][2]string{{"records", "COUNT(*)"}, {"bytes", "COALESCE(SUM(bytes), 0)"}} {
		k.counts(label, of[0]+" of confirmations in the quota", value[int64](k, "SELECT "+of[1]+" FROM confirmations WHERE ended_at = 0 AND user_id = '"+k.User+"'"),
			"SELECT CAST(COALESCE(SUM(%s), 0) AS BIGINT) FROM confirmation_usage WHERE user_id = '%s'", of[0], k.User)
	}
	// So does the operation itself.
	inline := int64(0)
	switch {
	case !ended && !asked:
		inline = int64(len("one"))
	case state == operation.Completed && !k.Act:
		inline = k.inline()
	}
	if r.Bytes != inline || ended && len(r.Plan)+len(r.Secret)+len(r.Contents) > 0 {
		k.t.Errorf("%s: %d bytes count, want %d; plan %q, secret of %d bytes, contents %q", label, r.Bytes, inline, r.Plan, len(r.Secret), r.Contents)
	}
	k.counts(label, "callbacks", number(ended && (carried || !asked) && !k.Act), "SELECT COUNT(*) FROM outbox WHERE message_id = '%s'", k.ID)
	k.counts(label, "audit entries of the outcome", number(k.transition.loop && carried),
		"SELECT COUNT(*) FROM audit WHERE operation LIKE 'Execute%%' AND phase = '%s' AND object = 'operation %s'", audit.Done, k.ID)
	if got := int64(k.results()); got != number(state == operation.Completed && !k.Act) {
		k.t.Errorf("%s: %d results", label, got)
	}
	k.counts(label, "changes of the act", number(state == operation.Completed && k.Act), "SELECT COUNT(*) FROM user_groups WHERE name = '%s'", k.User)
	// The answer is found again.
	if state == operation.Completed && !k.Act {
		k.start()
		found, err := k.o.Find(k.t.Context(), k.who, k.ID)
		k.must(err)
		if got := k.look(found); !k.transition.loop && answer != "" && got != answer {
			k.t.Errorf("%s: found\n%s\nanswered\n%s", label, got, answer)
		}
	}
}

// inline is the size of the results that the client finds with the operation.
func (k *killer) inline() int64 {
	k.t.Helper()
	found, err := k.o.Find(k.t.Context(), k.who, k.ID)
	k.must(err)
	defer found.Close()
	if found.Documents[0].Content == nil {
		k.t.Error("the operation has no inline result")
		return 0
	}
	return found.Documents[0].Content.Size()
}

// finish ends an operation that is open.
func (k *killer) finish(label string) {
	k.t.Helper()
	var answer string
	var err error
	r := k.row(k.ID)
	end := operation.Completed
	switch {
	case !r.State.Active():
		return
	case r.State != operation.Confirmed:
		end = operation.Cancelled
		_, err = k.cancel()
	case r.Async:
		k.pass(time.Minute) // the pauses after failures end
		_, err = k.o.Next(k.t.Context())
	default:
		answer, err = k.carryOut()
	}
	k.must(err)
	k.check(label+", then continued", end, answer)
}

// over lets the time of everything pass. Nothing stays.
func (k *killer) over() {
	k.t.Helper()
	ctx := k.t.Context()
	k.pass(72 * time.Hour)
	_, err := k.sweep()
	k.must(errors.Join(err, k.answers.Sweep(ctx), k.documents.Sweep(ctx), k.world.blobs.SweepBlobs(ctx, k.clock())))
	for _, table := range []string{"operations", "confirmation_usage", "answers", "confirmations WHERE ended_at = 0", "documents WHERE state <> 1"} {
		k.counts("at last", "rows of "+table, 0, "SELECT COUNT(*) FROM %s", table)
	}
	for _, column := range [][2]string{{"objects", "COUNT(*)"}, {"bytes", "COALESCE(SUM(bytes), 0)"}} {
		k.counts("at last", column[0]+" in the quota of documents", value[int64](k, "SELECT CAST("+column[1]+" AS BIGINT) FROM documents"),
			"SELECT CAST(COALESCE(SUM(%s), 0) AS BIGINT) FROM document_shares", column[0])
	}
	files := int64(0)
	k.must(filepath.WalkDir(filepath.Join(k.dir, "blobs"), func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files++
		}
		return err
	}))
	k.counts("at last", "stored documents", files, "SELECT COUNT(*) FROM documents WHERE length(content) = 0")
}
