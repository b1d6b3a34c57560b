// SPDX-License-Identifier: Apache-2.0

// Package qr makes pictures of QR codes. Begin with GIF or PNG. It does not read codes.
package qr

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/png"

	"github.com/boombuler/barcode/qr"
)

const (
	quiet    = 4   // width of the white border in modules (ISO/IEC 18004, 9.1)
	wanted   = 400 // approximate length of a side in pixels
	smallest = 3   // smallest side of a module in pixels

	// MaxText is the largest text in bytes: a code of the greatest size with the correction M
	// (ISO/IEC 18004, table 7).
	MaxText = 2331
)

// GIF returns a GIF in two colours with the code of a text of at most [MaxText] bytes of UTF-8.
// The code stays readable if up to a seventh of it is damaged.
func GIF(text string) ([]byte, error) {
	picture, err := paint(text)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := gif.Encode(&out, picture, &gif.Options{NumColors: 2}); err != nil {
		return nil, fmt.Errorf("qr: %w", err)
	}
	return out.Bytes(), nil
}

// PNG is GIF in the format PNG.
func PNG(text string) ([]byte, error) {
	picture, err := paint(text)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := png.Encode(&out, picture); err != nil {
		return nil, fmt.Errorf("qr: %w", err)
	}
	return out.Bytes(), nil
}

func paint(text string) (*image.Paletted, error) {
	if len(text) > MaxText {
		return nil, fmt.Errorf("qr: a text of %d bytes; want at most %d", len(text), MaxText)
	}
	code, err := qr.Encode(text, qr.M, qr.Auto)
	if err != nil {
		// Not the error itself: it has the text, which may be the secret of a device.
		return nil, fmt.Errorf("qr: a text of %d bytes cannot be encoded", len(text))
	}
	modules := code.Bounds().Dx()
	scale := max(smallest, wanted/(modules+2*quiet))
	side := (modules + 2*quiet) * scale
	picture := image.NewPaletted(image.Rect(0, 0, side, side), color.Palette{color.White, color.Black})
	for y := range modules {
		for x := range modules {
			if code.At(x, y) != color.Black {
				continue
			}
			left := (quiet + x) * scale
			for row := range scale {
				start := picture.PixOffset(left, (quiet+y)*scale+row)
				for i := range scale {
					picture.Pix[start+i] = 1
				}
			}
		}
	}
	return picture, nil
}
