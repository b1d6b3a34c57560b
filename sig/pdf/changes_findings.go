// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"fmt"
	"slices"
	"strings"

	"tamga/sig"
)

// Codes of findings about changes of a document by later revisions.
const (
	codeLaterStore       = "later-validation-data" // a document security store
	codeLaterStamp       = "later-time-stamp"
	codeLaterSignature   = "later-signature"
	codeLaterMetadata    = "later-metadata"
	codeLaterForm        = "later-form-filling"
	codeLaterAnnotations = "later-annotations"
	codeLaterChange      = "later-change" // anything else: pages, content, fonts
	codeLaterUnknown     = "later-not-judged"
)

// findings returns the verdict on the changes: which of them the signature and its author
// allow.
func (c *comparison) findings() []sig.Finding {
	var out []sig.Finding
	add := func(code string, fatal bool, k kind, format string, args ...any) {
		if len(c.found[k]) > 0 {
			f := sig.Finding{Code: code, Text: fmt.Sprintf(format, args...) + ": " + listed(c.found[k])}
			if fatal {
				f.Indication = sig.IndicationOf(code)
			}
			out = append(out, f)
		}
	}
	limits := c.limits()
	add(codeLaterStore, false, kindStore, "validation data was added later")
	add(codeLaterMetadata, limits.level == 1 && c.described, kindMetadata, "metadata was changed later")
	add(codeLaterStamp, false, kindStamp, "the document was stamped later")
	add(codeLaterSignature, limits.level == 1, kindSignature, "the document was signed again later")
	locked := slices.ContainsFunc(c.filled, limits.locked)
	why := ""
	if locked || limits.level == 1 {
		why = ", which this signature forbids"
	}
	add(codeLaterForm, locked || limits.level == 1, kindForm, "form fields were filled later%s", why)
	add(codeLaterAnnotations, limits.level != 3, kindAnnotations, "annotations were changed later, which can hide what was signed")
	add(codeLaterChange, true, kindOther, "what was signed was changed later")
	if c.partly != "" {
		out = append(out, sig.Finding{Code: codeLaterUnknown, Text: "not all later changes were checked: " + c.partly, Indication: sig.IndicationOf(codeLaterUnknown)})
	}
	return out
}

// part returns the finding that the signature does not cover the present document.
// Validation data, time stamps and further signatures are expected to follow; only a
// strict check counts the signatures.
func (c *comparison) part(check *sig.Check) (f sig.Finding, ok bool) {
	var matter []string
	for k := kindMetadata; k <= kindOther; k++ {
		if len(c.found[k]) > 0 {
			matter = append(matter, kindNames[k])
		}
	}
	f.Code = sig.CodePart
	if len(matter) > 0 {
		f.Headline = "later changes: " + strings.Join(matter, ", ")
	}
	if ok = len(matter) > 0 || len(c.found[kindSignature]) > 0; ok && (check.Strict || check.Expect != "") {
		f.Indication = sig.IndicationOf(f.Code)
		return f, true
	}
	return f, len(matter) > 0
}

// limits returns the later changes that this signature forbids.
func (c *comparison) limits() restriction {
	one := &form{signatures: []*field{{value: c.signature.field.value}}}
	r := c.old.restrictions(one)
	return r
}

// summary names the kinds of changes.
func (c *comparison) summary() string {
	var parts []string
	for k, list := range c.found {
		if len(list) > 0 {
			parts = append(parts, kindNames[k])
		}
	}
	if len(parts) == 0 {
		return "nothing visible"
	}
	return strings.Join(parts, ", ")
}

// listed joins the first entries of a list, each once.
func listed(list []string) string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	if len(out) > 5 {
		out = append(out[:5], fmt.Sprintf("and %d more", len(out)-5))
	}
	return strings.Join(out, ", ")
}

func quoted(s string) string { return printable(textString(s)) }
