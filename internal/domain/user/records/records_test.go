// SPDX-License-Identifier: Apache-2.0

package records

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"tamga/internal/domain/user"
	"tamga/internal/testsize"
)

// everything reads a file and returns a line for each record and for the error that ends the file.
func everything(src io.Reader, format string) (lines []string) {
	records, err := NewReader(src, format)
	if err != nil {
		return []string{"file: " + err.Error()}
	}
	for {
		line, r, err := records.Next()
		var field *user.FieldError
		switch {
		case errors.Is(err, io.EOF):
			return lines
		case errors.As(err, &field):
			lines = append(lines, fmt.Sprintf("%d refused %s: %s", line, field.Field, message(err)))
		case err != nil:
			return append(lines, "stop: "+err.Error())
		default:
			lines = append(lines, fmt.Sprintf("%d %s %s %v %v %v %v", line, r.Login, r.Name, r.Phones, r.Emails, r.DN, r.Locked))
		}
	}
}

// TestRecordReader reads sound and hostile files. A record that cannot be read does not hide the next one.
func TestRecordReader(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxRecord)
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"plain", "login,name\nanna,Анна\n\nboris,\"Борис, \"\"Б\"\"\"", []string{"2 anna Анна [] [] map[] false", "4 boris Борис, \"Б\" [] [] map[] false"}},
		{"mark", "\ufefflogin;phone;phone_roles;dn.INN;locked\r\nanna;79261234567;primary confirmed;770000000000;true\r\n", []string{"2 anna  [{79261234567 [primary confirmed]}] [] map[inn:770000000000] true"}},
		{"tabs", "Login\tEmail\nanna\ta@example.org", []string{"2 anna  [] [{a@example.org []}] map[] false"}},
		{"quotes", "login,name\nanna,\"not closed\nboris,B\"ob\nvera,\"V\"x\ngleb,G", []string{
			"2 refused : byte 17: a quote", "3 refused : byte ", "4 refused : byte ", "5 gleb G [] [] map[] false"}},
		{"encoding", "login,name\nanna,\xc0\xed\xed\xe0\nboris,B\x00\nvera,V", []string{"2 refused : not UTF-8", "3 refused : has a zero byte", "4 vera V [] [] map[] false"}},
		{"huge", "login,name\nanna," + long + "\nboris,B", []string{"2 refused : longer than", "3 boris B [] [] map[] false"}},
		{"fields", "login,name,locked\nanna\nboris,B,false,more\nvera,V,perhaps", []string{"2 refused : has 1 fields; want 3", "3 refused : has 4 fields", "4 refused locked: want true or false"}},
		{"UTF-16", "\xff\xfel\x00o\x00", []string{"file: the file is UTF-16"}},
		{"empty", "\n\n", []string{"file: the file is empty"}},
		{"column", "login,password\n", []string{`file: line 1: column "password" is unknown`}},
		{"columns", "login,Login\n", []string{`file: line 1: column "login" is there twice`}},
		{"no login", "name,group\n", []string{"file: line 1: the column login is missing"}},
		{"lines of JSON", "{\"login\":\"anna\",\"name\":\"} {\\\"\"}\n{\"login\":\n\"boris\"}", []string{"1 anna } {\" [] [] map[] false", "2 boris  [] [] map[] false"}},
		{"array", "\ufeff [\n{\"login\":\"anna\"},\n{\"login\":\"boris\",\"dn\":{\"CN\":\"B\"}}\n]\n", []string{"2 anna  [] [] map[] false", "3 boris  [] [] map[CN:B] false"}},
		{"unknown", `{"login":"anna","password":"x"}{"login":"boris"}`, []string{"1 refused password: unknown", "1 boris "}},
		{"twice", `{"login":"anna","Login":"boris"}{"phones":[{"value":"1","value":"2"}]}`, []string{"1 refused login: is there twice", "1 refused value: is there twice"}},
		{"kind", `{"login":7}{"login":"anna","phones":"7"}`, []string{"1 refused login: is a JSON number", "1 refused phones: is a JSON string"}},
		{"no JSON", `{"login":anna}{"login":"boris"}`, []string{"1 refused : not JSON", "1 boris "}},
		{"encoding of JSON", "{\"login\":\"\xc0\"}\n{\"login\":\"boris\"}", []string{"1 refused : not UTF-8", "2 boris "}},
		{"not closed", "{\"login\":\"anna\"}\n{\"login\":\"boris\"", []string{"1 anna ", "stop: line 2: the object is not closed"}},
		{"array not closed", `[{"login":"anna"},`, []string{"1 anna ", "stop: line 1: the array is not closed"}},
		{"no comma", `[{"login":"anna"}{"login":"boris"}]`, []string{"1 anna ", "stop: line 1: '{' where"}},
		{"behind the array", `[{"login":"anna"}] {}`, []string{"1 anna ", "stop: line 1: text after"}},
		{"deep", strings.Repeat(`{"dn":`, 100), []string{"stop: line 1: the object is nested"}},
		{"huge JSON", `{"login":"` + long + `"}`, []string{"stop: line 1: the object is longer"}},
		{"long list", `{"login":"anna","certificates":[` + strings.Repeat(`"",`, maxRecordList) + `""]}`, []string{"1 refused certificates: has 101 elements"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := everything(strings.NewReader(c.text), "auto")
			if len(got) != len(c.want) {
				t.Fatalf("got %q", got)
			}
			for i, want := range c.want {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("got %q, want %q", got[i], want)
				}
			}
		})
	}
}

// TestRecordsInBoundedMemory reads a long file.
func TestRecordsInBoundedMemory(t *testing.T) {
	lines := 1_000_000
	if testsize.Of() < testsize.Whole {
		lines = 50_000
	}
	for _, format := range []string{"csv", "json"} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		records, err := NewReader(&endless{format: format, lines: lines}, "auto")
		n := 0
		for err == nil {
			if _, _, err = records.Next(); err == nil {
				n++
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if !errors.Is(err, io.EOF) || n != lines {
			t.Errorf("%s: %d records, %v", format, n, err)
		}
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
			t.Errorf("%s: memory grew by %d bytes", format, grown)
		}
	}
}

// endless is a file of many records.
type endless struct {
	format string
	lines  int
	n      int
	text   []byte
}

func (e *endless) Read(b []byte) (int, error) {
	for len(e.text) == 0 {
		switch {
		case e.n == 0 && e.format == "csv":
			e.text = []byte("login,name\n")
		case e.n > e.lines, e.n == e.lines && e.format == "json":
			return 0, io.EOF
		case e.format == "csv":
			e.text = fmt.Appendf(nil, "user%d,User %d\n", e.n, e.n)
		default:
			e.text = fmt.Appendf(nil, "{\"login\":\"user%d\"}\n", e.n)
		}
		e.n++
	}
	n := copy(b, e.text)
	e.text = e.text[n:]
	return n, nil
}

// FuzzRecordReader checks that no file makes the reader run on or panic.
func FuzzRecordReader(f *testing.F) {
	f.Add("login,name\nanna,\"A\"\n")
	f.Add("[{\"login\":\"anna\",\"phones\":[{\"value\":\"7\",\"roles\":[]}]}]")
	f.Fuzz(func(t *testing.T, text string) {
		if lines := everything(strings.NewReader(text), "auto"); len(lines) > len(text)+1 {
			t.Errorf("%d records of %d bytes", len(lines), len(text))
		}
	})
}
