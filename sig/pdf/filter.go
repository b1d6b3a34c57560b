// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/ascii85"
	"errors"
	"fmt"
	"io"
	"sync"
)

// decode reverses the filters of a stream that contains cross-references or objects, of which at
// most want bytes are needed. The filters run one inside the other, so only the result is held.
// It is charged before it grows. The caller releases raw.
func (f *file) decode(raw []byte, filters, parms object, want int64) ([]byte, error) {
	names, params := filterList(filters), filterList(parms)
	if len(names) > 4 {
		return nil, errors.New("a stream has more than 4 filters")
	}
	c := &chain{file: f, limit: min(maxRatio*int64(len(raw)), maxDecoded)}
	defer c.close()
	var r io.Reader = bytes.NewReader(raw)
	changed := false
	for i, n := range names {
		var p dict
		if i < len(params) {
			p, _ = params[i].(dict)
		}
		var err error
		switch n {
		case name("FlateDecode"), name("Fl"):
			if r, err = c.inflate(r); err == nil {
				r, err = c.unpredict(r, p)
			}
		case name("ASCIIHexDecode"), name("AHx"):
			r = &counted{chain: c, from: &hexReader{from: bufio.NewReaderSize(r, filterBuffer), high: -1}}
		case name("ASCII85Decode"), name("A85"):
			r = &counted{chain: c, from: ascii85.NewDecoder(&until{from: r, end: '~'})}
		case name("Crypt"): // handled by decryptStream
			continue
		default:
			return nil, fmt.Errorf("a required stream has the unsupported filter %v", n)
		}
		if err != nil {
			return nil, err
		}
		changed = true
	}
	if !changed {
		out := raw[:min(int64(len(raw)), want)]
		if !f.keep(int64(len(out))) {
			return nil, f.failed()
		}
		return out, nil
	}
	out, err := f.gather(io.LimitReader(r, want))
	if err = cmp.Or(f.failed(), c.err, err); err != nil {
		f.spending.Release(int64(len(out)))
		return nil, err
	}
	return out, nil
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

const (
	// maxRatio is the largest ratio of Deflate. A stream never decodes to more than that,
	// whatever the number of its filters: it makes no sense to compress twice what shrinks so well.
	maxRatio = 1032
	// filterBuffer is the size of the buffers between filters, in bytes.
	filterBuffer = 512
	// rowsBuffer is the size of the buffer before a predictor, whose rows are short, in bytes.
	rowsBuffer = 4 << 10
	// inflaterSize is about the memory of an inflater, in bytes.
	inflaterSize = 48 << 10
)

// chain is the filters of one stream.
type chain struct {
	file      *file
	limit     int64 // bytes that each filter may return
	inflaters []io.ReadCloser
	held      int64 // bytes of the filters themselves
	err       error // why the stream is refused, even if a filter after it is tolerant
}

// nothing is the source of inflaters that are not in use.
var nothing = bytes.NewReader(nil)

var inflaters = sync.Pool{New: func() any { return flate.NewReader(nil) }}

// close gives the memory of the filters back.
func (c *chain) close() {
	for _, r := range c.inflaters {
		r.(flate.Resetter).Reset(nothing, nil) // it must not keep the stream
		inflaters.Put(r)
	}
	c.file.spending.Release(c.held)
}

// hold charges memory of a filter.
func (c *chain) hold(n int64) error {
	if !c.file.keep(n) {
		return c.file.failed()
	}
	c.held += n
	return nil
}

// refuse records the error for which the whole stream is refused.
func (c *chain) refuse(err error) error {
	if c.err == nil {
		c.err = err
	}
	return c.err
}

// counted charges the bytes that a filter returns.
type counted struct {
	chain *chain
	from  io.Reader
	n     int64 // bytes so far
}

// Read implements io.Reader.
func (r *counted) Read(p []byte) (int, error) {
	c := r.chain
	n, err := r.from.Read(p)
	r.n += int64(n)
	c.file.budget -= int64(n)
	if r.n > c.limit || c.file.budget < 0 {
		return 0, c.refuse(errors.New("compressed streams decode to more bytes than the limit"))
	}
	if !c.file.charge(2 * int64(n)) {
		return 0, c.refuse(c.file.failed())
	}
	if err != nil && err != io.EOF {
		err = c.refuse(err)
	}
	return n, err
}

// inflate is tolerant, as viewers are: it ignores a wrong checksum, and of truncated data
// it returns the beginning.
func (c *chain) inflate(r io.Reader) (io.Reader, error) {
	if err := c.hold(inflaterSize); err != nil {
		return nil, err
	}
	from := bufio.NewReaderSize(r, filterBuffer)
	if n, err := from.Discard(2); n < 2 {
		return nil, cmp.Or(c.err, fmt.Errorf("a compressed stream is empty: %w", err))
	}
	z := inflaters.Get().(io.ReadCloser)
	if err := z.(flate.Resetter).Reset(from, nil); err != nil {
		return nil, err
	}
	c.inflaters = append(c.inflaters, z)
	return &counted{chain: c, from: &tolerant{from: z}}, nil
}

// tolerant ends where its source breaks off, unless that is at the beginning.
type tolerant struct {
	from io.Reader
	any  bool
}

// Read implements io.Reader.
func (r *tolerant) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.any = r.any || n > 0
	if err != nil && err != io.EOF {
		if r.any {
			return n, io.EOF
		}
		err = fmt.Errorf("a compressed stream: %w", err)
	}
	return n, err
}

