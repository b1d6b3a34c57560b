// Command bench times the algorithms of Tamga beside those of OpenSSL's
// gost-engine: the same work, in one process, on one core, in turns, and prints
// medians and their ratio.
//
//	cd bench && go run . [-rounds 9] [-only NAME]
//
// It needs libssl-dev and libengine-gost-openssl and is not part of the product.
package main

import (
	"crypto/rand"
	"flag"
	"fmt"
	"hash"
	"log"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"tamga/gost/gost28147"
	"tamga/gost/gost3410"
	"tamga/gost/gost341194"
	"tamga/gost/kuznyechik"
	"tamga/gost/streebog"

	"tamgabench/engine"
)

// work is one thing both sides can do. A side runs n rounds and fails loudly.
type work struct {
	name         string
	bytes        int // processed in a round; 0: rounds are counted
	ours, theirs func(n int) error
}

func main() {
	rounds := flag.Int("rounds", 9, "timings of each side; the median counts")
	only := flag.String("only", "", "run only the work whose name contains this")
	flag.Parse()
	log.SetFlags(0)
	runtime.LockOSThread()
	runtime.GOMAXPROCS(1)
	if err := engine.Start(); err != nil {
		log.Fatal(err)
	}
	all, err := works()
	if err != nil {
		log.Fatal(err)
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "work\ttamga\tgost-engine\tunit\tratio\t")
	for _, w := range all {
		if !strings.Contains(w.name, *only) {
			continue
		}
		ours, theirs, err := compare(w, *rounds)
		if err != nil {
			log.Fatalf("%s: %v", w.name, err)
		}
		unit, scale := "1/s", 1.0
		if w.bytes > 0 {
			unit, scale = "MB/s", float64(w.bytes)/1e6
		}
		fmt.Fprintf(table, "%s\t%.0f\t%.0f\t%s\t%.2f\t\n", w.name, ours*scale, theirs*scale, unit, ours/theirs)
		table.Flush()
	}
}

// compare returns the median rounds a second of both sides, timed in turns.
func compare(w work, rounds int) (ours, theirs float64, err error) {
	n := [2]int{1, 1}
	sides := [2]func(int) error{w.ours, w.theirs}
	for i, side := range sides { // find how many rounds take about 50 ms
		for {
			start := time.Now()
			if err := side(n[i]); err != nil {
				return 0, 0, err
			}
			if took := time.Since(start); took > 50*time.Millisecond || n[i] > 1<<24 {
				break
			}
			n[i] *= 2
		}
	}
	var rates [2][]float64
	for range rounds {
		for i, side := range sides {
			start := time.Now()
			if err := side(n[i]); err != nil {
				return 0, 0, err
			}
			rates[i] = append(rates[i], float64(n[i])/time.Since(start).Seconds())
		}
	}
	for i := range rates {
		slices.Sort(rates[i])
	}
	return rates[0][rounds/2], rates[1][rounds/2], nil
}

