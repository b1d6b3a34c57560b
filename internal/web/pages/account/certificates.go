// SPDX-License-Identifier: Apache-2.0

package account

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/signing"
	"tamga/internal/domain/user"
	"tamga/internal/domain/waiting"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// Keys manages the certificates of a user; see [keys.Service].
type Keys interface {
	view.Requests
	Find(ctx context.Context, userID, id string) (*keys.Certificate, error)
	// MayExport reports whether the user may export own keys.
	MayExport(ctx context.Context, userID string) (bool, error)
	MakeDefault(ctx context.Context, a keys.Act, id string) (*keys.Certificate, error)
	SetFriendlyName(ctx context.Context, a keys.Act, id, name string) (*keys.Certificate, error)
	Request(ctx context.Context, who audit.Principal, id string) (*keys.Request, error)
}

// Acts does what users order on these pages; see [operation.Service].
type Acts interface {
	Start(ctx context.Context, o *operation.Order) (waiting *operation.Operation, result any, err error)
}

// pinFields is what a form with a new PIN says about it.
type pinFields struct {
	Allowed, Required bool
	Rule              string // for people
}

func (a *API) pinFields(w *view.Words) pinFields {
	f := pinFields{Allowed: a.PINs.Mode != keys.PINForbid, Required: a.PINs.Mode == keys.PINRequired, Rule: w.Count("certificates.pin_rule", a.PINs.Length)}
	if !a.PINs.Simple {
		f.Rule += " " + w.Text("certificates.pin_not_simple")
	}
	return f
}

func (a *API) certificateRoutes() []rest.Route {
	post := func(path, name string, f func(context.Context, onCertificate) (rest.Redirect, error)) rest.Route {
		return rest.Handle("POST "+path, name, rest.SignedIn, f).Answering(rest.Redirect{})
	}
	const one = "/certificates/{id}"
	return []rest.Route{
		view.Handle("GET /certificates", "CertificatesPage", rest.SignedIn, a.certificatesPage),
		view.Handle("GET /certificates/request", "RequestCertificatePage", rest.SignedIn, a.requestForm),
		rest.Handle("POST /certificates/request", "RequestCertificateByPage", rest.SignedIn, a.request).Answering(rest.Redirect{}),
		rest.Handle("POST /certificates/do/install", "InstallCertificateByPage", rest.SignedIn, a.newAct("install", installed)).Answering(rest.Redirect{}),
		view.Handle("GET "+one, "CertificatePage", rest.SignedIn, a.certificatePage),
		post(one+"/do/default", "SetDefaultCertificateByPage", a.makeDefault),
		post(one+"/do/name", "SetFriendlyNameByPage", a.setFriendlyName),
		post(one+"/do/pin", "ChangePinByPage", a.actOf("pin", pinChanged)),
		post(one+"/do/renew", "RenewCertificateByPage", a.actOf("renew", renewed)),
		post(one+"/do/status", "ChangeCertificateStatusByPage", a.finalAct("status", statusChanged)),
		post(one+"/do/delete", "DeleteCertificateByPage", a.finalAct("delete", deleted)),
		post(one+"/do/export", "ExportKeyByPage", a.exportKey),
		rest.Handle("GET "+one+"/certificate.cer", "DownloadCertificate", rest.SignedIn, a.downloadCertificate).Answering(rest.File{}).Exact(),
		rest.Handle("GET /certificate-requests/{id}/request.p10", "DownloadRequest", rest.SignedIn, a.downloadRequest).Answering(rest.File{}).Exact(),
		post("/certificates/do/requests/{id}/delete", "DeleteRequestByPage", a.actOf("request-delete", requestDeleted)),
	}
}

// onCertificate is a form about a certificate or a request.
type onCertificate struct {
	ID   string `path:"id"`
	Body rest.Form
}

