// SPDX-License-Identifier: Apache-2.0

//go:build linux

package program

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRussianAnswers makes an installation by the dialog of init, and runs commands on it. What people read is in
// Russian. JSON is the same in all languages.
func TestRussianAnswers(t *testing.T) {
	t.Parallel()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	person, terminal := os.NewFile(uintptr(pair[0]), "person"), os.NewFile(uintptr(pair[1]), "terminal")
	defer person.Close()
	if _, err := io.WriteString(person, "https://sign.example.org\n\n\n\n\nда\n\n\n\n\n\n\n\nнет\n"); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "tamga.yaml")
	var out strings.Builder
	err = run(t.Context(), "1.2.3", "ru", "", []string{"init", "--config", config}, strings.NewReader(""), &out, io.Discard, func() (*os.File, error) { return terminal, nil })
	if err != nil {
		t.Fatal(err)
	}
	shown, err := io.ReadAll(person)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what, text string
		want       []string
	}{
		{"the dialog", string(shown), []string{"Адрес сервиса для людей", "База данных: postgres://USER@HOST/NAME или [sqlite:", "центром? [да]: ", "который сертифицирует встроенный", "Требовать второго оператора"}},
		{"init", out.String(), []string{"новое   конфигурация: ", "Что делать дальше:", "Проверьте установку: tamga doctor --config ", "Группы, журнал аудита и сообщения на страницах видит оператор operator (pages.administrators в "}},
	} {
		for _, want := range c.want {
			if !strings.Contains(c.text, want) {
				t.Errorf("%s: no %q in\n%s", c.what, want, c.text)
			}
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"group", "add", "Second", "--config", config}, "Группа Second добавлена.\n"},
		{[]string{"operator", "list", "--config", config}, "ЛОГИН     ГРУППЫ   ИД"},
		{[]string{"policy", "show", "--group", "Second", "--config", config}, "запрещено: ничего (унаследовано)"},
		{[]string{"init", "--yes", "--config", config}, "Всё уже есть, ничего не изменено."},
		{[]string{"migrate", "--config", config}, "Схема базы данных соответствует"},
	} {
		if got, text := speaks(t, c.args...); text != "" || !strings.Contains(got, c.want) {
			t.Errorf("%q prints %s%s, want %q", c.args, got, text, c.want)
		}
	}
	for _, args := range [][]string{
		{"init", "--json", "--config", config}, {"doctor", "--json", "--set", "listen=127.0.0.1:99999", "--config", config}, {"policy", "show", "--group", "Second", "--json", "--config", config},
		{"key", "status", "--json", "--config", config}, {"tsp", "list", "--json", "--config", config},
	} {
		var english strings.Builder
		run(t.Context(), "1.2.3", "", "", args, strings.NewReader(""), &english, io.Discard, nil) // the doctor finds a fault
		if russian, _ := speaks(t, args...); russian != english.String() || russian == "" {
			t.Errorf("%q is in Russian\n%s\nand in English\n%s", args, russian, english.String())
		}
	}
}
