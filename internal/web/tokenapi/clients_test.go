// SPDX-License-Identifier: Apache-2.0

package tokenapi_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/judge"
	"tamga/internal/tamgatest"
)

// The programs of TestClientTable besides that of the server.
const (
	smsOnly    = "sms-only"    // knows codes by SMS and no other method
	pushOnly   = "push-only"   // knows devices
	withSecret = "with-secret" // has a secret
)

// clientTable is a server with programs that differ in what they know, and the user demo, who
// confirms by two devices and by SMS.
type clientTable struct {
	*confirming
	token string // of the user demo
	calls chan call
	kids  []string // devices of the user demo
	files []string // of the devices
}

// callbackKey signs the callbacks of the server.
var callbackKey = bytes.Repeat([]byte{7}, 32)

// call is a callback that a program received.
type call struct {
	path, body string
	signed     bool
}

// receiver answers callbacks as the Java client does, 200 with an empty body.
func receiver(t *testing.T) (address string, calls chan call) {
	t.Helper()
	calls = make(chan call, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mac := hmac.New(sha256.New, callbackKey)
		fmt.Fprintf(mac, "%s.%s.%s", r.Header.Get("Webhook-Id"), r.Header.Get("Webhook-Timestamp"), body)
		calls <- call{r.URL.Path, string(body), r.Header.Get("Webhook-Signature") == "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil))}
	}))
	t.Cleanup(server.Close)
	return server.URL, calls
}

// next is the next callback.
func (c *clientTable) next() call {
	c.t.Helper()
	select {
	case got := <-c.calls:
		return got
	case <-time.After(tamgatest.Patience):
		c.t.Fatalf("no callback came\n%s", c.Logged())
		return call{}
	}
}

func startClientTable(t *testing.T) *clientTable {
	t.Helper()
	secret := tamgatest.WriteFile(t, filepath.Join(t.TempDir(), "secret"), tamgatest.AppSecret)
	key := tamgatest.WriteFile(t, filepath.Join(t.TempDir(), "callback"), "whsec_"+base64.StdEncoding.EncodeToString(callbackKey))
	c := &clientTable{confirming: &confirming{t: t, UMS: tamgatest.StartUMS(t, "--set", "confirmation.codes.resend=1ms",
		"--set", "confirmation.one_open=true",
		"--set", "operations.callbacks.secret_file="+key, "--set", "operations.callbacks.plain_http=true",
		"--set", "operations.callbacks.allow_networks=[127.0.0.1]",
		// So few attempts that row 17 would use them up, if each poll were one.
		"--set", "passwords.login_at_once=2", "--set", "passwords.login_per_minute=0.001",
		"--set", `clients=[{id: tamga-dev, password_grant: true}, {id: `+smsOnly+`, password_grant: true, confirm_methods: [otpviasms]}, `+
			`{id: `+pushOnly+`, password_grant: true, confirm_methods: [mydss]}, {id: `+withSecret+`, password_grant: true, secret_file: "`+secret+`"}]`,
	)}}
	c.id, c.login, c.phone = c.Dev.User.ID, c.Dev.User.Login, "79250000077"
	phones := "/ums/user/" + c.id + "/phones"
	c.OK(tamgatest.Ours, "POST", phones, fmt.Sprintf("%q", c.phone))
	c.OK(tamgatest.Ours, "POST", phones+"/"+c.phone+"/confirm", "")
	c.OK(tamgatest.Ours, "POST", phones+"/"+c.phone+"/secondaryauth", "")
	c.assign("otpviasms?level=1", "mydss?level=1")
	for _, name := range []string{"Телефон", "Планшет"} {
		c.addDevice(name)
	}
	c.token = c.Token()
	return c
}

// addDevice registers and verifies a device of the user.
func (c *clientTable) addDevice(name string) {
	c.t.Helper()
	file, kid := c.Device(c.id, name, "--suite", "ecdsa-p256")
	c.kids, c.files = append(c.kids, kid), append(c.files, file)
}