// actOf makes the function of a form that asks for an act on what the address names. name is that
// of its words in certificates.done.
func (a *API) actOf(name string, read func(id string, form rest.Form) (*keys.Plan, error)) func(context.Context, onCertificate) (rest.Redirect, error) {
	return func(ctx context.Context, r onCertificate) (rest.Redirect, error) {
		p, err := read(r.ID, r.Body)
		if err != nil {
			return rest.Redirect{}, err
		}
		return a.perform(ctx, name, p)
	}
}

// formed is a form that is about nothing that exists.
type formed struct {
	Body rest.Form `many:"event"`
}

// newAct makes the function of a form that asks for something new.
func (a *API) newAct(name string, read func(form rest.Form) (*keys.Plan, error)) func(context.Context, formed) (rest.Redirect, error) {
	return func(ctx context.Context, r formed) (rest.Redirect, error) {
		p, err := read(r.Body)
		if err != nil {
			return rest.Redirect{}, err
		}
		return a.perform(ctx, name, p)
	}
}

// perform does an act, or leads to its confirmation.
func (a *API) perform(ctx context.Context, name string, p *keys.Plan) (rest.Redirect, error) {
	concerning(ctx, p)
	to := view.SeeOther("/certificates?done=" + name)
	waiting, _, err := a.Acts.Start(ctx, p.Ordered(rest.Caller(ctx), operation.FormPage, operation.Waits))
	if waiting != nil {
		rest.Concerning(ctx, "operation "+waiting.ID)
		to.Location = "/confirm/" + waiting.ID
	}
	return to, err
}

// concerning names in the audit entry what an act is about. Only a text that can be a number
// is written.
func concerning(ctx context.Context, p *keys.Plan) {
	for kind, id := range map[string]string{"certificate": cmp.Or(p.Certificate, p.Order.Renew), "request": p.Request} {
		if id != "" && len(id) < 20 && strings.Trim(id, "0123456789") == "" {
			rest.Concerning(ctx, kind+" "+id)
		}
	}
}

// certificatesView is the list.
type certificatesView struct {
	Wait view.Wait // for an answer to a request; the zero value: nothing

	Present, Past []view.Certificate   // that can sign, now or after their hold, and the others
	Waiting       []certificateRequest // requests that wait for an answer
	Refused       *certificateRequest  // the last request, if it was refused
	Requests      []certificateRequest // the others
	Outside       bool                 // some authority certifies outside of this program
	May           bool                 // the person may request certificates
	Done          string
}

type certificateRequest struct {
	ID                 int64
	Subject, Authority string
	Status, Type       string // keys of the words
	Deleted            string // key of what its deletion means
	Refusal            string // why it was refused; "": not said
	At                 time.Time
	Content            bool // there is a request to download
	Encrypts           bool // the certificate is for encryption, too
}

func (a *API) certificatesPage(ctx context.Context, r justDone) (view.View, error) {
	wait, err := view.WaitFor(ctx, waiting.Requests, "")
	if err != nil {
		return view.View{}, err
	}
	list, err := view.CertificatesOf(ctx, a.Certificates, a.Now())
	if err != nil {
		return view.View{}, err
	}
	requests, err := a.Keys.Requests(ctx, rest.Caller(ctx))
	if err != nil {
		return view.View{}, err
	}
	v := certificatesView{Done: view.VisitorOf(ctx).Words.Done("certificates", r.Done), Outside: slices.ContainsFunc(a.Enrolment.Authorities, func(one keys.Authority) bool { return one.Outside })}
	if v.May, err = a.Keys.MayRequest(ctx, rest.Caller(ctx).UserID); err != nil {
		return view.View{}, err
	}
	for _, c := range list {
		if c.Past() {
			v.Past = append(v.Past, c)
		} else {
			v.Present = append(v.Present, c)
		}
	}
	for _, q := range slices.Backward(requests) {
		to := &v.Requests
		if q.Status == keys.Pending {
			to = &v.Waiting
		}
		*to = append(*to, certificateRequest{
			ID: q.ID, Subject: q.Subject, Authority: q.AuthorityName, At: q.CreatedAt, Content: len(q.DER) > 0, Encrypts: q.ForEncryption(),
			Status: "request.status." + q.Status.String(), Type: "request.type." + q.Type.String(), Deleted: deletionOf(q), Refusal: q.Refusal,
		})
	}
	if n := len(requests); n > 0 && requests[n-1].Status == keys.Rejected { // the newest one, first in the list
		v.Refused, v.Requests = &v.Requests[0], v.Requests[1:]
	}
	shown := view.View{Template: "account/certificates", Title: "certificates.title"}
	if len(v.Waiting) > 0 {
		v.Wait, shown.Script = wait, view.WaitScript
	}
	shown.Content = v
	return shown, nil
}

