// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"crypto/rsa"
	"math/big"
	"testing"

	"tamga/pki/chain"
	"tamga/pki/x509gost"
)

// The cost of an RSA key grows with the square of its modulus.
func TestWork(t *testing.T) {
	for bits, want := range map[uint]int{1024: 1, 2048: 1, 4096: 4, 8192: 16} {
		key := &rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), bits-1), E: 65537}
		if got := chain.Work(&x509gost.Certificate{PublicKey: key}); got != want {
			t.Errorf("RSA of %d bits: %d, want %d", bits, got, want)
		}
	}
	if chain.Work(nil) != 1 || chain.Work(&x509gost.Certificate{}) != 1 {
		t.Error("a certificate without a known key costs more than one")
	}
}
