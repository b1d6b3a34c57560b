// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"tamga/internal/judge"
	"tamga/internal/tamgatest"
	"tamga/internal/testsize"
)

// TestSignAndVerify signs files with the scripts of the pages, downloads a signature, verifies
// it and saves the report.
func TestSignAndVerify(t *testing.T) {
	s := start(t)
	b := s.tab(t, looks[0])
	folder := b.downloads()
	b.signIn("/sign", s.Dev.User.Login, s.Dev.User.Password)
	const hostile = `<img src=x onerror=alert(1)>.txt`
	b.attach(`input[name=file]`, "a.txt", "text", hostile, "hostile")
	if n := value[int](b, `document.querySelectorAll("[data-files] progress").length`); n != 2 {
		t.Errorf("%d of 2 files have their progress", n)
	}
	b.press(`main form button:not([name]):not([type])`)
	b.see("2 documents are signed")
	b.see(hostile)
	b.press(`main a[href^="/signed/document/"]`)
	signature := b.saved(folder, "a.txt.sig")
	b.press(`header nav a[href="/verify"]`)
	b.see("Files are not stored")
	if value[bool](b, `document.querySelector("footer code") !== null`) {
		t.Error("a page without an error has the number of a request")
	}
	// The missing document is asked for in place. Its form sends itself, with the signature that the page has.
	b.verify("a.txt.sig", signature)
	b.see("the document is needed")
	b.check("verify-alone")
	b.attach(`[data-drop] input[type=file]`, "a.txt", "text")
	b.wait(`.verdict.valid`)
	b.see("Signature valid")
	// The page has the reports, and needs no file for them.
	b.press(`button[value="json.0"]`)
	if report := b.saved(folder, "report.json"); !strings.Contains(report, `"verdict": "passed"`) {
		t.Errorf("%s", report)
	}
	b.press(`button[value="pdf.0"]`)
	if report := b.saved(folder, "report.pdf"); !strings.HasPrefix(report, "%PDF-") {
		t.Errorf("%.100s", report)
	}
	// Files that are added join those that are there.
	b.open("/verify")
	b.verify("a.txt.sig", signature)
	b.see("the document is needed")
	b.verify("b.txt", "text", "c.txt", "text")
	b.see("2 files verified")
	b.see("a.txt.sig + b.txt")
	b.check("signed-and-verified")
}

// TestManyFiles drops 200 files at once: each is listed, one can be left out, and the others are signed in one operation.
func TestManyFiles(t *testing.T) {
	s := start(t)
	b := s.tab(t, looks[0])
	b.signIn("/sign", s.Dev.User.Login, s.Dev.User.Password)
	var files []string
	for i := range 200 {
		files = append(files, fmt.Sprintf("document %d.txt", i), fmt.Sprint("text ", i))
	}
	b.attach(`input[name=file]`, files...)
	b.until(`document.querySelectorAll("[data-files] li").length === 200`)
	b.press(`[data-files] li:last-child button`)
	b.until(`document.querySelectorAll("[data-files] li").length === 199`)
	b.press(`main form button:not([name]):not([type])`)
	b.see("199 documents are signed")
}

// TestLargePDF drops a PDF of 20 MB: its first page is drawn in the list of files. The test prints how long that takes, with pdf.js
// loaded; docs/performance.md has the goal.
func TestLargePDF(t *testing.T) {
	s := start(t)
	b := s.tab(t, looks[0])
	b.signIn("/sign", s.Dev.User.Login, s.Dev.User.Password)
	value[bool](b, `(() => {
		document.querySelector("input[name=file]").addEventListener("change", () => { document.dropped = performance.now(); }, {capture: true});
		new MutationObserver(() => {
			if (document.querySelector("[data-files] canvas.thumb")) document.drawn ??= performance.now();
		}).observe(document.querySelector("[data-files]"), {childList: true, subtree: true});
		return true;
	})()`)
	b.attach(`input[name=file]`, "large.pdf", string(tamgatest.PDFOfPages(20, 1<<20)))
	b.until(`document.drawn !== undefined`)
	if took := value[float64](b, `document.drawn - document.dropped`); took <= 0 {
		t.Errorf("the page was drawn %.0f ms before the file was there", -took)
	} else {
		t.Logf("the first page of 20 MB is drawn after %.0f ms", took)
	}
	if drawn := value[bool](b, `new Uint32Array(document.querySelector("canvas.thumb").getContext("2d").getImageData(0, 0, 80, 104).data.buffer).some(p => p !== 0)`); !drawn {
		t.Error("the picture of the page is empty")
	}
}

