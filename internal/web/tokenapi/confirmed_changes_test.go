// SPDX-License-Identifier: Apache-2.0

package tokenapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/tamgatest"
)

// TestConfirmedChanges has an operator ask for the confirmation of every act on keys. Each
// is then created, confirmed by a code and carried out, as an operation of v2 or a
// transaction of v1.
func TestConfirmedChanges(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) { t.Parallel(); testConfirmedChanges(t, "") })
	t.Run("PostgreSQL", func(t *testing.T) { t.Parallel(); testConfirmedChanges(t, storetest.PostgreSQL(t).Migrated(t)) })
}

// demoConfirms returns the user demo with a phone to confirm with, and a token.
func demoConfirms(t *testing.T, database string, settings ...string) (*confirming, string) {
	t.Helper()
	settings = append(settings, "--set", "messages.budgets.sms.recipient=0", "--set", "confirmation.codes.resend=1s")
	if database != "" {
		settings = append(settings, "--set", "database="+database)
	}
	c := &confirming{UMS: tamgatest.StartUMS(t, settings...), t: t, phone: "79250000078"}
	c.id = c.Dev.User.ID
	phones := "/ums/user/" + c.id + "/phones"
	c.OK(tamgatest.Ours, "POST", phones, fmt.Sprintf("%q", c.phone))
	c.OK(tamgatest.Ours, "POST", phones+"/"+c.phone+"/confirm", "")
	c.OK(tamgatest.Ours, "POST", phones+"/"+c.phone+"/secondaryauth", "")
	c.assign("otpviasms?level=1")
	return c, c.Token()
}

