// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"

	"tamga/internal/adapter/guard"
)

func TestOwnAddress(t *testing.T) {
	for public, want := range map[string]string{
		"http://127.0.0.1:8080":       "127.0.0.1:8080",
		"http://[::1]:8080":           "[::1]:8080",
		"https://Sign.example.org":    "sign.example.org:443",
		"http://sign_1.example.org/x": "sign_1.example.org:80",
	} {
		expected, err := guard.ParseException(want)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ownAddress(public); err != nil || len(got) != 1 || got[0] != expected {
			t.Errorf("%s: %v, %v; want %v", public, got, err, expected)
		}
	}
	for _, public := range []string{"http://:8080", "http://127.0.0.1:0"} {
		if got, err := ownAddress(public); err != nil || len(got) != 0 {
			t.Errorf("%s: %v, %v", public, got, err)
		}
	}
}
