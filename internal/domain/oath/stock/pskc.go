// SPDX-License-Identifier: Apache-2.0

package stock

import (
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/oath/otp"
)

// Opening is what an encrypted container is opened with.
type Opening struct {
	Key      []byte // key that both sides know: 16, 24 or 32 bytes
	Password string // that the key is derived from (PBKDF2)
}

// Elements are known by their local names: containers in the field have them in several
// name spaces, RFC 6030 itself (figure 7) among them.

type containerHead struct {
	key       *cryptKey
	macMethod *macMethod
}

type encryptionKeyXML struct {
	KeyName    string         `xml:"KeyName"`
	X509       *struct{}      `xml:"X509Data"`
	DerivedKey *derivedKeyXML `xml:"DerivedKey"`
}

type derivedKeyXML struct {
	Method struct {
		Algorithm string `xml:"Algorithm,attr"`
		Params    *struct {
			Salt struct {
				Specified string `xml:"Specified"`
			} `xml:"Salt"`
			Iterations string `xml:"IterationCount"`
			KeyLength  string `xml:"KeyLength"`
			PRF        struct {
				Algorithm string `xml:"Algorithm,attr"`
			} `xml:"PRF"`
		} `xml:"PBKDF2-params"`
	} `xml:"KeyDerivationMethod"`
}

type macMethodXML struct {
	Algorithm string        `xml:"Algorithm,attr"`
	Key       *encryptedXML `xml:"MACKey"`
}

type encryptedXML struct {
	Method struct {
		Algorithm string `xml:"Algorithm,attr"`
	} `xml:"EncryptionMethod"`
	CipherValue string `xml:"CipherData>CipherValue"`
}

type valueXML struct {
	Plain     *string       `xml:"PlainValue"`
	Encrypted *encryptedXML `xml:"EncryptedValue"`
	MAC       string        `xml:"ValueMAC"`
}

type packageXML struct {
	Device struct {
		Serial string `xml:"SerialNo"`
		Start  string `xml:"StartDate"`
		Expiry string `xml:"ExpiryDate"`
	} `xml:"DeviceInfo"`
	Keys []struct {
		ID         string `xml:"Id,attr"`
		Algorithm  string `xml:"Algorithm,attr"`
		Parameters struct {
			Suite  string `xml:"Suite"`
			Format struct {
				Length     string `xml:"Length,attr"`
				Encoding   string `xml:"Encoding,attr"`
				CheckDigit string `xml:"CheckDigits,attr"`
			} `xml:"ResponseFormat"`
		} `xml:"AlgorithmParameters"`
		Data struct {
			Secret   *valueXML `xml:"Secret"`
			Counter  *valueXML `xml:"Counter"`
			Interval *valueXML `xml:"TimeInterval"`
			Drift    *valueXML `xml:"TimeDrift"`
		} `xml:"Data"`
		Policy *policyXML `xml:"Policy"`
	} `xml:"Key"`
}

type policyXML struct {
	Start  string   `xml:"StartDate"`
	Expiry string   `xml:"ExpiryDate"`
	Usage  []string `xml:"KeyUsage"`
	PIN    *struct {
		Mode string `xml:"PINUsageMode,attr"`
	} `xml:"PINPolicy"`
	Transactions string `xml:"NumberOfTransactions"`
	Other        []struct {
		XMLName xml.Name
	} `xml:",any"`
}

// bounds of the XML.
const (
	maxDepth   = 32
	maxElement = 64 << 10 // bytes of an element that is read as a whole
)

// ReadPSKC reads the HOTP and TOTP keys of a PSKC container, version 1.0. Encrypted ones
// (AES in CBC mode with a MAC, as RFC 6030, 6 has it) are opened with a key or a
// password. Each package holds one key, whose serial number is the device's or else the
// key's identifier. What the container says of the manufacturer, the user and the
// device's clock is not kept; an XML signature is not checked.
func ReadPSKC(r io.Reader, with Opening) ([]Token, error) {
	in := &boundedReader{r: r, left: MaxFile, element: maxElement}
	d := xml.NewDecoder(in)
	d.CharsetReader = func(string, io.Reader) (io.Reader, error) {
		return nil, errors.New("want UTF-8")
	}
	var all collector
	if err := readContainer(d, in, with, &all); err != nil {
		Wipe(all.list)
		return nil, err
	}
	return all.result()
}

