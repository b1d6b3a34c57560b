// SPDX-License-Identifier: Apache-2.0

package idp

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tamga/sig/xmldsig"
	"tamga/sig/xmltree"
)

// Bounds of an answer. Legitimate answers have some dozens of elements.
const (
	maxMessage = 384 << 10 // bytes of Base64
	skew       = time.Minute
)

var messageLimits = xmltree.Options{Size: 256 << 10, Depth: 64, Attributes: 64, Nodes: 16 << 10, Names: 512, Namespaces: 128}

// message is an answer while it is checked. The code reads nodes on the way down from the
// root, and each must be where the profile puts it. It looks up nothing by name or ID
// elsewhere in the document, so an attacker has no second place for a forged element.
type message struct {
	*xmltree.Tree
	p       *SAML
	request string // the ID of the request that it must answer
	now     time.Time
}

// judge validates an answer and returns the login in it (profiles, 4.1.4.2, 4.1.4.3 and
// 4.1.4.5; core, 3.2.2 and 2.3.3).
func (p *SAML) judge(ctx context.Context, answer, request string) (string, error) {
	if len(answer) > maxMessage {
		return "", fmt.Errorf("the answer has more than %d characters", maxMessage)
	}
	text, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(answer), ""))
	if err != nil {
		return "", errors.New("the answer is not Base64")
	}
	t, err := xmltree.Parse(text, messageLimits)
	if err != nil {
		return "", err
	}
	m := &message{t, p, request, p.o.Now()}
	assertion, err := m.response()
	if err != nil {
		return "", err
	}
	if err := m.signed(ctx, assertion); err != nil {
		return "", err
	}
	return m.assertion(assertion)
}

// response checks the message around the assertion and returns the assertion.
func (m *message) response() (assertion xmltree.Node, err error) {
	root := m.Root()
	if !m.Is(root, nsProtocol, "Response") {
		return 0, fmt.Errorf("%s: a Response expected", m.Name(root))
	}
	if err := m.versioned(root); err != nil {
		return 0, err
	}
	if to, _ := m.Get(root, "Destination"); to != m.p.o.ReturnURL {
		return 0, fmt.Errorf("the destination is %s, %s expected", quote(to), m.p.o.ReturnURL)
	}
	if err := m.answers(root); err != nil {
		return 0, err
	}
	parts, err := m.parts(root, nsProtocol, "Status", nsAssertion, "Issuer", nsDS, "Signature", nsProtocol, "Extensions", nsAssertion, "Assertion", nsAssertion, "EncryptedAssertion")
	if err != nil {
		return 0, err
	}
	if err := m.succeeded(parts["Status"]); err != nil {
		return 0, err
	}
	if issuer := parts["Issuer"]; issuer != nil {
		if err := m.issued(issuer[0]); err != nil {
			return 0, err
		}
	}
	switch {
	case parts["EncryptedAssertion"] != nil:
		return 0, errors.New("the assertion is encrypted, which is not supported: configure the provider to send it unencrypted")
	case len(parts["Assertion"]) != 1:
		return 0, fmt.Errorf("there are %d assertions, one expected", len(parts["Assertion"]))
	}
	return parts["Assertion"][0], nil
}

// signed verifies the signatures. The message or the assertion must be signed, and every
// signature must be valid.
func (m *message) signed(ctx context.Context, assertion xmltree.Node) error {
	count := 0
	for _, n := range []xmltree.Node{m.Root(), assertion} {
		signature := m.Child(n, nsDS, "Signature")
		if signature == xmltree.None {
			continue
		}
		if err := xmldsig.VerifyElement(ctx, m.Tree, signature, m.p.o.Provider.Certificates); err != nil {
			return fmt.Errorf("the signature of %s: %w", m.Name(n), err)
		}
		count++
	}
	if count == 0 {
		return errors.New("neither the message nor the assertion is signed")
	}
	// A legitimate answer has one of each. A second one anywhere indicates a signature
	// wrapping attack, whichever of the two another program would read.
	for _, of := range []struct {
		space, local string
		most         int
	}{{nsDS, "Signature", count}, {nsAssertion, "Assertion", 1}, {nsProtocol, "Response", 1}} {
		found := 0
		for range m.Find(xmltree.Document, of.space, of.local) {
			found++
		}
		if found > of.most {
			return fmt.Errorf("there are %d elements %s, %d expected", found, of.local, of.most)
		}
	}
	return nil
}

