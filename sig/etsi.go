// SPDX-License-Identifier: Apache-2.0

package sig

import (
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"tamga/pki/x509gost"
)

// The names of ETSI TS 119 102-2 V1.4.1.
const (
	etsiNamespace  = "http://uri.etsi.org/19102/v1.4.1#"
	etsiMain       = "urn:etsi:019102:mainindication:"
	etsiSub        = "urn:etsi:019102:subindication:"
	etsiObject     = "urn:etsi:019102:validationObject:"
	etsiProof      = "urn:etsi:019102:poetype:validation"
	etsiProcess    = "urn:etsi:019102:validationprocess:LTA"
	etsiSHA256     = "http://www.w3.org/2001/04/xmlenc#sha256"
	etsiFindingURI = "urn:tamga:finding:" // of findings, which the standard has no names for
)

type etsiReport struct {
	XMLName    xml.Name        `xml:"ValidationReport"`
	Namespace  string          `xml:"xmlns,attr"`
	DS         string          `xml:"xmlns:ds,attr"`
	Signatures []etsiSignature `xml:"SignatureValidationReport"`
	Objects    *etsiObjects    `xml:"SignatureValidationObjects"`
}

type etsiObjects struct {
	List []etsiValidated `xml:"ValidationObject"`
}

type etsiSignature struct {
	Identifier *etsiIdentifier `xml:"SignatureIdentifier"`
	Times      *etsiTimes      `xml:"ValidationTimeInfo"`
	Attributes *etsiAttributes `xml:"SignatureAttributes"`
	Signer     *etsiSigner     `xml:"SignerInformation"`
	Process    *etsiID         `xml:"SignatureValidationProcess"`
	Status     etsiStatus      `xml:"SignatureValidationStatus"`
}

type etsiIdentifier struct {
	ID          string `xml:"id,attr"`
	HashOnly    bool
	DocHashOnly bool
	Number      string `xml:"DAIdentifier"`
}

type etsiID struct {
	ID string `xml:"SignatureValidationProcessID"`
}

type etsiTimes struct {
	Checked string  `xml:"ValidationTime"`
	Best    etsiPOE `xml:"BestSignatureTime"`
}

type etsiPOE struct {
	Time   string   `xml:"POETime"`
	Type   string   `xml:"TypeOfProof"`
	Object *etsiRef `xml:"POEObject"`
}

type etsiRef struct {
	To string `xml:"VOReference,attr"`
}

type etsiAttributes struct {
	SigningTime *etsiSigningTime `xml:"SigningTime"`
	Stamps      []any
}

type etsiSigningTime struct {
	Signed bool   `xml:"Signed,attr"`
	Time   string `xml:"Time"`
}

type etsiStamp struct {
	XMLName xml.Name
	Object  etsiRef `xml:"AttributeObject"`
	Time    string  `xml:"TimeStampValue"`
}

type etsiSigner struct {
	Certificate etsiRef `xml:"SignerCertificate"`
	Name        string  `xml:"Signer"`
}

type etsiStatus struct {
	Main string    `xml:"MainIndication"`
	Sub  []string  `xml:"SubIndication"`
	Data *etsiData `xml:"AssociatedValidationReportData"`
}

type etsiData struct {
	Anchor     *etsiRef        `xml:"TrustAnchor"`
	Chain      *etsiChain      `xml:"CertificateChain"`
	Revocation *etsiRevocation `xml:"RevocationStatusInformation"`
	Crypto     *etsiCrypto     `xml:"CryptoInformation"`
	More       *etsiMore       `xml:"AdditionalValidationReportData"`
}

type etsiChain struct {
	Signer  etsiRef   `xml:"SigningCertificate"`
	Between []etsiRef `xml:"IntermediateCertificate"`
	Anchor  *etsiRef  `xml:"TrustAnchor"`
}

type etsiRevocation struct {
	Certificate etsiRef `xml:"ValidationObjectId"`
	Time        string  `xml:"RevocationTime"`
}

type etsiCrypto struct {
	Of        etsiRef `xml:"ValidationObjectId"`
	Algorithm string
	Secure    bool   `xml:"SecureAlgorithm"`
	NotAfter  string `xml:"NotAfter,omitempty"`
}

type etsiMore struct {
	Data []etsiTyped `xml:"ReportData"`
}

type etsiTyped struct {
	Type  string
	Value string
}

