// SPDX-License-Identifier: Apache-2.0

package idp

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/token"
	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/xmldsig"
	"tamga/sig/xmltree"
)

const (
	theirID  = "https://idp.example/metadata"
	theirSSO = "https://idp.example/sso"
	ourID    = "https://us.example/metadata"
	ourACS   = "https://us.example/return"
	mail     = "urn:oid:0.9.2342.19200300.100.1.3"
)

var nonce = strings.Repeat("5", 64)

// clock returns the time of these tests.
func clock() time.Time { return sigtest.Time }

// at returns the time d after clock, as SAML writes it.
func at(d time.Duration) string { return clock().Add(d).Format("2006-01-02T15:04:05Z") }

// signatureOf returns an empty signature of the element with this ID.
func signatureOf(s *suite.Suite, id string) string {
	return `<ds:Signature xmlns:ds="` + nsDS + `"><ds:SignedInfo><ds:CanonicalizationMethod Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"/>` +
		`<ds:SignatureMethod Algorithm="` + s.XML[0] + `"/><ds:Reference URI="#` + id + `"><ds:Transforms>` +
		`<ds:Transform Algorithm="` + nsDS + `enveloped-signature"/><ds:Transform Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"/></ds:Transforms>` +
		`<ds:DigestMethod Algorithm="` + s.Hash.XML[0] + `"/><ds:DigestValue/></ds:Reference></ds:SignedInfo><ds:SignatureValue/>` +
		`<ds:KeyInfo><ds:X509Data/></ds:KeyInfo></ds:Signature>`
}

// Places of signatures in the text of an answer.
const ofMessage, ofAssertion = "<!--message-->", "<!--assertion-->"

// plain is an answer without signatures. Tests replace parts of it.
var plain = `<samlp:Response xmlns:samlp="` + nsProtocol + `" xmlns:saml="` + nsAssertion + `" ID="_r" Version="2.0" IssueInstant="` + at(0) +
	`" Destination="` + ourACS + `" InResponseTo="_` + nonce + `"><saml:Issuer>` + theirID + `</saml:Issuer>` + ofMessage +
	`<samlp:Status><samlp:StatusCode Value="` + statusSuccess + `"/></samlp:Status>` +
	`<saml:Assertion ID="_a" Version="2.0" IssueInstant="` + at(0) + `"><saml:Issuer>` + theirID + `</saml:Issuer>` + ofAssertion +
	`<saml:Subject><saml:NameID Format="urn:oasis:names:tc:SAML:2.0:nameid-format:persistent">anna</saml:NameID>` +
	`<saml:SubjectConfirmation Method="` + methodBearer + `"><saml:SubjectConfirmationData InResponseTo="_` + nonce + `" Recipient="` + ourACS + `" NotOnOrAfter="` + at(5*time.Minute) + `"/></saml:SubjectConfirmation></saml:Subject>` +
	`<saml:Conditions NotBefore="` + at(0) + `" NotOnOrAfter="` + at(5*time.Minute) + `"><saml:AudienceRestriction><saml:Audience>` + ourID + `</saml:Audience></saml:AudienceRestriction></saml:Conditions>` +
	`<saml:AuthnStatement AuthnInstant="` + at(0) + `"><saml:AuthnContext><saml:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:Password</saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement>` +
	`<saml:AttributeStatement><saml:Attribute Name="` + mail + `"><saml:AttributeValue xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="xs:string">anna@example.ru</saml:AttributeValue></saml:Attribute></saml:AttributeStatement>` +
	`</saml:Assertion></samlp:Response>`

// sign fills in the signatures. The assertion comes first, because the signature of the
// message covers it.
func sign(t testing.TB, by *sigtest.Party, text string, message, assertion bool) string {
	t.Helper()
	for _, part := range []struct {
		wanted    bool
		place, id string
	}{{assertion, ofAssertion, "_a"}, {message, ofMessage, "_r"}} {
		if !part.wanted {
			text = strings.Replace(text, part.place, "", 1)
			continue
		}
		text = strings.Replace(text, part.place, signatureOf(by.Suite, part.id), 1)
		job := &sig.Job{Document: sigtest.Document([]byte(text)), Params: sig.Params{"XMLDsigType": "XMLTemplate"}}
		text = string(sigtest.Make(t, xmldsig.New(), by, job))
	}
	return text
}

// swap replaces parts of a text, old and new in turn. Each old part must be present.
func swap(t testing.TB, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i+1 < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("%s is not in\n%s", pairs[i], text)
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}

// service returns a SAML whose provider signs with these keys.
func service(t testing.TB, change func(*SAMLOptions), by ...*sigtest.Party) (*SAML, *error) {
	t.Helper()
	refused := new(error)
	o := SAMLOptions{
		Name: "main", Provider: SAMLProvider{EntityID: theirID, SSO: theirSSO}, EntityID: ourID, ReturnURL: ourACS,
		Now: clock, Failed: func(err error) { *refused = err },
	}
	for _, p := range by {
		o.Provider.Certificates = append(o.Provider.Certificates, p.Certificate)
	}
	if change != nil {
		change(&o)
	}
	p, err := NewSAML(o)
	if err != nil {
		t.Fatal(err)
	}
	return p, refused
}

