// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"regexp"
	"runtime"
	"strings"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/config"
)

// SupportBundle is the sub-command support-bundle.
type SupportBundle struct {
	File  string           `arg:"" help:"File to write (.tar.gz)."`
	Log   string           `placeholder:"FILE" help:"Log of the server, of which the last lines are added. They have logins and addresses."`
	Force bool             `help:"Replace an existing file."`
	From  cli.Installation `embed:""`
}

// Help returns the text above the flags.
func (SupportBundle) Help() string {
	return `Collects what a report of a fault needs, and nothing else: the version, the configuration without addresses' user names, passwords and queries, the findings of "tamga doctor --offline", the kind, schema and numbers of records of the database, and the last lines of a log. It reads no secret. Read the files before you send them.`
}

const (
	mostLog      = 1 << 20 // bytes of the log
	mostLogLines = 2000
)

// part is a file of the bundle.
type part struct {
	name string
	text []byte
}

// Run writes the bundle. What cannot be read becomes the text of its error, since a broken installation
// needs the bundle most.
func (s *SupportBundle) Run(c *cli.Console) error {
	var parts []part
	add := func(name string, text []byte, err error) {
		if err != nil {
			text = append(text, "\nerror: "+err.Error()+"\n"...)
		}
		parts = append(parts, part{name, scrub(text)})
	}
	version, err := json.MarshalIndent(map[string]any{
		"version": cli.VersionText(c.Program.Version), "made_at": time.Now().UTC().Truncate(time.Second), "processors": runtime.NumCPU(),
	}, "", "  ")
	add("version.json", version, err)
	conf, invalid := s.From.Configuration()
	findings, err := json.MarshalIndent(c.Examine(c, cmp.Or(s.From.Config, "tamga.yaml"), conf, config.Each(invalid), true), "", "  ")
	add("doctor.json", findings, err)
	if invalid == nil {
		var printed bytes.Buffer
		err := conf.Print(&printed)
		add("config.yaml", printed.Bytes(), err)
		text, err := s.database(c, conf)
		add("database.json", text, err)
	}
	if s.Log != "" {
		text, err := lastLines(s.Log)
		add("log.txt", text, err)
	}
	out, err := cli.CreatePrivateOutfile(s.File, s.Force)
	if err != nil {
		return err
	}
	defer out.Discard()
	if err := writeParts(out, parts); err != nil {
		return err
	}
	if err := out.Commit(); err != nil {
		return err
	}
	names := []string{}
	for _, p := range parts {
		names = append(names, p.name)
	}
	return s.From.Answer(c, map[string]any{"file": s.File, "parts": names}, "%s has %s. Read it before you send it.\n", cli.Printable(s.File), strings.Join(names, ", "))
}

// database describes the database.
func (s *SupportBundle) database(c *cli.Console, conf *config.Config) ([]byte, error) {
	base, err := app.Open(c.Context, conf, app.ForCommand, app.NewLogger(io.Discard, conf))
	if err != nil {
		return nil, err
	}
	defer base.Close()
	d := struct {
		Engine string        `json:"engine"`
		Schema string        `json:"schema"`
		Counts []store.Count `json:"counts"`
	}{Engine: base.DB.Engine(), Schema: "of this release"}
	if err := base.DB.Migrated(c.Context); err != nil {
		d.Schema = err.Error()
	}
	d.Counts, err = base.DB.Counts(c.Context)
	text, jsonErr := json.MarshalIndent(d, "", "  ")
	return text, errors.Join(err, jsonErr)
}

// lastLines returns the last lines of a file.
func lastLines(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	from := max(0, info.Size()-mostLog)
	text, err := io.ReadAll(io.NewSectionReader(f, from, mostLog))
	if err != nil {
		return nil, err
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	if from > 0 {
		lines = lines[1:] // a part of a line
	}
	return bytes.Join(lines[max(0, len(lines)-mostLogLines):], nil), nil
}

// Addresses may have a user name, a password and, in the query, keys of a provider.
var (
	userInfo = regexp.MustCompile(`://[^/\s"'@]*@`)
	query    = regexp.MustCompile(`(://[^\s"'?]*)\?[^\s"']*`)
)

func scrub(text []byte) []byte {
	text = userInfo.ReplaceAll(text, []byte("://removed@"))
	return query.ReplaceAll(text, []byte("$1?removed"))
}

func writeParts(w io.Writer, parts []part) error {
	zip := gzip.NewWriter(w)
	t := tar.NewWriter(zip)
	for _, p := range parts {
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: p.name, Size: int64(len(p.text)), Mode: 0o600}); err != nil {
			return err
		}
		if _, err := t.Write(p.text); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), zip.Close())
}
