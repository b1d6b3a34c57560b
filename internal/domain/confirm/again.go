// SPDX-License-Identifier: Apache-2.0

package confirm

import (
	"context"
	"crypto/hmac"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"strings"
	"time"

	"tamga/gost/streebog"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/vault"
)

// A client that lost the answer to the right code sends the same code again, and gets the
// same final answer until Record.CompleteBefore. For that the right answer is kept with the
// record: not the code, but a MAC of it under a key of its own, sealed. So is the token of a
// sign-in, since a second one would be another sign-in; everything else is made again.
//
// A repetition counts only from the network of the first answer. A wrong one deletes what is
// kept, and counts as every wrong answer does, so that an attacker learns no code by repeating.

// keptAnswer is the right answer to a record and what it gave. It is stored sealed.
type keptAnswer struct {
	Network string `json:"network"`         // as audit.Network
	Key     []byte `json:"key,omitempty"`   // of MAC; none if a device confirmed
	MAC     []byte `json:"mac,omitempty"`   // of the text that the user typed
	Given   []byte `json:"given,omitempty"` // see Service.Keep; none before
}

func keptPlace(id string) vault.Place {
	return vault.Place{Purpose: "confirmation", Table: "confirmation_answers", Row: id, Column: "sealed"}
}

// mac returns the MAC of an answer. White space does not count, as in the answers themselves.
func (k *keptAnswer) mac(answer string) []byte {
	h := hmac.New(func() hash.Hash { return streebog.New256() }, k.Key)
	io.WriteString(h, strings.Join(strings.Fields(answer), ""))
	return h.Sum(nil)
}

// keepAnswer keeps the right answer to a record that is Confirmed, in the transaction of ctx.
func (s *Service) keepAnswer(ctx context.Context, r *Record, answer string) error {
	k := keptAnswer{Network: audit.Network(ctx), Key: make([]byte, streebog.Size256)}
	if _, err := io.ReadFull(s.deps.Rand, k.Key); err != nil {
		return fmt.Errorf("confirm: drawing a key: %w", err)
	}
	k.MAC = k.mac(answer)
	return s.setKept(ctx, r, k)
}

func (s *Service) setKept(ctx context.Context, r *Record, k keptAnswer) error {
	plain, err := json.Marshal(k)
	if err != nil {
		return err
	}
	defer clear(plain)
	sealed, err := s.deps.Vault.Seal(keptPlace(r.ID), plain)
	if err != nil {
		return err
	}
	return s.deps.Answers.KeepAnswer(ctx, r.ID, sealed, r.CompleteBefore)
}

// kept returns what is kept of a record. found is false for a call from another network than
// that of the answer.
func (s *Service) kept(ctx context.Context, r *Record, now time.Time) (k keptAnswer, found bool, err error) {
	sealed, found, err := s.deps.Answers.KeptAnswer(ctx, r.ID, now)
	if err != nil || !found {
		return k, false, err
	}
	plain, err := s.deps.Vault.Open(keptPlace(r.ID), sealed)
	if err != nil {
		return k, false, fmt.Errorf("confirm: record %s: %w", r.ID, err)
	}
	defer clear(plain)
	if err := json.Unmarshal(plain, &k); err != nil {
		return k, false, fmt.Errorf("confirm: record %s: the kept answer: %w", r.ID, err)
	}
	if k.Network != audit.Network(ctx) {
		return keptAnswer{}, false, nil
	}
	return k, true, nil
}

// repeatable reports whether the final answer to a record may be given again.
func (r *Record) repeatable(now time.Time) bool {
	return (r.State == Confirmed || r.State == Completed) && now.Before(r.CompleteBefore)
}

// again takes an answer to a record that waits for none, and reports whether it is the right
// one, repeated. It is called with the lock of the user, in the transaction of ctx.
func (s *Service) again(ctx context.Context, who audit.Principal, refID, answer string, now time.Time) (r Record, right bool, err error) {
	if r, err = s.byRef(ctx, who, refID); err != nil || !r.repeatable(now) {
		return Record{}, false, err
	}
	closed, err := s.deps.Answers.ClosedUntil(ctx, r.UserID, r.Method)
	if err != nil || now.Before(closed) {
		return Record{}, false, err
	}
	k, found, err := s.kept(ctx, &r, now)
	if err != nil || !found || len(k.MAC) == 0 {
		return Record{}, false, err
	}
	if hmac.Equal(k.mac(answer), k.MAC) {
		return r, true, nil
	}
	if err := s.deps.Answers.DropAnswer(ctx, r.ID); err != nil {
		return Record{}, false, err
	}
	_, err = s.deps.Answers.CountWrong(ctx, r.UserID, r.Method, now, s.settings.Wrong)
	return Record{}, false, err
}

// Keep keeps what the end of a record gave, such as a token, for Given. It belongs into the transaction
// of Spend.
func (s *Service) Keep(ctx context.Context, r *Record, given []byte) error {
	k, found, err := s.kept(ctx, r, s.now())
	switch {
	case err != nil:
		return err
	case !found && !ByDevice(r.Method):
		return nil // there is no answer that could be repeated
	case !found:
		k = keptAnswer{Network: audit.Network(ctx)}
	}
	k.Given = given
	return s.setKept(ctx, r, k)
}

// Given returns what Keep has kept of a record of who, until Record.CompleteBefore, to a call
// from the network of the first answer. It does not decide who may have it: only a call that
// answered rightly, or a poll for a record that a device confirmed.
func (s *Service) Given(ctx context.Context, who audit.Principal, id string) (given []byte, found bool, err error) {
	r, err := s.Find(ctx, who, id)
	now := s.now()
	if err != nil || r.State != Completed || !r.repeatable(now) {
		return nil, false, err
	}
	k, found, err := s.kept(ctx, &r, now)
	return k.Given, found && len(k.Given) > 0, err
}
