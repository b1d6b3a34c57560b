// SPDX-License-Identifier: Apache-2.0

package user

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"tamga/internal/domain/fault"
)

// Component is a component of distinguished names in the installation.
type Component struct {
	ID          int    // the key on the wire; chosen by the installation
	OID         string // dotted
	Name        string // short, such as "CN"
	DisplayName string // for people
	English     string // for people who read English; "" for DisplayName
	Order       int    // place in the name, the smallest first
	MinLength   int    // in characters, of a value that is given
	MaxLength   int    // in characters
	Required    bool
	Values      []string // allowed values; nil for any
	Default     string   // for a component that is not given; "" for none
}

// NameIn returns the name of the component for people who read a language. A name that the
// installation has chosen is the same in all of them.
func (c *Component) NameIn(language string) string {
	if language == "en" && c.English != "" {
		return c.English
	}
	return cmp.Or(c.DisplayName, c.Name)
}

// DefaultComponents returns the components of an installation without configured ones. The lengths are
// those of certificates that Russian authorities issue, which are above the upper bounds of X.520; see
// [LongComponents].
func DefaultComponents() []Component {
	list := []Component{
		{ID: 11, OID: "2.5.4.3", Name: "CN", DisplayName: "Общее имя", English: "Common name", MaxLength: 256, Required: true},
		{ID: 16, OID: "2.5.4.4", Name: "SN", DisplayName: "Фамилия", English: "Surname", MaxLength: 128},
		{ID: 15, OID: "2.5.4.42", Name: "G", DisplayName: "Имя и отчество", English: "Given names", MaxLength: 128},
		{ID: 14, OID: "2.5.4.43", Name: "I", DisplayName: "Инициалы", English: "Initials", MaxLength: 64},
		{ID: 13, OID: "2.5.4.12", Name: "T", DisplayName: "Должность", English: "Position", MaxLength: 256},
		{ID: 10, OID: "2.5.4.11", Name: "OU", DisplayName: "Подразделение", English: "Department", MaxLength: 256},
		{ID: 9, OID: "2.5.4.10", Name: "O", DisplayName: "Организация", English: "Organisation", MaxLength: 512},
		{ID: 12, OID: "2.5.4.9", Name: "Street", DisplayName: "Адрес", English: "Street address", MaxLength: 256},
		{ID: 8, OID: "2.5.4.7", Name: "L", DisplayName: "Город", English: "City", MaxLength: 128},
		{ID: 7, OID: "2.5.4.8", Name: "S", DisplayName: "Область", English: "Region", MaxLength: 128},
		{ID: 6, OID: "2.5.4.6", Name: "C", DisplayName: "Страна", English: "Country", MaxLength: 2},
		{ID: 5, OID: "1.2.840.113549.1.9.1", Name: "E", DisplayName: "Электронная почта", English: "E-mail", MaxLength: 254},
		{ID: 4, OID: oidINN, Name: "INN", DisplayName: "ИНН", English: "Taxpayer number", MaxLength: 12},
		{ID: 3, OID: "1.2.643.100.3", Name: "SNILS", DisplayName: "СНИЛС", English: "Insurance number", MaxLength: 11},
		{ID: 1, OID: "1.2.643.100.1", Name: "OGRN", DisplayName: "ОГРН", English: "Registration number of the organisation", MaxLength: 13},
		{ID: 2, OID: "1.2.643.100.5", Name: "OGRNIP", DisplayName: "ОГРНИП", English: "Registration number of the entrepreneur", MaxLength: 15},
	}
	for i := range list {
		list[i].Order, list[i].MinLength = i+1, 1
	}
	return list
}

// oidCommonName is the component that a registration sets.
const oidCommonName = "2.5.4.3"

// Naming has the rules of distinguished names.
type Naming struct {
	components []Component // in their order
	byKey      map[string]int
	unique     bool
}

// maxComponentLength is the largest MaxLength of a component, in characters: names appear
// in lists and certificates.
const maxComponentLength = 1024

// NewNaming checks a list of components and reports all problems. unique forbids two
// users with the same name.
func NewNaming(list []Component, unique bool) (*Naming, error) {
	n := &Naming{components: slices.Clone(list), byKey: map[string]int{}, unique: unique}
	slices.SortStableFunc(n.components, func(a, b Component) int { return a.Order - b.Order })
	var faults []error
	for i, c := range n.components {
		bad := func(what string) {
			faults = append(faults, fmt.Errorf("user: component %q of distinguished names: %s", c.Name, what))
		}
		if c.ID < 0 || !dotted(c.OID) || c.Name == "" || strings.ContainsAny(c.Name, "=,+\\ ") {
			bad("want a number, a dotted object identifier and a short name")
		}
		if c.MinLength < 0 || c.MaxLength < max(1, c.MinLength) || c.MaxLength > maxComponentLength {
			bad(fmt.Sprintf("want a length of at most %d, and none below the least", maxComponentLength))
		}
		for _, key := range []string{strconv.Itoa(c.ID), c.OID, strings.ToLower(c.Name)} {
			if _, twice := n.byKey[key]; twice {
				bad(key + " is listed twice")
			}
			n.byKey[key] = i
		}
		for _, v := range append(slices.Clone(c.Values), c.Default) {
			if v != "" && n.checkValue(c, v) != nil {
				bad(fmt.Sprintf("its own value %q is not allowed by it", v))
			}
		}
	}
	return n, errors.Join(faults...)
}

