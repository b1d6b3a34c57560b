// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xeipuuv/gojsonschema"
)

// installed skips a test without a program of others, or fails it with CI=true.
func installed(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is not installed", program)
		}
		t.Skipf("%s is not installed", program)
	}
	return path
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func write(t *testing.T, file, text string) string {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

// checkSBOM compares a bill of materials with the schema of CycloneDX and with the program and
// the npm packages in it.
func checkSBOM(t *testing.T, bom []byte, program string, packages ...string) {
	t.Helper()
	dir := strings.TrimSpace(output(t, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go"))
	loader := gojsonschema.NewSchemaLoader()
	for name, file := range map[string]string{"spdx.schema.json": "spdx.schema.json", "jsf-0.82.schema.json": "jsf-0.82.schemax.json"} {
		text, err := os.ReadFile(filepath.Join(dir, "schema", file))
		if err != nil {
			t.Fatal(err)
		}
		if err := loader.AddSchema("http://cyclonedx.org/schema/"+name, gojsonschema.NewBytesLoader(text)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "schema", "bom-1.6.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	schema, err := loader.Compile(gojsonschema.NewBytesLoader(text))
	if err != nil {
		t.Fatal(err)
	}
	result, err := schema.Validate(gojsonschema.NewBytesLoader(bom))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range result.Errors() {
		t.Errorf("the bill of materials: %s", e)
	}
	var got struct {
		Components []struct{ Name, Version string }
	}
	if err := json.Unmarshal(bom, &got); err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for _, c := range got.Components {
		listed[c.Name] = c.Version
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range info.Deps {
		if listed[m.Path] != m.Version {
			t.Errorf("%s %s is listed with version %q", m.Path, m.Version, listed[m.Path])
		}
	}
	for _, name := range packages {
		if listed[name] == "" {
			t.Errorf("%s is not listed", name)
		}
	}
	if len(listed) != len(info.Deps)+1+len(packages) || listed["std"] == "" {
		t.Errorf("%d components, want the standard library, %d modules and %q", len(listed), len(info.Deps), packages)
	}
}

// TestSBOM makes the bill of materials of this test, which is a Go program with modules too.
func TestSBOM(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var one, two bytes.Buffer
	for _, w := range []*bytes.Buffer{&one, &two} {
		if err := run([]string{"sbom", "1.2.3", self}, w); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(one.Bytes(), two.Bytes()) {
		t.Error("two runs differ")
	}
	checkSBOM(t, one.Bytes(), self)
}

// TestScripts lists an npm package of the repository beside the modules, and refuses one that the
// program does not have.
func TestScripts(t *testing.T) {
	t.Parallel()
	const pdfjs = "../internal/web/pages/pdfjs"
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var bom, text strings.Builder
	if err := run([]string{"sbom", "1.2.3", self, pdfjs}, &bom); err == nil || !strings.Contains(err.Error(), "does not have") {
		t.Errorf("a program without the scripts: %v", err)
	}
	// A program with the scripts after its end still has its build information.
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pdf.min.mjs", "pdf.worker.min.mjs"} {
		script, err := os.ReadFile(filepath.Join(pdfjs, name))
		if err != nil {
			t.Fatal(err)
		}
		program = append(program, script...)
	}
	with := write(t, filepath.Join(t.TempDir(), "program"), string(program))
	if err := run([]string{"sbom", "1.2.3", with, pdfjs}, &bom); err != nil {
		t.Fatal(err)
	}
	checkSBOM(t, []byte(bom.String()), with, "pdfjs-dist")
	if !strings.Contains(bom.String(), `"pkg:npm/pdfjs-dist@`) || !strings.Contains(bom.String(), `"pdf.worker.min.mjs"`) {
		t.Errorf("the bill of materials has no files of the package:\n%s", bom.String())
	}
	if err := run([]string{"licences", with, pdfjs}, &text); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "==== pdfjs-dist@") {
		t.Error("no licence of pdf.js")
	}
}

func TestLicences(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := run([]string{"licences", self}, &text); err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range info.Deps {
		if !strings.Contains(text.String(), "==== "+m.Path+"@"+m.Version+": ") {
			t.Errorf("no licence of %s", m.Path)
		}
	}
	if !strings.Contains(text.String(), "Copyright 2009 The Go Authors") {
		t.Error("no licence of Go")
	}
}

// TestUnit checks the bound that the hardening of the unit must keep.
func TestUnit(t *testing.T) {
	t.Parallel()
	out := output(t, installed(t, "systemd-analyze"), "security", "--offline=true", "debian/tamga.service")
	m := regexp.MustCompile(`Overall exposure level for tamga.service: ([0-9.]+)`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no level in\n%s", out)
	}
	if level, err := strconv.ParseFloat(m[1], 64); err != nil || level > 2 {
		t.Errorf("exposure level %s, want at most 2.0\n%s", m[1], out)
	}
}

// readTar returns the files of a tar.
func readTar(t *testing.T, r io.Reader) (headers map[string]*tar.Header, contents map[string][]byte) {
	t.Helper()
	headers, contents = map[string]*tar.Header{}, map[string][]byte{}
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if err == io.EOF {
			return headers, contents
		}
		if err != nil {
			t.Fatal(err)
		}
		headers[h.Name] = h
		if contents[h.Name], err = io.ReadAll(in); err != nil {
			t.Fatal(err)
		}
	}
}

// makeImage makes an image of two architectures.
func makeImage(t *testing.T, file, program string) {
	t.Helper()
	if err := run([]string{"image", "1.2.3", strings.Repeat("ab", 20), "1700000000", file, "amd64=" + program, "arm64=" + program}, nil); err != nil {
		t.Fatal(err)
	}
}

// checkImage has other programs read the image and unpack the one of amd64. It returns the directory of its
// files.
func checkImage(t *testing.T, file, version string) string {
	t.Helper()
	skopeo, umoci := installed(t, "skopeo"), installed(t, "umoci")
	for _, architecture := range []string{"amd64", "arm64"} {
		var got struct {
			Architecture, Os string
			Labels           map[string]string
			Layers           []string
		}
		text := output(t, skopeo, "--override-arch", architecture, "--override-os", "linux", "inspect", "oci-archive:"+file+":"+version)
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		if got.Architecture != architecture || got.Os != "linux" || len(got.Layers) != 1 || got.Labels["org.opencontainers.image.version"] != version {
			t.Errorf("skopeo says %+v", got)
		}
	}
	dir := t.TempDir()
	output(t, skopeo, "--override-arch", "amd64", "--override-os", "linux", "copy", "-q", "oci-archive:"+file+":"+version, "oci:"+dir+"/layout:one")
	args := []string{"unpack", "--image", dir + "/layout:one"}
	if os.Getuid() != 0 {
		args = append(args, "--rootless")
	}
	output(t, umoci, append(args, dir+"/unpacked")...)
	var spec struct {
		Process struct {
			User struct{ UID, GID int }
			Args []string
		}
	}
	text, err := os.ReadFile(dir + "/unpacked/config.json")
	if err != nil || json.Unmarshal(text, &spec) != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if spec.Process.User.UID != serviceID || spec.Process.User.GID != serviceID || spec.Process.Args[0] != "/usr/bin/tamga" {
		t.Errorf("umoci says %+v", spec)
	}
	return dir + "/unpacked/rootfs"
}

func TestImage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := write(t, dir+"/program", "a program")
	makeImage(t, dir+"/one.tar", program)
	makeImage(t, dir+"/two.tar", program)
	one, err := os.ReadFile(dir + "/one.tar")
	if err != nil {
		t.Fatal(err)
	}
	if two, err := os.ReadFile(dir + "/two.tar"); err != nil || !bytes.Equal(one, two) {
		t.Errorf("two runs differ, %v", err)
	}
	_, blobs := readTar(t, bytes.NewReader(one))
	layers, configurations := 0, 0
	for name, blob := range blobs {
		sum, isBlob := strings.CutPrefix(name, "blobs/sha256/")
		if isBlob && digest(blob) != "sha256:"+sum {
			t.Errorf("%s has other bytes than its name says", name)
		}
		var c configuration
		if json.Unmarshal(blob, &c) == nil && c.RootFS.Type != "" {
			configurations++
			if c.Config.User != "65532:65532" || !c.Created.Equal(time.Unix(1700000000, 0)) || c.Config.Healthcheck.Test[1] != "/usr/bin/tamga" {
				t.Errorf("the configuration is %+v", c)
			}
		}
		z, err := gzip.NewReader(bytes.NewReader(blob))
		if err != nil {
			continue
		}
		layers++
		headers, contents := readTar(t, z)
		for name, h := range headers {
			if h.Typeflag == tar.TypeReg && h.FileInfo().Mode()&0o111 != 0 && name != "usr/bin/tamga" {
				t.Errorf("%s can be executed", name)
			}
			owner := 0
			if name == "var/lib/tamga/" {
				owner = serviceID
			}
			if h.Uid != owner || h.Gid != owner {
				t.Errorf("%s belongs to %d:%d", name, h.Uid, h.Gid)
			}
		}
		if string(contents["usr/bin/tamga"]) != "a program" || bytes.Count(contents["etc/ssl/certs/ca-certificates.crt"], []byte("BEGIN CERT")) < 50 {
			t.Errorf("the layer has %d bytes of the program and %d of authorities", len(contents["usr/bin/tamga"]), len(contents["etc/ssl/certs/ca-certificates.crt"]))
		}
	}
	if layers != 1 || configurations != 2 { // both architectures have the same program here
		t.Errorf("%d layers and %d configurations", layers, configurations)
	}
}

// TestImageElsewhere has programs of others read an image.
func TestImageElsewhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	makeImage(t, dir+"/image.tar", write(t, dir+"/program", "a program"))
	root := checkImage(t, dir+"/image.tar", "1.2.3")
	if text, err := os.ReadFile(root + "/usr/bin/tamga"); err != nil || string(text) != "a program" {
		t.Errorf("unpacked %q, %v", text, err)
	}
}

// tryImage does in the files of an image what docs/install.md does with a container: as its user, with the
// configuration of packaging/compose, a secret that the user cannot change, and the data in its directory.
func tryImage(t *testing.T, root string) {
	t.Helper()
	for _, dir := range []string{"/etc/tamga", "/run/secrets", "/var/lib/tamga", "/tmp"} {
		if err := os.MkdirAll(root+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	output(t, "cp", "compose/tamga.yaml", root+"/etc/tamga/tamga.yaml")
	for name, text := range map[string]string{"master.key": strings.Repeat("0123456789abcdef", 4) + "\n", "olga.password": "correct horse battery staple\n"} {
		write(t, root+"/run/secrets/"+name, text)
		output(t, "chown", fmt.Sprintf("0:%d", serviceID), root+"/run/secrets/"+name)
		output(t, "chmod", "0440", root+"/run/secrets/"+name)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	inside := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "chroot", append([]string{"--userspec=65532:65532", root, "/usr/bin/tamga"}, append(args, "--config", "/etc/tamga/tamga.yaml", "--set", "listen="+address, "--set", "drain_time=0s")...)...)
		cmd.Env = []string{"CREDENTIALS_DIRECTORY=/run/secrets"}
		return cmd
	}
	for _, args := range [][]string{{"migrate"}, {"group", "add", "Default"}, {"operator", "add", "olga", "--group", "Default", "--password-file", "/run/secrets/olga.password"}} {
		if out, err := inside(args...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	var log bytes.Buffer
	server := inside("serve")
	server.Stderr = &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ready := ""
	// Only a question shows that another process is ready.
	for tick, left := time.NewTicker(100*time.Millisecond), 600; ready != "ready\n" && left > 0; left-- {
		<-tick.C
		out, _ := inside("ready").CombinedOutput()
		ready = string(out)
	}
	if err := server.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	if err := server.Wait(); ready != "ready\n" || err != nil {
		t.Fatalf("ready says %q; the server ended with %v:\n%s", ready, err, log.String())
	}
}

// TestImageStarts starts the image of a release that exists already.
func TestImageStarts(t *testing.T) {
	release := os.Getenv("TAMGA_TEST_RELEASE_DIR")
	if release == "" || os.Getuid() != 0 {
		t.Skip("set TAMGA_TEST_RELEASE_DIR to the directory of release.sh 1.2.3, as root; TestRelease does the same with its own release")
	}
	tryImage(t, checkImage(t, release+"/tamga_1.2.3_image.tar", "1.2.3"))
}

// makeDeb makes a Debian package and returns its bytes.
func makeDeb(t *testing.T, version, program, dir string) []byte {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	licences := write(t, filepath.Join(t.TempDir(), "licences.txt"), "the licences\n")
	share := t.TempDir()
	if err := os.MkdirAll(share+"/man/man1", 0o755); err != nil {
		t.Fatal(err)
	}
	plain := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	plain(share+"/man/man1/tamga.1", ".TH TAMGA 1 2023-11-14\n.SH NAME\ntamga \\- a page for tests\n")
	output(t, "gzip", "-9n", share+"/man/man1/tamga.1")
	for _, completion := range []string{"bash-completion/completions/tamga", "fish/vendor_completions.d/tamga.fish"} {
		if err := os.MkdirAll(filepath.Dir(share+"/"+completion), 0o755); err != nil {
			t.Fatal(err)
		}
		plain(share+"/"+completion, "a completion\n")
	}
	cmd := exec.Command("./deb.sh", version, "amd64", program, licences, share, dir)
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1700000000")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	deb, err := os.ReadFile(filepath.Join(dir, "tamga_"+version+"_amd64.deb"))
	if err != nil {
		t.Fatal(err)
	}
	return deb
}

// notOurs are the tags of lintian about the address of the maintainer, which is set where packages are published.
var notOurs = []string{"bogus-mail-host", "bogus-mail-host-in-debian-changelog"}

// lint has lintian read a package.
func lint(t *testing.T, deb string) {
	t.Helper()
	lintian := installed(t, "lintian")
	if out, err := exec.Command(lintian, "--fail-on=error,warning", "--allow-root", "--suppress-tags="+strings.Join(notOurs, ","), deb).CombinedOutput(); err != nil {
		t.Errorf("lintian: %v\n%s", err, out)
	}
}

func TestDebianPackage(t *testing.T) {
	t.Parallel()
	installed(t, "dpkg-deb")
	dir := t.TempDir()
	program := write(t, dir+"/program", "#!/bin/sh\necho tamga for tests\n")
	if !bytes.Equal(makeDeb(t, "1.2.3-rc1", program, dir+"/one"), makeDeb(t, "1.2.3-rc1", program, dir+"/two")) {
		t.Error("two runs differ")
	}
	deb := dir + "/one/tamga_1.2.3-rc1_amd64.deb"
	control := output(t, "dpkg-deb", "--field", deb)
	for _, want := range []string{"Package: tamga\n", "Version: 1.2.3~rc1\n", "Architecture: amd64\n"} {
		if !strings.Contains(control, want) {
			t.Errorf("no %q in\n%s", want, control)
		}
	}
	files := output(t, "dpkg-deb", "--contents", deb)
	for _, want := range []string{"-rwxr-xr-x root/root", " ./usr/bin/tamga\n", " ./usr/lib/systemd/system/tamga.service\n", " ./usr/lib/systemd/system/tamga.socket\n", " ./usr/lib/tamga/refresh-secrets\n", " ./usr/share/doc/tamga/import/users.csv\n", " ./usr/share/doc/tamga/operations.md\n", " ./usr/share/man/man1/tamga.1.gz\n", "2023-11-14 22:13 "} {
		if !strings.Contains(files, want) {
			t.Errorf("no %q in\n%s", want, files)
		}
	}
	if strings.Contains(files, "./etc") || strings.Contains(files, "./var") {
		t.Errorf("the package has files of the installation:\n%s", files)
	}
	for _, script := range []string{"postinst", "prerm", "postrm", "tamga-admin", "refresh-secrets"} {
		output(t, "sh", "-n", "debian/"+script)
	}
	t.Run("lintian", func(t *testing.T) { lint(t, deb) })
}

// TestMaintainer makes a package whose maintainer has characters that mean something to sed.
func TestMaintainer(t *testing.T) {
	t.Parallel()
	installed(t, "dpkg-deb")
	dir := t.TempDir()
	write(t, dir+"/program", "#!/bin/sh\n")
	write(t, dir+"/licences.txt", "licences\n")
	for _, sub := range []string{"bash-completion/completions", "fish/vendor_completions.d"} {
		if err := os.MkdirAll(filepath.Join(dir, "share", sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	pack := func(maintainer string) ([]byte, error) {
		cmd := exec.Command("./deb.sh", "1.2.3", "amd64", dir+"/program", dir+"/licences.txt", dir+"/share", dir)
		cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1700000000", "TAMGA_MAINTAINER="+maintainer)
		return cmd.CombinedOutput()
	}
	for _, maintainer := range []string{`R&D / Team \1 @SIZE@ <r&d/a\b@example.org>`, "Иван Петров <ivan@example.org>"} {
		if out, err := pack(maintainer); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		deb := dir + "/tamga_1.2.3_amd64.deb"
		if got := strings.TrimSpace(output(t, "dpkg-deb", "--field", deb, "Maintainer")); got != maintainer {
			t.Errorf("the maintainer is %q, want %q", got, maintainer)
		}
		if got := strings.TrimSpace(output(t, "dpkg-deb", "--field", deb, "Version")); got != "1.2.3" {
			t.Errorf("the version is %q", got)
		}
	}
	for _, maintainer := range []string{"A <a@example.org>\nDepends: other", "A", "A <a@example.org> B", "<a@example.org>"} {
		if out, err := pack(maintainer); err == nil || !strings.Contains(string(out), "TAMGA_MAINTAINER") {
			t.Errorf("%q: %v\n%s", maintainer, err, out)
		}
	}
}

// TestScriptsRefuse runs the scripts on what they must refuse before they build anything.
func TestScriptsRefuse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source := strings.TrimSpace(output(t, "git", "rev-parse", "--show-toplevel"))
	output(t, "git", "clone", "-q", "--no-checkout", "--shared", source, dir+"/clone")
	output(t, "git", "-C", dir+"/clone", "worktree", "add", "-q", "--detach", dir+"/worktree")
	output(t, "git", "-C", dir+"/clone", "reset", "-q", "--hard")
	write(t, dir+"/clone/changed", "a file that is not committed\n")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{dir + "/worktree/packaging/release.sh", "1.2.3", dir + "/out"}, "a linked worktree is not enough"},
		{[]string{dir + "/clone/packaging/release.sh", "1.2.3", dir + "/out"}, "not committed"},
		{[]string{dir + "/clone/packaging/release.sh", "1.2", dir + "/out"}, "VERSION is a number"},
		{[]string{"./arm64.sh", "./nowhere"}, "nowhere"},
	} {
		out, err := exec.Command(c.args[0], c.args[1:]...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%q: %v, want a refusal with %q\n%s", c.args, err, c.want, out)
		}
	}
}

// TestRelease makes a whole release twice, in different directories and with different caches, and
// compares. It takes many minutes.
func TestRelease(t *testing.T) {
	if os.Getenv("TAMGA_TEST_RELEASE") == "" {
		t.Skip("set TAMGA_TEST_RELEASE=1; ./test.sh --full does")
	}
	installed(t, "dpkg-deb")
	dir := t.TempDir()
	source := strings.TrimSpace(output(t, "git", "rev-parse", "--show-toplevel"))
	minisign := installed(t, "minisign")
	key, public := filepath.Join(dir, "release.key"), filepath.Join(dir, "release.pub")
	output(t, minisign, "-G", "-W", "-p", public, "-s", key)
	for _, name := range []string{"one", "another"} {
		clone := filepath.Join(dir, name, "source")
		output(t, "git", "clone", "-q", source, clone)
		cmd := exec.Command(clone+"/packaging/release.sh", "1.2.3", filepath.Join(dir, name, "out"))
		cmd.Env = append(os.Environ(), "TAMGA_RELEASE_KEY="+key)
		if name == "another" {
			cmd.Env = append(cmd.Env, "GOCACHE="+filepath.Join(dir, "cache"), "HOME="+dir, "GOPATH="+strings.TrimSpace(output(t, "go", "env", "GOPATH")), "TZ=Asia/Tokyo", "LANG=C")
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	one, another := dir+"/one/out", dir+"/another/out"
	output(t, "diff", "-r", one, another)
	verify := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
	verify.Dir = one
	if out, err := verify.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	names, err := fs.Glob(os.DirFS(one), "*")
	if err != nil || len(names) != 13 {
		t.Errorf("%q, %v", names, err)
	}
	commit := strings.TrimSpace(output(t, "git", "rev-parse", "HEAD"))
	if out := output(t, minisign, "-V", "-m", one+"/SHA256SUMS", "-p", public); !strings.Contains(out, "tamga 1.2.3, commit "+commit) {
		t.Errorf("minisign: %s", out)
	}
	for _, target := range []string{"linux_amd64", "linux_arm64", "windows_amd64.exe"} {
		program := one + "/tamga_1.2.3_" + target
		info, err := os.Stat(program)
		if err != nil {
			t.Fatal(err)
		}
		if size := info.Size(); size > 64<<20 {
			t.Errorf("%s has %d bytes, want at most 64 MiB", target, size)
		}
		bom, err := os.ReadFile(strings.TrimSuffix(program, ".exe") + ".cdx.json")
		if err != nil {
			t.Fatal(err)
		}
		checkSBOM(t, bom, program, "pdfjs-dist")
		if !strings.Contains(string(bom), commit) {
			t.Errorf("the bill of materials of %s does not name the commit", target)
		}
	}
	operations := output(t, "tar", "--list", "--verbose", "--gzip", "--file", one+"/tamga_1.2.3_operations.tar.gz")
	for _, want := range []string{"tamga-1.2.3/prometheus/tamga.rules.yaml", "tamga-1.2.3/grafana/tamga.json", "tamga-1.2.3/compose/compose.yaml", "tamga-1.2.3/kubernetes/base/kustomization.yaml", "tamga-1.2.3/kubernetes/overlays/example/config.yaml"} {
		if !strings.Contains(operations, want+"\n") {
			t.Errorf("no %s in\n%s", want, operations)
		}
	}
	version := output(t, one+"/tamga_1.2.3_linux_amd64", "--version")
	if want := fmt.Sprintf("tamga 1.2.3 %s ", commit); !strings.HasPrefix(version, want) || !strings.Contains(version, "Z go1.") || strings.Contains(version, "modified") {
		t.Errorf("the version is %q, want %q", version, want)
	}
	deb := one + "/tamga_1.2.3_amd64.deb"
	t.Run("lintian", func(t *testing.T) { lint(t, deb) })
	if files := output(t, "dpkg-deb", "--contents", deb); !strings.Contains(files, " ./usr/share/man/man1/tamga-sign.1.gz\n") || !strings.Contains(files, " ./usr/share/bash-completion/completions/tamga\n") {
		t.Errorf("the package has no manual pages or no completion:\n%s", files)
	}
	if out := output(t, "file", "-b", one+"/tamga_1.2.3_linux_amd64"); !strings.Contains(out, "statically linked") {
		t.Errorf("file says %s", out)
	}
	if root := checkImage(t, one+"/tamga_1.2.3_image.tar", "1.2.3"); os.Getuid() == 0 {
		inImage := func(args ...string) string {
			return output(t, "chroot", append([]string{"--userspec=65532:65532", root, "/usr/bin/tamga"}, args...)...)
		}
		if got := inImage("version"); got != version {
			t.Errorf("in the image: %q, want %q", got, version)
		}
		tryImage(t, root)
	}
	t.Run("Debian", func(t *testing.T) { tryDebian(t, one) })
	older := olderPackage(t)
	t.Run("systemd", func(t *testing.T) { trySystemd(t, older, deb) })
	t.Run("Upgrade", func(t *testing.T) { tryUpgrade(t, older, deb) })
	if arm, err := exec.LookPath("qemu-aarch64"); err == nil {
		if got := output(t, arm, one+"/tamga_1.2.3_linux_arm64", "version"); !strings.HasPrefix(got, "tamga 1.2.3 "+commit) || !strings.Contains(got, "linux/arm64") {
			t.Errorf("on arm64: %q", got)
		}
	}
}
