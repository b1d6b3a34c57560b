// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/fault"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/budget"
)

// Verification verifies documents signed by anyone, with any program.
type Verification struct {
	Formats sig.Formats // as of Service
	Now     func() time.Time
	// Trust returns the trust anchors, the authorities below them, and the available
	// revocation lists.
	Trust func(ctx context.Context) (Trust, error)
	// Evidence supplies what a document does not contain. If it is nil, only the document
	// and Trust are used.
	Evidence sig.Evidence
	// Qualify sets the quality of signatures by a list of accredited authorities; nil: there is no such list.
	Qualify func(ctx context.Context, r *sig.Report, checked time.Time) error
	// Ends and LivingStamps are those of each [sig.Check].
	Ends         suite.Ends
	LivingStamps bool
	// Powers judges powers of attorney; nil: they are refused.
	Powers *Powers
	// Limits bound what the verification of one document may cost. The zero value means
	// the default limits, which grow with the document.
	Limits budget.Limits
}

// bounded returns a context with the limits of one verification.
func (v *Verification) bounded(ctx context.Context) context.Context {
	if v.Limits.Steps == 0 {
		return ctx
	}
	return budget.With(ctx, v.Limits)
}

// Trust is what certificates are verified against.
type Trust struct {
	Roots, Intermediates []*x509gost.Certificate
	CRLs                 []*x509gost.RevocationList
}

// VerifyOrder is one request. All fields but Type and Content are optional.
type VerifyOrder struct {
	Type     string  // name of a format
	Content  *Intake // the signed document, or a detached signature
	Original *Intake // the document of a detached signature, or its hash
	// IsHash means that Original is a hash value, made with HashAlgorithm. Without the
	// name of an algorithm, all algorithms with this length are tried.
	IsHash        bool
	HashAlgorithm string
	// Strict fails signatures that cover only a part of the document. Expect fails those
	// that do not cover the element with this path (see sig.Check).
	Strict   bool
	Expect   string
	Password string        // opens an encrypted PDF; a secret
	Describe bool          // a detached signature without its document is described (see sig.Check)
	WithPath bool          // reports have the certificates above the signer too
	ETSI     *bytes.Buffer // gets the validation report of ETSI (sig.Report.WriteETSI); nil: it is not asked for
	// Powers are powers of attorney with the signatures of their principals, in any order, and PowerCodes are the powers that each
	// signer must have; nil: signers need none.
	Powers      []File
	PowerCodes  []string
	Certificate []byte // of the signer, DER, PEM or Base64: for formats without certificates
}

// Quality is what the list of accredited authorities says about a signature.
type Quality = sig.Quality

// Mandate is the power of attorney by which a signer acts.
type Mandate = sig.Mandate

// The ways in which it is known when a signature was made; see [Quality].
const (
	TimeClaimed = sig.TimeClaimed
	TimeProven  = sig.TimeProven
)

// SignatureReport is the result for one signature.
type SignatureReport struct {
	ID, ParentID string // place in the document: "0", and "0.1" for a countersignature; a top one has no parent
	Index        int    // among its siblings, from 0
	Verdict      string // passed, failed or indeterminate, including countersignatures
	Whole        string // verdict of the whole file; see [sig.Report.Verdict]
	Main, Sub    string // status and sub-indication of EN 319 102-1, such as INDETERMINATE and TRY_LATER; no Sub if it passed
	Message      string // why it did not pass, or a remark; empty: none
	Findings     []Finding
	Signer       *CertificateInfo
	Level        string    // as in sig.Signature
	Covers       string    // which bytes it covers
	ClaimedTime  time.Time // by the signer; zero: none
	StampedTime  time.Time // proven by a time stamp; zero: none

	Algorithm string             // of the signature; "": unknown
	Path      []*CertificateInfo // from the signer to a trust anchor; nil: there is none, or it was not asked for
	StampedBy *CertificateInfo   // of the service of StampedTime; nil: none
	Revision  int64              // length of the signed version, if the document has later changes; 0: it has none
	Mandate   *Mandate           // the power of attorney by which the signer acts; nil: none
	Quality   *Quality           // by a list of accredited authorities; nil: without such a list
	Until     *Until             // until when a signature that passed can be verified with what it holds; nil for others
	Signed    *suite.Digest      `json:"-"` // that a signature covers whose document is missing; nil: it is there
	Files     []int              `json:"-"` // places of the files of a container that it covers unchanged, if it holds
}

