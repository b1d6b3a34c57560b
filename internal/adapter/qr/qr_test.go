// SPDX-License-Identifier: Apache-2.0

package qr_test

import (
	"bytes"
	"image/gif"
	"strings"
	"testing"

	"tamga/internal/adapter/qr"
	"tamga/internal/judge"
)

var texts = []string{
	"x",
	`{"type":"Kinit","version":1,"data":{"kid":"123456789012345","uid":"00000000-0000-4000-8000-000000000001","service_url":"https://tamga.example.ru/DssApiGateway","key_content":"nVGNi6o7sPyWYbZkgEbg4oeCsF3RrC3pWkpTUBkAvwQ","activation_required":true,"weakness":false}}`,
	"otpauth://totp/Тамга:Петров?secret=JBSWY3DPEHPK3PXP&issuer=Тамга",
	strings.Repeat("0123456789", 60),
	strings.Repeat("a long text ", 150),
}

// TestZBar checks that another program reads our codes.
func TestZBar(t *testing.T) {
	zbar := judge.ZBar(t)
	for _, text := range texts {
		picture, err := qr.GIF(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := zbar.Read(picture, "gif"); got != text {
			t.Errorf("zbarimg reads %.60q, want %.60q", got, text)
		}
		t.Logf("%d bytes of text, %d of GIF", len(text), len(picture))
		if picture, err = qr.PNG(text); err != nil {
			t.Fatal(err)
		}
		if got := zbar.Read(picture, "png"); got != text {
			t.Errorf("zbarimg reads %.60q in PNG, want %.60q", got, text)
		}
	}
}

// TestShape checks for two colours, a white border and square modules.
func TestShape(t *testing.T) {
	for _, text := range texts {
		picture, err := qr.GIF(text)
		if err != nil {
			t.Fatal(err)
		}
		img, err := gif.Decode(bytes.NewReader(picture))
		if err != nil {
			t.Fatal(err)
		}
		side := img.Bounds().Dx()
		if side != img.Bounds().Dy() || side < 200 || side > 800 {
			t.Errorf("%d bytes of text make a picture of %v", len(text), img.Bounds())
		}
		black := func(x, y int) bool { r, _, _, _ := img.At(x, y).RGBA(); return r == 0 }
		first := 0 // the first corner of the finder pattern
		for !black(first, first) {
			first++
		}
		scale := first / 4
		if first%4 != 0 || scale < 3 || side%scale != 0 {
			t.Errorf("the code begins at %d of %d", first, side)
		}
		for y := range side {
			for x := range side {
				edge := x < first || y < first || x >= side-first || y >= side-first
				if edge && black(x, y) || black(x, y) != black(x/scale*scale, y/scale*scale) {
					t.Fatalf("the pixel %d, %d is wrong", x, y)
				}
			}
		}
	}
}

func TestRefused(t *testing.T) {
	if _, err := qr.GIF(strings.Repeat("x", 3000)); err == nil {
		t.Error("a text of 3000 bytes is accepted")
	}
	if _, err := qr.PNG(strings.Repeat("x", 3000)); err == nil {
		t.Error("a text of 3000 bytes is accepted in PNG")
	}
}

// An error never has the text, which may be the secret of a device. The largest text has a code.
func TestTextStaysOutOfErrors(t *testing.T) {
	secret := "nVGNi6o7sPyWYbZkgEbg4oeCsF3RrC3pWkpTUBkAvwQ"
	for _, long := range []int{qr.MaxText + 1, 1 << 20} {
		_, err := qr.GIF(secret + strings.Repeat("x", long-len(secret)))
		if err == nil || strings.Contains(err.Error(), secret) || len(err.Error()) > 100 {
			t.Errorf("a text of %d bytes: %.200v", long, err)
		}
	}
	if _, err := qr.GIF(strings.Repeat("x", qr.MaxText)); err != nil {
		t.Error("a text of the largest size is refused")
	}
}

func BenchmarkGIF(b *testing.B) {
	for b.Loop() {
		if _, err := qr.GIF(texts[1]); err != nil {
			b.Fatal(err)
		}
	}
}