func bring(t testing.TB, p *SAML, text string) (string, error) {
	return p.Finish(t.Context(), base64.StdEncoding.EncodeToString([]byte(text)), nonce, "")
}

// mustRefuse fails the test unless an answer is refused for this reason.
func mustRefuse(t *testing.T, p *SAML, refused *error, text, why string) {
	t.Helper()
	*refused = nil
	login, err := bring(t, p, text)
	var g *token.GrantError
	if login != "" || !errors.As(err, &g) || g.Code != token.AccessDenied {
		t.Errorf("%q, %v\n%s", login, err, text)
	} else if *refused == nil || !strings.Contains((*refused).Error(), why) {
		t.Errorf("refused for %v, want %s", *refused, why)
	}
}

func TestSAMLAccepts(t *testing.T) {
	for _, s := range []*suite.Suite{suite.RSASHA256, suite.ECDSAP256, suite.GOST2012x256, suite.GOST2012x512} {
		root := sigtest.Root(t, s)
		by, old := root.Signer(t, s, "The provider"), root.Signer(t, s, "Its key before")
		for _, c := range []struct {
			name               string
			message, assertion bool
			attribute, want    string
			change             []string
		}{
			{"the assertion", false, true, "", "anna", nil},
			{"the message", true, false, "", "anna", nil},
			{"both", true, true, "", "anna", nil},
			{"an attribute", false, true, mail, "anna@example.ru", nil},
			{"no issuer of the message", false, true, "", "anna", []string{`<saml:Issuer>` + theirID + `</saml:Issuer>` + ofMessage, ofMessage}},
			{"a name in two text nodes", false, true, "", "anna & co", []string{">anna<", ">an<![CDATA[na &]]> co<"}},
			{"white space around", false, true, "", "anna", []string{">anna<", ">\n  anna\n<", "<saml:Subject>", "\n<saml:Subject>\n"}},
			{"clocks that differ", false, true, "", "anna", []string{at(5 * time.Minute), at(-59 * time.Second), `NotBefore="` + at(0), `NotBefore="` + at(time.Minute)}},
			{"fractions of a second", false, true, "", "anna", []string{at(5 * time.Minute), clock().Add(time.Minute).Format("2006-01-02T15:04:05.000Z")}},
			{"another confirmation before", false, true, "", "anna", []string{`<saml:SubjectConfirmation `, `<saml:SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:sender-vouches"/><saml:SubjectConfirmation `}},
			{"several audiences", false, true, "", "anna", []string{`<saml:Audience>`, `<saml:Audience>https://other.example</saml:Audience><saml:Audience>`}},
			{"conditions that are kept", false, true, "", "anna", []string{`</saml:Conditions>`, `<saml:OneTimeUse/></saml:Conditions>`}},
		} {
			t.Run(s.Name+"/"+c.name, func(t *testing.T) {
				p, refused := service(t, func(o *SAMLOptions) { o.Attribute = c.attribute }, old, by)
				login, err := bring(t, p, sign(t, by, swap(t, plain, c.change...), c.message, c.assertion))
				if err != nil || login != c.want {
					t.Errorf("%q, %v: %v", login, err, *refused)
				}
			})
		}
	}
}

