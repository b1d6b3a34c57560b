// Package app puts the service together from a configuration. Open makes the domain rooms over
// the database, Handler puts the web interfaces on one server, and Serve runs the server until
// it is told to stop. Formats is the one list of signature formats.
//
// It reads no flags and prints nothing: the packages of internal/cli do. It decides nothing
// that the packages of internal/domain decide.
package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tamga/internal/adapter/capture"
	"tamga/internal/adapter/evidence"
	"tamga/internal/adapter/store"
	"tamga/internal/config"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/auth"
	"tamga/internal/domain/authority"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/device"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/oath"
	"tamga/internal/domain/password"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/session"
	"tamga/internal/domain/signing"
	"tamga/internal/domain/user"
	"tamga/internal/domain/vault"
	"tamga/internal/files"
	"tamga/internal/web/rest"
	"tamga/internal/web/signapi"
)

// Rooms is everything a process is made of. Every choice of the program is a
// line in this file.
type Rooms struct {
	Config     *config.Config
	log        *slog.Logger
	DB         *store.DB
	ring       *vault.Ring
	passwords  *password.Hasher
	Users      *user.Service
	contacts   *contact.Book
	Messages   *notify.Service
	devices    *device.Service
	Webhooks   *notify.Subscriptions
	Captured   *capture.Box // nil unless messages are captured
	printer    auth.Printer
	delivered  *prometheus.CounterVec
	Sessions   *session.Service
	Oath       *oath.Service
	Identity   *auth.Service // once auth has opened it
	Policies   *policy.Service
	Authority  *authority.Service
	Keys       *keys.Service
	Audit      audit.Log
	refusals   *rest.Gatherer      // once handler has made it
	network    *evidence.Source    // once handler has opened it
	operations *signing.Operations // once handler has opened it
	Readiness  *rest.Readiness     // once handler has made it
	senders    []notify.Notifier   // closed with the house
	tasks      []task              // due now and then beside the handler, which adds them
}

