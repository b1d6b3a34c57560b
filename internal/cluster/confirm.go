// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"tamga/internal/domain/oath/otp"
)

// confirmer is a user who confirms operations by the codes of a token that counts, so that
// every code is right at once.
type confirmer struct {
	account
	key  *otp.Key
	step int64 // of the next code
	lost bool  // the last code got no answer
}

// code returns the next code.
func (u *confirmer) code() string {
	u.step++
	return u.key.Code(u.step - 1)
}

// makeConfirmers gives users tokens and signs them in.
func (c *Cluster) makeConfirmers(ctx context.Context, users []account) error {
	file := bytes.NewBufferString("serial,type,secret_hex\n")
	for i, u := range users {
		secret := fmt.Appendf(nil, "secret of a token %02d", i)
		key, err := otp.New(otp.SHA1, 6, secret)
		if err != nil {
			return err
		}
		fmt.Fprintf(file, "%s,HOTP,%x\n", u.login, secret)
		c.people.confirmers = append(c.people.confirmers, &confirmer{account: u, key: key})
	}
	name := filepath.Join(c.dir, "tokens.csv")
	if err := os.WriteFile(name, file.Bytes(), 0o600); err != nil {
		return err
	}
	if _, err := c.nodes[0].run(ctx, "token", "import", name); err != nil {
		return err
	}
	for _, u := range c.people.confirmers {
		path := "/STS/ums/user/" + u.id
		given := text(map[string]string{"Serial": u.login, "FirstOtp": u.code(), "SecondOtp": u.code()})
		err := errors.Join(c.operate(ctx, path+"/oath", given), c.operate(ctx, path+"/authmethod/oath?level=1", nil))
		if err == nil {
			u.token, err = c.signIn(ctx, u.login, passwordOfSigners)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", u.login, err)
		}
	}
	return nil
}

// operate sends a request of the operator.
func (c *Cluster) operate(ctx context.Context, path string, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, "POST", c.address(0)+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+c.people.operator.token)
	r.Header.Set("Content-Type", "application/json")
	status, answer, err := do(http.DefaultClient, r)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%s was answered %d %.300s", path, status, answer)
	}
	return err
}

// confirming are users who begin an operation, ask for its challenge, confirm it and have it
// carried out, with a process for each step. Each client is a user of its own.
type confirming struct {
	users []*confirmer

	mu   sync.Mutex
	made []confirmed
}

// confirmed is an operation that was confirmed. done: its result was answered.
type confirmed struct {
	id, operation string
	done          bool
}

func (d *confirming) step(c *caller) {
	if c.number >= len(d.users) {
		c.wrong("there are %d users who confirm: want one for each client", len(d.users))
		return
	}
	u := d.users[c.number]
	c.who = u.account
	id := c.next()
	create := request{id: id, method: "POST", path: "/SignServer/api/v2/signature", body: text(map[string]any{
		"BinaryData": []any{map[string]any{"Content": bytes.Repeat([]byte{'a'}, 1024), "ContentInfo": "pay.txt"}},
		"Signature":  map[string]any{"Type": "CMS"}, "ForceConfirmation": true,
	})}
	var created struct{ Operation struct{ ID string } }
	if !c.answered(c.node, create, &created) {
		return
	}
	operation := created.Operation.ID
	ask := func(node int, more string, value any) (answer confirmation, ok bool) {
		body := map[string]any{"Resource": c.cluster.dev.Resource, "ClientId": c.cluster.dev.ClientID, more: value}
		ok = c.answered(node, request{id: id, method: "POST", path: "/STS/v2.0/confirmation", body: text(body)}, &answer)
		return answer, ok
	}
	first, ok := ask(c.node, "OperationId", operation)
	if !ok {
		return
	}
	if len(first.Challenge.TextChallenge) != 1 {
		c.wrong("%s: a challenge has no text to answer: %+v", id, first)
		return
	}
	ref := first.Challenge.TextChallenge[0].RefID
	node := c.other()
	if u.lost {
		node = c.node // a token may be ahead by a few codes only
	}
	last, ok := ask(node, "ChallengeResponse", map[string]any{"TextChallengeResponse": []any{map[string]any{"RefId": ref, "Value": u.code()}}})
	if u.lost = !ok; u.lost {
		return
	}
	if !last.IsFinal || last.IsError || last.AccessToken == "" {
		c.wrong("%s: the right code was answered %+v", id, last)
		return
	}
	c.who.token = last.AccessToken
	var signed struct {
		Operation struct {
			Result struct{ ProcessedDocuments []struct{ Content []byte } }
		}
	}
	done := c.answered(c.node, request{id: carriedOut(id), method: "POST", path: create.path, body: []byte("{}")}, &signed)
	if done && len(signed.Operation.Result.ProcessedDocuments) != 1 {
		c.wrong("%s: a confirmed operation has no result", id)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.made = append(d.made, confirmed{id, operation, done})
}

// carriedOut names the request that carries an operation out.
func carriedOut(id string) string { return id + "-carried-out" }

// confirmation is an answer of the confirmation service.
type confirmation struct {
	IsFinal, IsError bool
	AccessToken      string
	Challenge        struct{ TextChallenge []struct{ RefID string } }
}

// answered sends a request and reads its answer. It reports whether there was one.
func (c *caller) answered(node int, r request, into any) bool {
	status, body := c.sendTo(node, r)
	if unknown(status) {
		return false
	}
	if err := json.Unmarshal(body, into); status != http.StatusOK || err != nil {
		c.wrong("%s: %s was answered %d %.300s", r.id, r.path, status, body)
		return false
	}
	return true
}

func (d *confirming) check(ctx context.Context, v *verification) {
	states, err := v.column(ctx, "SELECT id, state FROM confirmations")
	if err != nil {
		v.wrong("%v", err)
		return
	}
	for _, o := range d.made {
		wanted := []string{"Completed"}
		if !o.done {
			wanted = append(wanted, "Confirmed", "Expired")
		}
		if !slices.Contains(wanted, states[o.operation]) {
			v.wrong("%s: the confirmed operation %s is %q", o.id, o.operation, states[o.operation])
		}
		if o.done {
			v.once(carriedOut(o.id), "SignatureOperation")
		} else {
			v.atMostOnce(carriedOut(o.id), "SignatureOperation")
		}
	}
}
