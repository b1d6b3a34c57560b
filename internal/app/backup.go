// SPDX-License-Identifier: Apache-2.0

package app

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/google/uuid"

	"tamga/internal/adapter/archive"
	"tamga/internal/adapter/blob"
	"tamga/internal/adapter/store"
	"tamga/internal/config"
	"tamga/internal/domain/vault"
)

// Manifest describes a backup.
type Manifest struct {
	Format     int       `json:"format"`
	Program    string    `json:"program"`  // version of the program
	TakenAt    time.Time `json:"taken_at"` // what was answered before is in the backup
	FinishedAt time.Time `json:"finished_at"`
	Engine     string    `json:"engine"`
	Schema     []int64   `json:"schema"` // migrations that were applied
	// MasterKeys are the names of the keys of the installation, which are not in the backup.
	MasterKeys []string `json:"master_keys"`
	// KeyCheck opens with the active master key only.
	KeyCheck  []byte `json:"key_check"`
	Documents int64  `json:"documents"` // those in the database, too
	Bytes     int64  `json:"bytes"`
	// Bucket has the name of the bucket whose objects are listed and not copied.
	Bucket string `json:"bucket,omitempty"`
}

const (
	manifestFormat = 2 // 1: of builds before the first release, whose tables are others
	databaseFile   = "database"
	documentsFile  = "documents.tar"
	bucketFile     = "bucket.jsonl"

	holdTime  = time.Minute // of a backup that was killed
	holdEvery = 10 * time.Second
)

// keyCheckPlace is where KeyCheck is sealed for.
var keyCheckPlace = vault.Place{Purpose: "check of a master key", Table: "backup", Row: "manifest", Column: "key_check"}

// BackupOptions say how a backup is made.
type BackupOptions struct {
	Dir        string // must not exist
	Version    string // of the program
	Recipients []age.Recipient
	CopyBucket bool // also copies the objects of a bucket
}

// Backup writes a backup of the database and of the stored documents while the service runs. Documents
// are not removed meanwhile. Master keys are never in it.
func (b *Base) Backup(ctx context.Context, o BackupOptions) (m Manifest, err error) {
	if err := b.usable(ctx); err != nil {
		return m, err
	}
	storage, err := b.Storage(ctx)
	if err != nil {
		return m, err
	}
	backups := store.Backups{DB: b.DB}
	ctx, release, err := hold(ctx, backups)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, release()) }()
	w, err := archive.Create(o.Dir, o.Recipients)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()

	m = Manifest{Format: manifestFormat, Program: o.Version, Engine: b.DB.Engine(), MasterKeys: slices.Sorted(maps.Keys(b.Config.MasterKeys.Files))}
	if m.KeyCheck, err = b.ring.Seal(keyCheckPlace, []byte("tamga")); err != nil {
		return m, err
	}
	// After the hold: a document that is in the snapshot is not removed before its copy.
	snapshot, err := backups.Snapshot(ctx)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, snapshot.Close()) }()
	m.TakenAt, m.Schema = snapshot.At.UTC().Truncate(time.Millisecond), snapshot.Versions
	if err := w.Add(databaseFile, func(out io.Writer) error { return snapshot.Write(ctx, out) }); err != nil {
		return m, err
	}
	if m.Documents, m.Bytes, err = snapshot.InRows(ctx); err != nil {
		return m, err
	}
	if b.Config.Bucket.Endpoint != "" && !o.CopyBucket {
		m.Bucket = b.Config.Bucket.Name
		err = w.Add(bucketFile, func(out io.Writer) error { return b.listBucket(ctx, snapshot, blob.NewRaw(storage.Storage), out, &m) })
	} else {
		err = w.Add(documentsFile, func(out io.Writer) error {
			return b.copyDocuments(ctx, snapshot, blob.NewRaw(storage.Storage), out, &m)
		})
	}
	if err != nil {
		return m, err
	}
	if err := context.Cause(ctx); err != nil {
		return m, err
	}
	m.FinishedAt = b.DB.Now().UTC().Truncate(time.Millisecond)
	if err := w.Finish(m); err != nil {
		return m, err
	}
	return m, backups.Note(ctx, uuid.NewString(), m.TakenAt, m.FinishedAt, m.Documents, m.Bytes)
}

