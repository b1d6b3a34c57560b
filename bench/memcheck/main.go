// SPDX-License-Identifier: Apache-2.0

// Command memcheck runs all code of the portable build that handles secrets, with the
// secrets marked as undefined memory. Valgrind's memcheck follows undefined bits through
// arithmetic and reports every branch and every address that depends on one. Run it with
// "go run . -memcheck" in the folder above, which builds it with the tags purego and
// valgrind. The tag valgrind makes Go's allocator report its work to valgrind.
//
// Some values are public although they were computed from secrets, for example whether
// a number is in range or a point is on the curve. Branches on such values are allowed.
// The variable declassified in ../memcheck.go lists them with the reasons.
package main

import (
	"crypto/cipher"
	"crypto/sha256"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"unsafe"

	"tamga/gost/gost28147"
	"tamga/gost/gost3410"
	"tamga/gost/kuznyechik"
	"tamga/gost/magma"
	"tamga/gost/mode"
)

func request(number, a, b, c, d, e uintptr) (answer uintptr)

// Request numbers from memcheck.h and valgrind.h.
const (
	running       = 0x1001
	makeUndefined = 'M'<<24 | 'C'<<16 | 1
	makeDefined   = 'M'<<24 | 'C'<<16 | 2
)

// secret is a random source whose bytes are undefined for valgrind.
type secret struct{ *rand.ChaCha8 }

func (s secret) Read(p []byte) (int, error) {
	n, err := s.ChaCha8.Read(p)
	hide(p)
	return n, err
}

func hide(p []byte) {
	request(makeUndefined, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), 0, 0, 0)
}

func reveal(p []byte) {
	request(makeDefined, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), 0, 0, 0)
}

var table [256]byte

func main() {
	branch := flag.Bool("branch", false, "branch on a secret, which valgrind must find")
	index := flag.Bool("index", false, "look up a table by a secret, which valgrind must find")
	flag.Parse()
	log.SetFlags(0)
	if request(running, 0, 0, 0, 0, 0) == 0 {
		log.Fatal("this program must run under valgrind: use go run . -memcheck in the folder bench")
	}
	grow()
	source := secret{rand.NewChaCha8([32]byte{1})}
	switch {
	case *branch:
		b := make([]byte, 1)
		source.Read(b)
		if b[0] > 100 {
			table[0]++
		}
	case *index:
		b := make([]byte, 1)
		source.Read(b)
		table[b[0]]++
	default:
		if err := all(source); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Fprintln(os.Stdout, "finished")
}

// grow makes the stack large enough for all that follows. When a stack grows, valgrind may take the
// move to the new one for a call, and the variables on it for undefined.
//
//go:noinline
func grow() {
	var room [256 << 10]byte
	reveal(room[:])
}

func all(source secret) error {
	for _, set := range gost3410.Sets() {
		key, err := gost3410.GenerateKey(set, source)
		if err != nil {
			return err
		}
		public := key.PublicKey()
		digest := make([]byte, set.Size())
		for range 2 { // the first signature also builds the tables
			signature, err := key.Sign(source, digest, nil)
			if err != nil {
				return err
			}
			reveal(signature)
		}
		if _, err := gost3410.SignMany(source, []gost3410.SignItem{{Key: key, Digest: digest}, {Key: key, Digest: digest}}); err != nil {
			return err
		}
		// This tests the key agreement and not its hash, so it uses SHA-256. The portable
		// implementation of Streebog looks up tables, which valgrind would report.
		peer, err := gost3410.GenerateKey(set, rand.NewChaCha8([32]byte{2}))
		if err != nil {
			return err
		}
		if _, err := key.VKO(peer.PublicKey(), []byte{1, 2, 3, 4, 5, 6, 7, 8}, sha256.New); err != nil {
			return err
		}
		_ = public
	}
	return ciphers(source)
}

func ciphers(source secret) error {
	key, data, iv := make([]byte, 32), make([]byte, 1000), make([]byte, 16)
	source.Read(key)
	source.Read(data)
	for _, newCipher := range []func([]byte) (cipher.Block, error){
		kuznyechik.NewCipher,
		magma.NewCipher,
		func(key []byte) (cipher.Block, error) { return gost28147.NewCipher(key, gost28147.SBoxA) },
	} {
		b, err := newCipher(key)
		if err != nil {
			return err
		}
		b.Encrypt(data, data)
		b.Decrypt(data, data)
		stream, err := mode.NewCTR(b, iv[:b.BlockSize()/2])
		if err != nil {
			return err
		}
		stream.XORKeyStream(data, data)
		if b.BlockSize() == 16 {
			aead, err := mode.NewMGM(b)
			if err != nil {
				return err
			}
			aead.Seal(nil, iv, data, data[:100])
		}
	}
	if _, err := gost28147.MAC(key, iv[:8], data, gost28147.SBoxA); err != nil {
		return err
	}
	stream, err := gost28147.NewCNT(key, iv[:8], gost28147.SBoxA, gost28147.CryptoProMeshing)
	if err != nil {
		return err
	}
	stream.XORKeyStream(data, data)
	for _, wrap := range []func(kek, ukm, cek []byte, s *gost28147.SBox) ([]byte, error){gost28147.Wrap, gost28147.WrapCryptoPro} {
		if _, err := wrap(key, iv[:8], data[:32], gost28147.SBoxA); err != nil {
			return err
		}
	}
	return nil
}
