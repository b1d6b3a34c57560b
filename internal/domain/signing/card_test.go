// SPDX-License-Identifier: Apache-2.0

package signing_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/png"
	"slices"
	"testing"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/signing"
	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/cades"
	"tamga/sig/pdf"
)

// TestReportOfCard: the report of a card that could not be made is deleted, whatever the card failed for.
func TestReportOfCard(t *testing.T) {
	signer := sigtest.Root(t, suite.GOST2012x256).Signer(t, suite.GOST2012x256, "Иванова Мария Петровна")
	text := []byte("text")
	signature := sigtest.Make(t, cades.New(), signer, &sig.Job{Document: bytes.NewReader(text), Params: sig.Params{"CADESType": "BES", "IsDetached": "True"}})
	file := sig.File{Name: "text.sig", Document: bytes.NewReader(signature)}
	broken := errors.New("no code")
	for name, test := range map[string]struct {
		signatures int
		paint      error
		want       func(err error) bool
	}{
		"made":                {1, nil, func(err error) bool { return err == nil }},
		"too many signatures": {101, nil, func(err error) bool { return fault.Is(err, fault.InvalidContent) }},
		"no code":             {1, broken, func(err error) bool { return errors.Is(err, broken) }},
	} {
		t.Run(name, func(t *testing.T) {
			stored := map[string]bool{}
			o := &signing.CardOrder{Document: sig.File{Name: "text", Document: bytes.NewReader(text)}, Signatures: slices.Repeat([]sig.File{file}, test.signatures)}
			o.Keep = func(context.Context, []signing.SignatureReport, []byte) (number, address string, err error) {
				stored["1"] = true
				return "1", "https://sign.example.org/r/1", nil
			}
			o.Drop = func(ctx context.Context, number string) error {
				delete(stored, number)
				return nil
			}
			o.Paint = func(string) ([]byte, error) { return picture(t), test.paint }
			_, err := signing.MakeCard(t.Context(), sig.Formats{cades.New(), pdf.New()}, sig.Check{At: sigtest.Time}, o)
			if !test.want(err) || stored["1"] != (err == nil) {
				t.Errorf("%v, and the report is stored: %t", err, stored["1"])
			}
		})
	}
}

// picture is a PNG of one pixel.
func picture(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
