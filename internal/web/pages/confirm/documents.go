// SPDX-License-Identifier: Apache-2.0

package confirm

import (
	"cmp"
	"context"
	_ "embed"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"tamga/internal/domain/fault"
	"tamga/internal/web/pages/pdfjs"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// toSee names a document of a record.
type toSee struct {
	ID       string `path:"id"`
	Index    string `path:"index"`
	Original string `query:"original"`
}

func (a *API) openToConfirm(ctx context.Context, r toSee) (ToSee, string, error) {
	who, err := confirming(ctx)
	if err != nil {
		return nil, "", err
	}
	_, c, err := a.toConfirm(ctx, who, r.ID)
	if err != nil {
		return nil, "", err
	}
	i, err := strconv.Atoi(r.Index)
	if err != nil || i < 0 || i >= len(c.Fields.Documents) {
		return nil, "", fault.New(fault.NotFound, "the operation has no document with this number")
	}
	d, err := a.ToConfirm.ConfirmedDocument(ctx, who, r.ID, i, r.Original != "")
	if err != nil {
		return nil, "", err
	}
	rest.Afterwards(ctx, d)
	return d, cmp.Or(c.Fields.Documents[i].Name, "document"), nil
}

// downloadToConfirm answers a document that waits. A browser saves it and never shows it.
func (a *API) downloadToConfirm(ctx context.Context, r toSee) (rest.File, error) {
	d, name, err := a.openToConfirm(ctx, r)
	return rest.File{Content: d, Name: name}, err
}

// pictures are the kinds of pictures that a page shows, by their first bytes.
var pictures = []struct{ magic, kind string }{
	{"\x89PNG\r\n\x1a\n", "image/png"}, {"\xff\xd8\xff", "image/jpeg"}, {"GIF87a", "image/gif"}, {"GIF89a", "image/gif"},
}

// showToConfirm answers a picture or a text that waits, as such: its kind follows from its
// bytes and never from its name, so a browser runs nothing in it. A PDF has a page of its own.
func (a *API) showToConfirm(ctx context.Context, r toSee) (any, error) {
	d, _, err := a.openToConfirm(ctx, r)
	if err != nil {
		return nil, err
	}
	is, err := isPDF(d)
	if err != nil {
		return nil, err
	}
	if is && r.Original == "" {
		return rest.Redirect{Location: "/confirm/" + r.ID + "/pdf/" + r.Index, See: true}, nil
	}
	kind, err := kindOf(d)
	if err == nil && kind == "" {
		err = fault.New(fault.InvalidContent, "only pictures, texts and PDF are shown here: download the document instead")
	}
	return rest.File{Content: d, Type: kind}, err
}

// maxPDF is the largest PDF that a browser is given to draw, in bytes.
const maxPDF = 64 << 20

func isPDF(d ToSee) (bool, error) {
	const magic = "%PDF-"
	if d.Size() < int64(len(magic)) || d.Size() > maxPDF {
		return false, nil
	}
	begin := make([]byte, len(magic))
	if _, err := d.ReadAt(begin, 0); err != nil && err != io.EOF {
		return false, err
	}
	return string(begin) == magic, nil
}

// pdfView is the page of a PDF that waits.
type pdfView struct {
	ID, Name       string
	Size           int64
	Document       string // address of the bytes
	Script, Worker string // addresses
}

//go:embed view.js
var viewScript string

// showPDFToConfirm shows a PDF that waits, page by page. The browser draws exactly the bytes
// that will be signed, by scripts of ours.
func (a *API) showPDFToConfirm(ctx context.Context, r struct {
	ID    string `path:"id"`
	Index string `path:"index"`
}) (view.View, error) {
	d, name, err := a.openToConfirm(ctx, toSee{ID: r.ID, Index: r.Index})
	if err != nil {
		return view.View{}, err
	}
	is, err := isPDF(d)
	if err == nil && !is {
		err = fault.New(fault.InvalidContent, "only pictures, texts and PDF are shown here: download the document instead")
	}
	if err != nil {
		return view.View{}, err
	}
	v := pdfView{ID: r.ID, Name: name, Size: d.Size(), Document: "/confirm/" + r.ID + "/documents/" + r.Index, Script: pdfjs.Main, Worker: pdfjs.Worker}
	return view.View{Template: "confirm/pdf", Title: "confirm.pdf", Script: viewScript, Modules: pdfjs.Modules(a.Address), Content: v}, nil
}

// kindOf returns the media type of a small picture or text, "" for anything else.
func kindOf(d ToSee) (string, error) {
	if d.Size() > maxShown || d.Size() == 0 {
		return "", nil
	}
	content := make([]byte, d.Size())
	if _, err := d.ReadAt(content, 0); err != nil && err != io.EOF {
		return "", err
	}
	for _, p := range pictures {
		if strings.HasPrefix(string(content), p.magic) {
			return p.kind, nil
		}
	}
	control := func(c byte) bool { return c < ' ' && c != '\n' && c != '\r' && c != '\t' || c == 0x7f }
	if !utf8.Valid(content) || slices.ContainsFunc(content, control) {
		return "", nil
	}
	return "text/plain; charset=utf-8", nil
}
