// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"strings"

	"tamga/internal/domain/fault"
)

// planVersion is the version of the format of plan. The program must read every version
// that was ever written, because another release may have accepted the operation.
const planVersion = 1

// plan says what an asynchronous operation must do. It is stored until the operation
// ends. The PIN is stored apart, and the documents are in Blobs.
type plan struct {
	Version     int               `json:"v"`
	Type        string            `json:"type"`
	Params      map[string]string `json:"params"`
	Secrets     []byte            `json:"secrets,omitempty"` // the secret parameters as JSON, sealed to secretsPlace
	Certificate string            `json:"certificate"`
	Template    string            `json:"template"`
	Original    *extent           `json:"original"` // OriginalDocument
	Inline      []*extent         `json:"inline"`   // for each document; nil for a stored one
}

// extent is the position of a document in a bundle.
type extent struct {
	At   int64 `json:"at"`
	Size int64 `json:"size"`
}

func readPlan(text []byte) (*plan, error) {
	p := &plan{}
	if err := json.Unmarshal(text, p); err != nil {
		return nil, fmt.Errorf("signing: the plan of an operation: %w", err)
	}
	if p.Version != planVersion {
		return nil, fmt.Errorf("signing: the plan of an operation has version %d, this release knows %d", p.Version, planVersion)
	}
	return p, nil
}

// Template chooses how documents are signed by their file names.
type Template struct {
	Rules []TemplateRule // the first that matches a name is used
}

// TemplateRule is the rule for names with certain extensions.
type TemplateRule struct {
	Extensions []string          // such as "pdf", in lower case; empty: every name
	Type       string            // of signature
	Params     map[string]string // Signature.Parameters
}

// rule returns the rule for a name.
func (t Template) rule(name string) (*TemplateRule, error) {
	// Some clients append a number to the name, as in "contract.pdf #001".
	name, _, _ = strings.Cut(name, " #")
	extension := strings.ToLower(strings.TrimPrefix(path.Ext(strings.TrimSpace(name)), "."))
	for i := range t.Rules {
		r := &t.Rules[i]
		for _, e := range r.Extensions {
			if strings.EqualFold(e, extension) {
				return r, nil
			}
		}
		if len(r.Extensions) == 0 {
			return r, nil
		}
	}
	return nil, fault.Newf(fault.InvalidSignatureParams, "ProcessingTemplateId: the template has no rule for a file with the extension %q: send its name as ContentInfo", abbreviate(extension))
}

// manner is how a document is signed. Documents with the same manner are signed together.
type manner struct {
	signatureType string
	params        map[string]string
	rule          *TemplateRule // nil without a template
}

// manner returns how a document with this name is signed. Parameters of the request
// override those of the template. Its type may only repeat the template's.
func (s *Operations) manner(p *plan, name string) (manner, error) {
	if p.Template == "" {
		return manner{p.Type, p.Params, nil}, nil
	}
	template, ok := s.Templates[p.Template]
	if !ok { // the template was removed from the configuration
		return manner{}, fault.New(fault.InvalidSignatureParams, "ProcessingTemplateId is unknown")
	}
	rule, err := template.rule(name)
	if err != nil {
		return manner{}, err
	}
	if p.Type != "" && !strings.EqualFold(p.Type, rule.Type) {
		return manner{}, fault.Newf(fault.InvalidSignatureParams, "Signature.Type is %q, but the template signs this file as %s: leave the type out", abbreviate(p.Type), rule.Type)
	}
	params := maps.Clone(rule.Params)
	if params == nil {
		params = map[string]string{}
	}
	for key, value := range p.Params {
		for old := range params {
			if strings.EqualFold(strings.TrimSpace(old), strings.TrimSpace(key)) {
				delete(params, old)
			}
		}
		params[key] = value
	}
	return manner{rule.Type, params, rule}, nil
}

// resultName returns the name of the signed form of a file. A document that contains its
// signature keeps its name, and so does a message that a signature is added to.
func (s *Service) resultName(name, signatureType string, params map[string]string) string {
	const most = 255 // characters, as in the document store
	ending := ""
	if _, f := s.Formats.Named(signatureType); f != nil {
		d := f.Describe()
		ending = d.SuffixOf(params)
	}
	if name == "" {
		name = "document"
	}
	if r := []rune(name); len(r) > most-len(ending) {
		name = string(r[:most-len(ending)])
	}
	return name + ending
}

// shownParameters returns the parameters of an operation that its user may see. Long ones
// are left out, because they are pictures and attributes.
func shownParameters(params map[string]string) string {
	shown := map[string]string{}
	for key, value := range params {
		const most = 256
		if len(key)+len(value) <= most {
			shown[key] = value
		}
	}
	text, err := json.Marshal(shown)
	if err != nil {
		return ""
	}
	return string(text)
}
