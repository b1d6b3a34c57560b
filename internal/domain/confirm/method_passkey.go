// SPDX-License-Identifier: Apache-2.0

package confirm

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"tamga/gost/streebog"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/passkey"
)

// Passkeys are those of users; *passkey.Service satisfies it.
type Passkeys interface {
	Has(ctx context.Context, userID string) (bool, error)
	// Request returns the options with which a browser answers a challenge, as JSON.
	Request(ctx context.Context, userID string, challenge []byte) ([]byte, error)
	// Check returns nil if the answer is the user's. The fault is
	// invalid_confirmation_code.
	Check(ctx context.Context, userID string, challenge, answer []byte) error
	// Evidence returns an answer that Check has accepted, in the same transaction.
	Evidence(ctx context.Context, userID string, answer []byte) (passkey.Evidence, error)
}

// PasskeyApproval is the answer of a passkey as a record keeps it. With the record, Round and Nonce give the challenge; see
// docs/confirmation.md.
type PasskeyApproval struct {
	Round int    `json:"round"` // number of the challenge
	Nonce []byte `json:"nonce"`
	passkey.Evidence
}

// byPasskey takes the answer of a passkey, which the browser signs over a challenge that
// belongs to one challenge of one record. Nothing is sent.
type byPasskey struct{ s *Service }

func newByPasskey(s *Service) Method { return byPasskey{s} }

// Choices implements Method. The browser asks which of several passkeys it shall be.
func (m byPasskey) Choices(ctx context.Context, userID string) ([]Choice, error) {
	if m.s.deps.Passkeys == nil {
		return nil, nil
	}
	has, err := m.s.deps.Passkeys.Has(ctx, userID)
	if err != nil || !has {
		return nil, err
	}
	return []Choice{{}}, nil
}

// nonceSize is the size of the random part of a challenge, in bytes.
const nonceSize = 32

// Begin implements Method. A repetition has the challenge that it repeats.
func (m byPasskey) Begin(ctx context.Context, r *Record, _ *what.Fields) error {
	if r.Resends > 0 {
		return nil
	}
	nonce := make([]byte, nonceSize)
	if _, err := io.ReadFull(m.s.deps.Rand, nonce); err != nil {
		return fmt.Errorf("confirm: drawing a challenge: %w", err)
	}
	return m.s.setOffline(ctx, r.ID, offlineChallenge{Round: r.Round, Code: base64.StdEncoding.EncodeToString(nonce)})
}

// Check implements Method: the answer is the JSON of the browser.
func (m byPasskey) Check(ctx context.Context, r *Record, answer string) error {
	if m.s.deps.Passkeys == nil {
		return noMethod()
	}
	challenge, err := m.s.passkeyChallenge(ctx, r)
	if err != nil {
		return err
	}
	return m.s.deps.Passkeys.Check(ctx, r.UserID, challenge, []byte(answer))
}

// Evidence implements evident.
func (m byPasskey) Evidence(ctx context.Context, r *Record, answer string) ([]byte, error) {
	o, err := m.s.offline(ctx, r)
	if err != nil {
		return nil, err
	}
	a := PasskeyApproval{Round: r.Round}
	if a.Nonce, err = base64.StdEncoding.DecodeString(o.Code); err != nil {
		return nil, fmt.Errorf("confirm: record %s: the challenge of a passkey: %w", r.ID, err)
	}
	if a.Evidence, err = m.s.deps.Passkeys.Evidence(ctx, r.UserID, []byte(answer)); err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"passkey": a})
}

// passkeyChallenge returns what a passkey signs for the challenge of r.
func (s *Service) passkeyChallenge(ctx context.Context, r *Record) ([]byte, error) {
	o, err := s.offline(ctx, r)
	if err != nil {
		return nil, err
	}
	nonce, err := base64.StdEncoding.DecodeString(o.Code)
	switch {
	case err != nil:
		return nil, fmt.Errorf("confirm: record %s: the challenge of a passkey: %w", r.ID, err)
	case len(nonce) != nonceSize:
		return nil, fault.New(fault.InvalidTransaction, "no passkey is asked for: choose the method again")
	}
	h := streebog.New256()
	for _, field := range [][]byte{
		[]byte("tamga passkey challenge"), {1}, []byte(r.ID), []byte(r.UserID), []byte(r.ClientID), []byte(r.Purpose), r.What[:],
		binary.BigEndian.AppendUint32(nil, uint32(r.Round)), nonce,
	} {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(field))))
		h.Write(field)
	}
	return h.Sum(nil), nil
}