// deletionOf returns the key of the words that say what is lost with a request.
func deletionOf(q *keys.Request) string {
	switch {
	case q.Status != keys.Pending:
		return "certificates.delete_request_over"
	case q.Type == keys.ForCertificate:
		return "certificates.delete_request_key"
	}
	return "certificates.delete_request_text"
}

// requestView is the form of a request for a certificate.
type requestView struct {
	Authorities []keys.Authority
	Suites      []string
	Names       []subjectPart
	Fixed       bool // the names cannot be changed
	PINs        pinFields

	// What was typed, in a form that is refused. A PIN is typed again.
	Sentence, Detail               string
	Authority, Suite, Days, Usages string
	Encryption                     bool
	OffersAsIs, AsIs               bool // the numbers may be taken as they are, and shall be
}

// ofOrganisation are the components of a name that are about an organisation, and digits those that are numbers: the
// registers of organisations and of persons, without what people write between the digits.
var (
	ofOrganisation = []string{"2.5.4.10", "2.5.4.11", "2.5.4.12", "2.5.4.9", "2.5.4.7", "2.5.4.8", "1.2.643.100.1", "1.2.643.100.4", "1.2.643.100.5"}
	digits         = []string{"1.2.643.3.131.1.1", "1.2.643.100.3", "1.2.643.100.1", "1.2.643.100.4", "1.2.643.100.5"}
)

// Digits reports whether the component is a number.
func (p subjectPart) Digits() bool { return slices.Contains(digits, p.OID) }

// Owner returns the components that are about the person.
func (v requestView) Owner() []*subjectPart { return v.parts(false) }

// Organisation returns those that are about an organisation.
func (v requestView) Organisation() []*subjectPart { return v.parts(true) }

func (v requestView) parts(organisation bool) (list []*subjectPart) {
	for i := range v.Names {
		if p := &v.Names[i]; slices.Contains(ofOrganisation, p.OID) == organisation {
			list = append(list, p)
		}
	}
	return list
}

// Opens reports whether the components of an organisation are shown at once: something is or must be in them.
func (v requestView) Opens() bool {
	return slices.ContainsFunc(v.Organisation(), func(p *subjectPart) bool { return p.Value != "" || p.Required })
}

// between is what people write between the digits of a number.
var between = strings.NewReplacer(" ", "", "\u00a0", "", "-", "", "\u2011", "", "(", "", ")", "")

// componentOf returns a component of a name from a form.
func componentOf(form rest.Form, oid string) string {
	value := strings.TrimSpace(form.Get(subjectField + oid))
	if slices.Contains(digits, oid) {
		return between.Replace(value)
	}
	return value
}

// refusedRequest is a fault about a request. Its page is the form with what was typed.
type refusedRequest struct {
	error
	form requestView
}

func (r refusedRequest) Unwrap() error { return r.error }

// Again returns the form with the reason above it.
func (r refusedRequest) Again(why view.Refusal) view.View {
	r.form.Sentence, r.form.Detail = why.Sentence, why.Detail
	return view.View{Template: "account/request", Title: "certificates.request", Content: r.form}
}

