// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/page"
)

// mockups are the files of a folder of mock-ups, by the name of the row whose page is beside it.
var mockups = map[string]string{
	"front": "01-front", "sign-in-step-device": "02-second-step-device", "sign-drop": "04-sign-drop", "verify-unknown": "06-verify-unknown",
	"confirm-device": "07-confirm-device", "confirm-passkey": "07-confirm-passkey", "confirm-done": "07-confirm-done", "operator-request": "11-request", "sign-looks": "12-stamp",
	"sign-in": "02-sign-in", "sign-in-step": "02-second-step", "start": "03-start", "newcomer-start": "03-start-new",
	"sign": "04-sign-empty", "sign-stamp": "04-sign", "signed": "05-signed", "verify": "06-verify", "verified": "06-verify-valid", "verified-many": "06-verify-many",
	"verified-failed": "06-verify-changed", "verify-alone": "06-verify-no-document", "confirm-waiting": "07-confirm-list", "confirm-choice": "07-confirm",
	"confirm-code": "07-confirm-code", "signatures": "08-signatures", "signature": "08-signature", "certificates": "09-certificates", "certificate": "09-certificate",
	"certificate-request": "09-request", "devices": "10-devices", "newcomer-activation": "10-activate", "operator-people": "11-people", "operator-person": "11-person",
	"operator-register": "11-register", "operator-audit": "11-audit", "operator-installation": "11-state", "report-stored": "12-report", "components": "components",
}

// TestSheets puts the picture of each page that TestPages and TestOperatorDecides have made into a sheet, beside its mock-up, for
// people who compare them. The folder of the mock-ups is TAMGA_MOCKUPS, and TAMGA_SCREENSHOTS has the pictures and gets the sheets.
func TestSheets(t *testing.T) {
	folder, pictures := os.Getenv("TAMGA_MOCKUPS"), os.Getenv("TAMGA_SCREENSHOTS")
	if folder == "" || pictures == "" {
		t.Skip("TAMGA_MOCKUPS and TAMGA_SCREENSHOTS name no folders")
	}
	files := httptest.NewServer(http.FileServer(http.Dir(folder)))
	t.Cleanup(files.Close)
	s := start(t)
	l := looks[1]
	made := 0
	for name, mockup := range mockups {
		text, err := os.ReadFile(filepath.Join(pictures, name+"-"+l.name+".png"))
		if errors.Is(err, fs.ErrNotExist) {
			continue // TestPages was run for some pages
		}
		if err != nil {
			t.Fatal(err)
		}
		b := s.tab(t, l)
		b.navigate(files.URL + "/" + mockup + ".html")
		b.until(`document.readyState === "complete" && document.title !== ""`)
		wanted := call(b, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: new(true)}).Data
		sheet, err := beside(text, wanted)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := os.WriteFile(filepath.Join(pictures, "sheet-"+name+".png"), sheet, 0o644); err != nil {
			t.Fatal(err)
		}
		made++
	}
	if made == 0 {
		t.Errorf("%s has no picture of a page: run TestPages/%s first", pictures, l.name)
	}
}

// beside returns a picture of two pictures side by side.
func beside(left, right []byte) ([]byte, error) {
	a, err := png.Decode(bytes.NewReader(left))
	if err != nil {
		return nil, err
	}
	b, err := png.Decode(bytes.NewReader(right))
	if err != nil {
		return nil, err
	}
	const gap = 24
	sheet := image.NewRGBA(image.Rect(0, 0, a.Bounds().Dx()+gap+b.Bounds().Dx(), max(a.Bounds().Dy(), b.Bounds().Dy())))
	draw.Draw(sheet, sheet.Bounds(), image.NewUniform(color.White), image.Point{}, draw.Src)
	draw.Draw(sheet, a.Bounds(), a, a.Bounds().Min, draw.Src)
	draw.Draw(sheet, b.Bounds().Add(image.Pt(a.Bounds().Dx()+gap, 0)), b, b.Bounds().Min, draw.Src)
	var out bytes.Buffer
	err = png.Encode(&out, sheet)
	return out.Bytes(), err
}
