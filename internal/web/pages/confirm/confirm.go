// SPDX-License-Identifier: Apache-2.0

package confirm

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"html/template"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/passkey"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/signing"
	"tamga/internal/domain/waiting"
	"tamga/internal/web/pages/pdfjs"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// Confirmations keeps what waits for its user; see [confirm.Service].
type Confirmations interface {
	Open(ctx context.Context, userID, after string, limit int) ([]confirm.Record, error)
	Present(ctx context.Context, who audit.Principal, id string) (confirm.Prompt, error)
	Content(ctx context.Context, who audit.Principal, id string) (confirm.Content, error)
	AnswerOnPage(ctx context.Context, who audit.Principal, refID string, o confirm.OnPage) (confirm.Prompt, error)
	Decline(ctx context.Context, who audit.Principal, id string) (confirm.Record, error)
	Spend(ctx context.Context, who audit.Principal, id string, sum what.Digest, locked lock.Set, change func(ctx context.Context, r *confirm.Record) error) (spent bool, err error)
}

// Steps begins challenges; see [signin.Service].
type Steps interface {
	Challenge(ctx context.Context, c *signin.Confirmer, r *confirm.Record, choice signin.Choice) (confirm.Prompt, error)
	Choices(ctx context.Context, c *signin.Confirmer, r *confirm.Record) ([]confirm.Choice, error)
}

// ToConfirm opens documents that wait for a confirmation.
type ToConfirm interface {
	ConfirmedDocument(ctx context.Context, who audit.Principal, id string, index int, original bool) (ToSee, error)
}

// ToSee is an open document.
type ToSee interface {
	io.ReaderAt
	io.Closer
	rest.Content
}

const (
	confirmPage = 20      // entries of a list
	maxShown    = 1 << 20 // bytes of a text or a picture that a page shows
)

// Routes returns the pages of confirmations.
func (a *API) Routes() []rest.Route {
	return []rest.Route{
		view.Handle("GET /confirm", "ConfirmPages", rest.SignedIn, a.confirmList),
		view.Handle("GET /confirm/{id}", "ConfirmPage", rest.SignedIn, a.confirmOne),
		rest.Handle("POST /confirm/{id}", "ConfirmByPage", rest.SignedIn, a.confirmBy).Answering(rest.Redirect{}, rest.File{}),
		rest.Handle("GET /confirm/{id}/documents/{index}", "DownloadToConfirm", rest.SignedIn, a.downloadToConfirm).Answering(rest.File{}),
		rest.Handle("GET /confirm/{id}/shown/{index}", "ShowToConfirm", rest.SignedIn, a.showToConfirm).Answering(rest.File{}, rest.Redirect{}),
		view.Handle("GET /confirm/{id}/pdf/{index}", "ShowPDFToConfirm", rest.SignedIn, a.showPDFToConfirm),
	}
}

// confirming returns the caller as the user who confirms, whatever client asks for it. Only
// the user's own session confirms: an operator who acts for the user has no part in it.
func confirming(ctx context.Context) (audit.Principal, error) {
	who := rest.Caller(ctx)
	if who.Actor != "" {
		return who, fault.New(fault.AccessDenied, "only the user confirms, and not an operator who acts as the user")
	}
	who.ClientID = ""
	return who, nil
}

// confirmer returns the caller for the choice of a method. A page can handle every method.
func confirmer(who audit.Principal) *signin.Confirmer {
	return &signin.Confirmer{Who: who, Client: signin.Client{ConfirmMethods: confirm.MethodNames()}}
}

// Waiting is a record in a list.
type Waiting struct {
	ID, Action, Client string
	Name, Kind         string // of the first document, where it was asked for, and its ending; see Named
	Documents          int
	State              string // key of the word
	Created, Before    time.Time
}

func (a *API) waiting(w *view.Words, r *confirm.Record) Waiting {
	return Waiting{
		ID: r.ID, Action: what.ActionName(r.Action, w.Language), Client: a.Clients.Named(w, r.ClientID).Name, Documents: r.Documents,
		State: "operation." + string(r.State), Created: r.CreatedAt, Before: dueOf(r),
	}
}

