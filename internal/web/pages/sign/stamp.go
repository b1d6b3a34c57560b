// SPDX-License-Identifier: Apache-2.0

package sign

import (
	_ "embed" // for the script
	"encoding/base64"
	"encoding/json"
	"strconv"

	"tamga/internal/domain/fault"
	"tamga/internal/web/rest"
)

// stampScript places the stamp of a PDF on its page.
//
//go:embed stamp.js
var stampScript string

// stampField is a field of the form for the place of a stamp. The place is in millimetres
// from the lower left corner of the page as it is shown.
type stampField struct {
	Name      string
	Value     int // at first
	Low, High int
}

// stampFields are the fields of the place. The largest page of a PDF is 5080 mm wide.
var stampFields = []stampField{
	{"page", 1, 1, 1_000_000}, {"left", 15, 0, 5080}, {"bottom", 15, 0, 5080}, {"width", 80, 5, 5080}, {"height", 30, 5, 5080},
}

// stampOf returns the parameters of a visible stamp, nil if the person chose none.
func stampOf(fields rest.Form) (map[string]string, error) {
	if fields.Get("stamp") != "yes" {
		return nil, nil
	}
	values := map[string]int{}
	for _, f := range stampFields {
		n, err := strconv.Atoi(fields.Get("stamp_" + f.Name))
		if err != nil || n < f.Low || n > f.High {
			return nil, fault.Newf(fault.InvalidParameters, "stamp: %s must be a whole number from %d to %d", f.Name, f.Low, f.High)
		}
		values[f.Name] = n
	}
	points := func(mm int) float64 { return float64(mm) * 72 / 25.4 }
	appearance, err := json.Marshal(map[string]any{
		"TemplateId": 1, "Page": values["page"],
		"Rect": map[string]float64{
			"LowerLeftX": points(values["left"]), "LowerLeftY": points(values["bottom"]),
			"UpperRightX": points(values["left"] + values["width"]), "UpperRightY": points(values["bottom"] + values["height"]),
		},
	})
	return map[string]string{"PdfSignatureTemplateId": "1", "PdfSignatureAppearance": base64.StdEncoding.EncodeToString(appearance)}, err
}