// request asks for a certificate.
func (a *API) request(ctx context.Context, r formed) (rest.Redirect, error) {
	var to rest.Redirect
	err := a.checkOwnNumbers(ctx, r.Body)
	if err == nil {
		to, err = a.newAct("request", a.requested)(ctx, r)
	}
	if _, refused := fault.As(err); !refused {
		return to, err
	}
	v, failed := a.requestView(ctx)
	if failed != nil {
		return to, err
	}
	v.Authority, v.Suite, v.Days, v.Usages = r.Body.Get("authority"), r.Body.Get("suite"), r.Body.Get("days"), r.Body.Get("usages")
	v.Encryption = r.Body.Get("encryption") == "yes"
	for i := range v.Names {
		if !v.Fixed {
			v.Names[i].Value = r.Body.Get(subjectField + v.Names[i].OID)
		}
	}
	v.OffersAsIs, v.AsIs = view.AsIs(err, r.Body)
	if v.OffersAsIs && !v.AsIs {
		v.doubt(view.VisitorOf(ctx).Words, a.Enrolment.Naming)
	}
	return to, refusedRequest{err, v}
}

// subjectField begins the names of the fields of a subject, before an object identifier.
const subjectField = "name."

// checkOwnNumbers doubts numbers of a subject whose check digits do not fit, if they are not the
// registered ones.
func (a *API) checkOwnNumbers(ctx context.Context, form rest.Form) error {
	if a.Enrolment.FixedNames || form.Get(view.AsIsField) != "" {
		return nil
	}
	profile, err := a.profile(ctx)
	if err != nil {
		return err
	}
	asked := map[string]string{}
	for _, c := range a.Enrolment.Naming {
		if value := componentOf(form, c.OID); value != profile[c.OID] {
			asked[c.OID] = value
		}
	}
	return view.VisitorOf(ctx).Words.Doubted(user.CheckNumbers(a.Enrolment.Naming, asked), a.Enrolment.Naming)
}

// subjectPart is a component of the subject.
type subjectPart struct {
	user.Component
	Value   string
	Problem string // what is doubtful about the value; "": nothing
}

// doubt says beside each part of the subject what is doubtful about it.
func (v *requestView) doubt(w *view.Words, components []user.Component) {
	values := map[string]string{}
	for _, n := range v.Names {
		values[n.OID] = strings.TrimSpace(n.Value)
	}
	doubts := user.Doubts(components, values)
	for i := range v.Names {
		if message, has := doubts[v.Names[i].OID]; has {
			f, _ := fault.As(w.InLabels(fault.New(fault.InvalidParameters, message), components))
			v.Names[i].Problem = w.Own(f.Message)
		}
	}
}

func (a *API) requestForm(ctx context.Context, _ struct{}) (view.View, error) {
	v, err := a.requestView(ctx)
	return view.View{Template: "account/request", Title: "certificates.request", Content: v}, err
}

func (a *API) requestView(ctx context.Context) (requestView, error) {
	may, err := a.Keys.MayRequest(ctx, rest.Caller(ctx).UserID)
	if err == nil && !may {
		err = fault.New(fault.AccessDenied, "you may not request certificates here: ask your operator for one")
	}
	if err != nil {
		return requestView{}, err
	}
	profile, err := a.profile(ctx)
	if err != nil {
		return requestView{}, err
	}
	v := requestView{
		Authorities: a.Enrolment.Authorities, Suites: keys.Suites(), Fixed: a.Enrolment.FixedNames,
		PINs: a.pinFields(view.VisitorOf(ctx).Words),
	}
	for _, c := range a.Enrolment.Naming {
		v.Names = append(v.Names, subjectPart{Component: c, Value: cmp.Or(profile[c.OID], c.Default)})
	}
	return v, nil
}

// commonName is the component with the name of a person.
const commonName = "2.5.4.3"

// profile returns what a request has for each component if the person changes nothing. A person
// registers with the login as the common name, which is not a name for a certificate: the form
// begins with the display name, if it says more.
func (a *API) profile(ctx context.Context) (map[string]string, error) {
	if a.Profiles == nil {
		return nil, nil
	}
	who := rest.Caller(ctx)
	values, err := a.Profiles.ProfileOf(ctx, who.UserID)
	if err != nil || a.Enrolment.FixedNames {
		return values, err
	}
	u, err := a.People.Get(ctx, who.UserID)
	if err != nil {
		return nil, err
	}
	if u.DisplayName != "" && strings.EqualFold(values[commonName], u.Login) {
		values = maps.Clone(values)
		values[commonName] = u.DisplayName
	}
	return values, nil
}

