// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"tamga/internal/adapter/blob"
	"tamga/internal/adapter/store"
	"tamga/internal/config"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/vault"
)

// configSource is where a configuration came from.
type configSource struct {
	file string
	set  []string
}

// FollowMasterKeys makes a server read master_keys again when the file of its configuration changes.
// settings are those of the command line.
func (b *Base) FollowMasterKeys(file string, settings []string) {
	b.source = configSource{file, settings}
}

// settleKeys checks master keys against the database and makes them those of this process. The active
// key changes only if all running processes have it; see vault.Settle.
func (b *Base) settleKeys(ctx context.Context, wanted *vault.Ring) error {
	keys := store.MasterKeys{DB: b.DB}
	if err := vault.Recognize(ctx, wanted, keys, store.Sealed{DB: b.DB}, b.DB.Now()); err != nil {
		return fmt.Errorf("master_keys: %w", wrongKey(b.Config, err))
	}
	list, err := keys.Processes(ctx)
	if err != nil {
		return err
	}
	settled, waiting, err := vault.Settle(wanted, list, b.DB.Now())
	if err != nil {
		return fmt.Errorf("master_keys: %w", err)
	}
	if len(waiting) > 0 {
		b.log.Warn("not all processes have the active master key, so the one before still seals", "active", wanted.Active(), "seals", settled.Active(), "without", fmt.Sprint(waiting))
	}
	if settled != b.ring {
		b.ring.Replace(settled)
	}
	return nil
}

// wrongKey adds what to do to the error of a wrong master key.
func wrongKey(c *config.Config, err error) error {
	if errors.Is(err, vault.ErrWrongKey) {
		return fmt.Errorf("%w; put the file back that the database was used with, or give the new key another name", err)
	}
	return err
}

// keyTick is how often a server looks for a change of its master keys, keysSeen how often it says that
// it runs.
const (
	keyTick  = 2 * time.Second
	keysSeen = 15 * time.Second
)

// process names this process among those that share the database.
var process = rand.Text()[:10]

// announce writes down which master keys this process has.
func (b *Base) announce(ctx context.Context) error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return store.MasterKeys{DB: b.DB}.PutProcess(ctx, vault.Process{
		ID: process, Host: host, Version: b.version,
		Active: b.ring.Active(), IDs: b.ring.IDs(), SeenAt: b.DB.Now(),
	})
}

// depart removes this process, and those that ended without a word.
func (b *Base) depart() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := (store.MasterKeys{DB: b.DB}).RemoveProcesses(ctx, process, b.DB.Now().Add(-24*time.Hour)); err != nil {
		b.log.Warn("removing this process from the list of processes", "error", err)
	}
}

// watchKeys announces this process and follows changes of the master keys until ctx ends.
func (b *Base) watchKeys(ctx context.Context) {
	tick := time.NewTicker(keyTick)
	defer tick.Stop()
	watched := keyWatch{said: b.DB.Now()}
	watched.changed(b.source.file) // what was read at the start
	// The active key may have been held back at the start.
	watched.pending = b.Config.MasterKeys.Active != b.ring.Active()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			err := b.followKeys(ctx, &watched)
			if err != nil && ctx.Err() == nil && err.Error() != watched.failed {
				b.log.Error("following the master keys; it is tried again", "error", err)
			}
			watched.failed = ""
			if err != nil {
				watched.failed = err.Error()
			}
		}
	}
}

// keyWatch is what watchKeys remembers.
type keyWatch struct {
	modified time.Time
	size     int64
	pending  bool      // the change is not complete
	said     time.Time // last announcement
	failed   string    // the last error, which is logged once
}

// changed reports whether the file changed since the last call.
func (w *keyWatch) changed(file string) bool {
	if file == "" {
		return false
	}
	info, err := os.Stat(file)
	if err != nil || info.ModTime().Equal(w.modified) && info.Size() == w.size {
		return false
	}
	w.modified, w.size = info.ModTime(), info.Size()
	return true
}

