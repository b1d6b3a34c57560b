package vault

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"math/big"

	"tamga/gost/gost3410"
)

// wipe forgets a private key. For GOST keys it is complete; the standard
// library keeps copies of its own inside RSA and ECDSA keys that cannot be
// reached, so for those it is best effort.
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
		//lint:ignore SA1019 there is no other door to the scalar
		wipeInt(k.D)
	}
}

func wipeInt(n *big.Int) {
	if n != nil {
		clear(n.Bits())
	}
}