// Others is the number of documents besides the first one.
func (w Waiting) Others() int { return w.Documents - 1 }

// Named gives the entries of a list the names of their first documents.
func (a *API) Named(ctx context.Context, list []Waiting) error {
	who, err := confirming(ctx)
	if err != nil { // an operator who acts for the user does not see them
		return nil
	}
	for i := range list {
		if list[i].Documents == 0 {
			continue
		}
		content, err := a.Confirmations.Content(ctx, who, list[i].ID)
		switch {
		case fault.Is(err, fault.InvalidTransaction), fault.Is(err, fault.NotFound): // it has ended meanwhile
			continue
		case err != nil:
			return err
		}
		if documents := content.Fields.Documents; len(documents) > 0 {
			list[i].Name, list[i].Kind = view.Visible(documents[0].Name), view.KindIn(documents[0].Name)
		}
	}
	return nil
}

// dueOf returns when a record ends by itself.
func dueOf(r *confirm.Record) time.Time {
	if r.State == confirm.Confirmed {
		return r.CompleteBefore
	}
	return r.ConfirmBefore
}

// WaitingFor returns what waits for the caller, the oldest first, and where the next page
// begins. A second step of a sign-in is for the page of that sign-in alone.
func (a *API) WaitingFor(ctx context.Context, after string, most int) (list []Waiting, next string, err error) {
	who, w := rest.Caller(ctx), view.VisitorOf(ctx).Words
	for {
		records, err := a.Confirmations.Open(ctx, who.UserID, after, most+1)
		if err != nil {
			return nil, "", err
		}
		for i := range records {
			r := &records[i]
			if len(list) == most {
				return list, after, nil
			}
			if after = r.ID; !r.Purpose.SignIn() {
				list = append(list, a.waiting(w, r))
			}
		}
		if len(records) <= most {
			return list, "", nil
		}
	}
}

type confirmListView struct {
	List []Waiting
	Next string // address of the next page; "" for none
}

func (a *API) confirmList(ctx context.Context, r struct {
	After string `query:"after"`
}) (view.View, error) {
	if len(r.After) > 64 {
		return view.View{}, fault.New(fault.InvalidParameters, "after: want the identifier of an operation")
	}
	list, next, err := a.WaitingFor(ctx, r.After, confirmPage)
	if err != nil {
		return view.View{}, err
	}
	if err := a.Named(ctx, list); err != nil {
		return view.View{}, err
	}
	v := confirmListView{List: list}
	if next != "" {
		v.Next = "/confirm?after=" + next
	}
	return view.View{Template: "confirm/list", Title: "confirm.title", Main: "text", Content: v}, nil
}

// confirmView is one record.
type confirmView struct {
	Waiting
	Operator string // who asks for the user; "" for the user
	Type     string // of signature, in words; "" with Ways
	Ways     []confirmWay
	Signer   *view.Certificate
	Group    string         // check number
	Values   []confirmValue // in words
	Exact    []confirmValue // all that is confirmed beside the documents, as it is digested
	More     int            // values that are not shown
	Listed   []confirmDocument
	Cut      int // documents that are not shown

	Open         bool // waits for its user
	Choices      []confirmChoice
	Problem      string // why nothing can be chosen
	Detail       string
	Wrong        string // why the code that was typed is refused
	Code         bool   // a code is awaited
	Device       bool   // a device is awaited
	Marks        bool   // documents can be marked: the answer has the marks
	Decrypts     bool   // the documents are messages that would be decrypted
	Marked       string // marks for addresses
	Passkey      string // options for the browser, if a passkey is awaited
	Ask          string
	Label        string
	Number       string    // that this page shows, for a device or for a page in another sign-in
	AsksNumber   bool      // this page asks for the number of the page in which the operation was begun
	Orphaned     bool      // the session that began it has ended, so no page shows the number of a passkey
	Left         int       // answers that are left
	AgainAt      time.Time // when the code can be sent again; zero: now
	Viewed       *pdfView  // a document that the page shows; nil: none
	AnswerBefore time.Time // of the challenge
	QR           template.URL
	Again        bool // the code can be sent again
	Wait         view.Wait
	Waits        bool   // the page goes on by itself
	Running      bool   // confirmed, and carried out without a request
	Finish       string // key of what a confirmed one waits for on this page; "": nothing
	PIN          bool   // it waits for the PIN of the key
	Elsewhere    bool   // confirmed, and carried out by its client
	There        bool   // confirmed, and of use in the session that began it alone
	Ended        string // why it has ended; "" if it is open
	Result       string // address of the result
	Heading      string // key of what has become of it; "": that of the page
	Signed       bool   // the register has what it signed
	Following    string // identifier of another one that waits; "": none is known
}

