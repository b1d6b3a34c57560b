// SPDX-License-Identifier: Apache-2.0

package sig

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Params are the parameters of a signature request, text by name. Letter case and surrounding
// space in names do not matter, because clients write both "IsDetached" and "isDetached", and
// one sends a trailing space.
type Params map[string]string

// Reader returns a reader of the parameters of one format. It collects every fault, so that one
// error can name all of them.
func (p Params) Reader() *ParamReader {
	r := &ParamReader{values: make([]value, 0, len(p))}
	for k, v := range p {
		r.values = append(r.values, value{fold(k), k, strings.TrimSpace(v)})
	}
	slices.SortFunc(r.values, func(a, b value) int { // the order of faults must not depend on that of the map
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.key, b.key))
	})
	kept := r.values[:0]
	for _, v := range r.values {
		if last := len(kept) - 1; last < 0 || kept[last].name != v.name {
			kept = append(kept, v)
		} else if kept[last].text != v.text {
			r.Fault(strings.TrimSpace(v.key), "given twice with different values; give it once")
		}
	}
	r.values = kept
	return r
}

// With returns parameters that differ in the value of one of them. name is its documented name.
func (p Params) With(name, value string) Params {
	changed := make(Params, len(p)+1)
	for k, v := range p {
		if !strings.EqualFold(strings.TrimSpace(k), name) {
			changed[k] = v
		}
	}
	changed[name] = value
	return changed
}

// ParamReader reads parameters. Params.Reader makes it.
type ParamReader struct {
	values []value // sorted by name, each name once
	faults []Fault
}

// value is one parameter: its name in lower case, its key as received and its text.
type value struct{ name, key, text string }

// find returns the value of a key, which is a documented name: ASCII, in any case.
func (r *ParamReader) find(key string) (text string, ok bool) {
	i, ok := slices.BinarySearchFunc(r.values, key, compareName)
	if !ok {
		return "", false
	}
	return r.values[i].text, true
}

// compareName compares as strings.Compare does v.name with the key in lower case.
func compareName(v value, key string) int {
	for i := range min(len(v.name), len(key)) {
		c := key[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if v.name[i] != c {
			return cmp.Compare(v.name[i], c)
		}
	}
	return cmp.Compare(len(v.name), len(key))
}

// Has reports whether the key is present, even if its value is empty.
func (r *ParamReader) Has(key string) bool {
	_, ok := r.find(key)
	return ok
}

// Given reports whether the key is present with a value. Clients send empty text for
// parameters that they omit, so Bool, Enum and Int treat it as absent too.
func (r *ParamReader) Given(key string) bool { return r.String(key) != "" }

// String returns the value without surrounding space, empty when absent.
func (r *ParamReader) String(key string) string {
	text, _ := r.find(key)
	return text
}

// Bool reads a boolean: True or 1, False or 0, in any letter case. It returns def if the key is
// absent.
func (r *ParamReader) Bool(key string, def bool) bool {
	switch v := r.String(key); fold(v) {
	case "":
		return def
	case "true", "1":
		return true
	case "false", "0":
		return false
	default:
		r.Fault(key, "is "+quote(v)+"; it must be True or False")
		return def
	}
}

// Choice is one value of an enumeration: its documented name, and its number, which requests may
// use instead. Number is empty if there is none.
type Choice struct {
	Name, Number string
	// Level is the level of a signature with this value.
	Level Level
	// Also is another number that means the same, empty for none.
	Also string
}

// is reports whether a value from a request is this choice.
func (c Choice) is(v string) bool {
	return v != "" && (strings.EqualFold(v, c.Name) || v == c.Number || v == c.Also)
}

// Enum reads one of the choices by name, in any letter case, or by number, and returns its
// documented name. It returns def if the key is absent.
func (r *ParamReader) Enum(key string, choices []Choice, def string) string {
	return r.Choice(key, choices, def).Name
}

// Choice is Enum and returns the choice. If the value is none of them, it is the default one.
func (r *ParamReader) Choice(key string, choices []Choice, def string) Choice {
	v := r.String(key)
	fallback := Choice{Name: def}
	for _, c := range choices {
		if c.is(v) {
			return c
		}
		if c.Name == def {
			fallback = c
		}
	}
	if v == "" {
		return fallback
	}
	names := make([]string, len(choices))
	for i, c := range choices {
		names[i] = c.Name
	}
	r.Fault(key, "is "+quote(v)+"; one of "+strings.Join(names, ", ")+" expected")
	return fallback
}

// Fault records a wrong parameter. text says what is wrong and what would be right.
func (r *ParamReader) Fault(key, text string) {
	r.faults = append(r.faults, Fault{Key: key, Text: text})
}

// Err returns an *ErrParams with all faults so far, or nil.
func (r *ParamReader) Err() error {
	if len(r.faults) == 0 {
		return nil
	}
	return &ErrParams{Faults: slices.Clone(r.faults)}
}

func fold(s string) string { return strings.ToLower(strings.TrimSpace(s)) }

// quote quotes a value from outside and truncates it, so that an error stays one line.
func quote(v string) string {
	const most = 40
	if len(v) > most {
		v = strings.ToValidUTF8(v[:most], "") + "..."
	}
	return strconv.Quote(v)
}
