// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"tamga/internal/tamgatest"
)

// people are those of one look, so that no look waits for the codes of another.
type people struct {
	careful, phone, email string // passes a second step at each sign-in and confirms signatures
	newcomer              string // has a password and a confirmed phone
	handy, desk           string // signs in and confirms with a device or a code by SMS, which goes to the second one
	keyed                 string // confirms with a passkey
}

// people makes the people of a look. Number is different for each.
func (s *stage) people(w *tamgatest.UMS, l look, number int) *people {
	w.T.Helper()
	p := &people{careful: "careful-" + l.name, newcomer: "newcomer-" + l.name, phone: fmt.Sprintf("7916%07d", number), email: l.name + "@example.org"}
	id := s.person(w, p.careful)
	w.Command("cert", "issue", p.careful, "--default")
	contact(w, id, "phones", p.phone)
	contact(w, id, "emails", p.email)
	for _, method := range []string{"otpviasms", "otpviaemail"} {
		w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/authmethod/"+method+"?level=2", "")
	}
	w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/operationpolicy", "[2,4]")
	id = s.person(w, p.newcomer)
	contact(w, id, "phones", fmt.Sprintf("7917%07d", number))

	p.handy, p.desk, p.keyed = "handy-"+l.name, fmt.Sprintf("7918%07d", number), "keyed-"+l.name
	id = s.person(w, p.handy)
	w.Command("cert", "issue", p.handy, "--default")
	contact(w, id, "phones", p.desk)
	w.Device(id, "Honor Анны")
	for _, method := range []string{"otpviasms", "mydss"} {
		w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/authmethod/"+method+"?level=2", "")
	}
	w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/operationpolicy", "[2,4]")
	id = s.person(w, p.keyed)
	w.Command("cert", "issue", p.keyed, "--default")
	w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/authmethod/passkey?level=1", "")
	w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/operationpolicy", "[2,4]")
	return p
}

// person registers a person and returns the identifier.
func (s *stage) person(w *tamgatest.UMS, login string) (id string) {
	w.T.Helper()
	w.Command("user", "add", login, "--group", "Default", "--name", "Анна <b>Иванова</b>", "--password-file", tamgatest.PasswordFile(w.T))
	token := s.TokenOf(login, tamgatest.Password)
	var claims struct{ NameID string }
	text, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err != nil || json.Unmarshal(text, &claims) != nil || claims.NameID == "" {
		w.T.Fatalf("the token of %s names no user: %s, %v", login, text, err)
	}
	return claims.NameID
}

// contact adds a confirmed contact that gets codes.
func contact(w *tamgatest.UMS, id, kind, value string) {
	w.T.Helper()
	at := "/ums/user/" + id + "/" + kind
	w.OK(tamgatest.Ours, "POST", at, fmt.Sprintf("%q", value))
	for _, role := range []string{"confirm", "secondaryauth"} {
		w.OK(tamgatest.Ours, "POST", at+"/"+value+"/"+role, "")
	}
}

// captured returns the newest message to a contact that has what is sought, and what that is.
func (b *tab) captured(to string, sought *regexp.Regexp) string {
	b.Helper()
	for {
		found := ""
		for _, message := range b.Captured() {
			if m := sought.FindStringSubmatch(message.Text); message.To == to && m != nil {
				found = m[len(m)-1]
			}
		}
		if found != "" {
			return found
		}
		b.pause("no message to %s has %s", to, sought)
	}
}

// fillSignIn types the login and the password at the sign-in page.
func (b *tab) fillSignIn(login, password string) {
	b.Helper()
	b.wait(`input[name=password]`)
	b.fill(`input[name=login]`, login)
	b.fill(`input[name=password]`, password)
	b.press(`main form button`)
}

// tap touches an element with a finger. What the finger meets must be the element. A touch while the
// page moves is no click, so a touch without one is made again.
func (b *tab) tap(selector string) {
	b.Helper()
	for {
		x, y := b.middle(selector)
		met := value[bool](b, `(e => e !== null && document.querySelector(`+quote(selector)+`).contains(e))(document.elementFromPoint(`+fmt.Sprintf("%f,%f", x, y)+`))`)
		if !met {
			b.Fatalf("a finger does not meet %s at %.0f, %.0f", selector, x, y)
		}
		value[bool](b, `(document.clicked = false, document.addEventListener("click", () => { document.clicked = true }, {once: true, capture: true}), true)`)
		b.touch(input.DispatchTouchEventTypeTouchStart, x, y)
		b.release()
		for range 500 { // at least five seconds
			clicked, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](`document.clicked !== false`)) // another document does not have it
			if err != nil || clicked {
				return
			}
			b.pause("no click: %s (%v)", selector, err)
		}
	}
}

// touch puts a finger on a place or moves it there.
func (b *tab) touch(kind input.DispatchTouchEventType, x, y float64) {
	b.Helper()
	call(b, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: kind, TouchPoints: []*input.TouchPoint{{X: x, Y: y}}})
}

// release lifts the finger.
func (b *tab) release() {
	b.Helper()
	call(b, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: input.DispatchTouchEventTypeTouchEnd, TouchPoints: []*input.TouchPoint{}})
}

// drag moves an element with a finger.
func (b *tab) drag(selector string, right, down float64) {
	b.Helper()
	x, y := b.middle(selector)
	b.touch(input.DispatchTouchEventTypeTouchStart, x, y)
	for _, part := range []float64{0.5, 1} {
		b.touch(input.DispatchTouchEventTypeTouchMove, x+part*right, y+part*down)
	}
	b.release()
}

// middle brings an element into the window and returns where its middle is, once it stays there.
func (b *tab) middle(selector string) (x, y float64) {
	b.Helper()
	b.wait(selector)
	at := value[[2]float64](b, `(async e => { for (let last = "";;) {
			e.scrollIntoView({block: "center", behavior: "instant"});
			const r = e.getBoundingClientRect(), at = [r.left + r.width / 2, r.top + r.height / 2];
			if (last === String(at)) return at;
			last = String(at);
			await new Promise(done => setTimeout(done, 50));
		} })(document.querySelector(`+quote(selector)+`))`)
	return at[0], at[1]
}