// VerifyBackup reads all of a backup without an installation: checksums, encryption, the forms of its files. An
// encrypted one needs its identities.
func VerifyBackup(ctx context.Context, dir string, identities []age.Identity) (m Manifest, err error) {
	backup, err := archive.Open(ctx, dir, identities, &m)
	if err != nil {
		return m, err
	}
	if m.Format != manifestFormat || engineNames[m.Engine] == "" {
		return m, fmt.Errorf("the backup has format %d of the database %q, this program reads format %d of sqlite and postgres", m.Format, m.Engine, manifestFormat)
	}
	err = backup.Read(ctx, databaseFile, func(in io.Reader) error { return store.VerifySnapshot(ctx, m.Engine, m.Schema, in) })
	if err != nil {
		return m, fmt.Errorf("the database of the backup: %w", err)
	}
	if m.Bucket != "" {
		return m, backup.Read(ctx, bucketFile, func(in io.Reader) error {
			for lines := json.NewDecoder(in); ; {
				var object blob.Described
				if err := lines.Decode(&object); err == io.EOF {
					return nil
				} else if err != nil {
					return fmt.Errorf("%s: %w", bucketFile, err)
				}
			}
		})
	}
	return m, backup.Read(ctx, documentsFile, func(in io.Reader) error {
		for t := tar.NewReader(in); ; {
			h, err := t.Next()
			if err == io.EOF {
				_, err = io.Copy(io.Discard, in) // what follows must decrypt as well
				return err
			}
			if err == nil && h.Typeflag != tar.TypeReg {
				err = fmt.Errorf("%q is not a file", h.Name)
			}
			if err == nil {
				_, err = io.Copy(io.Discard, t)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", documentsFile, err)
			}
		}
	})
}

// Adopt closes the service over a database that was put back by its own means, such as a snapshot of its disk or
// PITR, to the state of a time: as after [Restore], codes, messages and numbers of revocation lists do not come again.
func (s *Services) Adopt(ctx context.Context, taken time.Time) error {
	if _, is, err := (store.Restores{DB: s.DB}).Closed(ctx); err != nil {
		return err
	} else if is {
		return errors.New("the service is closed already: it was restored or adopted, and waits for tamga restore release")
	}
	if !taken.Before(s.DB.Now()) {
		return errors.New("--taken-at: want the time to which the database was put back, which is over")
	}
	report, err := s.KeyReport(ctx)
	if err != nil {
		return err
	}
	if len(report.Processes) > 0 {
		return fmt.Errorf("%d servers run, or ran less than a minute ago: stop them all first", len(report.Processes))
	}
	return store.Restoring{At: taken}.Adopt(ctx, s.DB)
}

// hold keeps documents from being removed until release is called. The context ends when another
// process may remove documents.
func hold(ctx context.Context, backups store.Backups) (_ context.Context, release func() error, err error) {
	id := uuid.NewString()
	extend := func(ctx context.Context) error {
		now := backups.Now()
		held, err := backups.Hold(ctx, id, now, now.Add(holdTime))
		if err == nil && !held {
			err = errors.New("another backup of this installation runs, or was killed less than a minute ago")
		}
		return err
	}
	if err := extend(ctx); err != nil {
		return nil, nil, err
	}
	held, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(holdEvery)
		defer tick.Stop()
		for {
			select {
			case <-held.Done():
				return
			case <-tick.C:
			}
			if err := extend(held); err != nil {
				cancel(fmt.Errorf("holding the removal of documents: %w", err))
				return
			}
		}
	}()
	return held, func() error {
		cancel(nil)
		<-done
		return backups.Release(context.WithoutCancel(ctx), id)
	}, nil
}

