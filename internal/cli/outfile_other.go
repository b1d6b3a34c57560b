// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package cli

import (
	"errors"
	"io/fs"
	"os"
)

// createUnnamed returns nil: files have names here.
func createUnnamed(string, fs.FileMode) *os.File { return nil }

func name(*os.File, string) error { return errors.ErrUnsupported }

// giveOwner gives a file the owner of another one, where systems have that.
func giveOwner(*os.File, fs.FileInfo) {}
