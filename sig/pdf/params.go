// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"tamga/sig"
)

// Formats and certification levels, by their names in the interface.
const (
	formatCMS    = "CMS"
	formatCAdEST = "CAdEST"
	formatCAdES  = "CAdES"
	formatCAdESA = "CAdESA"

	notCertified = "NOT_CERTIFIED"
)

// The enumerations of the interface with all their values. The index of a certification
// level is P of the DocMDP transform.
var (
	formats             = []sig.Choice{{Name: formatCAdEST, Number: "0", Level: sig.LevelTime}, {Name: formatCAdES, Number: "1", Level: sig.LevelLongTerm}, {Name: formatCMS, Number: "2"}, {Name: formatCAdESA, Number: "3", Level: sig.LevelArchive}}
	certificationLevels = []sig.Choice{
		{Name: notCertified, Number: "0"},
		{Name: "CERTIFIED_NO_CHANGES_ALLOWED", Number: "1"},
		{Name: "CERTIFIED_FORM_FILLING", Number: "2"},
		{Name: "CERTIFIED_FORM_FILLING_AND_ANNOTATIONS", Number: "3"},
	}
)

// levelOf returns the level of a PDFFormat.
func levelOf(format string) (l sig.Level, ok bool) {
	i := slices.IndexFunc(formats, func(c sig.Choice) bool { return c.Name == format })
	if i < 0 {
		return l, false
	}
	return formats[i].Level, true
}

// ParamPassword is the parameter with the password of an encrypted document. It is a
// secret: callers must not write it to logs or store it between the steps.
const ParamPassword = "PDFPassword"

// maxText is the maximum length of a reason, a location or the name of a field, in bytes.
const maxText = 4096

// params are the values of the parameters.
type params struct {
	format        string    // PDFFormat
	level         sig.Level // of that format
	address       string    // TSPAddress
	chain         bool      // IncludeCertChain
	reason        string    // PDFReason
	location      string    // PDFLocation
	field         string    // PDFSignatureField, empty for the first unsigned field or a new one
	certification int       // PDFCertificationLevel, 0 for none
	template      int       // PdfSignatureTemplateId
	appearance    []byte    // PdfSignatureAppearance
	password      []byte    // PDFPassword
	logo          string    // Logo of the format
}

// Read implements sig.Format.
func (f *Format) Read(given sig.Params) *sig.Request {
	q := given.Request()
	r := q.Reader()
	format := r.Choice("PDFFormat", formats, "")
	p := params{
		format:   format.Name,
		level:    format.Level,
		chain:    r.Bool("IncludeCertChain", true),
		reason:   readText(r, "PDFReason"),
		location: readText(r, "PDFLocation"),
		field:    readText(r, "PDFSignatureField"),
		password: password(given),
	}
	if !r.Given("PDFFormat") {
		r.Fault("PDFFormat", "is missing; CMS, CAdEST, CAdES or CAdESA expected")
	}
	level := r.Enum("PDFCertificationLevel", certificationLevels, notCertified)
	for i, c := range certificationLevels {
		if c.Name == level {
			p.certification = i
		}
	}
	if v := r.String("PdfSignatureTemplateId"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 || n > 3 {
			r.Fault("PdfSignatureTemplateId", "1 (text), 2 (logo and text) or 3 (image) expected")
		}
		p.template = n
	}
	if v := r.String("PdfSignatureAppearance"); v != "" {
		b, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(v), ""))
		if err != nil {
			r.Fault("PdfSignatureAppearance", "is not Base64 of a JSON object")
		}
		p.appearance = b
	}
	if q.OverHash {
		r.Fault("Hash", "is True, but a signature in PDF is made over a document, never over its hash value; False expected")
	}
	q.Level, q.Own = p.level, p
	return q
}

func readText(r *sig.ParamReader, key string) string {
	s := r.String(key)
	switch {
	case len(s) > maxText:
		r.Fault(key, fmt.Sprintf("has %d bytes; at most %d expected", len(s), maxText))
	case !utf8.ValidString(s):
		r.Fault(key, "is not UTF-8")
	}
	return s
}

// password returns PDFPassword unchanged: white space around it counts.
func password(p sig.Params) []byte {
	for key, value := range p {
		if strings.EqualFold(strings.TrimSpace(key), ParamPassword) {
			return []byte(value)
		}
	}
	return nil
}
