package vault

import (
	"context"
	"crypto"
	"errors"
)

// Exporter is a Holder whose keys can leave it. One that keeps keys in a device is none.
type Exporter interface {
	// Export opens a key; the caller wipes it with Wipe. ErrPIN as in Holder.Sign.
	Export(ctx context.Context, k Key, pin []byte) (crypto.Signer, error)
}

var _ Exporter = (*SoftHolder)(nil)

// Export is Exporter.Export.
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

// Wipe forgets a private key as far as that is possible.
func Wipe(key crypto.Signer) { wipe(key) }