// requested reads the form of a request. Names that the form does not have are the
// registered ones.
func (a *API) requested(form rest.Form) (*keys.Plan, error) {
	order := keys.CertificateOrder{Suite: form.Get("suite"), Name: map[string]string{}}
	if text := form.Get("authority"); text != "" {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fault.New(fault.InvalidEnroll, "authority: want one of the list")
		}
		order.Authority = id
	}
	if text := strings.TrimSpace(form.Get("days")); text != "" {
		days, err := strconv.ParseUint(text, 10, 16)
		if err != nil || days == 0 {
			return nil, fault.New(fault.InvalidParameters, "days: want a number of days")
		}
		order.Life = time.Duration(days) * 24 * time.Hour
	}
	if form.Get("encryption") == "yes" { // otherwise the settings decide
		yes := true
		order.Encryption = &yes
	}
	order.Usages = strings.FieldsFunc(form.Get("usages"), func(r rune) bool { return strings.ContainsRune(",; \t\r\n", r) })
	for _, c := range a.Enrolment.Naming {
		if value := componentOf(form, c.OID); value != "" && !a.Enrolment.FixedNames {
			order.Name[c.OID] = value
		}
	}
	pin, err := newPIN(form)
	return &keys.Plan{Kind: keys.ToRequest, Order: order, Secrets: keys.Secrets{New: pin}}, err
}

// newPIN returns a PIN that was typed twice.
func newPIN(form rest.Form) (string, error) {
	if form.Get("new") != form.Get("again") {
		return "", fault.New(fault.InvalidPIN, "the two new PINs differ: type the same one twice")
	}
	return form.Get("new"), nil
}

func installed(form rest.Form) (*keys.Plan, error) {
	text := strings.TrimSpace(form.Get("certificate"))
	if text == "" {
		return nil, fault.New(fault.CertificateFormat, "the certificate is missing: paste it as PEM or Base64")
	}
	return &keys.Plan{Kind: keys.ToInstall, Data: []byte(text)}, nil
}

func requestDeleted(id string, _ rest.Form) (*keys.Plan, error) {
	return &keys.Plan{Kind: keys.ToDeleteRequest, Request: id}, nil
}

func pinChanged(id string, form rest.Form) (*keys.Plan, error) {
	pin, err := newPIN(form)
	return &keys.Plan{Kind: keys.ToChangePIN, Certificate: id, Secrets: keys.Secrets{PIN: form.Get("pin"), New: pin}}, err
}

func renewed(id string, form rest.Form) (*keys.Plan, error) {
	pin, err := newPIN(form)
	return &keys.Plan{Kind: keys.ToRequest, Order: keys.CertificateOrder{Renew: id}, Secrets: keys.Secrets{PIN: form.Get("pin"), New: pin}}, err
}

// exportKey asks for a key in a file. What comes back is the page of the confirmation: a session
// alone takes no key out.
func (a *API) exportKey(ctx context.Context, r onCertificate) (rest.Redirect, error) {
	password := r.Body.Get("password")
	if password != r.Body.Get("password_again") {
		return rest.Redirect{}, fault.New(fault.InvalidParameters, "the two passwords of the file differ: type the same one twice")
	}
	p := &keys.Plan{Kind: keys.ToExport, Certificate: r.ID, Secrets: keys.Secrets{PIN: r.Body.Get("pin"), Password: password}}
	concerning(ctx, p)
	waiting, _, err := a.Acts.Start(ctx, p.Ordered(rest.Caller(ctx), operation.FormPage, operation.Always))
	if err != nil {
		return rest.Redirect{}, err
	}
	return rest.Redirect{Location: "/confirm/" + waiting.ID, See: true}, nil
}

