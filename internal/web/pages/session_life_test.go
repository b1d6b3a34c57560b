// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"database/sql"
	"testing"
	"time"

	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

// TestLongestSession checks that a session ends pages.session after its sign-in, however much it is
// used: its access token is valid that long and is never renewed.
func TestLongestSession(t *testing.T) {
	t.Parallel()
	s := tamgatest.Start(t, "--set", "pages.session=3h")
	b := pagetest.New(t, s)
	b.Shows(b.SignIn("/start", s.Dev.User.Login, s.Dev.User.Password), "Nothing waits for your answer")
	db, err := sql.Open("sqlite", "file:"+s.Path("tamga.db")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var life time.Duration
	var tokens int
	lives := func() {
		t.Helper()
		var milliseconds int64
		if err := db.QueryRowContext(t.Context(), `SELECT count(*), max(expires_at - created_at) FROM access_tokens WHERE client_id = 'tamga-pages'`).Scan(&tokens, &milliseconds); err != nil {
			t.Fatal(err)
		}
		life = time.Duration(milliseconds) * time.Millisecond
	}
	lives()
	if tokens != 1 || life <= 3*time.Hour-time.Second || life > 3*time.Hour { // ends are whole seconds
		t.Errorf("%d tokens live for %s, want one for 3h", tokens, life)
	}
	b.Shows(b.Get("/start"), "Nothing waits for your answer")
	b.Shows(b.Post("/language", map[string][]string{"language": {"en"}, "to": {"/start"}}), "Nothing waits for your answer")
	if lives(); tokens != 1 {
		t.Errorf("a session that is used has %d tokens", tokens)
	}
	if _, err := db.ExecContext(t.Context(), `UPDATE access_tokens SET expires_at = created_at + 1`); err != nil {
		t.Fatal(err)
	}
	b.Shows(b.Get("/start"), `name="ticket"`)
}
