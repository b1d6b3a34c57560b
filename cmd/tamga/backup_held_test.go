// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
)

// TestRestoreHolds backs up a message that waits, a two-step signature that was begun, and a sign-in that lasts.
// The message is not sent before the release, and nothing else can be completed after it.
func TestRestoreHolds(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, make database) {
		dir := t.TempDir()
		flags, _ := make(t, dir)
		p := tamgatest.StartIn(t, dir, flags...)
		grant := func(p *tamgatest.Server, form url.Values) (status int, refresh string) {
			t.Helper()
			form.Set("client_id", p.Dev.ClientID)
			response, err := http.PostForm(p.Dev.TokenURL, form)
			if err != nil {
				t.Fatal(err)
			}
			var body []byte
			if status, body = tamgatest.ReadAll(t, response); status == 200 {
				var answer struct {
					RefreshToken string `json:"refresh_token"`
				}
				if err := json.Unmarshal(body, &answer); err != nil {
					t.Fatal(err)
				}
				return status, answer.RefreshToken
			}
			return status, string(body)
		}
		status, refresh := grant(p, url.Values{"grant_type": {"password"}, "username": {p.Dev.User.Login}, "password": {p.Dev.User.Password}, "resource": {p.Dev.Resource}, "scope": {"dss offline_access"}})
		if status != 200 || refresh == "" {
			t.Fatalf("a sign-in that lasts: %d %s", status, refresh)
		}
		if status, refresh = grant(p, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}}); status != 200 {
			t.Fatalf("a refresh token before the backup: %d %s", status, refresh)
		}
		presign := func(p *tamgatest.Server) (object string, digest []byte) {
			t.Helper()
			body, err := io.ReadAll(tamgatest.PresignRequest(t, p, []byte("document")))
			if err != nil {
				t.Fatal(err)
			}
			status, answer := p.Call("POST", "/rest/api/signatures/presign", "", json.RawMessage(body))
			var prepared struct {
				HashValue     []byte
				CacheObjectID string `json:"CacheObjectId"`
			}
			if err := json.Unmarshal(answer, &prepared); err != nil || status != 200 {
				t.Fatalf("presign: %d %s", status, answer)
			}
			return prepared.CacheObjectID, prepared.HashValue
		}
		postsign := func(p *tamgatest.Server, object string, digest []byte) string {
			t.Helper()
			_, answer := p.Call("POST", "/api/signatures/postsign", "", map[string]any{"CacheObjectId": object, "SignatureType": "CAdES",
				"SignatureValue": bytes.Repeat([]byte{1}, 64), "SignedHashValue": digest, "SignatureParams": map[string]string{"CADESType": "BES", "IsDetached": "false"}})
			return string(answer)
		}
		object, digest := presign(p)
		if said := postsign(p, object, digest); !strings.Contains(said, "invalid_signature_params") || strings.Contains(said, "must be") { // the value is wrong, the object is there
			t.Fatalf("postsign before the backup: %s", said)
		}
		if err := p.Stop(); err != nil {
			t.Fatal(err)
		}
		// No server runs, so the message waits.
		people := tamgatest.WriteFile(t, filepath.Join(t.TempDir(), "people.csv"), "login,group,email,email_roles\nanna,Default,anna@example.org,confirmed notification\n")
		p.Command("import", people)
		p.Command("user", "delete", "anna", "--yes")
		messages := func(p *tamgatest.Server, state string) (list []struct {
			Subject  string
			Attempts int
		}) {
			t.Helper()
			if err := json.Unmarshal([]byte(p.Command("message", "list", "--json", "--state", state)), &list); err != nil {
				t.Fatal(err)
			}
			return list
		}
		if list := messages(p, "pending"); len(list) != 1 || list[0].Subject != "UserDeleted" {
			t.Fatalf("before the backup: %+v", list)
		}
		backup := filepath.Join(t.TempDir(), "backup")
		p.Command("backup", backup)

		other := elsewhere(t, dir)
		flags, _ = make(t, other)
		if r := tamgatest.Run(t.Context(), "", append([]string{"restore", backup, "--data", other}, flags...)...); r.Failure != nil {
			t.Fatal(r.Failure)
		}
		q := tamgatest.StartIn(t, other, flags...)
		if said := q.Command("restore", "unknown"); !strings.Contains(said, "       1  messages that are held\n") {
			t.Errorf("unknown: %s", said)
		}
		if list := messages(q, "pending"); len(list) != 1 || list[0].Attempts != 0 {
			t.Errorf("closed: %+v wait", list)
		}
		q.Command("restore", "release", "--yes")
		released(t, q)
		for len(messages(q, "sent")) == 0 {
		}
		if status, said := grant(q, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}}); status != 400 || !strings.Contains(said, "invalid_grant") {
			t.Errorf("a refresh token of before: %d %s", status, said)
		}
		if said := postsign(q, object, digest); !strings.Contains(said, "invalid_object") {
			t.Errorf("a two-step signature that was begun before: %s", said)
		}
		if object, digest := presign(q); !strings.Contains(postsign(q, object, digest), "invalid_signature_params") {
			t.Error("a two-step signature cannot be begun after the release")
		}
	})
}