// assertion returns the login of an assertion whose signature is valid.
func (m *message) assertion(n xmltree.Node) (string, error) {
	if err := m.versioned(n); err != nil {
		return "", err
	}
	parts, err := m.parts(n, nsAssertion, "Issuer", nsAssertion, "Subject", nsDS, "Signature", nsAssertion, "Conditions", nsAssertion, "Advice",
		nsAssertion, "AuthnStatement", nsAssertion, "AttributeStatement", nsAssertion, "AuthzDecisionStatement")
	if err != nil {
		return "", err
	}
	for _, name := range []string{"Issuer", "Subject", "Conditions"} {
		if len(parts[name]) != 1 {
			return "", fmt.Errorf("the assertion has no %s", name)
		}
	}
	if err := m.issued(parts["Issuer"][0]); err != nil {
		return "", err
	}
	if err := m.conditions(parts["Conditions"][0]); err != nil {
		return "", err
	}
	name, err := m.subject(parts["Subject"][0])
	if err != nil {
		return "", err
	}
	if len(parts["AuthnStatement"]) == 0 {
		return "", errors.New("the assertion has no AuthnStatement, so no user has signed in")
	}
	for _, statement := range parts["AuthnStatement"] {
		if err := m.inTime(statement, "", "SessionNotOnOrAfter"); err != nil {
			return "", err
		}
	}
	if m.p.o.Attribute == "" {
		return m.nameID(name)
	}
	return m.attribute(parts["AttributeStatement"])
}

// conditions checks the Conditions (core, 2.5). An unknown condition is an error.
func (m *message) conditions(n xmltree.Node) error {
	if err := m.inTime(n, "NotBefore", "NotOnOrAfter"); err != nil {
		return err
	}
	children, err := m.elements(n)
	if err != nil {
		return err
	}
	restricted := false
	for _, c := range children {
		switch {
		case m.Is(c, nsAssertion, "AudienceRestriction"):
			// Every restriction must name this service (core, 2.5.1.4).
			audiences, err := m.elements(c)
			if err != nil {
				return err
			}
			ours := false
			for _, a := range audiences {
				text, err := m.text(a)
				if err != nil {
					return err
				}
				ours = ours || m.Is(a, nsAssertion, "Audience") && text == m.p.o.EntityID
			}
			if !ours {
				return fmt.Errorf("the assertion is for another audience than %s", m.p.o.EntityID)
			}
			restricted = true
		case m.Is(c, nsAssertion, "OneTimeUse"), m.Is(c, nsAssertion, "ProxyRestriction"):
			// Every assertion is used only once here, and none is passed on.
		default:
			return fmt.Errorf("the condition %s is unknown", m.Name(c))
		}
	}
	if !restricted {
		return errors.New("the assertion has no AudienceRestriction")
	}
	return nil
}

// subject checks that this browser may present the assertion. It returns the NameID, or
// None if there is none.
func (m *message) subject(n xmltree.Node) (name xmltree.Node, err error) {
	parts, err := m.parts(n, nsAssertion, "NameID", nsAssertion, "SubjectConfirmation")
	if err != nil {
		return 0, err
	}
	why := errors.New("the subject has no SubjectConfirmation of a bearer")
	confirmed := false
	for _, c := range parts["SubjectConfirmation"] {
		if method, _ := m.Get(c, "Method"); method != methodBearer {
			continue
		}
		data := m.Child(c, nsAssertion, "SubjectConfirmationData")
		if data == xmltree.None {
			why = errors.New("the SubjectConfirmation of the bearer has no SubjectConfirmationData")
		} else if err := m.bearer(data); err != nil {
			why = err
		} else {
			confirmed = true
			break
		}
	}
	if !confirmed {
		return 0, why
	}
	if len(parts["NameID"]) == 0 {
		return xmltree.None, nil
	}
	return parts["NameID"][0], nil
}

