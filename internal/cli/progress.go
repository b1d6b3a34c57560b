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

// IsTerminal tells whether w is a terminal that a person looks at.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Progress keeps one line of a terminal up to date while long work goes on. What
// is done sooner than the first refresh leaves no trace. Its methods may be
// called from several goroutines; on a nil progress they do nothing, which is
// what a pipe gets.
type Progress struct {
	w   io.Writer
	now func() time.Time

	mu          sync.Mutex
	label       string
	done, total int64 // octets; total is -1 when not known
	shownAt     time.Time
	width       int // of the line on the screen
}

// refresh is how often the line changes: often enough to look alive, seldom
// enough to cost nothing.
const refresh = 200 * time.Millisecond

// NewProgress returns nil unless stderr is a terminal.
func NewProgress(c *Console) *Progress {
	if !c.Terminal {
		return nil
	}
	return &Progress{w: c.Stderr, now: time.Now}
}

// Stage begins another piece of work of total octets, -1 when not known, 0 when
// it is not counted in octets.
func (p *Progress) Stage(label string, total int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	waited := p.width > 0 // a line is on the screen already, so the work is long
	p.label, p.done, p.total, p.shownAt = label, 0, total, p.now()
	if waited {
		p.show()
	}
}

// Add counts n octets as done.
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

// Clear takes the line off the screen.
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
		// Two documents may be read at once and one of them twice: never above 100.
		line += fmt.Sprintf(" %d%% of %s", min(100, p.done*100/p.total), files.Octets(p.total))
	case p.total < 0:
		line += " " + files.Octets(p.done)
	}
	pad := max(0, p.width-len(line))
	p.width = len(line)
	fmt.Fprintf(p.w, "\r%s%s", line, strings.Repeat(" ", pad))
}

// Reader counts what is read from r.
func (p *Progress) Reader(r io.Reader) io.Reader {
	if p == nil {
		return r
	}
	return &countedReader{r, p}
}

type countedReader struct {
	io.Reader
	p *Progress
}

func (c *countedReader) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.p.Add(n)
	return n, err
}
