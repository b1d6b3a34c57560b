// SPDX-License-Identifier: Apache-2.0

// Package setting reads the tags of settings. A setting is one field of a struct: its comment is
// the manual, and its tags define its name in the file, its default and its check.
//
//	// How long an answer is kept.
//	Keep time.Duration `yaml:"keep" default:"24h" min:"1s"`
//
// Begin with Defaults and Check. Decode reads a YAML file into structs of several packages, and
// Encode writes them as one file. The package knows no setting by name. Checks that relate
// several settings are code of the package that owns them.
//
// The tags are:
//
//	yaml     name of the setting in the file
//	default  value of an empty file, written as in the file; not for fields of list elements
//	min      smallest value
//	max      largest value
//	above    the value must be more than this
//	oneof    permitted values of a text, separated by spaces
//	rule     "required", "url" (http or https with a host, or empty) or "path" (one path element)
//	want     text of the error after "want", where the tags above say too little
package setting

import (
	"cmp"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Defaults sets every field of the struct that settings points to whose tag has a default. It
// panics if a default cannot be parsed: this is a programming error.
func Defaults(settings any) {
	each("", reflect.ValueOf(settings).Elem(), func(key string, tag reflect.StructTag, v reflect.Value) {
		if text, ok := tag.Lookup("default"); ok {
			v.Set(parse(key, v.Type(), text))
		}
	})
}

// Check returns the faults of the values of a struct, as its tags define them. settings points to
// the struct, and prefix is the name of its place in the file, such as "messages.mail", or "".
func Check(prefix string, settings any) (faults []error) {
	each(prefix, reflect.ValueOf(settings).Elem(), func(key string, tag reflect.StructTag, v reflect.Value) {
		if want := refusal(key, tag, v); want != "" {
			faults = append(faults, fmt.Errorf("%s: want %s", key, cmp.Or(tag.Get("want"), want)))
		}
	})
	return faults
}

// Value returns the value of the setting with a name such as "limits.connections". It is nil for a
// name that no setting has.
func Value(settings any, name string) (value any) {
	each("", reflect.ValueOf(settings).Elem(), func(key string, _ reflect.StructTag, v reflect.Value) {
		if key == name {
			value = v.Interface()
		}
	})
	return value
}

// each calls visit for every setting of a struct, including those of list elements.
func each(prefix string, s reflect.Value, visit func(key string, tag reflect.StructTag, v reflect.Value)) {
	for i := range s.NumField() {
		f := s.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		key, v := Join(prefix, f.Tag.Get("yaml")), s.Field(i)
		if v.Kind() == reflect.Struct {
			each(key, v, visit)
			continue
		}
		visit(key, f.Tag, v)
		if isList(v.Type()) {
			for n := range v.Len() {
				each(fmt.Sprintf("%s[%d]", key, n), v.Index(n), visit)
			}
		}
	}
}

// Join returns the name of a setting below prefix, which may be "".
func Join(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + "." + name
}

// isList reports whether a type is a list of structs.
func isList(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct
}

// refusal returns what the tags of a setting require instead of v, or "".
func refusal(key string, tag reflect.StructTag, v reflect.Value) string {
	least, hasLeast := tag.Lookup("min")
	most, hasMost := tag.Lookup("max")
	low := hasLeast && compare(v, parse(key, v.Type(), least)) < 0
	high := hasMost && compare(v, parse(key, v.Type(), most)) > 0
	switch {
	case (low || high) && hasLeast && hasMost:
		return least + " to " + most
	case low && parse(key, v.Type(), least).IsZero():
		return least + " or more"
	case low:
		return "at least " + least
	case high:
		return "at most " + most
	}
	if above, ok := tag.Lookup("above"); ok && compare(v, parse(key, v.Type(), above)) <= 0 {
		if v.Type() == reflect.TypeFor[Size]() {
			return "a size above " + above
		}
		return "more than " + above
	}
	if text, ok := tag.Lookup("oneof"); ok {
		if names := strings.Fields(text); !slices.Contains(names, v.String()) {
			return OneOf(names)
		}
	}
	switch rule := tag.Get("rule"); rule {
	case "":
	case "required":
		if v.IsZero() {
			return "a value"
		}
	case "url":
		if v.String() != "" && !IsHTTP(v.String()) {
			return "http:// or https:// and a host"
		}
	case "path":
		if p := v.String(); len(p) < 2 || p[0] != '/' || strings.ContainsAny(p[1:], "/{}?# ") {
			return "one path element, such as " + tag.Get("default")
		}
	default:
		panic(fmt.Sprintf("setting: %s: unknown rule %q", key, rule))
	}
	return ""
}

// OneOf returns names as a text: "a, b or c".
func OneOf(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// IsHTTP reports whether s is a URL with http or https and a host.
func IsHTTP(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// parse parses the text of a tag as in a file.
func parse(key string, t reflect.Type, text string) reflect.Value {
	v := reflect.New(t)
	if err := yaml.Unmarshal([]byte(text), v.Interface()); err != nil {
		panic(fmt.Sprintf("setting: %s: the tag %q is not a %s: %v", key, text, t, err))
	}
	return v.Elem()
}

func compare(a, b reflect.Value) int {
	if a.CanFloat() {
		return cmp.Compare(a.Float(), b.Float())
	}
	return cmp.Compare(a.Int(), b.Int())
}