// objectsOf calls each with the name of every object of a snapshot that is not in a row of the database.
func objectsOf(ctx context.Context, snapshot *store.Snapshot, each func(name string) error) error {
	return snapshot.Blobs(ctx, func(name string) error {
		if blob.InRow(name) {
			return nil
		}
		return each(name)
	})
}

// copyDocuments writes the stored objects of a snapshot as a tar file.
func (b *Base) copyDocuments(ctx context.Context, snapshot *store.Snapshot, raw blob.Raw, out io.Writer, m *Manifest) error {
	t := tar.NewWriter(out)
	err := objectsOf(ctx, snapshot, func(name string) error {
		err := raw.Copy(ctx, name, func(size int64) (io.Writer, error) {
			m.Documents, m.Bytes = m.Documents+1, m.Bytes+size
			return t, t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600})
		})
		return b.needed(name, err)
	})
	if err != nil {
		return err
	}
	return t.Close()
}

// listBucket writes a line of JSON for each stored object of a snapshot.
func (b *Base) listBucket(ctx context.Context, snapshot *store.Snapshot, raw blob.Raw, out io.Writer, m *Manifest) error {
	lines := json.NewEncoder(out)
	return objectsOf(ctx, snapshot, func(name string) error {
		d, err := raw.Describe(ctx, name)
		if err != nil {
			return b.needed(name, err)
		}
		m.Documents, m.Bytes = m.Documents+1, m.Bytes+d.Size
		return lines.Encode(d)
	})
}

// needed returns the error of an object, unless the object is missing because its time ended since
// the snapshot.
func (b *Base) needed(name string, err error) error {
	if blob.Missing(err) && blob.Outdated(name, b.DB.Now()) {
		return nil
	}
	return err
}

// RestoreOptions say what is restored.
type RestoreOptions struct {
	Dir        string
	Identities []age.Identity
	// Missing allows objects that are missing in a bucket.
	Missing bool
}

// RestoreReport is what a restore did.
type RestoreReport struct {
	Manifest
	Missing []string `json:"missing_documents"` // objects that are not in the bucket
}

// mostMissing bounds RestoreReport.Missing.
const mostMissing = 1000

// Restore writes a backup into the empty database and the empty document storage of a configuration. The
// service that starts over them is closed until its release.
func Restore(ctx context.Context, c *config.Config, o RestoreOptions) (report RestoreReport, err error) {
	report.Missing = []string{}
	m := &report.Manifest
	backup, err := archive.Open(ctx, o.Dir, o.Identities, m)
	if err != nil {
		return report, err
	}
	if m.Format != manifestFormat || engineNames[m.Engine] == "" {
		return report, fmt.Errorf("the backup has format %d of the database %q, this program reads format %d of sqlite and postgres: restore it with the program that made it (%q)", m.Format, m.Engine, manifestFormat, m.Program)
	}
	address, err := databaseURL(c)
	if err != nil {
		return report, err
	}
	if engine := engineOf(address); engine != m.Engine {
		return report, fmt.Errorf("the backup is of a database of %s, and the configuration names one of %s: set database to an empty database of %[1]s; a backup does not move a service to another kind",
			engineNames[m.Engine], engineNames[engine])
	}
	ring, err := openRing(c)
	if err != nil {
		return report, err
	}
	for _, name := range m.MasterKeys {
		if _, known := c.MasterKeys.Files[name]; !known {
			return report, fmt.Errorf("the backup needs the master key %q: add it to master_keys.files", name)
		}
	}
	if _, err := ring.Open(keyCheckPlace, m.KeyCheck); err != nil {
		if errors.Is(err, vault.ErrSealed) {
			err = vault.ErrWrongKey
		}
		return report, fmt.Errorf("the master keys of the configuration are not those of the backup: %w; name the files that the service had then in master_keys.files, or recover them by tamga key recover", err)
	}
	restoring := store.Restoring{Options: store.Options{URL: address, Limits: store.CommandLimits}, At: m.TakenAt, Versions: m.Schema, Program: m.Program}
	if err := restoring.Check(ctx); err != nil {
		return report, err
	}
	storage, err := (&Base{Config: c, ring: ring}).Storage(ctx)
	if err != nil {
		return report, err
	}
	raw := blob.NewRaw(storage.Storage)
	if m.Bucket != "" {
		err = backup.Read(ctx, bucketFile, func(in io.Reader) error { return checkBucket(ctx, raw, in, o.Missing, &report) })
	} else {
		undo, restoreErr := restoreDocuments(ctx, backup, raw)
		defer func() {
			if err != nil {
				undo()
			}
		}()
		err = restoreErr
	}
	if err != nil {
		return report, err
	}
	// The database is last: without it nothing starts.
	err = backup.Read(ctx, databaseFile, func(in io.Reader) error { return restoring.Restore(ctx, in) })
	return report, err
}

