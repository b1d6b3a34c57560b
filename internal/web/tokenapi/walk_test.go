// SPDX-License-Identifier: Apache-2.0

package tokenapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tamga/internal/domain/approval"
	"tamga/internal/tamgatest"
	"tamga/internal/web/signapi"
	"tamga/internal/web/umsapi"
)

// carrying returns the routes that accept confirmed tokens, as "POST /SignServer/api/documents".
// TestConfirmedRoutes of package signapi says what each of them does.
func carrying(w *stepping) map[string]bool {
	operations := &signapi.Operating{}
	takes := map[string]bool{}
	add := func(base, method, path string) {
		takes[method+" "+strings.TrimPrefix(base, w.URL)+path] = true
	}
	for _, r := range signapi.New(signapi.Deps{Operations: operations, Management: &signapi.Management{}}).Routes() {
		if r.TakesConfirmed() {
			add(w.Dev.BaseURL+"/api", r.Method, r.Path)
		}
	}
	for _, r := range slices.Concat(operations.OperationRoutes(), signapi.ProofRoutes(nil), umsapi.ChangeRoutes(&approval.Delays{})) {
		if r.TakesConfirmed() {
			add(w.Dev.IDPURL, r.Method, r.Path)
		}
	}
	return takes
}

// propose makes the user demo confirm a signature, and returns the operation, the call that
// confirms it and its confirmed token.
func (w *stepping) propose() (id, token string) {
	w.t.Helper()
	status, body := w.Call("POST", "/api/v2/signature", w.Token(), map[string]any{
		"BinaryData": []any{map[string]any{"Content": []byte("pay\n"), "ContentInfo": "pay.txt"}},
		"Signature":  map[string]any{"Type": "CMS", "Parameters": tamgatest.Parameters{"IsDetached": "False"}, "CertificateId": 0},
	})
	var created struct{ Operation struct{ ID, Status string } }
	if json.Unmarshal(body, &created) != nil || status != 200 || created.Operation.Status != "Created" {
		w.t.Fatalf("%d %s", status, body)
	}
	me := "Bearer " + w.Token()
	first := w.ask("/v2.0/confirmation", me, w.begin(fmt.Sprintf(`,"OperationId":%q`, created.Operation.ID)))
	done := w.ask("/v2.0/confirmation", me, w.answerTo(first.Challenge.ContextData.RefID, w.Code(w.phone)))
	if done.AccessToken == "" {
		w.t.Fatalf("%+v", done)
	}
	return created.Operation.ID, done.AccessToken
}

// demo gives the user demo a phone to confirm signatures with.
func (w *stepping) demo() {
	w.t.Helper()
	w.id, w.phone = w.Dev.User.ID, "79250000077"
	phones := "/ums/user/" + w.id + "/phones"
	w.OK(tamgatest.Ours, "POST", phones, fmt.Sprintf("%q", w.phone))
	w.OK(tamgatest.Ours, "POST", phones+"/"+w.phone+"/confirm", "")
	w.OK(tamgatest.Ours, "POST", phones+"/"+w.phone+"/secondaryauth", "")
	w.assign("otpviasms?level=1")
	w.OK(tamgatest.Ours, "POST", "/ums/user/"+w.id+"/operationpolicy", "[2]")
}

