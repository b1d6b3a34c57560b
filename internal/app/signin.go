// SPDX-License-Identifier: Apache-2.0

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

	"tamga/internal/adapter/qr"
	"tamga/internal/adapter/store"
	"tamga/internal/config"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/authority"
	"tamga/internal/domain/password"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/signing"
	"tamga/internal/domain/token"
	"tamga/internal/domain/vault"
	"tamga/internal/files"
	"tamga/internal/web/rest/limit"
	"tamga/internal/web/signapi"
	"tamga/internal/web/tokenapi"
)

// newTokens makes the service of tokens. It reads the token signing keys from the database and makes
// the first one.
func newTokens(ctx context.Context, base *Base) (*token.Service, error) {
	sealed, err := token.EnsureSigningKey(ctx, store.TokenKeys{DB: base.DB}, base.NewTokenKey)
	if err != nil {
		return nil, fmt.Errorf("the token signing key: %w", err)
	}
	opened, err := base.openTokenKeys(sealed)
	if err != nil {
		return nil, err
	}
	settings := token.Settings{
		Issuer: base.idpURL(), LocalIssuer: config.LocalIssuer, Resource: base.Config.Resource, Aliases: base.Config.ResourceAliases,
		TokenLife: base.Config.Tokens.AccessLife, RefreshLife: base.Config.Tokens.RefreshLife,
		Remember: rememberedFor(base.Config),
	}
	return token.New(settings, token.Deps{
		Store: store.Tokens{DB: base.DB}, Keys: opened, LoadKeys: base.loadTokenKeys, Policies: base.Policies, Now: base.DB.Now, Rand: rand.Reader,
	})
}

// rememberedFor returns how long what was ordered with an access token may be carried out without a request
// after the token has expired, and whether its user may still act is asked then.
func rememberedFor(c *config.Config) time.Duration {
	confirmed := c.Confirmation.Life + c.Confirmation.Complete + c.Confirmation.Lease
	return max(c.Operations.Life+c.Operations.Lease, confirmed)
}

// newIdentity makes the service of sign-in.
func newIdentity(base *Base, tokens *token.Service) (*signin.Service, error) {
	settings := signin.DefaultSettings()
	settings.Failures = base.Config.Passwords.Attempts
	settings.Window, settings.LockOut = base.Config.Passwords.Window, base.Config.Passwords.LockOut
	settings.CodeLife = base.Config.Tokens.CodeLife
	settings.PasswordDisplay, settings.IDOnlyPublic = base.Config.Users.PasswordDisplay, base.Config.Users.IDOnlyPublic
	settings.DefaultClient = base.Config.SignIn.DefaultClient
	settings.FirstFactor = base.Config.Pages.FirstFactor
	settings.MethodURIs = signin.Spelling(base.Config.Users.MethodURIs)
	providers, err := base.providers()
	if err != nil {
		return nil, err
	}
	db := store.Tokens{DB: base.DB}
	directories, err := base.directories()
	if err != nil {
		return nil, err
	}
	deps := signin.Deps{
		Directories: directories,
		Store:       db, Methods: db, Codes: db, Visits: db, Sessions: base.Sessions, Cancels: base.Confirm, Tokens: tokens, Passwords: base.passwords, Providers: providers, Now: base.DB.Now, Rand: rand.Reader,
		Reach: base.reach, Contacts: base.Contacts, Devices: base.Devices, Messages: base.Messages, Printer: base.printer,
		Vault: base.ring, Oath: base.Oath, Steps: base.Confirm,
	}
	if base.Passkeys != nil {
		deps.Passkeys = base.Passkeys
	}
	return signin.New(settings, deps)
}

// identifySigner returns a function that identifies callers of the signing interface with
// authenticate. One SQL statement reads both the token and the snapshot that signatures of the
// caller depend on.
func (s *Services) identifySigner(authenticate authentication) func(context.Context, string) (context.Context, audit.Principal, error) {
	snapshots := store.Snapshots{DB: s.DB}
	return func(ctx context.Context, bearer string) (context.Context, audit.Principal, error) {
		var snap *signing.Snapshot
		who, err := authenticate(ctx, bearer, func(ctx context.Context, id string, now time.Time) (b token.Bearer, err error) {
			b, snap, err = snapshots.BearerByToken(ctx, id, now)
			return b, err
		})
		return signapi.WithSnapshot(ctx, snap), who, err
	}
}

// authentication is a method of token.Service that returns the principal of a bearer token.
type authentication func(ctx context.Context, bearer string, read token.ReadBearer) (audit.Principal, error)

// identifyConfirmed identifies callers of routes that accept confirmed tokens and need no
// snapshot.
func (s *Services) identifyConfirmed(ctx context.Context, bearer string) (context.Context, audit.Principal, error) {
	who, err := s.Tokens.AuthenticateConfirmed(ctx, bearer)
	return ctx, who, err
}

