// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

//go:embed node/openid.js
var openidProgram []byte

// OpenIDOrder describes a sign-in for the client.
type OpenIDOrder struct {
	Issuer       string `json:"issuer"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"` // empty for a public client
	Method       string `json:"method"`        // client_secret_basic or client_secret_post
	RedirectURI  string `json:"redirect_uri"`
	Scope        string `json:"scope"`
	Resource     string `json:"resource"` // empty for none
	Login        string `json:"login"`
	Password     string `json:"password"`
}

// OpenIDResult is what the client received and accepted.
type OpenIDResult struct {
	Claims      map[string]any `json:"claims"` // of the ID token
	AccessToken string         `json:"access_token"`
	Scope       string         `json:"scope"`
	UserInfo    map[string]any `json:"userinfo"`
	Refreshed   string         `json:"refreshed"` // the next access token; empty without offline_access
	Rotated     bool           `json:"rotated"`   // the refresh token has changed
}

// OpenID signs a user in with the npm package openid-client 5.7.1. Everything that the
// package does not accept fails the test.
func OpenID(t testing.TB, order OpenIDOrder) (result OpenIDResult) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		missing(t, "the node program is not installed (Debian: nodejs, npm)")
	}
	cache, err := os.UserCacheDir()
	modules := filepath.Join(cache, "tamga-judges", "openid", "node_modules")
	if err == nil {
		_, err = os.Stat(filepath.Join(modules, "openid-client"))
	}
	if err != nil {
		missing(t, `the npm package openid-client is not there (npm install --prefix ~/.cache/tamga-judges/openid openid-client@5.7.1)`)
	}
	script := filepath.Join(t.TempDir(), "openid.js")
	if err := os.WriteFile(script, openidProgram, 0o600); err != nil {
		t.Fatal(err)
	}
	input, err := json.Marshal(order)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, script)
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	cmd.Stdin = bytes.NewReader(input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("judge: openid-client: %v\n%s", err, stderr.Bytes())
	}
	if err := json.Unmarshal(out, &result); err != nil {
		t.Fatalf("judge: unexpected output of openid-client: %q: %v", out, err)
	}
	return result
}