func (b *Base) followKeys(ctx context.Context, w *keyWatch) error {
	var err error
	before, had := b.ring.Active(), b.ring.IDs()
	if w.changed(b.source.file) || w.pending {
		w.pending, err = b.reloadKeys(ctx)
		w.pending = w.pending || err != nil
	}
	now := b.ring.Active() != before || !slices.Equal(b.ring.IDs(), had)
	if now {
		b.log.Info("the master keys changed", "active", b.ring.Active(), "keys", b.ring.IDs())
		b.Authority.Forget() // its keys in memory may be under a key that is gone
	}
	if now || b.DB.Now().Sub(w.said) >= keysSeen {
		w.said = b.DB.Now()
		err = errors.Join(err, b.announce(ctx))
	}
	return err
}

// reloadKeys reads master_keys of the configuration file again. pending reports that the active key is
// not in use yet.
func (b *Base) reloadKeys(ctx context.Context) (pending bool, err error) {
	c := b.Config
	if b.source.file != "" {
		if c, err = config.Load(b.source.file, b.source.set, Parts()); err != nil {
			return false, err
		}
	}
	if c.MasterKeys.Active == b.ring.Active() && slices.Equal(slices.Sorted(maps.Keys(c.MasterKeys.Files)), b.ring.IDs()) {
		return false, nil
	}
	wanted, err := openRing(c)
	if err != nil {
		return false, err
	}
	if err := b.settleKeys(ctx, wanted); err != nil {
		return false, err
	}
	return b.ring.Active() != c.MasterKeys.Active, nil
}

// MasterKey returns a master key of the configuration. The caller wipes it.
func (b *Base) MasterKey(id string) ([]byte, error) {
	if b.Config.MasterKeys.Files[id] == "" {
		return nil, fmt.Errorf("there is no master key %q in master_keys.files", id)
	}
	return readMasterKey(b.Config, id)
}

// KeyReport is what tamga key status prints.
type KeyReport struct {
	Active    string
	Keys      []KeyLine
	Processes []vault.Process
}

// KeyLine is one master key.
type KeyLine struct {
	ID       string
	InRing   bool
	SealedAt time.Time // zero: not by a server
	Records  map[string]int64
	Total    int64
	// Documents are sealed documents that are stored, were uploaded while the key may have been the
	// active one, and were not resealed since.
	Documents int64
	// Unfinished are those of Documents that were uploaded while servers sealed with the key. If the
	// key is not the active one, resealing was stopped.
	Unfinished int64
	// Needed is the time until which data that ends by itself may be under the key.
	Needed time.Time
}

// KeyReport counts what is sealed under which master key.
func (s *Services) KeyReport(ctx context.Context) (*KeyReport, error) {
	keys := store.MasterKeys{DB: s.DB}
	known, err := keys.MasterKeys(ctx)
	if err != nil {
		return nil, err
	}
	usage, err := vault.UsageOf(ctx, s.ring, store.Sealed{DB: s.DB})
	if err != nil {
		return nil, err
	}
	report := &KeyReport{Active: s.ring.Active()}
	lines := map[string]*KeyLine{}
	line := func(id string) *KeyLine {
		if lines[id] == nil {
			lines[id] = &KeyLine{ID: id, InRing: slices.Contains(s.ring.IDs(), id), Records: map[string]int64{}}
		}
		return lines[id]
	}
	for _, id := range s.ring.IDs() {
		line(id)
	}
	for _, k := range known {
		l := line(k.ID)
		l.SealedAt = k.SealedAt
		if k.SealedAt.IsZero() {
			continue
		}
		l.Needed = k.SealedAt.Add(s.longestSealed())
		if l.Documents, err = keys.StoredBefore(ctx, l.Needed); err != nil {
			return nil, err
		}
		// A server announces its key from time to time.
		if l.Unfinished, err = keys.StoredBefore(ctx, k.SealedAt.Add(keysSeen)); err != nil {
			return nil, err
		}
	}
	for _, u := range usage {
		l := line(u.KeyID)
		l.Records[u.Column] = u.Count
		l.Total += u.Count
	}
	for _, id := range slices.Sorted(maps.Keys(lines)) {
		report.Keys = append(report.Keys, *lines[id])
	}
	all, err := keys.Processes(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if s.DB.Now().Sub(p.SeenAt) <= vault.ProcessLife {
			report.Processes = append(report.Processes, p)
		}
	}
	return report, nil
}

