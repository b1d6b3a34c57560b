// SPDX-License-Identifier: Apache-2.0

package register

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/confirm"
	"tamga/internal/domain/document"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/signing"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

const (
	rowsOfPage = 50
	maxExport  = 20_000 // rows of a file
)

// form is the search of the register.
type form struct {
	Text        string `query:"q"`
	Period      string `query:"period"`
	Since       string `query:"since"`
	Until       string `query:"until"` // the whole day
	Certificate string `query:"certificate"`
	Method      string `query:"method"`
	Before      int64  `query:"before"`
	Far         string `query:"far"` // looks at many more entries
	Format      string `query:"format"`
}

// periods are the lengths that the chips name; "all" is none.
var periods = []struct {
	Name string
	days int
}{{"week", 7}, {"month", 31}, {"year", 366}, {"all", 0}}

// query returns what the form selects.
func (f *form) query(w *view.Words, now time.Time) (q signing.RegisterQuery, err error) {
	q = signing.RegisterQuery{Text: f.Text, Method: f.Method, Before: f.Before, Far: f.Far != ""}
	for _, p := range periods {
		if p.Name == f.Period && p.days > 0 {
			q.Since = now.AddDate(0, 0, -p.days)
		}
	}
	for text, to := range map[*string]*time.Time{&f.Since: &q.Since, &f.Until: &q.Until} {
		if *text == "" {
			continue
		}
		if *to, err = time.ParseInLocation(time.DateOnly, strings.TrimSpace(*text), w.Location()); err != nil {
			return q, fault.New(fault.InvalidParameters, "since, until: want a date such as 2026-01-31")
		}
		if text == &f.Until {
			*to = to.AddDate(0, 0, 1)
		}
	}
	if f.Certificate != "" {
		if q.Certificate, err = strconv.ParseInt(f.Certificate, 10, 64); err != nil {
			return q, fault.New(fault.InvalidParameters, "certificate: want the number of a certificate")
		}
	}
	return q, nil
}

// values returns the form for an address, without the position.
func (f *form) values() url.Values {
	v := url.Values{}
	for name, value := range map[string]string{"q": f.Text, "period": f.Period, "since": f.Since, "until": f.Until, "certificate": f.Certificate, "method": f.Method} {
		if value != "" {
			v.Set(name, value)
		}
	}
	return v
}

// listView is the list.
type listView struct {
	Form         *form
	Periods      []view.Tab
	Certificates []view.Option
	Methods      []view.Option
	Operations   []operationView
	Total        int
	Next         string // address of older entries, "" for none
	Partial      bool   // the search looked at a part of the log
	CSV, XLSX    string // addresses of files
	PDF          string
	Verifies     bool // marked signatures can be verified together
	Problem      string
	More         bool // the conditions are not empty
}

// operationView is an operation with the documents that it has signed.
type operationView struct {
	ID          string
	Day         string // of the operation, if the one above it is of another day
	Clock       string // time of the day, with its zone
	Certificate string
	Confirmed   string
	Client      string
	Documents   []documentView
}

// documentView is a row of the register.
type documentView struct {
	Name, Digest, Type string
	Mark               string // value of the box that marks it, "" for one that cannot be verified
	Page               string // address, "" for a signature without an operation
	File               string // address of the signed document, "" if it is not stored any more
	Until              time.Time
}

