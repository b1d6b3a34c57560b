// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// licenceFile matches the names of files that have the terms of a module.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|unlicense)([-_.].*)?$`)

// writeLicences writes the licences of Go and of every module in the programs, which it reads in the
// module cache, and of npm packages, whose directories may be among the programs. Most licences ask
// for that when a program is passed on.
func writeLicences(w io.Writer, programs []string) error {
	wanted, packages := map[string]bool{}, map[string]string{} // by name@version
	for _, p := range programs {
		if i, err := os.Stat(p); err == nil && i.IsDir() {
			s, err := readScripts(p)
			if err != nil {
				return err
			}
			packages[s.Name+"@"+s.Version] = p
			continue
		}
		info, err := buildinfo.ReadFile(p)
		if err != nil {
			return err
		}
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			wanted[m.Path+"@"+m.Version] = true
		}
	}
	var names []string
	for name := range wanted {
		names = append(names, name)
	}
	slices.Sort(names)
	dirs, err := moduleDirs(names)
	if err != nil {
		return err
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	dirs[runtime.Version()], names = strings.TrimSpace(string(root)), append([]string{runtime.Version()}, names...)
	maps.Copy(dirs, packages)
	names = append(names, slices.Sorted(maps.Keys(packages))...)
	for _, name := range names {
		entries, err := os.ReadDir(dirs[name])
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		found := false
		for _, e := range entries {
			if e.IsDir() || !licenceFile.MatchString(e.Name()) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dirs[name], e.Name()))
			if err != nil {
				return err
			}
			found = true
			if _, err := fmt.Fprintf(w, "==== %s: %s\n\n%s\n\n", name, e.Name(), strings.TrimSpace(string(text))); err != nil {
				return err
			}
		}
		if !found {
			return fmt.Errorf("%s: no file with its licence", name)
		}
	}
	return nil
}

// moduleDirs returns the directories of modules in the module cache.
func moduleDirs(names []string) (map[string]string, error) {
	dirs := map[string]string{}
	if len(names) == 0 {
		return dirs, nil
	}
	out, err := exec.Command("go", append([]string{"mod", "download", "-json"}, names...)...).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return nil, fmt.Errorf("go mod download: %w", err)
	}
	for in := json.NewDecoder(strings.NewReader(string(out))); in.More(); {
		var m struct{ Path, Version, Dir string }
		if err := in.Decode(&m); err != nil {
			return nil, err
		}
		dirs[m.Path+"@"+m.Version] = m.Dir
	}
	return dirs, nil
}
