// SPDX-License-Identifier: Apache-2.0

package message_test

import (
	"encoding/json"
	"os"
	"testing"

	"tamga/internal/domain/device/message"
	"tamga/pki/suite"
)

// TestSuccessor: a statement about a new key verifies with the key before it, for its service, and
// each change of it shows.
func TestSuccessor(t *testing.T) {
	const service = "https://host/x"
	for _, s := range []*suite.Suite{suite.GOST2012x256, suite.ECDSAP256} {
		before, after, beforeSPKI, afterSPKI := sides(t, s)
		n, err := message.NewSuccessor(service, beforeSPKI, afterSPKI, 1795001200, before, nil)
		must(t, err)
		if !n.Verify(service, beforeSPKI) {
			t.Errorf("%s: the statement does not verify", s.Name)
		}
		forged, err := message.NewSuccessor(service, beforeSPKI, afterSPKI, 1795001200, after, nil)
		must(t, err)
		_, _, _, otherSPKI := sides(t, s)
		kind := suite.GOST2012x256
		if s == kind {
			kind = suite.ECDSAP256
		}
		_, _, _, kindSPKI := sides(t, kind)
		of := func(key []byte) message.Successor {
			n, err := message.NewSuccessor(service, beforeSPKI, key, 1795001200, before, nil)
			must(t, err)
			return n
		}
		for name, c := range map[string]struct {
			n       message.Successor
			service string
			before  []byte
		}{
			"signed by the new key":     {forged, service, beforeSPKI},
			"with another old key":      {n, service, otherSPKI},
			"without an old key":        {n, service, nil},
			"for another service":       {n, service + "/", beforeSPKI},
			"with another key":          {message.Successor{Key: otherSPKI, Until: n.Until, Signature: n.Signature}, service, beforeSPKI},
			"with another end":          {message.Successor{Key: n.Key, Until: n.Until + 1, Signature: n.Signature}, service, beforeSPKI},
			"with a negative end":       {message.Successor{Key: n.Key, Until: -n.Until, Signature: n.Signature}, service, beforeSPKI},
			"without a signature":       {message.Successor{Key: n.Key, Until: n.Until}, service, beforeSPKI},
			"with padding":              {message.Successor{Key: n.Key, Until: n.Until, Signature: n.Signature + "=="}, service, beforeSPKI},
			"about a key of other kind": {of(kindSPKI), service, beforeSPKI},
			"about no key":              {of([]byte("x")), service, beforeSPKI},
		} {
			if c.n.Verify(c.service, c.before) {
				t.Errorf("%s: a statement %s verifies", s.Name, name)
			}
		}
	}
	if _, err := message.NewSuccessor(service, []byte("x"), nil, 1, nil, nil); err == nil {
		t.Error("a statement of no key was made")
	}
}

// TestSuccessorVectors reads the statements of testdata. OpenSSL with gost-engine verifies their
// signatures (offline.py).
func TestSuccessorVectors(t *testing.T) {
	text, err := os.ReadFile("testdata/successors.json")
	must(t, err)
	var rows []struct {
		Algorithm  string            `json:"alg"`
		ServiceURL string            `json:"service_url"`
		Service    []byte            `json:"service_key"`
		New        message.Successor `json:"new_service_key"`
	}
	must(t, json.Unmarshal(text, &rows))
	if len(rows) != 2 || rows[0].Algorithm == rows[1].Algorithm {
		t.Fatalf("there are %d vectors, want one of each algorithm", len(rows))
	}
	for _, r := range rows {
		if !r.New.Verify(r.ServiceURL, r.Service) {
			t.Errorf("%s: the statement does not verify", r.Algorithm)
		}
	}
}

// FuzzSuccessor: no statement does harm, and none but the one that was signed verifies.
func FuzzSuccessor(f *testing.F) {
	const service = "https://host/x"
	before, _, beforeSPKI, afterSPKI := sides(f, suite.GOST2012x256)
	n, err := message.NewSuccessor(service, beforeSPKI, afterSPKI, 1795001200, before, nil)
	must(f, err)
	text, err := json.Marshal(n)
	must(f, err)
	f.Add(string(text))
	f.Add(`{"key":"AA==","until":1,"signature":"AA"}`)
	f.Fuzz(func(t *testing.T, text string) {
		var got message.Successor
		if json.Unmarshal([]byte(text), &got) == nil && got.Verify(service, beforeSPKI) && (string(got.Key) != string(n.Key) || got.Until != n.Until) {
			t.Errorf("%+v verifies", got)
		}
	})
}
