package main

import (
	"context"
	"slices"
	"time"

	"tamga/internal/domain/signing"
	"tamga/internal/web/rest/limit"
	"tamga/internal/web/svsapi"
	"tamga/pki/x509gost"
)

// VerificationConfig bounds the verification service, which answers everybody.
type VerificationConfig struct {
	// Whether signatures are judged for whoever asks. Default true.
	Enabled bool `yaml:"enabled"`
	// Calls an address may make: a second in the long run, and at once; and the
	// largest body of one. Defaults 20, 100, 64MiB.
	CallsPerSecond float64 `yaml:"calls_per_second"`
	CallsAtOnce    int     `yaml:"calls_at_once"`
	Request        Size    `yaml:"request"`
	// Whether revocation data and issuers that a document does not bring along are
	// fetched from the addresses in its certificates. Strangers choose these, so
	// the default is false: a document is judged by what it holds, by the built-in
	// authority and by evidence.root_files and authority_files.
	Fetch bool `yaml:"fetch"`
}

func defaultVerification() VerificationConfig {
	return VerificationConfig{Enabled: true, CallsPerSecond: 20, CallsAtOnce: 100, Request: 64 << 20}
}

// anchors are the certificates that judgements rest on: those of the built-in
// authority and those of the configuration.
func (h *house) anchors() (func(ctx context.Context) (roots, others []*x509gost.Certificate, err error), error) {
	e := &h.config.Evidence
	roots, err := h.certificatesOf(e.RootFiles, "evidence.root_files")
	if err != nil {
		return nil, err
	}
	known, err := h.certificatesOf(e.AuthorityFiles, "evidence.authority_files")
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) ([]*x509gost.Certificate, []*x509gost.Certificate, error) {
		ownRoots, err := h.authority.Roots(ctx)
		if err != nil {
			return nil, nil, err
		}
		issuing, err := h.authority.Issuing(ctx)
		if err != nil {
			return nil, nil, err
		}
		return slices.Concat(ownRoots, roots), slices.Concat(issuing, known), nil
	}, nil
}

// verification is the service behind svs_url.
func (h *house) verification() (*svsapi.API, error) {
	c := &h.config.Verification
	anchors, err := h.anchors()
	if err != nil {
		return nil, err
	}
	served := formats(h.config)
	v := &signing.Verification{
		Formats: served, Now: time.Now,
		Trust: func(ctx context.Context) (t signing.Trust, err error) {
			if t.Roots, t.Intermediates, err = anchors(ctx); err != nil {
				return t, err
			}
			t.CRLs, err = h.authority.CRLs(ctx)
			return t, err
		},
	}
	if c.Fetch {
		v.Evidence = h.network
	}
	var types []string
	for name := range served {
		types = append(types, name)
	}
	slices.Sort(types)
	calls := limit.New(c.CallsPerSecond, c.CallsAtOnce, 10_000, time.Now)
	return svsapi.New(v, svsapi.Rules{Admit: calls.Admit, Limit: int64(c.Request), Types: types}), nil
}