// confirmWay is one of several ways in which the documents are signed.
type confirmWay struct {
	Type      string // of signature, in words
	Documents int
	Values    []confirmValue // in words
}

type confirmValue struct {
	Name, Value string
	Raw         bool // the name has no words
}

type confirmChoice struct{ Value, Key, Label, Icon string }

// icons are those of methods.
var icons = map[string]string{"mydss": "phone", "mobile": "phone", "otpviasms": "sms", "otpviaemail": "mail", "oath": "codes", "passkey": "passkey"}

type confirmDocument struct {
	Index          int
	Name           string
	Size           int64
	Digest, Hash   string
	Known, Related bool   // the bytes are here; so is the content of a signed message
	Shows          bool   // a browser can show it, by its name
	Refused        bool   // the user has marked it
	State          string // key of the word
	Way            string // of the first document of one of several ways: its Type
}

// shows are the ends of the names of documents that a browser is sent to look at. What is sent follows from their bytes.
var shows = []string{".pdf", ".png", ".jpg", ".jpeg", ".gif", ".txt", ".csv", ".xml", ".json", ".md"}

// Number is the number of a document for people.
func (d confirmDocument) Number() int { return d.Index + 1 }

// Limits of what a page shows of a record.
const (
	shownFields    = 60
	shownDocuments = 200
)

func (a *API) confirmOne(ctx context.Context, r struct {
	ID       string `path:"id"`
	Others   string `query:"others"`
	Declined string `query:"declined"`
}) (view.View, error) {
	v, err := a.confirmed(ctx, r.ID, r.Others != "")
	v.mark(marksIn(r.Declined))
	return v.shown(a.Address), err
}

// confirmed describes a record and what the user can do now.
func (a *API) confirmed(ctx context.Context, id string, others bool) (v confirmView, err error) {
	who, err := confirming(ctx)
	if err != nil {
		return v, err
	}
	wait, err := view.WaitFor(ctx, waiting.Confirmation, id)
	if err != nil {
		return v, err
	}
	p, content, err := a.toConfirm(ctx, who, id)
	if err != nil {
		return v, err
	}
	v = a.confirmView(view.VisitorOf(ctx).Words, &p.Record, &content)
	if v.Signer, err = a.signer(ctx, content.Fields.Certificate); err != nil {
		return v, err
	}
	v.Wait = wait
	if err := a.offer(ctx, who, &p, others, &v); err != nil {
		return v, err
	}
	return v, a.goOn(ctx, &v)
}

// goOn adds where a person goes whose answer is given.
func (a *API) goOn(ctx context.Context, v *confirmView) error {
	if v.Ended == "" && !v.Elsewhere && !v.There {
		return nil
	}
	switch signed := v.Documents > 0 && !v.Decrypts; {
	case v.Ended == "operation."+string(confirm.Completed):
		if v.Signed = signed; signed {
			v.Heading = "confirm.heading_signed"
		}
	case v.Ended == "":
		v.Heading = "confirm.heading_confirmed"
	}
	list, _, err := a.WaitingFor(ctx, "", 2)
	for i := range list {
		if list[i].ID != v.ID && list[i].State != "operation."+string(confirm.Confirmed) {
			v.Following = list[i].ID
			break
		}
	}
	return err
}

