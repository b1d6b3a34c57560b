package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"tamga/internal/adapter/store"
	"tamga/internal/config"
	"tamga/internal/domain/auth"
	"tamga/internal/domain/password"
	"tamga/internal/domain/vault"
	"tamga/internal/web/rest/limit"
	"tamga/internal/web/tokenapi"
)

// auth opens the room that proves identities, once. Its token signing key is in the
// database, which has to have its tables.
func (h *house) auth(ctx context.Context) (*auth.Service, error) {
	if h.identity != nil {
		return h.identity, nil
	}
	tokens := store.Tokens{DB: h.db}
	sealed, err := auth.EnsureSigningKey(ctx, tokens, h.newTokenKey)
	if err != nil {
		return nil, fmt.Errorf("the token signing key: %w", err)
	}
	opened, err := h.openTokenKeys(sealed)
	if err != nil {
		return nil, err
	}
	settings := auth.DefaultSettings()
	settings.Issuer = h.idpURL()
	settings.Resource, settings.Aliases = h.config.Resource, h.config.ResourceAliases
	settings.TokenLife, settings.RefreshLife = h.config.Tokens.AccessLife, h.config.Tokens.RefreshLife
	settings.Failures = h.config.Passwords.Attempts
	settings.Window, settings.LockOut = h.config.Passwords.Window, h.config.Passwords.LockOut
	settings.LocalIssuer, settings.CodeLife = config.LocalIssuer, h.config.Tokens.CodeLife
	settings.PasswordDisplay, settings.IDOnlyPublic = h.config.Users.PasswordDisplay, h.config.Users.IDOnlyPublic
	settings.MethodURIs = auth.Spelling(h.config.Users.MethodURIs)
	if h.config.Operations.Async {
		settings.Remember = h.config.Operations.Life + h.config.Operations.Lease
	}
	providers, err := h.providers()
	if err != nil {
		return nil, err
	}
	if h.identity, err = auth.New(settings, auth.Deps{
		Store: tokens, Sessions: h.sessions, Passwords: h.passwords, Keys: opened, LoadKeys: h.loadTokenKeys, Providers: providers, Now: time.Now, Rand: rand.Reader,
		Reach: h.users, Contacts: h.contacts, Devices: activeDevices{h}, Policies: h.policies, Messages: h.messages, Printer: h.printer,
		Vault: h.ring, Oath: h.oath,
	}); err != nil {
		return nil, err
	}
	return h.identity, nil
}

// idpURL is {idp_url}, the issuer of tokens, as everybody knows it.
func (h *house) idpURL() string { return h.config.BaseURL() + h.config.IDP }

// tokenKeyOverlap is how token signing keys follow each other.
func (h *house) tokenKeyOverlap() auth.Overlap {
	return auth.Overlap{Overlap: h.config.Tokens.KeyOverlap, TokenLife: h.config.Tokens.AccessLife}
}

// loadTokenKeys reads the token signing keys there are, the newest first.
func (h *house) loadTokenKeys(ctx context.Context) ([]auth.TokenKey, error) {
	sealed, err := store.Tokens{DB: h.db}.SigningKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("the token signing keys: %w", err)
	}
	return h.openTokenKeys(sealed)
}

func (h *house) openTokenKeys(sealed []auth.SealedKey) (list []auth.TokenKey, err error) {
	for _, k := range sealed {
		signer, err := h.openTokenKey(k)
		if err != nil {
			return nil, fmt.Errorf("the token signing key %s: %w", k.ID, err)
		}
		list = append(list, auth.TokenKey{ID: k.ID, Signer: signer, From: h.tokenKeyOverlap().From(k)})
	}
	return list, nil
}

// maintainTokenKeys deletes keys whose time is over and takes up those that others made.
func (h *house) maintainTokenKeys(ctx context.Context) error {
	if err := auth.RetireSigningKeys(ctx, store.Tokens{DB: h.db}, h.tokenKeyOverlap(), time.Now()); err != nil {
		return err
	}
	return h.identity.ReloadKeys(ctx)
}

func tokenKeyPlace(id string) vault.Place {
	return vault.Place{Purpose: "token signing key", Table: "signing_keys", Row: id, Column: "sealed"}
}

