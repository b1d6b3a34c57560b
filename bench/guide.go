// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	pprof "github.com/google/pprof/profile"
)

// writeGuide merges profiles of the service into the file that guides the compiler of a release
// (go build -pgo). The compiler needs the names of functions, the lines of calls within them and
// how often they were sampled. Nothing else is kept, so the file names no paths and no times.
func writeGuide(file string, profiles []string) error {
	var all []*pprof.Profile
	for _, name := range profiles {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		p, err := pprof.ParseData(data)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		plain(p)
		all = append(all, p)
	}
	if len(all) == 0 {
		return errors.New("there are no profiles to guide the compiler with")
	}
	merged, err := pprof.Merge(all)
	if err != nil {
		return err
	}
	plain(merged)
	var out bytes.Buffer
	if err := merged.Write(&out); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o644)
}

// plain removes what the compiler does not need.
func plain(p *pprof.Profile) {
	for _, f := range p.Function {
		f.SystemName, f.Filename = f.Name, ""
	}
	for _, l := range p.Location {
		l.Mapping, l.Address = nil, 0
	}
	for _, s := range p.Sample {
		s.Label, s.NumLabel, s.NumUnit = nil, nil, nil
	}
	p.Mapping, p.Comments = nil, nil
	p.TimeNanos, p.DurationNanos = 0, 0
}
