// SPDX-License-Identifier: Apache-2.0

package openapi_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/tamgatest"
	"tamga/internal/testsize"
	webconsole "tamga/internal/web/console"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// apiDocument is /openapi.json as far as these tests read it.
type apiDocument struct {
	Paths      map[string]map[string]*apiOperation
	Components struct {
		Schemas map[string]*apiSchema
	}
}

type apiOperation struct {
	OperationID string
	Summary     string
	Tags        []string
	Parameters  []struct {
		Name, In string
		Required bool
		Example  *string
	}
	RequestBody *struct {
		Content map[string]struct {
			Schema  *apiSchema
			Example any
			File    any `json:"x-file"`
		}
	}
	Responses map[string]struct {
		Content map[string]struct{ Schema *apiSchema }
	}

	method, path string
}

// apiSchema is the part of JSON Schema that the document uses.
type apiSchema struct {
	Ref                  string `json:"$ref"`
	Type                 any    // a name, or a list of them
	Properties           map[string]*apiSchema
	Required             []string
	Items                *apiSchema
	AdditionalProperties *apiSchema
	OneOf, AnyOf         []*apiSchema
	Description          string
}

// description reads /openapi.json.
func description(p *tamgatest.Server) (document *apiDocument, text []byte) {
	p.T.Helper()
	response, err := http.Get(p.URL + "/openapi.json")
	if err != nil {
		p.T.Fatal(err)
	}
	_, text = tamgatest.ReadAll(p.T, response)
	if err := json.Unmarshal(text, &document); err != nil {
		p.T.Fatalf("%v: %.300s", err, text)
	}
	return document, text
}

// operations lists all operations in the order of their addresses.
func (d *apiDocument) operations() (list []*apiOperation) {
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(d.Paths[path])) {
			o := d.Paths[path][method]
			o.method, o.path = strings.ToUpper(method), path
			list = append(list, o)
		}
	}
	return list
}

// fits says why a value is not of a schema, "" when it is.
func (d *apiDocument) fits(s *apiSchema, value any, at string) string {
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		s = d.Components.Schemas[name]
	}
	for _, choice := range [][]*apiSchema{s.OneOf, s.AnyOf} {
		why := ""
		for _, c := range choice {
			if why = d.fits(c, value, at); why == "" {
				break
			}
		}
		if why != "" {
			return why
		}
	}
	if s.Type != nil {
		is := map[bool]string{}
		switch v := value.(type) {
		case nil:
			is[true] = "null"
		case bool:
			is[true] = "boolean"
		case string:
			is[true] = "string"
		case float64:
			is[true] = "number"
			if v == float64(int64(v)) {
				is[false] = "integer"
			}
		case []any:
			is[true] = "array"
		case map[string]any:
			is[true] = "object"
		}
		allowed, ok := s.Type.([]any)
		if !ok {
			allowed = []any{s.Type}
		}
		if !slices.Contains(allowed, any(is[true])) && !slices.Contains(allowed, any(is[false])) {
			return fmt.Sprintf("%s is %v, want %v", at, is[true], s.Type)
		}
	}
	switch v := value.(type) {
	case []any:
		for i, e := range v {
			if s.Items != nil {
				if why := d.fits(s.Items, e, fmt.Sprintf("%s[%d]", at, i)); why != "" {
					return why
				}
			}
		}
	case map[string]any:
		for _, name := range s.Required {
			if _, ok := v[name]; !ok {
				return at + " has no " + name
			}
		}
		for name, e := range v {
			property := s.Properties[name]
			if property == nil {
				property = s.AdditionalProperties
			}
			switch {
			case property != nil:
				if why := d.fits(property, e, at+"."+name); why != "" {
					return why
				}
			case len(s.Properties) > 0 && name != "\u0421acheObjectId": // with the Cyrillic letter: see docs/compatibility.md
				return at + " has " + name + ", which is not described"
			}
		}
	}
	return ""
}

