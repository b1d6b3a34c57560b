// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"math/big"

	"tamga/gost/gost3410"
)

// wipe overwrites a private key. For GOST keys it is complete. For RSA and ECDSA keys it
// is best effort: the standard library keeps copies inside the key that cannot be
// reached.
func wipe(key crypto.Signer) {
	switch k := key.(type) {
	case *gost3410.PrivateKey:
		k.Wipe()
	case *rsa.PrivateKey:
		wipeInt(k.D)
		for _, p := range k.Primes {
			wipeInt(p)
		}
		wipeInt(k.Precomputed.Dp)
		wipeInt(k.Precomputed.Dq)
		wipeInt(k.Precomputed.Qinv)
	case *ecdsa.PrivateKey:
		//lint:ignore SA1019 there is no other access to the scalar
		wipeInt(k.D)
	}
}

func wipeInt(n *big.Int) {
	if n != nil {
		clear(n.Bits())
	}
}
