// SPDX-License-Identifier: Apache-2.0

package pages

// Clients are the names of applications.
type Clients struct {
	Own   string            // identifier of these pages
	Names map[string]string // of others for people, by identifier; those without a name are missing
}

// named is an application. ID is "" if the name is the identifier, or one of these pages.
type named struct{ Name, ID string }

// named returns what an application is called, and its identifier. People do not know these pages by an
// identifier.
func (c Clients) named(w *words, id string) named {
	if id == c.Own {
		return named{Name: w.text("confirm.own")}
	}
	if name := c.Names[id]; name != "" && name != id {
		return named{name, id}
	}
	return named{Name: id}
}