// longestSealed is the longest time for which data is sealed that nothing reseals: cookies, sign-ins
// and operations under way, prepared documents, kept answers.
func (b *Base) longestSealed() time.Duration {
	c := b.Config
	return max(time.Hour, c.Pages.Session, c.Operations.Life+c.Operations.Keep, c.Confirmation.Life, c.Repetitions.Life, c.TwoStep.Life)
}

// resealDocuments seals the keys of stored documents anew, of those that may be under another master
// key than the active one. Documents may be read and deleted meanwhile. A stopped run is continued by
// the next one.
func (s *Services) resealDocuments(ctx context.Context, total *vault.Resealed, progress func(column string, moved int64)) error {
	keys := store.MasterKeys{DB: s.DB}
	known, err := keys.MasterKeys(ctx)
	if err != nil {
		return err
	}
	var until time.Time
	for _, k := range known {
		if k.ID != s.ring.Active() && !k.SealedAt.IsZero() && k.SealedAt.Add(s.longestSealed()).After(until) {
			until = k.SealedAt.Add(s.longestSealed())
		}
	}
	if until.IsZero() {
		return nil
	}
	storage, err := s.Storage(ctx)
	if err != nil {
		return err
	}
	documents := blob.NewDocuments(storage)
	after := ""
	for {
		list, err := keys.OnlyHeads(ctx, until, after, resealedAtOnce, blob.HeadSize)
		if err != nil || len(list) == 0 {
			return err
		}
		after = list[len(list)-1].ID
		var mu sync.Mutex
		var moved int64
		var group errgroup.Group
		group.SetLimit(resealedSideBySide)
		for _, d := range list {
			group.Go(func() error {
				if err := ctx.Err(); err != nil {
					return context.Cause(ctx)
				}
				sealed, err := documents.SealKey(ctx, d.Bytes, d.Head, s.ring.Reseal)
				if _, outage := fault.AsOutage(err); outage {
					return err
				}
				if err != nil {
					kept, gone := keys.IsStored(ctx, d)
					if kept { // it was not deleted meanwhile
						mu.Lock()
						defer mu.Unlock()
						total.Fail(fmt.Errorf("document %s: %w", d.ID, err))
					}
					return gone
				}
				put, err := keys.PutObjectKey(ctx, d, sealed)
				if put {
					mu.Lock()
					defer mu.Unlock()
					moved++
				}
				return err
			})
		}
		err = group.Wait()
		total.Moved += moved
		progress("documents", moved)
		if err != nil {
			return err
		}
	}
}

// resealedAtOnce documents are listed at once, and resealedSideBySide of them are read at the same
// time: a bucket answers after some milliseconds.
const (
	resealedAtOnce     = 200
	resealedSideBySide = 8
)

// Reseal moves all sealed records, and the keys of stored documents, to the active master key. It refuses to while a running process
// has not got that key.
func (s *Services) Reseal(ctx context.Context, progress func(column string, moved int64)) (vault.Resealed, error) {
	behind, err := s.Behind(ctx)
	if err != nil {
		return vault.Resealed{}, err
	}
	if len(behind) > 0 {
		return vault.Resealed{}, fmt.Errorf("not every process seals with master key %q yet: %v; add the key to master_keys there and make it active (a running server reads master_keys again within seconds), then repeat this command", s.Config.MasterKeys.Active, behind)
	}
	r := &vault.Resealing{
		Ring: s.ring, Records: store.Sealed{DB: s.DB},
		Batch: 200, Workers: 4, Progress: progress,
	}
	total, err := r.Run(ctx)
	if err != nil {
		return total, err
	}
	return total, s.resealDocuments(ctx, &total, r.Progress)
}

// Behind returns the running processes that do not seal with the active master key of the
// configuration. If there is none, this process seals with it from now on.
func (s *Services) Behind(ctx context.Context) ([]vault.Process, error) {
	list, err := store.MasterKeys{DB: s.DB}.Processes(ctx)
	if err != nil {
		return nil, err
	}
	wanted := s.Config.MasterKeys.Active
	without, sealing := vault.Behind(list, wanted, s.DB.Now())
	if behind := append(without, sealing...); len(behind) > 0 {
		return behind, nil
	}
	if s.ring.Active() == wanted {
		return nil, nil
	}
	ring, err := openRing(s.Config)
	if err != nil {
		return nil, err
	}
	return nil, s.settleKeys(ctx, ring)
}