// operate creates an operation of v2 or a transaction of v1 and returns its identifier.
func (c *confirming) operate(method, path, token string, body any) string {
	c.t.Helper()
	status, text := c.Call(method, path, token, body)
	var created struct {
		Operation struct {
			ID, Status string
			Result     any
		}
	}
	var id string
	if status == 200 && json.Unmarshal(text, &id) != nil && json.Unmarshal(text, &created) == nil &&
		created.Operation.Status == "Created" && created.Operation.Result == nil {
		id = created.Operation.ID
	}
	if id == "" {
		c.t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	return id
}

// confirm confirms an operation by a code and returns the confirmed token.
func (c *confirming) confirm(token, id string) string {
	c.t.Helper()
	me := "Bearer " + token
	first := c.ask("/v2.0/confirmation", me, c.begin(fmt.Sprintf(`,"OperationId":%q`, id)))
	if first.Challenge == nil || len(first.Challenge.TextChallenge) != 1 {
		c.t.Fatalf("%+v", first)
	}
	done := c.ask("/v2.0/confirmation", me, c.answerTo(first.Challenge.TextChallenge[0].RefID, c.Code(c.phone)))
	if done.AccessToken == "" {
		c.t.Fatalf("%+v", done)
	}
	return done.AccessToken
}

// state returns the state of an operation.
func (c *confirming) state(token, id string) string {
	c.t.Helper()
	c.Tokens["state"] = token
	var o struct{ State string }
	c.OK("state", "GET", "/operations/"+id, "").Into(c.t, &o)
	return o.State
}

const (
	firstPIN  = "Kedr-4471-pin"
	secondPIN = "Sosna-9085-pin"
	thirdPIN  = "Lipa-3317-pin"
)

func transaction(code int, parameters ...string) map[string]any {
	list := []any{}
	for i := 0; i < len(parameters); i += 2 {
		list = append(list, map[string]any{"Name": parameters[i], "Value": parameters[i+1]})
	}
	return map[string]any{"OperationCode": code, "Parameters": list}
}

func testConfirmedChanges(t *testing.T, database string) {
	c, token := demoConfirms(t, database)
	c.AddSecrets(firstPIN, secondPIN, thirdPIN)
	c.OK(tamgatest.Ours, "POST", "/ums/user/"+c.id+"/operationpolicy", "[16,32,64,128,256,512,1024]")
	type fields = map[string]any
	guarded, plain := c.Cert("gost2012-256", true), c.Cert("gost2012-256", false)
	ecdsa, rsa, long := c.Cert("ecdsa-p256", false), c.Cert("rsa-2048", false), c.Cert("gost2012-512", false)
	at := func(id int64, rest string) string { return fmt.Sprintf("/certificates/%d%s", id, rest) }
	reads := func(path, has string) func(t *testing.T) {
		return func(t *testing.T) {
			t.Helper()
			if status, body := c.Call("GET", path, token, nil); status != 200 || !strings.Contains(string(body), has) {
				t.Errorf("GET %s: %d %.300s, want %s", path, status, body, has)
			}
		}
	}
	gone := func(path string) func(t *testing.T) {
		return func(t *testing.T) {
			t.Helper()
			if status, body := c.Call("GET", path, token, nil); status != 404 {
				t.Errorf("GET %s: %d %.300s", path, status, body)
			}
		}
	}
	hasPIN := func(id int64, pin string) func(t *testing.T) {
		return func(t *testing.T) {
			t.Helper()
			status, body := c.Call("POST", "/api"+at(id, "/pin/check"), token, fields{"Pin": pin})
			if status != 200 || !strings.Contains(string(body), `"IsValid":true`) {
				t.Errorf("the PIN: %d %s", status, body)
			}
		}
	}
	for _, way := range []struct {
		name, create, execute string // POST paths; execute with another method: "DELETE /path"
		order                 any
		more                  any // what the confirmed token may not add
		done                  func(t *testing.T)
	}{
		{"PIN v2", "/api/v2" + at(guarded.ID, "/pin"), "/api/v2" + at(guarded.ID, "/pin"),
			fields{"OldPin": guarded.PIN, "NewPin": firstPIN}, fields{"NewPin": secondPIN}, hasPIN(guarded.ID, firstPIN)},
		{"PIN v1", "/api/transactions", "/rest/api" + at(guarded.ID, "/pin"),
			transaction(32, "CertificateID", fmt.Sprint(guarded.ID), "OldPin", firstPIN, "NewPin", secondPIN), fields{"OldPin": firstPIN, "NewPin": thirdPIN},
			hasPIN(guarded.ID, secondPIN)},
		{"hold v1", "/api/transactions", "/api" + at(ecdsa.ID, "/status"),
			transaction(256, "CertificateID", fmt.Sprint(ecdsa.ID), "RevocationComments", "on leave"), fields{"Status": "REVOKED"},
			reads("/api"+at(ecdsa.ID, ""), `"Value":"HOLD"`)},
		{"end of hold v2", "/rest/api/v2" + at(ecdsa.ID, "/status"), "/rest/api/v2" + at(ecdsa.ID, "/status"),
			fields{"Status": "ACTIVE"}, fields{"Status": "ACTIVE"}, reads("/api"+at(ecdsa.ID, ""), `"Value":"ACTIVE"`)},
		{"request v2", "/api/v2/requests", "/api/v2/requests",
			fields{"AuthorityId": 1, "PinCode": firstPIN, "DistinguishedName": fields{"CN": "Зоя v2"}}, fields{"AuthorityId": 1}, reads("/api/requests", "Зоя v2")},
		{"request v1", "/api/transactions", "/api/requests",
			transaction(16, "CAId", "1", "CertSubjectName", `CN="Яна, v1"`, "PinCode", firstPIN), fields{"DistinguishedName": fields{"CN": "x"}},
			reads("/api/requests", `Яна\\, v1`)},
		{"renewal v1", "/api/transactions", "/api/requests",
			transaction(64, "CertificateID", fmt.Sprint(guarded.ID), "ActiveCertPin", secondPIN), fields{"Parameters": fields{"RequestType": "Renew"}},
			reads("/api/requests", `"ID":3`)},
		{"key v1", "/api/transactions", "/api/keys/generate", transaction(16, "AlgId", "11849", "PinCode", thirdPIN), fields{"AlgId": 11849},
			reads("/api/certificates", `"CertificateBase64"`)},
		{"revocation by request v2", "/api/v2/requests", "/api/v2/requests",
			fields{"Parameters": fields{"RequestType": "RevokeRequest", "ActiveCertId": rsa.ID}}, fields{"Parameters": fields{"ActiveCertId": rsa.ID}},
			reads("/api"+at(rsa.ID, ""), `"Value":"REVOKED"`)},
		{"revocation v1", "/api/transactions", "/api" + at(long.ID, "/status"),
			transaction(128, "CertificateID", fmt.Sprint(long.ID), "RevocationReason", "KEY_COMPROMISE"), fields{"RevocationInfo": fields{"RevocationReason": "0"}},
			reads("/api"+at(long.ID, ""), `CRL_REASON_KEY_COMPROMISE`)},
		{"deletion v1", "/api/transactions", "DELETE /api" + at(long.ID, ""), transaction(1024, "CertificateID", fmt.Sprint(long.ID)), fields{"ForceConfirmation": true},
			gone("/api" + at(long.ID, ""))},
		{"deletion v2", "DELETE /api/v2" + at(rsa.ID, ""), "DELETE /api/v2" + at(rsa.ID, ""), fields{}, fields{"ForceConfirmation": true},
			gone("/api" + at(rsa.ID, ""))},
		{"deletion of a request v2", "DELETE /api/v2/requests/1", "DELETE /api/v2/requests/1", fields{}, fields{"ForceConfirmation": true}, gone("/api/requests/1")},
	} {
		t.Run(way.name, func(t *testing.T) {
			c.T, c.t = t, t
			call := func(token, address string, body any) (int, []byte) {
				t.Helper()
				method, path, found := strings.Cut(address, " ")
				if !found {
					method, path = "POST", address
				}
				return c.Call(method, path, token, body)
			}
			refused := func(name, token, address string, body any, code string) {
				t.Helper()
				status, answer := call(token, address, body)
				if bad := status == 400 && strings.Contains(string(answer), `"error":"`+code+`"`); !bad && !strings.Contains(string(answer), `"IsError":true,"ErrorDescription":"`+code) {
					t.Errorf("%s: %d %.300s, want %s", name, status, answer, code)
				}
			}
			method, path, found := strings.Cut(way.create, " ")
			if !found {
				method, path = "POST", way.create
			}
			if v1 := path == "/api/transactions"; v1 && way.name != "key v1" && strings.HasPrefix(way.name, "PIN") {
				refused("v1 without a transaction", token, way.execute, fields{"OldPin": firstPIN, "NewPin": secondPIN}, "authn_method_not_confirmed")
			}
			id := c.operate(method, path, token, way.order)
			if state := c.state(token, id); state != "Created" {
				t.Errorf("state %s", state)
			}
			confirmed := c.confirm(token, id)
			refused("more", confirmed, way.execute, way.more, "invalid_operation")
			refused("a route that signs", confirmed, "/api/v2/signature", fields{}, "invalid_operation")
			refused("another certificate", confirmed, "/api"+at(plain.ID, "/pin"), fields{}, "invalid_operation")
			refused("another certificate v2", confirmed, "DELETE /api/v2"+at(plain.ID, ""), fields{}, "invalid_operation")
			if status, _ := call(confirmed, "/api"+at(plain.ID, "/default"), fields{"Default": true}); status != 401 {
				t.Errorf("a route without confirmations: %d", status)
			}
			if state := c.state(token, id); state != "Confirmed" {
				t.Errorf("state %s", state)
			}
			var answers [][]byte
			for range 2 { // the repetition has the same bytes
				status, body := call(confirmed, way.execute, fields{})
				if status != 200 || strings.Contains(string(body), `"IsError":true`) {
					t.Fatalf("%d %s", status, body)
				}
				answers = append(answers, body)
			}
			if !bytes.Equal(answers[0], answers[1]) {
				t.Errorf("the repetition has other bytes: %s, %s", answers[0], answers[1])
			}
			if strings.Contains(way.execute, "/v2/") && !strings.Contains(string(answers[0]), `"Id":"`+id+`","Status":"Completed"`) {
				t.Errorf("%s", answers[0])
			}
			if state := c.state(token, id); state != "Completed" {
				t.Errorf("state %s", state)
			}
			way.done(t)
		})
	}
	c.T, c.t = t, t
	if d := c.Ask("state", "GET", "/operations", ""); strings.TrimSpace(d.Body) != "[]" {
		t.Errorf("operations are left: %v", d)
	}

	// Two changes of one PIN: after the first, the PIN of the second is wrong. Its record stays
	// Confirmed, and the right PIN carries it out.
	pin := "/api/v2" + at(guarded.ID, "/pin")
	if status, body := c.Call("POST", pin, token, fields{"OldPin": thirdPIN, "NewPin": firstPIN}); status != 400 || !strings.Contains(string(body), "invalid_pin") {
		t.Errorf("a wrong PIN at creation: %d %s", status, body)
	}
	first := c.operate("POST", pin, token, fields{"OldPin": secondPIN, "NewPin": firstPIN})
	second := c.operate("POST", pin, token, fields{"OldPin": secondPIN, "NewPin": thirdPIN})
	one, two := c.confirm(token, first), c.confirm(token, second)
	if status, body := c.Call("POST", pin, one, fields{}); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	if status, body := c.Call("POST", pin, two, fields{}); status != 400 || !strings.Contains(string(body), "invalid_pin") || c.state(token, second) != "Confirmed" {
		t.Errorf("a wrong PIN: %d %s, %s", status, body, c.state(token, second))
	}
	if status, body := c.Call("POST", pin, two, fields{"OldPin": firstPIN}); status != 200 || c.state(token, second) != "Completed" {
		t.Errorf("the right PIN: %d %s, %s", status, body, c.state(token, second))
	}
	hasPIN(guarded.ID, thirdPIN)(t)

	// What cannot be confirmed, and what is refused at creation.
	for name, body := range map[string]any{
		"content_required":        transaction(8, "CertificateID", "1"),
		"certificate_not_found":   transaction(1024, "CertificateID", "999999"),
		"invalid_parameters":      transaction(1024),
		"invalid_subject_name":    transaction(16, "CertSubjectName", "CN=a,CN=b"),
		"invalid_pin":             transaction(32, "CertificateID", fmt.Sprint(guarded.ID), "OldPin", thirdPIN, "NewPin", "111111"),
		`"error":"invalid_param`:  fields{"OperationCode": 1024, "Document": []byte("x"), "Parameters": []any{fields{"Name": "CertificateID", "Value": "1"}}},
		`invalid_certificate_st`:  transaction(512, "CertificateID", fmt.Sprint(plain.ID)),
		`"invalid_operation","er`: transaction(2048, "CertificateID", "1"),
	} {
		if status, answer := c.Call("POST", "/api/transactions", token, body); status < 400 || status > 404 || !strings.Contains(string(answer), name) {
			t.Errorf("%s: %d %s", name, status, answer)
		}
	}
	var p struct{ TransactionConfirmation string }
	_, text := c.Call("GET", "/api/policy", token, nil)
	if json.Unmarshal(text, &p) != nil || p.TransactionConfirmation != "On" {
		t.Errorf("policy: %s", p.TransactionConfirmation)
	}
	c.Scan()
	if database == "" {
		noSecretOnDisk(t, c.Dir, firstPIN, secondPIN, thirdPIN)
	}
}

// noSecretOnDisk checks that no file has a secret as it is.
func noSecretOnDisk(t *testing.T, dir string, secrets ...string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			return nil
		}
		files++
		for _, s := range secrets {
			if bytes.Contains(content, []byte(s)) {
				t.Errorf("%s has a PIN", filepath.Base(path))
			}
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files read: %v", files, err)
	}
}
