// SPDX-License-Identifier: Apache-2.0

package sms

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/domain/notify"
	"tamga/internal/judge"
)

var short = notify.Message{ID: "11111111-2222-4333-8444-555555555555", Channel: notify.SMS, To: "79261234567", Text: "Код 123456 & \"=#\\\n{{.Secret}}"}

// request is a request that a gateway received.
type request struct {
	Method, Path, Kind, User, Password, Key string
	Query, Form                             url.Values
	JSON                                    any
}

// gateway answers with a status and a text and keeps the last request.
func gateway(t *testing.T, status int, text string) (address string, last func() request) {
	t.Helper()
	requests := make(chan request, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		q := request{Method: r.Method, Path: r.URL.Path, Kind: r.Header.Get("Content-Type"), Key: r.Header.Get("X-Key"), Query: r.URL.Query()}
		q.User, q.Password, _ = r.BasicAuth()
		switch q.Kind {
		case "application/json":
			if err := json.Unmarshal(body, &q.JSON); err != nil {
				t.Error(err)
			}
		case "application/x-www-form-urlencoded":
			if q.Form, err = url.ParseQuery(string(body)); err != nil {
				t.Error(err)
			}
		}
		requests <- q
		w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
		w.WriteHeader(status)
		io.WriteString(w, text)
	}))
	t.Cleanup(server.Close)
	return server.URL, func() request {
		t.Helper()
		select {
		case q := <-requests:
			return q
		default:
			t.Fatal("no request arrived")
			return request{}
		}
	}
}

// TestGatewayTemplates checks that the text of a message stays a value wherever it is
// used. Every place is compared as the receiver reads it.
func TestGatewayTemplates(t *testing.T) {
	for _, c := range []struct {
		name   string
		config GatewayConfig
		want   request
	}{
		{"Query", GatewayConfig{Query: map[string]string{"phone": "+{{.To}}", "mes": "{{.Text}}", "charset": "utf-8"}},
			request{Method: "GET", Path: "/send", Query: url.Values{"phone": {"+79261234567"}, "mes": {short.Text}, "charset": {"utf-8"}, "fixed": {"1"}}}},
		{"Form", GatewayConfig{Form: map[string]string{"to": "{{.To}}", "text": "{{.Text}}", "psw": "{{.Secret}}", "id": "{{.ID}}"}, Secret: "s&=e"},
			request{Method: "POST", Path: "/send", Query: url.Values{"fixed": {"1"}}, Kind: "application/x-www-form-urlencoded",
				Form: url.Values{"to": {"79261234567"}, "text": {short.Text}, "psw": {"s&=e"}, "id": {short.ID}}}},
		{"JSON", GatewayConfig{JSON: `{"messages":[{"to":"+{{.To}}","body":{"text":"{{.Text}}"},"n":1.50,"flash":false,"x":null}]}`, Headers: map[string]string{"X-Key": "Key {{.Secret}}"}, Secret: "k"},
			request{Method: "POST", Path: "/send", Query: url.Values{"fixed": {"1"}}, Kind: "application/json", Key: "Key k",
				JSON: map[string]any{"messages": []any{map[string]any{"to": "+79261234567", "body": map[string]any{"text": short.Text}, "n": 1.5, "flash": false, "x": nil}}}}},
		{"Basic", GatewayConfig{Form: map[string]string{"t": "{{.Text}}"}, User: "tamga", Secret: "p:w"},
			request{Method: "POST", Path: "/send", Query: url.Values{"fixed": {"1"}}, Kind: "application/x-www-form-urlencoded", User: "tamga", Password: "p:w", Form: url.Values{"t": {short.Text}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			address, last := gateway(t, http.StatusOK, "")
			c.config.URL = address + "/send?fixed=1"
			g, err := NewGateway(c.config)
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			if err := g.Send(t.Context(), short); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, last()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestGatewayAnswers(t *testing.T) {
	for _, c := range []struct {
		name      string
		status    int
		text      string
		success   string
		want      string // empty: success
		permanent bool
	}{
		{"OK", 200, "anything", "", "", false},
		{"Accepted", 202, "", "", "", false},
		{"SaysSo", 200, `{"status":"OK"}`, `"status":\s*"OK"`, "", false},
		{"SaysOtherwise", 200, `{"status":"ERROR","text":"Код 123456"}`, `"status":\s*"OK"`, "does not match", false},
		{"NoEnd", 200, strings.Repeat("x", 4*maxAnswer) + "OK", "OK", "does not match", false},
		{"BadRequest", 400, "Код 123456", "", "400", true},
		{"Unprocessable", 422, "", "", "422", true},
		{"Unauthorized", 401, "", "", "401", false},
		{"TooMany", 429, "", "", "429", false},
		{"Broken", 500, "Код 123456", "", "500", false},
		{"Redirect", 302, "", "", "302", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			address, last := gateway(t, c.status, c.text)
			g, err := NewGateway(GatewayConfig{URL: address, Query: map[string]string{"text": "{{.Text}}", "key": "{{.Secret}}"}, Secret: "top secret", Success: c.success})
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			err = g.Send(t.Context(), short)
			last()
			if (err == nil) != (c.want == "") || notify.IsPermanent(err) != c.permanent || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q, permanent %t", err, c.want, c.permanent)
			}
			noSecrets(t, err)
		})
	}
}

// TestGatewayEcho has a gateway answer with what it got. The answer that a person sees has no secret in any form.
func TestGatewayEcho(t *testing.T) {
	const secret = `s3cr/t "+<&> ключ`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		value := r.URL.Query().Get("key")
		fmt.Fprintf(w, "got %s %s %s %s %s end", r.URL.RawQuery, r.Header.Get("Authorization"), body, value, html.EscapeString(value))
	}))
	t.Cleanup(server.Close)
	g, err := NewGateway(GatewayConfig{URL: server.URL, Query: map[string]string{"key": "{{.Secret}}"}, JSON: `{"password": "{{.Secret}}", "to": "{{.To}}"}`, User: "u", Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	ctx, heard := notify.Hear(t.Context())
	if err := g.Send(ctx, short); err != nil {
		t.Fatal(err)
	}
	said := strings.Join(heard(), " ")
	if want := `HTTP 200 OK: got key=*** Basic *** {"password":"***","to":"79261234567"} *** *** end`; said != want {
		t.Errorf("%s, want %s", said, want)
	}
}

// TestGatewayCut has answers that are longer than what is read, or break off, inside of the secret.
func TestGatewayCut(t *testing.T) {
	secret := strings.Repeat("very-long/", 100) // 64 KiB of it and *** for each leave the end within what is shown
	for name, body := range map[string]struct {
		text   string
		length string // that the answer declares
	}{
		"longer":     {strings.Repeat(secret, maxAnswer/len(secret)+9), ""},
		"longer too": {strings.Repeat(url.QueryEscape(secret), maxAnswer/len(url.QueryEscape(secret))+9), ""},
		"broken off": {"key=" + secret[:20], "1000"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if body.length != "" {
					w.Header().Set("Content-Length", body.length)
				}
				io.WriteString(w, body.text)
			}))
			t.Cleanup(server.Close)
			g, err := NewGateway(GatewayConfig{URL: server.URL, Query: map[string]string{"key": "{{.Secret}}"}, Secret: secret})
			if err != nil {
				t.Fatal(err)
			}
			ctx, heard := notify.Hear(t.Context())
			if err := g.Send(ctx, short); err != nil {
				t.Fatal(err)
			}
			if said := strings.Join(heard(), " "); !strings.HasPrefix(said, "HTTP 200 OK:") || strings.Contains(said, "ver") || (body.length == "") != strings.HasSuffix(said, "***") {
				t.Errorf("%q", said)
			}
		})
	}
}

