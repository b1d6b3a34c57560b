// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Section is a part of the file whose settings belong to another package.
type Section struct {
	Path     string // its name in the file, such as "messages.mail"
	Settings any    // pointer to a struct
}

// ErrForm reports that a text is not YAML. Nothing was decoded.
var ErrForm = errors.New("not YAML")

// notYAML returns the error of the library as ErrForm, with one fault a line.
func notYAML(err error) error {
	var lines []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if line = strings.TrimSpace(line); line != "yaml: unmarshal errors:" {
			if strings.HasPrefix(line, "yaml: ") {
				line += "; indent with spaces, put a space after each colon, and close quotes and brackets"
			}
			lines = append(lines, "yaml: "+strings.TrimPrefix(line, "yaml: "))
		}
	}
	return formError(strings.Join(lines, "\n"))
}

// formError is an ErrForm with its text.
type formError string

func (e formError) Error() string        { return string(e) }
func (e formError) Is(target error) bool { return target == ErrForm }

// Fault is a fault of a document at a line. Its text begins with the name of the setting.
type Fault struct {
	Line int
	Text string
}

// Error implements error.
func (f *Fault) Error() string { return fmt.Sprintf("line %d: %s", f.Line, f.Text) }

// Line returns the line of a setting in a YAML document, such as "listen" or "clients[1].id". If the document does not
// have it, Line returns that of the nearest mapping or list around it, and 0 if there is none.
func Line(data []byte, name string) int {
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil || len(document.Content) == 0 {
		return 0
	}
	n, line := document.Content[0], 0
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return strings.ContainsRune(".[]", r) }) {
		next := value(n, part)
		if list := target(n); list.Kind == yaml.SequenceNode {
			if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < len(list.Content) {
				next = list.Content[i]
			}
		}
		if next == nil {
			return line
		}
		n, line = next, lineOf(n, next)
	}
	return line
}

// lineOf returns the line of the key of a value, or that of the value.
func lineOf(mapping, v *yaml.Node) int {
	if m := target(mapping); m.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(m.Content); i += 2 {
			if m.Content[i+1] == v {
				return m.Content[i].Line
			}
		}
	}
	return v.Line
}

// Decode reads one YAML document into the struct that settings points to and into those of the
// sections. A value that is missing in the document stays as it is. Decode reports all unknown
// settings and all values of a wrong form at once, and decodes the others even then.
func Decode(data []byte, settings any, sections []Section) error {
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return notYAML(err)
	}
	if len(document.Content) == 0 {
		return nil
	}
	root := document.Content[0]
	var whole any // finds duplicate names and an anchor inside itself
	if err := root.Decode(&whole); err != nil {
		return notYAML(err)
	}
	k := known{sections: sections}
	k.mapping("", root, reflect.TypeOf(settings).Elem())
	// The library decodes what it can and describes the rest in its own words, which known has
	// said already.
	faults := k.faults
	also := func(err error) {
		if err != nil && len(k.faults) == 0 {
			faults = append(faults, err)
		}
	}
	also(root.Decode(settings))
	for _, s := range sections {
		n := root
		for name := range strings.SplitSeq(s.Path, ".") {
			n = value(n, name)
		}
		if n == nil {
			continue
		}
		also(n.Decode(s.Settings))
	}
	return errors.Join(faults...)
}

// Encode returns the settings and the sections as one YAML document.
func Encode(settings any, sections []Section) (*yaml.Node, error) {
	var root yaml.Node
	if err := root.Encode(settings); err != nil {
		return nil, err
	}
	unset(&root, reflect.ValueOf(settings).Elem())
	for _, s := range sections {
		n := &root
		for name := range strings.SplitSeq(s.Path, ".") {
			next := value(n, name)
			if next == nil {
				next = &yaml.Node{Kind: yaml.MappingNode}
				n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, next)
			}
			n = next
		}
		if err := n.Encode(s.Settings); err != nil {
			return nil, err
		}
		unset(n, reflect.ValueOf(s.Settings).Elem())
	}
	return &root, nil
}

// unset writes null for each map and list of a struct that is not set. The library writes {} and [], which
// may mean "none" instead of the default.
func unset(n *yaml.Node, s reflect.Value) {
	for i := range s.NumField() {
		f := s.Type().Field(i)
		v := s.Field(i)
		element := value(n, f.Tag.Get("yaml"))
		if !f.IsExported() || element == nil {
			continue
		}
		switch {
		case v.Kind() == reflect.Struct:
			unset(element, v)
		case (v.Kind() == reflect.Map || v.Kind() == reflect.Slice) && v.IsNil():
			*element = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
		case isList(v.Type()) && element.Kind == yaml.SequenceNode:
			for j, item := range element.Content {
				unset(item, v.Index(j))
			}
		}
	}
}

