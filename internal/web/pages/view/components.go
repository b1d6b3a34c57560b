// SPDX-License-Identifier: Apache-2.0

package view

// Option is an entry of a list of a form, as the template "field" takes it.
type Option struct {
	Value, Text string
	Chosen      bool
}

// part returns the values of a template of parts.html by their names.
func part(pairs ...any) map[string]any {
	values := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		values[pairs[i].(string)] = pairs[i+1]
	}
	return values
}

// seals are the classes of verdicts.
var seals = map[string]string{"passed": "valid", "failed": "invalid", "indeterminate": "unknown"}

// tones are the kinds of tags of verdicts.
var tones = map[string]string{"passed": "good", "failed": "bad", "indeterminate": "warn"}

// tone returns the kind of a tag for a verdict.
func tone(verdict string) string { return tones[verdict] }

// seal returns the class of a verdict. The sign of the verdict is the icon "seal-" with the class.
func seal(verdict string) string { return seals[verdict] }
