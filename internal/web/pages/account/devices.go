// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"html/template"
	"slices"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/device"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/oath"
	"tamga/internal/domain/passkey"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/waiting"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// Devices are the mobile devices of the caller; see [device.Service]. It must reach the
// caller alone.
type Devices interface {
	Info(ctx context.Context, who audit.Principal, userID string) (device.Info, error)
	Init(ctx context.Context, who audit.Principal, userID string, o device.KInitOrder) (device.KInit, error)
	GetKInit(ctx context.Context, who audit.Principal, userID string) (device.KInit, error)
	ResendCode(ctx context.Context, who audit.Principal, userID string, o device.KInitOrder) error
	DeleteKInit(ctx context.Context, who audit.Principal, userID string) error
	BeginVerification(ctx context.Context, who audit.Principal, userID, kid string) (device.Verification, error)
	SetBlocked(ctx context.Context, who audit.Principal, userID, kid string, block bool) (device.Device, error)
	Delete(ctx context.Context, who audit.Principal, userID, kid string) error
}

// Contacts are the phones and e-mail addresses of the caller; see [contact.Book]. It must
// reach the caller alone.
type Contacts interface {
	List(ctx context.Context, who audit.Principal, userID string, kind contact.Kind) ([]contact.Contact, error)
	Add(ctx context.Context, who audit.Principal, userID string, kind contact.Kind, value string) (contact.Contact, error)
	RequireConfirmation(ctx context.Context, who audit.Principal, userID string, kind contact.Kind, value string) error
	SubmitConfirmation(ctx context.Context, who audit.Principal, userID string, kind contact.Kind, value, code string) (contact.Contact, error)
	SetNotification(ctx context.Context, who audit.Principal, userID string, kind contact.Kind, value string, notification bool) (contact.Contact, error)
	SetSecondaryAuth(ctx context.Context, who audit.Principal, userID string, kind contact.Kind, value string) error
	Delete(ctx context.Context, who audit.Principal, userID string, kind contact.Kind, value string) error
}

// Apps are the tokens and apps of the caller that make codes; see [oath.Service]. It must
// reach the caller alone.
type Apps interface {
	Token(ctx context.Context, who audit.Principal, userID string) (oath.Token, error)
	CreateAppToken(ctx context.Context, who audit.Principal, userID string) (oath.AppData, error)
	RemoveToken(ctx context.Context, who audit.Principal, userID string) error
	// CheckOneTimePassword spends a code of the user's token, or counts it as a wrong one.
	CheckOneTimePassword(ctx context.Context, userID, code string) error
}

