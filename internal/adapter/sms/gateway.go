// SPDX-License-Identifier: Apache-2.0

package sms

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"time"

	"tamga/internal/adapter/guard"
	"tamga/internal/domain/notify"
)

// GatewayConfig is the template of the request that a gateway expects.
//
// Values of Query, Form, JSON strings, and values of Headers may use {{.To}} (digits;
// write +{{.To}} for a plus), {{.ID}} (the same for every attempt), {{.Secret}}, and,
// except in Headers, {{.Text}}. Each value is filled in first and then encoded for its
// place, so the text of a message cannot become a parameter of the request.
type GatewayConfig struct {
	URL     string            // http or https, without the parameters in Query
	Method  string            // GET or POST; empty: POST with Form or JSON, otherwise GET
	Query   map[string]string // parameters of the address
	Form    map[string]string // body application/x-www-form-urlencoded
	JSON    string            // body application/json; not together with Form
	Headers map[string]string
	User    string // of HTTP Basic, with Secret as the password; empty: none
	Secret  string
	// Success is a regular expression that matches the body of an answer if the gateway
	// accepted the message. Empty: every status 200 to 299 means accepted.
	Success string
	Roots   *x509.CertPool // roots for the certificate; nil: the roots of the system
	Timeout time.Duration  // of one message; 0 is 15 s
}

// maxAnswer is how much of an answer is matched with Success and shown, in bytes.
const maxAnswer = 64 << 10

// Gateway sends messages by HTTP.
type Gateway struct {
	config  GatewayConfig
	url     *url.URL
	query   map[string]*template.Template
	form    map[string]*template.Template
	headers map[string]*template.Template
	body    any // JSON with *template.Template for its strings; nil: no JSON body
	success *regexp.Regexp
	hidden  hiding // takes the secret out of what a person is shown
	client  *http.Client
}

// values are the fields of templates.
type values struct{ To, ID, Secret, Text string }

// headerValues are the fields of templates of headers. They have no Text: it may have
// several lines, and a header has one.
type headerValues struct{ To, ID, Secret string }

