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
