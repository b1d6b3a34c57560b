// SPDX-License-Identifier: Apache-2.0

package phone

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"tamga/internal/cli"
	devmsg "tamga/internal/domain/device/message"
)

// kept is a decision that was signed and not sent.
type kept struct {
	ID      string        `json:"id"` // of the operation
	Message devmsg.Signed `json:"message"`
}

// maxKept bounds the decisions in the file of a device.
const maxKept = 1000

// scanned is what a QR code of an operation says.
type scanned struct {
	ID            string `json:"id"`
	What          string `json:"what"`
	Text          string `json:"text"`
	Number        bool   `json:"number"`
	ConfirmBefore int64  `json:"confirm_before"`

	data devmsg.ChallengeData
}

// challengeFlags are those of the commands that take the QR code of an operation.
type challengeFlags struct {
	phoneFlags
	qrFlags
}

// open reads the QR code of an operation and checks that it is of the service of this device, for this
// device, and in time.
func (f challengeFlags) open(c *cli.Console) (*phone, *scanned, error) {
	text, err := f.read(c)
	if err != nil {
		return nil, nil, err
	}
	if text == "" {
		return nil, nil, errors.New("no QR code: give --qr FILE or --qr-text JSON")
	}
	parsed, err := devmsg.ParseQR(text)
	if err != nil {
		return nil, nil, err
	}
	challenge, ok := parsed.(devmsg.Challenge)
	if !ok {
		return nil, nil, otherCode(parsed)
	}
	p, err := openRegistered(f.File)
	if err != nil {
		return nil, nil, err
	}
	d := challenge.Data
	shown, err := d.Shown()
	switch {
	case err != nil:
		return nil, nil, err
	case len(p.ServiceKey) == 0:
		return nil, nil, errors.New("this device registered before QR codes of operations and does not have the key of the service; remove it with tamga phone leave and register it again")
	case d.Kid != p.Kid || d.ServiceURL != p.Service:
		return nil, nil, fmt.Errorf("this QR code is for the device %s at %s, but the file has the device %s at %s", cli.Printable(d.Kid), cli.Printable(d.ServiceURL), p.Kid, p.Service)
	case !p.ofService(&d):
		return nil, nil, errors.New("this QR code is not of the service: its signature does not verify with the key of the service that this device knows; do not confirm the operation")
	case p.now() >= d.Before:
		return nil, nil, fmt.Errorf("the operation ended at %s", time.Unix(d.Before, 0).UTC().Format(time.RFC3339))
	}
	return p, &scanned{d.ID, d.What, shown, d.Number, d.Before, d}, nil
}

// explain prints what a QR code says for people.
func (s *scanned) explain(c *cli.Console) {
	w := c.Stdout
	fmt.Fprint(w, c.Text("operation: %s\nconfirm before: %s\n", cli.Printable(s.ID), time.Unix(s.ConfirmBefore, 0).UTC().Format(time.RFC3339)))
	for line := range strings.Lines(s.Text) {
		fmt.Fprintln(w, cli.Printable(strings.TrimSpace(line)))
	}
}

type phoneScan struct {
	challengeFlags
}

func (v *phoneScan) Run(c *cli.Console) error {
	_, s, err := v.open(c)
	if err != nil {
		return err
	}
	if v.JSON {
		return json.NewEncoder(c.Stdout).Encode(s)
	}
	s.explain(c)
	return nil
}

type phoneCode struct {
	challengeFlags
	Yes bool `help:"Do not ask. Default: print the operation and ask, without --json."`
}

func (v *phoneCode) Run(c *cli.Console) error {
	p, s, err := v.open(c)
	if err != nil {
		return err
	}
	if !v.Yes && !v.JSON {
		s.explain(c)
		if err := sure(c, answers(c, v.qrFlags), c.Text("Approve all of it? yes or no: ")); err != nil {
			return err
		}
	}
	code, err := s.data.Code(p.key)
	if err != nil {
		return err
	}
	if v.JSON {
		return json.NewEncoder(c.Stdout).Encode(map[string]string{"id": s.ID, "code": code})
	}
	return c.Print("code: %s\n", code)
}

type phoneSign struct {
	challengeFlags
	Decline bool   `help:"Decline the operation. Default: approve all of it."`
	Number  string `placeholder:"NN" help:"The two digits that the client shows, if it shows any."`
	Yes     bool   `help:"Do not ask. Default: print the operation and ask, without --json."`
}

