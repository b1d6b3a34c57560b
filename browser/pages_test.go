// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bytes"
	"image/png"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"

	"tamga/internal/tamgatest"
	"tamga/internal/testsize"
)

// person is who looks at a page.
type person int

const (
	anonymous person = iota // without a session
	demo
	operator
	careful  // people.careful
	newcomer // people.newcomer
	handy    // people.handy
	keyed    // people.keyed
)

// row is a page that a test looks at.
type row struct {
	name string // of its picture
	who  person
	path string
	do   func(b *tab) // brings the page into the state to look at; nil: as it is loaded
	// refused means that the server refuses on this page, which browsers complain about.
	refused bool
	long    bool // the row is for the long form
	scripts bool // the row is for browsers that run scripts
}

// rows are the pages that everybody, a person and an operator see. Each is judged in every look.
var rows = []row{
	{name: "front", path: "/"},
	{name: "components", path: "/_/components"},
	{name: "components-dialog", path: "/_/components", do: func(b *tab) {
		b.press(`button[popovertarget=delete]`)
		b.wait(`#delete input[name=typed]:focus`)
	}},
	{name: "verify", path: "/verify"},
	{name: "verify-none", path: "/verify", do: func(b *tab) {
		b.verify("a.txt", "no signature")
		b.wait(`.verdict.unknown`)
	}},
	{name: "verify-alone", path: "/verify", do: func(b *tab) {
		b.verify("Акт сверки, III квартал.docx.sig", b.signature("text"))
		b.wait(`[data-drop]`)
	}},
	{name: "verified-many", path: "/verify", do: func(b *tab) {
		b.verify("Акт.txt.sig", b.signature("text"), "Акт.txt", "text", "Договор поставки № 17.txt.sig", b.signature("17"), "Спецификация.txt", "no signature", "Доверенность.txt.sig", b.signature("4"), "Доверенность.txt", "5")
		b.wait(`.chips`)
	}},
	{name: "verified", path: "/verify", do: func(b *tab) {
		b.verify("Акт.txt.sig", b.signature("text"), "Акт.txt", "text")
		b.wait(`.verdict.valid`)
	}},
	{name: "verified-failed", path: "/verify", do: func(b *tab) {
		b.verify("Акт.txt.sig", b.signature("text"), "Акт.txt", "another text")
		b.wait(`.verdict.invalid`)
	}},
	{name: "verify-unknown", path: "/verify", do: func(b *tab) {
		b.verify("Доверенность № 4.txt.sig", b.foreign, "Доверенность № 4.txt", "text")
		b.wait(`.verdict.unknown`)
	}},
	{name: "report-find", path: "/r?number=12"},
	{name: "report-stored", who: demo, path: "/verify", do: func(b *tab) {
		b.verify("Акт.txt.sig", b.signature("text"), "Акт.txt", "text")
		b.wait(`.verdict.valid`)
		b.press(`button[formaction="/verify/keep"]`)
		b.wait(`button[popovertarget=delete]`)
	}},
	{name: "reports", who: demo, path: "/verify/reports"},
	{name: "sign-in", path: "/sign-in"},
	{name: "sign-in-wrong", path: "/sign-in", refused: true, do: func(b *tab) {
		b.fill(`input[name=login]`, "unknown")
		b.fill(`input[name=password]`, "wrong")
		b.press(`main form button`)
		b.wait(`[role=alert]`)
	}},
	{name: "sign-in-of-unknown-client", path: "/STS/oauth/authorize?client_id=unknown", refused: true},
	{name: "signed-in-refused", path: "/signed-in", refused: true},

	{name: "start", who: demo, path: "/start"},
	{name: "sign", who: demo, path: "/sign"},
	{name: "sign-stamp", who: demo, path: "/sign?format=pdf&stamp=yes&stamp_width=60", do: func(b *tab) {
		if b.look.noScript { // the page is placed by a script, and its button does not show
			return
		}
		b.attach(`input[name=file]`, "a.pdf", string(tamgatest.PDFOf(2000)))
		b.press(`[data-place] button`)
		b.wait(`[data-box]`)
		b.until(`document.querySelector("[data-box]").offsetWidth > 50`)
	}},
	{name: "sign-looks", who: demo, path: "/sign?format=pdf&stamp=yes", do: func(b *tab) { b.wait(`img[data-form=compact]`) }},
	{name: "sign-drop", who: demo, path: "/sign", scripts: true, do: func(b *tab) {
		value[bool](b, `(() => {
			const dragged = new DataTransfer();
			dragged.items.add(new File(["text"], "a.txt"));
			return window.dispatchEvent(new DragEvent("dragover", {dataTransfer: dragged, bubbles: true}));
		})()`)
		b.wait(`[data-catch]`)
	}},
	{name: "signed", who: demo, path: "/sign", do: func(b *tab) {
		b.attach(`input[name=file]`, "Договор поставки №1.pdf", string(tamgatest.PDFOf(2000)), "notes.txt", "text")
		b.press(`main form button:not([name]):not([type])`)
		b.wait(`a[href^="/signed/document/"]`)
	}},
	{name: "signed-refused", who: demo, path: "/signed?operation=1", refused: true},

	{name: "encrypt", who: demo, path: "/encrypt"},
	{name: "encrypt-refused", who: demo, path: "/encrypt", refused: true, do: func(b *tab) {
		b.attach(`input[name=file]`, "Договор поставки №1.pdf", string(tamgatest.PDFOf(2000)))
		b.press(`main form .act button`)
		b.wait(`#to-problem`)
	}},
	{name: "encrypt-found", who: demo, path: "/encrypt", do: func(b *tab) {
		b.attach(`input[name=file]`, "Договор поставки №1.pdf", string(tamgatest.PDFOf(2000)))
		b.fill(`input[name=q]`, "demo")
		b.press(`button[value=find]`)
		b.wait(`[data-found] input[name=to]`)
	}},
	{name: "encrypted", who: demo, path: "/encrypt", do: encryptFiles},
	{name: "enhance", who: demo, path: "/enhance"},
	{name: "decrypt", who: demo, path: "/decrypt"},
	{name: "decrypt-look", who: demo, path: "/decrypt", do: func(b *tab) {
		b.attach(`input[name=file]`, "Договор поставки №1.pdf.p7m", "no message")
		b.press(`button[value=look]`)
		b.wait(`input[name=stored]`)
	}},
	{name: "decrypted", who: demo, path: "/decrypt", do: func(b *tab) {
		b.attach(`input[name=file]`, "Договор поставки №1.pdf.p7m", b.message("text", nil), "notes.txt.enc", b.message("text", map[string]any{"Algorithm": "Kuznyechik"}), "other.p7m", "no message")
		b.press(`main form .act button.primary`)
		b.wait(`a[href^="/decrypted/document/"]`)
	}},
	{name: "decrypted-refused", who: demo, path: "/decrypted?operation=1", refused: true},

	{name: "reference", path: "/reference"},
	{name: "reference-operation", path: "/reference/GetUsers"},
	{name: "reference-tried", who: demo, path: "/reference/GetCertificates", do: func(b *tab) {
		b.press(`#try form button`)
		b.wait(`#answer`)
	}},
	{name: "confirm", who: demo, path: "/confirm"},
	{name: "confirm-refused", who: demo, path: "/confirm/none", refused: true},
	{name: "signatures", who: demo, path: "/signatures"},
	{name: "signature", who: demo, path: "/sign", do: func(b *tab) {
		b.attach(`input[name=file]`, "Договор поставки №1.pdf", string(tamgatest.PDFOf(2000)), "notes.txt", "text")
		b.press(`main form button:not([name]):not([type])`)
		b.wait(`a[href^="/signed/document/"]`)
		b.open("/signatures")
		b.press(`main table th a[href^="/signatures/"]`)
		b.wait(`form[action$="/do/verify"]`)
		b.press(`form[action$="/do/verify"] button`)
		b.wait(`.verdict.valid`)
	}},
	{name: "signatures-none", who: demo, path: "/signatures?q=nothing&period=week&since=2020-01-01"},
	{name: "documents", who: demo, path: "/documents"},
	{name: "certificates", who: demo, path: "/certificates"},
	{name: "certificate", who: demo, path: "/certificates/1"},
	{name: "certificate-request", who: demo, path: "/certificates/request"},
	{name: "devices", who: demo, path: "/devices"},
	{name: "account", who: demo, path: "/account"},
	{name: "history", who: demo, path: "/account/history"},

	{name: "sign-in-step", path: "/sign-in", do: func(b *tab) {
		b.fillSignIn(b.people.careful, tamgatest.Password)
		b.wait(`button[name=choice]`)
	}},
	{name: "sign-in-step-code", path: "/sign-in", do: func(b *tab) {
		b.fillSignIn(b.people.careful, tamgatest.Password)
		b.press(`button[name=choice]`)
		b.wait(`input[name=code]`)
	}},
	{name: "sign-in-step-wrong", path: "/sign-in", refused: true, long: true, do: func(b *tab) {
		b.fillSignIn(b.people.careful, tamgatest.Password)
		b.press(`button[name=choice]`)
		b.fill(`input[name=code]`, "12345x")
		b.press(`main form button`)
		b.wait(`[role=alert]`)
	}},
	{name: "start-waiting", who: careful, path: "/start", long: true},
	{name: "confirm-waiting", who: careful, path: "/confirm", do: func(b *tab) { b.wait(`main a[href^="/confirm/"]`) }},
	{name: "confirm-choice", who: careful, path: "/confirm", do: openWaiting},
	{name: "confirm-code", who: careful, path: "/confirm", do: func(b *tab) {
		openWaiting(b)
		b.press(`button[value=otpviasms]`)
		b.wait(`input[name=code]`)
	}},
	{name: "confirm-wrong", who: careful, path: "/confirm", refused: true, long: true, do: func(b *tab) {
		openWaiting(b)
		b.press(`button[value=otpviaemail]`)
		b.fill(`input[name=code]`, "12345x")
		b.press(`#answer button`)
		b.wait(`.error`)
	}},
	{name: "sign-in-step-device", path: "/sign-in", scripts: true, do: func(b *tab) {
		b.fillSignIn(b.people.handy, tamgatest.Password)
		b.press(`button[name=choice][value^=m]`)
		b.wait(`.number`)
	}},
	{name: "confirm-device", who: handy, path: "/confirm", do: func(b *tab) {
		openWaiting(b)
		b.press(`button[name=choice][value^=m]`)
		b.wait(`.number`)
	}},
	{name: "confirm-passkey", who: keyed, path: "/confirm", scripts: true, do: func(b *tab) {
		openWaiting(b)
		b.press(`button[value=passkey]`)
		b.wait(`[data-passkey-start]`)
	}},
	{name: "confirm-done", who: keyed, path: "/confirm", scripts: true, do: func(b *tab) {
		openWaiting(b)
		at := value[string](b, `location.pathname`)
		b.press(`button[value=passkey]`)
		b.wait(`[data-passkey-start]`)
		b.press(`[data-passkey-start]`)
		b.wait(`main a[href^="/signed"]`) // of the result, or of this page, which goes on by itself
		b.open(at)
		b.wait(`main a[href="/signatures"]`)
	}},
	{name: "signed-waiting", who: careful, path: "/sign", do: signWaiting},
	{name: "devices-to-prove", who: careful, path: "/devices", long: true},
	{name: "newcomer-start", who: newcomer, path: "/start"},
	{name: "newcomer-sign", who: newcomer, path: "/sign", long: true},
	{name: "newcomer-account", who: newcomer, path: "/account", long: true},
	{name: "newcomer-contact", who: newcomer, path: "/devices", long: true, do: func(b *tab) {
		b.fill(`input[name=contact]:not([type=hidden])`, "other-"+b.people.email)
		b.press(`form[action="/devices/do/contact"] button`)
		b.wait(`form[action$="/contact-confirm"]`)
	}},
	{name: "newcomer-activation", who: newcomer, path: "/devices", do: func(b *tab) {
		b.press(`form[action$="/activate"] button`)
		b.wait(`img`)
	}},
	{name: "newcomer-app", who: newcomer, path: "/devices", long: true, do: func(b *tab) {
		b.press(`form[action="/devices/do/app"] button`)
		b.wait(`img`)
	}},

	{name: "operator-start", who: operator, path: "/start"},
	{name: "operator", who: operator, path: "/operator"},
	{name: "operator-people", who: operator, path: "/operator/people"},
	{name: "operator-people-none", who: operator, path: "/operator/people?column0=Login&operation0=Equal&value0=unknown"},
	{name: "operator-people-chosen", who: operator, path: "/operator/people", do: func(b *tab) {
		b.press(`input[name=person]`)
		b.press(`button[value=lock]`)
		b.wait(`main form[method=post] button.sure`)
	}},
	{name: "operator-import", who: operator, path: "/operator/people/import"},
	{name: "operator-import-checked", who: operator, path: "/operator/people/import", do: func(b *tab) {
		b.attach(`input[name=list]`, "people.csv", "login;group;name\nlist-anna;Default;Анна\nlist-boris;Nowhere;Борис\n")
		b.press(`main form[method=post] button`)
		b.wait(`main form[action$="/import-add"]`)
	}},
	{name: "operator-register", who: operator, path: "/operator/people/new"},
	{name: "operator-person", who: operator, path: "/operator/people", do: firstPerson},
	{name: "operator-lock", who: operator, path: "/operator/people", do: func(b *tab) {
		firstPerson(b)
		b.press(`button[popovertarget="lock"]`)
		b.wait(`#lock select`)
	}},
	{name: "operator-notifications", who: operator, path: "/operator/people", do: func(b *tab) {
		firstPerson(b)
		b.press(`.tabs a[href$="/rules"]`)
		b.press(`a[href$="/policy-notification"]`)
		b.wait(`fieldset input`)
	}},
	{name: "operator-device", who: operator, path: "/operator/people", do: func(b *tab) {
		firstPerson(b)
		b.press(`.tabs a[href$="/sign-in"]`)
		b.press(`button[popovertarget="token-app"]`)
		b.press(`#token-app button.sure`)
		b.wait(`img`)
	}},
	{name: "operator-person-sign-in", who: operator, path: "/operator/people", do: func(b *tab) { personTab(b, "sign-in") }},
	{name: "operator-person-certificates", who: operator, path: "/operator/people", do: func(b *tab) { personTab(b, "certificates") }},
	{name: "operator-person-devices", who: operator, path: "/operator/people", long: true, do: func(b *tab) { personTab(b, "devices") }},
	{name: "operator-person-operations", who: operator, path: "/operator/people", long: true, do: func(b *tab) { personTab(b, "operations") }},
	{name: "operator-person-rules", who: operator, path: "/operator/people", do: func(b *tab) { personTab(b, "rules") }},
	{name: "operator-person-account", who: operator, path: "/operator/people", long: true, do: func(b *tab) {
		firstPerson(b)
		b.press(`a[href$="/account"].btn`)
		b.wait(`a[href$="/dn"]`)
	}},
	{name: "operator-person-history", who: operator, path: "/operator/people", do: func(b *tab) { personTab(b, "history") }},
	{name: "operator-missing", who: operator, path: "/operator/people/00000000-0000-4000-8000-000000000000", refused: true},
	{name: "operator-requests", who: operator, path: "/operator/requests"},
	{name: "operator-operations", who: operator, path: "/operator/operations"},
	{name: "operator-approvals", who: operator, path: "/operator/approvals"},
	{name: "operator-groups", who: operator, path: "/operator/groups"},
	{name: "operator-group-access", who: operator, path: "/operator/groups/group-access?of=Default"},
	{name: "operator-audit", who: operator, path: "/operator/audit"},
	{name: "operator-messages", who: operator, path: "/operator/messages"},
	{name: "operator-messages-preview", who: operator, path: "/operator/messages/preview"},
	{name: "operator-tokens", who: operator, path: "/operator/tokens"},
	{name: "operator-token-import", who: operator, path: "/operator/tokens/token-import"},
	{name: "operator-webhooks", who: operator, path: "/operator/webhooks"},
	{name: "operator-webhook-add", who: operator, path: "/operator/webhooks/webhook-add"},
	{name: "operator-services", who: operator, path: "/operator/services"},
	{name: "operator-installation", who: operator, path: "/operator/installation"},
}

