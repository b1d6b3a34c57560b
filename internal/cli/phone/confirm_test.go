// SPDX-License-Identifier: Apache-2.0

package phone_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tamga/gost/streebog"
	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/confirm/what"
	devmsg "tamga/internal/domain/device/message"

	"tamga/internal/tamgatest"
)

// fields returns what is confirmed in these tests.
func fields(documents int) what.Fields {
	f := what.Fields{Action: "SignDocuments", Certificate: make(what.Hex, 32), PublicKey: make(what.Hex, 32), SignatureType: "CAdES"}
	for i := range documents {
		f.Documents = append(f.Documents, what.Document{Name: fmt.Sprintf("договор %d.pdf", i), Size: int64(i), Digest: make(what.Hex, 32)})
	}
	return f
}

// several returns fields of two ways.
func several() what.Fields {
	f := fields(3)
	f.Ways = []what.Way{{SignatureType: "CAdES"}, {SignatureType: "PDF"}}
	f.SignatureType, f.Documents[1].Way = "", 1
	return f
}

// TestPhoneConfirms lists, shows, approves and declines operations with the command phone,
// against a server.
func TestPhoneConfirms(t *testing.T) {
	w := tamgatest.StartUMS(t)
	id, _, _, _ := w.Register()
	user := "/ums/user/" + id
	w.OK(tamgatest.Ours, "POST", user+"/authmethod/mydss?level=2", "")
	file := filepath.Join(t.TempDir(), "phone.json")
	run := func(stdin string, args ...string) tamgatest.Result {
		t.Helper()
		return tamgatest.Run(t.Context(), stdin, append(append([]string{"phone"}, args...), "--file", file)...)
	}
	if r := run("", "register", "--service", w.Dev.DevicesURL, "--name", "Телефон"); r.Failure != nil {
		t.Fatal(r.Failure)
	}
	var facts struct{ Kid string }
	if err := json.Unmarshal([]byte(run("", "show", "--json").Out), &facts); err != nil {
		t.Fatal(err)
	}
	w.OK(tamgatest.Ours, "POST", user+"/mydss/assign", `{"Kid":"`+facts.Kid+`"}`)
	_, text := w.Verification(id, facts.Kid)
	if r := run("", "verify", "--qr-text", text); r.Failure != nil {
		t.Fatal(r.Failure)
	}
	from := cli.Installation{Data: w.Dir}
	base, err := from.Open(&cli.Console{Context: t.Context(), Stderr: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	defer base.Close()
	asked := func(documents int, titles bool) confirm.Record { return ask(t, base, id, documents, titles) }
	state := func(r confirm.Record) confirm.Record {
		t.Helper()
		r, err := base.Confirm.Find(t.Context(), audit.Principal{UserID: id}, r.ID)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}

	first, second, third := asked(250, true), asked(2, false), asked(1, true)
	if r := run("", "list"); r.Failure != nil || strings.Count(r.Out, "\n") != 3 || !strings.Contains(r.Out, first.ID+" SignDocuments, documents: 250, check number: "+first.What.Group()) {
		t.Errorf("list: %s, %v", r.Out, r.Failure)
	}
	var listed []devmsg.Waiting
	if err := json.Unmarshal([]byte(run("", "list", "--json").Out), &listed); err != nil || len(listed) != 3 || listed[1].ID != second.ID || listed[1].What != second.What.String() {
		t.Errorf("list: %+v, %v", listed, err)
	}
	if r := run("", "show", first.ID); r.Failure != nil || !strings.Contains(r.Out, "[249] договор 249.pdf, 249 bytes") || !strings.Contains(r.Out, "two digits") || !strings.Contains(r.Out, "Signing documents") {
		t.Errorf("show: %s, %v", r.Out, r.Failure)
	}
	// Without --yes and without an answer nothing is sent.
	for _, answer := range []string{"", "no\n"} {
		if r := run(answer, "approve", second.ID); r.Failure == nil || state(second).State != confirm.Challenged {
			t.Errorf("answered %q: %s", answer, state(second).State)
		}
	}
	if r := run("", "approve", first.ID, "--yes"); r.Failure == nil || !strings.Contains(r.Failure.Error(), "--number") || state(first).State != confirm.Challenged {
		t.Errorf("without the number: %v, %s", r.Failure, state(first).State)
	}
	if r := run(first.Number+"\nyes\n", "approve", first.ID, "--decline", "3", "--decline", "249"); r.Failure != nil || !strings.Contains(r.Out, "Confirmed") || !strings.Contains(r.Err, "Approve 248 of 250") {
		t.Errorf("approve: %s, %v", r.Out, r.Failure)
	}
	if r := state(first); r.State != confirm.Confirmed || !slices.Equal(r.Declined, []int{3, 249}) {
		t.Errorf("the operation is %s, declined %v", r.State, r.Declined)
	}
	if r := run("", "approve", second.ID, "--decline", "2", "--json"); r.Failure == nil {
		t.Error("a document that does not exist was declined")
	}
	var result devmsg.Result
	if err := json.Unmarshal([]byte(run("", "decline", second.ID, "--json").Out), &result); err != nil || result.State != "Declined" || state(second).State != confirm.Declined {
		t.Errorf("declined: %+v, %v", result, err)
	}
	wrong := "00"
	if third.Number == wrong {
		wrong = "01"
	}
	if r := run("", "approve", third.ID, "--number", wrong, "--json"); r.Failure == nil || !strings.Contains(r.Failure.Error(), "authentication_declined") || state(third).State != confirm.Declined {
		t.Errorf("a wrong number: %v, %s", r.Failure, state(third).State)
	}
	mixed := askFor(t, base, id, several(), false)
	if r := run("", "show", mixed.ID); r.Failure != nil || !strings.Contains(r.Out, "Signature type: PDF (1)") ||
		!strings.Contains(r.Out, "signed as CAdES:\n[0] договор 0.pdf, 0 bytes, "+strings.Repeat("0", 64)+"\n[2] договор 2.pdf") || !strings.Contains(r.Out, "signed as PDF:\n[1] договор 1.pdf") {
		t.Errorf("show of two ways: %s, %v", r.Out, r.Failure)
	}
	if r := run("", "approve", mixed.ID, "--yes"); r.Failure != nil || state(mixed).State != confirm.Confirmed {
		t.Errorf("approve of two ways: %v, %s", r.Failure, state(mixed).State)
	}
	offline(t, base, id, file, run)
	rotated(t, base, w.Dir, id, file, run)
	fourth := asked(1, false)
	w.OK(tamgatest.Ours, "POST", user+"/mydss/lockout", `{"Kid":"`+facts.Kid+`","Lock":true}`)
	if r := run("", "approve", fourth.ID, "--json"); r.Failure == nil || !strings.Contains(r.Failure.Error(), "access_denied") || state(fourth).State != confirm.Cancelled {
		t.Errorf("a blocked device: %v, %s", r.Failure, state(fourth).State)
	}
}

// TestPhoneDocument saves documents that have the digest which is confirmed, and no others.
func TestPhoneDocument(t *testing.T) {
	t.Parallel()
	text := "the document"
	sum := streebog.Sum256([]byte(text))
	f := fields(2)
	f.Documents[0] = what.Document{Name: "../a folder/договор.txt", Size: int64(len(text)), Digest: sum[:]}
	f.Documents[0].Original = &what.Original{Size: 1, Digest: make(what.Hex, 32)}
	f.Documents[1].Hash = "SHA-256"
	all, err := f.Sum()
	if err != nil {
		t.Fatal(err)
	}
	sent, path := text, "/v1/document"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/document") {
			fmt.Fprint(w, sent)
			return
		}
		bare := f
		bare.Documents = nil
		o := devmsg.Waiting{ID: "1", What: all.String(), Count: 2}
		o.Fields, _ = json.Marshal(bare)
		for i, d := range f.Documents {
			one := devmsg.Document{Index: i, Name: d.Name, Size: d.Size, Digest: fmt.Sprintf("%x", []byte(d.Digest)), Hash: d.Hash}
			if d.Original != nil {
				one.Path, one.Original = path, &devmsg.Original{Size: 1, Digest: strings.Repeat("00", 32)}
			}
			o.Documents = append(o.Documents, one)
		}
		json.NewEncoder(w).Encode(devmsg.Answer{Kid: "1", State: "Active", Operations: []devmsg.Waiting{o}})
	}))
	defer server.Close()
	dir := t.TempDir()
	file, out := filepath.Join(dir, "phone.json"), filepath.Join(dir, "out.txt")
	run := func(args ...string) tamgatest.Result {
		return tamgatest.Run(t.Context(), "", append(append([]string{"phone"}, args...), "--file", file)...)
	}
	if r := run("register", "--service", server.URL); r.Failure != nil {
		t.Fatal(r.Failure)
	}
	if r := run("document", "1", "0", "-o", "-"); r.Failure != nil || r.Out != text {
		t.Errorf("on standard output: %q, %v", r.Out, r.Failure)
	}
	if r := run("document", "1", "0", "-o", out, "--json"); r.Failure != nil || !strings.Contains(r.Out, fmt.Sprintf("%x", sum)) || string(tamgatest.ReadFile(t, out)) != text {
		t.Errorf("in a file: %s, %v", r.Out, r.Failure)
	}
	if r := run("document", "1", "0", "-o", out); r.Failure == nil {
		t.Error("a file was overwritten")
	}
	for name, c := range map[string]struct {
		sent, path string
		args       []string
	}{
		"other bytes":         {"the Document", path, []string{"document", "1", "0"}},
		"more bytes":          {text + "x", path, []string{"document", "1", "0"}},
		"fewer bytes":         {text[1:], path, []string{"document", "1", "0"}},
		"no path":             {text, "", []string{"document", "1", "0"}},
		"another host":        {text, "@example.org/", []string{"document", "1", "0"}},
		"another original":    {"x", path, []string{"document", "1", "0", "--original"}},
		"a hash":              {text, path, []string{"document", "1", "1"}},
		"no such document":    {text, path, []string{"document", "1", "2"}},
		"a document and JSON": {text, path, []string{"document", "1", "0", "--json", "-o", "-"}},
	} {
		sent, path = c.sent, c.path
		target := filepath.Join(dir, "other.txt")
		args := c.args
		if !slices.Contains(args, "-o") {
			args = append(args, "-o", target)
		}
		if r := run(args...); r.Failure == nil {
			t.Errorf("%s: saved", name)
		}
		if names := tamgatest.Listing(t, dir); !slices.Equal(names, []string{"out.txt", "phone.json"}) {
			t.Errorf("%s: left %v", name, names)
		}
	}
}

