// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"cmp"
	"context"
	"slices"
	"time"

	"tamga/internal/domain/keys"
	"tamga/internal/domain/signing"
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
}) (view, error) {
	visitor := visitorOf(ctx)
	v := frontView{Session: visitor.session.Token != "", Verifies: a.Verifier != nil, Done: visitor.words.done("front", r.Done)}
	if t := a.settings.Trial; t != nil && len(r.Token) <= 128 && r.Token != "" {
		v.Trial, v.Token = t.Accounts, r.Token
	}
	return view{template: "front", title: "front.title", content: v}, nil
}

// certificate is a certificate of the person.
type certificate struct {
	ID       int64
	Name     string // given by the person, otherwise from the subject
	Subject  string
	Serial   string // its end
	Suite    string // name; see [words.suite]
	Default  bool
	PIN      bool
	Usable   bool
	Status   string // key of the word
	NotAfter time.Time
	Soon     bool // ends soon
}

// soon is how long before its end a certificate is shown as ending.
const soon = 30 * 24 * time.Hour

// certificates lists what the person has, the default first.
func (a *API) certificates(ctx context.Context) ([]certificate, error) {
	list, err := a.Certificates.List(ctx, rest.Caller(ctx).UserID)
	if err != nil {
		return nil, err
	}
	var shown []certificate
	for _, c := range list {
		shown = append(shown, a.describe(c))
	}
	slices.SortStableFunc(shown, func(x, y certificate) int { return cmp.Compare(x.rank(), y.rank()) })
	return shown, nil
}

// describe returns a certificate as pages show it.
func (a *API) describe(c *keys.Certificate) certificate {
	info := signing.DescribeCertificate(c.X509)
	s := certificate{
		ID: c.ID, Name: cmp.Or(c.FriendlyName, personIn(info.Subject)), Subject: info.Subject, Serial: shortSerial(info.Serial), Suite: suiteOf(c), Default: c.Default, PIN: c.HasPIN,
		Status: "certificate.status." + c.Status.String(), NotAfter: info.NotAfter,
	}
	s.Usable = c.Status == keys.Active
	s.Soon = s.Usable && info.NotAfter.Sub(a.Now()) < soon
	return s
}

// suiteOf returns the name of the suite of a certificate, "" for a key that cannot sign here.
func suiteOf(c *keys.Certificate) string {
	if c.X509.Suite == nil {
		return ""
	}
	return c.X509.Suite.Name
}

// rank orders certificates: the default one, those that can sign, the others.
func (c *certificate) rank() int {
	switch {
	case c.Default:
		return 0
	case c.Usable:
		return 1
	}
	return 2
}

// startView is what waits for the person, and what they can do at once.
type startView struct {
	Certificates []certificate
	Lacks        *lack // nil: at least one certificate can sign
	Verifies     bool
	Waiting      []waiting // the first ones that wait for a confirmation
	More         bool      // more of them wait
	Soon         []certificate
	Activating   bool // a device that is not activated yet
	Unverified   []string
	Changes      int // changes of operators that a delay holds
}

// lack says what a person can do who has no certificate to sign with.
type lack struct {
	Waits bool // for an answer to a request
	May   bool // request a certificate
}

// lack returns nil if one of the certificates can sign.
func (a *API) lack(ctx context.Context, list []certificate) (*lack, error) {
	if slices.ContainsFunc(list, func(c certificate) bool { return c.Usable }) {
		return nil, nil
	}
	requests, err := a.Keys.Requests(ctx, rest.Caller(ctx))
	if err != nil {
		return nil, err
	}
	l := &lack{Waits: slices.ContainsFunc(requests, func(q *keys.Request) bool { return q.Status == keys.Pending && q.Type == keys.ForCertificate })}
	l.May, err = a.Keys.MayRequest(ctx, rest.Caller(ctx).UserID)
	return l, err
}

// startList is how many confirmations the start page lists.
const startList = 5

func (a *API) start(ctx context.Context, _ struct{}) (view, error) {
	list, err := a.certificates(ctx)
	if err != nil {
		return view{}, err
	}
	v := startView{Certificates: list, Verifies: a.Verifier != nil}
	if v.Lacks, err = a.lack(ctx, list); err != nil {
		return view{}, err
	}
	v.Soon = slices.DeleteFunc(slices.Clone(list), func(c certificate) bool { return !c.Soon })
	next := ""
	if v.Waiting, next, err = a.waitingFor(ctx, "", startList); err != nil {
		return view{}, err
	}
	v.More = next != ""
	who := rest.Caller(ctx)
	if who.Actor == "" {
		devices, err := a.Devices.Info(ctx, who, who.UserID)
		if err != nil {
			return view{}, err
		}
		v.Activating = devices.KInit != nil
		for _, d := range devices.Devices {
			if !d.Verified && !d.Blocked {
				v.Unverified = append(v.Unverified, cmp.Or(d.Name, d.Kid))
			}
		}
	}
	changes, err := a.Waiting.OfUser(ctx, who.UserID)
	if err != nil {
		return view{}, err
	}
	v.Changes = len(changes)
	return view{template: "start", title: "start.title", content: v}, nil
}