// engineNames are the kinds of databases for people, by store.DB.Engine.
var engineNames = map[string]string{"sqlite": "SQLite", "postgres": "PostgreSQL"}

func engineOf(address string) string {
	if strings.HasPrefix(address, "sqlite:") {
		return "sqlite"
	}
	return "postgres"
}

// restoreDocuments stores the objects of a backup. undo removes them again.
func restoreDocuments(ctx context.Context, backup *archive.Reader, raw blob.Raw) (undo func(), err error) {
	var stored []string
	undo = func() {
		for _, name := range stored {
			raw.Remove(context.WithoutCancel(ctx), name) // the error that led here counts
		}
	}
	empty, err := raw.Empty(ctx)
	if err == nil && !empty {
		err = errors.New("the storage of documents is not empty: restore into a new one, or empty it if a restore was stopped here")
	}
	if err != nil {
		return undo, err
	}
	return undo, backup.Read(ctx, documentsFile, func(in io.Reader) error {
		t := tar.NewReader(in)
		for {
			h, err := t.Next()
			if err == io.EOF {
				// What follows the end of the tar file must decrypt as well.
				_, err = io.Copy(io.Discard, in)
				return err
			}
			if err != nil {
				return fmt.Errorf("%s: %w", documentsFile, err)
			}
			if h.Typeflag != tar.TypeReg {
				return fmt.Errorf("%s: %q is not a file", documentsFile, h.Name)
			}
			stored = append(stored, h.Name)
			if err := raw.Create(ctx, h.Name, h.Size, t); err != nil {
				return err
			}
		}
	})
}

// checkBucket looks for the objects of a manifest in the bucket.
func checkBucket(ctx context.Context, raw blob.Raw, in io.Reader, allowed bool, report *RestoreReport) error {
	lines := json.NewDecoder(in)
	missing := 0
	for {
		var want blob.Described
		if err := lines.Decode(&want); err == io.EOF {
			break
		} else if err != nil {
			return fmt.Errorf("%s: %w", bucketFile, err)
		}
		have, err := raw.Describe(ctx, want.Name)
		switch {
		case err == nil && have.Size == want.Size:
			continue
		case err != nil && !blob.Missing(err):
			return err
		}
		if missing++; len(report.Missing) < mostMissing {
			report.Missing = append(report.Missing, want.Name)
		}
	}
	if missing > 0 && !allowed {
		return fmt.Errorf("%d objects of the backup are missing in the bucket, or have another size, such as %s: bring them back from its versions, or restore with --missing-documents", missing, report.Missing[0])
	}
	return nil
}

// ReadIdentities reads a file with secret keys of age.
func ReadIdentities(path string) ([]age.Identity, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	defer clear(text)
	return archive.ParseIdentities(text)
}