// ask creates an operation of a user and asks the only device to confirm it.
func ask(t *testing.T, base *app.Base, userID string, documents int, titles bool) confirm.Record {
	t.Helper()
	return askFor(t, base, userID, fields(documents), titles)
}

// askFor asks the device of a user to confirm fields.
func askFor(t *testing.T, base *app.Base, userID string, f what.Fields, titles bool) confirm.Record {
	t.Helper()
	who := audit.Principal{UserID: userID, ClientID: "client"}
	r, err := base.Confirm.Create(t.Context(), who, confirm.Draft{Purpose: confirm.ForOperation, Fields: f})
	if err != nil {
		t.Fatal(err)
	}
	p, err := base.Confirm.Challenge(t.Context(), who, confirm.Ask{ID: r.ID, Methods: []string{"mydss"}, Titles: titles})
	if err != nil {
		t.Fatal(err)
	}
	if p.Record.State != confirm.Challenged {
		t.Fatalf("the operation is %s, choices %v", p.Record.State, p.Choices)
	}
	return p.Record
}

// TestPhoneComputes checks that the device signs nothing if the service shows other fields or
// documents than those of the digest that it names.
func TestPhoneComputes(t *testing.T) {
	f := fields(2)
	sum, err := f.Sum()
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(o *devmsg.Waiting){
		"the digest":           func(o *devmsg.Waiting) { o.What = strings.Repeat("0", 64) },
		"a name":               func(o *devmsg.Waiting) { o.Documents[1].Name = "x" },
		"a document":           func(o *devmsg.Waiting) { o.Documents[1].Digest = strings.Repeat("1", 64) },
		"the order":            func(o *devmsg.Waiting) { slices.Reverse(o.Documents) },
		"a document less":      func(o *devmsg.Waiting) { o.Documents = o.Documents[:1] },
		"a hash":               func(o *devmsg.Waiting) { o.Documents[0].Hash = "SHA-256" },
		"the action":           func(o *devmsg.Waiting) { o.Fields = json.RawMessage(`{"action":"SignDocument"}`) },
		"another operation":    func(o *devmsg.Waiting) { o.ID = "2" },
		"documents in fields":  func(o *devmsg.Waiting) { o.Fields, _ = json.Marshal(f) },
		"no fields":            func(o *devmsg.Waiting) { o.Fields = nil },
		"nothing, which signs": nil,
	} {
		t.Run(name, func(t *testing.T) {
			var sent []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				sent = append(sent, r.URL.Path)
				a := devmsg.Answer{Kid: "1", State: "Active"}
				bare := f
				bare.Documents = nil
				o := devmsg.Waiting{ID: "1", What: sum.String(), Count: 2}
				o.Fields, _ = json.Marshal(bare)
				for i, d := range f.Documents {
					o.Documents = append(o.Documents, devmsg.Document{Index: i, Name: d.Name, Size: d.Size, Digest: fmt.Sprintf("%x", []byte(d.Digest))})
				}
				if change != nil {
					change(&o)
				}
				a.Operations = []devmsg.Waiting{o}
				a.Result = &devmsg.Result{ID: "1", State: "Confirmed"}
				json.NewEncoder(w).Encode(a)
			}))
			defer server.Close()
			file := filepath.Join(t.TempDir(), "phone.json")
			if out, err := tamgatest.Phone(t, file, "register", "--service", server.URL); err != nil {
				t.Fatal(out, err)
			}
			_, err := tamgatest.Phone(t, file, "approve", "1", "--yes")
			if (err != nil) != (change != nil) {
				t.Errorf("approved: %v", err)
			}
			if signed := slices.Contains(sent, "/v1/confirm"); signed != (change == nil) {
				t.Errorf("a decision was sent: %t (%v)", signed, err)
			}
		})
	}
}
