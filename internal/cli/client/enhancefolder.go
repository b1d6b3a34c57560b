// SPDX-License-Identifier: Apache-2.0

package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tamga/internal/cli"
	"tamga/sig"
)

// enhancedAtOnce is how many files of folders are raised at once: most of the time is waiting for services.
const enhancedAtOnce = 4

// notRaised is a line of --json for a file of a folder whose signatures were not raised.
type notRaised struct {
	Input string `json:"input"`
	Error string `json:"error"`
}

// inFolders raises the signatures of all files in folders and below them, several at once, and prints a line for each, in
// the order of their names. Files with an output are left out, so the same command goes on where it was stopped. A file that
// fails stops no other.
func (e *Enhance) inFolders(c *cli.Console, level sig.Level) error {
	if e.Document != "" || e.Output != "" || e.SignatureIndex != nil || slices.Contains(e.Files, "-") {
		return errors.New("-o, --document, --signature-index and standard input are for single files: a folder has several documents")
	}
	e.looks = true
	do, done, err := e.worker(c, nil)
	if err != nil {
		return err
	}
	defer done()
	type outcome struct {
		file string
		*raised
		err error
	}
	var n struct{ written, unchanged, before, failed, levelless, unsigned int }
	bar := cli.NewProgress(c)
	defer bar.Clear()
	var broken error // of the output
	cli.EachFile(c.Context, e.Files, enhancedAtOnce, func(file string, err error) outcome {
		if err != nil {
			return outcome{file: file, err: err}
		}
		out, _ := e.outputOf(file)
		if !e.InPlace && (isOutput(file) || !e.Force && exists(out)) {
			return outcome{file: file}
		}
		r, err := e.one(c, nil, job{file, out}, level, do)
		return outcome{file, r, err}
	}, func(o outcome) {
		bar.Clear()
		var err error
		switch {
		case c.Context.Err() != nil && o.err != nil: // a part of the work that was stopped
		case errors.Is(o.err, errUnsigned):
			n.unsigned++
		case errors.Is(o.err, errNoLevels):
			n.levelless++
		case o.err != nil:
			n.failed++
			if e.JSON {
				err = json.NewEncoder(c.Stdout).Encode(notRaised{o.file, o.err.Error()})
			} else {
				fmt.Fprint(c.Stderr, c.Text("%s: not raised: %s\n", cli.Printable(o.file), cli.Printable(strings.TrimPrefix(o.err.Error(), o.file+": "))))
			}
		case o.raised == nil:
			if !isOutput(o.file) {
				n.before++
			}
		default:
			if o.Unchanged {
				n.unchanged++
			} else {
				n.written++
			}
			if e.JSON {
				err = json.NewEncoder(c.Stdout).Encode(o.raised)
			} else {
				err = o.print(c)
			}
		}
		broken = errors.Join(broken, err)
		bar.Count(c.Text("%d files raised", n.written+n.unchanged))
	})
	bar.Clear()
	switch {
	case broken != nil:
		return broken
	case c.Context.Err() != nil:
		return c.Context.Err()
	case n.written+n.unchanged+n.before+n.failed+n.levelless == 0:
		return fmt.Errorf("no file with signatures in %s", e.Files[0])
	}
	if !e.JSON {
		if err := c.Print("\n%d raised, %d had the level, %d were done before, %d failed; %d files without signatures, %d whose signatures have no levels.\n",
			n.written, n.unchanged, n.before, n.failed, n.unsigned, n.levelless); err != nil {
			return err
		}
	}
	if n.failed > 0 {
		return fmt.Errorf("%d of %d files are not raised", n.failed, n.failed+n.written+n.unchanged)
	}
	return nil
}

// isOutput reports whether a file is named as an output of this command.
func isOutput(file string) bool {
	return strings.HasSuffix(strings.TrimSuffix(file, filepath.Ext(file)), enhancedMark)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
