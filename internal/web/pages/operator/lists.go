// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"strconv"
	"strings"
	"unicode/utf8"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/effect"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/user"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// ImportOrder is a list of users to register.
type ImportOrder struct {
	List   string // CSV or JSON, see package user/records
	Group  string // of records that name none
	By     audit.Principal
	Remote string
	Check  bool // everything is checked and nothing is changed
}

// ImportReport is what became of a list, or would.
type ImportReport struct {
	Added, Unchanged, Refused int
	Refusals                  []ImportRefusal // the first of them
	Stopped                   error           // why the rest of the list was not read; nil: all of it was
}

// ImportRefusal is a record that was refused.
type ImportRefusal struct {
	Line         int
	Login, Field string // "": unknown
	Err          error
}

// Bounds of a list in a browser. A longer one is for the command import.
const (
	maxList     = 1 << 20 // bytes
	MaxRefusals = 200
)

var (
	errList  = fault.Newf(fault.TooLarge, "the list is larger than %d MiB: use the command tamga import", maxList>>20)
	errUTF16 = fault.New(fault.InvalidParameters, "the list is not UTF-8: save it as CSV UTF-8")
)

// importView is what became of a list.
type importView struct {
	ImportReport
	Check   bool
	Counts  string
	Lines   []refusedLine
	More    int // refused lines that are not shown
	Stopped string
	List    string // to send again; "": nothing would be added
	Group   string
	Address string
}

// refusedLine is a record that was refused, in the words of the reader.
type refusedLine struct {
	Line          int
	Login, Reason string
}

// listCommands check and import lists of users.
func (a *API) listCommands() []command {
	group := func(ctx context.Context, _ *object) ([]field, error) {
		f, err := a.groupField(ctx)
		f.required, f.hint = false, "field.hint.list_group"
		if f.kind == kindChoice {
			f.choices = append([]pick{{}}, f.choices...)
		}
		return []field{f}, err
	}
	run := func(name string, check bool) func(context.Context, *object, rest.Form) (*made, error) {
		return func(ctx context.Context, _ *object, f rest.Form) (*made, error) {
			list := f.Get(name)
			switch {
			case len(list) > maxList:
				return nil, errList
			case !utf8.ValidString(list):
				return nil, errUTF16
			}
			done, err := a.Turns.Take(ctx, rest.Caller(ctx).UserID)
			if err != nil {
				return nil, err
			}
			defer done()
			report, err := a.Import(ctx, ImportOrder{List: list, Group: f.Get("group"), By: rest.Caller(ctx), Remote: rest.Remote(ctx), Check: check})
			if err != nil {
				return nil, err
			}
			rest.Detail(ctx, "added="+strconv.Itoa(report.Added)+" refused="+strconv.Itoa(report.Refused))
			return &made{imported: a.imported(ctx, report, list, f.Get("group"), check)}, nil
		}
	}
	return []command{
		{name: "import", adds: true, operation: "CheckImport", effects: does(effect.None), fields: []field{{name: "list", kind: kindFile, required: true, hint: "field.hint.list"}}, more: group, do: run("list", true)},
		{name: "import-add", adds: true, operation: "ImportUsers", effects: does(effect.GivesAccess | effect.AddsFactor), fields: []field{{name: "records", kind: kindArea, required: true, hint: "field.hint.list"}}, more: group, do: run("records", false)},
	}
}

// imported describes what became of a list.
func (a *API) imported(ctx context.Context, report ImportReport, list, group string, check bool) *importView {
	w := view.VisitorOf(ctx).Words
	v := &importView{ImportReport: report, Check: check, Group: group, More: report.Refused - len(report.Refusals), Address: "/operator/people/import-add"}
	v.Counts = w.Text("import.counts", report.Added, report.Unchanged, report.Refused)
	if check {
		v.Counts = w.Text("import.would", report.Added, report.Unchanged, report.Refused)
	}
	if check && report.Added > 0 {
		v.List = list
	}
	if report.Stopped != nil {
		v.Stopped = report.Stopped.Error()
	}
	for _, r := range report.Refusals {
		reason := r.Err.Error()
		if f, is := fault.As(r.Err); is {
			reason = view.Reason(w.Language, f)
		}
		if r.Field != "" && !strings.HasPrefix(reason, r.Field) {
			reason = r.Field + ": " + reason
		}
		v.Lines = append(v.Lines, refusedLine{r.Line, view.Visible(r.Login), view.Visible(reason)})
	}
	return v
}

// exportedPeople are the columns of an export, which an import reads.
var exportedPeople = []string{"login", "group", "name", "phone", "email", "locked"}

// exportPeople answers the people that a search finds as CSV.
func (a *API) exportPeople(ctx context.Context, r struct {
	Text string `query:"q"`
	Body rest.Form
}) (rest.File, error) {
	who, w := rest.Caller(ctx), view.VisitorOf(ctx).Words
	done, err := a.Turns.Take(ctx, who.UserID)
	if err != nil {
		return rest.File{}, err
	}
	defer done()
	next := func(after string) ([]user.Info, string, error) {
		found, err := a.People.FindByWords(ctx, who, strings.TrimSpace(r.Text), after, pageRows)
		return found.Users, found.Next, err
	}
	if strings.TrimSpace(r.Text) == "" {
		filters, err := conditions(w, r.Body)
		if err != nil {
			return rest.File{}, err
		}
		next = func(after string) ([]user.Info, string, error) {
			return a.People.Browse(ctx, who, filters, after, 500, true)
		}
	}
	var text bytes.Buffer
	out := csv.NewWriter(&text)
	err = out.Write(exportedPeople)
	rows := 0
	for after := ""; err == nil; {
		list, more, failed := next(after)
		if failed != nil {
			return rest.File{}, failed
		}
		for _, u := range list {
			values := []string{u.Login, u.Group, u.DisplayName, u.PhoneNumber, u.Email, strconv.FormatBool(u.Locked)}
			for i, v := range values {
				values[i] = view.Inert(v)
			}
			err = cmp.Or(err, out.Write(values))
		}
		if rows += len(list); rows > maxExport {
			return rest.File{}, errManyPeople
		}
		if after = more; after == "" {
			break
		}
	}
	out.Flush()
	if err = cmp.Or(err, out.Error()); err != nil {
		return rest.File{}, err
	}
	rest.Detail(ctx, strconv.Itoa(rows)+" people")
	return rest.File{Content: bytes.NewReader(text.Bytes()), Name: "people.csv", Type: "text/csv; charset=utf-8"}, nil
}

var errManyPeople = fault.Newf(fault.InvalidParameters, "the search finds more than %d people: add a condition", maxExport)

// conditions reads the conditions of the form of a search.
func conditions(w *view.Words, f rest.Form) (filters []user.Filter, err error) {
	for i := range searchRows {
		n := strconv.Itoa(i)
		value := strings.TrimSpace(f.Get("value" + n))
		if value == "" {
			continue
		}
		meant, err := readFilters(w, cmp.Or(f.Get("column"+n), searchColumns[i]), cmp.Or(f.Get("operation"+n), searchOperations[0]), value)
		if err != nil {
			return nil, err
		}
		filters = append(filters, meant...)
	}
	return filters, nil
}
