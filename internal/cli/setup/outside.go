// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/config"
	"tamga/internal/files"
	"tamga/pki/suite"
)

// trusted is a file of roots or of further certificates of an outside authority. init makes it beside the
// configuration: the service may be unable to read the given file.
type trusted struct {
	root bool
	file string
	text []byte
}

// evidence reads the files of outside authorities and returns those that the configuration trusts. A root is
// self-issued.
func (i *Init) evidence() (list []trusted, err error) {
	given := []string{}
	if i.Parent != "" {
		given = append(given, i.Parent)
	}
	for _, a := range i.Authority {
		_, file, _ := strings.Cut(a, "=")
		given = append(given, file)
	}
	for n, file := range given {
		certificates, err := files.Certificates(file)
		if err != nil {
			return nil, err
		}
		var roots, others []byte
		for _, c := range certificates {
			if c.Issuer.Equal(c.Subject) {
				roots = append(roots, files.PEM(c)...)
			} else {
				others = append(others, files.PEM(c)...)
			}
		}
		if roots == nil {
			return nil, fmt.Errorf("%s: no root in the file: want a self-issued certificate of the authority", file)
		}
		list = append(list, trusted{root: true, file: fmt.Sprintf("outside-%d-roots.pem", n+1), text: roots})
		if others != nil {
			list = append(list, trusted{file: fmt.Sprintf("outside-%d-authorities.pem", n+1), text: others})
		}
	}
	return list, nil
}

// keep makes the files of evidence that are missing.
func (i *Init) keep(evidence []trusted, result *report) error {
	if i.Parent != "" {
		if err := directory(filepath.Join(filepath.Dir(i.Config), requestsDir), 0o755, cli.Say("directory of requests"), result); err != nil {
			return err
		}
	}
	for _, e := range evidence {
		file := filepath.Join(filepath.Dir(i.Config), e.file)
		made, err := files.Create(file, e.text, 0o644)
		if err != nil {
			return err
		}
		result.add(cli.Say("certificates of an outside authority"), file, made)
	}
	return nil
}

// evidenceText writes the sections evidence and long_term of the configuration.
func (i *Init) evidenceText(b *strings.Builder, evidence []trusted) {
	if len(evidence)+len(i.TSP)+len(i.AllowNetwork) == 0 {
		return
	}
	b.WriteString("evidence:\n")
	list := func(name string, values []string) {
		if len(values) > 0 {
			fmt.Fprintf(b, "  %s: [%s]\n", name, strings.Join(values, ", "))
		}
	}
	var roots, others, networks []string
	for _, e := range evidence {
		if e.root {
			roots = append(roots, strconv.Quote(e.file))
		} else {
			others = append(others, strconv.Quote(e.file))
		}
	}
	for _, n := range i.AllowNetwork {
		networks = append(networks, strconv.Quote(n))
	}
	if len(roots) > 0 {
		defer b.WriteString("long_term:\n  old_lists_for_authorities: true # outside roots make a list every few months\n")
	}
	list("root_files", roots)
	list("authority_files", others)
	list("allow_networks", networks)
	if len(i.TSP) > 0 {
		b.WriteString("  tsp_services:\n")
	}
	for _, t := range i.TSP {
		name, address, _ := strings.Cut(t, "=")
		fmt.Fprintf(b, "    - name: %s\n      url: %s\n", strconv.Quote(name), strconv.Quote(address))
	}
}

// requestsDir is the directory of requests beside the configuration. While it exists and has no request, a
// repeated init makes it.
const requestsDir = "requests"

// subordinate returns the name of the issuing authority that an outside authority certifies: the one of the
// same kind of keys.
func subordinate(s *app.Services) string {
	roots, _ := s.EvidenceFiles()
	for _, c := range roots {
		if c.Suite == suite.GOST2012x256 || c.Suite == suite.GOST2012x512 {
			return "gost"
		}
	}
	return "ecdsa"
}

// requestFile is the file of the request for an issuing authority.
func (i *Init) requestFile(name string) string {
	return filepath.Join(filepath.Dir(i.Config), requestsDir, name+".csr")
}

// request makes the request by which an outside authority certifies the built-in one.
func (i *Init) request(ctx context.Context, conf *config.Config, s *app.Services, result *report) error {
	dir := filepath.Join(filepath.Dir(i.Config), requestsDir)
	if _, err := os.Stat(dir); err != nil && i.Parent == "" {
		return nil
	}
	if len(conf.Evidence.RootFiles) == 0 {
		return errors.New("--parent: the configuration exists and stays as it is: name the root of the outside authority in evidence.root_files, then run: tamga ca request gost")
	}
	name := subordinate(s)
	file := i.requestFile(name)
	what := cli.Say("request for a certificate of %s", name)
	if _, err := os.Stat(file); err == nil {
		result.add(what, file, false)
		return nil
	}
	text, err := cli.AuthorityRequest(ctx, s, name, i.Subject)
	if err != nil {
		return err
	}
	made, err := files.Create(file, text, 0o644)
	if err != nil {
		return err
	}
	result.add(what, file, made)
	return nil
}

// waiting returns the issuing authority whose request waits for an outside authority, or empty strings. It
// also reports whether an outside authority certifies one, now or soon.
func (i *Init) waiting(ctx context.Context, s *app.Services) (name, file string, outside bool, err error) {
	name = subordinate(s)
	file = i.requestFile(name)
	_, missing := os.Stat(file)
	all, err := s.Authority.All(ctx)
	for _, a := range all {
		if a.Outside && strings.HasPrefix(a.Name, name) {
			return "", "", true, err
		}
	}
	if missing != nil {
		return "", "", false, err
	}
	return name, file, true, err
}