// Open opens the database, whose work limits bound, and puts the rooms together. It
// writes nothing: a database without tables is found out by the first who needs one.
func Open(ctx context.Context, config *config.Config, limits store.Limits, log *slog.Logger) (*Rooms, error) {
	ring, err := openRing(config)
	if err != nil {
		return nil, err
	}
	address, err := databaseURL(config)
	if err != nil {
		return nil, err
	}
	h := &Rooms{Config: config, log: log, ring: ring}
	holder, err := config.Holder().Open(vault.Environment{
		Ring: ring, Rand: rand.Reader,
		PIN: vault.SoftOptions{
			MemoryKiB: uint32(config.Argon2.Memory >> 10),
			Passes:    uint32(config.Argon2.Passes),
			Parallel:  config.Argon2.Parallel,
		},
		Path: config.Path,
		Secret: func(file, setting string) (string, error) {
			return h.optionalSecret(file, "keys."+config.Keys.Holder+"."+setting)
		},
	})
	if err != nil {
		return nil, err
	}
	h.passwords, err = password.New(password.Cost{
		MemoryKiB: uint32(config.Argon2.Memory >> 10),
		Passes:    uint32(config.Argon2.Passes),
		Lanes:     1,
	}, int64(config.Argon2.Memory>>10)*int64(config.Argon2.Parallel), attempts(config), rand.Reader)
	if err != nil {
		return nil, err
	}
	if h.DB, err = store.Open(ctx, store.Options{URL: address, Connections: config.DatabaseConnections, Limits: limits}); err != nil {
		return nil, err
	}
	h.Audit = store.Audit{DB: h.DB}
	if err := errors.Join(h.openPolicies(), h.openPeople()); err != nil {
		h.Close()
		return nil, err
	}
	h.Authority, err = authority.New(authority.Config{BaseURL: config.BaseURL()}, store.Authority{DB: h.DB}, holder, rand.Reader, time.Now)
	if err != nil {
		h.Close()
		return nil, err
	}
	enrolment, err := h.enrolment()
	if err != nil {
		h.Close()
		return nil, err
	}
	stored := store.Keys{DB: h.DB}
	h.Keys, err = keys.New(keys.Options{
		Store: stored, RequestStore: stored, StatusStore: stored, PINStore: stored,
		Holder: holder, Authority: h.Authority,
		Rand: rand.Reader, Now: time.Now, PINAttempts: config.PIN.Attempts, PINMode: keys.PINMode(config.PIN.Mode), PINLength: config.PIN.MinLength, SimplePINs: config.PIN.AllowSimple,
		Exportable: config.Certificates.Exportable, Policy: h.Policies, Confirmation: h.Policies, Events: h.Messages, Profiles: profiles{h},
		Enrolment: enrolment, Evidence: revocations{h}, StandingAge: config.Certificates.StatusAge,
	})
	if err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

func (h *Rooms) Close() {
	if h.refusals != nil {
		if err := h.refusals.Flush(context.Background()); err != nil {
			h.log.Error("writing refused sign-ins to the audit log", "error", err)
		}
	}
	if h.network != nil {
		h.network.Close()
	}
	for _, n := range h.senders {
		if c, ok := n.(io.Closer); ok {
			if err := c.Close(); err != nil {
				h.log.Error("closing a sender of messages", "error", err)
			}
		}
	}
	if err := h.DB.Close(); err != nil {
		h.log.Error("closing the database", "error", err)
	}
}

// databaseURL returns the setting database with its path resolved and its password put in.
func databaseURL(c *config.Config) (string, error) {
	if file, ok := strings.CutPrefix(c.Database, "sqlite:"); ok {
		return "sqlite:" + c.Path(file), nil
	}
	if c.DatabasePasswordFile == "" {
		return c.Database, nil
	}
	password, err := files.OwnSecret(c.Path(c.DatabasePasswordFile), "database_password_file")
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

// openRing reads the master keys.
func openRing(config *config.Config) (*vault.Ring, error) {
	keys := map[string][]byte{}
	defer func() { // the ring has what it needs of them
		for _, key := range keys {
			clear(key)
		}
	}()
	for id, file := range config.MasterKeys.Files {
		what := "master key " + id
		text, err := files.OwnSecretBytes(config.Path(file), what)
		if err != nil {
			return nil, err
		}
		key := make([]byte, hex.DecodedLen(len(text)))
		keys[id] = key
		_, err = hex.Decode(key, text)
		clear(text)
		if err != nil || len(key) != 32 {
			return nil, fmt.Errorf("%s: want 64 hexadecimal digits; make one with: openssl rand -hex 32", what)
		}
	}
	return vault.NewRing(config.MasterKeys.Active, keys, rand.Reader)
}

// identifySigner identifies the callers of the signing surface. The statement that finds the token
// reads the snapshot that signatures of the caller depend on, too.
func (h *Rooms) identifySigner(identity *auth.Service) func(context.Context, string) (context.Context, audit.Principal, error) {
	snapshots := store.Snapshots{DB: h.DB}
	return func(ctx context.Context, token string) (context.Context, audit.Principal, error) {
		var snap *signing.Snapshot
		who, err := identity.AuthenticateBy(ctx, token, func(ctx context.Context, id string, now time.Time) (b auth.Bearer, err error) {
			b, snap, err = snapshots.BearerByToken(ctx, id, now)
			return b, err
		})
		return signapi.WithSnapshot(ctx, snap), who, err
	}
}

// Usable refuses a database of another schema; one that a later release
// migrated is fine, since migrations only add.
func (h *Rooms) Usable(ctx context.Context) error {
	err := h.DB.Migrated(ctx)
	var schema *store.SchemaError
	if errors.As(err, &schema) && schema.Newer() {
		h.log.Warn("the database was migrated by a later release", "error", err)
		return nil
	}
	return err
}
