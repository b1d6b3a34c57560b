// SPDX-License-Identifier: Apache-2.0

package xmltree

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// XPath is a compiled expression of a closed subset of XPath 1.0 that signatures use. CompileXPath
// refuses everything else and names it in the error:
//
//	expression  or, and, =, !=, <, <=, >, >=, |, parentheses, "literal", 12.5
//	functions   not, count, here, name, local-name, namespace-uri, string,
//	            boolean, true, false
//	paths       absolute and relative, also after here(); . and .. and // and @
//	axes        self, child, parent, ancestor, ancestor-or-self, descendant,
//	            descendant-or-self, attribute
//	node tests  name, prefix:name, prefix:*, *, node(), text(), comment(),
//	            processing-instruction(), processing-instruction("target")
//	predicates  [expression], a number being a position
type XPath struct {
	t    *Tree // of the element that here() returns
	here Node
	root expr
	// perSpace: namespace nodes of one element may differ in the result.
	perSpace bool
}

// ErrXPath reports why an expression was refused.
type ErrXPath struct {
	// Offset is the position of the wrong character, from 1.
	Offset int
	// Text says what is wrong.
	Text string
}

// Error returns "xpath: character 7: text".
func (e *ErrXPath) Error() string { return fmt.Sprintf("xpath: character %d: %s", e.Offset, e.Text) }

// The limits of an expression.
const (
	xpathLength = 8 << 10
	xpathDepth  = 32
)

// CompileXPath compiles an expression. Its prefixes have the bindings of the element at (the XPath
// element of a transform), which is also the result of here(). Errors are *ErrXPath.
func (t *Tree) CompileXPath(expression string, at Node) (*XPath, error) {
	x := &XPath{t: t, here: at}
	c := &compiler{x: x, s: expression}
	if len(expression) > xpathLength {
		return nil, c.fail(0, "the expression is longer than %d bytes", xpathLength)
	}
	if err := c.scan(); err != nil {
		return nil, err
	}
	root, err := c.or()
	if err != nil {
		return nil, err
	}
	if c.tok().kind != tokEnd {
		return nil, c.fail(c.tok().at, "unexpected %q", c.tok().text)
	}
	x.root = root
	return x, nil
}

// The expression tree.
type (
	expr interface {
		eval(e *evaluation, at Item) value
	}

	binary struct {
		op          string
		left, right expr
	}
	call struct {
		name string
		args []expr
	}
	constant struct{ v value }
	path     struct {
		from     expr // nil: the context node, or the root if absolute
		absolute bool
		steps    []step
		filters  []expr // predicates on from itself
	}
	step struct {
		axis    string
		test    test
		filters []expr
	}
	// test is a node test. If name is set, it is a name test. The local name "*" matches any.
	test struct {
		name         bool
		anySpace     bool
		space, local string
		kind         Kind // otherwise the kind; KindDocument means node()
		target       string
	}
)

// arities has the supported functions with their least and largest number of arguments.
var arities = map[string][2]int{
	"not": {1, 1}, "count": {1, 1}, "here": {0, 0}, "name": {0, 1}, "local-name": {0, 1},
	"namespace-uri": {0, 1}, "string": {0, 1}, "boolean": {1, 1}, "true": {0, 0}, "false": {0, 0},
}

var axes = []string{"self", "child", "parent", "ancestor", "ancestor-or-self", "descendant", "descendant-or-self", "attribute"}

var kindTests = map[string]Kind{"node": KindDocument, "text": KindText, "comment": KindComment, "processing-instruction": KindPI}

type tokenKind uint8

const (
	tokEnd tokenKind = iota
	tokName
	tokLiteral
	tokNumber
	tokSymbol
)

type token struct {
	kind tokenKind
	text string
	at   int
}

type compiler struct {
	x     *XPath
	s     string
	toks  []token
	i     int
	depth int
}

func (c *compiler) fail(at int, format string, args ...any) error {
	return &ErrXPath{Offset: utf8.RuneCountInString(c.s[:min(at, len(c.s))]) + 1, Text: fmt.Sprintf(format, args...)}
}