// stepWalk sends a confirmed token, the token of a text and the token of a first step to
// every route of the server. None of them opens more than a call without a token does.
func stepWalk(t *testing.T, w *stepping) {
	w.add("walker", "otpviasms")
	first := w.granted("walker")
	w.demo()
	_, confirmed := w.propose()
	me := "Bearer " + w.Token()
	begun := w.ask("/confirmation", me, w.begin(`,"ConfirmationScope":"walk"`))
	text := w.ask("/confirmation", me, w.answerTo(begun.Challenge.ContextData.RefID, w.Code(w.phone))).AccessToken
	if text == "" {
		t.Fatal("no token of a text")
	}

	var description struct {
		Paths map[string]map[string]any
	}
	_, document := w.Do(t.Context(), "GET", w.URL+"/openapi.json", "", nil)
	if err := json.Unmarshal(document, &description); err != nil || len(description.Paths) < 100 {
		t.Fatalf("%d paths, %v", len(description.Paths), err)
	}
	takes, parameter := carrying(w), regexp.MustCompile(`\{[^}]+\}`)
	for path, methods := range description.Paths {
		for method := range methods {
			method = strings.ToUpper(method)
			route, address := method+" "+path, w.URL+parameter.ReplaceAllString(path, tamgatest.Missing)
			send := func(token string) int {
				body := strings.NewReader("")
				if method == "POST" || method == "PUT" || method == "PATCH" {
					body = strings.NewReader("{}")
				}
				status, _ := w.Do(t.Context(), method, address, token, body)
				return status
			}
			open := send("")
			for name, token := range map[string]string{"a confirmed token": confirmed, "the token of a text": text, "the token of a first step": first} {
				if token == confirmed && takes[route] || token == first && strings.HasSuffix(path, "/confirmation") {
					continue
				}
				if status := send(token); status != http.StatusUnauthorized && status != open {
					t.Errorf("%s: %s is answered %d, no token %d", route, name, status, open)
				}
			}
			delete(takes, route)
		}
	}
	for route := range takes {
		t.Errorf("%s accepts confirmed tokens and is not described", route)
	}
	// Routes without a right that read a token on their own.
	for name, token := range map[string]string{"a confirmed token": confirmed, "the token of a text": text, "the token of a first step": first} {
		b := &browser{s: w.s}
		if response, page := b.send("GET", w.s.asked(), "", "Authorization", "Bearer "+token); response.StatusCode != 400 || !strings.Contains(page, "access_denied") {
			t.Errorf("a code for %s: %d %s", name, response.StatusCode, page)
		}
		if a := w.s.Exchange(token, tamgatest.Naming("unique_name", "walker", 300e9)); a.Status != 400 || strings.Contains(a.Body, "access_token") {
			t.Errorf("an exchange of %s: %v", name, a)
		}
	}
}

// stepConfirmedEnds changes the account between the confirmation and the signature.
func stepConfirmedEnds(t *testing.T, w *stepping) {
	w.id, w.phone = w.Dev.User.ID, "79250000077"
	user := "/ums/user/" + w.id
	for _, change := range []struct {
		name string
		make func()
	}{
		{"a policy", func() { w.OK(tamgatest.Ours, "POST", user+"/operationpolicy", "[2,4]") }},
		{"a method", func() { w.OK(tamgatest.Ours, "POST", user+"/authmethod/idonly", "") }},
		{"a contact", func() {
			w.OK(tamgatest.Ours, "POST", user+"/phones", `"79250000078"`)
			w.OK(tamgatest.Ours, "POST", user+"/phones/79250000078/confirm", "")
			w.OK(tamgatest.Ours, "POST", user+"/phones/79250000078/secondaryauth", "")
			w.phone = "79250000078"
		}},
		{"a lock", func() {
			w.OK(tamgatest.Ours, "POST", user+"/lockout?lock=True", "")
			w.OK(tamgatest.Ours, "POST", user+"/lockout?lock=False", "")
		}},
	} {
		id, token := w.propose()
		change.make()
		status, body := w.Call("POST", "/api/v2/signature", token, map[string]any{})
		if status != 400 && status != 401 || strings.Contains(string(body), "ProcessedDocuments") {
			t.Errorf("after %s: %d %.300s", change.name, status, body)
		}
		if _, body := w.Call("GET", "/api/v2/signature/"+id, w.Token(), nil); strings.Contains(string(body), "Content\":\"") {
			t.Errorf("after %s something was signed: %.300s", change.name, body)
		}
	}
}