// TestSAMLContent checks answers that a legitimate provider has signed, but for another
// service, for another time or with an unclear meaning.
func TestSAMLContent(t *testing.T) {
	s := suite.ECDSAP256
	by := sigtest.Root(t, s).Signer(t, s, "The provider")
	const persistent = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"
	for _, c := range []struct {
		name, attribute, format, why string
		change                       []string
	}{
		{"another audience", "", "", "another audience", []string{`<saml:Audience>` + ourID, `<saml:Audience>https://other.example`}},
		{"a longer audience", "", "", "another audience", []string{`<saml:Audience>` + ourID, `<saml:Audience>` + ourID + `/x`}},
		{"one more restriction", "", "", "another audience", []string{`</saml:Conditions>`, `<saml:AudienceRestriction><saml:Audience>x</saml:Audience></saml:AudienceRestriction></saml:Conditions>`}},
		{"no audience", "", "", "no AudienceRestriction", []string{`<saml:AudienceRestriction><saml:Audience>` + ourID + `</saml:Audience></saml:AudienceRestriction>`, ""}},
		{"an unknown condition", "", "", "is unknown", []string{`</saml:Conditions>`, `<saml:Condition/></saml:Conditions>`}},
		{"no conditions", "", "", "no Conditions", []string{`saml:Conditions`, `saml:Advice`}},
		{"expired", "", "", "is over", []string{at(5 * time.Minute), at(-time.Minute)}},
		{"the confirmation expired", "", "", "is over", []string{`Recipient="` + ourACS + `" NotOnOrAfter="` + at(5*time.Minute), `Recipient="` + ourACS + `" NotOnOrAfter="` + at(-time.Minute)}},
		{"not yet valid", "", "", "begins later", []string{`NotBefore="` + at(0), `NotBefore="` + at(61*time.Second)}},
		{"not a time", "", "", "not a time", []string{`NotBefore="` + at(0), `NotBefore="soon`}},
		{"a confirmation without end", "", "", "no NotOnOrAfter", []string{`Recipient="` + ourACS + `" NotOnOrAfter="` + at(5*time.Minute) + `"`, `Recipient="` + ourACS + `"`}},
		{"a session that is over", "", "", "is over", []string{`<saml:AuthnStatement `, `<saml:AuthnStatement SessionNotOnOrAfter="` + at(-time.Hour) + `" `}},
		{"another recipient", "", "", "the recipient is", []string{`Recipient="` + ourACS, `Recipient="https://other.example/return`}},
		{"no recipient", "", "", "the recipient is", []string{`Recipient="` + ourACS + `"`, ``}},
		{"another destination", "", "", "the destination is", []string{`Destination="` + ourACS, `Destination="https://other.example/return`}},
		{"no destination", "", "", "the destination is", []string{`Destination="` + ourACS + `"`, ``}},
		{"unsolicited", "", "", "answers no request", []string{` InResponseTo="_` + nonce + `"`, ``}},
		{"an unsolicited assertion", "", "", "answers no request", []string{`<saml:SubjectConfirmationData InResponseTo="_` + nonce + `"`, `<saml:SubjectConfirmationData`}},
		{"of another request", "", "", "answers another request", []string{`InResponseTo="_` + nonce, `InResponseTo="_` + strings.Repeat("6", 64)}},
		{"an assertion of another request", "", "", "answers another request", []string{`<saml:SubjectConfirmationData InResponseTo="_` + nonce, `<saml:SubjectConfirmationData InResponseTo="_`}},
		{"another issuer of the message", "", "", "the issuer is", []string{`<saml:Issuer>` + theirID + `</saml:Issuer>` + ofMessage, `<saml:Issuer>https://evil.example</saml:Issuer>` + ofMessage}},
		{"another issuer of the assertion", "", "", "the issuer is", []string{`<saml:Issuer>` + theirID + `</saml:Issuer>` + ofAssertion, `<saml:Issuer>https://evil.example</saml:Issuer>` + ofAssertion}},
		{"an issuer that is no entity", "", "", "the issuer is", []string{`<saml:Issuer>` + theirID + `</saml:Issuer>` + ofAssertion, `<saml:Issuer Format="x">` + theirID + `</saml:Issuer>` + ofAssertion}},
		{"refused there", "", "", "the provider refuses", []string{statusSuccess, "urn:oasis:names:tc:SAML:2.0:status:Responder"}},
		{"success inside", "", "", "the provider refuses", []string{`<samlp:StatusCode Value="` + statusSuccess + `"/>`, `<samlp:StatusCode Value="urn:x"><samlp:StatusCode Value="` + statusSuccess + `"/></samlp:StatusCode>`}},
		{"two status", "", "", "more than one Status", []string{`</samlp:Status>`, `</samlp:Status><samlp:Status><samlp:StatusCode Value="x"/></samlp:Status>`}},
		{"no user signed in", "", "", "no AuthnStatement", []string{`<saml:AuthnStatement AuthnInstant="` + at(0) + `">`, `<saml:AuthzDecisionStatement>`, `</saml:AuthnStatement>`, `</saml:AuthzDecisionStatement>`}},
		{"not a bearer", "", "", "SubjectConfirmation of a bearer", []string{methodBearer, "urn:oasis:names:tc:SAML:2.0:cm:holder-of-key"}},
		{"no data of the bearer", "", "", "no SubjectConfirmationData", []string{`<saml:SubjectConfirmationData`, `<saml:KeyInfo`}},
		{"another version", "", "", "has the version", []string{`ID="_a" Version="2.0"`, `ID="_a" Version="1.1"`}},
		{"a comment in the name", "", "", "comment in the text", []string{`>anna<`, `>anna<!-- -->.evil.example<`}},
		{"an instruction in the name", "", "", "processing instruction in the text", []string{`>anna<`, `>anna<?x?>.evil.example<`}},
		{"an element in the name", "", "", "element in the text", []string{`>anna<`, `>an<b>na</b><`}},
		{"an empty name", "", "", "a text of 1 to", []string{`>anna<`, `> <`}},
		{"a long name", "", "", "a text of 1 to", []string{`>anna<`, `>` + strings.Repeat("a", maxLogin+1) + `<`}},
		{"two names", "", "", "more than one NameID", []string{`</saml:NameID>`, `</saml:NameID><saml:NameID>boris</saml:NameID>`}},
		{"an encrypted name", "", "", "is not allowed", []string{`saml:NameID`, `saml:EncryptedID`}},
		{"a transient name", "", "", "transient", []string{persistent, formatTransient}},
		{"another format of the name", "", "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress", "emailAddress expected", nil},
		{"a name for another service", "", "", "for another service", []string{`<saml:NameID `, `<saml:NameID SPNameQualifier="https://other.example" `}},
		{"no such attribute", "login", "", "0 values", nil},
		{"two values", mail, "", "2 values", []string{`</saml:AttributeValue>`, `</saml:AttributeValue><saml:AttributeValue>boris</saml:AttributeValue>`}},
		{"two attributes", mail, "", "2 values", []string{`</saml:AttributeStatement>`, `</saml:AttributeStatement><saml:AttributeStatement><saml:Attribute Name="` + mail + `"><saml:AttributeValue>boris</saml:AttributeValue></saml:Attribute></saml:AttributeStatement>`}},
		{"a comment in the attribute", mail, "", "comment in the text", []string{`anna@`, `an<!---->na@`}},
		{"a comment in the audience", "", "", "comment in the text", []string{ourID + `</saml:Audience>`, ourID + `<!-- -->.evil.example</saml:Audience>`}},
		{"text between elements", "", "", "text between", []string{`<saml:Subject>`, `x<saml:Subject>`}},
		{"an assertion as advice", "", "", "2 elements Assertion", []string{`<saml:AuthnStatement `, `<saml:Advice><saml:Assertion ID="_b"/></saml:Advice><saml:AuthnStatement `}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, refused := service(t, func(o *SAMLOptions) { o.Attribute, o.NameIDFormat = c.attribute, c.format }, by)
			mustRefuse(t, p, refused, sign(t, by, swap(t, plain, c.change...), true, true), c.why)
		})
	}
}

