// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"fmt"
	"maps"
	"path"
	"strings"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/operation"
)

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

// rule is how a document is signed. Documents with the same rule are signed together.
type rule struct {
	signatureType string
	params        map[string]string
	template      *TemplateRule // nil without a template
	way           int           // index in the ways of the plan
}

// ruleOf returns how a document is signed. A template decides by its name. Parameters of the request
// override those of the template. Its type may only repeat the template's.
func (s *Operations) ruleOf(p *plan, d *operation.Document) (rule, error) {
	if p.Template == "" {
		ways := p.ways()
		if d.Way < 0 || d.Way >= len(ways) {
			return rule{}, fmt.Errorf("signing: a document has way %d of %d", d.Way, len(ways))
		}
		w := ways[d.Way]
		return rule{w.Type, w.Params, nil, d.Way}, nil
	}
	template, ok := s.Templates[p.Template]
	if !ok { // the template was removed from the configuration
		return rule{}, fault.New(fault.InvalidSignatureParams, "ProcessingTemplateId is unknown")
	}
	of, err := template.rule(d.OriginalName)
	if err != nil {
		return rule{}, err
	}
	if p.Type != "" && !strings.EqualFold(p.Type, of.Type) {
		return rule{}, fault.Newf(fault.InvalidSignatureParams, "Signature.Type is %q, but the template signs this file as %s: leave the type out", abbreviate(p.Type), of.Type)
	}
	params := maps.Clone(of.Params)
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
	return rule{of.Type, params, of, 0}, nil
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
