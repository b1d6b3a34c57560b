// SPDX-License-Identifier: Apache-2.0

// Package records reads lists of users, as CSV or JSON, for their import. Begin with [NewReader]. It decides nothing about
// users: [tamga/internal/domain/user.Service.AddAll] does.
package records

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"tamga/internal/domain/contact"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/user"
)

// Limits of import files. A record has room for its certificates in Base64.
const (
	maxRecord      = 512 << 10 // bytes of a line of CSV, and of an object of JSON
	maxRecordDepth = 8         // of nested objects and arrays
	maxRecordList  = 100       // contacts, certificates and keys of a record, each
)

// Record is one user of a file. Its JSON form is described in docs/import.md.
type Record struct {
	Login        string            `json:"login"`
	Group        string            `json:"group"`
	Name         string            `json:"name"`
	DN           map[string]string `json:"dn"`
	Locked       bool              `json:"locked"`
	Phones       []Contact         `json:"phones"`
	Emails       []Contact         `json:"emails"`
	Certificates []string          `json:"certificates"`
	Keys         []Key             `json:"keys"`
}

// Contact is a contact of a record.
type Contact struct {
	Value string   `json:"value"`
	Roles []string `json:"roles"` // absent: primary
}

// Key names the files of a key of a record.
type Key struct {
	File         string `json:"file"`
	PasswordFile string `json:"password_file"`
	PINFile      string `json:"pin_file"`
}

// ContactList returns the contacts of a record.
func (r *Record) ContactList() (list []contact.Contact, err error) {
	for _, kind := range []struct {
		of    contact.Type
		given []Contact
	}{{contact.PhoneNumber, r.Phones}, {contact.EmailAddress, r.Emails}} {
		for i, given := range kind.given {
			c := contact.Contact{Type: kind.of, Value: given.Value, Primary: given.Roles == nil}
			for _, role := range given.Roles {
				set, known := contactRoles[role]
				if !known {
					return nil, &user.FieldError{Field: user.ContactField(kind.of, i+1), Err: fault.Newf(fault.InvalidParameters, "%q is no role; want primary, confirmed, notification or codes", printable(role))}
				}
				set(&c)
			}
			list = append(list, c)
		}
	}
	return list, nil
}

// contactRoles sets the roles of contacts by their names.
var contactRoles = map[string]func(*contact.Contact){
	"primary":      func(c *contact.Contact) { c.Primary = true },
	"confirmed":    func(c *contact.Contact) { c.Confirmed = true },
	"notification": func(c *contact.Contact) { c.Notification = true },
	"codes":        func(c *contact.Contact) { c.SecondaryAuth = true },
}

// Reader reads the records of an import file one by one.
type Reader interface {
	// Next returns the next record and the number of its line. An error that is a
	// *user.FieldError is about this record: the next one can be read. Any other error, io.EOF
	// at the end, ends the file.
	Next() (line int, r *Record, err error)
}

// NewReader returns the reader of a format: csv, json, or auto, which takes a file that
// begins with a bracket as JSON.
func NewReader(src io.Reader, format string) (Reader, error) {
	in := bufio.NewReaderSize(src, 64<<10)
	begin, err := in.Peek(3)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(begin, []byte("\xff\xfe")), bytes.HasPrefix(begin, []byte("\xfe\xff")):
		return nil, errors.New("the file is UTF-16; want UTF-8: iconv -f UTF-16 -t UTF-8")
	case bytes.Equal(begin, []byte("\xef\xbb\xbf")): // the mark that some programs put in front of UTF-8
		if _, err := in.Discard(3); err != nil {
			return nil, err
		}
	}
	if format == "auto" {
		head, err := in.Peek(4096)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
		format = "csv"
		if head = bytes.TrimLeft(head, " \t\r\n"); len(head) > 0 && (head[0] == '{' || head[0] == '[') {
			format = "json"
		}
	}
	if format == "json" {
		return &jsonRecords{in: in, line: 1}, nil
	}
	return newCSVRecords(in)
}

// errEncoding is about a record that is not UTF-8.
var errEncoding = fault.New(fault.InvalidParameters, "not UTF-8; convert the file, for instance: iconv -f windows-1251 -t UTF-8")

// csvRecords reads CSV. A record is one line, so that a lost quote spoils one record only.
type csvRecords struct {
	in      *bufio.Reader
	line    int
	comma   rune
	columns []csvColumn
}

// csvColumn puts a field of CSV into a record.
type csvColumn struct {
	name string
	put  func(r *Record, value string) error
}