// TestSAMLForged checks good answers changed on their way, and answers of others.
func TestSAMLForged(t *testing.T) {
	s := suite.RSASHA256
	root := sigtest.Root(t, s)
	by, other := root.Signer(t, s, "The provider"), root.Signer(t, s, "Another provider")
	ec := root.Signer(t, suite.ECDSAP256, "A key of another kind")
	p, refused := service(t, nil, by)
	good := sign(t, by, plain, false, true)
	whole := sign(t, by, plain, true, false)
	between := func(text, from, to string) string {
		_, rest, found := strings.Cut(text, from)
		inner, _, ended := strings.Cut(rest, to)
		if !found || !ended {
			t.Fatalf("%s ... %s is not in\n%s", from, to, text)
		}
		return from + inner + to
	}
	value := between(good, "<ds:SignatureValue>", "</ds:SignatureValue>")
	keyInfo := func(text string) string { return between(text, "<ds:KeyInfo>", "</ds:KeyInfo>") }
	const excC14N = "http://www.w3.org/2001/10/xml-exc-c14n#"
	method := `<ds:SignatureMethod Algorithm="` + s.XML[0] + `"`
	for _, c := range []struct{ name, text, why string }{
		{"nothing signed", sign(t, by, plain, false, false), "neither the message nor the assertion is signed"},
		{"another's key", sign(t, other, plain, true, true), "another key"},
		{"another's key, our certificate in KeyInfo", swap(t, sign(t, other, plain, false, true), keyInfo(sign(t, other, plain, false, true)), keyInfo(good)), "another key"},
		{"a key of another kind", sign(t, ec, plain, false, true), "no trusted key matches the algorithm"},
		{"another name", swap(t, good, ">anna<", ">boris<"), "has changed"},
		{"another name in a signed message", swap(t, whole, ">anna<", ">boris<"), "has changed"},
		{"a comment cuts the name", swap(t, good, ">anna<", ">an<!---->na<"), "comment in the text"},
		{"another value", swap(t, good, value, strings.Replace(value, value[40:44], "AAAA", 1)), "another key"},
		{"no value", swap(t, good, value, "<ds:SignatureValue/>"), "another key"},
		{"HMAC with the certificate as a secret", swap(t, good, s.XML[0], "http://www.w3.org/2001/04/xmldsig-more#hmac-sha256"), "is not accepted"},
		{"ECDSA for RSA", swap(t, good, s.XML[0], suite.ECDSAP256.XML[0]), "no trusted key matches the algorithm"},
		{"GOST for RSA", swap(t, good, s.XML[0], suite.GOST2012x256.XML[0]), "no trusted key matches the algorithm"},
		{"RSA with SHA-1", swap(t, good, s.XML[0], "http://www.w3.org/2000/09/xmldsig#rsa-sha1"), "is not accepted"},
		{"RSA with MD5", swap(t, good, s.XML[0], "http://www.w3.org/2001/04/xmldsig-more#rsa-md5"), "is not accepted"},
		{"GOST of 2001", swap(t, good, s.XML[0], suite.GOST2001.XML[0]), "is not accepted"},
		{"no algorithm", swap(t, good, s.XML[0], ""), "is not accepted"},
		{"a parameter of the algorithm", swap(t, good, method+"/>", method+"><ds:HMACOutputLength>0</ds:HMACOutputLength></ds:SignatureMethod>"), "parameter"},
		{"a digest by SHA-1", swap(t, good, s.Hash.XML[0], "http://www.w3.org/2000/09/xmldsig#sha1"), "is not accepted"},
		{"canonical form with comments", swap(t, good, excC14N, excC14N+"WithComments"), "without comments"},
		{"inclusive canonical form", swap(t, good, excC14N, "http://www.w3.org/TR/2001/REC-xml-c14n-20010315"), "exclusive canonical form"},
		{"no canonical form", swap(t, good, `<ds:Transform Algorithm="`+excC14N+`"/>`, ""), "transforms"},
		{"XPath", swap(t, good, nsDS+`enveloped-signature"/>`, `http://www.w3.org/TR/1999/REC-xpath-19991116"><ds:XPath>self::x</ds:XPath></ds:Transform>`), "transforms"},
		{"XSLT", swap(t, good, nsDS+`enveloped-signature`, `http://www.w3.org/TR/1999/REC-xslt-19991116`), "XSLT"},
		{"the whole document", swap(t, good, `URI="#_a"`, `URI=""`), "is not to the element around"},
		{"XPointer", swap(t, good, `URI="#_a"`, `URI="#xpointer(id('_a'))"`), "is not to the element around"},
		{"another's ID", swap(t, good, `URI="#_a"`, `URI="#_r"`), "is not to the element around"},
		{"a remote reference", swap(t, good, `URI="#_a"`, `URI="https://evil.example/"`), "is not to the element around"},
		{"no ID", swap(t, good, `ID="_a"`, ``), "is not to the element around"},
		{"an ID twice", swap(t, good, `<samlp:Status>`, `<samlp:Status Id="_a">`), "ambiguous"},
		{"no reference", swap(t, good, between(good, "<ds:Reference", "</ds:Reference>"), ""), "no Reference"},
		{"two references", swap(t, good, "</ds:Reference>", "</ds:Reference>"+between(good, "<ds:Reference", "</ds:Reference>")), "2 references"},
		{"two signatures", swap(t, good, "</ds:Signature>", "</ds:Signature>"+between(good, "<ds:Signature ", "</ds:Signature>")), "has changed"},
		{"a signature elsewhere", swap(t, good, "<samlp:Status>", "<samlp:Extensions>"+between(good, "<ds:Signature ", "</ds:Signature>")+"</samlp:Extensions><samlp:Status>"), "2 elements Signature"},
		{"the signature of the message unfilled", swap(t, good, `</saml:Issuer><samlp:Status>`, `</saml:Issuer>`+signatureOf(s, "_r")+`<samlp:Status>`), "signature of samlp:Response"},
		{"a document type", `<!DOCTYPE x [<!ENTITY e "boris">]>` + good, "document type"},
		{"entities", `<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>` + swap(t, good, ">anna<", ">&b;<"), "document type"},
		{"an outside entity", `<!DOCTYPE x SYSTEM "file:///etc/passwd">` + good, "document type"},
		{"an encrypted assertion", swap(t, whole, "saml:Assertion", "saml:EncryptedAssertion"), "encrypted"},
		{"no assertion", swap(t, plain, between(plain, "<saml:Assertion ", "</saml:Assertion>"), ""), "0 assertions"},
		{"the assertion alone", swap(t, between(good, "<saml:Assertion ", "</saml:Assertion>"), "<saml:Assertion ", `<saml:Assertion xmlns:saml="`+nsAssertion+`" `), "a Response expected"},
		{"of SAML 1.1", swap(t, good, nsProtocol, "urn:oasis:names:tc:SAML:1.0:protocol"), "a Response expected"},
		{"a request", swap(t, good, "samlp:Response", "samlp:AuthnRequest"), "a Response expected"},
		{"deep", swap(t, good, "<samlp:Status>", "<samlp:Extensions>"+strings.Repeat("<x>", 99)+strings.Repeat("</x>", 99)+"</samlp:Extensions><samlp:Status>"), "more than 64"},
		{"many elements", swap(t, good, "<samlp:Status>", "<samlp:Extensions>"+strings.Repeat("<x/>", 17<<10)+"</samlp:Extensions><samlp:Status>"), "more than 16384"},
		{"large", swap(t, good, "<samlp:Status>", "<samlp:Extensions>"+strings.Repeat(" ", 300<<10)+"</samlp:Extensions><samlp:Status>"), "more than"},
		{"no XML", "hello", "xml"},
		{"nothing", "", "xml"},
	} {
		t.Run(c.name, func(t *testing.T) { mustRefuse(t, p, refused, c.text, c.why) })
	}
	if _, err := p.Finish(t.Context(), "?", nonce, ""); err == nil || !strings.Contains((*refused).Error(), "Base64") {
		t.Errorf("an answer that is not Base64: %v", *refused)
	}
	if login, err := bring(t, p, good); login != "anna" || err != nil {
		t.Errorf("the original answer: %q, %v: %v", login, err, *refused)
	}
}