// Until says until when a signature can be verified with what it holds.
type Until struct {
	Time time.Time
	// By is what ends then: one of sig.Ending. Subject is of the certificate that ends.
	By, Subject, Algorithm string
}

// IsStamp reports whether this is a time stamp of the document. It does not count in the verdict of a file with
// signatures (see [sig.Report.Verdict]).
func (r *SignatureReport) IsStamp() bool { return r.Level == sig.LevelDocumentStamp }

// SuiteOf returns the name of the suite whose algorithm a report names, "" if no suite has it.
func SuiteOf(algorithm string) string {
	for _, s := range suite.All() {
		if s.Title == algorithm {
			return s.Name
		}
	}
	return ""
}

// Finding is a rule that a signature breaks, or a note.
type Finding struct {
	Indication string // sub-indication of EN 319 102-1; empty for a note
	Verdict    string // that it leads to: passed for a note
	Code       string // stable, for programs
	Text       string

	Of   *CertificateInfo // that a finding about certificates is about; nil for others
	When time.Time        // of its revocation; zero for others
}

// Passed reports whether the verdict is passed.
func (v *SignatureReport) Passed() bool { return v.Verdict == sig.Passed.String() }

// CertificateInfo describes a certificate in the words of the interface.
type CertificateInfo struct {
	DER                 []byte
	Subject, Issuer     string
	NotBefore, NotAfter time.Time
	Serial, Thumbprint  string // hexadecimal, upper case; the thumbprint is SHA-1
	KeyID               string // hexadecimal subjectKeyIdentifier; empty if there is none
}

// TypeOf returns a type of signature whose format recognises a file, "" if none does. The
// value of a bare signature cannot be told from other data, so it is not recognised.
func (v *Verification) TypeOf(ctx context.Context, content *Intake) (string, error) {
	f, err := recognised(ctx, v.Formats, content)
	if err != nil || f == nil {
		return "", err
	}
	return f.Describe().Types[0].Name, nil
}

// recognised returns the format of a file, nil if none recognises it.
func recognised(ctx context.Context, known sig.Formats, content *Intake) (sig.Described, error) {
	if content.isEmpty() {
		return nil, nil
	}
	f, err := known.Recognise(ctx, content)
	if err != nil || f == nil || f.Describe().Bare {
		return nil, err
	}
	return f, nil
}

// Beside reports whether signatures of a type, as TypeOf returns it, can be in a file beside their document.
func (v *Verification) Beside(kind string) bool {
	_, f := v.Formats.Named(kind)
	return f != nil && f.Describe().Inspect != nil
}

// Contained is a document in a container.
type Contained = sig.Opened

// Contained returns the documents in a container of a type, nil for files of another type. It verifies nothing.
func (v *Verification) Contained(ctx context.Context, kind string, content *Intake) ([]Contained, error) {
	_, f := v.Formats.Named(kind)
	opener, is := f.(sig.Opener)
	if !is {
		return nil, nil
	}
	list, err := opener.Open(v.bounded(ctx), content)
	return list, translate(err)
}