func (a *API) list(ctx context.Context, r form) (view.View, error) {
	w := view.VisitorOf(ctx).Words
	v := listView{Form: &r, More: r.Since+r.Until+r.Certificate+r.Method != ""}
	v.Verifies = a.Verifier != nil
	shown := func() view.View {
		return view.View{Template: "register/list", Title: "signatures.title", Content: v}
	}
	names, err := a.names(ctx)
	if err != nil {
		return view.View{}, err
	}
	for _, c := range names.list {
		id := strconv.FormatInt(c.ID, 10)
		v.Certificates = append(v.Certificates, view.Option{Value: id, Text: c.Name + " · " + w.Text("certificate.to", w.Day(c.NotAfter)) + " · " + c.Serial, Chosen: id == r.Certificate})
	}
	for _, name := range append([]string{signing.Unconfirmed}, confirm.MethodNames()...) {
		text := w.TextOr("confirm.way."+name, name)
		if name == signing.Unconfirmed {
			text = w.Text("register.unconfirmed")
		}
		v.Methods = append(v.Methods, view.Option{Value: name, Text: text, Chosen: name == r.Method})
	}
	values := r.values()
	for _, p := range periods {
		values.Set("period", p.Name)
		v.Periods = append(v.Periods, view.Tab{Address: "/signatures?" + values.Encode(), Key: "register.period." + p.Name, Here: p.Name == cmp.Or(r.Period, "all")})
	}
	values = r.values()
	values.Set("format", "csv")
	v.CSV = "/signatures/export?" + values.Encode()
	values.Set("format", "xlsx")
	v.XLSX = "/signatures/export?" + values.Encode()
	values.Set("format", "pdf")
	v.PDF = "/signatures/export?" + values.Encode()
	q, err := r.query(w, a.Now())
	var list []signing.Signature
	var before int64
	if err == nil {
		list, before, err = a.Register.Read(ctx, rest.Caller(ctx), q, rowsOfPage)
	}
	if f, refused := fault.As(err); refused && (f.Code == fault.InvalidParameters || f.Code == fault.InvalidFilterValue) {
		sentence, detail := w.Refusal(f)
		if v.Problem = sentence; detail != "" {
			v.Problem = w.Own(detail)
		}
		return shown(), nil
	}
	if err != nil {
		return view.View{}, err
	}
	v.Total = len(list)
	day := ""
	for i := range list {
		s := &list[i]
		n := len(v.Operations)
		if n == 0 || s.Operation == "" || v.Operations[n-1].ID != s.Operation {
			o := operationView{
				ID: s.Operation, Clock: w.Clock(s.At), Certificate: names.of(w, s.Certificate), Confirmed: confirmedBy(w, s), Client: a.Clients.Named(w, s.ClientID).Name,
			}
			if of := w.Day(s.At); of != day {
				day = of
				o.Day = of + ", " + w.Text("register.day."+strconv.Itoa(int(s.At.In(w.Location()).Weekday())))
			}
			v.Operations = append(v.Operations, o)
			n++
		}
		d, err := a.row(ctx, s)
		if err != nil {
			return view.View{}, err
		}
		v.Operations[n-1].Documents = append(v.Operations[n-1].Documents, d)
	}
	for i := range v.Operations { // the newest operation first, but the files of each in their order
		slices.Reverse(v.Operations[i].Documents)
	}
	if before > 0 {
		values = r.values()
		values.Set("before", strconv.FormatInt(before, 10))
		if v.Partial = len(list) == 0; v.Partial {
			values.Set("far", "yes")
		}
		v.Next = "/signatures?" + values.Encode()
	}
	return shown(), nil
}

// row returns a document of the list.
func (a *API) row(ctx context.Context, s *signing.Signature) (d documentView, err error) {
	d = documentView{Name: view.Visible(s.Name), Digest: shortDigest(s.Digest), Type: s.Type}
	if s.Operation != "" {
		d.Page = "/signatures/" + s.Operation + "/" + s.Document
	}
	info, err := a.info(ctx, s.Result)
	if info != nil {
		d.File, d.Until = "/signed/document/"+info.ID, info.Expires
		if a.Verifier != nil && d.Page != "" {
			d.Mark = s.Operation + "/" + s.Document
		}
	}
	return d, err
}

// info returns a stored document, nil if it is not stored any more.
func (a *API) info(ctx context.Context, id string) (*document.Info, error) {
	if id == "" {
		return nil, nil
	}
	info, err := a.Documents.Info(ctx, rest.Caller(ctx), id)
	if _, refused := fault.As(err); refused {
		return nil, nil
	}
	return &info, err
}

// shortDigest returns the begin and the end of a digest.
func shortDigest(digest string) string {
	if len(digest) < 16 {
		return digest
	}
	return digest[:4] + " " + digest[4:8] + " … " + digest[len(digest)-4:]
}

// certificateNames are the names of the certificates of the reader.
type certificateNames struct {
	list []view.Certificate
	byID map[int64]string
}

func (a *API) names(ctx context.Context) (n certificateNames, err error) {
	n.byID = map[int64]string{}
	n.list, err = view.CertificatesOf(ctx, a.Certificates, a.Now())
	for _, c := range n.list {
		n.byID[c.ID] = c.Name
	}
	return n, err
}

