// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/budget"
	"tamga/sig/xmldsig"
)

// fullDisk stores no prepared document.
type fullDisk struct{ Blobs }

func (fullDisk) KeepBlob(context.Context, sig.Document, time.Time) (string, error) {
	return "", errors.New("no space left")
}

func (fullDisk) RemoveBlob(context.Context, string) error { return nil }

// Signing, preparing and verifying draw from one pool. While others hold all of it, a document that
// needs more than a little is sent away for a while, and a small one is not.
func TestMemoryOfProcess(t *testing.T) {
	root := sigtest.Root(t, suite.GOST2012x256)
	v, s := judging(t, root)
	s.Formats = append(s.Formats, xmldsig.New())
	v.Formats, v.Limits = s.Formats, budget.Anonymous()
	s.Prepared, s.Blobs, s.Rand = struct{ PreparedStore }{}, fullDisk{}, rand.Reader
	pool := budget.NewPool(32<<20, 0)
	ctx := budget.Within(t.Context(), pool)
	_, other := budget.Of(ctx, 0)
	other.Begin()
	if err := other.Hold(budget.Free + 32<<20); err != nil {
		t.Fatal(err)
	}
	take := func(document string) *Intake {
		in, err := s.NewIntake(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { in.Close() })
		in.Write([]byte(document))
		if err := in.Finish(); err != nil {
			t.Fatal(err)
		}
		return in
	}
	large := "<d>" + strings.Repeat("<a/>", 100_000) + "</d>"
	calls := map[string]func(document string) error{
		"verify": func(document string) error {
			_, err := v.Verify(ctx, &VerifyOrder{Type: "XMLDSig", Content: take(document)})
			return err
		},
		"sign": func(document string) error {
			_, err := s.Sign(ctx, audit.Principal{UserID: "u"}, &SignOrder{Type: "XMLDSig", Content: take(document), Params: map[string]string{"XMLDsigType": "XMLEnveloped"}})
			return err
		},
		"prepare": func(document string) error {
			signer := root.Signer(t, root.Suite, "Signer")
			_, err := s.Prepare(ctx, audit.Principal{}, &PrepareOrder{Type: "XMLDSig", Document: take(document), Certificate: signer.Certificate.Raw, From: "192.0.2.1", Params: map[string]string{"XMLDsigType": "XMLEnveloped"}})
			return err
		},
	}
	for name, call := range calls {
		if f, ok := fault.As(call(large)); !ok || f.Code != fault.Unavailable || f.After < time.Second {
			t.Errorf("%s: %+v", name, f)
		}
		if err := call("<d/>"); fault.Is(err, fault.Unavailable) {
			t.Errorf("%s of a small document: %v", name, err)
		}
	}
	other.End()
	for name, call := range calls {
		if err := call(large); fault.Is(err, fault.Unavailable) {
			t.Errorf("%s with memory: %v", name, err)
		}
	}
	if pool.Used() != 0 {
		t.Errorf("%d bytes stay drawn", pool.Used())
	}
}