// Verify verifies every signature of a document. Countersignatures follow the signature
// that they sign. Faults: content_required, invalid_content for a document that is not a
// signed document of this type, invalid_parameters.
func (v *Verification) Verify(ctx context.Context, o *VerifyOrder) ([]SignatureReport, error) {
	if o.Content.isEmpty() {
		return nil, fault.New(fault.ContentRequired, "Content is missing or empty: send the signed document or the signature as Base64")
	}
	format, err := v.format(o.Type)
	if err != nil {
		return nil, err
	}
	trust, err := v.Trust(ctx)
	if err != nil {
		return nil, err
	}
	ctx = v.bounded(ctx)
	check := &sig.Check{
		Document: o.Content, Roots: trust.Roots, Intermediates: trust.Intermediates, CRLs: trust.CRLs,
		At: v.Now(), Evidence: v.Evidence, RequireRevocation: true, Strict: o.Strict, Expect: o.Expect,
		Password: []byte(o.Password), Describe: o.Describe, Ends: v.Ends, LivingStamps: v.LivingStamps,
	}
	if len(o.Certificate) > 0 {
		if check.Certificate, err = readAnyCertificate(o.Certificate); err != nil {
			return nil, err
		}
	}
	powers, err := v.Powers.load(ctx, trust, o.Powers, o.PowerCodes)
	if err != nil {
		return nil, err
	}
	if o.Original.isEmpty() {
		return v.judge(ctx, format, check, powers, o)
	}
	if !o.IsHash {
		check.Original = o.Original
		return v.judge(ctx, format, check, powers, o)
	}
	candidates, err := hashValues(o.Original, o.HashAlgorithm)
	if err != nil {
		return nil, err
	}
	var reports []SignatureReport
	for _, d := range candidates {
		check.Hash = &d
		if reports, err = v.judge(ctx, format, check, powers, o); err != nil {
			return nil, err
		}
		if len(reports) > 0 && reports[0].Passed() {
			break
		}
	}
	return reports, nil
}

func (v *Verification) format(name string) (sig.Format, error) {
	if _, f := v.Formats.Named(name); f != nil {
		return f, nil
	}
	return nil, fault.Newf(fault.InvalidParameters, "SignatureType %q is unknown: use one of %s",
		abbreviate(name), strings.Join(v.Formats.Names(), ", "))
}

func (v *Verification) judge(ctx context.Context, format sig.Format, check *sig.Check, powers *loadedPowers, o *VerifyOrder) ([]SignatureReport, error) {
	report, err := format.Verify(ctx, check)
	if err != nil {
		return nil, refused(err)
	}
	if v.Qualify != nil {
		if err := v.Qualify(ctx, report, check.At); err != nil {
			return nil, err
		}
	}
	if err := powers.judge(ctx, report, check.At); err != nil {
		return nil, err
	}
	if o.ETSI != nil {
		o.ETSI.Reset() // several digests may be tried
		if err := report.WriteETSI(o.ETSI, check); err != nil {
			return nil, err
		}
	}
	reports := (&reporter{whole: report, check: check, withPath: o.WithPath}).of(nil, report.Signatures, "")
	if len(reports) == 0 {
		var none SignatureReport
		none.set(report.Conclusion(), append(report.Findings, sig.Finding{Text: "there is no signature in the document"}))
		none.Whole = none.Verdict
		return []SignatureReport{none}, nil
	}
	covers := make([][]int, len(report.Signatures))
	for place, f := range report.Files {
		for _, i := range f.Signatures {
			covers[i] = append(covers[i], place)
		}
	}
	for i := range reports {
		if one := &reports[i]; one.ParentID == "" {
			one.Files = covers[one.Index]
		}
	}
	return reports, nil
}

// refused returns an error of a format about a document to verify as a fault.
func refused(err error) error {
	var document *sig.ErrDocument
	var params *sig.ErrParams
	switch {
	case errors.As(err, &document):
		return fault.New(fault.InvalidContent, document.Error()).With(err)
	case errors.As(err, &params):
		return fault.New(fault.InvalidParameters, params.Error()).With(err)
	}
	return translate(err)
}

// NeedsPassword reports whether an error of Verify is about the password of an encrypted document.
func NeedsPassword(err error) bool {
	var params *sig.ErrParams
	return errors.As(err, &params) && slices.ContainsFunc(params.Faults, func(f sig.Fault) bool { return f.Opens })
}

