// SPDX-License-Identifier: Apache-2.0

// Package svsapi serves the verification of signatures: it turns requests of the interface
// into orders of the domain, and verdicts into answers. Begin with [New] and [API.Routes].
// Callers need no token. Package signing verifies.
package svsapi

import (
	"bytes"
	"context"
	_ "embed" // for Docs
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/signing"
	"tamga/internal/web/rest"
)

// Docs describes the operations of this surface for people; see
// [tamga/internal/web/rest/openapi].
//
//go:embed operations.txt
var Docs string

// Verifier verifies; see [signing.Verification].
type Verifier interface {
	Verify(ctx context.Context, o *signing.VerifyOrder) ([]signing.SignatureReport, error)
	JudgeCertificate(ctx context.Context, content *signing.Intake) (signing.SignatureReport, error)
}

// Rules bound the requests of anonymous callers.
type Rules struct {
	// Admit refuses the address of a caller that comes too often. nil: all are admitted.
	Admit func(remote string) error
	// Limit bounds a request, in bytes of its body.
	Limit int64
	// Turn waits until a request from an address may be carried out. done frees its place.
	// nil: requests do not wait.
	Turn func(ctx context.Context, remote string) (done func(), err error)
	// Deadline ends a verification. The wait for its turn does not count. 0: none.
	Deadline time.Duration
	// Types are the types of signatures that are verified, as the interface names them.
	Types []string
}

// Take opens the intake of a document; see [signing.Service.NewIntake].
type Take func(ctx context.Context, who audit.Principal) (*signing.Intake, error)

// documents are the documents of one request.
type documents = rest.Documents[*signing.Intake]

// API serves a verifier.
type API struct {
	verifier Verifier
	take     Take
	rules    Rules
}

// New returns the API.
func New(v Verifier, take Take, r Rules) *API { return &API{verifier: v, take: take, rules: r} }

// Routes returns the operations of this surface, below {svs_url}/api.
func (a *API) Routes() []rest.Route {
	open := func(r rest.Route) rest.Route {
		if a.rules.Admit != nil {
			r = r.Guarded(a.rules.Admit)
		}
		return r.AtMost(a.rules.Limit)
	}
	return []rest.Route{
		open(rest.HandleDocuments("POST /signatures", "VerifySignature", rest.Anyone, a.take, a.signatures)),
		open(rest.HandleDocuments("POST /signatures/signersInfo", "GetSignersInfo", rest.Anyone, a.take, a.signersInfo)),
		open(rest.HandleDocuments("POST /signatures/signersinfo", "GetSignersInfo", rest.Anyone, a.take, a.signersInfo)),
		open(rest.HandleDocuments("POST /certificates", "VerifyCertificate", rest.Anyone, a.take, a.certificates)),
		open(rest.Handle("GET /policy", "GetVerificationPolicy", rest.Anyone, a.policy)),
	}
}

// InTurn verifies when it is the turn of the caller of the request in ctx. The body was read before: its
// documents are in the spool, so a waiting request holds little memory.
func (a *API) InTurn(ctx context.Context, judge func(context.Context) error) error {
	if a.rules.Turn != nil {
		done, err := a.rules.Turn(ctx, rest.Remote(ctx))
		if err != nil {
			return err
		}
		defer done()
	}
	if a.rules.Deadline <= 0 {
		return judge(ctx)
	}
	limited, cancel := context.WithTimeout(ctx, a.rules.Deadline)
	defer cancel()
	err := judge(limited)
	if err != nil && ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded) {
		return fault.Newf(fault.Unavailable, "the verification took longer than %s: try again later, or send a smaller document", a.rules.Deadline).Until(a.rules.Deadline).With(err)
	}
	return err
}

// Verify verifies when it is the turn of the caller of the request in ctx.
func (a *API) Verify(ctx context.Context, order *signing.VerifyOrder) (found []signing.SignatureReport, err error) {
	err = a.InTurn(ctx, func(ctx context.Context) error {
		found, err = a.verifier.Verify(ctx, order)
		return err
	})
	return found, err
}

