// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tamga/internal/judge"
	"tamga/internal/tamgatest"
	"tamga/internal/testsize"
)

// TestProof exports the evidence of operations that were confirmed on a device and by a
// code. OpenSSL with gost-engine verifies it as docs/confirmation.md says, and refuses each
// export in which something was changed.
func TestProof(t *testing.T) {
	t.Parallel()
	ssl := judge.OpenSSL(t)
	s := tamgatest.StartSignIn(t)
	w := s.UMS
	id := w.Dev.User.ID
	user := "/ums/user/" + id
	w.OK(tamgatest.Ours, "POST", user+"/phones", `"79251112233"`)
	w.OK(tamgatest.Ours, "POST", user+"/phones/79251112233/confirm", "")
	w.OK(tamgatest.Ours, "POST", user+"/phones/79251112233/secondaryauth", "")
	for _, m := range []string{"otpviasms", "mydss"} {
		w.OK(tamgatest.Ours, "POST", user+"/authmethod/"+m+"?level=1", "")
	}
	file := filepath.Join(t.TempDir(), "phone.json")
	device := func(args ...string) string {
		t.Helper()
		out, err := tamgatest.Phone(t, file, args...)
		if err != nil {
			t.Fatal(out, err)
		}
		return out
	}
	device("register", "--service", w.Dev.DevicesURL, "--name", "Phone")
	var facts struct{ Kid string }
	if err := json.Unmarshal([]byte(device("show", "--json")), &facts); err != nil {
		t.Fatal(err)
	}
	w.OK(tamgatest.Ours, "POST", user+"/mydss/assign", `{"Kid":"`+facts.Kid+`"}`)
	_, text := w.Verification(id, facts.Kid)
	device("verify", "--qr-text", text)

	w.Tokens["demo"] = w.Token()
	certificate := w.Cert("gost2012-256", false).ID
	documents := []string{"first document", "second document", "third document"}
	created := func(path string, body map[string]any) string {
		t.Helper()
		body["ForceConfirmation"] = true
		status, answer := w.Call("POST", path, w.Tokens["demo"], body)
		var made struct{ Operation struct{ ID, Status string } }
		if err := json.Unmarshal(answer, &made); err != nil || status != 200 || made.Operation.Status != "Created" {
			t.Fatalf("%d %s", status, answer)
		}
		return made.Operation.ID
	}
	signature := map[string]any{"Type": "CAdES", "CertificateId": certificate, "Parameters": map[string]any{"CADESType": "BES", "IsDetached": "false"}}
	create := func() string {
		t.Helper()
		var data []map[string]any
		for i, d := range documents {
			data = append(data, map[string]any{"Content": []byte(d), "ContentInfo": fmt.Sprintf("договор %d.txt", i)})
		}
		return created("/api/v2/signature", map[string]any{"BinaryData": data, "Signature": signature})
	}
	type challenge struct {
		AccessToken, Error string
		Challenge          struct {
			ContextData struct{ RefID string }
		}
	}
	confirming := func(body map[string]any) (c challenge) {
		t.Helper()
		all := map[string]any{"Resource": w.Dev.Resource, "ClientId": w.Dev.ClientID}
		maps.Copy(all, body)
		in, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		w.OK("demo", "POST", "/v2.0/confirmation", string(in)).Into(t, &c)
		return c
	}
	choose := func(c challenge, uri string) challenge {
		t.Helper()
		return confirming(map[string]any{"ChallengeResponse": map[string]any{"ChoiceChallengeResponse": []any{map[string]any{
			"RefId": c.Challenge.ContextData.RefID, "ChoiceSelected": []any{map[string]any{"RefID": uri}},
		}}}})
	}
	// sign carries out a confirmed operation and returns the signed documents.
	sign := func(path, token string) (list [][]byte) {
		t.Helper()
		status, answer := w.Call("POST", path, token, map[string]any{})
		var made struct {
			Operation struct {
				Status string
				Result struct {
					ProcessedDocuments []struct{ Content []byte }
				}
			}
		}
		if err := json.Unmarshal(answer, &made); err != nil || status != 200 || made.Operation.Status != "Completed" {
			t.Fatalf("%d %.300s", status, answer)
		}
		for _, d := range made.Operation.Result.ProcessedDocuments {
			list = append(list, d.Content)
		}
		return list
	}
	verify := func(export []byte) error {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), judge.Program(t, "python3"), "../../domain/signing/testdata/proof.py", ssl.Write("proof.json", export))
		out, err := cmd.CombinedOutput()
		if err != nil && !bytes.HasPrefix(out, []byte("refused: ")) {
			t.Fatalf("%s, %v", out, err)
		}
		if err != nil {
			return fmt.Errorf("%s", out)
		}
		return nil
	}

	// On a device, which declines one document.
	approved := create()
	c := confirming(map[string]any{"OperationId": approved})
	choice := "http://dss.cryptopro.ru/identity/authenticationmethod/mydss?" + facts.Kid
	c = choose(c, choice)
	device("approve", approved, "--yes", "--decline", "1")
	token := confirming(map[string]any{"ChallengeResponse": map[string]any{"TextChallengeResponse": []any{map[string]any{"RefId": c.Challenge.ContextData.RefID}}}}).AccessToken
	signed := sign("/api/v2/signature", token)

	command := tamgatest.Run(t.Context(), "", "operation", "proof", approved, "--data", w.Dir)
	if command.Failure != nil {
		t.Fatal(command.Failure, command.Err)
	}
	export := []byte(command.Out)
	if err := verify(export); err != nil {
		t.Fatalf("the export is refused: %v\n%s", err, export)
	}
	var proof map[string]any
	must(t, json.Unmarshal(export, &proof))
	for who, path := range map[string]string{"demo": "/operations/" + approved + "/proof", tamgatest.Ours: user + "/operations/" + approved + "/proof"} {
		var same map[string]any
		w.OK(who, "GET", path, "").Into(t, &same)
		if fmt.Sprint(same) != fmt.Sprint(proof) {
			t.Errorf("%s gets another export from %s", who, path)
		}
	}
	for who, path := range map[string]string{
		tamgatest.Plain: "/operations/" + approved + "/proof", tamgatest.Foreign: user + "/operations/" + approved + "/proof",
		tamgatest.Ours: "/operations/" + approved + "/proof", tamgatest.TwoGroup: "/ums/user/" + tamgatest.Missing + "/operations/" + approved + "/proof",
		tamgatest.Anonymous: "/operations/" + approved + "/proof",
	} {
		if a := w.Ask(who, "GET", path, ""); a.Status == 200 {
			t.Errorf("%s gets the export from %s", who, path)
		}
	}
	if r := tamgatest.Run(t.Context(), "", "operation", "proof", tamgatest.Missing, "--data", w.Dir); r.Failure == nil {
		t.Error("a missing operation has an export")
	}
	// The signed documents hold the values, and OpenSSL finds the confirmed documents in them.
	list := proof["signature"].(map[string]any)["documents"].([]any)
	if len(list) != 2 {
		t.Fatalf("%d documents have a signature, want 2", len(list))
	}
	fields := proof["what"].(map[string]any)["fields"].(map[string]any)
	for _, one := range list {
		one := one.(map[string]any)
		i := int(one["index"].(float64))
		value, err := base64.StdEncoding.DecodeString(one["value"].(string))
		must(t, err)
		if !bytes.Contains(signed[i], value) {
			t.Errorf("document %d does not hold the value", i)
		}
		ssl.Write("message", signed[i])
		_, err = ssl.Run("cms", "-verify", "-inform", "DER", "-in", "message", "-noverify", "-binary", "-out", "content")
		must(t, err)
		out, err := ssl.Run("dgst", "-md_gost12_256", "-r", "content")
		must(t, err)
		if digest := fields["documents"].([]any)[i].(map[string]any)["digest"].(string); !strings.HasPrefix(out, digest) {
			t.Errorf("document %d: the message has %s, the user confirmed %s", i, out, digest)
		}
	}

	// Changed exports.
	other := func(at ...any) func(p any) {
		return func(p any) {
			for _, key := range at[:len(at)-1] {
				switch key := key.(type) {
				case string:
					p = p.(map[string]any)[key]
				case int:
					p = p.([]any)[key]
				}
			}
			change(p, at[len(at)-1])
		}
	}
	for name, edit := range map[string]func(p any){
		"the name of a document":    other("what", "fields", "documents", 0, "name"),
		"the digest of a document":  other("what", "fields", "documents", 2, "digest"),
		"the action":                other("what", "fields", "action"),
		"a parameter":               other("what", "fields", "parameters", 0, "value"),
		"the digest":                other("what", "digest"),
		"the approval":              other("approval", "payload"),
		"the value of the approval": other("approval", "signature"),
		"the key of the device":     func(p any) { p.(map[string]any)["approval"].(map[string]any)["key"] = otherKey(t) },
		"the identifier":            other("id"),
		"the declined documents":    func(p any) { delete(p.(map[string]any), "declined") },
		"the certificate":           other("signature", "certificate"),
		"the signed digest":         other("signature", "documents", 0, "digest"),
		"the signature":             other("signature", "documents", 0, "value"),
		"a signature of another":    other("signature", "documents", 1, "index"),
		"the state":                 other("state"),
		"an audit entry of another": other("audit", 0, "detail"),
		"no audit entries":          func(p any) { p.(map[string]any)["audit"] = []any{} },
		"a signature that is not there": func(p any) {
			s := p.(map[string]any)["signature"].(map[string]any)
			s["documents"] = s["documents"].([]any)[:1]
		},
	} {
		if testsize.Of() < testsize.Whole && name != "the digest of a document" && name != "the key of the device" && name != "the signature" {
			continue // each takes several processes
		}
		var copied any
		must(t, json.Unmarshal(export, &copied))
		edit(copied)
		text, err := json.Marshal(copied)
		must(t, err)
		if err := verify(text); err == nil {
			t.Errorf("the export is accepted after a change of %s", name)
		}
	}

	// In several ways, on a device that has said at a poll that it can show them.
	device("poll")
	mixed := created("/api/tamga/operations", map[string]any{"Signature": signature, "Documents": []any{
		map[string]any{"Name": "a.txt", "Content": []byte(documents[0])},
		map[string]any{"Name": "b.txt", "Content": []byte(documents[1]), "Signature": map[string]any{"Type": "CMS", "Parameters": map[string]any{"IsDetached": "true"}}},
	}})
	c = choose(confirming(map[string]any{"OperationId": mixed}), choice)
	device("approve", mixed, "--yes")
	sign("/api/tamga/operations", confirming(map[string]any{"ChallengeResponse": map[string]any{"TextChallengeResponse": []any{map[string]any{"RefId": c.Challenge.ContextData.RefID}}}}).AccessToken)
	command = tamgatest.Run(t.Context(), "", "operation", "proof", mixed, "--data", w.Dir)
	if err := verify([]byte(command.Out)); err != nil || command.Failure != nil {
		t.Errorf("the export is refused: %v, %v\n%s", err, command.Failure, command.Out)
	}
	must(t, json.Unmarshal([]byte(command.Out), &proof))
	other("what", "fields", "ways", 1, "signature_type")(proof)
	changed, err := json.Marshal(proof)
	must(t, err)
	if verify(changed) == nil {
		t.Error("the export is accepted after a change of the type of one document")
	}

	// By a code, which is in no export.
	coded := create()
	c = confirming(map[string]any{"OperationId": coded})
	sms := "http://dss.cryptopro.ru/identity/authenticationmethod/otpviasms"
	c = choose(c, sms)
	code := w.Code("79251112233")
	token = confirming(map[string]any{"ChallengeResponse": map[string]any{"TextChallengeResponse": []any{map[string]any{"RefId": c.Challenge.ContextData.RefID, "Value": code}}}}).AccessToken
	sign("/api/v2/signature", token)
	command = tamgatest.Run(t.Context(), "", "operation", "proof", coded, "--data", w.Dir)
	if err := verify([]byte(command.Out)); err != nil || command.Failure != nil {
		t.Errorf("the export is refused: %v, %v", err, command.Failure)
	}
	for _, secret := range []string{code, "79251112233", w.Dev.User.Password} {
		if strings.Contains(command.Out, secret) {
			t.Errorf("the export holds %q", secret)
		}
	}
	if !strings.Contains(command.Out, "Confirmed SignDocuments") || strings.Contains(command.Out, `"approval"`) {
		t.Errorf("the export: %s", command.Out)
	}

	// An integrator who acts for the user sends the code that the user typed. A challenge of
	// the device is answered by the device alone.
	w.Tokens["demo"] = s.Read(s.Exchange(w.Tokens[tamgatest.Ours], tamgatest.Naming("unique_name", w.Dev.User.Login, time.Hour))).AccessToken
	relayed := create()
	c = choose(confirming(map[string]any{"OperationId": relayed}), choice)
	text = fmt.Sprintf(`{"Resource":%q,"ClientId":%q,"ChallengeResponse":{"TextChallengeResponse":[{"RefId":%q,"Value":"000000"}]}}`, w.Dev.Resource, w.Dev.ClientID, c.Challenge.ContextData.RefID)
	if a := w.Ask("demo", "POST", "/v2.0/confirmation", text); strings.Contains(a.Body, `"AccessToken"`) {
		t.Errorf("an integrator answers for the device: %v", a)
	}
	if got := confirming(map[string]any{"ChallengeResponse": map[string]any{"TextChallengeResponse": []any{map[string]any{"RefId": c.Challenge.ContextData.RefID}}}}); got.AccessToken != "" {
		t.Error("a poll confirms")
	}
	c = choose(c, sms)
	code = w.Code("79251112233")
	sign("/api/v2/signature", confirming(map[string]any{"ChallengeResponse": map[string]any{"TextChallengeResponse": []any{map[string]any{"RefId": c.Challenge.ContextData.RefID, "Value": code}}}}).AccessToken)
	command = tamgatest.Run(t.Context(), "", "operation", "proof", relayed, "--data", w.Dir)
	if !strings.Contains(command.Out, `"operator": "`+w.Dev.Operator.Login+`"`) || command.Failure != nil {
		t.Errorf("the export does not say who acted for the user: %s, %v", command.Out, command.Failure)
	}
}

// change changes a member of an object: a text by its last but third character.
func change(p any, key any) {
	object := p.(map[string]any)
	switch old := object[key.(string)].(type) {
	case string:
		i := len(old) - min(4, len(old))
		with := "1"
		if old[i:i+1] == with {
			with = "2"
		}
		object[key.(string)] = old[:i] + with + old[i+1:]
	case float64:
		object[key.(string)] = old - 1
	}
}

// otherKey returns the public key of another device.
func otherKey(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key.pem")
	out, err := exec.CommandContext(t.Context(), "openssl", "ecparam", "-genkey", "-name", "prime256v1", "-noout", "-out", file).CombinedOutput()
	if err != nil {
		t.Fatal(string(out), err)
	}
	der, err := exec.CommandContext(t.Context(), "openssl", "ec", "-in", file, "-pubout", "-outform", "DER").Output()
	must(t, err)
	must(t, os.Remove(file))
	return base64.StdEncoding.EncodeToString(der)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
