// SPDX-License-Identifier: Apache-2.0

// Package app puts the service together from a configuration.
//
//   - Open opens the database and makes every service that needs no tables. A new database gets
//     its tables next, from Base.Migrate.
//   - Base.Services adds sign-in, which needs the tables. Administrative commands work with Services.
//   - NewServer puts the web interfaces on one server, and Server.Serve runs it until the
//     context ends.
//
// Formats is the one list of signature formats.
//
// The package reads no flags and prints nothing: the packages below internal/cli do. It has no rules
// of its own: the packages below internal/domain do.
package app

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tamga/internal/adapter/capture"
	"tamga/internal/adapter/evidence"
	"tamga/internal/adapter/store"
	"tamga/internal/adapter/webhook"
	"tamga/internal/config"
	"tamga/internal/domain/accreditation"
	"tamga/internal/domain/approval"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/authority"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/device"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/oath"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/passkey"
	"tamga/internal/domain/password"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/reach"
	"tamga/internal/domain/report"
	"tamga/internal/domain/session"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/token"
	"tamga/internal/domain/user"
	"tamga/internal/domain/vault"
	"tamga/internal/domain/waiting"
	"tamga/internal/files"
)

// Base is an installation whose database is open but may have no tables yet. Its fields never
// change after Open.
type Base struct {
	Config *config.Config
	DB     *store.DB
	Audit  audit.Log

	Policies     *policy.Service
	PolicyEditor *policy.Editor
	Webhooks     *notify.Subscriptions
	Messages     *notify.Service
	Captured     *capture.Box // nil unless messages are captured
	Sessions     *session.Service
	Contacts     *contact.Book
	Users        *user.Service
	Devices      *device.Service
	Oath         *oath.Service
	Passkeys     *passkey.Service // nil: the installation has none
	Confirm      *confirm.Service
	Approvals    *approval.Service
	Authority    *authority.Service
	Keys         *keys.Service
	Operations   *operation.Service
	TrustList    *accreditation.Service

	log       *slog.Logger
	watch     *Watch
	senders   []notify.Notifier // of messages
	ring      *vault.Ring
	reach     *reach.Service
	passwords *password.Hasher
	printer   signin.Printer
	metrics   *prometheus.Registry
	network   *evidence.Source // nil for a command
	anchors   *anchors
	sources   *sourceStates
	reports   *report.Service
	callbacks *webhook.Sender // nil: the installation makes no callbacks
	holders   *vault.Holders  // of private keys
	version   string          // of the program, of a server
	source    configSource    // where the configuration came from; zero: it cannot be changed

	browsers   *device.Browsers // of users themselves, for notifications; nil: the installation sends none to browsers
	browserKey []byte           // by which they know the service

	certificate *atomic.Pointer[tls.Certificate] // of TLS; nil in it: plain HTTP
	own         own
	opened      closers
}

// Purpose is what an installation is opened for.
type Purpose int

// The purposes. Only a server asks outside services about certificates. The limits of database
// calls differ.
const (
	ForCommand Purpose = iota
	ForServer
)

// Close closes what Open opened.
func (b *Base) Close() { b.opened.close(b.log) }

// Migrate brings the database to the schema of this release.
func (b *Base) Migrate(ctx context.Context) error { return b.DB.Migrate(ctx) }

// Services is an installation whose database has its tables, with all services of internal/domain.
// Its fields never change.
type Services struct {
	*Base
	Tokens   *token.Service
	Identity *signin.Service // sign-in and authentication methods
	waits    *waiting.Hub    // of pages
}

