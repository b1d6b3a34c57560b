// SPDX-License-Identifier: Apache-2.0

package streebog

import (
	"bytes"
	"fmt"
	"hash"
	"math/rand/v2"
	"testing"

	"tamga/gost/gost28147"
	"tamga/gost/gost341194"
	"tamga/internal/gosttest"
)

// manyMessages returns messages of many lengths, for more than one group: shorter and
// longer than a block, equal ones, and long ones next to short ones.
func manyMessages() (messages [][]byte) {
	r := rand.New(rand.NewPCG(3, 4))
	lengths := []int{0, 1, 63, 64, 65, 127, 128, 1000, 0, 5000, 64, 64, 128, 12, 1, 2, 3, 700, 64, 63, 62, 1 << 17, 100, 0, 640, 640}
	for i := range 60 {
		lengths = append(lengths, i*7)
	}
	for _, n := range lengths {
		m := make([]byte, n)
		for i := range m {
			m[i] = byte(r.Uint32())
		}
		messages = append(messages, m)
	}
	return messages
}

func TestKnownAnswersSideBySide(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		var messages [][]byte
		vectors := gosttest.Vectors(t, testdata, "testdata/rfc6986.txt")
		for _, v := range vectors {
			messages = append(messages, v.Bytes(t, "Message"))
		}
		sums256, sums512 := SumMany256(messages), SumMany512(messages)
		for i, v := range vectors {
			if v.Has("H256") && !bytes.Equal(sums256[i][:], v.Bytes(t, "H256")) {
				t.Errorf("line %d, H256: %x", v.Line, sums256[i])
			}
			if v.Has("H512") && !bytes.Equal(sums512[i][:], v.Bytes(t, "H512")) {
				t.Errorf("line %d, H512: %x", v.Line, sums512[i])
			}
		}
	})
}

func TestSumMany(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		all := manyMessages()
		for _, messages := range [][][]byte{nil, all[:1], all[:2], all[:3], all[:group], all[:group+1], all} {
			sums256, sums512 := SumMany256(messages), SumMany512(messages)
			if len(sums256) != len(messages) || len(sums512) != len(messages) {
				t.Fatalf("SumMany256 returned %d results and SumMany512 %d, want %d", len(sums256), len(sums512), len(messages))
			}
			for i, m := range messages {
				if want := Sum256(m); sums256[i] != want {
					t.Errorf("message %d of %d, 256 bits: %x, want %x", i, len(messages), sums256[i], want)
				}
				if want := Sum512(m); sums512[i] != want {
					t.Errorf("message %d of %d, 512 bits: %x, want %x", i, len(messages), sums512[i], want)
				}
			}
		}
	})
}

func TestWriteMany(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		messages := manyMessages()
		var hashes, want []hash.Hash
		for i := range messages {
			switch {
			case i%7 == 6: // a hash of another package
				hashes = append(hashes, gost341194.New(gost28147.SBoxCryptoPro))
				want = append(want, gost341194.New(gost28147.SBoxCryptoPro))
			case i%11 == 10: // the same hash again
				hashes = append(hashes, hashes[i-1])
				want = append(want, want[i-1])
			case i%2 == 0:
				hashes, want = append(hashes, New256()), append(want, New256())
			default:
				hashes, want = append(hashes, New512()), append(want, New512())
			}
		}
		for round := range 3 { // from the second round on, the buffers are not empty
			WriteMany(hashes, messages)
			for i, m := range messages {
				want[i].Write(m)
			}
			for i := range hashes {
				if got, want := hashes[i].Sum(nil), want[i].Sum(nil); !bytes.Equal(got, want) {
					t.Errorf("round %d, hash %d: %x, want %x", round, i, got, want)
				}
			}
		}
	})
}

func TestWriteManyOfDifferentNumbers(t *testing.T) {
	defer func() {
		if got, want := recover(), "streebog: 2 data slices for 1 hashes, want one for each"; got != want {
			t.Errorf("panic %v, want %q", got, want)
		}
	}()
	WriteMany([]hash.Hash{New256()}, [][]byte{nil, nil})
}

func TestWriteManyAllocations(t *testing.T) {
	var hashes []hash.Hash
	var data [][]byte
	for i := range group + 3 {
		hashes = append(hashes, New256())
		data = append(data, make([]byte, 100*i))
	}
	if n := testing.AllocsPerRun(10, func() { WriteMany(hashes, data) }); n != 0 {
		t.Errorf("WriteMany allocates %v times, want never", n)
	}
}

func BenchmarkSumMany256(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10} {
		for _, n := range []int{2, 8} {
			b.Run(fmt.Sprintf("%dx%d", n, size), func(b *testing.B) {
				messages := make([][]byte, n)
				for i := range messages {
					messages[i] = make([]byte, size)
				}
				b.SetBytes(int64(n * size))
				b.ReportAllocs()
				for b.Loop() {
					SumMany256(messages)
				}
			})
		}
	}
}
