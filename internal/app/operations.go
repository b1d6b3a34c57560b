// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"tamga/internal/adapter/guard"
	"tamga/internal/adapter/store"
	"tamga/internal/adapter/webhook"
	"tamga/internal/config"
	"tamga/internal/domain/audit"
	stored "tamga/internal/domain/document"
	"tamga/internal/domain/encryption"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/signing"
	"tamga/internal/domain/token"
	"tamga/internal/domain/user"
	"tamga/internal/files"
	"tamga/internal/web/rest"
	"tamga/internal/web/signapi"
)

// kinds returns what users can order. A new kind is one line here. Signatures need what only a server
// has, so newOperations adds them.
func (b *Base) kinds() []operation.Kind {
	return append(
		b.Keys.OperationKinds(), // the acts on keys
		b.Approvals.Kind(),
	)
}

// newOperations adds signatures, encryption and decryption to the service of operations, and returns the web
// interface of v2. Results of decryption are kept in sealed.
func (s *Services) newOperations(signer *signing.Service, documents *stored.Service, sealed signing.Blobs) (*signing.Operations, signapi.Operating, error) {
	operations := &signing.Operations{Service: s.Operations, Signer: signer, PINs: s.Keys, Templates: s.Config.Operations.TemplatesByID()}
	messages := &encryption.Service{
		Operations: s.Operations, Keys: s.Keys, Policy: s.Policies, Snapshots: signer, Scratch: signer.NewScratch, Now: s.DB.Now, Rand: rand.Reader,
	}
	if err := s.Operations.Add(append(operations.Kinds(), messages.Kinds()...)...); err != nil {
		return nil, signapi.Operating{}, err
	}
	api := signapi.Operating{Realm: config.LocalIssuer, Operations: s.Operations, Signatures: operations, Encryption: messages}
	callbacks := operation.Callbacks{Messages: s.Messages, Render: api.Render}
	if s.callbacks != nil {
		callbacks.Check = s.callbacks.Check
	}
	s.Operations.Use(operation.DocumentDeps{
		Documents: operation.DocumentStore{Service: documents}, Blobs: signer.Blobs, Sealed: sealed, Owners: ownerCheck{s.Users, s.Tokens}, Callbacks: callbacks,
		Scratch: func() operation.Scratch { return signer.NewScratch() },
	})
	s.Messages.OpenBodies(operation.CallbackForm, s.Operations)
	return operations, api, nil
}

// callbackSender returns what calls the addresses that clients name for operations and
// confirmations, nil if the installation makes no callbacks.
func callbackSender(conf *config.Config, now func() time.Time) (*webhook.Sender, error) {
	c := &conf.Operations.Callbacks
	if c.SecretFile == "" {
		return nil, nil
	}
	secret, err := files.OwnSecret(secretPath(conf, c.SecretFile), "operations.callbacks.secret_file")
	if err != nil {
		return nil, err
	}
	exceptions, err := c.Exceptions()
	if err != nil {
		return nil, err
	}
	roots, err := roots(conf, c.AuthoritiesFile)
	if err != nil {
		return nil, err
	}
	sender, err := webhook.New(webhook.Config{
		Secret: secret, Guard: guard.New(guard.Config{Exceptions: exceptions}), Plain: c.PlainHTTP, Roots: roots, Now: now,
	})
	if err != nil {
		return nil, fmt.Errorf("operations.callbacks: %w", err)
	}
	return sender, nil
}

// ownerCheck checks whether the owner of an operation may still act when the operation runs.
type ownerCheck struct {
	users  *user.Service
	tokens *token.Service
}

// MayAct returns an error unless the user exists, is not locked and may continue.
func (s ownerCheck) MayAct(ctx context.Context, who audit.Principal) error {
	u, err := s.users.Get(ctx, who.UserID)
	if fault.Is(err, fault.UserNotFound) || err == nil && u.Barred(s.users.Now()) {
		return fault.New(fault.AccessDenied, "the user was locked or deleted before the operation was carried out")
	}
	if err != nil {
		return err
	}
	return s.tokens.MayContinue(ctx, who)
}

// answers returns the store of answers to requests with an Idempotency-Key. They may be plaintext of messages, so
// they are sealed wherever they are stored.
func (s *Services) answers(signer *signing.Service, sealed signing.Blobs) *signing.Answers {
	c := &s.Config.Repetitions
	return &signing.Answers{
		Store: store.Answers{DB: s.DB}, Blobs: sealed, Spool: signer.Results, Vault: s.ring, Now: s.DB.Now, Rand: rand.Reader,
		Rules:  signing.AnswerRules{Life: c.Life, Lease: c.Lease, Bytes: int64(c.UserBytes)},
		Failed: func(err error) { s.log.Error("keeping answers", "error", err) },
	}
}

// once returns the function that starts or repeats a request with an Idempotency-Key.
func once(a *signing.Answers) rest.Begin {
	return func(ctx context.Context, caller, key string, request []byte) (rest.KeyedRequest, bool, error) {
		t, wait, err := a.Begin(ctx, caller, key, request)
		if err != nil || wait {
			return nil, wait, err
		}
		return t, false, nil
	}
}

// templatesOf returns the processing templates in the form of the signing policy.
func templatesOf(c *config.Config) (list []signapi.Template) {
	for _, t := range c.Operations.Templates {
		var endings []string
		for _, r := range t.Rules {
			if len(r.Extensions) == 0 {
				endings = append(endings, "*")
			}
			endings = append(endings, r.Extensions...)
		}
		list = append(list, signapi.Template{ID: t.ID, Description: strings.Join(endings, ", ")})
	}
	return list
}

// Proofs returns the service that exports the evidence of confirmations.
func (s *Services) Proofs() *signing.Proofs {
	return &signing.Proofs{Records: s.Confirm, Entries: store.Audit{DB: s.DB}}
}
