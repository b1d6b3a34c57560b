// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"testing"
)

//go:embed saml.py
var samlProgram string

// SAMLOrder describes a SAML provider and what it does.
type SAMLOrder struct {
	Entity         string `json:"entity"` // the name of the provider
	SSO            string `json:"sso"`
	Key            string `json:"key"` // PEM
	Certificate    string `json:"certificate"`
	SignedRequests bool   `json:"signed_requests"` // it accepts no unsigned requests
	// Lasso selects lasso as the provider, with this signature method (RSA_SHA256,
	// RSA_SHA1), which also signs assertions. Empty: pysaml2.
	Lasso string `json:"lasso_method"`

	// The request that it answers. Without MetadataOfService it returns its own metadata.
	MetadataOfService  string            `json:"metadata_of_service"`
	Query              map[string]string `json:"query"` // of the request
	RawQuery           string            `json:"raw_query"`
	Login              string            `json:"login"` // the NameID
	Mail               string            `json:"mail"`  // an attribute
	SignResponse       bool              `json:"sign_response"`
	SignAssertion      bool              `json:"sign_assertion"`
	SignatureAlgorithm string            `json:"signature_algorithm"` // of XMLDSig; empty: RSA with SHA-256
	DigestAlgorithm    string            `json:"digest_algorithm"`    // empty: SHA-256
}

// SAMLResult is the result of an order.
type SAMLResult struct {
	Metadata    string `json:"metadata"`
	Response    string `json:"response"`    // a SAMLResponse, Base64
	Binding     string `json:"binding"`     // for the response
	Destination string `json:"destination"` // of the response, from the metadata of the service
	Issuer      string `json:"issuer"`      // of the request
	ID          string `json:"id"`          // of the request
	Refused     string `json:"refused"`     // why the other fields are empty
}

// SAMLProvider is pysaml2 with xmlsec1, or lasso, as an identity provider. It uses the
// clock of the machine.
type SAMLProvider struct {
	in  io.Writer
	out *bufio.Reader
}

// SAML starts the provider. It ends with the test.
func SAML(t testing.TB) *SAMLProvider {
	t.Helper()
	const python = "/usr/bin/python3" // finds the packages of Debian
	for _, there := range []string{"saml2", "lasso.py"} {
		if _, err := os.Stat("/usr/lib/python3/dist-packages/" + there); err != nil {
			missing(t, "pysaml2 and lasso are not installed (Debian: python3-pysaml2, python3-lasso, xmlsec1)")
		}
	}
	cmd := exec.CommandContext(t.Context(), python, "-W", "ignore", "-c", samlProgram)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	p := &SAMLProvider{}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.in, p.out = in, bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait() // it is killed with the context of the test
	})
	return p
}

// Do carries out an order for a test or a subtest. Everything that the provider does not
// accept fails the test.
func (p *SAMLProvider) Do(t testing.TB, order SAMLOrder) (result SAMLResult) {
	t.Helper()
	if order.SignatureAlgorithm == "" {
		order.SignatureAlgorithm = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"
	}
	if order.DigestAlgorithm == "" {
		order.DigestAlgorithm = "http://www.w3.org/2001/04/xmlenc#sha256"
	}
	input, err := json.Marshal(order)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.in.Write(append(input, '\n')); err != nil {
		t.Fatalf("judge: SAML provider: %v", err)
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		t.Fatalf("judge: SAML provider: %v", err)
	}
	if err := json.Unmarshal(line, &result); err != nil {
		t.Fatalf("judge: unexpected output of the SAML provider: %q: %v", line, err)
	}
	if result.Refused != "" {
		t.Fatalf("judge: the SAML provider refuses: %s", result.Refused)
	}
	return result
}
