// SPDX-License-Identifier: Apache-2.0

package pagetest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"testing"

	"tamga/internal/tamgatest"
)

// Person is the user demo in a browser, with a phone that gets codes.
type Person struct {
	*Browser
	*tamgatest.UMS
	T     *testing.T
	Id    string
	Phone string
}

// NewPerson starts a server and signs the user demo in. Methods are those to confirm with.
func NewPerson(t *testing.T, methods ...string) *Person {
	t.Helper()
	return NewPersonWith(t, nil, methods...)
}

// NewPersonWith is newPerson with further flags of the server.
func NewPersonWith(t *testing.T, flags []string, methods ...string) *Person {
	t.Helper()
	w := tamgatest.StartUMS(t, append([]string{"--set", "messages.budgets.sms.recipient=0", "--set", "confirmation.codes.resend=1s"}, flags...)...)
	p := &Person{New(t, w.Server), w, t, w.Dev.User.ID, "79250000078"}
	phones := "/ums/user/" + p.Id + "/phones"
	p.OK(tamgatest.Ours, "POST", phones, fmt.Sprintf("%q", p.Phone))
	p.OK(tamgatest.Ours, "POST", phones+"/"+p.Phone+"/confirm", "")
	p.OK(tamgatest.Ours, "POST", phones+"/"+p.Phone+"/secondaryauth", "")
	for _, m := range methods {
		p.OK(tamgatest.Ours, "POST", "/ums/user/"+p.Id+"/authmethod/"+m+"?level=1", "")
	}
	p.SignIn("/start", w.Dev.User.Login, w.Dev.User.Password)
	return p
}

// Confirms sets the actions that need a confirmation.
func (p *Person) Confirms(actions ...int) {
	p.T.Helper()
	text, err := json.Marshal(actions)
	if err != nil {
		p.T.Fatal(err)
	}
	p.OK(tamgatest.Ours, "POST", "/ums/user/"+p.Id+"/operationpolicy", string(text))
}

// Denies sets the actions that the user may not do.
func (p *Person) Denies(actions ...int) {
	p.T.Helper()
	text, err := json.Marshal(actions)
	if err != nil {
		p.T.Fatal(err)
	}
	p.OK(tamgatest.Ours, "POST", "/ums/user/"+p.Id+"/accesspolicy", string(text))
}

// Bits of actions in policies.
const (
	BitSignDocument    = 2
	BitSignDocuments   = 4
	BitDecryptDocument = 8
	BitCreateRequest   = 16
	BitChangePIN       = 32
	BitRevoke          = 128

	BitPrivateKeyAccess = 2048
)

var (
	ConfirmLink = regexp.MustCompile(`href="(/confirm/[0-9a-f-]{36})"`)
	ShownNumber = regexp.MustCompile(`class="number">([0-9]{2})<`)
)

// OnPhone runs a command of the phone.
func (p *Person) OnPhone(file string, args ...string) string {
	p.T.Helper()
	out, err := tamgatest.Phone(p.T, file, args...)
	if err != nil {
		p.T.Fatalf("%s: %s, %v", args[0], out, err)
	}
	return out
}
