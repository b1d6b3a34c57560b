// SPDX-License-Identifier: Apache-2.0

package sig

import (
	"cmp"
	"slices"
)

// Request is the parameters of a request as one format has read them, once for all documents of the
// request. Nothing in it is changed afterwards.
type Request struct {
	// OverHash reports that the documents are hash values (Hash=True).
	OverHash bool
	// Level is the level of the signatures.
	Level Level
	// Stamping names the time-stamp service, for levels that need one.
	Stamping Stamping
	// Several reports that one signature may cover several documents (Job.Files). The format sets
	// it. Otherwise ForJob refuses a job with Files.
	Several bool
	// Profiled reports that the format makes signatures of the named Profile. The format sets it. Otherwise ForJob refuses a
	// job with a profile.
	Profiled bool
	// Own is what the format has read besides, for itself.
	Own any

	reader *ParamReader
	common []Fault // the part of the reader's faults that no format adds to
}

// Stamping is the time-stamp service that a request names.
type Stamping struct {
	Address string // TSPAddress
	Given   bool   // even if it is empty, which asks for the usual service
}

// Request begins reading parameters: it reads what all formats have. The format then reads the rest
// with Reader and sets Level, Own and Several.
func (p Params) Request() *Request {
	r := p.Reader()
	q := &Request{OverHash: r.Bool("Hash", false), Stamping: Stamping{r.String(tspAddress), r.Has(tspAddress)}, reader: r}
	q.common = slices.Clone(r.faults)
	return q
}

const tspAddress = "TSPAddress"

// Profile is the parameter that names rules for what a signature holds.
const Profile = "Profile"

// Reader returns the reader of the parameters, for the format that made q.
func (q *Request) Reader() *ParamReader { return q.reader }

// Err returns an *ErrParams with the faults that do not depend on the format, or nil: a parameter that
// is given twice, and a Hash that is no truth value.
func (q *Request) Err() error {
	if len(q.common) == 0 {
		return nil
	}
	return &ErrParams{Faults: slices.Clone(q.common)}
}

// ForJob returns a reader with all faults so far and that of Job.Files, unless the format signs Several
// documents. The format adds the other faults of the job.
func (q *Request) ForJob(job *Job) *ParamReader {
	// Short enough to be inlined: the reader then stays on the stack.
	return &ParamReader{values: q.reader.values, faults: q.faultsFor(job)}
}

// faultsFor returns a copy of the faults so far, with the fault of a job that has Files.
func (q *Request) faultsFor(job *Job) []Fault {
	faults := slices.Clone(q.reader.faults)
	if !q.Several {
		faults = append(faults, job.refuseFiles()...)
	}
	if name := q.reader.String(Profile); name != "" && !q.Profiled {
		faults = append(faults, Fault{Key: Profile, Text: "is " + quote(name) + ", but signatures of this type have no profiles; leave it out, or make a CAdES signature"})
	}
	return faults
}

// Stamper returns the address of the time-stamp service for a job, if its level needs one. key and
// value are the parameter that asks for the level, and without names the value of that parameter for a
// signature without a time stamp.
func (q *Request) Stamper(job *Job, r *ParamReader, key, value, without string) string {
	switch {
	case q.Level < LevelTime:
		return ""
	case job.TSPAddress == "" && !q.Stamping.Given:
		r.Fault(tspAddress, "is missing; "+key+"="+value+" needs the address of a time-stamp service")
	case job.Evidence == nil:
		r.Fault(key, value+" needs time stamps, but no time-stamp service is configured; "+without+" expected")
	}
	return cmp.Or(job.TSPAddress, q.Stamping.Address)
}

// ReadFor returns the parameters of a job as its format has read them, and the format's own part. T is
// the type of Own. If another format has read them, or none, f reads Params.
func ReadFor[T any](f interface{ Read(Params) *Request }, job *Job) (*Request, T) {
	if q := job.Request; q != nil {
		if own, is := q.Own.(T); is {
			return q, own
		}
	}
	q := f.Read(job.Params)
	return q, q.Own.(T)
}