// TestSignAgain types only the PIN again after a wrong one. It cannot send the form again when one of
// its files is signed.
func TestSignAgain(t *testing.T) {
	s := start(t)
	certificate := s.Cert("gost2012-256", true)
	const files, button = `Array.from(document.querySelector("input[name=file]").files, f => f.name).join()`, `main form button:not([name]):not([type])`
	for _, l := range []look{looks[0], looks[3]} {
		t.Run(l.name, func(t *testing.T) {
			b := s.tab(t, l)
			b.signIn("/sign", s.Dev.User.Login, s.Dev.User.Password)
			b.statuses = false // refusals
			b.press(`input[name=certificate][value="` + strconv.FormatInt(certificate.ID, 10) + `"]`)
			b.press(`main details summary`)
			b.press(`input[name=stamp]`)
			b.press(`input[name=stamp_where][value=hand]`)
			b.fill(`input[name=stamp_left]`, "33")
			b.drop(`input[name=file]`, "a.pdf", string(tamgatest.PDFOf(2000)), "a.txt", "text")
			for _, pin := range []string{"wrong", "wrong again"} {
				b.fill(`input[name=pin]`, pin)
				b.press(button)
				b.wait(`input[name=pin][aria-invalid=true][aria-describedby="pin-hint refusal"] ~ [data-refusal] [role=alert]`)
				if at := value[string](b, `document.activeElement.name + document.activeElement.value`); at != "pin" {
					t.Errorf("the person is at %q, want the empty field of the PIN", at)
				}
				if got := value[string](b, files); got != "a.pdf,a.txt" || b.number("stamp_left") != 33 {
					t.Errorf("the form has the files %s and the stamp at %d mm", got, b.number("stamp_left"))
				}
				b.check("sign-wrong-pin")
			}
			without := func() {
				for range value[int](b, `document.querySelectorAll("[data-files] li").length`) {
					b.press(`[data-files] li:first-child button`)
				}
			}
			without()
			// One file is left out of many. No name hides what it ends with.
			b.drop(`input[name=file]`, "a.pdf", "no PDF", "invoice\u202etxt.exe", "program", "a.txt", "text")
			if got := value[string](b, `Array.from(document.querySelectorAll("[data-files] bdi"), n => n.textContent).join()`); got != "a.pdf,invoice txt.exe,a.txt" {
				t.Errorf("the list has the names %q", got)
			}
			b.check("sign-list")
			b.press(`[data-files] li:nth-child(2) button`)
			b.press(`[data-files] li:nth-child(1) button`)
			if got := value[string](b, files+` + " " + document.activeElement.getAttribute("aria-label").endsWith(": a.txt")`); got != "a.txt true" {
				t.Errorf("after two files were left out, the form has %q, and the person is not at the next one", got)
			}
			// What is wrong with no field is shown at the button.
			b.fill(`input[name=pin]`, certificate.PIN)
			b.press(button)
			b.wait(`[data-refusal]:has(+ progress):focus`)
			if value[bool](b, `document.querySelector("[aria-invalid]") !== null`) {
				t.Error("the field of the PIN is still wrong")
			}
			b.check("sign-refused")
			without()
			b.drop(`input[name=file]`, "a.pdf", string(tamgatest.PDFOf(2000)), "a.txt", "text")
			b.fill(`input[name=pin]`, certificate.PIN)
			b.press(button)
			b.wait(`main a[href^="/signed/all.zip"]`)

			// A form that has signed a file is gone. The page of the operation says which one is not signed.
			b.open("/sign")
			b.attach(`input[name=file]`, "a.txt", "text", "b.pdf", "no PDF")
			b.fill(`input[name=pin]`, certificate.PIN) // the certificate is the one that was used last
			b.press(button)
			b.wait(`main a[href^="/signed/document/"]`)
			if value[bool](b, `document.querySelector("main input[type=file]") !== null`) {
				t.Error("files that are signed can be sent again")
			}
			b.check("sign-in-part")
		})
	}
}