// encryptFiles encrypts two files for the reader, who is found by name.
func encryptFiles(b *tab) {
	b.attach(`input[name=file]`, "Договор поставки №1.pdf", string(tamgatest.PDFOf(2000)), "notes.txt", "text")
	b.fill(`input[name=q]`, "demo")
	b.press(`button[value=find]`)
	b.press(`[data-found] input[name=to]`)
	b.press(`main form .act button`)
	b.wait(`a[href^="/encrypted/document/"]`)
}

// verify verifies files on its page. A script sends the form when they are chosen.
func (b *tab) verify(files ...string) {
	b.Helper()
	b.attach(`#verify input[name=file]`, files...)
	if b.look.noScript {
		b.press(`#verify .go`)
	}
}

// firstPerson opens the record of the first person of the list.
func firstPerson(b *tab) {
	b.press(`main table a[href^="/operator/people/"]`)
	b.wait(`.tabs a[href$="/history"]`)
}

// personTab opens a page of the record of the first person.
func personTab(b *tab, name string) {
	firstPerson(b)
	b.press(`.tabs a[href$="/` + name + `"]`)
	b.wait(`.tabs a[href$="/` + name + `"][aria-current]`)
}

// signWaiting signs a file, which waits for a confirmation.
func signWaiting(b *tab) {
	b.attach(`input[name=file]`, "Договор.txt", "text")
	b.press(`main form button:not([name]):not([type])`)
	b.wait(`main a[href^="/confirm/"]`)
}

