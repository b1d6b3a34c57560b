// SPDX-License-Identifier: Apache-2.0

package tokenapi_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	_ "modernc.org/sqlite" // the driver

	"tamga/internal/tamgatest"
	"tamga/internal/testsize"
)

// TestBadAnswers sends what a client, its user or another caller must not send. Each has one
// clear error. Nothing is signed by it, nothing is spent, and nothing is lost: unless the
// operation is over, the user can still confirm it.
func TestBadAnswers(t *testing.T) {
	t.Parallel()
	const (
		others = "others" // another program
		email  = "demo@example.ru"
		sms    = methodSpace + "otpviasms"
		mail   = methodSpace + "otpviaemail"
	)
	h := &household{confirming: &confirming{t: t, UMS: tamgatest.StartUMS(t, "--set", "messages.budgets.sms.recipient=0", "--set", "messages.budgets.email.recipient=0",
		"--set", "confirmation.codes.resend=1h", "--set", "confirmation.codes.life=1h",
		"--set", `clients=[{id: tamga-dev, password_grant: true}, {id: `+others+`, password_grant: true}]`)}}
	var err error
	if h.db, err = sql.Open("sqlite", "file:"+h.Path("tamga.db")+"?_pragma=busy_timeout(10000)"); err != nil {
		t.Fatal(err)
	}
	defer h.db.Close()
	h.id, h.phone = h.Dev.User.ID, "79250000077"
	for kind, value := range map[string]string{"phones": h.phone, "emails": email} {
		base := "/ums/user/" + h.id + "/" + kind
		h.OK(tamgatest.Ours, "POST", base, fmt.Sprintf("%q", value))
		h.OK(tamgatest.Ours, "POST", base+"/"+value+"/confirm", "")
		h.OK(tamgatest.Ours, "POST", base+"/"+value+"/secondaryauth", "")
	}
	h.assign("otpviasms?level=1", "otpviaemail?level=1")
	h.token = h.Token()
	h.path, h.order = "/api/v2/signature", json.RawMessage(v2Order)
	const path = "/v2.0/confirmation"
	me := func() string { return "Bearer " + h.token }
	created := func() (id string) {
		h.t.Helper()
		var got struct{ Operation struct{ ID string } }
		status, answer := h.Call("POST", "/api/v2/signature", h.token, json.RawMessage(v2Order))
		if json.Unmarshal(answer, &got) != nil || got.Operation.ID == "" {
			h.t.Fatalf("%d %s", status, answer)
		}
		return got.Operation.ID
	}
	first := func(id string) answer { return h.ask(path, me(), h.begin(fmt.Sprintf(`,"OperationId":%q`, id))) }
	// asked is an operation with a code by SMS.
	asked := func() (id, ref, code string) {
		h.t.Helper()
		id = created()
		ref = first(id).Challenge.ContextData.RefID
		if got := h.ask(path, me(), h.choose(ref, sms)); methodOf(got) != "otpviasms" {
			h.t.Fatalf("%+v", got)
		}
		return id, ref, h.Code(h.phone)
	}
	refused := func(name string, got answer, want string) {
		h.t.Helper()
		if got.Error != want || got.AccessToken != "" || !*got.IsFinal {
			h.t.Errorf("%s: %+v, want %s", name, got, want)
		}
	}
	wrongly := func(name string, got answer) {
		h.t.Helper()
		if *got.IsFinal || *got.IsError || got.AccessToken != "" || *got.Challenge.Title.Value == "" {
			h.t.Errorf("%s: %+v, want a wrong code", name, got)
		}
	}
	unsigned := func(id string) {
		h.t.Helper()
		if n := h.entries(id, "Completed"); n != 0 {
			h.t.Errorf("%d entries Completed", n)
		}
	}
	// still confirms an operation and carries it out.
	still := func(id, ref, code string) (token string, signature []byte) {
		h.t.Helper()
		unsigned(id)
		done := h.ask(path, me(), h.answerTo(ref, code))
		signature, status := h.execute(h.Server, done.AccessToken)
		if signature == nil {
			h.t.Errorf("the operation is lost: %+v, carried out %d", done, status)
		}
		return done.AccessToken, signature
	}
	change := func(query string, args ...any) {
		h.t.Helper()
		if _, err := h.db.Exec(query, args...); err != nil {
			h.t.Fatal(err)
		}
	}

	for _, part := range []struct {
		name string
		test func(t *testing.T)
	}{
		{"wrong", func(t *testing.T) {
			id, ref, code := asked()
			for _, bad := range []string{wrong(code), "0" + code, code[1:], strings.Repeat("9", 5000)} {
				wrongly(bad, h.ask(path, me(), h.answerTo(ref, bad)))
			}
			still(id, ref, code)
		}},
		{"late", func(t *testing.T) {
			id, ref, code := asked()
			change("UPDATE confirmations SET answer_before = 1, sent_at = 1 WHERE id = $1", id)
			change("UPDATE one_time_codes SET issued_at = 1 WHERE user_id = $1", h.id)
			refused("the code", h.ask(path, me(), h.answerTo(ref, code)), "transaction_expired")
			refused("a poll", h.ask(path, me(), h.poll(ref)), "transaction_expired")
			first(id) // sends another code
			still(id, ref, h.Code(h.phone))

			id, ref, code = asked()
			change("UPDATE confirmations SET due_at = 1, confirm_before = 1 WHERE id = $1", id)
			refused("an operation that expired", h.ask(path, me(), h.answerTo(ref, code)), "transaction_expired")
			refused("and began again", first(id), "transaction_expired")
			unsigned(id)

			id, ref, code = asked()
			token := h.ask(path, me(), h.answerTo(ref, code)).AccessToken
			change("UPDATE confirmations SET due_at = 1, complete_before = 1 WHERE id = $1", id)
			if status, body := h.Call("POST", "/api/v2/signature", token, map[string]any{}); status != 400 || !strings.Contains(string(body), "transaction_expired") {
				t.Errorf("carried out late: %d %s", status, body)
			}
			unsigned(id)
		}},
		{"replayed", func(t *testing.T) {
			id, ref, code := asked()
			token, signature := still(id, ref, code)
			for name, body := range map[string]string{"the code": h.answerTo(ref, code), "a poll": h.poll(ref), "a first call": h.begin(fmt.Sprintf(`,"OperationId":%q`, id))} {
				repeated := h.ask(path, me(), body)
				if !*repeated.IsFinal || *repeated.IsError || repeated.AccessToken == "" {
					t.Errorf("%s: %+v", name, repeated)
				}
				for _, one := range []string{token, repeated.AccessToken} {
					if again, _ := h.execute(h.Server, one); !bytes.Equal(again, signature) {
						t.Errorf("%s: another signature was made", name)
					}
				}
			}
			other, otherRef, otherCode := asked()
			if otherCode != code {
				wrongly("the code of another operation", h.ask(path, me(), h.answerTo(otherRef, code)))
			}
			still(other, otherRef, otherCode)
			if n := h.entries(id, "Completed"); n != 1 {
				t.Errorf("%d entries Completed", n)
			}
		}},
		{"foreign", func(t *testing.T) {
			id, ref, code := asked()
			var granted struct {
				AccessToken string `json:"access_token"`
			}
			h.Ask(tamgatest.Anonymous, "POST", "/oauth/token", fmt.Sprintf("grant_type=password&username=%s&password=%s&client_id=%s&resource=%s",
				h.Dev.User.Login, h.Dev.User.Password, others, h.Dev.Resource), "Content-Type", "application/x-www-form-urlencoded").Into(t, &granted)
			refused("another user", h.ask(path, "Bearer "+h.Tokens[tamgatest.Plain], h.answerTo(ref, code)), "invalid_transaction")
			refused("another user's operation", h.ask(path, "Bearer "+h.Tokens[tamgatest.Plain], h.begin(fmt.Sprintf(`,"OperationId":%q`, id))), "invalid_transaction")
			theirs := strings.Replace(h.answerTo(ref, code), h.Dev.ClientID, others, 1)
			refused("another program", h.ask(path, "Bearer "+granted.AccessToken, theirs), "invalid_transaction")
			refused("an operator", h.ask(path, "Bearer "+h.Tokens[tamgatest.Ours], h.answerTo(ref, code)), "invalid_transaction")
			still(id, ref, code)
		}},
		{"reordered", func(t *testing.T) {
			id := created()
			ref := first(id).Challenge.ContextData.RefID
			refused("a code before the choice", h.ask(path, me(), h.answerTo(ref, "123456")), "invalid_transaction")
			refused("a choice of nothing", h.ask(path, me(), h.choose(ref, methodSpace+"mydss?1")), "invalid_parameters")
			if status, body := h.Call("POST", "/api/v2/signature", h.token, map[string]any{}); status != 400 {
				t.Errorf("carried out without a confirmation: %d %s", status, body)
			}
			h.ask(path, me(), h.choose(ref, sms))
			early := h.Code(h.phone)
			h.ask(path, me(), h.choose(ref, mail))
			code := h.Code(email)
			if early != code {
				wrongly("the code of the choice before", h.ask(path, me(), h.answerTo(ref, early)))
			}
			still(id, ref, code)
			refused("a choice after the end", h.ask(path, me(), h.choose(ref, sms)), "invalid_transaction")
		}},
		{"two at once", func(t *testing.T) {
			id, ref, code := asked()
			var tokens [2]string
			var callers sync.WaitGroup
			for i := range tokens {
				callers.Go(func() { tokens[i] = h.confirm(h.Server, ref, code) })
			}
			callers.Wait()
			var signatures [][]byte
			for _, token := range tokens {
				if s, _ := h.execute(h.Server, token); s != nil {
					signatures = append(signatures, s)
				}
			}
			if len(signatures) == 0 || !bytes.Equal(signatures[0], signatures[len(signatures)-1]) || h.entries(id, "Confirmed") != 1 || h.entries(id, "Completed") != 1 {
				t.Errorf("%d signatures, %d entries Confirmed, %d Completed", len(signatures), h.entries(id, "Confirmed"), h.entries(id, "Completed"))
			}
		}},
		{"something else is carried out", func(t *testing.T) {
			id, ref, code := asked()
			token := h.ask(path, me(), h.answerTo(ref, code)).AccessToken
			for name, body := range map[string]string{
				"a document":    `{"BinaryData":[{"Content":"c3RlYWw=","ContentInfo":"pay.txt"}]}`,
				"a parameter":   `{"Signature":{"Type":"CMS","Parameters":{"IsDetached":"false"}}}`,
				"a certificate": `{"Signature":{"CertificateId":2}}`,
				"everything":    v2Order,
			} {
				if status, answer := h.Call("POST", "/api/v2/signature", token, json.RawMessage(body)); status != 400 {
					t.Errorf("%s: %d %.200s", name, status, answer)
				}
			}
			for _, other := range []string{"/api/documents", "/rest/api/documents/packagesignature", "/api/v2/requests"} {
				if status, answer := h.Call("POST", other, token, map[string]any{}); status != 400 && status != 401 {
					t.Errorf("%s: %d %.200s", other, status, answer)
				}
			}
			unsigned(id)
			if s, status := h.execute(h.Server, token); s == nil {
				t.Errorf("the operation is lost: %d", status)
			}
		}},
		{"the account changes", func(t *testing.T) {
			for name, do := range map[string]func(){
				"locked and unlocked": func() {
					h.OK(tamgatest.Ours, "POST", "/ums/user/"+h.id+"/lockout?lock=True", "")
					if a := h.Ask(tamgatest.Anonymous, "POST", path, h.begin(""), "Authorization", me()); a.Status != 401 {
						t.Errorf("a locked user: %v", a)
					}
					h.OK(tamgatest.Ours, "POST", "/ums/user/"+h.id+"/lockout?lock=False", "")
				},
				"another policy": func() { h.OK(tamgatest.Ours, "POST", "/ums/user/"+h.id+"/operationpolicy", "[2]") },
				"moved": func() {
					for _, group := range []string{"Other", "Default"} {
						h.OK(tamgatest.TwoGroup, "POST", "/ums/user/"+h.id+"/group?groupName="+group, "")
					}
				},
				"renamed": func() {
					h.OK(tamgatest.Ours, "POST", "/ums/user/"+h.id, `{"PropertyType":0,"Value":"Анна"}`)
					h.OK(tamgatest.Ours, "POST", "/ums/user/"+h.id+"/dn", `{"11":"Петрова"}`)
				},
				"another contact": func() { h.OK(tamgatest.Ours, "POST", "/ums/user/"+h.id+"/phones/"+h.phone+"/secondaryauth", "") },
			} {
				id, ref, code := asked()
				confirmed, confirmedRef, confirmedCode := asked()
				token := h.ask(path, me(), h.answerTo(confirmedRef, confirmedCode)).AccessToken
				do()
				h.token = h.Token()
				if name == "another contact" || name == "renamed" { // the same contact as before; the certificate keeps its name
					still(id, ref, code)
					if s, status := h.execute(h.Server, token); s == nil {
						t.Errorf("%s: a confirmed operation is lost: %d", name, status)
					}
					continue
				}
				refused(name, h.ask(path, me(), h.answerTo(ref, code)), "invalid_transaction")
				if s, status := h.execute(h.Server, token); s != nil || status != 401 && status != 400 {
					t.Errorf("%s: a confirmed operation is carried out: %d", name, status)
				}
				unsigned(id)
				unsigned(confirmed)
			}
		}},
		{"the certificate changes", func(t *testing.T) {
			cert := h.Cert("ecdsa-p256", false).ID
			status := func(to string) {
				if status, answer := h.Call("POST", fmt.Sprintf("/api/v2/certificates/%d/status", cert), h.token, map[string]any{"Status": to}); status != 200 {
					t.Fatalf("%s: %d %s", to, status, answer)
				}
			}
			confirmed := func() (id, token string) {
				var got struct{ Operation struct{ ID string } }
				order := strings.Replace(v2Order, `"CertificateId":"0"`, fmt.Sprintf(`"CertificateId":"%d"`, cert), 1)
				if status, answer := h.Call("POST", "/api/v2/signature", h.token, json.RawMessage(order)); json.Unmarshal(answer, &got) != nil || got.Operation.ID == "" {
					t.Fatalf("%d %s", status, answer)
				}
				ref := first(got.Operation.ID).Challenge.ContextData.RefID
				h.ask(path, me(), h.choose(ref, sms))
				return got.Operation.ID, h.ask(path, me(), h.answerTo(ref, h.Code(h.phone))).AccessToken
			}
			unusable := func(name, id, token string) {
				status, answer := h.Call("POST", "/api/v2/signature", token, map[string]any{})
				if status != 400 || !strings.Contains(string(answer), "invalid_certificate") {
					t.Errorf("%s: %d %s", name, status, answer)
				}
				unsigned(id)
			}
			held, token := confirmed()
			status("HOLD")
			unusable("on hold", held, token)
			status("ACTIVE")
			if s, status := h.execute(h.Server, token); s == nil {
				t.Errorf("after the hold: %d", status)
			}
			revoked, token := confirmed()
			status("REVOKED")
			unusable("revoked", revoked, token)
			if status, answer := h.Call("DELETE", fmt.Sprintf("/api/v2/certificates/%d", cert), h.token, map[string]any{}); status != 200 {
				t.Fatalf("deletion: %d %s", status, answer)
			}
			unusable("deleted", revoked, token)
		}},
		{"a code asked for many times", func(t *testing.T) {
			id, ref, code := asked()
			messages := len(h.Captured())
			calls := 30
			if testsize.Of() == testsize.Full {
				calls = 1000
			}
			for range calls {
				if got := first(id); got.Challenge == nil || got.Challenge.ContextData.RefID != ref {
					t.Fatalf("%+v", got)
				}
			}
			if sent := len(h.Captured()) - messages; sent != 0 {
				t.Errorf("%d messages", sent)
			}
			still(id, ref, code)
		}},
		{"hostile names", func(t *testing.T) {
			id, ref, code := asked()
			for _, name := range []string{"x", "\u0000", "' OR 1=1 --", strings.Repeat("a", 10000), tamgatest.Missing, ref + "x"} {
				quoted, err := json.Marshal(name)
				if err != nil {
					t.Fatal(err)
				}
				for _, body := range []string{fmt.Sprintf(`,"OperationId":%s`, quoted), fmt.Sprintf(`,"ChallengeResponse":{"TextChallengeResponse":[{"RefId":%s,"Value":"1"}]}`, quoted)} {
					refused(fmt.Sprintf("%.20q", name), h.ask(path, me(), h.begin(body)), "invalid_transaction")
				}
			}
			for _, body := range []string{`[]`, `"x"`, `{"ChallengeResponse":5}`, `{"ChallengeResponse":{"TextChallengeResponse":{}}}`, `{`, strings.Repeat(`{"a":`, 5000)} {
				if a := h.Ask(tamgatest.Anonymous, "POST", path, body, "Authorization", me()); a.Status != 400 && !(a.Status == 200 && strings.Contains(a.Body, `"IsError":true`)) {
					t.Errorf("%.30s: %v", body, a)
				}
			}
			still(id, ref, code)
		}},
		{"an operation for each guess", func(t *testing.T) {
			var ids []string
			guesses := 0
			for range 30 {
				id := created()
				ids = append(ids, id)
				ref := first(id).Challenge.ContextData.RefID
				if got := h.ask(path, me(), h.choose(ref, sms)); *got.IsError {
					refused("the method is closed", got, "max_attempts_exceeded")
					break
				}
				wrongly("a guess", h.ask(path, me(), h.answerTo(ref, wrong(h.Code(h.phone)))))
				guesses++
			}
			if guesses > 10 || guesses == 0 {
				t.Errorf("%d guesses", guesses)
			}
			for _, id := range ids {
				unsigned(id)
			}
			// Another method is open, so the user can go on.
			ref := first(ids[0]).Challenge.ContextData.RefID
			h.ask(path, me(), h.choose(ref, mail))
			still(ids[0], ref, h.Code(email))
		}},
		{"the user is deleted", func(t *testing.T) { // the last part
			change("DELETE FROM confirmation_failures")
			id, ref, code := asked()
			confirmed, confirmedRef, confirmedCode := asked()
			token := h.ask(path, me(), h.answerTo(confirmedRef, confirmedCode)).AccessToken
			h.OK(tamgatest.Ours, "DELETE", "/ums/user/"+h.id+"?destroyKey=true", "")
			if a := h.Ask(tamgatest.Anonymous, "POST", path, h.answerTo(ref, code), "Authorization", me()); a.Status != 401 {
				t.Errorf("the code: %v", a)
			}
			if s, status := h.execute(h.Server, token); s != nil || status != 401 {
				t.Errorf("a confirmed operation is carried out: %d", status)
			}
			unsigned(id)
			unsigned(confirmed)
			var open int
			if err := h.db.QueryRow("SELECT COUNT(*) FROM confirmations WHERE user_id = $1 AND ended_at = 0", h.id).Scan(&open); err != nil || open != 0 {
				t.Errorf("%d operations are open, %v", open, err)
			}
		}},
	} {
		t.Run(part.name, func(t *testing.T) {
			h.T, h.t = t, t
			part.test(t)
			if slices.Contains([]string{"wrong", "reordered", "replayed"}, part.name) {
				change("DELETE FROM confirmation_failures") // these count for the next parts
			}
		})
	}
	h.T, h.t = t, t
	h.Scan()
}
