// SPDX-License-Identifier: Apache-2.0

package account

import (
	"strings"
	"testing"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/signing"
	"tamga/internal/web/pages/view"
)

// TestLooks checks that the history of acts leaves out what only looks, and nothing else.
func TestLooks(t *testing.T) {
	acts, all := 0, 0
	for _, operation := range view.Languages[0].Operations() {
		name := operation.Value
		all++
		if !view.Looks(name) {
			acts++
		}
		for _, verb := range []string{"Sign", "Set", "Delete", "Add", "Change", "Confirm", "Revoke", "Register", "Export", "Login", "Token", "SecondStep", "Renew", "Lock", "Upload", "Remove"} {
			if view.Looks(name) && strings.HasPrefix(name, verb) && !strings.HasSuffix(name, "Page") && name != "ConfirmPages" && name != signing.AuditSignature {
				t.Errorf("%s is an act", name)
			}
		}
	}
	if acts < 150 || all-acts < 80 {
		t.Errorf("%d acts of %d operations", acts, all)
	}
	for name, want := range map[string]bool{"SignByPage": false, "SignPage": true, "ConfirmPages": true, "SignedIn": false, "DownloadSigned": true, "Login": false, "": false} {
		if view.Looks(name) != want {
			t.Errorf("%q: %t, want %t", name, !want, want)
		}
	}
}

// TestClientNames: people see an application by its name, with the identifier only beside it.
func TestClientNames(t *testing.T) {
	a := API{Deps{Clients: view.Clients{Own: "pages", Names: map[string]string{"bank": "The bank", "same": "same"}}}}
	for id, want := range map[string]view.Named{"bank": {Name: "The bank", ID: "bank"}, "same": {Name: "same", ID: ""}, "other": {Name: "other", ID: ""}, "pages": {Name: "Pages of this service", ID: ""}} {
		if got := a.Clients.Named(view.Languages[0], id); got != want {
			t.Errorf("%s is %v, want %v", id, got, want)
		}
	}
	entry := a.historyEntry(view.Languages[0], "user", &audit.Entry{Outcome: "access_denied", Principal: audit.Principal{ClientID: "bank"}})
	if entry.Client != (view.Named{Name: "The bank", ID: "bank"}) || entry.Refused != "denied" || entry.OK {
		t.Errorf("an entry of the history is %+v", entry)
	}
}

func TestObject(t *testing.T) {
	for text, want := range map[string]string{
		"certificate 7": "сертификат 7", "certificate 7, 2 documents": "сертификат 7, 2 документа", "certificate 7, x documents": "сертификат 7, x documents",
		"request 8": "запрос 8", "document 9": "документ 9", "": "", "certificate": "certificate", "<b> 1": "<b> 1",
	} {
		if got := view.Languages[1].Object(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
