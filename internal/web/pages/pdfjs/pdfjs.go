// SPDX-License-Identifier: Apache-2.0

// Package pdfjs has the scripts of pdf.js. They show the page of a PDF on which its stamp is placed, and a PDF to
// confirm. renew.sh replaces them.
package pdfjs

import (
	"bytes"
	"context"
	"embed"

	"tamga/internal/web/rest"
)

//go:embed *.mjs
var scripts embed.FS

const version = "6.5.438"

// Folder begins the addresses of the scripts. They have the version, so that browsers may keep them.
const Folder = "/assets/"

// Addresses of the scripts.
const (
	Main   = Folder + "pdfjs-" + version + "/pdf.min.mjs"
	Worker = Folder + "pdfjs-" + version + "/pdf.worker.min.mjs"
)

// Modules returns the addresses that a page with a PDF may load scripts from, below the public address.
func Modules(address string) []string { return []string{address + Main, address + Worker} }

// Routes returns the routes of the scripts.
func Routes() []rest.Route {
	return []rest.Route{
		rest.Handle("GET "+Main, "PDFScript", rest.Anyone, script("pdf.min.mjs")).Unaudited().Answering(rest.File{}),
		rest.Handle("GET "+Worker, "PDFWorker", rest.Anyone, script("pdf.worker.min.mjs")).Unaudited().Answering(rest.File{}),
	}
}

func script(name string) func(context.Context, struct{}) (rest.File, error) {
	return func(context.Context, struct{}) (rest.File, error) {
		text, err := scripts.ReadFile(name)
		return rest.File{Content: bytes.NewReader(text), Type: "text/javascript"}, err
	}
}
