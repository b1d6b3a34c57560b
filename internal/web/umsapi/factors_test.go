// SPDX-License-Identifier: Apache-2.0

package umsapi_test

import (
	"slices"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
)

// TestOlderContacts: every confirmed contact but the new one is told of a new factor,
// whatever the notification policy and the roles of the contacts say.
func TestOlderContacts(t *testing.T) {
	t.Parallel()
	for lang, text := range map[string]string{
		"ru": "Добавлено или заменено средство входа или подтверждения: ",
		"en": "A means of sign-in or confirmation is new or was replaced: ",
	} {
		t.Run(lang, func(t *testing.T) {
			t.Parallel()
			w := tamgatest.StartUMS(t, "--set", "messages.language="+lang)
			id, _, phone, email := w.Register()
			user := "/ums/user/" + id
			const added, open = "79260000002", "79260000003"
			for _, number := range []string{added, open} {
				w.OK(tamgatest.Ours, "POST", user+"/phones", `"`+number+`"`)
			}
			for _, at := range []string{"/phones/" + phone, "/phones/" + added, "/emails/" + email} {
				w.OK(tamgatest.Ours, "POST", user+at+"/confirm", "")
			}
			w.OK(tamgatest.Ours, "POST", user+"/notificationpolicy", `{}`)
			seen := len(w.Captured())
			// told returns who was told since the last call, and checks the text.
			told := func(factor string) (list []string) {
				t.Helper()
				all := w.Captured()
				for _, m := range all[seen:] {
					if !strings.Contains(m.Text, text+factor) {
						t.Errorf("to %s: %s", m.To, m.Text)
					}
					list = append(list, m.To)
				}
				seen = len(all)
				slices.Sort(list)
				return list
			}
			is := func(path, factor string, want ...string) {
				t.Helper()
				w.OK(tamgatest.Ours, "POST", user+path, "")
				slices.Sort(want)
				if got := told(factor); !slices.Equal(got, want) {
					t.Errorf("%s told %v, want %v", path, got, want)
				}
			}
			kinds := map[string][]string{
				"ru": {"телефон или почта для кодов", "метод аутентификации", "токен одноразовых паролей"},
				"en": {"phone or e-mail for codes", "authentication method", "token for one-time passwords"},
			}[lang]
			is("/phones/"+added+"/secondaryauth", kinds[0], phone, email)
			is("/phones/"+added+"/secondaryauth", kinds[0]) // it has the role already
			is("/authmethod/oath", kinds[1], phone, added, email)
			is("/authmethod/oath", kinds[1])
			is("/oath/app", kinds[2], phone, added, email)
			is("/phones/"+phone+"/notification?notification=true", "")
			if a := w.Ask(tamgatest.Ours, "POST", user+"/phones/"+open+"/secondaryauth", ""); a.Status != 400 || len(told("")) != 0 {
				t.Errorf("a refused change: %v", a)
			}
		})
	}
}
