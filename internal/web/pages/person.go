// SPDX-License-Identifier: Apache-2.0

package pages

import "tamga/internal/web/rest"

// personRoutes returns the pages on which people look after what is theirs.
func (a *API) personRoutes() (routes []rest.Route) {
	for _, group := range []func() []rest.Route{a.confirmRoutes, a.certificateRoutes, a.accountRoutes, a.deviceRoutes, a.passkeyRoutes, a.documentRoutes} {
		routes = append(routes, group()...)
	}
	return routes
}
