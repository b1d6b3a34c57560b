// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// changes runs a changing statement for many callers on PostgreSQL (gatherer).
type changes struct {
	limits   Limits
	gatherer *gatherer[*change]
	// run runs the statement for rows and reports which of them it changed something for. It is
	// one transaction: an error means that nothing was changed, or a *fault.Outage that it is
	// unknown.
	run func(ctx context.Context, rows [][]any) (changed []bool, err error)
}

// change is the row of a caller who waits for the statement.
type change struct {
	row    []any
	answer chan changed // buffered: the statement never waits for a caller
}

type changed struct {
	is  bool
	err error
}

// changeGathering is for a statement that ends with a flush to disk. Rows of one caller keep
// their order: the later one gathers while the statement of the earlier one runs. Only a
// connection that is silent for longer than patience is overtaken.
func changeGathering(most, flights int) gathering {
	return gathering{most: most, flights: flights, patience: 50 * time.Millisecond}
}

func newChanges(limits Limits, how gathering, run func(ctx context.Context, rows [][]any) ([]bool, error)) *changes {
	c := &changes{limits: limits, run: run}
	c.gatherer = newGatherer(how, limits, c.runAll)
	return c
}

// runAll runs the statement for rows that have gathered, and answers their callers.
func (c *changes) runAll(ctx context.Context, list []*change) {
	rows := make([][]any, len(list))
	for i, one := range list {
		rows[i] = one.row
	}
	var done []bool
	err := unpanicked(func() (err error) {
		done, err = c.run(ctx, rows)
		return err
	})
	if err == nil && len(done) != len(rows) {
		err = fmt.Errorf("store: a statement for %d rows answered for %d", len(rows), len(done))
	}
	if eachAlone(err, len(list)) {
		for i := range list {
			c.runAll(ctx, list[i:i+1])
		}
		return
	}
	for i, one := range list {
		one.answer <- changed{err == nil && done[i], err}
	}
}

// begin gives a row to the statement. wait returns whether it changed something. The row may be
// written after the ctx of wait has ended.
func (c *changes) begin(ctx context.Context, row []any) (wait func(context.Context) (bool, error), err error) {
	one := &change{row, make(chan changed, 1)}
	if err := c.gatherer.enter(ctx, one); err != nil {
		return nil, err
	}
	return func(ctx context.Context) (bool, error) {
		bounded, cancel := c.limits.within(ctx)
		defer cancel()
		select {
		case a := <-one.answer:
			return a.is, a.err
		case <-bounded.Done():
			return false, waited(ctx, bounded)
		}
	}, nil
}

// do gives a row to the statement and waits for it. As with a unit, an error of ctx means that
// nothing was written.
func (c *changes) do(ctx context.Context, row []any) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, waited(ctx, ctx)
	}
	wait, err := c.begin(ctx, row)
	if err != nil {
		return false, err
	}
	return wait(context.WithoutCancel(ctx))
}

func (c *changes) close() { c.gatherer.close() }

// gathered returns a query for rows whose columns are the parameters from $1 on, each an array. columns are
// their names with their types, separated by commas. One more column, n, is the number of the row, from 1.
// next is the next parameter.
//
// The arrays are in subselects to hide their lengths: a plan that was made for two rows would look cheaper
// than the general one, and PostgreSQL would plan again and again.
func gathered(columns string) (query, next string) {
	var arrays, names []string
	for column := range strings.SplitSeq(columns, ",") {
		name, kind, _ := strings.Cut(strings.TrimSpace(column), " ")
		names = append(names, name)
		arrays = append(arrays, fmt.Sprintf("(SELECT CAST($%d AS %s[]))", len(names), kind))
	}
	query = "SELECT * FROM unnest(" + strings.Join(arrays, ", ") + ") WITH ORDINALITY AS g (" + strings.Join(names, ", ") + ", n)"
	return query, fmt.Sprintf("$%d", len(names)+1)
}

// columnsOf returns the columns of rows, each as a slice of the type of its values. The rows
// have values of the same types.
func columnsOf(rows [][]any) []any {
	columns := make([]any, len(rows[0]))
	for i, first := range rows[0] {
		switch first.(type) {
		case string:
			columns[i] = column[string](rows, i)
		case int64:
			columns[i] = column[int64](rows, i)
		case bool:
			columns[i] = column[bool](rows, i)
		case []byte:
			columns[i] = column[[]byte](rows, i)
		default:
			panic("store: a column of " + reflect.TypeOf(first).String())
		}
	}
	return columns
}

// column returns the values of one column.
func column[T any](rows [][]any, i int) []T {
	values := make([]T, len(rows))
	for k, r := range rows {
		values[k] = r[i].(T)
	}
	return values
}
