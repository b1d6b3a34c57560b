// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/sig"
)

var corpus = flag.String("corpus", "", "sign every PDF below a directory and check the results with other programs")

// TestCorpus signs the documents of a collection. Of those that qpdf accepts, all but one
// in two hundred must be no worse afterwards, with a signature that Poppler and this
// package call valid. Documents certified against signing and those without a PDF header
// are not counted.
func TestCorpus(t *testing.T) {
	if *corpus == "" {
		t.Skip("no -corpus given")
	}
	root := sigtest.Root(t, suite.RSASHA256)
	signer := root.Signer(t, suite.RSASHA256, "Signer")
	var names []string
	err := filepath.WalkDir(*corpus, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.EqualFold(filepath.Ext(path), ".pdf") {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var accepted, good, refused, aside int
	work := make(chan string)
	var done sync.WaitGroup
	for range 2 {
		done.Go(func() {
			tools := judge.PDF(t)
			tools.Trust(root.PEM())
			for path := range work {
				verdict, why := corpusOne(t, tools, root, signer, path)
				mu.Lock()
				switch verdict {
				case "good":
					accepted, good = accepted+1, good+1
				case "bad":
					accepted++
					t.Logf("%s: %s", path, why)
				case "aside":
					aside++
				default:
					refused++
				}
				mu.Unlock()
			}
		})
	}
	for _, path := range names {
		work <- path
	}
	close(work)
	done.Wait()
	t.Logf("%d files, %d not accepted by qpdf, %d certified against signing or without a header; of %d accepted %d are good (%.2f %%)",
		len(names), refused, aside, accepted, good, 100*float64(good)/float64(max(accepted, 1)))
	if float64(good) < 0.995*float64(accepted) {
		t.Errorf("less than 99.5 %%")
	}
}

// corpusOne signs and checks one file.
func corpusOne(t *testing.T, tools *judge.PDFTools, root, signer *sigtest.Party, path string) (verdict, why string) {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
		return "", ""
	}
	before := tools.CheckQPDF(data, "")
	warned := before != nil && strings.Contains(before.Error(), "exit status 3")
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	job := &sig.Job{
		Document: bytes.NewReader(data), Certificate: signer.Certificate, Chain: signer.Chain, Time: sigtest.Time,
		Params: sig.Params{"PDFFormat": "CMS"},
	}
	began := time.Now()
	prepared, err := New().Prepare(ctx, job)
	if took := time.Since(began); took > 2*time.Second {
		t.Logf("%s: preparing took %v", path, took)
	}
	if before != nil && !warned {
		return "", "" // the result does not matter, only that the test came back
	}
	var document *sig.ErrDocument
	if errors.As(err, &document) && (document.OtherKind || strings.Contains(document.Text, "forbids all changes")) {
		return "aside", ""
	}
	if err != nil {
		return "bad", "refused: " + err.Error()
	}
	result, err := New().Finish(ctx, job, prepared.State, signer.Sign(t, prepared.Digest))
	if err != nil {
		return "bad", err.Error()
	}
	var out bytes.Buffer
	if _, err := result.WriteTo(&out); err != nil {
		return "bad", err.Error()
	}
	after := tools.CheckQPDF(out.Bytes(), "")
	if after != nil && !(warned && strings.Contains(after.Error(), "exit status 3")) {
		return "bad", "qpdf: " + after.Error()
	}
	if err := tools.CheckMuPDF(out.Bytes(), ""); err != nil && tools.CheckMuPDF(data, "") == nil {
		return "bad", err.Error()
	}
	list, err := tools.Signatures(out.Bytes(), "")
	if err != nil && strings.Contains(err.Error(), "signal: killed") {
		if _, err := tools.Signatures(data, ""); err != nil && strings.Contains(err.Error(), "signal: killed") {
			return "", "" // Poppler does not return for the original either
		}
	}
	valid := false
	for _, s := range list {
		valid = valid || s.Valid && s.Trusted && s.Name == "Signer"
	}
	if !valid {
		return "bad", "pdfsig: " + strings.ReplaceAll(errorText(err, list), "\n", " ")
	}
	r, err := New().Verify(ctx, &sig.Check{Document: bytes.NewReader(out.Bytes()), Roots: append(signer.Chain[:0:0], root.Certificate), At: sigtest.Time})
	if err != nil {
		return "bad", "our own verifier: " + err.Error()
	}
	for _, s := range r.Signatures {
		if s.Signer != nil && s.Signer.Equal(signer.Certificate) && s.Passed() {
			return "good", ""
		}
	}
	return "bad", "our own verifier: " + say(r)
}

func errorText(err error, list []judge.PDFSignature) string {
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, s := range list {
		b.WriteString(s.Text)
	}
	return b.String()
}