// Services adds sign-in. It returns an error if the database lacks tables of this release. The first
// call on a new database makes the key that signs tokens.
func (b *Base) Services(ctx context.Context) (*Services, error) {
	if err := b.usable(ctx); err != nil {
		return nil, err
	}
	if err := b.settleKeys(ctx, b.ring); err != nil {
		return nil, err
	}
	tokens, err := newTokens(ctx, b)
	if err != nil {
		return nil, err
	}
	identity, err := newIdentity(b, tokens)
	if err != nil {
		return nil, err
	}
	waits := waiting.New(waiting.Deps{Store: store.Waiting{DB: b.DB}, Now: b.DB.Now, Ticks: waiting.Every(time.Second), Failed: func(err error) {
		b.log.Warn("reading what people wait for", "error", err)
	}})
	return &Services{b, tokens, identity, waits}, nil
}

// closers lists what must be closed, in the order in which it was opened.
type closers []opening

type opening struct {
	what  string
	close func() error
}

// close closes in reverse order and logs errors.
func (c closers) close(log *slog.Logger) {
	for i := len(c) - 1; i >= 0; i-- {
		if err := c[i].close(); err != nil {
			log.Error("closing "+c[i].what, "error", err)
		}
	}
}

// databaseURL returns the setting database with an absolute path and with the password.
func databaseURL(c *config.Config) (string, error) {
	if file, ok := strings.CutPrefix(c.Database, "sqlite:"); ok {
		return "sqlite:" + c.Path(file), nil
	}
	if c.DatabasePasswordFile == "" {
		return c.Database, nil
	}
	password, err := files.OwnSecret(secretPath(c, c.DatabasePasswordFile), "database_password_file")
	if err != nil {
		return "", err
	}
	u, err := url.Parse(c.Database)
	if err != nil {
		return "", errors.New("database: not a URL")
	}
	u.User = url.UserPassword(u.User.Username(), password)
	return u.String(), nil
}

// HasTables reports whether the database of a configuration is in use. It needs no master key and makes
// no file. The error for a database of a build before the first release wraps store.ErrEarlyBuild.
func HasTables(ctx context.Context, c *config.Config) (bool, error) {
	if file, ok := strings.CutPrefix(c.Database, "sqlite:"); ok {
		info, err := os.Stat(c.Path(file))
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	address, err := databaseURL(c)
	if err != nil {
		return false, err
	}
	db, err := store.Open(ctx, store.Options{URL: address, Connections: 2, Limits: store.CommandLimits})
	if err != nil {
		return false, err
	}
	defer db.Close()
	err = db.Migrated(ctx)
	var schema *store.SchemaError
	if errors.As(err, &schema) {
		return schema.Have > 0, nil
	}
	return err == nil, err
}

// openRing reads the master keys.
func openRing(c *config.Config) (*vault.Ring, error) {
	keys := map[string][]byte{}
	defer func() { // the ring has its own copies
		for _, key := range keys {
			clear(key)
		}
	}()
	for id := range c.MasterKeys.Files {
		key, err := readMasterKey(c, id)
		keys[id] = key
		if err != nil {
			return nil, err
		}
	}
	return vault.NewRing(c.MasterKeys.Active, keys, rand.Reader)
}

// readMasterKey reads one master key. The caller wipes the result.
func readMasterKey(c *config.Config, id string) ([]byte, error) {
	what := "master key " + id
	text, err := files.OwnSecretBytes(secretPath(c, c.MasterKeys.Files[id]), what)
	if err != nil {
		return nil, err
	}
	key := make([]byte, hex.DecodedLen(len(text)))
	_, err = hex.Decode(key, text)
	clear(text)
	if err != nil || len(key) != 32 {
		clear(key)
		return nil, fmt.Errorf("%s: not 64 hexadecimal digits; make a key with: openssl rand -hex 32", what)
	}
	return key, nil
}

// usable returns an error if the database has an older schema. A newer schema is fine: migrations
// only add.
func (b *Base) usable(ctx context.Context) error {
	err := b.DB.Migrated(ctx)
	var schema *store.SchemaError
	if errors.As(err, &schema) && schema.Newer() {
		b.log.Warn("the database was migrated by a later release", "error", err)
		return nil
	}
	return err
}