type question struct {
	Body struct {
		SignatureType rest.Text
		Content       rest.Blob
		Source        rest.Blob
		Certificate   rest.Blob
		VerifyParams  map[string]rest.Text
		// Powers are powers of attorney and signatures of their principals, in any order; our addition.
		Powers []powerFile

		CertVerifiersPluginsIDs rest.Unread `json:"CertVerifiersPluginsIds"` // ignored: certificates are checked in one way
	}
}

// powerFile is a power of attorney, a signature of one, or an archive of both.
type powerFile struct {
	Name    rest.Text // for messages
	Content rest.Document
}

// schema maps the numbers of VerifyParams to names.
var schema = map[string]string{"0": "signatureid", "1": "signatureindex", "3": "hash"}

// params returns VerifyParams by their names in lower case.
func (q *question) params() (map[string]string, error) {
	params := make(map[string]string, len(q.Body.VerifyParams))
	for key, value := range q.Body.VerifyParams {
		name := strings.ToLower(strings.TrimSpace(key))
		if n, ok := schema[name]; ok {
			name = n
		}
		if _, twice := params[name]; twice {
			return nil, fault.Newf(fault.InvalidParameters, "VerifyParams: %.64q is given twice, in different spellings", key)
		}
		if params[name] = string(value); name != "pdfpassword" { // white space is part of a password
			params[name] = strings.TrimSpace(string(value))
		}
	}
	return params, nil
}

// yes reads a boolean as [rest.Truth] does; an empty text is false.
func yes(params map[string]string, name string) (bool, error) {
	value, ok := rest.Truth(params[name])
	if ok || params[name] == "" {
		return value, nil
	}
	return false, fault.Newf(fault.InvalidParameters, "VerifyParams: %s: want true or false", name)
}

func (q *question) order(docs *documents, params map[string]string) (*signing.VerifyOrder, error) {
	o := &signing.VerifyOrder{Type: string(q.Body.SignatureType), HashAlgorithm: params["hashalgorithm"], Password: params["pdfpassword"]}
	var err error
	if o.IsHash, err = yes(params, "hash"); err != nil {
		return nil, err
	}
	if o.Content, err = intake(docs, q.Body.Content); err != nil {
		return nil, err
	}
	if o.Original, err = intake(docs, q.Body.Source); err != nil {
		return nil, err
	}
	for i := range q.Body.Powers {
		f := &q.Body.Powers[i]
		one := signing.File{Name: string(f.Name)}
		if !f.Content.Empty() {
			if one.Content, err = docs.Open(f.Content); err != nil {
				return nil, err
			}
		}
		if one.Name == "" {
			one.Name = fmt.Sprintf("Powers[%d]", i)
		}
		o.Powers = append(o.Powers, one)
	}
	o.PowerCodes = signing.PowerCodes(params["powercodes"])
	text, err := q.Body.Certificate.Text()
	if err != nil {
		return nil, err
	}
	o.Certificate = []byte(text)
	return o, nil
}

// intake opens a document of the request; nil for an empty one.
func intake(docs *documents, b rest.Blob) (*signing.Intake, error) {
	if b.Empty() {
		return nil, nil
	}
	return docs.Open(b)
}

// verdict is the answer for one signer. Clients use Message and SignerCertificate without a
// check for null, so both are always text.
type verdict struct {
	Result                bool
	Message               string
	SignerCertificate     []byte // in JSON: Base64; never nil
	SignerCertificateInfo *certificateInfo
	SignatureInfo         *signatureInfo
}

type certificateInfo struct {
	SubjectName, IssuerName, NotBefore, NotAfter, SerialNumber, Thumbprint, KeyIdentifier string
}

