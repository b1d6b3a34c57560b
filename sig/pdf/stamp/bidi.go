// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"slices"
	"unicode"

	"golang.org/x/text/unicode/bidi"
)

// visual returns the characters of a line in the order in which they are drawn, from the left, by the rules of the
// Unicode bidirectional algorithm for a line that is written from the left. It has no rule for pairs of brackets.
// Text without letters that are written from the right is returned unchanged.
func visual(line []rune) []rune {
	if !slices.ContainsFunc(line, fromRight) {
		return line
	}
	levels := levelsOf(line)
	out := slices.Clone(line)
	for i, l := range levels {
		if m, ok := mirrors[out[i]]; ok && l == 1 {
			out[i] = m
		}
	}
	for level := 2; level >= 1; level-- {
		for from := 0; from < len(out); from++ {
			to := from
			for to < len(out) && levels[to] >= level {
				to++
			}
			slices.Reverse(out[from:to])
			slices.Reverse(levels[from:to])
			from = to
		}
	}
	// A combining character follows its letter again.
	for from := 0; from < len(out); from++ {
		to := from
		for to < len(out) && unicode.Is(unicode.Mn, out[to]) && levels[to] == 1 {
			to++
		}
		if to > from && to < len(out) && levels[to] == 1 {
			slices.Reverse(out[from : to+1])
		}
		from = to
	}
	return out
}

// levelsOf returns the embedding level of each character: 0 written from the left, 1 from the right, 2 a number in
// text that is written from the right.
func levelsOf(line []rune) []int {
	const open = -1
	levels := make([]int, len(line))
	strong, before := 0, 0 // levels of the last letter, and of the last character that is not neutral
	for i, r := range line {
		levels[i] = open
		p, _ := bidi.LookupRune(r)
		switch p.Class() {
		case bidi.L:
			strong, before = 0, 0
			levels[i] = 0
		case bidi.R, bidi.AL:
			strong, before = 1, 1
			levels[i] = 1
		case bidi.EN, bidi.AN:
			levels[i] = 2 * strong
			before = levels[i]
		case bidi.NSM:
			if i > 0 && levels[i-1] != open {
				levels[i] = before
			}
		case bidi.ES, bidi.CS: // between two digits
			if i > 0 && i+1 < len(line) && levels[i-1] == 2 && unicode.IsDigit(line[i+1]) {
				levels[i] = 2
			}
		}
	}
	// Neutral characters have the level of both sides, or that of the line.
	for from := 0; from < len(line); from++ {
		if levels[from] != open {
			continue
		}
		to := from
		for to < len(line) && levels[to] == open {
			to++
		}
		level := 0
		if from > 0 && to < len(line) && levels[from-1] > 0 && levels[to] > 0 {
			level = 1
		}
		for i := from; i < to; i++ {
			levels[i] = level
		}
		from = to
	}
	return levels
}

// fromRight reports whether a letter is written from the right.
func fromRight(r rune) bool {
	if r < 0x590 {
		return false
	}
	p, _ := bidi.LookupRune(r)
	return p.Class() == bidi.R || p.Class() == bidi.AL
}

var mirrors = map[rune]rune{'(': ')', ')': '(', '[': ']', ']': '[', '{': '}', '}': '{', '<': '>', '>': '<', '«': '»', '»': '«'}
