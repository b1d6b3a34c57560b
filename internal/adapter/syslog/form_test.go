// SPDX-License-Identifier: Apache-2.0

package syslog

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"tamga/internal/domain/audit"
)

var (
	structured = form{format: RFC5424, facility: 13, host: "sign.example.org", element: "audit@32473"}
	common     = form{format: CEF, facility: 13, host: "sign.example.org", version: "1.0"}
)

// sample is an entry with every value.
func sample() audit.Numbered {
	return audit.Numbered{Number: 41, Entry: audit.Entry{
		At: time.Date(2026, 12, 1, 10, 0, 0, 123_000_000, time.UTC), RequestID: "r-1", Correlation: "c-1", Operation: "SignDocument", Phase: audit.Done, Outcome: audit.OK,
		Object: "document.pdf", Remote: "192.0.2.7", Detail: "CAdES", Duration: 1500 * time.Microsecond,
		Principal: audit.Principal{UserID: "u-1", Login: "ivanov", Group: "staff", Operator: true, TokenID: "t-1", ClientID: "app", Method: "password", Actor: "petrov"},
	}}
}

func TestForms(t *testing.T) {
	full, refused := sample(), audit.Numbered{Number: 1 << 40, Entry: audit.Entry{At: time.Unix(0, 0), Operation: "Token", Phase: audit.Done, Outcome: "invalid_grant", Remote: "command line"}}
	attempt := audit.Numbered{Number: 2, Entry: audit.Entry{At: time.Unix(1<<50, 0), Operation: "Token", Phase: audit.Attempt}}
	for _, c := range []struct {
		form form
		of   audit.Numbered
		want string
	}{
		{structured, full, `<110>1 2026-12-01T10:00:00.123Z sign.example.org tamga - audit [audit@32473 number="41" operation="SignDocument" phase="done" outcome="ok" object="document.pdf" user_id="u-1" login="ivanov" group="staff" operator="operator" client_id="app" token_id="t-1" method="password" actor="petrov" remote="192.0.2.7" request_id="r-1" client_request_id="c-1" duration_us="1500" detail="CAdES"] SignDocument ok`},
		{structured, refused, `<109>1 1970-01-01T00:00:00.000Z sign.example.org tamga - audit [audit@32473 number="1099511627776" operation="Token" phase="done" outcome="invalid_grant" remote="command line"] Token invalid_grant`},
		{structured, attempt, `<110>1 - sign.example.org tamga - audit [audit@32473 number="2" operation="Token" phase="attempt"] Token attempt`},
		{common, full, `<110>1 2026-12-01T10:00:00.123Z sign.example.org tamga - audit - CEF:0|Tamga|Tamga|1.0|SignDocument|SignDocument|3|externalId=41 rt=1796119200123 src=192.0.2.7 act=SignDocument cat=done outcome=ok cs1Label=object cs1=document.pdf suid=u-1 suser=ivanov cs2Label=group cs2=staff spriv=operator sourceServiceName=app cs3Label=token_id cs3=t-1 cs4Label=method cs4=password cs5Label=actor cs5=petrov flexString2Label=remote flexString2=192.0.2.7 cs6Label=request_id cs6=r-1 flexString1Label=client_request_id flexString1=c-1 cn1Label=duration_us cn1=1500 msg=CAdES`},
		{common, refused, `<109>1 1970-01-01T00:00:00.000Z sign.example.org tamga - audit - CEF:0|Tamga|Tamga|1.0|Token|Token|6|externalId=1099511627776 rt=0 act=Token cat=done outcome=invalid_grant flexString2Label=remote flexString2=command line`},
	} {
		if got := string(c.form.message(&c.of)); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
		if got := string(c.form.frame(nil, &c.of)); got != fmt.Sprintf("%d %s", len(c.want), c.want) {
			t.Errorf("framed: %s", got)
		}
	}
}

// TestFields checks that each value of an entry is a field, under the name that it has in JSON.
func TestFields(t *testing.T) {
	l := reflect.TypeFor[audit.Line]()
	keys := map[string]bool{}
	for i := range l.NumField() {
		name, _, _ := strings.Cut(l.Field(i).Tag.Get("json"), ",")
		found := name == "at"
		for _, f := range fields {
			found = found || f.name == name
		}
		if !found {
			t.Errorf("%s is no field", name)
		}
	}
	for _, f := range fields {
		if keys[f.cef] {
			t.Errorf("two fields have the key %s", f.cef)
		}
		keys[f.cef] = true
	}
}

// hostile are values that try to end a value, a field, a header or a message.
var hostile = []string{
	"a\n<110>1 - h tamga - audit [audit@32473 number=\"7\"] x", "a\r\nb", "a\x00b", `a" number="7`, `a\" number="7`, `a\\" number="7`, `a] [audit@1 b="c"]`, `"]`, `\`, `\\`,
	"a externalId=7", `a\ externalId=7`, `a\=b`, "=", "|", `|\|9|externalId=7`, "a|b", "\u2028\u2029\u0085", "\u202e\u2066", "\x7f\x1b[2J", "\xff\xfe", "имя", "\U0001f600", strings.Repeat("\n", 5000), strings.Repeat(`"\]`, 3000), strings.Repeat("ж", 4000),
}

