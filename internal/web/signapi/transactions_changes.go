// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"context"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/policy"
	"tamga/internal/web/rest"
)

// parameterList are the Parameters of a transaction by their names in lower case. What a
// transaction reads is removed, except for what shown takes.
type parameterList map[string]rest.Text

// take removes a parameter and returns the first of several names that has a value.
func (p parameterList) take(names ...string) (value rest.Text) {
	for _, name := range names {
		if value == "" {
			value = p[name]
		}
		delete(p, name)
	}
	return value
}

// changes are the transactions that change keys and certificates. Each makes the request of
// the route that carries it out.
var changes = map[policy.Action]func(p parameterList) (changing, error){
	policy.CreateRequest: func(p parameterList) (changing, error) {
		if p["algid"] != "" {
			var r generating
			r.Body.AlgID, r.Body.ParametersOid, r.Body.PinCode = p.take("algid"), p.take("parametersoid"), p.take("pincode")
			return r, nil
		}
		return p.request(nil)
	},
	policy.RenewCertificate: func(p parameterList) (changing, error) {
		return p.request(map[string]rest.Text{"RequestType": "Renew", "ActiveCertId": p.take("certificateid", "activecertid")})
	},
	policy.ChangePin: func(p parameterList) (changing, error) {
		var r changingPIN
		r.ID, r.Body.OldPin, r.Body.NewPin = string(p.take("certificateid")), p.take("oldpin", "pincode"), p.take("newpin")
		return r, nil
	},
	policy.RevokeCertificate: func(p parameterList) (changing, error) {
		if strings.EqualFold(string(p["requesttype"]), "RevokeRequest") {
			return p.request(map[string]rest.Text{"ActiveCertId": p.take("certificateid", "activecertid"), "ActiveCertPin": p.take("pincode", "activecertpin")})
		}
		return p.status("REVOKED"), nil
	},
	policy.HoldCertificate:   func(p parameterList) (changing, error) { return p.status("HOLD"), nil },
	policy.UnholdCertificate: func(p parameterList) (changing, error) { return p.status("ACTIVE"), nil },
	policy.DeleteCertificate: func(p parameterList) (changing, error) {
		return deleting{ID: string(p.take("certificateid"))}, nil
	},
}

// status returns a request to change the status of a certificate.
func (p parameterList) status(status rest.Text) changing {
	r := settingStatus{ID: string(p.take("certificateid"))}
	r.Body.Status, r.Body.PinCode = status, p.take("pincode")
	r.Body.RevocationInfo.RevocationReason = p.take("revocationreason")
	r.Body.RevocationInfo.RevocationComments = p.take("revocationcomments")
	return r
}

// request returns a request for a certificate with all parameters that are left.
func (p parameterList) request(more map[string]rest.Text) (changing, error) {
	var r requesting
	b := &r.Body
	b.AuthorityID, b.Template, b.PinCode = p.take("caid", "authorityid"), p.take("certtemplateoid", "templateoid", "template"), p.take("pincode")
	if b.AuthorityID == "" {
		b.AuthorityID = "0" // the first of the policy
	}
	var err error
	if b.DistinguishedName, err = readName(string(p.take("certsubjectname", "distinguishedname"))); err != nil {
		return nil, err
	}
	b.Parameters = map[string]rest.Text{}
	for name, value := range p {
		if !slices.Contains(shownParameters, name) {
			b.Parameters[name] = value
		}
	}
	maps.Copy(b.Parameters, more)
	return r, nil
}

// shownParameters are parameters that the user sees and that have no effect.
var shownParameters = []string{"documentinfo", "documenttype"}

// maxShown is the longest parameter that the user sees, in bytes.
const maxShown = 1024

