// SPDX-License-Identifier: Apache-2.0

// Package client has the sub-commands that are clients of a running server: Sign, Encrypt and Decrypt. client gets a
// token and sends requests, and signRequest and decryptRequest are their bodies.
//
// The package computes no signature: the server does. Encrypt and Decrypt also work without a server.
package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"tamga/internal/app/dev"
	"tamga/internal/cli"
	"tamga/internal/files"
)

// connectionFlags name the server and the user. Without --server both come from the dev.json of a
// server started with --dev. With --server this file is not read, since it is about another server.
type connectionFlags struct {
	Data string `group:"Server:" default:"./tamga-data" placeholder:"DIR" help:"Directory of a server started with --dev. Its dev.json has the address of the server and the user. Ignored with --server. Default: ./tamga-data."`

	Server string `group:"Server:" placeholder:"URL" help:"Address of the signing service, for instance https://host/SignServer."`
	IDP    string `name:"idp" group:"Server:" placeholder:"URL" help:"Address of the identity provider that issues the access token. Default: /STS on the host of --server."`

	Login            string `group:"Server:" placeholder:"NAME" help:"Login of the user. Default: the user of dev.json."`
	PasswordFile     string `group:"Server:" placeholder:"FILE" help:"File with the password of --login. Default: the one in dev.json for its users, otherwise ask at the terminal."`
	ClientID         string `group:"Server:" placeholder:"ID" help:"Identifier of this client at the identity provider. Default: the one in dev.json."`
	ClientSecretFile string `group:"Server:" placeholder:"FILE" help:"File with the secret of the client, if it has one."`
	Resource         string `group:"Server:" placeholder:"URN" help:"Resource that the token is for. Default: the one in dev.json, with --server urn:cryptopro:dss:signserver:signserver."`
	TokenFile        string `group:"Server:" placeholder:"FILE" help:"File with an access token. No login is needed with it."`
	CAFile           string `group:"Server:" placeholder:"FILE" help:"File with the PEM certificates of authorities to trust in TLS. Default: those of this system."`
	PlainHTTP        bool   `group:"Server:" help:"Allow http:// to another machine. Documents and passwords are then readable over the network."`
}

// DefaultResource is the resource of tokens for a server named by --server.
const DefaultResource = "urn:cryptopro:dss:signserver:signserver"

// client sends requests to one signing service as one user.
type client struct {
	http   *http.Client
	server string     // base_url without a final slash
	idp    string     // idp_url without a final slash
	grant  url.Values // the token request; nil if the token is given

	mu    sync.Mutex // for the fields below, which fresh changes
	token string
	until time.Time // the end of a token that signIn got
}

