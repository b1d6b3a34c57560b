// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"bytes"
	"context"
	"crypto/ecdh"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

//go:embed node/webpush.js
var webPushProgram []byte

// PushedMessage is what http_ece and node read in a request to the push service of a browser.
type PushedMessage struct {
	Text   string         `json:"text"`   // decrypted
	Head   map[string]any `json:"head"`   // of the token, whose signature is right
	Claims map[string]any `json:"claims"` // of the token
	Key    string         `json:"key"`    // that signed the token, Base64url of a point
}

// Pushed reads the body and the header Authorization of a request to the push service of a browser that has a key
// and a secret (RFC 8291, RFC 8292). An error means that http_ece does not decrypt the body, or that the signature is
// wrong.
func Pushed(t testing.TB, key *ecdh.PrivateKey, secret, body []byte, authorization string) (m PushedMessage, err error) {
	t.Helper()
	node := Program(t, "node")
	modules := filepath.Join(judges(t), "http_ece", "node_modules")
	if _, err := os.Stat(filepath.Join(modules, "http_ece")); err != nil {
		missing(t, "the npm package http_ece is not there (npm install --prefix ~/.cache/tamga-judges/http_ece http_ece@1.2.1)")
	}
	program := filepath.Join(t.TempDir(), "webpush.js")
	write(t, program, webPushProgram)
	input, err := json.Marshal(map[string]any{
		"body": body, "key": key.Bytes(), "secret": base64.RawURLEncoding.EncodeToString(secret), "authorization": authorization,
	})
	if err != nil {
		t.Fatalf("judge: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, program, modules)
	var faults bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), &faults
	out, err := cmd.Output()
	if err != nil {
		return m, fmt.Errorf("judge: node: %w: %s", err, faults.Bytes())
	}
	return m, json.Unmarshal(out, &m)
}
