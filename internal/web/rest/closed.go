// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"net/http"
	"sync/atomic"

	"tamga/internal/domain/fault"
)

// closedFault answers requests to a service that was restored from a backup.
var closedFault = fault.New(fault.Closed, "the service was restored from a backup and is closed until an administrator releases it")

// Closed returns the mux of a service that is closed: /healthz, /readyz and /metrics answer,
// and everything else is refused with 503.
func Closed(ready *Readiness, metrics http.Handler) *http.ServeMux {
	mux := http.NewServeMux()
	Health(mux, ready, metrics)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		_, call := callOf(r.Context())
		call.outcome = fault.Closed
		fail(w, closedFault)
	})
	return mux
}

// Switch serves one handler until Set replaces it.
type Switch struct{ now atomic.Pointer[http.Handler] }

// Set replaces the handler. Requests that have begun stay with the previous one.
func (s *Switch) Set(h http.Handler) { s.now.Store(&h) }

// ServeHTTP implements [http.Handler].
func (s *Switch) ServeHTTP(w http.ResponseWriter, r *http.Request) { (*s.now.Load()).ServeHTTP(w, r) }
