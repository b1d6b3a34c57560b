// SPDX-License-Identifier: Apache-2.0

package stock

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/domain/oath/otp"
)

const seedHex = "3132333435363738393031323334353637383930"

func TestCSV(t *testing.T) {
	want := []Token{
		{Serial: "H1", Algorithm: otp.SHA1, Digits: 6, Secret: []byte(seed)},
		{Serial: "H2", Algorithm: otp.Streebog256, Digits: 8, Counter: 1000, Secret: []byte(seed)},
		{Serial: "T1", Time: true, Algorithm: otp.SHA1, Digits: 6, Period: 30 * time.Second, Secret: []byte(seed)},
		{Serial: "T 2/x", Time: true, Algorithm: otp.SHA512, Digits: 7, Period: time.Minute, Secret: []byte(seed)},
	}
	for name, file := range map[string]string{
		"commas": "serial,type,secret_hex,algorithm,digits,period,counter\r\n" +
			"H1,HOTP," + seedHex + ",,,,\r\nH2,hotp," + strings.ToUpper(seedHex) + ",streebog-256,8,,1000\r\n" +
			"T1,TOTP," + seedHex + ",,,,\r\n\"T 2/x\",TOtp," + seedHex + ",HmacSHA512,7,60,0\r\n",
		"semicolons, a byte order mark, another order": "\ufeffCounter;Period;Digits;Algorithm;Secret_Base32;Type;Serial\n" +
			";;;;GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ;HOTP;H1\n1000;;8;STREEBOG256;gezd gnbv gy3t qojq gezd gnbv gy3t qojq;HOTP;H2\n" +
			";;;SHA1;GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ;TOTP;T1\n;60;7;sha-512;GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ====;TOTP; T 2/x \n",
	} {
		got, err := ReadCSV(strings.NewReader(file))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestHostileCSV(t *testing.T) {
	const head = "serial,type,secret_hex,digits,period,counter\n"
	row := func(fields string) string { return head + "H1,HOTP," + seedHex + ",6,,0\n" + fields + "\n" }
	for name, c := range map[string]struct{ file, want string }{
		"nothing":               {"", "empty"},
		"a header alone":        {head, "no tokens"},
		"an unknown column":     {"serial,type,secret_hex,note\n", "column 4"},
		"a column twice":        {"serial,type,secret_hex,serial\n", "column 4"},
		"no header":             {"H1,HOTP," + seedHex + "\n", "column 1"},
		"no secret column":      {"serial,type\nH1,HOTP\n", "secret_hex"},
		"two secret columns":    {"serial,type,secret_hex,secret_base32\n", "one of the columns"},
		"no type column":        {"serial,secret_hex\n", "column type"},
		"too few fields":        {row("H2,HOTP"), "line 3"},
		"too many fields":       {row("H2,HOTP," + seedHex + ",6,,0,1"), "line 3"},
		"a bare quote":          {row(`H2,HO"TP,` + seedHex + ",6,,0"), "line 3"},
		"an open quote":         {row(`"H2,HOTP,` + seedHex + ",6,,0"), "RFC 4180"},
		"a formula":             {row("=1+1,HOTP," + seedHex + ",6,,0"), "serial number"},
		"a serial with markup":  {row("<b>,HOTP," + seedHex + ",6,,0"), "serial number"},
		"bidirectional marks":   {row("H\u202e2,HOTP," + seedHex + ",6,,0"), "serial number"},
		"a serial twice":        {row("h1,HOTP," + seedHex + ",6,,0"), "line 3 (h1): the serial number is given twice"},
		"another type":          {row("H2,OCRA," + seedHex + ",6,,0"), "type"},
		"no hexadecimal":        {row("H2,HOTP,GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ,6,,0"), "secret"},
		"a short secret":        {row("H2,HOTP,313233,6,,0"), "3 bytes"},
		"no secret":             {row("H2,HOTP,,6,,0"), "secret"},
		"five digits":           {row("H2,HOTP," + seedHex + ",5,,0"), "5 digits"},
		"a period of HOTP":      {row("H2,HOTP," + seedHex + ",6,30,0"), "period"},
		"a counter of TOTP":     {row("T2,TOTP," + seedHex + ",6,30,7"), "counter"},
		"a negative counter":    {row("H2,HOTP," + seedHex + ",6,,-1"), "counter"},
		"a huge counter":        {row("H2,HOTP," + seedHex + ",6,,9223372036854775807"), "counter"},
		"a counter beyond that": {row("H2,HOTP," + seedHex + ",6,,9223372036854775808"), "counter"},
		"a huge period":         {row("T2,TOTP," + seedHex + ",6,9223372036854775807,"), "period"},
		"too many tokens":       {head + manyRows(MaxTokens+1), "more than"},
	} {
		got, err := ReadCSV(strings.NewReader(c.file))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "stock: ") {
			t.Errorf("%s: %d tokens, %v, want %q", name, len(got), err, c.want)
		}
		if err != nil && (strings.Contains(err.Error(), seedHex[:10]) || strings.Contains(err.Error(), "GEZD") || strings.Contains(err.Error(), "\u202e")) {
			t.Errorf("%s: the error quotes the file: %v", name, err)
		}
	}
	if _, err := ReadCSV(&endless{text: strings.Repeat("x", 1<<16)}); err == nil || err != errTooLarge && !strings.Contains(err.Error(), "column") {
		t.Errorf("a file without an end: %v", err)
	}
	if _, err := ReadCSV(&endless{text: head + "H1,HOTP," + seedHex + ",6,,0\n" + strings.Repeat("\n", 1<<16)}); err != errTooLarge {
		t.Errorf("a file without an end: %v", err)
	}
}

func manyRows(n int) string {
	var text strings.Builder
	for i := range n {
		text.WriteString("H")
		for x := i; ; x /= 10 {
			text.WriteByte('0' + byte(x%10))
			if x < 10 {
				break
			}
		}
		text.WriteString("e,HOTP," + seedHex + ",6,,\n")
	}
	return text.String()
}

// endless gives its text and then line ends for ever.
type endless struct{ text string }

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.text)
	e.text = e.text[n:]
	for i := n; i < len(p); i++ {
		p[i] = '\n'
	}
	return len(p), nil
}

func FuzzCSV(f *testing.F) {
	f.Add("serial,type,secret_hex\nH1,HOTP," + seedHex + "\n")
	f.Add("\ufeffserial;type;secret_base32;period\nT1;TOTP;GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ;60\n")
	f.Fuzz(func(t *testing.T, file string) {
		list, err := ReadCSV(strings.NewReader(file))
		if (err == nil) != (len(list) > 0) {
			t.Fatalf("%d tokens and %v", len(list), err)
		}
		for _, k := range list {
			if err := k.check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
