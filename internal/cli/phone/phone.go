// SPDX-License-Identifier: Apache-2.0

// Package phone has the sub-command phone, a mobile device in a file. Command is the sub-command. It
// uses the device protocol of docs/device-protocol.md with a running server.
//
// The form of the messages is in package message of internal/domain/device.
package phone

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"tamga/internal/cli"
	devmsg "tamga/internal/domain/device/message"
)

// Command is the sub-command phone: a mobile device for people without the application, and for tests.
type Command struct {
	Register phoneRegister `cmd:"" help:"Register this device with the QR code of an operator. Without a QR code an operator must assign the device to a user."`
	Verify   phoneVerify   `cmd:"" help:"Verify this device with a second QR code."`
	Push     phonePush     `cmd:"" help:"Set or remove the push address of the device."`
	Poll     phonePoll     `cmd:"" help:"Request the operations to confirm and the state of the device."`
	Show     phoneShow     `cmd:"" help:"Print the facts in the file of the device, which sends nothing; or print an operation, with its identifier."`
	List     phoneList     `cmd:"" help:"List the operations that wait for this device."`
	Document phoneDocument `cmd:"" help:"Save a document of an operation that waits for this device, if its bytes have the digest that is confirmed."`
	Approve  phoneApprove  `cmd:"" help:"Approve an operation, or some of its documents."`
	Scan     phoneScan     `cmd:"" help:"Check the QR code of an operation and print what it says. Needs no network."`
	Code     phoneCode     `cmd:"" help:"Approve the operation of a QR code and print the code that the user types at the client. Needs no network."`
	Sign     phoneSign     `cmd:"" help:"Approve or decline the operation of a QR code, and keep the decision for tamga phone send. Needs no network."`
	Send     phoneSend     `cmd:"" help:"Send the decisions that were kept."`
	Decline  phoneDecline  `cmd:"" help:"Decline an operation."`
	Leave    phoneLeave    `cmd:"" help:"Remove the device from the service and delete its file."`
}

// phoneFlags are the flags of all commands.
type phoneFlags struct {
	File      string `default:"tamga-phone.json" placeholder:"FILE" help:"File of the device with its key. Default: tamga-phone.json."`
	CAFile    string `placeholder:"FILE" help:"File with the PEM certificates of authorities to trust in TLS. Default: those of this system."`
	PlainHTTP bool   `help:"Allow http:// to another machine. Messages are then readable over the network."`
	JSON      bool   `help:"Print JSON instead of text."`
}

// qrFlags name a QR code.
type qrFlags struct {
	QR     string `name:"qr" xor:"code" placeholder:"FILE" help:"Image of the QR code, for instance GIF, PNG or JPEG. Needs the program zbarimg."`
	QRText string `name:"qr-text" xor:"code" placeholder:"JSON" help:"Text of the QR code. - for standard input."`
}

// maxPicture is the largest size of the file of a QR code, in bytes.
const maxPicture = 8 << 20

// read returns the text of the QR code, "" if none is given.
func (f qrFlags) read(c *cli.Console) (string, error) {
	switch {
	case f.QRText == "-":
		text, err := io.ReadAll(io.LimitReader(c.Stdin, maxPicture))
		return strings.TrimSpace(string(text)), err
	case f.QR == "":
		return f.QRText, nil
	}
	return readPicture(c.Context, f.QR)
}