// shown returns the page.
func (v confirmView) shown(address string) view.View {
	shown := view.View{Template: "confirm/one", Title: "confirm.one", Main: "desk two answer", Alone: v.Open}
	if !v.Open {
		shown.Title = "confirm.answered"
	}
	switch {
	case v.Waits && v.Passkey != "":
		shown.Script = view.WaitScript + rest.PasskeyScript
	case v.Waits:
		shown.Script = view.WaitScript
	case v.Passkey != "":
		shown.Script = rest.PasskeyScript
	}
	if v.Viewed = v.toView(); v.Viewed != nil {
		shown.Script += viewScript
		shown.Modules = pdfjs.Modules(address)
	}
	shown.Content = v
	return shown
}

// toView returns the first PDF of the documents that wait, nil for none.
func (v *confirmView) toView() *pdfView {
	if !v.Open {
		return nil
	}
	for i := range v.Listed {
		d := &v.Listed[i]
		if d.Known && !d.Related && d.Size <= maxPDF && strings.HasSuffix(strings.ToLower(d.Name), ".pdf") {
			return &pdfView{ID: v.ID, Name: d.Name, Size: d.Size, Document: "/confirm/" + v.ID + "/documents/" + strconv.Itoa(d.Index), Script: pdfjs.Main, Worker: pdfjs.Worker}
		}
	}
	return nil
}

// signer returns the certificate of the caller with a digest, nil for none.
func (a *API) signer(ctx context.Context, digest []byte) (*view.Certificate, error) {
	if len(digest) == 0 {
		return nil, nil
	}
	list, err := a.Certificates.List(ctx, rest.Caller(ctx).UserID)
	if err != nil {
		return nil, err
	}
	for _, c := range list {
		if bytes.Equal(c.Digest(), digest) {
			shown := view.DescribeCertificate(c, a.Now())
			return &shown, nil
		}
	}
	return nil, nil // it is deleted
}

// toConfirm finds a record that a page may show.
func (a *API) toConfirm(ctx context.Context, who audit.Principal, id string) (confirm.Prompt, confirm.Content, error) {
	p, err := a.Confirmations.Present(ctx, who, id)
	if err == nil && p.Record.Purpose.SignIn() {
		err = fault.New(fault.InvalidTransaction, "you have no confirmation with this identifier")
	}
	if err != nil {
		return p, confirm.Content{}, err
	}
	rest.Concerning(ctx, p.Record.ID)
	c, err := a.Confirmations.Content(ctx, who, id)
	return p, c, err
}

// confirmView describes a record by the fields whose digest is confirmed.
func (a *API) confirmView(w *view.Words, r *confirm.Record, c *confirm.Content) confirmView {
	f := &c.Fields
	v := confirmView{
		Waiting: a.waiting(w, r), Operator: r.Operator, Group: what.CheckNumber(r.Action, r.What), Decrypts: r.Action == policy.DecryptDocument.String(),
	}
	exact := func(name, value string) {
		v.Exact = append(v.Exact, confirmValue{Name: name, Value: view.Visible(value), Raw: true})
	}
	for _, one := range []confirmValue{
		{Name: "action", Value: f.Action}, {Name: "certificate", Value: hex.EncodeToString(f.Certificate)},
		{Name: "public_key", Value: hex.EncodeToString(f.PublicKey)}, {Name: "signature_type", Value: f.SignatureType},
	} {
		if one.Value != "" {
			exact(one.Name, one.Value)
		}
	}
	// describe adds values to the exact ones, and returns those in words that are not said.
	describe := func(prefix string, values what.Values, said []string) (list []confirmValue) {
		for _, one := range values.List() {
			if len(v.Exact) >= shownFields {
				v.More++
				continue
			}
			text := one.Value
			if one.Digest != nil {
				text = hex.EncodeToString(one.Digest)
			}
			exact(prefix+one.Name, text)
			if !slices.Contains(said, one.Name) {
				inWords := confirmed(w, one)
				inWords.Value = view.Visible(inWords.Value)
				list = append(list, inWords)
			}
		}
		return list
	}
	ways, documents := f.InWays()
	for i, way := range ways {
		kind, said := signatureKind(w, way)
		if len(ways) == 1 {
			v.Type, v.Values = kind, describe("", way.Parameters, said)
			break
		}
		prefix := fmt.Sprintf("ways[%d].", i)
		exact(prefix+"signature_type", way.SignatureType)
		v.Ways = append(v.Ways, confirmWay{kind, len(documents[i]), describe(prefix, way.Parameters, said)})
	}
	v.Values = append(v.Values, describe("", f.Arguments, nil)...)
	states := r.DocumentStates()
	v.Cut = max(len(f.Documents)-shownDocuments, 0)
	for way, indexes := range documents {
		for n, i := range indexes {
			if len(v.Listed) == shownDocuments {
				break
			}
			d := &f.Documents[i]
			shown := confirmDocument{
				Index: i, Name: view.Visible(d.Name), Size: d.Size, Digest: hex.EncodeToString(d.Digest), Hash: d.Hash,
				Known: d.Hash == "", Related: d.Original != nil, State: "confirm.document." + string(states[i]),
			}
			shown.Shows = shown.Known && !v.Decrypts && slices.Contains(shows, strings.ToLower(path.Ext(d.Name)))
			if n == 0 && len(v.Ways) > 0 {
				shown.Way = v.Ways[way].Type
			}
			v.Listed = append(v.Listed, shown)
		}
	}
	return v
}