// of returns what a certificate is called. One that was deleted has its number alone.
func (n certificateNames) of(w *view.Words, id int64) string {
	switch name := n.byID[id]; {
	case id == 0:
		return w.Text("register.certificate_unknown")
	case name == "":
		return w.Text("register.certificate_deleted", strconv.FormatInt(id, 10))
	default:
		return name
	}
}

// confirmedBy says how a signature was confirmed.
func confirmedBy(w *view.Words, s *signing.Signature) string {
	return cmp.Or(w.ConfirmedBy(s.Method, s.Label), w.Text("register.unconfirmed"))
}

// columns are the heads of the columns of a file.
var columns = []string{
	"register.at", "register.document", "register.size", "register.hash", "register.digest", "register.certificate", "register.type", "register.confirmed", "register.client", "register.operation",
}

// maxPrinted is how many signatures a PDF has: each takes lines, and not a row.
const maxPrinted = 1_000

// printed returns the register as a PDF.
func (a *API) printed(ctx context.Context, f *form, rows [][]string) (rest.File, error) {
	w, who, now := view.VisitorOf(ctx).Words, rest.Caller(ctx), a.Now()
	lines := []view.Line{{Kind: "title", Text: w.Text("register.title")}, {Kind: "note", Text: w.Text("register.printed", who.Login, w.When(now), len(rows)-1)}}
	if conditions := f.conditions(w); conditions != "" {
		lines = append(lines, view.Line{Kind: "note", Text: conditions})
	}
	for _, row := range rows[1:] {
		lines = append(lines, view.Line{Kind: "heading", Text: view.Visible(row[1])})
		for i, text := range row {
			if i != 1 && text != "" {
				lines = append(lines, view.Line{Kind: "fact", Label: rows[0][i], Text: view.Visible(text)})
			}
		}
	}
	text, err := a.PDF(w.Language, w.Text("register.title"), now, lines)
	return rest.File{Content: bytes.NewReader(text), Name: "signatures.pdf", Type: "application/pdf"}, err
}

// conditions returns the search in words, "" for none.
func (f *form) conditions(w *view.Words) string {
	var list []string
	if f.Text != "" {
		list = append(list, w.Text("register.search")+": "+view.Visible(f.Text))
	}
	if f.Period != "" && f.Period != "all" {
		list = append(list, w.TextOr("register.period."+f.Period, ""))
	}
	if f.Since != "" {
		list = append(list, w.Text("register.since")+": "+f.Since)
	}
	if f.Until != "" {
		list = append(list, w.Text("register.until")+": "+f.Until)
	}
	if f.Certificate != "" {
		list = append(list, w.Text("register.certificate")+": № "+f.Certificate)
	}
	if f.Method != "" {
		way := w.TextOr("confirm.way."+f.Method, f.Method)
		if f.Method == signing.Unconfirmed {
			way = w.Text("register.unconfirmed")
		}
		list = append(list, w.Text("register.confirmed")+": "+way)
	}
	return strings.Join(list, ". ")
}

func (a *API) export(ctx context.Context, r form) (rest.File, error) {
	w := view.VisitorOf(ctx).Words
	most := maxExport
	if r.Format == "pdf" {
		most = maxPrinted
	}
	q, err := r.query(w, a.Now())
	if err != nil {
		return rest.File{}, err
	}
	names, err := a.names(ctx)
	if err != nil {
		return rest.File{}, err
	}
	head := make([]string, len(columns))
	for i, key := range columns {
		head[i] = w.Text(key)
	}
	rows := [][]string{head}
	q.Far = true
	for more := true; more; more = q.Before > 0 {
		list, before, err := a.Register.Read(ctx, rest.Caller(ctx), q, 1000)
		if err != nil {
			return rest.File{}, err
		}
		for i := range list {
			s := &list[i]
			size := ""
			if s.Type != "" {
				size = strconv.FormatInt(s.Size, 10)
			}
			rows = append(rows, []string{
				w.Moment(s.At), cmp.Or(s.Name, w.Text("register.nameless")), size, s.HashName, s.Digest, names.of(w, s.Certificate), s.Type, confirmedBy(w, s), a.Clients.Named(w, s.ClientID).Name, s.Operation,
			})
		}
		if len(rows)-1 > most {
			return rest.File{}, fault.Newf(fault.TooLarge, "a file has at most %d signatures: choose a shorter period", most)
		}
		if q.Before == before {
			break
		}
		q.Before = before
	}
	rest.Concerning(ctx, strconv.Itoa(len(rows)-1)+" signatures")
	switch r.Format {
	case "xlsx":
		return view.XLSX("signatures.xlsx", rows)
	case "pdf":
		return a.printed(ctx, &r, rows)
	}
	return view.CSV("signatures.csv", rows)
}

