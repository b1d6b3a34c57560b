package app

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"tamga/internal/adapter/store"
	"tamga/internal/config"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/auth"
	"tamga/internal/domain/password"
	"tamga/internal/domain/signing"
	"tamga/internal/domain/vault"
	"tamga/internal/files"
	"tamga/internal/web/rest/limit"
	"tamga/internal/web/signapi"
	"tamga/internal/web/tokenapi"
)

// newIdentity makes the service of sign-in. It reads its token signing keys from the database and
// makes the first one.
func newIdentity(ctx context.Context, h *Base) (*auth.Service, error) {
	tokens := store.Tokens{DB: h.DB}
	sealed, err := auth.EnsureSigningKey(ctx, tokens, h.NewTokenKey)
	if err != nil {
		return nil, fmt.Errorf("the token signing key: %w", err)
	}
	opened, err := h.openTokenKeys(sealed)
	if err != nil {
		return nil, err
	}
	settings := auth.DefaultSettings()
	settings.Issuer = h.idpURL()
	settings.Resource, settings.Aliases = h.Config.Resource, h.Config.ResourceAliases
	settings.TokenLife, settings.RefreshLife = h.Config.Tokens.AccessLife, h.Config.Tokens.RefreshLife
	settings.Failures = h.Config.Passwords.Attempts
	settings.Window, settings.LockOut = h.Config.Passwords.Window, h.Config.Passwords.LockOut
	settings.LocalIssuer, settings.CodeLife = config.LocalIssuer, h.Config.Tokens.CodeLife
	settings.PasswordDisplay, settings.IDOnlyPublic = h.Config.Users.PasswordDisplay, h.Config.Users.IDOnlyPublic
	settings.MethodURIs = auth.Spelling(h.Config.Users.MethodURIs)
	if h.Config.Operations.Async {
		settings.Remember = h.Config.Operations.Life + h.Config.Operations.Lease
	}
	providers, err := h.providers()
	if err != nil {
		return nil, err
	}
	return auth.New(settings, auth.Deps{
		Store: tokens, Sessions: h.Sessions, Passwords: h.passwords, Keys: opened, LoadKeys: h.loadTokenKeys, Providers: providers, Now: time.Now, Rand: rand.Reader,
		Reach: h.Users, Contacts: h.Contacts, Devices: h.Devices, Policies: h.Policies, Messages: h.Messages, Printer: h.printer,
		Vault: h.ring, Oath: h.Oath,
	})
}

// identifySigner returns the function that identifies callers of the signing interface. One SQL
// statement reads both the token and the snapshot that signatures of the caller depend on.
func (h *Rooms) identifySigner() func(context.Context, string) (context.Context, audit.Principal, error) {
	snapshots := store.Snapshots{DB: h.DB}
	return func(ctx context.Context, token string) (context.Context, audit.Principal, error) {
		var snap *signing.Snapshot
		who, err := h.Identity.AuthenticateBy(ctx, token, func(ctx context.Context, id string, now time.Time) (b auth.Bearer, err error) {
			b, snap, err = snapshots.BearerByToken(ctx, id, now)
			return b, err
		})
		return signapi.WithSnapshot(ctx, snap), who, err
	}
}

// idpURL returns {idp_url}, the public address of the identity provider and the issuer of tokens.
func (h *Base) idpURL() string { return h.Config.BaseURL() + h.Config.IDP }

// TokenKeyOverlap returns when a new token signing key starts to sign, and how long an old one is
// accepted.
func (h *Base) TokenKeyOverlap() auth.Overlap {
	return auth.Overlap{Overlap: h.Config.Tokens.KeyOverlap, TokenLife: h.Config.Tokens.AccessLife}
}

// loadTokenKeys reads all token signing keys, the newest first.
func (h *Base) loadTokenKeys(ctx context.Context) ([]auth.TokenKey, error) {
	sealed, err := store.Tokens{DB: h.DB}.SigningKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("the token signing keys: %w", err)
	}
	return h.openTokenKeys(sealed)
}

