// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Outfile is a file that gets its name only when it is complete. Until then it has none, so that nothing is left of it
// when the process is killed, or a temporary name in the same directory, where the system wants one. Its mode
// is 0644 minus the umask, or 0600.
type Outfile struct {
	target string
	force  bool
	file   *os.File
	part   string // temporary name, "" for none
	direct bool   // the target is a device or a pipe and is written in place
	// replaced is the file as it was when it was read, for a file that takes its place; nil for others.
	replaced fs.FileInfo
}

// unnamed creates a file without a name; nil: it must have one. Tests change it.
var unnamed = createUnnamed

// CheckTarget returns an error if the target exists and force is false, or if it is a directory. A
// command calls it before its work.
func CheckTarget(target string, force bool) error {
	info, err := os.Lstat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory; name a file with -o", target)
	case force:
		return nil
	}
	// Writing to a device or a pipe overwrites nothing.
	if real, err := os.Stat(target); err == nil && !real.Mode().IsRegular() && !real.IsDir() {
		return nil
	}
	return errExists(target)
}

func errExists(target string) error {
	return fmt.Errorf("%s already exists; name another file with -o, or overwrite it with --force", target)
}

// CreateOutfile creates the file, without its name. The caller must call Discard, which does
// nothing after Commit.
func CreateOutfile(target string, force bool) (*Outfile, error) {
	return createOutfile(target, force, 0o644)
}

// CreatePrivateOutfile is CreateOutfile for a file that only its owner may read: its mode is 0600.
func CreatePrivateOutfile(target string, force bool) (*Outfile, error) {
	return createOutfile(target, force, 0o600)
}

// CreateReplacement creates a file that takes the place of a regular one, with its mode and, where the system allows
// it, its owner. replaced is what os.Stat said before that file was read: if it has changed since, Commit refuses.
func CreateReplacement(target string, replaced fs.FileInfo) (*Outfile, error) {
	o, err := createOutfile(target, true, 0o600)
	if err != nil {
		return nil, err
	}
	if !o.direct {
		o.replaced = replaced
	}
	return o, nil
}

// replace prepares the file to take the place of the one that it replaces.
func (o *Outfile) replace() error {
	now, err := os.Stat(o.target)
	if err != nil {
		return err
	}
	if before := o.replaced; !os.SameFile(before, now) || before.Size() != now.Size() || !before.ModTime().Equal(now.ModTime()) {
		return fmt.Errorf("%s was changed while it was read; nothing was written, run the command again", o.target)
	}
	giveOwner(o.file, now) // without the right to do that the file is ours
	return o.file.Chmod(now.Mode().Perm())
}

func createOutfile(target string, force bool, mode fs.FileMode) (*Outfile, error) {
	if err := CheckTarget(target, force); err != nil {
		return nil, err
	}
	if info, err := os.Stat(target); err == nil {
		if !info.Mode().IsRegular() {
			f, err := os.OpenFile(target, os.O_WRONLY, 0)
			return &Outfile{target: target, file: f, direct: true}, err
		}
		// A symbolic link stays: the file that it names is replaced.
		if target, err = filepath.EvalSymlinks(target); err != nil {
			return nil, err
		}
	}
	if f := unnamed(filepath.Dir(target), mode); f != nil {
		return &Outfile{target: target, force: force, file: f}, nil
	}
	part := partOf(target)
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, err
	}
	return &Outfile{target: target, force: force, file: f, part: part}, nil
}

// partOf returns a temporary name for a file.
func partOf(target string) string {
	return filepath.Join(filepath.Dir(target), "."+filepath.Base(target)+"."+rand.Text()[:8]+".part")
}

// Write implements io.Writer.
func (o *Outfile) Write(b []byte) (int, error) { return o.file.Write(b) }

// Commit gives the file its name. Without force it never replaces a file, not even one that appeared
// after CheckTarget.
func (o *Outfile) Commit() error {
	f := o.file
	if o.direct {
		o.file = nil
		return f.Close()
	}
	if o.replaced != nil {
		if err := o.replace(); err != nil {
			return err
		}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if o.part == "" {
		err := name(f, o.target)
		switch {
		case err == nil:
			o.file = nil
			return f.Close()
		case !errors.Is(err, fs.ErrExist):
			return err
		case !o.force:
			return errExists(o.target)
		}
		// Only a file with a name can replace another one.
		part := partOf(o.target)
		if err := name(f, part); err != nil {
			return err
		}
		o.part = part
	}
	if err := f.Close(); err != nil {
		return err
	}
	if !o.force {
		// os.Link fails if the target exists, where os.Rename would replace it.
		switch err := os.Link(o.part, o.target); {
		case err == nil:
			o.file = nil
			return os.Remove(o.part)
		case errors.Is(err, fs.ErrExist):
			return errExists(o.target)
		}
		// This file system has no hard links. A file that appears after this check is replaced.
		if err := CheckTarget(o.target, false); err != nil {
			return err
		}
	}
	if err := os.Rename(o.part, o.target); err != nil {
		return err
	}
	o.file = nil
	return nil
}

// Discard removes the file.
func (o *Outfile) Discard() {
	if o.file == nil {
		return
	}
	o.file.Close()
	if o.part != "" {
		os.Remove(o.part)
	}
	o.file = nil
}