// scan splits the expression into tokens.
func (c *compiler) scan() error {
	symbols := []string{"::", "//", "..", "!=", "<=", ">=", "(", ")", "[", "]", "@", "/", "|", "=", "<", ">", ".", ",", ":", "*"}
	for i := 0; i < len(c.s); {
		b := c.s[i]
		switch {
		case isSpace(b):
			i++
			continue
		case b == '"' || b == '\'':
			n := strings.IndexByte(c.s[i+1:], b)
			if n < 0 {
				return c.fail(i, "the literal does not end")
			}
			c.toks = append(c.toks, token{tokLiteral, c.s[i+1 : i+1+n], i})
			i += n + 2
			continue
		case b >= '0' && b <= '9' || b == '.' && i+1 < len(c.s) && c.s[i+1] >= '0' && c.s[i+1] <= '9':
			n := i
			for n < len(c.s) && (c.s[n] >= '0' && c.s[n] <= '9' || c.s[n] == '.') {
				n++
			}
			c.toks = append(c.toks, token{tokNumber, c.s[i:n], i})
			i = n
			continue
		}
		n := i
		for n < len(c.s) && !nameEnd[c.s[n]] && c.s[n] != ':' {
			n++
		}
		if n > i && isNCName([]byte(c.s[i:n])) {
			c.toks = append(c.toks, token{tokName, c.s[i:n], i})
			i = n
			continue
		}
		k := slices.IndexFunc(symbols, func(s string) bool { return strings.HasPrefix(c.s[i:], s) })
		if k < 0 {
			r, _ := utf8.DecodeRuneInString(c.s[i:])
			return c.fail(i, "%q is not in the supported part of XPath", r)
		}
		c.toks = append(c.toks, token{tokSymbol, symbols[k], i})
		i += len(symbols[k])
	}
	c.toks = append(c.toks, token{tokEnd, "end of the expression", len(c.s)})
	return nil
}

func (c *compiler) tok() token { return c.toks[c.i] }

// is reports whether the next token is that symbol. take also consumes it.
func (c *compiler) is(symbol string) bool { return c.tok().kind == tokSymbol && c.tok().text == symbol }

func (c *compiler) take(symbol string) bool {
	ok := c.is(symbol)
	if ok {
		c.i++
	}
	return ok
}

func (c *compiler) want(symbol string) error {
	if !c.take(symbol) {
		return c.fail(c.tok().at, "expected %s, found %q", symbol, c.tok().text)
	}
	return nil
}

func (c *compiler) or() (expr, error)  { return c.words("or", c.and) }
func (c *compiler) and() (expr, error) { return c.words("and", c.equality) }
func (c *compiler) equality() (expr, error) {
	return c.symbols([]string{"=", "!="}, c.relation)
}
func (c *compiler) relation() (expr, error) {
	return c.symbols([]string{"<=", ">=", "<", ">"}, c.union)
}
func (c *compiler) union() (expr, error) { return c.symbols([]string{"|"}, c.path) }

// words reads operands joined by an operator that is a word.
func (c *compiler) words(op string, operand func() (expr, error)) (expr, error) {
	if c.depth++; c.depth > xpathDepth*8 {
		return nil, c.fail(c.tok().at, "more than %d parentheses and predicates inside each other", xpathDepth)
	}
	defer func() { c.depth-- }()
	left, err := operand()
	for err == nil && c.tok().kind == tokName && c.tok().text == op {
		c.i++
		var right expr
		right, err = operand()
		left = &binary{op, left, right}
	}
	return left, err
}

func (c *compiler) symbols(ops []string, operand func() (expr, error)) (expr, error) {
	left, err := operand()
	for err == nil && c.tok().kind == tokSymbol && slices.Contains(ops, c.tok().text) {
		at, op := c.tok().at, c.tok().text
		c.i++
		var right expr
		if right, err = operand(); err != nil {
			break
		}
		if op == "|" && (!isSet(left) || !isSet(right)) {
			return nil, c.fail(at, "both operands of | must be node sets")
		}
		left = &binary{op, left, right}
	}
	return left, err
}

// isSet reports whether an expression is a node set.
func isSet(x expr) bool {
	switch x := x.(type) {
	case *path:
		return true
	case *binary:
		return x.op == "|"
	case *call:
		return x.name == "here"
	}
	return false
}