func works() ([]work, error) {
	var all []work
	for _, h := range []struct {
		name, theirs string
		ours         func() hash.Hash
	}{
		{"Streebog-256", "md_gost12_256", streebog.New256},
		{"Streebog-512", "md_gost12_512", streebog.New512},
		{"GOST R 34.11-94", "md_gost94", gost341194.NewCryptoPro},
	} {
		for _, size := range []int{64, 1 << 10, 16 << 20} {
			data := make([]byte, size)
			rand.Read(data)
			running := h.ours()
			all = append(all, work{
				name: fmt.Sprintf("%s, %d octets", h.name, size), bytes: size,
				ours: func(n int) error {
					for range n {
						running.Reset()
						running.Write(data)
						running.Sum(nil)
					}
					return nil
				},
				theirs: func(n int) error { _, err := engine.Digest(h.theirs, data, n); return err },
			})
		}
	}
	for _, size := range []int{1 << 10, 64 << 10} {
		two := [][]byte{make([]byte, size), make([]byte, size)}
		rand.Read(two[0])
		rand.Read(two[1])
		all = append(all, work{
			name: fmt.Sprintf("Streebog-256, two messages of %d octets", size), bytes: 2 * size,
			ours: func(n int) error {
				for range n {
					streebog.SumMany256(two)
				}
				return nil
			},
			theirs: func(n int) error { _, err := engine.Digest("md_gost12_256", two[0], 2*n); return err },
		})
	}
	for _, s := range []struct {
		name string
		set  *gost3410.Set
		kind int
		text string
		hash func() hash.Hash
	}{
		{"2001 CryptoPro-A", gost3410.CryptoProA, engine.GOST2001, "A", gost341194.NewCryptoPro},
		{"2012-256 CryptoPro-A", gost3410.CryptoProA, engine.GOST2012256, "A", streebog.New256},
		{"2012-256 CryptoPro-B", gost3410.CryptoProB, engine.GOST2012256, "B", streebog.New256},
		{"2012-256 CryptoPro-C", gost3410.CryptoProC, engine.GOST2012256, "C", streebog.New256},
		{"2012-256 TC26 A", gost3410.TC26256A, engine.GOST2012256, "TCA", streebog.New256},
		{"2012-512 TC26 A", gost3410.TC26512A, engine.GOST2012512, "A", streebog.New512},
		{"2012-512 TC26 B", gost3410.TC26512B, engine.GOST2012512, "B", streebog.New512},
		{"2012-512 TC26 C", gost3410.TC26512C, engine.GOST2012512, "C", streebog.New512},
	} {
		key, err := gost3410.GenerateKey(s.set, rand.Reader)
		if err != nil {
			return nil, err
		}
		peer, err := engine.Generate(s.kind, s.text)
		if err != nil {
			return nil, err
		}
		digest := make([]byte, s.set.Size())
		rand.Read(digest)
		value, err := key.Sign(rand.Reader, digest, nil)
		if err != nil {
			return nil, err
		}
		known := key.PublicKey().Precompute()
		peerValue, err := peer.Sign(digest, 1)
		if err != nil {
			return nil, err
		}
		all = append(all,
			work{
				name: "sign " + s.name,
				ours: func(n int) error {
					for range n {
						if _, err := key.Sign(rand.Reader, digest, nil); err != nil {
							return err
						}
					}
					return nil
				},
				theirs: func(n int) error { _, err := peer.Sign(digest, n); return err },
			},
			work{
				name: "sign eight at a time " + s.name,
				ours: func(n int) error {
					items := make([]gost3410.SignItem, 8)
					for i := range items {
						items[i] = gost3410.SignItem{Key: key, Digest: digest}
					}
					for ; n > 0; n -= len(items) {
						if _, err := gost3410.SignMany(rand.Reader, items[:min(n, len(items))]); err != nil {
							return err
						}
					}
					return nil
				},
				theirs: func(n int) error { _, err := peer.Sign(digest, n); return err },
			},
			work{
				name: "verify with a known key " + s.name,
				ours: func(n int) error {
					for range n {
						if !known.Verify(digest, value) {
							return fmt.Errorf("a good value is refused")
						}
					}
					return nil
				},
				theirs: func(n int) error { return peer.Verify(digest, peerValue, n) },
			},
			work{
				name: "verify " + s.name,
				ours: func(n int) error {
					for range n {
						if !key.PublicKey().Verify(digest, value) {
							return fmt.Errorf("a good value is refused")
						}
					}
					return nil
				},
				theirs: func(n int) error { return peer.Verify(digest, peerValue, n) },
			},
			work{
				name: "generate " + s.name,
				ours: func(n int) error {
					for range n {
						k, err := gost3410.GenerateKey(s.set, rand.Reader)
						if err != nil {
							return err
						}
						k.PublicKey() // the engine computes it at once
					}
					return nil
				},
				theirs: func(n int) error { return engine.GenerateMany(s.kind, s.text, n) },
			},
			work{
				name: "VKO " + s.name,
				ours: func(n int) error {
					for range n {
						if _, err := key.VKO(key.PublicKey(), ukm, s.hash); err != nil {
							return err
						}
					}
					return nil
				},
				theirs: func(n int) error { return peer.Derive(peer, ukm, n) },
			})
	}
	ciphers, err := cipherWorks()
	return append(all, ciphers...), err
}

// ukm is the keying material of VKO: eight octets is what the engine takes.
var ukm = []byte{0x1d, 0x80, 0x60, 0x3c, 0x85, 0x44, 0xc7, 0x27}

// cipherWorks are the block ciphers. Ours run in constant time; the engine's
// look up tables by secrets.
func cipherWorks() ([]work, error) {
	key, iv := make([]byte, 32), make([]byte, 16)
	rand.Read(key)
	block, err := kuznyechik.NewCipher(key)
	if err != nil {
		return nil, err
	}
	many := block.(interface{ EncryptBlocks(dst, src []byte) })
	data := make([]byte, 1<<20)
	return []work{
		{
			name: "Kuznyechik, blocks of 1 MiB", bytes: len(data),
			ours: func(n int) error {
				for range n {
					many.EncryptBlocks(data, data)
				}
				return nil
			},
			theirs: func(n int) error { return engine.Encrypt("kuznyechik-ecb", key, iv, data, n) },
		},
		{
			name: "GOST 28147-89 CNT, 1 MiB", bytes: len(data),
			ours: func(n int) error {
				for range n {
					c, err := gost28147.NewCNT(key, iv[:8], gost28147.SBoxZ, gost28147.NoMeshing)
					if err != nil {
						return err
					}
					c.XORKeyStream(data, data)
				}
				return nil
			},
			theirs: func(n int) error { return engine.Encrypt("gost89-cnt-12", key, iv, data, n) },
		},
	}, nil
}
