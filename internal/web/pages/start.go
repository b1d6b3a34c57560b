// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"cmp"
	"context"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/document"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/signin"
	"tamga/internal/web/pages/confirm"
	"tamga/internal/web/pages/sign"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// frontView is the page of people without a session.
type frontView struct {
	Session  bool // this browser has a session
	Verifies bool
	// MaxFiles are signed at once, and MostVerified is the largest upload to verify.
	MaxFiles     int
	MostVerified view.Bytes
	Trial        []TrialAccount
	Token        string // from the address that serve --dev printed
	Done         string
}

// front says what this is and leads on.
func (a *API) front(ctx context.Context, r struct {
	Token string `query:"try"`
	Done  string `query:"done"`
}) (view.View, error) {
	visitor := view.VisitorOf(ctx)
	v := frontView{Session: visitor.Session.Token != "", Verifies: a.Sign.Verifier != nil, MaxFiles: sign.MaxFiles, MostVerified: view.Bytes(a.Sign.MostVerified), Done: visitor.Words.Done("front", r.Done)}
	if t := a.settings.Trial; t != nil && len(r.Token) <= 128 && r.Token != "" {
		v.Trial, v.Token = t.Accounts, r.Token
	}
	return view.View{Template: "front", Title: "front.title", Script: view.DropScript, Content: v}, nil
}

// startView is what waits for the person, and what they can do at once.
type startView struct {
	Lacks      *view.Lack // nil: at least one certificate can sign
	Confirms   bool       // if Lacks is set: the person must confirm signatures
	HasWay     bool       // and has a way to
	Verifies   bool
	MaxFiles   int
	MostSigned view.Bytes
	Waiting    []confirm.Waiting // the first ones that wait for a confirmation
	More       bool              // more of them wait
	Last       []document.Info   // what was signed last
	Soon       []view.Certificate
	Activating bool // a device that is not activated yet
	Unverified []string
	Changes    int // changes of operators that a delay holds
}

const (
	startList = 5  // confirmations and documents on the start page
	startRead = 30 // documents that are read to find signed ones
)

// start gathers the parts of the page at the same time.
func (a *API) start(ctx context.Context, _ struct{}) (view.View, error) {
	who := rest.Caller(ctx)
	v := startView{Verifies: a.Sign.Verifier != nil, MaxFiles: sign.MaxFiles, MostSigned: view.Bytes(a.Sign.MostSigned)}
	err := view.Concurrently(
		func() error {
			list, err := view.CertificatesOf(ctx, a.Account.Certificates, a.Now())
			if err != nil {
				return err
			}
			for _, c := range list {
				if c.Soon {
					v.Soon = append(v.Soon, c)
				}
			}
			if v.Lacks, err = view.LackOf(ctx, a.Account.Keys, list); err != nil || v.Lacks == nil {
				return err
			}
			v.Confirms, v.HasWay, err = a.confirms(ctx, who)
			return err
		},
		func() error {
			list, next, err := a.confirm.WaitingFor(ctx, "", startList)
			if err != nil {
				return err
			}
			v.Waiting, v.More = list, next != ""
			return a.confirm.Named(ctx, v.Waiting)
		},
		func() error {
			list, err := a.Sign.Documents.Newest(ctx, who, document.Position{}, startRead)
			if err != nil {
				return err
			}
			for i := range list {
				if list[i].Parent != "" && len(v.Last) < startList {
					v.Last = append(v.Last, list[i])
				}
			}
			return nil
		},
		func() error {
			if who.Actor != "" {
				return nil
			}
			devices, err := a.Account.Devices.Info(ctx, who, who.UserID)
			if err != nil {
				return err
			}
			v.Activating = devices.KInit != nil
			for _, d := range devices.Devices {
				if !d.Verified && !d.Blocked {
					v.Unverified = append(v.Unverified, cmp.Or(d.Name, d.Kid))
				}
			}
			return nil
		},
		func() error {
			changes, err := a.Account.Waiting.OfUser(ctx, who.UserID)
			v.Changes = len(changes)
			return err
		})
	return view.View{Template: "start", Title: "start.title", Content: v}, err
}

// confirms reports whether a person must confirm signatures, and has a way to.
func (a *API) confirms(ctx context.Context, who audit.Principal) (must, hasWay bool, err error) {
	rule, err := a.Account.Wishes.Effective(ctx, who.UserID, policy.Operation)
	if err != nil || rule.Actions&policy.SignDocument == 0 {
		return false, false, err
	}
	scheme, err := a.Account.Own.SchemeOf(ctx, who.UserID)
	for _, m := range scheme {
		method, known := signin.MethodNamed(m.MethodURI)
		hasWay = hasWay || known && !method.Primary && method.Route != "external"
	}
	return true, hasWay, err
}

// Heading is the key of the first sentence of the page.
func (v startView) Heading() string {
	switch {
	case v.More:
		return "waits.heading_more"
	case len(v.Waiting) > 0:
		return "waits.heading"
	case v.Lacks != nil:
		return "start.begin"
	}
	return "start.nothing"
}

// Way reports whether the next step to the first signature is a way to confirm.
func (v startView) Way() bool { return v.Confirms && !v.HasWay }

// Steps are the keys of the steps to the first signature, and Step is the present one.
func (v startView) Steps() []string {
	if v.Confirms {
		return []string{"start.step_in", "start.step_way", "start.step_certificate"}
	}
	return []string{"start.step_in", "start.step_certificate"}
}

// Step returns the index of the present step.
func (v startView) Step() int {
	if v.Confirms && v.HasWay {
		return 2
	}
	return 1
}