// value returns the value of a key of a mapping, or nil.
func value(n *yaml.Node, key string) *yaml.Node {
	n = target(n)
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	var merged *yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch k := n.Content[i]; {
		case k.Value == key:
			return n.Content[i+1]
		case isMerge(k):
			for _, m := range merges(n.Content[i+1]) {
				if v := value(m, key); v != nil && merged == nil {
					merged = v
				}
			}
		}
	}
	return merged
}

// target returns the node that an alias names.
func target(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// isMerge reports whether a key is a merge key (<<).
func isMerge(key *yaml.Node) bool { return key.Tag == "!!merge" }

// merges returns the mappings that a merge includes.
func merges(n *yaml.Node) []*yaml.Node {
	if n = target(n); n.Kind == yaml.SequenceNode {
		return n.Content
	}
	return []*yaml.Node{n}
}

// known compares a document with the structs it is decoded into.
type known struct {
	sections []Section
	faults   []error
}

func (k *known) fault(n *yaml.Node, format string, a ...any) {
	k.faults = append(k.faults, &Fault{n.Line, fmt.Sprintf(format, a...)})
}

// mapping compares a mapping with a struct; nil: there are only sections below it.
func (k *known) mapping(prefix string, n *yaml.Node, s reflect.Type) {
	n = target(n)
	if n.Kind != yaml.MappingNode {
		if n.Tag != "!!null" {
			k.fault(n, "%s: want settings by their names, such as %s", cmp.Or(prefix, "the file"), exampleOf(s))
		}
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, v := n.Content[i], n.Content[i+1]
		if isMerge(key) {
			for _, m := range merges(v) {
				k.mapping(prefix, m, s)
			}
			continue
		}
		path := Join(prefix, key.Value)
		t, ok := k.at(path, key.Value, s)
		switch {
		case !ok:
			k.fault(key, "%s: unknown setting%s", path, k.similar(path, key.Value, s))
		case t == nil || t.Kind() == reflect.Struct:
			k.mapping(path, v, t)
		case isList(t) && target(v).Kind == yaml.SequenceNode:
			for _, element := range target(v).Content {
				k.mapping(path, element, t.Elem())
			}
		case v.Decode(reflect.New(t).Interface()) != nil:
			k.fault(v, "%s: want %s%s", path, form(t), instead(v))
		}
	}
}

// forms are the forms of values, in words.
var forms = map[reflect.Type]string{
	reflect.TypeFor[time.Duration](): "a time, such as 300s, 15m or 1h",
	reflect.TypeFor[Size]():          "a number of bytes, such as 512KiB or 10MiB",
}

// form returns the form of values of a type in words.
func form(t reflect.Type) string {
	if text := forms[t]; text != "" {
		return text
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Uint, reflect.Uint32, reflect.Uint64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.String:
		return "a text"
	case reflect.Slice:
		return "a list, such as [a, b]"
	case reflect.Map:
		return "names with values, such as {a: b}"
	}
	return "another form"
}

// instead returns the value that was found, if it is a short one.
func instead(n *yaml.Node) string {
	if n = target(n); n.Kind == yaml.ScalarNode && len(n.Value) < 80 {
		return fmt.Sprintf(", not %q", n.Value)
	}
	return ""
}

// exampleOf returns the first setting of a struct with a value.
func exampleOf(s reflect.Type) string {
	if s == nil {
		return "name: value"
	}
	for i := range s.NumField() {
		if f := s.Field(i); f.IsExported() && f.Tag.Get("yaml") != "" && f.Tag.Get("default") != "" {
			return f.Tag.Get("yaml") + ": " + f.Tag.Get("default")
		}
	}
	return "name: value"
}

// similar returns a question with the setting that an unknown one may mean, or "".
func (k *known) similar(path, name string, s reflect.Type) string {
	var names []string
	if s != nil {
		for i := range s.NumField() {
			if f := s.Field(i); f.IsExported() && f.Tag.Get("yaml") != "" {
				names = append(names, f.Tag.Get("yaml"))
			}
		}
	}
	above := strings.TrimSuffix(path, name)
	for _, section := range k.sections {
		if rest, below := strings.CutPrefix(section.Path, above); below {
			next, _, _ := strings.Cut(rest, ".")
			names = append(names, next)
		}
	}
	best, least := "", 1+len(name)/3
	for _, n := range names {
		if d := distance(name, n); d <= least && (best == "" || d < distance(name, best)) {
			best = n
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + Join(strings.TrimSuffix(above, "."), best) + "?"
}

// distance returns how many bytes must be added, removed or replaced to make b of a.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return max(len(a), len(b))
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}

// at returns the type of a setting, or nil for a place that has only sections below it.
func (k *known) at(path, name string, s reflect.Type) (t reflect.Type, ok bool) {
	if s != nil {
		for i := range s.NumField() {
			if f := s.Field(i); f.IsExported() && f.Tag.Get("yaml") == name {
				return f.Type, true
			}
		}
	}
	for _, section := range k.sections {
		if section.Path == path {
			return reflect.TypeOf(section.Settings).Elem(), true
		}
		ok = ok || strings.HasPrefix(section.Path, path+".")
	}
	return nil, ok
}
