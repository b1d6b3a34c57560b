// SPDX-License-Identifier: Apache-2.0

package docapi_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tamga/internal/app"
	"tamga/internal/app/dev"
	"tamga/pki/suite"

	"tamga/internal/tamgatest"
)

// TestRetention keeps a signed document by every call, as clients do.
func TestRetention(t *testing.T) {
	t.Parallel()
	server := tamgatest.Start(t)
	d := tamgatest.Documents(server, server.Token())
	other := tamgatest.Documents(server, server.TokenOf(server.Dev.Operator.Login, server.Dev.Operator.Password))
	text := d.Put([]byte("a text"), map[string]any{"FileName": "a.txt"})
	signed := server.Signed("POST", "/api/documents", server.Token(), tamgatest.Request([]byte("a text"), "CAdES", server.Cert("ecdsa-p256", false).ID, tamgatest.Parameters{"CADESType": "BES", "IsDetached": "False"}))
	id := d.Put(signed, map[string]any{"FileName": "a.sig", "IsTemporary": "True"})
	path := "/" + id + "/retention"
	until := time.Now().UTC().AddDate(10, 0, 0)
	body := map[string]any{"Until": until.Format(time.DateOnly)}
	d.Refuse(404, "object_not_found", "GET", path, nil)
	d.Refuse(404, "object_not_found", "DELETE", path, nil)
	other.Refuse(404, "object_not_found", "PUT", path, body)
	d.Refuse(400, "invalid_content", "PUT", "/"+text+"/retention", body)
	d.Refuse(400, "invalid_parameters", "PUT", path, map[string]any{"Until": "tomorrow"})
	d.Refuse(400, "invalid_parameters", "PUT", path, map[string]any{"Until": "2020-01-01"})
	var r struct {
		DocumentID            string `json:"DocumentId"`
		Name, SetBy, Failure  string
		Until, RenewAt, TryAt int64
		Due, Refused          bool
	}
	day := time.Date(until.Year(), until.Month(), until.Day()+1, 0, 0, 0, 0, time.UTC)
	for _, method := range []string{"PUT", "GET"} {
		in := any(body)
		if method == "GET" {
			in = nil
		}
		d.Get(method, path, in, &r)
		if r.DocumentID != id || r.Name != "a.sig" || r.SetBy != "owner" || r.Until != day.Unix() || !r.Due || r.TryAt != r.RenewAt || r.Refused {
			t.Errorf("%s: %+v", method, r)
		}
	}
	var info docInfo
	if d.Get("GET", "/"+id+"/info", nil, &info); info.IsTemporary {
		t.Error("a document that is kept is temporary")
	}
	d.Refuse(400, "invalid_object_state", "DELETE", "/"+id, nil)
	d.Refuse(400, "invalid_object_state", "PATCH", "/"+id, map[string]any{"IsTemporary": true})
	for query, want := range map[string]int{"": 1, "?Due=true": 1, "?After=" + id: 0} {
		var list []map[string]any
		if d.Get("GET", "/retentions"+query, nil, &list); len(list) != want {
			t.Errorf("%q: %v", query, list)
		}
	}
	other.Refuse(404, "object_not_found", "DELETE", path, nil)
	d.Get("DELETE", path, nil, nil)
	d.Get("DELETE", "/"+id, nil, nil)
}

type docInfo struct {
	ID               string `json:"Id"`
	UserID           string `json:"UserId"`
	Name, Filename   string
	UploadTime       int64
	LastAccessTime   int64
	IsTemporary      bool
	Hash             []byte
	HashAlgorithm    string
	AdditionalInfo   map[string]any
	ParentDocumentID *string `json:"ParentDocumentId"`
	FileType         string
	FileSize         int64
}

