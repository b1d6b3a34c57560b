// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"context"
	_ "embed" // for the script
	"encoding/base64"
	"encoding/json"
	"html/template"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/signing"
	"tamga/internal/web/pages/view"
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

// stampFields are the fields of the place. The largest page of a PDF is 5080 mm wide. The height follows from the width.
var stampFields = []stampField{
	{"page", 1, 1, 1_000_000}, {"left", 15, 0, 5080}, {"bottom", 15, 0, 5080}, {"width", 70, 10, 5080},
}

// markForm is a form of the mark, with its ordinary size in millimetres.
type markForm struct {
	Name          string
	Width, Height int
}

var markForms = []markForm{{"full", 70, 25}, {"compact", 60, 12}}

// stampPlaces are the ways to find the place of a stamp: in free space, beside a word, or by hand.
var stampPlaces = []string{"auto", "word", "hand"}

// maxStampWord is the length of the word that a stamp may be beside, in characters.
const maxStampWord = 100

// formOfMark returns the form with a name, the full one for none, and false for an unknown one.
func formOfMark(name string) (markForm, bool) {
	if name == "" {
		return markForms[0], true
	}
	i := slices.IndexFunc(markForms, func(f markForm) bool { return f.Name == name })
	if i < 0 {
		return markForm{}, false
	}
	return markForms[i], true
}

// stampOf returns the parameters of a visible stamp, nil if the person chose none.
func stampOf(fields rest.Form) (map[string]string, error) {
	if fields.Get("stamp") != "yes" {
		return nil, nil
	}
	form, ok := formOfMark(fields.Get("stamp_form"))
	if !ok {
		return nil, fault.New(fault.InvalidParameters, "stamp: this form of a mark is not known")
	}
	where := fields.Get("stamp_where")
	switch {
	case where != "":
	case fields.Get("stamp_page") != "": // an address or a program that is older than the choice
		where = "hand"
	default:
		where = stampPlaces[0]
	}
	appearance := map[string]any{"Mark": form.Name}
	switch where {
	case "auto":
		appearance["Place"] = "auto"
	case "word":
		word := strings.TrimSpace(fields.Get("stamp_word"))
		if n := utf8.RuneCountInString(word); n == 0 || n > maxStampWord {
			return nil, fault.Newf(fault.InvalidParameters, "stamp: the word beside which the mark is put must have 1 to %d characters", maxStampWord)
		}
		appearance["Beside"] = word
	case "hand":
		values := map[string]int{}
		for _, f := range stampFields {
			n, err := strconv.Atoi(fields.Get("stamp_" + f.Name))
			if err != nil || n < f.Low || n > f.High {
				return nil, fault.Newf(fault.InvalidParameters, "stamp: %s must be a whole number from %d to %d", f.Name, f.Low, f.High)
			}
			values[f.Name] = n
		}
		points := func(mm float64) float64 { return mm * 72 / 25.4 }
		left, bottom, width := float64(values["left"]), float64(values["bottom"]), float64(values["width"])
		height := width * float64(form.Height) / float64(form.Width)
		appearance["Page"] = values["page"]
		appearance["Rect"] = map[string]float64{
			"LowerLeftX": points(left), "LowerLeftY": points(bottom), "UpperRightX": points(left + width), "UpperRightY": points(bottom + height),
		}
	default:
		return nil, fault.New(fault.InvalidParameters, "stamp: this way to find a place is not known")
	}
	data, err := json.Marshal(appearance)
	return map[string]string{"PdfSignatureAppearance": base64.StdEncoding.EncodeToString(data)}, err
}

// Marks draws marks; see [signing.Service.Marks].
type Marks func(ctx context.Context, userID, certificate string, f *signing.Form, params ...map[string]string) ([][]byte, error)

// mark is the address of the picture of a mark, by the name of its form.
type mark map[string]template.URL

// marksOf returns the marks of certificates, as a signature that is made now would have them. The mark of a certificate that
// cannot sign any more is missing.
func (a *API) marksOf(ctx context.Context, certificates []view.Certificate) (map[int64]mark, error) {
	at := slices.IndexFunc(a.Forms, func(f signing.Form) bool { return f.Marked })
	if a.Marks == nil || at < 0 {
		return nil, nil
	}
	f := &a.Forms[at]
	params := make([]map[string]string, len(markForms))
	for i, form := range markForms {
		params[i] = maps.Clone(f.Params[signing.LevelBasic])
		params[i]["PdfSignatureAppearance"] = base64.StdEncoding.EncodeToString([]byte(`{"Mark":"` + form.Name + `"}`))
	}
	out, size := map[int64]mark{}, 0
	for _, c := range certificates[:min(len(certificates), maxMarks)] {
		drawn, err := a.Marks(ctx, rest.Caller(ctx).UserID, strconv.FormatInt(c.ID, 10), f, params...)
		if _, refused := fault.As(err); refused {
			continue
		}
		if err != nil {
			return nil, err
		}
		m := mark{}
		for i, svg := range drawn {
			size += len(svg)
			m[markForms[i].Name] = template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(svg)) // of our own making
		}
		if len(out) > 0 && size > maxMarkBytes { // the first one, which is chosen, has its mark
			break
		}
		out[c.ID] = m
	}
	return out, nil
}

// Bounds of the marks in a form: of how many certificates, and bytes. A logo is in each.
const (
	maxMarks     = 20
	maxMarkBytes = 512 << 10
)
