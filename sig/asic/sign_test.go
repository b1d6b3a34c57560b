// SPDX-License-Identifier: Apache-2.0

package asic_test

import (
	stdzip "archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"tamga/internal/sigtest"
	"tamga/internal/testsize"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/asic"
)

// mode is a form of a container.
type mode struct{ kind, format string }

func (m mode) String() string { return "ASiC-" + m.kind + " " + m.format }

var modes = []mode{{"S", "CAdES"}, {"S", "XAdES"}, {"E", "CAdES"}, {"E", "XAdES"}}

// params returns the parameters of a mode with more, as name and value.
func (m mode) params(more ...string) sig.Params {
	p := sig.Params{"ASiCType": m.kind, "ASiCFormat": m.format}
	for i := 0; i < len(more); i += 2 {
		p[more[i]] = more[i+1]
	}
	return p
}

// job returns the job of a container: of one file for ASiC-S, of three for ASiC-E.
func (m mode) job(more ...string) *sig.Job {
	j := &sig.Job{Name: "договор 1.txt", Document: strings.NewReader("text of the contract"), Params: m.params(more...)}
	if m.kind == "E" {
		j.Files = []sig.File{
			{Name: "sub/a&b%20c+d.pdf", Document: bytes.NewReader(bytes.Repeat([]byte("%PDF"), 100_000))},
			{Name: "empty", Document: strings.NewReader("")},
		}
	}
	return j
}

// entry is an entry of an archive as archive/zip reads it.
type entry struct {
	name, content string
	method        uint16
	offset        int64
}

// entries reads an archive by the standard library.
func entries(t testing.TB, container []byte) (all []entry) {
	t.Helper()
	r, err := stdzip.NewReader(bytes.NewReader(container), int64(len(container)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		offset, err := f.DataOffset()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, entry{f.Name, string(content), f.Method, offset})
	}
	return all
}

func namesIn(all []entry) string {
	var names []string
	for _, e := range all {
		names = append(names, e.name)
	}
	return strings.Join(names, ", ")
}

// Containers of every suite and mode are made as the standard says, and pass. With one changed byte in any entry
// they do not.
func TestEveryMode(t *testing.T) {
	want := map[mode]string{
		{"S", "CAdES"}: "mimetype, договор 1.txt, META-INF/signature.p7s",
		{"S", "XAdES"}: "mimetype, договор 1.txt, META-INF/signatures.xml",
		{"E", "CAdES"}: "mimetype, договор 1.txt, sub/a&b%20c+d.pdf, empty, META-INF/ASiCManifest001.xml, META-INF/signature001.p7s",
		{"E", "XAdES"}: "mimetype, договор 1.txt, sub/a&b%20c+d.pdf, empty, META-INF/signatures001.xml",
	}
	for _, s := range suite.All() {
		root, signer := parties(t, s)
		for _, m := range modes {
			t.Run(s.Name+" "+m.String(), func(t *testing.T) {
				made := sigtest.Make(t, asic.New(), signer, m.job())
				all := entries(t, made)
				if got := namesIn(all); got != want[m] {
					t.Errorf("entries: %s", got)
				}
				if all[0].offset != 38 || all[0].method != 0 || all[0].content != map[string]string{"S": mimeS, "E": mimeE}[m.kind] {
					t.Errorf("mimetype: %+v", all[0])
				}
				r := verified(t, root, made)
				if !r.Passed() || len(r.Signatures) != 1 || r.Signatures[0].Level != "BES" {
					t.Fatalf("%s, %+v", describe(r), r.Signatures)
				}
				for _, f := range r.Files {
					if !slices.Equal(f.Signatures, []int{0}) {
						t.Errorf("%s is covered by %v", f.Name, f.Signatures)
					}
				}
				for i, e := range all {
					if i == 0 || e.content == "" {
						continue
					}
					changed := make([]sigtest.ZipEntry, len(all))
					for j, o := range all {
						changed[j] = sigtest.ZipEntry{Name: o.name, Content: o.content, Store: j == 0}
						if i == j {
							b := []byte(o.content)
							b[len(b)/2] ^= 1
							changed[j].Content = string(b)
						}
					}
					if r, err := check(root, sigtest.Zip(changed, "")); err == nil && r.Passed() && len(r.Headlines()) == 0 {
						t.Errorf("%s changed: %s", e.name, describe(r))
					}
				}
			})
		}
	}
}

