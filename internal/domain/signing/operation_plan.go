package signing

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"strings"

	"tamga/internal/domain/fault"
)

// planVersion is the form of plan. Every version that was ever written is known:
// another release may have accepted the operation.
const planVersion = 1

// plan is what is to be done, as it waits with an asynchronous operation. The PIN
// waits apart, and the documents themselves in Blobs.
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

// extent is where a document lies in a bundle.
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

// Template says how documents are signed by their file names.
type Template struct {
	Rules []TemplateRule // the first that fits a name counts
}

// TemplateRule is for names with certain extensions.
type TemplateRule struct {
	Extensions []string          // such as "pdf", in lower case; empty: every name
	Type       string            // of signature
	Params     map[string]string // Signature.Parameters
}

// rule finds the rule for a name.
func (t Template) rule(name string) (*TemplateRule, error) {
	// Some clients number their documents behind the name, as in "contract.pdf #001".
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

// manner is how a document is signed. Documents of one manner are signed together.
type manner struct {
	signatureType string
	params        map[string]string
	rule          *TemplateRule // nil without a template
}

// manner finds out how a document of this name is signed. Parameters of the request
// stand over those of the template; its type may repeat the template's.
func (s *Operations) manner(p *plan, name string) (manner, error) {
	if p.Template == "" {
		return manner{p.Type, p.Params, nil}, nil
	}
	template, ok := s.Templates[p.Template]
	if !ok { // removed from the configuration since
		return manner{}, fault.New(fault.InvalidSignatureParams, "ProcessingTemplateId is not known here")
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

// resultName returns the name of the signed form of a file: a document that holds its
// signature keeps its name.
func (s *Service) resultName(name, signatureType string) string {
	const most = 255 // characters, as the document store has it
	ending := ""
	if _, f := s.Formats.Named(signatureType); f != nil {
		ending = f.Describe().Suffix
	}
	if name == "" {
		name = "document"
	}
	if r := []rune(name); len(r) > most-len(ending) {
		name = string(r[:most-len(ending)])
	}
	return name + ending
}

// shownParameters are the parameters of an operation as those who may look at it see
// them: short ones, since long ones are pictures and attributes.
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
