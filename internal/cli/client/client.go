// Package client has the sub-command sign, a client of a running server.
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
	"time"

	"tamga/internal/app/dev"
	"tamga/internal/cli"
	"tamga/internal/files"
)

// connectionFlags say which server to ask and as whom. Without --server all of
// it stands in the dev.json of a server started with --dev. With --server that
// file is not read: what it holds is for its own server only.
type connectionFlags struct {
	Data string `group:"Server:" default:"./tamga-data" placeholder:"DIR" help:"Directory of a server started with --dev: its dev.json says where the server is and who signs. Ignored with --server. Default: ./tamga-data."`

	Server string `group:"Server:" placeholder:"URL" help:"Address of the signing service, for instance https://host/SignServer."`
	IDP    string `name:"idp" group:"Server:" placeholder:"URL" help:"Address of the identity provider that gives the token. Default: /STS on the host of --server."`

	Login            string `group:"Server:" placeholder:"NAME" help:"Who signs. Default: the user of dev.json."`
	PasswordFile     string `group:"Server:" placeholder:"FILE" help:"File with the password of --login. Default: the one of dev.json for its own users, else it is asked for on the terminal."`
	ClientID         string `group:"Server:" placeholder:"ID" help:"Name of this client at the identity provider."`
	ClientSecretFile string `group:"Server:" placeholder:"FILE" help:"File with the secret of the client, when it has one."`
	Resource         string `group:"Server:" placeholder:"URN" help:"What the token is for. Default: that of dev.json, with --server urn:cryptopro:dss:signserver:signserver."`
	TokenFile        string `group:"Server:" placeholder:"FILE" help:"File with an access token; then no login is needed."`
	CAFile           string `group:"Server:" placeholder:"FILE" help:"PEM certificates that the server's TLS certificate is checked with. Default: those of this system."`
	PlainHTTP        bool   `group:"Server:" help:"Send documents and passwords over http:// to another machine, readable on the way. Without this only this machine is asked over http."`
}

const DefaultResource = "urn:cryptopro:dss:signserver:signserver"

// client speaks to one signing service as one user.
type client struct {
	http   *http.Client
	server string     // base_url without a slash at its end
	idp    string     // idp_url, likewise
	grant  url.Values // the token request; nil when token was given
	token  string
}

// newClient reads the files the flags name and asks for a missing password. It
// does not speak to the server yet.
func newClient(ctx context.Context, f connectionFlags) (*client, error) {
	cl := &client{}
	password, known := "", false
	if f.Server == "" {
		if f.IDP != "" {
			return nil, errors.New("--idp needs --server beside it")
		}
		d, err := dev.Read(f.Data)
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%w: start a server with tamga serve --dev, name its directory with --data, or name another server with --server", err)
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
		return nil, errors.New("who signs? give --login with --password-file, or --token-file")
	case f.ClientID == "":
		return nil, errors.New("--client-id is missing: the name under which the identity provider knows this client")
	case f.PasswordFile != "":
		password, err = files.ReadSecret(f.PasswordFile, "--password-file")
	case !known:
		password, err = cli.AskSecret(ctx, "Password of "+cli.Printable(f.Login)+": ", "--password-file")
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

// tokenTimeout bounds the token request; a signing request takes as long as the
// document does.
const tokenTimeout = 30 * time.Second

// signIn gets an access token by the password grant unless one was given.
func (cl *client) signIn(ctx context.Context) error {
	if cl.grant == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, cl.idp+"/oauth/token", strings.NewReader(cl.grant.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	resp, err := cl.http.Do(req)
	if err != nil {
		return unreachable("identity provider", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return readRefusal(resp, "the identity provider")
	}
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&answer); err != nil || answer.AccessToken == "" {
		return errors.New("the identity provider answered without a token: is --idp its address, for instance https://host/STS?")
	}
	cl.token = answer.AccessToken
	return nil
}

// expectAbove is the size of a request, in octets, from which it waits for the
// server to say that it wants it.
const expectAbove = 1 << 20

// sign sends the request and returns the answer, a JSON string of Base64, which
// the caller closes.
func (cl *client) sign(ctx context.Context, r *signRequest) (io.ReadCloser, error) {
	body, size, err := r.body()
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, cl.server+"/api/documents", body)
	if err != nil {
		return nil, err
	}
	req.ContentLength = size // -1: sent in chunks
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Authorization", "Bearer "+cl.token)
	if size < 0 || size > expectAbove {
		req.Header.Set("Expect", "100-continue")
	}
	resp, err := cl.http.Do(req)
	if err != nil {
		return nil, unreachable("signing service", err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, readRefusal(resp, "the signing service")
	}
	return resp.Body, nil
}

// unreachable words a failed exchange. It keeps cancelation recognisable.
func unreachable(who string, err error) error {
	var op *net.OpError
	switch {
	case errors.Is(err, context.Canceled):
		return context.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the %s did not answer within %s", who, tokenTimeout)
	case errors.As(err, &op) && op.Op == "dial":
		return fmt.Errorf("the %s cannot be reached: %w; is the server running?", who, op)
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // without the method and the address in front
	}
	return fmt.Errorf("the exchange with the %s failed: %w", who, err)
}

// refusal is an answer that is not 200.
type refusal struct {
	who         string
	status      int
	code        string // of the interface, empty when the body names none
	description string
	location    string // where a redirect leads
}

// readRefusal reads the error shapes of both services; names are matched
// without regard to case.
func readRefusal(resp *http.Response, who string) error {
	r := &refusal{who: who, status: resp.StatusCode, location: resp.Header.Get("Location")}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // half an explanation is better than none
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

// hints say what to do about a code of the interface.
var hints = map[string]string{
	"invalid_pin":                 "the key is opened by a PIN: give it with --pin or --pin-file; wrong ones are counted and block the key",
	"invalid_certificate":         "--cert takes the number of one of your own certificates that is valid now; 0 is the default one",
	"invalid_signature_params":    "see tamga sign --help for the flags that set these parameters",
	"content_required":            "the document is empty",
	"max_request_length_exceeded": "the document is larger than the server allows: sign its hash instead, with --hash",
	"invalid_grant":               "check --login and --password-file",
	"invalid_client":              "check --client-id and --client-secret-file",
	"unauthorized_client":         "this client may not sign in with a password: check --client-id, or bring a token with --token-file",
	"access_denied":               "the policy of the server forbids this to the user",
	"too_many_requests":           "try again later",
	"temporarily_unavailable":     "try again later",
}

// statusHints stand in where a status comes without a code of that table.
var statusHints = map[int]string{
	http.StatusUnauthorized:          "the token is wrong, expired or ended: bring a fresh one",
	http.StatusNotFound:              "is this the address of the service, for instance https://host/SignServer?",
	http.StatusRequestEntityTooLarge: hints["max_request_length_exceeded"],
	http.StatusInternalServerError:   "the log of the server says more",
	http.StatusBadGateway:            "try again later",
	http.StatusServiceUnavailable:    "try again later",
}

// Error is one sentence: who refused, the status and code, the words of the
// server, and what to do.
func (r *refusal) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s refused: %d", r.who, r.status)
	if r.code != "" {
		b.WriteString(" " + cli.Printable(r.code))
	}
	if r.description != "" {
		b.WriteString(": " + cli.Printable(r.description))
	}
	hint := cmp.Or(hints[r.code], statusHints[r.status])
	if r.status/100 == 3 {
		hint = fmt.Sprintf("it leads to %s, which is not followed: give that address if it is right", cli.Printable(r.location))
	}
	if hint != "" {
		b.WriteString(" (" + hint + ")")
	}
	return b.String()
}
