// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"errors"
	"slices"
	"time"

	"tamga/internal/domain/fault"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/budget"
)

// RenewOrder asks for one more archive time stamp over the signatures of a file, or for the first one.
type RenewOrder struct {
	Content  sig.Document // the signed file
	Original sig.Document // document of a detached signature; nil: as it was signed
	Service  string       // address of the time-stamp service
}

// Renewed is a file whose signatures have a new archive time stamp.
type Renewed struct {
	Result
	GoodUntil time.Time // the end of the new time stamp
}

// Renewable returns nil if a file has signatures that can have archive time stamps. The fault is invalid_content, with the cause
// sig.ErrUnsigned for a file without signatures. It reads the file, but asks no other service.
func (s *Service) Renewable(ctx context.Context, d sig.Document) error {
	format, err := s.signedFormat(ctx, d)
	if err != nil {
		return err
	}
	// The first bytes say the format: most PDF and XML documents have no signature.
	report, err := format.Verify(ctx, &sig.Check{Document: d, At: s.Now(), Describe: true})
	if err != nil {
		return translate(err)
	}
	if report.Unsigned() {
		return unsigned()
	}
	_, _, err = archiving(format)
	return err
}

// unsigned is the fault of a file without signatures.
func unsigned() error {
	return fault.New(fault.InvalidContent, "the document is not a signed document, so there is no signature to renew").With(sig.ErrUnsigned)
}

// signedFormat returns the format of a file, which may have signatures.
func (s *Service) signedFormat(ctx context.Context, d sig.Document) (sig.Described, error) {
	format, err := s.Formats.Recognise(ctx, d)
	if err != nil {
		return nil, translate(err)
	}
	if format == nil || format.Describe().Bare {
		return nil, unsigned()
	}
	return format, nil
}

// archiving returns what adds archive time stamps to files of a format, and the parameters that ask for them.
func archiving(format sig.Described) (sig.Enhancer, sig.Params, error) {
	about := format.Describe()
	_, param, value, ok := about.Raised(LevelArchive)
	enhancer, is := format.(sig.Enhancer)
	if !ok || !is {
		return nil, nil, fault.Newf(fault.InvalidContent, "signatures of this kind (%s) get no archive time stamps here", about.Noun)
	}
	return enhancer, sig.Params{param: value}, nil
}

// Renew adds an archive time stamp to the signatures of a file, which are verified before and after. It uses no key of a
// signer, so no policy of a user is asked. Whether a failure may pass by itself, Passes says. The content must stay open until the result is written.
func (s *Service) Renew(ctx context.Context, o *RenewOrder) (*Renewed, error) {
	format, err := s.signedFormat(ctx, o.Content)
	if err != nil {
		return nil, err
	}
	enhancer, params, err := archiving(format)
	if err != nil {
		return nil, err
	}
	var judged *sig.Report
	stamps := &stampsOf{Evidence: s.Evidence}
	job := &sig.Job{
		Document: o.Content, Original: o.Original, Params: params.With("TSPAddress", o.Service), TSPAddress: o.Service,
		Time: s.Now(), Zone: s.Zone, Evidence: stamps, Judged: func(r *sig.Report) { judged = r },
	}
	if s.Evidence == nil {
		return nil, fault.New(fault.Unavailable, "no time-stamp service is registered")
	}
	if s.Anchors != nil {
		if job.Roots, job.Chain, err = s.Anchors(ctx); err != nil {
			return nil, err
		}
	}
	result, err := enhancer.Enhance(ctx, job)
	if err != nil {
		return nil, translate(err)
	}
	if judged == nil {
		return nil, fault.New(fault.Failed, "the renewed signature cannot be verified: this installation knows no trusted root")
	}
	until := goodUntil(judged)
	if until.IsZero() && slices.ContainsFunc(judged.Signatures, func(s sig.Signature) bool { return s.Signed != nil }) {
		until = stamps.end // a report about a signature without its document says nothing of archive time stamps
	}
	if until.IsZero() {
		return nil, fault.New(fault.InvalidContent, "the signatures have no archive time stamp after the renewal")
	}
	return &Renewed{result, until}, nil
}

// stampsOf notes the end of the last time stamp that a job got.
type stampsOf struct {
	sig.Evidence
	end time.Time
}

// TimeStamp implements sig.Evidence.
func (e *stampsOf) TimeStamp(ctx context.Context, address string, d suite.Digest) (*tsp.Verified, error) {
	v, err := e.Evidence.TimeStamp(ctx, address, d)
	if err != nil {
		return v, err
	}
	e.end = v.Authority().NotAfter
	chain, _ := v.Token().Message.X509() // those that can be read
	for _, c := range chain {
		e.end = earlier(e.end, c.NotAfter)
	}
	return v, nil
}

// Passes reports whether a failure of Renew may pass by itself: another service does not answer, or something of ours.
func Passes(err error) bool {
	var evidence *sig.ErrEvidence
	if errors.As(err, &evidence) {
		return evidence.What != "level"
	}
	f, refused := fault.As(err)
	return !refused || errors.Is(err, budget.ErrBusy) || f.Code == fault.Unavailable || f.Code == fault.TooManyRequests
}

// goodUntil returns when the signatures of a report need their next archive time stamp: the earliest end among the
// certificates of the last one of each signature. It is zero without archive time stamps.
func goodUntil(r *sig.Report) (until time.Time) {
	end := func(chain []*x509gost.Certificate, signer *x509gost.Certificate) (end time.Time) {
		if signer != nil {
			end = signer.NotAfter
		}
		for _, c := range chain {
			end = earlier(end, c.NotAfter)
		}
		return end
	}
	var document time.Time // of the last time stamp of the whole document, which covers all signatures
	for i := range r.Signatures {
		if s := &r.Signatures[i]; s.IsStamp() && s.Own() == sig.Passed {
			document = end(s.Chain, s.Signer)
		}
	}
	for i := range r.Signatures {
		s := &r.Signatures[i]
		if s.IsStamp() {
			continue
		}
		var last time.Time
		own := document
		for j := range s.TimeStamps {
			if t := &s.TimeStamps[j]; (t.Kind == "archive" || t.Kind == "document") && t.Passed() && !t.Time.Before(last) {
				last, own = t.Time, end(t.Chain, t.Signer)
			}
		}
		until = earlier(until, own)
	}
	return until
}

// earlier returns the earlier one of two times; a zero one is unknown.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