// within makes the failures of a part of the test its own.
func (c *clientTable) within(t *testing.T) {
	c.T, c.t = t, t
}

// tokenOf signs a user in with a program.
func (c *clientTable) tokenOf(client, login string) string {
	c.t.Helper()
	form := url.Values{"grant_type": {"password"}, "username": {login}, "password": {tamgatest.Password}, "client_id": {client}, "resource": {c.Dev.Resource}}
	if client == withSecret {
		form.Set("client_secret", tamgatest.AppSecret)
	}
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	a := c.Ask(tamgatest.Anonymous, "POST", "/oauth/token", form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
	if a.Into(c.t, &answer); answer.AccessToken == "" {
		c.t.Fatalf("%v", a)
	}
	return answer.AccessToken
}

// body is a request with the keys of the first call and those of more, which is JSON after a comma.
func (c *clientTable) body(client, more string) string {
	return fmt.Sprintf(`{"Resource":%q,"ClientId":%q%s}`, strings.ToLower(c.Dev.Resource), client, more)
}

const v2Order = `{"BinaryData":[{"Content":"cGF5","ContentInfo":"pay.txt"}],"Signature":{"Type":"CMS","Parameters":{"IsDetached":"true"},"CertificateId":"0"},"ForceConfirmation":"true"}`

// propose creates an operation, which ends with the test.
func (c *clientTable) propose(v2 bool) (id, path, key string) {
	c.t.Helper()
	if v2 {
		var created struct{ Operation struct{ ID, Status string } }
		status, answer := c.Call("POST", "/api/v2/signature", c.token, json.RawMessage(v2Order))
		if json.Unmarshal(answer, &created) != nil || created.Operation.Status != "Created" {
			c.t.Fatalf("%d %s", status, answer)
		}
		id, path, key = created.Operation.ID, "/v2.0/confirmation", "OperationId"
	} else {
		status, answer := c.transact()
		if json.Unmarshal(answer, &id) != nil || status != 200 {
			c.t.Fatalf("%d %s", status, answer)
		}
		path, key = "/confirmation", "TransactionTokenId"
	}
	c.t.Cleanup(func() { c.cancel(id) })
	return id, path, key
}

func (c *clientTable) transact() (int, []byte) {
	c.t.Helper()
	return c.Call("POST", "/rest/api/transactions", c.token, map[string]any{"OperationCode": 2, "Document": []byte("pay"), "Parameters": []any{
		map[string]any{"Name": "SignatureType", "Value": "CMS"}, map[string]any{"Name": "CertificateID", "Value": 0},
		map[string]any{"Name": "IsDetached", "Value": true}, map[string]any{"Name": "DocumentInfo", "Value": "pay.txt"},
	}})
}

// cancel ends an operation, if it is open.
func (c *clientTable) cancel(id string) {
	c.Tokens["demo"] = c.token
	c.Ask("demo", "DELETE", "/operations/"+id, "")
}

func choices(a answer) (refs, labels []string) {
	if a.Challenge == nil || len(a.Challenge.ChoiceChallenge) != 1 {
		return nil, nil
	}
	for _, choice := range a.Challenge.ChoiceChallenge[0].Choice {
		refs, labels = append(refs, choice.RefID), append(labels, choice.Label)
	}
	return refs, labels
}

// methodOf is the method that an answer asks for at once, without a choice.
func methodOf(a answer) string {
	if a.Challenge == nil || len(a.Challenge.TextChallenge) != 1 || len(a.Challenge.ChoiceChallenge) != 0 {
		return ""
	}
	return strings.TrimPrefix(a.Challenge.TextChallenge[0].AuthnMethod, methodSpace)
}

// TestClientTable has one part for each habit of the existing programs, by number. It sends
// what they send.
func TestClientTable(t *testing.T) {
	t.Parallel()
	c := startClientTable(t)
	me := "Bearer " + c.token
	// person signs in by password and a code; confirmer confirms texts by SMS alone.
	c.confirming.add("person", "otpviasms?level=2")
	person, personPhone := basic("person", tamgatest.Password), c.phone
	c.confirming.add("confirmer", "otpviasms?level=1")
	confirmer := "Bearer " + c.TokenOf("confirmer", tamgatest.Password)
	c.id, c.phone = c.Dev.User.ID, "79250000077"
	text := `,"ConfirmationScope":"checkprofile","ConfirmationParams":{"Templte":"profile"}`

	rows := []struct {
		name string
		test func(t *testing.T)
	}{
		{"row 1: both addresses", func(t *testing.T) {
			for _, path := range []string{"/confirmation", "/v2.0/confirmation"} {
				if got := c.ask(path, person, c.body(c.Dev.ClientID, "")); methodOf(got) != "otpviasms" {
					t.Errorf("%s: %+v", path, got)
				}
			}
		}},
		{"row 2: the first call", func(t *testing.T) {
			for _, v2 := range []bool{true, false} {
				id, path, key := c.propose(v2)
				if got := c.ask(path, me, c.body(c.Dev.ClientID, fmt.Sprintf(`,%q:%q`, key, strings.ToUpper(id)))); got.Challenge == nil {
					t.Errorf("%s: %+v", key, got)
				}
				c.cancel(id)
			}
			if got := c.ask("/confirmation", confirmer, c.body(c.Dev.ClientID, text)); methodOf(got) != "otpviasms" {
				t.Errorf("a text: %+v", got)
			}
			if got := c.ask("/confirmation", person, c.body(withSecret, `,"ClientSecret":"`+tamgatest.AppSecret+`"`)); methodOf(got) != "otpviasms" {
				t.Errorf("with a secret: %+v", got)
			}
			if got := c.ask("/confirmation", person, c.body(withSecret, `,"ClientSecret":"another"`)); got.Error != "invalid_client" {
				t.Errorf("with a wrong secret: %+v", got)
			}
		}},
		{"row 3: later calls name the challenge alone", func(t *testing.T) {
			for _, v2 := range []bool{true, false} {
				id, path, key := c.propose(v2)
				ref := c.ask(path, me, c.begin(fmt.Sprintf(`,%q:%q`, key, id))).Challenge.ContextData.RefID
				if got := c.ask(path, me, c.choose(ref, methodSpace+"otpviasms")); methodOf(got) != "otpviasms" || got.Challenge.ContextData.RefID != ref {
					t.Fatalf("the choice: %+v", got)
				}
				if got := c.ask(path, me, c.poll(ref)); *got.IsFinal || *got.IsError {
					t.Errorf("the poll: %+v", got)
				}
				if got := c.ask(path, me, c.answerTo(ref, c.Code(c.phone))); got.AccessToken == "" {
					t.Errorf("the code: %+v", got)
				}
				c.cancel(id)
			}
		}},
		{"row 4: no choice, no key", func(t *testing.T) {
			a := c.Ask(tamgatest.Anonymous, "POST", "/confirmation", c.body(c.Dev.ClientID, ""), "Authorization", person)
			if a.Status != 200 || strings.Contains(a.Body, "ChoiceChallenge") {
				t.Errorf("%v", a)
			}
		}},
		{"row 5: one method is asked for at once", func(t *testing.T) {
			if got := c.ask("/v2.0/confirmation", confirmer, c.begin(text)); methodOf(got) != "otpviasms" {
				t.Errorf("%+v", got)
			}
		}},
		{"row 6: each device is a choice", func(t *testing.T) {
			id, path, key := c.propose(true)
			first := c.ask(path, me, c.begin(fmt.Sprintf(`,%q:%q`, key, id)))
			refs, labels := choices(first)
			want := []string{methodSpace + "mydss?" + c.kids[0], methodSpace + "mydss?" + c.kids[1], methodSpace + "otpviasms"}
			slices.Sort(want[:2])
			sorted := slices.Clone(refs)
			slices.Sort(sorted[:min(2, len(sorted))])
			if d := cmp.Diff(want, sorted); d != "" {
				t.Fatal(d)
			}
			if !slices.Contains(labels, "Телефон") || !slices.Contains(labels, "Планшет") {
				t.Errorf("the labels are %q", labels)
			}
			second := slices.Index(c.kids, strings.TrimPrefix(refs[1], methodSpace+"mydss?"))
			ref := first.Challenge.ContextData.RefID
			if got := c.ask(path, me, c.choose(ref, refs[1])); methodOf(got) != "mydss" || got.Challenge.TextChallenge[0].Label != labels[1] {
				t.Fatalf("the choice %q: %+v", labels[1], got)
			}
			// The other device was not asked.
			if out, err := tamgatest.Phone(t, c.files[1-second], "list", "--json"); err != nil || strings.Contains(out, id) {
				t.Errorf("the other device lists %s, %v", out, err)
			}
			if out, err := tamgatest.Phone(t, c.files[second], "approve", id, "--yes"); err != nil {
				t.Fatalf("%s, %v", out, err)
			}
			if got := c.ask(path, me, c.poll(ref)); got.AccessToken == "" {
				t.Errorf("%+v", got)
			}
		}},
		{"row 7: a device is mobile in v1", func(t *testing.T) {
			id, path, key := c.propose(false)
			first := c.ask(path, me, c.begin(fmt.Sprintf(`,%q:%q`, key, id)))
			refs, _ := choices(first)
			if len(refs) != 3 || !strings.HasPrefix(refs[0], methodSpace+"mobile?") {
				t.Fatalf("%q", refs)
			}
			if got := c.ask(path, me, c.choose(first.Challenge.ContextData.RefID, refs[0])); methodOf(got) != "mobile" {
				t.Errorf("%+v", got)
			}
		}},
		{"row 8: what the program knows", func(t *testing.T) {
			token := c.tokenOf(smsOnly, "confirmer")
			if got := c.ask("/v2.0/confirmation", "Bearer "+token, c.body(smsOnly, text)); methodOf(got) != "otpviasms" {
				t.Errorf("codes alone: %+v", got)
			}
			token = c.tokenOf(pushOnly, "confirmer")
			if got := c.ask("/v2.0/confirmation", "Bearer "+token, c.body(pushOnly, text)); got.Error != "authn_method_not_confirmed" {
				t.Errorf("devices alone: %+v", got)
			}
			// OATH is offered to a user who has nothing else.
			defer func(id, phone string) { c.id, c.phone = id, phone }(c.id, c.phone)
			c.confirming.add("authenticator", "oath?level=1")
			c.OK(tamgatest.Ours, "POST", "/ums/user/"+c.id+"/oath/app", "")
			user := "Bearer " + c.TokenOf("authenticator", tamgatest.Password)
			if got := c.ask("/v2.0/confirmation", user, c.begin(text)); methodOf(got) != "oath" {
				t.Errorf("nothing else: %+v", got)
			}
			c.assign("otpviasms?level=1")
			user = "Bearer " + c.TokenOf("authenticator", tamgatest.Password)
			if got := c.ask("/v2.0/confirmation", user, c.begin(`,"ConfirmationScope":"another"`)); methodOf(got) != "otpviasms" {
				t.Errorf("with a phone: %+v", got)
			}
		}},
		{"row 9: a wrong code", func(t *testing.T) {
			first := c.ask("/confirmation", person, c.begin(""))
			if *first.Challenge.Title.Value != "" {
				t.Errorf("%+v", first)
			}
			ref, code := first.Challenge.TextChallenge[0].RefID, c.Code(personPhone)
			bad := c.ask("/confirmation", person, c.answerTo(ref, wrong(code)))
			if *bad.IsFinal || *bad.IsError || *bad.Challenge.Title.Value == "" || bad.Challenge.TextChallenge[0].RefID != ref {
				t.Errorf("%+v", bad)
			}
			if got := c.ask("/confirmation", person, c.answerTo(ref, code)); got.AccessToken == "" {
				t.Errorf("the right code: %+v", got)
			}
		}},
		{"row 10: IsFinal and IsError are always sent", func(t *testing.T) {
			for name, body := range map[string]string{"a challenge": c.begin(""), "a refusal": c.poll("nothing"), "nothing": "{}", "an empty body": ""} {
				a := c.Ask(tamgatest.Anonymous, "POST", "/confirmation", body, "Authorization", person)
				if a.Status != 200 || !strings.Contains(a.Body, `"IsFinal":`) || !strings.Contains(a.Body, `"IsError":`) {
					t.Errorf("%s: %v", name, a)
				}
			}
		}},
		{"row 11: the end of the time", func(t *testing.T) {
			got := c.ask("/confirmation", person, c.begin("")).Challenge.TextChallenge[0]
			if got.CreatedAt < 1_700_000_000 || got.ExpiresIn != 300 || !got.ExpiresInSpecified {
				t.Errorf("%+v", got)
			}
		}},
		{"row 12: a poll has no value and leaves nothing behind", func(t *testing.T) {
			id, path, key := c.propose(true)
			ref := c.ask(path, me, c.begin(fmt.Sprintf(`,%q:%q`, key, id))).Challenge.ContextData.RefID
			refs := methodSpace + "mydss?" + c.kids[0]
			c.ask(path, me, c.choose(ref, refs))
			entries := func() int {
				return strings.Count(c.Command("audit", "--limit", "0", "--attempts", "--operation", "ConfirmationV2", "--json"), "\n")
			}
			before := entries()
			for range 3 {
				if got := c.ask(path, me, c.poll(ref)); *got.IsFinal || *got.IsError || methodOf(got) != "mydss" {
					t.Errorf("%+v", got)
				}
			}
			if after := entries(); before == 0 || after != before {
				t.Errorf("three polls made %d audit entries besides %d", after-before, before)
			}
		}},
		{"row 13: a QR code for a device without a network", func(t *testing.T) {
			id, path, key := c.propose(true)
			ref := c.ask(path, me, c.begin(fmt.Sprintf(`,%q:%q`, key, id))).Challenge.ContextData.RefID
			image := c.ask(path, me, c.choose(ref, methodSpace+"mydss?"+c.kids[0])).Challenge.TextChallenge[0].Image
			if image == nil || image.MimeType != "image/png" {
				t.Fatalf("the picture is %+v", image)
			}
			if polled := c.ask(path, me, c.poll(ref)).Challenge.TextChallenge[0].Image; polled != nil {
				t.Error("a poll has a picture")
			}
			text := judge.ZBar(t).Read(image.Value, "png")
			run := func(args ...string) string {
				t.Helper()
				out, err := tamgatest.Phone(t, c.files[0], args...)
				if err != nil {
					t.Fatalf("%v: %s %v", args, out, err)
				}
				return out
			}
			if out := run("scan", "--qr-text", text); !strings.Contains(out, id) || !strings.Contains(out, "pay.txt") {
				t.Errorf("scan: %s", out)
			}
			if out := run("document", id, "0", "-o", "-"); out != "pay" {
				t.Errorf("the device reads the document %q", out)
			}
			var made struct{ ID, Code string }
			if out := run("code", "--qr-text", text, "--json"); json.Unmarshal([]byte(out), &made) != nil || made.ID != id || len(made.Code) != 8 {
				t.Fatalf("code: %s", out)
			}
			if bad := c.ask(path, me, c.answerTo(ref, wrong(made.Code))); *bad.IsFinal || *bad.IsError || *bad.Challenge.Title.Value == "" {
				t.Errorf("a wrong code: %+v", bad)
			}
			if _, err := tamgatest.Phone(t, c.files[1], "code", "--qr-text", text, "--json"); err == nil {
				t.Error("another device makes a code")
			}
			if done := c.ask(path, me, c.answerTo(ref, made.Code)); !*done.IsFinal || *done.IsError || done.AccessToken == "" {
				t.Errorf("the code of the device: %+v", done)
			}
		}},
		{"row 14: one open operation", func(t *testing.T) {
			id, _, _ := c.propose(true)
			refused := func(status int, answer []byte) {
				t.Helper()
				var got struct {
					Error string `json:"error"`
				}
				if json.Unmarshal(answer, &got) != nil || status != 400 || got.Error != "transaction_pending" {
					t.Errorf("%d %s", status, answer)
				}
			}
			refused(c.Call("POST", "/api/v2/signature", c.token, json.RawMessage(v2Order)))
			refused(c.transact())
			c.cancel(id)
			c.propose(false)
		}},
		{"row 15: the name of the user", func(t *testing.T) {
			id, path, key := c.propose(true)
			ref := c.ask(path, me, c.begin(fmt.Sprintf(`,%q:%q`, key, id))).Challenge.ContextData.RefID
			c.ask(path, me, c.choose(ref, methodSpace+"otpviasms"))
			done := c.ask(path, me, c.answerTo(ref, c.Code(c.phone)))
			if got, want := claims(t, done.AccessToken)["unique_name"], claims(t, c.token)["unique_name"]; got != want || want == nil {
				t.Errorf("the name is %v, want %v", got, want)
			}
			first := c.ask("/confirmation", person, c.begin(""))
			signedIn := c.ask("/confirmation", person, c.answerTo(first.Challenge.ContextData.RefID, c.Code(personPhone)))
			if got := claims(t, signedIn.AccessToken)["unique_name"]; got != "person" {
				t.Errorf("the name is %v", got)
			}
		}},
		{"row 16: equal references", func(t *testing.T) {
			one := c.ask("/confirmation", person, c.begin(""))
			if one.Challenge.ContextData.RefID == "" || one.Challenge.ContextData.RefID != one.Challenge.TextChallenge[0].RefID {
				t.Errorf("%+v", one)
			}
		}},
		{"row 17: polling with a password", func(t *testing.T) {
			id, path, key := c.propose(true)
			ref := c.ask(path, me, c.begin(fmt.Sprintf(`,%q:%q`, key, id))).Challenge.ContextData.RefID
			c.ask(path, me, c.choose(ref, methodSpace+"mydss?"+c.kids[0]))
			password := basic(c.Dev.User.Login, c.Dev.User.Password)
			for n := range 25 { // more than the attempts that are allowed: see startClientTable
				if got := c.ask(path, password, c.poll(ref)); *got.IsFinal || *got.IsError {
					t.Fatalf("poll %d: %+v", n, got)
				}
			}
			if got := c.ask(path, basic(c.Dev.User.Login, "another"), c.poll(ref)); got.Error != "invalid_grant" {
				t.Errorf("a wrong password: %+v", got)
			}
			if got := c.ask(path, person, c.poll(ref)); got.Error != "invalid_transaction" || got.AccessToken != "" {
				t.Errorf("another user: %+v", got)
			}
			if out, err := tamgatest.Phone(t, c.files[0], "approve", id, "--yes"); err != nil {
				t.Fatalf("%s, %v", out, err)
			}
			done := c.ask(path, password, c.poll(ref))
			if !*done.IsFinal || done.AccessToken == "" {
				t.Fatalf("%+v", done)
			}
			if status, answer := c.Call("POST", "/api/v2/signature", done.AccessToken, map[string]any{}); status != 200 {
				t.Errorf("carried out: %d %.300s", status, answer)
			}
		}},
		{"row 18: lower camel case and a callback", func(t *testing.T) {
			address, calls := receiver(t)
			c.calls = calls
			id, path, _ := c.propose(true)
			lower := func(more string) string {
				return fmt.Sprintf(`{"resource":%q,"clientId":%q%s}`, c.Dev.Resource, c.Dev.ClientID, more)
			}
			ref := c.ask(path, me, lower(fmt.Sprintf(`,"operationId":%q,"callbackUri":%q`, id, address+"/done"))).Challenge.ContextData.RefID
			if got := c.ask(path, me, lower(fmt.Sprintf(`,"challengeResponse":{"choiceChallengeResponse":[{"refId":%q,"choiceSelected":[{"refID":%q}]}]}`, ref, methodSpace+"otpviasms"))); methodOf(got) != "otpviasms" {
				t.Fatalf("the choice: %+v", got)
			}
			if got := c.ask(path, me, lower(fmt.Sprintf(`,"challengeResponse":{"textChallengeResponse":[{"refId":%q,"value":%q}]}`, ref, c.Code(c.phone)))); got.AccessToken == "" {
				t.Errorf("the code: %+v", got)
			}
			want := call{"/done", fmt.Sprintf(`{"Result":"success","TransactionId":%q,"Error":null,"ErrorDescription":null}`, id), true}
			if got := c.next(); got != want {
				t.Errorf("called %+v, want %+v", got, want)
			}
			c.cancel(id)
			// The user declines, and the client is told as well.
			id, path, _ = c.propose(false)
			ref = c.ask(path, me, lower(fmt.Sprintf(`,"transactionTokenId":%q,"callbackUri":%q`, id, address+"/v1"))).Challenge.ContextData.RefID
			c.ask(path, me, c.choose(ref, methodSpace+"mobile?"+c.kids[0]))
			if out, err := tamgatest.Phone(t, c.files[0], "decline", id, "--yes"); err != nil {
				t.Fatalf("%s, %v", out, err)
			}
			want = call{"/v1", fmt.Sprintf(`{"Result":"error","TransactionId":%q,"Error":"authentication_declined","ErrorDescription":"the user declined the operation"}`, id), true}
			if got := c.next(); got != want {
				t.Errorf("called %+v, want %+v", got, want)
			}
			if got := c.ask(path, me, c.poll(ref)); got.Error != "authentication_declined" {
				t.Errorf("a poll after that: %+v", got)
			}
			// An address that may not be called is refused, and so are data that the user would not see.
			id, path, _ = c.propose(true)
			for _, more := range []string{`"callbackUri":"http://169.254.169.254/"`, `"callbackUri":"ftp://127.0.0.1/"`, `"confirmationDataRefs":["1"]`} {
				if got := c.ask(path, me, lower(fmt.Sprintf(`,"operationId":%q,%s`, id, more))); got.Error != "invalid_parameters" {
					t.Errorf("%s: %+v", more, got)
				}
			}
			if got := c.ask(path, me, lower(fmt.Sprintf(`,"operationId":%q,"callbackUri":null,"confirmationDataRefs":[]`, id))); got.Challenge == nil {
				t.Errorf("empty values: %+v", got)
			}
		}},
		{"row 19: other forms of values", func(t *testing.T) {
			order := strings.NewReplacer(`"true"`, `true`, `"0"`, `0`).Replace(v2Order)
			for name, order := range map[string]string{"texts": v2Order, "a boolean and a number": order} {
				var created struct{ Operation struct{ ID, Status string } }
				status, answer := c.Call("POST", "/api/v2/signature", c.token, json.RawMessage(order))
				if err := json.Unmarshal(answer, &created); err != nil || status != http.StatusOK || created.Operation.Status != "Created" {
					t.Fatalf("%s: %d %s", name, status, answer)
				}
				c.cancel(created.Operation.ID)
			}
		}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			c.within(t)
			row.test(t)
		})
	}
	c.within(t)
	c.Scan()
}
