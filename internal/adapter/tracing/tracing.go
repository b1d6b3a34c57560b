// SPDX-License-Identifier: Apache-2.0

// Package tracing sends traces to a collector of OpenTelemetry, by OTLP over HTTP. Begin with
// [Open]. The variables OTEL_... of the environment add to the options, such as headers for a
// collector that asks for a key.
package tracing

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Options say where traces go.
type Options struct {
	Endpoint string         // URL of the collector; without a path, /v1/traces is meant
	Ratio    float64        // part of the requests without a trace of their own that is traced
	Roots    *x509.CertPool // nil: those of the system
	Version  string         // of the program
	Failed   func(error)    // is told of traces that could not be sent
}

const (
	sendTime  = 5 * time.Second
	queueSize = 2048 // spans that wait; further ones are dropped
)

// Open returns a tracer. close sends what waits, for at most a few seconds.
func Open(ctx context.Context, o Options) (t trace.Tracer, close func() error, err error) {
	endpoint, err := url.Parse(o.Endpoint)
	if err != nil {
		return nil, nil, fmt.Errorf("tracing: %w", err)
	}
	if strings.Trim(endpoint.Path, "/") == "" {
		endpoint.Path = "/v1/traces" // the default of the OTLP specification
	}
	options := []otlptracehttp.Option{
		otlptracehttp.WithEndpointURL(endpoint.String()),
		otlptracehttp.WithTimeout(sendTime),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: time.Second, MaxInterval: sendTime, MaxElapsedTime: time.Minute}),
	}
	if endpoint.Scheme == "https" { // plain HTTP takes no settings of TLS
		options = append(options, otlptracehttp.WithTLSClientConfig(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.Roots}))
	}
	exporter, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return nil, nil, fmt.Errorf("tracing: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(o.Failed))
	provider := sdk.NewTracerProvider(
		sdk.WithBatcher(exporter, sdk.WithMaxQueueSize(queueSize)),
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(o.Ratio))),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", "tamga"), attribute.String("service.version", o.Version))),
	)
	return provider.Tracer("tamga"), func() error {
		bounded, cancel := context.WithTimeout(context.Background(), sendTime)
		defer cancel()
		return provider.Shutdown(bounded)
	}, nil
}
