// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tamga/internal/domain/fault"
	"tamga/pki/suite"
)

// failing is a holder that is not ready and counts its closes.
type failing struct {
	Holder
	closed int
}

func (f *failing) Ready(context.Context) error { return fmt.Errorf("%w: no device", ErrNotReady) }
func (f *failing) Close() error                { f.closed++; return nil }
func (f *failing) Sign(ctx context.Context, _ Key, _ []byte, _ []suite.Digest) ([][]byte, error) {
	return nil, f.Ready(ctx)
}
func (f *failing) Delete(ctx context.Context, _ Key) error { return f.Ready(ctx) }

// hanging is a holder that does not answer until its context ends.
type hanging struct{ Holder }

func (hanging) Ready(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

func TestHolders(t *testing.T) {
	soft, away := newTestHolder(t, newTestRing(t, "2025")), &failing{}
	for what, list := range map[string][]NamedHolder{
		"none": nil, "no name": {{"", soft}}, "no holder": {{"a", nil}}, "twice": {{"a", soft}, {"a", soft}},
	} {
		if _, err := NewHolders(list...); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
	h, err := NewHolders(NamedHolder{SoftwareName, soft}, NamedHolder{"away", away})
	if err != nil {
		t.Fatal(err)
	}
	if names := h.Names(); !slices.Equal(names, []string{"software", "away"}) {
		t.Error(names)
	}
	ctx, s := t.Context(), suite.GOST2012x256
	k, public, err := h.Generate(ctx, SoftwareName, "keys:a", s, nil, nil)
	if err != nil || k.Holder != SoftwareName || !h.Exports(k) || h.Knows(k, nil) {
		t.Fatalf("%+v, %v", k, err)
	}
	d := digest(s, "x")
	if values, err := h.Sign(ctx, k, nil, []suite.Digest{d}); err != nil || s.Verify(public, d, values[0]) != nil {
		t.Errorf("signing: %v", err)
	}
	if k, err = h.Rewrap(ctx, k, nil, []byte("1")); err != nil || k.Holder != SoftwareName || !k.HasPIN {
		t.Errorf("%+v, %v", k, err)
	}
	if _, err := h.Sign(ctx, k, []byte("2"), []suite.Digest{d}); !errors.Is(err, ErrPIN) {
		t.Errorf("a wrong PIN: %v", err)
	}
	if err := h.Delete(ctx, k); err != nil {
		t.Errorf("deleting: %v", err)
	}
	for what, name := range map[string]string{"a holder that is away": "away", "a holder that is not configured": "gone"} {
		k := k
		k.Holder = name
		_, err := h.Sign(ctx, k, nil, nil)
		f, is := fault.As(err)
		if !is || f.Code != fault.Unavailable || strings.Contains(f.Message, name) || !strings.Contains(err.Error(), name) || !errors.Is(err, ErrNotReady) {
			t.Errorf("%s: %v", what, err)
		}
		if err := h.Delete(ctx, k); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: deleting: %v", what, err)
		}
		if h.Exports(k) || h.Knows(k, nil) {
			t.Errorf("%s: exports or knows a key", what)
		}
		if _, err := h.Export(ctx, k, nil); err == nil {
			t.Errorf("%s: exported", what)
		}
	}
	states := h.States(ctx)
	if len(states) != 2 || states[0].Err != nil || !errors.Is(states[1].Err, ErrNotReady) {
		t.Errorf("%+v", states)
	}
	if err := h.Ready(ctx); err != nil {
		t.Errorf("one of two is ready: %v", err)
	}
	silent, err := NewHolders(NamedHolder{"silent", hanging{}}, NamedHolder{SoftwareName, soft})
	if err != nil {
		t.Fatal(err)
	}
	waiting, stop := context.WithCancel(ctx)
	if err := silent.Ready(waiting); err != nil {
		t.Errorf("beside one that does not answer: %v", err)
	}
	stop()
	if err := OnlySoftware(away).Ready(ctx); !errors.Is(err, ErrNotReady) {
		t.Errorf("none is ready: %v", err)
	}
	if err := h.Close(); err != nil || away.closed != 1 {
		t.Errorf("closed %d times, %v", away.closed, err)
	}
}
