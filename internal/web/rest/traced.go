// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"net/http"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Traced makes a span for each request, below the one that the client names in traceparent. A span has
// the route, the status and our request id: no address, login, query or body. What monitoring asks
// every few seconds has no span. A nil tracer makes none.
func Traced(next http.Handler, tracer trace.Tracer) http.Handler {
	if tracer == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slices.Contains(healthPaths, r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		ctx, span := tracer.Start(ctx, "request", trace.WithSpanKind(trace.SpanKindServer))
		defer span.End()
		ctx, call := callOf(ctx)
		out := &recorder{ResponseWriter: w}
		next.ServeHTTP(out, r.WithContext(ctx))
		if call.route != "" {
			span.SetName(call.route)
		}
		span.SetAttributes(
			attribute.String("http.request.method", method(r)), attribute.String("http.route", call.route),
			attribute.Int("http.response.status_code", out.status()), attribute.String("tamga.request_id", call.id), attribute.String("tamga.outcome", call.outcome),
		)
		if out.status() >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, "")
		}
	})
}
