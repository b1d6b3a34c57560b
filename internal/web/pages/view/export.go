// SPDX-License-Identifier: Apache-2.0

package view

import (
	"archive/zip"
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"strings"

	"tamga/internal/web/rest"
)

// Inert keeps an untrusted text from being a formula in a spreadsheet.
func Inert(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}

// CSV returns a table as a file of texts with commas. It begins with a byte order mark, by which spreadsheets know UTF-8.
func CSV(name string, rows [][]string) (rest.File, error) {
	text := bytes.NewBufferString("\ufeff")
	table := csv.NewWriter(text)
	for _, row := range rows {
		values := make([]string, len(row))
		for i, v := range row {
			values[i] = Inert(v)
		}
		if err := table.Write(values); err != nil {
			return rest.File{}, err
		}
	}
	table.Flush()
	return rest.File{Content: bytes.NewReader(text.Bytes()), Name: name, Type: "text/csv; charset=utf-8"}, table.Error()
}

// The parts of a workbook with one sheet (ECMA-376), besides the sheet.
var workbook = [][2]string{
	{"[Content_Types].xml", `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/></Types>`},
	{"_rels/.rels", `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>`},
	{"xl/workbook.xml", `<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="1" sheetId="1" r:id="rId1"/></sheets></workbook>`},
	{"xl/_rels/workbook.xml.rels", `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.xml"/></Relationships>`},
}

// XLSX returns a table as a workbook with one sheet. Its cells are texts, so none is a formula.
func XLSX(name string, rows [][]string) (rest.File, error) {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	const head = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n"
	for _, part := range workbook {
		w, err := z.Create(part[0])
		if err == nil {
			_, err = w.Write([]byte(head + part[1]))
		}
		if err != nil {
			return rest.File{}, err
		}
	}
	w, err := z.Create("xl/worksheets/sheet1.xml")
	if err != nil {
		return rest.File{}, err
	}
	var sheet bytes.Buffer
	sheet.WriteString(head + `<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>`)
	for _, row := range rows {
		sheet.WriteString("<row>")
		for _, v := range row {
			sheet.WriteString(`<c t="inlineStr"><is><t xml:space="preserve">`)
			if err := xml.EscapeText(&sheet, []byte(v)); err != nil {
				return rest.File{}, err
			}
			sheet.WriteString("</t></is></c>")
		}
		sheet.WriteString("</row>")
	}
	sheet.WriteString("</sheetData></worksheet>")
	if _, err := w.Write(sheet.Bytes()); err != nil {
		return rest.File{}, err
	}
	err = z.Close()
	return rest.File{Content: bytes.NewReader(out.Bytes()), Name: name, Type: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"}, err
}
