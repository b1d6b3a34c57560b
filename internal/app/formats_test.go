// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"tamga/internal/config"
	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/sig"
)

// Every format that signs one document refuses a job with more of them, in each step and in each of its
// ways to sign. It signs the same job without them.
func TestFormatsRefuseFiles(t *testing.T) {
	samples := map[string][]byte{"cms": []byte("text"), "raw": []byte("text"), "asic": []byte("text"), "xml": []byte("<a/>")}
	for kind, file := range map[string]string{"pdf": "one-page.pdf", "office": "letter.docx"} {
		data, err := os.ReadFile("../../sig/testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		samples[kind] = data
	}
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	signer := root.Signer(t, s, "Signer")
	evidence := sigtest.NewServices(t, root)
	refused := func(t *testing.T, step string, err error) {
		t.Helper()
		var e *sig.ErrParams
		if !errors.As(err, &e) || !slices.ContainsFunc(e.Faults, func(f sig.Fault) bool { return f.Key == "Files" }) {
			t.Errorf("%s: %v", step, err)
		}
	}
	checked := 0
	for _, f := range Formats(&config.Config{}) {
		d := f.Describe()
		sample := samples[d.Kind]
		if sample == nil {
			t.Errorf("there is no document to try %s with", d.Kind)
			continue
		}
		signed := sigtest.Make(t, f, signer, &sig.Job{Document: bytes.NewReader(sample), Params: d.Types[0].Usual})
		// A way to sign is a type, or a form that people choose.
		type way struct {
			document []byte
			params   sig.Params
		}
		ways := map[string]way{}
		for _, one := range d.Types {
			ways[one.Name] = way{sample, one.Usual}
		}
		for _, form := range d.Forms {
			w := way{sample, form.Params[sig.LevelBasic]}
			if form.Extends {
				w.document = signed
			}
			ways[form.Name] = w
		}
		for name, w := range ways {
			if f.Read(w.params).Several {
				continue // it takes them
			}
			t.Run(d.Kind+" "+name, func(t *testing.T) {
				job := &sig.Job{
					Document: bytes.NewReader(w.document), Original: bytes.NewReader(sample), Name: "first.txt",
					Certificate: signer.Certificate, Chain: signer.Chain, Params: w.params, Time: sigtest.Time, Evidence: evidence,
				}
				if bytes.Equal(w.document, sample) {
					job.Original = nil
				}
				more := *job
				more.Files = []sig.File{{Name: "second.txt", Document: strings.NewReader("x")}}
				ctx := context.Background()
				p, err := f.Prepare(ctx, job)
				if err != nil {
					t.Fatal(err)
				}
				_, err = f.Prepare(ctx, &more)
				refused(t, "Prepare", err)
				read := more
				read.Request = f.Read(w.params)
				_, err = f.Prepare(ctx, &read)
				refused(t, "Prepare of parameters that were read", err)
				value := signer.Sign(t, p.Digest)
				_, err = f.Finish(ctx, &more, p.State, value)
				refused(t, "Finish", err)
				if _, err := f.Finish(ctx, job, p.State, value); err != nil {
					t.Errorf("Finish: %v", err)
				}
				checked++
			})
		}
		if enhancer, ok := f.(sig.Enhancer); ok {
			level := d.Types[0].Usual
			for _, p := range d.Params {
				if i := slices.IndexFunc(p.Choices, func(c sig.Choice) bool { return c.Level == sig.LevelTime }); i >= 0 {
					level = level.With(p.Name, p.Choices[i].Name)
				}
			}
			_, err := enhancer.Enhance(context.Background(), &sig.Job{
				Document: bytes.NewReader(signed), Params: level.With("TSPAddress", "http://x"), Time: sigtest.Time, Evidence: evidence,
				Files: []sig.File{{Name: "second.txt", Document: strings.NewReader("x")}},
			})
			refused(t, "Enhance of "+d.Kind, err)
			checked++
		}
	}
	if checked < 12 {
		t.Errorf("only %d ways were checked", checked)
	}
}
