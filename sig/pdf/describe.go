// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"tamga/sig"
	"tamga/sig/pdf/stamp"
)

// maxAppearance is the maximum size of PdfSignatureAppearance, in bytes. It contains
// images.
const maxAppearance = 12 << 20

// Describe implements sig.Describer.
func (*Format) Describe() sig.Description { return description }

var description = sig.Description{
	Types: []sig.Type{{Name: "PDF", Number: "3", Usual: sig.Params{"PDFFormat": formatCMS}}},
	Kind:  "pdf", Noun: "PDF document", Expected: "PDF",
	Params: []sig.Param{
		{Name: "PDFFormat", Choices: formats},
		{Name: ParamPassword, Secret: true},
		{Name: "PdfSignatureAppearance", Long: maxAppearance},
	},
	Forms: []sig.Form{{Name: "pdf", Noun: "PDF with its signature inside", Type: "PDF", Extensions: []string{"pdf"}, Marks: stamp.Forms(), Params: map[sig.Level]sig.Params{
		sig.LevelBasic: {"PDFFormat": formatCMS}, sig.LevelTime: {"PDFFormat": formatCAdEST}, sig.LevelLongTerm: {"PDFFormat": formatCAdES},
		sig.LevelArchive: {"PDFFormat": formatCAdESA},
	}}},
	Recognises: func(head []byte, _ int64) bool { return LooksLikePDF(head) },
}
