// SPDX-License-Identifier: Apache-2.0

// Package archive reads and writes the directory of a backup: files, a manifest that
// describes them, and their checksums.
//
// Begin with [Create] and [Open]. A directory appears under its name when all of it is
// durable, and Open reads every file before it returns, so a half or damaged backup is never
// taken for a whole one. With recipients each file but the manifest is encrypted with age
// (age-encryption.org/v1). The checksums are not a signature: who can write to the directory
// can replace the backup.
//
// The package does not know what the files mean.
package archive

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"filippo.io/age"

	"tamga/internal/files"
)

const (
	manifestFile  = "manifest.json"
	checksumsFile = "SHA256SUMS" // as sha256sum writes it; the last file of a backup
	encryptedEnd  = ".age"

	mostManifest = 1 << 20
	mostFiles    = 100
)

// ParseRecipients reads recipients of age as text, such as "age1...".
func ParseRecipients(texts []string) ([]age.Recipient, error) {
	var list []age.Recipient
	for _, text := range texts {
		r, err := age.ParseRecipients(strings.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("archive: the recipient %q: want the public key of age-keygen (age1...): %w", text, err)
		}
		list = append(list, r...)
	}
	return list, nil
}

// ParseIdentities reads a file of age-keygen. The error does not quote it.
func ParseIdentities(text []byte) ([]age.Identity, error) {
	list, err := age.ParseIdentities(bytes.NewReader(text))
	if err != nil {
		return nil, errors.New("archive: want a file of age-keygen, with lines of AGE-SECRET-KEY")
	}
	return list, nil
}

// Writer writes a backup.
type Writer struct {
	dir, part  string
	recipients []age.Recipient
	sums       []string // lines of checksumsFile
	done       bool
}

// Create begins a backup. dir must not exist.
func Create(dir string, recipients []age.Recipient) (*Writer, error) {
	dir = filepath.Clean(dir)
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = fmt.Errorf("archive: %s exists: name a new directory", dir)
		}
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	part, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".part-")
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	return &Writer{dir: dir, part: part, recipients: recipients}, nil
}

// Add adds a file, which write writes.
func (w *Writer) Add(name string, write func(io.Writer) error) error {
	if len(w.recipients) > 0 {
		name += encryptedEnd
	}
	return w.add(name, func(out io.Writer) error {
		if len(w.recipients) == 0 {
			return write(out)
		}
		encrypted, err := age.Encrypt(out, w.recipients...)
		if err != nil {
			return err
		}
		if err := write(encrypted); err != nil {
			return err // without the end of the file, which then does not decrypt
		}
		return encrypted.Close()
	})
}

func (w *Writer) add(name string, write func(io.Writer) error) error {
	f, err := os.OpenFile(filepath.Join(w.part, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	sum := sha256.New()
	buffered := bufio.NewWriterSize(io.MultiWriter(f, sum), 256<<10)
	err = write(buffered)
	if err = errors.Join(err, buffered.Flush()); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("archive: writing %s: %w", name, err)
	}
	w.sums = append(w.sums, hex.EncodeToString(sum.Sum(nil))+"  "+name+"\n")
	return nil
}

// Finish adds the manifest, which is JSON, and makes the backup appear under its name.
func (w *Writer) Finish(manifest any) error {
	text, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		return err
	}
	err = w.add(manifestFile, func(out io.Writer) error {
		_, err := out.Write(append(text, '\n'))
		return err
	})
	if err != nil {
		return err
	}
	all := strings.Join(w.sums, "")
	err = w.add(checksumsFile, func(out io.Writer) error {
		_, err := io.WriteString(out, all)
		return err
	})
	if err != nil {
		return err
	}
	if err := files.SyncDir(w.part); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	if err := os.Rename(w.part, w.dir); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	w.done = true
	if err := files.SyncDir(filepath.Dir(w.dir)); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	return nil
}

// Close removes what was written, unless the backup is finished.
func (w *Writer) Close() error {
	if w.done {
		return nil
	}
	w.done = true
	return os.RemoveAll(w.part)
}

// Reader reads a backup.
type Reader struct {
	dir        string
	identities []age.Identity
	names      map[string]bool // in the directory
}

// Open reads the manifest of a backup into manifest, and compares all files with their
// checksums.
func Open(ctx context.Context, dir string, identities []age.Identity, manifest any) (*Reader, error) {
	sums, err := bounded(filepath.Join(dir, checksumsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("archive: %s is not a whole backup: it has no file %s", dir, checksumsFile)
	}
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	r := &Reader{dir: dir, identities: identities, names: map[string]bool{}}
	for line := range strings.Lines(string(sums)) {
		sum, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		want, err := hex.DecodeString(sum)
		if !ok || err != nil || len(want) != sha256.Size || name != filepath.Base(name) || name == "." || name == ".." || len(r.names) == mostFiles {
			return nil, fmt.Errorf("archive: %s in %s is damaged", checksumsFile, dir)
		}
		if err := compare(ctx, filepath.Join(dir, name), want); err != nil {
			return nil, err
		}
		r.names[name] = true
	}
	if !r.names[manifestFile] {
		return nil, fmt.Errorf("archive: %s in %s is damaged: it has no line for %s", checksumsFile, dir, manifestFile)
	}
	text, err := bounded(filepath.Join(dir, manifestFile))
	if err == nil {
		err = json.Unmarshal(text, manifest)
	}
	if err != nil {
		return nil, fmt.Errorf("archive: reading the manifest: %w", err)
	}
	return r, nil
}

func bounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostManifest+1))
	if err == nil && len(text) > mostManifest {
		err = fmt.Errorf("%s is larger than %d bytes", path, mostManifest)
	}
	return text, err
}

// compare returns an error if a file does not have a checksum.
func compare(ctx context.Context, path string, want []byte) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("archive: the backup is not whole: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, reading{ctx, f}); err != nil {
		return fmt.Errorf("archive: reading %s: %w", path, err)
	}
	if !bytes.Equal(sum.Sum(nil), want) {
		return fmt.Errorf("archive: %s is damaged: its checksum differs from the one in %s", path, checksumsFile)
	}
	return nil
}

// reading reads until ctx ends.
type reading struct {
	ctx context.Context
	io.Reader
}

func (r reading) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// Read calls read with the content of a file of Add.
func (r *Reader) Read(ctx context.Context, name string, read func(io.Reader) error) error {
	path, encrypted := name, false
	if r.names[name+encryptedEnd] {
		path, encrypted = name+encryptedEnd, true
	} else if !r.names[name] {
		return fmt.Errorf("archive: the backup has no file %s", name)
	}
	f, err := os.Open(filepath.Join(r.dir, path))
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	defer f.Close()
	var in io.Reader = bufio.NewReaderSize(reading{ctx, f}, 256<<10)
	if encrypted {
		if len(r.identities) == 0 {
			return errors.New("archive: the backup is encrypted: give the file with the secret key of age")
		}
		if in, err = age.Decrypt(in, r.identities...); err != nil {
			var other *age.NoIdentityMatchError
			if errors.As(err, &other) {
				return errors.New("archive: the backup is encrypted for another key of age")
			}
			return fmt.Errorf("archive: decrypting %s: %w", path, err)
		}
	}
	return read(in)
}
