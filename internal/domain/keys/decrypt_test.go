// SPDX-License-Identifier: Apache-2.0

package keys_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/vault"
	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// plaintext is longer than a section of every cipher.
var plaintext = strings.Repeat("A line of the document.\n", 1000)

// encrypted returns a message for the certificate.
func encrypted(t testing.TB, c *keys.Certificate, o cms.Encryption) *cms.Enveloped {
	t.Helper()
	var message bytes.Buffer
	if err := cms.Encrypt(t.Context(), &message, strings.NewReader(plaintext), int64(len(plaintext)), []*x509gost.Certificate{c.X509}, o); err != nil {
		t.Fatal(err)
	}
	return enveloped(t, message.Bytes())
}

func enveloped(t testing.TB, message []byte) *cms.Enveloped {
	t.Helper()
	e, err := cms.ParseEnveloped(bytes.NewReader(message), int64(len(message)))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// decrypt decrypts a message with a certificate of alice and reports whether it returned the plaintext.
func (p *process) decrypt(ctx context.Context, snap *keys.Snapshot, c *keys.Certificate, pin string, e *cms.Enveloped) (bool, error) {
	o, err := p.DecryptIn(ctx, snap, alice, c, pin)
	if err != nil {
		return false, err
	}
	out := cms.Buffer{Limit: len(plaintext)}
	_, err = e.Decrypt(ctx, o, &out)
	return out.Bytes() != nil && string(out.Bytes()) == plaintext, err
}

// tryDecrypt is try with a message.
func (p *process) tryDecrypt(ctx context.Context, c *keys.Certificate, pin string, e *cms.Enveloped) string {
	made, err := p.decrypt(ctx, nil, c, pin, e)
	return outcome(err, made)
}

func TestDecrypt(t *testing.T) {
	p := start(t)
	ctx := t.Context()
	for _, s := range suite.All() {
		for _, pin := range []string{"", pin} {
			c := p.issue(t, keys.IssueOrder{Suite: s, PIN: pin, Default: true})
			e := encrypted(t, c, cms.Encryption{})
			for what, snap := range map[string]*keys.Snapshot{"without a snapshot": nil, "with a snapshot": p.snapshot(t, alice)} {
				if made, err := p.decrypt(ctx, snap, c, pin, e); err != nil || !made {
					t.Errorf("%s, PIN %q, %s: %v", s.Name, pin, what, err)
				}
			}
			if made, err := p.decrypt(ctx, nil, c, "975312", e); (pin == "") != made || (pin == "") != (err == nil) || err != nil && !fault.Is(err, fault.InvalidPIN) {
				t.Errorf("%s, PIN %q, another PIN: %t, %v", s.Name, pin, made, err)
			}
		}
	}
}

// A certificate still decrypts messages after it ended, unless the installation refuses it. The
// certificate of another user never decrypts.
func TestDecryptWithEndedCertificates(t *testing.T) {
	p := start(t)
	ctx := t.Context()
	good, short := p.issue(t, keys.IssueOrder{Life: 48 * time.Hour}), p.issue(t, keys.IssueOrder{Life: time.Hour})
	revoked, held := p.issue(t, keys.IssueOrder{Life: 48 * time.Hour}), p.issue(t, keys.IssueOrder{Life: 48 * time.Hour})
	for _, err := range []error{p.Revoke(ctx, revoked.ID, 1), p.Revoke(ctx, held.ID, 6)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	p.clock.advance(2 * time.Hour)
	o := p.Options
	o.RefuseEnded = true
	strict, err := keys.New(o)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*keys.Certificate{"good": good, "expired": short, "revoked": revoked, "on hold": held} {
		c, err := p.Resolve(ctx, alice, number(c))
		if err != nil {
			t.Fatal(err)
		}
		e := encrypted(t, c, cms.Encryption{Cipher: cms.Magma})
		if made, err := p.decrypt(ctx, nil, c, "", e); err != nil || !made {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := strict.DecryptIn(ctx, nil, alice, c, ""); (err == nil) != (name == "good") || err != nil && !fault.Is(err, fault.InvalidCertificate) {
			t.Errorf("%s, with RefuseEnded: %v", name, err)
		}
		if _, err := p.DecryptIn(ctx, nil, bob, c, ""); !fault.Is(err, fault.InvalidCertificate) {
			t.Errorf("%s, of another user: %v", name, err)
		}
	}
}

func TestDecryptOnce(t *testing.T) {
	p := start(t)
	c := p.issue(t, keys.IssueOrder{})
	e := encrypted(t, c, cms.Encryption{})
	o, err := p.DecryptIn(t.Context(), nil, alice, c, "")
	if err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		out := cms.Buffer{Limit: len(plaintext)}
		_, err := e.Decrypt(t.Context(), o, &out)
		if _, isFault := fault.As(err); (err == nil) != (n == 0) || isFault || errors.Is(err, cms.ErrDecrypt) {
			t.Errorf("use %d: %v", n, err)
		}
	}
}

// Attempts at a PIN are counted together for signatures and decryption, and every key agreement and RSA
// decryption is an attempt.
func TestDecryptPINAttempts(t *testing.T) {
	p := start(t)
	ctx := t.Context()
	for _, s := range []*suite.Suite{suite.GOST2012x256, suite.RSASHA256} {
		c := p.issue(t, keys.IssueOrder{Suite: s, PIN: pin})
		e := encrypted(t, c, cms.Encryption{})
		expect := func(pin, want string) {
			t.Helper()
			if got := p.tryDecrypt(ctx, c, pin, e); got != want {
				t.Fatalf("%s, PIN %q: %s, want %s", s.Name, pin, got, want)
			}
		}
		for range 2 { // a right PIN returns all attempts
			for range keys.DefaultPINAttempts - 1 {
				expect("1235", "wrong")
			}
			expect(pin, "ok")
		}
		for range 3 * keys.DefaultPINAttempts {
			expect("", "needed")
			expect(strings.Repeat("1", 1000), "wrong")
		}
		for range keys.DefaultPINAttempts - 1 {
			expect("1235", "wrong")
		}
		if _, err := p.Sign(ctx, c, "1235", digests(s, "x")); !fault.Is(err, fault.InvalidPIN) {
			t.Errorf("%s: signing with a wrong PIN: %v", s.Name, err)
		}
		before := p.holder.tries.Load()
		expect(pin, "blocked")
		if p.holder.tries.Load() != before {
			t.Errorf("%s: a blocked key was tried", s.Name)
		}
	}
}

// Fifty wrong PINs at once, through three processes and for signatures and messages: exactly ten are tried.
func TestWrongPINsTogetherDecrypt(t *testing.T) {
	p := start(t)
	processes := []*process{p, join(t, p.db, p.clock, 2), join(t, p.db, p.clock, 3)}
	c := p.issue(t, keys.IssueOrder{PIN: pin})
	e := encrypted(t, c, cms.Encryption{Cipher: cms.Kuznyechik, Agreement: true})
	answers := make([]string, 50)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			if process := processes[i%len(processes)]; i%2 == 0 {
				answers[i] = process.tryDecrypt(t.Context(), c, "1235", e)
			} else {
				answers[i] = process.try(t.Context(), c, "1235")
			}
		})
	}
	all.Wait()
	count := map[string]int{}
	for _, a := range answers {
		count[a]++
	}
	var tries int64
	for _, process := range processes {
		tries += process.holder.tries.Load()
	}
	if count["wrong"] != keys.DefaultPINAttempts || count["blocked"] != 50-keys.DefaultPINAttempts || tries != keys.DefaultPINAttempts {
		t.Errorf("answers %v, %d tries", count, tries)
	}
	if got := p.tryDecrypt(t.Context(), c, pin, e); got != "blocked" {
		t.Errorf("the right PIN afterwards: %s", got)
	}
}

