// SPDX-License-Identifier: Apache-2.0

package x509gost

import (
	"bytes"
	"encoding/hex"
	"testing"
)

func TestFromBER(t *testing.T) {
	for _, c := range []struct{ what, in, want string }{
		{"DER", "3003020105", "3003020105"},
		{"indefinite", "30800201050000", "3003020105"},
		{"a padded length", "308103020105", "3003020105"},
		{"a very padded length", "308400000003020105", "3003020105"},
		{"a string in pieces", "3080248004010104020203000000 00", "3005040301 0203"},
		{"pieces in pieces", "24802480040101000004010200 00", "04020102"},
		{"context tags", "a08002010500 00", "a003020105"},
		{"no end", "3080020105", ""},
		{"too short", "30050201", ""},
		{"primitive without end", "048001020000", ""},
		{"another piece", "24800201050000", ""},
		{"data after the end", "300302010500", ""},
		{"a long tag", "3f8101020105", ""},
		{"nothing", "", ""},
	} {
		in, err := hex.DecodeString(string(bytes.ReplaceAll([]byte(c.in), []byte(" "), nil)))
		if err != nil {
			t.Fatal(err)
		}
		want, _ := hex.DecodeString(string(bytes.ReplaceAll([]byte(c.want), []byte(" "), nil)))
		got, err := FromBER(in, 1000)
		if (err == nil) != (c.want != "") || err == nil && !bytes.Equal(got, want) {
			t.Errorf("%s: %x, %v", c.what, got, err)
		}
	}
	if _, err := FromBER(bytes.Repeat([]byte{0x30, 0x80}, 1000), 1<<20); err == nil {
		t.Error("unlimited depth is accepted")
	}
	if _, err := FromBER(make([]byte, 11), 10); err == nil {
		t.Error("input above the limit is accepted")
	}
}

func FuzzFromBER(f *testing.F) {
	for _, seed := range []string{"30800201050000", "3080248004010104020203000000", "308103020105"} {
		data, _ := hex.DecodeString(seed)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		der, err := FromBER(data, 1<<16)
		if err != nil {
			return
		}
		again, err := FromBER(der, 1<<17)
		if err != nil || !bytes.Equal(der, again) {
			t.Fatalf("%x becomes %x, and that %x, %v", data, der, again, err)
		}
	})
}