func TestHostileValues(t *testing.T) {
	for _, v := range hostile {
		checkHostile(t, v)
	}
}

// checkHostile puts a value into every text of an entry and reads the messages as a receiver does.
func checkHostile(t *testing.T, value string) {
	t.Helper()
	n := sample()
	e := &n.Entry
	for _, text := range []*string{
		&e.RequestID, &e.Correlation, &e.Operation, &e.Outcome, &e.Object, &e.Remote, &e.Detail,
		&e.Principal.UserID, &e.Principal.Login, &e.Principal.Group, &e.Principal.TokenID, &e.Principal.ClientID, &e.Principal.Method, &e.Principal.Actor,
	} {
		*text = value
	}
	for _, f := range []form{structured, common} {
		message := string(f.message(&n))
		if !utf8.ValidString(message) || strings.ContainsFunc(message, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' }) {
			t.Fatalf("%.40q: not one clean line: %.200q", value, message)
		}
		if len(message) > longestMessage {
			t.Errorf("%.40q: %d bytes", value, len(message))
		}
		names, numbers := readStructured(message), 1
		if f.format == CEF {
			names = readCommon(message)
		}
		if names == nil {
			t.Fatalf("%.40q: cannot be read: %.300s", value, message)
		}
		for _, name := range names {
			if name == "number=41" || name == "externalId=41" {
				numbers--
			}
		}
		want := map[Format]int{RFC5424: 18, CEF: 28}[f.format]
		if value == "" {
			want = len(names)
		}
		if f.format == CEF && strings.Contains(message, " src=") {
			want++
		}
		if numbers != 0 || len(names) != want {
			t.Errorf("%.40q: %d values, want %d: %.400q", value, len(names), want, names)
		}
	}
}

// readStructured returns the parameters of the structured data of a message, nil if it is malformed (RFC 5424, 6).
func readStructured(message string) (list []string) {
	parts := strings.SplitN(message, " ", 7)
	if len(parts) != 7 || !strings.HasPrefix(parts[6], "[audit@32473 ") {
		return nil
	}
	rest := strings.TrimPrefix(parts[6], "[audit@32473")
	for strings.HasPrefix(rest, " ") {
		name, value, ok := strings.Cut(rest[1:], `="`)
		if !ok || strings.ContainsAny(name, ` "]\`) {
			return nil
		}
		end := -1
		for i := 0; i < len(value) && end < 0; i++ {
			switch value[i] {
			case '\\':
				i++
			case '"':
				end = i
			case ']':
				return nil
			}
		}
		if end < 0 {
			return nil
		}
		list, rest = append(list, name+"="+value[:end]), value[end+1:]
	}
	if !strings.HasPrefix(rest, "] ") {
		return nil
	}
	return list
}

// readCommon returns the keys and values of a message of the Common Event Format, nil if it is malformed.
func readCommon(message string) (list []string) {
	_, event, ok := strings.Cut(message, " audit - CEF:0|")
	if !ok {
		return nil
	}
	bars := 0
	for i := 0; i < len(event); i++ {
		switch event[i] {
		case '\\':
			i++
			continue
		case '|':
			if bars++; bars == 6 {
				event = event[i+1:]
				i = len(event)
			}
		}
	}
	if bars != 6 {
		return nil
	}
	// A key is a word before a "=" without a backslash.
	key, value := "", ""
	for i := 0; i < len(event); i++ {
		switch {
		case event[i] == '\\':
			if i++; i == len(event) {
				return nil
			}
			value += event[i : i+1]
		case event[i] == '=':
			before, next, ok := cutLast(value)
			if !ok && key != "" {
				return nil
			}
			if key != "" {
				list = append(list, key+"="+before)
			}
			key, value = next, ""
		default:
			value += event[i : i+1]
		}
	}
	return append(list, key+"="+value)
}

// cutLast cuts a text at its last space.
func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndex(s, " ")
	if i < 0 {
		return "", s, false
	}
	return s[:i], s[i+1:], true
}

// FuzzForms puts any value into an entry.
func FuzzForms(f *testing.F) {
	for _, v := range hostile {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, value string) { checkHostile(t, value) })
}

func TestHostname(t *testing.T) {
	for name, want := range map[string]string{"": "-", "sign.example.org": "sign.example.org", "a b\nc": "abc", "подпись": "-", strings.Repeat("a", 300): strings.Repeat("a", 255)} {
		if got := hostname(name); got != want {
			t.Errorf("%q: %q", name, got)
		}
	}
}