// csvColumns are the columns by name. Columns that begin with "dn." are beside them.
var csvColumns = map[string]func(r *Record, value string) error{
	"login":       func(r *Record, v string) error { r.Login = v; return nil },
	"group":       func(r *Record, v string) error { r.Group = v; return nil },
	"name":        func(r *Record, v string) error { r.Name = v; return nil },
	"phone":       func(r *Record, v string) error { first(&r.Phones).Value = v; return nil },
	"phone_roles": func(r *Record, v string) error { first(&r.Phones).Roles = strings.Fields(v); return nil },
	"email":       func(r *Record, v string) error { first(&r.Emails).Value = v; return nil },
	"email_roles": func(r *Record, v string) error { first(&r.Emails).Roles = strings.Fields(v); return nil },
	"certificate": func(r *Record, v string) error { r.Certificates = append(r.Certificates, v); return nil },
	"key_file":    func(r *Record, v string) error { first(&r.Keys).File = v; return nil },
	"key_password_file": func(r *Record, v string) error {
		first(&r.Keys).PasswordFile = v
		return nil
	},
	"key_pin_file": func(r *Record, v string) error { first(&r.Keys).PINFile = v; return nil },
	"locked": func(r *Record, v string) (err error) {
		if r.Locked, err = strconv.ParseBool(v); err != nil {
			err = fault.New(fault.InvalidParameters, "want true or false")
		}
		return err
	},
}

// first returns the first element of a list, which it makes if there is none.
func first[T any](list *[]T) *T {
	if len(*list) == 0 {
		*list = make([]T, 1)
	}
	return &(*list)[0]
}

func newCSVRecords(in *bufio.Reader) (*csvRecords, error) {
	c := &csvRecords{in: in}
	head, err := c.read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the file is empty; the first line names the columns, for instance: login,group,name,phone,email")
	}
	if err != nil {
		return nil, fmt.Errorf("line %d: %s", c.line, message(err))
	}
	// Programs write ; where the comma is in numbers.
	c.comma = ','
	if strings.Count(head, ";")+strings.Count(head, "\t") > strings.Count(head, ",") {
		if c.comma = ';'; strings.Count(head, "\t") > strings.Count(head, ";") {
			c.comma = '\t'
		}
	}
	names, err := c.split(head)
	if err != nil {
		return nil, fmt.Errorf("line %d: %s", c.line, message(err))
	}
	for _, name := range names {
		name = strings.ToLower(strings.TrimSpace(name))
		if slices.ContainsFunc(c.columns, func(have csvColumn) bool { return have.name == name }) {
			return nil, fmt.Errorf("line %d: column %q is there twice", c.line, printable(name))
		}
		put, known := csvColumns[name]
		if component, ok := strings.CutPrefix(name, "dn."); ok {
			known = true
			put = func(r *Record, v string) error {
				if r.DN == nil {
					r.DN = map[string]string{}
				}
				r.DN[component] = v
				return nil
			}
		}
		if !known {
			return nil, fmt.Errorf("line %d: column %q is unknown; want %s, or dn. with a component such as dn.CN", c.line, printable(name), strings.Join(sortedColumns(), ", "))
		}
		c.columns = append(c.columns, csvColumn{name, put})
	}
	if !slices.ContainsFunc(c.columns, func(have csvColumn) bool { return have.name == "login" }) {
		return nil, fmt.Errorf("line %d: the column login is missing", c.line)
	}
	return c, nil
}