// path reads a path, or a primary expression with the path after it.
func (c *compiler) path() (expr, error) {
	start := c.tok()
	next := c.toks[min(c.i+1, len(c.toks)-1)]
	_, isKind := kindTests[start.text]
	var from expr
	var err error
	switch {
	case start.kind == tokLiteral:
		c.i++
		return &constant{value{kind: isString, s: start.text}}, nil
	case start.kind == tokNumber:
		c.i++
		f, err := strconv.ParseFloat(start.text, 64)
		if err != nil {
			return nil, c.fail(start.at, "%q is not a number", start.text)
		}
		return &constant{value{kind: isNumber, f: f}}, nil
	case c.take("("):
		if from, err = c.or(); err == nil {
			err = c.want(")")
		}
	case start.kind == tokName && next.kind == tokSymbol && next.text == "(" && !isKind:
		from, err = c.call()
	}
	if err != nil {
		return nil, err
	}
	p := &path{from: from}
	if from != nil {
		if !c.is("[") && !c.is("/") && !c.is("//") {
			return from, nil
		}
		if !isSet(from) {
			return nil, c.fail(c.tok().at, "%q is allowed only after a node set", c.tok().text)
		}
		if p.filters, err = c.predicates(); err != nil {
			return nil, err
		}
		if !c.is("/") && !c.is("//") {
			return p, nil
		}
	}
	switch {
	case c.is("//"):
		p.absolute = from == nil
	case c.take("/"):
		p.absolute = from == nil
		if p.absolute && !c.startsStep() {
			return p, nil
		}
	}
	for {
		if c.take("//") {
			p.steps = append(p.steps, step{axis: "descendant-or-self", test: test{kind: KindDocument}})
		}
		s, err := c.step()
		if err != nil {
			return nil, err
		}
		p.steps = append(p.steps, s)
		if !c.take("/") && !c.is("//") {
			return p, nil
		}
	}
}

func (c *compiler) startsStep() bool {
	return c.tok().kind == tokName || c.is("*") || c.is("@") || c.is(".") || c.is("..")
}

func (c *compiler) call() (expr, error) {
	name := c.tok()
	arity, known := arities[name.text]
	if !known {
		return nil, c.fail(name.at, "the function %s() is not supported", name.text)
	}
	c.i += 2
	f := &call{name: name.text}
	for !c.take(")") {
		if len(f.args) > 0 {
			if err := c.want(","); err != nil {
				return nil, err
			}
		}
		arg, err := c.or()
		if err != nil {
			return nil, err
		}
		f.args = append(f.args, arg)
	}
	if len(f.args) < arity[0] || len(f.args) > arity[1] {
		return nil, c.fail(name.at, "%s() takes %d to %d arguments, not %d", name.text, arity[0], arity[1], len(f.args))
	}
	sets := name.text == "count" || strings.Contains(name.text, "name")
	if sets && len(f.args) == 1 && !isSet(f.args[0]) {
		return nil, c.fail(name.at, "the argument of %s() must be a node set", name.text)
	}
	// Without these functions only its identity distinguishes one namespace node of
	// an element from another, and counting does not use the identity either.
	c.x.perSpace = c.x.perSpace || strings.Contains(name.text, "name") || name.text == "string"
	return f, nil
}

func (c *compiler) predicates() (filters []expr, err error) {
	for c.take("[") {
		f, err := c.or()
		if err != nil {
			return nil, err
		}
		if err := c.want("]"); err != nil {
			return nil, err
		}
		filters = append(filters, f)
	}
	return filters, nil
}

func (c *compiler) step() (s step, err error) {
	at := c.tok()
	anyNode := test{kind: KindDocument}
	switch {
	case c.take("."):
		return step{axis: "self", test: anyNode}, nil
	case c.take(".."):
		return step{axis: "parent", test: anyNode}, nil
	case c.take("@"):
		s.axis = "attribute"
	case at.kind == tokName && c.toks[c.i+1].kind == tokSymbol && c.toks[c.i+1].text == "::":
		if !slices.Contains(axes, at.text) {
			return s, c.fail(at.at, "the axis %s:: is not supported", at.text)
		}
		s.axis = at.text
		c.i += 2
	default:
		s.axis = "child"
	}
	if s.test, err = c.test(); err != nil {
		return s, err
	}
	s.filters, err = c.predicates()
	return s, err
}

func (c *compiler) test() (n test, err error) {
	first := c.tok()
	if c.take("*") {
		return test{name: true, anySpace: true, local: "*"}, nil
	}
	if first.kind != tokName {
		return n, c.fail(first.at, "expected a node test, found %q", first.text)
	}
	c.i++
	if kind, ok := kindTests[first.text]; ok && c.take("(") {
		n.kind = kind
		if kind == KindPI && c.tok().kind == tokLiteral {
			n.target = c.tok().text
			c.i++
		}
		return n, c.want(")")
	}
	n.name, n.local = true, first.text
	if !c.is(":") {
		return n, nil // a name without prefix is in no namespace, even with a default namespace
	}
	c.i++
	space, bound := c.x.t.Space(c.x.here, first.text)
	if !bound {
		return n, c.fail(first.at, "the prefix %q is not declared at the element of the expression", first.text)
	}
	n.space, n.local = space, c.tok().text
	if !c.is("*") && c.tok().kind != tokName {
		return n, c.fail(c.tok().at, "expected a name or * after the prefix")
	}
	c.i++
	return n, nil
}
