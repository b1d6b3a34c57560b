// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// writeSBOM writes the bill of materials of a Go program: what its build information lists, and the npm
// packages in directories. version is the version of the program.
func writeSBOM(w io.Writer, version, program string, directories []string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	sum := sha256.Sum256(content)
	name := "tamga"
	own := cdx.Component{
		BOMRef: "pkg:generic/" + name + "@" + version, Type: cdx.ComponentTypeApplication, Name: name, Version: version,
		PackageURL: "pkg:generic/" + name + "@" + version,
		Hashes:     &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
		Licenses:   &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
		Properties: &[]cdx.Property{
			{Name: "tamga:commit", Value: settings["vcs.revision"]},
			{Name: "tamga:platform", Value: settings["GOOS"] + "/" + settings["GOARCH"]},
		},
	}
	goVersion := strings.TrimPrefix(info.GoVersion, "go")
	components := []cdx.Component{{
		BOMRef: "pkg:golang/std@" + goVersion, Type: cdx.ComponentTypeLibrary, Name: "std", Version: goVersion,
		PackageURL: "pkg:golang/std@" + goVersion,
	}}
	for _, m := range info.Deps {
		c, err := component(m)
		if err != nil {
			return err
		}
		components = append(components, c)
	}
	for _, dir := range directories {
		p, err := readScripts(dir)
		if err != nil {
			return err
		}
		c, err := p.component(content)
		if err != nil {
			return err
		}
		components = append(components, c)
	}
	var refs []string
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: settings["vcs.time"], Component: &own}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: own.BOMRef, Dependencies: &refs}}
	return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6)
}

// component returns a module of a program. Its hash is the one that go.sum has.
func component(m *debug.Module) (cdx.Component, error) {
	if m.Replace != nil {
		m = m.Replace
	}
	url := "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(m.Version, "+", "%2B")
	c := cdx.Component{BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: url}
	sum, ok := strings.CutPrefix(m.Sum, "h1:")
	hash, err := base64.StdEncoding.DecodeString(sum)
	if !ok || err != nil || len(hash) != sha256.Size {
		return c, fmt.Errorf("module %s: no checksum in the program; build it without a replaced directory", m.Path)
	}
	c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(hash)}}
	return c, nil
}

// scripts is an npm package that is kept in the repository and built into the program.
type scripts struct{ Name, Version, License, dir string }

// readScripts reads the package.json of a package.
func readScripts(dir string) (p scripts, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return p, fmt.Errorf("%s: %w", dir, err)
	}
	if p.dir = dir; p.Name == "" || p.Version == "" || p.License == "" {
		return p, fmt.Errorf("%s: package.json has no name, version or license", dir)
	}
	return p, nil
}

// component returns the package with its scripts, each of which must be in the program.
func (p scripts) component(program []byte) (cdx.Component, error) {
	url := "pkg:npm/" + p.Name + "@" + p.Version
	c := cdx.Component{
		BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: p.Name, Version: p.Version, PackageURL: url,
		Licenses: &cdx.Licenses{{License: &cdx.License{ID: p.License}}},
	}
	names, err := filepath.Glob(filepath.Join(p.dir, "*.*js"))
	if err != nil {
		return c, err
	}
	var files []cdx.Component
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return c, err
		}
		if !bytes.Contains(program, text) {
			return c, fmt.Errorf("the program does not have %s", name)
		}
		sum := sha256.Sum256(text)
		files = append(files, cdx.Component{
			Type: cdx.ComponentTypeFile, Name: filepath.Base(name), Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
		})
	}
	if len(files) == 0 {
		return c, fmt.Errorf("%s: no script", p.dir)
	}
	c.Components = &files
	return c, nil
}
