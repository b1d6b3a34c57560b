// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"errors"
	"fmt"
	"image"
	"math"
	"strings"
	"testing"

	"tamga/internal/judge"
)

// TestRectangle: coordinates are points of the page as shown, for any rotation, CropBox
// and unit.
func TestRectangle(t *testing.T) {
	asked := object{"Rect": object{"LowerLeftX": 30, "LowerLeftY": 40, "UpperRightX": 130, "UpperRightY": 60}}
	crop := [4]float64{50, 100, 450, 700} // 400 by 600
	for _, test := range []struct {
		rotate int
		unit   float64
		want   [4]float64
		matrix string
	}{
		{0, 0, [4]float64{80, 140, 180, 160}, ""},
		{90, 0, [4]float64{390, 130, 410, 230}, "/Matrix [ 0 1 -1 0 20 0 ]"},
		{180, 0, [4]float64{320, 640, 420, 660}, "/Matrix [ -1 0 0 -1 100 20 ]"},
		{270, 0, [4]float64{90, 570, 110, 670}, "/Matrix [ 0 -1 1 0 0 100 ]"},
		{-90, 0, [4]float64{90, 570, 110, 670}, "/Matrix [ 0 -1 1 0 0 100 ]"},
		{450, 0, [4]float64{390, 130, 410, 230}, "/Matrix [ 0 1 -1 0 20 0 ]"},
		{45, 0, [4]float64{80, 140, 180, 160}, ""},
		{0, 2, [4]float64{65, 120, 115, 130}, ""},
		{90, 2, [4]float64{420, 115, 430, 165}, "/Matrix [ 0 1 -1 0 20 0 ]"},
		{0, math.NaN(), [4]float64{80, 140, 180, 160}, ""},
	} {
		p := Page{MediaBox: [4]float64{0, 900, 600, 0}, CropBox: crop, Rotate: test.rotate, UserUnit: test.unit}
		a := render(t, sample().with(asked), p)
		if a.Rect != test.want {
			t.Errorf("rotated by %d, unit %v: %v, want %v", test.rotate, test.unit, a.Rect, test.want)
		}
		dict := a.Objects[0].Dict
		if !strings.Contains(dict, "/BBox [ 0 0 100 20 ] "+test.matrix) || test.matrix == "" && strings.Contains(dict, "/Matrix") {
			t.Errorf("rotated by %d: %s, want %q", test.rotate, dict, test.matrix)
		}
		// An existing field at that place gets the same stamp.
		f := sample()
		f.Field = &Field{Rect: [4]float64{test.want[2], test.want[1], test.want[0], test.want[3]}}
		b := render(t, f.with(object{"Rect": object{"BorderWeight": 1}}), p)
		if b.Rect != test.want || b.Objects[0].Dict != dict {
			t.Errorf("rotated by %d, in a field: %v, %s", test.rotate, b.Rect, b.Objects[0].Dict)
		}
	}
}

// TestOntoPage: a rectangle that would leave the page is moved, and a larger one is cut.
func TestOntoPage(t *testing.T) {
	for _, test := range []struct{ asked, want [4]float64 }{
		{[4]float64{500, 800, 700, 860}, [4]float64{395, 782, 595, 842}},
		{[4]float64{-50, -20, 50, 20}, [4]float64{0, 0, 100, 40}},
		{[4]float64{-100, 100, 800, 150}, [4]float64{0, 100, 595, 150}},
	} {
		c := test.asked
		a := render(t, sample().with(object{"Rect": object{"LowerLeftX": c[0], "LowerLeftY": c[1], "UpperRightX": c[2], "UpperRightY": c[3]}}), a4)
		if a.Rect != test.want {
			t.Errorf("%v became %v, want %v", c, a.Rect, test.want)
		}
	}
}

// TestOddPages: pages that no viewer can use do not prevent a signature.
func TestOddPages(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, p := range []Page{
		{},
		{MediaBox: [4]float64{nan, 0, inf, 5}},
		{MediaBox: [4]float64{0, 0, 595, 842}, CropBox: [4]float64{900, 900, 1000, 1000}},
		{MediaBox: [4]float64{0, 0, 595, 842}, CropBox: [4]float64{nan, 0, 1, 1}, UserUnit: inf, Taken: [][4]float64{{nan, 0, inf, 2}}},
		{MediaBox: [4]float64{0, 0, 3, 3}},
		{MediaBox: [4]float64{0, 0, 1e-7, 1e-7}},
		{MediaBox: [4]float64{-1e8, -1e8, 1e8, 1e8}, UserUnit: 75000},
	} {
		for _, template := range []int{1, 2, 3} {
			r := sample()
			r.TemplateID = template
			a := render(t, r.with(object{"Icon": object{"Image": pngOf(seal(8))}}), p)
			for _, v := range a.Rect {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					t.Errorf("%+v: %v", p, a.Rect)
				}
			}
		}
	}
}

