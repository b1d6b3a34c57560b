// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"strings"
	"testing"

	"tamga/internal/tamgatest"
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
	b.press(`main form button:not([name])`)
	b.see("2 documents are signed")
	b.see(hostile)
	b.press(`main a[href^="/signed/document/"]`)
	signature := b.saved(folder, "a.txt.sig")
	b.press(`header nav a[href="/verify"]`)
	b.see("Nothing is stored")
	b.attach(`input[name=file]`, "a.txt.sig", signature)
	b.attach(`input[name=original]`, "a.txt", "text")
	b.press(`main form button:not([name])`)
	b.see("The signature is valid")
	// The form still has its files, so it can make a report of them.
	b.press(`button[value=json]`)
	if report := b.saved(folder, "report.json"); !strings.Contains(report, `"verdict": "passed"`) {
		t.Errorf("%s", report)
	}
	b.press(`button[value=pdf]`)
	if report := b.saved(folder, "report.pdf"); !strings.HasPrefix(report, "%PDF-") {
		t.Errorf("%.100s", report)
	}
	b.check("signed-and-verified")
}

// TestWithoutScripts signs and verifies in a browser that runs no scripts.
func TestWithoutScripts(t *testing.T) {
	s := start(t)
	b := s.tab(t, look{name: "no-script", language: "en", width: 1280, noScript: true})
	b.signIn("/sign", s.Dev.User.Login, s.Dev.User.Password)
	b.attach(`input[name=file]`, "contract.pdf", string(tamgatest.PDFOf(2000)), "a.txt", "text")
	b.press(`main form button:not([name])`)
	b.see("2 documents are signed")
	b.check("signed-without-scripts")
	b.press(`main a[href="/sign"]`)
	b.see("By the kind of each file")
	b.press(`header nav a[href="/verify"]`)
	b.see("Nothing is stored")
	if value[int](b, `document.scripts.length`) == 0 {
		t.Error("the page has no script, so this test shows nothing")
	}
	b.check("verify-without-scripts")
}
