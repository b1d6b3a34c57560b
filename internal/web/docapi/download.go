// SPDX-License-Identifier: Apache-2.0

package docapi

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/document"
	"tamga/internal/domain/fault"
	"tamga/internal/web/rest"
)

// download answers several documents as parts, in the order of the request. A missing
// document is a part with an error.
func (a *API) download(ctx context.Context, r idsRequest) (rest.File, error) {
	concerning(ctx, r.Body.DocumentIDs)
	list, err := a.store.Infos(ctx, rest.Caller(ctx), r.Body.DocumentIDs)
	if err != nil {
		return rest.File{}, err
	}
	d := &downloads{ctx: ctx, who: rest.Caller(ctx), store: a.store, found: list, boundary: rand.Text()}
	if d.missing, err = json.Marshal(rest.Failure{
		Message: fault.NotFound, Error: fault.NotFound, Description: "there is no such document",
	}); err != nil {
		return rest.File{}, err
	}
	for i := range list {
		d.size += int64(len(d.head(i))) + d.length(i)
	}
	d.size += int64(len(d.tail()))
	// The boundary is quoted, because a client cuts off one character on both sides.
	return rest.File{Content: d, Type: `multipart/byteranges; boundary="` + d.boundary + `"`}, nil
}

// selectedAtOnce is how many documents are found by one statement. The contents of small ones are in memory
// then.
const selectedAtOnce = 100

// downloads is a body of several documents. Each is opened when its turn to be written
// comes, because open documents take resources.
type downloads struct {
	ctx      context.Context
	who      audit.Principal
	store    Store
	found    []document.Found
	boundary string // 26 random characters, unknown when the documents were uploaded
	missing  []byte
	size     int64
}

// head returns the bytes before the content of a part. A client takes the text after the
// last "name=" up to the end of the line as the identifier. So nothing follows it and it
// has no quotes. Identifiers are known to be GUIDs here.
func (d *downloads) head(i int) string {
	kind, between := "application/octet-stream", "\r\n"
	if d.found[i].Record == nil {
		kind = "application/json"
	}
	if i == 0 {
		between = ""
	}
	return between + "--" + d.boundary + "\r\nContent-Type: " + kind + "\r\nContent-Disposition: form-data; name=" + d.found[i].ID + "\r\n\r\n"
}

func (d *downloads) tail() string { return "\r\n--" + d.boundary + "--\r\n" }

func (d *downloads) length(i int) int64 {
	if r := d.found[i].Record; r != nil {
		return r.Size
	}
	return int64(len(d.missing))
}

// Size implements [rest.Content].
func (d *downloads) Size() int64 { return d.size }

// WriteTo implements io.WriterTo. A document that is deleted meanwhile breaks off the
// answer, because its length was already announced.
func (d *downloads) WriteTo(w io.Writer) (n int64, err error) {
	var selected *document.Selection
	for i := range d.found {
		if i%selectedAtOnce == 0 {
			if selected, err = d.selection(d.found[i:min(i+selectedAtOnce, len(d.found))]); err != nil {
				return n, err
			}
		}
		m, err := io.WriteString(w, d.head(i))
		n += int64(m)
		if err != nil {
			return n, err
		}
		more, err := d.part(w, i, selected)
		n += more
		if err != nil {
			return n, err
		}
	}
	m, err := io.WriteString(w, d.tail())
	return n + int64(m), err
}

func (d *downloads) selection(found []document.Found) (*document.Selection, error) {
	ids := make([]string, len(found))
	for i, f := range found {
		ids[i] = f.ID
	}
	return d.store.Find(d.ctx, d.who, ids)
}

func (d *downloads) part(w io.Writer, i int, selected *document.Selection) (int64, error) {
	if d.found[i].Record == nil {
		n, err := w.Write(d.missing)
		return int64(n), err
	}
	stored, err := selected.Open(d.ctx, d.found[i].ID)
	if err != nil {
		return 0, fmt.Errorf("docapi: a document of several: %w", err)
	}
	defer stored.Close()
	return stored.WriteTo(w)
}
