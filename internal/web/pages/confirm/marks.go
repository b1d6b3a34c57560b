// SPDX-License-Identifier: Apache-2.0

package confirm

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/fault"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// declinedIn returns the documents that a form has listed and whose ticks the user has cleared. A form that lists none
// declines none. A form lists two documents or more, so that a process of the previous release, which does not know these
// fields, refuses them as repeated and does not sign what was declined. For the same reason a form of that release is refused here.
func declinedIn(form rest.Form) (declined []int, err error) {
	if form["declined"] != nil {
		return nil, fault.New(fault.InvalidParameters, "the page is older than this service: open the confirmation again")
	}
	for n, text := range form["listed"] {
		i, err := strconv.Atoi(text)
		if err != nil || i < 0 || i >= what.MaxDocuments || n == shownDocuments {
			return nil, fault.New(fault.InvalidParameters, "listed: want indexes of documents of the page")
		}
		if !slices.Contains(form["document"], text) {
			declined = append(declined, i)
		}
	}
	return declined, nil
}

// confirmAgain leads to the confirmation with the documents that were marked, so that a code that is
// sent later does not approve them. others leads to the choice of another method.
func confirmAgain(id string, declined []int, others bool) rest.Redirect {
	query := url.Values{}
	if others {
		query.Set("others", "yes")
	}
	var marks []string
	for _, i := range declined {
		if i >= 0 && i < what.MaxDocuments && len(marks) < shownDocuments {
			marks = append(marks, strconv.Itoa(i))
		}
	}
	if len(marks) > 0 {
		query.Set("declined", strings.Join(marks, "."))
	}
	to := "/confirm/" + id
	if len(query) > 0 {
		to += "?" + query.Encode()
	}
	return rest.Redirect{Location: to, See: true}
}

// marksIn returns the marks of an address of confirmAgain.
func marksIn(text string) (declined []int) {
	for one := range strings.SplitSeq(text, ".") {
		if i, err := strconv.Atoi(one); err == nil {
			declined = append(declined, i)
		}
	}
	return declined
}

// mark marks documents. While a method is chosen, they can be marked only if some are: a device
// asks about each of them.
func (v *confirmView) mark(declined []int) {
	var marks []string
	for i := range v.Listed {
		d := &v.Listed[i]
		if d.Refused = slices.Contains(declined, d.Index); d.Refused {
			marks = append(marks, strconv.Itoa(d.Index))
		}
	}
	v.Marked = strings.Join(marks, ".")
	v.Marks = v.Open && len(v.Listed) > 1 && (v.Passkey != "" || v.Code && !v.Device || len(v.Choices) > 0 && len(marks) > 0)
}

// wrongCode is a fault about a code or a PIN. Its page is the confirmation with the documents that were
// marked, so that the next code does not approve them.
type wrongCode struct {
	error
	form    confirmView
	address string // public
}

func (w wrongCode) Unwrap() error { return w.error }

// Again returns the confirmation with the reason above the code.
func (w wrongCode) Again(why view.Refusal) view.View {
	w.form.Wrong = why.Sentence
	return w.form.shown(w.address)
}

// wrong returns the fault about a code with its page, if one more code can be typed.
func (a *API) wrong(ctx context.Context, refused error, id string, declined []int) error {
	v, err := a.confirmed(ctx, id, false)
	if err != nil || !v.Code && v.Passkey == "" {
		return refused
	}
	v.mark(declined)
	return wrongCode{refused, v, a.Address}
}
