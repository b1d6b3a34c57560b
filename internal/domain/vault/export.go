// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"context"
	"crypto"
	"errors"
)

// Exporter is a Holder that can return private keys. A Holder that keeps keys in a device
// is not an Exporter.
type Exporter interface {
	// Export opens a key. The caller wipes it with Wipe. The errors are those of
	// Holder.Sign.
	Export(ctx context.Context, k Key, pin []byte) (crypto.Signer, error)
}

var _ Exporter = (*SoftHolder)(nil)

// Export implements Exporter.
func (h *SoftHolder) Export(ctx context.Context, k Key, pin []byte) (crypto.Signer, error) {
	if k.Suite == nil {
		return nil, errors.New("vault: a key has a suite")
	}
	pkcs8, err := h.open(ctx, k, pin)
	if err != nil {
		return nil, err
	}
	defer clear(pkcs8)
	return parseKey(pkcs8, k.Suite)
}

// Wipe overwrites a private key as far as possible; see wipe.
func Wipe(key crypto.Signer) { wipe(key) }
