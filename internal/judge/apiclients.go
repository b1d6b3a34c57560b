// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// ClientOrder says what a generated client does: it gets a token and signs a document.
type ClientOrder struct {
	Server                                 string // address that the paths of the OpenAPI document are relative to
	Username, Password, ClientID, Resource string
	Document                               []byte
}

//go:embed clients/*
var clientPrograms embed.FS

// GoClient makes a Go client of an OpenAPI document with oapi-codegen, compiles a program
// with it, runs the program and returns the signature that it received.
func GoClient(t testing.TB, document []byte, order ClientOrder) []byte {
	t.Helper()
	cache := judges(t)
	generator := filepath.Join(cache, "bin", "oapi-codegen")
	for _, file := range []string{generator, filepath.Join(cache, "openapi-go", "go.mod")} {
		if _, err := os.Stat(file); err != nil {
			missing(t, "oapi-codegen and the modules its clients need are not there (./test.sh installs them)")
		}
	}
	dir := clientDir(t, document, map[string]string{"main.go.txt": "main.go", "go.mod.txt": "go.mod", "go.sum.txt": "go.sum"})
	// Code is generated for the whole document. Only the code that the program uses is
	// compiled.
	build(t, dir, generator, "-generate", "types,client", "-package", "gen", "-o", "gen/all.go", "openapi.json")
	if err := os.Remove(filepath.Join(dir, "gen", "all.go")); err != nil {
		t.Fatal(err)
	}
	build(t, dir, generator, "-generate", "types,client", "-include-tags", "Signing,Tokens", "-package", "gen", "-o", "gen/gen.go", "openapi.json")
	// The build cache knows the same code again by -trimpath, since the folder differs.
	build(t, dir, "go", "build", "-trimpath", "-o", "client", ".")
	return signatureOf(t, run(t, dir, input(t, order), filepath.Join(dir, "client")))
}

// TypeScriptClient makes a TypeScript client of an OpenAPI document with the npm package
// @hey-api/openapi-ts, compiles a program with it strictly, runs the program and returns
// the signature that it received.
func TypeScriptClient(t testing.TB, document []byte, order ClientOrder) []byte {
	t.Helper()
	modules := filepath.Join(judges(t), "openapi", "node_modules")
	for _, program := range []string{"openapi-ts", "tsc"} {
		if _, err := os.Stat(filepath.Join(modules, ".bin", program)); err != nil {
			missing(t, "the npm packages @hey-api/openapi-ts and typescript are not there (./test.sh installs them)")
		}
	}
	dir := clientDir(t, document, map[string]string{"main.ts": "main.ts"})
	// The generator finds its peer typescript next to itself, and the project's here.
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	build(t, dir, filepath.Join(modules, ".bin", "openapi-ts"), "-i", "openapi.json", "-o", "gen", "-c", "@hey-api/client-fetch")
	build(t, dir, filepath.Join(modules, ".bin", "tsc"), "--strict", "--target", "es2022", "--module", "commonjs", "--moduleResolution", "node10",
		"--lib", "es2022,dom,dom.iterable", "--skipLibCheck", "--outDir", "out", "main.ts")
	return signatureOf(t, run(t, dir, nil, "node", "out/main.js", string(input(t, order))))
}

// judges returns the folder of the judges that are not packages of the system.
func judges(t testing.TB) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		missing(t, "the user has no cache folder: "+err.Error())
	}
	return filepath.Join(cache, "tamga-judges")
}

// clientDir creates a folder with the document and the files of the program.
func clientDir(t testing.TB, document []byte, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "gen"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "openapi.json"), document)
	for from, to := range files {
		text, err := clientPrograms.ReadFile("clients/" + from)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, to), text)
	}
	return dir
}

func write(t testing.TB, file string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func input(t testing.TB, order ClientOrder) []byte {
	t.Helper()
	text, err := json.Marshal(order)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// build runs one step of making a client. Only the test as a whole bounds its time: with an empty
// cache, a compiler beside other work may take many minutes.
func build(t testing.TB, dir, program string, args ...string) {
	t.Helper()
	step(t.Context(), t, dir, nil, program, args...)
}

// run runs a client.
func run(t testing.TB, dir string, stdin []byte, program string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return step(ctx, t, dir, stdin, program, args...)
}

// step runs one step of making or using a client. It downloads nothing.
func step(ctx context.Context, t testing.TB, dir string, stdin []byte, program string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=readonly", "GOWORK=off", "CI=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("judge: %s %s: %v\n%s%s", filepath.Base(program), strings.Join(args, " "), err, out, stderr.Bytes())
	}
	return out
}

func signatureOf(t testing.TB, out []byte) (signature []byte) {
	t.Helper()
	if err := json.Unmarshal(out, &signature); err != nil {
		t.Fatalf("judge: unexpected output of a generated client: %q: %v", out, err)
	}
	return signature
}
