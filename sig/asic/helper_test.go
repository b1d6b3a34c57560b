// SPDX-License-Identifier: Apache-2.0

package asic_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/asic"
	"tamga/sig/cades"
)

const (
	mimeS = "application/vnd.etsi.asic-s+zip"
	mimeE = "application/vnd.etsi.asic-e+zip"
)

// listOf returns an ASiCManifest with files and their contents.
func listOf(signature string, h *suite.Hash, files ...[2]string) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?><asic:ASiCManifest xmlns:asic="http://uri.etsi.org/02918/v1.2.1#" xmlns:ds="http://www.w3.org/2000/09/xmldsig#"><asic:SigReference URI="` + signature + `" MimeType="application/x-pkcs7-signature"/>`)
	for _, f := range files {
		fmt.Fprintf(&b, `<asic:DataObjectReference URI="%s"><ds:DigestMethod Algorithm="%s"/><ds:DigestValue>%s</ds:DigestValue></asic:DataObjectReference>`, f[0], h.XML[0], base64.StdEncoding.EncodeToString(h.Digest([]byte(f[1])).Sum))
	}
	b.WriteString(`</asic:ASiCManifest>`)
	return b.String()
}

// detached returns a detached message over a content.
func detached(t testing.TB, signer *sigtest.Party, content string) string {
	return string(sigtest.Make(t, cades.New(), signer, &sig.Job{Document: strings.NewReader(content), Params: sig.Params{"IsDetached": "True"}}))
}

// byHand returns the entries of an ASiC-E with a CAdES signature of two files.
func byHand(t testing.TB, signer *sigtest.Party) []sigtest.ZipEntry {
	list := listOf("META-INF/signature1.p7s", suite.SHA256, [2]string{"a.txt", "first"}, [2]string{"sub/b%20c.txt", "second"})
	return []sigtest.ZipEntry{
		{Name: "mimetype", Content: mimeE, Store: true},
		{Name: "a.txt", Content: "first"},
		{Name: "sub/", Store: true},
		{Name: "sub/b c.txt", Content: "second", Store: true},
		{Name: "META-INF/ASiCManifest1.xml", Content: list},
		{Name: "META-INF/signature1.p7s", Content: detached(t, signer, list)},
	}
}

// edited returns entries with one of them changed, or one more if none has the name.
func edited(entries []sigtest.ZipEntry, name string, change func(*sigtest.ZipEntry)) []sigtest.ZipEntry {
	entries = slices.Clone(entries)
	i := slices.IndexFunc(entries, func(e sigtest.ZipEntry) bool { return e.Name == name })
	if i < 0 {
		entries = append(entries, sigtest.ZipEntry{Name: name})
		i = len(entries) - 1
	}
	change(&entries[i])
	return entries
}

// without returns entries without one.
func without(entries []sigtest.ZipEntry, name string) []sigtest.ZipEntry {
	return slices.DeleteFunc(slices.Clone(entries), func(e sigtest.ZipEntry) bool { return e.Name == name })
}

// parties returns a root and a signer with a key of a suite.
func parties(t testing.TB, s *suite.Suite) (root, signer *sigtest.Party) {
	root = sigtest.Root(t, s)
	return root, root.Signer(t, s, "Signer")
}

// check verifies a container.
func check(root *sigtest.Party, container []byte) (*sig.Report, error) {
	return asic.New().Verify(context.Background(), &sig.Check{
		Document: bytes.NewReader(container), Roots: []*x509gost.Certificate{root.Certificate}, At: sigtest.Time,
	})
}

// verified is check for a container that can be read.
func verified(t testing.TB, root *sigtest.Party, container []byte) *sig.Report {
	t.Helper()
	r, err := check(root, container)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// describe returns the verdict, the codes of all findings and the files of a report in one line.
func describe(r *sig.Report) string {
	var codes []string
	add := func(list []sig.Finding) {
		for _, f := range list {
			if !strings.HasPrefix(f.Code, "certificate-revocation") {
				codes = append(codes, f.Code)
			}
		}
	}
	add(r.Findings)
	for _, s := range r.Signatures {
		add(s.Findings)
	}
	slices.Sort(codes)
	codes = slices.Compact(codes)
	var files []string
	for _, f := range r.Files {
		files = append(files, fmt.Sprintf("%s%v", f.Name, f.Signatures))
	}
	return fmt.Sprintf("%s %s: %s", r.Verdict(), strings.Join(codes, " "), strings.Join(files, " "))
}

// refusal returns the text of an *sig.ErrDocument.
func refusal(err error) string {
	var e *sig.ErrDocument
	if errors.As(err, &e) {
		return e.Text
	}
	return fmt.Sprint("not refused: ", err)
}

// strictly verifies a container whose signatures must cover everything, or one file if expect is not empty.
func strictly(root *sigtest.Party, container []byte, expect string) (*sig.Report, error) {
	return asic.New().Verify(context.Background(), &sig.Check{
		Document: bytes.NewReader(container), Roots: []*x509gost.Certificate{root.Certificate}, At: sigtest.Time,
		Strict: expect == "", Expect: expect,
	})
}