func sortedColumns() (names []string) {
	for name := range csvColumns {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// read returns the next line that is not empty, without its end. Its errors but those of the
// file are about the line.
func (c *csvRecords) read() (string, error) {
	for {
		c.line++
		line, tooLong, err := readLine(c.in)
		if err != nil {
			return "", err
		}
		switch text := strings.TrimRight(string(line), "\r\n"); {
		case tooLong:
			return "", Fault("", fault.Newf(fault.InvalidParameters, "longer than %d bytes", maxRecord))
		case !utf8.ValidString(text):
			return "", Fault("", errEncoding)
		case strings.IndexByte(text, 0) >= 0:
			return "", Fault("", fault.New(fault.InvalidParameters, "has a zero byte; want text in UTF-8"))
		case strings.TrimSpace(text) != "":
			return text, nil
		}
	}
}

// readLine reads a line with its end. Of a line that is too long it keeps nothing.
func readLine(in *bufio.Reader) (line []byte, tooLong bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > maxRecord {
			line, tooLong = nil, true
		}
		if !tooLong {
			line = append(line, part...)
		}
		switch {
		case err == nil:
			return line, tooLong, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && (len(line) > 0 || tooLong):
			return line, tooLong, nil
		default:
			return nil, false, err
		}
	}
}

// split returns the fields of a line.
func (c *csvRecords) split(line string) ([]string, error) {
	reader := csv.NewReader(strings.NewReader(line))
	reader.Comma = c.comma
	fields, err := reader.Read()
	var syntax *csv.ParseError
	if errors.As(err, &syntax) {
		return nil, fault.Newf(fault.InvalidParameters, "byte %d: a quote is in the wrong place; a field with quotes or separators is in quotes, quotes in it are doubled, and a record is one line", syntax.Column)
	}
	return fields, err
}

func (c *csvRecords) Next() (int, *Record, error) {
	text, err := c.read()
	if err != nil {
		return c.line, nil, err
	}
	fields, err := c.split(text)
	if err != nil {
		return c.line, nil, Fault("", err)
	}
	if len(fields) != len(c.columns) {
		return c.line, nil, Fault("", fault.Newf(fault.InvalidParameters, "has %d fields; want %d, as the first line", len(fields), len(c.columns)))
	}
	r := &Record{}
	for i, column := range c.columns {
		if fields[i] == "" {
			continue
		}
		if err := column.put(r, fields[i]); err != nil {
			return c.line, r, Fault(column.name, err)
		}
	}
	return c.line, r, nil
}

// jsonRecords reads objects of JSON: one after the other, or as one array.
type jsonRecords struct {
	in    *bufio.Reader
	line  int
	array int // state of an array around the objects
	ended bool
}

// States of jsonRecords.array.
const (
	arrayUnknown = iota
	arrayNone
	arrayFirst // an object or the end may follow
	arrayAfter // a comma or the end must follow
	arrayComma // an object must follow
)

func (j *jsonRecords) Next() (int, *Record, error) {
	if j.ended {
		return j.line, nil, io.EOF
	}
	if err := j.begin(); err != nil {
		j.ended = true
		return j.line, nil, err
	}
	line := j.line
	object, err := j.object()
	if err != nil {
		j.ended = true // it is unknown where the next one begins
		return line, nil, fmt.Errorf("line %d: %w; the rest of the file was not read", line, err)
	}
	if !utf8.Valid(object) {
		return line, nil, Fault("", errEncoding)
	}
	r, err := decodeRecord(object)
	return line, r, err
}

// begin goes to the next object. The error at the end of the file is io.EOF.
func (j *jsonRecords) begin() error {
	for {
		c, err := j.in.ReadByte()
		if errors.Is(err, io.EOF) && j.array > arrayNone {
			return fmt.Errorf("line %d: the array is not closed", j.line)
		}
		if err != nil {
			return err
		}
		switch {
		case c == '\n':
			j.line++
		case c == ' ', c == '\t', c == '\r':
		case j.array == arrayUnknown && c == '[':
			j.array = arrayFirst
		case c == '{' && j.array != arrayAfter:
			if j.array == arrayUnknown {
				j.array = arrayNone
			}
			if j.array > arrayNone {
				j.array = arrayAfter
			}
			return j.in.UnreadByte()
		case c == ',' && j.array == arrayAfter:
			j.array = arrayComma
		case c == ']' && (j.array == arrayFirst || j.array == arrayAfter):
			j.array = arrayNone
			if err := j.end(); err != nil {
				return err
			}
			return io.EOF
		default:
			return fmt.Errorf("line %d: %q where an object should begin; the rest of the file was not read", j.line, rune(c))
		}
	}
}

// end checks that only white space follows an array.
func (j *jsonRecords) end() error {
	for {
		c, err := j.in.ReadByte()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case c == '\n':
			j.line++
		case c != ' ' && c != '\t' && c != '\r':
			return fmt.Errorf("line %d: text after the end of the array", j.line)
		}
	}
}

// object reads an object up to the brace that closes it.
func (j *jsonRecords) object() ([]byte, error) {
	var text []byte
	depth, inString, escaped := 0, false, false
	for {
		c, err := j.in.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the object is not closed")
		}
		if err != nil {
			return nil, err
		}
		if len(text) == maxRecord {
			return nil, fmt.Errorf("the object is longer than %d bytes, or not closed", maxRecord)
		}
		text = append(text, c)
		switch {
		case c == '\n':
			j.line++
		case escaped:
			escaped = false
		case inString:
			escaped, inString = c == '\\', c != '"'
		case c == '"':
			inString = true
		case c == '{', c == '[':
			if depth++; depth > maxRecordDepth {
				return nil, fmt.Errorf("the object is nested more than %d deep", maxRecordDepth)
			}
		case c == '}', c == ']':
			if depth--; depth == 0 {
				return text, nil
			}
		}
	}
}