// idpURL returns {idp_url}, the public address of the identity provider and the issuer of tokens.
func (b *Base) idpURL() string { return b.Config.BaseURL() + b.Config.IDP }

// TokenKeyOverlap returns when a new token signing key starts to sign, and how long an old one is
// accepted.
func (b *Base) TokenKeyOverlap() token.Overlap {
	longest := b.Config.Tokens.AccessLife
	if b.Config.Pages.Enabled {
		longest = max(longest, b.Config.Pages.Session)
	}
	return token.Overlap{Overlap: b.Config.Tokens.KeyOverlap, TokenLife: longest}
}

// loadTokenKeys reads all token signing keys, the newest first.
func (b *Base) loadTokenKeys(ctx context.Context) ([]token.Key, error) {
	sealed, err := store.TokenKeys{DB: b.DB}.SigningKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("the token signing keys: %w", err)
	}
	return b.openTokenKeys(sealed)
}

func (b *Base) openTokenKeys(sealed []token.SealedKey) (list []token.Key, err error) {
	for _, k := range sealed {
		signer, err := b.openTokenKey(k)
		if err != nil {
			return nil, fmt.Errorf("the token signing key %s: %w", k.ID, err)
		}
		list = append(list, token.Key{ID: k.ID, Signer: signer, From: b.TokenKeyOverlap().From(k)})
	}
	return list, nil
}

// maintainTokenKeys deletes retired keys and loads the keys that other processes made.
func (s *Services) maintainTokenKeys(ctx context.Context) error {
	if err := token.RetireSigningKeys(ctx, store.TokenKeys{DB: s.DB}, s.TokenKeyOverlap(), s.DB.Now()); err != nil {
		return err
	}
	return s.Tokens.ReloadKeys(ctx)
}

func tokenKeyPlace(id string) vault.Place {
	return vault.Place{Purpose: "token signing key", Table: "signing_keys", Row: id, Column: "sealed"}
}

// NewTokenKey makes a token signing key, ECDSA on P-256, sealed with the master key. It stores
// nothing.
func (b *Base) NewTokenKey() (token.SealedKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return token.SealedKey{}, err
	}
	plain, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return token.SealedKey{}, err
	}
	defer clear(plain)
	id := uuid.NewString()
	sealed, err := b.ring.Seal(tokenKeyPlace(id), plain)
	return token.SealedKey{ID: id, Sealed: sealed, CreatedAt: b.DB.Now()}, err
}

func (b *Base) openTokenKey(k token.SealedKey) (crypto.Signer, error) {
	plain, err := b.ring.Open(tokenKeyPlace(k.ID), k.Sealed)
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
func (b *Base) clients() (*signin.Clients, error) {
	var list []signin.Client
	for _, c := range b.Config.Clients {
		client := signin.Client{
			ID: c.ID, Title: c.Title, Public: c.SecretFile == "", PasswordGrant: c.PasswordGrant, RedirectURIs: c.RedirectURIs,
			Exchange: c.TokenExchange, Implicit: c.ImplicitGrant, NoChallenge: c.WithoutPKCE, ConfirmMethods: c.ConfirmMethods, ConfirmTitles: c.ConfirmTitles,
		}
		if !client.Public {
			secret, err := files.OwnSecret(secretPath(b.Config, c.SecretFile), "secret of client "+c.ID)
			if err != nil {
				return nil, err
			}
			client.Secret = signin.HashSecret(secret)
		}
		list = append(list, client)
	}
	if b.Config.Pages.Enabled {
		list = append(list, b.pageSettings(nil).Client())
	}
	return signin.NewClients(list, b.Config.SignIn.DefaultClient)
}

// attempts returns the limits of the queue of password checks.
func attempts(c *config.Config) password.Limits {
	p := &c.Passwords
	return password.Limits{Reserved: p.Reserved, Waiting: p.Waiting, OfOne: p.WaitingAddress, Wait: p.Wait}
}

// trustedSignIns is the factor by which the rate limits of a trusted caller are higher.
const trustedSignIns = 10

// tokenAPI returns the token endpoint, the pages of sign-ins and the confirmations.
func (s *Services) tokenAPI(clients *signin.Clients, peers *authority.Peers) *tokenapi.API {
	return tokenapi.New(tokenapi.Deps{
		Identity: s.Identity, Tokens: s.Tokens, Clients: clients, Judge: peers.Judge, Issuer: s.idpURL(), Name: s.Config.Pages.Name, Language: s.Config.Messages.Language, Attempts: signInLimits(s.Config),
		Confirmations: s.Confirm, Steps: s.Identity, ConfirmedTokens: s.Tokens, Paint: qr.PNG,
	})
}

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
