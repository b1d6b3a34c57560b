// SPDX-License-Identifier: Apache-2.0

package signapi_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tamga/internal/cli/admin"
	"tamga/internal/judge"

	"tamga/internal/tamgatest"
)

// manager is a server whose users manage their certificates.
type manager struct {
	*tamgatest.Server
	tokens map[string]string
}

const other = "other" // a second user

func startManager(t *testing.T, more ...string) *manager {
	t.Helper()
	const password = "correct horse battery staple"
	m := &manager{Server: tamgatest.Start(t, more...), tokens: map[string]string{}}
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(password), 0o600); err != nil {
		t.Fatal(err)
	}
	m.MustRun("user", "add", other, "--group", "Default", "--password-file", file, "--data", m.Dir)
	m.tokens["demo"], m.tokens[other] = m.Token(), m.TokenOf(other, password)
	return m
}

// ask sends a body as it is, "" for none, and reads the answer as JSON where there is
// any.
func (m *manager) ask(who, method, path, body string) (int, map[string]any) {
	m.T.Helper()
	status, text := m.Do(m.T.Context(), method, m.URL+"/SignServer"+path, m.tokens[who], strings.NewReader(body))
	answer := map[string]any{"text": string(text)}
	_ = json.Unmarshal(text, &answer) // answers that are no objects are looked at as text
	return status, answer
}

// good calls an operation that must succeed.
func (m *manager) good(who, method, path, body string) map[string]any {
	m.T.Helper()
	status, answer := m.ask(who, method, path, body)
	if status != http.StatusOK {
		m.T.Fatalf("%s %s %s: %d %v", who, method, path, status, answer)
	}
	return answer
}

