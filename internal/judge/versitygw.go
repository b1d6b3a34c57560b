// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// S3Server is a Versity S3 Gateway on a directory, on loopback. It checks the signature
// of every request.
type S3Server struct {
	Endpoint             string
	AccessKey, SecretKey string
	Bucket               string // an existing bucket
	Dir                  string // the content of the bucket, as files
}

// S3 starts a server with an empty bucket. It runs until the test ends.
func S3(t testing.TB) *S3Server {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(cache, "tamga-judges", "bin", "versitygw")
	if _, err := os.Stat(program); err != nil {
		missing(t, "the S3 server is not there (GOBIN=~/.cache/tamga-judges/bin go install github.com/versity/versitygw/cmd/versitygw@v1.8.0)")
	}
	root := t.TempDir()
	s := &S3Server{AccessKey: "tamga-access", SecretKey: "tamga-secret-of-tests", Bucket: "documents"}
	s.Dir = filepath.Join(root, s.Bucket)
	if err := os.Mkdir(s.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	host := ownHost()
	address := fmt.Sprintf("%s:%d", host, freePort(t, host))
	s.Endpoint = "http://" + address
	cmd := exec.Command(program, "--port", address, "--quiet", "posix", root)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+s.AccessKey, "ROOT_SECRET_KEY="+s.SecretKey)
	if err := cmd.Start(); err != nil {
		t.Fatalf("judge: %s: %v", program, err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	wait(t, s.Endpoint)
	return s
}

// Files lists the files below the bucket's directory, including unfinished uploads.
func (s *S3Server) Files(t testing.TB) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(s.Dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			name, _ := filepath.Rel(s.Dir, path)
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
