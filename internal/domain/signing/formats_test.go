// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/sigtest"
	"tamga/pki/suite"
)

// TestFormatOfOneLine checks that a format that is only in the list of formats is served
// by name and by number, and that its description of its parameters is true.
func TestFormatOfOneLine(t *testing.T) {
	root := sigtest.Root(t, suite.GOST2012x256)
	v, _ := judging(t, root)
	s, k := newService(t, suite.GOST2012x256)
	s.Formats = append(s.Formats, sigtest.MadeUp{})
	v.Formats = s.Formats

	sign := func(name string, params map[string]string) ([]byte, error) {
		r, err := s.Sign(t.Context(), audit.Principal{}, &SignOrder{Type: name, Params: params, Content: content(t, s, "document")})
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		_, err = r.WriteTo(&b)
		return b.Bytes(), err
	}
	for _, name := range []string{"MadeUp", "madeup", "77"} {
		signed, err := sign(name, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		verdicts, err := v.Verify(t.Context(), &VerifyOrder{
			Type: name, Content: content(t, s, string(signed)), Original: content(t, s, "document"), Certificate: k.signer.Certificate.Raw,
		})
		if err != nil || len(verdicts) != 1 {
			t.Errorf("%s: %+v, %v", name, verdicts, err)
		}
		if got := s.resultName("a.txt", name, nil); got != "a.txt.made" {
			t.Errorf("%s: result %q", name, got)
		}
	}
	if _, err := sign("78", nil); !fault.Is(err, fault.InvalidSignatureParams) || !strings.Contains(err.Error(), "CAdES, CMS, GOST3410, MadeUp") {
		t.Errorf("another number: %v", err)
	}
	// The format reads its own parameters, and the policy first reads those of time
	// stamps.
	if _, err := sign("77", map[string]string{"madeuplevel": "x"}); !fault.Is(err, fault.InvalidSignatureParams) || !strings.Contains(err.Error(), "Plain, Sealed expected") {
		t.Errorf("a wrong value: %v", err)
	}
	for value, want := range map[string]string{"Sealed": "TSPAddress", "1": "TSPAddress", "Plain": "", "0": ""} {
		_, err := sign("MadeUp", map[string]string{"MadeUpLevel": value})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("level %s: %v", value, err)
		}
	}
	kept, secret := s.separate(map[string]string{"madeupsecret ": "s", "MadeUpLevel": "0"})
	if !maps.Equal(kept, map[string]string{"MadeUpLevel": "0"}) || !maps.Equal(secret, map[string]string{"madeupsecret ": "s"}) {
		t.Errorf("kept %v, secret %v", kept, secret)
	}
	for name, want := range map[string]Parameter{"madeuppicture": {Long: 1 << 20}, " MadeUpTable": {Object: true}, "MadeUpLevel": {}, "other": {}} {
		if got := s.Parameter(name); got != want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
