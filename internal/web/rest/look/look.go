// SPDX-License-Identifier: Apache-2.0

// Package look has what all pages look like: the stylesheet, the icons and the mark. Begin with [Style] and [Icon]. It has
// no pages and no texts.
package look

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"regexp"
	"strings"

	"tamga/internal/web/rest"
)

//go:embed tamga.css
var style string

//go:embed guilloche.svg
var guilloche string

//go:embed icons.svg
var icons string

//go:embed favicon.svg
var favicon string

// Folder begins the addresses of files. An address has the digest of its file, so that browsers may keep the file.
const Folder = "/assets/"

// Asset is a file that pages load.
type Asset struct {
	Path    string // below the public address
	kind    string // media type
	content []byte
}

func newAsset(name, ending, kind, content string) *Asset {
	sum := sha256.Sum256([]byte(content))
	return &Asset{Folder + name + "-" + hex.EncodeToString(sum[:6]) + ending, kind, []byte(content)}
}

// Style is the stylesheet of all pages. The picture that certificates have is in it.
var Style = newAsset("tamga", ".css", "text/css; charset=utf-8", strings.ReplaceAll(style, "url(guilloche.svg)", `url("`+pictureAddress(guilloche)+`")`))

// Favicon is the mark as the icon of a window.
var Favicon = template.URL(pictureAddress(favicon))

// escaped has what an address of a picture may not have in a stylesheet or in a page.
var escaped = strings.NewReplacer("%", "%25", "#", "%23", "<", "%3C", ">", "%3E", `"`, "'")

// pictureAddress returns an address that has a picture in itself.
func pictureAddress(svg string) string {
	return "data:image/svg+xml," + escaped.Replace(strings.Join(strings.Fields(svg), " "))
}

// Routes returns the routes of the files.
func Routes() []rest.Route {
	return []rest.Route{Style.route("Stylesheet")}
}

func (a *Asset) route(name string) rest.Route {
	return rest.Handle("GET "+a.Path, name, rest.Anyone, func(context.Context, struct{}) (rest.File, error) {
		return rest.File{Content: bytes.NewReader(a.content), Type: a.kind}, nil
	}).Unaudited().Answering(rest.File{})
}

// symbols are the icons by name: the box that an icon is drawn in, and its drawing.
var symbols = func() map[string][2]string {
	list := map[string][2]string{}
	for _, m := range regexp.MustCompile(`<symbol id="([^"]+)" viewBox="([^"]+)">(.*)</symbol>`).FindAllStringSubmatch(icons, -1) {
		list[m[1]] = [2]string{m[2], m[3]}
	}
	return list
}()

// Icons returns the names of all icons in the order of their file.
func Icons() []string {
	var names []string
	for _, m := range regexp.MustCompile(`<symbol id="([^"]+)"`).FindAllStringSubmatch(icons, -1) {
		names = append(names, m[1])
	}
	return names
}

// Icon returns an icon for a page. Screen readers leave it out, so a text says the same. class is empty for an icon
// beside a text, and "seal" for the sign of a verdict. It fails for a name that is not an icon.
func Icon(name string, class ...string) (template.HTML, error) {
	s, ok := symbols[name]
	if !ok {
		return "", fmt.Errorf("look: no icon %q", name)
	}
	of := "i"
	if len(class) > 0 {
		of = strings.Join(class, " ")
	}
	return template.HTML(`<svg class="` + template.HTMLEscapeString(of) + `" viewBox="` + s[0] + `" aria-hidden="true">` + s[1] + `</svg>`), nil
}
