// SPDX-License-Identifier: Apache-2.0

package print

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"encoding/xml"
	"fmt"
	"html/template"
	"io"
	"strings"
)

//go:embed templates/form.html
var formHTML string

var htmlPage = template.Must(template.New("form").Parse(formHTML))

// renderHTML makes a page without scripts and without references to other files.
func renderHTML(p *page) ([]byte, error) {
	var out bytes.Buffer
	if err := htmlPage.Execute(&out, p); err != nil {
		return nil, fmt.Errorf("print: html: %w", err)
	}
	return out.Bytes(), nil
}

// xmlForm is the XML form, for programs.
type xmlForm struct {
	XMLName xml.Name   `xml:"urn:tamga:password-form:1 passwordForm"`
	Lang    string     `xml:"http://www.w3.org/XML/1998/namespace lang,attr"`
	Title   string     `xml:"title"`
	Texts   []string   `xml:"text"`
	Fields  []xmlField `xml:"field"`
}

type xmlField struct {
	Name   string `xml:"name,attr"`
	Label  string `xml:"label,attr"`
	Secret bool   `xml:"secret,attr,omitempty"`
	Value  string `xml:",chardata"`
}

func renderXML(p *page) ([]byte, error) {
	form := xmlForm{Lang: p.Language, Title: p.Title}
	for _, b := range p.Blocks {
		switch b.Kind {
		case "text":
			form.Texts = append(form.Texts, b.Text)
		case "field", "secret":
			form.Fields = append(form.Fields, xmlField{b.Name, b.Label, b.Kind == "secret", b.Text})
		}
	}
	text, err := xml.MarshalIndent(form, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("print: xml: %w", err)
	}
	return append(append([]byte(xml.Header), text...), '\n'), nil
}

// The constant parts of a Word document (ECMA-376, part 2).
const (
	wordTypes = xml.Header + `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>`
	wordRels  = xml.Header + `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>`
	wordHead  = xml.Header + `<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>`
	wordFoot  = `<w:sectPr><w:pgSz w:w="11906" w:h="16838"/><w:pgMar w:top="1134" w:right="1134" w:bottom="1134" w:left="1134" w:header="0" w:footer="0" w:gutter="0"/></w:sectPr></w:body></w:document>`
)

// Properties of paragraphs and of text runs (ECMA-376, part 1, 17.3). Sizes are in half points.
const (
	wordGap    = `<w:pPr><w:spacing w:after="200"/></w:pPr>`
	wordFont   = `<w:rFonts w:ascii="Arial" w:hAnsi="Arial" w:cs="Arial"/>`
	wordTitle  = `<w:rPr>` + wordFont + `<w:b/><w:sz w:val="36"/></w:rPr>`
	wordText   = `<w:rPr>` + wordFont + `<w:sz w:val="22"/></w:rPr>`
	wordLabel  = `<w:rPr>` + wordFont + `<w:color w:val="555555"/><w:sz w:val="20"/></w:rPr>`
	wordField  = `<w:rPr>` + wordFont + `<w:sz w:val="26"/></w:rPr>`
	wordSecret = `<w:rPr><w:rFonts w:ascii="Courier New" w:hAnsi="Courier New" w:cs="Courier New"/><w:b/><w:noProof/><w:sz w:val="32"/></w:rPr>`
)

func renderWord(p *page) ([]byte, error) {
	var body strings.Builder
	run := func(properties, text string) {
		body.WriteString("<w:r>" + properties + `<w:t xml:space="preserve">`)
		xml.EscapeText(&body, []byte(text)) // a Builder never returns an error
		body.WriteString("</w:t></w:r>")
	}
	body.WriteString(wordHead)
	for _, b := range p.Blocks {
		body.WriteString("<w:p>" + wordGap)
		switch b.Kind {
		case "title":
			run(wordTitle, b.Text)
		case "text":
			run(wordText, b.Text)
		case "field", "secret":
			run(wordLabel, b.Label)
			body.WriteString("<w:r><w:br/></w:r>")
			run(map[string]string{"field": wordField, "secret": wordSecret}[b.Kind], b.Text)
		}
		body.WriteString("</w:p>")
	}
	body.WriteString(wordFoot)
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, part := range []struct{ name, text string }{
		{"[Content_Types].xml", wordTypes}, {"_rels/.rels", wordRels}, {"word/document.xml", body.String()},
	} {
		w, err := archive.Create(part.name)
		if err == nil {
			_, err = io.WriteString(w, part.text)
		}
		if err != nil {
			return nil, fmt.Errorf("print: word: %w", err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("print: word: %w", err)
	}
	return out.Bytes(), nil
}
