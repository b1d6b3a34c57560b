// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/policy"
	"tamga/internal/sigtest"
	"tamga/pki/chain"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/cades"
	"tamga/sig/raw"
)

// fakeKeys has one certificate and remembers whether its key was used to sign.
type fakeKeys struct {
	t      *testing.T
	signer *sigtest.Party
	spoil  func(value []byte)
	asked  int
}

func (f *fakeKeys) ResolveIn(_ context.Context, _ *keys.Snapshot, _, identifier string) (*keys.Certificate, error) {
	if identifier != "" && identifier != "0" {
		return nil, fault.New(fault.InvalidCertificate, "no such certificate")
	}
	return &keys.Certificate{ID: 1, X509: f.signer.Certificate}, nil
}

func (f *fakeKeys) JudgeIn(_ context.Context, _ *keys.Snapshot, c *keys.Certificate, _ time.Time) (*chain.Result, error) {
	return &chain.Result{Chain: []*x509gost.Certificate{c.X509}}, nil
}

func (f *fakeKeys) SignIn(_ context.Context, _ *keys.Snapshot, _ *keys.Certificate, pin string, digests []suite.Digest) ([][]byte, error) {
	f.asked++
	if pin == "wrong" {
		return nil, fault.New(fault.InvalidPIN, "wrong PIN")
	}
	values := make([][]byte, len(digests))
	for i, d := range digests {
		values[i] = f.signer.Sign(f.t, d)
		if f.spoil != nil {
			f.spoil(values[i])
		}
	}
	return values, nil
}

type fakePolicy struct{ err, typeErr error }

func (f fakePolicy) PermitBy(policy.Set, policy.Action) error { return f.err }
func (f fakePolicy) PermitType(string, bool) error            { return f.typeErr }

// TSPAddress allows one address, which is also the default.
func (f fakePolicy) TSPAddress(_ context.Context, requested string, present bool) (string, error) {
	switch {
	case !present:
		return "", fault.New(fault.InvalidSignatureParams, "TSPAddress: missing")
	case requested == "" || requested == stampHere:
		return stampHere, nil
	}
	return "", fault.New(fault.AccessDenied, "TSPAddress: not registered")
}

// fakeSnapshots returns empty snapshots and counts its calls.
type fakeSnapshots struct{ read int }

func (f *fakeSnapshots) Snapshot(_ context.Context, userID string, now time.Time) (*Snapshot, error) {
	f.read++
	return &Snapshot{UserID: userID, At: now}, nil
}

const stampHere = "http://tsp.example/"

func newService(t *testing.T, su *suite.Suite) (*Service, *fakeKeys) {
	root := sigtest.Root(t, su)
	k := &fakeKeys{t: t, signer: root.Signer(t, su, "signer")}
	return &Service{
		Formats: sig.Formats{raw.New(), cades.New()},
		Keys:    k, Policy: fakePolicy{}, Snapshots: &fakeSnapshots{}, Spool: &heap{room: 1 << 30},
		Now: func() time.Time { return k.signer.Certificate.NotBefore.Add(time.Hour) },
	}, k
}

