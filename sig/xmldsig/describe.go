// SPDX-License-Identifier: Apache-2.0

package xmldsig

import (
	"bytes"
	"unicode"

	"tamga/sig"
)

// Describe implements sig.Describer.
func (*Format) Describe() sig.Description { return description }

var description = sig.Description{
	Types: []sig.Type{{Name: "XMLDSig", Number: "0", Usual: sig.Params{"XMLDsigType": kindEnveloped}}},
	Kind:  "xml", Noun: "XML document", Expected: "XML",
	Params: []sig.Param{{Name: "XAdESType", Choices: xadesTypes}},
	Forms: []sig.Form{{Name: "xml", Noun: "XML with its signature inside", Type: "XMLDSig", Extensions: []string{"xml"}, Params: map[sig.Level]sig.Params{
		sig.LevelBasic: {"XMLDsigType": kindEnveloped}, sig.LevelTime: {"XMLDsigType": kindEnveloped, "XAdESType": xadesT},
		sig.LevelLongTerm: {"XMLDsigType": kindEnveloped, "XAdESType": xadesLT}, sig.LevelArchive: {"XMLDsigType": kindEnveloped, "XAdESType": xadesLTA},
	}}},
	Recognises: func(head []byte, _ int64) bool { return LooksLikeXML(head) && !isBare(head) },
}

// isBare reports whether bytes that look like the beginning of XML are a bare signature
// that looks so by chance. XML begins with sixteen visible characters or white space, in
// UTF-16 too.
func isBare(head []byte) bool {
	text := bytes.ReplaceAll(bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n"), []byte{0}, nil)
	text = bytes.TrimPrefix(bytes.TrimPrefix(text, []byte("\xff\xfe")), []byte("\xfe\xff"))
	return len(text) < 16 || bytes.ContainsFunc(text[:16], func(r rune) bool { return !unicode.IsGraphic(r) && !unicode.IsSpace(r) })
}
