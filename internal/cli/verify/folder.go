// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"tamga/internal/cli"
	"tamga/sig"
)

// errUnsigned is the error of a file in a folder that has no signatures. It is counted, not reported.
var errUnsigned = errors.New("no signatures")

// unsigned is errUnsigned for a file that no format recognises.
type unsigned struct{ text string }

func (u *unsigned) Error() string { return u.text }

// Is implements the interface of errors.Is.
func (u *unsigned) Is(target error) bool { return target == errUnsigned }

// tally counts the files of folders by what became of them.
type tally struct {
	passed, failed, indeterminate, unreadable int
	unsigned                                  int // files without signatures, such as the documents of detached ones
}

// outcome is the result of one file.
type outcome struct {
	file   string
	report *Report
	err    error
}

// runFolders verifies all files in folders and below them, as many at once as there are processors, and prints one line for each
// that has signatures, in the order of their names. Links are not followed.
func (v *Command) runFolders(c *cli.Console, known sig.Formats, common *Common) error {
	if v.Original != "" || v.Hash != "" || slices.Contains(v.Files, "-") {
		complain(c, errors.New("--original, --hash and standard input are for single files: a folder has several documents"))
		return ExitUnreadable
	}
	common.asksNothing, common.silent = true, true
	bar := cli.NewProgress(c)
	defer bar.Clear()
	var n tally
	worst := 0
	cli.EachFile(c.Context, v.Files, runtime.GOMAXPROCS(0), func(file string, err error) outcome {
		o := outcome{file: file, err: err}
		if err == nil {
			o.report, o.err = v.Judge(c, known, common, file)
		}
		return o
	}, func(o outcome) {
		code := ExitUnreadable
		switch {
		case errors.Is(o.err, errUnsigned):
			n.unsigned++
			return
		case o.err != nil:
			n.unreadable++
			bar.Clear()
			v.printError(c, o.file, o.err)
		default:
			switch o.report.verdict {
			case sig.Passed:
				n.passed++
			case sig.Failed:
				n.failed++
			default:
				n.indeterminate++
			}
			code = exitCodes[o.report.verdict]
			bar.Clear()
			if err := v.printLine(c, o.report); err != nil {
				complain(c, err)
				code = ExitUnreadable
			}
		}
		worst = max(worst, slices.Index(gravity, code))
		bar.Count(c.Text("%d files verified", n.passed+n.failed+n.indeterminate))
	})
	bar.Clear()
	if c.Context.Err() != nil {
		return ExitUnreadable // files that were not judged are left
	}
	if n.passed+n.failed+n.indeterminate+n.unreadable == 0 {
		complain(c, fmt.Errorf("no file with signatures in %s", v.Files[0]))
		return ExitUnreadable
	}
	if !v.JSON {
		fmt.Fprint(c.Stdout, "\n", c.Text("%d passed, %d failed, %d indeterminate, %d unreadable; %d files without signatures.\n", n.passed, n.failed, n.indeterminate, n.unreadable, n.unsigned))
	}
	if worst > 0 {
		return gravity[worst]
	}
	return nil
}

// printError prints the error of a file.
func (v *Command) printError(c *cli.Console, file string, err error) {
	if v.JSON {
		if err := writeJSON(c.Stdout, UnknownVerdict{File: display(file), Verdict: "unreadable", Error: err.Error()}); err != nil {
			complain(c, err)
		}
		return
	}
	complain(c, err)
}

// printLine prints a report in one line, with what is wrong below it.
func (v *Command) printLine(c *cli.Console, r *Report) error {
	if v.JSON {
		return writeJSON(c.Stdout, r)
	}
	return r.printLine(c)
}
