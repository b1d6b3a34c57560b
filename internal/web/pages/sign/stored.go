// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strconv"
	"time"

	"tamga/internal/domain/fault"
	stored "tamga/internal/domain/report"
	"tamga/internal/domain/signing"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// reportAt is where a report is found by its number.
const reportAt = "/r"

// reportsOfPage is how many stored reports a page lists.
const reportsOfPage = 50

func (a *API) reportRoutes() []rest.Route {
	if a.ReportLife <= 0 {
		return nil
	}
	return []rest.Route{
		rest.Handle("POST /verify/keep", "StoreReportByPage", rest.SignedIn, a.keepReports).AtMost(maxReports).Answering(rest.Redirect{}),
		view.Handle("GET /verify/reports", "StoredReportsPage", rest.SignedIn, a.storedReports),
		rest.Handle("GET "+reportAt, "FindReportPage", rest.Anyone, a.findReport).Guarded(a.Admit).Answering(rest.Page{}, rest.Redirect{}).Unaudited(),
		view.Handle("GET "+reportAt+"/{number}", "StoredReportPage", rest.Anyone, a.storedReport).Guarded(a.Admit),
		rest.Handle("POST /verify/reports/{number}/do/delete", "DeleteReportByPage", rest.SignedIn, a.deleteReport).Answering(rest.Redirect{}),
	}
}

// keeps reports whether the reader may store reports.
func (a *API) keeps(ctx context.Context) bool {
	return a.ReportLife > 0 && view.CallerOf(ctx).UserID != ""
}

// keepReports stores a report of a page, or all of them, each under a number.
func (a *API) keepReports(ctx context.Context, r struct{ Body rest.Form }) (rest.Redirect, error) {
	list, err := a.carried(r.Body)
	if err != nil {
		return rest.Redirect{}, err
	}
	if at := r.Body.Get("answer"); at != "all" {
		i, err := strconv.Atoi(at)
		if err != nil || i < 0 || i >= len(list) {
			return rest.Redirect{}, fault.New(fault.InvalidParameters, "there is no report with this number")
		}
		list = list[i : i+1]
	}
	var keep []stored.New
	for _, one := range list {
		if one.Digest == "" { // an empty file
			continue
		}
		content, err := json.Marshal(one)
		if err != nil {
			return rest.Redirect{}, err
		}
		keep = append(keep, stored.New{Name: one.Name, Verdict: one.Verdict, Digest: one.Digest, Content: content})
	}
	if len(keep) == 0 {
		return rest.Redirect{}, fault.New(fault.ContentRequired, "the files are empty, so there is no report to store")
	}
	kept, err := a.Reports.Keep(ctx, rest.Caller(ctx), keep)
	switch {
	case err != nil:
		return rest.Redirect{}, err
	case len(kept) == 1:
		rest.Concerning(ctx, "report "+kept[0].Number)
		return rest.Redirect{Location: reportAt + "/" + kept[0].Number + "?done=kept", See: true}, nil
	}
	return rest.Redirect{Location: "/verify/reports?done=kept", See: true}, nil
}

// storedReportsView lists the stored reports of the reader.
type storedReportsView struct {
	List []stored.Info
	Done string
	Next string // address of the next page; "" for none
}

func (a *API) storedReports(ctx context.Context, r struct {
	Done   string `query:"done"`
	Before string `query:"before"`
	Number string `query:"number"`
}) (view.View, error) {
	older := stored.Position{Number: stored.Normal(r.Number)}
	if ms, err := strconv.ParseInt(r.Before, 10, 64); err == nil {
		older.At = time.UnixMilli(ms)
	} else if r.Before != "" || r.Number != "" {
		return view.View{}, fault.New(fault.InvalidParameters, "before: want the position of a report")
	}
	list, err := a.Reports.Newest(ctx, rest.Caller(ctx), older, reportsOfPage)
	if err != nil {
		return view.View{}, err
	}
	v := storedReportsView{List: list, Done: view.VisitorOf(ctx).Words.Done("reports", r.Done)}
	if n := len(list); n == reportsOfPage {
		last := list[n-1]
		v.Next = "/verify/reports?" + url.Values{"before": {strconv.FormatInt(last.CreatedAt.UnixMilli(), 10)}, "number": {last.Number}}.Encode()
	}
	return view.View{Template: "sign/reports", Title: "reports.title", Content: v}, nil
}

