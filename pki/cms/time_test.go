// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/crypto/cryptobyte"
)

// TestUsualTime compares usualTime with package cryptobyte on every date that two digits can
// write, on the ends of the clock, and on other forms, which usualTime must leave alone.
func TestUsualTime(t *testing.T) {
	compare := func(value string, mustRead bool) {
		t.Helper()
		der := append([]byte{0x17, byte(len(value))}, value...)
		got, read := usualTime(der)
		var want time.Time
		in := cryptobyte.String(der)
		valid := in.ReadASN1UTCTime(&want)
		if read && (!valid || !got.Equal(want) || got.Location() != time.UTC) {
			t.Fatalf("%q: %v, want %v (valid: %v)", value, got, want, valid)
		}
		if read != mustRead || mustRead && !valid {
			t.Fatalf("%q: read is %v, valid is %v, want %v", value, read, valid, mustRead)
		}
	}
	for year := range 100 {
		full := 1900 + year
		if year < 50 {
			full += 100
		}
		for month := range 15 {
			for day := range 34 {
				exists := month >= 1 && month <= 12 && day >= 1 && day <= time.Date(full, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
				compare(fmt.Sprintf("%02d%02d%02d123456Z", year, month, day), exists)
			}
		}
	}
	for hour := range 100 {
		compare(fmt.Sprintf("261123%02d0000Z", hour), hour < 24)
	}
	for minute := range 100 {
		compare(fmt.Sprintf("26112300%02d00Z", minute), minute < 60)
		compare(fmt.Sprintf("2611230000%02dZ", minute), minute < 60)
	}
	for _, other := range []string{"", "2611231234Z", "261123123456", "261123123456z", "261123123456+0300", "2611231234563", "26112312345:Z", "26112312345/Z", "+61123123456Z", "26112312 456Z", "20261123123456Z"} {
		compare(other, false)
	}
	for i := range 15 {
		for b := range 256 {
			der := []byte("\x17\x0d261123123456Z")
			der[i] = byte(b)
			got, read := usualTime(der)
			var want time.Time
			in := cryptobyte.String(der)
			if read && (!in.ReadASN1UTCTime(&want) || !in.Empty() || !got.Equal(want)) {
				t.Fatalf("%q: %v, want %v", der, got, want)
			}
		}
	}
	generalized := append([]byte{0x18, 15}, "20261123123456Z"...)
	if _, read := usualTime(generalized); read {
		t.Error("a GeneralizedTime was read as a UTCTime")
	}
}
