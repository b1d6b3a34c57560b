// SPDX-License-Identifier: Apache-2.0

package program

import (
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/alecthomas/kong"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/config"
	"tamga/internal/domain/fault"
	"tamga/internal/web/pages/view"
)

// TestRussianCatalogue checks that each text of the commands has one in Russian, and none is left over.
func TestRussianCatalogue(t *testing.T) {
	t.Parallel()
	unused := maps.Clone(russian())
	need := func(where, text string) {
		if text == "" {
			return
		}
		delete(unused, text)
		other := russian()[text]
		if !strings.ContainsFunc(other, func(r rune) bool { return unicode.Is(unicode.Cyrillic, r) }) {
			t.Errorf("words/ru.txt: %s: %q has no Russian text", where, text)
		}
		// Names that people type are the same in both languages.
		for _, part := range []string{"--", "${", "tamga "} {
			if a, b := strings.Count(text, part), strings.Count(other, part); a != b && (part == "${" || a > 0 && b == 0) {
				t.Errorf("words/ru.txt: %s: %q is %d times in %q and %d times in %q", where, part, a, text, b, other)
			}
		}
	}
	var visit func(n *kong.Node)
	visit = func(n *kong.Node) {
		need(n.Path(), n.Help)
		need(n.Path(), n.Detail)
		for _, f := range n.Flags {
			need(n.Path()+" --"+f.Name, f.OrigHelp)
		}
		for _, p := range n.Positional {
			need(n.Path()+" "+p.Name, p.OrigHelp)
		}
		for _, child := range n.Children {
			visit(child)
		}
	}
	visit(newParser(t).Model.Node)
	for _, part := range slices.Concat(helpParts, usageParts, []string{helpEnd, description, examplesTitle}) {
		need("texts around the commands", part)
	}
	texts, _ := allPrinted(t) // TestPrinted checks these
	for text := range texts {
		delete(unused, text)
	}
	for _, f := range app.Formats(&config.Config{}) {
		delete(unused, f.Describe().Noun)
	}
	for text := range unused {
		t.Errorf("words/ru.txt: no command has %q", text)
	}
}

// speaks returns what a command line prints in Russian, and the text of its error.
func speaks(t *testing.T, args ...string) (out, text string) {
	t.Helper()
	var stdout strings.Builder
	err := run(t.Context(), "1.2.3", "ru", "", args, strings.NewReader(""), &stdout, io.Discard, nil)
	if err != nil {
		text = sentence(err, "ru")
	}
	return stdout.String(), text
}

// TestRussian checks help and errors of the command line.
func TestRussian(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"Использование: tamga <command>", "Электронная подпись по ГОСТ как сервис. Начните с команды: tamga serve --dev", "Флаги:", "Команды:", "Запустить сервис.", `--help" – справка по команде.`}},
		{[]string{"cert", "revoke", "--help"}, []string{"Аргументы:", "Номер сертификата.", "Примеры:", "    tamga cert revoke 2 --reason 1 --config tamga.yaml\n"}},
		{[]string{"help", "policy", "set"}, []string{"Событие и способы уведомления о нём: "}},
		{[]string{"complete", "--", "user", "metho"}, []string{"method\tПоказывать"}},
		{[]string{"manual", "sign"}, []string{"Sign a file with a key"}},
	} {
		out, _ := speaks(t, c.args...)
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("%q: no %q in\n%s", c.args, want, out)
			}
		}
		if strings.Contains(out, "${") || strings.Contains(out, "\nFlags:") && c.args[0] != "manual" {
			t.Errorf("%q prints %s", c.args, out)
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"verfy"}, `лишний аргумент verfy; возможно, "verify"?; см. tamga --help`},
		{[]string{"serve", "--nothing"}, `неизвестный флаг --nothing; см. tamga serve --help`},
		{[]string{"user", "delete", "petrov"}, `не заданы флаги: --yes; см. tamga user delete --help`},
		{[]string{"user", "delete", "--yes"}, `ожидается "<login>"; см. tamga user delete --help`},
		{[]string{"completion", "csh"}, `<shell>: допустимые значения: "bash","zsh","fish", а дано "csh"; см. tamga completion --help`},
		{[]string{"cert", "revoke", "x"}, `<id>: ожидается целое число, а дано "x"; см. tamga cert revoke --help`},
	} {
		if _, text := speaks(t, c.args...); text != c.want {
			t.Errorf("%q: %s, want %s", c.args, text, c.want)
		}
	}
	refused := &cli.Refused{Fault: fault.New(fault.AccessDenied, "this is for operators")}
	if text := sentence(errors.Join(refused), "ru"); text != "Эта страница только для операторов." {
		t.Error(text)
	}
	known := &cli.Refused{Fault: fault.New(fault.UserNotFound, "user not found")}
	if text := sentence(known, "ru"); text != "Пользователь не найден." {
		t.Error(text)
	}
	if text := sentence(refused, ""); text != "this is for operators" {
		t.Error(text)
	}
}