func TestRightPINsTogetherDecrypt(t *testing.T) {
	p := start(t)
	c := p.issue(t, keys.IssueOrder{PIN: pin})
	e := encrypted(t, c, cms.Encryption{})
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if got := p.tryDecrypt(t.Context(), c, pin, e); got != "ok" {
				t.Error(got)
			}
		})
	}
	all.Wait()
}

// An error that reveals nothing about the PIN costs no attempt, also when the client has disconnected. A right
// PIN returns all attempts, also if the message does not decrypt.
func TestDecryptPINAttemptComesBack(t *testing.T) {
	p := start(t)
	ctx := t.Context()
	c := p.issue(t, keys.IssueOrder{Suite: suite.RSASHA256, PIN: pin})
	e := encrypted(t, c, cms.Encryption{Cipher: cms.AES256GCM, OAEP: true})
	broken := errors.New("the device is not there")
	p.holder.before = func(context.Context, []byte) error { return broken }
	if got := p.tryDecrypt(ctx, c, pin, e); got != broken.Error() {
		t.Errorf("with a broken holder: %s", got)
	}
	hung, hangUp := context.WithCancel(ctx)
	p.holder.before = func(context.Context, []byte) error { hangUp(); return hung.Err() }
	if got := p.tryDecrypt(hung, c, pin, e); got != context.Canceled.Error() {
		t.Errorf("hung up: %s", got)
	}
	taken := func() int {
		t.Helper()
		n, err := p.PINStore.PINFailures(ctx, c.KeyID)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := taken(); n != 0 {
		t.Errorf("%d attempts are taken", n)
	}
	p.holder.before = nil
	if got := p.tryDecrypt(ctx, c, "1235", e); got != "wrong" || taken() != 1 {
		t.Errorf("a wrong PIN: %s, %d attempts are taken", got, taken())
	}
	e.Recipients[0].EncryptedKey[7] ^= 1
	if made, err := p.decrypt(ctx, nil, c, pin, e); made || !errors.Is(err, cms.ErrDecrypt) || taken() != 0 {
		t.Errorf("a changed message: %v, %d attempts are taken", err, taken())
	}
}

// A PIN that was right a moment ago takes no attempt, whatever it was used for.
func TestDecryptRecognizesThePIN(t *testing.T) {
	p := start(t)
	ctx := t.Context()
	c := p.issue(t, keys.IssueOrder{PIN: pin, Default: true})
	e := encrypted(t, c, cms.Encryption{})
	for n, mark := range []string{"token", "token", "other token"} {
		snap := p.snapshot(t, alice)
		snap.PINMark = mark
		before := p.attempts.Load()
		var made bool
		var err error
		if n == 0 {
			_, err = p.SignIn(ctx, snap, c, pin, digests(suite.GOST2012x256, "x"))
			made = true
		} else {
			made, err = p.decrypt(ctx, snap, c, pin, e)
		}
		want := int64(1)
		if n == 1 {
			want = 0
		}
		if taken := p.attempts.Load() - before; err != nil || !made || taken != want {
			t.Errorf("use %d: %d attempts, want %d; %v", n, taken, want, err)
		}
	}
}

// An attempt inside a transaction could be rolled back with it.
func TestDecryptOutsideOfTransactions(t *testing.T) {
	p := start(t)
	c := p.issue(t, keys.IssueOrder{PIN: pin})
	e := encrypted(t, c, cms.Encryption{})
	var got string
	err := (store.Keys{DB: p.db}).Atomic(t.Context(), lock.Set{}, func(ctx context.Context) error {
		got = p.tryDecrypt(ctx, c, pin, e)
		return nil
	})
	if err != nil || !strings.Contains(got, "inside a transaction") || p.holder.tries.Load() != 0 {
		t.Errorf("%s, %v", got, err)
	}
}

// decrypting is a device whose keys decrypt.
type decrypting struct{ *device }

func (d decrypting) Agree(ctx context.Context, k vault.Key, pin []byte, a cms.KeyAgreement) ([]byte, error) {
	k, err := d.find(ctx, k)
	if err != nil {
		return nil, err
	}
	return d.soft.Agree(ctx, k, pin, a)
}

func (d decrypting) Decrypt(ctx context.Context, k vault.Key, pin []byte, t cms.KeyTransport) ([]byte, error) {
	k, err := d.find(ctx, k)
	if err != nil {
		return nil, err
	}
	return d.soft.Decrypt(ctx, k, pin, t)
}

// A key of a device that only signs is refused before its PIN is tried. Audit entries name the holder.
func TestDecryptWithADevice(t *testing.T) {
	p, _, d := withDevice(t, []keys.PlacementRule{{Holder: "device"}}, nil)
	used := &audit.Holders{}
	ctx := audit.WithHolders(t.Context(), used)
	c := p.issue(t, keys.IssueOrder{PIN: pin})
	e := encrypted(t, c, cms.Encryption{})
	if _, err := p.decrypt(ctx, nil, c, pin, e); !fault.Is(err, fault.WrongOperation) || p.attempts.Load() != 0 {
		t.Errorf("a device that only signs: %v, %d attempts", err, p.attempts.Load())
	}
	o := p.Options
	var err error
	if o.Holders, err = vault.NewHolders(vault.NamedHolder{Name: vault.SoftwareName, Holder: d.soft}, vault.NamedHolder{Name: "device", Holder: decrypting{d}}); err != nil {
		t.Fatal(err)
	}
	if p.Service, err = keys.New(o); err != nil {
		t.Fatal(err)
	}
	if made, err := p.decrypt(ctx, nil, c, pin, e); err != nil || !made || used.Detail("") != "holder device" {
		t.Errorf("a device that decrypts: %v, %q", err, used.Detail(""))
	}
	d.turn(true)
	if _, err := p.decrypt(ctx, nil, c, pin, e); !fault.Is(err, fault.Unavailable) {
		t.Errorf("while it is away: %v", err)
	}
	if n, err := p.PINStore.PINFailures(ctx, c.KeyID); err != nil || n != 0 {
		t.Errorf("%d PIN attempts are taken, %v", n, err)
	}
}
