// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/tamgatest"
)

// gate is a named pipe in the place of a file. A process that reads the file waits there for the
// test, so a test can kill it in the middle of its work.
type gate struct {
	t    *testing.T
	path string
	text []byte // of the file
}

// newGate puts a gate in the place of a file.
func newGate(t *testing.T, path string) *gate {
	t.Helper()
	g := &gate{t, path, tamgatest.ReadFile(t, path)}
	remove(t, path)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return g
}

// open puts the file back.
func (g *gate) open() {
	g.t.Helper()
	remove(g.t, g.path)
	tamgatest.WriteFile(g.t, g.path, string(g.text))
}

// running is a process under test.
type running struct {
	t     *testing.T
	cmd   *exec.Cmd
	said  bytes.Buffer
	ended chan struct{}
}

func launch(t *testing.T, cmd *exec.Cmd) *running {
	t.Helper()
	r := &running{t: t, cmd: cmd, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &r.said, &r.said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { defer close(r.ended); cmd.Wait() }()
	t.Cleanup(r.kill)
	return r
}

// kill ends the process as a power cut would.
func (r *running) kill() {
	r.cmd.Process.Kill()
	<-r.ended
}

// arrives waits until the process opens a gate, and returns the end that it reads from.
func (r *running) arrives(g *gate) *os.File {
	r.t.Helper()
	opened := make(chan *os.File, 1)
	go func() {
		f, err := os.OpenFile(g.path, os.O_WRONLY, 0) // waits for a reader
		if err != nil {
			r.t.Error(err)
		}
		opened <- f
	}()
	select {
	case f := <-opened:
		return f
	case <-r.ended:
	}
	if f, err := os.OpenFile(g.path, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil {
		defer f.Close()
	}
	r.t.Fatalf("the process ended before %s: %s", filepath.Base(g.path), r.said.String())
	return nil
}

// arrivesAtOne waits until the process opens one of several gates. The others hold it for good.
func (r *running) arrivesAtOne(gates []*gate) {
	r.t.Helper()
	for {
		for _, g := range gates {
			f, err := os.OpenFile(g.path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
			if err == nil {
				f.Close()
				return
			}
			if !errors.Is(err, syscall.ENXIO) { // no process reads
				r.t.Fatal(err)
			}
		}
		select {
		case <-r.ended:
			r.t.Fatalf("the process ended before it read a document: %s", r.said.String())
		default:
			runtime.Gosched()
		}
	}
}

// passes lets the process read the file of a gate to its end, and closes the gate behind it.
func (r *running) passes(g *gate) {
	r.t.Helper()
	f := r.arrives(g)
	if _, err := f.Write(g.text); err != nil {
		r.t.Fatal(err)
	}
	// A new pipe, since the process may have the old one open when the test comes to it again.
	remove(r.t, g.path)
	if err := syscall.Mkfifo(g.path, 0o600); err != nil {
		r.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		r.t.Fatal(err)
	}
}

// objectsOf returns the paths of the files of stored documents.
func objectsOf(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, "blobs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.Contains(path, "documents") {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// endHold ends the hold of a backup that was killed, as the time does after a minute.
func endHold(t *testing.T, url string) {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	later := db.Now().Add(time.Hour)
	backups := store.Backups{DB: db}
	if held, err := backups.Hold(t.Context(), "test", later, later); err != nil || !held {
		t.Fatalf("held: %t, %v", held, err)
	}
	if err := backups.Release(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
}

// database returns the flags and the address of a new database for a directory.
type database func(t *testing.T, dir string) (flags []string, url string)

// onBothEngines runs a test over SQLite and PostgreSQL.
func onBothEngines(t *testing.T, test func(t *testing.T, make database)) {
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(t, func(_ *testing.T, dir string) ([]string, string) {
			return nil, "sqlite:" + filepath.Join(dir, "tamga.db")
		})
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		cluster := storetest.PostgreSQL(t)
		test(t, func(t *testing.T, _ string) ([]string, string) {
			url := cluster.Database(t)
			return []string{"--set", "database=" + url}, url
		})
	})
}

// TestBackupAndRestoreKilled kills a backup in the middle of the documents, and a restore in the middle
// of the documents and of the database. Nothing half is taken for whole, and each is done again.
func TestBackupAndRestoreKilled(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, make database) {
		dir := t.TempDir()
		flags, url := make(t, dir)
		p := tamgatest.StartIn(t, dir, flags...)
		documents := tamgatest.Documents(p, p.Token())
		content := bytes.Repeat([]byte("document "), 30_000)
		id := documents.Put(content, map[string]string{"FileName": "a.txt"})
		documents.Put(content, map[string]string{"FileName": "b.txt"})

		place := filepath.Join(t.TempDir(), "backups")
		backup := filepath.Join(place, "one")
		var objects []*gate
		for _, path := range objectsOf(t, dir) {
			objects = append(objects, newGate(t, path))
		}
		process := launch(t, p.CommandProcess("backup", backup))
		process.arrivesAtOne(objects)
		process.kill()
		for _, o := range objects {
			o.open()
		}
		left := tamgatest.Listing(t, place)
		if len(left) != 1 || !strings.HasPrefix(left[0], "one.part-") {
			t.Fatalf("a killed backup left %q", left)
		}
		if r := p.TryCommand("restore", filepath.Join(place, left[0])); r.Failure == nil || !strings.Contains(r.Failure.Error(), "is not a whole backup") {
			t.Errorf("a restore of a half backup: %v", r.Failure)
		}
		if r := p.TryCommand("backup", backup); r.Failure == nil || !strings.Contains(r.Failure.Error(), "killed less than a minute ago") {
			t.Errorf("a backup soon after a killed one: %v", r.Failure)
		}
		endHold(t, url)
		p.Command("backup", backup)
		if names := tamgatest.Listing(t, dir); slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, "snapshot") }) {
			t.Errorf("a snapshot was left: %q", names)
		}
		if err := p.Stop(); err != nil {
			t.Fatal(err)
		}

		for _, name := range []string{"documents.tar", "database"} {
			other := elsewhere(t, dir)
			flags, _ := make(t, other)
			to := append([]string{"--data", other}, flags...)
			copied := filepath.Join(t.TempDir(), "backup")
			if err := os.CopyFS(copied, os.DirFS(backup)); err != nil {
				t.Fatal(err)
			}
			half := newGate(t, filepath.Join(copied, name))
			restore := launch(t, tamgatest.ProcessOf(t, append([]string{"restore", copied}, to...)...))
			restore.passes(half) // its checksum
			f := restore.arrives(half)
			if _, err := f.Write(half.text[:len(half.text)-1]); err != nil { // most of it is read then
				t.Fatal(err)
			}
			restore.kill()
			f.Close()
			if r := tamgatest.Run(t.Context(), "", append([]string{"group", "list"}, to...)...); r.Failure == nil {
				t.Errorf("killed in %s: a command over a half restore says %s", name, r.Out)
			}
			if r := tamgatest.Run(t.Context(), "", append([]string{"restore", backup}, to...)...); r.Failure == nil || !strings.Contains(r.Failure.Error(), "empty it if a restore was stopped") {
				t.Errorf("killed in %s: a restore over the documents of a half one: %v", name, r.Failure)
			}
			// What the page of operation says to do.
			if err := os.RemoveAll(filepath.Join(other, "blobs")); err != nil {
				t.Fatal(err)
			}
			if r := tamgatest.Run(t.Context(), "", append([]string{"restore", backup}, to...)...); r.Failure != nil {
				t.Fatalf("killed in %s: the restore was not done again: %v", name, r.Failure)
			}
			if names := tamgatest.Listing(t, other); slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, "restoring") }) {
				t.Errorf("killed in %s: %q", name, names)
			}
			q := tamgatest.StartIn(t, other, flags...)
			q.Command("restore", "release", "--yes")
			released(t, q)
			if got := tamgatest.Documents(q, q.Token()).Content(id); !bytes.Equal(got, content) {
				t.Errorf("killed in %s: the document has %d bytes", name, len(got))
			}
		}
	})
}

