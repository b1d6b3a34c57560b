// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"archive/zip"
	"context"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"tamga/internal/domain/document"
	"tamga/internal/domain/fault"
	"tamga/internal/web/rest"
)

// maxArchive bounds the bytes of one archive: below 4 GiB its form is that of every program,
// and its length is known before it is written.
const maxArchive = 4<<30 - 64<<20

// archive is a ZIP file of stored documents, written while it is sent. Signed documents
// hardly shrink, so they are stored as they are.
type archive struct {
	names []string
	files []*document.Stored
	size  int64
}

func newArchive(files []*document.Stored) (*archive, error) {
	a := &archive{files: files}
	taken := map[string]bool{}
	var total int64
	for _, f := range files {
		name := freeName(f.Name, taken)
		taken[strings.ToLower(name)] = true
		a.names = append(a.names, name)
		total += f.Size()
	}
	if total > maxArchive {
		return nil, fault.New(fault.TooLarge, "the documents are too large for one archive: download them one by one")
	}
	// An archive of empty files has all the bytes but those of the contents.
	var empty counter
	if err := a.write(&empty, func(io.Writer, *document.Stored) error { return nil }); err != nil {
		return nil, err
	}
	a.size = int64(empty) + total
	return a, nil
}

// maxEntry is the longest name of a file that common systems save, in bytes.
const maxEntry = 255

// freeName returns a name for a file of an archive that is not taken yet, in any letter case.
func freeName(name string, taken map[string]bool) string {
	name = rest.FileName(name)
	free := numbered(name, "")
	for n := 2; taken[strings.ToLower(free)]; n++ {
		free = numbered(name, " ("+strconv.Itoa(n)+")")
	}
	return free
}

// numbered returns a name with a number before its ending. A name that is too long loses the end
// of what is before the number.
func numbered(name, number string) string {
	ending := path.Ext(name)
	if len(ending) > maxEntry/2 {
		ending = ""
	}
	stem := strings.TrimSuffix(name, ending)
	if room := maxEntry - len(number) - len(ending); len(stem) > room {
		stem = strings.TrimRight(strings.ToValidUTF8(stem[:room], ""), ". ")
	}
	return stem + number + ending
}

// Size implements rest.Content.
func (a *archive) Size() int64 { return a.size }

// WriteTo implements io.WriterTo.
func (a *archive) WriteTo(w io.Writer) (int64, error) {
	var n counter
	err := a.write(io.MultiWriter(w, &n), func(to io.Writer, f *document.Stored) error {
		_, err := f.WriteTo(to)
		return err
	})
	return int64(n), err
}

func (a *archive) write(w io.Writer, content func(io.Writer, *document.Stored) error) error {
	z := zip.NewWriter(w)
	for i, f := range a.files {
		to, err := z.CreateHeader(&zip.FileHeader{Name: a.names[i], Method: zip.Store, Modified: f.Uploaded})
		if err != nil {
			return fmt.Errorf("pages: writing an archive: %w", err)
		}
		if err := content(to, f); err != nil {
			return err
		}
	}
	return z.Close()
}

// counter counts the bytes that are written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// downloadAll answers every signed document of an operation as one archive.
func (a *API) downloadAll(ctx context.Context, r struct {
	Operation string `query:"operation"`
}) (rest.File, error) {
	o, err := a.Operations.Find(ctx, rest.Caller(ctx), r.Operation)
	if err != nil {
		return rest.File{}, err
	}
	rest.Afterwards(ctx, o)
	var files []*document.Stored
	for _, d := range o.Documents {
		if d.RefID == "" {
			continue
		}
		if len(files) == MaxFiles { // each is open until the archive is sent
			return rest.File{}, fault.Newf(fault.TooLarge, "an archive has at most %d documents: download them one by one", MaxFiles)
		}
		f, err := a.Documents.Open(ctx, rest.Caller(ctx), d.RefID)
		if err != nil {
			return rest.File{}, err
		}
		rest.Afterwards(ctx, f)
		files = append(files, f)
	}
	if len(files) == 0 {
		return rest.File{}, fault.New(fault.NotFound, "the operation has no signed documents")
	}
	z, err := newArchive(files)
	if err != nil {
		return rest.File{}, err
	}
	rest.Concerning(ctx, strconv.Itoa(len(files))+" documents")
	return rest.File{Content: z, Name: "signed.zip", Type: "application/zip"}, nil
}
