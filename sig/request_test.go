// SPDX-License-Identifier: Apache-2.0

package sig_test

import (
	"strings"
	"testing"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/sig"
)

// Parameters are read once for many jobs: the faults of one job are not those of the next.
func TestRequestForJobs(t *testing.T) {
	q := sig.Params{"HASH": "1", "tspaddress ": " ", "Other": "x"}.Request()
	if !q.OverHash || !q.Stamping.Given || q.Stamping.Address != "" || q.Err() != nil {
		t.Errorf("%+v, %v", q, q.Err())
	}
	q.Reader().Fault("Other", "is wrong")
	if err := q.Err(); err != nil {
		t.Errorf("a fault of one format is one of all: %v", err)
	}
	for range 2 {
		r := q.ForJob(new(sig.Job))
		r.Fault("More", "is wrong")
		if err := r.Err(); err == nil || strings.Count(err.Error(), "is wrong") != 2 {
			t.Errorf("%v", err)
		}
	}
	for _, p := range []sig.Params{{"Hash": "yes"}, {"Hash": "True", "hash": "False"}, {"A": "1", "a ": "2"}} {
		if p.Request().Err() == nil {
			t.Errorf("%v are not refused", p)
		}
	}
}

// The address of the time-stamp service is the caller's, then the request's; what is missing is named.
func TestStamper(t *testing.T) {
	evidence := sigtest.NewServices(t, sigtest.Root(t, suite.GOST2012x256))
	for _, c := range []struct {
		params  sig.Params
		level   sig.Level
		job     sig.Job
		address string
		fault   string
	}{
		{sig.Params{"TSPAddress": "a"}, sig.LevelBasic, sig.Job{}, "", ""},
		{sig.Params{"TSPAddress": "a"}, sig.LevelTime, sig.Job{Evidence: evidence}, "a", ""},
		{sig.Params{"TSPAddress": "a"}, sig.LevelTime, sig.Job{Evidence: evidence, TSPAddress: "b"}, "b", ""},
		{nil, sig.LevelTime, sig.Job{Evidence: evidence, TSPAddress: "b"}, "b", ""},
		{sig.Params{"TSPAddress": ""}, sig.LevelTime, sig.Job{Evidence: evidence}, "", ""},
		{nil, sig.LevelTime, sig.Job{Evidence: evidence}, "", "TSPAddress: is missing; K=v needs"},
		{sig.Params{"TSPAddress": "a"}, sig.LevelTime, sig.Job{}, "a", "K: v needs time stamps, but no time-stamp service is configured; none expected"},
	} {
		q := c.params.Request()
		q.Level = c.level
		r := q.ForJob(&c.job)
		if got := q.Stamper(&c.job, r, "K", "v", "none"); got != c.address {
			t.Errorf("%v, %+v: %q, want %q", c.params, c.job.TSPAddress, got, c.address)
		}
		if err := r.Err(); (err != nil) != (c.fault != "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%v: %v, want %q", c.params, err, c.fault)
		}
	}
}

// A request that another format has read is not used.
func TestReadForItsFormat(t *testing.T) {
	type own struct{ n int }
	job := &sig.Job{Params: sig.Params{"N": "1"}, Request: &sig.Request{Own: "another's"}}
	if _, got := sig.ReadFor[own](reads(func(p sig.Params) *sig.Request {
		q := p.Request()
		q.Own = own{len(p)}
		return q
	}), job); got.n != 1 {
		t.Errorf("read %+v", got)
	}
}

type reads func(sig.Params) *sig.Request

func (f reads) Read(p sig.Params) *sig.Request { return f(p) }

// With replaces a parameter however its name is written, and leaves the others.
func TestParamsWith(t *testing.T) {
	p := sig.Params{" tspaddress": "a", "B": "b"}
	if got := p.With("TSPAddress", "c"); len(got) != 2 || got["TSPAddress"] != "c" || got["B"] != "b" || len(p) != 2 || p[" tspaddress"] != "a" {
		t.Errorf("%v of %v", got, p)
	}
}