// openWaiting opens the operation that waits for a confirmation, with all ways to confirm it.
func openWaiting(b *tab) {
	b.open(value[string](b, `document.querySelector('main a[href^="/confirm/"]').pathname`) + "?others=yes")
	b.wait(`button[name=choice]`)
}

// sixDigits is a code in a message.
var sixDigits = regexp.MustCompile(`\b[0-9]{6}\b`)

// enter signs a person in and stays at the first page.
func (b *tab) enter(who person) {
	b.Helper()
	switch who {
	case anonymous:
	case demo:
		b.signIn("/start", b.Dev.User.Login, b.Dev.User.Password)
	case operator:
		b.signIn("/start", b.Dev.Operator.Login, b.Dev.Operator.Password)
	case newcomer:
		b.signIn("/start", b.people.newcomer, tamgatest.Password)
	case careful:
		b.open("/start")
		b.fillSignIn(b.people.careful, tamgatest.Password)
		b.press(`button[value=otpviaemail]`)
		b.fill(`input[name=code]`, b.captured(b.people.email, sixDigits))
		b.press(`main form button`)
		b.until(`document.readyState === "complete" && location.pathname === "/start"`)
		b.open("/sign")
		signWaiting(b)
	case handy:
		b.open("/start")
		b.fillSignIn(b.people.handy, tamgatest.Password)
		b.press(`button[name=choice][value=otpviasms]`)
		b.fill(`input[name=code]`, b.captured(b.people.desk, sixDigits))
		b.press(`main form button`)
		b.until(`document.readyState === "complete" && location.pathname === "/start"`)
		b.open("/sign")
		signWaiting(b)
	case keyed:
		b.authenticator()
		b.signIn("/devices", b.people.keyed, tamgatest.Password)
		b.fill(`form[action$="/passkey"] input[name=name]`, "Ноутбук")
		b.press(`form[action$="/passkey"] button`)
		b.wait(`[data-passkey-start]`)
		b.press(`[data-passkey-start]`)
		b.see("Ноутбук")
		b.open("/sign")
		signWaiting(b)
	}
}

