// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"errors"
	"testing"

	"tamga/internal/config"
)

// TestAddMasterKey checks that a new key is the active one and that the rest of a file stays as it is.
func TestAddMasterKey(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"block", "# a\nmaster_keys:\n  active: \"1\" # seals\n  files:\n    # the first\n    \"1\": a.key\nlisten: x\n",
			"# a\nmaster_keys:\n  active: \"2\" # seals\n  files:\n    # the first\n    \"2\": \"b.key\"\n    \"1\": a.key\nlisten: x\n"},
		{"files first", "master_keys:\n    files:\n        '1': a.key\n        '0': z.key\n    active: '1'\n",
			"master_keys:\n    files:\n        \"2\": \"b.key\"\n        '1': a.key\n        '0': z.key\n    active: \"2\"\n"},
		{"one line", "master_keys: {active: '1', files: {'1': master.key}} # keys\n", "master_keys: {active: \"2\", files: {\"2\": \"b.key\", '1': master.key}} # keys\n"},
		{"one line, files first", "master_keys: {files: {'1': master.key}, active: old}", "master_keys: {files: {\"2\": \"b.key\", '1': master.key}, active: \"2\"}"},
		{"two lines", "master_keys:\n  active: '1'\n  files: {'1': a.key}\n", "master_keys:\n  active: \"2\"\n  files: {\"2\": \"b.key\", '1': a.key}\n"},
		{"Cyrillic before it", "master_keys: {files: {'ключ': 'файл'}, active: 'ключ'}\n", "master_keys: {files: {\"2\": \"b.key\", 'ключ': 'файл'}, active: \"2\"}\n"},
		{"no keys", "listen: x\n", ""},
		{"empty", "", ""},
		{"no files", "master_keys: {active: '1', files: {}}\n", ""},
		{"anchor", "a: &f {'1': a.key}\nmaster_keys: {active: '1', files: *f}\n", ""},
		{"the name is taken", "master_keys: {active: '1', files: {'1': a.key, '2': c.key}}\n", ""},
		{"text over lines", "master_keys:\n  active: >-\n    1\n  files: {'1': a.key}\n", ""},
		{"not YAML", "a: [", ""},
	} {
		got, err := config.AddMasterKey([]byte(c.text), "2", "b.key")
		if string(got) != c.want || (c.want == "") != errors.Is(err, config.ErrEdit) {
			t.Errorf("%s: %v\n%s", c.name, err, got)
		}
	}
}
