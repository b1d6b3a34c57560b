// SPDX-License-Identifier: Apache-2.0

package phone

import (
	"crypto"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"tamga/internal/cli"
	devmsg "tamga/internal/domain/device/message"
	"tamga/internal/files"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// phone is a mobile device: the content of its file, and the key.
type phone struct {
	Facts
	Key    string `json:"key"`    // PKCS #8, Base64
	Number int64  `json:"number"` // of the last message
	Offset int64  `json:"offset"` // seconds by which the clock of the service is ahead
	// ServiceKey is the key of the service, as the registration gave it or the key before it
	// introduced it: SubjectPublicKeyInfo.
	ServiceKey []byte     `json:"service_key,omitempty"`
	Former     *formerKey `json:"former_service_key,omitempty"`
	Later      []kept     `json:"later,omitempty"` // decisions that tamga phone send delivers

	file  string
	key   crypto.Signer
	suite *suite.Suite
}

// Facts is the part of the file without secrets.
type Facts struct {
	Service string `json:"service_url"`
	Kid     string `json:"kid"` // empty before the registration
	UID     string `json:"uid"` // empty if the device is not assigned to a user
	State   string `json:"state"`
	Suite   string `json:"suite"`
}

// newPhone makes a device with a new key and writes its file, before any message is sent.
func newPhone(file, service, suiteName string) (*phone, error) {
	s, ok := suite.ByName(suiteName)
	if !ok {
		return nil, fmt.Errorf("--suite: %q is unknown", suiteName)
	}
	p := &phone{file: file, suite: s, Facts: Facts{Service: service, Suite: s.Name}}
	var err error
	if p.key, err = s.Generate(nil); err != nil {
		return nil, err
	}
	der, err := x509gost.MarshalPrivateKey(p.key, s)
	if err != nil {
		return nil, err
	}
	defer clear(der)
	p.Key = base64.StdEncoding.EncodeToString(der)
	return p, p.save()
}

// openPhone reads the file of a device. If there is none, the error wraps fs.ErrNotExist.
func openPhone(file string) (*phone, error) {
	info, err := os.Stat(file)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("there is no device in %s; make one with tamga phone register: %w", file, fs.ErrNotExist)
		}
		return nil, err
	}
	if files.ModeOfOthers(info.Mode()) != 0 {
		return nil, fmt.Errorf("%s has a key and can be read by other users; run: chmod 600 %s", file, file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	p := &phone{file: file}
	if err := json.Unmarshal(text, p); err != nil {
		return nil, fmt.Errorf("%s is not the file of a device", file)
	}
	der, err := base64.StdEncoding.DecodeString(p.Key)
	if err != nil {
		return nil, fmt.Errorf("%s is not the file of a device", file)
	}
	defer clear(der)
	if p.key, p.suite, err = x509gost.ParsePrivateKey(der); err != nil {
		return nil, fmt.Errorf("%s: the key: %w", file, err)
	}
	return p, nil
}

// openRegistered reads the file of a registered device.
func openRegistered(file string) (*phone, error) {
	p, err := openPhone(file)
	if err == nil && p.Kid == "" {
		err = fmt.Errorf("the device in %s is not registered; register it with tamga phone register", file)
	}
	return p, err
}

// save writes the file of the device.
func (p *phone) save() error {
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	if dir := filepath.Dir(p.file); dir != "." {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	return files.Replace(p.file, append(text, '\n'), 0o600)
}

// publicKey returns the SubjectPublicKeyInfo of the device.
func (p *phone) publicKey() ([]byte, error) {
	return x509gost.MarshalPublicKey(p.key.Public(), p.suite)
}

// sign makes the next message. It writes the number of the message to disk first, so that no number is
// used twice even after a crash.
func (p *phone) sign(kind string, payload any) (devmsg.Signed, error) {
	p.Number++
	if err := p.save(); err != nil {
		return devmsg.Signed{}, err
	}
	h := devmsg.Header{Type: kind, Service: p.Service, Kid: p.Kid, Number: p.Number, Time: time.Now().Unix() + p.Offset}
	if kind == devmsg.Register {
		h.Kid = ""
		var err error
		if h.Key, err = p.publicKey(); err != nil {
			return devmsg.Signed{}, err
		}
	}
	return devmsg.Sign(h, payload, p.key, p.suite, nil)
}

// explain prints the facts as text for people.
func (p *phone) explain(c *cli.Console) {
	for _, line := range []struct {
		name  cli.Word
		value string
	}{{"device", p.Kid}, {"state", p.State}, {"user", p.UID}, {"service", p.Service}, {"key", p.Suite}} {
		if line.value != "" {
			fmt.Fprintf(c.Stdout, "%s: %s\n", c.Word(line.name), cli.Printable(line.value))
		}
	}
}
