// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"tamga/internal/files"
)

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Progress shows the progress of long work in one line of a terminal. Work that ends before the first
// refresh shows nothing. Its methods may be called from several goroutines. On a nil Progress they do
// nothing: NewProgress returns nil unless standard error is a terminal.
type Progress struct {
	w   io.Writer
	now func() time.Time

	mu          sync.Mutex
	label       string
	done, total int64 // bytes; total is -1 if not known
	shownAt     time.Time
	width       int // of the shown line, in bytes
}

// refresh is the shortest time between two changes of the line.
const refresh = 200 * time.Millisecond

// NewProgress returns the progress line of a command, nil unless its standard error is a terminal.
func NewProgress(c *Console) *Progress {
	if !c.Terminal {
		return nil
	}
	return &Progress{w: c.Stderr, now: time.Now}
}

// Stage begins another stage of the work. total is its size in bytes, -1 if not known, 0 if the stage
// is not counted in bytes.
func (p *Progress) Stage(label string, total int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	waited := p.width > 0 // a line is shown already, so the work is long
	p.label, p.done, p.total, p.shownAt = label, 0, total, p.now()
	if waited {
		p.show()
	}
}

// Add counts n bytes as done.
func (p *Progress) Add(n int) {
	if p == nil || n <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += int64(n)
	if now := p.now(); now.Sub(p.shownAt) >= refresh {
		p.shownAt = now
		p.show()
	}
}

// Count replaces the text of the line, for work that is counted in other things than bytes.
func (p *Progress) Count(text string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.label, p.total = text, 0
	if now := p.now(); now.Sub(p.shownAt) >= refresh {
		p.shownAt = now
		p.show()
	}
}

// Clear removes the line.
func (p *Progress) Clear() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.width > 0 {
		fmt.Fprintf(p.w, "\r%s\r", strings.Repeat(" ", p.width))
		p.width = 0
	}
}

func (p *Progress) show() {
	line := p.label
	switch {
	case p.total > 0:
		// Documents may be read twice, so the percentage is limited to 100.
		line += fmt.Sprintf(" %d%% of %s", min(100, p.done*100/p.total), files.Size(p.total))
	case p.total < 0:
		line += " " + files.Size(p.done)
	}
	pad := max(0, p.width-len(line))
	p.width = len(line)
	fmt.Fprintf(p.w, "\r%s%s", line, strings.Repeat(" ", pad))
}

// Reader returns a reader of r that counts the bytes read.
func (p *Progress) Reader(r io.Reader) io.Reader {
	if p == nil {
		return r
	}
	return &countedReader{r, p}
}

// countedReader adds the bytes read to a Progress.
type countedReader struct {
	io.Reader
	p *Progress
}

func (c *countedReader) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.p.Add(n)
	return n, err
}
