// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
)

// Watch knows which parts of an installation answer: its database, its disks, what it reaches in the network.
// The log has one line when an outage of a part begins, one a minute while it lasts, and one when it ends.
type Watch struct {
	log *slog.Logger
	now func() time.Time

	mu    sync.Mutex
	parts map[part]*partState
}

// part is a part of an installation. Name is "" unless the configuration has several of a kind.
type part struct{ Kind, Name string }

// partState is what is known about a part.
type partState struct {
	err      error // nil: it answered last
	since    time.Time
	said     time.Time
	failures int // since the outage began
	total    int // since the start
}

// sayEvery is the pause between two lines about an outage.
const sayEvery = time.Minute

func newWatch(log *slog.Logger, now func() time.Time) *Watch {
	return &Watch{log: log, now: now, parts: map[part]*partState{}}
}

// note takes the result of a part, nil if it answered, and says what has changed.
func (w *Watch) note(p part, err error) {
	s, say, was := w.mark(p, err)
	attrs := []any{"part", p.Kind}
	if p.Name != "" {
		attrs = append(attrs, "name", p.Name)
	}
	switch {
	case err == nil && was != nil:
		w.log.Info("the outage is over", append(attrs, "lasted", w.now().Sub(s.since).Round(time.Millisecond).String(), "failures", s.failures)...)
	case say && was == nil:
		w.log.Warn("not ready: an outage begins", append(attrs, "error", notify.OneLine(err.Error()))...)
	case say:
		w.log.Warn("not ready: the outage lasts", append(attrs, "since", s.since.UTC().Format(time.RFC3339), "failures", s.failures, "error", notify.OneLine(err.Error()))...)
	}
}

// mark takes the result of a part without a line in the log. It returns the state with the failures of the outage, whether a
// line is due, and the result before.
func (w *Watch) mark(p part, err error) (now partState, say bool, was error) {
	at := w.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.parts[p]
	if s == nil {
		s = &partState{}
		w.parts[p] = s
	}
	was, s.err = s.err, err
	if err == nil {
		now = *s
		s.failures = 0
		return now, false, was
	}
	if was == nil {
		s.since = at
	}
	s.failures++
	s.total++
	if say = was == nil || at.Sub(s.said) >= sayEvery; say {
		s.said = at
	}
	return *s, say, was
}

// forget removes a part: another process may see it now.
func (w *Watch) forget(p part) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.parts, p)
}

// partNow is a part with what is known about it.
type partNow struct {
	part
	Err   error
	Total int
}

// states returns all parts that were noted, sorted.
func (w *Watch) states() []partNow {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := make([]partNow, 0, len(w.parts))
	for p, s := range w.parts {
		list = append(list, partNow{p, s.err, s.total})
	}
	slices.SortFunc(list, func(a, b partNow) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// watching is a handler of log records that gives outages to a Watch. The same outage meets every loop and every
// request, and each of them has an error to log.
type watching struct {
	slog.Handler
	watch *Watch
}

// newWatching returns the handler over another one, which gets the lines of the watch too.
func newWatching(next slog.Handler) *watching {
	return &watching{next, newWatch(slog.New(next), time.Now)}
}

// Handle implements slog.Handler.
func (h *watching) Handle(ctx context.Context, r slog.Record) error {
	var outage *fault.Outage
	if r.Level >= slog.LevelWarn {
		r.Attrs(func(a slog.Attr) bool {
			err, is := a.Value.Any().(error)
			return !(is && a.Key == "error" && errors.As(err, &outage))
		})
	}
	if outage == nil {
		return h.Handler.Handle(ctx, r)
	}
	p := part{Kind: cmp.Or(outage.Part, "database")}
	if !h.Enabled(ctx, slog.LevelWarn) { // the log has no lines of the watch, so it keeps those of errors
		h.watch.mark(p, outage)
		return h.Handler.Handle(ctx, r)
	}
	h.watch.note(p, outage)
	return nil
}

// WithAttrs implements slog.Handler.
func (h *watching) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &watching{h.Handler.WithAttrs(attrs), h.watch}
}

// WithGroup implements slog.Handler.
func (h *watching) WithGroup(name string) slog.Handler {
	return &watching{h.Handler.WithGroup(name), h.watch}
}

// watchOf returns the watch of a logger of NewLogger, or a new one that writes to another logger.
func watchOf(log *slog.Logger) *Watch {
	if h, is := log.Handler().(*watching); is {
		return h.watch
	}
	return newWatch(log, time.Now)
}