// offer adds what the user can do now.
func (a *API) offer(ctx context.Context, who audit.Principal, p *confirm.Prompt, others bool, v *confirmView) error {
	r, w := &p.Record, view.VisitorOf(ctx).Words
	own := r.ClientID == a.Clients.Own
	switch {
	case r.State.Final() || !a.Now().Before(dueOf(r)):
		v.Ended = "operation." + string(r.State)
		if !r.State.Final() {
			v.Ended = "operation." + string(confirm.Expired)
		}
		v.Detail = r.Message
		if own && r.State == confirm.Completed {
			v.Result = resultOf(r)
		}
		return nil
	case r.State == confirm.Confirmed:
		return a.offerEnd(ctx, r, v)
	}
	v.Open = true
	challenged := r.State == confirm.Challenged && a.Now().Before(r.AnswerBefore)
	if !challenged || others {
		list, err := a.Steps.Choices(ctx, confirmer(who), r)
		if f, ok := fault.As(err); ok {
			v.Problem, v.Detail = w.Fault(f), f.Message
			return nil
		}
		if err != nil {
			return err
		}
		// It may be begun on a page in another sign-in, which asks for the number of this one.
		here := own && !others && r.SignIn == who.TokenID
		orphaned := false
		if own && slices.ContainsFunc(list, func(c confirm.Choice) bool { return confirm.ByPage(c.Method) }) {
			if orphaned, err = a.orphaned(ctx, r, who); err != nil {
				return err
			}
		}
		for _, c := range list {
			if orphaned && confirm.ByPage(c.Method) {
				v.Orphaned = true
				continue
			}
			value := c.Method
			if c.Address != "" {
				value += "?" + c.Address
			}
			v.Choices = append(v.Choices, confirmChoice{value, "confirm.way." + c.Method, c.Label, icons[c.Method]})
			v.Waits = v.Waits || here && confirm.ByPage(c.Method)
		}
		return nil
	}
	v.Ask, v.Label, v.AnswerBefore, v.Left = "confirm.ask."+r.Method, r.Label, r.AnswerBefore, p.Left
	if p.RepeatsIn > 0 {
		v.AgainAt = a.Now().Add(p.RepeatsIn + time.Minute - 1).Truncate(time.Minute) // the page shows minutes
	}
	v.Passkey, v.AsksNumber = string(p.Request), r.AsksNumber(who.TokenID)
	if r.ShowsNumber(who.TokenID) {
		v.Number = r.Number
	}
	if v.AsksNumber {
		orphaned, err := a.orphaned(ctx, r, who)
		if err != nil {
			return err
		}
		if orphaned {
			v.Orphaned, v.AsksNumber, v.Passkey = true, false, ""
			return nil
		}
	}
	v.Waits = v.Number != "" // it may be answered elsewhere
	v.Code = !confirm.ByPage(r.Method)
	if v.Device = confirm.ByDevice(r.Method); v.Device {
		v.Code, v.Waits = p.QR != "", true
		if p.QR != "" {
			picture, err := a.Paint(p.QR)
			if err != nil {
				return err
			}
			v.QR = view.DataURL("image/gif", picture)
		}
	}
	v.Again = !v.Device && r.Method != "oath" && v.Code // nothing is sent for a code of an app or a passkey
	return nil
}

