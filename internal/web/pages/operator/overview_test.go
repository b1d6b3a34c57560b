// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

// TestOverview checks that the first page of a person says what needs attention, with a button that mends it, and that
// what is done at once can be taken back.
func TestOverview(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	id, login, phone, _ := w.Register()
	b, at := pagetest.Operator(w, w.Dev.Operator.Login), pagetest.PersonAt(id)
	b.Shows(b.Get(at), "Needs attention", "so this person cannot sign in", "There is no certificate")
	b.Shows(b.SendCommand(at+"/method-add-password", nil))
	b.Shows(b.SendCommand(at+"/method-add-otpviasms", url.Values{"level": {"1"}}))
	b.Shows(b.Get(at), "Password: does not work yet", "No password is set", "Code by SMS: does not work yet", "No phone is confirmed", at+"/phone-add", "Does not work</span>")
	b.Shows(b.Post(at+"/phone-confirm?of="+phone, nil))
	codes := at + "/phone-codes?of=" + phone
	b.Shows(b.Get(at), "no code goes to "+phone, `<form method="post" action="`+codes+`">`)
	b.Shows(b.Post(codes, nil), "gets codes")
	b.Shows(b.SendCommand(at+"/password-show", nil), "never shown again")
	if p := b.Shows(b.Get(at), "· "+phone, "Works</span>"); strings.Contains(p.Text, "Needs attention") {
		t.Errorf("what works needs attention:\n%s", p.Text)
	}

	// A contact has a button for what it is not yet, and one that takes away what it is.
	has := func(value string) string {
		return `action="` + at + "/phone-notification?of=" + phone + `"><input type="hidden" name="has" value="` + value + `">`
	}
	b.Shows(b.Get(at+"/sign-in"), has("true"))
	p := b.Shows(b.Post(at+"/phone-notification?of="+phone, url.Values{"has": {"true"}}), has("false"))
	if p.At.Path != at+"/sign-in" {
		t.Errorf("the button leads to %s", p.At)
	}

	// What is dangerous asks in a dialog, with what it ends; a lock can be taken back at once.
	b.Shows(b.Get(at), `popovertarget="lock"`, `<div popover id="delete" role="dialog"`, "Delete the person?", "To confirm, type <code>"+login, "documents are deleted")
	b.Shows(b.Post(at+"/lock", url.Values{"delay": {"0"}}), "The account is locked", `<form method="post" action="`+at+`/unlock"><button class="btn quiet small">Undo`)
	b.Shows(b.Post(at+"/unlock", nil), "may sign in")
	demo, number := pagetest.PersonAt(w.Dev.User.ID), fmt.Sprint(w.Cert("gost2012-512", false).ID)
	b.Shows(b.Post(demo+"/certificate-hold?of="+number, nil), "On hold", `action="`+demo+"/certificate-unhold?of="+number+`"><button class="btn quiet small">Undo`)
	b.Shows(b.Get(demo), `action="`+demo+"/certificate-unhold?of="+number, "Certificates <span class=\"tag\">")
	b.Shows(b.Get(demo+"/rules"), "Certificates <span class=\"tag\">")

	// What a revocation destroys is said before it, on the page and in the dialog.
	b.Shows(b.Get(demo+"/certificate-revoke?of="+number), "without a time stamp they may be doubted", "This cannot be undone")
	w.Command("user", "add", "only", "--group", "Default", "--password-file", tamgatest.PasswordFile(t))
	w.Command("cert", "issue", "only")
	only := b.Find(b.Get("/operator/people?q=only"), regexp.MustCompile(`href="(/operator/people/[0-9a-f-]{36})"`))[1]
	b.Shows(b.Get(only+"/certificates"), `role="dialog"`, "The person then has no certificate to sign with", "To confirm, type <code>")
	if p := b.Shows(b.Get(demo + "/certificates")); strings.Contains(p.Text, "no certificate to sign with") {
		t.Error("a person with several certificates loses the last one")
	}
}