// TestHiding has the secret in forms that requests do not have, but answers may.
func TestHiding(t *testing.T) {
	const secret = `s3cr/t "+<&>' ключ😀`
	h := newHiding("u", secret)
	std := base64.StdEncoding.EncodeToString([]byte(secret))
	for _, form := range []string{
		secret, url.QueryEscape(secret), strings.ToLower(url.QueryEscape(secret)), strings.ToLower(url.PathEscape(secret)), html.EscapeString(secret),
		"s3cr&#x2F;t &quot;&#43;&lt;&AMP;&gt;&apos; &#1082;&#x043b;&#x44E;&#1095;&#x1F600;", `s3cr\/t \"\u002B\u003c\u0026\u003E' \u043a\u043B\u044E\u0447\uD83D\ude00`,
		`s3cr/t \u0026quot;+\u0026lt;\u0026amp;\u0026gt;\u0026#39; ключ😀`, "s%33cr/%74+%22%2b%3C&%3e'+ключ%f0%9F%98%80",
		std, strings.TrimRight(std, "="), url.QueryEscape(std), base64.RawURLEncoding.EncodeToString([]byte(secret)), base64.RawStdEncoding.EncodeToString([]byte("u:" + secret)), base64.URLEncoding.EncodeToString([]byte("u:" + secret)),
	} {
		text := "1" + form + " 2 " + form
		if got := h.replace(text, len(text)); got != "1*** 2 ***" {
			t.Errorf("%s: %s", form, got)
		}
		if len(form) > h.longest {
			t.Errorf("%s: %d bytes, more than %d", form, len(form), h.longest)
		}
		for first := range len(text) {
			if got := h.replace(text, first); !strings.HasPrefix("1*** 2 ***", got) {
				t.Fatalf("%d bytes of %s: %s", first, form, got)
			}
		}
	}
	for _, other := range []string{"", "s3cr/", "S3CR/T \"+<&>' ключ😀", "s3cr/t", "\xff\xfe"} {
		if got := h.replace(other, len(other)); got != other {
			t.Errorf("%q: %q", other, got)
		}
	}
	for _, odd := range []string{"%25", "%", "\xff", "(", `\`, "a%2", strings.Repeat("x", 2000)} {
		h := newHiding("", odd)
		if got := h.replace("-"+odd+"-"+url.QueryEscape(odd)+"-", len(odd)+len(url.QueryEscape(odd))+3); got != "-***-***-" {
			t.Errorf("%q: %q", odd, got)
		}
	}
	none := newHiding("u", "")
	if got := none.replace("text", 3); got != "tex" {
		t.Errorf("%q", got)
	}
}

// TestGatewayUnreachable checks that errors do not contain the address, which may hold
// the text and the secret.
func TestGatewayUnreachable(t *testing.T) {
	g, err := NewGateway(GatewayConfig{URL: "http://127.0.0.1:1/", Query: map[string]string{"text": "{{.Text}}", "key": "{{.Secret}}"}, Secret: "top secret", Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	err = g.Send(t.Context(), short)
	if err == nil || notify.IsPermanent(err) {
		t.Errorf("%v, want a temporary error", err)
	}
	noSecrets(t, err)
	m := short
	m.To = "7926123456&admin=1"
	if err := g.Send(t.Context(), m); !notify.IsPermanent(err) {
		t.Errorf("hostile number: %v, want a permanent error", err)
	}
}

func noSecrets(t *testing.T, err error) {
	t.Helper()
	for _, secret := range []string{"123456", "top", "secret1"} {
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("the error holds a secret: %v", err)
		}
	}
}

func TestNewGateway(t *testing.T) {
	good := GatewayConfig{URL: "https://gateway.example/send", Form: map[string]string{"to": "{{.To}}", "text": "{{.Text}}"}}
	if _, err := NewGateway(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*GatewayConfig){
		"url":       func(c *GatewayConfig) { c.URL = "ftp://gateway.example/" },
		"password":  func(c *GatewayConfig) { c.URL = "https://u:p@gateway.example/" },
		"method":    func(c *GatewayConfig) { c.Method = "PUT" },
		"body":      func(c *GatewayConfig) { c.Method = "GET" },
		"json and":  func(c *GatewayConfig) { c.JSON = "{}" },
		"form.to":   func(c *GatewayConfig) { c.Form["to"] = "{{.Number}}" },
		"form.x":    func(c *GatewayConfig) { c.Form["x"] = "{{" },
		"headers":   func(c *GatewayConfig) { c.Headers = map[string]string{"X-Text": "{{.Text}}"} },
		"one value": func(c *GatewayConfig) { c.Form, c.JSON = nil, "{} {}" },
		"success":   func(c *GatewayConfig) { c.Success = "(" },
	} {
		c := good
		c.Form = maps.Clone(good.Form)
		change(&c)
		if _, err := NewGateway(c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want one about it", name, err)
		}
	}
}

// TestKannel checks that a foreign gateway accepts the request made by the template and
// passes the message to a message centre unchanged.
func TestKannel(t *testing.T) {
	centre := judge.SMPPCentre(t, nil)
	g, err := NewGateway(GatewayConfig{
		URL: judge.Kannel(t, centre),
		Query: map[string]string{
			"username": "tamga", "password": "{{.Secret}}", "from": "Tamga", "to": "+{{.To}}",
			"text": "{{.Text}}", "charset": "utf-8", "coding": "2",
		},
		Secret: judge.KannelPassword, Success: "^(0: Accepted|3: Queued)",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	m := short
	m.Text = "Код 123456 & username=root\nДействует 5 мин. +7%20#"
	if err := g.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if got := centre.Next(); got.Text != m.Text || strings.TrimPrefix(got.To, "+") != m.To || got.From != "Tamga" || got.Coding != codingUCS2 {
		t.Errorf("%+v", got)
	}
	centre.Receipt()
	wrong, err := NewGateway(GatewayConfig{URL: g.config.URL, Query: map[string]string{"username": "tamga", "password": "x", "to": "{{.To}}", "text": "{{.Text}}"}, Success: "^0: Accepted"})
	if err != nil {
		t.Fatal(err)
	}
	defer wrong.Close()
	if err := wrong.Send(t.Context(), m); err == nil || notify.IsPermanent(err) || !strings.Contains(err.Error(), "403") {
		t.Errorf("a wrong password: %v, want a temporary error with 403", err)
	}
}