// drop drops files on a field. They are pairs of a name and a content.
func (b *tab) drop(selector string, files ...string) {
	b.Helper()
	value[bool](b, `((field, files) => {
		const dropped = new DataTransfer();
		for (let i = 0; i < files.length; i += 2) dropped.items.add(new File([files[i + 1]], files[i]));
		return field.closest(".drop").dispatchEvent(new DragEvent("drop", {dataTransfer: dropped, bubbles: true, cancelable: true}));
	})(document.querySelector(`+quote(selector)+`), `+quote(files)+`)`)
}

// TestCosign adds a signature to one in a file of its own: its document is dropped with it, or
// chosen in its own field, with and without scripts.
func TestCosign(t *testing.T) {
	s := start(t)
	for _, l := range []look{looks[0], {name: "no-script", language: "ru", width: 1280, noScript: true}} {
		t.Run(l.name, func(t *testing.T) {
			b := s.tab(t, l)
			folder := b.downloads()
			b.signIn("/sign", s.Dev.User.Login, s.Dev.User.Password)
			sign := func() string {
				b.press(`main form button:not([name]):not([type])`)
				b.wait(`main a[href^="/signed/document/"]`)
				if n := value[int](b, `document.querySelectorAll('main a.name[href^="/signed/document/"]').length`); n != 1 {
					t.Errorf("%d documents are signed, want 1", n)
				}
				b.press(`main a[href^="/signed/document/"]`)
				text := b.saved(folder, "a.txt.sig")
				if err := os.Remove(filepath.Join(folder, "a.txt.sig")); err != nil { // the next one has the same name
					t.Fatal(err)
				}
				b.open("/sign")
				return text
			}
			b.attach(`input[name=file]`, "a.txt", "text")
			first := sign()
			b.attach(`input[name=file]`, "a.txt", "text", "a.txt.sig", first)
			second := sign()
			b.attach(`input[name=file]`, "a.txt.sig", second)
			b.press(`main details:last-of-type summary`)
			b.attach(`input[name=original]`, "other.txt", "text")
			b.check("sign-detached-" + l.name)
			third := sign()
			if len(first) >= len(second) || len(second) >= len(third) {
				t.Errorf("the signatures have %d, %d and %d bytes", len(first), len(second), len(third))
			}
			b.open("/verify")
			b.verify("a.txt.sig", third, "a.txt", "text")
			b.wait(`.verdict.valid`)
			if n := value[int](b, `document.querySelectorAll(".times").length`); n != 3 {
				t.Errorf("%d signatures are verified, want 3", n)
			}
		})
	}
}