// newClient reads the files that the flags name and asks for a missing password. It sends nothing to
// the server.
func newClient(c *cli.Console, f connectionFlags) (*client, error) {
	cl := &client{}
	password, known := "", false
	if f.Server == "" {
		if f.IDP != "" {
			return nil, errors.New("--idp needs --server")
		}
		d, err := dev.Read(f.Data)
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%w; start a server with tamga serve --dev, name its directory with --data, or name another server with --server", err)
		}
		if err != nil {
			return nil, err
		}
		cl.server, cl.idp = d.BaseURL, d.IDPURL
		f.ClientID = cmp.Or(f.ClientID, d.ClientID)
		f.Resource = cmp.Or(f.Resource, d.Resource)
		f.Login = cmp.Or(f.Login, d.User.Login)
		for _, u := range []dev.User{d.User, d.Operator} {
			if f.PasswordFile == "" && strings.EqualFold(u.Login, f.Login) {
				password, known = u.Password, true
			}
		}
	} else {
		cl.server, cl.idp = f.Server, f.IDP
		if cl.idp == "" {
			u, err := url.Parse(f.Server)
			if err != nil {
				return nil, fmt.Errorf("--server: %w", err)
			}
			cl.idp = u.Scheme + "://" + u.Host + "/STS"
		}
	}
	cl.server, cl.idp = strings.TrimRight(cl.server, "/"), strings.TrimRight(cl.idp, "/")
	if err := cli.CheckAddress(cl.server, f.PlainHTTP); err != nil {
		return nil, fmt.Errorf("address of the signing service: %w", err)
	}
	if err := cli.CheckAddress(cl.idp, f.PlainHTTP); err != nil {
		return nil, fmt.Errorf("address of the identity provider: %w", err)
	}
	var err error
	if cl.http, err = cli.NewHTTPClient(f.CAFile); err != nil {
		return nil, err
	}
	if f.TokenFile != "" {
		if cl.token, err = files.ReadSecret(f.TokenFile, "--token-file"); err == nil && cl.token == "" {
			err = errors.New("--token-file: the file is empty")
		}
		return cl, err
	}

	switch {
	case f.Login == "":
		return nil, errors.New("no user to sign in as: give --login with --password-file, or --token-file")
	case f.ClientID == "":
		return nil, errors.New("--client-id is missing: give the identifier of this client at the identity provider")
	case f.PasswordFile != "":
		password, err = files.ReadSecret(f.PasswordFile, "--password-file")
	case !known:
		password, err = c.AskSecret(c.Text("Password of %s: ", cli.Printable(f.Login)), "--password-file")
	}
	if err != nil {
		return nil, err
	}
	cl.grant = url.Values{
		"grant_type": {"password"}, "username": {f.Login}, "password": {password},
		"resource": {cmp.Or(f.Resource, DefaultResource)}, "client_id": {f.ClientID}, "scope": {"dss"},
	}
	if f.ClientSecretFile != "" {
		secret, err := files.ReadSecret(f.ClientSecretFile, "--client-secret-file")
		if err != nil {
			return nil, err
		}
		cl.grant.Set("client_secret", secret)
	}
	return cl, nil
}

// tokenTimeout is the timeout of the token request. Signing requests have none: they take as long as
// the document needs.
const tokenTimeout = 30 * time.Second

// signIn gets an access token by the password grant, unless one is given.
func (cl *client) signIn(ctx context.Context) error {
	if cl.grant == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	asked := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, cl.idp+"/oauth/token", strings.NewReader(cl.grant.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	resp, err := cl.http.Do(req)
	if err != nil {
		return unreachable(identityProvider, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return readRefusal(resp, "the identity provider")
	}
	var answer struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int    `json:"expires_in"` // seconds
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&answer); err != nil || answer.AccessToken == "" {
		return errors.New("the identity provider answered without a token; check --idp, for instance https://host/STS")
	}
	cl.token, cl.until = answer.AccessToken, asked.Add(time.Duration(answer.ExpiresIn)*time.Second)
	return nil
}

// fresh gets another access token if the one of signIn ends within a minute. It is for work that may take longer than a token is
// valid, and may be called from several goroutines, as do may.
func (cl *client) fresh(ctx context.Context) error {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.grant == nil || time.Until(cl.until) > time.Minute {
		return nil
	}
	return cl.signIn(ctx)
}

// bearer returns the access token.
func (cl *client) bearer() string {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.token
}

// expectAbove is the size in bytes above which a request waits for "100 Continue" before it sends the
// body.
const expectAbove = 1 << 20

// sign sends the request and returns the answer, a JSON string of Base64. The caller closes it.
func (cl *client) sign(ctx context.Context, r *signRequest) (io.ReadCloser, error) {
	body, size, err := r.body()
	if err != nil {
		return nil, err
	}
	answer, err := cl.post(ctx, "/api/documents", body, size)
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

// post sends a body of a length in bytes, -1 if it is not known, and returns the answer. The caller closes it.
func (cl *client) post(ctx context.Context, path string, body io.Reader, size int64) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, cl.server+path, body)
	if err != nil {
		return nil, err
	}
	req.ContentLength = size // -1: sent in chunks
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	if size < 0 || size > expectAbove {
		req.Header.Set("Expect", "100-continue")
	}
	return cl.do(req, signingService)
}

// Services, as errors name them.
const (
	signingService   = "signing service"
	identityProvider = "identity provider"
)

