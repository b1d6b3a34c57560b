// SPDX-License-Identifier: Apache-2.0

package signapi_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tamga/internal/domain/oath/otp"
	"tamga/internal/sigtest"
	"tamga/internal/tamgatest"
	"tamga/pki/suite"
)

// TestPowers verifies and signs with powers of attorney: given with the request, asked for by a policy, withdrawn between two steps.
func TestPowers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	withdrawn := tamgatest.WriteFile(t, filepath.Join(dir, "withdrawn"), "# none\n")
	server := tamgatest.Start(t, "--set", "powers.withdrawn_file="+withdrawn)
	token := server.Token()
	head, employee := issueTo(t, server, sigtest.Head), issueTo(t, server, sigtest.Employee)
	made := func(change func(p *sigtest.Power)) (document, signature []byte) {
		t.Helper()
		p := sigtest.NewPower()
		p.From, p.Until = "2020-01-01", "2120-12-31"
		change(&p)
		document = p.XML()
		return document, server.Signed("POST", "/api/documents", token, tamgatest.Request(document, "CAdES", head, tamgatest.Parameters{"IsDetached": "True", "CADESType": "BES"}))
	}
	power, signature := made(func(*sigtest.Power) {})
	wrong, wrongSignature := made(func(p *sigtest.Power) { p.Representatives[0].SNILS = "99999999999" })
	ended, endedSignature := made(func(p *sigtest.Power) { p.Until = "2020-12-31" })
	type file = map[string]any
	given := func(list ...[]byte) (files []file) {
		for _, f := range list {
			files = append(files, file{"Content": f})
		}
		return files
	}

	document := []byte("a contract")
	message := server.Signed("POST", "/api/documents", token, tamgatest.Request(document, "CAdES", employee, tamgatest.Parameters{"IsDetached": "False", "CADESType": "BES"}))
	for _, c := range []struct {
		name   string
		powers []file
		params file
		result bool
		want   string // in the message, or the fault if the status is not 200
		status int
	}{
		{"without powers", nil, nil, true, "", 200},
		{"a power", given(power, signature), file{"PowerCodes": "BBR_1"}, true, "", 200},
		{"an archive", given(archive(t, power, signature)), nil, true, "", 200},
		{"a wrong SNILS", given(wrong, wrongSignature), nil, false, "its SNILS is 99999999999", 200},
		{"ended", given(ended, endedSignature), nil, false, "until the end of 2020-12-31 in Moscow", 200},
		{"not signed", given(power), nil, false, "has not signed the power", 200},
		{"another power is asked for", given(power, signature), file{"PowerCodes": "BBR_1, BBR_2"}, false, "does not grant BBR_2", 200},
		{"codes alone", nil, file{"PowerCodes": "BBR_1"}, false, "PowerCodes is given without Powers", 400},
		{"an empty one", given(power, nil), nil, false, "Powers[1].Content is missing or empty", 400},
		{"no power", given([]byte("text")), nil, false, "none of the files is one", 400},
	} {
		question := map[string]any{"SignatureType": "CAdES", "Content": message, "Powers": c.powers, "VerifyParams": c.params}
		status, body := server.AskSVS("POST", "/rest/api/signatures", question)
		if status != c.status {
			t.Errorf("%s: %d %s", c.name, status, body)
			continue
		}
		if c.status != 200 {
			if !strings.Contains(string(body), c.want) {
				t.Errorf("%s: %s, want %q", c.name, body, c.want)
			}
			continue
		}
		var answers []struct {
			Result        bool
			Message       string
			SignatureInfo struct {
				Verdict string
				Power   *struct {
					Number, ValidUntil, Representative string
					Power, Signer, Rights, Document    string
					PassedOnFrom, Principals, Codes    []string
				}
			}
		}
		if err := json.Unmarshal(body, &answers); err != nil || len(answers) != 1 {
			t.Fatalf("%s: %v %s", c.name, err, body)
		}
		a := answers[0]
		if a.Result != c.result || !strings.Contains(a.Message, c.want) {
			t.Errorf("%s: %+v, want %q", c.name, a, c.want)
		}
		if p := a.SignatureInfo.Power; (p != nil) != (c.powers != nil) || p != nil && (p.Number != sigtest.NewPower().Number || p.Document != "passed" || p.Principals[0] != "Общество (INN 7707083893)" || p.PassedOnFrom == nil) {
			t.Errorf("%s: %s", c.name, body)
		}
	}

	// A signature asks for a power by its parameters.
	sign := func(server *tamgatest.Server, token string, cert int64, more tamgatest.Parameters) (int, string) {
		t.Helper()
		params := tamgatest.Parameters{"IsDetached": "False", "CADESType": "BES"}
		for name, value := range more {
			params[name] = value
		}
		status, body := server.Call("POST", "/api/documents", token, tamgatest.Request(document, "CAdES", cert, params))
		return status, string(body)
	}
	good := archive(t, power, signature)
	for _, c := range []struct {
		name   string
		cert   int64
		params tamgatest.Parameters
		status int
		want   string
	}{
		{"a power", employee, tamgatest.Parameters{"Power": good}, 200, ""},
		{"a power with the code", employee, tamgatest.Parameters{"power": good, "powerCodes": "bbr_1"}, 200, ""},
		{"another code", employee, tamgatest.Parameters{"Power": good, "PowerCodes": "BBR_5"}, 403, "does not grant BBR_5"},
		{"codes alone", employee, tamgatest.Parameters{"PowerCodes": "BBR_1"}, 403, "send it as the parameter Power"},
		{"a wrong SNILS", employee, tamgatest.Parameters{"Power": archive(t, wrong, wrongSignature)}, 403, "its SNILS is 99999999999"},
		{"ended", employee, tamgatest.Parameters{"Power": archive(t, ended, endedSignature)}, 403, "2020-12-31 in Moscow"},
		{"not signed", employee, tamgatest.Parameters{"Power": power}, 403, "has not signed the power"},
		{"of another person", server.Cert("gost2012-256", false).ID, tamgatest.Parameters{"Power": good}, 403, "no INN or SNILS"},
		{"the head", head, tamgatest.Parameters{"Power": good}, 200, ""},
		{"no Base64", employee, tamgatest.Parameters{"Power": "%%%"}, 400, "want a power of attorney"},
		{"no power", employee, tamgatest.Parameters{"Power": []byte("text")}, 400, "none of the files is one"},
	} {
		if status, body := sign(server, token, c.cert, c.params); status != c.status || c.want != "" && !strings.Contains(body, c.want) {
			t.Errorf("%s: %d %s, want %d %q", c.name, status, body, c.status, c.want)
		}
	}
	// Batches and operations decide it, too.
	status, body := server.Call("POST", "/api/documents", token, map[string]any{
		"Documents": []file{{"Content": document}, {"Content": []byte("second")}},
		"Signature": file{"Type": "CAdES", "Parameters": file{"IsDetached": "False", "CADESType": "BES", "Power": archive(t, wrong, wrongSignature)}, "CertificateId": employee},
	})
	if status != 403 || !strings.Contains(string(body), "its SNILS is 99999999999") {
		t.Errorf("a batch: %d %s", status, body)
	}
	// Two steps: it is decided at the first, and again at the second.
	signer := sigtest.Root(t, suite.GOST2012x256).Identity(t, suite.GOST2012x256, sigtest.Employee)
	presign := func(archive []byte) (int, []byte) {
		return server.Call("POST", "/api/signatures/presign", token, map[string]any{
			"Document": document, "RawCertificate": signer.Certificate.Raw, "SignatureType": "CAdES", "SignatureParams": file{"CADESType": "BES", "IsDetached": "true", "Power": archive},
		})
	}
	if status, body := presign(archive(t, wrong, wrongSignature)); status != 403 {
		t.Errorf("the first step with a wrong power: %d %s", status, body)
	}
	var prepared struct {
		CacheObjectID string `json:"CacheObjectId"`
		HashValue     []byte
	}
	if status, body := presign(good); status != 200 || json.Unmarshal(body, &prepared) != nil {
		t.Fatalf("the first step: %d %s", status, body)
	}
	postsign := func() (int, []byte) {
		return server.Call("POST", "/api/signatures/postsign", token, map[string]any{"CacheObjectId": prepared.CacheObjectID, "SignatureValue": signer.Sign(t, suite.Digest{Hash: signer.Suite.Hash, Sum: prepared.HashValue}), "SignedHashValue": prepared.HashValue})
	}
	tamgatest.WriteFile(t, withdrawn, sigtest.NewPower().Number+"\n")
	if status, body := postsign(); status != 403 || !strings.Contains(string(body), "was withdrawn") {
		t.Errorf("the second step after the withdrawal: %d %s", status, body)
	}
	if status, body := sign(server, token, employee, tamgatest.Parameters{"Power": good}); status != 403 || !strings.Contains(body, "was withdrawn") {
		t.Errorf("after the withdrawal: %d %s", status, body)
	}
	if err := os.Truncate(withdrawn, 0); err != nil {
		t.Fatal(err)
	}
	if status, body := postsign(); status != 200 {
		t.Errorf("the second step: %d %s", status, body)
	}

	// The policy of a group asks for a power.
	last := server
	stored := tamgatest.WriteFile(t, filepath.Join(dir, "stored.zip"), string(good))
	for _, c := range []struct {
		name, rules string
		files       bool
		cert        int64
		params      tamgatest.Parameters
		status      int
		want        string
	}{
		{"none is given", "[{codes: [BBR_1]}]", false, employee, nil, 403, "a power of attorney is needed to sign: send it as the parameter Power"},
		{"the head needs none", "[{codes: [BBR_1]}]", false, head, nil, 200, ""},
		{"one is given", "[{codes: [BBR_1]}]", false, employee, tamgatest.Parameters{"Power": good}, 200, ""},
		{"it does not grant what the group needs", "[{groups: [Default], codes: [BBR_3]}]", false, employee, tamgatest.Parameters{"Power": good}, 403, "does not grant BBR_3"},
		{"another group", "[{groups: [Others]}]", false, employee, nil, 200, ""},
		{"a stored one", "[{codes: [BBR_1]}]", true, employee, nil, 200, ""},
		{"a stored one does not grant it", "[{codes: [BBR_3]}]", true, employee, nil, 403, "does not grant BBR_3"},
	} {
		settings := []string{"--set", "powers.rules=" + c.rules}
		if c.files {
			settings = append(settings, "--set", fmt.Sprintf("powers.files=[%s]", stored))
		}
		if err := last.Stop(); err != nil {
			t.Fatal(err)
		}
		again := tamgatest.StartIn(t, server.Dir, settings...)
		last = again
		if status, body := sign(again, again.Token(), c.cert, c.params); status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d %s, want %d %q", c.name, status, body, c.status, c.want)
		}
	}
}

