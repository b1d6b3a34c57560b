// SPDX-License-Identifier: Apache-2.0

package view

import (
	"archive/zip"
	"path"
	"strings"
	"time"

	"tamga/internal/domain/fault"
	"tamga/internal/web/rest"
)

// Limits of a folder in a form. The names stay in memory until the archive has its directory.
const (
	maxFolder = 2000    // files
	maxPath   = 1 << 10 // bytes of a path
)

// folder is the archive of the files of a folder, written while they are received.
type folder[S rest.Sink[S]] struct {
	name    string // of the folder
	content S
	zip     *zip.Writer
	at      time.Time
	files   int
	taken   map[string]map[string]bool // names in lower case, by their folders
}

func newFolder[S rest.Sink[S]](docs *rest.Documents[S], at time.Time) (*folder[S], error) {
	content, err := docs.New()
	if err != nil {
		return nil, err
	}
	return &folder[S]{at: at, content: content, zip: zip.NewWriter(content), taken: map[string]map[string]bool{}}, nil
}

// folderFault is a refusal of a folder. The rest of the form can be read.
type folderFault struct{ error }

func (f folderFault) Unwrap() error { return f.error }

// add adds a file with the path that the browser has sent. No part of the path leads out of the folder.
func (f *folder[S]) add(p *rest.Part) error {
	sent := escaped.Replace(p.Path())
	if f.files++; f.files > maxFolder {
		return folderFault{fault.Newf(fault.InvalidParameters, "a folder has at most %d files", maxFolder)}
	}
	if len(sent) > maxPath {
		return folderFault{fault.Newf(fault.InvalidParameters, "the path of a file in a folder has at most %d bytes", maxPath)}
	}
	var parts []string
	for part := range strings.FieldsFuncSeq(sent, func(r rune) bool { return r == '/' || r == '\\' }) {
		if part != "." && part != ".." {
			parts = append(parts, rest.FileName(part))
		}
	}
	if len(parts) == 0 {
		parts = []string{rest.FileName("")}
	}
	if f.name == "" {
		f.name = parts[0]
	}
	dir := path.Join(parts[:len(parts)-1]...)
	if f.taken[dir] == nil {
		f.taken[dir] = map[string]bool{}
	}
	name := FreeName(parts[len(parts)-1], f.taken[dir])
	f.taken[dir][strings.ToLower(name)] = true
	to, err := f.zip.CreateHeader(&zip.FileHeader{Name: path.Join(dir, name), Method: zip.Deflate, Modified: f.at})
	if err != nil {
		return err
	}
	return p.CopyTo(to)
}

// close ends the archive.
func (f *folder[S]) close() error {
	if err := f.zip.Close(); err != nil {
		return err
	}
	return f.content.Finish()
}
