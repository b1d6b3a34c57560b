// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"image"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// drawn are the pictures of the signed documents, by index and renderer, and the revisions
// that were drawn before.
var drawn struct {
	sync.Mutex
	signed map[string]judge.Drawing
	done   map[[32]byte]bool
}

// resolution makes pictures of 40 pixels.
const resolution = 20

// differences compares the pictures of a signed document with those of a later revision of
// it. They may differ where the form is, if the form may have been filled.
func differences(t testing.TB, b *revisionBase, later []byte, filled bool) (said []string) {
	ctx := t.Context()
	if worker := flag.Lookup("test.fuzzworker"); worker != nil && worker.Value.String() == "true" {
		// The fuzzer takes an input of more than ten seconds for a deadlock. On a busy machine
		// such an input stays without a verdict; as a plain test there is no limit.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 7*time.Second)
		defer cancel()
	}
	dir := ""
	for _, r := range judge.Renderers(t) {
		key := fmt.Sprint(b.name, " ", r.Name)
		drawn.Lock()
		was, ok := drawn.signed[key]
		drawn.Unlock()
		if dir == "" {
			dir = t.TempDir()
		}
		if !ok {
			was = r.Draw(ctx, t, dir, b.data, resolution)
			drawn.Lock()
			drawn.signed[key] = was
			drawn.Unlock()
		}
		is := r.Draw(ctx, t, dir, later, resolution)
		if what := differ(was, is, filled); what != "" {
			said = append(said, r.Name+": "+what)
		}
	}
	return said
}

// differ says how two pictures differ, empty if they do not.
func differ(was, is judge.Drawing, filled bool) string {
	// PDFBox writes a Size of its revision alone. Poppler says that it searches the file for the other
	// objects then, and draws the same: the pictures are compared.
	if is.Complaint == "Internal Error: xref num N not found but needed, try to reconstruct<Na>" {
		is.Complaint = was.Complaint
	}
	switch {
	case was.Complaint != is.Complaint:
		return fmt.Sprintf("reports %q instead of %q", is.Complaint, was.Complaint)
	case len(was.Pages) != len(is.Pages):
		return fmt.Sprintf("%d pages instead of %d", len(is.Pages), len(was.Pages))
	}
	// The field in pixels, with its border: [10 70 70 90] of 144.
	field := image.Rect(2, 14, 21, 22)
	for i, a := range was.Pages {
		b := is.Pages[i]
		if a.Rect != b.Rect {
			return fmt.Sprintf("page %d has the size %v instead of %v", i+1, b.Rect, a.Rect)
		}
		pixels := 0
		for y := range a.Rect.Dy() {
			for x := range a.Rect.Dx() {
				if a.GrayAt(x, y) != b.GrayAt(x, y) && !(filled && image.Pt(x, y).In(field)) {
					pixels++
				}
			}
		}
		if pixels > 0 {
			return fmt.Sprintf("page %d differs in %d pixels", i+1, pixels)
		}
	}
	return ""
}

// judgePictures checks a revision: if it passes, no program may draw something else than of the
// signed one, except in fields of which the report says that they may have been filled.
func judgePictures(t *testing.T, p *revisionPlan) (passed bool) {
	t.Helper()
	data := p.write()
	r, err := New().Verify(context.Background(), &sig.Check{
		Document: bytes.NewReader(data), Roots: []*x509gost.Certificate{revisionBases.root.Certificate}, At: sigtest.Time,
	})
	var document *sig.ErrDocument
	var params *sig.ErrParams
	if err != nil {
		if !errors.As(err, &document) && !errors.As(err, &params) {
			t.Fatalf("%v: %v", p.made, err)
		}
		return false
	}
	if !r.Passed() {
		return false
	}
	sum := sha256.Sum256(data)
	drawn.Lock()
	if drawn.signed == nil {
		drawn.signed, drawn.done = map[string]judge.Drawing{}, map[[32]byte]bool{}
	}
	done := drawn.done[sum]
	drawn.done[sum] = true
	drawn.Unlock()
	if done {
		return true
	}
	if said := differences(t, p.base, data, slices.Contains(allCodes(r), codeLaterForm)); len(said) > 0 {
		t.Errorf("%s, %q: passed, but other programs show something else:\n%s\n%s%q", p.base.name, p.made, strings.Join(said, "\n"), say(r), data[len(p.base.data):])
	}
	return true
}

// FuzzLaterRevision makes later revisions of signed documents. What passes looks the same in
// MuPDF, Poppler and Ghostscript, and they complain about nothing.
func FuzzLaterRevision(f *testing.F) {
	judge.Renderers(f)
	for _, one := range constructs {
		f.Add(choicesOf(one))
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		judgePictures(t, revisionOf(t, choices))
	})
}

