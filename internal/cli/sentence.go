// SPDX-License-Identifier: Apache-2.0

package cli

import "fmt"

// Sentence is a text with its values. Programs get it in English, people in the language of their process;
// see Console.Say. The catalogue of other languages is in package program, and a test there finds a sentence
// without a text.
type Sentence struct {
	english string
	format  string
	args    []any
}

// Say returns a sentence. format is a literal, as for fmt.Sprintf. Values that are sentences or words are put into
// the language of the reader too.
func Say(format string, args ...any) Sentence {
	return Sentence{fmt.Sprintf(format, args...), format, args}
}

// String returns the sentence in English.
func (s Sentence) String() string { return s.english }

// MarshalText returns the sentence in English, for JSON.
func (s Sentence) MarshalText() ([]byte, error) { return []byte(s.english), nil }

// IsZero reports whether there is no sentence, for omitzero.
func (s Sentence) IsZero() bool { return s.format == "" }

// Word is a text of a list: the kind of a check, a state, the head of a column. Programs get it in English; see
// Console.Word.
type Word string

// FaultText is the text of an error as a value of a sentence.
type FaultText string

// Fault returns the text of an error in the language of the process, as far as it has one there.
func (c *Console) Fault(text string) string {
	if c.Faults == nil {
		return text
	}
	return c.Faults(text)
}

// Word returns a word in the language of the process.
func (c *Console) Word(w Word) string {
	if other, ok := c.Words[string(w)]; ok {
		return other
	}
	return string(w)
}

// Say returns a sentence in the language of the process.
func (c *Console) Say(s Sentence) string {
	args := make([]any, len(s.args))
	for i, a := range s.args {
		args[i] = a
		switch inner := a.(type) {
		case Sentence:
			args[i] = c.Say(inner)
		case Word:
			args[i] = c.Word(inner)
		case FaultText:
			args[i] = c.Fault(string(inner))
		case error:
			args[i] = c.Fault(inner.Error())
		}
	}
	return harmlessArgs(fmt.Sprintf(c.Word(Word(s.format)), args...), c.Args)
}

// Text returns a text with its values in the language of the process. format is a literal, as for fmt.Sprintf.
func (c *Console) Text(format string, args ...any) string { return c.Say(Say(format, args...)) }

// Print writes a text to standard output, in the language of the process. format is a literal. What looks like
// a command of this program is written so that it can be pasted.
func (c *Console) Print(format string, args ...any) error {
	_, err := fmt.Fprint(c.Stdout, c.Program.AsStarted(c.Text(format, args...)))
	return err
}
