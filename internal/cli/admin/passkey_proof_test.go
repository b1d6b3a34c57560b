// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"html"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"tamga/internal/adapter/webauthntest"
	"tamga/internal/judge"
	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

var passkeyOptions = regexp.MustCompile(`data-passkey="(?:create|get)" data-options="([^"]+)"`)

// TestProofOfPasskey exports the evidence of a signature that a passkey approved. OpenSSL verifies it as docs/confirmation.md says,
// and refuses each export in which something was changed.
func TestProofOfPasskey(t *testing.T) {
	t.Parallel()
	ssl := judge.OpenSSL(t)
	w := tamgatest.StartUMS(t, tamgatest.WithPasskeys()...)
	user := "/ums/user/" + w.Dev.User.ID
	b := pagetest.New(t, w.Server)
	b.SignIn("/devices", w.Dev.User.Login, w.Dev.User.Password)
	key := webauthntest.New(t, w.URL, "localhost")
	options := func(p pagetest.Page) []byte {
		t.Helper()
		return []byte(html.UnescapeString(b.Find(p, passkeyOptions)[1]))
	}
	page := b.Shows(b.Post("/devices/do/passkey", url.Values{"name": {"key"}}))
	b.Shows(b.Post("/devices/do/passkey-add", url.Values{"passkey": {string(key.Create(options(page)))}}), "Passkeys")
	w.OK(tamgatest.Ours, "POST", user+"/authmethod/passkey?level=1", "")
	w.OK(tamgatest.Ours, "POST", user+"/operationpolicy", "[2,4]")
	page = b.Shows(b.Upload("/sign", map[string]string{"certificate": "1", "type": "CAdES"}, pagetest.File{Field: "file", Name: "a.txt", Content: "text"}, pagetest.File{Field: "file", Name: "b.txt", Content: "other"}))
	at := b.Find(page, pagetest.ConfirmLink)[1]
	page = b.Shows(b.Post(at, url.Values{"choice": {"passkey"}}))
	b.Shows(b.Post(at, url.Values{"passkey": {string(key.Get(options(page)))}, "listed": {"0", "1"}, "document": {"0"}}), ">Signed<")

	export := []byte(w.Command("operation", "proof", strings.TrimPrefix(at, "/confirm/")))
	verify := func(export []byte) error {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), judge.Program(t, "python3"), "../../domain/signing/testdata/proof.py", ssl.Write("proof.json", export)).CombinedOutput()
		if err != nil && !bytes.HasPrefix(out, []byte("refused: ")) {
			t.Fatalf("%s, %v", out, err)
		}
		return err
	}
	if err := verify(export); err != nil {
		t.Fatalf("the export is refused: %v\n%s", err, export)
	}
	var proof map[string]any
	must(t, json.Unmarshal(export, &proof))
	if proof["approval"] != nil || proof["signature"] == nil || proof["method"] != "passkey" {
		t.Errorf("the export is %s", export)
	}
	passkey := proof["passkey"].(map[string]any)
	for _, name := range []string{"nonce", "authenticator_data", "client_data", "signature", "key"} {
		text := passkey[name].(string)
		value, err := base64.StdEncoding.DecodeString(text)
		must(t, err)
		value[len(value)-1] ^= 1
		passkey[name] = base64.StdEncoding.EncodeToString(value)
		changed, err := json.Marshal(proof)
		must(t, err)
		if verify(changed) == nil {
			t.Errorf("another %s is accepted", name)
		}
		passkey[name] = text
	}
	for name, change := range map[string]func(p map[string]any){
		"record": func(p map[string]any) { p["id"] = tamgatest.Missing }, "user": func(p map[string]any) { p["user_id"] = tamgatest.Missing },
		"client": func(p map[string]any) { p["client_id"] = "other" }, "purpose": func(p map[string]any) { p["purpose"] = "free" },
		"round": func(p map[string]any) { p["passkey"].(map[string]any)["round"] = 7 }, "answer": func(p map[string]any) { delete(p, "passkey") },
	} {
		var copied map[string]any
		must(t, json.Unmarshal(export, &copied))
		change(copied)
		changed, err := json.Marshal(copied)
		must(t, err)
		if verify(changed) == nil {
			t.Errorf("another %s is accepted", name)
		}
	}
}