func content(t *testing.T, s *Service, text string) *Intake {
	t.Helper()
	in, err := s.NewIntake(context.Background(), &Snapshot{UserID: "u"})
	if err != nil {
		t.Fatal(err)
	}
	in.Write([]byte(text))
	if err := in.Finish(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	return in
}

func TestSign(t *testing.T) {
	for _, su := range suite.All() {
		t.Run(su.Name, func(t *testing.T) {
			s, _ := newService(t, su)
			r, err := s.Sign(context.Background(), audit.Principal{}, &SignOrder{Type: "gost3410", Content: content(t, s, "document")})
			if err != nil {
				t.Fatal(err)
			}
			var value bytes.Buffer
			if _, err := r.WriteTo(&value); err != nil {
				t.Fatal(err)
			}
			h := su.Hash.New()
			h.Write([]byte("document"))
			cert := s.Keys.(*fakeKeys).signer.Certificate
			if err := su.Verify(cert.PublicKey, suite.Digest{Hash: su.Hash, Sum: h.Sum(nil)}, value.Bytes()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestNothingIsAskedOfTheKeyTooEarly checks that every other error of an order is
// detected before the key is used and a PIN costs an attempt.
func TestNothingIsAskedOfTheKeyTooEarly(t *testing.T) {
	denied := fault.New(fault.AccessDenied, "no")
	for _, c := range []struct {
		name   string
		order  SignOrder
		policy fakePolicy
		text   string
		code   string
	}{
		{"no content", SignOrder{Type: "GOST3410"}, fakePolicy{}, "", fault.ContentRequired},
		{"unknown type", SignOrder{Type: "PGP"}, fakePolicy{}, "x", fault.InvalidSignatureParams},
		{"type of a later release", SignOrder{Type: "PDF"}, fakePolicy{}, "x", fault.InvalidSignatureParams},
		{"no type", SignOrder{}, fakePolicy{}, "x", fault.InvalidSignatureParams},
		{"Hash is no boolean", SignOrder{Type: "GOST3410", Params: map[string]string{"Hash": "x"}}, fakePolicy{}, "x", fault.InvalidSignatureParams},
		{"type forbidden", SignOrder{Type: "GOST3410"}, fakePolicy{typeErr: denied}, "x", fault.AccessDenied},
		{"action forbidden", SignOrder{Type: "GOST3410"}, fakePolicy{err: denied}, "x", fault.AccessDenied},
		{"unknown certificate", SignOrder{Type: "GOST3410", Certificate: "7"}, fakePolicy{}, "x", fault.InvalidCertificate},
		{"hash of a wrong length", SignOrder{Type: "GOST3410", Params: map[string]string{"Hash": "True"}}, fakePolicy{}, "x", fault.InvalidSignatureParams},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, k := newService(t, suite.GOST2012x256)
			s.Policy = c.policy
			c.order.PIN = "wrong"
			if c.text != "" {
				c.order.Content = content(t, s, c.text)
			}
			if _, err := s.Sign(context.Background(), audit.Principal{}, &c.order); !fault.Is(err, c.code) {
				t.Errorf("got %v, want %s", err, c.code)
			}
			if k.asked != 0 {
				t.Error("the key was asked")
			}
		})
	}
}

// TestFaultyValueStaysInside checks that a wrongly computed signature value, which could
// reveal the key, is not returned, and that the error is internal.
func TestFaultyValueStaysInside(t *testing.T) {
	s, k := newService(t, suite.GOST2012x512)
	k.spoil = func(value []byte) { value[len(value)-1] ^= 1 }
	for _, kind := range []string{"GOST3410", "CAdES"} {
		r, err := s.Sign(context.Background(), audit.Principal{}, &SignOrder{Type: kind, Content: content(t, s, "document")})
		if _, isFault := fault.As(err); r != nil || err == nil || isFault {
			t.Errorf("%s: got %v, %v; want an internal error", kind, r, err)
		}
	}
}

func TestWrongPIN(t *testing.T) {
	s, _ := newService(t, suite.GOST2001)
	_, err := s.Sign(context.Background(), audit.Principal{}, &SignOrder{Type: "CAdES", Content: content(t, s, "document"), PIN: "wrong"})
	if !fault.Is(err, fault.InvalidPIN) {
		t.Errorf("got %v", err)
	}
}

func TestHungUpClient(t *testing.T) {
	s, k := newService(t, suite.RSASHA256)
	in := newIntake(s.Spool, nil) // without a digest, so that the document is read
	in.Write(make([]byte, 1<<20))
	in.Finish()
	defer in.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Sign(ctx, audit.Principal{}, &SignOrder{Type: "CAdES", Content: in}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if k.asked != 0 {
		t.Error("the key was asked for a client that is gone")
	}
}

func TestCanary(t *testing.T) {
	if err := Canary(sigtest.Random(1)); err != nil {
		t.Error(err)
	}
	if Canary(bytes.NewReader(nil)) == nil {
		t.Error("Canary succeeds without randomness")
	}
}

// tight is a format whose signature needs a certain space and no less.
type tight struct {
	sig.Described
	need int
}

func (f tight) Finish(ctx context.Context, job *sig.Job, state, signature []byte) (sig.Result, error) {
	if job.Room < f.need {
		return nil, &sig.ErrRoom{Need: min(f.need, 1000)}
	}
	return f.Described.Finish(ctx, job, state, signature)
}

// TestRoomIsMadeOnce checks that one step never fails for lack of space: it signs a
// second time, and only once.
func TestRoomIsMadeOnce(t *testing.T) {
	for _, c := range []struct{ need, asked int }{{0, 1}, {1000, 2}, {5000, 2}} {
		s, k := newService(t, suite.ECDSAP256)
		s.Formats = sig.Formats{tight{raw.New(), c.need}}
		_, err := s.Sign(context.Background(), audit.Principal{}, &SignOrder{Type: "GOST3410", Content: content(t, s, "document")})
		if k.asked != c.asked || (err == nil) != (c.need <= 1000) {
			t.Errorf("a signature of %d bytes: the key was asked %d times, want %d; %v", c.need, k.asked, c.asked, err)
		}
		if err != nil && !fault.Is(err, fault.Failed) {
			t.Errorf("%v, want the fault %s", err, fault.Failed)
		}
	}
}
