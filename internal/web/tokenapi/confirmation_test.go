// SPDX-License-Identifier: Apache-2.0

package tokenapi_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/tamgatest"
)

const methodSpace = "http://dss.cryptopro.ru/identity/authenticationmethod/"

// confirming is a user with a phone and an e-mail address who confirms.
type confirming struct {
	*tamgatest.UMS
	t                       *testing.T
	id, login, phone, email string
}

// answer is an answer as the widest client reads it.
type answer struct {
	IsFinal, IsError *bool
	Challenge        *struct {
		Title         struct{ Value *string }
		TextChallenge []struct {
			RefID, Label, AuthnMethod string
			Title                     string
			CreatedAt, ExpiresIn      int64
			ExpiresInSpecified        bool
			Image                     *struct {
				MimeType string
				Value    []byte
			}
		}
		ChoiceChallenge []struct {
			Choice []struct{ RefID, Label string }
		}
		ContextData struct{ RefID string }
	}
	AccessToken, Error, ErrorDescription string
	ExpiresIn                            int64
}

func newConfirming(t *testing.T, login string, methods ...string) *confirming {
	t.Helper()
	return confirmingAt(t, "", login, methods...)
}

// onBothEngines runs a test with the address of each database, "" for SQLite.
func onBothEngines(t *testing.T, test func(t *testing.T, database string)) {
	t.Run("SQLite", func(t *testing.T) { test(t, "") })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, storetest.PostgreSQL(t).Migrated(t)) })
}

func confirmingAt(t *testing.T, database, login string, methods ...string) *confirming {
	t.Helper()
	settings := []string{"--set", "confirmation.codes.resend=1s"}
	if database != "" {
		settings = append(settings, "--set", "database="+database)
	}
	c := &confirming{UMS: tamgatest.StartUMS(t, settings...), t: t, login: login}
	c.add(login, methods...)
	return c
}

// add adds a user with methods, such as otpviasms?level=2.
func (c *confirming) add(login string, methods ...string) {
	c.t.Helper()
	c.Command("user", "add", login, "--group", "Default", "--password-file", tamgatest.PasswordFile(c.t))
	c.login = login
	c.id = claims(c.t, c.TokenOf(login, tamgatest.Password))["nameid"].(string)
	c.phone, c.email = fmt.Sprintf("7925%07d", len(login)), login+"@example.ru"
	for kind, value := range map[string]string{"phones": c.phone, "emails": c.email} {
		base := "/ums/user/" + c.id + "/" + kind
		c.OK(tamgatest.Ours, "POST", base, fmt.Sprintf("%q", value))
		c.OK(tamgatest.Ours, "POST", base+"/"+value+"/confirm", "")
		c.OK(tamgatest.Ours, "POST", base+"/"+value+"/secondaryauth", "")
	}
	c.assign(methods...)
}

func (c *confirming) assign(methods ...string) {
	c.t.Helper()
	for _, m := range methods {
		c.OK(tamgatest.Ours, "POST", "/ums/user/"+c.id+"/authmethod/"+m, "")
	}
}

func claims(t *testing.T, token string) (m map[string]any) {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("no token: %q", token)
	}
	data, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(data, &m) != nil {
		t.Fatalf("%q: %v", token, err)
	}
	return m
}

func basic(login, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(login+":"+password))
}

// ask sends a request and reads the answer, whose status must be 200.
func (c *confirming) ask(path, authorization, body string) answer {
	c.t.Helper()
	a := c.Ask(tamgatest.Anonymous, "POST", path, body, "Authorization", authorization, "Content-Type", "application/x-www-form-urlencoded")
	if a.Status != 200 {
		c.t.Fatalf("%v", a)
	}
	if strings.Contains(a.Body, ":null") || strings.Contains(a.Body, "[]") {
		c.t.Errorf("an empty value is sent, which clients read: %s", a.Body)
	}
	var got answer
	a.Into(c.t, &got)
	if got.IsFinal == nil || got.IsError == nil {
		c.t.Fatalf("IsFinal or IsError is missing: %s", a.Body)
	}
	if *got.IsError != (got.Error != "") || got.Challenge != nil && got.Challenge.Title.Value == nil {
		c.t.Fatalf("%s", a.Body)
	}
	return got
}

// begin is the first call.
func (c *confirming) begin(what string) string {
	return fmt.Sprintf(`{"Resource":%q,"ClientId":%q%s}`, strings.ToUpper(c.Dev.Resource), c.Dev.ClientID, what)
}