func (h *house) newTokenKey() (auth.SealedKey, error) {
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

func (h *house) openTokenKey(k auth.SealedKey) (crypto.Signer, error) {
	plain, err := h.ring.Open(tokenKeyPlace(k.ID), k.Sealed)
	if err != nil {
		return nil, err
	}
	defer clear(plain)
	key, err := x509.ParsePKCS8PrivateKey(plain)
	if err != nil {
		return nil, errors.New("it is no PKCS #8 key")
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("it cannot sign")
	}
	return signer, nil
}

// clients returns the applications of the configuration.
func (h *house) clients() (*auth.Clients, error) {
	var list []auth.Client
	for _, c := range h.config.Clients {
		client := auth.Client{
			ID: c.ID, Public: c.SecretFile == "", PasswordGrant: c.PasswordGrant, RedirectURIs: c.RedirectURIs,
			Exchange: c.TokenExchange, Implicit: c.ImplicitGrant, NoChallenge: c.WithoutPKCE,
		}
		if !client.Public {
			secret, err := ownSecret(h.config.Path(c.SecretFile), "secret of client "+c.ID)
			if err != nil {
				return nil, err
			}
			client.Secret = auth.HashSecret(secret)
		}
		list = append(list, client)
	}
	return auth.NewClients(list)
}

// attempts are the limits of password attempts that wait.
func attempts(c *config.Config) password.Limits {
	p := &c.Passwords
	return password.Limits{Reserved: p.Reserved, Waiting: p.Waiting, OfOne: p.WaitingAddress, Wait: p.Wait}
}

// trustedSignIns is how many more attempts than a stranger a trusted caller has.
const trustedSignIns = 10

// signInLimits are the rate limits of password attempts. Each remembers the callers that
// called last.
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

type keyRotateCommand struct {
	AtOnce bool       `help:"Take the other keys away now, for a key that somebody has come to know: whoever is signed in has to do it again."`
	From   configFrom `embed:""`
}

// Run makes a new key for signing tokens.
func (k *keyRotateCommand) Run(c *console) error {
	return administer(c, &k.From, "RotateTokenKey", "", func(ctx context.Context, h *house) error {
		made, err := auth.RotateSigningKey(ctx, store.Tokens{DB: h.db}, k.AtOnce, h.newTokenKey)
		if err != nil {
			return err
		}
		from := h.tokenKeyOverlap().From(made).UTC()
		if k.AtOnce {
			from = made.CreatedAt.UTC() // there is no other
		}
		if k.From.JSON {
			return json.NewEncoder(c.stdout).Encode(struct {
				ID   string    `json:"id"`
				From time.Time `json:"signs_from"`
			}{made.ID, from})
		}
		fmt.Fprintf(c.stdout, "token signing key %s is published; it signs from %s\n", made.ID, from.Format(time.DateTime+" MST"))
		return nil
	})
}

type userSessionsCommand struct {
	onUser `embed:""`
}

// Run lists the grants of a user. They end together: tamga user logout.
func (u *userSessionsCommand) Run(c *console) error {
	return administer(c, &u.From, "ListSessions", "", func(ctx context.Context, h *house) error {
		x, err := u.find(ctx, h)
		if err != nil {
			return err
		}
		grants, err := h.identity.Grants(ctx, x.ID)
		if err != nil {
			return err
		}
		for _, g := range grants {
			if u.From.JSON {
				err = json.NewEncoder(c.stdout).Encode(struct {
					ID         string    `json:"id"`
					Client     string    `json:"client_id"`
					Scope      string    `json:"scope"`
					Method     string    `json:"method"`
					SignedInAt time.Time `json:"signed_in_at"`
					UsedAt     time.Time `json:"used_at"`
					ExpiresAt  time.Time `json:"expires_at"`
				}{g.ID, g.ClientID, g.Scope, g.Method, g.SignedInAt, g.UsedAt, g.ExpiresAt})
			} else {
				_, err = fmt.Fprintf(c.stdout, "%s  %s, signed in %s by %s, used %s, until %s\n", printable(g.ClientID), g.Scope,
					g.SignedInAt.UTC().Format(time.DateTime), g.Method, g.UsedAt.UTC().Format(time.DateTime), g.ExpiresAt.UTC().Format(time.DateTime))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}