func quote(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

// Each row of the certificates, requests, keys and policy, from outside, in both
// addresses and both versions, with the odd forms clients send.
func TestCertificateRows(t *testing.T) {
	m := startManager(t)
	gost := m.Cert("gost2012-256", false).ID
	guarded := m.Cert("gost2012-256", true)
	own := func(format string, args ...any) string { return fmt.Sprintf(format, args...) }

	for _, row := range []struct {
		who, method, path, body string
		status                  int
		has                     string // in the answer
	}{
		{"demo", "GET", own("/api/certificates/%d", gost), "", 200, `"Status":{"Value":"ACTIVE"`},
		{"demo", "GET", own("/rest/api/v2/certificates/%d/", gost), "", 200, `"ProviderType":80`},
		{other, "GET", own("/api/certificates/%d", gost), "", 404, "certificate_not_found"},
		{"", "GET", "/api/policy", "", 401, ""},
		{"demo", "GET", own("/api/certificates/%d/content?format=1", gost), "", 200, `"MII`},
		{"demo", "GET", own("/api/certificates/%d/content?format=2", gost), "", 200, "<SerialNumber>"},
		{"demo", "GET", own("/api/certificates/%d/content?format=4", gost), "", 200, "Владелец"},
		{"demo", "GET", own("/api/certificates/%d/content?format=3", gost), "", 400, "invalid_parameters"},
		{other, "GET", own("/api/certificates/%d/content?format=1", gost), "", 404, "certificate_not_found"},

		{other, "POST", own("/api/certificates/%d/default", gost), `{"Default":true}`, 404, "certificate_not_found"},
		{"demo", "POST", own("/api/certificates/%d/default", gost), `{"Default":false}`, 400, "invalid_parameters"},
		{"demo", "POST", own("/api/certificates/%d/default", gost), ``, 200, ""},
		{"demo", "POST", own("/api/v2/certificates/%d/default", gost), `{"default":"True"}`, 200, `"Status":"Completed"`},

		{"demo", "POST", own("/api/certificates/%d/pin/check", guarded.ID), `{"Pin":"` + guarded.PIN + `","CheckAttempts":true}`, 200, `"IsValid":true,"ErrorDescription":null`},
		{"demo", "POST", own("/api/certificates/%d/pin/check", guarded.ID), `{"pin":"wrong","checkattempts":1}`, 200, `attempts left: 9`},
		{other, "POST", own("/api/certificates/%d/pin/check", guarded.ID), `{"Pin":"x"}`, 404, "certificate_not_found"},
		{"demo", "POST", own("/api/certificates/%d/pin", guarded.ID), `{"OldPin":"wrong","NewPin":"867530"}`, 400, "invalid_pin"},
		{other, "POST", own("/api/certificates/%d/pin", guarded.ID), `{"OldPin":"` + guarded.PIN + `","NewPin":"867530"}`, 404, "certificate_not_found"},
		{"demo", "POST", own("/api/v2/certificates/%d/pin", guarded.ID), `{"OldPin":"` + guarded.PIN + `","NewPin":"867530","ForceConfirmation":true}`, 400, "authn_method_not_confirmed"},
		{"demo", "POST", own("/api/certificates/%d/pin", guarded.ID), `{"OldPin":"` + guarded.PIN + `","NewPin":867530}`, 200, ""},
		{"demo", "POST", own("/api/certificates/%d/pin/check", guarded.ID), `{"Pin":867530}`, 200, `"IsValid":true`},

		{"demo", "POST", own("/api/certificates/%d/friendlyname", gost), `{"FriendlyName":"Основной"}`, 200, ""},
		{"demo", "POST", own("/api/v2/certificates/%d/friendlyname", guarded.ID), `{"FriendlyName":"основной"}`, 400, "duplicate_friendly_name"},
		{"demo", "POST", own("/api/certificates/%d/friendlyname", gost), `{"FriendlyName":"` + strings.Repeat("я", 256) + `"}`, 400, "invalid_frinendly_name_length"},
		{other, "POST", own("/api/certificates/%d/friendlyname", gost), `{"FriendlyName":"x"}`, 404, "certificate_not_found"},

		{"demo", "POST", own("/api/certificates/%d/status", gost), `{"Status":"HOLD","RevocationInfo":{"RevocationComments":"в отпуске"}}`, 200, ""},
		{"demo", "GET", own("/api/certificates/%d", gost), "", 200, `"Value":"HOLD"`},
		{"demo", "GET", own("/api/certificates/%d", gost), "", 200, `"RevocationComments":"в отпуске"`},
		{"demo", "POST", own("/api/v2/certificates/%d/status", gost), `{"Value":1}`, 200, `"Status":"Completed"`},
		{"demo", "POST", own("/api/certificates/%d/status", gost), `{"Status":"ACTIVE"}`, 400, "invalid_certificate_status"},
		{"demo", "POST", own("/api/certificates/%d/status", gost), `{"Status":"GONE"}`, 400, "invalid_parameters"},
		{"demo", "POST", own("/api/certificates/%d/status", gost), `{"Status":"REVOKED","RevocationInfo":{"RevocationReason":"CRL_REASON_NONE"}}`, 400, "invalid_parameters"},
		{other, "POST", own("/api/certificates/%d/status", gost), `{"Status":"REVOKED"}`, 404, "certificate_not_found"},

		{"demo", "POST", "/api/certificates", `{"certificate":""}`, 400, "invalid_certificate_format"},
		{"demo", "POST", "/api/certificates", `{"certificate":"bm90aGluZw=="}`, 400, "invalid_certificate_format"},

		{"demo", "POST", "/api/requests", ``, 400, "invalid_parameters"},
		{"demo", "POST", "/api/v2/requests", `{}`, 400, "invalid_parameters"},
		{"demo", "POST", "/api/requests", `{"AuthorityId":9}`, 400, "invalid_enroll"},
		{"demo", "POST", "/api/requests", `{"AuthorityId":1,"Parameters":{"GroupId":"00000000-0000-0000-0000-000000000000"}}`, 400, "provider_not_found"},
		{"demo", "POST", "/api/requests", `{"AuthorityId":1,"DistinguishedName":{"9.9.9":"x"}}`, 400, "invalid_subject_name"},
		{"demo", "POST", "/api/requests", `{"AuthorityId":1,"Parameters":{"RequestType":"Renew"}}`, 400, "invalid_parameters"},
		{"demo", "POST", "/api/requests", `{"AuthorityId":1,"Parameters":{"SelfSigned":"true"}}`, 400, "invalid_parameters"},
		{"demo", "POST", "/api/requests", `{"AuthorityId":1,"Parameters":{"ForEncryption":"maybe"}}`, 400, "ForEncryption: want true or false"},
		{"demo", "POST", "/api/requests", `{"AuthorityId":1,"Parameters":{"EkuString":"1.3.6.1.5.5.7.3.8"}}`, 400, "invalid_parameters"},
		{"demo", "POST", "/api/requests", `{"AuthorityId":1,"Parameters":{"CertPeriod":99999,"CertPeriodUnits":"Years"}}`, 400, "invalid_parameters"},
		{other, "GET", "/api/requests", "", 200, "[]"},
		{other, "GET", "/api/requests/1", "", 404, "request_not_found"},
		{other, "DELETE", "/api/requests/1", "", 404, "request_not_found"},

		{"demo", "POST", "/api/keys/generate", `{"AlgId":1,"PinCode":"1"}`, 200, `{"IsError":true,"ErrorDescription":"algid_is_not_supported"}`},
		{"demo", "POST", "/api/keys/generate", `{"AlgId":"11849","ParametersOid":"1.2.3"}`, 200, "param_set_is_not_supported"},
		{"demo", "POST", own("/api/keys/%d/params", gost), `{"Param":"a","Data":"b"}`, 200, `{"IsError":false,"ErrorDescription":null}`},
		{"demo", "GET", own("/api/keys/%d/params?param=a", gost), "", 200, `"b"`},
		{other, "GET", own("/api/keys/%d/params?param=a", gost), "", 200, "cert_not_found"},
		{"demo", "POST", own("/api/keys/%d/params", gost), `{"Data":"b"}`, 200, "param_is_null"},

		{other, "DELETE", own("/api/certificates/%d", gost), "", 404, "certificate_not_found"},
		{"demo", "DELETE", own("/api/certificates/%d", m.Dev.Certificates[6].ID), "", 400, "destroyKey: certificate 7 (CN=Demo User,C=RU) is for encryption"},
		{"demo", "DELETE", own("/api/v2/certificates/%d?destroyKey=0", m.Dev.Certificates[6].ID), "", 400, "destroyKey: certificate 7"},
		{"demo", "DELETE", own("/api/certificates/%d?destroyKey=maybe", m.Dev.Certificates[6].ID), "", 400, "destroyKey: want true or false"},
		{"demo", "DELETE", own("/api/certificates/%d?destroyKey=true", m.Dev.Certificates[6].ID), "", 200, ""},
		{"demo", "DELETE", own("/api/v2/certificates/%d", m.Cert("rsa-2048", false).ID), "", 200, `"Operation"`},
		{"demo", "GET", own("/api/certificates/%d", m.Cert("rsa-2048", false).ID), "", 404, "certificate_not_found"},
	} {
		status, text := m.Do(t.Context(), row.method, m.URL+"/SignServer"+row.path, m.tokens[row.who], strings.NewReader(row.body))
		if status != row.status || !strings.Contains(string(text), row.has) {
			t.Errorf("%s %s %s %s: %d %.300s; want %d and %s", row.who, row.method, row.path, row.body, status, text, row.status, row.has)
		}
	}

	// The policy names what the other calls take.
	policy := m.good("demo", "GET", "/rest/api/policy", "")
	for _, field := range []string{"CAPolicy", "CSPsPolicy", "ActionPolicy", "PinCodeMode", "TspServices", "TransactionConfirmation",
		"AllowedSignatureTypes", "AllowThirdPartyTsp", "AllowHashSigning", "templates"} {
		if _, ok := policy[field]; !ok {
			t.Errorf("the policy has no %s", field)
		}
	}
	if policy["TransactionConfirmation"] != "Off" {
		t.Errorf("nothing of the user is to be confirmed, and the policy says %v", policy["TransactionConfirmation"])
	}
	renamed := m.good("demo", "POST", fmt.Sprintf("/api/v2/certificates/%d/friendlyname", gost), `{"FriendlyName":"Другой"}`)["Operation"].(map[string]any)
	if left := renamed["ExpirationDate"].(float64) - float64(time.Now().Unix()); left < 1100 || left > 1200 {
		t.Errorf("an operation that is over expires in %v s", left)
	}
	for _, action := range []string{"issue", "signdocument", "signdocuments"} {
		if !strings.Contains(quote(policy["ActionPolicy"]), `http://dss.cryptopro.ru/identity/claims/action/`+action+`"`) {
			t.Errorf("the policy has no action %s", action)
		}
	}
	tool := judge.OpenSSL(t)
	for _, csp := range policy["CSPsPolicy"].([]any) {
		group := csp.(map[string]any)["GroupID"]
		body := quote(map[string]any{"AuthorityId": "1", "Template": "1.2.643.2.2.46.0.8", "PinCode": 867530,
			"DistinguishedName": map[string]any{"2.5.4.3": "Мария", "2.5.4.10": nil}, "Parameters": map[string]any{"GroupId": group, "certperiod": "2", "CertPeriodUnits": "Months", "forEncryption": "True"}})
		var answer map[string]any
		if group == "6f0e0f0c-7d0b-4a8e-9a53-5c9f2b0f7a11" {
			answer = m.good("demo", "POST", "/api/v2/requests", body)["Operation"].(map[string]any)["Result"].(map[string]any)
		} else {
			answer = m.good("demo", "POST", "/rest/api/requests/", body)
		}
		if answer["Status"] != "ACCEPTED" || answer["CspID"] != group || answer["RequestType"] != "Certificate" {
			t.Errorf("%v: %v", group, answer)
		}
		der, err := base64.StdEncoding.DecodeString(answer["Base64Request"].(string))
		if err != nil {
			t.Fatal(err)
		}
		tool.Write("r.der", der)
		text, err := tool.Run("req", "-inform", "DER", "-in", "r.der", "-verify", "-noout", "-text")
		if err != nil || !strings.Contains(text, "Digital Signature, Non Repudiation, Key ") {
			t.Errorf("%v: not a request for a key that encryption is for, too: %v\n%s", group, err, text)
		}
		// The new key signs, and the renewed one does.
		sign := func(id any, pin string) {
			t.Helper()
			m.Signed("POST", "/api/documents", m.tokens["demo"], map[string]any{"Content": []byte("document"),
				"Signature": map[string]any{"Type": "CMS", "Parameters": map[string]any{}, "CertificateId": id, "PinCode": pin}})
		}
		sign(answer["CertificateID"], "867530")
		renewed := m.good("demo", "POST", "/api/requests", quote(map[string]any{"AuthorityId": 1, "PinCode": "867530",
			"Parameters": map[string]any{"RequestType": "Renew", "ActiveCertId": answer["CertificateID"], "ActiveCertPin": "867530"}}))
		sign(renewed["CertificateID"], "867530")
		if renewed["CspID"] != group || renewed["DistName"] != "CN=Мария" {
			t.Errorf("renewed: %v", renewed)
		}
	}
	revoked := m.good("demo", "POST", "/api/requests", quote(map[string]any{"Parameters": map[string]any{
		"RequestType": "RevokeRequest", "ActiveCertId": gost, "RevocationReason": "CRL_REASON_KEY_COMPROMISE", "RevocationComments": "утрачен"}}))
	if revoked["RequestType"] != "RevokeRequest" || revoked["Status"] != "ACCEPTED" || revoked["CspID"] != nil {
		t.Errorf("%v", revoked)
	}
	if c := m.good("demo", "GET", fmt.Sprintf("/api/certificates/%d", gost), ""); !strings.Contains(quote(c), "CRL_REASON_KEY_COMPROMISE") || !strings.Contains(quote(c), `"RevocationComments":"утрачен"`) {
		t.Errorf("%v", c)
	}
	for _, alg := range []int{11811, 11849, 11837, 9216} {
		made := m.good("demo", "POST", "/api/keys/generate", fmt.Sprintf(`{"AlgId":%d,"PinCode":"135791"}`, alg))
		if made["IsError"] != false || made["CertId"] != made["ID"] || made["Base64Certificate"] != made["CertificateBase64"] {
			t.Errorf("%d: %v", alg, made)
		}
	}
	// What an access policy forbids is refused by the running server at once.
	m.MustRun("user", "deny", "demo", "DeleteCertificate", "--data", m.Dir)
	if status, answer := m.ask("demo", "DELETE", fmt.Sprintf("/api/certificates/%d", guarded.ID), ""); status != 403 {
		t.Errorf("denied: %d %v", status, answer)
	}
	if strings.Contains(m.Logged(), "98765") || strings.Contains(m.Logged(), guarded.PIN+`"`) {
		t.Error("a PIN is in the log")
	}
}

// An operator approves, an outside authority certifies, keys leave and come back.
func TestCertificateAuthorities(t *testing.T) {
	tool := judge.OpenSSL(t)
	list := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(tool.Read("crl.der")) }))
	t.Cleanup(list.Close)
	run := func(args ...string) {
		t.Helper()
		if _, err := tool.Run(args...); err != nil {
			t.Fatal(err)
		}
	}
	run("req", "-x509", "-newkey", "gost2012_256", "-pkeyopt", "paramset:A", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=Elsewhere", "-days", "3650",
		"-addext", "basicConstraints=critical,CA:true", "-addext", "keyUsage=critical,keyCertSign,cRLSign")
	tool.Write("ca.cnf", []byte("[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\ncrlnumber=number\ndefault_md=md_gost12_256\ndefault_crl_days=30\n"))
	tool.Write("index.txt", nil)
	tool.Write("number", []byte("01\n"))
	publish := func() {
		run("ca", "-config", "ca.cnf", "-gencrl", "-keyfile", "ca.key", "-cert", "ca.pem", "-out", "crl.pem")
		run("crl", "-in", "crl.pem", "-outform", "DER", "-out", "crl.der")
	}
	publish()
	m := startManager(t, "--set", "certificates.approval=operator", "--set", "certificates.exportable=true", "--set", "pin.mode=Required",
		"--set", `certificates.authorities=[{id: 2, name: Elsewhere, certificates_file: "`+filepath.Join(tool.Dir, "ca.pem")+`"}]`,
		"--set", "evidence.allow_networks=[\""+strings.TrimPrefix(list.URL, "http://")+"\"]")
	if p := m.good("demo", "GET", "/api/policy", ""); p["PinCodeMode"] != "Required" || !strings.Contains(quote(p), "DSSOutOfBandEnroll") {
		t.Errorf("%v", p)
	}
	if status, answer := m.ask("demo", "POST", "/api/requests", `{"AuthorityId":1}`); status != 400 || answer["error"] != "invalid_pin" {
		t.Errorf("a key without a PIN: %d %v", status, answer)
	}
	first := m.good("demo", "POST", "/api/requests", `{"AuthorityId":1,"PinCode":"135791"}`)
	if status, answer := m.ask("demo", "POST", "/api/requests", `{"AuthorityId":2,"PinCode":"135791"}`); first["Status"] != "PENDING" || status != 400 || answer["error"] != "pending_requests_exist" {
		t.Errorf("%v, then %d %v", first, status, answer)
	}
	set := []string{"--data", m.Dir, "--set", "certificates.exportable=true"}
	if out := m.MustRun("request", "list", "--data", m.Dir, "--json"); !strings.Contains(out, `"PENDING"`) {
		t.Error(out)
	}
	m.MustRun("request", "approve", fmt.Sprint(first["ID"]), "--data", m.Dir)
	approved := m.good("demo", "GET", fmt.Sprintf("/api/requests/%v", first["ID"]), "")
	if approved["Status"] != "ACCEPTED" {
		t.Fatalf("%v", approved)
	}

	second := m.good("demo", "POST", "/api/v2/requests", `{"AuthorityId":2,"PinCode":"135791"}`)["Operation"].(map[string]any)["Result"].(map[string]any)
	der, _ := base64.StdEncoding.DecodeString(second["Base64Request"].(string))
	tool.Write("r.der", der)
	tool.Write("ext.cnf", []byte("keyUsage=digitalSignature,nonRepudiation\nauthorityKeyIdentifier=keyid\ncrlDistributionPoints=URI:"+list.URL+"/elsewhere.crl\n"))
	run("req", "-inform", "DER", "-in", "r.der", "-verify", "-noout")
	run("x509", "-req", "-inform", "DER", "-in", "r.der", "-CA", "ca.pem", "-CAkey", "ca.key", "-set_serial", "5", "-days", "365", "-extfile", "ext.cnf", "-out", "issued.pem")
	if status, answer := m.ask(other, "POST", "/api/certificates", quote(map[string]any{"certificate": tool.Read("issued.pem")})); status != 404 || answer["error"] != "request_not_found" {
		t.Errorf("installed by another user: %d %v", status, answer)
	}
	block, _ := pem.Decode(tool.Read("issued.pem"))
	installed := m.good("demo", "POST", "/api/certificates", quote(map[string]any{"certificate": block.Bytes}))
	sign := func(id any) (int, map[string]any) {
		return m.ask("demo", "POST", "/api/documents", quote(map[string]any{"Content": []byte("document"),
			"Signature": map[string]any{"Type": "CMS", "Parameters": map[string]any{}, "CertificateId": id, "PinCode": "135791"}}))
	}
	if status, answer := sign(installed["ID"]); status != 200 {
		t.Errorf("signing with the certificate of another authority: %d %v", status, answer)
	}

	// Out, judged by OpenSSL, and in again for another user's certificate store.
	password, pin := filepath.Join(t.TempDir(), "password"), filepath.Join(t.TempDir(), "pin")
	for file, text := range map[string]string{password: "пароль", pin: "135791"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(tool.Dir, "out.p12")
	m.MustRun(append([]string{"key", "export", fmt.Sprint(approved["CertificateID"]), "-o", out, "--password-file", password, "--pin-file", pin}, set...)...)
	run("pkcs12", "-in", "out.p12", "-passin", "pass:пароль", "-nodes", "-out", "all.pem")
	run("pkcs12", "-export", "-inkey", "all.pem", "-in", "all.pem", "-keypbe", "gost89", "-certpbe", "gost89", "-macalg", "md_gost12_512", "-passout", "pass:пароль", "-out", "theirs.p12")
	m.good("demo", "DELETE", fmt.Sprintf("/api/certificates/%v", approved["CertificateID"]), "")
	var back admin.CertificateJSON
	text := m.MustRun(append([]string{"key", "import", "demo", filepath.Join(tool.Dir, "theirs.p12"), "--password-file", password, "--pin-file", pin, "--json"}, set...)...)
	if err := json.Unmarshal([]byte(text), &back); err != nil {
		t.Fatal(err)
	}
	if status, answer := sign(back.ID); status != 200 {
		t.Errorf("signing with the key that came back: %d %v", status, answer)
	}
}