func (a *API) deviceRoutes() []rest.Route {
	post := func(path, name string, f func(ctx context.Context, who audit.Principal, form rest.Form) error) rest.Route {
		return rest.Handle("POST /devices/do/"+path, name, rest.SignedIn, a.onFactors(path, f)).Answering(rest.Redirect{})
	}
	return []rest.Route{
		view.Handle("GET /devices", "DevicesPage", rest.SignedIn, a.devicesPage),
		view.Handle("GET /devices/activation", "ActivationPage", rest.SignedIn, a.activation),
		rest.Handle("POST /devices/do/prove", "ProveByPage", rest.SignedIn, a.prove).Answering(rest.Redirect{}),
		rest.Handle("POST /devices/do/activate", "ActivateDeviceByPage", rest.SignedIn, a.activate).Answering(rest.Redirect{}),
		post("code", "ResendActivationByPage", func(ctx context.Context, who audit.Principal, form rest.Form) error {
			return a.Devices.ResendCode(ctx, who, who.UserID, orderTo(form.Get("contact")))
		}),
		post("cancel", "CancelActivationByPage", func(ctx context.Context, who audit.Principal, _ rest.Form) error {
			return a.Devices.DeleteKInit(ctx, who, who.UserID)
		}),
		view.Handle("POST /devices/do/verify", "VerifyDeviceByPage", rest.SignedIn, a.verifyDevice),
		post("block", "BlockDeviceByPage", func(ctx context.Context, who audit.Principal, form rest.Form) error {
			_, err := a.Devices.SetBlocked(ctx, who, who.UserID, form.Get("device"), true)
			return err
		}),
		post("unblock", "UnblockDeviceByPage", func(ctx context.Context, who audit.Principal, form rest.Form) error {
			_, err := a.Devices.SetBlocked(ctx, who, who.UserID, form.Get("device"), false)
			return err
		}),
		post("delete", "DeleteDeviceByPage", func(ctx context.Context, who audit.Principal, form rest.Form) error {
			return a.Devices.Delete(ctx, who, who.UserID, form.Get("device"))
		}),
		post("contact", "AddContactByPage", a.addContact),
		post("contact-code", "SendContactCodeByPage", a.onContact(a.Contacts.RequireConfirmation)),
		post("contact-confirm", "ConfirmContactByPage", func(ctx context.Context, who audit.Principal, form rest.Form) error {
			value := form.Get("contact")
			_, err := a.Contacts.SubmitConfirmation(ctx, who, who.UserID, contact.KindOf(value), value, strings.Join(strings.Fields(form.Get("code")), ""))
			return a.atField(ctx, err, value, "")
		}),
		post("contact-notify", "SetContactNotificationByPage", func(ctx context.Context, who audit.Principal, form rest.Form) error {
			value := form.Get("contact")
			_, err := a.Contacts.SetNotification(ctx, who, who.UserID, contact.KindOf(value), value, form.Get("on") != "")
			return err
		}),
		post("contact-codes", "SetContactForCodesByPage", a.onContact(a.Contacts.SetSecondaryAuth)),
		post("contact-delete", "DeleteContactByPage", a.deleteContact),
		view.Handle("POST /devices/do/app", "AddAppByPage", rest.SignedIn, a.addApp),
		rest.Handle("POST /devices/do/app-check", "CheckAppByPage", rest.SignedIn, a.checkApp).Answering(rest.Redirect{}),
		post("app-delete", "DeleteAppByPage", func(ctx context.Context, who audit.Principal, _ rest.Form) error {
			return a.Apps.RemoveToken(ctx, who, who.UserID)
		}),
	}
}

// factors says what a person signs in and confirms with.
type factors struct {
	devices  device.Info
	contacts []contact.Contact
	token    oath.Token
	hasToken bool
	passkeys []passkey.Passkey
	methods  []string // names of those that the person has
}

func (a *API) factors(ctx context.Context, who audit.Principal) (f factors, err error) {
	if f.devices, err = a.Devices.Info(ctx, who, who.UserID); err != nil {
		return f, err
	}
	for _, kind := range []contact.Kind{contact.Phone, contact.Email} {
		list, err := a.Contacts.List(ctx, who, who.UserID, kind)
		if err != nil {
			return f, err
		}
		f.contacts = append(f.contacts, list...)
	}
	f.token, err = a.Apps.Token(ctx, who, who.UserID)
	if f.hasToken = err == nil; err != nil && !fault.Is(err, fault.KeyNotFound) {
		return f, err
	}
	if a.Passkeys != nil {
		if f.passkeys, err = a.Passkeys.List(ctx, who, who.UserID); err != nil {
			return f, err
		}
	}
	scheme, err := a.Own.SchemeOf(ctx, who.UserID)
	for _, i := range scheme {
		m, _ := signin.MethodNamed(i.MethodURI)
		f.methods = append(f.methods, m.Name)
	}
	return f, err
}

// mayChange asks [signin.Service] whether the person may change them.
func (a *API) mayChange(ctx context.Context) (prove bool, err error) {
	return a.Own.MayChangeFactors(ctx, rest.Caller(ctx), time.Unix(view.VisitorOf(ctx).Session.Proved, 0))
}

// allowed is mayChange for a form.
func (a *API) allowed(ctx context.Context) (audit.Principal, error) {
	_, err := a.mayChange(ctx)
	return rest.Caller(ctx), err
}

// onFactors makes the function of the form at the end of a path, which changes what a person signs in
// and confirms with.
func (a *API) onFactors(path string, do func(ctx context.Context, who audit.Principal, form rest.Form) error) func(context.Context, formed) (rest.Redirect, error) {
	return func(ctx context.Context, r formed) (rest.Redirect, error) {
		who, err := a.allowed(ctx)
		if err == nil {
			err = do(ctx, who, r.Body)
		}
		return view.SeeOther("/devices?done=" + path), err
	}
}