// Every level that the signatures inside have can be made, and is recognised.
func TestLevels(t *testing.T) {
	suites := suite.All()
	if testsize.Of() < testsize.Whole {
		suites = []*suite.Suite{suite.GOST2012x256, suite.RSASHA256}
	}
	for _, s := range suites {
		root, signer := parties(t, s)
		services := sigtest.NewServices(t, root)
		for _, m := range modes {
			levels := []string{"BES", "T", "XLT1", "A"}
			key := "CADESType"
			if m.format == "XAdES" {
				levels, key = []string{"BES", "T"}, "XAdESType"
			}
			for _, level := range levels {
				job := m.job(key, level, "TSPAddress", "http://tsp")
				job.Evidence = services
				made := sigtest.Make(t, asic.New(), signer, job)
				r := verified(t, root, made)
				if !r.Passed() || r.Signatures[0].Level != level {
					t.Errorf("%s %s %s: %s at level %s", s.Name, m, level, describe(r), r.Signatures[0].Level)
				}
			}
		}
	}
}

// A signature is added to a container, in one step and in two, by a key of another suite, and all stay valid. What
// was there keeps its bytes.
func TestCosign(t *testing.T) {
	root, first := parties(t, suite.GOST2012x512)
	second := root.Signer(t, suite.RSASHA256, "Second")
	for _, m := range modes {
		made := sigtest.Make(t, asic.New(), first, m.job())
		job := func() *sig.Job {
			return &sig.Job{
				Document: bytes.NewReader(made), Certificate: second.Certificate, Chain: second.Chain, Time: sigtest.Time,
				Params: sig.Params{"ASiCFormat": m.format, "CmsSignatureType": "Cosign"},
			}
		}
		one := sigtest.Make(t, asic.New(), second, job())
		p, err := asic.New().Prepare(context.Background(), job())
		if err != nil {
			t.Fatal(err)
		}
		result, err := asic.New().Finish(context.Background(), job(), p.State, second.Sign(t, p.Digest))
		if err != nil {
			t.Fatal(err)
		}
		var two bytes.Buffer
		if _, err := result.WriteTo(&two); err != nil {
			t.Fatal(err)
		}
		for i, both := range [][]byte{one, two.Bytes()} {
			r := verified(t, root, both)
			if !r.Passed() || len(r.Signatures) != 2 {
				t.Fatalf("%s, way %d: %s", m, i, describe(r))
			}
			for _, f := range r.Files {
				if !slices.Equal(f.Signatures, []int{0, 1}) {
					t.Errorf("%s: %s is covered by %v", m, f.Name, f.Signatures)
				}
			}
			before, after := entries(t, made), entries(t, both)
			for n, e := range before {
				if m.kind == "S" && n == len(before)-1 {
					break // the entry with all signatures
				}
				if e != after[n] {
					t.Errorf("%s: the entry %s has changed", m, e.name)
				}
			}
			want := map[mode]int{{"S", "CAdES"}: 0, {"S", "XAdES"}: 0, {"E", "CAdES"}: 2, {"E", "XAdES"}: 1}[m]
			if len(after) != len(before)+want {
				t.Errorf("%s: %s", m, namesIn(after))
			}
		}
		other := bytes.Clone(made)
		other[len(other)/2] ^= 1
		changed := job()
		changed.Document = bytes.NewReader(sigtest.Make(t, asic.New(), second, m.job()))
		if _, err := asic.New().Finish(context.Background(), changed, p.State, second.Sign(t, p.Digest)); err == nil {
			t.Errorf("%s: finished with another container", m)
		}
	}
}