// TestRussianImport checks the reasons of refused records: by a code, by a form of the file, and with
// details in English where there is no text in Russian. JSON is in English.
func TestRussianImport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write("master.key", strings.Repeat("0123456789abcdef", 4)+"\n")
	config := write("tamga.yaml", "database: sqlite:"+dir+"/t.db\npublic_url: http://sign.example.org\nmaster_keys: {active: \"1\", files: {\"1\": master.key}}\n")
	for _, args := range [][]string{{"migrate"}, {"group", "add", "Default"}} {
		if _, text := speaks(t, append(args, "--config", config)...); text != "" {
			t.Fatal(text)
		}
	}
	users := write("users.csv", "login,group,phone,certificate,locked\nanna,Nowhere,,,\nboris,Default,12,,\n,Default,,,\nvera,Default,,x,\ngleb,Default,,,perhaps\ndima,Default\n")
	const want = `строка 2 (anna): group: Такой группы нет.
строка 3 (boris): phone: Номер телефона указан неверно.
строка 4: login: не задан; по нему повторный импорт находит пользователей
строка 5 (vera): certificate: нужен сертификат: DER в Base64 или PEM
строка 6 (gleb): locked: Нужно true или false.
строка 7: полей 2, а нужно 5, как в первой строке
`
	if out, _ := speaks(t, "import", users, "--config", config); !strings.HasPrefix(out, want) {
		t.Errorf("the report is\n%s", out)
	}
	if out, _ := speaks(t, "import", users, "--config", config, "--json"); strings.ContainsFunc(out, func(r rune) bool { return unicode.Is(unicode.Cyrillic, r) }) || !strings.Contains(out, "group: unknown, want the name of an existing group") {
		t.Errorf("the report in JSON is\n%s", out)
	}
	for message, want := range map[string]string{
		"user not found": "Пользователь не найден.", "no text": "Это действие запрещено. Подробности по-английски: no text", "": "Это действие запрещено.",
	} {
		if got := view.Reason("ru", fault.New(fault.AccessDenied, message)); got != want {
			t.Errorf("%q is %q, want %q", message, got, want)
		}
	}
}

func TestLanguageOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{nil, ""},
		{map[string]string{"LANG": "ru_RU.UTF-8"}, "ru"},
		{map[string]string{"LANG": "ru"}, "ru"},
		{map[string]string{"LANG": "run_BI"}, ""},
		{map[string]string{"LANG": "ru_RU.UTF-8", "LC_ALL": "C"}, ""},
		{map[string]string{"LANG": "C", "LC_MESSAGES": "ru_RU.UTF-8"}, "ru"},
		{map[string]string{"LC_ALL": "ru.UTF-8", "LC_MESSAGES": "de_DE"}, "ru"},
	} {
		if got := languageOf(func(name string) string { return c.env[name] }); got != c.want {
			t.Errorf("%v: %q", c.env, got)
		}
	}
}
