// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"compress/flate"
	"encoding/ascii85"
	"errors"
	"fmt"
	"io"
)

// decode reverses the filters of a stream that contains cross-references or objects.
// budget is how many bytes all streams of the document may still decode to.
func decode(raw []byte, filters, parms object, budget *int64) ([]byte, error) {
	names, params := filterList(filters), filterList(parms)
	if len(names) > 4 {
		return nil, errors.New("a stream has more than 4 filters")
	}
	for i, f := range names {
		var p dict
		if i < len(params) {
			p, _ = params[i].(dict)
		}
		var err error
		switch f {
		case name("FlateDecode"), name("Fl"):
			if raw, err = inflate(raw, budget); err == nil {
				raw, err = unpredict(raw, p)
			}
		case name("ASCIIHexDecode"), name("AHx"):
			raw = lexBytes(raw).hex()
		case name("ASCII85Decode"), name("A85"):
			raw, err = unascii85(raw)
		case name("Crypt"): // handled by decryptStream
		default:
			return nil, fmt.Errorf("a required stream has the unsupported filter %v", f)
		}
		if err != nil {
			return nil, err
		}
	}
	return raw, nil
}

func filterList(o object) array {
	switch o := o.(type) {
	case nil:
		return nil
	case array:
		return o
	}
	return array{o}
}

// inflate is tolerant, as viewers are: it ignores a wrong checksum, and of truncated data
// it returns the beginning.
func inflate(raw []byte, budget *int64) ([]byte, error) {
	if len(raw) < 2 {
		return nil, errors.New("a compressed stream is empty")
	}
	// The maximum ratio of Deflate is 1032.
	limit := min(*budget, maxDecoded, 1032*int64(len(raw)))
	var out bytes.Buffer
	n, err := io.Copy(&out, io.LimitReader(flate.NewReader(bytes.NewReader(raw[2:])), limit+1))
	*budget -= n
	if n > limit {
		return nil, errors.New("compressed streams decode to more bytes than the limit")
	}
	if err != nil && n == 0 {
		return nil, fmt.Errorf("a compressed stream: %w", err)
	}
	return out.Bytes(), nil
}

func unascii85(raw []byte) ([]byte, error) {
	if i := bytes.IndexByte(raw, '~'); i >= 0 {
		raw = raw[:i]
	}
	out := make([]byte, 4*len(raw)+4) // z means four bytes
	n, _, err := ascii85.Decode(out, raw, true)
	return out[:n], err
}

// unpredict reverses the predictors of FlateDecode (ISO 32000-1, 7.4.4.4).
func unpredict(data []byte, p dict) ([]byte, error) {
	predictor, _ := integer(p.get("Predictor"))
	if predictor <= 1 {
		return data, nil
	}
	get := func(key name, def int64) int64 {
		if v, ok := integer(p.get(key)); ok {
			return v
		}
		return def
	}
	columns, colors, bits := get("Columns", 1), get("Colors", 1), get("BitsPerComponent", 8)
	if columns < 1 || columns > 1<<20 || colors < 1 || colors > 32 || bits < 1 || bits > 16 {
		return nil, errors.New("a stream has a predictor with impossible parameters")
	}
	row := int((columns*colors*bits + 7) / 8)
	pixel := int(max(1, colors*bits/8))
	if predictor == 2 {
		if bits != 8 {
			return nil, errors.New("a stream has an unsupported predictor")
		}
		for ; len(data) > 0; data = data[min(row, len(data)):] {
			for i := pixel; i < min(row, len(data)); i++ {
				data[i] += data[i-pixel]
			}
		}
		return data, nil
	}
	out := make([]byte, 0, len(data))
	above := make([]byte, row)
	for len(data) > 1 {
		kind, line := data[0], data[1:min(row+1, len(data))]
		data = data[1+len(line):]
		for i := range line {
			var left, corner byte
			if i >= pixel {
				left, corner = line[i-pixel], above[i-pixel]
			}
			switch kind {
			case 1:
				line[i] += left
			case 2:
				line[i] += above[i]
			case 3:
				line[i] += byte((int(left) + int(above[i])) / 2)
			case 4:
				line[i] += paeth(left, above[i], corner)
			}
		}
		out = append(out, line...)
		copy(above, line)
	}
	return out, nil
}

func paeth(a, b, c byte) byte {
	distance := func(x, y int) int { return max(x-y, y-x) }
	p := int(a) + int(b) - int(c)
	pa, pb, pc := distance(p, int(a)), distance(p, int(b)), distance(p, int(c))
	switch {
	case pa <= pb && pa <= pc:
		return a
	case pb <= pc:
		return b
	}
	return c
}
