// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/user"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

const (
	// foundPeople is the number of people whose requests, certificates and operations a search shows.
	foundPeople = 100
	// foundRows is the number of rows of each of these lists.
	foundRows = 10
)

// searched is what the search box found besides people.
type searched struct {
	Text   string
	Count  string // how many people were found
	Others []table
	Log    link // the same search in the audit log
}

// search finds what has the words of a text: people first.
func (a *API) search(ctx context.Context, text, after string) (s searched, people peopleList, err error) {
	w, who := view.VisitorOf(ctx).Words, rest.Caller(ctx)
	s.Text = text
	found, err := a.People.FindByWords(ctx, who, text, after, pageRows)
	if err != nil {
		return s, people, err
	}
	s.Count = countFound(w, "search.people", "search.people.more", len(found.IDs), found.More)
	if people, err = a.peopleList(ctx, found.Users); err != nil {
		return s, people, err
	}
	people.Empty = "search.no_person"
	if found.Next != "" {
		people.Next = "/operator/people?" + url.Values{"q": {text}, "after": {found.Next}}.Encode()
	}
	if after != "" {
		return s, people, nil
	}
	sought := keys.Sought{Users: found.IDs[:min(len(found.IDs), foundPeople)]}
	sought.SeekSerial(text)
	if n, err := strconv.ParseInt(strings.TrimLeft(text, "№# "), 10, 64); err == nil && n > 0 {
		sought.Number = n
	}
	var requests []*keys.Request
	var certificates []*keys.Certificate
	var underWay []operation.UnderWay
	err = view.Concurrently(
		func() (err error) {
			requests, err = a.Keys.FindRequests(ctx, who, sought, user.MostFound+1)
			return err
		},
		func() (err error) {
			certificates, err = a.Keys.FindCertificates(ctx, who, sought, user.MostFound+1)
			return err
		},
		func() (err error) {
			underWay, err = a.operationsFound(ctx, who, text, sought.Users)
			return err
		})
	if err != nil {
		return s, people, err
	}
	var users []string
	for _, q := range requests[:min(len(requests), foundRows)] {
		users = append(users, q.UserID)
	}
	for _, c := range certificates[:min(len(certificates), foundRows)] {
		users = append(users, c.UserID)
	}
	holders, err := a.aboutAll(ctx, users)
	if err != nil {
		return s, people, err
	}
	add := func(n int, t table) {
		if n > 0 {
			t.Count = countFound(w, "search.entries", "search.entries.more", min(n, user.MostFound), n > user.MostFound)
			s.Others = append(s.Others, t)
		}
	}
	t := table{Title: "requests.title", Head: slices.Insert(slices.Clone(requestHead), 1, "person.title")}
	for _, q := range requests[:min(len(requests), foundRows)] {
		r, err := a.requestRow(ctx, q, "")
		if err != nil {
			return s, people, err
		}
		r.Cells, holders = slices.Insert(r.Cells, 1, holders[0]), holders[1:]
		t.Rows = append(t.Rows, r)
	}
	add(len(requests), t)
	t = table{Title: "person.certificates", Head: slices.Insert(slices.Clone(certificateHead), 1, "person.title")}
	for _, c := range certificates[:min(len(certificates), foundRows)] {
		r := certificateRow(w, c)
		r.Cells, holders = slices.Insert(r.Cells, 1, holders[0]), holders[1:]
		t.Rows = append(t.Rows, r)
	}
	add(len(certificates), t)
	t = table{Title: "operations.title", Head: operationHead}
	for _, o := range underWay[:min(len(underWay), foundRows)] {
		r, err := a.underWayRow(ctx, &o)
		if err != nil {
			return s, people, err
		}
		t.Rows = append(t.Rows, r)
	}
	add(len(underWay), t)
	if a.may(who, Auditor) {
		s.Log = link{Address: "/operator/audit?" + url.Values{"q": {text}}.Encode(), Key: "search.log"}
	}
	return s, people, nil
}

// operationsFound returns operations under way of people, the one with an identifier, and those with a document of
// a name.
func (a *API) operationsFound(ctx context.Context, who audit.Principal, text string, people []string) ([]operation.UnderWay, error) {
	list, err := a.Active.UnderWayOf(ctx, who, people, strings.ToLower(text), user.MostFound+1)
	if err != nil {
		return nil, err
	}
	named, err := a.Active.UnderWayNamed(ctx, who, text)
	if err != nil {
		return nil, err
	}
	for _, o := range named {
		if !slices.ContainsFunc(list, func(has operation.UnderWay) bool { return has.ID == o.ID }) {
			list = append(list, o)
		}
	}
	return list, nil
}

