// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"context"
	"time"

	"tamga/internal/web/pages/view"
)

// componentsView shows every part of parts.html, to those who write pages.
type componentsView struct {
	Text    string
	Options []view.Option
	Rows    []componentRow
}

type componentRow struct {
	Name, Status, Kind string
	NotAfter           time.Time
}

func (a *API) components(_ context.Context, r struct {
	Text string `query:"text"`
}) (view.View, error) {
	v := componentsView{Text: r.Text, Options: []view.Option{{Value: "1", Text: "PDF", Chosen: false}, {Value: "2", Text: "CAdES", Chosen: true}}}
	for i, status := range []string{"ACTIVE", "HOLD", "REVOKED"} {
		v.Rows = append(v.Rows, componentRow{"CN=Demo User,C=RU", "certificate.status." + status, []string{"good", "warn", "bad"}[i], a.Now()})
	}
	return view.View{Template: "components", Title: "components.title", Content: v}, nil
}
