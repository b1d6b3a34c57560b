// SPDX-License-Identifier: Apache-2.0

package ooxml

import (
	"context"
	"hash"
	"io"
	"sync"

	"tamga/pki/suite"
)

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
	if j.err = a.budget.Spend(j.entry.Size * int64(len(j.hashes)-1)); j.err != nil {
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
	if j.err = ofArchive(a.zip.Copy(ctx, j.entry.Entry, w)); j.err != nil {
		return
	}
	for _, s := range states {
		j.sums = append(j.sums, s.Sum(nil))
	}
}
