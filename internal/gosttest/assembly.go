// SPDX-License-Identifier: Apache-2.0

package gosttest

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Assembly checks that the files *_amd64.s of a folder run in constant time. Every
// conditional jump and every address may depend only on constants and on public
// arguments: those that are pointers or of type int.
//
// It follows the general registers through each routine, line by line and around
// loops. A value loaded from memory is secret, and so is a value that depends on a
// carry flag. It does not follow vector registers, because they hold no addresses and
// decide no jumps. It takes the names and types of arguments from the comment "func
// name(...)" above a routine. A routine without a frame takes pointers in DI, SI and
// BX.
//
// It fails the test on a macro or an include that it cannot expand. It returns the
// number of routines it has read.
func Assembly(t testing.TB, folder fs.FS) (routines int) {
	t.Helper()
	files, err := fs.Glob(folder, "*_amd64.s")
	if err != nil || len(files) == 0 {
		t.Fatalf("no assembly here: %v", err)
	}
	for _, name := range files {
		n, problems := readAssembly(folder, name)
		for _, p := range problems {
			t.Error(p)
		}
		routines += n
	}
	return routines
}

// readAssembly returns the number of routines in a file and the problems found.
func readAssembly(folder fs.FS, name string) (routines int, problems []string) {
	s := &source{folder: folder, macros: map[string]macro{}}
	s.file(name)
	problems = s.problems
	var body []line
	flush := func() {
		if len(body) > 0 {
			routines++
			problems = append(problems, checkRoutine(body)...)
		}
		body = nil
	}
	for _, l := range s.lines {
		if strings.HasPrefix(l.text, "TEXT ") {
			flush()
		}
		if len(body) > 0 || strings.HasPrefix(l.text, "TEXT ") {
			body = append(body, l)
		}
	}
	flush()
	return routines, problems
}

type line struct {
	at, text string
	public   []string // the public arguments of the routine
}

type macro struct {
	parameters []string
	body       string
}

// source expands includes and macros.
type source struct {
	folder   fs.FS
	macros   map[string]macro
	lines    []line
	problems []string
	public   []string // the public arguments from the last "func" comment
}

var (
	comment    = regexp.MustCompile(`/\*.*?\*/|//.*`)
	signature  = regexp.MustCompile(`^// func \w+\((.*?)\)`)
	word       = regexp.MustCompile(`\w+`)
	definition = regexp.MustCompile(`^#define (\w+)(?:\(([^)]*)\))?\s*(.*)$`)
)

func (s *source) file(name string) {
	text, err := fs.ReadFile(s.folder, name)
	if err != nil {
		if name != "textflag.h" && name != "funcdata.h" && name != "go_asm.h" {
			s.problems = append(s.problems, err.Error())
		}
		return
	}
	skip := 0 // how many of the enclosing conditions are false
	var kept []bool
	raw := strings.Split(string(text), "\n")
	for i := 0; i < len(raw); i++ {
		at := fmt.Sprintf("%s:%d", path.Base(name), i+1)
		if m := signature.FindStringSubmatch(raw[i]); m != nil {
			s.public = publicArguments(m[1])
		}
		l := strings.TrimSpace(comment.ReplaceAllString(raw[i], ""))
		for strings.HasSuffix(l, `\`) && i+1 < len(raw) {
			i++
			l = strings.TrimSuffix(l, `\`) + "; " + strings.TrimSpace(comment.ReplaceAllString(raw[i], ""))
		}
		switch directive, rest, _ := strings.Cut(l, " "); directive {
		case "#ifdef", "#ifndef":
			_, have := s.macros[strings.TrimSpace(rest)]
			kept = append(kept, have == (directive == "#ifdef"))
			if !kept[len(kept)-1] {
				skip++
			}
			continue
		case "#else":
			last := len(kept) - 1
			if kept[last] {
				skip++
			} else {
				skip--
			}
			kept[last] = !kept[last]
			continue
		case "#endif":
			if !kept[len(kept)-1] {
				skip--
			}
			kept = kept[:len(kept)-1]
			continue
		}
		if skip > 0 {
			continue
		}
		switch {
		case strings.HasPrefix(l, "#include"):
			s.file(strings.Trim(strings.TrimSpace(strings.TrimPrefix(l, "#include")), `"`))
		case strings.HasPrefix(l, "#define"):
			m := definition.FindStringSubmatch(l)
			if m == nil {
				s.problems = append(s.problems, at+": malformed #define: "+l)
				continue
			}
			var parameters []string
			if m[2] != "" {
				for _, p := range strings.Split(m[2], ",") {
					parameters = append(parameters, strings.TrimSpace(p))
				}
			}
			s.macros[m[1]] = macro{parameters, strings.TrimPrefix(m[3], ";")}
		case strings.HasPrefix(l, "#undef"):
			delete(s.macros, strings.TrimSpace(strings.TrimPrefix(l, "#undef")))
		default:
			s.expand(at, l, 0)
		}
	}
}

