// SPDX-License-Identifier: Apache-2.0

package config

// Tracing configures traces of requests.
type Tracing struct {
	// Collector of OpenTelemetry that takes traces by OTLP over HTTP, such as
	// `http://127.0.0.1:4318`. Without a path, `/v1/traces` is meant. Spans have routes, statuses
	// and request identifiers, and no personal data. Default: none, there are no traces.
	Endpoint string `yaml:"endpoint" rule:"url"`
	// Part of the requests that is traced. A request with `traceparent` of a client is traced as the
	// client says.
	Ratio float64 `yaml:"ratio" default:"1" min:"0" max:"1"`
	// Roots (PEM) that the certificate of the collector must lead to. Default: those of the system.
	AuthoritiesFile string `yaml:"authorities_file"`
}
