// SPDX-License-Identifier: Apache-2.0

package program

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"tamga/internal/cli"
)

// manual is the sub-command manual, which makes manual pages of the table of commands.
type manual struct {
	Command string `arg:"" optional:"" help:"Command to describe, for instance sign. Default: none, which describes the program and lists the commands."`
}

// Run prints the page.
func (m *manual) Run(c *cli.Console, model *kong.Application) error {
	page := &manualPage{version: c.Program.Version}
	if m.Command == "" {
		page.overview(model)
	} else {
		var found *kong.Node
		for _, n := range model.Children {
			if n.Name == m.Command && !n.Hidden {
				found = n
			}
		}
		if found == nil {
			return fmt.Errorf("no command %s; see tamga --help", cli.Printable(m.Command))
		}
		page.command(found)
	}
	_, err := io.WriteString(c.Stdout, page.String())
	return err
}

// manualPage is a page for man in the language of the macros man(7).
type manualPage struct {
	strings.Builder
	version string
}

// macro writes a line with a macro. Its arguments are quoted.
func (p *manualPage) macro(name string, args ...string) {
	p.WriteString("." + name)
	for _, a := range args {
		p.WriteString(` "` + strings.ReplaceAll(escapeRoff(a), `"`, `\(dq`) + `"`)
	}
	p.WriteString("\n")
}

// text writes lines of text.
func (p *manualPage) text(s string) {
	for line := range strings.SplitSeq(s, "\n") {
		line = escapeRoff(line)
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			line = `\&` + line
		}
		p.WriteString(line + "\n")
	}
}

// escapeRoff escapes what the language of manual pages means otherwise.
func escapeRoff(s string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, "\n", " ").Replace(s)
}

func (p *manualPage) overview(model *kong.Application) {
	p.macro("TH", "TAMGA", "1", "", "Tamga "+p.version, "Tamga")
	p.macro("SH", "NAME")
	p.text("tamga - GOST electronic signatures as a service")
	p.macro("SH", "SYNOPSIS")
	p.macro("B", "tamga")
	p.text("COMMAND [flags]")
	p.macro("SH", "DESCRIPTION")
	p.text("Tamga signs documents with keys that it keeps for their owners. The program has the service and the commands that administer it. Each command has a manual page, for instance tamga-sign(1), and prints its help with --help.")
	p.macro("SH", "COMMANDS")
	for _, n := range model.Children {
		if !n.Hidden {
			p.macro("TP")
			p.macro("B", "tamga "+n.Name)
			p.text(n.Help)
		}
	}
	p.macro("SH", "EXIT STATUS")
	p.text("0 for success, 1 for an error, 2 for a wrong command line. tamga verify has codes of its own.")
	p.macro("SH", "SEE ALSO")
	p.text("The documentation is in /usr/share/doc/tamga on Debian.")
}

func (p *manualPage) command(n *kong.Node) {
	name := "tamga-" + n.Name
	p.macro("TH", strings.ToUpper(name), "1", "", "Tamga "+p.version, "Tamga")
	p.macro("SH", "NAME")
	p.text(name + " - " + strings.TrimSuffix(n.Help, "."))
	leaves := []*kong.Node{n}
	if len(n.Children) > 0 {
		leaves = nil
		eachCommand(n, func(c *kong.Node) {
			if len(c.Children) == 0 && !c.Hidden {
				leaves = append(leaves, c)
			}
		})
	}
	p.macro("SH", "SYNOPSIS")
	for i, leaf := range leaves {
		if i > 0 {
			p.macro("br")
		}
		p.text("tamga " + strings.TrimPrefix(leaf.Summary(), "tamga "))
	}
	p.macro("SH", "DESCRIPTION")
	for _, leaf := range leaves {
		if len(leaves) > 1 {
			p.macro("SS", "tamga "+commandName(leaf))
		}
		p.text(leaf.Help)
		detail, _, _ := strings.Cut(leaf.Detail, examplesTitle+"\n")
		if detail = strings.TrimSpace(detail); detail != "" {
			p.macro("PP")
			p.text(detail)
		}
		for _, a := range leaf.Positional {
			p.macro("TP")
			p.macro("I", a.Name)
			p.text(a.Help)
		}
		for _, group := range leaf.AllFlags(true) {
			for _, f := range group {
				p.macro("TP")
				p.macro("B", flagUsage(f))
				p.text(f.Help)
			}
		}
		if list := examples[commandName(leaf)]; len(list) > 0 {
			p.macro("PP")
			p.macro("nf")
			for _, e := range list {
				p.text("    " + e)
			}
			p.macro("fi")
		}
	}
	p.macro("SH", "SEE ALSO")
	p.text("tamga(1)")
}

// flagUsage returns how a flag is written.
func flagUsage(f *kong.Flag) string {
	text := "--" + f.Name
	if !f.IsBool() {
		text += "=" + f.FormatPlaceHolder()
	}
	if f.Short != 0 {
		text = "-" + string(f.Short) + ", " + text
	}
	return text
}
