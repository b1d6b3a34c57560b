// SPDX-License-Identifier: Apache-2.0

package phone

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"tamga/gost/streebog"
	"tamga/internal/cli"
	devmsg "tamga/internal/domain/device/message"
)

// maxShown is the largest document that is written to standard output, in bytes. It is checked in memory
// first.
const maxShown = 64 << 20

// documentTimeout is the timeout of reading one document.
const documentTimeout = 10 * time.Minute

type phoneDocument struct {
	phoneFlags
	ID       string `arg:"" help:"Identifier of the operation; tamga phone list prints it."`
	Index    int    `arg:"" help:"Index of the document, from 0; tamga phone show prints it."`
	Original bool   `help:"Save the content of a signed message that is signed again. Default: the document itself."`
	Output   string `short:"o" placeholder:"FILE" help:"File to write, - for standard output. Default: the name of the document in this directory."`
	Force    bool   `help:"Overwrite the file."`
}

// fetched is the answer of the command with --json.
type fetched struct {
	File   string `json:"file"` // "" for standard output
	Size   int64  `json:"size"`
	Digest string `json:"digest"` // hexadecimal
}

func (v *phoneDocument) Run(c *cli.Console) error {
	p, err := openRegistered(v.File)
	if err != nil {
		return err
	}
	if v.JSON && v.Output == "-" {
		return errors.New("--json and -o -: both write to standard output")
	}
	o, err := v.readOperation(c, p, v.ID)
	if err != nil {
		return err
	}
	if v.Index < 0 || v.Index >= len(o.fields.Documents) {
		return fmt.Errorf("the operation has %d documents, with indexes from 0", len(o.fields.Documents))
	}
	d := o.fields.Documents[v.Index]
	size, digest, path := d.Size, d.Digest, o.Documents[v.Index].Path
	if v.Original {
		if d.Original == nil {
			return fmt.Errorf("document %d has no original", v.Index)
		}
		size, digest, path = d.Original.Size, d.Original.Digest, o.Documents[v.Index].Original.Path
	}
	if d.Hash != "" {
		return fmt.Errorf("the client sent a hash instead of document %d: only the client has the document", v.Index)
	}
	switch {
	case path != "" && !strings.HasPrefix(path, "/"):
		return errors.New("the service names an address of the document that is not its own")
	case path == "":
		return fmt.Errorf("document %d has %d bytes, which is more than the service lets a device read", v.Index, size)
	}
	target := v.Output
	if target == "" {
		target = fileName(d.Name, v.Index)
	}
	if target == "-" {
		if size > maxShown {
			return fmt.Errorf("document %d has %d bytes; name a file with -o", v.Index, size)
		}
		var content bytes.Buffer
		if err := v.fetch(c, p, path, size, digest, &content); err != nil {
			return err
		}
		_, err = content.WriteTo(c.Stdout)
		return err
	}
	file, err := cli.CreateOutfile(target, v.Force)
	if err != nil {
		return err
	}
	defer file.Discard()
	if err := v.fetch(c, p, path, size, digest, file); err != nil {
		return err
	}
	if err := file.Commit(); err != nil {
		return err
	}
	if v.JSON {
		return json.NewEncoder(c.Stdout).Encode(fetched{target, size, fmt.Sprintf("%x", []byte(digest))})
	}
	return c.Print("%s: %d bytes, the digest is the one that is confirmed\n", cli.Printable(target), size)
}

// fileName returns the name of a document without folders, in this directory.
func fileName(name string, index int) string {
	name = filepath.Base(filepath.Clean("/" + name))
	if name == "/" || name == "." || cli.Printable(name) != name {
		return fmt.Sprintf("document-%d", index)
	}
	return name
}

// fetch reads a document and compares it with the size and the digest that are confirmed. If they
// differ, what was written to the target is worth nothing.
func (v *phoneDocument) fetch(c *cli.Console, p *phone, path string, size int64, digest []byte, target io.Writer) error {
	request := devmsg.DocumentRequest{ID: v.ID, Index: v.Index, Original: v.Original}
	return v.attempt(p, devmsg.Read, request, documentTimeout, func(client *http.Client, signed devmsg.Signed) (time.Time, error) {
		body, remote, err := deliver(c.Context, client, p.Service+path, signed)
		if err != nil {
			return remote, err
		}
		defer body.Close()
		var h hash.Hash = streebog.New256()
		n, err := io.Copy(io.MultiWriter(target, h), io.LimitReader(body, size+1))
		switch {
		case err != nil:
			return remote, fmt.Errorf("reading document %d: %w", v.Index, err)
		case n != size || !bytes.Equal(h.Sum(nil), digest):
			return remote, fmt.Errorf("document %d: the service sent other bytes than those of the digest that is confirmed; do not confirm the operation", v.Index)
		}
		return remote, nil
	})
}