func (h *Base) openTokenKeys(sealed []auth.SealedKey) (list []auth.TokenKey, err error) {
	for _, k := range sealed {
		signer, err := h.openTokenKey(k)
		if err != nil {
			return nil, fmt.Errorf("the token signing key %s: %w", k.ID, err)
		}
		list = append(list, auth.TokenKey{ID: k.ID, Signer: signer, From: h.TokenKeyOverlap().From(k)})
	}
	return list, nil
}

// maintainTokenKeys deletes retired keys and loads the keys that other processes made.
func (h *Rooms) maintainTokenKeys(ctx context.Context) error {
	if err := auth.RetireSigningKeys(ctx, store.Tokens{DB: h.DB}, h.TokenKeyOverlap(), time.Now()); err != nil {
		return err
	}
	return h.Identity.ReloadKeys(ctx)
}

func tokenKeyPlace(id string) vault.Place {
	return vault.Place{Purpose: "token signing key", Table: "signing_keys", Row: id, Column: "sealed"}
}

// NewTokenKey makes a token signing key, ECDSA on P-256, sealed with the master key. It stores
// nothing.
func (h *Base) NewTokenKey() (auth.SealedKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return auth.SealedKey{}, err
	}
	plain, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return auth.SealedKey{}, err
	}
	defer clear(plain)
	id := uuid.NewString()
	sealed, err := h.ring.Seal(tokenKeyPlace(id), plain)
	return auth.SealedKey{ID: id, Sealed: sealed, CreatedAt: time.Now()}, err
}

func (h *Base) openTokenKey(k auth.SealedKey) (crypto.Signer, error) {
	plain, err := h.ring.Open(tokenKeyPlace(k.ID), k.Sealed)
	if err != nil {
		return nil, err
	}
	defer clear(plain)
	key, err := x509.ParsePKCS8PrivateKey(plain)
	if err != nil {
		return nil, errors.New("not a PKCS #8 key")
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("not a key that can sign")
	}
	return signer, nil
}

// clients returns the OAuth clients of the configuration.
func (h *Base) clients() (*auth.Clients, error) {
	var list []auth.Client
	for _, c := range h.Config.Clients {
		client := auth.Client{
			ID: c.ID, Public: c.SecretFile == "", PasswordGrant: c.PasswordGrant, RedirectURIs: c.RedirectURIs,
			Exchange: c.TokenExchange, Implicit: c.ImplicitGrant, NoChallenge: c.WithoutPKCE,
		}
		if !client.Public {
			secret, err := files.OwnSecret(h.Config.Path(c.SecretFile), "secret of client "+c.ID)
			if err != nil {
				return nil, err
			}
			client.Secret = auth.HashSecret(secret)
		}
		list = append(list, client)
	}
	return auth.NewClients(list)
}

// attempts returns the limits of the queue of password checks.
func attempts(c *config.Config) password.Limits {
	p := &c.Passwords
	return password.Limits{Reserved: p.Reserved, Waiting: p.Waiting, OfOne: p.WaitingAddress, Wait: p.Wait}
}

// trustedSignIns is the factor by which the rate limits of a trusted caller are higher.
const trustedSignIns = 10

// signInLimits returns the rate limits of password attempts. Each remembers the most recent 50,000
// callers.
func signInLimits(c *config.Config) tokenapi.Attempts {
	p := &c.Passwords
	const callers = 50_000
	limiter := func(perSecond float64, atOnce, factor int) *limit.Limiter {
		return limit.New(perSecond*float64(factor), atOnce*factor, callers, time.Now)
	}
	return tokenapi.Attempts{
		Addresses: limiter(p.AddressPerSecond, p.AddressAtOnce, 1), TrustedAddresses: limiter(p.AddressPerSecond, p.AddressAtOnce, trustedSignIns),
		Logins: limiter(p.LoginPerMinute/60, p.LoginAtOnce, 1), TrustedLogins: limiter(p.LoginPerMinute/60, p.LoginAtOnce, trustedSignIns),
		Known: limit.NewKnown(p.KnownAddresses, p.KnownFor, time.Now),
	}
}
