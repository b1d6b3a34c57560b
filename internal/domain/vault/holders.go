// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"io"
	"slices"

	"tamga/gost/gost3410"
	"tamga/internal/domain/fault"
	"tamga/pki/suite"
)

// Holders are the holders of private keys of one installation. Each key names its holder, and a method
// with a Key goes to that holder. A holder that is not ready makes only its keys unavailable: the error is
// then the fault temporarily_unavailable. It is safe for concurrent use.
type Holders struct {
	list []NamedHolder // in the order of the configuration
}

// NamedHolder is a holder with its name in the installation.
type NamedHolder struct {
	Name string
	Holder
}

// NewHolders returns the holders of an installation. Names are unique and not empty.
func NewHolders(list ...NamedHolder) (*Holders, error) {
	seen := map[string]bool{}
	for _, h := range list {
		if h.Name == "" || h.Holder == nil || seen[h.Name] {
			return nil, fmt.Errorf("vault: holder %q: want holders with unique names", h.Name)
		}
		seen[h.Name] = true
	}
	if len(list) == 0 {
		return nil, errors.New("vault: want at least one holder")
	}
	return &Holders{slices.Clone(list)}, nil
}

// OnlySoftware returns the holders of an installation with one holder, which has the name SoftwareName.
func OnlySoftware(h Holder) *Holders {
	return &Holders{[]NamedHolder{{SoftwareName, h}}}
}

// Names returns the names of the holders, in the order of the configuration.
func (h *Holders) Names() []string {
	names := make([]string, len(h.list))
	for i, one := range h.list {
		names[i] = one.Name
	}
	return names
}

// holder returns the holder with a name. Keys of a holder that is not configured are unavailable until it
// is.
func (h *Holders) holder(name string) (Holder, error) {
	for _, one := range h.list {
		if one.Name == name {
			return one.Holder, nil
		}
	}
	return nil, unavailable(name, fmt.Errorf("%w: it is not among the holders of the configuration", ErrNotReady))
}

// unavailable returns an error of the holder with a name as a fault if the holder is not ready, any other
// as it is. The client does not learn which holder it is. A transaction that the fault ends is rolled back.
func unavailable(name string, err error) error {
	if !errors.Is(err, ErrNotReady) {
		return err
	}
	return fault.Rollback(fault.New(fault.Unavailable, "the key cannot be used now: try again later").With(fmt.Errorf("holder %q: %w", name, err)))
}

// Generate makes a key in the holder with a name; see Holder.Generate.
func (h *Holders) Generate(ctx context.Context, holder, id string, s *suite.Suite, set *gost3410.Set, pin []byte) (Key, crypto.PublicKey, error) {
	in, err := h.holder(holder)
	if err != nil {
		return Key{}, nil, err
	}
	k, public, err := in.Generate(ctx, id, s, set, pin)
	k.Holder = holder
	return k, public, unavailable(holder, err)
}

// Import stores a key in the holder with a name; see Holder.Import.
func (h *Holders) Import(ctx context.Context, holder, id string, s *suite.Suite, key crypto.Signer, pin []byte) (Key, crypto.PublicKey, error) {
	in, err := h.holder(holder)
	if err != nil {
		return Key{}, nil, err
	}
	k, public, err := in.Import(ctx, id, s, key, pin)
	k.Holder = holder
	return k, public, unavailable(holder, err)
}

// Sign signs digests with a key; see Holder.Sign.
func (h *Holders) Sign(ctx context.Context, k Key, pin []byte, digests []suite.Digest) ([][]byte, error) {
	in, err := h.holder(k.Holder)
	if err != nil {
		return nil, err
	}
	values, err := in.Sign(ctx, k, pin, digests)
	return values, unavailable(k.Holder, err)
}

// Rewrap gives a key another PIN; see Holder.Rewrap.
func (h *Holders) Rewrap(ctx context.Context, k Key, oldPIN, newPIN []byte) (Key, error) {
	in, err := h.holder(k.Holder)
	if err != nil {
		return Key{}, err
	}
	made, err := in.Rewrap(ctx, k, oldPIN, newPIN)
	made.Holder = k.Holder
	return made, unavailable(k.Holder, err)
}

// Delete destroys what the holder keeps of a key; see Holder.Delete.
func (h *Holders) Delete(ctx context.Context, k Key) error {
	in, err := h.holder(k.Holder)
	if err != nil {
		return err
	}
	return unavailable(k.Holder, in.Delete(ctx, k))
}

// Exports reports whether the holder of a key can return it.
func (h *Holders) Exports(k Key) bool {
	in, err := h.holder(k.Holder)
	_, is := in.(Exporter)
	return err == nil && is
}

// Export opens a key whose holder Exports it; see Exporter.
func (h *Holders) Export(ctx context.Context, k Key, pin []byte) (crypto.Signer, error) {
	in, err := h.holder(k.Holder)
	if err != nil {
		return nil, err
	}
	exporter, is := in.(Exporter)
	if !is {
		return nil, fmt.Errorf("vault: the holder %q returns no keys", k.Holder)
	}
	key, err := exporter.Export(ctx, k, pin)
	return key, unavailable(k.Holder, err)
}

// Knows reports whether the holder of a key recognizes its PIN; see SoftHolder.Knows. Other holders need
// not have this method.
func (h *Holders) Knows(k Key, pin []byte) bool {
	in, err := h.holder(k.Holder)
	memory, is := in.(interface{ Knows(k Key, pin []byte) bool })
	return err == nil && is && memory.Knows(k, pin)
}

// HolderState is a holder and why it is not ready, nil if it is.
type HolderState struct {
	Name string
	Err  error
}

// States asks all holders at once whether they are ready.
func (h *Holders) States(ctx context.Context) []HolderState {
	states := make([]HolderState, len(h.list))
	done := make(chan int)
	for i, one := range h.list {
		states[i].Name = one.Name
		go func() { states[i].Err = one.Ready(ctx); done <- i }()
	}
	for range h.list {
		<-done
	}
	return states
}

// Ready returns nil as soon as one holder is ready: an installation whose holders all fail can neither
// sign nor make a key, and one that does not answer keeps no other waiting.
func (h *Holders) Ready(ctx context.Context) error {
	answers := make(chan error, len(h.list))
	for _, one := range h.list {
		go func() {
			err := one.Ready(ctx)
			if err != nil {
				err = fmt.Errorf("holder %q: %w", one.Name, err)
			}
			answers <- err
		}()
	}
	var errs []error
	for range h.list {
		err := <-answers
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Close closes the holders that are closers.
func (h *Holders) Close() error {
	var errs []error
	for _, one := range h.list {
		if closer, is := one.Holder.(io.Closer); is {
			errs = append(errs, closer.Close())
		}
	}
	return errors.Join(errs...)
}
