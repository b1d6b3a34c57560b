// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// account is a user who calls the service.
type account struct {
	login, token string
	id           string // of those whose rights change or who confirm
	cert         int64  // 0: the default certificate
	pin          string
}

// accounts are the users of a cluster.
type accounts struct {
	operator account
	signers  []account
	guarded  []account // whose rights change
	pin      account   // demo with the certificate that has a PIN

	confirmers []*confirmer
}

const passwordOfSigners = "correct horse battery staple"

// makeAccounts registers users, makes their keys and signs them in.
func (c *Cluster) makeAccounts(ctx context.Context) error {
	file := filepath.Join(c.dir, "password")
	if err := os.WriteFile(file, []byte(passwordOfSigners), 0o600); err != nil {
		return err
	}
	made := make([]account, c.Signers+c.Guarded+c.Confirmers)
	n := c.nodes[0]
	turns := make(chan struct{}, 2)
	errs := make([]error, len(made))
	var all sync.WaitGroup
	for i := range made {
		all.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			login := fmt.Sprintf("signer%d", i)
			if _, errs[i] = n.run(ctx, "user", "add", login, "--group", "Default", "--password-file", file); errs[i] != nil {
				return
			}
			if _, errs[i] = n.run(ctx, "cert", "issue", login, "--default"); errs[i] != nil {
				return
			}
			made[i].login = login
			made[i].token, errs[i] = c.signIn(ctx, login, passwordOfSigners)
		})
	}
	all.Wait()
	demo, err := c.signIn(ctx, c.dev.User.Login, c.dev.User.Password)
	errs = append(errs, err)
	operator, err := c.signIn(ctx, c.dev.Operator.Login, c.dev.Operator.Password)
	errs = append(errs, err)
	a := &accounts{
		signers: append([]account{{login: c.dev.User.Login, token: demo}}, made[:c.Signers]...), guarded: made[c.Signers : c.Signers+c.Guarded],
		operator: account{login: c.dev.Operator.Login, token: operator},
	}
	for i := range made[c.Signers:] {
		u := &made[c.Signers+i]
		errs = append(errs, c.db.QueryRowContext(ctx, "SELECT id FROM users WHERE login = $1", u.login).Scan(&u.id))
	}
	for _, cert := range c.dev.Certificates {
		if cert.PIN != "" {
			a.pin = account{login: c.dev.User.Login, token: demo, cert: cert.ID, pin: cert.PIN}
		}
	}
	c.people = a
	if err := errors.Join(errs...); err != nil || c.Confirmers == 0 {
		return err
	}
	return c.makeConfirmers(ctx, made[c.Signers+c.Guarded:])
}

// signIn gets a token.
func (c *Cluster) signIn(ctx context.Context, login, password string) (string, error) {
	status, token, err := c.grant(ctx, 0, login, password)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("signing %s in: %d", login, status)
	}
	return token, err
}

// grant asks a process, or HAProxy, for a token.
func (c *Cluster) grant(ctx context.Context, node int, login, password string) (status int, token string, err error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	form := url.Values{
		"grant_type": {"password"}, "username": {login}, "password": {password}, "client_id": {c.dev.ClientID}, "resource": {c.dev.Resource},
	}
	r, err := http.NewRequestWithContext(ctx, "POST", c.address(node)+"/STS/oauth/token", bytes.NewReader([]byte(form.Encode())))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	status, body, err := do(http.DefaultClient, r)
	if err != nil || status != http.StatusOK {
		return status, "", err
	}
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	err = json.Unmarshal(body, &answer)
	return status, answer.AccessToken, err
}

// probe asks an address that needs no token.
func probe(ctx context.Context, address string) (int, []byte) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", address, nil)
	if err != nil {
		return 0, nil
	}
	status, body, _ := do(http.DefaultClient, r)
	return status, body
}

func do(client *http.Client, r *http.Request) (int, []byte, error) {
	response, err := client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, nil, err
	}
	return response.StatusCode, body, nil
}

// longest is how long a client waits for an answer: more than the program holds any request.
const longest = 60 * time.Second

// caller is one client. It sends a request after the other.
type caller struct {
	*session
	number int
	kind   string
	node   int // where it sends requests, balanced for HAProxy
	who    account
	http   *http.Client
	count  int // of its operations
}

// balanced is the node of a caller that HAProxy serves.
const balanced = -1

// request is one call of an operation.
type request struct {
	id      string // of the operation, also in the audit log
	method  string
	path    string
	body    []byte
	key     string // Idempotency-Key, "" for none
	headers map[string]string
	refusal bool // 400 is what the client wants
}

// next names the next operation of a client.
func (c *caller) next() string {
	c.count++
	return fmt.Sprintf("%s-%d-%d-%d", c.kind, c.session.number, c.number, c.count)
}

// address is the address of a node, or of HAProxy.
func (c *Cluster) address(node int) string {
	if node == balanced {
		return "http://" + c.front()
	}
	return c.nodes[node].url()
}

// other is another node than that of the client, if there is one.
func (c *caller) other() int {
	if c.node == balanced {
		return balanced
	}
	return (c.node + 1) % len(c.cluster.nodes)
}

// send sends a request to the node of the client and records what came of it. status is 0
// if there was no answer.
func (c *caller) send(r request) (status int, body []byte) { return c.sendTo(c.node, r) }

func (c *caller) sendTo(node int, r request) (status int, body []byte) {
	// A request that was begun is completed, even when the session ends: its outcome counts.
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	begun := time.Now()
	status, body, err := c.try(ctx, node, r)
	if r.refusal && status == http.StatusBadRequest {
		return status, body
	}
	c.record(call{kind: c.kind, node: node, at: time.Now(), took: time.Since(begun), status: status})
	if status == 0 {
		c.said(fmt.Sprintf("%s to %d: %v", c.kind, node, err))
	} else if status != 200 {
		c.said(fmt.Sprintf("%s to %d: %d %.200s", c.kind, node, status, body))
	}
	if unknown(status) {
		pause(20 * time.Millisecond) // the process may be away
	}
	return status, body
}

func (c *caller) try(ctx context.Context, node int, r request) (int, []byte, error) {
	q, err := http.NewRequestWithContext(ctx, r.method, c.cluster.address(node)+r.path, bytes.NewReader(r.body))
	if err != nil {
		return 0, nil, err
	}
	q.Header.Set("Authorization", "Bearer "+c.who.token)
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("X-Request-Id", r.id)
	if r.key != "" {
		q.Header.Set("Idempotency-Key", r.key)
	}
	for name, value := range r.headers {
		q.Header.Set(name, value)
	}
	return do(c.http, q)
}

// unknown reports whether a status leaves open whether the request was carried out: no
// answer, an outage, or an earlier request with the key that is under way.
func unknown(status int) bool { return status == 0 || status == 502 || status == 503 || status == 504 }

// leased reports whether an answer says that another request has leased what this one needs.
func leased(body []byte) bool {
	return bytes.Contains(body, []byte("is being completed by another request"))
}

// settle sends a request with a key until its outcome is known. A repetition is safe and
// gets the first answer. It ends with the time that a key may be leased to a dead process.
func (c *caller) settle(r request) (status int, body []byte) {
	end := time.Now().Add(2 * time.Minute)
	for {
		status, body = c.send(r)
		if !unknown(status) && status != 409 && !leased(body) || time.Now().After(end) {
			return status, body
		}
		pause(100 * time.Millisecond)
	}
}

// pause is between two attempts of a client that was not served.
func pause(d time.Duration) { time.Sleep(d) }

// text is a value as JSON.
func text(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // the harness makes the value
	}
	return b
}
