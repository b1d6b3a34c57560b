// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"context"
	"time"
)

// option is an entry of a list of a form, as the template "field" takes it.
type option struct {
	Value, Text string
	Chosen      bool
}

// part returns the values of a template of parts.html by their names.
func part(pairs ...any) map[string]any {
	values := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		values[pairs[i].(string)] = pairs[i+1]
	}
	return values
}

// componentsView shows every part of parts.html, to those who write pages.
type componentsView struct {
	Text    string
	Options []option
	Rows    []componentRow
}

type componentRow struct {
	Name, Status, Kind string
	NotAfter           time.Time
}

func (a *API) components(_ context.Context, r struct {
	Text string `query:"text"`
}) (view, error) {
	v := componentsView{Text: r.Text, Options: []option{{"1", "PDF", false}, {"2", "CAdES", true}}}
	for i, status := range []string{"ACTIVE", "HOLD", "REVOKED"} {
		v.Rows = append(v.Rows, componentRow{"CN=Demo User,C=RU", "certificate.status." + status, []string{"good", "warn", "bad"}[i], a.Now()})
	}
	return view{template: "components", title: "components.title", content: v}, nil
}