// onContact calls a method of the book of contacts.
func (a *API) onContact(do func(ctx context.Context, who audit.Principal, userID string, kind contact.Kind, value string) error) func(context.Context, audit.Principal, rest.Form) error {
	return func(ctx context.Context, who audit.Principal, form rest.Form) error {
		value := form.Get("contact")
		return do(ctx, who, who.UserID, contact.KindOf(value), value)
	}
}

// addContact adds a contact and sends the code that confirms it.
func (a *API) addContact(ctx context.Context, who audit.Principal, form rest.Form) error {
	value := form.Get("contact")
	kind := contact.KindOf(value)
	_, err := a.Contacts.Add(ctx, who, who.UserID, kind, value)
	if err == nil {
		err = a.Contacts.RequireConfirmation(ctx, who, who.UserID, kind, value)
	}
	return a.atField(ctx, err, newContact, value)
}

// deleteContact keeps the contacts that people sign in with: without them the account may
// have no name.
func (a *API) deleteContact(ctx context.Context, who audit.Principal, form rest.Form) error {
	value := form.Get("contact")
	kind := contact.KindOf(value)
	forms, err := kind.Forms(value)
	if err != nil {
		return err
	}
	list, err := a.Contacts.List(ctx, who, who.UserID, kind)
	if err != nil {
		return err
	}
	for _, c := range list {
		if have, err := kind.Stored(c.Value); err == nil && c.Primary && slices.Contains(forms, have) {
			return fault.New(fault.WrongOperation, "you sign in with this contact: ask the operator to change it")
		}
	}
	return a.Contacts.Delete(ctx, who, who.UserID, kind, value)
}

// proofText is what a person confirms before changing factors. It names the session, so
// that the confirmation is of no use to another one.
func proofText(w *view.Words, who audit.Principal) string {
	return w.Text("devices.proof", who.TokenID[:min(len(who.TokenID), 13)])
}

// prove begins the confirmation after which the session may change factors.
func (a *API) prove(ctx context.Context, _ formed) (rest.Redirect, error) {
	who := rest.Caller(ctx)
	if who.Actor != "" {
		return rest.Redirect{}, fault.New(fault.AccessDenied, "only the user changes the own devices and contacts")
	}
	c := &signin.Confirmer{Who: who, Client: signin.Client{ConfirmMethods: confirm.MethodNames()}}
	r, err := a.TextRecord(ctx, c, proofText(view.VisitorOf(ctx).Words, who), "")
	return rest.Redirect{Location: "/confirm/" + r.ID, See: true}, err
}

// Proved spends a confirmation of prove and notes it in the session.
func (a *API) Proved(ctx context.Context, r *confirm.Record) (rest.Redirect, error) {
	to := view.SeeOther("/devices?done=prove")
	who := rest.Caller(ctx)
	content, err := a.Confirmations.Content(ctx, who, r.ID)
	if err != nil {
		return to, err
	}
	ours := false
	for _, v := range content.Fields.Arguments.List() {
		ours = ours || v.Name == "scope" && slices.ContainsFunc(view.Languages, func(w *view.Words) bool { return v.Value == proofText(w, who) })
	}
	if !ours {
		return to, fault.New(fault.InvalidTransaction, "this confirmation belongs to another session")
	}
	spent, err := a.Confirmations.Spend(ctx, who, r.ID, r.What, lock.Set{}, func(context.Context, *confirm.Record) error { return nil })
	if err == nil && spent { // a repetition of a form proves nothing again
		s := view.VisitorOf(ctx).Session
		s.Proved = a.Now().Unix()
		to.Cookie, err = a.Renew(s)
	}
	return to, err
}

// devicesView is what a person signs in and confirms with.
type devicesView struct {
	May, Prove bool // may change it; may confirm first
	Why        string
	Done       string
	Devices    []deviceRow
	Pending    bool // a device is being activated
	Contacts   []contactRow
	Reachable  []string // confirmed contacts
	Token      string   // serial number; "" for none
	App        bool
	Checked    bool // a code of the app was right just now
	Locked     time.Time

	CodeMethod bool // the person may use the contacts that codes go to
	AppMethod  bool // the person may use the app or token

	HasPasskeys   bool // the installation has passkeys
	PasskeyMethod bool // the person may use them
	Passkeys      []passkey.Passkey

	Browsers   []browserRow
	BrowserKey string // by which browsers know the installation; "": it sends them nothing

	Ways  []way
	Ready int  // ways that can be used
	Next  *way // that lacks least; nil: nothing is missing

	Wrong            string // field that is refused; see atField
	Typed            string // what a refused form had, without codes
	Sentence, Detail string // why
}

