// SPDX-License-Identifier: Apache-2.0

package view

import (
	"encoding/base64"
	"html/template"
	"net/url"
	"strings"

	"tamga/internal/domain/policy"
	"tamga/internal/web/rest"
)

// SeeOther leads on after a form.
func SeeOther(to string) rest.Redirect { return rest.Redirect{Location: to, See: true} }

// Local returns an address of this site, "/start" for anything else. Only a path is local:
// browsers read "//host" and "/\host" as another host.
func Local(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n\t") {
		return "/start"
	}
	return to
}

// DataURL returns a picture of ours as an address.
func DataURL(kind string, content []byte) template.URL {
	return template.URL("data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(content))
}

// SignedAt returns the address of the page of an operation.
func SignedAt(id string) string { return "/signed?operation=" + url.QueryEscape(id) }

// DecryptedAt returns the address of the page of an operation that decrypts.
func DecryptedAt(id string) string { return "/decrypted?operation=" + url.QueryEscape(id) }

// ResultAt returns the address of the page of an operation with documents, by its action.
func ResultAt(action, id string) string {
	if action == policy.DecryptDocument.String() {
		return DecryptedAt(id)
	}
	return SignedAt(id)
}
