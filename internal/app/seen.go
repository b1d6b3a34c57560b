// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/files"
)

// seenFile is a file of the spool directory with an entry of the audit log that this machine has seen in the database.
// If the entry is gone, the database is older: it was put back by its own means.
const seenFile = "seen.json"

// errOlder is the error for such a database.
var errOlder = errors.New("the database is older than what this machine has seen: it was put back by its own means, such as a snapshot or PITR, and codes, messages and numbers of " +
	"revocation lists would come again: run tamga restore adopt --taken-at TIME")

// checkSeen returns an error if the database lacks the entry that was seen, unless a restore after it explains that.
func (s *Services) checkSeen(ctx context.Context) error {
	if s.Config.IsDev() {
		return nil // people remove and replace its files
	}
	text, err := os.ReadFile(s.seenPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var seen store.AuditMark
	if err == nil {
		err = json.Unmarshal(text, &seen)
	}
	if err != nil {
		s.log.Warn("what was seen of the database is not known", "file", s.seenPath(), "error", err)
		return nil
	}
	has, err := store.Audit{DB: s.DB}.Follows(ctx, seen)
	if err == nil && !has {
		err = fmt.Errorf("%w; or remove %s if database names another one now (audit entry %d of %s is missing)", errOlder, s.seenPath(), seen.ID, time.UnixMilli(seen.At).UTC().Format(time.RFC3339))
	}
	return err
}

func (s *Services) seenPath() string {
	return filepath.Join(s.Config.Path(s.Config.SpoolDir), seenFile)
}

// noteSeen keeps an entry that the database has. It is a minute old when it is written: the last moments may be lost in
// a failover to another server, which is not a restore.
func (s *Services) noteSeen() func(ctx context.Context) error {
	var last store.AuditMark
	return func(ctx context.Context) error {
		if s.Config.IsDev() { // a start of it does not compare
			return nil
		}
		now, err := store.Audit{DB: s.DB}.Newest(ctx)
		if err != nil {
			return err
		}
		before := last
		last = now
		if before.ID == 0 || before == now {
			return nil
		}
		text, err := json.Marshal(before)
		if err != nil {
			return err
		}
		return files.Replace(s.seenPath(), text, 0o600)
	}
}