func readContainer(d *xml.Decoder, in *boundedReader, with Opening, all *collector) error {
	root := false
	var head containerHead
	packages := 0
	for {
		in.element = maxElement
		token, err := d.Token()
		if errors.Is(err, io.EOF) && root {
			return nil
		}
		if err != nil {
			return xmlFault(d, err)
		}
		switch e := token.(type) {
		case xml.Directive:
			return errors.New("stock: the container declares a document type, which none needs: take it out")
		case xml.StartElement:
			if !root {
				if e.Name.Local != "KeyContainer" {
					return errors.New("stock: this is no PSKC container: its outer element is not KeyContainer")
				}
				for _, a := range e.Attr {
					if a.Name.Local == "Version" && a.Value != "1.0" && a.Value != "1" {
						return errors.New("stock: the container has another version than 1.0")
					}
				}
				root = true
				continue
			}
			switch e.Name.Local {
			case "EncryptionKey":
				var x encryptionKeyXML
				if err := decode(d, &x, &e); err != nil {
					return err
				}
				if head.key, err = keyOf(x, with); err != nil {
					return err
				}
			case "MACMethod":
				var x macMethodXML
				if err := decode(d, &x, &e); err != nil {
					return err
				}
				if head.macMethod, err = macOf(x, head.key); err != nil {
					return err
				}
			case "KeyPackage":
				packages++
				var x packageXML
				if err := decode(d, &x, &e); err != nil {
					return err
				}
				t, err := tokenOfPackage(x, head)
				if err := all.add(t, err, fmt.Sprintf("key package %d", packages)); err != nil {
					return err
				}
			case "Signature", "Extensions":
				var skipped struct{}
				if err := decode(d, &skipped, &e); err != nil {
					return err
				}
			default:
				return fmt.Errorf("stock: the container has an element %.40q that this program does not know", e.Name.Local)
			}
		}
	}
}

// decode reads an element whose tree is no deeper than maxDepth and no longer than
// maxElement.
func decode(d *xml.Decoder, into any, start *xml.StartElement) error {
	shallow := xml.NewTokenDecoder(&shallowReader{d: d, start: start})
	if err := shallow.Decode(into); err != nil {
		return xmlFault(d, err)
	}
	return nil
}

// shallowReader gives the tokens of one element.
type shallowReader struct {
	d     *xml.Decoder
	start *xml.StartElement
	depth int
	ended bool
}

func (s *shallowReader) Token() (xml.Token, error) {
	if s.ended {
		return nil, io.EOF
	}
	if s.start != nil {
		start := *s.start
		s.start, s.depth = nil, 1
		return start, nil
	}
	token, err := s.d.Token()
	if err != nil {
		return nil, err
	}
	switch token.(type) {
	case xml.StartElement:
		if s.depth++; s.depth > maxDepth {
			return nil, errors.New("elements are nested too deeply")
		}
	case xml.EndElement:
		s.depth--
		s.ended = s.depth == 0
	case xml.Directive:
		return nil, errors.New("a document type inside the container")
	}
	return token, nil
}

// boundedReader ends with an error where a file or an element of it is too large.
type boundedReader struct {
	r             io.Reader
	left, element int
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	if b.element <= 0 {
		return 0, errLongElement
	}
	p = p[:min(len(p), b.left, b.element)]
	n, err := b.r.Read(p)
	b.left -= n
	b.element -= n
	return n, err
}

var errLongElement = fmt.Errorf("stock: an element of the container is longer than %d KiB", maxElement>>10)

// xmlFault keeps the text of a file out of the error.
func xmlFault(d *xml.Decoder, err error) error {
	line, _ := d.InputPos()
	var syntax *xml.SyntaxError
	switch {
	case errors.Is(err, errTooLarge), errors.Is(err, errLongElement):
		return err
	case errors.Is(err, io.EOF), errors.As(err, &syntax) && syntax.Msg == "unexpected EOF":
		return errors.New("stock: the file is no complete XML document")
	}
	return fmt.Errorf("stock: line %d: no XML that a PSKC container is made of (UTF-8, no entities of its own, not deeper than %d elements)", line, maxDepth)
}

// keyAlgorithms says whether an algorithm (RFC 6030, 10, and its drafts) is TOTP.
var keyAlgorithms = map[string]bool{
	"urn:ietf:params:xml:ns:keyprov:pskc:hotp": false,
	"urn:ietf:params:xml:ns:keyprov:pskc:totp": true,
	"urn:ietf:params:xml:ns:keyprov:pskc#hotp": false,
	"urn:ietf:params:xml:ns:keyprov:pskc#totp": true,
	"http://www.ietf.org/keyprov/pskc#hotp":    false,
	"http://www.ietf.org/keyprov/pskc#totp":    true,
}

