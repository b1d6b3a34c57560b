// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Section is a part of the file whose settings belong to another package.
type Section struct {
	Path     string // its name in the file, such as "messages.mail"
	Settings any    // pointer to a struct
}

// Decode reads one YAML document into the struct that settings points to and into those of the
// sections. A value that is missing in the document stays as it is. Decode reports all unknown
// settings at once.
func Decode(data []byte, settings any, sections []Section) error {
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil || len(document.Content) == 0 {
		return err
	}
	root := document.Content[0]
	var whole any // finds duplicate names and an anchor inside itself
	if err := root.Decode(&whole); err != nil {
		return err
	}
	k := known{sections: sections}
	k.mapping("", root, reflect.TypeOf(settings).Elem())
	if len(k.faults) > 0 {
		return errors.Join(k.faults...)
	}
	if err := root.Decode(settings); err != nil {
		return err
	}
	for _, s := range sections {
		n := root
		for name := range strings.SplitSeq(s.Path, ".") {
			n = value(n, name)
		}
		if n == nil {
			continue
		}
		if err := n.Decode(s.Settings); err != nil {
			return err
		}
	}
	return nil
}

// Encode returns the settings and the sections as one YAML document.
func Encode(settings any, sections []Section) (*yaml.Node, error) {
	var root yaml.Node
	if err := root.Encode(settings); err != nil {
		return nil, err
	}
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
	}
	return &root, nil
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
	k.faults = append(k.faults, fmt.Errorf("line %d: %s", n.Line, fmt.Sprintf(format, a...)))
}

// mapping compares a mapping with a struct; nil: there are only sections below it.
func (k *known) mapping(prefix string, n *yaml.Node, s reflect.Type) {
	n = target(n)
	if n.Kind != yaml.MappingNode {
		if n.Tag != "!!null" {
			k.fault(n, "%s: want settings by their names", prefix)
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
			k.fault(key, "%s: unknown setting", path)
		case t == nil || t.Kind() == reflect.Struct:
			k.mapping(path, v, t)
		case isList(t) && target(v).Kind == yaml.SequenceNode:
			for _, element := range target(v).Content {
				k.mapping(path, element, t.Elem())
			}
		}
	}
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