// TooMuchWork reports whether an error of Verify is about a document whose verification would take more than the
// limits allow.
func TooMuchWork(err error) bool { return errors.As(err, new(*budget.Exceeded)) }

// set sets a verdict and its message from the findings, the deciding ones first.
func (v *SignatureReport) set(status sig.Conclusion, findings []sig.Finding) {
	findings = slices.Clone(findings)
	rank := func(f sig.Finding) int {
		if f.Indication == "" && f.Headline != "" {
			return 1
		}
		return 2 * int(f.Indication.Verdict())
	}
	slices.SortStableFunc(findings, func(a, b sig.Finding) int { return rank(b) - rank(a) })
	texts := make([]string, len(findings))
	for i, f := range findings {
		texts[i] = f.Text
		one := Finding{Indication: string(f.Indication), Verdict: f.Indication.Verdict().String(), Code: f.Code, Text: f.Text, When: f.When}
		if f.Certificate != nil {
			one.Of = DescribeCertificate(f.Certificate)
		}
		v.Findings = append(v.Findings, one)
	}
	v.Verdict, v.Main, v.Sub, v.Message = status.Verdict.String(), status.Main(), string(status.Sub), strings.Join(texts, "; ")
	if status.Verdict == sig.Indeterminate {
		v.Message = "not determined: " + v.Message
	}
}

// reporter makes reports of the signatures of a document.
type reporter struct {
	whole    *sig.Report
	check    *sig.Check // that whole is the result of
	withPath bool       // see [VerifyOrder.WithPath]
}

// of appends the reports of signatures, countersignatures after the signature
// that they sign. Findings about the whole file count for each.
func (r *reporter) of(list []SignatureReport, signatures []sig.Signature, parent string) []SignatureReport {
	list = slices.Grow(list, len(signatures))
	for i := range signatures {
		s := &signatures[i]
		v := SignatureReport{
			Index: i, ParentID: parent, ID: strconv.Itoa(i),
			Level: s.Level, Covers: s.Covers, ClaimedTime: s.SigningTime, Revision: s.Revision, Signed: s.Signed, Quality: s.Quality, Mandate: s.Mandate,
		}
		if s.Scheme != nil {
			v.Algorithm = s.Scheme.Name
		}
		if r.withPath && len(s.Chain) > 0 {
			v.Path = make([]*CertificateInfo, len(s.Chain))
			for j, c := range s.Chain {
				v.Path[j] = DescribeCertificate(c)
			}
		}
		if parent != "" {
			v.ID = parent + "." + v.ID
		}
		status, findings := r.whole.ConclusionOf(s), slices.Concat(s.Findings, r.whole.Findings)
		if s.Verdict() > s.Own() {
			findings = append(findings, sig.Finding{Text: "a countersignature of it did not pass"})
		}
		v.set(status, findings)
		v.Whole = r.whole.Verdict().String()
		if s.Signer != nil {
			v.Signer = DescribeCertificate(s.Signer)
		}
		if h, ok := s.GoodUntil(r.check); ok {
			v.Until = &Until{Time: h.Until, By: string(h.By), Algorithm: h.Algorithm}
			if h.Certificate != nil {
				v.Until.Subject = h.Certificate.Texts().Subject
			}
		}
		for _, stamp := range slices.Concat(s.TimeStamps, s.Proofs) {
			if stamp.Proves() && (v.StampedTime.IsZero() || stamp.Time.Before(v.StampedTime)) {
				v.StampedTime = stamp.Time
				v.StampedBy = DescribeCertificate(stamp.Signer)
			}
		}
		list = append(list, v)
		list = r.of(list, s.Countersigners, v.ID)
	}
	return list
}

