// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"cmp"
	"context"
	"path"
	"strconv"
	"strings"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// downloadAll answers every signed document of an operation as one archive.
func (a *API) downloadAll(ctx context.Context, r struct {
	Operation string `query:"operation"`
}) (rest.File, error) {
	o, err := a.Operations.Find(ctx, rest.Caller(ctx), r.Operation)
	if err != nil {
		return rest.File{}, err
	}
	rest.Afterwards(ctx, o)
	w, who := view.VisitorOf(ctx).Words, rest.Caller(ctx)
	var files []view.Archived
	there := map[string]int{} // by identifier
	open := func(id, name string) error {
		f, err := a.Documents.Open(ctx, who, id)
		if err == nil {
			rest.Afterwards(ctx, f)
			there[id], files = len(files), append(files, view.Archived{Stored: f, Name: name, Of: -1})
		}
		return err
	}
	results := 0
	for _, d := range o.Documents {
		if _, is := there[d.RefID]; is || d.RefID == "" { // one container of several documents
			continue
		}
		if results++; results > view.MaxFiles { // each is open until the archive is sent
			return rest.File{}, fault.Newf(fault.TooLarge, "an archive has at most %d documents: download them one by one", view.MaxFiles)
		}
		if err := open(d.RefID, resultName(w, d.OriginalName, d.Name)); err != nil {
			return rest.File{}, err
		}
		if !isSignature(d.Name) {
			continue
		}
		at := len(files) - 1
		for _, id := range []string{d.Related, d.OriginalRef} { // of a signature that was signed once more, and of others
			if id == "" {
				continue
			}
			info, err := a.Documents.Info(ctx, who, id)
			if fault.Is(err, fault.NotFound) { // the signature is of use without it
				continue
			}
			if err != nil {
				return rest.File{}, err
			}
			if isSignature(info.Name) { // an earlier form of the result, or an attached signature
				continue
			}
			if _, is := there[id]; !is {
				err = open(id, info.Name)
			}
			if err != nil {
				return rest.File{}, err
			}
			files[at].Of = there[id]
			break
		}
	}
	if len(files) == 0 {
		return rest.File{}, fault.New(fault.NotFound, "the operation has no documents")
	}
	z, err := view.NewArchive(files, func(files []view.Archived) string { return readme(w, a.Address, files) })
	if err != nil {
		return rest.File{}, err
	}
	rest.Concerning(ctx, strconv.Itoa(len(files))+" documents")
	return rest.File{Content: z, Name: w.Text("signed.archive") + ".zip", Type: "application/zip"}, nil
}

// readme says what an archive has, and how to verify it without this service.
func readme(w *view.Words, address string, files []view.Archived) string {
	var b strings.Builder
	line := func(text string) { b.WriteString(text + "\r\n") }
	b.WriteString("\ufeff") // old editors read UTF-8 by it
	line(w.Text("readme.title"))
	line("")
	signature, document, pdf := "", "", ""
	originals := map[int]bool{}
	for _, f := range files {
		originals[f.Of] = true
	}
	for i, f := range files {
		name := notify.OneLine(f.Name)
		switch {
		case f.Of >= 0:
			signature, document = name, notify.OneLine(files[f.Of].Name)
			line("- " + name + " – " + w.Text("readme.beside", document))
		case originals[i]:
		case isSignature(f.Name):
			line("- " + name + " – " + w.Text("readme.alone"))
		default:
			line("- " + name + " – " + w.Text("readme.inside"))
			if strings.EqualFold(path.Ext(f.Name), ".pdf") {
				pdf = name
			}
		}
	}
	line("")
	line(w.Text("readme.outside"))
	line("")
	line("1. " + w.Text("readme.here", address+"/verify"))
	line("2. " + w.Text("readme.state"))
	line("3. " + w.Text("readme.cryptoarm"))
	line("4. " + w.Text("readme.kontur"))
	line("5. " + w.Text("readme.openssl"))
	line(`   openssl cms -verify -cades -binary -inform DER -in "` + cmp.Or(signature, "a.pdf.sig") + `" -content "` + cmp.Or(document, "a.pdf") + `" -CAfile ca.pem -out checked`)
	line("6. " + w.Text("readme.pdfsig"))
	line(`   pdfsig "` + cmp.Or(pdf, "a.pdf") + `"`)
	return b.String()
}
