// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"sync/atomic"
	"time"

	"tamga/internal/domain/token"
)

// Client is an OAuth client of the configuration.
type Client struct {
	ID            string
	Title         string // name for people; "": ID
	Secret        []byte // SHA-256 of the secret, see HashSecret; nil for a public client
	Public        bool   // has no secret
	PasswordGrant bool   // may exchange a password for a token
	Exchange      bool   // may exchange an operator's token for one of a user (RFC 8693)
	Implicit      bool   // may have tokens sent to its redirect addresses
	NoChallenge   bool   // a public client that may ask for codes without a challenge (RFC 7636)

	// ConfirmMethods are the names of the methods of package confirm that the client can
	// handle. nil: all, and oath only for users who have no other.
	ConfirmMethods []string

	// ConfirmTitles means that the client shows the title of a challenge, so that a device can
	// ask for the two digits in it.
	ConfirmTitles bool

	// SessionLife is how long an access token of the client is valid that it got for a code; 0
	// is the usual life. Only the pages of this program have it: they have no refresh tokens.
	SessionLife time.Duration

	// RedirectURIs lists where authorization codes may be sent, compared byte for byte
	// but for the port of a loopback address (RFC 8252, 7.3).
	// Without one, the client may not use codes.
	RedirectURIs []string
}

// RedirectOutOfBand is the redirect address of programs that have none. They read the code
// from the answer itself.
const RedirectOutOfBand = "urn:ietf:wg:oauth:2.0:oob:auto"

// HashSecret returns the form in which the secret of a client is configured. Secrets of
// clients are random and long, unlike passwords, so one SHA-256 is enough.
func HashSecret(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// Clients holds the known clients by identifier.
type Clients struct {
	known atomic.Pointer[knownClients]
}

type knownClients struct {
	byID     map[string]Client
	fallback string // see Default
}

// Replace makes c know the clients of other, and no more those of before.
func (c *Clients) Replace(other *Clients) { c.known.Store(other.known.Load()) }

// NewClients checks a list of clients and reports all faults in it. fallback is the identifier of
// the client of Default; "" for none.
func NewClients(list []Client, fallback string) (*Clients, error) {
	byID := make(map[string]Client, len(list))
	var faults []error
	for _, client := range list {
		if client.ID == "" {
			faults = append(faults, errors.New("signin: client: want an identifier"))
		}
		if _, twice := byID[client.ID]; twice {
			faults = append(faults, errors.New("signin: client "+client.ID+": listed twice"))
		}
		if client.Public && client.Secret != nil {
			faults = append(faults, errors.New("signin: client "+client.ID+": a public client has no secret"))
		}
		if !client.Public && len(client.Secret) != sha256.Size {
			faults = append(faults, errors.New("signin: client "+client.ID+": want the SHA-256 of its secret, or a public client"))
		}
		byID[client.ID] = client
	}
	if c, known := byID[fallback]; fallback != "" && (!known || !c.Public || !c.PasswordGrant) {
		faults = append(faults, errors.New("signin: default client "+fallback+": want a client of the list without a secret that may send passwords"))
	}
	c := &Clients{}
	c.known.Store(&knownClients{byID, fallback})
	return c, errors.Join(faults...)
}

// Find finds a client that has not proved itself yet, for requests that need no proof: an
// authorization code is worthless without the proof of its client.
func (c *Clients) Find(id string) (Client, bool) {
	client, known := c.known.Load().byID[id]
	return client, known
}

// Default returns the identifier of the client that a request of a user belongs to which names no
// client; "" if such requests are refused. It is a public client.
func (c *Clients) Default() string { return c.known.Load().fallback }

// Authenticate finds the client with this identifier and secret. A public client must
// present an empty secret. The error is a *token.GrantError with invalid_client, the same
// for an unknown client and for a wrong secret.
func (c *Clients) Authenticate(id, secret string) (Client, error) {
	client, known := c.known.Load().byID[id]
	refused := token.Refuse(token.InvalidClient, "the client is unknown or did not prove itself")
	if !known {
		return Client{}, refused
	}
	if client.Public {
		if secret != "" {
			return Client{}, refused
		}
		return client, nil
	}
	if subtle.ConstantTimeCompare(HashSecret(secret), client.Secret) != 1 {
		return Client{}, refused
	}
	return client, nil
}
