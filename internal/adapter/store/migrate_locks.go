// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// LockMode is a lock of PostgreSQL on a table (manual, 13.3.1). A greater one excludes more.
type LockMode int

const (
	AccessShare LockMode = iota + 1
	RowShare
	RowExclusive
	ShareUpdateExclusive
	Share
	ShareRowExclusive
	Exclusive
	AccessExclusive
)

var lockNames = map[LockMode]string{
	AccessShare: "ACCESS SHARE", RowShare: "ROW SHARE", RowExclusive: "ROW EXCLUSIVE", ShareUpdateExclusive: "SHARE UPDATE EXCLUSIVE",
	Share: "SHARE", ShareRowExclusive: "SHARE ROW EXCLUSIVE", Exclusive: "EXCLUSIVE", AccessExclusive: "ACCESS EXCLUSIVE",
}

func (m LockMode) String() string { return cmp.Or(lockNames[m], "unknown") }

// lockMode returns the mode with a name.
func lockMode(name string) (LockMode, bool) {
	for mode, n := range lockNames {
		if strings.EqualFold(n, name) {
			return mode, true
		}
	}
	return 0, false
}

// MarshalText returns the name of the mode.
func (m LockMode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// Lock is a lock on a table. An index is locked with its table.
type Lock struct {
	Table string   `json:"table"`
	Mode  LockMode `json:"mode"`
}

// Cost says how long a statement works while it has its locks.
type Cost string

const (
	Instant Cost = "instant" // changes the catalog only
	Rows    Cost = "rows"    // as long as the number of rows it reads or changes
	Scan    Cost = "scan"    // reads all rows of a table
	Rewrite Cost = "rewrite" // writes all rows of a table anew
)

var costs = []Cost{Instant, Rows, Scan, Rewrite}

// effect is what a statement does to others on PostgreSQL.
type effect struct {
	known bool
	locks []Lock
	cost  Cost
	made  string // the table that it creates
}

// kind is a form of statements, or of one action of ALTER TABLE. Groups of the pattern name the
// table, the index, and a second table with its lock.
type kind struct {
	pattern func() *regexp.Regexp // compiled when it is first asked for: few commands migrate
	mode    LockMode
	cost    Cost
	other   LockMode // of the tables in the group "other"
}

func form(pattern string, mode LockMode, cost Cost, other LockMode) kind {
	for _, group := range []string{"table", "index", "other", "made"} {
		pattern = strings.ReplaceAll(pattern, "<"+group+">", `(?:ONLY )?"?(?P<`+group+`>[\w.]+)"?`)
	}
	compiled := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?is)^` + pattern) })
	return kind{compiled, mode, cost, other}
}

// statementKinds has the locks of statements (PostgreSQL manual, 13.3.1 and the pages of the
// commands). The first form that matches counts. TestLocksOfStatements compares it with a server.
var statementKinds = []kind{
	form(`CREATE TABLE (?:IF NOT EXISTS )?<made> PARTITION OF <other>`, 0, Scan, AccessExclusive),
	form(`CREATE TABLE (?:IF NOT EXISTS )?<made>`, 0, Instant, 0),
	form(`CREATE (?:UNIQUE )?INDEX CONCURRENTLY (?:IF NOT EXISTS )?<index> ON <table>`, ShareUpdateExclusive, Scan, 0),
	form(`CREATE (?:UNIQUE )?INDEX (?:IF NOT EXISTS )?<index> ON <table>`, Share, Scan, 0),
	form(`DROP INDEX CONCURRENTLY (?:IF EXISTS )?<index>`, ShareUpdateExclusive, Instant, 0),
	form(`DROP INDEX (?:IF EXISTS )?<index>`, AccessExclusive, Instant, 0),
	form(`ALTER INDEX (?:IF EXISTS )?<index> RENAME TO`, 0, Instant, 0), // locks the index alone, and lets others use it
	form(`DROP TABLE (?:IF EXISTS )?<table>`, AccessExclusive, Instant, 0),
	form(`TRUNCATE (?:TABLE )?<table>`, AccessExclusive, Instant, 0),
	form(`INSERT INTO <table>.* FROM <other>`, RowExclusive, Rows, AccessShare),
	form(`INSERT INTO <table>`, RowExclusive, Rows, 0),
	form(`UPDATE <table>`, RowExclusive, Rows, 0),
	form(`DELETE FROM <table>`, RowExclusive, Rows, 0),
	form(`CREATE SEQUENCE (?:IF NOT EXISTS )?<made>$`, 0, Instant, 0),
}

// alterKinds has the locks of the actions of ALTER TABLE.
var alterKinds = []kind{
	form(`ADD (?:COLUMN )?(?:IF NOT EXISTS )?\w+ .* GENERATED `, AccessExclusive, Rewrite, 0),
	form(`ADD (?:COLUMN )?(?:IF NOT EXISTS )?\w+ .* DEFAULT [\w.]+ ?\(`, AccessExclusive, Rewrite, 0), // a value for each row
	form(`ADD (?:CONSTRAINT \w+ )?FOREIGN KEY .* REFERENCES <other>.* NOT VALID`, ShareRowExclusive, Instant, ShareRowExclusive),
	form(`ADD (?:CONSTRAINT \w+ )?FOREIGN KEY .* REFERENCES <other>`, ShareRowExclusive, Scan, ShareRowExclusive),
	form(`ADD (?:CONSTRAINT \w+ )?CHECK .* NOT VALID`, AccessExclusive, Instant, 0),
	form(`ADD (?:CONSTRAINT \w+ )?(?:UNIQUE|PRIMARY KEY) USING INDEX`, AccessExclusive, Instant, 0),
	form(`ADD (?:CONSTRAINT \w+ )?(?:CHECK|UNIQUE|PRIMARY KEY|EXCLUDE)`, AccessExclusive, Scan, 0),
	form(`ADD (?:COLUMN )?(?:IF NOT EXISTS )?\w+ .* (?:CHECK|UNIQUE|PRIMARY KEY)`, AccessExclusive, Scan, 0),
	form(`ADD (?:COLUMN )?(?:IF NOT EXISTS )?\w+ .* REFERENCES <other>`, AccessExclusive, Scan, ShareRowExclusive),
	form(`ADD (?:COLUMN )?(?:IF NOT EXISTS )?\w+ \w+`, AccessExclusive, Instant, 0),
	form(`VALIDATE CONSTRAINT`, ShareUpdateExclusive, Scan, 0),
	// A foreign key also locks the other table, which the statement does not name.
	form(`DROP CONSTRAINT (?:IF EXISTS )?\w+_(?:pkey|key|unique|check)$`, AccessExclusive, Instant, 0),
	form(`DROP COLUMN`, AccessExclusive, Instant, 0),
	form(`ALTER (?:COLUMN )?\w+ (?:SET DATA )?TYPE`, AccessExclusive, Rewrite, 0),
	form(`ALTER (?:COLUMN )?\w+ SET NOT NULL`, AccessExclusive, Scan, 0),
	form(`ALTER (?:COLUMN )?\w+ SET STATISTICS`, ShareUpdateExclusive, Instant, 0),
	form(`ALTER (?:COLUMN )?\w+ (?:SET DEFAULT|DROP DEFAULT|DROP NOT NULL|DROP IDENTITY)`, AccessExclusive, Instant, 0),
	form(`RENAME (?:TO|COLUMN|CONSTRAINT)`, AccessExclusive, Instant, 0),
	form(`SET \(`, ShareUpdateExclusive, Instant, 0),
	form(`ATTACH PARTITION <other>`, ShareUpdateExclusive, Scan, AccessExclusive),
	form(`DETACH PARTITION <other> CONCURRENTLY`, ShareUpdateExclusive, Instant, AccessExclusive),
	form(`DETACH PARTITION <other>`, AccessExclusive, Instant, AccessExclusive),
}

var (
	alterTable  = regexp.MustCompile(`(?is)^ALTER TABLE (?:IF EXISTS )?(?:ONLY )?"?([\w.]+)"? `)
	lockTable   = regexp.MustCompile(`(?is)^LOCK (?:TABLE )?(?:ONLY )?"?([\w.]+)"? IN ([A-Z ]+) MODE`)
	referenced  = regexp.MustCompile(`(?is) REFERENCES "?([\w.]+)"?`)
	renameIndex = regexp.MustCompile(`(?is)^ALTER INDEX (?:IF EXISTS )?(\w+) RENAME TO (\w+)`)
	blanks      = regexp.MustCompile(`\s+`)
)

// lockReader reads the locks of statements. It reads all migrations in order, because DROP INDEX
// does not name the table.
type lockReader struct {
	tableOf map[string]string // of an index
}

func newLockReader() *lockReader { return &lockReader{tableOf: map[string]string{}} }

// readAll returns the effects of the statements of a migration.
func (l *lockReader) readAll(m migration) []effect {
	effects := make([]effect, len(m.statements))
	for i, s := range m.statements {
		if effects[i] = s.effect; !s.effect.known {
			effects[i] = l.read(s.text)
		}
	}
	return effects
}

// read returns the effect of a statement.
func (l *lockReader) read(text string) effect {
	text = blanks.ReplaceAllString(text, " ")
	if m := lockTable.FindStringSubmatch(text); m != nil {
		if mode, found := lockMode(m[2]); found {
			return effect{known: true, locks: []Lock{{m[1], mode}}, cost: Instant}
		}
		return effect{}
	}
	if m := renameIndex.FindStringSubmatch(text); m != nil {
		l.tableOf[m[2]] = l.tableOf[m[1]]
	}
	if m := alterTable.FindStringSubmatch(text); m != nil {
		return l.alter(m[1], text[len(m[0]):])
	}
	for _, k := range statementKinds {
		e, ok := l.match(k, text, "")
		if ok && e.made != "" {
			for _, m := range referenced.FindAllStringSubmatch(text, -1) {
				e.add(Lock{m[1], ShareRowExclusive})
			}
		}
		if ok {
			return e
		}
	}
	return effect{}
}

// alter adds up the actions of an ALTER TABLE.
func (l *lockReader) alter(table, text string) effect {
	sum := effect{known: true, cost: Instant}
	for _, action := range topLevel(text) {
		var one effect
		for _, k := range alterKinds {
			var ok bool
			if one, ok = l.match(k, action, table); ok {
				break
			}
		}
		if !one.known {
			return effect{}
		}
		for _, lock := range one.locks {
			sum.add(lock)
		}
		sum.cost = costs[max(slices.Index(costs, sum.cost), slices.Index(costs, one.cost))]
	}
	return sum
}

// match returns the effect of a text of kind k. table is that of an ALTER TABLE.
func (l *lockReader) match(k kind, text, table string) (effect, bool) {
	found := k.pattern().FindStringSubmatch(text)
	if found == nil {
		return effect{}, false
	}
	groups := map[string]string{"table": table}
	for i, name := range k.pattern().SubexpNames() {
		if name != "" {
			groups[name] = strings.Trim(found[i], `"`)
		}
	}
	if index := groups["index"]; index != "" {
		if groups["table"] != "" {
			l.tableOf[index] = groups["table"]
		}
		groups["table"] = cmp.Or(l.tableOf[index], "the table of "+index)
	}
	e := effect{known: true, cost: k.cost, made: groups["made"]}
	if k.mode != 0 {
		e.add(Lock{groups["table"], k.mode})
	}
	if k.other != 0 && groups["other"] != "" {
		e.add(Lock{groups["other"], k.other})
	}
	return e, true
}

// add adds a lock. Of each table the greatest one counts.
func (e *effect) add(lock Lock) {
	for i := range e.locks {
		if e.locks[i].Table == lock.Table {
			e.locks[i].Mode = max(e.locks[i].Mode, lock.Mode)
			return
		}
	}
	e.locks = append(e.locks, lock)
}

// strongest returns the greatest lock on a table that is not in the list.
func (e effect) strongest(except map[string]bool) (mode LockMode) {
	for _, lock := range e.locks {
		if !except[lock.Table] {
			mode = max(mode, lock.Mode)
		}
	}
	return mode
}

// patient reports whether a session that waits for the locks of the statement lets readers and
// writers pass. Such a statement may wait for long. Others who wait for a lock stop everybody
// behind them.
func (e effect) patient() bool {
	return e.known && e.strongest(nil) == ShareUpdateExclusive
}

// topLevel splits the actions of an ALTER TABLE at commas outside of parentheses and quotes.
func topLevel(text string) (parts []string) {
	depth, from := 0, 0
	quoted := false
	for i, c := range text {
		switch {
		case c == '\'':
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			parts = append(parts, strings.TrimSpace(text[from:i]))
			from = i + 1
		}
	}
	return append(parts, strings.TrimSpace(text[from:]))
}