func (c *confirming) answerTo(ref, value string) string {
	return c.begin(fmt.Sprintf(`,"ChallengeResponse":{"TextChallengeResponse":[{"RefId":%q,"Value":%q}]}`, ref, value))
}

func (c *confirming) poll(ref string) string {
	return c.begin(fmt.Sprintf(`,"ChallengeResponse":{"TextChallengeResponse":[{"RefId":%q}]}`, ref))
}

func (c *confirming) choose(ref, choice string) string {
	return c.begin(fmt.Sprintf(`,"ChallengeResponse":{"ChoiceChallengeResponse":[{"RefId":%q,"ChoiceSelected":[{"RefID":%q}]}]}`, ref, choice))
}

// wrong returns a code that differs from another.
func wrong(code string) string { return string('0'+(code[0]-'0'+1)%10) + code[1:] }

// The first call of a sign-in and its answer by code, with what the widest client does.
func TestSignInBySecondStep(t *testing.T) { onBothEngines(t, testSignInBySecondStep) }

func testSignInBySecondStep(t *testing.T, database string) {
	c := confirmingAt(t, database, "second", "otpviasms")
	me := basic("second", tamgatest.Password)
	if status, body := c.Grant("second", tamgatest.Password); status != 400 || !strings.Contains(string(body), "authn_method_not_confirmed") {
		t.Fatalf("%d %s", status, body)
	}
	for _, path := range []string{"/confirmation", "/v2.0/confirmation"} { // row 1
		t.Run("row 1: "+path, func(t *testing.T) {
			c.T, c.t = t, t
			first := c.ask(path, me, c.begin("")) // rows 2 (letter case of Resource) and 5 (no choice)
			if *first.IsFinal || first.Challenge == nil || len(first.Challenge.TextChallenge) != 1 || len(first.Challenge.ChoiceChallenge) != 0 {
				t.Fatalf("%+v", first)
			}
			text := first.Challenge.TextChallenge[0]
			ref := text.RefID
			if ref == "" || ref != first.Challenge.ContextData.RefID { // row 16
				t.Errorf("references %q and %q", ref, first.Challenge.ContextData.RefID)
			}
			if text.CreatedAt == 0 || text.ExpiresIn != 300 || !text.ExpiresInSpecified || text.AuthnMethod != methodSpace+"otpviasms" { // row 11
				t.Errorf("%+v", text)
			}
			if *first.Challenge.Title.Value != "" || strings.Contains(text.Label, c.phone) { // row 9
				t.Errorf("title %q, label %q", *first.Challenge.Title.Value, text.Label)
			}
			if again := c.ask(path, me, c.begin("")); again.Challenge.ContextData.RefID != ref {
				t.Error("the repeated first call has another reference")
			}
			code := c.Code(c.phone)
			if p := c.ask(path, me, c.poll(ref)); *p.IsFinal || *p.IsError || p.Challenge.ContextData.RefID != ref { // row 12
				t.Errorf("a poll: %+v", p)
			}
			bad := c.ask(path, me, c.answerTo(ref, wrong(code)))
			if *bad.IsFinal || *bad.IsError || *bad.Challenge.Title.Value == "" || bad.Challenge.TextChallenge[0].RefID != ref || bad.Challenge.TextChallenge[0].Title != *bad.Challenge.Title.Value { // row 9
				t.Errorf("a wrong code: %+v", bad)
			}
			if text := *bad.Challenge.Title.Value; text != "Код неверен." { // without Accept-Language, messages.language
				t.Errorf("a wrong code is told in another language than the installation's: %q", text)
			}
			done := c.ask(path, me, strings.Replace(strings.Replace(c.answerTo(ref, code), "ChallengeResponse", "challengeResponse", 1), "ClientId", "clientId", 1)) // row 18
			if !*done.IsFinal || *done.IsError || done.ExpiresIn == 0 {
				t.Fatalf("%+v", done)
			}
			got := claims(t, done.AccessToken)
			if got["unique_name"] != "second" || got["nameid"] != c.id { // row 15
				t.Errorf("%v", got)
			}
			c.Tokens["second"] = done.AccessToken
			if a := c.Ask("second", "GET", "/operations", ""); a.Status != 200 {
				t.Errorf("the token does not open what a token opens: %v", a)
			}
			if again := c.ask(path, me, c.poll(ref)); again.Error != "invalid_transaction" || again.AccessToken != "" {
				t.Errorf("a poll after the end: %+v", again)
			}
			if again := c.ask(path, me, c.answerTo(ref, code)); !*again.IsFinal || *again.IsError || again.AccessToken != done.AccessToken || again.ExpiresIn > done.ExpiresIn {
				t.Errorf("the same code again: %+v", again)
			}
			for _, value := range []string{wrong(code), code} { // a wrong one ends the repetitions
				if again := c.ask(path, me, c.answerTo(ref, value)); again.Error != "invalid_transaction" || again.AccessToken != "" {
					t.Errorf("after a wrong code: %+v", again)
				}
			}
		})
	}
	c.T, c.t = t, t
	c.Scan()
}