// TestPages judges every page of rows.
func TestPages(t *testing.T) {
	s := start(t, append(tamgatest.WithPasskeys(), "--set", "confirmation.codes.resend=1s")...)
	s.foreign = s.signedElsewhere(t)
	all := looks
	switch {
	case full():
		all = slices.Concat(looks, moreLooks)
	case testsize.Of() < testsize.Whole:
		all = shortLooks
	}
	ums := tamgatest.NewUMS(s.Server)
	for i, l := range all {
		people := s.people(ums, l, i)
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			tabs := map[person]*tab{}
			for _, r := range rows {
				if r.long && !full() || r.scripts && l.noScript {
					continue
				}
				t.Run(r.name, func(row *testing.T) {
					b := tabs[r.who]
					if b == nil {
						b = s.tab(t, l)
						b.T, b.people = row, people
						b.enter(r.who)
						tabs[r.who] = b
					}
					b.T, b.statuses = row, !r.refused
					b.open(r.path)
					if r.do != nil {
						r.do(b)
					}
					b.check(r.name)
				})
			}
		})
	}
}

// signedElsewhere returns a detached signature of "text" by a certificate whose issuer is unknown to the server.
func (s *stage) signedElsewhere(t *testing.T) (signature string) {
	t.Helper()
	tamgatest.TwoSteps(t, s.Server, s.Server, "gost2012-256", []byte("text"), func(message []byte, _ string) { signature = string(message) })
	return signature
}

