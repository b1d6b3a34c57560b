// SPDX-License-Identifier: Apache-2.0

// Package look has what all pages look like: the stylesheet, the icons and the mark. Begin with [Style] and [Icon]. It has
// no pages and no texts.
package look

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"regexp"
	"strings"
	"sync"

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

// The icons of the app are drawn from app-icon.svg: mutool draw -w 192 -h 192 -o app-192.png app-icon.svg.
var (
	//go:embed app-180.png
	icon180 string
	//go:embed app-192.png
	icon192 string
	//go:embed app-512.png
	icon512 string
)

// Folder begins the addresses of files. An address has the digest of its file, so that browsers may keep the file.
const Folder = "/assets/"

// Asset is a file that pages load. It never has a secret, so it may be compressed.
type Asset struct {
	Path    string // its address, which never has another content
	kind    string // media type
	content []byte
	packed  func() []byte // content, compressed by gzip at the first call
}

// NewAsset returns a file of a media type. Its path must change with its content.
func NewAsset(path, kind string, content []byte) *Asset {
	return &Asset{path, kind, content, sync.OnceValue(func() []byte {
		var packed bytes.Buffer
		w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if err == nil {
			_, err = w.Write(content)
			err = errors.Join(err, w.Close())
		}
		if err != nil { // the level is valid, and memory takes all
			panic(err)
		}
		return packed.Bytes()
	})}
}

// hashed returns a file with the digest of its content in its path.
func hashed(name, ending, kind, content string) *Asset {
	sum := sha256.Sum256([]byte(content))
	return NewAsset(Folder+name+"-"+hex.EncodeToString(sum[:6])+ending, kind, []byte(content))
}

// Route returns the route of the file.
func (a *Asset) Route(name string) rest.Route {
	return rest.Handle("GET "+a.Path, name, rest.Anyone, func(_ context.Context, r struct {
		Accepted string `header:"Accept-Encoding"`
	}) (rest.File, error) {
		f := rest.File{Content: bytes.NewReader(a.content), Type: a.kind, Kept: true, Varies: true}
		if acceptsGzip(r.Accepted) {
			f.Content, f.Encoding = bytes.NewReader(a.packed()), "gzip"
		}
		return f, nil
	}).Unaudited().Answering(rest.File{})
}

// acceptsGzip reports whether a client that sends this header Accept-Encoding reads what gzip has compressed (RFC 9110,
// section 12.5.3).
func acceptsGzip(header string) bool {
	for one := range strings.SplitSeq(header, ",") {
		name, quality, _ := strings.Cut(one, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			return strings.Trim(quality, "q=0. \t") != "" || strings.TrimSpace(quality) == ""
		}
	}
	return false
}

// Style is the stylesheet of all pages. The picture that certificates have is in it.
var Style = hashed("tamga", ".css", "text/css; charset=utf-8", strings.ReplaceAll(style, "url(guilloche.svg)", `url("`+pictureAddress(guilloche)+`")`))

// Favicon is the mark as the icon of a window.
var Favicon = template.URL(pictureAddress(favicon))

// AppIcon is the mark as the icon of an installed app.
type AppIcon struct {
	*Asset
	Sizes string // in pixels, as manifests have it
}

// AppIcons are the sizes of it. The first one is for pages, the others are for manifests.
var AppIcons = []AppIcon{
	{hashed("app-180", ".png", "image/png", icon180), "180x180"},
	{hashed("app-192", ".png", "image/png", icon192), "192x192"},
	{hashed("app-512", ".png", "image/png", icon512), "512x512"},
}

// escaped has what an address of a picture may not have in a stylesheet or in a page.
var escaped = strings.NewReplacer("%", "%25", "#", "%23", "<", "%3C", ">", "%3E", `"`, "'")

// pictureAddress returns an address that has a picture in itself.
func pictureAddress(svg string) string {
	return "data:image/svg+xml," + escaped.Replace(strings.Join(strings.Fields(svg), " "))
}

// Routes returns the routes of the files.
func Routes() []rest.Route {
	return []rest.Route{Style.Route("Stylesheet")}
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
