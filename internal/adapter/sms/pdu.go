// SPDX-License-Identifier: Apache-2.0

package sms

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Values of command_id (SMPP 3.4, 5.1.2.1). A response has the highest bit set.
const (
	genericNack       = 0x80000000
	bindTransmitter   = 0x00000002
	submitSM          = 0x00000004
	deliverSM         = 0x00000005
	unbind            = 0x00000006
	bindTransceiver   = 0x00000009
	outbind           = 0x0000000b
	enquireLink       = 0x00000015
	alertNotification = 0x00000102
	response          = 0x80000000
)

// Values of command_status (5.1.3) that we send or handle.
const (
	statusOK        = 0
	statusMsgLen    = 0x01 // invalid length of the text
	statusBadComm   = 0x03 // unknown command
	statusInvDest   = 0x0b
	statusThrottled = 0x58
)

const (
	pduHeader = 16
	maxPDU    = 64 << 10 // far more than a message centre sends
)

// pdu is a protocol data unit.
type pdu struct {
	command, status, sequence uint32
	body                      []byte
}

// readPDU reads one unit. It allocates memory only within bounds.
func readPDU(r io.Reader) (pdu, error) {
	var header [pduHeader]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return pdu{}, err
	}
	length := binary.BigEndian.Uint32(header[0:])
	if length < pduHeader || length > maxPDU {
		return pdu{}, fmt.Errorf("sms: the message centre announces a unit of %d bytes, want %d to %d", length, pduHeader, maxPDU)
	}
	p := pdu{
		command:  binary.BigEndian.Uint32(header[4:]),
		status:   binary.BigEndian.Uint32(header[8:]),
		sequence: binary.BigEndian.Uint32(header[12:]),
	}
	if length > pduHeader {
		p.body = make([]byte, length-pduHeader)
		if _, err := io.ReadFull(r, p.body); err != nil {
			return pdu{}, err
		}
	}
	return p, nil
}

// bytes returns the unit as it is sent.
func (p pdu) bytes() []byte {
	out := make([]byte, pduHeader, pduHeader+len(p.body))
	binary.BigEndian.PutUint32(out[0:], uint32(pduHeader+len(p.body)))
	binary.BigEndian.PutUint32(out[4:], p.command)
	binary.BigEndian.PutUint32(out[8:], p.status)
	binary.BigEndian.PutUint32(out[12:], p.sequence)
	return append(out, p.body...)
}

// body builds the mandatory parameters of a unit.
type body struct {
	out []byte
	err error
}

// cString appends a NUL-terminated string. s must be printable ASCII and shorter than size
// bytes.
func (b *body) cString(name, s string, size int) {
	if len(s) >= size {
		b.err = errors.Join(b.err, fmt.Errorf("sms: %s: want at most %d bytes", name, size-1))
		return
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			b.err = errors.Join(b.err, fmt.Errorf("sms: %s: want printable ASCII", name))
			return
		}
	}
	b.out = append(append(b.out, s...), 0)
}

func (b *body) add(values ...byte) { b.out = append(b.out, values...) }

// address is a type of number, a numbering plan, and digits or a name (5.2.5, 5.2.6).
type address struct {
	ton, npi byte
	text     string
}

// Types of number and numbering plans.
const (
	tonUnknown, tonInternational, tonAlphanumeric = 0, 1, 5
	npiUnknown, npiISDN                           = 0, 1
)

// bindBody returns the parameters of bind_transceiver and bind_transmitter (4.1.1).
func bindBody(systemID, password, systemType string) ([]byte, error) {
	var b body
	b.cString("system_id", systemID, 16)
	b.cString("password", password, 9)
	b.cString("system_type", systemType, 13)
	b.add(0x34, tonUnknown, npiUnknown)
	b.cString("address_range", "", 41)
	return b.out, b.err
}

// submitBody returns the parameters of submit_sm (4.4.1). With header, the text begins
// with a user data header.
func submitBody(serviceType string, from, to address, header bool, coding byte, text []byte) ([]byte, error) {
	var b body
	b.cString("service_type", serviceType, 6)
	b.add(from.ton, from.npi)
	b.cString("source_addr", from.text, 21)
	b.add(to.ton, to.npi)
	b.cString("destination_addr", to.text, 21)
	class := byte(0)
	if header {
		class = 0x40 // UDHI (5.2.12)
	}
	b.add(class, 0, 0) // esm_class, protocol_id, priority_flag
	b.cString("schedule_delivery_time", "", 17)
	b.cString("validity_period", "", 17)
	b.add(0, 0, coding, 0) // registered_delivery, replace_if_present_flag, data_coding, sm_default_msg_id
	if len(text) > 254 {
		return nil, errors.Join(b.err, errors.New("sms: short_message: want at most 254 bytes"))
	}
	b.add(byte(len(text)))
	b.add(text...)
	return b.out, b.err
}