// oneView is one signature.
type oneView struct {
	signing.Signature
	Shown       documentView
	Certificate string
	Confirmed   string
	Client      string
	Others      []documentView // of the same operation
	Proof       string         // address, "" without a confirmation
	Verifies    bool           // the signed document is here, so that it can be verified
	Verdict     string         // after a verification: passed, failed or indeterminate
	Reasons     []string
	Verified    time.Time
	Until       time.Time // until when the signatures can be verified; zero if they did not pass
	Unverified  string    // why it could not be verified
}

// ofSignature names a signature.
type ofSignature struct {
	Operation string `path:"operation"`
	Document  string `path:"document"`
}

func (a *API) one(ctx context.Context, r ofSignature) (view.View, error) {
	v, err := a.oneView(ctx, r)
	return shownOne(v), err
}

func shownOne(v oneView) view.View {
	return view.View{Template: "register/one", Title: "register.one", About: v.Shown.Name, Content: v}
}

func (a *API) oneView(ctx context.Context, r ofSignature) (v oneView, err error) {
	w := view.VisitorOf(ctx).Words
	list, err := a.Register.Of(ctx, rest.Caller(ctx), r.Operation)
	if err != nil {
		return v, err
	}
	found := false
	for i := range list {
		if list[i].Document == r.Document {
			v.Signature, found = list[i], true
			continue
		}
		if len(v.Others) < rowsOfPage {
			v.Others = append(v.Others, documentView{Name: cmp.Or(view.Visible(list[i].Name), w.Text("register.nameless")), Page: "/signatures/" + list[i].Operation + "/" + list[i].Document})
		}
	}
	if !found {
		return v, errNoSignature
	}
	rest.Concerning(ctx, "operation "+v.Operation)
	names, err := a.names(ctx)
	if err != nil {
		return v, err
	}
	v.Certificate, v.Confirmed, v.Client = names.of(w, v.Signature.Certificate), confirmedBy(w, &v.Signature), a.Clients.Named(w, v.ClientID).Name
	if v.Shown, err = a.row(ctx, &v.Signature); err != nil {
		return v, err
	}
	v.Shown.Name = cmp.Or(v.Shown.Name, w.Text("register.nameless"))
	v.Verifies = a.Verifier != nil && v.Shown.File != ""
	if v.Method != "" {
		v.Proof = "/signatures/" + v.Operation + "/proof.json"
	}
	return v, nil
}

// verify verifies the stored document of a signature now.
func (a *API) verify(ctx context.Context, r ofSignature) (view.View, error) {
	v, err := a.oneView(ctx, r)
	if err != nil {
		return view.View{}, err
	}
	if !v.Verifies {
		return view.View{}, fault.New(fault.NotFound, "the signed document is not stored any more: verify your copy of it")
	}
	w := view.VisitorOf(ctx).Words
	reports, err := a.reports(ctx, &v.Signature)
	if f, refused := fault.As(err); refused && f.Code != fault.Unavailable {
		v.Unverified = w.Say(f)
		return shownOne(v), nil
	}
	if err != nil {
		return view.View{}, err
	}
	v.Verified = a.Now()
	v.Verdict = "indeterminate"
	for _, one := range reports {
		v.Verdict = one.Whole
		if u := one.Until; u != nil && !one.IsStamp() && (v.Until.IsZero() || u.Time.Before(v.Until)) {
			v.Until = u.Time
		}
		if one.Message != "" {
			v.Reasons = append(v.Reasons, cmp.Or(w.Own(one.Message), one.Message))
		}
	}
	return shownOne(v), nil
}

