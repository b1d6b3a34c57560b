// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/policy"
	"tamga/sig"
)

// EnhanceOrder asks for a higher level of existing signatures. The caller closes Document
// and Original.
type EnhanceOrder struct {
	Type     string
	Params   map[string]string // without OriginalDocument
	Document *Intake           // the signed message
	Original *Intake           // OriginalDocument; nil if there is none
	Snapshot *Snapshot         // as in SignOrder
}

// Enhance raises signatures to the level in the parameters. The format decides which
// signatures are raised and what stays as it is. No key is used. Faults are those of
// Sign.
func (s *Service) Enhance(ctx context.Context, who audit.Principal, o *EnhanceOrder) (Result, error) {
	if o.Document.isEmpty() {
		return nil, fault.New(fault.ContentRequired, "Signature is missing or empty: send the signed message as Base64")
	}
	t, err := s.request(ctx, o.Type, o.Params)
	if err != nil {
		return nil, err
	}
	enhancer, ok := t.format.(sig.Enhancer)
	if !ok {
		return nil, fault.Newf(fault.InvalidSignatureParams, "SignatureType: signatures of type %s have no higher levels", t.name)
	}
	if err := s.permitCaller(ctx, who, o.Snapshot, policy.SignDocument); err != nil {
		return nil, err
	}
	job := &sig.Job{
		Document: o.Document, Digests: o.Document.digests(),
		Params: t.params, TSPAddress: t.address, Time: s.Now(), Zone: s.Zone, Evidence: s.Evidence,
	}
	if !o.Original.isEmpty() {
		job.Original = o.Original
	}
	if s.Anchors != nil {
		if job.Roots, job.Chain, err = s.Anchors(ctx); err != nil {
			return nil, err
		}
	}
	result, err := enhancer.Enhance(s.bounded(ctx, who.UserID == "", job), job)
	if err != nil {
		return nil, translate(err)
	}
	return result, nil
}

// Raises reports whether signatures of a type have higher levels.
func (s *Service) Raises(signatureType string) bool {
	_, f := s.Formats.Named(signatureType)
	_, is := f.(sig.Enhancer)
	return is
}

// RaiseOrder asks for a level of the signatures of a file of any format. The caller closes Content and
// Original.
type RaiseOrder struct {
	Content  *Intake // the signed file
	Original *Intake // document of a detached signature; nil: as it was signed
	Level    Level
	Service  string // address of the time-stamp service, empty for the first one
	Password string // of an encrypted document
}

// Raise is Enhance for a file whose format is found by its content. It has the faults of Enhance.
func (s *Service) Raise(ctx context.Context, who audit.Principal, o *RaiseOrder) (Result, error) {
	format, err := recognised(ctx, s.Formats, o.Content)
	if err != nil {
		return nil, err
	}
	if format == nil {
		return nil, fault.New(fault.InvalidContent, "the file is not a signed document: choose a signature, or a file with signatures")
	}
	about := format.Describe()
	kind, param, value, ok := about.Raised(o.Level)
	if !ok {
		return nil, fault.Newf(fault.InvalidContent, "signatures of this kind (%s) have no higher levels", about.Noun)
	}
	if o.Original != nil && about.Inspect == nil {
		return nil, fault.Newf(fault.InvalidParameters, "a document is chosen beside the signed file, but signatures of this kind (%s) are inside of their document: choose one file", about.Noun)
	}
	params := map[string]string{param: value, "TSPAddress": o.Service}
	for _, p := range about.Params {
		if p.Secret && o.Password != "" {
			params[p.Name] = o.Password
		}
	}
	return s.Enhance(ctx, who, &EnhanceOrder{Type: kind, Params: params, Document: o.Content, Original: o.Original})
}
