// SPDX-License-Identifier: Apache-2.0

package tokenapi_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/tamgatest"
)

// TestConfirmationMatrix sends a request to every route of the signing service that the
// server says it has, under every policy of its action: nothing, denied, to be confirmed.
// No route signs or changes anything without the confirmation. A new route without a row
// fails.
func TestConfirmationMatrix(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) { t.Parallel(); testConfirmationMatrix(t, "") })
	t.Run("PostgreSQL", func(t *testing.T) { t.Parallel(); testConfirmationMatrix(t, storetest.PostgreSQL(t).Database(t)) })
}

func testConfirmationMatrix(t *testing.T, database string) {
	c, token := demoConfirms(t, database)
	type fields = map[string]any
	signature := fields{"Type": "CMS", "Parameters": fields{"IsDetached": "False"}, "CertificateId": 0}
	one := fields{"Content": []byte("x"), "Signature": signature}
	inline := fields{"Content": []byte("x"), "ContentInfo": "x.txt"}
	policy := func(kind string, actions string) {
		t.Helper()
		c.OK(tamgatest.Ours, "POST", "/ums/user/"+c.id+"/"+kind+"policy", actions)
	}
	// The objects of routes with a number in their address.
	request := func() (request, certificate int64) {
		t.Helper()
		status, body := c.Call("POST", "/api/requests", token, fields{"AuthorityId": 1, "PinCode": firstPIN})
		var q struct{ ID, CertificateID int64 }
		if err := json.Unmarshal(body, &q); status != 200 || err != nil || q.CertificateID == 0 {
			t.Fatalf("%d %s", status, body)
		}
		return q.ID, q.CertificateID
	}
	firstRequest, certificate := request()
	held := c.Cert("gost2012-512", false).ID
	for _, id := range []int64{held} {
		if status, body := c.Call("POST", fmt.Sprintf("/api/certificates/%d/status", id), token, fields{"Status": "HOLD"}); status != 200 {
			t.Fatalf("%d %s", status, body)
		}
	}
	own := &decrypting{confirming: c, token: token, text: []byte("text")}
	message := own.encrypt(nil, own.certificate("gost2012-256", false))
	// state is what the acts on keys change.
	state := func() string {
		t.Helper()
		var all []string
		for _, path := range []string{"/api/certificates", "/api/requests"} {
			status, body := c.Call("GET", path, token, nil)
			if status != 200 {
				t.Fatalf("%d %s", status, body)
			}
			all = append(all, string(body))
		}
		status, body := c.Call("POST", fmt.Sprintf("/api/certificates/%d/pin/check", certificate), token, fields{"Pin": firstPIN})
		return strings.Join(append(all, fmt.Sprint(status, string(body))), "\n")
	}

	type row struct {
		action int // bit of the action
		body   any
		id     int64 // in the address
		fault  string
		once   bool // it can be done once, so only one version does it
	}
	const (
		noKey   = "uses no key of ours"
		no      = "no action of policies covers it"
		creates = "only creates an operation"
	)
	free := map[string]string{
		"/documents/encrypt": noKey, "/encryption": noKey, "/documents/decrypt/parse": noKey, "/parse": noKey,
		"/documents/hash": noKey, "/signatures/presign": noKey, "/signatures/postsign": noKey, "/signatures/enhance": noKey, "/documents/enhancesignature": noKey, "/tamga/card": noKey,
		"/certificates/{id}/pin/check": no, "/certificates/{id}/default": no, "/certificates/{id}/friendlyname": no, "/keys/{id}/params": no,
	}
	rows := map[string][]row{
		"POST /documents":                  {{action: 2, body: one}, {action: 4, body: fields{"Documents": []any{inline}, "Signature": signature}}},
		"POST /documents/packagesignature": {{action: 4, body: fields{"Documents": []any{inline}, "Signature": signature}}},
		"POST /v2/signature":               {{action: 2, body: fields{"BinaryData": []any{inline}, "Signature": signature}}, {action: 4, body: fields{"BinaryData": []any{inline, inline}, "Signature": signature}}},
		"POST /tamga/operations":           {{action: 2, body: fields{"Documents": []any{fields{"Content": []byte("x")}}, "Signature": signature}}, {action: 4, body: fields{"Documents": []any{fields{"Content": []byte("x")}, fields{"Content": []byte("y"), "Signature": fields{"Type": "CAdES", "Parameters": fields{"CADESType": "BES"}}}}, "Signature": signature}}},
		"POST /documents/decrypt":          {{action: 8, body: fields{"Content": message, "Decryption": fields{"Type": 0}}}},
		"POST /tamga/decryption":           {{action: 8, body: fields{"BinaryData": []any{fields{"Content": message}}, "Decryption": fields{"Type": 0}}}},
		"POST /v2/decryption":              {{action: 8, body: fields{"BinaryData": []any{fields{"Content": message}}, "Decryption": fields{"Type": 0}}}},
		"POST /requests":                   {{action: 16, body: fields{"AuthorityId": 1}}, {action: 64, body: fields{"Parameters": fields{"RequestType": "Renew", "ActiveCertId": certificate, "ActiveCertPin": firstPIN}}}},
		"POST /keys/generate":              {{action: 16, body: fields{"AlgId": 11849}}},
		"POST /certificates":               {{action: 16, body: fields{"Certificate": "bm90aGluZw=="}, fault: "invalid_certificate_format"}},
		"POST /certificates/{id}/pin":      {{action: 32, id: certificate, body: fields{"OldPin": firstPIN, "NewPin": firstPIN}}},
		"POST /certificates/{id}/status":   {{action: 512, id: held, body: fields{"Status": "ACTIVE"}, once: true}, {action: 256, id: held, body: fields{"Status": "HOLD"}, once: true}, {action: 128, id: c.Cert("rsa-2048", false).ID, body: fields{"Status": "REVOKED"}, once: true}},
		"DELETE /requests/{id}":            {{action: 16, id: firstRequest, body: fields{}, once: true}},
		"DELETE /certificates/{id}":        {{action: 1024, id: c.Cert("ecdsa-p256", false).ID, body: fields{}, once: true}},
		"POST /transactions":               {{action: 32, body: transaction(32, "CertificateID", fmt.Sprint(certificate), "OldPin", firstPIN, "NewPin", firstPIN), fault: creates}},
	}
	// A version of v2 is the same with the prefix, and Created where v1 refuses.
	for route, list := range rows {
		if method, path, _ := strings.Cut(route, " "); strings.HasPrefix(path, "/requests") || strings.HasPrefix(path, "/certificates") {
			rows[method+" /v2"+path] = list
		}
	}
	send := func(route string, r row) (int, string) {
		t.Helper()
		method, path, _ := strings.Cut(route, " ")
		status, body := c.Call(method, "/api"+strings.Replace(path, "{id}", fmt.Sprint(r.id), 1), token, r.body)
		return status, string(body)
	}
	_, text := c.Do(t.Context(), "GET", c.URL+"/openapi.json", "", nil)
	var described struct {
		Paths map[string]map[string]any
	}
	if err := json.Unmarshal(text, &described); err != nil {
		t.Fatal(err)
	}
	var routes []string
	for path, methods := range described.Paths {
		path, signing := strings.CutPrefix(path, "/SignServer/api")
		for method := range methods {
			if route := strings.ToUpper(method) + " " + path; signing && method != "get" && free[strings.TrimPrefix(path, "/v2")] == "" {
				routes = append(routes, route)
			}
		}
	}
	slices.Sort(routes)
	if len(routes) < len(rows) {
		t.Errorf("the server has the routes %q", routes)
	}
	done := map[string]bool{}
	for _, route := range routes {
		list, known := rows[route]
		if !known {
			t.Errorf("%s has no row", route)
		}
		v2 := strings.Contains(route, " /v2/") || strings.Contains(route, " /tamga/")
		for i, r := range list {
			name := fmt.Sprintf("%s, action %d", route, r.action)
			before := state()
			unchanged := func(when string) {
				t.Helper()
				if after := state(); after != before {
					t.Errorf("%s, %s: something was changed:\n%s\n%s", name, when, before, after)
				}
			}
			policy("access", fmt.Sprintf("[%d]", r.action))
			if status, body := send(route, r); status != 403 || !strings.Contains(body, "access_denied") {
				t.Errorf("%s, denied: %d %.300s", name, status, body)
			}
			unchanged("denied")
			policy("access", "[]")
			policy("operation", fmt.Sprintf("[%d]", r.action))
			status, body := send(route, r)
			waits := status == 400 && strings.Contains(body, `"error":"authn_method_not_confirmed"`) ||
				route == "POST /keys/generate" && strings.Contains(body, `"IsError":true,"ErrorDescription":"authn_method_not_confirmed"`)
			switch {
			case r.fault == creates:
				waits = status == 200
			case v2 && r.fault != "":
				waits = status == 400 && strings.Contains(body, r.fault)
			case v2:
				waits = status == 200 && strings.Contains(body, `"Status":"Created"`) && strings.HasSuffix(body, `"Result":null}}`)
			}
			if !waits {
				t.Errorf("%s, to be confirmed: %d %.300s", name, status, body)
			}
			unchanged("to be confirmed")
			// An access token is no confirmation, whatever was created before.
			empty := r
			empty.body = fields{}
			if method, _, _ := strings.Cut(route, " "); method == "POST" {
				if status, body := send(route, empty); status == 200 && !strings.Contains(body, `"IsError":true`) && !strings.Contains(body, `"Status":"Created"`) {
					t.Errorf("%s with an empty body: %d %.300s", name, status, body)
				}
				unchanged("with an empty body")
			}
			policy("operation", "[1]")
			if key := fmt.Sprint(strings.Replace(route, "/v2", "", 1), i); !r.once || !done[key] {
				done[key] = r.once && v2
				if r.once && !v2 {
					continue // v2 does it
				}
				status, body := send(route, r)
				if good := status == 200 && !strings.Contains(body, `"IsError":true`); good != (r.fault == "" || r.fault == creates) {
					t.Errorf("%s, allowed: %d %.300s", name, status, body)
				}
			}
		}
	}
}
