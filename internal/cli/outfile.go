package cli

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Outfile is a file that appears under its name only when it is complete. Until
// then it grows beside that name, readable as the umask allows (0644 at most).
type Outfile struct {
	target string
	force  bool
	file   *os.File
	direct bool // the target is a device or a pipe and is written as it is
}

// CheckTarget says early, before any work, that a file would be overwritten.
func CheckTarget(target string, force bool) error {
	info, err := os.Lstat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory: name a file with -o", target)
	case force:
		return nil
	}
	// A device or a pipe loses nothing by being written to.
	if real, err := os.Stat(target); err == nil && !real.Mode().IsRegular() && !real.IsDir() {
		return nil
	}
	return errExists(target)
}

func errExists(target string) error {
	return fmt.Errorf("%s exists already and is left alone: name another file with -o, or overwrite it with --force", target)
}

// CreateOutfile begins the file. Discard it in any case; that does nothing after
// a commit.
func CreateOutfile(target string, force bool) (*Outfile, error) {
	if err := CheckTarget(target, force); err != nil {
		return nil, err
	}
	if info, err := os.Stat(target); err == nil {
		if !info.Mode().IsRegular() {
			f, err := os.OpenFile(target, os.O_WRONLY, 0)
			return &Outfile{target: target, file: f, direct: true}, err
		}
		// A link keeps leading to the file: what it leads to is replaced.
		if target, err = filepath.EvalSymlinks(target); err != nil {
			return nil, err
		}
	}
	name := filepath.Join(filepath.Dir(target), "."+filepath.Base(target)+"."+rand.Text()[:8]+".part")
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	return &Outfile{target: target, force: force, file: f}, nil
}

func (o *Outfile) Write(b []byte) (int, error) { return o.file.Write(b) }

// Commit gives the file its name. Without force it never replaces a file, not
// even one that appeared since checkTarget.
func (o *Outfile) Commit() error {
	f := o.file
	if o.direct {
		o.file = nil
		return f.Close()
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if !o.force {
		// A link fails where a rename would replace.
		switch err := os.Link(f.Name(), o.target); {
		case err == nil:
			o.file = nil
			return os.Remove(f.Name())
		case errors.Is(err, fs.ErrExist):
			return errExists(o.target)
		}
		// This file system has no hard links: a moment remains between look and rename.
		if err := CheckTarget(o.target, false); err != nil {
			return err
		}
	}
	if err := os.Rename(f.Name(), o.target); err != nil {
		return err
	}
	o.file = nil
	return nil
}

// Discard removes what was written under the temporary name.
func (o *Outfile) Discard() {
	if o.file == nil {
		return
	}
	o.file.Close()
	if !o.direct {
		os.Remove(o.file.Name())
	}
	o.file = nil
}