// bearer checks a SubjectConfirmationData (profiles, 4.1.4.2). It does not compare the
// address of the user: the provider may see an address of another network than we do.
func (m *message) bearer(n xmltree.Node) error {
	if to, _ := m.Get(n, "Recipient"); to != m.p.o.ReturnURL {
		return fmt.Errorf("the recipient is %s, %s expected", quote(to), m.p.o.ReturnURL)
	}
	if _, limited := m.Get(n, "NotOnOrAfter"); !limited {
		return errors.New("the SubjectConfirmationData of the bearer has no NotOnOrAfter")
	}
	if err := m.answers(n); err != nil {
		return err
	}
	return m.inTime(n, "NotBefore", "NotOnOrAfter")
}

// nameID returns the login of a NameID.
func (m *message) nameID(n xmltree.Node) (string, error) {
	if n == xmltree.None {
		return "", errors.New("the subject has no NameID")
	}
	format, _ := m.Get(n, "Format")
	switch want := m.p.o.NameIDFormat; {
	case format == formatTransient:
		return "", errors.New("the NameID is transient, so it differs at each sign-in: set attribute or name_id_format")
	case want != "" && format != want:
		return "", fmt.Errorf("the NameID has the format %s, %s expected", quote(format), want)
	}
	if for_, has := m.Get(n, "SPNameQualifier"); has && for_ != m.p.o.EntityID {
		return "", errors.New("the NameID is for another service")
	}
	return m.login(n)
}

// attribute returns the login in the attribute of the options. Several values are an
// error, because one program would read the first and another the last.
func (m *message) attribute(statements []xmltree.Node) (string, error) {
	var values []xmltree.Node
	for _, statement := range statements {
		attributes, err := m.elements(statement)
		if err != nil {
			return "", err
		}
		for _, a := range attributes {
			if name, _ := m.Get(a, "Name"); !m.Is(a, nsAssertion, "Attribute") || name != m.p.o.Attribute {
				continue
			}
			parts, err := m.parts(a, nsAssertion, "AttributeValue")
			if err != nil {
				return "", err
			}
			values = append(values, parts["AttributeValue"]...)
		}
	}
	if len(values) != 1 {
		return "", fmt.Errorf("the assertion has %d values of the attribute %s, one expected", len(values), m.p.o.Attribute)
	}
	return m.login(values[0])
}

func (m *message) login(n xmltree.Node) (string, error) {
	login, err := m.text(n)
	if err == nil && (login == "" || len(login) > maxLogin) {
		err = fmt.Errorf("%s: a text of 1 to %d bytes expected", m.Name(n), maxLogin)
	}
	if err != nil {
		return "", err
	}
	return login, nil
}

// issued checks an Issuer.
func (m *message) issued(n xmltree.Node) error {
	issuer, err := m.text(n)
	if err != nil {
		return err
	}
	if format, has := m.Get(n, "Format"); issuer != m.p.o.Provider.EntityID || has && format != formatEntity {
		return fmt.Errorf("the issuer is %s, %s expected", quote(issuer), m.p.o.Provider.EntityID)
	}
	return nil
}

// answers checks that a node answers our request. An answer without a request is refused,
// because an attacker could have obtained it for their own account.
func (m *message) answers(n xmltree.Node) error {
	if to, has := m.Get(n, "InResponseTo"); !has {
		return fmt.Errorf("%s answers no request: InResponseTo expected", m.Name(n))
	} else if to != m.request {
		return fmt.Errorf("%s answers another request", m.Name(n))
	}
	return nil
}