// TestSAMLWrapping tries the eight wrappings of Somorovsky and others (On Breaking SAML,
// 2012), in the variants that attack tools make: the signed element is moved to where a
// lookup by its ID finds it, and a forged element is put where it is read. Each is tried
// with the ID of the original, another ID, and none.
func TestSAMLWrapping(t *testing.T) {
	s := suite.ECDSAP256
	by := sigtest.Root(t, s).Signer(t, s, "The provider")
	p, refused := service(t, nil, by)
	element := func(text, name string) string {
		from, to := strings.Index(text, "<"+name+" "), strings.LastIndex(text, "</"+name+">")+len("</"+name+">")
		return text[from:to]
	}
	inAssertion, inMessage := sign(t, by, plain, false, true), sign(t, by, plain, true, false)
	signature := element(inAssertion, "ds:Signature")
	assertion := element(inAssertion, "saml:Assertion")
	bareAssertion := strings.Replace(assertion, signature, "", 1)
	messageSignature := element(inMessage, "ds:Signature")
	bareMessage := strings.Replace(inMessage, messageSignature, "", 1)
	object := func(signature, inner string) string {
		return strings.Replace(signature, "</ds:Signature>", "<ds:Object>"+inner+"</ds:Object></ds:Signature>", 1)
	}
	for _, id := range []string{`ID="_r"`, `ID="_evil"`, ``} {
		evil := func(text string) string { return swap(t, text, ">anna<", ">boris<", `ID="_r"`, id) }
		for name, text := range map[string]string{
			"1: the message in the signature of its forgery": strings.Replace(evil(inMessage), messageSignature, object(messageSignature, bareMessage), 1),
			"2: the message before the signature":            strings.Replace(evil(inMessage), messageSignature, bareMessage+messageSignature, 1),
			"the message in extensions":                      swap(t, evil(bareMessage), "<samlp:Status>", messageSignature+"<samlp:Extensions>"+bareMessage+"</samlp:Extensions><samlp:Status>"),
			"the signed message in extensions":               swap(t, evil(bareMessage), "<samlp:Status>", "<samlp:Extensions>"+inMessage+"</samlp:Extensions><samlp:Status>"),
			"both messages in another element":               `<w>` + evil(bareMessage) + inMessage + `</w>`,
		} {
			t.Run(name+"/"+id, func(t *testing.T) { mustRefuse(t, p, refused, text, "") })
		}
	}
	for _, id := range []string{`ID="_a"`, `ID="_evil"`, `Id="_a"`, ``} {
		evil := func(text string) string { return swap(t, text, ">anna<", ">boris<", `ID="_a"`, id) }
		forged := evil(bareAssertion)
		for name, put := range map[string]string{
			"3: a forgery before":                             forged + assertion,
			"a forgery after the original":                    assertion + forged,
			"4: the original in the forgery":                  strings.Replace(forged, "</saml:Assertion>", assertion+"</saml:Assertion>", 1),
			"5: the forgery signed, the original behind":      evil(assertion) + bareAssertion,
			"the forgery signed, the original before":         bareAssertion + evil(assertion),
			"6: the original in the signature of the forgery": strings.Replace(evil(assertion), signature, strings.Replace(signature, "</ds:KeyInfo>", bareAssertion+"</ds:KeyInfo>", 1), 1),
			"8: the original in an object":                    strings.Replace(evil(assertion), signature, object(signature, bareAssertion), 1),
			"a forgery in an object":                          strings.Replace(assertion, signature, object(signature, forged), 1),
			"the original in the subject of the forgery":      swap(t, forged, "</saml:NameID>", "</saml:NameID>"+assertion),
			"the original as advice":                          swap(t, forged, "<saml:AuthnStatement ", "<saml:Advice>"+assertion+"</saml:Advice><saml:AuthnStatement "),
		} {
			t.Run(name+"/"+id, func(t *testing.T) {
				mustRefuse(t, p, refused, strings.Replace(inAssertion, assertion, put, 1), "")
			})
		}
		for name, put := range map[string]string{
			"7: a forgery in extensions":  forged,
			"the original in extensions":  assertion,
			"the signature in extensions": signature,
		} {
			rest := assertion
			if put != forged {
				rest = forged
			}
			text := strings.Replace(inAssertion, assertion, rest, 1)
			t.Run(name+"/"+id, func(t *testing.T) {
				mustRefuse(t, p, refused, swap(t, text, "<samlp:Status>", "<samlp:Extensions>"+put+"</samlp:Extensions><samlp:Status>"), "")
			})
		}
	}
}