func (v *phoneSign) Run(c *cli.Console) error {
	p, s, err := v.open(c)
	if err != nil {
		return err
	}
	asks := !v.Yes && !v.JSON
	input := answers(c, v.qrFlags)
	if asks {
		s.explain(c)
	}
	decision := devmsg.Decision{ID: s.ID, What: s.What}
	question := c.Text("Decline the operation? yes or no: ")
	if !v.Decline {
		question = c.Text("Approve all of it? yes or no: ")
		if s.Number && v.Number == "" && asks {
			if v.Number, err = ask(c, input, c.Text("Number that the client shows: ")); err != nil {
				return err
			}
		}
		if s.Number && v.Number == "" {
			return errors.New("the client shows two digits; give them with --number, a wrong number declines the operation")
		}
		decision.Number = v.Number
	}
	if asks {
		if err := sure(c, input, question); err != nil {
			return err
		}
	}
	return v.keep(c, p, !v.Decline, decision)
}

// answers returns where the answers to questions come from: not standard input if that has the QR code.
func answers(c *cli.Console, f qrFlags) *bufio.Reader {
	if f.QRText == "-" {
		return bufio.NewReader(strings.NewReader(""))
	}
	return bufio.NewReader(io.LimitReader(c.Stdin, 1<<10))
}

// keep signs a decision and keeps it in the file of the device.
func (f phoneFlags) keep(c *cli.Console, p *phone, approved bool, decision devmsg.Decision) error {
	if len(p.Later) >= maxKept {
		return fmt.Errorf("%s has %d decisions that were not sent; send them with tamga phone send", f.File, len(p.Later))
	}
	kind := devmsg.Approval
	if !approved {
		kind = devmsg.Refusal
	}
	signed, err := p.sign(kind, decision)
	if err != nil {
		return err
	}
	p.Later = append(p.Later, kept{decision.ID, signed})
	if err := p.save(); err != nil {
		return err
	}
	if f.JSON {
		return json.NewEncoder(c.Stdout).Encode(map[string]any{"id": decision.ID, "approved": approved, "kept": len(p.Later)})
	}
	return c.Print("operation %s: the decision is kept, send it with tamga phone send\n", cli.Printable(decision.ID))
}

type phoneSend struct {
	phoneFlags
}

// sent is what came of one decision.
type sent struct {
	ID    string `json:"id"`
	State string `json:"state,omitempty"`
	Error string `json:"error,omitempty"` // code of a refusal
}

// Run sends the decisions that were kept, the oldest first. A decision that the service took or refused is
// not kept any longer. The others stay.
func (v *phoneSend) Run(c *cli.Console) error {
	p, err := openRegistered(v.File)
	if err != nil {
		return err
	}
	results := []sent{}
	var failed error
	for len(p.Later) > 0 {
		one := p.Later[0]
		result := sent{ID: one.ID}
		a, err := v.send(c.Context, p, devmsg.Deliver, devmsg.Delivery{Message: one.Message})
		var refused *phoneRefusal
		switch {
		case err == nil && a.Result != nil:
			result.State = a.Result.State
		case errors.As(err, &refused) && refused.final():
			result.Error = refused.code
			failed = errors.Join(failed, fmt.Errorf("operation %s: %w", cli.Printable(one.ID), err))
		case err == nil:
			err = errors.New("the answer of the service has no result")
			fallthrough
		default:
			return errors.Join(failed, fmt.Errorf("operation %s: %w; %d decisions are kept", cli.Printable(one.ID), err, len(p.Later)))
		}
		p.Later = p.Later[1:]
		if err := p.save(); err != nil {
			return err
		}
		if results = append(results, result); !v.JSON && result.State != "" {
			fmt.Fprint(c.Stdout, c.Text("operation %s: %s\n", cli.Printable(result.ID), cli.Printable(result.State)))
		}
	}
	if v.JSON {
		if err := json.NewEncoder(c.Stdout).Encode(results); err != nil {
			return err
		}
	}
	return failed
}

// final reports whether a refusal is about the decision: another attempt is refused too.
func (r *phoneRefusal) final() bool {
	switch r.code {
	case "wrong_time", "invalid_object_state": // about the message around the decision
		return false
	}
	return r.status >= 400 && r.status < 500 && r.status != 429
}
