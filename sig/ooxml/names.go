// SPDX-License-Identifier: Apache-2.0

package ooxml

import "strings"

// checkPartName refuses names that programs read differently because of their percent-encoding, and
// packages in pieces. Package zip has checked the name as it is. All others are allowed, whether
// the entry is a part or not.
func checkPartName(name string) error {
	plain, ok := percentDecoded(name)
	if !ok {
		return damaged("the entry name %s has a slash, a backslash or a control character in percent-encoding", quote(name))
	}
	if plain != name {
		for segment := range strings.SplitSeq(plain, "/") {
			if segment == "." || segment == ".." {
				return damaged("the entry name %s has a segment of dots", quote(name))
			}
		}
	}
	if isPiece(plain) {
		return unfit(nil, "is a package in pieces (%s); save it with Office again, which does not interleave", quote(name))
	}
	return nil
}

// isPiece reports whether a name is that of a piece of an interleaved part,
// "name/[0].piece" or "name/[3].last.piece" (ECMA-376 part 2, 10.1.3).
func isPiece(name string) bool {
	last := strings.ToLower(name[strings.LastIndexByte(name, '/')+1:])
	rest, ok := strings.CutPrefix(last, "[")
	if !ok {
		return false
	}
	rest = strings.TrimLeft(rest, "0123456789")
	return rest == "].piece" || rest == "].last.piece"
}

// percentDecoded replaces %XX by the byte. It returns false if that would make a
// separator or a control character.
func percentDecoded(s string) (string, bool) {
	if !strings.Contains(s, "%") {
		return s, true
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' || i+2 >= len(s) {
			b.WriteByte(s[i])
			continue
		}
		high, low := hexDigit(s[i+1]), hexDigit(s[i+2])
		if high < 0 || low < 0 {
			b.WriteByte('%')
			continue
		}
		c := byte(high<<4 | low)
		if c < ' ' || c == 0x7F || c == '/' || c == '\\' {
			return "", false
		}
		b.WriteByte(c)
		i += 2
	}
	return b.String(), true
}

func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// key returns the same text for all names that mean the same part: OPC ignores the case
// of ASCII letters and needless percent-encoding (ECMA-376 part 2, 9.1.1). The result has
// no leading slash. It is "" for a name that no part can have.
func key(name string) string {
	plain, ok := percentDecoded(strings.TrimPrefix(name, "/"))
	if !ok || plain == "" {
		return ""
	}
	return asciiLower(plain)
}

func asciiLower(s string) string {
	for i := range len(s) {
		if c := s[i]; 'A' <= c && c <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if c := b[i]; 'A' <= c && c <= 'Z' {
					b[i] = c + 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}

// resolve returns the name of the part that a relationship of source leads to. source is
// "" for the package. ok is false if the target is not a part name: another scheme, only
// a fragment, or a path out of the package.
func resolve(source, target string) (name string, ok bool) {
	// Some programs write Windows paths, and Office reads them.
	target = strings.ReplaceAll(target, `\`, "/")
	if i := strings.IndexAny(target, "?#"); i >= 0 {
		target = target[:i]
	}
	if target == "" || strings.HasPrefix(target, "//") {
		return "", false
	}
	if i := strings.IndexByte(target, ':'); i >= 0 && !strings.Contains(target[:i], "/") {
		return "", false // mailto:, file:, pack:
	}
	var segments []string
	if !strings.HasPrefix(target, "/") {
		if i := strings.LastIndexByte(source, '/'); i >= 0 {
			segments = strings.Split(source[:i], "/")
		}
	}
	for _, s := range strings.Split(strings.TrimPrefix(target, "/"), "/") {
		switch s {
		case ".":
		case "..":
			// RFC 3986, 5.2.4: the parent of the root is the root.
			if len(segments) > 0 {
				segments = segments[:len(segments)-1]
			}
		case "":
			return "", false
		default:
			segments = append(segments, s)
		}
	}
	return strings.Join(segments, "/"), len(segments) > 0
}

const relsSuffix = ".rels"

// relationshipsOf returns the name of the part with the relationships of source, which is
// "" for the package.
func relationshipsOf(source string) string {
	i := strings.LastIndexByte(source, '/') + 1
	return source[:i] + "_rels/" + source[i:] + relsSuffix
}

// sourceOf is the inverse of relationshipsOf. ok is false for other names.
func sourceOf(rels string) (source string, ok bool) {
	i := strings.LastIndexByte(rels, '/')
	if i < 0 || len(rels)-i-1 < len(relsSuffix) || !strings.EqualFold(rels[len(rels)-len(relsSuffix):], relsSuffix) {
		return "", false
	}
	folder := rels[:i]
	if j := strings.LastIndexByte(folder, '/'); !strings.EqualFold(folder[j+1:], "_rels") {
		return "", false
	} else {
		folder = folder[:j+1]
	}
	return folder + rels[i+1:len(rels)-len(relsSuffix)], true
}

const queryContentType = "?ContentType="

// referenceURI returns how a manifest names a part: its name with a leading slash, and
// its declared content type (ECMA-376 part 2, 13.2.4.6). Characters that a URI must not
// have are percent-encoded; existing percent-encoding stays.
func referenceURI(name, contentType string) string {
	return uriText("/"+name) + queryContentType + uriText(contentType)
}

func uriText(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7F || strings.IndexByte("\"<>\\^`{|}#?", c) >= 0 {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// splitReference is the inverse of referenceURI. The name is not decoded.
func splitReference(uri string) (name, contentType string, ok bool) {
	name, contentType, ok = strings.Cut(uri, queryContentType)
	if !ok || !strings.HasPrefix(name, "/") || strings.ContainsAny(name, "?#") {
		return "", "", false
	}
	if plain, ok := percentDecoded(contentType); ok {
		// "+" means itself here: no program encodes it as %2B.
		contentType = plain
	} else if strings.Contains(contentType, "%2F") || strings.Contains(contentType, "%2f") {
		contentType = strings.NewReplacer("%2F", "/", "%2f", "/").Replace(contentType)
	}
	return name[1:], contentType, true
}
