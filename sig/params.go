package sig

import (
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
	r := &ParamReader{values: make(map[string]string, len(p))}
	keys := make([]string, 0, len(p))
	for k := range p {
		keys = append(keys, k)
	}
	slices.Sort(keys) // the same faults in the same order on every run
	for _, k := range keys {
		name, value := fold(k), strings.TrimSpace(p[k])
		if old, ok := r.values[name]; ok && old != value {
			r.Fault(strings.TrimSpace(k), "given twice with different values; give it once")
			continue
		}
		r.values[name] = value
	}
	return r
}

// ParamReader is made by Params.Reader.
type ParamReader struct {
	values map[string]string
	faults []Fault
}

// Has tells whether the key is present, be its value empty.
func (r *ParamReader) Has(key string) bool {
	_, ok := r.values[fold(key)]
	return ok
}

// Given tells whether the key is present with a value. Clients send empty text
// for what they leave out, so Bool, Enum and Int take that as absent too.
func (r *ParamReader) Given(key string) bool { return r.values[fold(key)] != "" }

// String returns the value without surrounding space, empty when absent.
func (r *ParamReader) String(key string) string { return r.values[fold(key)] }

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
	names := make([]string, len(choices))
	for i, c := range choices {
		if strings.EqualFold(v, c.Name) || v == c.Number {
			return c.Name
		}
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