// publicArguments returns the names of the arguments that are pointers or of type int.
func publicArguments(list string) (public []string) {
	var names []string
	for _, a := range strings.Split(list, ",") {
		name, kind, typed := strings.Cut(strings.TrimSpace(a), " ")
		names = append(names, name)
		if typed {
			if strings.HasPrefix(kind, "*") || kind == "int" {
				public = append(public, names...)
			}
			names = nil
		}
	}
	return public
}

// expand expands the macros of a line and appends its instructions to s.lines.
func (s *source) expand(at, text string, depth int) {
	if depth > 10 {
		s.problems = append(s.problems, at+": macros are nested more than 10 deep")
		return
	}
	for _, part := range strings.Split(text, ";") {
		part = strings.TrimSpace(part)
		name := word.FindString(part)
		m, ok := s.macros[name]
		if ok && strings.HasPrefix(part, name) {
			var arguments []string
			if open := strings.Index(part, "("); open >= 0 && len(m.parameters) > 0 {
				arguments = splitOperands(strings.TrimSuffix(strings.TrimSpace(part[open+1:]), ")"))
			}
			if len(arguments) != len(m.parameters) {
				s.problems = append(s.problems, fmt.Sprintf("%s: the macro %s has %d parameters, but is used with %d", at, name, len(m.parameters), len(arguments)))
				continue
			}
			s.expand(at, word.ReplaceAllStringFunc(m.body, func(w string) string {
				if i := slices.Index(m.parameters, w); i >= 0 {
					return arguments[i]
				}
				return w
			}), depth+1)
			continue
		}
		if part == "" {
			continue
		}
		// Macros without parameters: names of registers and values.
		for range 5 {
			part = word.ReplaceAllStringFunc(part, func(w string) string {
				if m, ok := s.macros[w]; ok && len(m.parameters) == 0 {
					return m.body
				}
				return w
			})
		}
		s.lines = append(s.lines, line{at, part, s.public})
	}
}

// splitOperands splits text at the commas outside of parentheses.
func splitOperands(text string) (out []string) {
	depth, from := 0, 0
	for i, c := range text {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			out = append(out, strings.TrimSpace(text[from:i]))
			from = i + 1
		}
	}
	return append(out, strings.TrimSpace(text[from:]))
}

var (
	general  = regexp.MustCompile(`^(AX|BX|CX|DX|SI|DI|BP|R[89]|R1[0-5])$`)
	slot     = regexp.MustCompile(`^\d*\(SP\)$`) // a stack slot that saves a register
	address  = regexp.MustCompile(`\(([A-Z][A-Z0-9]*)(?:\*\d)?\)`)
	argument = regexp.MustCompile(`^(\w+)\+\d+\(FP\)$`)

	registers = []string{"AX", "BX", "CX", "DX", "SI", "DI", "BP", "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15"}

	// arithmetic are instructions whose result and flags are public if both operands are.
	arithmetic = []string{"ADDQ", "SUBQ", "ANDQ", "ANDL", "ORQ", "SHLQ", "SHLL", "SHRQ", "DECQ", "DECL", "INCQ", "NEGQ", "CMPQ", "TESTQ", "XORL", "XORQ", "ADDL", "SUBL"}
	// keepFlags are other instructions that do not change the flags.
	keepFlags = []string{"MOVQ", "MOVL", "LEAQ", "MULXQ", "JMP", "RET", "CALL"}
	// variable are instructions whose time depends on their operands.
	variable = []string{"DIVQ", "DIVL", "IDIVQ", "IDIVL", "VDIVPD", "VSQRTPD", "BSFQ", "BSRQ", "REP"}
)