// issueTo issues a certificate with identifiers to the user of a server.
func issueTo(t *testing.T, server *tamgatest.Server, id sigtest.Identifiers) int64 {
	t.Helper()
	args := []string{"cert", "issue", server.Dev.User.Login, "--json", "--data", server.Dir, "--subject", "CN=" + id.Surname}
	for name, value := range map[string]string{"INN": id.INN, "SNILS": id.SNILS, "INNLE": id.INNLE, "OGRN": id.OGRN} {
		if value != "" {
			args = append(args, "--subject", name+"="+value)
		}
	}
	var issued struct {
		ID int64 `json:"id"`
	}
	if err := json.Unmarshal([]byte(server.MustRun(args...)), &issued); err != nil || issued.ID == 0 {
		t.Fatal(err)
	}
	return issued.ID
}

// TestPowersConfirmed orders a signature with a power of attorney that its user confirms. A power that does not cover it is refused
// before the user is asked, and one that is withdrawn meanwhile when the operation is carried out.
func TestPowersConfirmed(t *testing.T) {
	t.Parallel()
	withdrawn := tamgatest.WriteFile(t, filepath.Join(t.TempDir(), "withdrawn"), "# none\n")
	users := tamgatest.NewUMS(tamgatest.Start(t, "--set", "powers.withdrawn_file="+withdrawn))
	server := users.Server
	secret := []byte("secret of a token 01")
	key, err := otp.New(otp.SHA1, 6, secret)
	if err != nil {
		t.Fatal(err)
	}
	step := int64(0)
	code := func() string { step++; return key.Code(step - 1) }
	tokens := filepath.Join(t.TempDir(), "tokens.csv")
	if err := os.WriteFile(tokens, fmt.Appendf(nil, "serial,type,secret_hex\ndev,HOTP,%x\n", secret), 0o600); err != nil {
		t.Fatal(err)
	}
	server.Command("token", "import", tokens)
	c := &v2{Server: server, t: t, bearer: users.Tokens[tamgatest.Ours]}
	call := func(address string, body, into any) {
		t.Helper()
		status, answer := c.send("POST", address, body)
		if status != 200 {
			t.Fatalf("%s: %d %.300s", address, status, answer)
		}
		if into != nil {
			if err := json.Unmarshal(answer, into); err != nil {
				t.Fatal(err)
			}
		}
	}
	person := server.URL + "/STS/ums/user/" + server.Dev.User.ID
	call(person+"/oath", fields{"Serial": "dev", "FirstOtp": code(), "SecondOtp": code()}, nil)
	call(person+"/authmethod/oath?level=1", nil, nil)
	c.bearer = server.Token()
	head, employee := issueTo(t, server, sigtest.Head), issueTo(t, server, sigtest.Employee)
	order := func(change func(p *sigtest.Power), confirmed bool) fields {
		p := sigtest.NewPower()
		p.From, p.Until = "2020-01-01", "2120-12-31"
		change(&p)
		document := p.XML()
		signature := server.Signed("POST", "/api/documents", c.bearer, tamgatest.Request(document, "CAdES", head, tamgatest.Parameters{"IsDetached": "True", "CADESType": "BES"}))
		return fields{"BinaryData": []fields{{"Content": []byte("contract"), "ContentInfo": "a.txt"}}, "ForceConfirmation": confirmed, "Signature": fields{
			"Type": "CAdES", "Parameters": fields{"CADESType": "BES", "Power": archive(t, document, signature)}, "CertificateId": fmt.Sprint(employee),
		}}
	}
	wrong := func(p *sigtest.Power) { p.Representatives[0].SNILS = "99999999999" }
	c.refusal("access_denied", order(wrong, false))
	c.refusal("access_denied", order(wrong, true))
	created := c.operation(order(func(*sigtest.Power) {}, true))
	confirm := func(more string, value any) (answer struct {
		AccessToken string
		Challenge   struct{ TextChallenge []struct{ RefID string } }
	}) {
		call(server.URL+"/STS/v2.0/confirmation", fields{"Resource": server.Dev.Resource, "ClientId": server.Dev.ClientID, more: value}, &answer)
		return answer
	}
	asked := confirm("OperationId", created.ID.String())
	if len(asked.Challenge.TextChallenge) != 1 {
		t.Fatalf("%+v", asked)
	}
	given := confirm("ChallengeResponse", fields{"TextChallengeResponse": []any{fields{"RefId": asked.Challenge.TextChallenge[0].RefID, "Value": code()}}})
	c.bearer = given.AccessToken
	tamgatest.WriteFile(t, withdrawn, sigtest.NewPower().Number+"\n")
	c.refusal("access_denied", "{}")
	if err := os.Truncate(withdrawn, 0); err != nil {
		t.Fatal(err)
	}
	if signed := c.operation("{}").Result.ProcessedDocuments; len(signed) != 1 || signed[0].Content == nil {
		t.Errorf("%+v", signed)
	}
}

// archive returns a ZIP archive with files.
func archive(t testing.TB, files ...[]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for i, f := range files {
		w, err := z.Create(fmt.Sprint(i))
		if err == nil {
			_, err = w.Write(f)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
