// SPDX-License-Identifier: Apache-2.0

package view

// Clients are the names of applications.
type Clients struct {
	Own   string            // identifier of these pages
	Names map[string]string // of others for people, by identifier; those without a name are missing
}

// Named is an application. ID is "" if the name is the identifier, or one of these pages.
type Named struct{ Name, ID string }

// Named returns what an application is called, and its identifier. People do not know these pages by an
// identifier.
func (c Clients) Named(w *Words, id string) Named {
	if id == c.Own {
		return Named{Name: w.Text("confirm.own")}
	}
	if name := c.Names[id]; name != "" && name != id {
		return Named{name, id}
	}
	return Named{Name: id}
}
