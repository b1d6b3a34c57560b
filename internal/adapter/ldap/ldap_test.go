// SPDX-License-Identifier: Apache-2.0

package ldap_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"tamga/internal/adapter/ldap"
	"tamga/internal/domain/directory"
	"tamga/internal/domain/fault"
	"tamga/internal/judge"
	"tamga/internal/testsize"
)

const units = "dn: ou=people," + judge.SlapdBase + "\nobjectClass: organizationalUnit\nou: people\n\ndn: ou=groups," + judge.SlapdBase + "\nobjectClass: organizationalUnit\nou: groups\n\n"

// people returns n people in LDIF. Each has the password "password-N".
func people(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "dn: uid=p%[1]d,ou=people,%[2]s\nobjectClass: inetOrgPerson\nuid: p%[1]d\ncn: Person %[1]d\nsn: P\ndisplayName: Person %[1]d\nuserPassword: password-%[1]d\n\n", i, judge.SlapdBase)
	}
	return b.String()
}

// group returns the change that adds a group.
func group(cn string, members ...string) string {
	text := fmt.Sprintf("dn: cn=%s,ou=groups,%s\nchangetype: add\nobjectClass: groupOfNames\ncn: %[1]s\n", cn, judge.SlapdBase)
	for _, m := range members {
		text += "member: " + m + "," + judge.SlapdBase + "\n"
	}
	return text + "\n"
}

// configOf reads a directory of slapd as its administrator.
func configOf(url string) ldap.Config {
	return ldap.Config{
		Name: "corp", Servers: []string{url}, Plain: true, BindDN: judge.SlapdAdmin, Password: judge.SlapdPassword, Base: judge.SlapdBase, Filter: "(objectClass=inetOrgPerson)",
		ID: "entryUUID", Login: "uid", Title: "displayName", Component: map[string]string{"CN": "cn"}, Membership: ldap.Member, DefaultGroup: "Staff",
	}
}

