// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"tamga/internal/judge"
)

var (
	red    = color.NRGBA{220, 30, 30, 255}
	green  = color.NRGBA{30, 160, 60, 255}
	blue   = color.NRGBA{30, 60, 200, 255}
	yellow = color.NRGBA{230, 220, 40, 255}
	clear0 = color.NRGBA{}
	faint  = color.NRGBA{255, 0, 0, 128}
)

// quarters returns an image of four colours: upper left, upper right, lower left, lower
// right.
func quarters(dst interface {
	image.Image
	Set(x, y int, c color.Color)
}, c [4]color.NRGBA) image.Image {
	b := dst.Bounds()
	for y := range b.Dy() {
		for x := range b.Dx() {
			dst.Set(x, y, c[2*(y*2/b.Dy())+x*2/b.Dx()])
		}
	}
	return dst
}

func jpegOf(m image.Image) []byte {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: 95}); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func encoded(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

// exif adds an Exif segment with an orientation, and a comment, to a JPEG file.
func exif(data []byte, orientation byte, little bool) []byte {
	tiff := []byte("MM\x00\x2a\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00")
	tiff[19] = orientation
	if little {
		tiff = []byte("II\x2a\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")
		tiff[18] = orientation
	}
	body := append([]byte("Exif\x00\x00"), tiff...)
	out := append([]byte{0xFF, 0xD8, 0xFF, 0xE1, 0, byte(len(body) + 2)}, body...)
	out = append(out, "\xff\xfe\x00\x10photographed at"[:18]...)
	return append(out, data[2:]...)
}

// cmyk returns a JPEG file of 8 by 8 points in one ink mixture, as Adobe writes it. It is
// built by hand because Go cannot write one.
func cmyk(ink [4]uint8) []byte {
	out := []byte("\xff\xd8\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x00")
	out = append(out, 0xFF, 0xDB, 0, 67, 0)
	out = append(out, bytes.Repeat([]byte{8}, 64)...) // with a step of 8 the cost of a flat block is its value
	out = append(out, 0xFF, 0xC0, 0, 20, 8, 0, 8, 0, 8, 4)
	for c := range byte(4) {
		out = append(out, c+1, 0x11, 0)
	}
	// One code for each size of a difference, 0 to 8, and one for the end of a block.
	out = append(out, 0xFF, 0xC4, 0, 19+9, 0x00, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8)
	out = append(out, 0xFF, 0xC4, 0, 19+1, 0x10, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	out = append(out, 0xFF, 0xDA, 0, 14, 4, 1, 0, 2, 0, 3, 0, 4, 0, 0, 63, 0)
	var bits string
	for _, v := range ink {
		d := int(255-v) - 128
		size, value := 0, d
		for m := max(d, -d); m > 0; m >>= 1 {
			size++
		}
		if d < 0 {
			value = d + 1<<size - 1
		}
		bits += fmt.Sprintf("%04b", size)
		if size > 0 {
			bits += fmt.Sprintf("%0*b", size, value)
		}
		bits += "0"
	}
	bits += strings.Repeat("1", -len(bits)&7)
	for ; bits != ""; bits = bits[8:] {
		var b byte
		fmt.Sscanf(bits[:8], "%b", &b)
		if out = append(out, b); b == 0xFF {
			out = append(out, 0)
		}
	}
	return append(out, 0xFF, 0xD9)
}

// TestImages: two viewers draw every kind of image upright and in its colours.
func TestImages(t *testing.T) {
	v := judge.PDFViewers(t)
	area := image.Rect(0, 0, 40, 40)
	four := [4]color.NRGBA{red, green, blue, yellow}
	var asGIF, asGray16 bytes.Buffer
	palette := color.Palette{red, green, blue, yellow, clear0}
	gif.Encode(&asGIF, quarters(image.NewPaletted(area, palette), [4]color.NRGBA{red, green, clear0, yellow}), nil)
	png.Encode(&asGray16, quarters(image.NewGray16(area), [4]color.NRGBA{{0, 0, 0, 255}, {255, 255, 255, 255}, {128, 128, 128, 255}, {64, 64, 64, 255}}))
	photo := jpegOf(quarters(image.NewNRGBA(area), four))
	page := color.NRGBA{237, 242, 237, 255} // of the test document

	for _, test := range []struct {
		name string
		data string
		want [4]color.NRGBA
	}{
		{"PNG", pngOf(quarters(image.NewNRGBA(area), four)), four},
		{"PNG with transparency", pngOf(quarters(image.NewNRGBA(area), [4]color.NRGBA{red, clear0, faint, yellow})), [4]color.NRGBA{red, page, {246, 121, 118, 255}, yellow}},
		{"PNG with 16 bits", pngOf(quarters(image.NewNRGBA64(area), [4]color.NRGBA{red, clear0, faint, yellow})), [4]color.NRGBA{red, page, {246, 121, 118, 255}, yellow}},
		{"PNG with a palette", pngOf(quarters(image.NewPaletted(area, palette), [4]color.NRGBA{red, clear0, blue, yellow})), [4]color.NRGBA{red, page, blue, yellow}},
		{"PNG in gray", encoded(asGray16.Bytes()), [4]color.NRGBA{{0, 0, 0, 255}, {255, 255, 255, 255}, {128, 128, 128, 255}, {64, 64, 64, 255}}},
		{"GIF", encoded(asGIF.Bytes()), [4]color.NRGBA{red, green, page, yellow}},
		{"JPEG", encoded(photo), four},
		{"JPEG in gray", encoded(jpegOf(quarters(image.NewGray(area), [4]color.NRGBA{{0, 0, 0, 255}, {255, 255, 255, 255}, {128, 128, 128, 255}, {64, 64, 64, 255}}))), [4]color.NRGBA{{0, 0, 0, 255}, {255, 255, 255, 255}, {128, 128, 128, 255}, {64, 64, 64, 255}}},
		{"JPEG as Adobe writes CMYK", encoded(cmyk([4]uint8{0, 255, 255, 0})), [4]color.NRGBA{{237, 28, 36, 255}, {237, 28, 36, 255}, {237, 28, 36, 255}, {237, 28, 36, 255}}},
		{"JPEG mirrored", encoded(exif(photo, 2, false)), [4]color.NRGBA{green, red, yellow, blue}},
		{"JPEG upside down", encoded(exif(photo, 3, true)), [4]color.NRGBA{yellow, blue, green, red}},
		{"JPEG turned over", encoded(exif(photo, 4, false)), [4]color.NRGBA{blue, yellow, red, green}},
		{"JPEG transposed", encoded(exif(photo, 5, true)), [4]color.NRGBA{red, blue, green, yellow}},
		{"JPEG turned right", encoded(exif(photo, 6, false)), [4]color.NRGBA{blue, red, yellow, green}},
		{"JPEG transversed", encoded(exif(photo, 7, true)), [4]color.NRGBA{yellow, green, blue, red}},
		{"JPEG turned left", encoded(exif(photo, 8, false)), [4]color.NRGBA{green, yellow, red, blue}},
		{"JPEG of no orientation", encoded(exif(photo, 77, false)), four},
	} {
		r := sample()
		r.TemplateID = 3
		p := Page{MediaBox: [4]float64{0, 0, 60, 60}}
		a := render(t, r.with(object{"Background": object{"Image": test.data}, "Rect": object{"LowerLeftX": 10, "LowerLeftY": 10, "UpperRightX": 50, "UpperRightY": 50}}), p)
		for _, o := range a.Objects {
			if bytes.Contains(o.Stream, []byte("Exif")) || bytes.Contains(o.Stream, []byte("photographed")) {
				t.Errorf("%s: metadata went along", test.name)
			}
		}
		file := document(p, a)
		v.Check(file)
		for viewer, m := range map[string]image.Image{"poppler": v.Picture(file, 1, 72), "MuPDF": v.PictureByMuPDF(file, 1, 72)} {
			for i, at := range []image.Point{{20, 20}, {40, 20}, {20, 40}, {40, 40}} {
				got := color.NRGBAModel.Convert(m.At(at.X, at.Y)).(color.NRGBA)
				if far(got, test.want[i]) {
					t.Errorf("%s, %s: quarter %d is %v, want %v", viewer, test.name, i, got, test.want[i])
				}
			}
		}
	}
}

// far reports whether colours differ by more than viewers and JPEG do, which render inks
// differently.
func far(a, b color.NRGBA) bool {
	for _, d := range []int{int(a.R) - int(b.R), int(a.G) - int(b.G), int(a.B) - int(b.B)} {
		if d > 45 || d < -45 {
			return true
		}
	}
	return false
}

// TestPlaced: an icon with a place is drawn there, in the requested scale, and inside the
// stamp.
func TestPlaced(t *testing.T) {
	v := judge.PDFViewers(t)
	p := Page{MediaBox: [4]float64{0, 0, 200, 100}}
	r := sample()
	r.TemplateID = 2
	solid := pngOf(quarters(image.NewNRGBA(image.Rect(0, 0, 100, 100)), [4]color.NRGBA{red, red, red, red}))
	a := render(t, r.with(object{
		"Content": []object{}, "Icon": object{"Image": solid, "LowerLeftX": 15, "LowerLeftY": 50, "Scale": 40},
		"Rect": object{"LowerLeftX": 20, "LowerLeftY": 10, "UpperRightX": 180, "UpperRightY": 80, "BorderWeight": 0},
	}), p)
	m := v.Picture(document(p, a), 1, 72)
	for _, test := range []struct {
		x, y int // from the lower left of the page
		red  bool
	}{{36, 61, true}, {34, 61, false}, {36, 58, false}, {74, 79, true}, {76, 79, false}, {50, 82, false}} {
		got := color.NRGBAModel.Convert(m.At(test.x, 99-test.y)).(color.NRGBA)
		if far(got, red) == test.red {
			t.Errorf("at %d, %d: %v", test.x, test.y, got)
		}
	}
}

// TestOpaque: if transparency is forbidden there is none.
func TestOpaque(t *testing.T) {
	v := judge.PDFViewers(t)
	p := Page{MediaBox: [4]float64{0, 0, 60, 60}}
	for _, background := range []any{nil, object{"Red": 0, "Green": 0, "Blue": 255}} {
		r := sample()
		r.TemplateID, r.Opaque = 3, true
		a := render(t, r.with(object{
			"Background": object{"Image": pngOf(quarters(image.NewNRGBA(image.Rect(0, 0, 40, 40)), [4]color.NRGBA{red, clear0, faint, yellow}))},
			"Rect":       object{"LowerLeftX": 10, "LowerLeftY": 10, "UpperRightX": 50, "UpperRightY": 50, "BorderWeight": 0, "ContentMargin": 0, "BackgroundColor": background},
		}), p)
		for _, o := range a.Objects {
			if strings.Contains(o.Dict, "SMask") {
				t.Error("there is a soft mask")
			}
		}
		want := [4]color.NRGBA{red, {255, 255, 255, 255}, {255, 127, 127, 255}, yellow}
		if background != nil {
			want[1], want[2] = color.NRGBA{0, 0, 255, 255}, color.NRGBA{128, 0, 127, 255}
		}
		m := v.Picture(document(p, a), 1, 72)
		for i, at := range []image.Point{{20, 20}, {40, 20}, {20, 40}, {40, 40}} {
			if got := color.NRGBAModel.Convert(m.At(at.X, at.Y)).(color.NRGBA); far(got, want[i]) {
				t.Errorf("background %v: quarter %d is %v, want %v", background, i, got, want[i])
			}
		}
	}
}

// TestBombs: an image with a huge declared size is refused before it is decoded.
func TestBombs(t *testing.T) {
	small, _ := base64.StdEncoding.DecodeString(pngOf(seal(8)))
	huge := bytes.Clone(small)
	be.PutUint32(huge[16:], 60000)
	be.PutUint32(huge[20:], 60000)
	be.PutUint32(huge[29:], crc32.ChecksumIEEE(huge[12:29]))
	photo := jpegOf(seal(8))
	at := bytes.Index(photo, []byte{0xFF, 0xC0})
	be.PutUint16(photo[at+5:], 65000)
	be.PutUint16(photo[at+7:], 65000)
	for _, data := range [][]byte{huge, photo, []byte("GIF89a\xff\xff\xff\xff\x00\x00\x00")} {
		r := sample()
		r.TemplateID = 3
		_, err := tryRender(r.with(object{"Background": object{"Image": encoded(data)}}))
		if err == nil || !strings.Contains(err.Error(), "at most 8 million pixels are accepted") {
			t.Errorf("%.4q: %v", data, err)
		}
	}
}