// TestFindings breaks a page in every way that the tests look for.
func TestFindings(t *testing.T) {
	s := start(t)
	b := s.tab(t, looks[2])
	b.open("/verify")
	if f := b.findings(); len(f) > 0 {
		t.Fatalf("the page is wrong before it is broken: %q", f)
	}
	value[bool](b, `document.querySelector("main").insertAdjacentHTML("beforeend",
		"<img src='https://other.example/a.png'><div id=wide>wide</div><p style='color:red'>style of others</p>");
		document.querySelector("#wide").style.width = "400px"; document.title = ""; document.documentElement.lang = "de"; console.error("broken"); true`)
	b.until(`document.images[0].complete`)
	found := strings.Join(b.findings(), "\n")
	for _, want := range []string{"image-alt", "416 pixels", "no title", `the language "de"`, "console: error \"broken\"", "Content Security Policy", "style-src"} {
		if !strings.Contains(found, want) {
			t.Errorf("no finding %q in:\n%s", want, found)
		}
	}
}

// TestNarrow looks at what is special on the narrowest phone, with and without scripts: the first
// pages are a bar at the bottom, the others are in a menu, and a table that is wider than the window says so.
func TestNarrow(t *testing.T) {
	s := start(t)
	for _, l := range []look{
		{name: "narrow-menu-ru", language: "ru", width: 320, phone: true, noScript: true},
		{name: "narrow-menu-en", language: "en", width: 320, phone: true, dark: true},
	} {
		t.Run(l.name, func(t *testing.T) {
			b := s.tab(t, l)
			b.signIn("/certificates", s.Dev.User.Login, s.Dev.User.Password)
			if h := value[float64](b, `document.querySelector("header").offsetHeight`); h > 110 {
				t.Errorf("the header takes %.0f pixels of the height", h)
			}
			if value[bool](b, `document.querySelector(".menu").checkVisibility()`) {
				t.Error("the menu is open before its button is pressed")
			}
			b.press(`.me`)
			b.wait(`.menu a[href="/account"]`)
			b.check("menu")
			b.press(`.me`)
			b.press(`.pages a[href="/signatures"]`)
			b.until(`document.readyState === "complete" && location.pathname === "/signatures"`)

			// The sign is a shadow at the edge that more cells are behind. It is drawn on the page, so
			// that it is compared in a picture: the edge differs from the middle of the empty head.
			b.open("/account") // the table of notifications does not become cards
			if wide := value[bool](b, `(e => e.scrollWidth > e.clientWidth && e.tabIndex === 0)(document.querySelector("main .scroll"))`); !wide {
				t.Error("the table is as wide as the window, so this test shows nothing, or it has no focus")
			}
			right, left := b.edges(`main .scroll`)
			if !right || left {
				t.Errorf("before scrolling: a shadow at the right %t, at the left %t", right, left)
			}
			value[bool](b, `document.querySelector("main .scroll").scrollLeft = 10_000, true`)
			if right, left = b.edges(`main .scroll`); right || !left {
				t.Errorf("after scrolling: a shadow at the right %t, at the left %t", right, left)
			}
		})
	}
}

// edges reports whether a box that scrolls has a shadow at its edges: whether the outermost
// pixels differ from the colour of its paper.
func (b *tab) edges(selector string) (right, left bool) {
	b.Helper()
	at := value[[4]float64](b, `(e => { e.scrollIntoView(); const r = e.getBoundingClientRect(); return [r.left + scrollX + 1, r.top + scrollY + 4, r.width - 2, 1] })(document.querySelector(`+quote(selector)+`))`)
	shot, err := png.Decode(bytes.NewReader(call(b, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: new(true),
		Clip: &page.Viewport{X: math.Round(at[0]), Y: math.Round(at[1]), Width: math.Floor(at[2]), Height: 1, Scale: 1}}).Data))
	if err != nil {
		b.Fatal(err)
	}
	of := shot.Bounds()
	paper := shot.At(of.Min.X+of.Dx()/2, of.Min.Y)
	return shot.At(of.Max.X-2, of.Min.Y) != paper, shot.At(of.Min.X+1, of.Min.Y) != paper
}
