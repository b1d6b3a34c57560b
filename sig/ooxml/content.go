// SPDX-License-Identifier: Apache-2.0

package ooxml

import (
	"bufio"
	"bytes"
	"compress/flate"
	"context"
	"hash"
	"hash/crc32"
	"io"
	"sync"

	"tamga/pki/suite"
)

// inflater reads one entry after another. It is pooled because a new decompressor costs
// more than most parts.
type inflater struct {
	in    *bufio.Reader
	flate io.ReadCloser // also a flate.Resetter
	buf   [64 << 10]byte
}

var inflaters = sync.Pool{New: func() any {
	return &inflater{in: bufio.NewReaderSize(nil, 32<<10), flate: flate.NewReader(bytes.NewReader(nil))}
}}

// copyContent decompresses the content of an entry into w, never more than the directory
// announces. Content of another length or checksum is an error.
func (a *archive) copyContent(ctx context.Context, e *entry, w io.Writer) error {
	// Received bytes are read without charge; the decompressed bytes are charged.
	if err := a.budget.Spend(max(0, e.size-e.compressed) + e.size/8); err != nil {
		return err
	}
	f := inflaters.Get().(*inflater)
	defer inflaters.Put(f)
	section := io.NewSectionReader(a.doc, e.data, e.compressed)
	broken := &sourceError{Reader: section}
	f.in.Reset(broken)
	var r io.Reader = f.in
	if e.method == methodDeflate {
		if err := f.flate.(flate.Resetter).Reset(f.in, nil); err != nil {
			return err
		}
		r = f.flate
	}
	sum := crc32.NewIEEE()
	for left := e.size; ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := r.Read(f.buf[:])
		if left -= int64(n); left < 0 {
			return damaged("the entry %s has more content than the %d bytes announced", quote(e.name), e.size)
		}
		sum.Write(f.buf[:n])
		if _, werr := w.Write(f.buf[:n]); werr != nil {
			return werr
		}
		if err == io.EOF {
			if left > 0 {
				return damaged("the entry %s has %d bytes less than announced", quote(e.name), left)
			}
			break
		}
		if err != nil {
			if broken.err != nil {
				return readError(broken.err)
			}
			return damaged("the entry %s cannot be decompressed: %s", quote(e.name), err)
		}
	}
	if sum.Sum32() != e.crc {
		return damaged("the content of the entry %s does not match its checksum", quote(e.name))
	}
	return nil
}

// sourceError records that reading the document failed, which is not an error of the
// document.
type sourceError struct {
	io.Reader
	err error
}

func (s *sourceError) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// content returns the content of an entry of at most most bytes.
func (a *archive) content(ctx context.Context, e *entry, most int64) ([]byte, error) {
	if e.size > most {
		return nil, unfit(nil, "the entry %s has %d bytes; at most %d are accepted", quote(e.name), e.size, most)
	}
	if err := a.budget.Hold(2 * e.size); err != nil {
		return nil, err
	}
	b := bytes.NewBuffer(make([]byte, 0, min(e.size, 4*e.compressed+4096)))
	err := a.copyContent(ctx, e, b)
	return b.Bytes(), err
}

// digestJob is a part to digest with one or more algorithms.
type digestJob struct {
	entry  *entry
	hashes []*suite.Hash
	// The result: sums in the order of hashes, or an error.
	sums [][]byte
	err  error
}

// digestAll computes the digests of parts, several at a time. It returns only errors of
// reading the document or of ctx. An error of a part is in its job.
func (a *archive) digestAll(ctx context.Context, jobs []*digestJob, workers int) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	feed := make(chan *digestJob)
	var group sync.WaitGroup
	var once sync.Once
	var failed error
	for range min(workers, len(jobs)) {
		group.Go(func() {
			for j := range feed {
				a.digest(ctx, j)
				if j.err != nil && !isDocument(j.err) {
					once.Do(func() { failed = j.err; stop() })
				}
			}
		})
	}
	for _, j := range jobs {
		feed <- j
	}
	close(feed)
	group.Wait()
	return failed
}

func (a *archive) digest(ctx context.Context, j *digestJob) {
	if j.err = a.budget.Spend(j.entry.size * int64(len(j.hashes)-1)); j.err != nil {
		return
	}
	states := make([]hash.Hash, len(j.hashes))
	writers := make([]io.Writer, len(j.hashes))
	for i, h := range j.hashes {
		states[i] = h.New()
		writers[i] = states[i]
	}
	var w io.Writer
	if len(writers) == 1 {
		w = writers[0]
	} else {
		w = io.MultiWriter(writers...)
	}
	if j.err = a.copyContent(ctx, j.entry, w); j.err != nil {
		return
	}
	for _, s := range states {
		j.sums = append(j.sums, s.Sum(nil))
	}
}
