// SPDX-License-Identifier: Apache-2.0

package stock

import (
	"bufio"
	"encoding/base32"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/oath/otp"
)

// columns has the columns of a CSV file, and whether every row must fill them. One of the
// two forms of the secret must be present.
var columns = map[string]bool{
	"serial":        true,
	"type":          true,  // HOTP or TOTP
	"secret_hex":    false, // hexadecimal
	"secret_base32": false, // RFC 4648, padding optional
	"algorithm":     false, // otp.Algorithm, SHA1 when empty
	"digits":        false, // 6 to 8, 6 when empty
	"period":        false, // of TOTP, seconds, 30 when empty
	"counter":       false, // of HOTP, the step of the next code, 0 when empty
}

// ReadCSV reads tokens from CSV (RFC 4180): a header line with names of columns, in any
// order, and a line for each token. The separator is a comma, or a semicolon where the
// header has one. A UTF-8 byte order mark is taken off. What stays in memory of the
// secrets beside the result is left to the garbage collector.
func ReadCSV(r io.Reader) ([]Token, error) {
	limited := &io.LimitedReader{R: r, N: MaxFile + 1}
	in := bufio.NewReader(limited)
	if mark, _ := in.Peek(3); string(mark) == "\ufeff" {
		in.Discard(3)
	}
	head, _ := in.Peek(1024)
	first, _, _ := strings.Cut(string(head), "\n")
	table := csv.NewReader(in)
	if strings.Contains(first, ";") && !strings.Contains(first, ",") {
		table.Comma = ';'
	}
	table.ReuseRecord = true
	names, err := table.Read()
	if err != nil {
		return nil, csvFault(err)
	}
	at := map[string]int{}
	for i, name := range names {
		name = strings.ToLower(strings.TrimSpace(name))
		_, known := columns[name]
		if _, twice := at[name]; !known || twice {
			return nil, fmt.Errorf("stock: column %d of the header is unknown or given twice: want %s", i+1, strings.Join(columnNames(), ", "))
		}
		at[name] = i
	}
	_, inHex := at["secret_hex"]
	if _, inBase32 := at["secret_base32"]; inHex == inBase32 {
		return nil, errors.New("stock: the header: want one of the columns secret_hex and secret_base32")
	}
	for name, required := range columns {
		if _, there := at[name]; required && !there {
			return nil, fmt.Errorf("stock: the header: want a column %s", name)
		}
	}
	var all collector
	for {
		row, err := table.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			Wipe(all.list)
			return nil, csvFault(err)
		}
		line, _ := table.FieldPos(0)
		t, err := tokenOfRow(func(name string) string {
			if i, there := at[name]; there {
				return strings.TrimSpace(row[i])
			}
			return ""
		})
		if err := all.add(t, err, fmt.Sprintf("line %d", line)); err != nil {
			Wipe(all.list)
			return nil, err
		}
	}
	if limited.N <= 0 {
		Wipe(all.list)
		return nil, errTooLarge
	}
	return all.result()
}

var errTooLarge = fmt.Errorf("stock: the file is larger than %d MiB: split it", MaxFile>>20)

// csvFault keeps the text of a file out of the error.
func csvFault(err error) error {
	var parse *csv.ParseError
	switch {
	case errors.As(err, &parse):
		return fmt.Errorf("stock: line %d: no CSV as RFC 4180 has it, or another number of fields than the header", parse.Line)
	case errors.Is(err, io.EOF):
		return errors.New("stock: the file is empty: want a header line")
	}
	return fmt.Errorf("stock: reading the file: %w", err)
}

func columnNames() []string {
	var names []string
	for name := range columns {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func tokenOfRow(field func(name string) string) (Token, error) {
	t := Token{Serial: field("serial"), Algorithm: otp.SHA1, Digits: otp.MinDigits}
	switch strings.ToUpper(field("type")) {
	case "HOTP":
	case "TOTP":
		t.Time, t.Period = true, DefaultPeriod
	default:
		return t, errors.New("type: want HOTP or TOTP")
	}
	if name := field("algorithm"); name != "" {
		var known bool
		if t.Algorithm, known = otp.AlgorithmNamed(name); !known {
			return t, errors.New("algorithm: want SHA1, SHA256, SHA512, STREEBOG256 or STREEBOG512")
		}
	}
	for _, n := range []struct {
		name string
		has  bool // whether this type of token has it
		set  func(n int64)
	}{
		{"digits", true, func(n int64) { t.Digits = int(n) }},
		{"period", t.Time, func(n int64) { t.Period = time.Duration(min(n, 1e6)) * time.Second }},
		{"counter", !t.Time, func(n int64) { t.Counter = n }},
	} {
		text := field(n.name)
		if text == "" {
			continue
		}
		number, err := strconv.ParseInt(text, 10, 64)
		if err != nil || number < 0 || !n.has && number != 0 {
			return t, fmt.Errorf("%s: want a whole number, or nothing where the type has none", n.name)
		}
		if n.has {
			n.set(number)
		}
	}
	var err error
	if text := field("secret_hex"); text != "" {
		t.Secret, err = hex.DecodeString(text)
	} else {
		text = strings.TrimRight(strings.ToUpper(strings.ReplaceAll(field("secret_base32"), " ", "")), "=")
		t.Secret, err = base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(text)
	}
	if err != nil {
		return t, errors.New("the secret: want it in the form its column is named for")
	}
	return t, nil
}