func deleted(id string, form rest.Form) (*keys.Plan, error) {
	return &keys.Plan{Kind: keys.ToDelete, Certificate: id, DestroyKey: true}, sure(form, id)
}

// unsure is the fault of sure.
type unsure struct{ error }

func (e *unsure) Unwrap() error { return e.error }

// sure refuses a form whose user did not type the number of what is lost for good.
func sure(form rest.Form, id string) error {
	if strings.TrimSpace(form.Get("sure")) != id {
		return &unsure{fault.Newf(fault.InvalidParameters, "type the number of the certificate, %.19s, to say that you are sure", id)}
	}
	return nil
}

// statuses are the certificate statuses that a form may ask for.
var statuses = map[string]keys.Status{"hold": keys.Hold, "unhold": keys.Active, "revoke": keys.Revoked}

// revocationReasons are the reasons that a user may give (RFC 5280, section 5.3.1).
var revocationReasons = []int{0, 1, 3, 4, 5}

func statusChanged(id string, form rest.Form) (*keys.Plan, error) {
	status, known := statuses[form.Get("status")]
	if !known {
		return nil, fault.New(fault.InvalidParameters, "status: want hold, unhold or revoke")
	}
	o := keys.StatusOrder{Status: status, Comment: form.Get("comment")}
	if status == keys.Revoked {
		if err := sure(form, id); err != nil {
			return nil, err
		}
		var err error
		if o.Reason, err = strconv.Atoi(cmp.Or(form.Get("reason"), "0")); err != nil || !slices.Contains(revocationReasons, o.Reason) {
			return nil, fault.New(fault.InvalidParameters, "reason: want one of the list")
		}
	}
	return &keys.Plan{Kind: keys.ToSetStatus, Certificate: id, Status: o, Secrets: keys.Secrets{PIN: form.Get("pin")}}, nil
}

// certificateView is one certificate.
type certificateView struct {
	view.Certificate
	Info         *signing.CertificateInfo
	FriendlyName string
	Active       bool
	Revocable    bool // by the authority of this program
	Revoked      time.Time
	Reason       string // key of the word
	Comment      string
	PINs         pinFields
	Exports      bool // the person may take the key out
	Done         string

	Revoke, Delete sureForm
	Wrong          *sureForm // the form that was refused, in place of everything else; nil: none
}

// sureForm is a form for what cannot be undone. It asks for the number of the certificate.
type sureForm struct {
	Form            string // name in the address, and beginning of the ids of the fields
	Title, Text, Do string // keys
	ID              int64
	Reasons         []int
	Problem         string // why it was refused
}

// refusedAct is a fault about a form of something that cannot be undone. Its page is the form again.
type refusedAct struct {
	error
	page certificateView
}

func (r refusedAct) Unwrap() error { return r.error }

// Again returns the form with the reason at its field.
func (r refusedAct) Again(view.Refusal) view.View {
	return view.View{Template: "account/certificate", Title: "certificates.one", Content: r.page}
}

// finalAct makes the function of a form of something that cannot be undone. A wrong number in it shows the form again.
func (a *API) finalAct(name string, read func(id string, form rest.Form) (*keys.Plan, error)) func(context.Context, onCertificate) (rest.Redirect, error) {
	do := a.actOf(name, read)
	return func(ctx context.Context, r onCertificate) (rest.Redirect, error) {
		to, err := do(ctx, r)
		if !errors.As(err, new(*unsure)) {
			return to, err
		}
		v, failed := a.certificateView(ctx, r.ID)
		if failed != nil {
			return to, err
		}
		v.Wrong = &v.Delete
		if name == "status" {
			v.Wrong = &v.Revoke
		}
		v.Wrong.Form, v.Wrong.Problem = name, view.VisitorOf(ctx).Words.Text("certificates.not_same")
		return to, refusedAct{err, v}
	}
}