// dotted reports whether s is an object identifier in its dotted form.
func dotted(s string) bool {
	parts := strings.Split(s, ".")
	for _, p := range parts {
		if _, err := strconv.ParseUint(p, 10, 64); err != nil {
			return false
		}
	}
	return len(parts) > 1
}

// Components returns the components in their order.
func (n *Naming) Components() []Component { return slices.Clone(n.components) }

// Unique reports whether two users may not have the same name.
func (n *Naming) Unique() bool { return n.unique }

// resolve turns keys into object identifiers. Empty values are kept: they mean removal.
// The fault is invalid_parameters.
func (n *Naming) resolve(components map[string]string) (map[string]string, error) {
	values := make(map[string]string, len(components))
	for key, value := range components {
		i, known := n.byKey[strings.ToLower(strings.TrimSpace(key))]
		if !known {
			return nil, fault.Newf(fault.InvalidParameters, "component %.64q: unknown, want a number from the policy of this service", key)
		}
		oid := n.components[i].OID
		if _, twice := values[oid]; twice {
			return nil, fault.Newf(fault.InvalidParameters, "component %s: given twice under different keys", n.components[i].Name)
		}
		values[oid] = BareNumber(oid, value)
	}
	return values, nil
}

// complete drops empty values, fills in the defaults and checks the rules. The fault is
// invalid_parameters and names all wrong components.
func (n *Naming) complete(values map[string]string) (map[string]string, error) {
	whole := make(map[string]string, len(values))
	var wrong []string
	for _, c := range n.components {
		value := values[c.OID]
		if value == "" {
			value = c.Default
		}
		if value == "" {
			if c.Required {
				wrong = append(wrong, fmt.Sprintf("%s (%d): required", c.Name, c.ID))
			}
			continue
		}
		if err := n.checkValue(c, value); err != nil {
			wrong = append(wrong, err.Error())
		}
		whole[c.OID] = value
	}
	if wrong != nil {
		return nil, fault.New(fault.InvalidParameters, strings.Join(wrong, "; "))
	}
	return whole, nil
}

func (n *Naming) checkValue(c Component, value string) error {
	f, _ := fault.As(checkName(fmt.Sprintf("%s (%d)", c.Name, c.ID), value, c.MinLength, c.MaxLength))
	switch {
	case f != nil:
		return errors.New(f.Message)
	case c.Values != nil && !slices.Contains(c.Values, value):
		return fmt.Errorf("%s (%d): want one of %s", c.Name, c.ID, strings.Join(c.Values, ", "))
	}
	return nil
}

// Text returns the name for people and for DistinguishName on the wire: components in
// their order, NAME=VALUE, separated by commas, escaped as in RFC 4514, 2.4. Components
// that are not configured any more come last, under their object identifiers.
func (n *Naming) Text(values map[string]string) string {
	var parts []string
	known := map[string]bool{}
	for _, c := range n.components {
		known[c.OID] = true
		if v, ok := values[c.OID]; ok {
			parts = append(parts, c.Name+"="+escapeValue(v))
		}
	}
	for _, oid := range slices.Sorted(maps.Keys(values)) {
		if !known[oid] {
			parts = append(parts, oid+"="+escapeValue(values[oid]))
		}
	}
	return strings.Join(parts, ",")
}

// escapeValue escapes a value for Text. Values have no control characters and no spaces
// at their ends; see checkName.
func escapeValue(v string) string {
	var b strings.Builder
	for i, r := range v {
		if strings.ContainsRune(`"+,;<>\=`, r) || i == 0 && r == '#' {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// numbered returns the name by component number, without components that are not
// configured any more.
func (n *Naming) numbered(values map[string]string) map[int]string {
	out := make(map[int]string, len(values))
	for oid, v := range values {
		if i, known := n.byKey[oid]; known {
			out[n.components[i].ID] = v
		}
	}
	return out
}

// Name is a distinguished name as NameStore keeps it.
type Name struct {
	Values map[string]string // by object identifier
	Text   string
	Folded string            // Text in the form for search
	Key    [sha256.Size]byte // equal for names that differ in letter case only
	Unique bool              // names must be unique in the installation
}

// name returns the stored form of complete values.
func (n *Naming) name(values map[string]string) Name {
	text := n.Text(values)
	h := sha256.New()
	for _, oid := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(h, "%s=%q\n", oid, foldText(values[oid]))
	}
	name := Name{Values: values, Text: text, Folded: foldText(text), Unique: n.unique}
	h.Sum(name.Key[:0])
	return name
}

// firstName returns the name of a user at registration: CN with the identifier, truncated
// to the allowed length, and the defaults. It reports false when the installation has no
// CN or requires more components.
func (n *Naming) firstName(identifier string) (Name, bool) {
	i, has := n.byKey[oidCommonName]
	if !has {
		return Name{}, false
	}
	value := identifier
	if c := n.components[i]; utf8.RuneCountInString(value) > c.MaxLength {
		value = strings.TrimRight(string([]rune(value)[:c.MaxLength]), " ")
	}
	values, err := n.complete(map[string]string{oidCommonName: value})
	if err != nil {
		return Name{}, false
	}
	return n.name(values), true
}
