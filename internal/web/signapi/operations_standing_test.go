// SPDX-License-Identifier: Apache-2.0

package signapi_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/tamgatest"
)

// The PIN of the keys of owners, and the password of owners: that of passwordFile.
const (
	waitingPIN = "246802"
	ownersWord = tamgatest.Password
)

// owner is a user whose operation waits, with what the operation needs.
type owner struct {
	login, password string
	certificate     int64
	token           string
	id              string
	helper          string // the operator who acts for them
	refresh         string
}

// What was so when an operation was accepted must be so when it is carried out: in
// between the process only accepts, the world changes, and then another process goes
// on over the same database.
func TestV2AskedAgain(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		askedAgain(t)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		askedAgain(t, "--set", "database="+storetest.PostgreSQL(t).Migrated(t))
	})
}

// meanwhile is a row of askedAgain.
type meanwhile struct {
	name      string
	delegated bool // asked for by an operator who acts as the user
	happens   func(w *tamgatest.SignIn, o *owner)
	want      string // code of the operation; "" for one that is completed
	silent    bool   // the owner cannot be asked for the state afterwards
}

var meanwhiles = []meanwhile{
	{name: "nothing", happens: func(*tamgatest.SignIn, *owner) {}},
	{name: "nothing, delegated", delegated: true, happens: func(*tamgatest.SignIn, *owner) {}},
	{name: "allowed again", happens: func(w *tamgatest.SignIn, o *owner) {
		w.Command("user", "deny", o.login, "SignDocument")
		w.Command("user", "allow", o.login, "SignDocument")
	}},
	{name: "forbidden", want: "access_denied", happens: func(w *tamgatest.SignIn, o *owner) {
		w.Command("user", "deny", o.login, "SignDocument")
	}},
	{name: "to be confirmed", want: "authn_method_not_confirmed", happens: func(w *tamgatest.SignIn, o *owner) {
		w.OK(tamgatest.Ours, "POST", "/ums/user/"+o.id+"/operationpolicy", `["SignDocument"]`)
	}},
	{name: "locked", want: "access_denied", silent: true, happens: func(w *tamgatest.SignIn, o *owner) {
		w.Command("user", "lock", o.login)
	}},
	{name: "locked and unlocked", want: "access_denied", happens: func(w *tamgatest.SignIn, o *owner) {
		w.Command("user", "lock", o.login)
		w.Command("user", "unlock", o.login)
	}},
	{name: "signed out", want: "access_denied", happens: func(w *tamgatest.SignIn, o *owner) {
		w.Command("user", "logout", o.login)
	}},
	{name: "another password", want: "access_denied", happens: func(w *tamgatest.SignIn, o *owner) {
		w.Command("user", "password", o.login, "--password-file", tamgatest.PasswordFile(w.T)) // the same ends the sign-in too
	}},
	{name: "refresh token replayed", want: "access_denied", happens: func(w *tamgatest.SignIn, o *owner) {
		for range 2 {
			w.Refresh(w.Dev.ClientID, o.refresh)
		}
	}},
	{name: "certificate revoked", want: "invalid_certificate", happens: func(w *tamgatest.SignIn, o *owner) {
		w.Command("cert", "revoke", strconv.FormatInt(o.certificate, 10))
	}},
	{name: "certificate on hold", want: "invalid_certificate", happens: func(w *tamgatest.SignIn, o *owner) {
		mine(w, o, "POST", "/status", `{"Status":"HOLD"}`)
	}},
	{name: "certificate on hold and back", happens: func(w *tamgatest.SignIn, o *owner) {
		mine(w, o, "POST", "/status", `{"Status":"HOLD"}`)
		mine(w, o, "POST", "/status", `{"Status":"ACTIVE"}`)
	}},
	{name: "certificate deleted", want: "invalid_certificate", happens: func(w *tamgatest.SignIn, o *owner) {
		mine(w, o, "DELETE", "", "")
	}},
	{name: "another PIN", want: "invalid_pin", happens: func(w *tamgatest.SignIn, o *owner) {
		mine(w, o, "POST", "/pin", `{"OldPin":"`+waitingPIN+`","NewPin":"135791"}`)
	}},
	{name: "operator of other users", delegated: true, want: "access_denied", happens: func(w *tamgatest.SignIn, o *owner) {
		w.Command("operator", "groups", o.helper, "--group", "Other")
	}},
	{name: "operator locked", delegated: true, want: "access_denied", happens: func(w *tamgatest.SignIn, o *owner) {
		w.Command("user", "lock", o.helper)
	}},
}