// NewGateway checks the configuration and the templates. It opens no connection.
func NewGateway(c GatewayConfig) (*Gateway, error) {
	g := &Gateway{config: c, hidden: newHiding(c.User, c.Secret)}
	var faults []error
	note := func(err error) {
		if err != nil {
			faults = append(faults, err)
		}
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		note(errors.New("sms: url: want http:// or https:// and a host, and no password in it"))
	}
	g.url = u
	if g.config.Method == "" {
		g.config.Method = http.MethodGet
		if c.JSON != "" || len(c.Form) > 0 {
			g.config.Method = http.MethodPost
		}
	}
	if g.config.Method != http.MethodGet && g.config.Method != http.MethodPost {
		note(errors.New("sms: method: want GET or POST"))
	}
	if c.JSON != "" && len(c.Form) > 0 {
		note(errors.New("sms: json and form: want one of them"))
	}
	if (c.JSON != "" || len(c.Form) > 0) && g.config.Method == http.MethodGet {
		note(errors.New("sms: method: a body needs POST"))
	}
	try := values{"70000000000", "id", "secret", "text"}
	g.query, err = templates("query", c.Query, try)
	note(err)
	g.form, err = templates("form", c.Form, try)
	note(err)
	g.headers, err = templates("headers", c.Headers, headerValues{try.To, try.ID, try.Secret})
	note(err)
	if c.JSON != "" {
		g.body, err = jsonTemplate(c.JSON, try)
		note(err)
	}
	if c.Success != "" {
		if g.success, err = regexp.Compile(c.Success); err != nil {
			note(fmt.Errorf("sms: success: %w", err))
		}
	}
	if c.Timeout == 0 {
		g.config.Timeout = 15 * time.Second
	}
	g.client = &http.Client{
		// The package has its own transport: it ignores proxy settings of the
		// environment, and a redirect cannot send the message and the secret to another
		// address.
		Transport: &http.Transport{
			TLSClientConfig:        &tls.Config{RootCAs: c.Roots, MinVersion: tls.VersionTLS12},
			MaxResponseHeaderBytes: maxAnswer,
			MaxConnsPerHost:        16,
			IdleConnTimeout:        time.Minute,
			ForceAttemptHTTP2:      true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return g, errors.Join(faults...)
}

// templates parses templates and executes each with try to check it.
func templates(what string, texts map[string]string, try any) (map[string]*template.Template, error) {
	parsed := map[string]*template.Template{}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		t, err := parse(what+"."+name, texts[name], try)
		if err != nil {
			return nil, err
		}
		parsed[name] = t
	}
	return parsed, nil
}

func parse(what, text string, try any) (*template.Template, error) {
	t, err := template.New(what).Parse(text)
	if err == nil {
		err = t.Execute(io.Discard, try)
	}
	if err != nil {
		return nil, fmt.Errorf("sms: %s: want text with {{.To}}, {{.Text}}, {{.ID}}, {{.Secret}}: %w", what, err)
	}
	return t, nil
}

// jsonTemplate parses JSON and replaces its strings by templates.
func jsonTemplate(text string, try values) (any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("sms: json: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("sms: json: want one value")
	}
	return mapTexts(v, func(s string) (any, error) { return parse("json", s, try) })
}

// mapTexts replaces the strings of a JSON value. Names of members stay.
func mapTexts(v any, replace func(string) (any, error)) (any, error) {
	var err error
	switch v := v.(type) {
	case string:
		return replace(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			if out[i], err = mapTexts(v[i], replace); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for name := range v {
			if out[name], err = mapTexts(v[name], replace); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

// fill executes the templates of a JSON value.
func fill(v any, data values) (any, error) {
	switch v := v.(type) {
	case *template.Template:
		var b strings.Builder
		err := v.Execute(&b, data)
		return b.String(), err
	case []any:
		out := make([]any, len(v))
		for i := range v {
			var err error
			if out[i], err = fill(v[i], data); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for name := range v {
			var err error
			if out[name], err = fill(v[name], data); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

func fillAll(texts map[string]*template.Template, data any) (url.Values, error) {
	out := url.Values{}
	for name, t := range texts {
		var b strings.Builder
		if err := t.Execute(&b, data); err != nil {
			return nil, fmt.Errorf("sms: %s cannot be filled in", t.Name())
		}
		out.Set(name, b.String())
	}
	return out, nil
}

// Channel implements notify.Notifier.
func (g *Gateway) Channel() notify.Channel { return notify.SMS }

// Send implements notify.Notifier. The answers 400, 404, 413 and 422 are permanent: the
// gateway understood the request and refuses this message. All other errors are
// temporary.
func (g *Gateway) Send(ctx context.Context, m notify.Message) error {
	if !isNumber(m.To) {
		return errNoNumber
	}
	ctx, cancel := context.WithTimeout(ctx, g.config.Timeout)
	defer cancel()
	request, err := g.request(ctx, m)
	if err != nil {
		return err
	}
	answer, err := g.client.Do(request)
	if err != nil {
		// The error of the client quotes the address, which may contain the text.
		var outer *url.Error
		if errors.As(err, &outer) {
			err = outer.Err
		}
		return fmt.Errorf("sms: the gateway does not answer: %w", err)
	}
	defer answer.Body.Close()
	read, err := io.ReadAll(io.LimitReader(answer.Body, int64(maxAnswer+g.hidden.longest)))
	text := read[:min(len(read), maxAnswer)]
	shown := len(text)
	if err != nil {
		shown = max(0, min(shown, len(read)-g.hidden.longest)) // the rest may be the beginning of the secret
	}
	notify.Answered(ctx, "HTTP %s: %s", hiddenText{&g.hidden, answer.Status, len(answer.Status)}, hiddenText{&g.hidden, string(read), shown})
	switch {
	case answer.StatusCode < 200 || answer.StatusCode > 299:
		err := fmt.Errorf("sms: the gateway answers %d", answer.StatusCode)
		switch answer.StatusCode {
		case http.StatusBadRequest, http.StatusNotFound, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
			err = notify.Permanent(err)
		}
		return err
	case g.success == nil:
		return nil // an error after the status changes nothing
	case err != nil:
		return errors.New("sms: the answer of the gateway broke off")
	case !g.success.Match(text):
		return fmt.Errorf("sms: the gateway answers %d, and its body does not match success", answer.StatusCode)
	}
	return nil
}

func (g *Gateway) request(ctx context.Context, m notify.Message) (*http.Request, error) {
	data := values{m.To, m.ID, g.config.Secret, m.Text}
	query, err := fillAll(g.query, data)
	if err != nil {
		return nil, err
	}
	address := *g.url
	if len(query) > 0 {
		if address.RawQuery != "" {
			address.RawQuery += "&"
		}
		address.RawQuery += query.Encode()
	}
	var body []byte
	kind := ""
	switch {
	case g.body != nil:
		filled, err := fill(g.body, data)
		if err != nil {
			return nil, errors.New("sms: json cannot be filled in")
		}
		if body, err = json.Marshal(filled); err != nil {
			return nil, errors.New("sms: json cannot be filled in")
		}
		kind = "application/json"
	case len(g.form) > 0:
		form, err := fillAll(g.form, data)
		if err != nil {
			return nil, err
		}
		body, kind = []byte(form.Encode()), "application/x-www-form-urlencoded"
	}
	request, err := http.NewRequestWithContext(ctx, g.config.Method, address.String(), bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("sms: url: the address with the values filled in is invalid")
	}
	if kind != "" {
		request.Header.Set("Content-Type", kind)
	}
	headers, err := fillAll(g.headers, headerValues{data.To, data.ID, data.Secret})
	if err != nil {
		return nil, err
	}
	for name := range headers {
		request.Header.Set(name, headers.Get(name))
	}
	if g.config.User != "" {
		request.SetBasicAuth(g.config.User, g.config.Secret)
	}
	return request, nil
}

// Probe implements notify.Prober: it connects to the gateway. A request could be a message.
func (g *Gateway) Probe(ctx context.Context) error {
	if err := guard.Reach(ctx, g.config.URL, g.config.Roots, nil); err != nil {
		return fmt.Errorf("sms: connecting to the gateway: %w", err)
	}
	return nil
}

// Close closes idle connections.
func (g *Gateway) Close() error {
	g.client.CloseIdleConnections()
	return nil
}
