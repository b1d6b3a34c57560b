package signin

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"

	"tamga/internal/domain/token"
)

// Client is an OAuth client of the configuration.
type Client struct {
	ID            string
	Secret        []byte // SHA-256 of the secret, see HashSecret; nil for a public client
	Public        bool   // proves itself by nothing but its identifier
	PasswordGrant bool   // may exchange a password for a token
	Exchange      bool   // may exchange an operator's token for one of a user (RFC 8693)
	Implicit      bool   // may have tokens sent to its redirect addresses
	NoChallenge   bool   // a public client that brings no challenge (RFC 7636) to codes

	// RedirectURIs are where authorization codes may be sent, compared octet for
	// octet; none means that the client may not use codes.
	RedirectURIs []string
}

// RedirectOutOfBand is the redirect address of programs without one: the code is
// read from the answer itself.
const RedirectOutOfBand = "urn:ietf:wg:oauth:2.0:oob:auto"

// HashSecret is the form in which the secret of a client is configured. Secrets
// of clients are random and long, unlike passwords, so one SHA-256 will do.
func HashSecret(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// Clients are the known clients by identifier.
type Clients struct{ byID map[string]Client }

// NewClients checks a list of clients and reports every fault in it.
func NewClients(list []Client) (*Clients, error) {
	c := &Clients{byID: make(map[string]Client, len(list))}
	var faults []error
	for _, client := range list {
		if client.ID == "" {
			faults = append(faults, errors.New("auth: client: want an identifier"))
		}
		if _, twice := c.byID[client.ID]; twice {
			faults = append(faults, errors.New("auth: client "+client.ID+": listed twice"))
		}
		if client.Public && client.Secret != nil {
			faults = append(faults, errors.New("auth: client "+client.ID+": a public client has no secret"))
		}
		if !client.Public && len(client.Secret) != sha256.Size {
			faults = append(faults, errors.New("auth: client "+client.ID+": want the SHA-256 of its secret, or a public client"))
		}
		c.byID[client.ID] = client
	}
	return c, errors.Join(faults...)
}

// Find finds a client that has not proved itself yet, for a request that needs none:
// an authorization code is worth nothing without the proof of its client.
func (c *Clients) Find(id string) (Client, bool) {
	client, known := c.byID[id]
	return client, known
}

// Authenticate finds the client that presents this identifier and secret. A
// public client may present an empty secret only; the error is a *token.GrantError
// with invalid_client, the same for an unknown client and a wrong secret.
func (c *Clients) Authenticate(id, secret string) (Client, error) {
	client, known := c.byID[id]
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
