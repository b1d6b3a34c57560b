// SPDX-License-Identifier: Apache-2.0

package tamgatest

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/app"
	"tamga/internal/app/dev"
)

// installation is the directory of serve --dev, made once for all servers of a test program:
// keys, certificates and hashes of passwords take most of the time of a first start.
type installation struct {
	// furnish makes the installation in an empty directory.
	furnish func(t testing.TB, dir string)

	mu    sync.Mutex
	files map[string][]byte // by path in the directory
}

var (
	furnished     = &installation{furnish: furnish}
	withOperators = &installation{furnish: func(t testing.TB, dir string) {
		furnished.copyTo(t, dir)
		addOperators(t, func(args ...string) {
			t.Helper()
			r := Run(context.Background(), "", slices.Concat(args, []string{"--data", dir}, cheap)...)
			if r.Failure != nil {
				t.Fatalf("tamga %s: %v\n%s", strings.Join(args, " "), r.Failure, r.Err)
			}
		})
	}}
)

// copyTo writes the installation into an empty directory.
func (i *installation) copyTo(t testing.TB, dir string) {
	t.Helper()
	for path, data := range i.made(t) {
		WriteFile(t, filepath.Join(dir, path), string(data))
	}
}

// made returns the files of the installation and makes it if no test has done so.
func (i *installation) made(t testing.TB) map[string][]byte {
	t.Helper()
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.files != nil {
		return i.files
	}
	dir := t.TempDir()
	i.furnish(t, dir)
	files := map[string][]byte{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			files[path] = ReadFile(t, filepath.Join(dir, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	i.files = files
	return files
}

// furnish does what the first start of serve --dev does. Certificates name port 0, where no
// server listens.
func furnish(t testing.TB, dir string) {
	t.Helper()
	storetest.SQLiteFile(t, filepath.Join(dir, "tamga.db")) // the migrations take a fifth of a start
	settings := []string{"listen=127.0.0.1:0"}
	for _, flag := range cheap {
		if flag != "--set" {
			settings = append(settings, flag)
		}
	}
	c, err := dev.Config(dir, settings, false)
	if err != nil {
		t.Fatal(err)
	}
	base, err := app.Open(t.Context(), c, app.ForServer, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer base.Close()
	services, err := base.Services(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dev.Furnish(t.Context(), services, dir); err != nil {
		t.Fatal(err)
	}
}