func (a *API) findCertificate(ctx context.Context, id string) (*keys.Certificate, error) {
	c, err := a.Keys.Find(ctx, rest.Caller(ctx).UserID, id)
	if err == nil {
		rest.Concerning(ctx, "certificate "+strconv.FormatInt(c.ID, 10))
	}
	return c, err
}

func (a *API) certificatePage(ctx context.Context, r struct {
	ID   string `path:"id"`
	Done string `query:"done"`
}) (view.View, error) {
	v, err := a.certificateView(ctx, r.ID)
	v.Done = view.VisitorOf(ctx).Words.Done("certificates", r.Done)
	return view.View{Template: "account/certificate", Title: "certificates.one", About: v.Owner, Content: v}, err
}

func (a *API) certificateView(ctx context.Context, id string) (certificateView, error) {
	c, err := a.findCertificate(ctx, id)
	if err != nil {
		return certificateView{}, err
	}
	v := certificateView{
		Certificate: view.DescribeCertificate(c, a.Now()), Info: signing.DescribeCertificate(c.X509), FriendlyName: c.FriendlyName,
		Active: c.Status == keys.Active, Comment: c.Comment, PINs: a.pinFields(view.VisitorOf(ctx).Words),
		Revoke: sureForm{Form: "revoke", Title: "certificates.revoke_title", Text: "certificates.revoke_hint", Do: "certificates.revoke_do", ID: c.ID, Reasons: revocationReasons},
		Delete: sureForm{Form: "delete", Title: "certificates.delete_title", Text: "certificates.delete_hint", Do: "certificates.delete", ID: c.ID},
	}
	if v.Encrypts {
		v.Delete.Text = "certificates.delete_reads"
	}
	if v.Exports, err = a.Keys.MayExport(ctx, rest.Caller(ctx).UserID); err != nil {
		return v, err
	}
	v.Revocable = !c.Outside && c.Status != keys.Revoked
	if !c.RevokedAt.IsZero() {
		v.Revoked, v.Reason = c.RevokedAt, "reason."+strconv.Itoa(c.Reason)
	}
	return v, nil
}

func (a *API) makeDefault(ctx context.Context, r onCertificate) (rest.Redirect, error) {
	c, err := a.findCertificate(ctx, r.ID)
	if err == nil {
		_, err = a.Keys.MakeDefault(ctx, keys.Act{Who: rest.Caller(ctx)}, strconv.FormatInt(c.ID, 10))
	}
	return view.SeeOther("/certificates?done=default"), err
}

func (a *API) setFriendlyName(ctx context.Context, r onCertificate) (rest.Redirect, error) {
	c, err := a.findCertificate(ctx, r.ID)
	if err != nil {
		return rest.Redirect{}, err
	}
	id := strconv.FormatInt(c.ID, 10)
	_, err = a.Keys.SetFriendlyName(ctx, keys.Act{Who: rest.Caller(ctx)}, id, r.Body.Get("name"))
	return view.SeeOther("/certificates/" + id + "?done=name"), err
}

func (a *API) downloadCertificate(ctx context.Context, r struct {
	ID string `path:"id"`
}) (rest.File, error) {
	c, err := a.findCertificate(ctx, r.ID)
	if err != nil {
		return rest.File{}, err
	}
	return rest.File{Content: bytes.NewReader(c.X509.Raw), Name: "certificate-" + strconv.FormatInt(c.ID, 10) + ".cer", Type: "application/pkix-cert"}, nil
}

func (a *API) downloadRequest(ctx context.Context, r struct {
	ID string `path:"id"`
}) (rest.File, error) {
	q, err := a.Keys.Request(ctx, rest.Caller(ctx), r.ID)
	if err == nil && len(q.DER) == 0 {
		err = fault.New(fault.RequestNotFound, "a request for a revocation has no file")
	}
	if err != nil {
		return rest.File{}, err
	}
	id := strconv.FormatInt(q.ID, 10)
	rest.Concerning(ctx, "request "+id)
	return rest.File{Content: bytes.NewReader(q.DER), Name: "request-" + id + ".p10", Type: "application/pkcs10"}, nil
}
