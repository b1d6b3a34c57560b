// SPDX-License-Identifier: Apache-2.0

// Package pdfjs has the scripts of pdf.js. They show the page of a PDF on which its stamp is placed, and a PDF to
// confirm. renew.sh replaces them.
package pdfjs

import (
	_ "embed"

	"tamga/internal/web/rest"
	"tamga/internal/web/rest/look"
)

//go:embed pdf.min.mjs
var mainScript []byte

//go:embed pdf.worker.min.mjs
var workerScript []byte

const version = "6.5.438"

// Folder begins the addresses of the scripts. They have the version, so that browsers may keep them.
const Folder = look.Folder

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
		look.NewAsset(Main, "text/javascript", mainScript).Route("PDFScript"),
		look.NewAsset(Worker, "text/javascript", workerScript).Route("PDFWorker"),
	}
}