// untried are the operations without an example that can be sent as it is, of the
// surfaces that clients are written for.
var untried = map[string]string{
	"InstallCertificate": "needs the certificate of an outside authority", "InstallCertificateV2": "needs the certificate of an outside authority",
	"Confirmation": "needs an operation that is confirmed", "ConfirmationV2": "needs an operation that is confirmed",
	"Login": "needs the ticket of a page", "SecondStep": "needs the ticket of a page", "ExternalHandOn": "needs another identity provider", "ExternalReturn": "needs another identity provider", "ExternalReturnPOST": "needs another identity provider",
	"AuthorizeCertificate": "needs the certificate of an operator", "UserInfo": "needs a token with the scope openid", "UserInfoPOST": "needs a token with the scope openid",
	"SetUserAuthenticationMethodPasskey": "needs an installation with passkeys", "GetUserPasskeys": "needs an installation with passkeys", "RemoveUserPasskey": "needs an installation with passkeys",
	"CancelOperation": "needs an operation that is under way", "CancelOperationDELETE": "needs an operation that is under way",
	"CreateTransaction": "needs a user who can confirm", "GetOperationProof": "needs a confirmed operation", "GetUserOperationProof": "needs a confirmed operation",
	"GetApproval": "needs a request that waits", "GiveApproval": "needs a request that waits", "RefuseApproval": "needs a request that waits", "CancelChange": "needs a change that waits", "ConfirmChange": "needs a change that waits",
	"SetUserOtpToken": "needs a token in stock", "RestoreUserOtpTokenSync": "needs a token in stock",
	"RestoreUserPushAdressContact": "needs a device", "RestoreUserPushAdressContactPATCH": "needs a device", "DeleteUserPushAddress": "needs a device",
	"SetUserNotificationPushAdress": "needs a device", "SetUserNotificationPushAdressPATCH": "needs a device",
}

// TestExamples sends every example of /openapi.json to a running server: each is
// answered with 200, and each answer is of the schema that the document gives it. Every
// operation has a summary of its own.
func TestExamples(t *testing.T) {
	t.Parallel()
	server := tamgatest.Start(t, "--set", "two_step.calls_per_second=1000", "--set", "verification.calls_per_second=1000", "--set", "devices.codes.resend=1ns")
	document, _ := description(server)
	w := &exampleWorld{Server: server, t: t, bearer: server.Token(), operator: server.TokenOf("operator", server.Dev.Operator.Password)}
	tried := map[string]int{}
	summaries := map[string]bool{}
	for _, o := range document.operations() {
		if o.Summary == "" || strings.HasPrefix(o.OperationID, strings.TrimSuffix(o.Summary, ".")) || !strings.Contains(o.Summary, " ") {
			t.Errorf("%s has the summary %q", o.OperationID, o.Summary)
		}
		summaries[o.Summary] = true
		tag := o.Tags[0]
		if o.RequestBody != nil && !o.shown() {
			t.Errorf("%s %s (%s) has a body and no example", o.method, o.path, o.OperationID)
		}
		if !o.ready() {
			if _, known := untried[o.OperationID]; !known && slices.Contains([]string{"Signing", "Documents", "Operations", "Account", "User management", "Verification", "Cards"}, tag) {
				t.Errorf("%s %s (%s) has no example, and untried has no reason", o.method, o.path, o.OperationID)
			}
			continue
		}
		if untried[o.OperationID] != "" || tag == "Mobile devices" { // only a device can sign its messages
			continue
		}
		t.Run(o.OperationID, func(t *testing.T) { w.try(t, document, o) })
		tried[tag]++
	}
	t.Logf("tried: %v", tried)
	if tried["Signing"] < 30 || tried["User management"] < 90 || len(summaries) < 150 {
		t.Errorf("tried %v, %d summaries", tried, len(summaries))
	}
}

// shown reports whether the body of an operation has an example, for people at least.
func (o *apiOperation) shown() bool {
	for _, c := range o.RequestBody.Content {
		if c.Example != nil || c.File != nil {
			return true
		}
	}
	return false
}

// ready reports whether an operation has all that a request needs.
func (o *apiOperation) ready() bool {
	for _, p := range o.Parameters {
		if p.Example == nil && (p.Required || p.In == "path") {
			return false
		}
	}
	if o.RequestBody == nil {
		return true
	}
	for _, c := range o.RequestBody.Content {
		if c.Example != nil {
			return true
		}
	}
	return false
}

