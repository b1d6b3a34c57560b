// SPDX-License-Identifier: Apache-2.0

package capture_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/capture"
	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/vault"
)

func TestBox(t *testing.T) {
	ring, err := vault.NewRing("k", map[string][]byte{"k": bytes.Repeat([]byte{7}, vault.MasterKeySize)}, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	box := capture.New(store.Captured{DB: storetest.SQLite(t)}, ring)
	var want []capture.Message
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for i, n := range append(box.Notifiers(), box.Notifiers()...) {
		m := notify.Message{ID: fmt.Sprint("message ", i), Channel: n.Channel(), To: "a@b.ru", Subject: "Тема", Text: fmt.Sprint("Код ", i), Picture: []byte{byte(i), 1}, Created: at}
		for range 2 { // sending again must not add a message
			if err := n.Send(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		want = append(want, capture.Message{ID: m.ID, At: at, Channel: m.Channel, To: m.To, Subject: m.Subject, Text: m.Text, Picture: m.Picture})
	}
	got, err := box.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if want[0].Channel != notify.Email || want[1].Channel != notify.SMS {
		t.Errorf("channels %s, %s", want[0].Channel, want[1].Channel)
	}
}
