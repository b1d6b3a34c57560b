// Package phone has the sub-command phone, a mobile device in a file. It speaks the device
// protocol of docs/device-protocol.md to a running server.
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

// Command is a mobile device on the command line: for people without the
// application, and for tests.
type Command struct {
	Register phoneRegister `cmd:"" help:"Register this device with the QR code of an operator, or without one for an operator to assign."`
	Verify   phoneVerify   `cmd:"" help:"Prove with a second QR code that the device is in the right hands."`
	Push     phonePush     `cmd:"" help:"Say where the device is reached by push."`
	Poll     phonePoll     `cmd:"" help:"Ask the service whether there is something to confirm, and for the state of the device."`
	Show     phoneShow     `cmd:"" help:"Show what the device knows of itself. Asks nobody."`
	Leave    phoneLeave    `cmd:"" help:"Have the device forgotten by the service, and delete its file."`
}

// phoneFlags are common to what a device does.
type phoneFlags struct {
	File      string `default:"tamga-phone.json" placeholder:"FILE" help:"File of the device with its key. Default: tamga-phone.json."`
	CAFile    string `placeholder:"FILE" help:"File with the PEM certificates of authorities to trust in TLS. Default: those of this system."`
	PlainHTTP bool   `help:"Speak http:// with another machine. Without this only this machine is spoken to over http."`
	JSON      bool   `help:"Print JSON for programs instead of text for people."`
}

// qrFlags say where a QR code is.
type qrFlags struct {
	QR     string `name:"qr" xor:"code" placeholder:"FILE" help:"Picture of the QR code, such as GIF, PNG or JPEG. Reading one takes the program zbarimg."`
	QRText string `name:"qr-text" xor:"code" placeholder:"JSON" help:"Text of the QR code; - reads it from the standard input."`
}

// maxPicture bounds the file of a QR code, in octets.
const maxPicture = 8 << 20

// read gives the text of the QR code; "" where none was given.
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

