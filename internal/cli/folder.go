// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// HasFolder reports whether one of the arguments of a command is a folder.
func HasFolder(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		info, err := os.Stat(name)
		return err == nil && info.IsDir()
	})
}

// EachFile calls work for every file of the arguments and below their folders, for up to atOnce files at once, and done
// with each result, in the order of the names and one after the other. Links are not followed. work gets the error of a name or a folder that
// cannot be read. After ctx has ended, no further file begins.
func EachFile[R any](ctx context.Context, names []string, atOnce int, work func(file string, err error) R, done func(R)) {
	// The channel holds the results that are being made, in order, so it bounds how many there are.
	results := make(chan chan R, max(0, atOnce-1))
	go func() {
		defer close(results)
		walk(names, func(file string, err error) bool {
			one := make(chan R, 1)
			select {
			case results <- one:
			case <-ctx.Done():
				return false
			}
			go func() { one <- work(file, err) }()
			return true
		})
	}()
	for one := range results {
		done(<-one)
	}
}

// walk calls do for each file of the arguments and below folders, until do returns false.
func walk(names []string, do func(file string, err error) bool) {
	for _, name := range names {
		stopped := false
		_ = filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.Type().IsRegular() {
				if path == name && !entry.IsDir() {
					err = fmt.Errorf("%s is no file and no folder", name)
				} else {
					return nil
				}
			}
			if stopped = !do(path, err); stopped {
				return fs.SkipAll
			}
			return nil // do has the errors
		})
		if stopped {
			return
		}
	}
}
