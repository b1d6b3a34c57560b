// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
)

// TestSlowPhone signs on a phone with a slow processor. Its network goes away during an upload,
// and the person tries again. The back button leads to an empty form and signs nothing.
func TestSlowPhone(t *testing.T) {
	s := start(t)
	b := s.tab(t, looks[2])
	b.signIn("/sign", s.Dev.User.Login, s.Dev.User.Password)
	call(b, emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: 4})
	state := func(offline bool) {
		b.Helper()
		call(b, network.OverrideNetworkState, network.OverrideNetworkStateParams{Offline: offline, DownloadThroughput: -1, UploadThroughput: -1})
		call(b, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
			MatchedNetworkConditions: []*network.Conditions{{Offline: offline, Latency: 150, DownloadThroughput: 200_000, UploadThroughput: 200_000}},
		})
	}
	const send = `main form button:not([name]):not([type])`
	b.statuses = false // browsers complain about a network that is away
	state(true)
	b.attach(`input[name=file]`, "a.txt", strings.Repeat("text", 20_000))
	b.tap(send)
	b.see("The connection was lost before all files were sent, and nothing is signed. Press the button again.")
	if value[bool](b, `document.querySelector("main form button").disabled`) {
		t.Error("the form cannot be sent again")
	}
	b.check("slow-lost")
	state(false)
	b.tap(send)
	b.until(`document.readyState === "complete" && location.pathname === "/signed"`)
	b.wait(`main a[href^="/signed/document/"]`)
	b.check("slow-signed")
	at := value[string](b, `location.href`)
	value[bool](b, `history.back(), true`)
	b.until(`document.readyState === "complete" && location.pathname === "/sign"`)
	b.wait(`input[name=file]`)
	if n := value[int](b, `document.querySelector("input[name=file]").files.length`); n != 0 { // a second press would sign them again
		t.Errorf("after the back button, %d files are chosen", n)
	}
	value[bool](b, `history.forward(), true`)
	b.until(`document.readyState === "complete" && location.href === ` + quote(at))
	b.open("/documents")
	if n := value[int](b, `document.querySelectorAll('main a[href^="/documents/"]:not([href="/documents/kept"])').length`); n != 2 {
		t.Errorf("%d documents are stored, want the file and its signature", n)
	}
}