// XAdES signatures of files have all levels. An archive time stamp covers the files themselves.
func TestArchiveOfFiles(t *testing.T) {
	root, signer := parties(t, suite.ECDSAP256)
	for _, m := range []mode{{"S", "XAdES"}, {"E", "XAdES"}} {
		for _, level := range []string{"LT", "LTA"} {
			services := sigtest.NewServices(t, root)
			with := func(job *sig.Job) *sig.Job {
				job.Evidence = services
				return job
			}
			one := sigtest.Make(t, asic.New(), signer, with(m.job("XAdESType", level, "TSPAddress", "http://tsp")))
			two := sigtest.Make(t, asic.New(), signer, with(&sig.Job{Document: bytes.NewReader(one), Params: sig.Params{
				"ASiCFormat": "XAdES", "XAdESType": level, "TSPAddress": "http://tsp", "CmsSignatureType": "Cosign",
			}}))
			for i, made := range [][]byte{one, two} {
				r := verified(t, root, made)
				if !r.Passed() || len(r.Signatures) != i+1 {
					t.Fatalf("%s %s: %s", m, level, describe(r))
				}
				for _, s := range r.Signatures {
					if s.Level != level || len(s.TimeStamps) != map[string]int{"LT": 1, "LTA": 2}[level] || !s.TimeStamps[len(s.TimeStamps)-1].Passed() {
						t.Errorf("%s: level %s, want %s, %+v", m, s.Level, level, s.Findings)
					}
				}
			}
			changed := edited(asZip(t, one), "договор 1.txt", func(e *sigtest.ZipEntry) { e.Content += "." })
			r := verified(t, root, sigtest.Zip(changed, ""))
			if s := r.Signatures[0]; r.Verdict() != sig.Failed || level == "LTA" && s.TimeStamps[1].Passed() {
				t.Errorf("%s %s, changed: %s, %+v", m, level, describe(r), s.TimeStamps)
			}
		}
	}
}

// Wrong orders are refused, and each fault is named.
func TestFaults(t *testing.T) {
	_, signer := parties(t, suite.ECDSAP256)
	e := mode{"E", "CAdES"}
	made := sigtest.Make(t, asic.New(), signer, e.job())
	container := func(more ...string) *sig.Job {
		return &sig.Job{Document: bytes.NewReader(made), Params: mode{"E", "CAdES"}.params(append(more, "CmsSignatureType", "Cosign")...)}
	}
	named := func(names ...string) *sig.Job {
		j := &sig.Job{Name: names[0], Document: strings.NewReader("x"), Params: e.params()}
		for _, name := range names[1:] {
			j.Files = append(j.Files, sig.File{Name: name, Document: strings.NewReader("x")})
		}
		return j
	}
	files := mode{"S", "CAdES"}.job()
	files.Files = e.job().Files
	for _, c := range []struct {
		name string
		job  *sig.Job
		want string
	}{
		{"an unknown type", mode{"X", "CAdES"}.job(), "ASiCType"},
		{"an unknown format", mode{"S", "PDF"}.job(), "ASiCFormat"},
		{"several files in ASiC-S", files, "Files"},
		{"the level of the other format", e.job("XAdESType", "T"), "XAdESType"},
		{"the level of the other format", mode{"E", "XAdES"}.job("CADESType", "T"), "CADESType"},
		{"no XAdES", mode{"E", "XAdES"}.job("XAdESType", "None"), "XAdESType"},
		{"time without an address", e.job("CADESType", "T"), "TSPAddress"},
		{"a hash value", e.job("Hash", "True"), "Hash"},
		{"attached", e.job("IsDetached", "False"), "IsDetached"},
		{"countersigned", e.job("CmsSignatureType", "Countersign"), "CmsSignatureType"},
		{"another algorithm", e.job("HashAlgorithm", "GR 34.11-2012 256"), "HashAlgorithm"},
		{"a container of another type", container("ASiCType", "S"), "ASiCType"},
		{"a container of another format", container("ASiCFormat", "XAdES"), "ASiCFormat"},
		{"files for a container", func() *sig.Job { j := container(); j.Files = e.job().Files; return j }(), "Files"},
		{"a name twice", named("a", "b", "a"), "Files"},
		{"names by letter case", named("a", "A"), "Files"},
		{"names by encoding", named("a b", "a%20b"), "Files"},
		{"mimetype", named("Mimetype"), "Files"},
		{"metadata", named("meta-inf/x"), "Files"},
		{"a folder", named("a/"), "Files"},
		{"climbing", named("../a"), "Files"},
		{"from the top", named("/a"), "Files"},
		{"a file inside of a file", named("a", "a/b"), "Files"},
		{"a backslash", named("a\\b"), "Files"},
		{"a file inside of a folder that is a file", named("a", "a/b/c"), "Files"},
		{"a dot at the end", named("a", "a."), "Files"},
		{"encoded twice", named("a%2541", "a%41"), "Files"},
		{"a colon", named("a:b"), "Files"},
		{"a format character", named("a\u202Efdp.exe"), "Files"},
		{"a very long name", named(strings.Repeat("a", 1025)), "Files"},
		{"very many folders", named(strings.Repeat("a/", 500_000) + "b"), "Files"},
	} {
		_, err := sigtest.Try(t, asic.New(), signer, c.job)
		if got := sigtest.Faults(err); !slices.Contains(got, c.want) {
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
	}
	_, err := sigtest.Try(t, asic.New(), signer, &sig.Job{Document: strings.NewReader("text"), Params: sig.Params{"CmsSignatureType": "Cosign"}})
	if err == nil {
		t.Error("a text was taken for a container")
	}
}

// The state of a signature fits only its own documents.
func TestState(t *testing.T) {
	_, signer := parties(t, suite.ECDSAP256)
	m := mode{"E", "CAdES"}
	with := func(change func(*sig.Job)) *sig.Job {
		j := m.job()
		j.Certificate, j.Time = signer.Certificate, sigtest.Time
		change(j)
		return j
	}
	p, err := asic.New().Prepare(context.Background(), with(func(*sig.Job) {}))
	if err != nil {
		t.Fatal(err)
	}
	value := signer.Sign(t, p.Digest)
	for name, change := range map[string]func(*sig.Job){
		"a name":     func(j *sig.Job) { j.Files[0].Name = "other" },
		"a length":   func(j *sig.Job) { j.Files[0].Document = strings.NewReader("other") },
		"a number":   func(j *sig.Job) { j.Files = j.Files[:1] },
		"a digest":   func(j *sig.Job) { j.Files[0].Digests = []suite.Digest{suite.SHA256.Digest([]byte("other"))} },
		"the first":  func(j *sig.Job) { j.Document = strings.NewReader("other") },
		"no content": func(j *sig.Job) { j.Files[1].Document = nil },
	} {
		if _, err := asic.New().Finish(context.Background(), with(change), p.State, value); err == nil {
			t.Errorf("%s: finished", name)
		}
	}
	if _, err := asic.New().Finish(context.Background(), with(func(*sig.Job) {}), p.State[:len(p.State)-1], value); err == nil {
		t.Error("finished with a damaged state")
	}
	if _, err := asic.New().Finish(context.Background(), with(func(*sig.Job) {}), p.State, value); err != nil {
		t.Error(err)
	}
}

// counted counts how often each byte of a document is read.
type counted struct {
	sig.Document
	read int64
}

func (c *counted) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.Document.ReadAt(p, off)
	c.read += int64(n)
	return n, err
}