// JudgeCertificate returns whether a certificate has a path to a trust anchor and is
// valid now.
func (v *Verification) JudgeCertificate(ctx context.Context, content *Intake) (SignatureReport, error) {
	if content.isEmpty() {
		return SignatureReport{}, fault.New(fault.ContentRequired, "Content is missing or empty: send the certificate as Base64")
	}
	if content.Size() > 1<<20 {
		return SignatureReport{}, fault.New(fault.InvalidContent, "the certificate is larger than 1 MiB")
	}
	der := make([]byte, content.Size())
	if n, err := content.ReadAt(der, 0); n < len(der) {
		return SignatureReport{}, fmt.Errorf("signing: reading a certificate: %w", err)
	}
	c, err := readAnyCertificate(der)
	if err != nil {
		return SignatureReport{}, fault.New(fault.InvalidContent, "Content is not a certificate: send X.509 in DER or PEM").With(err)
	}
	trust, err := v.Trust(ctx)
	if err != nil {
		return SignatureReport{}, err
	}
	check := &sig.Check{
		Roots: trust.Roots, Intermediates: trust.Intermediates, CRLs: trust.CRLs,
		At: v.Now(), Evidence: v.Evidence, RequireRevocation: true, Ends: v.Ends,
	}
	ctx = v.bounded(ctx)
	path, findings := check.TrustAny(ctx, c, check.At)
	if err := ctx.Err(); err != nil {
		return SignatureReport{}, err // findings before the error are not a verdict
	}
	judged := SignatureReport{ID: "0", Signer: DescribeCertificate(c)}
	judged.set(sig.OfCertificate(path, findings), findings)
	judged.Whole = judged.Verdict
	return judged, nil
}

// DescribeCertificate describes a certificate.
func DescribeCertificate(c *x509gost.Certificate) *CertificateInfo {
	t := c.Texts()
	return &CertificateInfo{
		DER: c.Raw, Subject: t.Subject, Issuer: t.Issuer,
		NotBefore: c.NotBefore, NotAfter: c.NotAfter,
		Serial: t.Serial, Thumbprint: t.Thumbprint, KeyID: t.KeyID,
	}
}

// readAnyCertificate reads DER, PEM or the Base64 of either; of several the first.
func readAnyCertificate(data []byte) (*x509gost.Certificate, error) {
	list, err := x509gost.ParseCertificates(bytes.Clone(data))
	if err != nil {
		return nil, fault.New(fault.InvalidParameters, "Certificate is not an X.509 certificate: send it in DER or PEM, or either as Base64").With(err)
	}
	return list[0], nil
}

// hashValues returns the digests that a hash value may be.
func hashValues(value *Intake, algorithm string) ([]suite.Digest, error) {
	if value.Size() > 64 {
		return nil, fault.New(fault.InvalidParameters, "Source is longer than any hash value: leave VerifyParams.Hash out if it is the document")
	}
	sum := make([]byte, value.Size())
	if n, err := value.ReadAt(sum, 0); n < len(sum) {
		return nil, fmt.Errorf("signing: reading a hash value: %w", err)
	}
	if algorithm != "" {
		h, ok := suite.HashByName(algorithm)
		if !ok {
			return nil, fault.Newf(fault.InvalidParameters, "HashAlgorithm %q is unknown: use, for instance, %q", abbreviate(algorithm), suite.Streebog256.Name)
		}
		if len(sum) != h.Size {
			return nil, fault.Newf(fault.InvalidParameters, "Source has %d bytes, a value of %s has %d", len(sum), h.Name, h.Size)
		}
		return []suite.Digest{{Hash: h, Sum: sum}}, nil
	}
	var list []suite.Digest
	for _, su := range suite.All() {
		d := suite.Digest{Hash: su.Hash, Sum: sum}
		known := false
		for _, other := range list {
			known = known || other.Hash == d.Hash
		}
		if !known && su.Hash.Size == len(sum) {
			list = append(list, d)
		}
	}
	if len(list) == 0 {
		return nil, fault.Newf(fault.InvalidParameters, "Source has %d bytes, which is not the length of any known hash value", len(sum))
	}
	return list, nil
}
