// SPDX-License-Identifier: Apache-2.0

package view

import (
	"errors"
	"strconv"
	"strings"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/user"
	"tamga/internal/web/rest"
)

// AsIsField is the field of a form with which a person says that a value is right although it looks
// wrong.
const AsIsField = "as_is"

// doubt is a fault about a value that looks wrong. The form is asked again with the box asIsField: with
// it, the value is taken as it is.
type doubt struct{ error }

func (d doubt) Unwrap() error { return d.error }

// AsIs reports whether a form that err refuses has the box asIsField, and whether the box is ticked.
func AsIs(err error, form rest.Form) (offered, ticked bool) {
	_, doubted := errors.AsType[doubt](err)
	ticked = form.Get(AsIsField) != ""
	return doubted || ticked, ticked
}

// Doubted turns a fault of numbers of a name into a doubt.
func (w *Words) Doubted(err error, components []user.Component) error {
	if _, wrong := fault.As(err); wrong {
		return doubt{w.InLabels(err, components)}
	}
	return err
}

// InLabels returns a fault about components of a name that calls them as the fields of the form.
func (w *Words) InLabels(err error, components []user.Component) error {
	f, is := fault.As(err)
	if !is {
		return err
	}
	message := f.Message
	for i := range components {
		c := &components[i]
		number := " (" + strconv.Itoa(c.ID) + "): "
		label := c.NameIn(w.Language) + number // that of a message with a text in details/ru.txt
		if w.Language == "en" {
			label = c.NameIn(w.Language) + ": "
		}
		message = strings.ReplaceAll(message, c.Name+number, label)
	}
	return fault.New(f.Code, message).With(err)
}