// mine calls an operation on the certificate of an owner.
func mine(s *tamgatest.SignIn, o *owner, method, path, body string) {
	s.T.Helper()
	address := fmt.Sprintf("%s/api/certificates/%d%s", s.Dev.BaseURL, o.certificate, path)
	if status, text := s.Do(s.T.Context(), method, address, o.token, strings.NewReader(body)); status != 200 {
		s.T.Fatalf("%s %s: %d %s", method, path, status, text)
	}
}

func askedAgain(t *testing.T, more ...string) {
	dir := t.TempDir()
	key, settings := asynchronous(t, dir)
	settings = append(settings, more...)
	accepting := append([]string{"--set", "operations.workers=0"}, settings...)
	w := tamgatest.StartSignInProcess(t, dir, accepting...)
	r := newReceiver(t, key)
	pin := filepath.Join(t.TempDir(), "pin")
	if err := os.WriteFile(pin, []byte(waitingPIN), 0o600); err != nil {
		t.Fatal(err)
	}

	owners := map[string]*owner{} // by the name of the row
	rows := map[string]meanwhile{}
	waiting := map[string]string{} // the same, by operation
	documents := map[string]int{}
	for n, row := range meanwhiles {
		o := &owner{login: fmt.Sprintf("owner%d", n), password: ownersWord}
		w.Command("user", "add", o.login, "--group", "Default", "--password-file", tamgatest.PasswordFile(t))
		var issued struct {
			ID int64 `json:"id"`
		}
		if err := json.Unmarshal([]byte(w.Command("cert", "issue", o.login, "--pin-file", pin, "--json")), &issued); err != nil {
			t.Fatal(err)
		}
		o.certificate = issued.ID
		signed := w.Read(w.Form(url.Values{
			"grant_type": {"password"}, "username": {o.login}, "password": {o.password},
			"client_id": {w.Dev.ClientID}, "resource": {w.Dev.Resource}, "scope": {"dss offline_access"},
		}))
		o.token, o.refresh = signed.AccessToken, signed.RefreshToken
		bearer := o.token
		if row.delegated {
			o.helper = fmt.Sprintf("helper%d", n)
			w.Command("operator", "add", o.helper, "--group", "Default", "--group", "Other", "--password-file", tamgatest.PasswordFile(t))
			helper := w.TokenOf(o.helper, ownersWord)
			bearer = w.Read(w.Exchange(helper, tamgatest.Naming("unique_name", o.login, time.Hour))).AccessToken
		}
		c := &v2{w.Server, t, bearer}
		ref := c.upload("kept.txt", []byte("kept"))
		op := c.operation(fields{
			"BinaryData": []fields{{"RefId": ref}}, "IsAsync": true, "Callback": r.URL,
			"Signature": fields{"Type": "CMS", "CertificateId": o.certificate, "PinCode": waitingPIN},
		})
		o.id = op.UserID.String()
		owners[row.name], rows[row.name], waiting[op.ID.String()] = o, row, row.name
		documents[row.name] = (&v2{w.Server, t, o.token}).stored()
	}
	for _, row := range meanwhiles {
		row.happens(w, owners[row.name])
	}
	w.Kill()
	working := &v2{tamgatest.StartProcess(t, dir, settings...), t, ""}
	for range meanwhiles {
		var got typedOperation
		select {
		case got = <-r.calls:
		case <-time.After(tamgatest.Patience):
			t.Fatalf("%d operations do not end\n%s", len(waiting), working.Logged())
		}
		name, known := waiting[got.ID.String()]
		if !known {
			t.Fatalf("a second callback, or one of no operation: %+v", got)
		}
		delete(waiting, got.ID.String())
		t.Run(name, func(t *testing.T) {
			row, o, d := rows[name], owners[name], got.Result.ProcessedDocuments[0]
			stored := documents[name]
			state, action := "Error", "Error"
			if row.want == "" {
				if got.Status != "Completed" || got.Error != nil || d.Status != "Completed" || d.RefID == nil {
					t.Errorf("%+v %+v", got, d)
				}
				state, action = "Completed", "Executed"
				stored++
			} else if got.Status != "Error" || got.Error == nil || *got.Error != row.want || d.Status != "Error" || *d.Error != row.want || d.RefID != nil || d.Content != nil {
				t.Errorf("%+v %+v", got, d)
			}
			if row.silent {
				return
			}
			c := &v2{working.Server, t, working.TokenOf(o.login, o.password)}
			info := c.info(got.ID)
			if string(info.State) != state || string(info.Actions[0].State) != action {
				t.Errorf("%+v", info)
			}
			if n := c.stored(); n != stored {
				t.Errorf("the owner has %d documents, want %d", n, stored)
			}
		})
	}
}