// TestBackupWithoutRoom makes a backup and a restore where files may not grow, as on a full disk, and
// where a directory cannot be made. Both say so, leave nothing behind, and go well afterwards.
func TestBackupWithoutRoom(t *testing.T) {
	t.Parallel()
	p := tamgatest.Start(t)
	const size = 24 << 20 // more than the database
	content := bytes.Repeat([]byte("document"), size/8)
	id := tamgatest.Documents(p, p.Token()).Put(content, map[string]string{"FileName": "a.txt"})
	// limited runs a command whose files have at most kib KiB.
	limited := func(kib int, cmd *exec.Cmd) string {
		t.Helper()
		shell := exec.Command("sh", append([]string{"-c", `ulimit -f ` + fmt.Sprint(2*kib) + ` && exec "$@"`, "sh"}, cmd.Args...)...)
		shell.Env = cmd.Env
		out, err := shell.CombinedOutput()
		if err == nil {
			t.Errorf("%v did without room: %s", cmd.Args[1:3], out)
		}
		return string(out)
	}
	place := filepath.Join(t.TempDir(), "backups")
	backup := filepath.Join(place, "one")
	if said := limited(size>>11, p.CommandProcess("backup", backup)); !strings.Contains(said, "writing documents.tar") || !strings.Contains(said, "file too large") {
		t.Errorf("a backup says %s", said)
	}
	if names := tamgatest.Listing(t, place); len(names) > 0 {
		t.Errorf("a backup left %q", names)
	}
	if names := tamgatest.Listing(t, p.Dir); slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, "snapshot") }) {
		t.Errorf("a backup left %q", names)
	}
	file := tamgatest.WriteFile(t, filepath.Join(t.TempDir(), "file"), "")
	if r := p.TryCommand("backup", filepath.Join(file, "one")); r.Failure == nil || !strings.Contains(r.Failure.Error(), "not a directory") {
		t.Errorf("a backup below a file: %v", r.Failure)
	}
	p.Command("backup", backup) // no hold is left
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}

	dir := elsewhere(t, p.Dir)
	before := tamgatest.Listing(t, dir)
	restore := []string{"restore", backup, "--data", dir}
	for _, kib := range []int{64, size >> 11} { // not even a part of the database; half of the document
		if said := limited(kib, tamgatest.ProcessOf(t, restore...)); !strings.Contains(said, "file too large") {
			t.Errorf("%d KiB: a restore says %s", kib, said)
		}
		if names := objectsOf(t, dir); len(names) > 0 {
			t.Errorf("%d KiB: a restore left %q", kib, names)
		}
		names := slices.DeleteFunc(tamgatest.Listing(t, dir), func(name string) bool { return name == "blobs" })
		if !slices.Equal(names, before) {
			t.Errorf("%d KiB: a restore left %q beside %q", kib, names, before)
		}
	}
	r := tamgatest.Run(t.Context(), "", append(restore, "--set", "blob_dir="+filepath.Join(file, "blobs"))...)
	if r.Failure == nil || !strings.Contains(r.Failure.Error(), "not a directory") {
		t.Errorf("a restore below a file: %v", r.Failure)
	}
	if r := tamgatest.Run(t.Context(), "", restore...); r.Failure != nil {
		t.Fatal(r.Failure)
	}
	q := tamgatest.StartIn(t, dir)
	q.Command("restore", "release", "--yes")
	released(t, q)
	if got := tamgatest.Documents(q, q.Token()).Content(id); !bytes.Equal(got, content) {
		t.Errorf("the document has %d bytes", len(got))
	}
}
