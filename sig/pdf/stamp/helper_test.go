// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// a4 is the page that most tests stamp.
var a4 = Page{MediaBox: [4]float64{0, 0, 595, 842}}

// sample returns a request with all values of the default text.
func sample() *Request {
	return &Request{
		Signer:     "Иванов Иван Иванович",
		Position:   "Генеральный директор",
		Serial:     "01D9A2C7F4B8E35000A1B2C3D4E5F601",
		NotBefore:  time.Date(2025, 2, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:   time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC),
		Time:       time.Date(2025, 3, 4, 11, 5, 7, 0, time.UTC),
		Pages:      1,
		TemplateID: 1,
	}
}

type object = map[string]any

// with gives the request an appearance.
func (r *Request) with(appearance object) *Request {
	data, err := json.Marshal(appearance)
	if err != nil {
		panic(err)
	}
	r.Appearance = data
	return r
}

func render(t testing.TB, r *Request, p Page) *Appearance {
	t.Helper()
	a, err := Render(r, func(int) (Page, error) { return p, nil })
	if err != nil {
		t.Fatal(err)
	}
	return a
}

var reference = regexp.MustCompile(`\{(\d+)\}`)

// document adds stamps to one page and writes a file with nothing else. The fields have
// an empty value, because MuPDF draws its own mark over fields without one.
func document(p Page, stamps ...*Appearance) []byte {
	var body bytes.Buffer
	var offsets []int
	add := func(dict string, stream []byte) {
		offsets = append(offsets, body.Len())
		fmt.Fprintf(&body, "%d 0 obj\n", len(offsets))
		if stream == nil {
			body.WriteString(dict)
		} else {
			fmt.Fprintf(&body, "%s /Length %d >>\nstream\n%s\nendstream", dict[:len(dict)-2], len(stream), stream)
		}
		body.WriteString("\nendobj\n")
	}
	body.WriteString("%PDF-1.7\n%\xE2\xE3\xCF\xD3\n")
	const first = 5
	next, fields := first, ""
	for _, s := range stamps {
		fields += fmt.Sprintf("%d 0 R ", next)
		next += 1 + len(s.Objects)
	}
	page := fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [ %v %v %v %v ]", p.MediaBox[0], p.MediaBox[1], p.MediaBox[2], p.MediaBox[3])
	if p.CropBox != [4]float64{} {
		page += fmt.Sprintf(" /CropBox [ %v %v %v %v ]", p.CropBox[0], p.CropBox[1], p.CropBox[2], p.CropBox[3])
	}
	if p.UserUnit != 0 {
		page += fmt.Sprintf(" /UserUnit %v", p.UserUnit)
	}
	add("<< /Type /Catalog /Pages 2 0 R /AcroForm << /SigFlags 3 /Fields [ "+fields+"] >> >>", nil)
	add("<< /Type /Pages /Kids [ 3 0 R ] /Count 1 >>", nil)
	add(page+fmt.Sprintf(" /Rotate %d /Resources << >> /Contents 4 0 R /Annots [ %s] >>", p.Rotate, fields), nil)
	add("<< >>", []byte("0.93 0.95 0.93 rg -5000 -5000 20000 20000 re f"))
	for i, s := range stamps {
		form := len(offsets) + 2
		add(fmt.Sprintf("<< /Type /Annot /Subtype /Widget /FT /Sig /T (S%d) /F 132 /V << /Type /Sig /Filter /Adobe.PPKLite /SubFilter /adbe.pkcs7.detached /ByteRange [ 0 0 0 0 ] /Contents <00> >> /Rect [ %s %s %s %s ] /P 3 0 R /AP << /N %d 0 R >> >>",
			i, num(s.Rect[0]), num(s.Rect[1]), num(s.Rect[2]), num(s.Rect[3]), form), nil)
		for _, o := range s.Objects {
			add(reference.ReplaceAllStringFunc(o.Dict, func(m string) string {
				n, _ := strconv.Atoi(m[1 : len(m)-1])
				return fmt.Sprintf("%d 0 R", form+n)
			}), o.Stream)
		}
	}
	start := body.Len()
	fmt.Fprintf(&body, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, o := range offsets {
		fmt.Fprintf(&body, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(&body, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, start)
	return body.Bytes()
}

// added returns how many bytes a stamp adds to a file.
func added(a *Appearance) int {
	n := 0
	for _, o := range a.Objects {
		n += len(o.Dict) + len(o.Stream)
	}
	return n
}

// seal returns an image of a seal: a blue ring with an arrow up, the rest transparent.
func seal(size int) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, size, size))
	c := float64(size) / 2
	for y := range size {
		for x := range size {
			dx, dy := float64(x)+0.5-c, float64(y)+0.5-c
			d := (dx*dx + dy*dy) / (c * c)
			blue := color.NRGBA{30, 60, 170, 255}
			switch {
			case d > 0.75 && d < 0.98, d < 0.5 && dy < 0 && dx*dx < dy*dy/4, d < 0.4 && dy >= 0 && dx*dx < c*c/150:
				m.SetNRGBA(x, y, blue)
			case d < 0.75:
				blue.A = 40
				m.SetNRGBA(x, y, blue)
			}
		}
	}
	return m
}

func pngOf(m image.Image) string {
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}
