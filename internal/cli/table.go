// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// NewTable begins a table for people with the names of its columns, which are put into the language of the
// process. A row is a line whose cells have a tab between them. The caller flushes the table.
func (c *Console) NewTable(w io.Writer, columns ...string) *tabwriter.Writer {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, name := range columns {
		columns[i] = c.Word(Word(name))
	}
	fmt.Fprintln(t, strings.Join(columns, "\t"))
	return t
}