type deviceRow struct {
	Kid, Name, Type   string
	State             string // key of the word
	Verified, Blocked bool
	Ends              time.Time
}

type contactRow struct {
	contact.Contact
	Email bool
}

// seen is a query of the page of devices.
type seen struct {
	Checked bool   `query:"checked"`
	Done    string `query:"done"`
}

func (a *API) devicesPage(ctx context.Context, r seen) (view.View, error) {
	v, err := a.devicesView(ctx, r)
	return v.shown(), err
}

func (v devicesView) shown() view.View {
	shown := view.View{Template: "account/devices", Title: "devices.title", Content: v}
	if v.BrowserKey != "" {
		shown.Script = browsersScript
	}
	return shown
}

// Forms of the page of devices that a refusal is shown at, besides those of contacts.
const (
	newContact = "new"
	codeOfApp  = "app"
)

// refusedFactor is a fault about a form of the page of devices. Its page has the reason at the field.
type refusedFactor struct {
	error
	page devicesView
}

func (r refusedFactor) Unwrap() error { return r.error }

// Again returns the page with the reason at the field.
func (r refusedFactor) Again(why view.Refusal) view.View {
	r.page.Sentence, r.page.Detail = why.Sentence, why.Detail
	return r.page.shown()
}

// atField turns a refusal into one that is shown at a field: that of the code for a contact,
// newContact or codeOfApp. typed is what the field had, "" for a code.
func (a *API) atField(ctx context.Context, err error, field, typed string) error {
	_, refused := fault.As(err)
	if _, away := fault.AsOutage(err); !refused || away || fault.Is(err, fault.AccessDenied) {
		return err
	}
	v, failed := a.devicesView(ctx, seen{})
	if failed != nil {
		return err
	}
	v.Wrong, v.Typed = field, typed
	return refusedFactor{err, v}
}

func (a *API) devicesView(ctx context.Context, r seen) (devicesView, error) {
	who := rest.Caller(ctx)
	f, err := a.factors(ctx, who)
	if err != nil {
		return devicesView{}, err
	}
	v := devicesView{Pending: f.devices.KInit != nil, Token: f.token.Serial, App: f.token.App, Checked: r.Checked && f.token.App, Locked: f.token.LockedUntil}
	v.Done = view.VisitorOf(ctx).Words.Done("devices", r.Done)
	if err := a.browsers(ctx, who, &v); err != nil {
		return devicesView{}, err
	}
	v.HasPasskeys, v.PasskeyMethod, v.Passkeys = a.Passkeys != nil, slices.Contains(f.methods, passkey.Method), f.passkeys
	v.AppMethod = slices.Contains(f.methods, oath.Method)
	v.CodeMethod = slices.Contains(f.methods, contact.Phone.Method) || slices.Contains(f.methods, contact.Email.Method)
	prove, refused := a.mayChange(ctx)
	if _, ok := fault.As(refused); refused != nil && !ok {
		return devicesView{}, refused
	}
	if v.May, v.Prove = refused == nil, prove; !v.May {
		v.Why = "devices.first"
		if v.Prove {
			v.Why = "devices.prove_hint"
		}
	}
	for _, d := range f.devices.Devices {
		row := deviceRow{Kid: d.Kid, Name: d.Name, Type: d.Type, Verified: d.Verified, Blocked: d.Blocked, Ends: d.NotAfter}
		row.State = "device.state." + strings.ReplaceAll(d.State(), ",", "_")
		v.Devices = append(v.Devices, row)
	}
	for _, c := range f.contacts {
		v.Contacts = append(v.Contacts, contactRow{c, c.Type == contact.EmailAddress})
		if c.Confirmed {
			v.Reachable = append(v.Reachable, c.Value)
		}
	}
	if !v.Locked.After(a.Now()) {
		v.Locked = time.Time{}
	}
	v.Ways = f.ways(view.VisitorOf(ctx).Words, v.HasPasskeys)
	for i := range v.Ways {
		switch one := &v.Ways[i]; {
		case one.Kind == "good":
			v.Ready++
		case one.Kind == "warn" && v.May && (v.Next == nil || one.Contact != "" && v.Next.Contact == ""):
			v.Next = one
		}
	}
	return v, nil
}