// TestDocumentStore goes through every call in the forms that existing clients use.
func TestDocumentStore(t *testing.T) {
	t.Parallel()
	server := tamgatest.Start(t)
	d := tamgatest.Documents(server, server.Token())
	if d.Base != server.URL+"/DocumentStore/api/documents" {
		t.Errorf("document_store_url is %s", server.Dev.DocumentsURL)
	}
	content := []byte("document \x00 of a client")
	before := time.Now().Unix()
	parent := d.Put([]byte("parent"), map[string]any{})
	id := d.Put(content, map[string]any{
		"FileName": "Договор.txt", "FileType": "txt", "IsTemporary": "True", "ParentDocumentId": parent,
		"AdditionalInfo": map[string]any{"DocumentTemplate": "template", "SmallFile": true, "Other": 12345678901234567},
	})
	if got := d.Content(id); !bytes.Equal(got, content) {
		t.Errorf("downloaded %q", got)
	}
	var info docInfo
	d.Get("GET", "/"+id+"/info", nil, &info)
	h := suite.Streebog256.New()
	h.Write(content)
	if info.ID != id || info.UserID != server.Dev.User.ID || info.Name != "Договор.txt" || info.Filename != info.Name || info.FileType != "txt" ||
		!info.IsTemporary || info.FileSize != int64(len(content)) || info.HashAlgorithm != "GR 34.11-2012 256" || !bytes.Equal(info.Hash, h.Sum(nil)) ||
		info.ParentDocumentID == nil || *info.ParentDocumentID != parent || info.UploadTime < before || info.UploadTime > before+60 || info.AdditionalInfo["DocumentTemplate"] != "template" {
		t.Errorf("%+v", info)
	}
	_, text := d.Ask("GET", "/"+id+"/info/", nil)
	if !bytes.Contains(text, []byte("12345678901234567")) || !bytes.Contains(text, []byte(`"Content":null`)) {
		t.Errorf("info is %s", text)
	}

	// The same at the other address, in other letter cases and alphabets.
	rest := *d
	rest.Base = server.Dev.DocumentsURL + "/rest/api/documents"
	header := base64.StdEncoding.EncodeToString([]byte(`{"filename":"имя?>.txt","istemporary":0}`))
	var answer tamgatest.DocumentIDs
	rest.Get("POST", "/", strings.NewReader("x"), &answer, "cpdss-postdoc", header)
	rest.Get("GET", "/"+strings.ToUpper(answer.DocumentID)+"/info", nil, &info, "Content-Type", "application/json")
	if info.Name != "имя?>.txt" || info.IsTemporary || info.ParentDocumentID != nil {
		t.Errorf("%+v", info)
	}
	for _, hash := range []string{
		base64.RawURLEncoding.EncodeToString(h.Sum(nil)), fmt.Sprintf("%X", h.Sum(nil)), url.PathEscape(base64.StdEncoding.EncodeToString(h.Sum(nil))),
	} {
		d.Get("GET", "/hash/"+hash+"/info", nil, &info)
		if info.ID != id {
			t.Errorf("by the hash %s: %s", hash, info.ID)
		}
	}
	d.Refuse(404, "object_not_found", "GET", "/hash/00ff/info", nil)
	d.Refuse(404, "object_not_found", "GET", "/hash/%2e%2e%2f/info", nil)

	// Packs.
	d.Get("POST", "/pack", map[string]any{"Documents": []any{
		map[string]any{"Content": []byte("one"), "FileName": "1.txt"},
		map[string]any{"Filename": "2.txt", "Content": []byte("two"), "IsTemporary": true},
	}}, &answer)
	pack := answer.DocumentIDs
	if len(pack) != 2 || string(d.Content(pack[0])) != "one" || string(d.Content(pack[1])) != "two" {
		t.Errorf("a pack gives %v", pack)
	}
	form, kind := multipack(
		[3]string{"a.pdf_info", "", `{"Filename":"a.pdf","FileType":"pdf"}`}, [3]string{"a.pdf_content", "a.pdf", "bytes of a"},
		[3]string{"b.txt_content", "b.txt", "bytes of b\r\n--"}, [3]string{"b.txt_info", "", `{}`},
	)
	var second tamgatest.DocumentIDs
	d.Get("POST", "/multipartpack", form, &second, "Content-Type", kind)
	parts := second.DocumentIDs
	if len(parts) != 2 || string(d.Content(parts[0])) != "bytes of a" || string(d.Content(parts[1])) != "bytes of b\r\n--" {
		t.Errorf("parts give %v", parts)
	}
	d.Get("GET", "/"+parts[1]+"/info", nil, &info)
	if info.Name != "b.txt" {
		t.Errorf("a part without a name is %q", info.Name)
	}

	// Several at once.
	absent := "00000000-0000-4000-8000-000000000000"
	found := map[string]struct {
		Found        bool
		DocumentInfo *docInfo
	}{}
	d.Get("POST", "/info", map[string]any{"DocumentIds": []string{id, absent, pack[0]}}, &found)
	if len(found) != 3 || !found[id].Found || found[id].DocumentInfo.ID != id || found[absent].Found || found[absent].DocumentInfo != nil {
		t.Errorf("%+v", found)
	}
	wanted := []string{pack[1], absent, strings.ToUpper(id), pack[1]}
	response, body := d.Ask("POST", "/content/download", strings.NewReader(fmt.Sprintf(`{"documentIds":["%s"]}`, strings.Join(wanted, `","`))))
	checkDownload(t, response, body, wanted, map[string][]byte{pack[1]: []byte("two"), strings.ToUpper(id): content})

	// Changes.
	d.Get("PATCH", "/"+id, map[string]any{"Filename": "new.txt", "IsTemporary": false}, nil)
	d.Get("POST", "/"+id+"/link", map[string]any{"DocumentId": pack[0]}, nil)
	d.Get("GET", "/"+id+"/info", nil, &info)
	if info.Name != "new.txt" || info.IsTemporary || info.FileType != "txt" || info.AdditionalInfo["LinkedDocument"] != pack[0] || info.AdditionalInfo["DocumentTemplate"] != "template" {
		t.Errorf("%+v", info)
	}
	var all []docInfo
	d.Get("GET", "/user/docinfo/all", nil, &all)
	if len(all) != 7 {
		t.Errorf("the list has %d documents, want 7", len(all))
	}
	for _, i := range all {
		d.Get("DELETE", "/"+i.ID, nil, nil)
		d.Refuse(404, "object_not_found", "DELETE", "/"+i.ID, nil)
		d.Refuse(404, "object_not_found", "GET", "/"+i.ID+"/content", nil)
	}
	_, text = d.Ask("GET", "/user/docinfo/all", nil)
	if string(text) != "[]" {
		t.Errorf("an empty list is %s", text)
	}
	if files := storedFiles(t, server.Path("blobs")); len(files) != 0 {
		t.Errorf("%v are left", files)
	}
}

