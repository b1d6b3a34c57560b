// SPDX-License-Identifier: Apache-2.0

package document_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tamga/internal/adapter/blob"
	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/document"
	"tamga/internal/domain/fault"
)

// shelf is a document store over a real database and a real directory.
type shelf struct {
	*document.Service
	dir string
	mu  sync.Mutex
	now time.Time
}

var (
	noon  = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	anna  = audit.Principal{UserID: "anna"}
	boris = audit.Principal{UserID: "boris"}
)

func open(t testing.TB) *shelf {
	t.Helper()
	db := storetest.SQLite(t)
	s := &shelf{dir: t.TempDir(), now: noon}
	storage, err := blob.NewDir(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	s.Service = &document.Service{
		Store: store.Documents{DB: db}, Uploads: store.Documents{DB: db},
		Bytes: blob.NewDocuments(blob.Options{Storage: storage, Plain: true}),
		Digest: func(context.Context, string) (document.Digest, error) {
			return document.Digest{Name: "SHA-256", New: sha256.New}, nil
		},
		Now: func() time.Time {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.now
		},
		Rand: rand.Reader,
	}
	return s
}

func (s *shelf) wait(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

// files are the files that hold bytes, finished or not.
func (s *shelf) files(t testing.TB) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.dir, "documents"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestLost reads documents whose bytes are gone or changed. The fault says so, and its cause names the
// document and the object for the log.
func TestLost(t *testing.T) {
	s := open(t)
	kept, err := s.Keep(t.Context(), anna, s.intake(t, anna, 1000, 1000, 9<<20))
	if err != nil {
		t.Fatal(err)
	}
	for n, spoil := range []func(path string) error{
		os.Remove,
		func(path string) error { return os.Truncate(path, 999) },
		func(path string) error { return os.Truncate(path, 0) },
	} {
		id := kept[n].ID
		object := "documents/" + id
		if err := spoil(filepath.Join(s.dir, object)); err != nil {
			t.Fatal(err)
		}
		_, err := s.Open(t.Context(), anna, id)
		if !fault.Is(err, fault.Lost) || !strings.Contains(err.Error(), "document "+id+" of user anna, object "+object+": ") {
			t.Errorf("document %d: %v", n, err)
		}
		if f, ok := fault.As(err); ok && strings.Contains(f.Message, "documents/") {
			t.Errorf("the client sees %q", f.Message)
		}
		if _, err := s.Open(t.Context(), boris, id); !fault.Is(err, fault.NotFound) {
			t.Errorf("document %d for another user: %v", n, err)
		}
	}
}

// filler is the content of all documents, each a prefix of it; see content.
var filler = func() []byte {
	b := make([]byte, 20<<20)
	mathrand.NewChaCha8([32]byte{20, 26}).Read(b)
	return b
}()

func content(size int) []byte { return filler[:size:size] }

// intake makes finished intakes of one request.
func (s *shelf) intake(t testing.TB, who audit.Principal, sizes ...int) []document.New {
	t.Helper()
	first, err := s.NewIntake(t.Context(), who)
	if err != nil {
		t.Fatal(err)
	}
	var list []document.New
	for i, size := range sizes {
		in := first
		if i > 0 {
			if in, err = first.Sibling(); err != nil {
				t.Fatal(err)
			}
		}
		for p := content(size); len(p) > 0; p = p[min(len(p), 60_000):] {
			if _, err := in.Write(p[:min(len(p), 60_000)]); err != nil {
				t.Fatal(err)
			}
		}
		if err := in.Finish(); err != nil {
			t.Fatal(err)
		}
		list = append(list, document.New{Content: in, Description: document.Description{Name: fmt.Sprintf("%d.bin", i)}})
	}
	return list
}

// put keeps one document.
func (s *shelf) put(t testing.TB, who audit.Principal, size int, d document.Description) document.Info {
	t.Helper()
	list := s.intake(t, who, size)
	list[0].Description = d
	infos, err := s.Keep(t.Context(), who, list)
	if err != nil {
		t.Fatal(err)
	}
	if err := list[0].Content.Close(); err != nil {
		t.Fatal(err)
	}
	return infos[0]
}

func wantFault(t testing.TB, err error, code string) {
	t.Helper()
	if !fault.Is(err, code) {
		t.Errorf("got %v, want %s", err, code)
	}
}

func TestKeepsWhatCameIn(t *testing.T) {
	s := open(t)
	// In memory, at its edge, beyond it, beyond a step of the quota.
	sizes := []int{1, 128 << 10, 128<<10 + 1, 20 << 20}
	for range 60 { // more than a request may keep in memory
		sizes = append(sizes, 100_000)
	}
	list := s.intake(t, anna, sizes...)
	infos, err := s.Keep(t.Context(), anna, list)
	if err != nil {
		t.Fatal(err)
	}
	for i, info := range infos {
		if err := list[i].Content.Close(); err != nil {
			t.Fatal(err)
		}
		want := content(sizes[i])
		sum := sha256.Sum256(want)
		if info.Size != int64(len(want)) || !bytes.Equal(info.Hash, sum[:]) || info.HashName != "SHA-256" || info.Name != fmt.Sprintf("%d.bin", i) {
			t.Errorf("document %d: %+v", i, info)
		}
		d, err := s.Open(t.Context(), anna, strings.ToUpper(info.ID))
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if n, err := d.WriteTo(&got); err != nil || n != int64(len(want)) || !bytes.Equal(got.Bytes(), want) {
			t.Errorf("document %d: wrote %d, %v", i, n, err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	found, err := s.ByHash(t.Context(), anna, infos[3].Hash)
	if err != nil || found.ID != infos[3].ID {
		t.Errorf("by hash: %v, %v", found.ID, err)
	}
	if n := len(s.files(t)); n != len(sizes) {
		t.Errorf("%d files for %d documents", n, len(sizes))
	}
	n := 0
	if err := s.List(t.Context(), anna, func(document.Info) error { n++; return nil }); err != nil || n != len(sizes) {
		t.Errorf("listed %d, %v", n, err)
	}
}

// TestOthersSeeNothing: every call answers the same for a document of another user and
// for a missing one.
func TestOthersSeeNothing(t *testing.T) {
	s := open(t)
	mine := s.put(t, anna, 10, document.Description{Name: "a"})
	his := s.put(t, boris, 10, document.Description{Name: "b"})
	name := "x"
	for _, id := range []string{mine.ID, "00000000-0000-4000-8000-000000000000", "", "../../etc/passwd", "urn:uuid:" + mine.ID, "{" + mine.ID + "}", strings.ReplaceAll(mine.ID, "-", ""), mine.ID + "\x00"} {
		_, err := s.Open(t.Context(), boris, id)
		wantFault(t, err, fault.NotFound)
		_, err = s.Info(t.Context(), boris, id)
		wantFault(t, err, fault.NotFound)
		wantFault(t, s.Patch(t.Context(), boris, id, document.Change{Name: &name}), fault.NotFound)
		wantFault(t, s.Delete(t.Context(), boris, id), fault.NotFound)
		wantFault(t, s.Link(t.Context(), boris, id, his.ID), fault.NotFound)
	}
	wantFault(t, s.Link(t.Context(), boris, his.ID, mine.ID), fault.NotFound)
	wantFault(t, s.Patch(t.Context(), boris, his.ID, document.Change{Parent: &mine.ID}), fault.NotFound)
	_, err := s.ByHash(t.Context(), audit.Principal{UserID: "carol"}, mine.Hash)
	wantFault(t, err, fault.NotFound)
	list := s.intake(t, boris, 10)
	list[0].Description.Parent = mine.ID
	_, err = s.Keep(t.Context(), boris, list)
	wantFault(t, err, fault.NotFound)
	found, err := s.Infos(t.Context(), boris, []string{mine.ID, his.ID, his.ID})
	if err != nil || len(found) != 3 || found[0].Record != nil || found[1].Record == nil || found[2].Record == nil {
		t.Errorf("%v, %v", found, err)
	}
	selected, err := s.Find(t.Context(), boris, []string{mine.ID, his.ID})
	if err != nil {
		t.Fatal(err)
	}
	_, err = selected.Open(t.Context(), mine.ID)
	wantFault(t, err, fault.NotFound)
	// An intake of one user cannot become a document of another.
	if _, err := s.Keep(t.Context(), boris, s.intake(t, anna, 10)); err == nil {
		t.Error("boris keeps what anna sent")
	}
}

func TestLives(t *testing.T) {
	s := open(t)
	temporary := s.put(t, anna, 200_000, document.Description{Name: "t", Temporary: true})
	permanent := s.put(t, anna, 10, document.Description{Name: "p"})
	yes, no := true, false
	changed := s.put(t, anna, 10, document.Description{Name: "c", Temporary: true})
	if err := s.Patch(t.Context(), anna, changed.ID, document.Change{Temporary: &no}); err != nil {
		t.Fatal(err)
	}
	s.wait(24*time.Hour - time.Second)
	reading, err := s.Open(t.Context(), anna, temporary.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer reading.Close()
	if err := s.Patch(t.Context(), anna, temporary.ID, document.Change{Temporary: &yes}); err != nil {
		t.Fatal(err) // it is temporary already, so its time stays
	}
	s.wait(time.Second)
	_, err = s.Open(t.Context(), anna, temporary.ID)
	wantFault(t, err, fault.NotFound)
	if err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(s.files(t)) != 3 {
		t.Error("the bytes went while they may still be read")
	}
	if n, err := reading.WriteTo(io.Discard); n != 200_000 || err != nil {
		t.Errorf("who was reading got %d bytes, %v", n, err)
	}
	s.wait(time.Hour)
	if err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if files := s.files(t); len(files) != 2 || slices.Contains(files, temporary.ID) {
		t.Errorf("after the sweep there are %v", files)
	}
	for _, id := range []string{permanent.ID, changed.ID} {
		if _, err := s.Info(t.Context(), anna, id); err != nil {
			t.Error(err)
		}
	}
	if err := s.Patch(t.Context(), anna, permanent.ID, document.Change{Temporary: &yes}); err != nil {
		t.Fatal(err)
	}
	info, err := s.Info(t.Context(), anna, permanent.ID)
	if err != nil || !info.Expires.Equal(s.Now().Add(24*time.Hour)) {
		t.Errorf("made temporary it is valid until %v, %v", info.Expires, err)
	}
}

func TestPatchAndLink(t *testing.T) {
	s := open(t)
	a := s.put(t, anna, 10, document.Description{Name: "a", Type: "t", Extra: "{}"})
	b := s.put(t, anna, 10, document.Description{Name: "b", Parent: strings.ToUpper(a.ID)})
	if b.Parent != a.ID {
		t.Errorf("the parent is %q", b.Parent)
	}
	name, none, wrong, self := "new", "", "no GUID", a.ID
	if err := s.Patch(t.Context(), anna, a.ID, document.Change{Name: &name, Extra: &none, Parent: &b.ID}); err != nil {
		t.Fatal(err)
	}
	if err := s.Link(t.Context(), anna, a.ID, strings.ToUpper(b.ID)); err != nil {
		t.Fatal(err)
	}
	info, err := s.Info(t.Context(), anna, a.ID)
	if err != nil || info.Name != "new" || info.Type != "t" || info.Extra != "" || info.Parent != b.ID || info.Linked != b.ID {
		t.Errorf("%+v, %v", info, err)
	}
	bad := "a\r\nb"
	long := strings.Repeat("ж", 256)
	for _, c := range []document.Change{{Parent: &wrong}, {Parent: &self}, {Name: &bad}, {Name: &long}, {Type: &bad}} {
		wantFault(t, s.Patch(t.Context(), anna, a.ID, c), fault.DocumentInfoInvalid)
	}
	wantFault(t, s.Link(t.Context(), anna, a.ID, a.ID), fault.DocumentInfoInvalid)
	wantFault(t, s.Link(t.Context(), anna, a.ID, "x"), fault.DocumentInfoInvalid)
	again, err := s.Info(t.Context(), anna, a.ID)
	if err != nil || again.Name != "new" || again.Parent != b.ID {
		t.Errorf("a refused change left %+v, %v", again, err)
	}
}

func TestRefuses(t *testing.T) {
	s := open(t)
	for _, name := range []string{"a\x00", "a\nb", "a\x7f", "a\u202egpj.exe", "a\u2066", "a\u2028", "a\u0085", "\xff", strings.Repeat("a", 256)} {
		list := s.intake(t, anna, 10)
		list[0].Description.Name = name
		_, err := s.Keep(t.Context(), anna, list)
		wantFault(t, err, fault.DocumentInfoInvalid)
	}
	for _, name := range []string{"", "Договор №1.pdf", "../../etc/passwd", strings.Repeat("ж", 255), `C:\Temp\a b.txt`} {
		if got := s.put(t, anna, 10, document.Description{Name: name}); got.Name != name {
			t.Errorf("%q became %q", name, got.Name)
		}
	}
	list := s.intake(t, anna, 10)
	list[0].Description.Extra = strings.Repeat("x", 4<<10+1)
	_, err := s.Keep(t.Context(), anna, list)
	wantFault(t, err, fault.DocumentInfoInvalid)
	_, err = s.Keep(t.Context(), anna, s.intake(t, anna, 0))
	wantFault(t, err, fault.ContentRequired)
	_, err = s.Keep(t.Context(), anna, nil)
	wantFault(t, err, fault.ContentRequired)
	_, err = s.Infos(t.Context(), anna, nil)
	wantFault(t, err, fault.InvalidParameters)
	_, err = s.Infos(t.Context(), anna, []string{"../x"})
	wantFault(t, err, fault.InvalidParameters)
	_, err = s.Infos(t.Context(), anna, make([]string, document.Many+1))
	wantFault(t, err, fault.InvalidParameters)
	if _, err := s.NewIntake(t.Context(), audit.Principal{}); err == nil {
		t.Error("an upload without a user was accepted")
	}
}

// usage returns the size that the quotas count, measured by what still fits.
func fits(t testing.TB, s *shelf, size int) bool {
	t.Helper()
	in, err := s.NewIntake(t.Context(), anna)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	_, err = in.Write(content(size))
	if err == nil {
		err = in.Finish()
	}
	if err == nil {
		_, err = s.Keep(t.Context(), anna, []document.New{{Content: in}})
	}
	if err != nil {
		wantFault(t, err, fault.InvalidObjectState)
		return false
	}
	return true
}

func TestQuotas(t *testing.T) {
	s := open(t)
	s.Rules = document.Rules{Own: document.Quota{Objects: 3, Bytes: 1 << 20}}
	if fits(t, s, 1<<20+1) {
		t.Error("more bytes than the quota has")
	}
	if !fits(t, s, 1<<20) { // to the last byte, although room is reserved in large steps
		t.Error("exactly the quota does not fit")
	}
	if fits(t, s, 1) {
		t.Error("a byte beyond the quota")
	}
	var ids []string
	if err := s.List(t.Context(), anna, func(i document.Info) error { ids = append(ids, i.ID); return nil }); err != nil || len(ids) != 1 {
		t.Fatal(ids, err)
	}
	if err := s.Delete(t.Context(), anna, ids[0]); err != nil {
		t.Fatal(err)
	}
	if files := s.files(t); len(files) != 0 {
		t.Errorf("after the deletion there are %v", files)
	}
	for range 3 {
		if !fits(t, s, 10) {
			t.Error("three do not fit")
		}
	}
	if fits(t, s, 10) {
		t.Error("a fourth fits")
	}
	if n := len(s.files(t)); n != 3 {
		t.Errorf("%d files", n)
	}
}

// failing is Bytes that fails on demand.
type failing struct {
	document.Bytes
	write, commit, remove error
}

func (f *failing) Create(ctx context.Context, name string) (document.Writer, error) {
	w, err := f.Bytes.Create(ctx, name)
	return &failingWriter{w, f}, err
}

func (f *failing) Remove(ctx context.Context, name string) error {
	if f.remove != nil {
		return f.remove
	}
	return f.Bytes.Remove(ctx, name)
}

type failingWriter struct {
	document.Writer
	f *failing
}

func (w *failingWriter) Write(p []byte) (int, error) {
	if w.f.write != nil {
		return 0, w.f.write
	}
	return w.Writer.Write(p)
}

func (w *failingWriter) Commit() error {
	if w.f.commit != nil {
		return w.f.commit
	}
	return w.Writer.Commit()
}

// TestFullStore: a full storage is a fault of its own and leaves nothing behind.
func TestFullStore(t *testing.T) {
	s := open(t)
	bytes := s.Bytes
	full := fmt.Errorf("disk: %w", document.ErrNoRoom)
	for _, size := range []int{10, 300_000} {
		for _, set := range []func(f *failing){
			func(f *failing) { f.write = full },
			func(f *failing) { f.commit = full },
		} {
			f := &failing{Bytes: bytes}
			s.Bytes = f
			set(f)
			in, err := s.NewIntake(t.Context(), anna)
			if err != nil {
				t.Fatal(err)
			}
			_, err = in.Write(content(size))
			if err == nil {
				err = in.Finish()
			}
			if err == nil {
				_, err = s.Keep(t.Context(), anna, []document.New{{Content: in}})
			}
			wantFault(t, err, fault.Unavailable)
			if err := in.Close(); err != nil {
				t.Error(err)
			}
			if files := s.files(t); len(files) != 0 {
				t.Errorf("%v are left", files)
			}
			if err := s.List(t.Context(), anna, func(document.Info) error { return errors.New("a document") }); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestStopsHalfWay: an upload that stops at any point cannot be found and leaves nothing:
// at once when the process goes on, after the sweep when it died.
func TestStopsHalfWay(t *testing.T) {
	s := open(t)
	whole := s.Rules
	for _, size := range []int{10, 300_000, 20 << 20} {
		for _, step := range []string{"written", "finished"} {
			for _, dies := range []bool{false, true} {
				s.Rules = whole
				in, err := s.NewIntake(t.Context(), anna)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := in.Write(content(size)); err != nil {
					t.Fatal(err)
				}
				if step == "finished" {
					if err := in.Finish(); err != nil {
						t.Fatal(err)
					}
				}
				if !dies {
					if err := errors.Join(in.Close(), in.Close()); err != nil {
						t.Error(err)
					}
					if files := s.files(t); len(files) != 0 {
						t.Errorf("%d %s: %v are left", size, step, files)
					}
				}
				if err := s.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
				if dies && size > 128<<10 && len(s.files(t)) == 0 {
					t.Errorf("%d %s: swept while the upload may go on", size, step)
				}
				s.wait(15 * time.Minute)
				if err := s.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
				if files := s.files(t); len(files) != 0 {
					t.Errorf("%d %s: after the sweep there are %v", size, step, files)
				}
				if err := s.List(t.Context(), anna, func(document.Info) error { return errors.New("half a document") }); err != nil {
					t.Error(err)
				}
				s.Rules.Own = document.Quota{Objects: 1, Bytes: 10}
				if !fits(t, s, 10) {
					t.Errorf("%d %s: the quota is used up", size, step)
				}
				if err := s.List(t.Context(), anna, func(i document.Info) error { return s.Delete(t.Context(), anna, i.ID) }); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestSlowUpload: a running upload is never swept. One that lost its lease does not
// become a document.
func TestSlowUpload(t *testing.T) {
	s := open(t)
	in, err := s.NewIntake(t.Context(), anna)
	if err != nil {
		t.Fatal(err)
	}
	for range 30 {
		if _, err := in.Write(content(100_000)); err != nil {
			t.Fatal(err)
		}
		s.wait(5 * time.Minute)
		if err := s.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := in.Finish(); err != nil {
		t.Fatal(err)
	}
	s.wait(16 * time.Minute)
	if err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = s.Keep(t.Context(), anna, []document.New{{Content: in}})
	wantFault(t, err, fault.Unavailable)
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	if files := s.files(t); len(files) != 0 {
		t.Errorf("%v are left", files)
	}
}

// TestDeletionSurvivesFailures: a deleted document is gone for all users even when its
// bytes cannot be removed yet.
func TestDeletionSurvivesFailures(t *testing.T) {
	s := open(t)
	f := &failing{Bytes: s.Bytes, remove: errors.New("no connection")}
	i := s.put(t, anna, 10, document.Description{})
	s.Bytes = f
	if err := s.Delete(t.Context(), anna, i.ID); err != nil {
		t.Fatal(err)
	}
	wantFault(t, s.Delete(t.Context(), anna, i.ID), fault.NotFound)
	if err := s.Sweep(t.Context()); err == nil {
		t.Error("a sweep that removed nothing says nothing")
	}
	if len(s.files(t)) != 1 {
		t.Fatal("the file is not there: the test shows nothing")
	}
	f.remove = nil
	if err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if files := s.files(t); len(files) != 0 {
		t.Errorf("%v are left", files)
	}
}

// TestSave: a result can be found once the transaction of the operation commits, and is
// swept otherwise.
func TestSave(t *testing.T) {
	s := open(t)
	parent := s.put(t, anna, 10, document.Description{Name: "p"})
	for _, size := range []int{10, 300_000} {
		save := func() (string, func(context.Context) error) {
			t.Helper()
			b := s.NewBatch(anna)
			id, err := b.Save(t.Context(), document.Description{Name: "r", Parent: parent.ID}, bytes.NewBuffer(content(size)))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Info(t.Context(), anna, id); !fault.Is(err, fault.NotFound) {
				t.Errorf("found before it was recorded: %v", err)
			}
			return id, b.Record
		}
		id, record := save()
		if err := s.Store.Atomic(t.Context(), record); err != nil {
			t.Fatal(err)
		}
		if i, err := s.Info(t.Context(), anna, id); err != nil || i.Parent != parent.ID || i.Size != int64(size) {
			t.Errorf("%+v, %v", i, err)
		}
		failed := errors.New("the operation failed")
		id, record = save()
		if err := s.Store.Atomic(t.Context(), func(ctx context.Context) error { return errors.Join(record(ctx), failed) }); !errors.Is(err, failed) {
			t.Fatal(err)
		}
		_, err := s.Info(t.Context(), anna, id)
		wantFault(t, err, fault.NotFound)
		lost, late := save()
		s.wait(15 * time.Minute)
		if err := s.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Store.Atomic(t.Context(), late); err == nil {
			t.Error("what was swept is recorded")
		}
		_, err = s.Info(t.Context(), anna, lost)
		wantFault(t, err, fault.NotFound)
		if err := s.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if files := s.files(t); len(files) != 3 {
		t.Errorf("there are %v, want the parent and two results", files)
	}
}

// TestDamagedBytes: a damaged file is an internal error.
func TestDamagedBytes(t *testing.T) {
	s := open(t)
	i := s.put(t, anna, 1000, document.Description{})
	file := filepath.Join(s.dir, "documents", i.ID)
	if err := os.Truncate(file, 999); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(t.Context(), anna, i.ID); err == nil || fault.Is(err, fault.NotFound) {
		t.Errorf("a cut file: %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(t.Context(), anna, i.ID); err == nil || fault.Is(err, fault.NotFound) {
		t.Errorf("a lost file: %v", err)
	}
}

// TestWalk runs random calls of several users, with failures and sweeps between, and
// compares the documents with a map.
func TestWalk(t *testing.T) {
	for _, inRow := range []int64{0, 100_000} { // half of the documents are smaller
		t.Run(fmt.Sprint(inRow), func(t *testing.T) { walk(t, inRow) })
	}
}

func walk(t *testing.T, inRow int64) {
	s := open(t)
	s.Rules.InRow = inRow
	f := &failing{Bytes: s.Bytes}
	s.Bytes = f
	type known struct {
		who  audit.Principal
		size int
	}
	have := map[string]known{}
	var order []string // of their making, so that the walk is the same each time
	pick := mathrand.New(mathrand.NewPCG(20, 26)).IntN
	for range 300 {
		who := []audit.Principal{anna, boris}[pick(2)]
		id := ""
		if len(order) > 0 {
			id = order[pick(len(order))]
		}
		f.write, f.commit, f.remove = nil, nil, nil
		switch pick(8) {
		case 0:
			f.write = document.ErrNoRoom
		case 1:
			f.commit = errors.New("disk")
		case 2:
			f.remove = errors.New("disk")
		}
		switch pick(4) {
		case 0, 1:
			size := 1 + pick(200)*1000
			in, err := s.NewIntake(t.Context(), who)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = in.Write(content(size)); err == nil {
				err = in.Finish()
			}
			if pick(5) == 0 {
				if pick(2) == 0 {
					in.Close()
				}
				break // or the process died
			}
			if err == nil {
				var infos []document.Info
				if infos, err = s.Keep(t.Context(), who, []document.New{{Content: in}}); err == nil {
					have[infos[0].ID] = known{who, size}
					order = append(order, infos[0].ID)
				}
			}
			in.Close()
		case 2:
			if id == "" {
				break
			}
			err := s.Delete(t.Context(), who, id)
			if mine := have[id].who.UserID == who.UserID; mine != (err == nil) {
				t.Fatalf("deleting: %v, mine %v", err, mine)
			} else if mine {
				delete(have, id)
				order = slices.DeleteFunc(order, func(o string) bool { return o == id })
			}
		case 3:
			s.wait(time.Duration(pick(20)) * time.Minute)
			s.Sweep(t.Context()) // may fail; a later sweep goes on
		}
	}
	f.write, f.commit, f.remove = nil, nil, nil
	s.wait(time.Hour)
	if err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for id, k := range have {
		d, err := s.Open(t.Context(), k.who, id)
		if err != nil {
			t.Fatalf("what was answered is lost: %v", err)
		}
		var got bytes.Buffer
		if _, err := d.WriteTo(&got); err != nil || !bytes.Equal(got.Bytes(), content(k.size)) {
			t.Errorf("%s: %d bytes, %v", id, got.Len(), err)
		}
		d.Close()
	}
	inFiles := 0
	for _, k := range have {
		if int64(k.size) > inRow {
			inFiles++
		}
	}
	if files := s.files(t); len(files) != inFiles {
		t.Errorf("%d files for %d documents", len(files), inFiles)
	}
}

// TestSweepWaitsForBackup: while a backup runs, the bytes of removed documents stay.
func TestSweepWaitsForBackup(t *testing.T) {
	s := open(t)
	held := true
	s.Held = func(context.Context) (bool, error) { return held, nil }
	d := s.put(t, anna, 100, document.Description{Name: "a"})
	if err := s.Delete(t.Context(), anna, d.ID); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{1, 0} {
		if err := s.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(s.files(t)); n != want {
			t.Errorf("held %t: %d files, want %d", held, n, want)
		}
		held = false
	}
}
