// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"bytes"
	"context"
	_ "embed" // for the script
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/signing"
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

// stampPlaces are the ways to find the place of a stamp: in free space, beside a word, or by hand.
var stampPlaces = []string{"auto", "word", "hand"}

// maxStampWord is the length of the word that a stamp may be beside, in characters.
const maxStampWord = 100

// markForms returns the forms of the mark of a signature, nil if the pages show none.
func (a *API) markForms() []signing.MarkForm {
	if at := a.marked(); at >= 0 {
		return a.Forms[at].Marks
	}
	return nil
}

// marked returns the place of the way to sign that may have a mark, -1 for none.
func (a *API) marked() int {
	if a.Marks == nil {
		return -1
	}
	return slices.IndexFunc(a.Forms, func(f signing.Form) bool { return len(f.Marks) > 0 })
}

// formOfMark returns the form with a name, the first one for none, and nil for an unknown one.
func formOfMark(forms []signing.MarkForm, name string) *signing.MarkForm {
	for i := range forms {
		if name == "" || forms[i].Name == name {
			return &forms[i]
		}
	}
	return nil
}

// stampOf returns the parameters of a visible stamp, nil if the person chose none.
func (a *API) stampOf(fields rest.Form) (map[string]string, error) {
	if fields.Get("stamp") != "yes" {
		return nil, nil
	}
	form := formOfMark(a.markForms(), fields.Get("stamp_form"))
	if form == nil {
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

// marksAt is where the pictures of marks are: a certificate and the name of a form follow.
const marksAt = "/sign/marks/"

// mark answers the mark of a certificate as a signature that is made now would have it.
func (a *API) mark(ctx context.Context, r struct {
	Certificate string `path:"certificate"`
	Form        string `path:"form"`
}) (rest.File, error) {
	at, form := a.marked(), formOfMark(a.markForms(), r.Form)
	if form == nil {
		return rest.File{}, fault.New(fault.NotFound, "stamp: this form of a mark is not known")
	}
	f := &a.Forms[at]
	params := maps.Clone(f.Params[signing.LevelBasic])
	params["PdfSignatureAppearance"] = base64.StdEncoding.EncodeToString([]byte(`{"Mark":"` + form.Name + `"}`))
	drawn, err := a.Marks(ctx, rest.Caller(ctx).UserID, r.Certificate, f, params)
	if err != nil {
		return rest.File{}, err
	}
	return rest.File{Content: bytes.NewReader(drawn[0]), Type: "image/svg+xml"}, nil
}
