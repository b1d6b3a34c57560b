package sig

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Params are the parameters of a signature request, text by name. Names are
// matched without regard to letter case and surrounding space, because clients
// write both "IsDetached" and "isDetached", and one sends a trailing space.
type Params map[string]string

// Reader reads the parameters of one format and collects every fault, so that a
// caller learns of all of them from one answer.
func (p Params) Reader() *ParamReader {
	r := &ParamReader{values: make([]value, 0, len(p))}
	for k, v := range p {
		r.values = append(r.values, value{fold(k), k, strings.TrimSpace(v)})
	}
	slices.SortFunc(r.values, func(a, b value) int { // the same faults in the same order on every run
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

// ParamReader is made by Params.Reader.
type ParamReader struct {
	values []value // by name, each name once
	faults []Fault
}

// value is one parameter: the name it is looked up by, the key as it came.
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

// Has tells whether the key is present, be its value empty.
func (r *ParamReader) Has(key string) bool {
	_, ok := r.find(key)
	return ok
}

// Given tells whether the key is present with a value. Clients send empty text
// for what they leave out, so Bool, Enum and Int take that as absent too.
func (r *ParamReader) Given(key string) bool { return r.String(key) != "" }

// String returns the value without surrounding space, empty when absent.
func (r *ParamReader) String(key string) string {
	text, _ := r.find(key)
	return text
}

// Bool reads a boolean; absent means def. True and 1, False and 0 in any letter
// case are understood.
func (r *ParamReader) Bool(key string, def bool) bool {
	switch v := r.String(key); fold(v) {
	case "":
		return def
	case "true", "1":
		return true
	case "false", "0":
		return false
	default:
		r.Fault(key, "is "+quote(v)+"; True or False expected")
		return def
	}
}

// Choice is one value of an enumeration: its documented name and its number,
// which requests may use as well; empty when it has none.
type Choice struct{ Name, Number string }

// Enum reads one of the choices by name, in any letter case, or by number, and
// returns its documented name; absent means def.
func (r *ParamReader) Enum(key string, choices []Choice, def string) string {
	v := r.String(key)
	if v == "" {
		return def
	}
	for _, c := range choices {
		if strings.EqualFold(v, c.Name) || v == c.Number {
			return c.Name
		}
	}
	names := make([]string, len(choices))
	for i, c := range choices {
		names[i] = c.Name
	}
	r.Fault(key, "is "+quote(v)+"; one of "+strings.Join(names, ", ")+" expected")
	return def
}

// Fault records that a parameter is wrong; text says how, and what is right.
func (r *ParamReader) Fault(key, text string) {
	r.faults = append(r.faults, Fault{Key: key, Text: text})
}

// Err returns *ErrParams with all faults so far, or nil.
func (r *ParamReader) Err() error {
	if len(r.faults) == 0 {
		return nil
	}
	return &ErrParams{Faults: slices.Clone(r.faults)}
}

func fold(s string) string { return strings.ToLower(strings.TrimSpace(s)) }

// quote shows a value from outside, cut so that an error stays one line.
func quote(v string) string {
	const most = 40
	if len(v) > most {
		v = strings.ToValidUTF8(v[:most], "") + "..."
	}
	return strconv.Quote(v)
}