// orderTo returns the order of an initialization whose code goes to a contact.
func orderTo(value string) device.KInitOrder {
	if contact.KindOf(value).Type == contact.EmailAddress {
		return device.KInitOrder{Email: value}
	}
	return device.KInitOrder{Phone: value}
}

func (a *API) activate(ctx context.Context, r formed) (rest.Redirect, error) {
	who, err := a.allowed(ctx)
	if err == nil {
		_, err = a.Devices.Init(ctx, who, who.UserID, orderTo(r.Body.Get("contact")))
	}
	return rest.Redirect{Location: "/devices/activation", See: true}, err
}

// pictureView is a QR code for a device or an app.
type pictureView struct {
	Wait view.Wait // for the device

	Hint     string // key of the text
	QR       template.URL
	Text     string // of the picture, to be typed or pasted; "": not shown
	Secret   string // of an app; "" for none
	Before   time.Time
	Contacts []string // that the code can be sent to again
	Pending  bool
}

// activation shows the QR code of the device to be, which only a person who may change
// factors sees.
func (a *API) activation(ctx context.Context, _ struct{}) (view.View, error) {
	who, err := a.allowed(ctx)
	if err != nil {
		return view.View{}, err
	}
	wait, err := view.WaitFor(ctx, waiting.Devices, "")
	if err != nil {
		return view.View{}, err
	}
	wait.Then = "/devices"
	k, err := a.Devices.GetKInit(ctx, who, who.UserID)
	if err != nil {
		return view.View{}, err
	}
	v := pictureView{Wait: wait, Hint: "devices.scan", QR: view.DataURL("image/gif", k.QR), Text: k.QRText, Before: k.NotAfter, Pending: true}
	if k.Activation {
		v.Hint = "devices.scan_code"
		f, err := a.factors(ctx, who)
		if err != nil {
			return view.View{}, err
		}
		for _, c := range f.contacts {
			if c.Confirmed {
				v.Contacts = append(v.Contacts, c.Value)
			}
		}
	}
	return view.View{Template: "account/picture", Title: "devices.activate", Main: "text", Script: view.WaitScript, Content: v}, nil
}

func (a *API) verifyDevice(ctx context.Context, r formed) (view.View, error) {
	who, err := a.allowed(ctx)
	if err != nil {
		return view.View{}, err
	}
	made, err := a.Devices.BeginVerification(ctx, who, who.UserID, r.Body.Get("device"))
	v := pictureView{Hint: "devices.scan_verify", QR: view.DataURL("image/gif", made.QR), Text: made.QRText}
	return view.View{Template: "account/picture", Title: "devices.verify", Main: "text", Content: v}, err
}

// addApp shows the secret of an app once: it is not readable later.
func (a *API) addApp(ctx context.Context, _ formed) (view.View, error) {
	who, err := a.allowed(ctx)
	if err != nil {
		return view.View{}, err
	}
	made, err := a.Apps.CreateAppToken(ctx, who, who.UserID)
	v := pictureView{Hint: "devices.scan_app", QR: view.DataURL("image/gif", made.QR), Secret: made.Secret}
	return view.View{Template: "account/picture", Title: "devices.app", Main: "text", Content: v}, err
}

// errAppCode says what a person can do about a wrong code of an app.
var errAppCode = fault.New(fault.InvalidCode, "the code is wrong, was used before, or its time is over: let the phone set its clock by itself, and type the next code")

// checkApp checks a code of the app, so that the person knows that the app has the secret
// before a sign-in depends on it. It changes no factor.
func (a *API) checkApp(ctx context.Context, r formed) (rest.Redirect, error) {
	who := rest.Caller(ctx)
	if who.Actor != "" {
		return rest.Redirect{}, fault.New(fault.AccessDenied, "only the user changes the own devices and contacts")
	}
	err := a.Apps.CheckOneTimePassword(ctx, who.UserID, strings.Join(strings.Fields(r.Body.Get("code")), ""))
	if fault.Is(err, fault.InvalidCode) { // the service speaks of two codes, which only operators can give
		err = errAppCode.With(err)
	}
	return view.SeeOther("/devices?checked=true"), a.atField(ctx, err, codeOfApp, "")
}