// TestLaterBases: the documents are the same in every run, pass, and other programs
// complain only about the font that one of them lacks.
func TestLaterBases(t *testing.T) {
	renderers := judge.Renderers(t)
	for i, name := range revisionBaseNames {
		b := revisionBaseOf(t, i)
		revisionBases.Lock()
		delete(revisionBases.made, i)
		revisionBases.Unlock()
		if !bytes.Equal(revisionBaseOf(t, i).data, b.data) {
			t.Errorf("%s is made in different ways", name)
		}
		r, err := New().Verify(t.Context(), &sig.Check{Document: bytes.NewReader(b.data), Roots: []*x509gost.Certificate{revisionBases.root.Certificate}, At: sigtest.Time})
		if err != nil || !r.Passed() || len(r.Signatures) != 1 {
			t.Errorf("%s: %v %s", name, err, say(r))
		}
		if b.length > 0 && int64(len(b.data)) >= b.length {
			t.Errorf("%s has %d bytes, more than the length that it names", name, len(b.data))
		}
		dir := t.TempDir()
		for _, program := range renderers {
			d := program.Draw(t.Context(), t, dir, b.data, resolution)
			if len(d.Pages) != 1 || d.Complaint != "" && name != "role resources" {
				t.Errorf("%s, %s: %d pages, %s", name, program.Name, len(d.Pages), d.Complaint)
			}
			// The contents, the field and both annotations show.
			for what, at := range map[string]image.Point{"square of the contents": {5, 35}, "square": {23, 15}, "cover": {36, 20}} {
				if len(d.Pages) == 1 && d.Pages[0].GrayAt(at.X, at.Y).Y > 200 {
					t.Errorf("%s, %s: the %s does not show", name, program.Name, what)
				}
			}
		}
	}
}

// TestLaterConstructs: the generator makes each kind of revision that was once taken for one
// that changes nothing, and random choices reach all constructs.
func TestLaterConstructs(t *testing.T) {
	for _, one := range constructs {
		p := revisionOf(t, choicesOf(one))
		data := p.write()
		if one.kind == "" || !regexp.MustCompile(one.kind).Match(data[len(p.base.data):]) {
			if one.kind != "" {
				t.Errorf("%s: there is no %s in %q", one.name, one.kind, data[len(p.base.data):])
			}
		}
		if !slices.Equal(p.made, []string{one.name}) || one.base != "" && p.base.name != one.base {
			t.Errorf("%s: made %q of %s", one.name, p.made, p.base.name)
		}
	}
	for _, kind := range []string{
		"font of page and field", "order of annotations", "NeedAppearances", "linearized length", "role of the store", "role of metadata", "role of information",
		"role of a section", "role of resources", "appearance box", "key null second", "string unclosed", "array unclosed", "dictionary opened twice",
		"array end in dictionary", "greater in dictionary", "number before key", "second reference", "dictionary ended by keyword", "reference real",
		"length negative", "length missing, two ends", "length object with another number", "length object and direct", "filter twice, null last", "stream brace",
		"generation one", "generations one and zero", "entry twice", "entry of type 3", "hybrid with two places", "hybrid without the place",
		"index in an object stream", "count of an object stream", "object stream without type", "number twice in an object stream",
		"startxref, a comment, the number", "startxref in a word", "startxref far from the end", "root null first", "root null", "Prev twice, to an older section",
		"XRefStm to an older section", "entry leads to another object", "entry beyond the end and a second body", "trailer unclosed and a second body",
		"comment in a subsection and a second body",
	} {
		if !slices.ContainsFunc(constructs, func(c construct) bool { return c.name == kind }) {
			t.Errorf("there is no construct %q", kind)
		}
	}
	random := rand.NewChaCha8([32]byte{1})
	missing := map[string]bool{}
	for _, one := range constructs {
		missing[one.name] = true
	}
	for range 2000 {
		choices := make([]byte, 16)
		random.Read(choices)
		p := revisionOf(t, choices)
		p.write()
		for _, name := range p.made {
			delete(missing, name)
		}
	}
	if len(missing) > 0 {
		t.Errorf("random choices never make %v", missing)
	}
}

// TestRenderersNotice: a difference that programs see fails the comparison of the fuzz target.
func TestRenderersNotice(t *testing.T) {
	b := revisionBaseOf(t, 0)
	drawn.Lock()
	if drawn.signed == nil {
		drawn.signed, drawn.done = map[string]judge.Drawing{}, map[[32]byte]bool{}
	}
	drawn.Unlock()
	make := func(name string) []byte {
		i := slices.IndexFunc(constructs, func(c construct) bool { return c.name == name })
		return revisionOf(t, []byte{0, byte(i)}).write()
	}
	for name, c := range map[string]struct {
		filled bool
		said   int
	}{
		"written again":          {false, 0},
		"field filled":           {true, 0},
		"order of annotations":   {false, 3},
		"another object":         {false, 3},
		"font of page and field": {true, 3},
	} {
		if said := differences(t, b, make(name), c.filled); len(said) != c.said {
			t.Errorf("%s: %q", name, said)
		}
	}
	if said := differences(t, b, make("field filled"), false); len(said) != 3 {
		t.Errorf("field filled: %q", said)
	}
}
