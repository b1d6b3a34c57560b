// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/directory"
	"tamga/internal/judge"
	"tamga/internal/tamgatest"
)

// person is an entry of a person in LDIF.
func person(uid, name, password string, more ...string) string {
	return fmt.Sprintf("dn: uid=%[1]s,ou=people,%[4]s\nobjectClass: inetOrgPerson\nuid: %[1]s\ncn: %[2]s\nsn: %[2]s\ndisplayName: %[2]s\nmail: %[1]s@example.org\nuserPassword: %[3]s\n%[5]s\n",
		uid, name, password, judge.SlapdBase, strings.Join(append(more, ""), "\n"))
}

func groupOfNames(cn string, members ...string) string {
	text := fmt.Sprintf("dn: cn=%s,ou=groups,%s\nobjectClass: groupOfNames\ncn: %[1]s\n", cn, judge.SlapdBase)
	for _, m := range members {
		text += "member: " + m + "," + judge.SlapdBase + "\n"
	}
	return text + "\n"
}

// units are the entries above those of people and groups.
const units = "dn: ou=people," + judge.SlapdBase + "\nobjectClass: organizationalUnit\nou: people\n\ndn: ou=groups," + judge.SlapdBase + "\nobjectClass: organizationalUnit\nou: groups\n\n"

