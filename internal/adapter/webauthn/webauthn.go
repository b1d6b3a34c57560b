// SPDX-License-Identifier: Apache-2.0

// Package webauthn checks answers of WebAuthn. Begin with [New]. It keeps nothing: package
// passkey owns passkeys.
package webauthn

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"slices"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/protocol/webauthncose"
	"github.com/go-webauthn/webauthn/webauthn"

	"tamga/internal/domain/passkey"
)

// Ceremonies implements [passkey.Ceremonies].
type Ceremonies struct{ party *webauthn.WebAuthn }

var _ passkey.Ceremonies = Ceremonies{}

// algorithms are those that browsers and authenticators support everywhere.
var algorithms = []protocol.CredentialParameter{
	{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgES256},
	{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgEdDSA},
	{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgRS256},
}

// New returns the ceremonies of a service at a public address. Passkeys belong to the host
// of the address for ever, and answers of pages of other origins are refused. title is the
// name of the service for people.
func New(address, title string) (Ceremonies, error) {
	u, err := url.Parse(address)
	if err != nil {
		return Ceremonies{}, fmt.Errorf("webauthn: %w", err)
	}
	party, err := webauthn.New(&webauthn.Config{
		RPID: u.Hostname(), RPDisplayName: title, RPOrigins: []string{u.Scheme + "://" + u.Host},
		AttestationPreference: protocol.PreferNoAttestation,
	})
	if err != nil {
		return Ceremonies{}, fmt.Errorf("webauthn: %w", err)
	}
	return Ceremonies{party}, nil
}

// person implements webauthn.User.
type person struct {
	passkey.Person
	have []webauthn.Credential
}

// WebAuthnID implements webauthn.User. It is what authenticators keep: it says nothing
// about the person.
func (p person) WebAuthnID() []byte                         { return []byte(p.ID) }
func (p person) WebAuthnName() string                       { return p.Login }
func (p person) WebAuthnDisplayName() string                { return p.Login }
func (p person) WebAuthnCredentials() []webauthn.Credential { return p.have }

func known(list []passkey.Credential) (have []webauthn.Credential) {
	for _, c := range list {
		have = append(have, webauthn.Credential{
			ID: c.ID, PublicKey: c.PublicKey, Flags: webauthn.CredentialFlags{BackupEligible: c.BackedUp},
			Authenticator: webauthn.Authenticator{SignCount: c.Counter},
		})
	}
	return have
}

func descriptors(list []passkey.Credential) []protocol.CredentialDescriptor {
	described := []protocol.CredentialDescriptor{}
	for _, c := range list {
		described = append(described, protocol.CredentialDescriptor{Type: protocol.PublicKeyCredentialType, CredentialID: c.ID})
	}
	return described
}

// session is a ceremony as it was begun.
func session(p passkey.Person, challenge []byte) webauthn.SessionData {
	return webauthn.SessionData{
		Challenge: base64.RawURLEncoding.EncodeToString(challenge), UserID: []byte(p.ID),
		UserVerification: protocol.VerificationRequired, CredParams: algorithms,
	}
}

// Creation implements [passkey.Ceremonies].
func (c Ceremonies) Creation(p passkey.Person, challenge []byte, exclude []passkey.Credential) ([]byte, error) {
	return json.Marshal(protocol.PublicKeyCredentialCreationOptions{
		RelyingParty: protocol.RelyingPartyEntity{
			CredentialEntity: protocol.CredentialEntity{Name: c.party.Config.RPDisplayName}, ID: c.party.Config.RPID,
		},
		User: protocol.UserEntity{
			CredentialEntity: protocol.CredentialEntity{Name: p.Login}, DisplayName: p.Login, ID: protocol.URLEncodedBase64(p.ID),
		},
		Challenge: challenge, Parameters: algorithms, CredentialExcludeList: descriptors(exclude),
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementPreferred, UserVerification: protocol.VerificationRequired,
		},
		Attestation: protocol.PreferNoAttestation,
	})
}

// Created implements [passkey.Ceremonies].
func (c Ceremonies) Created(p passkey.Person, challenge, answer []byte) (passkey.Credential, error) {
	parsed, err := protocol.ParseCredentialCreationResponseBytes(answer)
	if err != nil {
		return passkey.Credential{}, err
	}
	made, err := c.party.CreateCredential(person{Person: p}, session(p, challenge), parsed)
	if err != nil {
		return passkey.Credential{}, err
	}
	return passkey.Credential{ID: made.ID, PublicKey: made.PublicKey, BackedUp: made.Flags.BackupEligible, Counter: made.Authenticator.SignCount}, nil
}

// Assertion implements [passkey.Ceremonies].
func (c Ceremonies) Assertion(_ passkey.Person, challenge []byte, allow []passkey.Credential) ([]byte, error) {
	return json.Marshal(protocol.PublicKeyCredentialRequestOptions{
		Challenge: challenge, RelyingPartyID: c.party.Config.RPID, AllowedCredentials: descriptors(allow),
		UserVerification: protocol.VerificationRequired,
	})
}

// Asserted implements [passkey.Ceremonies].
func (c Ceremonies) Asserted(p passkey.Person, challenge, answer []byte, of []passkey.Credential) (passkey.Credential, error) {
	parsed, err := protocol.ParseCredentialRequestResponseBytes(answer)
	if err != nil {
		return passkey.Credential{}, err
	}
	used, err := c.party.ValidateLogin(person{p, known(of)}, session(p, challenge), parsed)
	if err != nil {
		return passkey.Credential{}, err
	}
	return passkey.Credential{
		ID: used.ID, PublicKey: used.PublicKey, BackedUp: used.Flags.BackupEligible,
		Counter: used.Authenticator.SignCount, Cloned: used.Authenticator.CloneWarning,
	}, nil
}

// PublicKey implements [passkey.Ceremonies].
func (c Ceremonies) PublicKey(of passkey.Credential) ([]byte, error) {
	parsed, err := webauthncose.ParsePublicKey(of.PublicKey)
	if err != nil {
		return nil, err
	}
	var key any
	switch k := parsed.(type) {
	case webauthncose.EC2PublicKeyData:
		if webauthncose.COSEEllipticCurve(k.Curve) != webauthncose.P256 || len(k.XCoord) != 32 || len(k.YCoord) != 32 {
			return nil, errors.New("webauthn: the key is not on P-256")
		}
		if key, err = ecdsa.ParseUncompressedPublicKey(elliptic.P256(), slices.Concat([]byte{4}, k.XCoord, k.YCoord)); err != nil {
			return nil, err
		}
	case webauthncose.OKPPublicKeyData:
		key = ed25519.PublicKey(k.XCoord)
	case webauthncose.RSAPublicKeyData:
		key = &rsa.PublicKey{N: new(big.Int).SetBytes(k.Modulus), E: int(new(big.Int).SetBytes(k.Exponent).Int64())}
	default:
		return nil, fmt.Errorf("webauthn: a key of the type %T", parsed)
	}
	return x509.MarshalPKIXPublicKey(key)
}
