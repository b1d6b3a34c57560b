// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
)

// TestPeopleCommands renames and deletes groups, and shows and deletes users and operators.
func TestPeopleCommands(t *testing.T) {
	t.Parallel()
	i := newImporter(t, "sqlite:"+filepath.Join(t.TempDir(), "tamga.db"))
	password := tamgatest.WriteFile(t, filepath.Join(t.TempDir(), "password"), "correct horse battery staple\n")
	run := func(args ...string) string { t.Helper(); return i.s.MustRun(append(args, i.flags...)...) }
	fails := func(want string, args ...string) {
		t.Helper()
		if r := tamgatest.Run(t.Context(), "", append(args, i.flags...)...); r.Failure == nil || !strings.Contains(r.Failure.Error(), want) {
			t.Errorf("%q: %v, want %q", args, r.Failure, want)
		}
	}
	run("group", "add", "Empty", "--title", "No one yet")
	run("operator", "add", "olga", "--group", "Default", "--group", "Empty", "--password-file", password)
	run("user", "add", "petrov", "--group", "Default", "--password-file", password)
	run("policy", "set", "access", "--group", "Default", "--action", "ChangePin")

	if list := run("group", "list"); !strings.Contains(list, "GROUP    TITLE\nDefault  \nEmpty    No one yet\n") {
		t.Errorf("groups:\n%s", list)
	}
	fails("has users or operators", "group", "delete", "Empty")
	fails("exists already", "group", "rename", "Default", "Empty")
	fails("unknown", "group", "rename", "default", "Clerks")
	run("group", "rename", "Default", "Clerks")
	if shown := run("policy", "show", "--group", "Clerks"); !strings.Contains(shown, "ChangePin") {
		t.Errorf("the policy of the renamed group:\n%s", shown)
	}
	run("operator", "groups", "olga", "--group", "Clerks")
	run("group", "delete", "Empty")

	var shown struct {
		ID, Login, Group string
		Operator         bool
		Groups, Methods  []string
	}
	if err := json.Unmarshal([]byte(run("user", "show", "olga", "--json")), &shown); err != nil || !shown.Operator || strings.Join(shown.Groups, " ") != "Clerks" || strings.Join(shown.Methods, " ") != "password" {
		t.Errorf("the operator is %+v, %v", shown, err)
	}
	run("user", "lock", "petrov")
	if err := json.Unmarshal([]byte(run("user", "show", "PETROV", "--json")), &shown); err != nil || shown.Group != "Clerks" || shown.Operator {
		t.Errorf("the user is %+v, %v", shown, err)
	}
	for _, args := range [][]string{{"user", "show", shown.ID}, {"user", "show", "petrov"}} {
		if text := run(args...); !strings.Contains(text, "login       petrov\n") || !strings.Contains(text, "state       locked\n") {
			t.Errorf("%q:\n%s", args, text)
		}
	}
	if list := run("cert", "list", shown.ID, "--json"); list != "[]\n" {
		t.Errorf("certificates by the identifier of the user: %s", list)
	}
	if list, text := run("user", "sessions", "petrov", "--json"), run("user", "sessions", "petrov"); list != "[]\n" || text != "CLIENT  SCOPE  METHOD  SIGNED IN  USED  UNTIL\n" {
		t.Errorf("no sessions: %s%s", list, text)
	}
	fails("not an operator", "operator", "delete", "petrov", "--yes")
	run("operator", "delete", "olga", "--yes")
	fails("User not found", "user", "show", "olga")
	if audit := run("audit"); !strings.Contains(audit, "RenameGroup") || !strings.Contains(audit, "DeleteOperator") {
		t.Errorf("the audit log:\n%s", audit)
	}
}
