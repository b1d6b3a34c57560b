// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"bytes"
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tamga/internal/cli"
	"tamga/internal/config"
	"tamga/internal/domain/authority"
	"tamga/pki/chain"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/cades"
)

// TestEvidenceFromOurOwn signs at the highest level with evidence from the built-in authority, fetched
// over HTTP as from any other authority. It verifies the message offline.
func TestEvidenceFromOurOwn(t *testing.T) {
	from, server := tspInstallation(t)
	h, err := from.Open(&cli.Console{Context: t.Context(), Stderr: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	source, err := h.OpenEvidence(config.Default(config.Parts{}).Evidence)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	roots, err := server.authority.Roots(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	issuing, err := server.authority.Issuing(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var requests atomic.Int32
	server.spoil = func(http.ResponseWriter, *http.Request) bool { requests.Add(1); return false }

	subject, err := x509gost.BuildName([]x509gost.Attribute{{OID: x509gost.OIDCommonName, Value: "Signer"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, su := range []*suite.Suite{suite.GOST2012x256, suite.GOST2012x512, suite.ECDSAP256} {
		key, err := su.Generate(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		cert, err := server.authority.Issue(t.Context(), authority.Request{Suite: su, PublicKey: key.Public(), Subject: subject})
		if err != nil {
			t.Fatal(err)
		}
		format := cades.New()
		sign := func() ([]byte, error) {
			job := &sig.Job{
				Document: strings.NewReader("a document"), Certificate: cert, Time: time.Now(), Evidence: source,
				Params: sig.Params{"CADESType": "XLT1", "TSPAddress": server.URL + authority.TSPPath(), "IsDetached": "False"},
			}
			prepared, err := format.Prepare(t.Context(), job)
			if err != nil {
				return nil, err
			}
			value, err := su.Sign(nil, key, prepared.Digest)
			if err != nil {
				return nil, err
			}
			result, err := format.Finish(t.Context(), job, prepared.State, value)
			if err != nil {
				return nil, err
			}
			var out bytes.Buffer
			_, err = result.WriteTo(&out)
			return out.Bytes(), err
		}
		message, err := sign()
		if err != nil {
			t.Errorf("%s: %v", su.Name, err)
			continue
		}
		before := requests.Load()
		report, err := format.Verify(t.Context(), &sig.Check{Document: bytes.NewReader(message), Roots: roots, Intermediates: issuing, At: time.Now()})
		if err != nil {
			t.Errorf("%s: %v", su.Name, err)
			continue
		}
		if !report.Passed() || len(report.Signatures) != 1 || report.Signatures[0].Level != "XLT1" || requests.Load() != before {
			t.Errorf("%s: %+v after %d requests", su.Name, report, requests.Load()-before)
		}

		// A revoked signer is not an outage: the error is chain.ErrRevoked.
		if err := server.authority.Revoke(t.Context(), cert.SerialNumber, 1, time.Now()); err != nil {
			t.Fatal(err)
		}
		fresh, err := h.OpenEvidence(config.Default(config.Parts{}).Evidence)
		if err != nil {
			t.Fatal(err)
		}
		issuer, err := fresh.Issuer(t.Context(), cert)
		if err != nil {
			t.Fatal(err)
		}
		_, err = fresh.Revocation(t.Context(), cert, issuer, time.Time{})
		var outage *sig.ErrEvidence
		if !errors.Is(err, chain.ErrRevoked) || errors.As(err, &outage) {
			t.Errorf("%s: revoked: %v", su.Name, err)
		}
		fresh.Close()
	}
}