// do sends a request with the access token and returns the answer of a service. The caller closes it.
func (cl *client) do(req *http.Request, service string) (*http.Response, error) {
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Authorization", "Bearer "+cl.bearer())
	resp, err := cl.http.Do(req)
	if err != nil {
		return nil, unreachable(service, err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, readRefusal(resp, "the "+service)
	}
	return resp, nil
}

// unreachable returns the error for a failed exchange with a service. A cancelation stays
// context.Canceled.
func unreachable(service string, err error) error {
	var op *net.OpError
	switch {
	case errors.Is(err, context.Canceled):
		return context.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the %s did not answer within %s", service, tokenTimeout)
	case errors.As(err, &op) && op.Op == "dial":
		return fmt.Errorf("cannot connect to the %s: %w; is the server running?", service, op)
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // without the method and the address
	}
	return fmt.Errorf("the exchange with the %s failed: %w", service, err)
}

// refusal is an answer whose status is not 200.
type refusal struct {
	service     string
	status      int
	code        string // of the interface, empty if the body has none
	description string
	location    string // the target of a redirect
	hint        string // advice of a command instead of the one in hints
}

// readRefusal reads the error forms of both services. The case of names does not matter.
func readRefusal(resp *http.Response, service string) error {
	r := &refusal{service: service, status: resp.StatusCode, location: resp.Header.Get("Location")}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // a part of the body is better than none
	var body struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
		Message     string `json:"message"`
	}
	if json.Unmarshal(bytes.TrimSpace(text), &body) == nil {
		r.code = cmp.Or(body.Error, body.Message)
		r.description = body.Description
		if r.description == "" && body.Message != r.code {
			r.description = body.Message
		}
	}
	return r
}

// hints has advice for the error codes of the interface.
var hints = map[string]string{
	"invalid_pin":                 "the key needs a PIN: give it with --pin or --pin-file; wrong PINs are counted and block the key",
	"invalid_certificate":         "--cert takes the number of a valid certificate of the user; 0 is the default one",
	"invalid_signature_params":    "tamga sign --help lists the flags for these parameters",
	"content_required":            "the document is empty",
	"max_request_length_exceeded": "the document is larger than the server allows; sign its hash with --hash",
	"invalid_grant":               "check --login and --password-file",
	"invalid_client":              "check --client-id and --client-secret-file",
	"unauthorized_client":         "this client may not use passwords: check --client-id, or give a token with --token-file",
	"access_denied":               "the policy of the server forbids this to the user",
	"too_many_requests":           "try again later",
	"temporarily_unavailable":     "try again later",
}

// decryptHints has advice that is other for decryption.
var decryptHints = map[string]string{
	"parameters_required":         "--originator names a file with the certificate of the sender",
	"invalid_certificate":         "--cert takes the number of a certificate of the user that the message was encrypted for; 0 is one that opens it",
	"content_required":            "the file is empty",
	"max_request_length_exceeded": "the message is larger than the server allows; with --key this program decrypts it",
}

// encryptHints has advice that is other for encryption.
var encryptHints = map[string]string{
	"max_request_length_exceeded": "the document is larger than the server allows; --offline encrypts it in this program",
	"content_required":            "the document is empty; --offline encrypts empty documents, too",
}

// statusHints has advice for statuses without a code of hints.
var statusHints = map[int]string{
	http.StatusUnauthorized:          "the token is invalid, expired or revoked; get a new one",
	http.StatusNotFound:              "check the address of the service, for instance https://host/SignServer",
	http.StatusRequestEntityTooLarge: hints["max_request_length_exceeded"],
	http.StatusInternalServerError:   "see the log of the server",
	http.StatusBadGateway:            "try again later",
	http.StatusServiceUnavailable:    "try again later",
}

// Error returns one sentence: the service, the status and code, the description, and advice.
func (r *refusal) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s refused: %d", r.service, r.status)
	if r.code != "" {
		b.WriteString(" " + cli.Printable(r.code))
	}
	if r.description != "" {
		b.WriteString(": " + cli.Printable(r.description))
	}
	hint := cmp.Or(r.hint, hints[r.code], statusHints[r.status])
	if r.status/100 == 3 {
		hint = fmt.Sprintf("it redirects to %s; redirects are not followed, so give the right address", cli.Printable(r.location))
	}
	if hint != "" {
		b.WriteString(" (" + hint + ")")
	}
	return b.String()
}