// TestFree: stamps without a place stay on the page and do not overlap.
func TestFree(t *testing.T) {
	for _, rotate := range []int{0, 90, 180, 270} {
		p := Page{MediaBox: [4]float64{0, 0, 595, 842}, CropBox: [4]float64{20, 30, 590, 800}, Rotate: rotate}
		crop := corners(p.CropBox)
		var placed []rect
		for i := range 8 {
			r := sample()
			if i%2 == 1 {
				r.TemplateID = 2
				r.with(object{"Icon": object{"Image": pngOf(seal(8))}})
			}
			a := render(t, r, p)
			got := corners(a.Rect)
			if got.cut(crop) != got {
				t.Errorf("rotated by %d: %v leaves the page", rotate, a.Rect)
			}
			for _, other := range placed {
				if got.meets(other) {
					t.Errorf("rotated by %d: %v covers %v", rotate, got, other)
				}
			}
			placed = append(placed, got)
			p.Taken = append(p.Taken, a.Rect)
		}
		// A full page gets one more stamp, in the corner.
		p.Taken = [][4]float64{{0, 0, 600, 900}}
		if got := corners(render(t, sample(), p).Rect); got != placed[0] {
			t.Errorf("rotated by %d, full: %v, want %v", rotate, got, placed[0])
		}
	}
}

func TestPages(t *testing.T) {
	r := sample()
	r.Pages = 7
	var asked []int
	a, err := Render(r.with(object{"Page": 7}), func(n int) (Page, error) { asked = append(asked, n); return a4, nil })
	if err != nil || a.Page != 6 || fmt.Sprint(asked) != "[6]" {
		t.Errorf("page %v, asked for %v: %v", a, asked, err)
	}
	var param *ParamError
	for _, f := range []*Field{{Page: 7, Rect: [4]float64{0, 0, 9, 9}}, {Page: -1, Rect: [4]float64{0, 0, 9, 9}}} {
		r.Field = f
		if _, err := tryRender(r); !errors.As(err, &param) {
			t.Errorf("a field on page %d: %v", f.Page, err)
		}
	}
}

// TestUpright: two viewers show the same picture on a rotated page as on an upright one.
func TestUpright(t *testing.T) {
	v := judge.PDFViewers(t)
	upright := Page{MediaBox: [4]float64{0, 0, 400, 300}}
	r := sample()
	r.TemplateID = 2
	r.with(object{"Icon": object{"Image": pngOf(seal(100))}, "Rect": object{"LowerLeftX": 40, "LowerLeftY": 50, "UpperRightX": 300, "UpperRightY": 150}})
	draw := map[string]func([]byte, int, int) image.Image{"poppler": v.Picture, "MuPDF": v.PictureByMuPDF}
	for name, picture := range draw {
		want := picture(document(upright, render(t, r, upright)), 1, 72)
		for _, test := range []Page{
			{MediaBox: [4]float64{0, 0, 400, 300}, Rotate: 180},
			{MediaBox: [4]float64{0, 0, 300, 400}, Rotate: 90},
			{MediaBox: [4]float64{0, 0, 300, 400}, Rotate: 270},
			{MediaBox: [4]float64{-50, -60, 800, 900}, CropBox: [4]float64{10, 20, 310, 420}, Rotate: 90},
			{MediaBox: [4]float64{-50, -60, 800, 900}, CropBox: [4]float64{10, 20, 410, 320}},
		} {
			got := picture(document(test, render(t, r, test)), 1, 72)
			area := image.Rect(30, 140, 310, 260) // the stamp, from the top
			if d := difference(want, got, area); d > 0.02 {
				t.Errorf("%s, %+v: the pictures differ by %.3f", name, test, d)
			}
		}
		// The measure detects a rotated stamp.
		turned := render(t, r, upright)
		turned.Objects[0].Dict = strings.Replace(turned.Objects[0].Dict, "/BBox", "/Matrix [ -1 0 0 -1 260 100 ] /BBox", 1)
		if d := difference(want, picture(document(upright, turned), 1, 72), image.Rect(30, 140, 310, 260)); d < 0.05 {
			t.Errorf("%s: a stamp upside down differs by only %.3f", name, d)
		}
	}
}

// difference returns the mean difference of two pictures in an area, from 0 to 1. It is 1
// if the sizes differ.
func difference(a, b image.Image, area image.Rectangle) float64 {
	if a.Bounds() != b.Bounds() {
		return 1
	}
	sum, n := 0.0, 0
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			r1, g1, b1, _ := a.At(x, y).RGBA()
			r2, g2, b2, _ := b.At(x, y).RGBA()
			for _, pair := range [][2]uint32{{r1, r2}, {g1, g2}, {b1, b2}} {
				sum += math.Abs(float64(pair[0])-float64(pair[1])) / 0xFFFF
				n++
			}
		}
	}
	return sum / float64(n)
}
