// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bytes"
	_ "embed"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/alecthomas/kong"

	"tamga/internal/cli"
	"tamga/internal/web/pages/view"
)

// The catalogue of Russian texts by English ones: a line with the English text, \n for a new line
// in it, and below it a line with a tab and the Russian text. A test finds what is missing.
//
//go:embed words/ru.txt
var russianWords string

// russian returns the catalogue. Only a process that speaks Russian reads it.
var russian = sync.OnceValue(func() map[string]string {
	texts, english := map[string]string{}, ""
	for line := range strings.SplitSeq(russianWords, "\n") {
		if text, ok := strings.CutPrefix(line, "\t"); ok {
			texts[english] = strings.ReplaceAll(text, `\n`, "\n")
		} else {
			english = strings.ReplaceAll(line, `\n`, "\n")
		}
	}
	return texts
})

// languageOf returns the language of a process: "ru" or "", which is English. getenv is os.Getenv. The
// first variable that is set decides, as POSIX says of messages.
func languageOf(getenv func(string) string) string {
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		if value := getenv(name); value != "" {
			if value == "ru" || strings.HasPrefix(value, "ru_") || strings.HasPrefix(value, "ru.") {
				return "ru"
			}
			return ""
		}
	}
	return ""
}

// inRussian replaces the texts of all commands and flags.
func inRussian(model *kong.Application, vars kong.Vars) {
	replace := func(text *string, key string) {
		if found, ok := russian()[key]; ok {
			for name, value := range vars {
				found = strings.ReplaceAll(found, "${"+name+"}", value)
			}
			*text = found
		}
	}
	value := func(v *kong.Value) {
		replace(&v.Help, v.OrigHelp)
		v.Help = strings.ReplaceAll(v.Help, "${default}", v.Default)
	}
	var visit func(n *kong.Node)
	visit = func(n *kong.Node) {
		replace(&n.Help, n.Help)
		replace(&n.Detail, n.Detail)
		for _, f := range n.Flags {
			value(f.Value)
		}
		for _, p := range n.Positional {
			value(p)
		}
		for _, child := range n.Children {
			visit(child)
		}
	}
	visit(model.Node)
}

// helpParts are the texts of kong around those of the commands, usageParts those of its errors.
// A longer text is before its beginning.
var (
	helpParts  = []string{"Usage: ", "Arguments:", "Flags:", "Commands:", `Run "`}
	helpEnd    = `<command> --help" for more information on a command.`
	usageParts = []string{
		"; see tamga ", "unexpected argument ", "unexpected flag argument ", "unexpected token ", "unknown flag ", ", did you mean one of ", ", did you mean ",
		"missing flags: ", "missing positional arguments ", "expected one of ", "expected a valid 64 bit int but got ", "expected duration but got ", "expected ",
		" must be one of ", " but got ",
	}
)

// russianHelp prints the help of kong with Russian titles.
func russianHelp(options kong.HelpOptions, k *kong.Context) error {
	out := k.Stdout
	var text bytes.Buffer
	k.Stdout = &text
	err := kong.DefaultHelpPrinter(options, k)
	k.Stdout = out
	if err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		for _, part := range helpParts {
			if rest, ok := strings.CutPrefix(line, part); ok {
				line = russian()[part] + strings.Replace(rest, helpEnd, russian()[helpEnd], 1)
				break
			}
		}
		if _, err := io.WriteString(out, line); err != nil {
			return err
		}
	}
	return nil
}

// sentence returns the text of an error in the language of the process. A refusal is the text that the pages have for
// it; where they have none, the sentence for its code, with the details in English. Other errors have the texts of
// faults.
func sentence(err error, language string) string {
	if language != "ru" {
		return err.Error()
	}
	text := err.Error()
	var usage cli.UsageError
	var refused *cli.Refused
	switch {
	case errors.As(err, &usage):
		for _, part := range usageParts {
			text = strings.ReplaceAll(text, part, russian()[part])
		}
	case errors.As(err, &refused):
		text = strings.Replace(text, refused.Error(), view.Reason(language, refused.Fault), 1)
	default:
		text = faultIn(text)
	}
	return text
}
