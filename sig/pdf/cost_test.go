// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tamga/internal/sigtest"
	"tamga/internal/testsize"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/budget"
)

// revisions returns a document with so many objects and signature fields. Each signature
// covers one revision more. Each message has contents bytes, all in the first revision,
// and a comment of pad bytes follows them, so the holes are before nearly all covered
// bytes.
func revisions(objects, signatures, contents, pad int) []byte {
	var b bytes.Buffer
	at := map[int]int{}
	object := func(num int, text string) {
		at[num] = b.Len()
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", num, text)
	}
	b.WriteString("%PDF-1.7\n")
	field, value, filler := 4, 4+signatures, 4+2*signatures
	var fields strings.Builder
	for i := range signatures {
		fmt.Fprintf(&fields, "%d 0 R ", field+i)
	}
	object(1, "<</Type/Catalog/Pages 2 0 R/AcroForm<</SigFlags 3/Fields["+fields.String()+"]>>>>")
	object(2, "<</Type/Pages/Kids[3 0 R]/Count 1>>")
	object(3, "<</Type/Page/Parent 2 0 R/MediaBox[0 0 10 10]>>")
	const width = 10
	message := strings.Repeat("30", contents)
	for i := range signatures {
		object(field+i, fmt.Sprintf("<</FT/Sig/T(S%d)/V %d 0 R>>", i, value+i))
		object(value+i, "<</Type/Sig/SubFilter/adbe.pkcs7.detached/ByteRange[0 "+strings.Repeat("_", 3*width+2)+"]/Contents<"+message+">>>")
	}
	for i := range objects {
		object(filler+i, "<</A 3 0 R/B 2 0 R>>")
	}
	if pad > 0 {
		b.WriteString("%" + strings.Repeat("x", pad) + "\n")
	}
	size := filler + objects
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", size)
	for n := 1; n < size; n++ {
		fmt.Fprintf(&b, "%010d 00000 n \n", at[n])
	}
	fmt.Fprintf(&b, "trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", size, start)
	ends := make([]int, signatures)
	for i := range signatures {
		object(size, fmt.Sprintf("<</New %d>>", i))
		previous := start
		start = b.Len()
		fmt.Fprintf(&b, "xref\n%d 1\n%010d 00000 n \n", size, at[size])
		size++
		fmt.Fprintf(&b, "trailer\n<</Size %d/Root 1 0 R/Prev %d>>\nstartxref\n%d\n%%%%EOF\n", size, previous, start)
		ends[i] = b.Len()
	}
	out := b.Bytes()
	for i := range signatures {
		place := out[at[value+i]:]
		from := bytes.Index(place, []byte("/Contents<")) + len("/Contents")
		to := from + bytes.IndexByte(place[from:], '>') + 1
		from, to = from+at[value+i], to+at[value+i]
		hole := bytes.Index(place, []byte("___"))
		copy(place[hole:], fmt.Sprintf("%0*d %0*d %0*d", width, from, width, to, width, ends[i]-to))
	}
	return out
}

func judged(data []byte, l budget.Limits) (*sig.Report, *budget.Budget, error) {
	ctx := budget.With(context.Background(), l)
	r, err := New().Verify(ctx, &sig.Check{Document: sigtest.Document(data), At: sigtest.Time})
	_, b := budget.Of(ctx, 0)
	return r, b, err
}