// decodeRecord decodes an object. Names that are unknown or there twice are faults: what an
// administrator wrote is not ignored.
func decodeRecord(object []byte) (*Record, error) {
	if name, err := repeatedName(object); err != nil {
		return nil, Fault("", fault.Newf(fault.InvalidParameters, "not JSON: %s", err))
	} else if name != "" {
		return nil, Fault(printable(name), fault.New(fault.InvalidParameters, "is there twice"))
	}
	r := &Record{}
	in := json.NewDecoder(bytes.NewReader(object))
	in.DisallowUnknownFields()
	err := in.Decode(r)
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind):
		return r, Fault(kind.Field, fault.Newf(fault.InvalidParameters, "is a JSON %s; docs/import.md has the form", kind.Value))
	case err != nil:
		name, unknown := strings.CutPrefix(err.Error(), "json: unknown field ")
		if unknown {
			return r, Fault(printable(strings.Trim(name, `"`)), fault.New(fault.InvalidParameters, "unknown; docs/import.md has the fields"))
		}
		return r, Fault("", fault.Newf(fault.InvalidParameters, "not JSON: %s", err))
	}
	for field, n := range map[string]int{"phones": len(r.Phones), "emails": len(r.Emails), "certificates": len(r.Certificates), "keys": len(r.Keys), "dn": len(r.DN)} {
		if n > maxRecordList {
			return r, Fault(field, fault.Newf(fault.InvalidParameters, "has %d elements; want at most %d", n, maxRecordList))
		}
	}
	return r, nil
}

// repeatedName returns a name that an object has twice, without regard to letter case, or "".
func repeatedName(object []byte) (string, error) {
	in := json.NewDecoder(bytes.NewReader(object))
	type level struct {
		names map[string]bool // nil for an array
		value bool            // the next token is a value
	}
	var open []level
	for {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		closing := token == json.Delim('}') || token == json.Delim(']')
		if n := len(open); n > 0 && !closing && open[n-1].names != nil {
			top := &open[n-1]
			if name, isName := token.(string); isName && !top.value {
				if name = strings.ToLower(name); top.names[name] {
					return name, nil
				}
				top.names[name] = true
			}
			top.value = !top.value
		}
		switch token {
		case json.Delim('{'):
			open = append(open, level{names: map[string]bool{}})
		case json.Delim('['):
			open = append(open, level{})
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		}
	}
}

// Fault returns an error about one record.
func Fault(field string, err error) error { return &user.FieldError{Field: field, Err: err} }

// CertificateList returns the certificates of a record in DER.
func (r *Record) CertificateList() (list [][]byte, err error) {
	for n, text := range r.Certificates {
		der := []byte(text)
		if block, rest := pem.Decode(der); block != nil {
			if block.Type != "CERTIFICATE" || len(bytes.TrimSpace(rest)) > 0 {
				return nil, Fault(user.FieldOf("certificate", n+1), fault.New(fault.InvalidParameters, "want one certificate; a private key does not belong here"))
			}
			der = block.Bytes
		} else if der, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), "")); err != nil {
			return nil, Fault(user.FieldOf("certificate", n+1), fault.New(fault.InvalidParameters, "want a certificate as Base64 of DER, or PEM"))
		}
		list = append(list, der)
	}
	return list, nil
}

// Account returns the user that a record describes, and the certificates to sign in with in DER. group is that of a record
// that names none. An error is about the record.
func (r *Record) Account(group string) (a user.Account, certificates [][]byte, err error) {
	contacts, err := r.ContactList()
	if err != nil {
		return a, nil, err
	}
	if certificates, err = r.CertificateList(); err != nil {
		return a, nil, err
	}
	if r.Login == "" {
		return a, nil, Fault("login", fault.New(fault.InvalidParameters, "missing; a repeated import finds users by it"))
	}
	if r.Group == "" {
		if r.Group = group; r.Group == "" {
			return a, nil, Fault("group", fault.New(fault.InvalidParameters, "missing; name it in the record or for the whole file"))
		}
	}
	return user.Account{
		Login: r.Login, DisplayName: r.Name, Group: r.Group, Components: r.DN, Contacts: contacts, Locked: r.Locked,
	}, certificates, nil
}

// message returns why a record is refused, without the code of the fault.
func message(err error) string {
	if f, is := fault.As(err); is {
		return f.Message
	}
	return err.Error()
}

// printable returns a text of a file without what a terminal would obey.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
