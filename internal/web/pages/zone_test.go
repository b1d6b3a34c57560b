// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"net/http"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

// TestTimesOfReader: times are in the zone of the browser, else in the one of the installation. The page names it.
func TestTimesOfReader(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	for cookie, want := range map[string]string{"": " MSK", "tamga-zone=Asia/Vladivostok": " UTC+10", "tamga-zone=../x": " MSK", "tamga-zone=Asia//Vladivostok": " MSK", "tamga-zone=/Asia/Vladivostok": " MSK", "tamga-zone=Mars/Base": " MSK"} {
		b := pagetest.Operator(w, w.Dev.Operator.Login)
		if name, value, has := strings.Cut(cookie, "="); has {
			b.Client.Jar.SetCookies(b.Address(), []*http.Cookie{{Name: name, Value: value, Path: "/"}})
		}
		p := b.Shows(b.Get("/operator/audit"), want, "tamga-zone=")
		if policy := p.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "script-src 'sha256-") || strings.Contains(policy, "unsafe") {
			t.Errorf("the policy is %q", policy)
		}
		if strings.ContainsRune(p.Text, '\ue0f1') {
			t.Error("a page has the mark of a time")
		}
	}
}
