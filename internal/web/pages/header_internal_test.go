// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/user"
	"tamga/internal/web/pages/account"
	areaconfirm "tamga/internal/web/pages/confirm"
)

// failing has what the header says of a person, while err is nil.
type failing struct {
	account.People
	areaconfirm.Confirmations
	err error
}

func (f *failing) Get(context.Context, string) (user.User, error) {
	return user.User{DisplayName: "Anna"}, f.err
}

func (f *failing) Open(context.Context, string, string, int) ([]confirm.Record, error) {
	return make([]confirm.Record, 2), nil
}

// TestHeaderFails checks that a header that cannot be read is logged once, until it can be read again.
func TestHeaderFails(t *testing.T) {
	f := &failing{}
	var log bytes.Buffer
	a := &API{Deps: Deps{Log: slog.New(slog.NewTextHandler(&log, nil)), Account: account.Deps{People: f}, Confirm: areaconfirm.Deps{Confirmations: f}}}
	read := func(ctx context.Context, wantName string, wantWaiting, wantLines int) {
		t.Helper()
		about := a.person(ctx, audit.Principal{UserID: "1"})
		name, waiting := about.Name, about.Waiting.N
		if lines := strings.Count(log.String(), "\n"); name != wantName || waiting != wantWaiting || lines != wantLines {
			t.Errorf("the header has %q and %d, and the log %d lines: %s", name, waiting, lines, log.String())
		}
	}
	read(t.Context(), "Anna", 2, 0)
	f.err = errors.New("the database is away")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	read(gone, "", 0, 0)
	read(t.Context(), "", 0, 1)
	read(t.Context(), "", 0, 1)
	if !strings.Contains(log.String(), "the database is away") {
		t.Errorf("the log does not say why: %s", log.String())
	}
	f.err = nil
	read(t.Context(), "Anna", 2, 1)
	f.err = errors.New("away again")
	read(t.Context(), "", 0, 2)
}