type signatureInfo struct {
	Verdict          string // passed, failed or indeterminate; our addition
	Indication       string // the verdict in the words of EN 319 102-1, such as TOTAL-PASSED; our addition
	SubIndication    string // of EN 319 102-1, such as HASH_FAILURE; our addition, empty for a signature that passed
	CAdESType        string
	LocalSigningTime *string
	TimeStampTime    *string
	GoodUntil        *string // until when a signature that passed can be verified with what it holds; our addition
	Covers           string
	// ETSIReport is the validation report of ETSI TS 119 102-2 (XML) of all signatures, as Base64; our addition. It comes with the
	// first signature if VerifyParams has ETSIReport, otherwise it is absent.
	ETSIReport []byte `json:",omitempty"`
	// Quality says whether the signature is a qualified one; our addition. null without a list of accredited authorities.
	Quality *qualityInfo
	// Power is the power of attorney by which the signer acts; our addition. null without Powers in the request, and for signers that
	// none of them names.
	Power *powerInfo
}

// powerInfo is a power of attorney; see signing.Mandate. The last four are verdicts: passed, failed or indeterminate.
type powerInfo struct {
	Number                          string
	PassedOnFrom, Principals        []string
	Representative                  string
	ValidFrom, ValidUntil           string // days in Moscow
	Codes, Words                    []string
	Joint                           bool
	Power, Signer, Rights, Document string
}

func powerOf(m *signing.Mandate) *powerInfo {
	if m == nil {
		return nil
	}
	p := &powerInfo{
		Number: m.Number, PassedOnFrom: list(m.Chain), Principals: list(m.Principals), Representative: m.Representative, Codes: list(m.Codes), Words: list(m.Words), Joint: m.Joint,
		Power: m.Power.String(), Signer: m.Signer.String(), Rights: m.Rights.String(), Document: m.Document.String(),
	}
	p.ValidFrom, p.ValidUntil = m.Days()
	return p
}

// list returns a list that is [] in JSON, and not null, if it is empty.
func list(l []string) []string { return append([]string{}, l...) }

// qualityInfo is what the list of accredited authorities says; see signing.Quality.
type qualityInfo struct {
	Qualified                      bool
	Code, Text                     string
	Authority, INN, RegistryNumber string
	SignedAt                       *string
	Basis                          string // stamp, claim or check
	ListDate                       string
	ListOld                        bool
}

func qualityOf(q *signing.Quality) *qualityInfo {
	if q == nil {
		return nil
	}
	return &qualityInfo{q.Qualified, q.Code, q.Text, q.Authority, q.INN, q.Number, rest.TimeOrNull(q.At), q.Basis.String(), *rest.TimeOrNull(q.ListDate), q.Old}
}

func (a *API) signatures(ctx context.Context, docs *documents, q question) ([]verdict, error) {
	params, err := q.params()
	if err != nil {
		return nil, err
	}
	order, err := q.order(docs, params)
	if err != nil {
		return nil, err
	}
	// ExtractContent is refused, not ignored, because the client would wait for the
	// content. VerifyPKCS7 needs no code: a plain PKCS #7 message is verified like any
	// other.
	if asked, err := yes(params, "extractcontent"); err != nil {
		return nil, err
	} else if asked {
		return nil, fault.New(fault.InvalidParameters, "VerifyParams: ExtractContent is not served: the document is in what you sent")
	}
	every, err := yes(params, "verifyall")
	if err != nil {
		return nil, err
	}
	if order.Strict, err = yes(params, "strict"); err != nil {
		return nil, err
	}
	order.Expect = params["expectedpath"]
	if asked, err := yes(params, "etsireport"); err != nil {
		return nil, err
	} else if asked {
		order.ETSI = new(bytes.Buffer)
	}
	found, err := a.Verify(ctx, order)
	if err != nil {
		return nil, err
	}
	if found, err = chosen(found, params, every); err != nil {
		return nil, err
	}
	answers := make([]verdict, len(found))
	for i, v := range found {
		answers[i] = answer(v)
		var until *string
		if v.Until != nil {
			until = rest.TimeOrNull(v.Until.Time)
		}
		var etsi []byte
		if order.ETSI != nil && i == 0 {
			etsi = order.ETSI.Bytes()
		}
		answers[i].SignatureInfo = &signatureInfo{ETSIReport: etsi, GoodUntil: until, Verdict: v.Verdict, Indication: v.Main, SubIndication: v.Sub, CAdESType: v.Level, LocalSigningTime: rest.TimeOrNull(v.ClaimedTime), TimeStampTime: rest.TimeOrNull(v.StampedTime), Covers: v.Covers, Quality: qualityOf(v.Quality), Power: powerOf(v.Mandate)}
	}
	return answers, nil
}