// orphaned reports whether a record was begun in another session of the person, which has ended. No page
// shows the number of a passkey then.
func (a *API) orphaned(ctx context.Context, r *confirm.Record, who audit.Principal) (bool, error) {
	if begunBy(r, who) {
		return false, nil
	}
	lives, err := a.SignedIn(ctx, r.SignIn)
	return !lives, err
}

// offerEnd adds what follows the confirmation: it is carried out without a request, or waits for one.
func (a *API) offerEnd(ctx context.Context, r *confirm.Record, v *confirmView) error {
	own := r.ClientID == a.Clients.Own
	if r.Purpose == confirm.ForText {
		switch {
		case !own:
			v.Elsewhere = true
		case !begunBy(r, rest.Caller(ctx)):
			v.There = true
		default:
			v.Finish = "confirm.proved"
		}
		return nil
	}
	op, err := a.Operations.Find(ctx, rest.Caller(ctx), r.ID)
	if err != nil {
		return err
	}
	switch v.PIN = own && op.AwaitsPIN != nil; {
	case own && op.Kind == string(keys.ToExport):
		v.Finish = "confirm.key_ready"
	case v.PIN:
		v.Finish = "confirm.awaits_pin"
	case op.StartsAlone() && op.AwaitsPIN == nil:
		v.Running, v.Waits = true, true
	default:
		v.Elsewhere = true
	}
	return nil
}

// begunBy reports whether a record was begun in the session of a person. A record of a release before does not say.
func begunBy(r *confirm.Record, who audit.Principal) bool {
	return r.SignIn == "" || r.SignIn == who.TokenID
}

// resultOf returns the page of what a record of these pages has made.
func resultOf(r *confirm.Record) string {
	switch {
	case r.Documents > 0:
		return view.ResultAt(r.Action, r.ID)
	case r.Purpose == confirm.ForOperation:
		return "/certificates"
	}
	return "/devices"
}

// confirmBy does what the user pressed. A record that has moved on meanwhile, in another
// tab or on a device, is shown as it is now.
func (a *API) confirmBy(ctx context.Context, r struct {
	ID   string    `path:"id"`
	Body rest.Form `many:"listed,document,declined"`
}) (any, error) {
	who, err := confirming(ctx)
	if err != nil {
		return nil, err
	}
	p, _, err := a.toConfirm(ctx, who, r.ID)
	if err != nil {
		return nil, err
	}
	record := &p.Record
	declined, err := declinedIn(r.Body)
	if err != nil {
		return nil, err
	}
	here := confirmAgain(record.ID, declined, false)
	switch form, own := r.Body, record.ClientID == a.Clients.Own; {
	case record.State == confirm.Confirmed && own && form.Get("finish") != "":
		return a.carryOut(ctx, record, form.Get("pin"))
	case record.State != confirm.Created && record.State != confirm.Challenged:
	case form.Get("finish") != "":
	case form.Get("decline") != "":
		_, err = a.Confirmations.Decline(ctx, who, record.ID)
	case form.Get("others") != "":
		here = confirmAgain(record.ID, declined, true)
	case form.Get("choice") != "":
		method, address, _ := strings.Cut(form.Get("choice"), "?")
		_, err = a.Steps.Challenge(ctx, confirmer(who), record, signin.Choice{Method: method, Address: address, Titles: a.showsTitle(record, method)})
	case form.Get("again") != "":
		_, err = a.Steps.Challenge(ctx, confirmer(who), record, signin.Choice{Method: record.Method, Titles: a.showsTitle(record, record.Method)})
	default:
		return a.answer(ctx, who, record, form, declined)
	}
	if r.Body.Get("decline") == "" {
		here.Location += "#answering" // the code, or the ways to confirm, are below the documents
	}
	return here, err
}

