// SPDX-License-Identifier: Apache-2.0

package view

import (
	"archive/zip"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"tamga/internal/domain/document"
	"tamga/internal/domain/encryption"
	"tamga/internal/domain/fault"
	"tamga/internal/web/rest"
)

// maxArchive bounds the bytes of one archive: below 4 GiB its form is that of every program,
// and its length is known before it is written.
const maxArchive = 4<<30 - 64<<20

// Archive is a ZIP file of stored documents, written while it is sent. Signed documents
// hardly shrink, so they are stored as they are.
type Archive struct {
	files  []Archived
	readme string
	size   int64
}

// Archived is a file of an archive.
type Archived struct {
	*document.Stored
	Name string // in the archive
	Of   int    // index of the document of a detached signature; -1: it is in the file, or not here
}

// readmeName is the name of the file that says how to verify the others.
const readmeName = "README.txt"

// NewArchive returns the archive of one or more documents, which must stay open until it is sent. Names that are equal
// in any letter case get numbers. readme, if not nil, returns what the archive says about its files. The fault is
// max_request_length_exceeded.
func NewArchive(files []Archived, readme func([]Archived) string) (*Archive, error) {
	a := &Archive{files: files}
	taken := map[string]bool{}
	if readme != nil {
		taken[strings.ToLower(readmeName)] = true
	}
	var total int64
	for i := range files {
		f := &files[i]
		f.Name = FreeName(f.Name, taken)
		taken[strings.ToLower(f.Name)] = true
		total += f.Size()
	}
	if total > maxArchive {
		return nil, fault.New(fault.TooLarge, "the documents are too large for one archive: download them one by one")
	}
	if readme != nil {
		a.readme = readme(files)
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

// FreeName returns a name for a file of an archive that is not taken yet, in any letter case.
func FreeName(name string, taken map[string]bool) string {
	name = rest.FileName(name)
	free := Numbered(name, "")
	for n := 2; taken[strings.ToLower(free)]; n++ {
		free = Numbered(name, " ("+strconv.Itoa(n)+")")
	}
	return free
}

// Numbered returns a name with a number before its ending. A name that is too long loses the end
// of what is before the number.
func Numbered(name, number string) string {
	ending := path.Ext(name)
	if slices.Contains(encryption.Endings, strings.ToLower(ending)) { // the document inside keeps its ending, too
		ending = path.Ext(strings.TrimSuffix(name, ending)) + ending
	}
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
func (a *Archive) Size() int64 { return a.size }

// WriteTo implements io.WriterTo.
func (a *Archive) WriteTo(w io.Writer) (int64, error) {
	var n counter
	err := a.write(io.MultiWriter(w, &n), func(to io.Writer, f *document.Stored) error {
		_, err := f.WriteTo(to)
		return err
	})
	return int64(n), err
}

func (a *Archive) write(w io.Writer, content func(io.Writer, *document.Stored) error) error {
	z := zip.NewWriter(w)
	for _, f := range a.files {
		to, err := z.CreateHeader(&zip.FileHeader{Name: f.Name, Method: zip.Store, Modified: f.Uploaded})
		if err != nil {
			return fmt.Errorf("pages: writing an archive: %w", err)
		}
		if err := content(to, f.Stored); err != nil {
			return err
		}
	}
	if a.readme != "" {
		to, err := z.CreateHeader(&zip.FileHeader{Name: readmeName, Method: zip.Store, Modified: a.files[0].Uploaded})
		if err == nil {
			_, err = io.WriteString(to, a.readme)
		}
		if err != nil {
			return fmt.Errorf("pages: writing an archive: %w", err)
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
