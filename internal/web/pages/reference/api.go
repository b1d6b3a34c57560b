// SPDX-License-Identifier: Apache-2.0

// Package reference has the pages of the reference: each operation of the interface, with a command, and a form that
// tries it. Begin with [New] and [API.Routes].
package reference

import (
	"embed"
	"sync"

	"tamga/internal/web/pages/view"
)

//go:embed templates/*.html words/*/*.txt
var files embed.FS

func init() { view.Add("reference", files, nil) }

// Deps lists what the pages of the reference need.
type Deps struct {
	Description []byte // OpenAPI document
	Address     string // public address, without a slash at the end
	Trials      Trials
}

// API serves the pages of the reference.
type API struct {
	Deps

	reference func() *openAPI
	words     sync.Map // of operations, by language and identifier; see wordsAbout
}

// New returns the API. The first page reads the description: read, it is a fifth of the live memory of a server, which
// each collection of garbage scans, and most servers show no such page.
func New(d Deps) *API {
	return &API{Deps: d, reference: sync.OnceValue(func() *openAPI {
		read, err := readOpenAPI(d.Description)
		if err != nil {
			panic(err) // the program itself has made it
		}
		return read
	})}
}
