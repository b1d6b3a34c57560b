// SPDX-License-Identifier: Apache-2.0

package ooxml_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/ooxml"
)

var (
	corpus       = flag.String("corpus", "", "a directory of Office documents: all of them are signed twice")
	corpusJudged = flag.Bool("judged", false, "let LibreOffice check the documents that -corpus signs")
)

// TestCorpus signs every document of a directory twice and verifies both signatures. It
// prints the refused documents with the reason.
func TestCorpus(t *testing.T) {
	if *corpus == "" {
		t.Skip("no -corpus given")
	}
	root := sigtest.Root(t, suite.RSASHA256)
	signer := root.Signer(t, suite.RSASHA256, "Signer")
	var signed, refused int
	var slowest time.Duration
	var names []string
	var documents [][]byte
	err := filepath.WalkDir(*corpus, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		begin := time.Now()
		for range 2 {
			if data, err = sigtest.Try(t, ooxml.New(), signer, &sig.Job{Document: bytes.NewReader(data)}); err != nil {
				break
			}
		}
		slowest = max(slowest, time.Since(begin))
		var e *sig.ErrDocument
		if errors.As(err, &e) {
			refused++
			t.Logf("refused %s: %v", name, err)
			return nil
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return nil
		}
		signed++
		ours := 0
		for _, s := range verify(t, data, root).Signatures {
			if s.Signer != nil && s.Signer.Equal(signer.Certificate) {
				ours++
				if !s.Passed() {
					t.Errorf("%s: %+v", name, s.Findings)
				}
			}
		}
		if ours != 2 {
			t.Errorf("%s: %d signatures of ours found, want 2", name, ours)
		}
		names, documents = append(names, name), append(documents, data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d signed, %d refused; the slowest took %v", signed, refused, slowest)
	if !*corpusJudged {
		return
	}
	office := judge.LibreOffice(t, root.PEM())
	accepted := 0
	const batch = 100
	for len(names) > 0 {
		n := min(batch, len(names))
		for i, verdict := range office.Verify(names[:n], documents[:n]...) {
			ours, valid := 0, 0
			for _, s := range verdict {
				if s.Signer == signer.Certificate.Subject.String() {
					ours++
					if s.Valid && s.Certificate == 0 {
						valid++
					}
				}
			}
			if ours == 2 && valid == 2 {
				accepted++
			} else {
				t.Logf("LibreOffice on %s: %+v", names[i], verdict)
			}
		}
		names, documents = names[n:], documents[n:]
	}
	t.Logf("%d of %d accepted by LibreOffice", accepted, signed)
}

// verify checks a document against a trusted root.
func verify(t testing.TB, document []byte, root *sigtest.Party) *sig.Report {
	t.Helper()
	r, err := ooxml.New().Verify(context.Background(), &sig.Check{
		Document: bytes.NewReader(document), Roots: []*x509gost.Certificate{root.Certificate}, At: sigtest.Time,
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