// chosen returns the signature that the request names. It returns all of them if none is
// named or VerifyAll is set.
func chosen(found []signing.SignatureReport, params map[string]string, every bool) ([]signing.SignatureReport, error) {
	id := params["signatureid"]
	if id == "" {
		id = params["signatureindex"] // the id of a top-level signature is its index
	}
	if id == "" || every {
		return found, nil
	}
	i := slices.IndexFunc(found, func(v signing.SignatureReport) bool { return v.ID == id })
	if i < 0 {
		return nil, fault.Newf(fault.InvalidParameters, "there is no signature %.64q in the document: SignatureIndex counts from 0, SignatureId is as signersInfo gives it", id)
	}
	return found[i : i+1], nil
}

func answer(v signing.SignatureReport) verdict {
	r := verdict{Result: v.Passed(), Message: v.Message, SignerCertificate: []byte{}}
	if v.Signer != nil {
		r.SignerCertificate = v.Signer.DER
		r.SignerCertificateInfo = describe(v.Signer)
	}
	return r
}

func describe(c *signing.CertificateInfo) *certificateInfo {
	if c == nil {
		return nil
	}
	return &certificateInfo{
		SubjectName: c.Subject, IssuerName: c.Issuer,
		NotBefore: *rest.TimeOrNull(c.NotBefore), NotAfter: *rest.TimeOrNull(c.NotAfter),
		SerialNumber: c.Serial, Thumbprint: c.Thumbprint, KeyIdentifier: c.KeyID,
	}
}

type signer struct {
	ID                    string `json:"Id"`
	Index                 int
	ParentID              *string `json:"ParentId"`
	SignerCertificateInfo *certificateInfo
}

type signers struct{ SignerInfoList []signer }

func (a *API) signersInfo(ctx context.Context, docs *documents, q question) (signers, error) {
	params, err := q.params()
	if err != nil {
		return signers{}, err
	}
	order, err := q.order(docs, params)
	if err != nil {
		return signers{}, err
	}
	found, err := a.Verify(ctx, order)
	if err != nil {
		return signers{}, err
	}
	list := signers{SignerInfoList: []signer{}}
	for _, v := range found {
		if v.ID == "" {
			continue // there is no signer
		}
		s := signer{ID: v.ID, Index: v.Index, SignerCertificateInfo: describe(v.Signer)}
		if v.ParentID != "" {
			s.ParentID = &v.ParentID
		}
		list.SignerInfoList = append(list.SignerInfoList, s)
	}
	return list, nil
}

type certificateQuestion struct {
	Body struct {
		Content                 rest.Blob
		CertVerifiersPluginsIDs rest.Unread `json:"CertVerifiersPluginsIds"`
	}
}

func (a *API) certificates(ctx context.Context, docs *documents, q certificateQuestion) (verdict, error) {
	content, err := intake(docs, q.Body.Content)
	if err != nil {
		return verdict{}, err
	}
	var v signing.SignatureReport
	err = a.InTurn(ctx, func(ctx context.Context) error {
		v, err = a.verifier.JudgeCertificate(ctx, content)
		return err
	})
	if err != nil {
		return verdict{}, err
	}
	return answer(v), nil
}

type policyAnswer struct {
	SignatureTypes []string
	MaxRequestSize int64
}

func (a *API) policy(context.Context, struct{}) (policyAnswer, error) {
	return policyAnswer{SignatureTypes: a.rules.Types, MaxRequestSize: a.rules.Limit}, nil
}