// exampleWorld makes what the examples name.
type exampleWorld struct {
	*tamgatest.Server
	t                testing.TB // of the operation that is tried
	bearer, operator string     // tokens of the user demo and of the operator
	serial           int
}

// Names that the examples use. Each is replaced by one that exists or is free.
const (
	exampleUser      = "e3d5b0c2-7d0f-4a57-9b85-0f1f9c3f8a11"
	exampleDocument  = "1b3c5d7e-2f40-4a61-8b72-9c83ad94be05"
	exampleOther     = "2c4d6e8f-3a51-4b72-9c83-ad94be05c116"
	exampleOperation = "5a0f1d7e-9a50-4b7e-8f0e-0d4f2c6b7a02"
	examplePrepared  = "7c1f6a52-40a5-4a0e-9d0b-52d3f1b1a901"
	exampleDevice    = "412345678901234"
)

// want is the answer to a request that must succeed.
func (w *exampleWorld) want(token, method, address string, body any, header ...string) []byte {
	w.t.Helper()
	text, ok := body.(string)
	if !ok && body != nil {
		text = exampleText(body)
	}
	request, err := http.NewRequestWithContext(w.t.Context(), method, address, strings.NewReader(text))
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	status, answer := tamgatest.ReadAll(w.t, response)
	if status != 200 {
		w.t.Fatalf("%s %s: %d %.300s", method, address, status, answer)
	}
	return answer
}

// upload stores a document.
func (w *exampleWorld) upload(name string, content []byte) string {
	w.t.Helper()
	return tamgatest.Documents(w.Server, w.bearer).Put(content, map[string]string{"Filename": name})
}

