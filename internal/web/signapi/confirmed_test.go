// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestConfirmedRoutes has an entry for every route of this surface: what a confirmation
// means to it. A new route without an entry fails. A route that uses or
// changes a key of ours carries out confirmed operations; reads and calls that use no key of
// ours need no confirmation.
func TestConfirmedRoutes(t *testing.T) {
	const (
		carries  = "carries out confirmed operations"
		creates  = "creates an operation that is confirmed"
		own      = "reads the operation of a confirmed token, and no other"
		reads    = "reads"
		noKey    = "uses no key of ours"
		noPolicy = "is not covered by operation policies"
	)
	want := map[string]string{
		"POST /documents": carries, "POST /documents/packagesignature": carries, "POST /v2/signature": carries, "POST /tamga/operations": carries, "POST /transactions": creates,
		"POST /documents/decrypt": carries, "POST /v2/decryption": carries, "POST /tamga/decryption": carries, "POST /documents/encrypt": noKey, "POST /v2/encryption": noKey,
		"POST /documents/decrypt/parse": noKey, "POST /v2/parse": noKey,
		"GET /v2/signature/{id}": own, "GET /operations/{id}": own, "GET /operations/{id}/proof": own,
		"GET /operations": reads, "POST /operations/{id}/cancel": noKey, "DELETE /operations/{id}": noKey,
		"POST /documents/hash": noKey, "POST /signatures/presign": noKey, "POST /signatures/postsign": noKey,
		"POST /signatures/enhance": noKey, "PATCH /signatures/postsign": noKey, "POST /documents/enhancesignature": noKey,
		"POST /tamga/card": noKey,
		"GET /policy":      reads, "GET /v2/policy": reads,
		"POST /keys/generate": carries, "POST /keys/{id}/params": noPolicy, "GET /keys/{id}/params": reads,
	}
	for _, version := range []string{"", "/v2"} {
		for route, means := range map[string]string{
			"GET /certificates": reads, "GET /certificates/{id}": reads, "GET /certificates/{id}/content": reads,
			"POST /certificates/{id}/pin/check": noPolicy, "GET /requests": reads, "GET /requests/{id}": reads, "GET /requests/{id}/content": reads,
			"POST /certificates": carries, "DELETE /certificates/{id}": carries, "POST /certificates/{id}/default": noPolicy,
			"POST /certificates/{id}/pin": carries, "POST /certificates/{id}/status": carries, "POST /certificates/{id}/friendlyname": noPolicy,
			"POST /requests": carries, "DELETE /requests/{id}": carries,
		} {
			method, path, _ := strings.Cut(route, " ")
			want[method+" "+version+path] = means
		}
	}
	operating := Operating{Operations: &starter{}}
	api := New(Deps{Operations: &operating, Management: &Management{Now: time.Now}, Cards: struct{ Cards }{}})
	for _, r := range slices.Concat(api.Routes(), api.CardRoutes(), operating.OperationRoutes(), ProofRoutes(nil)) {
		route := r.Method + " " + r.Path
		means, known := want[route]
		if !known {
			t.Errorf("%s (%s) has no entry", route, r.Name)
		}
		delete(want, route)
		if takes := means == carries || means == own; takes != r.TakesConfirmed() {
			t.Errorf("%s: accepts confirmed tokens: %v, but it %s", route, r.TakesConfirmed(), means)
		}
	}
	for route := range want {
		t.Errorf("%s is no route", route)
	}
}
