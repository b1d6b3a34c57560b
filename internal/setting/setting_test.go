// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

type sample struct {
	Name string `yaml:"name" default:"a" rule:"required" want:"a name"`
	Deep struct {
		Life  time.Duration `yaml:"life" default:"5m" min:"1s" max:"10m"`
		Room  Size          `yaml:"room" default:"64MiB" above:"0"`
		Share float64       `yaml:"share" default:"0.5" max:"1"`
		Pause time.Duration `yaml:"pause" min:"0s"`
	} `yaml:"deep"`
	List []string `yaml:"list" default:"[a, b]"`
	Mode string   `yaml:"mode" default:"on" oneof:"on off auto"`
	Site string   `yaml:"site" rule:"url"`
	Path string   `yaml:"path" default:"/a" rule:"path"`
	Many []struct {
		Count int `yaml:"count" above:"0"`
	} `yaml:"many"`
}

type part struct {
	Size int               `yaml:"size" default:"3"`
	Map  map[string]string `yaml:"map"`
}

func TestDefaults(t *testing.T) {
	var s sample
	Defaults(&s)
	if s.Name != "a" || s.Deep.Life != 5*time.Minute || s.Deep.Room != 64<<20 || s.Deep.Share != 0.5 || !slices.Equal(s.List, []string{"a", "b"}) {
		t.Errorf("got %+v", s)
	}
	if faults := Check("", &s); len(faults) > 0 {
		t.Errorf("the defaults: %v", faults)
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"name: ''", "x.name: want a name"},
		{"deep: {life: 0s}", "x.deep.life: want 1s to 10m"},
		{"deep: {life: 11m}", "x.deep.life: want 1s to 10m"},
		{"deep: {room: 0}", "x.deep.room: want a size above 0"},
		{"deep: {share: 1.5}", "x.deep.share: want at most 1"},
		{"deep: {pause: -1s}", "x.deep.pause: want 0s or more"},
		{"mode: maybe", "x.mode: want on, off or auto"},
		{"site: example.org", "x.site: want http:// or https:// and a host"},
		{"path: /a/b", "x.path: want one path element, such as /a"},
		{"many: [{count: 1}, {}]", "x.many[1].count: want more than 0"},
	} {
		var s sample
		Defaults(&s)
		if err := Decode([]byte(c.text), &s, nil); err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		if err := errors.Join(Check("x", &s)...); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
		}
	}
}

// TestDecode checks that a file holds the settings of several packages, and that unknown settings
// are all reported at once with their names.
func TestDecode(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"# nothing", ""},
		{"name:", ""},
		{"deep: {part: {size: 4}}\nother: {one: {map: {b: 2}}}", ""},
		{"x: &x {size: 4}", "line 1: x: unknown setting"},
		{"deep: {part: {sise: 4}}", "line 1: deep.part.sise: unknown setting; did you mean deep.part.size?"},
		{"name: a\nother:\n  two: 1\n  one: {map: 1, x: 2}\ny: 1", "line 3: other.two: unknown setting\nline 4: other.one.map: want names with values, such as {a: b}, not \"1\"\nline 4: other.one.x: unknown setting\nline 5: y: unknown setting"},
		{"many: [{count: 1}, {n: 1}]", "line 1: many.n: unknown setting"},
		{"deep: 1", "line 1: deep: want settings by their names"},
		{"other: [1]", "line 1: other: want settings by their names"},
		{"other: {one: 1}", "line 1: other.one: want settings by their names"},
		{"name: a\nname: b", "already defined at line 1"},
		{"other: {one: {size: 1}, one: {size: 2}}", "already defined at line 1"},
		{"deep: &a {<<: *a}", "contains itself"},
		{"deep: {life: soon}", `line 1: deep.life: want a time, such as 300s, 15m or 1h, not "soon"`},
		{"deep: {part: {size: much}}", `line 1: deep.part.size: want a whole number, not "much"`},
		{"many: [{count: x}]", `line 1: many.count: want a whole number, not "x"`},
		{"many: x", `line 1: many: want a list, such as [a, b], not "x"`},
		{"[1]", "line 1: the file: want settings by their names, such as"},
		{"deep: {part: {size: &n 4}}\nother: {one: {size: *n}}", ""},
		{"other: {one: {<<: {size: 4}}}", ""},
		{"other: {one: {<<: [{size: 4}, {sise: 4}]}}", "line 1: other.one.sise: unknown setting"},
	} {
		var s sample
		var inside, outside part
		inside.Size, outside.Map = 1, map[string]string{"a": "1"}
		err := Decode([]byte(c.text), &s, []Section{{"deep.part", &inside}, {"other.one", &outside}})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
		if strings.Contains(c.text, "map: {b") && (inside.Size != 4 || len(outside.Map) != 2) {
			t.Errorf("%s: got %+v and %+v", c.text, inside, outside)
		}
	}
}

func TestEncode(t *testing.T) {
	var s struct {
		Name string `yaml:"name"`
	}
	document, err := Encode(&s, []Section{{"other.one", &part{Size: 1}}, {"other.two", &part{Size: 2}}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(document)
	if want := "name: \"\"\nother:\n    one:\n        size: 1\n        map: null\n    two:\n        size: 2\n        map: null\n"; err != nil || string(text) != want {
		t.Errorf("got %s, %v", text, err)
	}
}

func TestSize(t *testing.T) {
	for _, c := range []struct {
		text string
		want Size
	}{{"512", 512}, {"10MiB", 10 << 20}, {"1 KiB", 1 << 10}, {"many", -1}, {"-1", -1}, {"9999999999999GiB", -1}} {
		var s Size
		if err := s.UnmarshalText([]byte(c.text)); (err == nil) != (c.want >= 0) || err == nil && s != c.want {
			t.Errorf("%s: %d, %v", c.text, s, err)
		}
	}
}

// TestValue finds a setting by its name in the file.
func TestValue(t *testing.T) {
	settings := struct {
		Name string `yaml:"name"`
		Part struct {
			Wait time.Duration `yaml:"wait"`
			Size Size          `yaml:"size"`
		} `yaml:"part"`
	}{Name: "a"}
	settings.Part.Wait, settings.Part.Size = 90*time.Second, 3<<20
	for name, want := range map[string]any{"name": "a", "part.wait": 90 * time.Second, "part.size": Size(3 << 20), "part": nil, "size": nil} {
		if got := Value(&settings, name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}