// operation carries an operation out and returns its identifier.
func (w *exampleWorld) operation() string {
	w.t.Helper()
	text := w.want(w.bearer, "POST", w.Dev.BaseURL+"/api/v2/signature", map[string]any{
		"BinaryData": []any{map[string]any{"ContentInfo": "0", "Content": []byte("Hello")}},
		"Signature":  map[string]any{"Type": "CMS", "Parameters": tamgatest.Parameters{"IsDetached": "True"}, "CertificateId": "0"},
	})
	var answer struct {
		Operation struct {
			ID string `json:"Id"`
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Operation.ID == "" {
		w.t.Fatalf("%v: %.300s", err, text)
	}
	return answer.Operation.ID
}

func jsonText(t testing.TB, text []byte) (s string) {
	t.Helper()
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatalf("%v: %.300s", err, text)
	}
	return s
}

// names are the real names for the names in an operation's example.
func (w *exampleWorld) names(o *apiOperation) []string {
	w.serial++
	n := w.serial
	ums := w.Dev.IDPURL + "/ums/user"
	login, phone, email := fmt.Sprintf("person%d", n), fmt.Sprintf("7916%07d", n), fmt.Sprintf("person%d@example.org", n)
	names := []string{
		"79161234568", fmt.Sprintf("7926%07d", n), "second.petrov@example.org", fmt.Sprintf("second%d@example.org", n),
		"<password>", w.Dev.User.Password, "For contracts", fmt.Sprint("For contracts ", n),
	}
	under := func(prefix string) bool { return strings.HasPrefix(o.path, prefix) }
	id := o.OperationID
	if onUser := under("/STS/ums/user/{id}") || under("/STS/user/{id}") || strings.HasPrefix(id, "GetUserRaw") || id == "Get"; onUser {
		user := jsonText(w.t, w.want(w.operator, "POST", ums, map[string]string{"Login": login, "PhoneNumber": phone, "Email": email}))
		at := ums + "/" + user
		if !strings.Contains(id, "Confirm") {
			for _, contact := range []string{"/phones/" + phone, "/emails/" + email} {
				w.want(w.operator, "POST", at+contact+"/confirm", nil)
				w.want(w.operator, "POST", at+contact+"/secondaryauth", nil)
			}
		}
		if strings.HasPrefix(id, "Submit") {
			kind, to := "/phones/", phone
			if strings.Contains(o.path, "/emails/") {
				kind, to = "/emails/", email
			}
			w.want(w.operator, "POST", at+kind+to+"/requireconfirm", nil)
			names = append(names, "<code>", w.code(to))
		}
		switch {
		case strings.HasPrefix(id, "SetUserAuthenticationMethod"), strings.HasPrefix(id, "DeleteUserAuthenticationMethod"), strings.HasPrefix(id, "ResetPassword"):
			w.want(w.operator, "POST", at+"/authmethod/password", nil)
		case id == "GetUserOtpTokenInfo", id == "RemoveUserOtpToken":
			w.want(w.operator, "POST", at+"/oath/app", map[string]any{})
		case strings.HasPrefix(id, "GetMyDssKInit"), strings.HasPrefix(id, "SendMyDssKInit"), strings.HasPrefix(id, "ResendMyDss"), strings.HasPrefix(id, "DeleteMyDssKInit"):
			w.want(w.operator, "POST", at+"/mydss/init", map[string]string{"Msisdn": phone})
		}
		if o.names(exampleDevice) {
			out := w.MustRun("phone", "register", "--service", w.Dev.DevicesURL, "--file", filepath.Join(w.t.TempDir(), "phone.json"), "--json")
			kid := regexp.MustCompile(`"kid": *"([0-9]+)"`).FindStringSubmatch(out)[1]
			if id != "AssignMyDssKey" {
				w.want(w.operator, "POST", at+"/mydss/assign", map[string]string{"Kid": kid})
			}
			names = append(names, exampleDevice, kid)
		}
		if id != "Get" {
			login = "other" + login // the example gives a new one
		}
		names = append(names, exampleUser, user)
	}
	names = append(names, "79161234567", phone, "petrov@example.org", email, `"petrov"`, `"`+login+`"`, "petrov", login)
	if o.names(exampleDocument) || under("/DocumentStore/api/documents/hash") {
		content := []byte("Hello")
		if strings.Contains(id, "Retention") { // only signed documents are kept
			content = w.Signed("POST", "/api/documents", w.bearer, tamgatest.Request(content, "CAdES", 0, tamgatest.Parameters{"CADESType": "BES", "IsDetached": "False"}))
		}
		document := w.upload("hello.txt", content)
		if strings.Contains(id, "Retention") && id != "SetRetention" {
			w.want(w.bearer, "PUT", w.Dev.DocumentsURL+"/api/documents/"+document+"/retention", map[string]string{"Until": "2056-01-31"})
		}
		h := suite.Streebog256.Digest([]byte("Hello"))
		names = append(names, exampleOther, w.upload("other.txt", []byte("Other")), exampleDocument, document, strings.Repeat("0", 64), hex.EncodeToString(h.Sum))
	}
	if o.names(exampleOperation) {
		names = append(names, exampleOperation, w.operation())
	}
	if o.names("<certificate>") || o.names(examplePrepared) {
		cert, sign := tamgatest.ClientOfTwoSteps(w.t, suite.GOST2012x256)
		names = append(names, "<certificate>", base64.StdEncoding.EncodeToString(cert.Raw))
		if o.names(examplePrepared) {
			names = append(names, w.prepared(cert, sign)...)
		}
	}
	if o.names("<signed message>") {
		text := w.want(w.bearer, "POST", w.Dev.BaseURL+"/api/documents", tamgatest.Request([]byte("Hello"), "CAdES", 0, tamgatest.Parameters{"IsDetached": "False"}))
		names = append(names, "<signed message>", jsonText(w.t, text))
	}
	if o.names("<detached signature>") {
		text := w.want(w.bearer, "POST", w.Dev.BaseURL+"/api/documents", tamgatest.Request([]byte("Hello"), "CAdES", 0, tamgatest.Parameters{"CADESType": "BES", "IsDetached": "True"}))
		names = append(names, "<detached signature>", jsonText(w.t, text))
	}
	if o.names("<encrypted message>") {
		own, err := os.ReadFile(filepath.Join(w.Dir, w.Cert("gost2012-256", false).PEM))
		if err != nil {
			w.t.Fatal(err)
		}
		block, _ := pem.Decode(own)
		text := w.want(w.bearer, "POST", w.Dev.BaseURL+"/api/documents/encrypt", map[string]any{"Content": []byte("Hello"), "Encryption": map[string]any{"Type": "CMS", "Certificates": [][]byte{block.Bytes}}})
		names = append(names, "<encrypted message>", jsonText(w.t, text))
	}
	return names
}

// prepared takes the first of two steps and makes the signature value.
func (w *exampleWorld) prepared(cert *x509gost.Certificate, sign x509gost.SignFunc) []string {
	w.t.Helper()
	text := w.want("", "POST", w.Dev.BaseURL+"/api/signatures/presign", map[string]any{"Document": []byte("Hello"), "RawCertificate": cert.Raw, "SignatureType": "CAdES"})
	var p struct {
		HashValue     []byte
		CacheObjectID string `json:"CacheObjectId"`
	}
	if err := json.Unmarshal(text, &p); err != nil {
		w.t.Fatal(err)
	}
	value, err := sign(suite.Digest{Hash: suite.GOST2012x256.Hash, Sum: p.HashValue})
	if err != nil {
		w.t.Fatal(err)
	}
	return []string{examplePrepared, p.CacheObjectID, "<signature value>", base64.StdEncoding.EncodeToString(value)}
}

// names reports whether the example of an operation holds a text.
func (o *apiOperation) names(text string) bool {
	for _, p := range o.Parameters {
		if p.Example != nil && strings.Contains(*p.Example, text) {
			return true
		}
	}
	if o.RequestBody != nil {
		for _, c := range o.RequestBody.Content {
			if strings.Contains(exampleText(c.Example), text) {
				return true
			}
		}
	}
	return false
}

// exampleText is an example as JSON, without escapes of angle brackets.
func exampleText(example any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(example) != nil {
		return ""
	}
	return b.String()
}

// code is the code that was sent to a contact.
func (w *exampleWorld) code(to string) string {
	w.t.Helper()
	var list []webconsole.Message
	if err := json.Unmarshal(w.want("", "GET", w.Dev.CapturedURL, nil, "Accept", "application/json"), &list); err != nil {
		w.t.Fatal(err)
	}
	for _, m := range list {
		if code := tamgatest.SixDigits.FindString(m.Text); m.To == to && code != "" {
			return code
		}
	}
	w.t.Fatalf("no code was sent to %s", to)
	return ""
}

// try sends the example of an operation.
func (w *exampleWorld) try(t *testing.T, document *apiDocument, o *apiOperation) {
	w.t, w.Server.T = t, t
	token := ""
	switch o.Tags[0] {
	case "Signing", "Cards", "Documents", "Operations", "Account":
		token = w.bearer
	case "User management":
		token = w.operator
	}
	real := strings.NewReplacer(w.names(o)...)
	address, query, header := o.path, url.Values{}, []string{"Accept", "application/json"}
	for _, p := range o.Parameters {
		if p.Example == nil {
			continue
		}
		value := real.Replace(*p.Example)
		switch {
		case p.In == "path" && (value == "17" || value == "23"):
			value = w.numbered(o, value)
			address = strings.ReplaceAll(address, "{"+p.Name+"}", value)
		case p.In == "path":
			address = strings.ReplaceAll(address, "{"+p.Name+"}", url.PathEscape(value))
		case p.In == "query":
			query.Set(p.Name, value)
		default:
			header = append(header, p.Name, value)
		}
	}
	var body any
	if o.RequestBody != nil {
		for media, c := range o.RequestBody.Content {
			if c.Example == nil {
				continue
			}
			text, _ := c.Example.(string)
			if media == "application/json" {
				text = exampleText(c.Example)
				if why := document.fits(c.Schema, c.Example, "the example"); why != "" {
					t.Error(why)
				}
			}
			if fields, ok := c.Example.(map[string]any); ok && strings.HasSuffix(media, "urlencoded") {
				form := url.Values{}
				for name, value := range fields {
					form.Set(name, real.Replace(value.(string)))
				}
				text = form.Encode()
			}
			if fields, ok := c.Example.(map[string]any); ok && media == "multipart/form-data" {
				var form bytes.Buffer
				parts := multipart.NewWriter(&form)
				for name, value := range fields {
					if err := parts.WriteField(name, value.(string)); err != nil {
						t.Fatal(err)
					}
				}
				parts.Close()
				text, media = form.String(), parts.FormDataContentType()
			}
			body, header = real.Replace(text), append(header, "Content-Type", media)
		}
	}
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	answer := w.want(token, o.method, w.URL+address, body, header...)
	described, ok := o.Responses["200"]
	switch {
	case !ok:
		t.Error("the answer 200 is not described")
	case len(described.Content) == 0 && len(answer) > 0:
		t.Errorf("answers %.200s; the description has no answer", answer)
	case described.Content["application/json"].Schema != nil:
		var value any
		if err := json.Unmarshal(answer, &value); err != nil {
			t.Fatalf("%v: %.300s", err, answer)
		}
		if why := document.fits(described.Content["application/json"].Schema, value, "the answer"); why != "" {
			t.Errorf("%s: %.500s", why, answer)
		}
	}
}

// numbered makes the certificate 17 or the request 23 of the examples.
func (w *exampleWorld) numbered(o *apiOperation, number string) string {
	w.t.Helper()
	base := w.Dev.BaseURL + "/api"
	if number == "23" {
		text := w.want(w.bearer, "POST", base+"/requests", map[string]any{"AuthorityId": 1, "DistinguishedName": map[string]string{"2.5.4.3": "Petrov"}})
		var made struct{ ID int64 }
		if err := json.Unmarshal(text, &made); err != nil || made.ID == 0 {
			w.t.Fatalf("%s", text)
		}
		return fmt.Sprint(made.ID)
	}
	var made struct {
		CertID int64 `json:"CertId"`
	}
	text := w.want(w.bearer, "POST", base+"/keys/generate", map[string]any{"AlgId": 11849})
	if err := json.Unmarshal(text, &made); err != nil || made.CertID == 0 {
		w.t.Fatalf("%s", text)
	}
	if o.OperationID == "GetKeyParameter" {
		w.want(w.bearer, "POST", fmt.Sprintf("%s/keys/%d/params", base, made.CertID), map[string]string{"Param": "note", "Data": "text"})
	}
	return fmt.Sprint(made.CertID)
}

// TestGeneratedClients: clients that two generators make of /openapi.json, in Go and in
// TypeScript, get a token and sign a document, and OpenSSL verifies the signature.
func TestGeneratedClients(t *testing.T) {
	if testsize.Of() == testsize.Quick {
		t.Skip("generators of clients, which compile what they make")
	}
	t.Parallel()
	server := tamgatest.Start(t)
	_, text := description(server)
	document := []byte("Signed by a client that a program wrote.")
	order := judge.ClientOrder{
		Server: server.URL, Username: server.Dev.User.Login, Password: server.Dev.User.Password,
		ClientID: server.Dev.ClientID, Resource: server.Dev.Resource, Document: document,
	}
	for name, client := range map[string]func(testing.TB, []byte, judge.ClientOrder) []byte{"Go": judge.GoClient, "TypeScript": judge.TypeScriptClient} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			signature := client(t, text, order)
			openssl := judge.OpenSSL(t)
			if out, err := openssl.Run("cms", "-verify", "-cades", "-binary", "-inform", "DER", "-in", openssl.Write("signature", signature),
				"-content", openssl.Write("document", document), "-CAfile", server.Path(server.Dev.CAPEM)); err != nil {
				t.Errorf("OpenSSL: %v\n%s", err, out)
			}
			for changed, source := range map[bool][]byte{false: document, true: document[1:]} {
				v := server.Verdicts(map[string]any{"SignatureType": "CAdES", "Content": signature, "Source": source})
				if len(v) != 1 || *v[0].Result == changed {
					t.Errorf("changed %t: %+v", changed, v)
				}
			}
		})
	}
}
