// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/testsize"
)

// TestAuthorityUnderLoad renews the built-in authority, gives it new keys and reseals all records, beside a server
// that signs and stamps. No request fails, and OpenSSL verifies signatures by certificates from before and after, under
// the old root and under the new one.
func TestAuthorityUnderLoad(t *testing.T) {
	if testsize.Of() == testsize.Quick {
		t.Skip("replaces keys under load")
	}
	t.Parallel()
	tool := judge.OpenSSL(t)
	i := initialize(t)
	server := i.serve()
	token, err := i.token(server)
	if err != nil {
		t.Fatal(err)
	}
	tool.Write("old.pem", []byte(i.run("ca", "export")))
	before := i.plain
	stop := i.load(server)
	if r := i.try("ca", "rollover", "gost"); r.Code != 1 || !strings.Contains(r.Err, "gost issues nothing any more") || strings.Contains(i.run("ca", "list"), "gost-2") {
		t.Errorf("a rollover without --yes: %d, %s", r.Code, r.Err)
	}
	for _, command := range []string{
		"ca renew gost", "ca renew gost-root", "ca renew ecdsa", "key status", "key reseal",
		"ca rollover gost --issuing-only --yes", "ca rollover gost --yes", "ca rollover ecdsa --yes", "ca renew gost-3", "ca renew gost-root-2", "key reseal", "ca list",
	} {
		i.run(strings.Fields(command)...)
	}
	after := i.issue()
	// Stamps are of the newest authority at once, and the addresses of all of them answer.
	messages := map[string][]byte{}
	for name, certificate := range map[string]int64{"before": before, "after": after} {
		body, err := json.Marshal(map[string]any{
			"Content": []byte("document"),
			"Signature": map[string]any{"Type": "CAdES", "CertificateId": certificate, "PinCode": "",
				"Parameters": map[string]string{"CADESType": "XLT1", "IsDetached": "True", "TSPAddress": "http://sign.example.org/pki/tsp"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if messages[name], err = sign(server, token, body); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := stop(); n == 0 {
		t.Error("no request was answered")
	} else {
		t.Logf("%d requests were answered", n)
	}
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
	tool.Write("document", []byte("document"))
	// A program that trusts one root gets the issuing authorities and cross certificates beside the message.
	// Other roots are not among them.
	var exported []struct {
		Root bool
		PEM  string
	}
	if err := json.Unmarshal([]byte(i.run("ca", "export", "--all", "--cross", "--json")), &exported); err != nil {
		t.Fatal(err)
	}
	var others strings.Builder
	for _, c := range exported {
		if !c.Root {
			others.WriteString(c.PEM)
		}
	}
	tool.Write("others.pem", []byte(others.String()))
	roots := i.run("ca", "export")
	tool.Write("new.pem", []byte(firstCertificate(roots)))
	for name, message := range messages {
		tool.Write("message", message)
		// cms takes no further certificates for the path of a signer.
		if _, err := tool.Run("cms", "-verify", "-noverify", "-binary", "-inform", "DER", "-in", "message", "-content", "document", "-signer", "signer.pem", "-out", "out"); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, trusted := range []string{"old.pem", "new.pem"} {
			if _, err := tool.Run("verify", "-purpose", "smimesign", "-CAfile", trusted, "-untrusted", "others.pem", "signer.pem"); err != nil {
				t.Errorf("%s, under %s: %v", name, trusted, err)
			}
		}
	}
	// The end of the authority that issues now is watched.
	var list struct {
		Authorities []struct {
			Name    string
			Current bool
		}
	}
	if err := json.Unmarshal([]byte(i.run("ca", "list", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	var current []string
	for _, a := range list.Authorities {
		if a.Current {
			current = append(current, a.Name)
		}
	}
	if got := strings.Join(current, " "); got != "gost-root-2 gost-3 ecdsa-root-2 ecdsa-2" {
		t.Errorf("current are %s", got)
	}
	i.run("doctor", "--offline")
}

// firstCertificate returns the first certificate of a PEM text.
func firstCertificate(text string) string {
	const end = "-----END CERTIFICATE-----\n"
	before, _, _ := strings.Cut(text, end)
	return before + end
}