// Other callers learn nothing and get nothing of a sign-in.
func TestSignInIsOnesOwn(t *testing.T) {
	c := newConfirming(t, "owner", "otpviasms")
	me := basic("owner", tamgatest.Password)
	ref := c.ask("/confirmation", me, c.begin("")).Challenge.ContextData.RefID
	code := c.Code(c.phone)
	for name, other := range map[string]string{
		"another user":                    basic(tamgatest.Plain, tamgatest.Password),
		"an access token of another user": "Bearer " + c.Tokens[tamgatest.Plain],
	} {
		if got := c.ask("/confirmation", other, c.answerTo(ref, code)); got.Error != "invalid_transaction" || got.AccessToken != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := c.ask("/confirmation", basic("owner", "not the password"), c.answerTo(ref, code)); got.Error != "invalid_grant" || got.AccessToken != "" {
		t.Errorf("a wrong password: %+v", got)
	}
	if got := c.ask("/confirmation", basic("unknown", "not the password"), c.begin("")); got.Error != "invalid_grant" {
		t.Errorf("an unknown user: %+v", got)
	}
	for name, authorization := range map[string]string{"none": "", "not a token": "Bearer x", "neither": "Digest x"} {
		if a := c.Ask(tamgatest.Anonymous, "POST", "/confirmation", c.begin(""), "Authorization", authorization); a.Status != 401 {
			t.Errorf("%s: %v", name, a)
		}
	}
	for name, body := range map[string]string{
		"no client":         `{"Resource":"x"}`,
		"unknown client":    `{"Resource":"x","ClientId":"unknown"}`,
		"unknown resource":  strings.Replace(c.begin(""), `"Resource":"`, `"Resource":"x`, 1),
		"no resource":       fmt.Sprintf(`{"ClientId":%q}`, c.Dev.ClientID),
		"two answers":       c.begin(`,"ChallengeResponse":{"TextChallengeResponse":[{"RefId":"a"},{"RefId":"b"}]}`),
		"no reference":      c.begin(`,"ChallengeResponse":{"TextChallengeResponse":[{"Value":"123456"}]}`),
		"a text":            c.begin(`,"ConfirmationScope":"checkprofile"`),
		"unknown operation": c.begin(`,"OperationId":"` + tamgatest.Missing + `"`),
	} {
		if got := c.ask("/confirmation", me, body); !*got.IsError || !*got.IsFinal || got.AccessToken != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	// The owner is not disturbed.
	if got := c.ask("/confirmation", me, c.answerTo(ref, code)); got.AccessToken == "" {
		t.Errorf("%+v", got)
	}
}

// With several methods the user chooses. The level says which of them are second steps.
func TestSignInChoice(t *testing.T) {
	c := newConfirming(t, "chooser", "otpviasms?level=2", "otpviaemail?level=3")
	me := basic("chooser", tamgatest.Password)
	first := c.ask("/confirmation", me, c.begin(""))
	if len(first.Challenge.TextChallenge) != 0 || len(first.Challenge.ChoiceChallenge) != 1 { // row 4
		t.Fatalf("%+v", first)
	}
	var offered []string
	for _, choice := range first.Challenge.ChoiceChallenge[0].Choice {
		offered = append(offered, choice.RefID)
	}
	if d := cmp.Diff([]string{methodSpace + "otpviasms", methodSpace + "otpviaemail"}, offered); d != "" {
		t.Error(d)
	}
	ref := first.Challenge.ContextData.RefID
	for name, choice := range map[string]string{"unknown": methodSpace + "airkey", "not the user's": methodSpace + "oath", "none": ""} {
		if got := c.ask("/confirmation", me, c.choose(ref, choice)); choice != "" && !*got.IsError {
			t.Errorf("%s: %+v", name, got)
		}
	}
	chosen := c.ask("/confirmation", me, c.choose(ref, offered[1])) // row 3: no identifier besides RefId
	if len(chosen.Challenge.TextChallenge) != 1 || chosen.Challenge.TextChallenge[0].AuthnMethod != offered[1] || chosen.Challenge.ContextData.RefID != ref {
		t.Fatalf("%+v", chosen)
	}
	if got := c.ask("/confirmation", me, c.answerTo(ref, c.Code(c.email))); got.AccessToken == "" {
		t.Errorf("%+v", got)
	}

	// At level 1 a method is no second step.
	c.assign("otpviasms?level=1", "otpviaemail?level=1")
	if status, body := c.Grant("chooser", tamgatest.Password); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	if got := c.ask("/confirmation", me, c.begin("")); !*got.IsFinal || got.AccessToken == "" {
		t.Errorf("without a second step: %+v", got)
	}
}

// A text of a client is confirmed with an access token, and its token opens nothing here.
func TestFreeConfirmation(t *testing.T) { onBothEngines(t, testFreeConfirmation) }

func testFreeConfirmation(t *testing.T, database string) {
	c := confirmingAt(t, database, "free", "otpviasms?level=1")
	me := "Bearer " + c.TokenOf("free", tamgatest.Password)
	first := c.ask("/v2.0/confirmation", me, c.begin(`,"ConfirmationScope":"checkprofile","ConfirmationParams":{"Templte":"profile"}`)) // row 2
	ref := first.Challenge.ContextData.RefID
	if got := c.ask("/v2.0/confirmation", basic("free", tamgatest.Password), c.answerTo(ref, c.Code(c.phone))); got.AccessToken != "" || got.Error != "invalid_transaction" {
		t.Errorf("with a password: %+v", got)
	}
	done := c.ask("/v2.0/confirmation", me, c.answerTo(ref, c.Code(c.phone)))
	if got := claims(t, done.AccessToken); got["confirmed_scope"] != "checkprofile" || got["unique_name"] != "free" {
		t.Errorf("%v", got)
	}
	again := c.ask("/v2.0/confirmation", me, c.answerTo(ref, c.Code(c.phone)))
	if got := claims(t, again.AccessToken); got["confirmed_scope"] != "checkprofile" || got["exp"] != claims(t, done.AccessToken)["exp"] {
		t.Errorf("the same code again: %v", got)
	}
	if got := c.ask("/v2.0/confirmation", me, c.poll(ref)); got.Error != "invalid_transaction" || got.AccessToken != "" {
		t.Errorf("a poll after the end: %+v", got)
	}
	c.Tokens["scope"] = done.AccessToken
	for _, path := range []string{"/operations", "/oauth/userinfo", "/ums/policy"} {
		if a := c.Ask("scope", "GET", path, ""); a.Status != 401 {
			t.Errorf("%v", a)
		}
	}
	for name, what := range map[string]string{
		"a scope of ours": `,"ConfirmationScope":"profile OFFLINE_ACCESS"`, "nothing": ``, "long": `,"ConfirmationScope":"` + strings.Repeat("x", 257) + `"`,
		"two things":        `,"ConfirmationScope":"x","OperationId":"` + tamgatest.Missing + `"`,
		"another operation": `,"TransactionTokenId":"` + tamgatest.Missing + `","OperationId":"` + tamgatest.Missing[:35] + `1"`,
	} {
		if got := c.ask("/v2.0/confirmation", me, c.begin(what)); !*got.IsError {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Too many wrong codes end the sign-in, and a user without a usable method cannot begin.
func TestSignInRefused(t *testing.T) {
	c := newConfirming(t, "guesser", "otpviasms")
	me := basic("guesser", tamgatest.Password)
	ref := c.ask("/confirmation", me, c.begin("")).Challenge.ContextData.RefID
	code := c.Code(c.phone)
	for i := range 5 {
		got := c.ask("/confirmation", me, c.answerTo(ref, wrong(code)))
		if last := i == 4; *got.IsError != last || *got.IsFinal != last || last && got.Error != "max_attempts_exceeded" {
			t.Errorf("attempt %d: %+v", i, got)
		}
	}
	if got := c.ask("/confirmation", me, c.answerTo(ref, code)); got.Error != "max_attempts_exceeded" || got.AccessToken != "" {
		t.Errorf("the code after that: %+v", got)
	}
	c.add("methodless", "mydss")
	if got := c.ask("/confirmation", basic("methodless", tamgatest.Password), c.begin("")); got.Error != "authn_method_not_confirmed" {
		t.Errorf("%+v", got)
	}
}
