// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/rand"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/signing"
	"tamga/internal/domain/vault"
	"tamga/internal/setting"
	"tamga/internal/web/pages/operator"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
	"tamga/internal/web/rest/limit"
	"tamga/internal/web/umsapi"
	"tamga/pki/suite"
)

// operatorServices returns what the pages of operators call. ready checks the document storage.
func (s *Services) operatorServices(ums *umsapi.API, operations *signing.Operations, version string, ready func(context.Context) error) operator.Deps {
	c := &s.Config.Pages
	return operator.Deps{
		Permit: ums.Permit, Administrators: c.Administrators, Auditors: c.Auditors,
		People: s.Users, Contacts: s.Contacts, SignIns: s.Identity, OneTime: s.Oath, Devices: s.Devices, Passkeys: s.Passkeys, Policies: s.PolicyEditor, Approvals: s.Approvals,
		Keys: s.Keys, Authority: s.Authority, Active: operations, Messages: s.Messages, Webhooks: s.Webhooks, Log: auditLog{store.Audit{DB: s.DB}}, Turns: s.Users.Turns,
		Installation:   func(ctx context.Context) (operator.Installation, error) { return s.installation(ctx, version, ready) },
		CheckTSP:       s.checkTSP,
		TryMessage:     s.tryMessage,
		CheckProviders: s.checkProviders,
		Import:         s.importUsers,
		Sources:        s.sources.states,
	}
}

// Bounds of the long searches of operators, see [limit.Turns].
const (
	searchShare    = 4  // one of so many connections to the database
	searchesQueued = 64 // of all operators
	searchesOfOne  = 2  // queued of one operator: the last one is the one that is looked at
	searchWait     = 10 * time.Second
)

// searchTurns returns the turns of the long searches of operators. Each occupies a connection to
// the database for up to a second, so most connections are left to the others.
func searchTurns(connections int) *limit.Turns {
	return limit.NewTurns(limit.TurnRules{
		Running: max(connections/searchShare, 1), Waiting: searchesQueued, WaitingOfOne: searchesOfOne, Wait: searchWait,
	})
}

// auditLog reads the audit log for pages.
type auditLog struct{ log store.Audit }

// Read implements operator.AuditLog.
func (a auditLog) Read(ctx context.Context, q operator.AuditQuery, limit int) ([]audit.Entry, int64, error) {
	return a.log.Read(ctx, store.AuditFilter{
		UserID: q.UserID, Login: q.Login, Operation: q.Operation, Outcome: q.Outcome, Since: q.Since, Until: q.Until, OutcomesOnly: !q.Attempts, Before: q.Before, Far: q.Far,
	}, limit)
}

// Logins implements operator.AuditLog.
func (a auditLog) Logins(ctx context.Context, ids []string) (map[string]string, error) {
	return store.Users{DB: a.log.DB}.Logins(ctx, ids)
}

// counted is the most that the page of the installation counts of a queue.
const counted = 1000

// limits are the settings that the page of the installation shows as limits.
var limits = []string{
	"limits.signing_request", "limits.other_request", "limits.connections", "batch_items", "database_connections",
	"documents.upload", "documents.user_objects", "documents.user_bytes", "documents.objects", "documents.bytes",
	"operations.user_operations", "operations.user_bytes", "two_step.caller_objects", "two_step.caller_bytes", "two_step.objects", "two_step.bytes",
	"verification.request", "verification.calls_per_second", "pages.upload", "pages.session", "pages.idle", "pin.attempts", "argon2.memory", "argon2.parallel",
}

// installation describes the state of this process and of what it depends on, the processes
// beside it and the limits.
func (s *Services) installation(ctx context.Context, version string, ready func(context.Context) error) (i operator.Installation, err error) {
	if i.Facts, err = s.facts(ctx, version, ready); err != nil {
		return i, err
	}
	all, err := store.MasterKeys{DB: s.DB}.Processes(ctx)
	if err != nil {
		return i, err
	}
	for _, p := range all {
		i.Nodes = append(i.Nodes, operator.Node{
			ID: p.ID, Host: p.Host, Version: p.Version, SealsWith: p.Active, SeenAt: p.SeenAt,
			This: p.ID == process, Silent: s.DB.Now().Sub(p.SeenAt) > vault.ProcessLife,
		})
	}
	for _, name := range limits {
		value := setting.Value(s.Config, name)
		if size, ok := value.(setting.Size); ok {
			value = view.Bytes(size)
		}
		i.Limits = append(i.Limits, operator.Limit{Setting: name, Value: value})
	}
	return i, nil
}

func (s *Services) facts(ctx context.Context, version string, ready func(context.Context) error) (facts []operator.Fact, err error) {
	add := func(key, value string, bad bool) {
		facts = append(facts, operator.Fact{Key: "installation." + key, Value: value, Bad: bad})
	}
	queue := func(key string, n int64, alarms bool) {
		text := strconv.FormatInt(n, 10)
		if n >= counted {
			text += "+"
		}
		add(key, text, alarms && n > 0)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	engine := "PostgreSQL"
	if strings.HasPrefix(s.Config.Database, "sqlite:") {
		engine = "SQLite"
	}
	add("version", version, false)
	add("address", s.Config.BaseURL(), false)
	add("node", host+", PID "+strconv.Itoa(os.Getpid()), false)
	add("database", engine, s.DB.Ping(ctx) != nil)
	clock := operator.Fact{Key: "installation.clock", Word: "installation.clock.right", Bad: s.checkClock(ctx) != nil}
	switch offset := s.DB.ClockOffset().Round(time.Millisecond); {
	case offset > 0:
		clock.Word, clock.Span = "installation.clock.ahead", offset
	case offset < 0:
		clock.Word, clock.Span = "installation.clock.behind", -offset
	}
	place := "installation.documents.directory"
	if s.Config.Bucket.Endpoint != "" {
		place = "installation.documents.bucket"
	}
	facts = append(facts, clock, operator.Fact{Key: "installation.documents", Word: place, Bad: ready(ctx) != nil})
	q, err := s.DB.Queues(ctx, counted)
	if err != nil {
		return nil, err
	}
	queue("pending", q.Pending, false)
	queue("dead", q.Dead, true)
	queue("requests", q.Requests, false)
	queue("approvals", q.Approvals, false)
	queue("groups", q.Groups, false)
	return facts, nil
}

// checkTSP requests a time stamp and says what its checks found.
func (s *Services) checkTSP(ctx context.Context, service policy.TSPService) ([]operator.Fact, error) {
	source, err := s.OpenEvidence(s.Config.Evidence)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	sample := make([]byte, 32)
	rand.Read(sample)
	e, err := source.Examine(ctx, service, suite.Streebog256.Digest(sample))
	if err != nil {
		return nil, err
	}
	var facts []operator.Fact
	for _, c := range e.Checks {
		f := operator.Fact{Key: "check." + c.Name, Value: "✓"}
		if c.Err != nil {
			f.Value, f.Failed, f.Bad = "", notify.OneLine(c.Err.Error()), true
		}
		facts = append(facts, f)
	}
	return facts, nil
}

// pagesGate is the gate of the pages: that of user management, whose rules of what waits hold here,
// too. A page itself is no operation of user management, so its failure is no event.
func pagesGate(ums *rest.Gate, operations []rest.Route) *rest.Gate {
	gate := *ums
	known := map[string]bool{}
	for _, o := range operations {
		known[o.Name] = o.Method != http.MethodGet
	}
	failed := gate.Failed
	gate.Failed = func(ctx context.Context, operation, userID string, err error) {
		if known[operation] {
			failed(ctx, operation, userID, err)
		}
	}
	return &gate
}
