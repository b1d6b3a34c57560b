// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tamga/internal/judge"
)

// TestFaxCodes: no code begins another one, so each is found by the bits that follow.
func TestFaxCodes(t *testing.T) {
	for colour, list := range []string{faxWhite + faxLong, faxBlack + faxLong} {
		codes := strings.Fields(list)
		if len(codes) != 64+27+13 {
			t.Errorf("%d codes", len(codes))
		}
		for i, a := range codes {
			for j, b := range codes {
				if i != j && strings.HasPrefix(b, a) {
					t.Errorf("colour %d: the code of %d begins the code of %d", colour, i, j)
				}
			}
			if strings.HasPrefix(a, "00000000000") {
				t.Errorf("the code of %d is an end of a line", i)
			}
		}
	}
}

// TestFax reads pictures that Ghostscript wrote, bit by bit: runs of every length, and noise.
func TestFax(t *testing.T) {
	tools := judge.PDF(t)
	const w, h = 2600, 300
	row := (w + 7) / 8
	random := rand.New(rand.NewPCG(1, 2))
	picture := make([]byte, row*h) // 1 is white, as in the tests of places
	for y := range h {
		line := picture[y*row:][:row]
		switch {
		case y%3 == 0: // one run of each length, at another place
			for x := range w {
				if x < y || x >= y+y*9%w {
					line[x/8] |= 0x80 >> (x % 8)
				}
			}
		case y%3 == 1: // near the row above
			copy(line, picture[(y-1)*row:])
			for range 9 {
				line[random.IntN(row)] ^= 1 << random.IntN(8)
			}
		default:
			for i := range line {
				line[i] = byte(random.Uint32())
			}
		}
	}
	for _, c := range []struct {
		device string
		k      int
		align  bool
	}{{"tiffg4", -1, false}, {"tiffg3", 0, false}, {"tiffg32d", 1, false}, {"tiffcrle", 0, true}} {
		d := newFax([]byte(faxOf(t, tools, c.device, string(picture), w, h)), w, c.k, c.align)
		for y := range h {
			changes, err := d.next()
			if err != nil {
				t.Fatalf("%s: row %d: %v", c.device, y, err)
			}
			got := slices.Repeat([]byte{0xff}, row)
			from, black := 0, false
			for _, to := range append(changes, w) {
				for x := from; black && x < int(to); x++ {
					got[x/8] &^= 0x80 >> (x % 8)
				}
				from, black = int(to), !black
			}
			for x := range w {
				if bit := byte(0x80 >> (x % 8)); got[x/8]&bit != picture[y*row+x/8]&bit {
					t.Fatalf("%s: row %d differs at %d", c.device, y, x)
				}
			}
		}
	}
}

// FuzzFax reads anything as a picture: no row leaves its edges, and the changes of one are in order.
func FuzzFax(f *testing.F) {
	f.Add([]byte{0x00, 0x10, 0x01, 0x35}, uint16(16), int8(0), false)
	f.Add([]byte{0x26, 0xa0, 0x00, 0x18}, uint16(24), int8(-1), true)
	f.Add([]byte{0x00, 0x1b, 0x35, 0x00, 0x15}, uint16(1728), int8(4), false)
	f.Fuzz(func(t *testing.T, data []byte, columns uint16, k int8, align bool) {
		d := newFax(data, max(1, int(columns)), int(k), align)
		for range 100 {
			row, err := d.next()
			if err != nil {
				return
			}
			if len(row) > d.columns+1 || !slices.IsSorted(row) || len(row) > 0 && (row[0] < 0 || row[len(row)-1] > int32(d.columns)) {
				t.Fatalf("%d columns: %v", d.columns, row)
			}
		}
	})
}
