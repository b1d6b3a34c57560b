// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"log/slog"
	"strings"
	"testing"

	"tamga/internal/app"
	"tamga/internal/app/dev"
	"tamga/internal/web/pages"
)

// TestTrialOnLoopback checks that the buttons to try exist only while this machine alone can
// reach the server.
func TestTrialOnLoopback(t *testing.T) {
	t.Parallel()
	everywhere, err := dev.Config(t.TempDir(), []string{"listen=0.0.0.0:0"}, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := everywhere.Validate(nil); err == nil || !strings.Contains(err.Error(), "listens on loopback only") {
		t.Errorf("a server for this machine alone may listen everywhere: %v", err)
	}
	for _, anywhere := range []bool{false, true} {
		dir := t.TempDir()
		conf, err := dev.Config(dir, []string{"listen=localhost:0"}, anywhere)
		if err != nil {
			t.Fatal(err)
		}
		base, err := app.Open(t.Context(), conf, app.ForServer, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer base.Close()
		if err := base.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		services, err := base.Services(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		d, err := dev.Furnish(t.Context(), services, dir)
		if err != nil {
			t.Fatal(err)
		}
		if has := d.Trial() != nil; has == anywhere || (d.StartURL != "") == anywhere {
			t.Errorf("with --dev-anywhere %t the buttons exist: %t", anywhere, has)
		}
	}
}

// TestRights checks that each page has a right, and that the page of components exists with
// serve --dev alone. A program with a page without a right does not start, see TestMount of
// package rest.
func TestRights(t *testing.T) {
	for _, isDev := range []bool{true, false} {
		components := false
		routes := pages.New(pages.Settings{Dev: isDev}, pages.Bare()).Routes()
		if len(routes) < 250 {
			t.Fatalf("only %d pages", len(routes))
		}
		for _, r := range routes {
			components = components || r.Path == "/_/components"
			if r.Right == "" {
				t.Errorf("%s %s has no right", r.Method, r.Path)
			}
		}
		if components != isDev {
			t.Errorf("with --dev %t there is a page of components: %t", isDev, components)
		}
	}
}