// TestStamp places the stamp of a PDF with the mouse.
func TestStamp(t *testing.T) {
	s := start(t)
	b := s.tab(t, looks[0])
	folder := b.downloads()
	b.signIn("/sign", s.Dev.User.Login, s.Dev.User.Password)
	b.press(`main details summary`)
	b.press(`[data-place] button`)
	b.see("Choose a PDF first.")
	b.attach(`input[name=file]`, "a.pdf", string(tamgatest.PDFOf(2000)))
	b.press(`[data-place] button`)
	b.wait(`[data-box]`)
	b.see("Page 1, bottom left.")
	const left, bottom = `Number(document.querySelector("[name=stamp_left]").value)`, `Number(document.querySelector("[name=stamp_bottom]").value)`
	b.run(chromedp.ScrollIntoView(chromedp.CSS("[data-box]")))
	type point struct{ X, Y float64 }
	at := value[point](b, `(r => ({X: r.left + r.width / 2, Y: r.top + r.height / 2}))(document.querySelector("[data-box]").getBoundingClientRect())`)
	b.run(chromedp.DragAndDropXY(at.X, at.Y, at.X+100, at.Y-100))
	if x, y := value[int](b, left), value[int](b, bottom); x <= 15 || y <= 15 {
		t.Errorf("after dragging, the stamp is at %d, %d mm", x, y)
	}
	// What is dragged is the mark of the chosen certificate, in its proportions, and the place is the person's now.
	const shown = `(i => [i.complete && i.naturalWidth > 0, new URL(i.src).pathname === "/sign/marks/" + document.querySelector("[name=certificate]:checked").value + "/" + document.querySelector("[name=stamp_form]:checked").value,
		Math.round(100 * i.getBoundingClientRect().width / i.getBoundingClientRect().height), document.querySelector("[name=stamp_where]:checked").value].join())(document.querySelector("[data-box] img"))`
	b.until(shown + ` === "true,true,280,hand"`)
	b.press(`input[name=stamp_form][value=compact]`)
	b.until(shown + ` === "true,true,500,hand"`)
	const page = `(b => ({X: b.left + b.width / 2, Y: b.top + 20}))(document.querySelector("[data-sheet] canvas").getBoundingClientRect())`
	top := value[point](b, page) // its place is said in words while it moves
	at = value[point](b, `(r => ({X: r.left + r.width / 2, Y: r.top + r.height / 2}))(document.querySelector("[data-box]").getBoundingClientRect())`)
	b.run(chromedp.DragAndDropXY(at.X, at.Y, top.X, at.Y-60))
	b.see("centre.")
	b.check("sign-stamp-dragged")
	x := value[int](b, left)
	b.press(`main form button:not([type])`)
	b.wait(`main a[href^="/signed/document/"]`)
	b.press(`main a[href^="/signed/document/"]`)
	signed := b.saved(folder, "a (signed).pdf")
	if text := judge.PDFViewers(t).Text([]byte(signed)); !strings.Contains(text, "Demo User") {
		t.Errorf("the document has no stamp:\n%s", text)
	}
	b.press(`main a[href^="/sign?"]`)
	b.see("Draw a stamp on a page")
	if again := value[int](b, left); again != x {
		t.Errorf("the stamp of the next document is at %d mm, want %d", again, x)
	}
	b.check("signed-with-stamp")
}

// TestWithoutScripts signs and verifies in a browser that runs no scripts.
func TestWithoutScripts(t *testing.T) {
	s := start(t)
	b := s.tab(t, look{name: "no-script", language: "en", width: 1280, noScript: true})
	b.signIn("/sign", s.Dev.User.Login, s.Dev.User.Password)
	b.attach(`input[name=file]`, "contract.pdf", string(tamgatest.PDFOf(2000)), "a.txt", "text")
	b.press(`main form button:not([name]):not([type])`)
	b.see("2 documents are signed")
	b.check("signed-without-scripts")
	b.press(`main a[href^="/sign?"]`)
	b.see("Drop documents anywhere on the page")
	b.press(`header nav a[href="/verify"]`)
	b.see("Files are not stored")
	if value[int](b, `document.scripts.length`) == 0 {
		t.Error("the page has no script, so this test shows nothing")
	}
	b.check("verify-without-scripts")
}

