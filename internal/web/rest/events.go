// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// Events answers a stream of server-sent events. Follow sends texts of one line until it is over, or until send fails
// because the client has gone. The connection of a stream is not one of [Crowded], so that those who wait take no
// place of those who work: the handler must bound the streams of a caller.
type Events struct {
	Follow func(send func(text string) error) error
}

// eventsType is the media type of server-sent events.
const eventsType = "text/event-stream"

// follow writes events as they come.
func (e Events) follow(out io.Writer, flush func() error) error {
	send := func(text string) error {
		if _, err := io.WriteString(out, "data: "+strings.Map(func(r rune) rune {
			if r == '\n' || r == '\r' {
				return ' '
			}
			return r
		}, text)+"\n\n"); err != nil {
			return err
		}
		return flush()
	}
	return e.Follow(send)
}

// sendEvents writes the answer. A client that leaves is no failure.
func (a answer) sendEvents(ctx context.Context, w http.ResponseWriter) error {
	w.Header().Set("Content-Type", eventsType)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy passes events on at once
	w.WriteHeader(http.StatusOK)
	conn := http.NewResponseController(w)
	out := &steady{w: w, conn: conn}
	flush := func() error {
		defer func() { // the next event may be minutes away
			out.deadline = time.Time{}
			conn.SetWriteDeadline(time.Time{})
		}()
		if err := conn.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err
		}
		return nil
	}
	if err := flush(); err != nil {
		return nil
	}
	defer setApart(ctx)()
	err := a.events.follow(out, flush)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

type crowdedKey struct{}

// setApart takes the connection of a request out of those that [Crowded] counts, and returns how to count it again.
func setApart(ctx context.Context) (back func()) {
	c, _ := ctx.Value(crowdedKey{}).(*crowdedConn)
	if c == nil {
		return func() {}
	}
	l := c.of
	move := func(by int) {
		l.mu.Lock()
		was := c.apart > 0
		c.apart += by
		if is := c.apart > 0; is != was && !c.left {
			if is {
				l.open--
			} else {
				l.open++
			}
		}
		l.mu.Unlock()
		l.poke()
	}
	move(1)
	return func() { move(-1) }
}