// readPicture has zbarimg read a picture: it is made for photographs, and this
// program has no other use for a reader.
func readPicture(ctx context.Context, file string) (string, error) {
	if info, err := os.Stat(file); err != nil {
		return "", fmt.Errorf("--qr: %w", err)
	} else if !info.Mode().IsRegular() || info.Size() > maxPicture {
		return "", fmt.Errorf("--qr: %s: want a picture of at most %d MiB", file, maxPicture>>20)
	}
	program, err := exec.LookPath("zbarimg")
	if err != nil {
		return "", errors.New("--qr: pictures are read by zbarimg, which is not installed (Debian package zbar-tools); give the text of the QR code with --qr-text instead")
	}
	path, err := filepath.Abs(file) // no name that reads as an option
	if err != nil {
		return "", fmt.Errorf("--qr: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, phoneTimeout)
	defer cancel()
	text, err := exec.CommandContext(ctx, program, "--quiet", "--raw", "-Sdisable", "-Sqrcode.enable", path).Output()
	if err != nil {
		return "", fmt.Errorf("--qr: %s: there is no QR code in it that zbarimg can read", file)
	}
	return strings.TrimSpace(string(text)), nil
}

type phoneRegister struct {
	phoneFlags
	qrFlags
	Service string `placeholder:"URL" help:"Address of the service, to register without a QR code."`
	Code    string `placeholder:"CODE" help:"Activation code that was sent to the user. Default: it is asked for where one is required."`
	Name    string `default:"tamga phone" help:"What the operator sees the device as. Default: tamga phone."`
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
		return errors.New("how is this device registered? give --qr FILE or --qr-text JSON, or --service URL to wait for an operator to assign it")
	case text != "":
		parsed, err := devmsg.ParseQR(text)
		if err != nil {
			return err
		}
		k, ok := parsed.(devmsg.KInit)
		if !ok {
			return errors.New("this QR code verifies a device that is registered: use it with tamga phone verify")
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
		return fmt.Errorf("%s is the device %s already: name another file with --file, or have it forgotten with tamga phone leave", r.File, p.Kid)
	case p.Service != service:
		return fmt.Errorf("%s has a key for %s: name another file with --file", r.File, p.Service)
	}
	registration := devmsg.Registration{Device: devmsg.About{Name: r.Name, Type: "cli", AppVersion: c.Program.Version}}
	if kinit != nil {
		content, err := devmsg.ReadSecret(kinit.KeyContent)
		if err != nil {
			return err
		}
		if kinit.ActivationRequired && r.Code == "" {
			if r.Code, err = cli.AskSecret(c.Context, "Activation code: ", "--code"); err != nil {
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
	if p.Kid, p.UID, p.State = a.Kid, a.UID, a.State; p.UID == "" {
		fmt.Fprintf(c.Stderr, "Tell the operator the number of this device: %s\n", p.Kid)
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
		return errors.New("which QR code? give --qr FILE or --qr-text JSON")
	}
	parsed, err := devmsg.ParseQR(text)
	if err != nil {
		return err
	}
	code, ok := parsed.(devmsg.Verification)
	if !ok {
		return errors.New("this QR code registers a new device: use it with tamga phone register")
	}
	p, err := openRegistered(v.File)
	if err != nil {
		return err
	}
	if code.Data.Kid != p.Kid || code.Data.ServiceURL != p.Service {
		return fmt.Errorf("this QR code is for the device %s at %s, and this is %s at %s", cli.Printable(code.Data.Kid), cli.Printable(code.Data.ServiceURL), p.Kid, p.Service)
	}
	nonce, err := devmsg.ReadSecret(code.Data.Nonce)
	if err != nil {
		return err
	}
	seed, err := base64.RawURLEncoding.DecodeString(code.Data.Seed)
	if err != nil {
		return errors.New("the QR code of a verification is damaged")
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
	Address string `placeholder:"TOKEN" help:"Token of the push service. Empty: the device is reached by push no more."`
	OSType  int    `name:"os-type" help:"1 iOS, 2 Android, 3 Huawei. Default: 0, none of them."`
	System  string `placeholder:"GUID" help:"The mobile application. Default: the first one of the service."`
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
	Times int `default:"1" help:"How often to ask; 0 goes on until interrupted. Default: 1."`
}

func (v *phonePoll) Run(c *cli.Console) error {
	p, err := openRegistered(v.File)
	if err != nil {
		return err
	}
	for n := 1; ; n++ {
		a, err := v.send(c.Context, p, devmsg.Poll, struct{}{})
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
}

func (v *phoneShow) Run(c *cli.Console) error {
	p, err := openPhone(v.File)
	if err != nil {
		return err
	}
	if v.JSON {
		return json.NewEncoder(c.Stdout).Encode(p.Facts)
	}
	p.explain(c.Stdout)
	return nil
}

type phoneLeave struct {
	phoneFlags
	Forget bool `help:"Delete the file also when the service does not know the device any more, or cannot be reached."`
}

func (v *phoneLeave) Run(c *cli.Console) error {
	p, err := openRegistered(v.File)
	if err != nil {
		return err
	}
	if _, err := v.send(c.Context, p, devmsg.Leave, struct{}{}); err != nil && !v.Forget {
		return fmt.Errorf("%w; --forget deletes the file nevertheless", err)
	}
	return os.Remove(v.File)
}

// done keeps and shows what the service answered.
func (f phoneFlags) done(c *cli.Console, p *phone, a devmsg.Answer) error {
	p.State, p.UID = a.State, a.UID
	if err := p.save(); err != nil {
		return err
	}
	if f.JSON {
		return json.NewEncoder(c.Stdout).Encode(a)
	}
	p.explain(c.Stdout)
	fmt.Fprintf(c.Stdout, "operations to confirm: %d\n", len(a.Operations))
	return nil
}

// phoneTimeout bounds one exchange.
const phoneTimeout = 30 * time.Second

// send sends a message. Where the service says that our clock is wrong, it is
// corrected by the time the service tells, once.
func (f phoneFlags) send(ctx context.Context, p *phone, kind string, payload any) (devmsg.Answer, error) {
	if err := cli.CheckAddress(p.Service, f.PlainHTTP); err != nil {
		return devmsg.Answer{}, fmt.Errorf("address of the service: %w", err)
	}
	client, err := cli.NewHTTPClient(f.CAFile)
	if err != nil {
		return devmsg.Answer{}, err
	}
	client.Timeout = phoneTimeout
	for corrected := false; ; corrected = true {
		signed, err := p.sign(kind, payload)
		if err != nil {
			return devmsg.Answer{}, err
		}
		a, there, err := exchange(ctx, client, p.Service+"/v1/"+kind, signed)
		var refused *phoneRefusal
		if errors.As(err, &refused) && refused.code == "wrong_time" && !corrected && !there.IsZero() {
			p.Offset = int64(time.Until(there).Round(time.Second) / time.Second)
			continue
		}
		return a, err
	}
}

// phoneRefusal is what the service said no with.
type phoneRefusal struct {
	status     int
	code, text string
}

func (r *phoneRefusal) Error() string {
	return fmt.Sprintf("the service refused (%d %s): %s", r.status, cli.Printable(r.code), cli.Printable(r.text))
}

// exchange posts a message; there is the time at the service.
func exchange(ctx context.Context, client *http.Client, address string, signed devmsg.Signed) (a devmsg.Answer, there time.Time, err error) {
	body, err := json.Marshal(signed)
	if err != nil {
		return a, there, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return a, there, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return a, there, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return a, there, err
	}
	if at, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		there = at
	}
	if response.StatusCode != http.StatusOK {
		var refused struct {
			Error       string `json:"error"`
			Description string `json:"error_description"`
		}
		_ = json.Unmarshal(text, &refused) // another body has neither
		return a, there, &phoneRefusal{response.StatusCode, refused.Error, refused.Description}
	}
	if err := json.Unmarshal(text, &a); err != nil || a.Kid == "" {
		return a, there, errors.New("the service answered with something else than a device is answered with")
	}
	return a, there, nil
}
