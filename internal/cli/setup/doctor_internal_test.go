// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"tamga/internal/cli"
)

// TestChecksEnd lets checks wait for their deadline, hang beyond it and be slow one after the other. The run ends in time, names the
// check that hangs, and keeps what the others found, in order.
func TestChecksEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		never := make(chan struct{})
		found := func(e *examination, _ context.Context, name cli.Word) { e.ok(name, "text") }
		waits := func(e *examination, ctx context.Context, name cli.Word) {
			<-ctx.Done()
			e.fault(name, cli.Say("remedy"), "%v", ctx.Err())
		}
		hangs := func(e *examination, _ context.Context, name cli.Word) {
			<-never
			e.ok(name, "text")
		}
		list := []check{
			{"files", false, found}, {port, false, waits}, {"disk", false, hangs}, {"proxies", false, found},
			{database, false, func(e *examination, ctx context.Context, name cli.Word) {
				time.Sleep(3 * time.Second)
				e.ok(name, "text") // and no services: it is closed
			}},
			{"clock", true, func(*examination, context.Context, cli.Word) { t.Error("a check without a database") }},
			{network, false, waits},
		}
		e := &examination{}
		begun := time.Now()
		e.run(t.Context(), list)
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
		close(never)
		var got []string
		for _, f := range e.findings {
			got = append(got, string(f.Check)+" "+string(f.State)+" "+f.Text.String())
		}
		want := []string{
			"files ok text", "port fault context deadline exceeded", "disk fault the check did not end within 4s", "database ok text", "network fault context deadline exceeded",
		}
		if !slices.Equal(got, want) {
			t.Errorf("findings %q, want %q", got, want)
		}
	})
}

// TestChecksStop cancels a run, which ends at once and without faults of what was not waited for.
func TestChecksStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		never := make(chan struct{})
		defer close(never)
		e := &examination{}
		begun := time.Now()
		time.AfterFunc(time.Second, cancel)
		e.run(ctx, []check{{"files", false, func(*examination, context.Context, cli.Word) {}}, {port, false, func(_ *examination, ctx context.Context, _ cli.Word) {
			<-ctx.Done()
			<-never
		}}})
		if took := time.Since(begun); took != time.Second || len(e.findings) > 0 {
			t.Errorf("it took %v, found %v", took, e.findings)
		}
	})
}
