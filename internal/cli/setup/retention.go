// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"

	"tamga/internal/cli"
)

// retention says whether archive time stamps of kept documents are overdue.
func (e *examination) retention(ctx context.Context, name cli.Word) {
	f, err := e.services.Renewals(ctx)
	switch {
	case err != nil:
		e.fault(name, cli.Say("correct the cause that the message names"), "%v", err)
	case f.Overdue > 0:
		e.warn(name, cli.Say("see why at /operator/services of the pages, and check there whether the time-stamp services answer"),
			"%d kept documents have waited for a new archive time stamp for more than a day, the first one since %s", f.Overdue, f.Oldest.UTC().Format("2006-01-02"))
	case f.Refused > 0:
		e.warn(name, cli.Say("see why at /operator/services of the pages, and check there whether the time-stamp services answer"),
			"the archive time stamps of %d kept documents cannot be renewed", f.Refused)
	case f.Retained > 0:
		e.ok(name, "%d documents are kept, and their archive time stamps are renewed in time", f.Retained)
	}
}
