// SPDX-License-Identifier: Apache-2.0

package confirm

import (
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"tamga/internal/domain/confirm/what"
	"tamga/internal/web/pages/view"
)

// signatureParts are the parameters that say of what kind a signature is, in the order in which
// people say it.
var signatureParts = []string{"cadestype", "pdfformat", "xadestype", "xmldsigtype", "cmssignaturetype", "isdetached", "hash"}

// signatureKind returns what a signature is called, such as "CAdES-T, detached", and the names of
// the parameters that this says. A parameter with a value that has no words is not among them.
func signatureKind(w *view.Words, f what.Way) (text string, said []string) {
	if f.SignatureType == "" {
		return "", nil
	}
	var parts []string
	kind, known := w.Lookup("confirm.kind." + strings.ToLower(f.SignatureType))
	if !known {
		kind = f.SignatureType
	}
	for _, name := range signatureParts {
		for _, v := range f.Parameters.List() {
			if v.Name != name || v.Digest != nil {
				continue
			}
			if one, ok := w.Lookup("confirm.value." + name + "." + strings.ToLower(strings.TrimSpace(v.Value))); ok {
				said = append(said, name)
				if one != "-" { // the usual way, which has no name
					parts = append(parts, one)
				}
			}
		}
	}
	if kind != "CAdES" || !slices.Contains(said, "cadestype") { // the level of CAdES has the kind in its name
		parts = slices.Insert(parts, 0, kind)
	}
	return strings.Join(parts, ", "), said
}

// confirmed returns a value that is confirmed in words: with its name and, if it has words or a
// form of its own, its value. Anything else is shown as it is.
func confirmed(w *view.Words, v what.Value) confirmValue {
	name, named := w.Lookup("confirm.field." + v.Name)
	if !named {
		name = v.Name
	}
	return confirmValue{Name: name, Raw: !named, Value: confirmedText(w, v)}
}

func confirmedText(w *view.Words, v what.Value) string {
	if v.Digest != nil {
		return w.Text("confirm.long", hex.EncodeToString(v.Digest))
	}
	switch v.Name {
	case "suite":
		return w.Suite(v.Value)
	case "life":
		if life, err := time.ParseDuration(v.Value); err == nil && life > 0 && life%(24*time.Hour) == 0 {
			return w.Count("confirm.days", int(life/(24*time.Hour)))
		}
	case "authority": // its number and its name
		if _, name, ok := strings.Cut(v.Value, " "); ok && name != "" {
			return name
		}
	case "reason":
		return w.TextOr("reason."+v.Value, v.Value)
	case "status":
		return w.TextOr("certificate.status."+v.Value, v.Value)
	case "pdfsignatureappearance": // Base64
		return w.Text("confirm.appearance")
	}
	return w.TextOr("confirm.value."+v.Name+"."+strings.ToLower(strings.ReplaceAll(v.Value, " ", "_")), v.Value)
}