// multipack makes a form of parts: name, name of the file or "", content.
func multipack(parts ...[3]string) (io.Reader, string) {
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	for _, p := range parts {
		header := textproto.MIMEHeader{}
		disposition := map[string]string{"name": p[0]}
		if p[1] != "" {
			disposition["filename"] = p[1]
		}
		header.Set("Content-Disposition", mime.FormatMediaType("form-data", disposition))
		part, err := w.CreatePart(header)
		if err != nil {
			panic(err)
		}
		io.WriteString(part, p[2])
	}
	w.Close()
	return &form, w.FormDataContentType()
}

// checkDownload parses an answer as an existing client does, by hand, and as
// others do, by a library.
func checkDownload(t *testing.T, response *http.Response, body []byte, wanted []string, want map[string][]byte) {
	t.Helper()
	kind := response.Header.Get("Content-Type")
	quoted, ok := strings.CutPrefix(kind, "multipart/byteranges; boundary=")
	if response.StatusCode != 200 || !ok || quoted[0] != '"' || quoted[len(quoted)-1] != '"' {
		t.Fatalf("%d %q %.300s", response.StatusCode, kind, body)
	}
	pieces := strings.Split(string(body), "--"+quoted[1:len(quoted)-1])
	if len(pieces) != len(wanted)+2 || pieces[len(pieces)-1] != "--\r\n" || pieces[0] != "" {
		t.Fatalf("%d pieces for %d documents: %.300q", len(pieces), len(wanted), body)
	}
	for i, piece := range pieces[1 : len(pieces)-1] {
		head, content, _ := strings.Cut(piece, "\r\n\r\n")
		content = strings.TrimSuffix(content, "\r\n")
		name := head[strings.LastIndex(head, "name=")+len("name="):]
		if name != wanted[i] {
			t.Errorf("part %d is named %q, want %q", i, name, wanted[i])
		}
		there, isDocument := want[wanted[i]]
		isError := strings.Contains(head, "application/json")
		if isError == isDocument || isDocument && content != string(there) || isError && !strings.Contains(content, "object_not_found") {
			t.Errorf("part %d: %s: %q", i, head, content)
		}
	}
	reader := multipart.NewReader(bytes.NewReader(body), quoted[1:len(quoted)-1])
	for n := 0; ; n++ {
		p, err := reader.NextPart()
		if err == io.EOF {
			if n != len(wanted) {
				t.Errorf("a library finds %d parts", n)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if p.FormName() != wanted[n] || p.FileName() != "" {
			t.Errorf("a library reads %q and the file name %q", p.FormName(), p.FileName())
		}
	}
}

// storedFiles are the files of stored documents below a directory, finished or not.
func storedFiles(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "documents"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestDocumentStoreAttacks: bad input, and the documents of others.
func TestDocumentStoreAttacks(t *testing.T) {
	t.Parallel()
	server := tamgatest.Start(t, "--set", "documents.user_objects=30", "--set", "documents.user_bytes=3MiB", "--set", "documents.upload=20MiB", "--set", "documents.in_database=0")
	mine := tamgatest.Documents(server, server.Token())
	theirs := tamgatest.Documents(server, server.TokenOf(server.Dev.Operator.Login, server.Dev.Operator.Password))
	id := mine.Put([]byte("mine"), map[string]any{"FileName": "m"})
	his := theirs.Put([]byte("his"), map[string]any{})
	raw := []string{"CPDSS-POSTDOC", tamgatest.Postdoc(map[string]any{})}

	t.Run("others", func(t *testing.T) {
		for _, at := range []string{id, "00000000-0000-4000-8000-000000000000", "..%2f..%2fetc%2fpasswd", "%00", "a'%20OR%20'1'='1", strings.Repeat("a", 5000), "urn:uuid:" + id, "{" + id + "}"} {
			theirs.Refuse(404, "object_not_found", "GET", "/"+at+"/info", nil)
			theirs.Refuse(404, "object_not_found", "GET", "/"+at+"/content", nil)
			theirs.Refuse(404, "object_not_found", "PATCH", "/"+at, map[string]any{"FileName": "x"})
			theirs.Refuse(404, "object_not_found", "DELETE", "/"+at, nil)
			theirs.Refuse(404, "object_not_found", "POST", "/"+at+"/link", map[string]any{"DocumentId": his})
		}
		theirs.Refuse(404, "object_not_found", "POST", "/"+his+"/link", map[string]any{"DocumentId": id})
		theirs.Refuse(404, "object_not_found", "POST", "", strings.NewReader("x"), "CPDSS-POSTDOC", tamgatest.Postdoc(map[string]any{"ParentDocumentId": id}))
		response, body := theirs.Ask("POST", "/content/download", strings.NewReader(`{"DocumentIds":["`+id+`"]}`))
		checkDownload(t, response, body, []string{id}, nil)
		anonymous := tamgatest.Documents(server, "")
		for _, call := range [][2]string{{"POST", ""}, {"POST", "/pack"}, {"POST", "/multipartpack"}, {"GET", "/" + id + "/content"}, {"GET", "/user/docinfo/all"}, {"POST", "/content/download"}} {
			anonymous.Refuse(401, "invalid_token", call[0], call[1], nil)
		}
	})
	t.Run("input", func(t *testing.T) {
		for name, c := range map[string]struct {
			path, code string
			body       any
			headers    []string
		}{
			"no header, no JSON":       {"", "invalid_parameters", strings.NewReader("bytes"), nil},
			"nothing":                  {"", "content_required", nil, nil},
			"empty document":           {"", "content_required", strings.NewReader(""), raw},
			"header not Base64":        {"", "invalid_parameters", strings.NewReader("x"), []string{"CPDSS-POSTDOC", "%%%"}},
			"header not JSON":          {"", "invalid_parameters", strings.NewReader("x"), []string{"CPDSS-POSTDOC", base64.RawURLEncoding.EncodeToString([]byte("{"))}},
			"header and Content":       {"", "invalid_parameters", strings.NewReader("x"), []string{"CPDSS-POSTDOC", tamgatest.Postdoc(map[string]any{"Content": "eA=="})}},
			"name with a line break":   {"", "document_info_invalid", strings.NewReader("x"), []string{"CPDSS-POSTDOC", tamgatest.Postdoc(map[string]any{"FileName": "a\r\nX: y"})}},
			"name with NUL":            {"", "document_info_invalid", strings.NewReader("x"), []string{"CPDSS-POSTDOC", tamgatest.Postdoc(map[string]any{"FileName": "a\x00"})}},
			"name that turns writing":  {"", "document_info_invalid", strings.NewReader("x"), []string{"CPDSS-POSTDOC", tamgatest.Postdoc(map[string]any{"FileName": "a\u202etxt.exe"})}},
			"parent that is no GUID":   {"", "document_info_invalid", strings.NewReader("x"), []string{"CPDSS-POSTDOC", tamgatest.Postdoc(map[string]any{"ParentDocumentId": "../x"})}},
			"AdditionalInfo no object": {"", "document_info_invalid", strings.NewReader("x"), []string{"CPDSS-POSTDOC", tamgatest.Postdoc(map[string]any{"AdditionalInfo": "x"})}},
			"AdditionalInfo too large": {"", "document_info_invalid", strings.NewReader("x"), []string{"CPDSS-POSTDOC", tamgatest.Postdoc(map[string]any{"AdditionalInfo": map[string]string{"a": strings.Repeat("x", 5000)}})}},
			"IsTemporary a word":       {"", "document_info_invalid", strings.NewReader("x"), []string{"CPDSS-POSTDOC", tamgatest.Postdoc(map[string]any{"IsTemporary": "perhaps"})}},
			"pack of none":             {"/pack", "content_required", map[string]any{"Documents": []any{}}, nil},
			"pack without content":     {"/pack", "content_required", map[string]any{"Documents": []any{map[string]any{"FileName": "a"}}}, nil},
			"pack not Base64":          {"/pack", "invalid_content", map[string]any{"Documents": []any{map[string]any{"Content": "???"}}}, nil},
			"pack beyond the quota":    {"/pack", "invalid_object_state", map[string]any{"Documents": slices.Repeat([]any{map[string]any{"Content": "eA=="}}, 31)}, nil},
			"pack of very many":        {"/pack", "invalid_parameters", map[string]any{"Documents": slices.Repeat([]any{map[string]any{"Content": "eA=="}}, 1001)}, nil},
			"bytes beyond the quota":   {"", "invalid_object_state", bytes.NewReader(make([]byte, 3<<20)), raw},
			"infos of none":            {"/info", "invalid_parameters", map[string]any{}, nil},
			"infos of paths":           {"/info", "invalid_parameters", map[string]any{"DocumentIds": []string{"../x"}}, nil},
			"download with a header":   {"/content/download", "invalid_parameters", map[string]any{"DocumentIds": []string{"a\r\nX: y"}}, nil},
			"parts of another type":    {"/multipartpack", "invalid_parameters", strings.NewReader("x"), []string{"Content-Type", "text/plain"}},
			"parts without a boundary": {"/multipartpack", "invalid_parameters", strings.NewReader("x"), []string{"Content-Type", "multipart/form-data"}},
		} {
			if !mine.Refuse(400, c.code, "POST", c.path, c.body, c.headers...) {
				t.Errorf("that was: %s", name)
			}
		}
		mine.Refuse(413, "max_request_length_exceeded", "POST", "", bytes.NewReader(make([]byte, 20<<20+1)), raw...)
		info, content := [3]string{"a_info", "", "{}"}, [3]string{"a_content", "a", "x"}
		for name, c := range map[string]struct {
			status int
			code   string
			parts  [][3]string
		}{
			"one part missing": {400, "content_required", [][3]string{info}},
			"no info":          {400, "document_info_invalid", [][3]string{content}},
			"a part twice":     {400, "invalid_parameters", [][3]string{info, content, content}},
			"an info twice":    {400, "invalid_parameters", [][3]string{info, info, content}},
			"another part":     {400, "invalid_parameters", [][3]string{info, content, {"x", "", ""}}},
			"no name":          {400, "invalid_parameters", [][3]string{{"", "", "x"}}},
			"no JSON":          {400, "invalid_parameters", [][3]string{{"a_info", "", "x"}, content}},
			"empty content":    {400, "content_required", [][3]string{info, {"a_content", "a", ""}}},
			"none":             {400, "content_required", nil},
			"huge info":        {413, "max_request_length_exceeded", [][3]string{{"a_info", "", `{"x":"` + strings.Repeat("x", 2<<20) + `","FileName":"` + strings.Repeat("x", 2<<20) + `"}`}, content}},
		} {
			form, kind := multipack(c.parts...)
			response, text := mine.Ask("POST", "/multipartpack", form, "Content-Type", kind)
			if response.StatusCode != c.status || !bytes.Contains(text, []byte(c.code)) {
				t.Errorf("%s: %d %.300s, want %d %s", name, response.StatusCode, text, c.status, c.code)
			}
		}
		// A bomb of parts, and one of headers.
		var many [][3]string
		for i := range 1001 {
			many = append(many, [3]string{fmt.Sprint(i, "_info"), "", "{}"}, [3]string{fmt.Sprint(i, "_content"), "", "x"})
		}
		form, kind := multipack(many...)
		mine.Refuse(400, "invalid_parameters", "POST", "/multipartpack", form, "Content-Type", kind)
		bomb := "--b\r\n" + strings.Repeat("X-Header: "+strings.Repeat("x", 1000)+"\r\n", 5000)
		mine.Refuse(413, "max_request_length_exceeded", "POST", "/multipartpack", strings.NewReader(bomb), "Content-Type", "multipart/form-data; boundary=b")
	})
	t.Run("broken off", func(t *testing.T) {
		for name, request := range map[string]string{
			"raw":    "POST /DocumentStore/api/documents HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nCPDSS-POSTDOC: e30\r\nContent-Length: 1000000\r\n\r\n" + strings.Repeat("x", 300_000),
			"pack":   "POST /DocumentStore/api/documents/pack HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: 1000000\r\n\r\n{\"Documents\":[{\"Content\":\"" + strings.Repeat("x", 400_000),
			"parts":  "POST /DocumentStore/api/documents/multipartpack HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 1000000\r\n\r\n--b\r\nContent-Disposition: form-data; name=a_content\r\n\r\n" + strings.Repeat("x", 300_000),
			"closed": "POST /DocumentStore/api/documents/multipartpack HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: multipart/form-data; boundary=b\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n--b\r\n\r\n0\r\n\r\n",
		} {
			connection, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(connection, request, mine.Bearer)
			connection.(*net.TCPConn).CloseWrite()
			answer, _ := io.ReadAll(connection)
			connection.Close()
			if !bytes.HasPrefix(answer, []byte("HTTP/1.1 400 ")) {
				t.Errorf("%s: %.200s", name, answer)
			}
		}
	})
	var list []docInfo
	mine.Get("GET", "/user/docinfo/all", nil, &list)
	files := storedFiles(t, server.Path("blobs"))
	if len(list) != 1 || len(files) != 2 {
		t.Errorf("there are %d documents and the files %v, want one of each of two users", len(list), files)
	}
	// Nothing of the refused counts: the whole quota is there.
	if got := mine.Content(mine.Put(make([]byte, 3<<20-4), map[string]any{})); len(got) != 3<<20-4 {
		t.Errorf("%d bytes", len(got))
	}
	if log := server.Logged(); strings.Contains(log, "panic") {
		t.Errorf("the server panicked:\n%s", log)
	}
}

// TestDocumentStoreIsSealed: the content of the disk does not show the documents, unless
// the configuration says so, and both can be read whatever it says now.
func TestDocumentStoreIsSealed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secret := bytes.Repeat([]byte("a secret of state "), 20_000)
	var kept []string
	for i, plain := range []string{"false", "true", "false"} {
		server := tamgatest.StartIn(t, dir, "--set", "documents.plain="+plain)
		d := tamgatest.Documents(server, server.Token())
		kept = append(kept, d.Put(secret, map[string]any{}), d.Put(secret[:100], map[string]any{}))
		for _, id := range kept {
			if got := d.Content(id); !bytes.HasPrefix(secret, got) || len(got) < 100 {
				t.Errorf("start %d: document %s has %d bytes", i, id, len(got))
			}
		}
		if err := server.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	for i, id := range kept {
		for _, name := range storedFiles(t, filepath.Join(dir, "blobs")) {
			if !strings.HasPrefix(name, id) {
				continue
			}
			data, err := os.ReadFile(filepath.Join(dir, "blobs", "documents", name))
			if err != nil {
				t.Fatal(err)
			}
			if plain := i == 2 || i == 3; bytes.Contains(data, secret[:50]) != plain {
				t.Errorf("document %d: readable on the disk is %v", i, !plain)
			}
		}
	}
}

// startServerIn starts "tamga serve --dev" over dir with a bound on the size of files,
// in bytes.
func startServerIn(t *testing.T, dir string, most int64) *tamgatest.Server {
	t.Helper()
	program := tamgatest.Program(t)
	shell := filepath.Join(t.TempDir(), "limited.sh")
	text := fmt.Sprintf("#!/bin/sh\nulimit -f %d\nexec %q \"$@\"\n", most/512, program)
	if err := os.WriteFile(shell, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return tamgatest.StartProgram(t, shell, dir)
}

// TestDocumentStoreFull: files may not grow beyond a size, which has the effect of a full
// disk. The answer says so, nothing is left, and smaller documents still go in.
func TestDocumentStoreFull(t *testing.T) {
	t.Parallel()
	server := startServerIn(t, t.TempDir(), 32<<20)
	d := tamgatest.Documents(server, server.Token())
	for _, size := range []int{40 << 20, 33 << 20} {
		response, text := d.Ask("POST", "", bytes.NewReader(make([]byte, size)), "CPDSS-POSTDOC", "e30")
		if response.StatusCode != 503 || !bytes.Contains(text, []byte("full")) {
			t.Errorf("%d MiB: %d %s", size>>20, response.StatusCode, text)
		}
	}
	if files := storedFiles(t, server.Path("blobs")); len(files) != 0 {
		t.Errorf("%v are left", files)
	}
	if got := d.Content(d.Put(make([]byte, 31<<20), map[string]any{})); len(got) != 31<<20 {
		t.Errorf("%d bytes", len(got))
	}
}

// TestDocumentStoreKill kills the server in the middle of many uploads. What was
// answered is there, what is there is whole, and after a sweep there are no bytes
// without a document.
func TestDocumentStoreKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := tamgatest.StartProcess(t, dir)
	d := tamgatest.Documents(server, server.Token())
	sample := make([]byte, 40<<20)
	rand.NewChaCha8([32]byte{8}).Read(sample)
	var mu sync.Mutex
	answered := map[string][32]byte{} // by identifier
	sent := map[[32]byte]bool{}
	enough := make(chan struct{}, 10_000)
	var senders sync.WaitGroup
	for worker := range 6 {
		senders.Go(func() {
			r := rand.New(rand.NewPCG(8, uint64(worker)))
			for {
				size := []int{1 + r.IntN(100_000), 200_000 + r.IntN(1<<20), 30 << 20}[worker%3]
				at := r.IntN(len(sample) - size)
				content := sample[at : at+size]
				sum := sha256.Sum256(content)
				mu.Lock()
				sent[sum] = true
				mu.Unlock()
				var body io.Reader = bytes.NewReader(content)
				path, kind := "", "application/octet-stream"
				if worker >= 3 {
					path = "/multipartpack"
					body, kind = multipack([3]string{"a_info", "", "{}"}, [3]string{"a_content", "a", string(content)})
				}
				request, err := http.NewRequest("POST", d.Base+path, body)
				if err != nil {
					return
				}
				request.Header.Set("Authorization", "Bearer "+d.Bearer)
				request.Header.Set("Content-Type", kind)
				if path == "" {
					request.Header.Set("CPDSS-POSTDOC", "e30")
				}
				response, err := http.DefaultClient.Do(request)
				if err != nil {
					return // the server is gone
				}
				text, err := io.ReadAll(response.Body)
				response.Body.Close()
				var id tamgatest.DocumentIDs
				if err != nil || response.StatusCode != 200 || json.Unmarshal(text, &id) != nil {
					return
				}
				mu.Lock()
				answered[append(id.DocumentIDs, id.DocumentID)[0]] = sum
				mu.Unlock()
				enough <- struct{}{}
			}
		})
	}
	for range 40 {
		<-enough
	}
	server.Kill()
	senders.Wait()
	left := storedFiles(t, server.Path("blobs"))
	if !slices.ContainsFunc(left, func(name string) bool { return strings.HasSuffix(name, ".part") }) {
		t.Log("no upload was under way on the disk when the server was killed")
	}

	again := tamgatest.StartProcess(t, dir, "--listen", strings.TrimPrefix(server.URL, "http://"))
	d = tamgatest.Documents(again, d.Bearer)
	var list []docInfo
	d.Get("GET", "/user/docinfo/all", nil, &list)
	there := map[string]bool{}
	for _, i := range list {
		there[i.ID] = true
		sum := sha256.Sum256(d.Content(i.ID))
		if want, ok := answered[i.ID]; ok && sum != want {
			t.Errorf("document %s is another than was answered", i.ID)
		}
		if !sent[sum] {
			t.Errorf("document %s of %d bytes was never sent", i.ID, i.FileSize)
		}
	}
	for id := range answered {
		if !there[id] {
			t.Errorf("document %s was answered and is lost", id)
		}
	}
	if err := again.Stop(); err != nil {
		t.Errorf("a polite stop ends with %v", err)
	}
	inFiles := 0 // the others are in the database
	for _, i := range list {
		if i.FileSize > 32<<10 {
			inFiles++
		}
	}
	if files := sweepAt(t, dir, time.Now().Add(time.Hour)); len(files) != inFiles {
		t.Errorf("after the sweep there are %d files for %d documents", len(files), inFiles)
	}
}

// sweepAt sweeps the document store of a directory at a time, without a server, and
// returns the files that are left.
func sweepAt(t testing.TB, dir string, now time.Time) []string {
	t.Helper()
	config, err := dev.Config(dir, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	h, err := app.Open(t.Context(), config, app.ForCommand, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	storage, err := h.Storage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	service := h.Documents(storage)
	service.Now = func() time.Time { return now }
	if err := service.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	return storedFiles(t, config.Path(config.BlobDir))
}
