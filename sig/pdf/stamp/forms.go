// SPDX-License-Identifier: Apache-2.0

package stamp

import "tamga/sig"

// forms are the forms of a mark by their names, the ordinary one first.
var forms = []struct {
	name string
	*form
}{{"full", full}, {"compact", compact}}

// Forms returns the forms of a mark with their sizes.
func Forms() []sig.MarkForm {
	list := make([]sig.MarkForm, len(forms))
	for i, f := range forms {
		list[i] = sig.MarkForm{Name: f.name, Width: int(f.width), Height: int(f.height)}
	}
	return list
}
