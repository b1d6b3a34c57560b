// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"context"
	"strings"
	"time"

	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest/look"
)

// componentsView shows every part of parts.html, to those who write pages.
type componentsView struct {
	Text     string
	At       time.Time
	Options  []view.Option
	Rows     []componentRow
	Tabs     []view.Tab
	Verdicts []string
	Colours  []string
	Icons    []string
}

type componentRow struct {
	Name, Status, Kind string
	NotAfter           time.Time
}

func (a *API) components(_ context.Context, r struct {
	Text string `query:"text"`
}) (view.View, error) {
	v := componentsView{
		Text: r.Text, At: a.Now(), Icons: look.Icons(),
		Options:  []view.Option{{Value: "1", Text: "PDF", Chosen: false}, {Value: "2", Text: "CAdES", Chosen: true}},
		Tabs:     []view.Tab{{Address: "#c-messages", Key: "start.title", Here: true}, {Address: "#c-messages", Key: "certificates.title", Waits: view.Waits{N: 2}}},
		Verdicts: []string{"passed", "failed", "indeterminate"},
		Colours:  strings.Fields("--ground --paper --sunk --ink --soft --line --edge --accent --fill --tint --good --good-tint --bad --bad-tint --warn --warn-tint"),
	}
	for i, status := range []string{"ACTIVE", "HOLD", "REVOKED"} {
		v.Rows = append(v.Rows, componentRow{"CN=Demo User,C=RU", "certificate.status." + status, []string{"good", "warn", "bad"}[i], a.Now()})
	}
	return view.View{Template: "components", Title: "components.title", Content: v}, nil
}