// countFound says how many were found.
func countFound(w *view.Words, key, keyOfMore string, n int, more bool) string {
	if more {
		return w.Text(keyOfMore)
	}
	return w.Count(key, n)
}

// auditSpan is how far back a search of the audit log looks without a period.
const auditSpan = 90 * 24 * time.Hour

// How many entries of the log a search for a text looks at.
const (
	logBatch    = 500
	logWalk     = 10_000
	farLogWalk  = 100_000
	mostLogWalk = 500_000 // for a file
)

var errLongLog = fault.New(fault.InvalidParameters, "since: the log has too many entries for this search; choose a shorter period")

// logSearch is a search of the audit log for a text. Without a text it is the query alone.
type logSearch struct {
	AuditQuery
	has func(ctx context.Context, entries []audit.Entry) ([]audit.Entry, error) // those that have the text; nil: all
}

// searchLog returns the search that a form asks for.
func (a *API) searchLog(ctx context.Context, f *auditForm) (s logSearch, err error) {
	if s.AuditQuery, err = f.query(view.VisitorOf(ctx).Words); err != nil {
		return s, err
	}
	wants, err := f.wants()
	if err != nil {
		return s, err
	}
	if wants != nil {
		s.has = func(_ context.Context, entries []audit.Entry) ([]audit.Entry, error) {
			return slices.DeleteFunc(entries, func(e audit.Entry) bool { return !wants(&e) }), nil
		}
	}
	if f.Text == "" {
		return s, nil
	}
	if s.Since.IsZero() {
		end := s.Until
		if end.IsZero() {
			end = a.Now()
		}
		s.Since = end.Add(-auditSpan)
	}
	terms, err := user.SearchTerms(f.Text)
	if err != nil {
		return s, err
	}
	people, err := a.People.FindByWords(ctx, rest.Caller(ctx), f.Text, "", 1)
	if err != nil && !fault.Is(err, fault.AccessDenied) { // an auditor need not be responsible for a group
		return s, err
	}
	w := view.VisitorOf(ctx).Words
	isAct := slices.ContainsFunc(w.Operations(), func(o view.Option) bool {
		return user.HasTerms(user.SearchWords(o.Text, o.Value), terms)
	})
	if len(people.IDs) == 1 && !isAct && s.UserID == "" {
		s.UserID = people.IDs[0] // the log has an index of people
		return s, nil
	}
	known := map[string][]string{} // words of what many entries have
	wordsOf := func(kind, text string, more func() string) []string {
		words, has := known[kind+text]
		if !has {
			words = user.SearchWords(text, more())
			known[kind+text] = words
		}
		return words
	}
	kind := s.has
	s.has = func(ctx context.Context, entries []audit.Entry) ([]audit.Entry, error) {
		if kind != nil {
			if entries, err = kind(ctx, entries); err != nil {
				return nil, err
			}
		}
		logins, err := a.Log.Logins(ctx, withoutLogin(entries))
		if err != nil {
			return nil, err
		}
		return slices.DeleteFunc(entries, func(e audit.Entry) bool {
			if slices.Contains(people.IDs, e.Principal.UserID) || slices.Contains(people.IDs, e.Object) {
				return false
			}
			words := slices.Concat(
				wordsOf("operation ", e.Operation, func() string { return w.Audited(e.Operation) }),
				wordsOf("outcome ", e.Outcome, func() string { return w.Outcome(e.Outcome) }),
				user.SearchWords(e.Principal.Login, logins[e.Principal.UserID], logins[e.Object], e.Principal.Actor, e.Object, w.Object(e.Object), e.Detail, e.Remote, e.RequestID))
			return !user.HasTerms(words, terms)
		}), nil
	}
	return s, nil
}

// read returns the newest entries that match, the oldest of them first, and the position before which
// the next call continues, as AuditLog does. A page may have more than limit entries.
func (s *logSearch) read(ctx context.Context, log AuditLog, limit, walk int) (list []audit.Entry, before int64, err error) {
	if s.has == nil {
		return log.Read(ctx, s.AuditQuery, limit)
	}
	// Most entries match, or few do: the first batch is a small one.
	for looked, batch := 0, min(2*limit, logBatch); len(list) < limit && looked < walk; batch = min(2*batch, logBatch) {
		looked += batch
		entries, next, err := log.Read(ctx, s.AuditQuery, batch)
		if err == nil {
			entries, err = s.has(ctx, entries)
		}
		if err != nil {
			return nil, 0, err
		}
		list, before = slices.Concat(entries, list), next
		if s.Before = next; next == 0 {
			break
		}
	}
	return list, before, nil
}