// succeeded checks a Status.
func (m *message) succeeded(status []xmltree.Node) error {
	if len(status) != 1 {
		return errors.New("the answer has no Status")
	}
	n := m.Child(status[0], nsProtocol, "StatusCode")
	if n == xmltree.None {
		return errors.New("the answer has no StatusCode")
	}
	code, _ := m.Get(n, "Value")
	if code == statusSuccess {
		return nil
	}
	if inner := m.Child(n, nsProtocol, "StatusCode"); inner != xmltree.None {
		more, _ := m.Get(inner, "Value")
		code += " " + more
	}
	return fmt.Errorf("the provider refuses: %s", quote(code))
}

// inTime checks the validity period of a node, with a tolerance of a minute for clocks. A
// missing attribute sets no limit.
func (m *message) inTime(n xmltree.Node, from, to string) error {
	for _, bound := range []struct {
		name  string
		holds func(time.Time) bool
		text  string
	}{
		{from, func(at time.Time) bool { return !m.now.Before(at.Add(-skew)) }, "begins later"},
		{to, func(at time.Time) bool { return m.now.Before(at.Add(skew)) }, "is over"},
	} {
		text, has := m.Get(n, bound.name)
		if !has {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return fmt.Errorf("%s of %s is not a time in UTC", bound.name, m.Name(n))
		}
		if !bound.holds(at) {
			return fmt.Errorf("%s %s: %s is %s, it is %s", m.Name(n), bound.text, bound.name, at.UTC().Format(time.RFC3339), m.now.UTC().Format(time.RFC3339))
		}
	}
	return nil
}

func (m *message) versioned(n xmltree.Node) error {
	if version, _ := m.Get(n, "Version"); version != "2.0" {
		return fmt.Errorf("%s has the version %s, 2.0 expected", m.Name(n), quote(version))
	}
	return nil
}

// repeated lists the elements that a parent may have more than once.
var repeated = []string{"Assertion", "AuthnStatement", "AttributeStatement", "AuthzDecisionStatement", "SubjectConfirmation", "AttributeValue"}

// parts returns the child elements of n by local name. names lists the allowed elements,
// namespace and local name in turn. Any other element is an error.
func (m *message) parts(n xmltree.Node, names ...string) (map[string][]xmltree.Node, error) {
	children, err := m.elements(n)
	if err != nil {
		return nil, err
	}
	out := map[string][]xmltree.Node{}
	for _, c := range children {
		known := false
		for i := 0; i < len(names) && !known; i += 2 {
			known = m.Is(c, names[i], names[i+1])
		}
		local := m.Name(c).Local
		switch {
		case !known:
			return nil, fmt.Errorf("%s is not allowed in %s", m.Name(c), m.Name(n))
		case len(out[local]) > 0 && !slices.Contains(repeated, local):
			return nil, fmt.Errorf("there is more than one %s in %s", local, m.Name(n))
		}
		out[local] = append(out[local], c)
	}
	return out, nil
}

// elements returns the child elements of n. Text between them is an error.
func (m *message) elements(n xmltree.Node) (out []xmltree.Node, err error) {
	for c := range m.Children(n) {
		switch m.Kind(c) {
		case xmltree.KindElement:
			out = append(out, c)
		case xmltree.KindText:
			if strings.TrimSpace(m.StringValue(c)) != "" {
				return nil, fmt.Errorf("there is text between the elements of %s", m.Name(n))
			}
		}
	}
	return out, nil
}

// text returns the text of an element that contains nothing else. A comment is an error:
// no signature covers it here, and it splits a name in two for programs that read only
// the first part.
func (m *message) text(n xmltree.Node) (string, error) {
	for c := range m.Children(n) {
		if m.Kind(c) != xmltree.KindText {
			return "", fmt.Errorf("there is a %s in the text of %s", m.Kind(c), m.Name(n))
		}
	}
	return strings.TrimSpace(m.StringValue(n)), nil
}

// quote quotes a text from outside and truncates it, so that an error stays one line.
func quote(s string) string {
	const most = 200
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return strconv.Quote(s)
}