// rounds is how many times checkRoutine follows a routine. The state at a backward
// jump is known at its label in the next round.
const rounds = 4

// checkRoutine follows a routine from its beginning, rounds times, and returns the
// problems of the last round.
func checkRoutine(body []line) (problems []string) {
	secretAt := map[string]map[string]bool{} // label: registers that are secret at a jump to it
	for round := range rounds {
		public, flags := map[string]bool{}, false
		var pushed []bool
		if strings.Contains(body[0].text, "NOFRAME") {
			public["DI"], public["SI"], public["BX"] = true, true, true
		}
		for _, l := range body[1:] {
			text := strings.TrimSpace(l.text)
			if strings.HasPrefix(text, "DATA") || strings.HasPrefix(text, "GLOBL") || text == "NO_LOCAL_POINTERS" {
				continue
			}
			if label, rest, ok := strings.Cut(text, ":"); ok {
				for r := range secretAt[label] {
					public[r] = false
				}
				if text = strings.TrimSpace(rest); text == "" {
					continue
				}
			}
			problem := func(what string) {
				if p := fmt.Sprintf("%s: %s: %s", l.at, text, what); round == rounds-1 && !slices.Contains(problems, p) {
					problems = append(problems, p)
				}
			}
			op, rest, _ := strings.Cut(text, " ")
			var operands []string
			if rest = strings.TrimSpace(rest); rest != "" {
				operands = splitOperands(rest)
			}
			isPublic := func(o string) bool {
				if a := argument.FindStringSubmatch(o); a != nil {
					return slices.Contains(body[0].public, a[1])
				}
				return strings.HasPrefix(o, "$") && !strings.Contains(o, "(") || (general.MatchString(o) || slot.MatchString(o)) && public[o]
			}
			if op != "CALL" && op != "JMP" {
				for _, o := range operands {
					for _, r := range address.FindAllStringSubmatch(o, -1) {
						if r[1] != "SP" && r[1] != "SB" && r[1] != "FP" && !public[r[1]] {
							problem("the address in " + r[1] + " may depend on a secret")
						}
					}
				}
			}
			if strings.HasPrefix(op, "J") && len(operands) == 1 {
				if secretAt[operands[0]] == nil {
					secretAt[operands[0]] = map[string]bool{}
				}
				for _, r := range registers {
					if !public[r] {
						secretAt[operands[0]][r] = true
					}
				}
			}
			switch {
			case slices.Contains(variable, op):
				problem("takes variable time")
			case op == "JMP" || op == "RET":
			case op == "CALL": // the called routine may leave secrets in any register
				clear(public)
				flags = false
			case strings.HasPrefix(op, "J"):
				if !flags {
					problem("the condition may depend on a secret")
				}
			case (op == "MOVQ" || op == "MOVL") && len(operands) == 2 && (general.MatchString(operands[1]) || slot.MatchString(operands[1])):
				public[operands[1]] = isPublic(operands[0])
			case op == "PUSHQ":
				pushed = append(pushed, isPublic(operands[0]))
			case op == "POPQ":
				public[operands[0]] = len(pushed) > 0 && pushed[len(pushed)-1]
				pushed = pushed[:max(len(pushed)-1, 0)]
			case op == "LEAQ":
				public[operands[1]] = true // the registers of the address were checked above
			case slices.Contains(arithmetic, op):
				last := operands[len(operands)-1]
				zero := strings.HasPrefix(op, "XOR") && operands[0] == last
				all := zero
				if !zero {
					all = true
					for _, o := range operands {
						all = all && isPublic(o)
					}
				}
				flags = all
				if general.MatchString(last) && op != "CMPQ" && op != "TESTQ" {
					public[last] = all
				}
			default:
				for i, o := range operands { // the last operand is written
					if general.MatchString(o) && (i == len(operands)-1 || op == "MULXQ" && i > 0) {
						public[o] = false
					}
				}
				if !strings.HasPrefix(op, "V") && !strings.HasPrefix(op, "K") && !strings.HasPrefix(op, "CMOV") && !slices.Contains(keepFlags, op) {
					flags = false
				}
			}
		}
	}
	return problems
}
