// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"tamga/internal/adapter/tracing"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/signing"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// openTracing returns the tracer of the configuration, nil without one.
func (s *Services) openTracing(ctx context.Context, version string) (trace.Tracer, func() error, error) {
	c := &s.Config.Tracing
	if c.Endpoint == "" {
		return nil, func() error { return nil }, nil
	}
	roots, err := roots(s.Config, c.AuthoritiesFile)
	if err != nil {
		return nil, nil, fmt.Errorf("tracing.authorities_file: %w", err)
	}
	return tracing.Open(ctx, tracing.Options{
		Endpoint: c.Endpoint, Ratio: c.Ratio, Roots: roots, Version: version,
		Failed: func(err error) { s.log.Warn("sending traces", "error", err) },
	})
}

// traced adds spans to the two parts of a signature that may take long: the key and the evidence.
func traced(s *signing.Service, tracer trace.Tracer) {
	if tracer != nil {
		s.Keys = tracedKeys{s.Keys, tracer}
		s.Evidence = tracedEvidence{s.Evidence, tracer}
	}
}

// ended ends a span with the outcome of its work. The text of an error may have personal data.
func ended(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

type tracedKeys struct {
	signing.Keys
	tracer trace.Tracer
}

// SignIn implements signing.Keys.
func (k tracedKeys) SignIn(ctx context.Context, snap *keys.Snapshot, c *keys.Certificate, pin string, digests []suite.Digest) ([][]byte, error) {
	ctx, span := k.tracer.Start(ctx, "key")
	values, err := k.Keys.SignIn(ctx, snap, c, pin, digests)
	ended(span, err)
	return values, err
}

type tracedEvidence struct {
	sig.Evidence
	tracer trace.Tracer
}

// TimeStamp implements sig.Evidence.
func (e tracedEvidence) TimeStamp(ctx context.Context, address string, d suite.Digest) (*tsp.Verified, error) {
	ctx, span := e.tracer.Start(ctx, "time stamp")
	token, err := e.Evidence.TimeStamp(ctx, address, d)
	ended(span, err)
	return token, err
}

// Revocation implements sig.Evidence.
func (e tracedEvidence) Revocation(ctx context.Context, cert, issuer *x509gost.Certificate, notBefore time.Time) (sig.Proof, error) {
	ctx, span := e.tracer.Start(ctx, "revocation")
	proof, err := e.Evidence.Revocation(ctx, cert, issuer, notBefore)
	ended(span, err)
	return proof, err
}
