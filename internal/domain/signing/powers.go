// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tamga/internal/domain/fault"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/power"
)

// Powers judges machine-readable powers of attorney, with documents that are verified and before documents are signed. The
// fields are set once.
type Powers struct {
	Formats  sig.Formats
	Now      func() time.Time
	Trust    func(ctx context.Context) (Trust, error)
	Evidence sig.Evidence
	// Ends and LivingStamps are those of each [sig.Check].
	Ends         suite.Ends
	LivingStamps bool
	// Statuses are asked whether a power is withdrawn.
	Statuses []power.Statuses
	// Needed returns the codes of the powers that a user must have for a signature, and whether the user needs a power at all.
	// nil: no user needs one.
	Needed func(ctx context.Context, userID string) (codes []string, needed bool, err error)
	// Stored are powers that every signer may use, with the signatures of their principals. nil: none.
	Stored []sig.File
}

// loadedPowers are powers with what is asked of them. nil: there are none.
type loadedPowers struct {
	set   *power.Set
	rules power.Rules
}

// load loads the powers of a request, nil without any.
func (p *Powers) load(ctx context.Context, trust Trust, list []File, codes []string) (*loadedPowers, error) {
	switch {
	case len(list) == 0 && len(codes) > 0:
		return nil, fault.New(fault.InvalidParameters, "PowerCodes is given without Powers: send the powers of attorney, too")
	case len(list) == 0:
		return nil, nil
	case p == nil:
		return nil, fault.New(fault.InvalidParameters, "Powers is given, but powers of attorney are not judged here: leave it out")
	}
	for i, f := range list {
		if f.Content.isEmpty() {
			return nil, fault.Newf(fault.ContentRequired, "Powers[%d].Content is missing or empty: send the power of attorney, or a signature of one, as Base64", i)
		}
	}
	return p.loadFiles(ctx, trust, filesOf(list, false), codes)
}

func (p *Powers) loadFiles(ctx context.Context, trust Trust, list []sig.File, codes []string) (*loadedPowers, error) {
	set, err := power.Load(ctx, p.Formats, sig.Check{
		Roots: trust.Roots, Intermediates: trust.Intermediates, CRLs: trust.CRLs, At: p.Now(), Evidence: p.Evidence, RequireRevocation: true,
		Ends: p.Ends, LivingStamps: p.LivingStamps,
	}, list)
	var wrong *power.Error
	if errors.As(err, &wrong) {
		return nil, fault.New(fault.InvalidContent, wrong.Error()).With(err)
	}
	if err != nil {
		return nil, refused(err)
	}
	return &loadedPowers{set, power.Rules{Codes: codes, Statuses: p.Statuses}}, nil
}

// judge judges the signers of a report.
func (p *loadedPowers) judge(ctx context.Context, r *sig.Report, checked time.Time) error {
	if p == nil {
		return nil
	}
	return refused(p.set.Judge(ctx, r, checked, p.rules))
}

// IsPower reports whether a file is a power of attorney that can be read.
func (v *Verification) IsPower(ctx context.Context, content *Intake) (bool, error) {
	if v.Powers == nil || content.isEmpty() || content.Size() > power.MaxSize {
		return false, nil
	}
	if is, err := power.Is(content); err != nil || !is {
		return false, err
	}
	document := make([]byte, content.Size())
	if n, err := content.ReadAt(document, 0); n < len(document) {
		return false, fmt.Errorf("signing: reading a power of attorney: %w", err)
	}
	_, err := power.Read(v.bounded(ctx), document)
	var wrong *power.Error
	var refused *sig.ErrDocument
	if errors.As(err, &wrong) || errors.As(err, &refused) {
		return false, nil
	}
	return err == nil, translate(err)
}

// PowerCodes returns the codes in a text, which are separated by commas.
func PowerCodes(text string) (codes []string) {
	for code := range strings.SplitSeq(text, ",") {
		if code = strings.TrimSpace(code); code != "" {
			codes = append(codes, code)
		}
	}
	return codes
}

// The parameters of a signature about powers of attorney, which are those of all formats.
const (
	paramPower      = "Power"      // a power, or an archive of powers and signatures, as Base64
	paramPowerCodes = "PowerCodes" // powers that the signer must have, separated by commas
)

// maxPower is the largest value of Power, in bytes before Base64.
const maxPower = 1 << 20

// mandated refuses a signature that no power of attorney covers, if the parameters have one or the user needs one. It is decided when
// a signature is ordered, and again when it is made.
func (p *Powers) mandated(ctx context.Context, userID string, params sig.Params, signer *x509gost.Certificate) error {
	text, codes := "", []string(nil)
	for key, value := range params { // a name that is given twice with different values was refused before
		switch key = strings.TrimSpace(key); {
		case strings.EqualFold(key, paramPower):
			text = strings.TrimSpace(value)
		case strings.EqualFold(key, paramPowerCodes):
			codes = PowerCodes(value)
		}
	}
	if text == "" && len(codes) == 0 && (p == nil || p.Needed == nil || userID == "") {
		return nil
	}
	if p == nil {
		return fault.New(fault.InvalidSignatureParams, "Power: powers of attorney are not judged here: leave it out")
	}
	needed := text != "" || len(codes) > 0
	if p.Needed != nil && userID != "" {
		more, asked, err := p.Needed(ctx, userID)
		if err != nil {
			return err
		}
		needed = needed || asked
		for _, code := range more {
			if !slices.Contains(codes, code) {
				codes = append(codes, code)
			}
		}
	}
	if !needed {
		return nil
	}
	files := slices.Clone(p.Stored)
	if text != "" {
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(data) > maxPower {
			return fault.Newf(fault.InvalidSignatureParams, "Power: want a power of attorney, or a ZIP archive with powers and their signatures, as Base64, of at most %d bytes", maxPower)
		}
		files = append(files, sig.File{Name: paramPower, Document: strings.NewReader(string(data))})
	}
	if len(files) == 0 {
		// An organization that signs itself needs none.
		if _, findings, err := new(power.Set).Covers(ctx, signer, p.Now(), power.Rules{}); err != nil || power.Worst(findings) == sig.Passed {
			return err
		}
		return fault.New(fault.AccessDenied, "a power of attorney is needed to sign: send it as the parameter Power")
	}
	trust, err := p.Trust(ctx)
	if err != nil {
		return err
	}
	loaded, err := p.loadFiles(ctx, trust, files, codes)
	if f, is := fault.As(err); is && f.Code == fault.InvalidContent {
		return fault.New(fault.InvalidSignatureParams, "Power: "+f.Message).With(err)
	}
	if err != nil {
		return err
	}
	_, findings, err := loaded.set.Covers(ctx, signer, p.Now(), loaded.rules)
	if err != nil {
		return translate(err)
	}
	worst := power.Worst(findings)
	for _, f := range findings {
		if v := f.Indication.Verdict(); v == worst && v != sig.Passed {
			return fault.New(fault.AccessDenied, "no power of attorney covers this signature: "+f.Text)
		}
	}
	return nil
}
