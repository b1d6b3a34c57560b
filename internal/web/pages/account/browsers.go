// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	_ "embed"
	"encoding/base64"
	"strings"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/device"
	"tamga/internal/domain/fault"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// browsersScript switches notifications of the browser on and off, and marks it in the list.
//
//go:embed browsers.js
var browsersScript string

// Browsers are those of the caller that show notifications; see [device.Browsers]. It must reach the caller alone.
type Browsers interface {
	List(ctx context.Context, who audit.Principal, userID string) ([]device.Browser, error)
	Add(ctx context.Context, who audit.Principal, o device.BrowserOrder) error
	Remove(ctx context.Context, who audit.Principal, userID, id string) error
	Try(ctx context.Context, who audit.Principal, id string) error
}

// browserRoutes are those of notifications, none if the installation sends none to browsers. A browser is no second step, so
// a person proves nothing before it is switched on.
func (a *API) browserRoutes() []rest.Route {
	if a.Browsers == nil {
		return nil
	}
	on := func(path string, do func(ctx context.Context, who audit.Principal, id string) error) func(context.Context, formed) (rest.Redirect, error) {
		return func(ctx context.Context, r formed) (rest.Redirect, error) {
			return view.SeeOther("/devices?done=" + path + "#browsers"), do(ctx, rest.Caller(ctx), r.Body.Get("browser"))
		}
	}
	return []rest.Route{
		rest.Handle("POST /devices/do/browser-add", "AddBrowserByPage", rest.SignedIn, a.addBrowser).Answering(rest.Redirect{}),
		rest.Handle("POST /devices/do/browser-delete", "DeleteBrowserByPage", rest.SignedIn, on("browser-delete", func(ctx context.Context, who audit.Principal, id string) error {
			return a.Browsers.Remove(ctx, who, who.UserID, id)
		})).Answering(rest.Redirect{}),
		rest.Handle("POST /devices/do/browser-try", "TryBrowserByPage", rest.SignedIn, on("browser-try", a.Browsers.Try)).Answering(rest.Redirect{}),
	}
}

// addBrowser takes the subscription that the script has made.
func (a *API) addBrowser(ctx context.Context, r struct {
	Agent string `header:"User-Agent"`
	Body  rest.Form
}) (rest.Redirect, error) {
	o := device.BrowserOrder{Address: r.Body.Get("endpoint"), Name: browserName(view.VisitorOf(ctx).Words, r.Agent)}
	for _, field := range []struct {
		name string
		to   *[]byte
	}{{"p256dh", &o.Public}, {"auth", &o.Secret}} {
		value, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(r.Body.Get(field.name), "="))
		if err != nil {
			return rest.Redirect{}, fault.Newf(fault.InvalidParameters, "%s: is no Base64url, want getKey('%s') of the PushSubscription of the browser, encoded so", field.name, field.name)
		}
		*field.to = value
	}
	return view.SeeOther("/devices?done=browser-add#browsers"), a.Browsers.Add(ctx, rest.Caller(ctx), o)
}

// Parts of the header User-Agent by which people know a browser and a system. The first one counts: browsers name others, too.
var (
	agents  = [][2]string{{"YaBrowser/", "Яндекс Браузер"}, {"Edg", "Edge"}, {"OPR/", "Opera"}, {"SamsungBrowser/", "Samsung Internet"}, {"Firefox/", "Firefox"}, {"FxiOS/", "Firefox"}, {"Chrome/", "Chrome"}, {"CriOS/", "Chrome"}, {"Safari/", "Safari"}}
	systems = [][2]string{{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Windows", "Windows"}, {"CrOS", "ChromeOS"}, {"Mac OS X", "macOS"}, {"Linux", "Linux"}}
)

// browserName names a browser for its user.
func browserName(w *view.Words, agent string) string {
	var names []string
	for _, list := range [][][2]string{agents, systems} {
		for _, one := range list {
			if strings.Contains(agent, one[0]) {
				names = append(names, one[1])
				break
			}
		}
	}
	if len(names) == 0 {
		return w.Text("browsers.unknown")
	}
	return strings.Join(names, ", ")
}

// browserRow is a browser in the list.
type browserRow struct {
	device.Browser
	Silent bool // an operator has removed it from the contacts
}

// browsers adds the browsers of the caller to the page of devices.
func (a *API) browsers(ctx context.Context, who audit.Principal, v *devicesView) error {
	if a.Browsers == nil || who.Actor != "" { // an operator who acts for the user has nothing to do here
		return nil
	}
	list, err := a.Browsers.List(ctx, who, who.UserID)
	for i := range list {
		v.Browsers = append(v.Browsers, browserRow{list[i], !list[i].Push.Listed})
	}
	v.BrowserKey = base64.RawURLEncoding.EncodeToString(a.BrowserKey)
	return err
}