func TestSAMLBegin(t *testing.T) {
	root := sigtest.Root(t, suite.ECDSAP256)
	ec, rsa := root.Signer(t, suite.ECDSAP256, "Ours"), root.Signer(t, suite.RSASHA256, "Ours too")
	for _, key := range []*sigtest.Party{nil, ec, rsa} {
		p, _ := service(t, func(o *SAMLOptions) {
			o.Provider.SSO = theirSSO + "?realm=a&b=c"
			o.NameIDFormat = "urn:x:<&>"
			if key != nil {
				o.Key, o.Certificate = key.Key, key.Certificate.Raw
			}
		}, root)
		address, err := p.Begin(t.Context(), "the & state", nonce, "")
		query, found := strings.CutPrefix(address, theirSSO+"?realm=a&b=c&")
		q, perr := url.ParseQuery(query)
		if err != nil || perr != nil || !found || q.Get("RelayState") != "the & state" {
			t.Fatal(address, err, perr)
		}
		packed, err := base64.StdEncoding.DecodeString(q.Get("SAMLRequest"))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
		want := `<samlp:AuthnRequest xmlns:samlp="` + nsProtocol + `" xmlns:saml="` + nsAssertion + `" ID="_` + nonce + `" Version="2.0" IssueInstant="` + at(0) +
			`" Destination="` + theirSSO + `?realm=a&amp;b=c" ProtocolBinding="` + bindingPost + `" AssertionConsumerServiceURL="` + ourACS + `"><saml:Issuer>` + ourID +
			`</saml:Issuer><samlp:NameIDPolicy Format="urn:x:&lt;&amp;&gt;" AllowCreate="true"/></samlp:AuthnRequest>`
		if err != nil || string(text) != want {
			t.Errorf("%s, %v", text, err)
		}
		signed, encoded, found := strings.Cut(query, "&Signature=")
		if found != (key != nil) {
			t.Fatalf("signed: %v", found)
		}
		if key == nil {
			continue
		}
		value, err := base64.StdEncoding.DecodeString(q.Get("Signature"))
		if err == nil {
			value, err = key.Suite.FromXMLValue(value)
		}
		if err != nil || q.Get("SigAlg") != key.Suite.XML[0] || key.Certificate.Verify(key.Suite.Hash.Digest([]byte(signed)), value) != nil || url.QueryEscape(q.Get("Signature")) != encoded {
			t.Errorf("%s: the signature does not hold: %v", key.Suite.Name, err)
		}
	}
}

