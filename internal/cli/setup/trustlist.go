// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"

	"tamga/internal/cli"
	"tamga/sig/trustlist"
)

// trustList checks the age of the list of accredited authorities.
func (e *examination) trustList(ctx context.Context, name cli.Word) {
	info, found, err := e.services.TrustList.Info(ctx)
	remedy := cli.Say("import the list that the ministry publishes now: tamga trust-list import FILE --config %s", e.file)
	switch {
	case err != nil:
		e.fault(name, cli.Say("correct the cause that the message names"), "%v", err)
	case !found && len(e.conf.TrustList.SignerFiles) == 0: // the installation does without one
	case !found:
		e.warn(name, remedy, "trust_list is set, but there is no list: reports do not say which signatures are qualified")
	case e.services.DB.Now().Sub(info.Date) > trustlist.Old:
		e.warn(name, remedy, "the list of accredited authorities is of %s", trustlist.Day(info.Date))
	default:
		e.ok(name, "the list of accredited authorities is of %s", trustlist.Day(info.Date))
	}
}