// TestCardOfEncrypted makes a card of an encrypted PDF after it was verified: the form keeps the file and its password.
func TestCardOfEncrypted(t *testing.T) {
	s := start(t)
	locked, err := judge.PDF(t).QPDF(tamgatest.PDFOf(2000), "--encrypt", "secret", "owner", "256", "--")
	if err != nil {
		t.Fatal(err)
	}
	status, answer := s.Stream("/api/documents", s.Token(), map[string]any{"Signature": map[string]any{
		"Type": "PDF", "Parameters": map[string]string{"PDFFormat": "CMS", "PDFPassword": "secret"}, "CertificateId": s.Cert("gost2012-256", false).ID,
	}}, locked)
	var signed []byte
	if err := json.Unmarshal(answer, &signed); err != nil || status != 200 {
		t.Fatalf("%d %.200s", status, answer)
	}
	b := s.tab(t, looks[0])
	folder := b.downloads()
	b.open("/verify")
	b.verify("locked.pdf", string(signed))
	b.wait(`details[open] input[name=password]`)
	b.fill(`#verify input[name=password]`, "secret")
	b.press(`#verify details .btn.primary`)
	b.see("Signature valid")
	b.press(`button[value="card.0"]`)
	if card := b.saved(folder, "locked.pdf (card).pdf"); !strings.Contains(card, string(signed)) {
		t.Errorf("the card has %d bytes", len(card))
	}
}

// TestVerificationOff looks at the first page, on a phone, of an installation that verifies
// nothing.
func TestVerificationOff(t *testing.T) {
	s := start(t, "--set", "verification.enabled=false")
	b := s.tab(t, looks[2])
	b.open("/")
	b.wait(`main a[href="/reference"]`)
	if value[bool](b, `document.querySelector("a[href^='/verify']") !== null`) {
		t.Error("the page leads to a page that is not there")
	}
	b.check("front-without-verification")
}

// TestShowPDF looks at a PDF that waits for a confirmation, page by page.
func TestShowPDF(t *testing.T) {
	if testsize.Of() == testsize.Quick {
		t.Skip("a browser of its own")
	}
	s := start(t)
	const square = "1 0 0 rg 100 100 300 300 re f"
	ums := tamgatest.NewUMS(s.Server)
	of := "/ums/user/" + s.Dev.User.ID
	for _, to := range []string{"phones", "phones/79250000078/confirm", "phones/79250000078/secondaryauth", "authmethod/otpviasms?level=1", "operationpolicy"} {
		ums.OK(tamgatest.Ours, "POST", of+"/"+to, map[string]string{"phones": `"79250000078"`, "operationpolicy": "[2]"}[to])
	}
	b := s.tab(t, looks[2])
	b.signIn("/sign", s.Dev.User.Login, s.Dev.User.Password)
	b.attach(`input[name=file]`, "<b>a<b>.pdf", strings.Replace(string(tamgatest.PDFOf(2000)), "stream\n"+strings.Repeat(" ", len(square)), "stream\n"+square, 1))
	b.press(`main form button:not([name]):not([type])`)
	b.wait(`main a[href^="/confirm/"]`)
	b.press(`main a[href^="/confirm/"]`)
	b.wait(`main a[href*="/shown/0"]`)
	b.open(value[string](b, `document.querySelector("main a[href*='/shown/0']").getAttribute("href")`))
	b.see("<b>a<b>.pdf")
	b.see("Page 1 / 1")
	if at := value[[]int](b, `(c => Array.from(c.getContext("2d").getImageData(c.width * 0.42, c.height * 0.7, 1, 1).data))(document.querySelector("canvas"))`); !slices.Equal(at, []int{255, 0, 0, 255}) {
		t.Errorf("the square of the document is not drawn: %v", at)
	}
	b.until(`document.querySelector("canvas").width > 100 && document.querySelectorAll("[data-view] button:disabled").length === 2`)
	b.check("confirm-pdf")
}