// showsTitle reports whether a page shows the number of a challenge: this one that for a device, and for a passkey the page
// in which the operation was begun. What an application began has no such page.
func (a *API) showsTitle(r *confirm.Record, method string) bool {
	return confirm.ByDevice(method) || r.ClientID == a.Clients.Own
}

// answer takes a code. What the user began on these pages is carried out at once.
func (a *API) answer(ctx context.Context, who audit.Principal, r *confirm.Record, form rest.Form, declined []int) (any, error) {
	code := strings.Join(strings.Fields(form.Get("code")), "")
	if signed := form.Get("passkey"); signed != "" && len(signed) <= passkey.MaxAnswer {
		code = signed
	} else if code == "" || len(code) > 64 {
		return nil, fault.New(fault.InvalidParameters, "type the code that was sent to you")
	}
	number := strings.TrimSpace(form.Get("number"))
	p, err := a.Confirmations.AnswerOnPage(ctx, who, r.RefID, confirm.OnPage{Answer: code, Number: number, Declined: declined})
	switch {
	case err != nil:
		return nil, err
	case p.Wrong != nil:
		return nil, a.wrong(ctx, p.Wrong, r.ID, declined)
	case p.Record.ClientID != a.Clients.Own || p.Record.State != confirm.Confirmed,
		p.Record.Purpose == confirm.ForText && !begunBy(&p.Record, who): // that session spends it
		return rest.Redirect{Location: "/confirm/" + r.ID, See: true}, nil
	}
	return a.carryOut(ctx, &p.Record, "")
}

// carryOut carries out what the user began on these pages and has confirmed, without waiting for a process
// that would do so, and answers the result. While a service is out of order, that process tries again. After a
// wrong PIN the page asks for the right one.
func (a *API) carryOut(ctx context.Context, r *confirm.Record, pin string) (any, error) {
	who := rest.Caller(ctx)
	to := rest.Redirect{Location: resultOf(r), See: true}
	switch {
	case r.Purpose != confirm.ForOperation:
		return a.Proved(ctx, r)
	case r.Documents > 0:
		op, err := a.CarryOutSigning(ctx, who, &signing.ConfirmedOrder{ID: r.ID, Form: operation.FormPage, PIN: pin})
		if err != nil {
			return nil, a.wrongPIN(ctx, err, r.ID)
		}
		rest.Afterwards(ctx, op)
	default:
		op, made, err := a.Acts.CarryOut(ctx, who, &operation.Claim{ID: r.ID, Form: operation.FormPage, Kinds: keys.Names(), PIN: pin})
		if err != nil {
			return nil, a.wrongPIN(ctx, err, r.ID)
		}
		if e, ok := made.(*keys.Exported); ok { // it is not stored, so a repetition of the form gets no key
			return exportedFile(ctx, e), nil
		}
		if to.Location += "?done=confirmed"; op.State == operation.Confirmed {
			to.Location = "/confirm/" + r.ID
		}
	}
	return to, nil
}

// wrongPIN returns the fault of carrying out with the page that asks for the PIN, if it is about the PIN.
func (a *API) wrongPIN(ctx context.Context, refused error, id string) error {
	if !fault.Is(refused, fault.InvalidPIN) {
		return refused
	}
	v, err := a.confirmed(ctx, id, false)
	if err != nil || !v.PIN {
		return refused
	}
	return wrongCode{refused, v, a.Address}
}

// exportedFile returns the file of a confirmed export, for the audit entry of the request, too.
func exportedFile(ctx context.Context, e *keys.Exported) rest.File {
	id := strconv.FormatInt(e.Certificate, 10)
	rest.Detail(ctx, "the key of certificate "+id+" was exported")
	return rest.File{Content: bytes.NewReader(e.File), Name: "certificate-" + id + ".p12", Type: "application/x-pkcs12"}
}