func TestSAMLMetadata(t *testing.T) {
	root := sigtest.Root(t, suite.RSASHA256)
	key := func(p *sigtest.Party, use string) string {
		return `<md:KeyDescriptor` + use + `><ds:KeyInfo xmlns:ds="` + nsDS + `"><ds:X509Data><ds:X509Certificate>` + "\n" + base64.StdEncoding.EncodeToString(p.Certificate.Raw) +
			"\n</ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor>"
	}
	a, b := root.Signer(t, suite.RSASHA256, "A"), root.Signer(t, suite.RSASHA256, "B")
	entity := func(id, more, inner string) string {
		return `<md:EntityDescriptor entityID="` + id + `"` + more + `><md:IDPSSODescriptor WantAuthnRequestsSigned="true" protocolSupportEnumeration="urn:x ` + nsProtocol + `">` + inner +
			`<md:SingleSignOnService Binding="` + bindingPost + `" Location="https://post.example"/><md:SingleSignOnService Binding="` + bindingRedirect + `" Location="` + theirSSO + `"/>` +
			`</md:IDPSSODescriptor></md:EntityDescriptor>`
	}
	all := func(more string, entities ...string) string {
		return `<md:EntitiesDescriptor xmlns:md="` + nsMetadata + `"` + more + `>` + strings.Join(entities, "") + `</md:EntitiesDescriptor>`
	}
	one := entity(theirID, ` validUntil="`+at(time.Hour)+`"`, key(a, "")+key(root, ` use="encryption"`)+key(b, ` use="signing"`))
	got, err := ReadSAMLMetadata([]byte(all(` validUntil="`+at(2*time.Hour)+`"`, one, entity("other", "", ""))), theirID)
	if err != nil || got.EntityID != theirID || got.SSO != theirSSO || !got.WantsSigned || len(got.Certificates) != 2 || !got.Certificates[0].Equal(a.Certificate) ||
		!got.Certificates[1].Equal(b.Certificate) || !got.ValidUntil.Equal(clock().Add(time.Hour)) {
		t.Errorf("%+v, %v", got, err)
	}
	for name, c := range map[string]struct{ text, id string }{
		"several":         {all("", one, entity("other", "", "")), ""},
		"twice":           {all("", one, one), theirID},
		"none":            {all("", one), "https://another.example"},
		"no provider":     {strings.ReplaceAll(all("", one), "IDPSSODescriptor", "SPSSODescriptor"), ""},
		"of SAML 1.1":     {strings.ReplaceAll(all("", one), nsProtocol, "urn:oasis:names:tc:SAML:1.1:protocol"), ""},
		"no redirect":     {strings.ReplaceAll(all("", one), bindingRedirect, "urn:x"), ""},
		"no time":         {strings.ReplaceAll(all("", one), at(time.Hour), "tomorrow"), ""},
		"no certificate":  {strings.ReplaceAll(all("", one), "\nMII", "\nXXX"), ""},
		"no Base64":       {strings.ReplaceAll(all("", one), "\nMII", "\n???"), ""},
		"a document type": {"<!DOCTYPE x>" + all("", one), ""},
		"no XML":          {"x", ""},
	} {
		if _, err := ReadSAMLMetadata([]byte(c.text), c.id); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}

	p, refused := service(t, func(o *SAMLOptions) { o.Provider = got; o.Key, o.Certificate = a.Key, a.Certificate.Raw }, a)
	if _, err := p.Begin(t.Context(), "s", nonce, ""); err != nil {
		t.Error(err)
	}
	p.o.Now = func() time.Time { return got.ValidUntil }
	_, begun := p.Begin(t.Context(), "s", nonce, "")
	_, finished := bring(t, p, sign(t, a, plain, true, true))
	if !fault.Is(begun, fault.Unavailable) || !fault.Is(finished, fault.Unavailable) || !strings.Contains((*refused).Error(), "metadata ended") {
		t.Errorf("with expired metadata: Begin: %v; Finish: %v", begun, finished)
	}
}

