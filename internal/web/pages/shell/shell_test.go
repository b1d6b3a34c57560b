// SPDX-License-Identifier: Apache-2.0

package shell_test

import (
	"encoding/json"
	"fmt"
	"image/png"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
	"tamga/internal/web/rest/look"
)

// TestShell: the manifest, the service worker and what it keeps are the same with a session and without one, and have nothing of
// a person.
func TestShell(t *testing.T) {
	t.Parallel()
	s := tamgatest.Start(t)
	anonymous, demo := pagetest.New(t, s), pagetest.New(t, s)
	demo.SignIn("/start", s.Dev.User.Login, s.Dev.User.Password)
	same := func(path, kind string) string {
		t.Helper()
		one, other := anonymous.Shows(anonymous.Get(path)), demo.Shows(demo.Get(path))
		if one.Header.Get("Content-Type") != kind || one.Header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %v", path, one.Header)
		}
		if one.Text != other.Text || strings.Contains(other.Text, s.Dev.User.Login) {
			t.Errorf("%s differs for a person", path)
		}
		return one.Text
	}

	for language, words := range map[string][]string{"ru": {"Подписать", "Нет связи"}, "en": {"Sign", "No connection"}} {
		var m struct {
			Name, Lang, Display string
			Start               string `json:"start_url"`
			Scope               string
			Icons               []struct{ Src, Sizes, Type, Purpose string }
			Shortcuts           []struct{ Name, URL string }
		}
		if err := json.Unmarshal([]byte(same("/manifest/"+language, "application/manifest+json")), &m); err != nil {
			t.Fatal(err)
		}
		at, err := url.Parse(s.URL + "/tamga/manifest/" + language) // as behind a path
		if err != nil {
			t.Fatal(err)
		}
		below := func(relative, want string) {
			t.Helper()
			if to, err := at.Parse(relative); err != nil || to.Path != want {
				t.Errorf("%s leads to %v, %v, want %s", relative, to, err, want)
			}
		}
		below(m.Start, "/tamga/start")
		below(m.Scope, "/tamga/")
		if m.Name == "" || m.Lang != language || m.Display != "standalone" || len(m.Icons) != 4 || len(m.Shortcuts) != 3 || !strings.Contains(m.Shortcuts[0].Name, words[0]) {
			t.Errorf("the manifest is %+v", m)
		}
		for _, icon := range m.Icons {
			below(icon.Src, "/tamga"+strings.TrimPrefix(icon.Src, ".."))
			file := anonymous.Shows(anonymous.Get(strings.TrimPrefix(icon.Src, "..")))
			c, err := png.DecodeConfig(strings.NewReader(file.Text))
			if err != nil || fmt.Sprintf("%dx%d", c.Width, c.Height) != icon.Sizes {
				t.Errorf("%+v: %+v, %v", icon, c, err)
			}
		}
		if page := same("/offline/"+language, "text/html; charset=utf-8"); !strings.Contains(page, words[1]) || !strings.Contains(page, `lang="`+language+`"`) {
			t.Errorf("the page without a network is\n%s", page)
		}
		front := demo
		front.Header.Set("Accept-Language", language)
		page := front.Shows(front.Get("/start"), `<link rel="manifest" href="/manifest/`+language+`">`)
		policy := page.Header.Get("Content-Security-Policy")
		for _, part := range []string{"worker-src " + s.URL + "/service-worker.js", "manifest-src " + s.URL + "/manifest/", "default-src 'none'", s.URL + look.AppIcons[1].Path} {
			if !strings.Contains(policy, part) {
				t.Errorf("the policy has no %q: %s", part, policy)
			}
		}
		if strings.Contains(policy, "unsafe") {
			t.Errorf("the policy is %s", policy)
		}
	}
	anonymous.Is(anonymous.Get("/manifest/de"), 404)
	anonymous.Is(anonymous.Get("/offline/..%2fru"), 404)

	worker := same("/service-worker.js", "text/javascript; charset=utf-8")
	page := anonymous.Shows(anonymous.Get("/service-worker.js"))
	if policy := page.Header.Get("Content-Security-Policy"); policy != "default-src 'none'; connect-src 'self'; img-src 'self'" || page.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("the service worker has %v", page.Header)
	}
	notes := regexp.MustCompile(`(?m)^const notes = (.*)$`).FindStringSubmatch(worker)
	var n struct{ Shell []string }
	if notes == nil || json.Unmarshal([]byte(notes[1]), &n) != nil || len(n.Shell) != 4 {
		t.Fatalf("the service worker begins with %.400s", worker)
	}
	for _, path := range n.Shell {
		if !strings.HasPrefix(path, "assets/") && !strings.HasPrefix(path, "offline/") {
			t.Errorf("the service worker keeps %s", path)
		}
		anonymous.Shows(anonymous.Get("/" + path))
	}
}