func tokenOfPackage(p packageXML, head containerHead) (t Token, err error) {
	t.Serial = strings.TrimSpace(p.Device.Serial)
	if len(p.Keys) != 1 {
		return t, fmt.Errorf("it holds %d keys: want one", len(p.Keys))
	}
	k := p.Keys[0]
	if t.Serial == "" {
		t.Serial = strings.TrimSpace(k.ID)
	}
	var known bool
	if t.Time, known = keyAlgorithms[strings.ToLower(strings.TrimSpace(k.Algorithm))]; !known {
		return t, errors.New("algorithm: want that of HOTP or TOTP of RFC 6030")
	}
	t.Algorithm = otp.SHA1
	if suite := strings.TrimSpace(k.Parameters.Suite); suite != "" {
		if t.Algorithm, known = otp.AlgorithmNamed(suite); !known {
			return t, errors.New("suite: want SHA1, SHA256, SHA512, STREEBOG256 or STREEBOG512")
		}
	}
	t.Digits = otp.MinDigits
	if f := k.Parameters.Format; f.Length != "" {
		if t.Digits, err = strconv.Atoi(strings.TrimSpace(f.Length)); err != nil {
			return t, errors.New("response format: want a length of 6 to 8")
		}
	}
	if f := k.Parameters.Format; f.Encoding != "" && !strings.EqualFold(f.Encoding, "DECIMAL") || isTrue(f.CheckDigit) {
		return t, errors.New("response format: want decimal digits without a check digit")
	}
	if err := t.bounds(p, k.Policy); err != nil {
		return t, err
	}
	if t.Secret, err = head.binary(k.Data.Secret, "the secret"); err != nil {
		return t, err
	}
	if t.Time {
		seconds, err := head.number(k.Data.Interval, "the time interval", int64(DefaultPeriod/time.Second))
		if err != nil {
			return t, err
		}
		t.Period = time.Duration(max(min(seconds, 1e6), 0)) * time.Second
		t.Drift, err = head.number(k.Data.Drift, "the time drift", 0)
		if t.Drift > math.MaxInt32 && t.Drift <= math.MaxUint32 {
			t.Drift = int64(int32(t.Drift)) // the OATH Toolkit writes it without its sign
		}
		return t, err
	}
	t.Counter, err = head.number(k.Data.Counter, "the counter", 0)
	return t, err
}

func isTrue(text string) bool {
	text = strings.TrimSpace(text)
	return text == "1" || strings.EqualFold(text, "true")
}

// bounds reads when and for what the key may be used. RFC 6030, 5 has a key refused
// whose policy is not understood.
func (t *Token) bounds(p packageXML, policy *policyXML) error {
	dates := []struct {
		text  string
		into  *time.Time
		later bool // the later of two counts
	}{{p.Device.Start, &t.NotBefore, true}, {p.Device.Expiry, &t.NotAfter, false}}
	if policy != nil {
		dates = append(dates, dates[0], dates[1])
		dates[2].text, dates[3].text = policy.Start, policy.Expiry
		otpUse := len(policy.Usage) == 0
		for _, use := range policy.Usage {
			otpUse = otpUse || strings.TrimSpace(use) == "OTP"
		}
		if !otpUse {
			return errors.New("policy: the key is not for one-time passwords")
		}
		if policy.PIN != nil && policy.PIN.Mode != "" && policy.PIN.Mode != "Local" {
			return errors.New("policy: the code depends on a PIN: want tokens that ask for theirs themselves")
		}
		if policy.Transactions != "" || len(policy.Other) > 0 {
			return errors.New("policy: it has rules that this program cannot keep")
		}
	}
	for _, d := range dates {
		text := strings.TrimSpace(d.text)
		if text == "" {
			continue
		}
		at, err := time.Parse("2006-01-02T15:04:05.999999999Z07:00", text)
		if err != nil {
			if at, err = time.Parse("2006-01-02T15:04:05", text); err != nil {
				return errors.New("dates: want them as xs:dateTime")
			}
		}
		if d.into.IsZero() || at.After(*d.into) == d.later {
			*d.into = at.UTC()
		}
	}
	return nil
}

// number reads a whole number, plain: of an encrypted one a text in digits.
func (h containerHead) number(v *valueXML, what string, absent int64) (int64, error) {
	if v == nil {
		return absent, nil
	}
	var text string
	if v.Plain != nil {
		text = *v.Plain
	} else {
		opened, err := h.binary(v, what)
		if err != nil {
			return 0, err
		}
		text = string(opened)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: want a whole number", what)
	}
	return n, nil
}

// binary reads a binary value, plain (Base64) or encrypted.
func (h containerHead) binary(v *valueXML, what string) ([]byte, error) {
	switch {
	case v == nil || v.Plain == nil && v.Encrypted == nil:
		return nil, fmt.Errorf("%s is missing", what)
	case v.Plain != nil && v.Encrypted != nil:
		return nil, fmt.Errorf("%s is given twice", what)
	case v.Plain != nil:
		return decodeBase64(*v.Plain, what)
	}
	return h.open(*v.Encrypted, v.MAC, what)
}

func decodeBase64(text, what string) ([]byte, error) {
	binary, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		return nil, fmt.Errorf("%s: want Base64", what)
	}
	return binary, nil
}
