// SPDX-License-Identifier: Apache-2.0

package sigtest

import (
	"bytes"
	"context"
	"io"

	"tamga/sig"
)

// MadeUp is a format for tests: a line of text followed by the signature value. Programs
// learn about it only from Describe.
type MadeUp struct{}

var _ sig.Described = MadeUp{}

// madeUpMark is the first line of a file.
const madeUpMark = "made up\n"

var madeUpLevels = []sig.Choice{{Name: "Plain", Number: "0"}, {Name: "Sealed", Number: "1", Level: sig.LevelTime}}

// Describe implements sig.Describer.
func (MadeUp) Describe() sig.Description {
	return sig.Description{
		Types: []sig.Type{{Name: "MadeUp", Number: "77", Usual: sig.Params{"MadeUpLevel": "Plain"}}},
		Kind:  "madeup", Noun: "made-up file", Expected: "a made-up file",
		Suffix: ".made",
		Params: []sig.Param{
			{Name: "MadeUpLevel", Choices: madeUpLevels},
			{Name: "MadeUpSecret", Secret: true},
			{Name: "MadeUpPicture", Long: 1 << 20},
			{Name: "MadeUpTable", Kind: sig.Object},
		},
		Forms: []sig.Form{{Name: "madeup", Noun: "a made-up file", Type: "MadeUp", Extensions: []string{"made"}, Params: map[sig.Level]sig.Params{
			sig.LevelBasic: {"MadeUpLevel": "Plain"}, sig.LevelTime: {"MadeUpLevel": "Sealed"},
		}}},
		Recognises: func(head []byte, _ int64) bool { return bytes.HasPrefix(head, []byte(madeUpMark)) },
		Inspect:    func(sig.Document) (sig.Contents, error) { return sig.Contents{Detached: true}, nil },
	}
}

// Read implements sig.Format.
func (MadeUp) Read(p sig.Params) *sig.Request {
	q := p.Request()
	q.Level = q.Reader().Choice("MadeUpLevel", madeUpLevels, "Plain").Level
	return q
}

// Prepare implements sig.Format.
func (f MadeUp) Prepare(ctx context.Context, job *sig.Job) (*sig.Prepared, error) {
	s, err := sig.SuiteOf(job.Certificate)
	if err != nil {
		return nil, err
	}
	if err := f.Read(job.Params).ForJob(job).Err(); err != nil {
		return nil, err
	}
	d, err := sig.DigestOf(ctx, job.First(), s.Hash)
	return &sig.Prepared{Digest: d}, err
}

// Finish implements sig.Format.
func (MadeUp) Finish(_ context.Context, _ *sig.Job, _, signature []byte) (sig.Result, error) {
	return sig.Parts(sig.Bytes(append([]byte(madeUpMark), signature...))), nil
}

// Verify implements sig.Verifier. The check must have a Certificate and the Original.
func (MadeUp) Verify(ctx context.Context, c *sig.Check) (*sig.Report, error) {
	file, err := io.ReadAll(io.NewSectionReader(c.Document, 0, c.Document.Size()))
	if err != nil {
		return nil, err
	}
	s, err := sig.SuiteOf(c.Certificate)
	if err != nil {
		return nil, err
	}
	size := c.Original.Size()
	ds, err := sig.DigestAll(ctx, io.NewSectionReader(c.Original, 0, size), size, s.Hash)
	if err != nil {
		return nil, err
	}
	out := sig.Signature{Signer: c.Certificate, BestTime: c.At}
	if err := s.Verify(c.Certificate.PublicKey, ds[0], bytes.TrimPrefix(file, []byte(madeUpMark))); err != nil {
		out.Findings = []sig.Finding{{Code: "mismatch", Text: err.Error(), Indication: sig.SigCryptoFailure}}
	}
	return &sig.Report{Signatures: []sig.Signature{out}}, nil
}
