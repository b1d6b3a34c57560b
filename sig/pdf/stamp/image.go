// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"strings"

	"tamga/sig/budget"
)

// graphic is an image of a request, ready to be embedded.
type graphic struct {
	width, height int // pixels, as stored
	orientation   orientation
	kind          string   // the media type of source
	source        []byte   // the file, upright in browsers
	objects       []Object // the image XObject and, if it has one, its soft mask, which the image refers to as {mask}
}

// formats are the supported kinds of image, recognised by their first bytes.
var formats = []struct {
	name, magic string
	config      func(io.Reader) (image.Config, error)
	decode      func(io.Reader) (image.Image, error)
}{
	{"PNG", "\x89PNG\r\n\x1a\n", png.DecodeConfig, png.Decode},
	{"JPEG", "\xff\xd8\xff", jpeg.DecodeConfig, jpeg.Decode},
	{"GIF", "GIF8", gif.DecodeConfig, gif.Decode},
}

// maxPixels bounds the memory of one image to about 120 MB, for any kind. It is a page at
// 300 dots per inch. A file of some KB can have so many.
const maxPixels = 8 << 20

const (
	// pixelMemory is how many bytes of memory a pixel takes while an image is converted: at most
	// 8 as decoded, or 15 in a progressive JPEG, and up to 6 as it is written.
	pixelMemory = 16
	// chargedPixels is the size from which an image is converted while no other is. Smaller ones,
	// as logos are, are charged to the document.
	chargedPixels = 256 << 10
)

// ground is the background of an image.
type ground struct {
	opaque bool // transparency is not allowed
	colour rgb  // of the stamp behind the image
}

// readImage decodes an image from Base64. Stamps are drawn again and again with the same
// logo, so the result is cached for a while.
//
// The error is a *ParamError, or that of the budget.
func readImage(p *picture, g ground, b *budget.Budget) (*graphic, error) {
	key := keyOf(p.image, g)
	if m := kept.get(key); m != nil {
		return m, nil
	}
	data, fault := decodeBase64(p.image)
	var m *graphic
	if fault != nil {
		fault = fmt.Errorf("is not Base64: %v", fault)
	} else {
		m, fault = convert(data, g, b)
	}
	switch {
	case fault != nil && b.Err() != nil:
		return nil, b.Err()
	case fault != nil:
		return nil, &ParamError{paramAppearance, p.path + ": " + fault.Error()}
	}
	kept.put(key, m)
	return m, nil
}

// charge has the memory that so many pixels take before they are decoded.
func charge(b *budget.Budget, pixels int) (end func(), err error) {
	if pixels > chargedPixels {
		return b.Alone()
	}
	n := pixelMemory * int64(pixels)
	if err := b.Hold(n); err != nil {
		return nil, err
	}
	return func() { b.Release(n) }, nil
}

func convert(data []byte, g ground, b *budget.Budget) (*graphic, error) {
	for _, f := range formats {
		if !bytes.HasPrefix(data, []byte(f.magic)) {
			continue
		}
		config, err := f.config(bytes.NewReader(data))
		if err != nil {
			return nil, fmt.Errorf("is a broken %s image: %v", f.name, err)
		}
		if config.Width <= 0 || config.Height <= 0 || config.Width > maxPixels/config.Height {
			return nil, fmt.Errorf("is a %s image of %d by %d pixels; at most 8 million pixels are accepted", f.name, config.Width, config.Height)
		}
		end, err := charge(b, config.Width*config.Height)
		if err != nil {
			return nil, err
		}
		defer end()
		// A JPEG is embedded unchanged, but it is decoded too: a broken one must not
		// become a stamp that viewers cannot show.
		pixels, err := f.decode(bytes.NewReader(data))
		if err != nil {
			return nil, fmt.Errorf("is a broken %s image: %v", f.name, err)
		}
		size := pixels.Bounds().Size()
		if size.X <= 0 || size.Y <= 0 {
			return nil, fmt.Errorf("is a %s image without pixels", f.name)
		}
		m := &graphic{width: size.X, height: size.Y, kind: "image/" + strings.ToLower(f.name), source: data}
		if f.name == "JPEG" {
			data, m.orientation = stripJPEG(data)
			m.objects = []Object{jpegObject(data, pixels)}
		} else {
			m.objects = pixelObjects(pixels, g)
		}
		return m, nil
	}
	return nil, errors.New("is not an image of a known kind; PNG, JPEG or GIF expected")
}

// decodeBase64 decodes Base64 as clients write it: with or without padding, with line
// breaks, as a data URL.
func decodeBase64(s string) ([]byte, error) {
	if strings.HasPrefix(s, "data:") {
		_, s, _ = strings.Cut(s, ",")
	}
	s = strings.Map(func(r rune) rune {
		if r == ' ' || r == '\t' || r == '\r' || r == '\n' {
			return -1
		}
		return r
	}, s)
	return base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
}