// A document is read once for its digest and once to write it, and memory does not grow with it.
func TestMemory(t *testing.T) {
	_, signer := parties(t, suite.RSASHA256)
	size := int64(64 << 20)
	if testsize.Of() >= testsize.Whole {
		size = 1 << 30
	}
	for _, m := range modes {
		document := &counted{Document: sigtest.Zeros(size)}
		job := &sig.Job{Name: "large", Document: document, Certificate: signer.Certificate, Time: sigtest.Time, Params: m.params()}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p, err := asic.New().Prepare(context.Background(), job)
		if err != nil {
			t.Fatal(err)
		}
		result, err := asic.New().Finish(context.Background(), job, p.State, signer.Sign(t, p.Digest))
		if err != nil {
			t.Fatal(err)
		}
		if document.read != size {
			t.Errorf("%s: read %d bytes of %d before writing", m, document.read, size)
		}
		if n, err := result.WriteTo(io.Discard); err != nil || n != result.Size() {
			t.Fatal(n, err)
		}
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20 {
			t.Errorf("%s: %d bytes for a document of %d", m, used, size)
		}
		if document.read != 2*size {
			t.Errorf("%s: read %d bytes of %d", m, document.read, size)
		}
	}
}

// A container of many files is verified with all of them.
func TestManyFiles(t *testing.T) {
	root, signer := parties(t, suite.ECDSAP256)
	for _, m := range modes[2:] {
		job := m.job()
		for i := range 500 {
			job.Files = append(job.Files, sig.File{Name: fmt.Sprintf("many/%d", i), Document: strings.NewReader(fmt.Sprint(i))})
		}
		if r := verified(t, root, sigtest.Make(t, asic.New(), signer, job)); !r.Passed() || len(r.Files) != 503 {
			t.Errorf("%s: %s", m, r.Verdict())
		}
	}
}
