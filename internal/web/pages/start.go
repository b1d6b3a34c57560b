// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"cmp"
	"context"
	"slices"

	"tamga/internal/web/pages/confirm"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// frontView is the page of people without a session.
type frontView struct {
	Session  bool // this browser has a session
	Verifies bool
	Trial    []TrialAccount
	Token    string // from the address that serve --dev printed
	Done     string
}

// front says what this is and leads on.
func (a *API) front(ctx context.Context, r struct {
	Token string `query:"try"`
	Done  string `query:"done"`
}) (view.View, error) {
	visitor := view.VisitorOf(ctx)
	v := frontView{Session: visitor.Session.Token != "", Verifies: a.Sign.Verifier != nil, Done: visitor.Words.Done("front", r.Done)}
	if t := a.settings.Trial; t != nil && len(r.Token) <= 128 && r.Token != "" {
		v.Trial, v.Token = t.Accounts, r.Token
	}
	return view.View{Template: "front", Title: "front.title", Content: v}, nil
}

// startView is what waits for the person, and what they can do at once.
type startView struct {
	Certificates []view.Certificate
	Lacks        *view.Lack // nil: at least one certificate can sign
	Verifies     bool
	Waiting      []confirm.Waiting // the first ones that wait for a confirmation
	More         bool              // more of them wait
	Soon         []view.Certificate
	Activating   bool // a device that is not activated yet
	Unverified   []string
	Changes      int // changes of operators that a delay holds
}

// startList is how many confirmations the start page lists.
const startList = 5

func (a *API) start(ctx context.Context, _ struct{}) (view.View, error) {
	list, err := view.CertificatesOf(ctx, a.Account.Certificates, a.Now())
	if err != nil {
		return view.View{}, err
	}
	v := startView{Certificates: list, Verifies: a.Sign.Verifier != nil}
	if v.Lacks, err = view.LackOf(ctx, a.Account.Keys, list); err != nil {
		return view.View{}, err
	}
	v.Soon = slices.DeleteFunc(slices.Clone(list), func(c view.Certificate) bool { return !c.Soon })
	next := ""
	if v.Waiting, next, err = a.confirm.WaitingFor(ctx, "", startList); err != nil {
		return view.View{}, err
	}
	v.More = next != ""
	who := rest.Caller(ctx)
	if who.Actor == "" {
		devices, err := a.Account.Devices.Info(ctx, who, who.UserID)
		if err != nil {
			return view.View{}, err
		}
		v.Activating = devices.KInit != nil
		for _, d := range devices.Devices {
			if !d.Verified && !d.Blocked {
				v.Unverified = append(v.Unverified, cmp.Or(d.Name, d.Kid))
			}
		}
	}
	changes, err := a.Account.Waiting.OfUser(ctx, who.UserID)
	if err != nil {
		return view.View{}, err
	}
	v.Changes = len(changes)
	return view.View{Template: "start", Title: "start.title", Content: v}, nil
}
