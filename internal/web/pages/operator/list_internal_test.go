// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"testing"
	"time"

	"tamga/internal/web/pages/view"
)

// BenchmarkList renders a page of a list with commands in each row.
func BenchmarkList(b *testing.B) {
	t := table{Title: "requests.title", Head: []string{"requests.number", "person.title", "requests.kind", "requests.subject", "requests.authority", "requests.at", "certificate.state"}}
	for i := range pageRows {
		id := fmt.Sprintf("47506567-0000-4000-8000-%012d", i)
		t.Rows = append(t.Rows, row{
			Cells: []cell{
				{Text: fmt.Sprint(i)}, {Text: "Иванов Иван (ivanov)", Address: personAt(id)}, {Key: "requests.kind.Certificate"}, {Text: "Ivanov"}, {Text: "Tamga"},
				{At: time.Date(2026, 11, 27, 12, 0, i, 0, time.UTC)}, {Key: "requests.status.Pending"},
			},
			Commands: []link{{Address: personAt(id) + "/request-approve?of=1&from=requests", Key: "command.request-approve"}, {Address: personAt(id) + "/request-reject?of=1&from=requests", Key: "command.request-reject"}},
		})
	}
	v := view.View{Template: "operator/sections", Title: "requests.title", Content: operatorView{Page: sections{Tables: []table{t}}}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.Render(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
