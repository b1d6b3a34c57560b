// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/config"
	"tamga/internal/files"
	"tamga/internal/web/pages/sign"
	"tamga/sig"
	"tamga/sig/power"
)

// powers are the powers of attorney that the flags name, and what the signers must have.
type powers struct {
	set   *power.Set
	rules power.Rules
}

// maxWithdrawn limits a list of withdrawn powers, in bytes.
const maxWithdrawn = 64 << 20

// besidePower are the ends of the names of signatures beside a power.
var besidePower = []string{".sig", ".p7s", ".sgn"}

// powers reads the powers that the flags name, with the signatures beside them. It returns nil without any.
func (v *Command) powers(c *cli.Console, common *Common) (*powers, error) {
	if len(v.Power) == 0 {
		switch {
		case len(v.PowerCode) > 0:
			return nil, errors.New("--power-code needs --power")
		case v.PowerWithdrawn != "":
			return nil, errors.New("--power-withdrawn needs --power")
		}
		return nil, nil
	}
	p := &powers{rules: power.Rules{Codes: v.PowerCode}}
	if v.PowerWithdrawn != "" {
		text, err := files.Bounded(v.PowerWithdrawn, maxWithdrawn)
		if err != nil {
			return nil, fmt.Errorf("--power-withdrawn: %w", err)
		}
		list, err := power.ReadWithdrawn(strings.NewReader(string(text)))
		if err != nil {
			return nil, fmt.Errorf("--power-withdrawn: %w", err)
		}
		p.rules.Statuses = append(p.rules.Statuses, list)
	}
	names := slices.Clone(v.Power)
	for _, name := range v.Power {
		for _, end := range besidePower {
			if beside := name + end; isFile(beside) && !slices.Contains(names, beside) {
				names = append(names, beside)
				common.notes = append(common.notes, cli.Say("the signature of the power is taken from %s", beside))
			}
		}
	}
	var list []sig.File
	for _, name := range names {
		in, err := cli.OpenInput(c.Context, name, c.Stdin, nil)
		if err != nil {
			return nil, fmt.Errorf("--power: %w", err)
		}
		defer in.Close()
		list = append(list, sig.File{Name: name, Document: in.Document})
	}
	var err error
	if p.set, err = power.Load(c.Context, app.Formats(&config.Config{}), common.check, list); err != nil {
		return nil, fmt.Errorf("--power: %w", err)
	}
	return p, nil
}

// power prints the power of attorney of a signature.
func (p *printer) power(indent string, m *sign.MandateJSON) {
	p.field(indent, "power", "%s, valid %s to %s", m.Number, m.From, m.Until)
	for _, number := range m.Chain {
		p.field(indent, "", "passed on from %s", number)
	}
	p.field(indent, "", "of %s", strings.Join(m.Principals, ", "))
	p.field(indent, "", "for %s", m.Representative)
	if granted := slices.Concat(m.Codes, m.Words); len(granted) > 0 {
		more := ""
		if n := len(granted) - maxGranted; n > 0 {
			granted, more = granted[:maxGranted], " "+p.console.Text("and %d more", n)
		}
		p.field(indent, "", "grants %s%s", strings.Join(granted, ", "), more)
	}
	word := func(verdict string) string { return p.console.Word(verdicts[verdict]) }
	p.field(indent, "", "power: %s; signer: %s; powers granted: %s; document: %s", word(m.Parts.Power), word(m.Parts.Signer), word(m.Parts.Rights), word(m.Parts.Document))
}

// maxGranted is how many granted powers the text names.
const maxGranted = 10
