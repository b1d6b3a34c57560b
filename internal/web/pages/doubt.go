// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"errors"
	"strconv"
	"strings"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/user"
	"tamga/internal/web/rest"
)

// asIsField is the field of a form with which a person says that a value is right although it looks
// wrong.
const asIsField = "as_is"

// doubt is a fault about a value that looks wrong. The form is asked again with the box asIsField: with
// it, the value is taken as it is.
type doubt struct{ error }

func (d doubt) Unwrap() error { return d.error }

// asIs reports whether a form that err refuses has the box asIsField, and whether the box is ticked.
func asIs(err error, form rest.Form) (offered, ticked bool) {
	_, doubted := errors.AsType[doubt](err)
	ticked = form.Get(asIsField) != ""
	return doubted || ticked, ticked
}

// doubted turns a fault of numbers of a name into a doubt.
func (w *words) doubted(err error, components []user.Component) error {
	if _, wrong := fault.As(err); wrong {
		return doubt{w.inLabels(err, components)}
	}
	return err
}

// inLabels returns a fault about components of a name that calls them as the fields of the form.
func (w *words) inLabels(err error, components []user.Component) error {
	f, is := fault.As(err)
	if !is {
		return err
	}
	message := f.Message
	for i := range components {
		c := &components[i]
		number := " (" + strconv.Itoa(c.ID) + "): "
		label := c.NameIn(w.language) + number // that of a message with a text in details/ru.txt
		if w.language == "en" {
			label = c.NameIn(w.language) + ": "
		}
		message = strings.ReplaceAll(message, c.Name+number, label)
	}
	return fault.New(f.Code, message).With(err)
}