func opened(t *testing.T, c ldap.Config) *ldap.Directory {
	t.Helper()
	d, err := ldap.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// read returns all entries by login.
func read(t *testing.T, d *ldap.Directory) map[string]directory.Entry {
	t.Helper()
	all := map[string]directory.Entry{}
	err := d.Entries(t.Context(), func(list []directory.Entry) error {
		for _, e := range list {
			if _, twice := all[e.Login]; twice {
				t.Errorf("%s came twice", e.Login)
			}
			all[e.Login] = e
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestPages reads more people than fit into a page, and their groups in both ways.
func TestPages(t *testing.T) {
	t.Parallel()
	n := 1203
	if testsize.Of() >= testsize.Full {
		n = 100_003
	}
	s := judge.RunSlapd(t, "", "", units+people(n), true)
	// Groups in groups, and a cycle. The overlay memberOf wants members that exist.
	s.Modify(group("hostile \\28\\2a\\29", "uid=P3,OU=People", "uid=p1,ou=people") + group("inner", "uid=p2,ou=people", "cn=hostile \\28\\2a\\29,ou=groups") +
		group("outer", "cn=inner,ou=groups", "uid=p1,ou=people") + group("others", "uid=p4,ou=people", "uid=p2,ou=people") +
		"dn: cn=inner,ou=groups," + judge.SlapdBase + "\nchangetype: modify\nadd: member\nmember: cn=outer,ou=groups," + judge.SlapdBase + "\n\n")
	for _, membership := range []ldap.Membership{ldap.Member, ldap.MemberOf} {
		c := configOf(s.URL)
		c.Membership, c.DefaultGroup = membership, "Rest"
		c.Groups = []ldap.Group{{DN: "CN=outer, ou=groups," + judge.SlapdBase, Group: "Inside"}, {DN: "cn=others,ou=groups," + judge.SlapdBase, Group: "Others"}}
		began := time.Now()
		all := read(t, opened(t, c))
		t.Logf("%s: %d people in %s", membership, len(all), time.Since(began).Round(time.Millisecond))
		if len(all) != n {
			t.Errorf("%s: %d people", membership, len(all))
		}
		ids := map[string]bool{}
		for login, e := range all {
			want := "Rest"
			switch login {
			case "p1", "p2", "p3":
				want = "Inside"
			case "p4":
				want = "Others"
			}
			if e.Group != want || e.Name != "Person "+login[1:] || e.Components["CN"] != e.Name || ids[e.ID] {
				t.Errorf("%s: %s: %+v, want the group %s", membership, login, e, want)
			}
			ids[e.ID] = true
		}
	}
}

// TestDisabled reads who may not sign in. OpenLDAP has no attribute userAccountControl: TestUserAccountControl has its values.
func TestDisabled(t *testing.T) {
	t.Parallel()
	s := judge.RunSlapd(t, "", "", units+people(3), false)
	s.Modify("dn: uid=p1,ou=people," + judge.SlapdBase + "\nchangetype: modify\nadd: description\ndescription: true\n\ndn: uid=p2,ou=people," + judge.SlapdBase + "\nchangetype: modify\nadd: description\ndescription: false\n\n")
	for attribute, want := range map[string][3][2]bool{ // disabled and unknown, by person
		"description":        {{false, false}, {true, false}, {false, false}},
		"userAccountControl": {{false, true}, {false, true}, {false, true}},
		"":                   {},
	} {
		c := configOf(s.URL)
		c.Disabled = attribute
		all := read(t, opened(t, c))
		for n, want := range want {
			if e := all[fmt.Sprint("p", n)]; [2]bool{e.Disabled, e.Unknown} != want {
				t.Errorf("%q: %+v, want disabled, unknown %t", attribute, e, want)
			}
		}
	}
}

// TestCheck checks passwords, and never an empty one.
func TestCheck(t *testing.T) {
	t.Parallel()
	s := judge.RunSlapd(t, "", "", units+people(2), false)
	d := opened(t, configOf(s.URL))
	dn := func(uid string) string { return "uid=" + uid + ",ou=people," + judge.SlapdBase }
	all := read(t, d)
	one, two := all["p1"].ID, all["p2"].ID
	if ok, err := d.Check(t.Context(), dn("p1"), two, "password-1"); ok || err != nil {
		t.Errorf("another entry has the name now: %t, %v", ok, err)
	}
	for _, c := range []struct {
		dn, password string
		want         bool
	}{
		{dn("p1"), "password-1", true}, {dn("p1"), "password-0", false}, {dn("p1"), "", false}, {"", "", false}, {"", "password-1", false},
		{dn("absent"), "password-1", false}, {"no name", "password-1", false}, {dn("p1"), "password-1\x00", false}, {dn("*"), "password-1", false},
	} {
		if ok, err := d.Check(t.Context(), c.dn, one, c.password); ok != c.want || err != nil {
			t.Errorf("%q with %q: %t, %v", c.dn, c.password, ok, err)
		}
	}
	if err := d.Decoy(t.Context()); err != nil {
		t.Error(err)
	}
	s.Stop()
	var outage *fault.Outage
	if ok, err := d.Check(t.Context(), dn("p1"), one, "password-1"); ok || !errors.As(err, &outage) {
		t.Errorf("without a server: %t, %v", ok, err)
	}
	if err := d.Decoy(t.Context()); !errors.As(err, &outage) {
		t.Error(err)
	}
	if ok, err := d.Check(t.Context(), dn("p1"), one, ""); ok || err != nil {
		t.Errorf("an empty password without a server: %t, %v", ok, err)
	}
	s.Start()
	if ok, err := d.Check(t.Context(), dn("p1"), one, "password-1"); !ok || err != nil {
		t.Errorf("a server that is back: %t, %v", ok, err)
	}
}

// TestCheckAnonymous checks passwords while the service reads anonymously. Right and wrong ones have one answer if it may not read.
func TestCheckAnonymous(t *testing.T) {
	t.Parallel()
	s := judge.RunSlapd(t, "", "", units+people(2), false)
	c := configOf(s.URL)
	c.BindDN, c.Password = "", ""
	d := opened(t, c)
	if err := d.Probe(t.Context()); err != nil {
		t.Error(err)
	}
	dn, id := "uid=p1,ou=people,"+judge.SlapdBase, read(t, d)["p1"].ID
	for _, c := range []struct {
		dn, entry, password string
		want                bool
	}{
		{dn, id, "password-1", true}, {dn, id, "password-0", false}, {dn, id, "", false}, {dn, "another", "password-1", false},
		{"uid=absent,ou=people," + judge.SlapdBase, id, "password-1", false}, {"no name", id, "password-1", false},
	} {
		if ok, err := d.Check(t.Context(), c.dn, c.entry, c.password); ok != c.want || err != nil {
			t.Errorf("%q with %q: %t, %v", c.dn, c.password, ok, err)
		}
	}
	if err := d.Decoy(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestCheckWithoutService has a password of the service that expired. No password of a person gets another answer.
func TestCheckWithoutService(t *testing.T) {
	t.Parallel()
	s := judge.RunSlapd(t, "", "", units+people(2), false)
	c := configOf(s.URL)
	dn, id := "uid=p1,ou=people,"+judge.SlapdBase, read(t, opened(t, c))["p1"].ID
	c.Password = "expired"
	d := opened(t, c)
	var outage *fault.Outage
	for _, password := range []string{"password-1", "password-0"} {
		if ok, err := d.Check(t.Context(), dn, id, password); ok || !errors.As(err, &outage) {
			t.Errorf("%s: %t, %v", password, ok, err)
		}
	}
	if err := d.Decoy(t.Context()); !errors.As(err, &outage) {
		t.Errorf("a person who does not exist: %v", err)
	}
}

// TestServers tries servers that are away, silent, or without TLS, before the one that answers.
func TestServers(t *testing.T) {
	t.Parallel()
	s := judge.RunSlapd(t, "", "", units+people(1), false)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	c := configOf(s.URL)
	c.Servers = []string{"ldap://127.0.0.1:1", s.URL}
	d := opened(t, c)
	for range 2 {
		if err := d.Probe(t.Context()); err != nil {
			t.Error(err)
		}
	}
	c.Servers, c.Connect, c.Timeout = []string{"ldaps://" + silent.Addr().String()}, 100*time.Millisecond, 100*time.Millisecond
	if err := opened(t, c).Probe(t.Context()); err == nil {
		t.Error("a silent server with TLS")
	}
	c.Servers, c.Plain = []string{"ldap://" + silent.Addr().String()}, false
	if err := opened(t, c).Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "StartTLS") {
		t.Errorf("a silent server with StartTLS: %v", err)
	}
	c.Servers = []string{s.URL}
	if err := opened(t, c).Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "StartTLS") {
		t.Errorf("a server without StartTLS: %v", err)
	}
	c.Plain, c.Connect, c.Timeout = true, time.Minute, time.Minute
	if err := opened(t, c).Probe(t.Context()); err != nil {
		t.Errorf("the password of the service: %v", err)
	}
	c.Password = "not-this-one"
	var outage *fault.Outage
	if err := opened(t, c).Probe(t.Context()); !errors.As(err, &outage) || !strings.Contains(err.Error(), "binding as "+judge.SlapdAdmin) || strings.Contains(err.Error(), c.Password) {
		t.Errorf("a wrong password of the service: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Probe(ctx); err == nil {
		t.Error("after the end of the context")
	}
}

// TestReferral has a referral in the directory, which is not followed.
func TestReferral(t *testing.T) {
	t.Parallel()
	asked, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer asked.Close()
	s := judge.RunSlapd(t, "", "", units+people(3)+"dn: ou=elsewhere,"+judge.SlapdBase+"\nobjectClass: referral\nobjectClass: extensibleObject\nou: elsewhere\nref: ldap://"+asked.Addr().String()+"/ou=elsewhere,"+judge.SlapdBase+"\n\n", false)
	d := opened(t, configOf(s.URL))
	if all := read(t, d); len(all) != 3 {
		t.Errorf("%d people", len(all))
	}
	if ok, err := d.Check(t.Context(), "uid=x,ou=elsewhere,"+judge.SlapdBase, "", "password-1"); ok || err != nil {
		t.Errorf("a person elsewhere: %t, %v", ok, err)
	}
	asked.(*net.TCPListener).SetDeadline(time.Now().Add(time.Millisecond))
	if conn, err := asked.Accept(); err == nil {
		conn.Close()
		t.Error("the referral was followed")
	}
}

func TestNew(t *testing.T) {
	for name, change := range map[string]func(c *ldap.Config){
		"no server":                 func(c *ldap.Config) { c.Servers = nil },
		"another scheme":            func(c *ldap.Config) { c.Servers = []string{"http://x"} },
		"a filter without its end":  func(c *ldap.Config) { c.Filter = "(objectClass=x" },
		"a base that is no name":    func(c *ldap.Config) { c.Base = "example" },
		"a name without a password": func(c *ldap.Config) { c.Password = "" },
		"a group that is no name":   func(c *ldap.Config) { c.Groups = []ldap.Group{{DN: "x", Group: "y"}} },
		"a server with a path":      func(c *ldap.Config) { c.Servers = []string{"ldap://x/dc=y"} },
		"a server with a login":     func(c *ldap.Config) { c.Servers = []string{"ldap://a:b@x"} },
	} {
		c := configOf("ldap://127.0.0.1")
		change(&c)
		if _, err := ldap.New(c); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	c := configOf("ldap://127.0.0.1")
	c.Servers = slices.Concat(c.Servers, []string{"ldaps://[::1]:636"})
	if _, err := ldap.New(c); err != nil {
		t.Error(err)
	}
}