// gather reads r to its end. What it returns is charged as held.
func (f *file) gather(r io.Reader) ([]byte, error) {
	var pieces []*[blockSize]byte
	defer func() {
		for _, b := range pieces {
			blocks.Put(b)
		}
		f.spending.Release(blockSize * int64(len(pieces)))
	}()
	size, last := 0, blockSize
	for {
		if last == blockSize {
			if !f.keep(blockSize) {
				return nil, f.failed()
			}
			pieces, last = append(pieces, blocks.Get().(*[blockSize]byte)), 0
		}
		n, err := r.Read(pieces[len(pieces)-1][last:])
		size, last = size+n, last+n
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if !f.keep(int64(size)) {
		return nil, f.failed()
	}
	out := make([]byte, 0, size)
	for _, b := range pieces {
		out = append(out, b[:min(blockSize, size-len(out))]...)
	}
	return out, nil
}

// hexReader reverses ASCIIHexDecode.
type hexReader struct {
	from *bufio.Reader
	high int // the first digit of a pair; -1: none
	done bool
}

// Read implements io.Reader.
func (r *hexReader) Read(p []byte) (n int, err error) {
	for n < len(p) && !r.done {
		c, err := r.from.ReadByte()
		if err != nil && err != io.EOF {
			return n, err
		}
		d := hexDigit(int(c))
		switch {
		case err == io.EOF || c == '>':
			r.done = true
			if r.high >= 0 {
				p[n] = byte(r.high << 4)
				n++
			}
		case d < 0: // white space or an invalid character
		case r.high < 0:
			r.high = d
		default:
			p[n] = byte(r.high<<4 | d)
			n++
			r.high = -1
		}
	}
	if n == 0 && r.done && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// until ends before a byte.
type until struct {
	from io.Reader
	end  byte
	done bool
}

// Read implements io.Reader.
func (r *until) Read(p []byte) (int, error) {
	if r.done {
		return 0, io.EOF
	}
	n, err := r.from.Read(p)
	if i := bytes.IndexByte(p[:n], r.end); i >= 0 {
		r.done = true
		return i, nil
	}
	return n, err
}

// unpredict reverses the predictors of FlateDecode (ISO 32000-1, 7.4.4.4).
func (c *chain) unpredict(r io.Reader, p dict) (io.Reader, error) {
	predictor, _ := integer(p.get("Predictor"))
	if predictor <= 1 {
		return r, nil
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
	if predictor == 2 && bits != 8 {
		return nil, errors.New("a stream has an unsupported predictor")
	}
	// A row that is longer than all that can come is the only one.
	row := min((columns*colors*bits+7)/8, c.limit)
	if err := c.hold(2*row + rowsBuffer); err != nil {
		return nil, err
	}
	return &rows{
		from: bufio.NewReaderSize(r, rowsBuffer), tiff: predictor == 2, pixel: int(max(1, colors*bits/8)),
		line: make([]byte, 1+row), above: make([]byte, row),
	}, nil
}

// rows reverses a predictor row by row.
type rows struct {
	from  io.Reader
	tiff  bool   // predictor 2, whose rows have no kind
	pixel int    // bytes
	line  []byte // the kind of a row, then the row
	above []byte // the row before
	left  []byte // of line, not returned yet
	err   error
}

// Read implements io.Reader.
func (r *rows) Read(p []byte) (int, error) {
	for len(r.left) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		r.next()
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

// next reads a row. The last one may be shorter.
func (r *rows) next() {
	from := 0
	if r.tiff {
		from = 1
	}
	n, err := io.ReadFull(r.from, r.line[from:])
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	r.err = err
	line := r.line[1:max(1, from+n)]
	if r.tiff {
		for i := r.pixel; i < len(line); i++ {
			line[i] += line[i-r.pixel]
		}
		r.left = line
		return
	}
	kind, above, pixel := r.line[0], r.above, r.pixel
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
	copy(above, line)
	r.left = line
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