// transactChange creates a transaction that changes keys or certificates.
func (m *Management) transactChange(ctx context.Context, action policy.Action, r *transactionRequest) (string, error) {
	b := &r.Body
	if !b.Document.Empty() || len(b.Documents) > 0 {
		return "", fault.Newf(fault.InvalidParameters, "OperationCode %s (%s) has no documents: leave Document and Documents out", b.OperationCode, action)
	}
	list := parameterList{}
	for _, p := range b.Parameters {
		name := strings.ToLower(strings.TrimSpace(string(p.Name)))
		value, err := p.Value.Text()
		if err != nil {
			return "", recoded(err, fault.InvalidParameters)
		}
		if _, twice := list[name]; twice {
			return "", fault.Newf(fault.InvalidParameters, "Parameters: %.64q is given twice", name)
		}
		list[name] = rest.Text(value)
	}
	shown := map[string]string{}
	for _, name := range shownParameters {
		if shown[name] = string(list[name]); len(shown[name]) > maxShown {
			return "", fault.Newf(fault.InvalidParameters, "Parameters: %s has more than %d bytes", name, maxShown)
		}
	}
	if list["certificateid"]+list["activecertid"] == "" && action != policy.CreateRequest {
		return "", fault.New(fault.InvalidParameters, "Parameters: CertificateID is missing")
	}
	request, err := changes[action](list)
	if err != nil {
		return "", err
	}
	plan, _, err := request.plan(m)
	if err != nil {
		return "", err
	}
	plan.Shown = shown
	concerning(ctx, plan, "")
	waiting, _, err := m.Operations.Start(ctx, plan.Ordered(rest.Caller(ctx), operation.FormTransaction, operation.Always))
	if err != nil {
		return "", err
	}
	concerning(ctx, plan, waiting.ID)
	return waiting.ID, nil
}

// readName reads a distinguished name: the text form of RFC 4514, such as
// "CN=Petrov,O=Horns", or a JSON object. The keys are those of DistinguishedName.
func readName(text string) (map[string]rest.Text, error) {
	text = strings.TrimSpace(text)
	name := map[string]rest.Text{}
	if strings.HasPrefix(text, "{") {
		var values map[string]string
		if err := rest.ReadJSON(text, &values); err != nil {
			return nil, fault.New(fault.InvalidSubject, "CertSubjectName: want a name such as CN=Petrov,O=Horns, or a JSON object of texts with each part once").With(err)
		}
		for key, value := range values {
			name[key] = rest.Text(value)
		}
		return name, nil
	}
	for text != "" {
		key, rest1, found := strings.Cut(text, "=")
		key = strings.TrimSpace(key)
		key = strings.TrimPrefix(strings.TrimPrefix(key, "OID."), "oid.")
		value, left, ok := readValue(rest1)
		if _, twice := name[key]; !found || !ok || key == "" || twice {
			return nil, fault.New(fault.InvalidSubject, "CertSubjectName: want a name such as CN=Petrov,O=Horns with each part once")
		}
		name[key] = rest.Text(value)
		text = left
	}
	return name, nil
}

// readValue reads a value up to a separator. Quotes and backslashes protect characters.
func readValue(text string) (value, left string, ok bool) {
	var b strings.Builder
	text = strings.TrimLeft(text, " ")
	quoted := strings.HasPrefix(text, `"`)
	i, end := 0, 0 // spaces from end on do not belong to the value
	if quoted {
		i = 1
	}
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			if digits := text[i+1 : min(i+3, len(text))]; len(digits) == 2 {
				if value, err := hex.DecodeString(digits); err == nil {
					b.Write(value)
					i, end = i+2, b.Len()
					continue
				}
			}
			i++
			b.WriteByte(text[i])
			end = b.Len()
		case c == '\\':
			return "", "", false
		case quoted && c == '"':
			left = strings.TrimLeft(text[i+1:], " ")
			if left != "" && !strings.ContainsRune(",;+", rune(left[0])) {
				return "", "", false
			}
			return b.String(), strings.TrimPrefix(left, left[:min(1, len(left))]), true
		case !quoted && strings.IndexByte(",;+", c) >= 0:
			return b.String()[:end], text[i+1:], true
		default:
			b.WriteByte(c)
			if c != ' ' {
				end = b.Len()
			}
		}
	}
	return b.String()[:end], "", !quoted
}