// TestDirectory follows a directory of OpenLDAP: registration, sign-in, changes, groups inside of groups, people who
// vanish, and a directory that is away.
func TestDirectory(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		database func(dir string) string
	}{
		{"SQLite", func(dir string) string { return "sqlite:" + filepath.Join(dir, "tamga.db") }},
		{"PostgreSQL", func(string) string { return storetest.PostgreSQL(t).Database(t) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			certificate, key := certificateForLoopback(t)
			const anna, clara = "anna-password-1", "clara-password-1"
			// The groups contain each other.
			ldap := judge.RunSlapd(t, certificate, key, units+person("anna", "Anna Ivanova", anna)+person("clara", "Clara (\"*\\5c, + ;", clara)+person("dmitri", "Dmitri", "dmitri-password-1")+
				person("admin.local", "Not the operator", "attack-password-1"), false)
			ldap.Modify(strings.ReplaceAll(groupOfNames("signers", "uid=anna,ou=people", "uid=admin.local,ou=people", "cn=inner,ou=groups")+groupOfNames("inner", "uid=clara,ou=people", "cn=signers,ou=groups"), "objectClass", "changetype: add\nobjectClass"))
			dir := t.TempDir()
			secret := tamgatest.WriteFile(t, filepath.Join(dir, "bind.secret"), judge.SlapdPassword+"\n")
			of := []string{"--set", "directories=[{name: corp, servers: ['ldap://127.0.0.1:1', '" + ldap.URL + "'], authorities_file: " + certificate + ", bind_dn: '" + judge.SlapdAdmin + "', bind_password_file: " + secret +
				", base: '" + judge.SlapdBase + "', groups: [{dn: 'cn=signers,ou=groups," + judge.SlapdBase + "', group: Staff}], attributes: {disabled: employeeType, dn: {CN: cn, SN: sn}}, match: login, every: 24h, lock_after: 1ns}]"}
			data := filepath.Join(dir, "data")
			p := tamgatest.StartIn(t, data, "--set", "database="+c.database(data))
			p.Command("group", "add", "Staff")
			p.Command("user", "add", "admin.local", "--group", "Staff", "--password-file", tamgatest.PasswordFile(t))
			sync := func(more ...string) (r struct {
				Result  directory.Result
				Changes []struct{ Kind, Login, Error string }
			}) {
				t.Helper()
				out := p.Command(append(append([]string{"directory", "sync", "corp", "--json"}, more...), of...)...)
				if err := json.Unmarshal([]byte(out), &r); err != nil {
					t.Fatalf("%s: %v", out, err)
				}
				return r
			}
			want := func(what string, got directory.Result, want directory.Result) {
				t.Helper()
				if got != want {
					t.Errorf("%s: %+v, want %+v", what, got, want)
				}
			}
			users := func() string { return p.Command("user", "list") }
			want("a dry run", sync("--dry-run").Result, directory.Result{Entries: 4, Left: 1, Added: 2, Linked: 1})
			if strings.Contains(users(), "anna") {
				t.Error("a dry run has registered a user")
			}
			want("the first synchronization", sync().Result, directory.Result{Entries: 4, Left: 1, Added: 2, Linked: 1})
			want("the second synchronization", sync().Result, directory.Result{Entries: 4, Left: 1, Unchanged: 3})
			if text := users(); !strings.Contains(text, "anna") || !strings.Contains(text, "Clara (\"*\\5c, + ;") || strings.Contains(text, "dmitri") {
				t.Errorf("%s", text)
			}

			q := another(p, of...)
			status := func(login, password string, want int) []byte {
				t.Helper()
				got, answer := q.Grant(login, password)
				if got != want {
					t.Errorf("%s: %d %s, want %d", login, got, answer, want)
				}
				return answer
			}
			status("anna", anna, 200)
			status("ANNA@example.org", anna, 200)
			status("clara", clara, 200)
			status("anna", "", 400)
			if wrong, unknown := status("anna", "wrong-password-1", 400), status("unknown", "wrong-password-1", 400); string(wrong) != string(unknown) {
				t.Errorf("%s for a wrong password, %s for an unknown login", wrong, unknown)
			}
			status("dmitri", "dmitri-password-1", 400)
			status(p.Dev.User.Login, p.Dev.User.Password, 200)
			if r := p.TryCommand("user", "password", "anna", "--password-file", tamgatest.PasswordFile(t)); r.Failure == nil || !strings.Contains(r.Failure.Error(), "directory") {
				t.Errorf("a local password for a user of a directory: %v", r.Failure)
			}

			entry := func(uid string) string { return "dn: uid=" + uid + ",ou=people," + judge.SlapdBase + "\nchangetype: " }
			ldap.Modify(entry("anna") + "modify\nreplace: displayName\ndisplayName: Anna Petrova\n-\nreplace: employeeType\nemployeeType: TRUE\n\n" + entry("clara") + "modrdn\nnewrdn: uid=klara\ndeleteoldrdn: 1\n\n" +
				"dn: cn=inner,ou=groups," + judge.SlapdBase + "\nchangetype: modify\nreplace: member\nmember: uid=klara,ou=people," + judge.SlapdBase + "\n\n" + entry("admin.local") + "delete\n\n")
			r := sync()
			want("after changes", r.Result, directory.Result{Entries: 3, Left: 1, Locked: 1, Changed: 1, Missing: 1})
			status("anna", anna, 400)
			status("clara", clara, 400)
			status("klara", clara, 200)
			want("after the delay", sync().Result, directory.Result{Entries: 3, Left: 1, Unchanged: 2, Locked: 1})
			if text := users(); !strings.Contains(text, "Anna Petrova") {
				t.Errorf("%s", text)
			}
			ldap.Modify(entry("anna") + "modify\ndelete: employeeType\n\n")
			want("after the return", sync().Result, directory.Result{Entries: 3, Left: 1, Unchanged: 1, Unlocked: 1})
			status("anna", anna, 200)

			ldap.Stop()
			for _, x := range []struct {
				login, password string
				want            int
			}{{"anna", anna, 503}, {"anna", "wrong-password-1", 503}, {"unknown", "wrong-password-1", 503}, {p.Dev.User.Login, "wrong-password-1", 503}, {p.Dev.User.Login, p.Dev.User.Password, 200}} {
				status(x.login, x.password, x.want)
			}
			if r := p.TryCommand(append([]string{"directory", "sync", "corp"}, of...)...); r.Failure == nil {
				t.Error("synchronized with a directory that is away")
			}
			ldap.Start()
			status("anna", anna, 200)

			// An unlink outlives the user.
			unlink := func(more ...string) { p.Command(append([]string{"directory", "unlink", "klara"}, more...)...) }
			unlink()
			want("after an unlink", sync().Result, directory.Result{Entries: 3, Left: 2, Unchanged: 1})
			p.Command("user", "delete", "klara", "--yes")
			want("after the deletion", sync().Result, directory.Result{Entries: 3, Left: 2, Unchanged: 1})
			unlink("--forget")
			want("forgotten", sync().Result, directory.Result{Entries: 3, Left: 1, Unchanged: 1, Added: 1})
		})
	}
}