type etsiValidated struct {
	ID     string             `xml:"id,attr"`
	Type   string             `xml:"ObjectType"`
	Is     etsiRepresentation `xml:"ValidationObjectRepresentation"`
	POE    *etsiPOE           `xml:"POE"`
	Report *etsiSignature     `xml:"ValidationReport"`
}

type etsiRepresentation struct {
	Direct string      `xml:"direct,omitempty"`
	Base64 string      `xml:"base64,omitempty"`
	Digest *etsiDigest `xml:"DigestAlgAndValue"`
}

type etsiDigest struct {
	Method struct {
		Algorithm string `xml:"Algorithm,attr"`
	} `xml:"ds:DigestMethod"`
	Value string `xml:"ds:DigestValue"`
}

// etsiWriter makes the report of one file.
type etsiWriter struct {
	check  *Check
	report *Report
	out    etsiReport
	certs  map[string]string // identifiers by DER
	stamps int
	known  map[string]etsiRef // time stamps by kind and digest
}

// WriteETSI writes the report as the XML of ETSI TS 119 102-2 V1.4.1. c is the check that it is the result of. Countersignatures
// follow the signature that they sign, with numbers such as 1.1. Findings are additional data with our names.
func (r *Report) WriteETSI(to io.Writer, c *Check) error {
	w := &etsiWriter{check: c, report: r, certs: map[string]string{}}
	w.out = etsiReport{Namespace: etsiNamespace, DS: "http://www.w3.org/2000/09/xmldsig#", Objects: &etsiObjects{}}
	for i := range r.Signatures {
		w.signature(&r.Signatures[i], strconv.Itoa(i+1))
	}
	if len(r.Signatures) == 0 {
		w.out.Signatures = append(w.out.Signatures, etsiSignature{Status: w.status(r.Conclusion(), nil, r.Findings)})
	}
	if len(w.out.Objects.List) == 0 {
		w.out.Objects = nil
	}
	if _, err := io.WriteString(to, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(to)
	e.Indent("", "  ")
	if err := e.Encode(w.out); err != nil {
		return err
	}
	_, err := io.WriteString(to, "\n")
	return err
}

func etsiTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func (w *etsiWriter) object(o etsiValidated, prefix string, n int) string {
	o.ID = prefix + strconv.Itoa(n)
	w.out.Objects.List = append(w.out.Objects.List, o)
	return o.ID
}

// certificate returns the reference to a certificate, which is an object of the report once.
func (w *etsiWriter) certificate(c *x509gost.Certificate) etsiRef {
	id, known := w.certs[string(c.Raw)]
	if !known {
		id = w.object(etsiValidated{Type: etsiObject + "certificate", Is: etsiRepresentation{Base64: base64.StdEncoding.EncodeToString(c.Raw)}}, "C", len(w.certs)+1)
		w.certs[string(c.Raw)] = id
	}
	return etsiRef{id}
}

// stamp returns the reference to a time stamp with its own status.
func (w *etsiWriter) stamp(ts *TimeStamp) etsiRef {
	key := ts.Kind + string(ts.Digest) // the signatures of a PDF share time stamps
	if ref, known := w.known[key]; known && ts.Digest != nil {
		return ref
	}
	o := etsiValidated{Type: etsiObject + "timestamp"}
	if ts.Digest == nil {
		o.Is.Direct = fmt.Sprintf("a time stamp (%s) that cannot be read", ts.Kind)
	} else {
		o.Is.Digest = &etsiDigest{Value: base64.StdEncoding.EncodeToString(ts.Digest)}
		o.Is.Digest.Method.Algorithm = etsiSHA256
	}
	if ts.Passed() {
		o.POE = &etsiPOE{Time: etsiTime(ts.Time), Type: etsiProof}
	}
	o.Report = &etsiSignature{Process: &etsiID{etsiProcess}, Status: w.status(ts.Conclusion(), ts.Chain, ts.Findings)}
	if ts.Signer != nil {
		o.Report.Signer = &etsiSigner{Certificate: w.certificate(ts.Signer), Name: ts.Signer.Subject.String()}
	}
	w.stamps++
	ref := etsiRef{w.object(o, "T", w.stamps)}
	if w.known == nil {
		w.known = map[string]etsiRef{}
	}
	w.known[key] = ref
	return ref
}

// attributes are the names of time stamps in SignatureAttributes, by their kind.
var etsiAttributeNames = map[string]string{
	"signature": "SignatureTimeStamp", "CAdES-C": "SigAndRefsTimeStamp", "references": "RefsOnlyTimeStamp", "archive": "ArchiveTimeStamp", "document": "DocTimeStamp",
}

// signature adds a signature and its countersignatures.
func (w *etsiWriter) signature(s *Signature, number string) {
	one := etsiSignature{
		Identifier: &etsiIdentifier{ID: "S" + strconv.Itoa(len(w.out.Signatures)+1), DocHashOnly: w.check.Hash != nil, Number: number},
		Times:      &etsiTimes{Checked: etsiTime(w.check.At), Best: etsiPOE{Time: etsiTime(w.check.At), Type: etsiProof}},
		Process:    &etsiID{etsiProcess},
		Status:     w.status(w.report.ConclusionOf(s), s.Chain, slices.Concat(s.Findings, w.report.Findings)),
	}
	attributes := &etsiAttributes{}
	if !s.SigningTime.IsZero() {
		attributes.SigningTime = &etsiSigningTime{Signed: true, Time: etsiTime(s.SigningTime)}
	}
	first := w.check.At
	stamps := slices.Concat(s.TimeStamps, s.Proofs)
	for i := range stamps {
		ts := &stamps[i]
		ref := w.stamp(ts)
		if ts.Proves() && ts.Time.Before(first) {
			first = ts.Time
			one.Times.Best = etsiPOE{Time: etsiTime(first), Type: etsiProof, Object: &ref}
		}
		if name := etsiAttributeNames[ts.Kind]; i < len(s.TimeStamps) && !ts.Time.IsZero() && name != "" {
			attributes.Stamps = append(attributes.Stamps, etsiStamp{XMLName: xml.Name{Local: name}, Object: ref, Time: etsiTime(ts.Time)})
		}
	}
	if attributes.SigningTime != nil || attributes.Stamps != nil {
		one.Attributes = attributes
	}
	if s.Signer != nil {
		one.Signer = &etsiSigner{Certificate: w.certificate(s.Signer), Name: s.Signer.Subject.String()}
		if s.Scheme != nil {
			w.crypto(&one.Status, s)
		}
	}
	w.out.Signatures = append(w.out.Signatures, one)
	for i := range s.Countersigners {
		w.signature(&s.Countersigners[i], number+"."+strconv.Itoa(i+1))
	}
}

// crypto adds what is known about the algorithm of a signature.
func (w *etsiWriter) crypto(to *etsiStatus, s *Signature) {
	algorithm := "urn:oid:" + s.Scheme.OID.String()
	if len(s.Scheme.XML) > 0 {
		algorithm = s.Scheme.XML[0]
	}
	weak := w.check.Ends.Scheme(s.Scheme)
	c := &etsiCrypto{Of: w.certificate(s.Signer), Algorithm: algorithm, Secure: !weak.At(s.BestTime)}
	if !weak.Since.IsZero() {
		c.NotAfter = etsiTime(weak.Since)
	}
	if to.Data == nil {
		to.Data = &etsiData{}
	}
	to.Data.Crypto = c
}

// status returns a status with what led to it.
func (w *etsiWriter) status(c Conclusion, chain []*x509gost.Certificate, findings []Finding) etsiStatus {
	main := [...]string{Passed: "total-passed", Indeterminate: "indeterminate", Failed: "total-failed"}[c.Verdict]
	out := etsiStatus{Main: etsiMain + main}
	if c.Sub != "" {
		out.Sub = []string{etsiSub + string(c.Sub)}
	}
	data := &etsiData{}
	if len(chain) > 0 {
		refs := make([]etsiRef, len(chain))
		for i, one := range chain {
			refs[i] = w.certificate(one)
		}
		last := &refs[len(refs)-1]
		data.Anchor, data.Chain = last, &etsiChain{Signer: refs[0], Anchor: last}
		if len(refs) > 2 {
			data.Chain.Between = refs[1 : len(refs)-1]
		}
	}
	for _, f := range findings {
		if f.Certificate != nil && !f.When.IsZero() && data.Revocation == nil {
			data.Revocation = &etsiRevocation{w.certificate(f.Certificate), etsiTime(f.When)}
		}
		if data.More == nil {
			data.More = &etsiMore{}
		}
		data.More.Data = append(data.More.Data, etsiTyped{etsiFindingURI + f.Code, f.Text})
	}
	if data.Chain != nil || data.Revocation != nil || data.More != nil {
		out.Data = data
	}
	return out
}