// storedReportView is a stored report, or the form that finds one.
type storedReportView struct {
	Result        *result // nil: the form alone
	Number, Check string
	Problem       string // why no report was found; "": nothing was sought
	Own           bool   // the reader has stored it
	Sealed        string
	Address       string // that the QR code has
	Done          string
}

// findReport is the form for the number and the digest of a printed report.
func (a *API) findReport(ctx context.Context, r struct {
	Number string `query:"number"`
	Check  string `query:"check"`
}) (any, error) {
	v := storedReportView{Number: r.Number, Check: r.Check}
	if r.Number != "" {
		if number := stored.Normal(r.Number); number != "" {
			return rest.Redirect{Location: reportAt + "/" + number + "?" + url.Values{"check": {r.Check}}.Encode(), See: true}, nil
		}
		v.Problem = view.VisitorOf(ctx).Words.Text("reports.no_number")
	}
	return a.reportForm(v).Render(ctx)
}

func (a *API) reportForm(v storedReportView) view.View {
	return view.View{Template: "sign/stored", Title: "reports.find", Main: "text", Content: v}
}

// storedReport shows what was verified when.
func (a *API) storedReport(ctx context.Context, r struct {
	Number string `path:"number"`
	Check  string `query:"check"`
	Done   string `query:"done"`
}) (view.View, error) {
	w, who := view.VisitorOf(ctx).Words, view.CallerOf(ctx)
	found, err := a.Reports.Find(ctx, who, r.Number, r.Check)
	if fault.Is(err, fault.NotFound) {
		v := storedReportView{Number: r.Number, Check: r.Check, Problem: w.Text("reports.not_found")}
		if r.Check == "" {
			v.Problem = w.Text("reports.needs_check")
		}
		return a.reportForm(v), nil
	}
	if err != nil {
		return view.View{}, err
	}
	rest.Concerning(ctx, "report "+found.Number)
	var of report
	if err := json.Unmarshal(found.Content, &of); err != nil {
		return view.View{}, err
	}
	of.Number, of.Stored, of.Until = found.Number, found.CreatedAt, found.ExpiresAt
	one := a.inWords(w, &of)
	v := storedReportView{Result: &one, Number: of.Number, Check: checkOf(&of), Own: who.UserID == found.UserID, Address: a.reportAddress(&of), Done: w.Done("reports", r.Done)}
	v.Sealed, err = a.sealReports([]*report{&of})
	return view.View{Template: "sign/stored", Title: "reports.one", About: found.Number, Content: v}, err
}

// checkOf returns the part of the digest that opens a report.
func checkOf(r *report) string { return r.Digest[:min(len(r.Digest), stored.CheckLength)] }

// reportAddress returns the address of a stored report for everybody who has it on paper.
func (a *API) reportAddress(r *report) string { return ReportAddress(a.Address, r.Number, r.Digest) }

// ReportAddress returns the address of a stored report, below that of the pages, for everybody who has it on paper.
func ReportAddress(pages, number, digest string) string {
	return pages + reportAt + "/" + number + "?check=" + digest[:min(len(digest), stored.CheckLength)]
}

// NewReport returns the report of a verification of a document, to store it.
func NewReport(name string, size int64, digest []byte, found []signing.SignatureReport, now time.Time) (stored.New, error) {
	r := newReport(name, size, found, now)
	r.Digest = hex.EncodeToString(digest)
	content, err := json.Marshal(r)
	return stored.New{Name: r.Name, Verdict: r.Verdict, Digest: r.Digest, Content: content}, err
}

func (a *API) deleteReport(ctx context.Context, r struct {
	Number string `path:"number"`
}) (rest.Redirect, error) {
	rest.Concerning(ctx, "report "+stored.Normal(r.Number))
	return rest.Redirect{Location: "/verify/reports?done=deleted", See: true}, a.Reports.Delete(ctx, rest.Caller(ctx), r.Number)
}
