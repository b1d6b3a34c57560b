// SPDX-License-Identifier: Apache-2.0

package notify

import "testing"

// TestDetail checks what a message says an event is about.
func TestDetail(t *testing.T) {
	for _, c := range []struct {
		event  Event
		ru, en string
	}{
		{Event{Detail: "request 12", Reason: "нет копии приказа"}, "Запрос № 12. Причина: нет копии приказа", "request 12, reason: нет копии приказа"},
		{Event{Detail: "certificate 3"}, "Сертификат № 3", "certificate 3"},
		{Event{Detail: "LockUser 1"}, "LockUser 1", "LockUser 1"},
		{Event{}, "", ""},
	} {
		if ru, en := c.event.detailIn("ru"), c.event.detailIn("en"); ru != c.ru || en != c.en {
			t.Errorf("%+v: %q, %q", c.event, ru, en)
		}
	}
}
