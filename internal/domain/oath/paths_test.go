// SPDX-License-Identifier: Apache-2.0

package oath_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Attack class 3, bypass of the counter by another flow: codes are compared in one place,
// which counts the attempt first. A second place fails this test.
func TestCodesAreJudgedInOnePlace(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	var got []string
	for _, dir := range []string{"internal", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(name string, d fs.DirEntry, err error) error {
			if err == nil && (d.Name() == "storetest" || d.Name() == "cluster" && d.IsDir()) {
				return fs.SkipDir // for tests only; clients of package cluster make codes
			}
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			relative, err := filepath.Rel(root, name)
			for _, call := range []string{"otp.New(", ".MatchPair(", "s.match(", ".BeginOathAttempt("} {
				if n := strings.Count(string(text), call); n > 0 {
					got = append(got, filepath.ToSlash(relative)+" "+call+strings.Repeat(" again", n-1))
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(got)
	want := []string{
		"internal/domain/oath/check.go .BeginOathAttempt(",
		"internal/domain/oath/check.go .MatchPair(",
		"internal/domain/oath/check.go otp.New(",
		"internal/domain/oath/check.go s.match(",
		"internal/domain/oath/stock/stock.go otp.New(", // checks the parameters of a token in a file
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