// readPicture reads an image with zbarimg, which can read photographs. Nothing else in the program
// reads QR codes.
func readPicture(ctx context.Context, file string) (string, error) {
	if info, err := os.Stat(file); err != nil {
		return "", fmt.Errorf("--qr: %w", err)
	} else if !info.Mode().IsRegular() || info.Size() > maxPicture {
		return "", fmt.Errorf("--qr: %s: want an image file of at most %d MiB", file, maxPicture>>20)
	}
	program, err := exec.LookPath("zbarimg")
	if err != nil {
		return "", errors.New("--qr: zbarimg is not installed, which reads images (Debian package zbar-tools); give the text of the QR code with --qr-text")
	}
	path, err := filepath.Abs(file) // an absolute path cannot be taken for an option
	if err != nil {
		return "", fmt.Errorf("--qr: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, phoneTimeout)
	defer cancel()
	text, err := exec.CommandContext(ctx, program, "--quiet", "--raw", "-Sdisable", "-Sqrcode.enable", path).Output()
	if err != nil {
		return "", fmt.Errorf("--qr: %s: zbarimg finds no QR code in it", file)
	}
	return strings.TrimSpace(string(text)), nil
}

// otherCode names the command for a QR code that the present one does not take.
func otherCode(parsed any) error {
	switch parsed.(type) {
	case devmsg.KInit:
		return errors.New("this QR code registers a new device; use it with tamga phone register")
	case devmsg.Verification:
		return errors.New("this QR code verifies a registered device; use it with tamga phone verify")
	}
	return errors.New("this QR code is of an operation; use it with tamga phone code")
}

type phoneRegister struct {
	phoneFlags
	qrFlags
	Service string `placeholder:"URL" help:"Address of the device service, to register without a QR code."`
	Code    string `placeholder:"CODE" help:"Activation code that the user received. Default: ask at the terminal if one is required."`
	Name    string `default:"tamga phone" help:"Name of the device for operators. Default: tamga phone."`
	Suite   string `default:"gost2012-256" enum:"gost2012-256,ecdsa-p256" help:"Kind of the key: gost2012-256 or ecdsa-p256. Default: gost2012-256."`
}

func (r *phoneRegister) Run(c *cli.Console) error {
	text, err := r.read(c)
	if err != nil {
		return err
	}
	var kinit *devmsg.KInitData
	service := r.Service
	switch {
	case text == "" && service == "":
		return errors.New("give --qr FILE or --qr-text JSON; or --service URL to register without a QR code, for an operator to assign the device")
	case text != "":
		parsed, err := devmsg.ParseQR(text)
		if err != nil {
			return err
		}
		k, ok := parsed.(devmsg.KInit)
		if !ok {
			return otherCode(parsed)
		}
		kinit = &k.Data
		service = cmp.Or(service, k.Data.ServiceURL)
	}
	p, err := openPhone(r.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if p, err = newPhone(r.File, service, r.Suite); err != nil {
			return err
		}
	case err != nil:
		return err
	case p.Kid != "":
		return fmt.Errorf("%s is the file of the registered device %s; name another file with --file, or remove the device with tamga phone leave", r.File, p.Kid)
	case p.Service != service:
		return fmt.Errorf("%s has a key for %s; name another file with --file", r.File, p.Service)
	}
	registration := devmsg.Registration{Device: devmsg.About{Name: r.Name, Type: "cli", AppVersion: c.Program.Version}}
	if kinit != nil {
		content, err := devmsg.ReadSecret(kinit.KeyContent)
		if err != nil {
			return err
		}
		if kinit.ActivationRequired && r.Code == "" {
			if r.Code, err = c.AskSecret(c.Text("Activation code: "), "--code"); err != nil {
				return err
			}
		}
		spki, err := p.publicKey()
		if err != nil {
			return err
		}
		registration.KInit = &devmsg.KInitAnswer{Kid: kinit.Kid, Proof: devmsg.KInitProof(content, kinit.Kid, spki), Code: r.Code}
	}
	a, err := r.send(c.Context, p, devmsg.Register, registration)
	if err != nil {
		return err
	}
	p.ServiceKey = a.ServiceKey
	if p.Kid, p.UID, p.State = a.Kid, a.UID, a.State; p.UID == "" {
		fmt.Fprint(c.Stderr, c.Text("Tell the operator the number of this device: %s\n", p.Kid))
	}
	return r.done(c, p, a)
}

type phoneVerify struct {
	phoneFlags
	qrFlags
}

func (v *phoneVerify) Run(c *cli.Console) error {
	text, err := v.read(c)
	if err != nil {
		return err
	}
	if text == "" {
		return errors.New("no QR code: give --qr FILE or --qr-text JSON")
	}
	parsed, err := devmsg.ParseQR(text)
	if err != nil {
		return err
	}
	code, ok := parsed.(devmsg.Verification)
	if !ok {
		return otherCode(parsed)
	}
	p, err := openRegistered(v.File)
	if err != nil {
		return err
	}
	if code.Data.Kid != p.Kid || code.Data.ServiceURL != p.Service {
		return fmt.Errorf("this QR code is for the device %s at %s, but the file has the device %s at %s", cli.Printable(code.Data.Kid), cli.Printable(code.Data.ServiceURL), p.Kid, p.Service)
	}
	nonce, err := devmsg.ReadSecret(code.Data.Nonce)
	if err != nil {
		return err
	}
	seed, err := base64.RawURLEncoding.DecodeString(code.Data.Seed)
	if err != nil {
		return errors.New("invalid seed in the QR code of a verification")
	}
	spki, err := p.publicKey()
	if err != nil {
		return err
	}
	a, err := v.send(c.Context, p, devmsg.Verify, devmsg.VerificationAnswer{Proof: devmsg.VerificationProof(nonce, seed, p.Kid, spki)})
	if err != nil {
		return err
	}
	return v.done(c, p, a)
}

type phonePush struct {
	phoneFlags
	Address string `placeholder:"TOKEN" help:"Token of the push service. Default: none, which removes the push address."`
	OSType  int    `name:"os-type" help:"Operating system: 1 iOS, 2 Android, 3 Huawei. Default: 0, none of these."`
	System  string `placeholder:"GUID" help:"Identifier of the mobile application. Default: the first one of the service."`
}

func (v *phonePush) Run(c *cli.Console) error {
	p, err := openRegistered(v.File)
	if err != nil {
		return err
	}
	a, err := v.send(c.Context, p, devmsg.Push, devmsg.PushAddress{Address: v.Address, OSType: v.OSType, SystemID: v.System})
	if err != nil {
		return err
	}
	return v.done(c, p, a)
}

type phonePoll struct {
	phoneFlags
	Times int `default:"1" help:"Number of requests; 0 to repeat until interrupted. Default: 1."`
}

func (v *phonePoll) Run(c *cli.Console) error {
	p, err := openRegistered(v.File)
	if err != nil {
		return err
	}
	for n := 1; ; n++ {
		a, err := v.poll(c.Context, p, devmsg.PollRequest{})
		if err != nil {
			return err
		}
		if err := v.done(c, p, a); err != nil || n == v.Times {
			return err
		}
		pause := time.NewTimer(time.Duration(max(1, min(a.PollAfter, 3600))) * time.Second)
		select {
		case <-c.Context.Done():
			pause.Stop()
			return nil
		case <-pause.C:
		}
	}
}

type phoneShow struct {
	phoneFlags
	ID   string `arg:"" optional:"" help:"Identifier of an operation that waits for this device. Default: none, which prints the facts of the device."`
	Lang string `default:"" enum:",ru,en" help:"Language of the text of the operation: ru or en. Default: the language of this program."`
}

func (v *phoneShow) Run(c *cli.Console) error {
	if v.ID != "" {
		return v.operation(c)
	}
	p, err := openPhone(v.File)
	if err != nil {
		return err
	}
	if v.JSON {
		return json.NewEncoder(c.Stdout).Encode(p.Facts)
	}
	p.explain(c)
	return nil
}

// operation prints an operation.
func (v *phoneShow) operation(c *cli.Console) error {
	p, err := openRegistered(v.File)
	if err != nil {
		return err
	}
	o, err := v.readOperation(c, p, v.ID)
	if err != nil {
		return err
	}
	if v.JSON {
		return json.NewEncoder(c.Stdout).Encode(o.Waiting)
	}
	o.explain(c, v.Lang)
	return nil
}

type phoneLeave struct {
	phoneFlags
	Forget bool `help:"Delete the file even if the service does not know the device or cannot be reached."`
}

func (v *phoneLeave) Run(c *cli.Console) error {
	p, err := openRegistered(v.File)
	if err != nil {
		return err
	}
	if _, err := v.send(c.Context, p, devmsg.Leave, struct{}{}); err != nil && !v.Forget {
		return fmt.Errorf("%w; delete the file anyway with --forget", err)
	}
	if err := os.Remove(v.File); err != nil {
		return err
	}
	if v.JSON {
		return json.NewEncoder(c.Stdout).Encode(map[string]string{"removed": p.Kid, "file": v.File})
	}
	return c.Print("Device %s is removed, and its file %s is deleted.\n", p.Kid, cli.Printable(v.File))
}

// done saves the state in an answer and prints the answer.
func (f phoneFlags) done(c *cli.Console, p *phone, a devmsg.Answer) error {
	p.State, p.UID = a.State, a.UID
	if err := p.save(); err != nil {
		return err
	}
	if f.JSON {
		return json.NewEncoder(c.Stdout).Encode(a)
	}
	p.explain(c)
	return c.Print("operations to confirm: %d\n", len(a.Operations))
}

// maxAnswer is the largest answer of the service, in bytes.
const maxAnswer = 8 << 20

// phoneTimeout is the timeout of one exchange.
const phoneTimeout = 30 * time.Second

// send sends a message and reads the answer.
func (f phoneFlags) send(ctx context.Context, p *phone, kind string, payload any) (a devmsg.Answer, err error) {
	err = f.attempt(p, kind, payload, phoneTimeout, func(client *http.Client, signed devmsg.Signed) (remote time.Time, err error) {
		a, remote, err = exchange(ctx, client, p.Service+"/v1/"+kind, signed)
		return remote, err
	})
	return a, err
}

// attempt signs a message and calls post with it. If the service answers wrong_time, attempt takes the
// difference to the clock of the service into account and tries once more.
func (f phoneFlags) attempt(p *phone, kind string, payload any, timeout time.Duration, post func(*http.Client, devmsg.Signed) (remote time.Time, err error)) error {
	if err := cli.CheckAddress(p.Service, f.PlainHTTP); err != nil {
		return fmt.Errorf("address of the service: %w", err)
	}
	client, err := cli.NewHTTPClient(f.CAFile)
	if err != nil {
		return err
	}
	client.Timeout = timeout
	for corrected := false; ; corrected = true {
		signed, err := p.sign(kind, payload)
		if err != nil {
			return err
		}
		remote, err := post(client, signed)
		var refused *phoneRefusal
		if errors.As(err, &refused) && refused.code == "wrong_time" && !corrected && !remote.IsZero() {
			p.Offset = int64(time.Until(remote).Round(time.Second) / time.Second)
			continue
		}
		return err
	}
}

// phoneRefusal is an error answer of the service.
type phoneRefusal struct {
	status     int
	code, text string
}

// Error implements error.
func (r *phoneRefusal) Error() string {
	return fmt.Sprintf("the service refused (%d %s): %s", r.status, cli.Printable(r.code), cli.Printable(r.text))
}

// deliver sends a signed message. A refusal of the service is a *phoneRefusal. remote is the time at the
// service, zero if the answer has none. The caller closes the body.
func deliver(ctx context.Context, client *http.Client, address string, signed devmsg.Signed) (body io.ReadCloser, remote time.Time, err error) {
	text, err := json.Marshal(signed)
	if err != nil {
		return nil, remote, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(text))
	if err != nil {
		return nil, remote, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return nil, remote, err
	}
	if at, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		remote = at
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, remote, nil
	}
	defer response.Body.Close()
	if text, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer)); err != nil {
		return nil, remote, err
	}
	var refused struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	_ = json.Unmarshal(text, &refused) // another body leaves both empty
	return nil, remote, &phoneRefusal{response.StatusCode, refused.Error, refused.Description}
}

// exchange sends a message. remote is the time at the service, zero if the answer has none.
func exchange(ctx context.Context, client *http.Client, address string, signed devmsg.Signed) (a devmsg.Answer, remote time.Time, err error) {
	body, remote, err := deliver(ctx, client, address, signed)
	if err != nil {
		return a, remote, err
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, maxAnswer))
	if err != nil {
		return a, remote, err
	}
	if err := json.Unmarshal(text, &a); err != nil || a.Kid == "" {
		return a, remote, errors.New("the answer of the service is not an answer to a device; check the address of the service")
	}
	return a, remote, nil
}
