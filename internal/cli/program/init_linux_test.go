// SPDX-License-Identifier: Apache-2.0

package program

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestInitAsks answers the questions of init at a terminal, in Russian: invalid answers are asked for again, and the built-in
// authority gets the names and lifetimes of the answers.
func TestInitAsks(t *testing.T) {
	t.Parallel()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	person, terminal := os.NewFile(uintptr(pair[0]), "person"), os.NewFile(uintptr(pair[1]), "terminal")
	defer person.Close()
	answers := []string{
		"https://sign.example.org", "", "", "", // address, listen, group, operator
		"",        // database
		"yes", "", // certifies keys, under its own root
		strings.Repeat("О", 65), "ООО «Пример»", "Example", // organisation, common name
		"many", "0", "5", "", // years of roots and of issuing authorities
		"long", "8760h", "24h", // users' certificates, revocation lists
		"",
	}
	if _, err := io.WriteString(person, strings.Join(answers, "\n")+"\n"); err != nil {
		t.Fatal(err)
	}
	if err := unix.Shutdown(pair[0], unix.SHUT_WR); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "tamga.yaml")
	var stdout strings.Builder
	err = run(t.Context(), "1.2.3", "ru", "", []string{"init", "--config", config}, strings.NewReader(""), &stdout, io.Discard, func() (*os.File, error) { return terminal, nil })
	if err != nil {
		t.Fatalf("%v\n%s", err, stdout.String())
	}
	shown, err := io.ReadAll(person)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Организация в именах встроенного удостоверяющего центра [Tamga]: ", "Начало общих имён встроенного удостоверяющего центра [ООО «Пример»]: "} {
		if !strings.Contains(string(shown), want) {
			t.Errorf("no %q in\n%s", want, shown)
		}
	}
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	const want = "  organization: \"ООО «Пример»\"\n  common_name: \"Example\"\n  root_years: 5\n  issuing_years: 15\n  life: \"8760h\"\n  crl_life: \"24h\"\n"
	if !strings.Contains(string(text), want) {
		t.Errorf("the configuration is\n%s", text)
	}
	list, err := runs(t, "ca", "list", "--config", config)
	if err != nil || strings.Count(list, "O=ООО «Пример»") != 4 || !strings.Contains(list, "CN=Example GOST Root CA") {
		t.Errorf("%v\n%s", err, list)
	}
}