func TestSAMLOptions(t *testing.T) {
	root, old := sigtest.Root(t, suite.RSASHA256), sigtest.Root(t, suite.GOST2001)
	ec := root.Signer(t, suite.ECDSAP256, "Another")
	for name, change := range map[string]func(*SAMLOptions){
		"no name":                              func(o *SAMLOptions) { o.Name = "" },
		"no entity":                            func(o *SAMLOptions) { o.Provider.EntityID = "" },
		"no entity of ours":                    func(o *SAMLOptions) { o.EntityID = "" },
		"plain":                                func(o *SAMLOptions) { o.Provider.SSO = "http://idp.example/sso" },
		"a fragment":                           func(o *SAMLOptions) { o.Provider.SSO += "#x" },
		"no host":                              func(o *SAMLOptions) { o.Provider.SSO = "idp.example" },
		"no certificates":                      func(o *SAMLOptions) { o.Provider.Certificates = nil },
		"an old key":                           func(o *SAMLOptions) { o.Provider.Certificates = []*x509gost.Certificate{old.Certificate} },
		"no key":                               func(o *SAMLOptions) { o.Provider.WantsSigned = true },
		"a key that belongs to no certificate": func(o *SAMLOptions) { o.Key = ec.Key },
		"another certificate":                  func(o *SAMLOptions) { o.Key, o.Certificate = ec.Key, root.Certificate.Raw },
		"a key of 2001":                        func(o *SAMLOptions) { o.Key, o.Certificate = old.Key, old.Certificate.Raw },
		"a transient login":                    func(o *SAMLOptions) { o.NameIDFormat = formatTransient },
	} {
		o := SAMLOptions{
			Name: "n", Provider: SAMLProvider{EntityID: theirID, SSO: theirSSO, Certificates: []*x509gost.Certificate{root.Certificate}}, EntityID: ourID, ReturnURL: ourACS, Now: clock,
		}
		if _, err := NewSAML(o); err != nil {
			t.Fatal(err)
		}
		change(&o)
		if _, err := NewSAML(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// FuzzSAMLResponse checks that no change of an answer without the key yields another
// login, and that nothing panics, before the signatures are checked and after.
func FuzzSAMLResponse(f *testing.F) {
	// GOST keys are the same in every process of a fuzz run.
	s := suite.GOST2012x256
	by := sigtest.Root(f, s).Signer(f, s, "The provider")
	p, _ := service(f, nil, by)
	for _, text := range []string{sign(f, by, plain, false, true), sign(f, by, plain, true, false), sign(f, by, plain, true, true), sign(f, by, plain, false, false), "<x/>", ""} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if login, err := bring(t, p, string(text)); err == nil && login != "anna" {
			t.Errorf("signed in as %q", login)
		}
		tree, err := xmltree.Parse(text, messageLimits)
		if err != nil {
			return
		}
		m := &message{tree, p, requestID(nonce), clock()}
		assertion, err := m.response()
		if err != nil {
			return
		}
		if login, err := m.assertion(assertion); err == nil && (login == "" || len(login) > maxLogin) {
			t.Errorf("a login of %d bytes", len(login))
		}
	})
}

// FuzzSAMLMetadata checks that metadata is either usable or refused.
func FuzzSAMLMetadata(f *testing.F) {
	root := sigtest.Root(f, suite.ECDSAP256)
	p, _ := service(f, func(o *SAMLOptions) { o.Key, o.Certificate = root.Key, root.Certificate.Raw }, root)
	own, err := p.Metadata()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(own, "")
	f.Add([]byte(fmt.Sprintf(`<EntityDescriptor xmlns="%s" entityID="e"><IDPSSODescriptor protocolSupportEnumeration="%s"><SingleSignOnService Binding="%s" Location="l"/></IDPSSODescriptor></EntityDescriptor>`, nsMetadata, nsProtocol, bindingRedirect)), "e")
	f.Fuzz(func(t *testing.T, text []byte, id string) {
		if got, err := ReadSAMLMetadata(text, id); err == nil && (got.SSO == "" || id != "" && got.EntityID != id) {
			t.Errorf("%+v", got)
		}
	})
}
