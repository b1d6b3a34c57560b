// SPDX-License-Identifier: Apache-2.0

package sign_test

import (
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

// TestForm checks what a person sees before signing: the certificate that was used last comes first, a PIN says how many
// attempts it has left, and the page says how long files are stored.
func TestForm(t *testing.T) {
	t.Parallel()
	s := tamgatest.Start(t, "--set", "documents.temporary_life=3h")
	b := pagetest.New(t, s)
	b.Header.Set("Accept-Language", "ru")
	p := b.SignIn("/sign", s.Dev.User.Login, s.Dev.User.Password)
	b.Shows(p, "Хранятся 3\u00a0ч", "осталось 10 попыток, потом ключ заблокируется")
	file := pagetest.File{Field: "file", Name: "a.txt", Content: "a"}
	b.Is(b.Upload("/sign", map[string]string{"certificate": "6", "pin": "wrong"}, file), 400, "Осталось 9 попыток, потом ключ заблокируется.")
	b.Shows(b.Get("/sign"), "осталось 9 попыток")
	b.Shows(b.Upload("/sign", map[string]string{"certificate": "3"}, file), ">Подписан<")
	p = b.Shows(b.Get("/sign"), `name="certificate" value="3" checked`)
	if first, other := strings.Index(p.Text, `name="certificate" value="3"`), strings.Index(p.Text, `name="certificate" value="1"`); first > other {
		t.Error("the certificate that was used last is not the first")
	}
	p = b.Shows(b.Get("/sign?certificate=1"), `name="certificate" value="1" checked`)
	if strings.Contains(p.Text, "<details open><summary>Дополнительно") {
		t.Error("options are open that were not chosen")
	}
	b.Shows(b.Get("/sign?format=cades"), "<details open><summary>Дополнительно")
}

// TestZoneOfStamp checks that the mark in a PDF has its time in the zone of the installation, and names it.
func TestZoneOfStamp(t *testing.T) {
	t.Parallel()
	s := tamgatest.Start(t, "--set", "messages.time_zone=Europe/Moscow")
	b := pagetest.New(t, s)
	b.SignIn("/sign", s.Dev.User.Login, s.Dev.User.Password)
	fields := map[string]string{"certificate": "1", "stamp": "yes", "stamp_page": "1", "stamp_left": "20", "stamp_bottom": "30", "stamp_width": "120", "stamp_height": "60"}
	p := b.Shows(b.Upload("/sign", fields, pagetest.File{Field: "file", Name: "a.pdf", Content: string(tamgatest.PDFOf(2000))}))
	signed := b.Shows(b.Get(b.Find(p, pagetest.Result)[1])).Text
	if text := judge.PDFViewers(t).Text([]byte(signed)); !strings.Contains(text, "(МСК)") {
		t.Errorf("the mark names no zone:\n%s", text)
	}
}
