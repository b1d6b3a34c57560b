// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/token"
)

// TypeJWT and TypeAccessToken are types of tokens (RFC 8693, 3).
const (
	TypeJWT         = "urn:ietf:params:oauth:token-type:jwt"
	TypeAccessToken = "urn:ietf:params:oauth:token-type:access_token"
)

// Bounds of a subject token.
const (
	maxSubject     = 8 << 10         // bytes
	maxSubjectLife = 24 * time.Hour  // from its nbf and its iat
	subjectSkew    = 5 * time.Minute // the largest lead of a client's clock
)

// Exchange is the request of an operator for a token of a user (RFC 8693, 2.1).
type Exchange struct {
	Actor, ActorType     string // the operator's access token
	Subject, SubjectType string // unsigned JWT that names the user
	Resource, Scope      string
}

// subject is the content of a subject token. It proves nothing. The actor alone decides
// which users may be acted on.
type subject struct {
	Name      string   `json:"unique_name"`
	ID        string   `json:"nameidentifier"`
	NotBefore *float64 `json:"nbf"`
	Expiry    *float64 `json:"exp"`
	IssuedAt  *float64 `json:"iat"`
}

// ExchangeGrant gives an operator a token to act as a user of the operator's groups. The
// actor token is an access token of this service, of an operator in person. The subject
// token is a JWT with the algorithm none and an empty signature. No other call accepts such
// a JWT.
//
// The token names the operator (act). It expires no later than either of the two tokens.
// Its scope is part of the scope of the operator's token. It has no refresh token and none
// of the user's rights as an operator. It belongs to the operator's sign-in. It ends with
// that sign-in, and when the user leaves the operator's groups.
//
// who is the operator, as soon as the operator is known. Refusals are *token.GrantError:
// unauthorized_client; invalid_scope; invalid_request for everything else (RFC 8693,
// 2.2.2), except that a user whose operation policy has every sign-in confirmed must confirm
// the exchange: authn_method_not_confirmed, a *StepNeeded. The refusal is the same for a user
// who is unknown, out of reach or locked.
func (s *Service) ExchangeGrant(ctx context.Context, client Client, x Exchange) (t token.Token, who audit.Principal, err error) {
	if !client.Exchange {
		return t, who, token.Refuse(token.UnauthorizedClient, "the client may not exchange tokens")
	}
	if err := s.tokens.CheckResource(x.Resource); err != nil {
		return t, who, err
	}
	scope, err := token.GrantScope(x.Scope)
	if err != nil {
		return t, who, err
	}
	scope = token.Without(token.Without(scope, token.ScopeOffline), token.ScopeOpenID)
	switch {
	case x.Actor == "" || x.Subject == "":
		return t, who, token.Refuse(token.InvalidRequest, "want actor_token and subject_token")
	case x.ActorType != "" && x.ActorType != TypeJWT && x.ActorType != TypeAccessToken:
		return t, who, token.Refuse(token.InvalidRequest, "actor_token_type: want "+TypeJWT)
	case x.SubjectType != TypeJWT:
		return t, who, token.Refuse(token.InvalidRequest, "subject_token_type: want "+TypeJWT)
	}
	sub, err := readSubject(x.Subject, s.now())
	if err != nil {
		return t, who, err
	}
	// Both users are locked, so that the new token ends with the sign-in of the operator.
	subjectID, err := s.subjectID(ctx, sub)
	if err != nil {
		return t, who, err
	}
	actorID := s.bearerID(ctx, x.Actor)
	var waiting *FirstStep
	err = s.store.Atomic(ctx, lock.User(actorID, subjectID), func(ctx context.Context) error {
		b, err := s.tokens.Check(ctx, x.Actor)
		if fault.Is(err, fault.Unauthorized) {
			return token.Refuse(token.InvalidRequest, "actor_token: expired or not valid")
		}
		if err != nil {
			return err
		}
		if again, err := s.subjectID(ctx, sub); err != nil || again != subjectID || b.User.ID != actorID {
			return cmp.Or(err, changedMeanwhile())
		}
		who = b.Principal()
		if !who.Operator {
			return token.Refuse(token.InvalidRequest, "actor_token: not of an operator in person")
		}
		t, waiting, err = s.delegate(ctx, client, who, b.Token, sub, subjectID, token.Narrowed(scope, b.Token.Scope))
		return err
	})
	who.ClientID = client.ID
	if err == nil && waiting != nil {
		return token.Token{UserID: subjectID}, who, s.stepNeeded(*waiting)
	}
	return t, who, err
}

