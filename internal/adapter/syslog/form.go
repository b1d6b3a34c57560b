// SPDX-License-Identifier: Apache-2.0

package syslog

import (
	"net/netip"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"tamga/internal/domain/audit"
)

// Format is the form of the content of messages.
type Format string

// The formats. Both are inside of a message of RFC 5424.
const (
	RFC5424 Format = "rfc5424" // structured data
	CEF     Format = "cef"     // Common Event Format of ArcSight
)

// Lengths in bytes. Receivers of RFC 5425 should take 8192; rsyslog cuts what is longer.
const (
	longestMessage = 8000
	// briefValue bounds each value of a message that would be longer. All of them fit then.
	briefValue = 360
)

// Severities of RFC 5424.
const (
	notice        = 5
	informational = 6
)

// field is a value of an entry. Empty values are not sent.
type field struct {
	name  string // in structured data: as in the JSON of tamga audit
	cef   string // key
	label string // value of the key cef+"Label"; "" for a key with a meaning of its own
	value func(l *audit.Line) string
}

var fields = []field{
	{"operation", "act", "", func(l *audit.Line) string { return l.Operation }},
	{"phase", "cat", "", func(l *audit.Line) string { return l.Phase }},
	{"outcome", "outcome", "", func(l *audit.Line) string { return l.Outcome }},
	{"object", "cs1", "object", func(l *audit.Line) string { return l.Object }},
	{"user_id", "suid", "", func(l *audit.Line) string { return l.UserID }},
	{"login", "suser", "", func(l *audit.Line) string { return l.Login }},
	{"group", "cs2", "group", func(l *audit.Line) string { return l.Group }},
	{"operator", "spriv", "", operator},
	{"client_id", "sourceServiceName", "", func(l *audit.Line) string { return l.ClientID }},
	{"token_id", "cs3", "token_id", func(l *audit.Line) string { return l.TokenID }},
	{"method", "cs4", "method", func(l *audit.Line) string { return l.Method }},
	{"actor", "cs5", "actor", func(l *audit.Line) string { return l.Actor }},
	{"remote", "flexString2", "remote", func(l *audit.Line) string { return l.Remote }},
	{"request_id", "cs6", "request_id", func(l *audit.Line) string { return l.RequestID }},
	{"client_request_id", "flexString1", "client_request_id", func(l *audit.Line) string { return l.Correlation }},
	{"duration_us", "cn1", "duration_us", duration},
	{"detail", "msg", "", func(l *audit.Line) string { return l.Detail }},
}

func operator(l *audit.Line) string {
	if !l.Operator {
		return ""
	}
	return "operator"
}

func duration(l *audit.Line) string {
	if l.Micros == 0 {
		return ""
	}
	return strconv.FormatInt(l.Micros, 10)
}

// form makes messages of entries.
type form struct {
	format   Format
	facility int
	host     string // HOSTNAME, in ASCII
	element  string // SD-ID
	version  string // of this program
}

// frame appends an entry as a message with its length in front (RFC 6587, 3.4.1).
func (f *form) frame(dst []byte, n *audit.Numbered) []byte {
	message := f.message(n)
	dst = strconv.AppendInt(dst, int64(len(message)), 10)
	dst = append(dst, ' ')
	return append(dst, message...)
}

// message returns the message of an entry: one line, whatever its values are.
func (f *form) message(n *audit.Numbered) []byte {
	message := f.render(n, longestMessage)
	if len(message) > longestMessage {
		message = f.render(n, briefValue)
	}
	return message
}

// render makes a message with values of up to most bytes.
func (f *form) render(n *audit.Numbered, most int) []byte {
	line := audit.LineOf(&n.Entry)
	severity := informational
	if line.Outcome != "" && line.Outcome != audit.OK && line.Outcome != audit.Canceled {
		severity = notice
	}
	b := make([]byte, 0, 1024)
	b = append(b, '<')
	b = strconv.AppendInt(b, int64(8*f.facility+severity), 10)
	b = append(b, ">1 "...)
	if at := line.At.UTC(); at.Year() >= 0 && at.Year() <= 9999 {
		b = at.AppendFormat(b, "2006-01-02T15:04:05.000Z")
	} else {
		b = append(b, '-')
	}
	b = append(b, ' ')
	b = append(b, f.host...)
	b = append(b, " tamga - audit "...)
	if f.format == CEF {
		return f.cef(append(b, "- "...), n, &line, most, severity)
	}
	b = append(b, '[')
	b = append(b, f.element...)
	b = append(b, ` number="`...)
	b = strconv.AppendInt(b, n.Number, 10)
	b = append(b, '"')
	for _, x := range fields {
		if v := x.value(&line); v != "" {
			b = append(b, ' ')
			b = append(b, x.name...)
			b = append(b, `="`...)
			b = legible(b, v, `"\]`, most)
			b = append(b, '"')
		}
	}
	b = append(b, "] "...)
	b = legible(b, line.Operation, "", most)
	b = append(b, ' ')
	return legible(b, outcome(&line), "", most)
}

// outcome is the result of an entry in one word.
func outcome(l *audit.Line) string {
	if l.Phase == audit.Attempt {
		return audit.Attempt
	}
	return l.Outcome
}

// cef appends an entry in the Common Event Format: a header of seven fields and an extension of keys and values.
func (f *form) cef(b []byte, n *audit.Numbered, line *audit.Line, most, severity int) []byte {
	b = append(b, "CEF:0|Tamga|Tamga|"...)
	b = legible(b, f.version, `|\`, most)
	for range 2 { // the class and the name of the event
		b = append(b, '|')
		b = legible(b, line.Operation, `|\`, most)
	}
	b = append(b, '|')
	if severity == notice {
		b = append(b, '6')
	} else {
		b = append(b, '3')
	}
	b = append(b, "|externalId="...)
	b = strconv.AppendInt(b, n.Number, 10)
	b = append(b, " rt="...)
	b = strconv.AppendInt(b, line.At.UnixMilli(), 10)
	if a, err := netip.ParseAddr(line.Remote); err == nil && a.Zone() == "" {
		b = append(b, " src="...)
		b = a.AppendTo(b)
	}
	for _, x := range fields {
		v := x.value(line)
		if v == "" {
			continue
		}
		if x.label != "" {
			b = append(b, ' ')
			b = append(b, x.cef...)
			b = append(b, "Label="...)
			b = append(b, x.label...)
		}
		b = append(b, ' ')
		b = append(b, x.cef...)
		b = append(b, '=')
		b = legible(b, v, `\=`, most)
	}
	return b
}

// legible appends a value in at most about a number of bytes; "…" shows that it was cut. The characters of special get
// a backslash in front. Control characters become their pictures: a receiver may take a line feed for the end of a
// message although the length is in front of it. Other characters that people do not see become U+FFFD.
func legible(b []byte, value, special string, most int) []byte {
	begin := len(b)
	for _, r := range value {
		if len(b)-begin >= most {
			return append(b, "…"...)
		}
		switch {
		case r < ' ':
			r += '\u2400'
		case r == 0x7f:
			r = '\u2421'
		case !unicode.IsPrint(r):
			r = unicode.ReplacementChar
		case r < utf8.RuneSelf && strings.IndexByte(special, byte(r)) >= 0:
			b = append(b, '\\')
		}
		b = utf8.AppendRune(b, r)
	}
	return b
}

// hostname returns a name as HOSTNAME of RFC 5424: at most 255 printable ASCII characters, "-" if there are none.
func hostname(name string) string {
	name = strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return -1
		}
		return r
	}, name)
	if name == "" {
		return "-"
	}
	return name[:min(len(name), 255)]
}