// Many signatures over a document of many objects, over a large document, and with large
// messages: each is refused for its cost, which was counted.
func TestCosts(t *testing.T) {
	if testsize.Of() == testsize.Quick {
		t.Skip("large documents")
	}
	for name, test := range map[string]struct {
		data []byte
		want error
	}{
		"256 fields and 10,000 objects": {revisions(10_000, 256, 16, 0), budget.ErrSteps},
		"256 fields over 8 MiB":         {revisions(10, 256, 16, 8<<20), budget.ErrSteps},
		"256 messages of 200 KB":        {revisions(10, 250, 200<<10, 0), budget.ErrMemory},
		"20 signatures, 5,000 objects":  {revisions(5_000, 20, 4<<10, 0), nil}, // a typical document
	} {
		t.Run(name, func(t *testing.T) {
			limits := budget.Anonymous()
			r, b, err := judged(test.data, limits)
			if !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
			if err == nil && (len(r.Signatures) != 20 || b.Spent() > limits.Steps/2 || b.Held() > limits.Memory/2) {
				t.Errorf("%d signatures, %d steps, %d KiB", len(r.Signatures), b.Spent(), b.Held()>>10)
			}
			if b.Spent() > limits.Steps+limits.Steps/4 {
				t.Errorf("%d steps, at most %d allowed", b.Spent(), limits.Steps)
			}
			var document *sig.ErrDocument
			if test.want != nil && !errors.As(err, &document) {
				t.Errorf("%v is no fault of the document", err)
			}
		})
	}
}

// Nested beginnings of one file are hashed once, with the same result as one by one.
func TestPrefixes(t *testing.T) {
	data := revisions(10, 20, 16, 1<<20)
	f, err := open(context.Background(), bytes.NewReader(data), int64(len(data)), nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []*signature
	for _, d := range f.form().signatures {
		all = append(all, f.signature(d))
	}
	counted := &counting{Reader: bytes.NewReader(data)}
	p := newPrefixes(counted, all, nil)
	var tails int64
	for _, s := range all {
		if s.broken {
			t.Fatalf("%+v", s.findings)
		}
		for _, h := range []*suite.Hash{suite.Streebog256, suite.GOST94, suite.SHA256} {
			whole := slices.Concat(data[:s.from], data[s.to:s.end])
			c := covered{counted, s.from, s.to, s.end, p}
			got, err := c.Digests(context.Background(), h)
			if err != nil || !bytes.Equal(got[0].Sum, h.Digest(whole).Sum) {
				t.Fatalf("%s: %v", h.Name, err)
			}
			tails += s.end - s.to
		}
	}
	if most := tails + 3*p.at[len(p.at)-1]; counted.read > most {
		t.Errorf("%d bytes were read, at most %d expected", counted.read, most)
	}
}

// The bytes that 50 signatures cover are hashed once, and of each revision only its own end.
func TestPrefixesOfManySignatures(t *testing.T) {
	root, signer := party(t)
	data := formDocument()
	for range 50 {
		data = signedBy(t, signer, data, nil)
	}
	counted := &counting{Reader: bytes.NewReader(data)}
	var all []*signature
	f, err := open(context.Background(), bytes.NewReader(data), int64(len(data)), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.form().signatures {
		all = append(all, f.signature(d))
	}
	p := newPrefixes(counted, all, nil)
	var ends int64
	for _, s := range all {
		ends += s.end - s.to
		for range 2 {
			got, err := covered{counted, s.from, s.to, s.end, p}.Digests(context.Background(), suite.SHA256)
			if want := suite.SHA256.Digest(slices.Concat(data[:s.from], data[s.to:s.end])); err != nil || !bytes.Equal(got[0].Sum, want.Sum) {
				t.Fatal(err)
			}
		}
	}
	if len(all) != 50 || counted.read != p.at[len(p.at)-1]+ends || ends > int64(len(data)) {
		t.Errorf("%d signatures over %d bytes: %d bytes were hashed, of them %d behind the holes", len(all), len(data), counted.read, ends)
	}
	r, err := New().Verify(context.Background(), &sig.Check{Document: bytes.NewReader(data), Roots: []*x509gost.Certificate{root.Certificate}, At: sigtest.Time})
	if err != nil || !r.Passed() || len(r.Signatures) != 50 {
		t.Errorf("%v %+v", err, r)
	}
}

// counting counts the bytes that are read.
type counting struct {
	*bytes.Reader
	read int64
}

func (c *counting) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.Reader.ReadAt(p, off)
	c.read += int64(n)
	return n, err
}