// size returns the size of the image as shown, in pixels.
func (m *graphic) size() (width, height float64) {
	if m.orientation.sideways() {
		return float64(m.height), float64(m.width)
	}
	return float64(m.width), float64(m.height)
}

const imageHead = "/Type /XObject /Subtype /Image"

// jpegObject embeds a JPEG file unchanged. pixels is its decoded content.
func jpegObject(data []byte, pixels image.Image) Object {
	space := "/DeviceRGB"
	switch pixels.(type) {
	case *image.Gray:
		space = "/DeviceGray"
	case *image.CMYK:
		// The decoder accepts only those by Adobe, which store the inverse of every ink.
		space = "/DeviceCMYK /Decode [ 1 0 1 0 1 0 1 0 ]"
	}
	size := pixels.Bounds().Size()
	return Object{
		Dict:   fmt.Sprintf("<< %s /Width %d /Height %d /BitsPerComponent 8 /ColorSpace %s /Filter /DCTDecode >>", imageHead, size.X, size.Y, space),
		Stream: data,
	}
}

func pixelObjects(src image.Image, g ground) []Object {
	colours, alpha := split(src, g)
	if alpha == nil {
		return []Object{pixelObject(imageHead, colours)}
	}
	return []Object{pixelObject(imageHead+" /SMask {mask}", colours), pixelObject(imageHead, alpha)}
}

// split separates the colours of an image from its transparency, nil if there is none.
// Fully transparent pixels become white, because that compresses well.
func split(src image.Image, g ground) (colours image.Image, alpha *image.Gray) {
	b := src.Bounds()
	area := image.Rect(0, 0, b.Dx(), b.Dy())
	full := image.NewNRGBA(area)
	gray := true
	at := func(x, y int) color.NRGBA { return color.NRGBAModel.Convert(src.At(x, y)).(color.NRGBA) }
	if plain, ok := src.(*image.NRGBA); ok {
		at = plain.NRGBAAt // the common kind, without a conversion for every pixel
	}
	for y := range area.Dy() {
		for x := range area.Dx() {
			c := at(b.Min.X+x, b.Min.Y+y)
			if c.A != 0xFF {
				if g.opaque {
					c = over(c, g.colour)
				} else {
					if alpha == nil {
						alpha = image.NewGray(area)
						for i := range alpha.Pix {
							alpha.Pix[i] = 0xFF
						}
					}
					alpha.Pix[alpha.PixOffset(x, y)] = c.A
					if c.A == 0 {
						c = color.NRGBA{R: 0xFF, G: 0xFF, B: 0xFF}
					}
				}
			}
			c.A = 0xFF
			gray = gray && c.R == c.G && c.G == c.B
			full.SetNRGBA(x, y, c)
		}
	}
	if !gray {
		return full, alpha
	}
	shades := image.NewGray(area)
	for i := range shades.Pix {
		shades.Pix[i] = full.Pix[4*i]
	}
	return shades, alpha
}

// over draws a colour over an opaque background.
func over(c color.NRGBA, background rgb) color.NRGBA {
	mix := func(v uint8, b float64) uint8 {
		a := float64(c.A) / 255
		return uint8(float64(v)*a + b*(1-a) + 0.5)
	}
	return color.NRGBA{mix(c.R, background[0]), mix(c.G, background[1]), mix(c.B, background[2]), 0xFF}
}

// pixelObject writes an image without transparency. The data of a PNG image is what
// FlateDecode with PNG prediction decodes (ISO 32000-1, 7.4.4.4), so the PNG encoder
// writes it.
func pixelObject(head string, src image.Image) Object {
	var b bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.DefaultCompression}
	if err := encoder.Encode(&b, src); err != nil {
		panic("stamp: a picture of bounded size did not encode: " + err.Error()) // a buffer never fails
	}
	var data []byte
	for at := b.Bytes()[8:]; len(at) >= 12; {
		size := int(be.Uint32(at))
		if string(at[4:8]) == "IDAT" {
			data = append(data, at[8:8+size]...)
		}
		at = at[12+size:]
	}
	space, components := "/DeviceRGB", 3
	if _, gray := src.(*image.Gray); gray {
		space, components = "/DeviceGray", 1
	}
	size := src.Bounds().Size()
	return Object{
		Dict: fmt.Sprintf("<< %s /Width %d /Height %d /ColorSpace %s /BitsPerComponent 8 /Filter /FlateDecode /DecodeParms << /Predictor 15 /Colors %d /BitsPerComponent 8 /Columns %d >> >>",
			head, size.X, size.Y, space, components, size.X),
		Stream: data,
	}
}