// TestEncryptForAnother encrypts two files and a folder for a person who is found while one types, and this person
// decrypts them.
func TestEncryptForAnother(t *testing.T) {
	s := start(t)
	w := tamgatest.NewUMS(s.Server)
	w.Command("cert", "issue", tamgatest.Plain, "--encryption", "--default")
	for _, l := range []look{looks[0], looks[3]} {
		t.Run(l.name, func(t *testing.T) {
			b := s.tab(t, l)
			folder := b.downloads()
			b.signIn("/encrypt", s.Dev.User.Login, s.Dev.User.Password)
			b.attach(`input[name=file]`, "Акт.txt", "an act", "b.txt", "another")
			// Enter in the search neither sends the form nor forgets its files. Who is ticked stays chosen.
			b.fill(`input[name=q]`, "pla\r")
			b.press(`[data-found] input[name=to]`)
			value[bool](b, `document.querySelector("input[name=q]").value = "", true`)
			b.fill(`input[name=q]`, "de\r")
			b.wait(`[data-found] input[name=to]`)
			if chosen := value[string](b, `Array.from(document.querySelectorAll("[data-chosen] input:checked + strong"), e => e.textContent).join()`); chosen != "plain" {
				t.Errorf("the chosen recipients are %q", chosen)
			}
			if files := value[int](b, `document.querySelector("input[name=file]").files.length`); files != 2 {
				t.Errorf("the form has %d files after the search", files)
			}
			b.check("encrypt-chosen")
			b.press(`main form .act button`)
			b.wait(`a[href^="/encrypted/document/"]`)
			b.check("encrypted-for-another")
			b.press(`main a[href^="/encrypted/document/"]`)
			message := b.saved(folder, "Акт.txt.p7m")
			if strings.Contains(message, "an act") {
				t.Fatal("the file is not encrypted")
			}

			other := s.tab(t, l)
			folder = other.downloads()
			other.signIn("/decrypt", tamgatest.Plain, tamgatest.Password)
			other.attach(`input[name=file]`, "Акт.txt.p7m", message)
			other.press(`button[value=look]`)
			other.wait(`input[name=stored]`)
			if l.language == "en" {
				other.see("Opens with the certificate")
			}
			other.check("decrypt-looked")
			other.press(`main form .act button.primary`)
			other.wait(`a[href^="/decrypted/document/"]`)
			other.check("decrypted-by-another")
			other.press(`main a[href^="/decrypted/document/"]`)
			if text := other.saved(folder, "Акт.txt"); text != "an act" {
				t.Errorf("decrypted: %q", text)
			}
		})
	}
}

// TestWaits has one page wait for a confirmation that another page gives. The first goes on by itself.
func TestWaits(t *testing.T) {
	s := start(t, append(tamgatest.WithPasskeys(), "--set", "confirmation.codes.resend=1s")...)
	l := looks[0]
	people := s.people(tamgatest.NewUMS(s.Server), l, 0)
	b := s.tab(t, l)
	b.people = people
	b.enter(careful)
	b.open(value[string](b, `document.querySelector('main a[href^="/confirm/"]').pathname`))
	at := value[string](b, `location.pathname`)
	b.open("/signed?operation=" + strings.TrimPrefix(at, "/confirm/"))
	b.wait(`[data-wait]`)
	// The other page is a request of the same session.
	value[bool](b, `fetch(`+quote(at)+`, {method: "POST", body: new URLSearchParams({decline: "yes"})}).then(a => a.ok)`)
	b.until(`document.readyState === "complete" && document.querySelector("[data-state]") === null`)
	b.see("Declined")
}

// TestChangedLater verifies a PDF whose page was changed after signing: both versions are shown side by side, and the signed
// one is downloaded without another choice of the file.
func TestChangedLater(t *testing.T) {
	s := start(t)
	b := s.tab(t, looks[0])
	folder := b.downloads()
	b.signIn("/sign", s.Dev.User.Login, s.Dev.User.Password)
	b.attach(`input[name=file]`, "a.pdf", string(tamgatest.PDFOf(2000)))
	b.press(`main form button:not([name]):not([type])`)
	b.wait(`main a[href^="/signed/document/"]`)
	b.press(`main a[href^="/signed/document/"]`)
	signed := b.saved(folder, "a (signed).pdf")
	b.open("/verify")
	b.verify("changed.pdf", tamgatest.ChangedLater(t, signed))
	b.wait(`.verdict.invalid`)
	b.until(`Array.from(document.querySelectorAll("[data-compare] canvas"), c => c.width).join() === "560,560"`)
	b.check("verify-changed")
	b.press(`button[value="signed.0"]`)
	if version := b.saved(folder, "changed (signed version).pdf"); version != signed {
		t.Errorf("the signed version has %d bytes, want %d", len(version), len(signed))
	}
}