// verifyChosen verifies the stored documents of the marked signatures now, and shows the results together.
func (a *API) verifyChosen(ctx context.Context, r struct {
	Body rest.Form `many:"signature"`
}) (view.View, error) {
	chosen := r.Body["signature"]
	switch {
	case a.Verifier == nil:
		return view.View{}, fault.New(fault.NotFound, "this installation verifies nothing")
	case len(chosen) == 0:
		return view.View{}, fault.New(fault.InvalidParameters, "mark the signatures to verify")
	case len(chosen) > view.MaxFiles:
		return view.View{}, fault.Newf(fault.InvalidParameters, "at most %d files are verified at once", view.MaxFiles)
	}
	operations := map[string][]signing.Signature{}
	intakes := &copies{API: a, left: a.MostVerified}
	var list []view.Copy
	for _, mark := range chosen {
		of, document, _ := strings.Cut(mark, "/")
		if operations[of] == nil {
			var err error
			if operations[of], err = a.Register.Of(ctx, rest.Caller(ctx), of); err != nil {
				return view.View{}, err
			}
		}
		i := slices.IndexFunc(operations[of], func(s signing.Signature) bool { return s.Document == document })
		if i < 0 {
			return view.View{}, errNoSignature
		}
		c, err := intakes.of(ctx, &operations[of][i])
		if err != nil {
			return view.View{}, err
		}
		list = append(list, c)
	}
	rest.Concerning(ctx, strconv.Itoa(len(list))+" signatures")
	return a.Verified(ctx, list)
}

var errNoSignature = fault.New(fault.NotFound, "the register has no signature of yours with this number")

// copies makes copies of stored documents for one request.
type copies struct {
	*API
	left int64           // bytes
	room *signing.Intake // the first copy, whose limits all share
}

// of returns the copies for a signature. A document that is not stored any more has none.
func (c *copies) of(ctx context.Context, s *signing.Signature) (out view.Copy, err error) {
	out.Ref = s.Result
	out.Name = cmp.Or(s.Name, view.VisitorOf(ctx).Words.Text("register.nameless"))
	if out.Content, out.Name, err = c.copy(ctx, s.Result, out.Name); err != nil || out.Content == nil || s.Original == s.Result {
		return out, err
	}
	out.Original, out.Document, err = c.copy(ctx, s.Original, out.Name)
	return out, err
}

// copy returns a copy of a stored document, nil if it is not stored any more, and its name.
func (c *copies) copy(ctx context.Context, id, otherwise string) (*signing.Intake, string, error) {
	info, err := c.info(ctx, id)
	if err != nil || info == nil {
		return nil, otherwise, err
	}
	if c.left -= info.Size; c.left < 0 {
		return nil, otherwise, fault.Newf(fault.TooLarge, "the documents of these signatures have more than %d bytes together: mark fewer", c.MostVerified)
	}
	in, _, err := view.CopyOf(ctx, c.Documents, c.Verifier, id, c.room)
	if fault.Is(err, fault.NotFound) { // it is deleted meanwhile
		return nil, otherwise, nil
	}
	if err != nil {
		return nil, otherwise, err
	}
	rest.Afterwards(ctx, in)
	c.room = cmp.Or(c.room, in)
	return in, cmp.Or(info.Name, otherwise), nil
}

// reports verifies the result of a signature, with its original if the signature is beside it.
func (a *API) reports(ctx context.Context, s *signing.Signature) ([]signing.SignatureReport, error) {
	content, _, err := view.CopyOf(ctx, a.Documents, a.Verifier, s.Result, nil)
	if err != nil {
		return nil, err
	}
	rest.Afterwards(ctx, content)
	kind, err := a.Verifier.TypeOf(ctx, content)
	if err != nil {
		return nil, err
	}
	order := &signing.VerifyOrder{Type: cmp.Or(kind, s.Type), Content: content, WithPath: true}
	found, err := a.Verifier.Verify(ctx, order)
	if f, refused := fault.As(err); !refused || !strings.Contains(f.Message, "OriginalDocument: is missing") {
		return found, err
	}
	original, _, failed := view.CopyOf(ctx, a.Documents, a.Verifier, s.Original, content)
	if failed != nil {
		return nil, err
	}
	rest.Afterwards(ctx, original)
	order.Original = original
	return a.Verifier.Verify(ctx, order)
}

// proof answers the proof of the confirmation of an operation as a file.
func (a *API) proof(ctx context.Context, r struct {
	Operation string `path:"operation"`
}) (rest.File, error) {
	proof, err := a.Proof(ctx, rest.Caller(ctx), r.Operation)
	if err != nil {
		return rest.File{}, err
	}
	rest.Concerning(ctx, "operation "+r.Operation)
	text, err := json.MarshalIndent(proof, "", "  ")
	return rest.File{Content: bytes.NewReader(text), Name: "proof.json", Type: "application/json"}, err
}
