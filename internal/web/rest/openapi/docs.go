// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"strings"
)

// docs are the hand-written texts on the operations of a surface, from the file beside its
// routes. Each operation begins a line with its name, a colon and one sentence. Indented
// lines belong to the operation: a longer description, and these words.
//
//	@security token certificate client none   who may call, if it differs from the right
//	@field NAME TEXT     field of the form; "NAME*" for one that is required
//	@param NAME VALUE    example of a parameter in path, query or header
//	@body JSON           example of the body; lines indented by four or more continue it.
//	                     For a form it is the form as it is sent, for parts of a form an object, for a
//	                     body of bytes its text
//	@file NAME COMMAND   body of bytes that are no text: the name of its file, and the command that makes it
//
// A "@param" before the first operation applies to all of them. A line that begins with "#"
// is a comment.
type docs map[string]*doc

type doc struct {
	summary, description string
	security             []string // nil: as the right says
	fields               []field
	params               map[string]string
	body                 string
	file                 object // what @file says; nil: nothing
	used                 bool   // an operation used the text
}

type field struct {
	name, text string
	required   bool
}

func parseDocs(text string) (docs, error) {
	all, every := docs{}, map[string]string{}
	var d *doc
	body := false // the next line may continue @body
	for i, line := range strings.Split(text, "\n") {
		wrong := func(what string) error { return fmt.Errorf("openapi: line %d of a text on operations: %s", i+1, what) }
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || strings.HasPrefix(line, "#"):
			continue
		case d == nil && strings.HasPrefix(line, "@param "):
			name, value, _ := strings.Cut(strings.TrimPrefix(line, "@param "), " ")
			every[name] = value
			continue
		case line[0] != ' ':
			name, summary, ok := strings.Cut(line, ": ")
			if !ok || strings.ContainsAny(name, " \t") || all[name] != nil {
				return nil, wrong("want a new name of an operation, a colon and a sentence")
			}
			d, body = &doc{summary: summary, params: maps.Clone(every)}, false
			all[name] = d
			continue
		case d == nil:
			return nil, wrong("it belongs to no operation")
		case body && strings.HasPrefix(line, "    "):
			d.body += "\n" + trimmed
			continue
		}
		body = false
		word, rest, _ := strings.Cut(trimmed, " ")
		name, value, _ := strings.Cut(rest, " ")
		switch word {
		case "@security":
			d.security = strings.Fields(rest)
		case "@field":
			plain, required := strings.CutSuffix(name, "*")
			d.fields = append(d.fields, field{plain, value, required})
		case "@param":
			d.params[name] = value
		case "@body":
			d.body, body = rest, true
		case "@file":
			d.file = object{"name": name, "command": value}
		default:
			if strings.HasPrefix(word, "@") {
				return nil, wrong(word + " is not known")
			}
			d.description = strings.TrimSpace(d.description + " " + trimmed)
		}
	}
	return all, nil
}

// of returns the text of an operation, by its identifier in the document or its name. An
// operation of v2 that differs from the one of v1 only in its answer shares its text.
func (all docs) of(id, name string) *doc {
	for _, n := range []string{id, name} {
		if d := all[n]; d != nil {
			d.used = true
			return d
		}
	}
	if base, ok := strings.CutSuffix(name, "V2"); ok && all[base] != nil {
		all[base].used = true
		return all[base]
	}
	return &doc{summary: name}
}

// example returns the body in the text as a value of the media type.
func (d *doc) example(media string) (any, error) {
	switch media {
	case "application/json", partsType:
		var value any
		if err := json.Unmarshal([]byte(d.body), &value); err != nil {
			return nil, fmt.Errorf("the example of the body: %w", err)
		}
		return value, nil
	case formType:
		values, err := url.ParseQuery(d.body)
		if err != nil {
			return nil, fmt.Errorf("the example of the form: %w", err)
		}
		fields := object{}
		for name := range values {
			fields[name] = values.Get(name)
		}
		return fields, nil
	}
	return d.body, nil
}

// form returns the schema of a form: its fields.
func (d *doc) form() object {
	properties, required := object{}, []string{}
	for _, f := range d.fields {
		properties[f.name] = object{"type": "string", "description": f.text}
		if f.required {
			required = append(required, f.name)
		}
	}
	schema := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}