// delegate issues the token of ExchangeGrant. If the user must confirm it, delegate returns
// the exchange that waits for that.
func (s *Service) delegate(ctx context.Context, client Client, who audit.Principal, actor token.Record, sub subject, userID, scope string) (token.Token, *FirstStep, error) {
	refused := token.Refuse(token.InvalidRequest, "subject_token: names no user you may act as")
	switch err := s.reach.Reach(ctx, who, userID); {
	case fault.Is(err, fault.UserNotFound):
		return token.Token{}, nil, refused
	case err != nil:
		return token.Token{}, nil, err
	}
	name, u, err := s.store.SignInName(ctx, userID)
	if err != nil {
		return token.Token{}, nil, err
	}
	if sub.Name != "" && u.Login == "" {
		name = sub.Name // a phone or an e-mail: clients compare with what they sent
	}
	from := token.DescentOf(actor)
	if end := seconds(*sub.Expiry); end.Before(from.EndsAt) {
		from.EndsAt = end
	}
	if from.EndsAt.Sub(s.now()) < time.Second {
		return token.Token{}, nil, token.Refuse(token.InvalidRequest, "actor_token or subject_token: about to expire")
	}
	f := s.first(u, name, client, token.Proof{Method: methodDelegated, Delegated: true})
	f.Who.Actor = who.Login
	f.order.Scope, f.order.Descent, f.order.Actor = scope, from, &token.Actor{UserID: who.UserID, Login: who.Login}
	if err := s.tokens.Issuable(ctx, userID, f.order.Actor, f.order.Proof); wantsStep(err) {
		if u.Barred(s.now()) {
			return token.Token{}, nil, refused
		}
		f, err := s.wait(ctx, f)
		if err != nil {
			return token.Token{}, nil, fault.Rollback(err)
		}
		return token.Token{}, &f, nil
	}
	t, ok, err := s.tokens.Issue(ctx, f.order)
	if err == nil && !ok {
		err = refused
	}
	if err != nil {
		return token.Token{}, nil, err
	}
	return t, nil, nil
}

// subjectID returns the user whom a subject names. It is "" for an unknown name, which is
// looked up all the same.
func (s *Service) subjectID(ctx context.Context, sub subject) (string, error) {
	if sub.Name == "" {
		return strings.ToLower(sub.ID), nil
	}
	c, _, err := s.credential(ctx, sub.Name)
	return c.User.ID, err
}

// methodDelegated is the method in records of tokens that an operator obtained.
const methodDelegated = "delegated"

// readSubject reads an unsigned JWT (RFC 7519, 6).
func readSubject(text string, now time.Time) (s subject, err error) {
	refused := func(why string) error { return token.Refuse(token.InvalidRequest, "subject_token: "+why) }
	if len(text) > maxSubject {
		return s, refused("too long")
	}
	parts := strings.Split(text, ".")
	if len(parts) != 3 || parts[2] != "" {
		return s, refused("want a JWT without a signature, whose text ends with a dot")
	}
	var header struct {
		Algorithm string          `json:"alg"`
		Type      string          `json:"typ"`
		Critical  json.RawMessage `json:"crit"`
	}
	if err := decodePart(parts[0], &header); err != nil || header.Algorithm != "none" || header.Critical != nil ||
		header.Type != "" && !strings.EqualFold(header.Type, "JWT") {
		return s, refused(`want the header {"alg":"none","typ":"JWT"}`)
	}
	if err := decodePart(parts[1], &s); err != nil {
		return s, refused("its payload is no JSON object with unique_name or nameidentifier, nbf, exp and iat")
	}
	if (s.Name == "") == (s.ID == "") {
		return s, refused("want unique_name or nameidentifier")
	}
	for _, v := range []*float64{s.NotBefore, s.Expiry, s.IssuedAt} {
		if v == nil || math.IsNaN(*v) || *v < 0 || *v > 1<<40 {
			return s, refused("want nbf, exp and iat in seconds")
		}
	}
	from, issued, end := seconds(*s.NotBefore), seconds(*s.IssuedAt), seconds(*s.Expiry)
	switch latest := now.Add(subjectSkew); {
	case from.After(latest) || issued.After(latest):
		return s, refused("its nbf or iat is in the future")
	case !now.Before(end):
		return s, refused("expired")
	case end.Sub(from) > maxSubjectLife || end.Sub(issued) > maxSubjectLife:
		return s, refused("want it to live 24 hours at most")
	}
	return s, nil
}

func seconds(v float64) time.Time { return time.Unix(int64(v), 0) }

// decodePart reads a part of a JWT: the Base64URL form, with or without padding, of one
// JSON object.
func decodePart(part string, v any) error {
	data, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(part, "="))
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("signin: more than one value")
	}
	return nil
}
